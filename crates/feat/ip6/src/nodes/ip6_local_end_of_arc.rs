//! `ip6-local-end-of-arc`: packets to the router itself that have passed the features of the
//! `ip6-local` arc.
//!
//! Reads: rx interface. Next: as `ip6-local` without features.

use super::ip6_local::{DEMUX_ERRORS, DEMUX_NODES, Demux};
use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-local-end-of-arc",
    next: DEMUX_NODES,
    errors: DEMUX_ERRORS,
    drop: "ip6-drop",
    build: |cx| Built::node(EndOfArc(Demux::new(cx))),
    ..NodeDecl::DEFAULT
};

struct EndOfArc(Demux);

impl Node for EndOfArc {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        self.0.packet(cx, p)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }
}
