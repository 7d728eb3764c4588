//! `linux-cp-mcast-ip6`: IPv6 packets to groups of the link (ff02::/16, RFC 4291 section 2.7) are
//! for the router: packets that it does not handle go to the twin of the interface. Packets to the
//! groups of solicited nodes are for the router only if it has such an address.
//!
//! Next: `ip6-local`, or the next feature of the `ip6-multicast` arc.

use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::next_nodes! { LOCAL => "ip6-local" }

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "linux-cp-mcast-ip6",
    next: NEXT_NODES,
    drop: "ip6-drop",
    feature: Some(FeatureDecl::on("ip6-multicast")),
    build: |_| Built::node(Mcast),
    ..NodeDecl::DEFAULT
};

/// First bytes of the groups of solicited nodes: ff02::1:ff00:0/104.
pub(super) const SOLICITED: [u8; 13] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff];

struct Mcast;

impl Node for Mcast {
    fn packet(&mut self, _: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        match p.data().get(24..40) {
            Some(group) if group.starts_with(&SOLICITED) => Verdict::CONTINUE,
            Some([0xff, 2, ..]) => LOCAL,
            _ => Verdict::CONTINUE,
        }
    }

    fn trace(&self, _: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }
}
