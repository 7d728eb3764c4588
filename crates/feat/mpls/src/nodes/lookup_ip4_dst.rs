//! `lookup-ip4-dst`: checks IPv4 packets whose last label was popped, and looks them up in the
//! table that the label names.
//!
//! Reads: aux (the table). Next: `ip4-lookup-tunneled`.

use crate::disposition::{self, LookUp};
use thalweg_graph::{Built, NodeDecl};

thalweg_graph::next_nodes! {
    LOOKUP => "ip4-lookup-tunneled",
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "lookup-ip4-dst",
    next: NEXT_NODES,
    errors: disposition::ip4::ERRORS,
    drop: "ip4-drop",
    build: |_| Built::node(LookUp::<false>),
    ..NodeDecl::DEFAULT
};
