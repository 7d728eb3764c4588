//! `linux-cp-mcast-ip4`: IPv4 packets to groups of the link (224.0.0.0/24, RFC 5771 section 4) are
//! for the router: packets that it does not handle go to the twin of the interface.
//!
//! Next: `ip4-local`, or the next feature of the `ip4-multicast` arc.

use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::next_nodes! { LOCAL => "ip4-local" }

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "linux-cp-mcast-ip4",
    next: NEXT_NODES,
    drop: "ip4-drop",
    feature: Some(FeatureDecl::on("ip4-multicast")),
    build: |_| Built::node(Mcast),
    ..NodeDecl::DEFAULT
};

struct Mcast;

impl Node for Mcast {
    fn packet(&mut self, _: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        match p.data().get(16..19) {
            Some([224, 0, 0]) => LOCAL,
            _ => Verdict::CONTINUE,
        }
    }

    fn trace(&self, _: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
