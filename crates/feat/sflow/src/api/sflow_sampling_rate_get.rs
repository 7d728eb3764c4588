//! `sflow_sampling_rate_get`: asks for the sampling rate.

use crate::api_module::SFLOW;
use crate::state::SFlow;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Asks for the sampling rate.
#[derive(Debug, Message)]
#[api(request)]
pub struct SflowSamplingRateGet;

/// Answers [`SflowSamplingRateGet`].
#[derive(Debug, Default, Message)]
#[api(details, in_progress)]
pub struct SflowSamplingRateGetReply {
    /// Sampling rate N, for one packet in N; 0 disables sampling.
    #[api(name = "sampling_N")]
    pub sampling_n: u32,
}

/// The service.
pub static SERVICE: Call<Control, SflowSamplingRateGet, SflowSamplingRateGetReply> =
    Call::new(&SFLOW, handle);

fn handle(c: &mut Control, _: SflowSamplingRateGet) -> Result<SflowSamplingRateGetReply, Retval> {
    let state = c.state::<SFlow>();
    let sampling_n = state.borrow().settings().sampling_rate;
    Ok(SflowSamplingRateGetReply { sampling_n })
}
