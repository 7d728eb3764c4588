//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod clear_configuration_unresolved;
pub mod config_apply;
pub mod config_check;
pub mod config_commit;
pub mod config_diff;
pub mod config_plan;
pub mod config_rollback;
pub mod config_save;
pub mod show_configuration;
pub mod show_configuration_revisions;
pub mod show_configuration_unresolved;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] = &[
    &clear_configuration_unresolved::COMMAND,
    &config_apply::COMMAND,
    &config_check::COMMAND,
    &config_commit::COMMAND,
    &config_diff::COMMAND,
    &config_plan::COMMAND,
    &config_rollback::COMMAND,
    &config_save::COMMAND,
    &show_configuration::COMMAND,
    &show_configuration_revisions::COMMAND,
    &show_configuration_unresolved::COMMAND,
];
