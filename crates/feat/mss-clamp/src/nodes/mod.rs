//! Every graph node of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod tcp_mss_clamping_ip4_in;
pub mod tcp_mss_clamping_ip4_out;
pub mod tcp_mss_clamping_ip6_in;
pub mod tcp_mss_clamping_ip6_out;

/// Every graph node, in the order of the files' names.
pub static NODES: &[&thalweg_graph::NodeDecl] = &[
    &tcp_mss_clamping_ip4_in::NODE,
    &tcp_mss_clamping_ip4_out::NODE,
    &tcp_mss_clamping_ip6_in::NODE,
    &tcp_mss_clamping_ip6_out::NODE,
];
