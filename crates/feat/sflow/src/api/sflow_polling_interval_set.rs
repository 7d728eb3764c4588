//! `sflow_polling_interval_set`: sets how often counters are polled.

use crate::message_types::{SFLOW, SflowPollingIntervalSet, SflowPollingIntervalSetReply};
use crate::state;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SflowPollingIntervalSet, SflowPollingIntervalSetReply> =
    Call::new(&SFLOW, handle);

fn handle(
    c: &mut Control,
    rq: SflowPollingIntervalSet,
) -> Result<SflowPollingIntervalSetReply, Retval> {
    state::set_polling_interval(c, rq.polling_s)?;
    Ok(SflowPollingIntervalSetReply)
}
