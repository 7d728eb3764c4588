//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod create_tap;
pub mod delete_tap;
pub mod show_tap;
pub mod show_tun;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] =
    &[&create_tap::COMMAND, &delete_tap::COMMAND, &show_tap::COMMAND, &show_tun::COMMAND];
