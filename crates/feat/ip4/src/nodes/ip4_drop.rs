//! `ip4-drop`: drops IPv4 packets.
//!
//! Reads: aux (the drop reason). Next: the first feature of the `ip4-drop` arc, or `error-drop`.

use thalweg_feat_ip::start::Start;
use thalweg_graph::{Kind, NodeDecl};

thalweg_graph::next_nodes! { ERROR_DROP => "error-drop" }

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-drop",
    kind: Kind::Drop,
    next: NEXT_NODES,
    build: |cx| Start::build(cx, "ip4-drop", ERROR_DROP, thalweg_wire::fmt::ip4),
    ..NodeDecl::DEFAULT
};
