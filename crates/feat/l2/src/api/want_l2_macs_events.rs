//! `want_l2_macs_events`: subscribes to events of MAC addresses that are learned, aged or moved.

use crate::api_module::L2;
use crate::api_types::{L2MacsEvent, want};
use std::num::NonZeroU16;
use thalweg_api::{Call, Caller, Message, Retval};
use thalweg_graph::Control;

/// Subscribes to events, or unsubscribes.
#[derive(Debug, Message)]
#[api(request, autoreply, deprecated)]
pub struct WantL2MacsEvents {
    /// Maximum number of learned addresses of all bridge domains while the client is subscribed.
    #[api(default = 1000)]
    pub learn_limit: u32,
    /// Scan interval in hundredths of a second, as `l2fib_set_scan_delay` sets it; 0 leaves it.
    #[api(default = 10)]
    pub scan_delay: u8,
    /// Maximum number of MAC addresses in an event, in tens.
    #[api(default = 10)]
    pub max_macs_in_event: u8,
    /// True to subscribe, false to unsubscribe.
    #[api(default = "true")]
    pub enable_disable: bool,
    /// Client's process id, repeated in events.
    pub pid: u32,
}

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
