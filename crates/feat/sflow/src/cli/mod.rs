//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod sflow_agent_config;
pub mod sflow_collector;
pub mod sflow_drop_monitoring;
pub mod sflow_enable_disable;
pub mod sflow_sampling_rate;
pub mod show_sflow;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] = &[
    &sflow_agent_config::COMMAND,
    &sflow_collector::COMMAND,
    &sflow_drop_monitoring::COMMAND,
    &sflow_enable_disable::COMMAND,
    &sflow_sampling_rate::COMMAND,
    &show_sflow::COMMAND,
];
