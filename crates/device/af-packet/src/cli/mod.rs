//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod create_host_interface;
pub mod delete_host_interface;
pub mod set_host_interface;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] = &[
    &create_host_interface::COMMAND,
    &delete_host_interface::COMMAND,
    &set_host_interface::COMMAND,
];
