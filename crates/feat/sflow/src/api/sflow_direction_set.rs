//! `sflow_direction_set`: sets which packets are sampled.

use crate::message_types::{SFLOW, SflowDirectionSet, SflowDirectionSetReply};
use crate::state::{self, Direction};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SflowDirectionSet, SflowDirectionSetReply> =
    Call::new(&SFLOW, handle);

fn handle(c: &mut Control, rq: SflowDirectionSet) -> Result<SflowDirectionSetReply, Retval> {
    state::set_direction(c, Direction::from_number(rq.sampling_d)?)?;
    Ok(SflowDirectionSetReply)
}
