//! `sflow_sampling_rate_set`: sets the sampling rate.

use crate::api_module::SFLOW;
use crate::state;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Sets the sampling rate.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SflowSamplingRateSet {
    /// Sampling rate N, for one packet in N; 0 disables sampling.
    #[api(name = "sampling_N", default = 10000)]
    pub sampling_n: u32,
}

/// The service.
pub static SERVICE: Call<Control, SflowSamplingRateSet, SflowSamplingRateSetReply> =
    Call::new(&SFLOW, handle);

fn handle(c: &mut Control, rq: SflowSamplingRateSet) -> Result<SflowSamplingRateSetReply, Retval> {
    state::set_sampling_rate(c, rq.sampling_n);
    Ok(SflowSamplingRateSetReply)
}
