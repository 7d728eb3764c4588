//! `ip6-drop`: drops IPv6 packets.
//!
//! Reads: aux (the drop reason). Next: the first feature of the `ip6-drop` arc, or `error-drop`.

use thalweg_feat_ip::start::Start;
use thalweg_graph::{Kind, NodeDecl};

thalweg_graph::next_nodes! { ERROR_DROP => "error-drop" }

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-drop",
    kind: Kind::Drop,
    next: NEXT_NODES,
    build: |cx| Start::build(cx, "ip6-drop", ERROR_DROP, thalweg_wire::fmt::ip6),
    ..NodeDecl::DEFAULT
};
