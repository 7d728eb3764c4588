//! `graph_node_get`: lists nodes and the edges between them.

use crate::api_modules::GRAPH;
use thalweg_api::{Details, Message, Retval, Stream, Text, api_enum};
use thalweg_graph::control::{Control, NodeEntry};
use thalweg_graph::decl::Kind;

api_enum! {
    /// Properties of a node.
    pub struct NodeFlag: u32 = "node_flag" {
        /// Its frames are kept after dispatch.
        FRAME_NO_FREE_AFTER_DISPATCH = 1, "NODE_FLAG_FRAME_NO_FREE_AFTER_DISPATCH";
        /// The node transmits packets.
        IS_OUTPUT = 2, "NODE_FLAG_IS_OUTPUT";
        /// The node drops packets.
        IS_DROP = 4, "NODE_FLAG_IS_DROP";
        /// The node punts packets to the control plane.
        IS_PUNT = 8, "NODE_FLAG_IS_PUNT";
        /// The node hands packets to other threads.
        IS_HANDOFF = 16, "NODE_FLAG_IS_HANDOFF";
        /// The node is tracing packets.
        TRACE = 32, "NODE_FLAG_TRACE";
        /// The node is switching to polling.
        TO_POLLING = 64, "NODE_FLAG_SWITCH_FROM_INTERRUPT_TO_POLLING_MODE";
        /// The node is switching to interrupt mode.
        TO_INTERRUPT = 128, "NODE_FLAG_SWITCH_FROM_POLLING_TO_INTERRUPT_MODE";
        /// The node can start traces.
        TRACE_SUPPORTED = 256, "NODE_FLAG_TRACE_SUPPORTED";
    }
}

/// Requests nodes.
#[derive(Debug, Message)]
#[api(
    request,
    vat_help = "graph_node_dump [start <cursor>] [node_index <index>]|[node_name <name>]|[flags]"
)]
pub struct GraphNodeGet {
    /// Index to continue from; all ones starts at the beginning.
    pub cursor: u32,
    /// Requests the node of this index, unless it is all ones or a name is given.
    pub index: u32,
    /// Requests the node of this name, if not empty.
    pub name: Text<64>,
    /// Requests nodes that have all of these flags.
    pub flags: NodeFlag,
    /// True to include edges.
    pub want_arcs: bool,
}

/// Replies to [`GraphNodeGet`] after the details.
#[derive(Debug, Message)]
#[api(reply)]
pub struct GraphNodeGetReply {
    /// Index to continue from; all ones at the end.
    pub cursor: u32,
}

/// A node.
#[derive(Debug, Message)]
#[api(details)]
pub struct GraphNodeDetails {
    /// Index of the node.
    pub index: u32,
    /// Its name.
    pub name: Text<64>,
    /// Its flags.
    pub flags: NodeFlag,
    /// Indices of its next nodes.
    #[api(count = "n_arcs: u32")]
    pub arcs_out: Vec<u32>,
}

/// The service.
pub static SERVICE: Stream<Control, GraphNodeGet, GraphNodeDetails, GraphNodeGetReply> =
    Stream::new(&GRAPH, handle);

fn handle(
    c: &mut Control,
    rq: GraphNodeGet,
    out: &mut Details<GraphNodeDetails>,
) -> (i32, GraphNodeGetReply) {
    let end = GraphNodeGetReply { cursor: u32::MAX };
    let one = match (rq.name.as_str(), rq.index) {
        ("", u32::MAX) => None,
        ("", index) => Some(usize::try_from(index).ok().filter(|i| *i < c.nodes().len())),
        (name, _) => Some(c.node(name).map(|id| usize::from(id.0))),
    };
    if let Some(found) = one {
        let Some(index) = found else { return (Retval::NO_SUCH_ENTRY.0, end) };
        out.send(&details(index, &c.nodes()[index], rq.want_arcs));
        return (0, end);
    }
    let from = if rq.cursor == u32::MAX { 0 } else { rq.cursor as usize };
    for (index, node) in c.nodes().iter().enumerate().skip(from) {
        if !flags(node).has(rq.flags) {
            continue;
        }
        if out.is_full() {
            return (Retval::EAGAIN.0, GraphNodeGetReply { cursor: index as u32 });
        }
        out.send(&details(index, node, rq.want_arcs));
    }
    (0, end)
}

fn flags(node: &NodeEntry) -> NodeFlag {
    let kind = match node.kind {
        Kind::Tx => NodeFlag::IS_OUTPUT,
        Kind::Drop => NodeFlag::IS_DROP,
        Kind::Input => NodeFlag::TRACE_SUPPORTED,
        Kind::Internal | Kind::Tap | Kind::Timer => NodeFlag(0),
    };
    let hands_off = if node.name.ends_with("-handoff") { NodeFlag::IS_HANDOFF.0 } else { 0 };
    NodeFlag(kind.0 | hands_off)
}

fn details(index: usize, node: &NodeEntry, want_arcs: bool) -> GraphNodeDetails {
    let arcs_out = match want_arcs {
        true => node.nexts.iter().map(|next| u32::from(next.0)).collect(),
        false => Vec::new(),
    };
    let name = (&*node.name).into();
    GraphNodeDetails { index: index as u32, name, flags: flags(node), arcs_out }
}
