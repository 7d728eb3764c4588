//! Types and helpers shared by the interface API messages.

use crate::{DeviceError, InterfaceEvent, InterfaceView, Interfaces, SwIfIndex, interface};
use thalweg_api::schema::Module;
use thalweg_api::types::{IfStatusFlags, InterfaceIndex, MacAddr};
use thalweg_api::{Clients, Message, Retval, Subscribers, api_enum};
use thalweg_engine::setting::Refused;
use thalweg_graph::{Control, RxMode as Mode};

/// API module of interfaces.
pub static INTERFACE: Module = Module { name: "interface", folder: "core", version: "3.2.4" };

/// API module of features on arcs.
pub static FEATURE: Module = Module { name: "feature", folder: "core", version: "1.0.2" };

api_enum! {
    /// Interface type.
    pub struct IfType: u32 = "if_type" {
        /// A device.
        HARDWARE = 0, "IF_API_TYPE_HARDWARE";
        /// A sub-interface.
        SUB = 1, "IF_API_TYPE_SUB";
        /// A point-to-point peer.
        P2P = 2, "IF_API_TYPE_P2P";
        /// An end of a pipe.
        PIPE = 3, "IF_API_TYPE_PIPE";
    }
    /// Duplex mode of a link.
    pub struct LinkDuplex: u32 = "link_duplex" {
        /// Unknown.
        UNKNOWN = 0, "LINK_DUPLEX_API_UNKNOWN";
        /// Half duplex.
        HALF = 1, "LINK_DUPLEX_API_HALF";
        /// Full duplex.
        FULL = 2, "LINK_DUPLEX_API_FULL";
    }
    /// Frames matched by a sub-interface.
    pub struct SubIfFlags: u32 = "sub_if_flags" {
        /// Untagged frames.
        NO_TAGS = 1, "SUB_IF_API_FLAG_NO_TAGS";
        /// Frames with one tag.
        ONE_TAG = 2, "SUB_IF_API_FLAG_ONE_TAG";
        /// Frames with two tags.
        TWO_TAGS = 4, "SUB_IF_API_FLAG_TWO_TAGS";
        /// The outer tag is a service tag (802.1ad).
        DOT1AD = 8, "SUB_IF_API_FLAG_DOT1AD";
        /// Exactly these tags.
        EXACT_MATCH = 16, "SUB_IF_API_FLAG_EXACT_MATCH";
        /// Frames that no other sub-interface matches.
        DEFAULT = 32, "SUB_IF_API_FLAG_DEFAULT";
        /// Any outer tag.
        OUTER_VLAN_ID_ANY = 64, "SUB_IF_API_FLAG_OUTER_VLAN_ID_ANY";
        /// Any inner tag.
        INNER_VLAN_ID_ANY = 128, "SUB_IF_API_FLAG_INNER_VLAN_ID_ANY";
        /// All flags but `NO_TAGS`.
        MASK_VNET = 254, "SUB_IF_API_FLAG_MASK_VNET";
        /// Backbone bridging (802.1ah).
        DOT1AH = 256, "SUB_IF_API_FLAG_DOT1AH";
    }
    /// Receive mode of a queue.
    pub struct RxMode: u32 = "rx_mode" {
        /// Not given.
        UNKNOWN = 0, "RX_MODE_API_UNKNOWN";
        /// Polling: the worker never sleeps.
        POLLING = 1, "RX_MODE_API_POLLING";
        /// Interrupt: the worker sleeps between packets.
        INTERRUPT = 2, "RX_MODE_API_INTERRUPT";
        /// Adaptive: polling through short gaps, sleeping through long ones.
        ADAPTIVE = 3, "RX_MODE_API_ADAPTIVE";
        /// The driver's default.
        DEFAULT = 4, "RX_MODE_API_DEFAULT";
    }
}

impl RxMode {
    /// Converts to the engine's mode.
    ///
    /// # Errors
    /// [`Retval::INVALID_VALUE`] for an unknown mode.
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

impl From<DeviceError> for Refused {
    fn from(error: DeviceError) -> Self {
        Refused::new(error.code(), error)
    }
}

/// Looks up an interface.
///
/// # Errors
/// [`Retval::INVALID_SW_IF_INDEX`].
pub fn view(c: &Control, index: InterfaceIndex) -> Result<InterfaceView, Retval> {
    interface::view(c, SwIfIndex(index.0)).map_err(|_| Retval::INVALID_SW_IF_INDEX)
}

/// Interface indices selected by a dump's argument; 0 and all ones select all.
pub fn indices(c: &Control, index: InterfaceIndex) -> Vec<SwIfIndex> {
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    match index {
        InterfaceIndex(0) | InterfaceIndex::NONE => all.iter().map(|view| view.sw_if).collect(),
        InterfaceIndex(one) => all.get(SwIfIndex(one)).map(|view| view.sw_if).into_iter().collect(),
    }
}

/// Returns a MAC address unless it is zero.
pub fn mac(address: MacAddr) -> Option<MacAddr> {
    (!address.is_zero()).then_some(address)
}

/// Administrative and link state of an interface.
pub fn flags(view: &InterfaceView) -> IfStatusFlags {
    let bit = |on, flag: IfStatusFlags| if on { flag.0 } else { 0 };
    IfStatusFlags(
        bit(view.admin_up, IfStatusFlags::ADMIN_UP) | bit(view.link_up, IfStatusFlags::LINK_UP),
    )
}

/// Event: an interface changed.
#[derive(Debug, Message)]
#[api(event)]
pub struct SwInterfaceEvent {
    /// Process id given in the subscription.
    pub pid: u32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// New state.
    pub flags: IfStatusFlags,
    /// The interface was deleted.
    pub deleted: bool,
}

/// Subscribed clients.
#[derive(Default)]
pub(crate) struct Listeners(pub(crate) Subscribers);

pub(crate) fn init(c: &mut Control) {
    c.insert(Listeners::default());
    c.subscribe(|c, &event: &InterfaceEvent| {
        let (sw_if, deleted) = match event {
            InterfaceEvent::Created(sw_if) | InterfaceEvent::State(sw_if) => (sw_if, false),
            InterfaceEvent::Deleted(sw_if) => (sw_if, true),
            InterfaceEvent::Mac(_)
            | InterfaceEvent::Mtu(_)
            | InterfaceEvent::Tag(_)
            | InterfaceEvent::Promiscuous(_) => return,
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
        let sw_if_index = InterfaceIndex(sw_if.get());
        let clients = c.state::<Clients>().borrow().clone();
        let event = |pid, (): &()| Some(SwInterfaceEvent { pid, sw_if_index, flags, deleted });
        listeners.borrow_mut().0.notify(&clients, event);
    });
}
