//! Every API message of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod ip6_dad_dump;
pub mod ip6_dad_enable_disable;
pub mod ip6nd_proxy_add_del;
pub mod ip6nd_proxy_dump;
pub mod sw_interface_ip6_enable_disable;
pub mod sw_interface_ip6_get_link_local_address;
pub mod sw_interface_ip6_set_link_local_address;
pub mod want_ip6_dad_events;

/// Every API message, in the order of the files' names.
pub static SERVICES: &[&dyn thalweg_api::Service<thalweg_graph::Control>] = &[
    &ip6_dad_dump::SERVICE,
    &ip6_dad_enable_disable::SERVICE,
    &ip6nd_proxy_add_del::SERVICE,
    &ip6nd_proxy_dump::SERVICE,
    &sw_interface_ip6_enable_disable::SERVICE,
    &sw_interface_ip6_get_link_local_address::SERVICE,
    &sw_interface_ip6_set_link_local_address::SERVICE,
    &want_ip6_dad_events::SERVICE,
];
