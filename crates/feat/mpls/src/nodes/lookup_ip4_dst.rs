//! `lookup-ip4-dst`: checks IPv4 packets whose last label was popped, and has them looked up
//! in the table that the label names.
//!
//! Reads: aux (the table). Next: `ip4-lookup-in`.

use crate::disposition;
use std::fmt::Write;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{Built, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::next_nodes! { LOOKUP => "ip4-lookup-in" }
disposition::reasons!();

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "lookup-ip4-dst",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    build: |_| Built::node(LookUp),
    ..NodeDecl::DEFAULT
};

struct LookUp;

impl Node for LookUp {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        match disposition::check(cx, &mut p, REASONS) {
            Ok(()) => LOOKUP,
            Err(reason) => Verdict::drop(reason),
        }
    }

    /// Fast path for sound packets in one segment.
    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        _: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        match disposition::check_all::<V>(frame) {
            Some(rest) => disposition::verdict(frame, each, rest, LOOKUP),
            None => FrameVerdict::PerPacket,
        }
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
