//! `ip6-punt`: IPv6 packets that a feature takes instead of the router's own protocols.
//!
//! Reads: aux (the punt reason). Next: the first feature of the `ip6-punt` arc, or `punt-dispatch`.

use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{ArcId, Built, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::next_nodes! { DISPATCH => "punt-dispatch" }

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-punt",
    next: NEXT_NODES,
    drop: "ip6-drop",
    build: |cx| {
        let arc = cx.control.arc("ip6-punt").unwrap_or(ArcId(u8::MAX));
        Built::node(Ip6Punt { arc })
    },
    ..NodeDecl::DEFAULT
};

struct Ip6Punt {
    arc: ArcId,
}

impl Node for Ip6Punt {
    const TOUCHES_DATA: bool = false;

    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        cx.arcs().first(self.arc, p.rx_if()).map_or(DISPATCH, Verdict::node)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }
}
