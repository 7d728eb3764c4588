//! `ip4-drop`: drops IPv4 packets.
//!
//! Reads: aux (the drop reason). Next: `error-drop`.

use std::fmt::Write;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{Built, FrameVerdict, Kind, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::next_nodes! { ERROR_DROP => "error-drop" }

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-drop",
    kind: Kind::Drop,
    next: NEXT_NODES,
    build: |_| Built::node(Ip4Drop),
    ..NodeDecl::DEFAULT
};

struct Ip4Drop;

impl Node for Ip4Drop {
    const TOUCHES_DATA: bool = false;

    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        _: &mut NodeCx<'_>,
        _: &mut Frame,
        _: &mut [Verdict],
    ) -> FrameVerdict {
        FrameVerdict::Whole(ERROR_DROP)
    }

    fn packet(&mut self, _cx: &mut NodeCx<'_>, _p: PktMut<'_>) -> Verdict {
        ERROR_DROP
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
