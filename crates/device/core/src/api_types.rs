//! Helpers shared by the interface API messages.

use crate::message_types::{RxMode, SwInterfaceEvent};
use crate::{DeviceError, InterfaceEvent, InterfaceView, Interfaces, SwIfIndex, interface};
use thalweg_api::types::{IfStatusFlags, InterfaceIndex, MacAddr};
use thalweg_api::{Clients, Retval, Subscribers};
use thalweg_engine::setting::Refused;
use thalweg_graph::{Control, RxMode as Mode};

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
            | InterfaceEvent::Promiscuous(_)
            | InterfaceEvent::Twin(_) => return,
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
