//! `want_l2_arp_term_events`: subscribes to events of hosts that ask for others.

use crate::api_types::want_arp;
use crate::message_types::{L2, L2ArpTermEvent, WantL2ArpTermEvents, WantL2ArpTermEventsReply};
use thalweg_api::{Call, Caller, Message, Retval};
use thalweg_graph::Control;

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
