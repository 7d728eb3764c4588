//! `add_node_next`: adds an edge to the graph.

use super::get_next_index;
use crate::api_modules::VLIB;
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::control::Control;

/// Requests an edge of the graph.
#[derive(Debug, Message)]
#[api(request)]
pub struct AddNodeNext {
    /// The node.
    pub node_name: Text<64>,
    /// Its next node.
    pub next_name: Text<64>,
}

/// Replies to [`AddNodeNext`].
#[derive(Debug, Message)]
#[api(reply)]
pub struct AddNodeNextReply {
    /// Index of the next node among the node's next nodes.
    pub next_index: u32,
}

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
