//! `sflow_sampling_rate_get`: asks for the sampling rate.

use crate::message_types::{SFLOW, SflowSamplingRateGet, SflowSamplingRateGetReply};
use crate::state::SFlow;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SflowSamplingRateGet, SflowSamplingRateGetReply> =
    Call::new(&SFLOW, handle);

fn handle(c: &mut Control, _: SflowSamplingRateGet) -> Result<SflowSamplingRateGetReply, Retval> {
    let state = c.state::<SFlow>();
    let sampling_n = state.borrow().settings().sampling_rate;
    Ok(SflowSamplingRateGetReply { sampling_n })
}
