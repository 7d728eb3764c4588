//! `linux-cp-xc-ip6`: as `linux-cp-xc-ip4`, for IPv6 packets.

use super::linux_cp_xc_ip4::{ERRORS, build};
use thalweg_graph::{FeatureDecl, NodeDecl, Stage};

thalweg_graph::next_nodes! { OUT => "ip6-rewrite-out" }

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "linux-cp-xc-ip6",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip6-drop",
    feature: Some(FEATURE),
    also_on: &["ip6-multicast"],
    build: |cx| build(cx, 1, "lcp-xc"),
    ..NodeDecl::DEFAULT
};

/// Ahead of all: the router's end needs no address.
pub(super) const FEATURE: FeatureDecl = FeatureDecl::on("ip6-unicast").at(Stage::Passage);
