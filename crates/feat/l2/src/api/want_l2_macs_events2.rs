//! `want_l2_macs_events2`: subscribes to events of MAC addresses that are learned, aged or moved.

use crate::api_module::L2;
use crate::api_types::want;
use thalweg_api::{Call, Caller, Message, Retval};
use thalweg_graph::Control;

/// Subscribes to events, or unsubscribes.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct WantL2MacsEvents2 {
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
pub static SERVICE: Call<Control, WantL2MacsEvents2, WantL2MacsEvents2Reply> =
    Call::known(&L2, handle);

fn handle(
    c: &mut Control,
    caller: &Caller,
    rq: WantL2MacsEvents2,
) -> Result<WantL2MacsEvents2Reply, Retval> {
    want(c, caller, rq.enable_disable, rq.pid, rq.max_macs_in_event, None)?;
    Ok(WantL2MacsEvents2Reply)
}
