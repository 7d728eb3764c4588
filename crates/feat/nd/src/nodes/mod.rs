//! Every graph node of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod icmp6_mld_query;
pub mod icmp6_neighbor_advertisement;
pub mod icmp6_neighbor_solicitation;
pub mod icmp6_router_advertisement;
pub mod icmp6_router_solicitation;
pub mod ip6_discover_neighbor;
pub mod ip6_glean;

/// Every graph node, in the order of the files' names.
pub static NODES: &[&thalweg_graph::NodeDecl] = &[
    &icmp6_mld_query::NODE,
    &icmp6_neighbor_advertisement::NODE,
    &icmp6_neighbor_solicitation::NODE,
    &icmp6_router_advertisement::NODE,
    &icmp6_router_solicitation::NODE,
    &ip6_discover_neighbor::NODE,
    &ip6_glean::NODE,
];
