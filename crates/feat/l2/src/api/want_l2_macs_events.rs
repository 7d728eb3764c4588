//! `want_l2_macs_events`: tells a client of stations that are learned, forgotten or moved.

use crate::api_module::L2;
use crate::api_types::{L2MacsEvent, want};
use thalweg_api::{Call, Caller, Message, Retval};
use thalweg_graph::Control;

/// Asks to be told, or no longer.
#[derive(Debug, Message)]
#[api(request, autoreply, deprecated)]
pub struct WantL2MacsEvents {
    /// The most that may be learned; that of bridge domains stays as it is.
    #[api(default = 1000)]
    pub learn_limit: u32,
    /// How often it is looked, in hundredths of a second; that stays as `l2fib_set_scan_delay` says.
    #[api(default = 10)]
    pub scan_delay: u8,
    /// How many tens of stations an event may hold.
    #[api(default = 10)]
    pub max_macs_in_event: u8,
    /// Whether to be told.
    #[api(default = "true")]
    pub enable_disable: bool,
    /// The client's process; events repeat it.
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
    want(c, caller, rq.enable_disable, rq.pid, rq.max_macs_in_event)?;
    Ok(WantL2MacsEventsReply)
}
