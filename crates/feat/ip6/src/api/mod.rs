//! Every API message of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod sw_interface_ip6_enable_disable;
pub mod sw_interface_ip6_get_link_local_address;
pub mod sw_interface_ip6_set_link_local_address;

/// Every API message, in the order of the files' names.
pub static SERVICES: &[&dyn thalweg_api::Service<thalweg_graph::Control>] = &[
    &sw_interface_ip6_enable_disable::SERVICE,
    &sw_interface_ip6_get_link_local_address::SERVICE,
    &sw_interface_ip6_set_link_local_address::SERVICE,
];
