//! `tcp-mss-clamping-ip4-in`: lowers the MSS of SYNs that an interface receives.
//!
//! Reads: the IPv4 and TCP headers. Next: the next feature of the `ip4-unicast` arc.

use crate::lower::{ERRORS, IN, Ip4, Lower};
use thalweg_graph::{FeatureDecl, NodeDecl, Stage};

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "tcp-mss-clamping-ip4-in",
    errors: ERRORS,
    drop: "ip4-drop",
    feature: Some(FeatureDecl::on("ip4-unicast").at(Stage::Shaping)),
    build: Lower::<Ip4, IN>::build,
    ..NodeDecl::DEFAULT
};
