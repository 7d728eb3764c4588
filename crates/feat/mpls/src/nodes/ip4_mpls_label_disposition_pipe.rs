//! `ip4-mpls-label-disposition-pipe`: checks IPv4 packets whose last label was popped, and passes
//! them to their adjacency. Their TTL is what it was (the pipe model of RFC 3443).
//!
//! Reads: aux (an adjacency or a group). Writes: aux (the adjacency). Next: `ip4-rewrite`, which
//! decrements the TTL; `ip4-arp`.

use crate::disposition::{self, Sent};
use thalweg_graph::{Built, NodeDecl};

thalweg_graph::next_nodes! {
    REWRITE => "ip4-rewrite",
    ARP => "ip4-arp",
    GLEAN => "ip4-glean",
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-mpls-label-disposition-pipe",
    next: NEXT_NODES,
    errors: disposition::ip4::ERRORS,
    drop: "ip4-drop",
    build: |cx| Built::node(Sent::<false, false>::new(cx)),
    ..NodeDecl::DEFAULT
};
