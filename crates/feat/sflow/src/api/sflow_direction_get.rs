//! `sflow_direction_get`: asks for which packets are sampled.

use crate::api_module::SFLOW;
use crate::state::SFlow;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Asks for which packets are sampled.
#[derive(Debug, Message)]
#[api(request)]
pub struct SflowDirectionGet;

/// Answers [`SflowDirectionGet`].
#[derive(Debug, Default, Message)]
#[api(details, in_progress)]
pub struct SflowDirectionGetReply {
    /// 1 for those that are received, 2 sent, 3 both.
    #[api(name = "sampling_D")]
    pub sampling_d: u32,
}

/// The service.
pub static SERVICE: Call<Control, SflowDirectionGet, SflowDirectionGetReply> =
    Call::new(&SFLOW, handle);

fn handle(c: &mut Control, _: SflowDirectionGet) -> Result<SflowDirectionGetReply, Retval> {
    let state = c.state::<SFlow>();
    let sampling_d = state.borrow().settings().direction.number();
    Ok(SflowDirectionGetReply { sampling_d })
}
