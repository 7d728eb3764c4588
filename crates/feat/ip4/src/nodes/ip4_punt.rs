//! `ip4-punt`: IPv4 packets that a feature takes instead of the router's own protocols.
//!
//! Reads: aux (the punt reason). Next: the first feature of the `ip4-punt` arc, or `punt-dispatch`.

use thalweg_feat_ip::start::Start;
use thalweg_graph::NodeDecl;

thalweg_graph::next_nodes! { DISPATCH => "punt-dispatch" }

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-punt",
    next: NEXT_NODES,
    drop: "ip4-drop",
    build: |cx| Start::build(cx, "ip4-punt", DISPATCH, thalweg_wire::fmt::ip4),
    ..NodeDecl::DEFAULT
};
