//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod set_interface_tcp_mss_clamp;
pub mod show_interface_tcp_mss_clamp;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] =
    &[&set_interface_tcp_mss_clamp::COMMAND, &show_interface_tcp_mss_clamp::COMMAND];
