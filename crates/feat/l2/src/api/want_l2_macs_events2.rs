//! `want_l2_macs_events2`: tells a client of stations that are learned, forgotten or moved.

use crate::api_module::L2;
use crate::api_types::want;
use thalweg_api::{Call, Caller, Message, Retval};
use thalweg_graph::Control;

/// Asks to be told, or no longer.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct WantL2MacsEvents2 {
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
pub static SERVICE: Call<Control, WantL2MacsEvents2, WantL2MacsEvents2Reply> =
    Call::known(&L2, handle);

fn handle(
    c: &mut Control,
    caller: &Caller,
    rq: WantL2MacsEvents2,
) -> Result<WantL2MacsEvents2Reply, Retval> {
    want(c, caller, rq.enable_disable, rq.pid, rq.max_macs_in_event)?;
    Ok(WantL2MacsEvents2Reply)
}
