//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod clear_interface_tag;
pub mod clear_interfaces;
pub mod create_loopback_interface;
pub mod create_sink_interface;
pub mod create_sub_interfaces;
pub mod delete_loopback_interface;
pub mod delete_sub_interface;
pub mod set_interface_index;
pub mod set_interface_mac_address;
pub mod set_interface_mtu;
pub mod set_interface_promiscuous;
pub mod set_interface_rx_mode;
pub mod set_interface_rx_placement;
pub mod set_interface_secondary_mac_address;
pub mod set_interface_state;
pub mod set_interface_tag;
pub mod show_hardware_interfaces;
pub mod show_interface;
pub mod show_interface_address;
pub mod show_interface_features;
pub mod show_interface_rx_placement;
pub mod show_interface_secondary_mac_address;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] = &[
    &clear_interface_tag::COMMAND,
    &clear_interfaces::COMMAND,
    &create_loopback_interface::COMMAND,
    &create_sink_interface::COMMAND,
    &create_sub_interfaces::COMMAND,
    &delete_loopback_interface::COMMAND,
    &delete_sub_interface::COMMAND,
    &set_interface_index::COMMAND,
    &set_interface_mac_address::COMMAND,
    &set_interface_mtu::COMMAND,
    &set_interface_promiscuous::COMMAND,
    &set_interface_rx_mode::COMMAND,
    &set_interface_rx_placement::COMMAND,
    &set_interface_secondary_mac_address::COMMAND,
    &set_interface_state::COMMAND,
    &set_interface_tag::COMMAND,
    &show_hardware_interfaces::COMMAND,
    &show_interface::COMMAND,
    &show_interface_address::COMMAND,
    &show_interface_features::COMMAND,
    &show_interface_rx_placement::COMMAND,
    &show_interface_secondary_mac_address::COMMAND,
];
