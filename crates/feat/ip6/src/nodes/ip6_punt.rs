//! `ip6-punt`: IPv6 packets that a feature takes instead of the router's own protocols.
//!
//! Reads: aux (the punt reason). Next: the first feature of the `ip6-punt` arc, or `punt-dispatch`.

use thalweg_feat_ip::start::Start;
use thalweg_graph::NodeDecl;

thalweg_graph::next_nodes! { DISPATCH => "punt-dispatch" }

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-punt",
    next: NEXT_NODES,
    drop: "ip6-drop",
    build: |cx| Start::build(cx, "ip6-punt", DISPATCH, thalweg_wire::fmt::ip6),
    ..NodeDecl::DEFAULT
};
