//! Every graph node of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod interface_rx_dpo_ip4;
pub mod ip4_drop;
pub mod ip4_frag;
pub mod ip4_icmp_echo_request;
pub mod ip4_icmp_error;
pub mod ip4_icmp_input;
pub mod ip4_input;
pub mod ip4_local;
pub mod ip4_local_end_of_arc;
pub mod ip4_lookup;
pub mod ip4_lookup_in;
pub mod ip4_lookup_tunneled;
pub mod ip4_not_enabled;
pub mod ip4_path_mtu;
pub mod ip4_punt;
pub mod ip4_punt_redirect;
pub mod ip4_rewrite;
pub mod ip4_rewrite_out;

/// Every graph node, in the order of the files' names.
pub static NODES: &[&thalweg_graph::NodeDecl] = &[
    &interface_rx_dpo_ip4::NODE,
    &ip4_drop::NODE,
    &ip4_frag::NODE,
    &ip4_icmp_echo_request::NODE,
    &ip4_icmp_error::NODE,
    &ip4_icmp_input::NODE,
    &ip4_input::NODE,
    &ip4_local::NODE,
    &ip4_local_end_of_arc::NODE,
    &ip4_lookup::NODE,
    &ip4_lookup_in::NODE,
    &ip4_lookup_tunneled::NODE,
    &ip4_not_enabled::NODE,
    &ip4_path_mtu::NODE,
    &ip4_punt::NODE,
    &ip4_punt_redirect::NODE,
    &ip4_rewrite::NODE,
    &ip4_rewrite_out::NODE,
];
