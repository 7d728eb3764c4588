//! `lookup-ip4-dst-itf`: checks IPv4 packets whose last label was popped, and looks them up in the
//! table of the interface that they came by.
//!
//! Reads: rx interface. Next: `ip4-lookup`.

use crate::disposition::{self, LookUp};
use thalweg_graph::{Built, NodeDecl};

thalweg_graph::next_nodes! {
    LOOKUP => "ip4-lookup",
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "lookup-ip4-dst-itf",
    next: NEXT_NODES,
    errors: disposition::ip4::ERRORS,
    drop: "ip4-drop",
    build: |_| Built::node(LookUp::<false>),
    ..NodeDecl::DEFAULT
};
