//! `linux-cp-punt-l3`: as `linux-cp-punt`, for interfaces whose packets have no Ethernet header:
//! their twins are TUN devices.

use super::linux_cp_punt::{ERRORS, build};
use thalweg_graph::{FeatureDecl, NodeDecl, Stage};

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "linux-cp-punt-l3",
    errors: ERRORS,
    feature: Some(FeatureDecl::on("ip4-punt").at(Stage::Admission)),
    also_on: &["ip6-punt"],
    build,
    ..NodeDecl::DEFAULT
};
