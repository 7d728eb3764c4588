//! `lookup-ip4-dst-itf`: checks IPv4 packets whose last label was popped, and has them looked up
//! in the table of the interface that they came by.
//!
//! Reads: rx interface. Next: `ip4-lookup`.

use crate::disposition;
use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::next_nodes! { LOOKUP => "ip4-lookup" }
disposition::reasons!();

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "lookup-ip4-dst-itf",
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

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
