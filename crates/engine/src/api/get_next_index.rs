//! `get_next_index`: returns the index of a next node among a node's next nodes.

use crate::message_types::{GetNextIndex, GetNextIndexReply, VLIB};
use thalweg_api::{Call, Retval, Text};
use thalweg_graph::control::Control;

impl Default for GetNextIndexReply {
    fn default() -> Self {
        Self { next_index: u32::MAX }
    }
}

/// The service.
pub static SERVICE: Call<Control, GetNextIndex, GetNextIndexReply> = Call::new(&VLIB, handle);

fn handle(c: &mut Control, request: GetNextIndex) -> Result<GetNextIndexReply, Retval> {
    let found = find(c, &request.node_name, &request.next_name)?;
    let next_index = found.ok_or(Retval::NO_SUCH_NODE2)?;
    Ok(GetNextIndexReply { next_index })
}

/// Returns the index of a next node; `None` if the node has no such edge.
///
/// # Errors
/// If the node or the next node does not exist.
pub(super) fn find(c: &Control, node: &Text<64>, next: &Text<64>) -> Result<Option<u32>, Retval> {
    let node = c.node(node.as_str()).ok_or(Retval::NO_SUCH_NODE)?;
    let next = c.node(next.as_str()).ok_or(Retval::NO_SUCH_NODE2)?;
    let nexts = &c.nodes()[usize::from(node.0)].nexts;
    Ok(nexts.iter().position(|id| *id == next).map(|at| at as u32))
}
