//! Every API message of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod collect_detailed_interface_stats;
pub mod create_loopback;
pub mod create_loopback_instance;
pub mod create_subif;
pub mod create_vlan_subif;
pub mod delete_loopback;
pub mod delete_subif;
pub mod feature_enable_disable;
pub mod feature_is_enabled;
pub mod hw_interface_set_mtu;
pub mod sw_interface_add_del_mac_address;
pub mod sw_interface_clear_stats;
pub mod sw_interface_dump;
pub mod sw_interface_get_mac_address;
pub mod sw_interface_rx_placement_dump;
pub mod sw_interface_set_flags;
pub mod sw_interface_set_mac_address;
pub mod sw_interface_set_mtu;
pub mod sw_interface_set_promisc;
pub mod sw_interface_set_rx_mode;
pub mod sw_interface_set_rx_placement;
pub mod sw_interface_tag_add_del;
pub mod sw_interface_tx_placement_get;
pub mod want_interface_events;

/// Every API message, in the order of the files' names.
pub static SERVICES: &[&dyn thalweg_api::Service<thalweg_graph::Control>] = &[
    &collect_detailed_interface_stats::SERVICE,
    &create_loopback::SERVICE,
    &create_loopback_instance::SERVICE,
    &create_subif::SERVICE,
    &create_vlan_subif::SERVICE,
    &delete_loopback::SERVICE,
    &delete_subif::SERVICE,
    &feature_enable_disable::SERVICE,
    &feature_is_enabled::SERVICE,
    &hw_interface_set_mtu::SERVICE,
    &sw_interface_add_del_mac_address::SERVICE,
    &sw_interface_clear_stats::SERVICE,
    &sw_interface_dump::SERVICE,
    &sw_interface_get_mac_address::SERVICE,
    &sw_interface_rx_placement_dump::SERVICE,
    &sw_interface_set_flags::SERVICE,
    &sw_interface_set_mac_address::SERVICE,
    &sw_interface_set_mtu::SERVICE,
    &sw_interface_set_promisc::SERVICE,
    &sw_interface_set_rx_mode::SERVICE,
    &sw_interface_set_rx_placement::SERVICE,
    &sw_interface_tag_add_del::SERVICE,
    &sw_interface_tx_placement_get::SERVICE,
    &want_interface_events::SERVICE,
];
