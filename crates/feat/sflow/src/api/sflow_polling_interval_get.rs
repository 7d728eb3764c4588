//! `sflow_polling_interval_get`: asks for how often counters are polled.

use crate::message_types::{SFLOW, SflowPollingIntervalGet, SflowPollingIntervalGetReply};
use crate::state::SFlow;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SflowPollingIntervalGet, SflowPollingIntervalGetReply> =
    Call::new(&SFLOW, handle);

fn handle(
    c: &mut Control,
    _: SflowPollingIntervalGet,
) -> Result<SflowPollingIntervalGetReply, Retval> {
    let state = c.state::<SFlow>();
    let polling_s = state.borrow().settings().polling_interval;
    Ok(SflowPollingIntervalGetReply { polling_s })
}
