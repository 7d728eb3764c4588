//! `get_node_index`: returns a node's index by its name.

use crate::api_modules::VLIB;
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::control::Control;

/// Requests a node's index.
#[derive(Debug, Message)]
#[api(request)]
pub struct GetNodeIndex {
    /// The node.
    pub node_name: Text<64>,
}

/// Replies to [`GetNodeIndex`].
#[derive(Debug, Message)]
#[api(reply)]
pub struct GetNodeIndexReply {
    /// The index; all ones if there is no such node.
    pub node_index: u32,
}

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
