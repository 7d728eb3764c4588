//! `bvi-output`: passes frames that the router sends by a BVI to its bridge domain, as received
//! from that port.
//!
//! Reads: tx interface, the BVI. Writes: rx interface. Next: `l2-input`.

use crate::trace::addresses;
use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::trace::interface_token;
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::next_nodes! { L2_INPUT => "l2-input" }

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "bvi-output",
    next: NEXT_NODES,
    build: |_| Built::node(BviOutput),
    ..NodeDecl::DEFAULT
};

struct BviOutput;

impl Node for BviOutput {
    fn packet(&mut self, _cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        p.set_rx_if(p.tx_if());
        L2_INPUT
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let bvi = interface_token(frame.tx_if(i));
        let _ = writeln!(out, "bvi-output: {bvi} {}", addresses(frame, i));
    }
}
