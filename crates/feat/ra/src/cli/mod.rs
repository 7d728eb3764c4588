//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod ip6_nd;
pub mod show_ip6_nd_autoconfig;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] =
    &[&ip6_nd::COMMAND, &show_ip6_nd_autoconfig::COMMAND];
