//! `ip4-local-end-of-arc`: packets to the router itself that have passed the features of the
//! `ip4-local` arc.
//!
//! Reads: rx interface. Next: as `ip4-local` without features.

use super::ip4_local::{DEMUX_ERRORS, DEMUX_NODES, Demux};
use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-local-end-of-arc",
    next: DEMUX_NODES,
    errors: DEMUX_ERRORS,
    drop: "ip4-drop",
    build: |cx| Built::node(EndOfArc(Demux::new(cx))),
    ..NodeDecl::DEFAULT
};

struct EndOfArc(Demux);

impl Node for EndOfArc {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        self.0.packet(cx, p)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
