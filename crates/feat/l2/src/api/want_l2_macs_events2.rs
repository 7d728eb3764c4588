//! `want_l2_macs_events2`: subscribes to events of MAC addresses that are learned, aged or moved.

use crate::api_types::want;
use crate::message_types::{L2, WantL2MacsEvents2, WantL2MacsEvents2Reply};
use thalweg_api::{Call, Caller, Retval};
use thalweg_graph::Control;

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
