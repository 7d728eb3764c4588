//! `graph_node_get`: lists nodes and the edges between them.

use crate::message_types::{GRAPH, GraphNodeDetails, GraphNodeGet, GraphNodeGetReply, NodeFlag};
use thalweg_api::{Details, Retval, Stream};
use thalweg_graph::control::{Control, NodeEntry};
use thalweg_graph::decl::Kind;

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
