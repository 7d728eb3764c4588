//! `get_node_graph`: the graph as a pointer into memory that a client over a socket has not.

use crate::api_modules::VLIB;
use crate::control::Control;
use thalweg_api::{Call, Message, Retval};

/// Asks for the graph.
#[derive(Debug, Message)]
#[api(request)]
pub struct GetNodeGraph;

/// Answers [`GetNodeGraph`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct GetNodeGraphReply {
    /// Where it is in shared memory.
    pub reply_in_shmem: u64,
}

/// The service.
pub static SERVICE: Call<Control, GetNodeGraph, GetNodeGraphReply> = Call::new(&VLIB, handle);

fn handle(_: &mut Control, _: GetNodeGraph) -> Result<GetNodeGraphReply, Retval> {
    Err(Retval::UNIMPLEMENTED.because("`graph_node_get' tells nodes and edges over a socket"))
}
