//! `sflow_polling_interval_get`: asks for how often counters are polled.

use crate::api_module::SFLOW;
use crate::state::SFlow;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Asks for how often counters are polled.
#[derive(Debug, Message)]
#[api(request)]
pub struct SflowPollingIntervalGet;

/// Answers [`SflowPollingIntervalGet`].
#[derive(Debug, Default, Message)]
#[api(details, in_progress)]
pub struct SflowPollingIntervalGetReply {
    /// Seconds.
    #[api(name = "polling_S")]
    pub polling_s: u32,
}

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
