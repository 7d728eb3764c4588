//! `add_node_next`: adds an edge to the graph.

use super::get_next_index;
use crate::message_types::{AddNodeNext, AddNodeNextReply, VLIB};
use thalweg_api::{Call, Retval};
use thalweg_graph::control::Control;

impl Default for AddNodeNextReply {
    fn default() -> Self {
        Self { next_index: u32::MAX }
    }
}

/// The service.
pub static SERVICE: Call<Control, AddNodeNext, AddNodeNextReply> = Call::new(&VLIB, handle);

fn handle(c: &mut Control, request: AddNodeNext) -> Result<AddNodeNextReply, Retval> {
    let found = get_next_index::find(c, &request.node_name, &request.next_name)?;
    // Nodes declare their edges; a client gets the index of an existing one, and cannot add one
    // that no code would use.
    let next_index =
        found.ok_or_else(|| Retval::UNIMPLEMENTED.because("edges cannot be added at run time"))?;
    Ok(AddNodeNextReply { next_index })
}
