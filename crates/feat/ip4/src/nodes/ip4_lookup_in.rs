//! `ip4-lookup-in`: as `ip4-lookup`, in a table selected by a feature.
//!
//! Reads: aux (the table id). Writes: aux (the forwarding object). Next: by the object's kind.

use super::ip4_lookup::{LOOKUP_ERRORS, Lookup, NEXT_NODES};
use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_fib::TableId;
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-lookup-in",
    next: NEXT_NODES,
    errors: LOOKUP_ERRORS,
    drop: "ip4-drop",
    build: |cx| Built::node(Ip4LookupIn(Lookup::new(cx))),
    ..NodeDecl::DEFAULT
};

struct Ip4LookupIn(Lookup);

impl Node for Ip4LookupIn {
    fn begin(&mut self, _: &mut NodeCx<'_>, _: &Frame) {
        self.0.begin_counting();
    }

    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let dpo = self.0.leaf_in(cx, &p, TableId(p.aux()));
        self.0.follow(cx, p, dpo)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = writeln!(out, "dpo-idx {}", frame.aux()[usize::from(i)]);
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
