//! `sflow_sampling_rate_set`: sets the sampling rate.

use crate::message_types::{SFLOW, SflowSamplingRateSet, SflowSamplingRateSetReply};
use crate::state;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SflowSamplingRateSet, SflowSamplingRateSetReply> =
    Call::new(&SFLOW, handle);

fn handle(c: &mut Control, rq: SflowSamplingRateSet) -> Result<SflowSamplingRateSetReply, Retval> {
    state::set_sampling_rate(c, rq.sampling_n);
    Ok(SflowSamplingRateSetReply)
}
