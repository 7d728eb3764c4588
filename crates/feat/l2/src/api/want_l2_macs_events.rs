//! `want_l2_macs_events`: subscribes to events of MAC addresses that are learned, aged or moved.

use crate::api_types::want;
use crate::message_types::{L2, L2MacsEvent, WantL2MacsEvents, WantL2MacsEventsReply};
use std::num::NonZeroU16;
use thalweg_api::{Call, Caller, Message, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, WantL2MacsEvents, WantL2MacsEventsReply> =
    Call::known(&L2, handle).with_events(&[L2MacsEvent::DEF]);

fn handle(
    c: &mut Control,
    caller: &Caller,
    rq: WantL2MacsEvents,
) -> Result<WantL2MacsEventsReply, Retval> {
    want(c, caller, rq.enable_disable, rq.pid, rq.max_macs_in_event, Some(rq.learn_limit))?;
    if let Some(delay) = NonZeroU16::new(rq.scan_delay.into()).filter(|_| rq.enable_disable) {
        crate::set_scan_delay(c, delay);
    }
    Ok(WantL2MacsEventsReply)
}
