//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod clear_ip_neighbors;
pub mod set_ip_neighbor;
pub mod set_ip_neighbor_advertise;
pub mod set_ip_neighbor_config;
pub mod show_ip6_neighbors;
pub mod show_ip_neighbor_config;
pub mod show_ip_neighbors;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] = &[
    &clear_ip_neighbors::COMMAND,
    &set_ip_neighbor::COMMAND,
    &set_ip_neighbor_advertise::COMMAND,
    &set_ip_neighbor_config::COMMAND,
    &show_ip6_neighbors::COMMAND,
    &show_ip_neighbor_config::COMMAND,
    &show_ip_neighbors::COMMAND,
];
