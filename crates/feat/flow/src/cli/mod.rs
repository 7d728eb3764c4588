//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod clear_conntrack;
pub mod flow_add;
pub mod flow_del;
pub mod flow_dump;
pub mod set_conntrack;
pub mod show_conntrack;
pub mod show_conntrack_summary;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] = &[
    &clear_conntrack::COMMAND,
    &flow_add::COMMAND,
    &flow_del::COMMAND,
    &flow_dump::COMMAND,
    &set_conntrack::COMMAND,
    &show_conntrack::COMMAND,
    &show_conntrack_summary::COMMAND,
];
