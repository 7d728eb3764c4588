//! `lookup-ip6-dst-itf`: checks IPv6 packets whose last label was popped, and looks them up in the
//! table of the interface that they came by.
//!
//! Reads: rx interface. Next: `ip6-lookup`.

use crate::disposition::{self, LookUp};
use thalweg_graph::{Built, NodeDecl};

thalweg_graph::next_nodes! {
    LOOKUP => "ip6-lookup",
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "lookup-ip6-dst-itf",
    next: NEXT_NODES,
    errors: disposition::ip6::ERRORS,
    drop: "ip6-drop",
    build: |_| Built::node(LookUp::<true>),
    ..NodeDecl::DEFAULT
};
