//! Events of duplicate address detection, and errors of messages.

use crate::dad::{Changed, State};
use crate::message_types::{Ip6DadEvent, Ip6DadState};
use crate::nd_proxy::NdProxyError;
use thalweg_api::types::{InterfaceIndex, Ip6Address};
use thalweg_api::{Clients, Retval, Subscribers};
use thalweg_cli::CliError;
use thalweg_device::command_line::refused;
use thalweg_graph::Control;

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
