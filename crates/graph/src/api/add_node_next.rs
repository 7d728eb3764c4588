//! `add_node_next`: makes one node lead to another.

use super::get_next_index;
use crate::api_modules::VLIB;
use crate::control::Control;
use thalweg_api::{Call, Message, Retval, Text};

/// Asks for an edge of the graph.
#[derive(Debug, Message)]
#[api(request)]
pub struct AddNodeNext {
    /// The node.
    pub node_name: Text<64>,
    /// Its next node.
    pub next_name: Text<64>,
}

/// Answers [`AddNodeNext`].
#[derive(Debug, Message)]
#[api(reply)]
pub struct AddNodeNextReply {
    /// By which number the node calls the next.
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
    // Nodes declare their edges; a client finds those, and cannot add one that no code would use.
    let next_index = found
        .ok_or_else(|| Retval::UNIMPLEMENTED.because("the graph's edges are those of its nodes"))?;
    Ok(AddNodeNextReply { next_index })
}
