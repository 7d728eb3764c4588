//! Every graph node of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod interface_rx_dpo_ip6;
pub mod ip6_drop;
pub mod ip6_icmp_echo_request;
pub mod ip6_icmp_error;
pub mod ip6_icmp_input;
pub mod ip6_input;
pub mod ip6_link_local;
pub mod ip6_local;
pub mod ip6_local_end_of_arc;
pub mod ip6_lookup;
pub mod ip6_lookup_tunneled;
pub mod ip6_mfib_forward_lookup;
pub mod ip6_not_enabled;
pub mod ip6_path_mtu;
pub mod ip6_punt;
pub mod ip6_punt_redirect;
pub mod ip6_rewrite;
pub mod ip6_rewrite_out;

/// Every graph node, in the order of the files' names.
pub static NODES: &[&thalweg_graph::NodeDecl] = &[
    &interface_rx_dpo_ip6::NODE,
    &ip6_drop::NODE,
    &ip6_icmp_echo_request::NODE,
    &ip6_icmp_error::NODE,
    &ip6_icmp_input::NODE,
    &ip6_input::NODE,
    &ip6_link_local::NODE,
    &ip6_local::NODE,
    &ip6_local_end_of_arc::NODE,
    &ip6_lookup::NODE,
    &ip6_lookup_tunneled::NODE,
    &ip6_mfib_forward_lookup::NODE,
    &ip6_not_enabled::NODE,
    &ip6_path_mtu::NODE,
    &ip6_punt::NODE,
    &ip6_punt_redirect::NODE,
    &ip6_rewrite::NODE,
    &ip6_rewrite_out::NODE,
];
