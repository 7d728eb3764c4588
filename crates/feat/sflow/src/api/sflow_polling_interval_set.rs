//! `sflow_polling_interval_set`: sets how often counters are polled.

use crate::api_module::SFLOW;
use crate::state;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Sets how often counters are polled.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SflowPollingIntervalSet {
    /// Seconds.
    #[api(name = "polling_S", default = 20)]
    pub polling_s: u32,
}

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
