//! `graph_node_get`: nodes and the edges between them.

use crate::api_modules::GRAPH;
use crate::control::{Control, NodeEntry};
use crate::decl::Kind;
use thalweg_api::{Details, Message, Retval, Stream, Text, api_enum};

api_enum! {
    /// What a node is and does.
    pub struct NodeFlag: u32 = "node_flag" {
        /// Frames stay after it ran.
        FRAME_NO_FREE_AFTER_DISPATCH = 1, "NODE_FLAG_FRAME_NO_FREE_AFTER_DISPATCH";
        /// Hands packets to a device.
        IS_OUTPUT = 2, "NODE_FLAG_IS_OUTPUT";
        /// Ends packets.
        IS_DROP = 4, "NODE_FLAG_IS_DROP";
        /// Hands packets to the control plane.
        IS_PUNT = 8, "NODE_FLAG_IS_PUNT";
        /// Hands packets to other threads.
        IS_HANDOFF = 16, "NODE_FLAG_IS_HANDOFF";
        /// Traces packets now.
        TRACE = 32, "NODE_FLAG_TRACE";
        /// Changes to polling.
        TO_POLLING = 64, "NODE_FLAG_SWITCH_FROM_INTERRUPT_TO_POLLING_MODE";
        /// Changes to waiting.
        TO_INTERRUPT = 128, "NODE_FLAG_SWITCH_FROM_POLLING_TO_INTERRUPT_MODE";
        /// Can begin traces.
        TRACE_SUPPORTED = 256, "NODE_FLAG_TRACE_SUPPORTED";
    }
}

/// Asks for nodes.
#[derive(Debug, Message)]
#[api(
    request,
    vat_help = "graph_node_dump [start <cursor>] [node_index <index>]|[node_name <name>]|[flags]"
)]
pub struct GraphNodeGet {
    /// Where to go on; all ones is the beginning.
    pub cursor: u32,
    /// The node of this number, unless it is all ones or there is a name.
    pub index: u32,
    /// The node of this name, if there is one.
    pub name: Text<64>,
    /// Nodes that have all of these.
    pub flags: NodeFlag,
    /// Edges, too.
    pub want_arcs: bool,
}

/// Answers [`GraphNodeGet`] behind the nodes.
#[derive(Debug, Message)]
#[api(reply)]
pub struct GraphNodeGetReply {
    /// Where to go on; all ones at the end.
    pub cursor: u32,
}

/// A node.
#[derive(Debug, Message)]
#[api(details)]
pub struct GraphNodeDetails {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: Text<64>,
    /// What it is.
    pub flags: NodeFlag,
    /// Its next nodes.
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
        Kind::Internal | Kind::Tap => NodeFlag(0),
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
