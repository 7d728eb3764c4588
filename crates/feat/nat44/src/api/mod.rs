//! Every API message of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod nat44_add_del_address_range;
pub mod nat44_add_del_identity_mapping;
pub mod nat44_add_del_interface_addr;
pub mod nat44_add_del_lb_static_mapping;
pub mod nat44_add_del_static_mapping;
pub mod nat44_add_del_static_mapping_v2;
pub mod nat44_address_dump;
pub mod nat44_del_session;
pub mod nat44_ed_add_del_output_interface;
pub mod nat44_ed_add_del_vrf_route;
pub mod nat44_ed_add_del_vrf_table;
pub mod nat44_ed_output_interface_get;
pub mod nat44_ed_plugin_enable_disable;
pub mod nat44_ed_set_fq_options;
pub mod nat44_ed_show_fq_options;
pub mod nat44_ed_vrf_tables_dump;
pub mod nat44_ed_vrf_tables_v2_dump;
pub mod nat44_forwarding_enable_disable;
pub mod nat44_identity_mapping_dump;
pub mod nat44_interface_add_del_feature;
pub mod nat44_interface_addr_dump;
pub mod nat44_interface_dump;
pub mod nat44_lb_static_mapping_add_del_local;
pub mod nat44_lb_static_mapping_dump;
pub mod nat44_set_session_limit;
pub mod nat44_show_running_config;
pub mod nat44_static_mapping_dump;
pub mod nat44_user_dump;
pub mod nat44_user_session_dump;
pub mod nat44_user_session_v2_dump;
pub mod nat44_user_session_v3_dump;
pub mod nat_get_mss_clamping;
pub mod nat_ipfix_enable_disable;
pub mod nat_set_mss_clamping;
pub mod nat_set_timeouts;
pub mod nat_set_workers;
pub mod nat_worker_dump;

/// Every API message, in the order of the files' names.
pub static SERVICES: &[&dyn thalweg_api::Service<thalweg_graph::Control>] = &[
    &nat44_add_del_address_range::SERVICE,
    &nat44_add_del_identity_mapping::SERVICE,
    &nat44_add_del_interface_addr::SERVICE,
    &nat44_add_del_lb_static_mapping::SERVICE,
    &nat44_add_del_static_mapping::SERVICE,
    &nat44_add_del_static_mapping_v2::SERVICE,
    &nat44_address_dump::SERVICE,
    &nat44_del_session::SERVICE,
    &nat44_ed_add_del_output_interface::SERVICE,
    &nat44_ed_add_del_vrf_route::SERVICE,
    &nat44_ed_add_del_vrf_table::SERVICE,
    &nat44_ed_output_interface_get::SERVICE,
    &nat44_ed_plugin_enable_disable::SERVICE,
    &nat44_ed_set_fq_options::SERVICE,
    &nat44_ed_show_fq_options::SERVICE,
    &nat44_ed_vrf_tables_dump::SERVICE,
    &nat44_ed_vrf_tables_v2_dump::SERVICE,
    &nat44_forwarding_enable_disable::SERVICE,
    &nat44_identity_mapping_dump::SERVICE,
    &nat44_interface_add_del_feature::SERVICE,
    &nat44_interface_addr_dump::SERVICE,
    &nat44_interface_dump::SERVICE,
    &nat44_lb_static_mapping_add_del_local::SERVICE,
    &nat44_lb_static_mapping_dump::SERVICE,
    &nat44_set_session_limit::SERVICE,
    &nat44_show_running_config::SERVICE,
    &nat44_static_mapping_dump::SERVICE,
    &nat44_user_dump::SERVICE,
    &nat44_user_session_dump::SERVICE,
    &nat44_user_session_v2_dump::SERVICE,
    &nat44_user_session_v3_dump::SERVICE,
    &nat_get_mss_clamping::SERVICE,
    &nat_ipfix_enable_disable::SERVICE,
    &nat_set_mss_clamping::SERVICE,
    &nat_set_timeouts::SERVICE,
    &nat_set_workers::SERVICE,
    &nat_worker_dump::SERVICE,
];
