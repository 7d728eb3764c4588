//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod mpls_local_label;
pub mod mpls_table;
pub mod mpls_tunnel;
pub mod show_mpls_fib;
pub mod show_mpls_interface;
pub mod show_mpls_tunnel;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] = &[
    &mpls_local_label::COMMAND,
    &mpls_table::COMMAND,
    &mpls_tunnel::COMMAND,
    &show_mpls_fib::COMMAND,
    &show_mpls_interface::COMMAND,
    &show_mpls_tunnel::COMMAND,
];
