//! `flow-icmp-error-ip6`: restores the original packet quoted in the router's own ICMPv6 errors
//! about packets that rules have translated.
//!
//! Reads: the IPv6 header. Next: along the `ip6-icmp-error-reply` arc.

use thalweg_conntrack::IPV6;
use thalweg_graph::{FeatureDecl, NodeDecl, Stage};

thalweg_graph::errors! { RESTORED: Info, UNKNOWN, "icmp6 errors of the router translated"; }

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "flow-icmp-error-ip6",
    errors: ERRORS,
    drop: "ip6-drop",
    feature: Some(FeatureDecl::on("ip6-icmp-error-reply").at(Stage::FrameTranslation)),
    build: super::flow_icmp_error::build::<IPV6>,
    ..NodeDecl::DEFAULT
};
