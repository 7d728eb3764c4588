//! `ip6-not-enabled`: drops IPv6 packets of an interface that does not speak IPv6: one without an
//! address, unless a setting says otherwise.
//!
//! The first feature of the arcs `ip6-unicast` and `ip6-multicast` there, so that others pay
//! nothing for it.

use thalweg_feat_ip::start::End;
use thalweg_graph::{FeatureDecl, NodeDecl, Stage};

thalweg_graph::errors! {
    DISABLED: Error, IPV6DISABLED, "ip6 is not enabled on the interface";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-not-enabled",
    errors: ERRORS,
    drop: "ip6-drop",
    feature: Some(FeatureDecl::on("ip6-unicast").at(Stage::Admission)),
    also_on: &["ip6-multicast"],
    build: |_| End::build(DISABLED, thalweg_wire::fmt::ip6),
    ..NodeDecl::DEFAULT
};
