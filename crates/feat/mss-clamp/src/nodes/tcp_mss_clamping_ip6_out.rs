//! `tcp-mss-clamping-ip6-out`: lowers the MSS of SYNs over IPv6 that an interface sends.
//!
//! Reads: tx interface, the IPv6 and TCP headers. Keeps: aux (the adjacency). Next: the next
//! feature of the `ip6-output` arc.

use crate::lower::{ERRORS, Ip6, Lower, OUT};
use thalweg_graph::{FeatureDecl, NodeDecl, Stage};

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "tcp-mss-clamping-ip6-out",
    errors: ERRORS,
    drop: "ip6-drop",
    feature: Some(FeatureDecl::on("ip6-output").at(Stage::Shaping)),
    build: Lower::<Ip6, OUT>::build,
    ..NodeDecl::DEFAULT
};
