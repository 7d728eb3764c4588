//! `lookup-ip6-dst`: checks IPv6 packets whose last label was popped, and looks them up in the
//! table that the label names.
//!
//! Reads: aux (the table). Next: `ip6-lookup-tunneled`.

use crate::disposition::{self, LookUp};
use thalweg_graph::{Built, NodeDecl};

thalweg_graph::next_nodes! {
    LOOKUP => "ip6-lookup-tunneled",
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "lookup-ip6-dst",
    next: NEXT_NODES,
    errors: disposition::ip6::ERRORS,
    drop: "ip6-drop",
    build: |_| Built::node(LookUp::<true>),
    ..NodeDecl::DEFAULT
};
