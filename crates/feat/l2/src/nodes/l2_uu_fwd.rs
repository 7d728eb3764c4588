//! `l2-uu-fwd`: sends unknown unicast frames of a bridge domain to the port that gets all of them.
//!
//! Reads: rx interface. Writes: tx interface, for sub-interfaces. Next: the port's output node.

use crate::L2Table;
use crate::trace::addresses;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, LOCAL_IF, PktMut};
use thalweg_graph::trace::interface_token;
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::errors! {
    SAME_PORT: Error, PORT_LOOPBACK_FILTER, "reflection drop";
    SAME_GROUP: Error, SPLIT_HORIZON, "split horizon";
    GONE: Error, PORT_LIST_IS_EMPTY, "no port for unknown unicast";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "l2-uu-fwd",
    errors: ERRORS,
    build: |cx| Built::node(UnknownForward { table: cx.shared() }),
    ..NodeDecl::DEFAULT
};

struct UnknownForward {
    table: Arc<Snapshot<L2Table>>,
}

impl Node for UnknownForward {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let table = self.table.load(cx.guard());
        let from = table.port(p.rx_if());
        let to = table.bridge(from.bridge).unknown;
        if to == Some(p.rx_if()) {
            return Verdict::drop(SAME_PORT);
        }
        let port = to.map(|sw_if| table.port(sw_if)).unwrap_or_default();
        let Some(output) = port.output else { return Verdict::drop(GONE) };
        if from.group != 0 && from.group == port.group {
            return Verdict::drop(SAME_GROUP);
        }
        if port.sender != LOCAL_IF {
            p.set_tx_if(port.sender);
        }
        Verdict::node(output)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let rx = interface_token(frame.rx_if(i));
        let _ = writeln!(out, "l2-uu-fwd: {rx} {}", addresses(frame, i));
    }
}
