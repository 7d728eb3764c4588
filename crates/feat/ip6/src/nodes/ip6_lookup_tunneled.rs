//! `ip6-lookup-tunneled`: as `ip6-lookup`, for packets that a tunnel has brought into a table. A
//! packet answered by an ICMP error is treated as received by an interface of that table: the error
//! has its address, and finds its way back.
//!
//! Reads: aux (the table id). Writes: aux (the forwarding object), rx interface. Next: by the
//! object's kind.

use super::ip6_lookup::{LOOKUP_ERRORS, Lookup, NEXT_NODES};
use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_fib::TableId;
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-lookup-tunneled",
    next: NEXT_NODES,
    errors: LOOKUP_ERRORS,
    drop: "ip6-drop",
    build: |cx| Built::node(Ip6LookupTunneled(Lookup::new(cx))),
    ..NodeDecl::DEFAULT
};

struct Ip6LookupTunneled(Lookup);

impl Node for Ip6LookupTunneled {
    fn begin(&mut self, _: &mut NodeCx<'_>, _: &Frame) {
        self.0.begin_counting();
    }

    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let table = TableId(p.aux());
        let dpo = self.0.leaf_in(cx, &p, table);
        self.0.follow_tunneled(cx, p, dpo, table)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = writeln!(out, "dpo-idx {}", frame.aux()[usize::from(i)]);
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }
}
