//! `ip4-punt`: IPv4 packets that a feature takes instead of the router's own protocols.
//!
//! Reads: aux (the punt reason). Next: the first feature of the `ip4-punt` arc, or `punt-dispatch`.

use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{ArcId, Built, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::next_nodes! { DISPATCH => "punt-dispatch" }

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-punt",
    next: NEXT_NODES,
    drop: "ip4-drop",
    build: |cx| {
        let arc = cx.control.arc("ip4-punt").unwrap_or(ArcId(u8::MAX));
        Built::node(Ip4Punt { arc })
    },
    ..NodeDecl::DEFAULT
};

struct Ip4Punt {
    arc: ArcId,
}

impl Node for Ip4Punt {
    const TOUCHES_DATA: bool = false;

    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        cx.arcs().first(self.arc, p.rx_if()).map_or(DISPATCH, Verdict::node)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
