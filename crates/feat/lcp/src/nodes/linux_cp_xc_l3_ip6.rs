//! `linux-cp-xc-l3-ip6`: as `linux-cp-xc-ip6`, for twins without Ethernet headers.

use super::linux_cp_xc_ip4::{ERRORS, build};
use super::linux_cp_xc_ip6::{FEATURE, NEXT_NODES};
use thalweg_graph::NodeDecl;

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "linux-cp-xc-l3-ip6",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip6-drop",
    feature: Some(FEATURE),
    also_on: &["ip6-multicast"],
    build: |cx| build(cx, 1, "lcp-xc-l3"),
    ..NodeDecl::DEFAULT
};
