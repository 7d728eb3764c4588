//! Every API message of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod proxy_arp_add_del;
pub mod proxy_arp_dump;
pub mod proxy_arp_intfc_dump;
pub mod proxy_arp_intfc_enable_disable;
pub mod sw_interface_set_ip_directed_broadcast;

/// Every API message, in the order of the files' names.
pub static SERVICES: &[&dyn thalweg_api::Service<thalweg_graph::Control>] = &[
    &proxy_arp_add_del::SERVICE,
    &proxy_arp_dump::SERVICE,
    &proxy_arp_intfc_dump::SERVICE,
    &proxy_arp_intfc_enable_disable::SERVICE,
    &sw_interface_set_ip_directed_broadcast::SERVICE,
];
