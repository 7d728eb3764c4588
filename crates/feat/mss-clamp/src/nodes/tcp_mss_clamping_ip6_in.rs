//! `tcp-mss-clamping-ip6-in`: lowers the MSS of SYNs over IPv6 that an interface receives.
//!
//! Reads: the IPv6 and TCP headers. Next: the next feature of the `ip6-unicast` arc.

use crate::lower::{ERRORS, IN, Ip6, Lower};
use thalweg_graph::{FeatureDecl, NodeDecl, Stage};

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "tcp-mss-clamping-ip6-in",
    errors: ERRORS,
    drop: "ip6-drop",
    feature: Some(FeatureDecl::on("ip6-unicast").at(Stage::Shaping)),
    build: Lower::<Ip6, IN>::build,
    ..NodeDecl::DEFAULT
};
