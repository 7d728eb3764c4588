//! `sflow_direction_get`: asks for which packets are sampled.

use crate::message_types::{SFLOW, SflowDirectionGet, SflowDirectionGetReply};
use crate::state::SFlow;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SflowDirectionGet, SflowDirectionGetReply> =
    Call::new(&SFLOW, handle);

fn handle(c: &mut Control, _: SflowDirectionGet) -> Result<SflowDirectionGetReply, Retval> {
    let state = c.state::<SFlow>();
    let sampling_d = state.borrow().settings().direction.number();
    Ok(SflowDirectionGetReply { sampling_d })
}
