//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod clear_nat44_sessions;
pub mod nat44_add_address;
pub mod nat44_add_identity_mapping;
pub mod nat44_add_interface_address;
pub mod nat44_add_load_balancing_back_end;
pub mod nat44_add_load_balancing_static_mapping;
pub mod nat44_add_static_mapping;
pub mod nat44_del_session;
pub mod nat44_plugin;
pub mod nat44_restore;
pub mod nat44_save;
pub mod nat44_vrf_route;
pub mod nat44_vrf_table;
pub mod nat_ipfix_logging;
pub mod set_interface_nat44;
pub mod set_nat44_session_limit;
pub mod set_nat_frame_queue_nelts;
pub mod set_nat_timeout;
pub mod show_nat44_addresses;
pub mod show_nat44_hash_tables;
pub mod show_nat44_interface_address;
pub mod show_nat44_interfaces;
pub mod show_nat44_log;
pub mod show_nat44_session_limits;
pub mod show_nat44_sessions;
pub mod show_nat44_static_mappings;
pub mod show_nat44_summary;
pub mod show_nat44_vrf_tables;
pub mod show_nat_addr_port_assignment_alg;
pub mod show_nat_mss_clamping;
pub mod show_nat_timeouts;
pub mod show_nat_workers;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] = &[
    &clear_nat44_sessions::COMMAND,
    &nat44_add_address::COMMAND,
    &nat44_add_identity_mapping::COMMAND,
    &nat44_add_interface_address::COMMAND,
    &nat44_add_load_balancing_back_end::COMMAND,
    &nat44_add_load_balancing_static_mapping::COMMAND,
    &nat44_add_static_mapping::COMMAND,
    &nat44_del_session::COMMAND,
    &nat44_plugin::COMMAND,
    &nat44_restore::COMMAND,
    &nat44_save::COMMAND,
    &nat44_vrf_route::COMMAND,
    &nat44_vrf_table::COMMAND,
    &nat_ipfix_logging::COMMAND,
    &set_interface_nat44::COMMAND,
    &set_nat44_session_limit::COMMAND,
    &set_nat_frame_queue_nelts::COMMAND,
    &set_nat_timeout::COMMAND,
    &show_nat44_addresses::COMMAND,
    &show_nat44_hash_tables::COMMAND,
    &show_nat44_interface_address::COMMAND,
    &show_nat44_interfaces::COMMAND,
    &show_nat44_log::COMMAND,
    &show_nat44_session_limits::COMMAND,
    &show_nat44_sessions::COMMAND,
    &show_nat44_static_mappings::COMMAND,
    &show_nat44_summary::COMMAND,
    &show_nat44_vrf_tables::COMMAND,
    &show_nat_addr_port_assignment_alg::COMMAND,
    &show_nat_mss_clamping::COMMAND,
    &show_nat_timeouts::COMMAND,
    &show_nat_workers::COMMAND,
];
