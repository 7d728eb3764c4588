//! Types of duplicate address detection's messages, and its events.

use crate::dad::{Changed, State};
use crate::nd_proxy::NdProxyError;
use thalweg_api::schema::Module;
use thalweg_api::types::{InterfaceIndex, Ip6Address};
use thalweg_api::{Clients, Message, Retval, Subscribers, api_enum};
use thalweg_cli::CliError;
use thalweg_device::command_line::refused;
use thalweg_graph::Control;

/// The API module of duplicate address detection.
pub static IP6_DAD: Module = Module { name: "ip6_dad", folder: "core", version: "1.0.0" };
/// The API module of neighbour discovery.
pub static IP6_ND: Module = Module { name: "ip6_nd", folder: "core", version: "1.1.0" };

api_enum! {
    /// State of an address.
    pub struct Ip6DadState: u8 = "ip6_dad_state" {
        /// It is not tested.
        IDLE = 0, "IP6_DAD_STATE_IDLE";
        /// It is being tested.
        TENTATIVE = 1, "IP6_DAD_STATE_TENTATIVE";
        /// It is used.
        PREFERRED = 2, "IP6_DAD_STATE_PREFERRED";
        /// Another host has it.
        DUPLICATE = 3, "IP6_DAD_STATE_DUPLICATE";
    }
}

/// Event: an address is in another state, or was asked for once more.
#[derive(Debug, Message)]
#[api(event)]
pub struct Ip6DadEvent {
    /// Process id given in the subscription.
    pub pid: u32,
    /// State.
    pub state: Ip6DadState,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// The address.
    pub address: Ip6Address,
    /// Solicitations sent so far.
    pub dad_count: u8,
    /// Solicitations in all.
    pub dad_transmits: u8,
}

/// Subscribed clients.
#[derive(Default)]
pub(crate) struct Watchers(pub(crate) Subscribers<()>);

pub(crate) fn init(c: &mut Control) {
    c.insert(Watchers::default());
    c.subscribe(|c, change: &Changed| {
        let watchers = c.state::<Watchers>();
        let mut watchers = watchers.borrow_mut();
        if watchers.0.is_empty() {
            return;
        }
        let clients = c.state::<Clients>().borrow().clone();
        let state = match change.state {
            State::Tentative => Ip6DadState::TENTATIVE,
            State::Preferred => Ip6DadState::PREFERRED,
            State::Duplicate => Ip6DadState::DUPLICATE,
        };
        watchers.0.notify(&clients, |pid, ()| {
            Some(Ip6DadEvent {
                pid,
                state,
                sw_if_index: InterfaceIndex(change.sw_if.get()),
                address: Ip6Address(change.ip.octets()),
                dad_count: change.sent.0,
                dad_transmits: change.sent.1,
            })
        });
    });
}

impl From<NdProxyError> for CliError {
    fn from(e: NdProxyError) -> CliError {
        match e {
            NdProxyError::Device(e) => refused(e),
            e => {
                let code = number(&e).0;
                CliError::with_code(e, code)
            }
        }
    }
}

impl From<NdProxyError> for Retval {
    fn from(e: NdProxyError) -> Retval {
        number(&e).because(e)
    }
}

fn number(e: &NdProxyError) -> Retval {
    match e {
        NdProxyError::Unusable(_) => Retval::INVALID_VALUE,
        NdProxyError::Full => Retval::LIMIT_EXCEEDED,
        NdProxyError::Unknown(..) => Retval::NO_SUCH_ENTRY,
        NdProxyError::Device(_) => Retval::INVALID_SW_IF_INDEX,
        NdProxyError::Route(_) => Retval::UNSPECIFIED,
    }
}
