//! `get_node_graph`: the graph as a pointer into shared memory, which a client on a socket does not
//! have.

use crate::message_types::{GetNodeGraph, GetNodeGraphReply, VLIB};
use thalweg_api::{Call, Retval};
use thalweg_graph::control::Control;

/// The service.
pub static SERVICE: Call<Control, GetNodeGraph, GetNodeGraphReply> = Call::new(&VLIB, handle);

fn handle(_: &mut Control, _: GetNodeGraph) -> Result<GetNodeGraphReply, Retval> {
    Err(Retval::UNIMPLEMENTED.because("use `graph_node_get' over a socket"))
}
