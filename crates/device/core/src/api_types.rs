//! What API messages about interfaces have in common.

use crate::{DeviceError, InterfaceEvent, InterfaceView, Interfaces, SwIfIndex, interface};
use thalweg_api::schema::Module;
use thalweg_api::types::{IfStatusFlags, InterfaceIndex, MacAddress};
use thalweg_api::{Clients, Message, Retval, Subscribers, api_enum};
use thalweg_graph::{Control, RxMode as Mode};

/// The module that describes them.
pub static INTERFACE: Module = Module { name: "interface", folder: "core", version: "3.2.4" };

/// Features on arcs.
pub static FEATURE: Module = Module { name: "feature", folder: "core", version: "1.0.2" };

api_enum! {
    /// What an interface is.
    pub struct IfType: u32 = "if_type" {
        /// A device.
        HARDWARE = 0, "IF_API_TYPE_HARDWARE";
        /// A part of another interface.
        SUB = 1, "IF_API_TYPE_SUB";
        /// A peer on another interface.
        P2P = 2, "IF_API_TYPE_P2P";
        /// An end of a pipe.
        PIPE = 3, "IF_API_TYPE_PIPE";
    }
    /// Whether a link sends and receives at the same time.
    pub struct LinkDuplex: u32 = "link_duplex" {
        /// Nobody knows.
        UNKNOWN = 0, "LINK_DUPLEX_API_UNKNOWN";
        /// By turns.
        HALF = 1, "LINK_DUPLEX_API_HALF";
        /// At the same time.
        FULL = 2, "LINK_DUPLEX_API_FULL";
    }
    /// Which frames a sub-interface takes.
    pub struct SubIfFlags: u32 = "sub_if_flags" {
        /// Those without a tag.
        NO_TAGS = 1, "SUB_IF_API_FLAG_NO_TAGS";
        /// Those with one tag.
        ONE_TAG = 2, "SUB_IF_API_FLAG_ONE_TAG";
        /// Those with two tags.
        TWO_TAGS = 4, "SUB_IF_API_FLAG_TWO_TAGS";
        /// The outer tag is a service tag (802.1ad).
        DOT1AD = 8, "SUB_IF_API_FLAG_DOT1AD";
        /// Those with these tags and no more.
        EXACT_MATCH = 16, "SUB_IF_API_FLAG_EXACT_MATCH";
        /// Those that no other takes.
        DEFAULT = 32, "SUB_IF_API_FLAG_DEFAULT";
        /// Any outer tag.
        OUTER_VLAN_ID_ANY = 64, "SUB_IF_API_FLAG_OUTER_VLAN_ID_ANY";
        /// Any inner tag.
        INNER_VLAN_ID_ANY = 128, "SUB_IF_API_FLAG_INNER_VLAN_ID_ANY";
        /// All of these but the first.
        MASK_VNET = 254, "SUB_IF_API_FLAG_MASK_VNET";
        /// Backbone bridging (802.1ah).
        DOT1AH = 256, "SUB_IF_API_FLAG_DOT1AH";
    }
    /// How a receive queue is waited for.
    pub struct RxMode: u32 = "rx_mode" {
        /// None was said.
        UNKNOWN = 0, "RX_MODE_API_UNKNOWN";
        /// Never: the worker polls.
        POLLING = 1, "RX_MODE_API_POLLING";
        /// Asleep.
        INTERRUPT = 2, "RX_MODE_API_INTERRUPT";
        /// Polling through short gaps, asleep through long ones.
        ADAPTIVE = 3, "RX_MODE_API_ADAPTIVE";
        /// As the driver likes it.
        DEFAULT = 4, "RX_MODE_API_DEFAULT";
    }
}

impl RxMode {
    /// The engine's mode.
    ///
    /// # Errors
    /// [`Retval::INVALID_VALUE`] for none.
    pub fn mode(self) -> Result<Mode, Retval> {
        Ok(match self {
            RxMode::POLLING => Mode::Polling,
            RxMode::INTERRUPT => Mode::Interrupt,
            RxMode::ADAPTIVE => Mode::Adaptive,
            RxMode::DEFAULT => Mode::default(),
            _ => return Err(Retval::INVALID_VALUE),
        })
    }
}

impl From<Mode> for RxMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Polling => RxMode::POLLING,
            Mode::Interrupt => RxMode::INTERRUPT,
            Mode::Adaptive => RxMode::ADAPTIVE,
        }
    }
}

impl From<DeviceError> for Retval {
    fn from(error: DeviceError) -> Self {
        Retval(error.code()).because(error)
    }
}

/// An interface that exists.
///
/// # Errors
/// [`Retval::INVALID_SW_IF_INDEX`].
pub fn view(c: &Control, index: InterfaceIndex) -> Result<InterfaceView, Retval> {
    interface::view(c, index.0).map_err(|_| Retval::INVALID_SW_IF_INDEX)
}

/// The indices that a dump's argument means, of which 0 and "none" mean all.
pub fn indices(c: &Control, index: InterfaceIndex) -> Vec<SwIfIndex> {
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    match index {
        InterfaceIndex(0) | InterfaceIndex::NONE => all.iter().map(|view| view.sw_if).collect(),
        InterfaceIndex(one) => all.get(one).map(|view| view.sw_if).into_iter().collect(),
    }
}

/// A MAC address, unless it is zero.
pub fn mac(address: MacAddress) -> Option<[u8; 6]> {
    (address.0 != [0; 6]).then_some(address.0)
}

/// State of an interface.
pub fn flags(view: &InterfaceView) -> IfStatusFlags {
    let bit = |on, flag: IfStatusFlags| if on { flag.0 } else { 0 };
    IfStatusFlags(
        bit(view.admin_up, IfStatusFlags::ADMIN_UP) | bit(view.link_up, IfStatusFlags::LINK_UP),
    )
}

/// Tells of an interface's change.
#[derive(Debug, Message)]
#[api(event)]
pub struct SwInterfaceEvent {
    /// What the client said when it asked.
    pub pid: u32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Its state now.
    pub flags: IfStatusFlags,
    /// It is gone.
    pub deleted: bool,
}

/// Clients that want to hear of interfaces.
#[derive(Default)]
pub(crate) struct Listeners(pub(crate) Subscribers);

pub(crate) fn init(c: &mut Control) {
    c.insert(Listeners::default());
    c.state::<Interfaces>().borrow_mut().subscribe(|c, event| {
        let (sw_if, deleted) = match event {
            InterfaceEvent::Created(sw_if) | InterfaceEvent::State(sw_if) => (sw_if, false),
            InterfaceEvent::Deleted(sw_if) => (sw_if, true),
            InterfaceEvent::Mac(_) | InterfaceEvent::Mtu(_) => return,
        };
        let listeners = c.state::<Listeners>();
        if listeners.borrow().0.is_empty() {
            return;
        }
        let created = matches!(event, InterfaceEvent::Created(_));
        let flags = match interface::view(c, sw_if) {
            Ok(view) if !deleted && !created => flags(&view),
            _ => IfStatusFlags::default(),
        };
        let sw_if_index = InterfaceIndex(sw_if);
        let clients = c.state::<Clients>().borrow().clone();
        let event = |pid, (): &()| Some(SwInterfaceEvent { pid, sw_if_index, flags, deleted });
        listeners.borrow_mut().0.notify(&clients, event);
    });
}
