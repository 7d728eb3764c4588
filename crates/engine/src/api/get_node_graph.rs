//! `get_node_graph`: the graph as a pointer into shared memory, which a client on a socket does not
//! have.

use crate::api_modules::VLIB;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::control::Control;

/// Requests the graph.
#[derive(Debug, Message)]
#[api(request)]
pub struct GetNodeGraph;

/// Replies to [`GetNodeGraph`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct GetNodeGraphReply {
    /// Address of the graph in shared memory.
    pub reply_in_shmem: u64,
}

/// The service.
pub static SERVICE: Call<Control, GetNodeGraph, GetNodeGraphReply> = Call::new(&VLIB, handle);

fn handle(_: &mut Control, _: GetNodeGraph) -> Result<GetNodeGraphReply, Retval> {
    Err(Retval::UNIMPLEMENTED.because("use `graph_node_get' over a socket"))
}
