//! Every graph node of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod flow_icmp_error;
pub mod flow_icmp_error_ip6;
pub mod flow_rules;

/// Every graph node, in the order of the files' names.
pub static NODES: &[&thalweg_graph::NodeDecl] =
    &[&flow_icmp_error::NODE, &flow_icmp_error_ip6::NODE, &flow_rules::NODE];
