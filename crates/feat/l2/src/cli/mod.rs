//! The feature's commands. This list is generated: a test rewrites it when the folder changes.

pub mod set_interface_l2_xconnect;
pub mod set_interface_l3;

/// All commands of this folder.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] =
    &[&set_interface_l2_xconnect::COMMAND, &set_interface_l3::COMMAND];
