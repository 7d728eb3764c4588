//! MSS clamping: lowers the maximum segment size that TCP connections through an interface agree
//! on (RFC 9293 section 3.7.1), for paths whose MTU the hosts do not hear of.
#![forbid(unsafe_code)]

pub mod api;
pub mod api_types;
mod cli;
pub mod nodes;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use thalweg_cli::CliError;
use thalweg_device::command_line::refused;
use thalweg_device::{DeviceError, InterfaceEvent, SwIfIndex, interface};
use thalweg_engine::Feature;
use thalweg_graph::Control;
use thalweg_tables::snapshot::{self, Snapshot};

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "mss-clamp",
    about: "MSS clamping of TCP connections",
    needs: &["interface"],
    nodes: nodes::NODES,
    commands: cli::COMMANDS,
    api: api::SERVICES,
    settings: &[&settings::SETTINGS],
    init,
    ..Feature::DEFAULT
};

/// Smallest limit in bytes.
pub const MIN_MSS: u16 = 64;

/// Directions of packets as the interface sees them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Received.
    Rx,
    /// Sent.
    Tx,
    /// Both.
    Both,
}

impl Direction {
    /// The word for it; `both` is `enable`.
    pub fn word(self) -> &'static str {
        match self {
            Direction::Rx => "rx",
            Direction::Tx => "tx",
            Direction::Both => "enable",
        }
    }

    /// Includes received packets.
    pub fn has_rx(self) -> bool {
        self != Direction::Tx
    }

    /// Includes sent packets.
    pub fn has_tx(self) -> bool {
        self != Direction::Rx
    }
}

/// The limit of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clamp {
    /// Most that a SYN may offer, in bytes.
    pub mss: u16,
    /// The packets that it is for.
    pub direction: Direction,
}

/// Why a limit is refused.
#[derive(Debug, thiserror::Error)]
pub enum ClampError {
    /// The limit is too small.
    #[error("the MSS must be between {MIN_MSS} and 65535, not {0}")]
    Small(u16),
    /// The version is not forwarded.
    #[error("MSS clamping for IPv6 is not there yet")]
    NoIp6,
    /// The interface does not exist.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl From<ClampError> for CliError {
    fn from(e: ClampError) -> CliError {
        match e {
            ClampError::Device(e) => refused(e),
            ClampError::Small(_) => CliError::with_code(e, -7),
            ClampError::NoIp6 => CliError::with_code(e, -9),
        }
    }
}

/// The limits by interface, as workers read them.
pub(crate) type Limits = BTreeMap<SwIfIndex, Clamp>;

struct Clamps {
    writer: snapshot::Writer<Limits>,
}

fn init(c: &mut Control) {
    let (writer, snapshot) = snapshot::channel(Limits::new());
    let snapshot: Arc<Snapshot<Limits>> = snapshot;
    c.share(snapshot);
    c.insert(Clamps { writer });
    c.subscribe(|c, event: &InterfaceEvent| {
        // Its features go with it.
        if let InterfaceEvent::Deleted(i) = *event {
            store(c, i, None);
        }
    });
}

/// Returns the limits, in order of interfaces.
pub fn all(c: &Control) -> Vec<(SwIfIndex, Clamp)> {
    c.state::<Clamps>().borrow().writer.get().iter().map(|(i, clamp)| (*i, *clamp)).collect()
}

/// Returns the limit of an interface.
pub fn get(c: &Control, sw_if: SwIfIndex) -> Option<Clamp> {
    c.state::<Clamps>().borrow().writer.get().get(&sw_if).copied()
}

fn store(c: &mut Control, sw_if: SwIfIndex, clamp: Option<Clamp>) {
    if get(c, sw_if) == clamp {
        return;
    }
    let state = c.state::<Clamps>();
    state.borrow_mut().writer.update(c.domain(), |old| {
        let mut new = old.clone();
        match clamp {
            Some(clamp) => new.insert(sw_if, clamp),
            None => new.remove(&sw_if),
        };
        new
    });
}

/// The arc and node of each direction.
const NODES: [(&str, &str); 2] =
    [("ip4-unicast", "tcp-mss-clamping-ip4-in"), ("ip4-output", "tcp-mss-clamping-ip4-out")];

/// Sets the limit of an interface for IPv4, or removes it.
///
/// # Errors
/// [`ClampError`]; nothing has changed then.
pub fn set(c: &mut Control, sw_if: SwIfIndex, clamp: Option<Clamp>) -> Result<(), ClampError> {
    interface::view(c, sw_if)?;
    if let Some(Clamp { mss, .. }) = clamp
        && mss < MIN_MSS
    {
        return Err(ClampError::Small(mss));
    }
    let sides = |clamp: Option<Clamp>| {
        let direction = clamp.map(|clamp| clamp.direction);
        [direction.is_some_and(Direction::has_rx), direction.is_some_and(Direction::has_tx)]
    };
    let (before, after) = (sides(get(c, sw_if)), sides(clamp));
    store(c, sw_if, clamp);
    for (i, (arc, node)) in NODES.into_iter().enumerate() {
        if before[i] != after[i]
            && let Err(e) = c.enable_feature(arc, node, sw_if, after[i])
        {
            tracing::error!("{}: {e}", c.interface_name(sw_if));
        }
    }
    Ok(())
}

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
