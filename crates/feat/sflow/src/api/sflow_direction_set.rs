//! `sflow_direction_set`: sets which packets are sampled.

use crate::api_module::SFLOW;
use crate::state::{self, Direction};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Sets which packets are sampled.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SflowDirectionSet {
    /// 1 for those that are received, 2 sent, 3 both.
    #[api(name = "sampling_D")]
    pub sampling_d: u32,
}

/// The service.
pub static SERVICE: Call<Control, SflowDirectionSet, SflowDirectionSetReply> =
    Call::new(&SFLOW, handle);

fn handle(c: &mut Control, rq: SflowDirectionSet) -> Result<SflowDirectionSetReply, Retval> {
    state::set_direction(c, Direction::from_number(rq.sampling_d)?)?;
    Ok(SflowDirectionSetReply)
}
