//! `drop-ttl`: drops packets whose TTL is 13.
//!
//! Reads: the IPv4 header. Next: the next feature of the `ip4-unicast` arc.

use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::errors! {
    UNLUCKY: Error, UNKNOWN, "unlucky ttl";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "drop-ttl",
    errors: ERRORS,
    drop: "ip4-drop",
    feature: Some(FeatureDecl::on("ip4-unicast")),
    build: |_| Built::node(DropTtl),
    ..NodeDecl::DEFAULT
};

struct DropTtl;

impl Node for DropTtl {
    fn packet(&mut self, _cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        match p.data().get(8) {
            Some(13) => Verdict::drop(UNLUCKY),
            _ => Verdict::CONTINUE,
        }
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
