//! `ip6-mpls-label-disposition-pipe`: checks IPv6 packets whose last label was popped, and passes
//! them to their adjacency. Their hop limit is what it was (the pipe model of RFC 3443).
//!
//! Reads: aux (an adjacency or a group). Writes: aux (the adjacency). Next: `ip6-rewrite`, which
//! decrements the hop limit; `ip6-discover-neighbor`.

use crate::disposition::{self, Sent};
use thalweg_graph::{Built, NodeDecl};

thalweg_graph::next_nodes! {
    REWRITE => "ip6-rewrite",
    DISCOVER => "ip6-discover-neighbor",
    GLEAN => "ip6-glean",
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-mpls-label-disposition-pipe",
    next: NEXT_NODES,
    errors: disposition::ip6::ERRORS,
    drop: "ip6-drop",
    build: |cx| Built::node(Sent::<true, false>::new(cx)),
    ..NodeDecl::DEFAULT
};
