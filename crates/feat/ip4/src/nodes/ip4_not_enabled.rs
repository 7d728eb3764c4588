//! `ip4-not-enabled`: drops IPv4 packets of an interface that does not speak IPv4: one without an
//! address, unless a setting says otherwise.
//!
//! The first feature of the arcs `ip4-unicast` and `ip4-multicast` there, so that others pay
//! nothing for it.

use thalweg_feat_ip::start::End;
use thalweg_graph::{FeatureDecl, NodeDecl, Stage};

thalweg_graph::errors! {
    DISABLED: Error, UNKNOWN_L3_EXCEPTION, "ip4 is not enabled on the interface";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-not-enabled",
    errors: ERRORS,
    drop: "ip4-drop",
    feature: Some(FeatureDecl::on("ip4-unicast").at(Stage::Admission)),
    also_on: &["ip4-multicast"],
    build: |_| End::build(DISABLED, thalweg_wire::fmt::ip4),
    ..NodeDecl::DEFAULT
};
