//! `tcp-mss-clamping-ip4-out`: lowers the MSS of SYNs that an interface sends.
//!
//! Reads: tx interface, the IPv4 and TCP headers. Keeps: aux (the adjacency). Next: the next
//! feature of the `ip4-output` arc.

use crate::lower::{ERRORS, Ip4, Lower, OUT};
use thalweg_graph::{FeatureDecl, NodeDecl, Stage};

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "tcp-mss-clamping-ip4-out",
    errors: ERRORS,
    drop: "ip4-drop",
    feature: Some(FeatureDecl::on("ip4-output").at(Stage::Shaping)),
    build: Lower::<Ip4, OUT>::build,
    ..NodeDecl::DEFAULT
};
