//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod set_arp_proxy;
pub mod set_ip_arp_proxy;
pub mod show_arp_proxy;
pub mod show_udp_ports;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] = &[
    &set_arp_proxy::COMMAND,
    &set_ip_arp_proxy::COMMAND,
    &show_arp_proxy::COMMAND,
    &show_udp_ports::COMMAND,
];
