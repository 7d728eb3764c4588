//! `want_l2_arp_term_events`: subscribes to events of hosts that ask for others.

use crate::api_module::L2;
use crate::api_types::{L2ArpTermEvent, want_arp};
use thalweg_api::{Call, Caller, Message, Retval};
use thalweg_graph::Control;

/// Subscribes to events, or unsubscribes.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct WantL2ArpTermEvents {
    /// True to subscribe, false to unsubscribe.
    pub enable: bool,
    /// Client's process id, repeated in events.
    pub pid: u32,
}

/// The service.
pub static SERVICE: Call<Control, WantL2ArpTermEvents, WantL2ArpTermEventsReply> =
    Call::known(&L2, handle).with_events(&[L2ArpTermEvent::DEF]);

fn handle(
    c: &mut Control,
    caller: &Caller,
    rq: WantL2ArpTermEvents,
) -> Result<WantL2ArpTermEventsReply, Retval> {
    want_arp(c, caller, rq.enable, rq.pid)?;
    Ok(WantL2ArpTermEventsReply)
}
