//! `bvi-end-of-arc`: passes frames that a BVI's features have seen on.
//!
//! Reads: rx and tx interface, which are the same for what the router sends. Next: `l2-input` for
//! that, `ethernet-input` for what the bridge domain has for the router.

use crate::trace::addresses;
use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::trace::interface_token;
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::next_nodes! {
    BRIDGE => "l2-input",
    ROUTER => "ethernet-input",
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "bvi-end-of-arc",
    next: NEXT_NODES,
    build: |_| Built::node(BviEndOfArc),
    ..NodeDecl::DEFAULT
};

struct BviEndOfArc;

impl Node for BviEndOfArc {
    const TOUCHES_DATA: bool = false;

    fn packet(&mut self, _: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        if p.tx_if() == p.rx_if() { BRIDGE } else { ROUTER }
    }

    fn trace(&self, _: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let bvi = interface_token(frame.rx_if(i));
        let _ = writeln!(out, "bvi-end-of-arc: {bvi} {}", addresses(frame, i));
    }
}
