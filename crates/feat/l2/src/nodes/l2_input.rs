//! `l2-input`: passes frames of layer 2 interfaces to their cross connect or bridge domain.
//!
//! Reads: rx interface. Next: the peer's output node, `l2-learn`, `l2-fwd`, or the node of the
//! port's flow rules.

use crate::L2Table;
use crate::trace::addresses;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Frame, Iface, PktMut};
use thalweg_graph::trace::interface_token;
use thalweg_graph::{Built, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::errors! {
    NO_PEER: Error, 267, "no cross connect";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "l2-input",
    errors: ERRORS,
    build: |cx| Built::node(L2Input { table: cx.shared() }),
    ..NodeDecl::DEFAULT
};

struct L2Input {
    table: Arc<Snapshot<L2Table>>,
}

impl L2Input {
    #[inline]
    fn verdict(&self, cx: &NodeCx<'_>, rx_if: u32) -> Verdict {
        match self.table.load(cx.guard()).port(rx_if).next {
            Some(node) => Verdict::node(node),
            None => Verdict::drop(NO_PEER),
        }
    }
}

impl Node for L2Input {
    const TOUCHES_DATA: bool = false;

    /// A frame with one rx interface has one verdict.
    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        cx: &mut NodeCx<'_>,
        frame: &mut Frame,
        _each: &mut [Verdict],
    ) -> FrameVerdict {
        match frame.rx() {
            Iface::Uniform(rx_if) => FrameVerdict::Whole(self.verdict(cx, rx_if)),
            Iface::Mixed => {
                // Ports of one bridge domain have the same next node.
                let mut all = frame.rx_runs().map(|(rx_if, _)| self.verdict(cx, rx_if));
                match all.next() {
                    Some(first) if all.all(|v| v == first) => FrameVerdict::Whole(first),
                    _ => FrameVerdict::PerPacket,
                }
            }
        }
    }

    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        self.verdict(cx, p.rx_if())
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let rx = interface_token(frame.rx_if(i));
        let _ = writeln!(out, "l2-input: {rx} {}", addresses(frame, i));
    }
}
