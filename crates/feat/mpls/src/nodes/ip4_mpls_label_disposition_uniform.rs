//! `ip4-mpls-label-disposition-uniform`: pops the last label, and gives the IPv4 packet behind it
//! the label's TTL and traffic class (the uniform model of RFC 3443 and RFC 3270).
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
    name: "ip4-mpls-label-disposition-uniform",
    next: NEXT_NODES,
    errors: disposition::ip4::ERRORS,
    drop: "ip4-drop",
    build: |cx| Built::node(Sent::<false, true>::new(cx)),
    ..NodeDecl::DEFAULT
};
