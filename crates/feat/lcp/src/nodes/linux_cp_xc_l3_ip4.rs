//! `linux-cp-xc-l3-ip4`: as `linux-cp-xc-ip4`, for twins without Ethernet headers.

use super::linux_cp_xc_ip4::{ERRORS, build};
use super::linux_cp_xc_ip4::{FEATURE, NEXT_NODES};
use thalweg_graph::NodeDecl;

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "linux-cp-xc-l3-ip4",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    feature: Some(FEATURE),
    also_on: &["ip4-multicast"],
    build: |cx| build(cx, 0, "lcp-xc-l3"),
    ..NodeDecl::DEFAULT
};
