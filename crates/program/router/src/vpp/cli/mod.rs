//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod show_bihash;
pub mod show_ip_fib_mtrie;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] =
    &[&show_bihash::COMMAND, &show_ip_fib_mtrie::COMMAND];
