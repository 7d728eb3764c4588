//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod load_impair;
pub mod load_witness;
pub mod show_load_witness;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] =
    &[&load_impair::COMMAND, &load_witness::COMMAND, &show_load_witness::COMMAND];
