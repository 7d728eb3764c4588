//! `ip4-lookup-tunneled`: as `ip4-lookup-in`, for packets that a tunnel has brought into a table.
//! Packets that an ICMP error answers count as received by an interface of that table: the error
//! has its address, and finds its way back.
//!
//! Reads: aux (the table id). Writes: aux (the forwarding object), rx interface. Next: by the
//! object's kind.

use super::ip4_lookup::{Ip4Lookup, LOOKUP_ERRORS, Lookup, NEXT_NODES};
use std::fmt::Write;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Frame, PktMut};
use thalweg_fib::TableId;
use thalweg_graph::{Built, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-lookup-tunneled",
    next: NEXT_NODES,
    errors: LOOKUP_ERRORS,
    drop: "ip4-drop",
    build: |cx| Built::node(Ip4LookupTunneled(Ip4Lookup::new(cx))),
    ..NodeDecl::DEFAULT
};

struct Ip4LookupTunneled(Ip4Lookup);

impl Node for Ip4LookupTunneled {
    fn begin(&mut self, _: &mut NodeCx<'_>, _: &Frame) {
        self.0.lookup.begin_counting();
    }

    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let table = TableId(p.aux());
        let dpo = self.0.lookup.leaf_in(cx, &p, table);
        self.0.lookup.follow_tunneled(cx, p, dpo, table)
    }

    /// Fast path for packets of one table that are sent.
    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        cx: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        match self.0.follow_tunneled_all::<V>(cx, frame) {
            Some(rest) => Lookup::sent(frame, each, rest),
            None => FrameVerdict::PerPacket,
        }
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = writeln!(out, "dpo-idx {}", frame.aux()[usize::from(i)]);
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
