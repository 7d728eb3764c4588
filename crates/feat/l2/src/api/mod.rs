//! Every API message of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod bd_ip_mac_add_del;
pub mod bd_ip_mac_dump;
pub mod bd_ip_mac_flush;
pub mod bridge_domain_add_del;
pub mod bridge_domain_add_del_v2;
pub mod bridge_domain_dump;
pub mod bridge_domain_set_default_learn_limit;
pub mod bridge_domain_set_learn_limit;
pub mod bridge_domain_set_mac_age;
pub mod bridge_flags;
pub mod bvi_create;
pub mod bvi_delete;
pub mod l2_fib_clear_table;
pub mod l2_fib_table_dump;
pub mod l2_flags;
pub mod l2_flags_get;
pub mod l2_flags_set;
pub mod l2_interface_efp_filter;
pub mod l2_interface_feat_flags_get;
pub mod l2_interface_feat_flags_set;
pub mod l2_interface_vlan_tag_rewrite;
pub mod l2_xconnect_dump;
pub mod l2fib_add_del;
pub mod l2fib_flush_all;
pub mod l2fib_flush_bd;
pub mod l2fib_flush_int;
pub mod l2fib_set_scan_delay;
pub mod sw_interface_set_l2_bridge;
pub mod sw_interface_set_l2_xconnect;
pub mod want_l2_arp_term_events;
pub mod want_l2_macs_events;
pub mod want_l2_macs_events2;

/// Every API message, in the order of the files' names.
pub static SERVICES: &[&dyn thalweg_api::Service<thalweg_graph::Control>] = &[
    &bd_ip_mac_add_del::SERVICE,
    &bd_ip_mac_dump::SERVICE,
    &bd_ip_mac_flush::SERVICE,
    &bridge_domain_add_del::SERVICE,
    &bridge_domain_add_del_v2::SERVICE,
    &bridge_domain_dump::SERVICE,
    &bridge_domain_set_default_learn_limit::SERVICE,
    &bridge_domain_set_learn_limit::SERVICE,
    &bridge_domain_set_mac_age::SERVICE,
    &bridge_flags::SERVICE,
    &bvi_create::SERVICE,
    &bvi_delete::SERVICE,
    &l2_fib_clear_table::SERVICE,
    &l2_fib_table_dump::SERVICE,
    &l2_flags::SERVICE,
    &l2_flags_get::SERVICE,
    &l2_flags_set::SERVICE,
    &l2_interface_efp_filter::SERVICE,
    &l2_interface_feat_flags_get::SERVICE,
    &l2_interface_feat_flags_set::SERVICE,
    &l2_interface_vlan_tag_rewrite::SERVICE,
    &l2_xconnect_dump::SERVICE,
    &l2fib_add_del::SERVICE,
    &l2fib_flush_all::SERVICE,
    &l2fib_flush_bd::SERVICE,
    &l2fib_flush_int::SERVICE,
    &l2fib_set_scan_delay::SERVICE,
    &sw_interface_set_l2_bridge::SERVICE,
    &sw_interface_set_l2_xconnect::SERVICE,
    &want_l2_arp_term_events::SERVICE,
    &want_l2_macs_events::SERVICE,
    &want_l2_macs_events2::SERVICE,
];
