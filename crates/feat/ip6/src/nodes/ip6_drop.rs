//! `ip6-drop`: drops IPv6 packets.
//!
//! Reads: aux (the drop reason). Next: the first feature of the `ip6-drop` arc, or `error-drop`.

use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{ArcId, Built, Kind, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::next_nodes! { ERROR_DROP => "error-drop" }

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-drop",
    kind: Kind::Drop,
    next: NEXT_NODES,
    build: |cx| {
        let arc = cx.control.arc("ip6-drop").unwrap_or(ArcId(u8::MAX));
        Built::node(Ip6Drop { arc, used: false })
    },
    ..NodeDecl::DEFAULT
};

struct Ip6Drop {
    /// The arc `ip6-drop`.
    arc: ArcId,
    /// Whether any interface has features on it.
    used: bool,
}

impl Node for Ip6Drop {
    const TOUCHES_DATA: bool = false;

    #[inline]
    fn begin(&mut self, cx: &mut NodeCx<'_>, _: &Frame) {
        self.used = cx.arcs().is_used(self.arc);
    }

    #[inline]
    fn whole(&self) -> Option<Verdict> {
        (!self.used).then_some(ERROR_DROP)
    }

    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        cx.arcs().first(self.arc, p.rx_if()).map_or(ERROR_DROP, Verdict::node)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }
}
