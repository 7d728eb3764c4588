//! `get_node_index`: returns a node's index by its name.

use crate::message_types::{GetNodeIndex, GetNodeIndexReply, VLIB};
use thalweg_api::{Call, Retval};
use thalweg_graph::control::Control;

impl Default for GetNodeIndexReply {
    fn default() -> Self {
        Self { node_index: u32::MAX }
    }
}

/// The service.
pub static SERVICE: Call<Control, GetNodeIndex, GetNodeIndexReply> = Call::new(&VLIB, handle);

fn handle(c: &mut Control, request: GetNodeIndex) -> Result<GetNodeIndexReply, Retval> {
    let id = c.node(request.node_name.as_str()).ok_or(Retval::NO_SUCH_NODE)?;
    Ok(GetNodeIndexReply { node_index: u32::from(id.0) })
}
