//! Settings for all pairs.

use crate::Error;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use thalweg_config::declare::Name;
use thalweg_engine::setting::Refused;
use thalweg_graph::Control;

/// Seconds for which routes of a lost connection of `zebra` stay unless a user says otherwise.
pub(crate) const FPM_HOLD: u32 = 120;

/// Settings for all pairs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Namespace of pairs that name none.
    pub namespace: Option<String>,
    /// The router's state is passed to twins.
    pub sync: bool,
    /// Addresses that an interface borrows are passed to twins, too.
    pub sync_unnumbered: bool,
    /// Sub-interfaces get twins when they are made.
    pub auto_subint: bool,
    /// Receive queues of a TAP; one per worker if `None`.
    pub rx_queues: Option<u16>,
    /// Transmit queues of a TAP, as VPP counts them.
    pub tx_queues: Option<u16>,
    /// Bytes of notices of routes that the kernel keeps for each namespace; the usual number if
    /// `None`.
    pub notice_bytes: Option<usize>,
    /// Address at which the router listens to `zebra` in each namespace with twins.
    pub fpm: Option<SocketAddr>,
    /// Seconds for which routes of a lost connection of `zebra` stay.
    pub fpm_hold: u32,
    /// Words of the startup configuration that have no effect.
    pub unsupported: Vec<String>,
    /// Ethertypes that are passed between interfaces and twins.
    pub ethertypes: BTreeSet<u16>,
    /// OSI protocols, likewise.
    pub osi: BTreeSet<u8>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            namespace: None,
            sync: false,
            sync_unnumbered: true,
            auto_subint: false,
            rx_queues: None,
            tx_queues: None,
            notice_bytes: None,
            fpm: None,
            fpm_hold: FPM_HOLD,
            unsupported: Vec::new(),
            ethertypes: BTreeSet::new(),
            osi: BTreeSet::new(),
        }
    }
}

pub(crate) fn init(c: &mut Control) {
    c.insert(Options::default());
}

/// Returns the settings.
pub fn get(c: &Control) -> Options {
    c.state::<Options>().borrow().clone()
}

/// Changes settings that take effect when they are next looked at.
pub fn change(c: &Control, change: impl FnOnce(&mut Options)) {
    change(&mut c.state::<Options>().borrow_mut());
}

/// The router's own namespace, for a pair that is there though others are elsewhere.
pub(crate) const OWN_NAMESPACE: &str = "/proc/self/ns/net";

/// Most bytes of a namespace's name: binary API messages have 32, with the one that ends it.
pub(crate) const LONGEST_NAMESPACE: usize = 31;

/// Sets the namespace of pairs that name none. Existing pairs stay where they are.
///
/// # Errors
/// If the name is too long, or no word of a document.
pub fn set_namespace(c: &Control, name: Option<&str>) -> Result<(), Refused> {
    check_namespace(name)?;
    let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
    change(c, |options| options.namespace = name);
    Ok(())
}

/// Checks the name of a namespace.
///
/// # Errors
/// If it is too long, or no word of a document.
pub(crate) fn check_namespace(name: Option<&str>) -> Result<(), Error> {
    match name {
        Some(name) if name.len() > LONGEST_NAMESPACE => Err(Error::LongNamespace(name.len())),
        Some(name) if !name.is_empty() && !Name::Any.takes(name) => {
            Err(Error::BadNamespace(name.to_owned()))
        }
        _ => Ok(()),
    }
}
