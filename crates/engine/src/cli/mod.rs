//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod clear_errors;
pub mod clear_runtime;
pub mod clear_trace;
pub mod set_punt_limit;
pub mod show_api_clients;
pub mod show_api_message_table;
pub mod show_buffers;
pub mod show_clock;
pub mod show_cpu;
pub mod show_errors;
pub mod show_features;
pub mod show_handoff;
pub mod show_logging;
pub mod show_memory;
pub mod show_packet_accounting;
pub mod show_plugins;
pub mod show_punt_reasons;
pub mod show_punt_stats;
pub mod show_runtime;
pub mod show_runtime_loops;
pub mod show_threads;
pub mod show_trace;
pub mod show_unix_files;
pub mod show_version;
pub mod show_vlib_graph;
pub mod trace_add;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] = &[
    &clear_errors::COMMAND,
    &clear_runtime::COMMAND,
    &clear_trace::COMMAND,
    &set_punt_limit::COMMAND,
    &show_api_clients::COMMAND,
    &show_api_message_table::COMMAND,
    &show_buffers::COMMAND,
    &show_clock::COMMAND,
    &show_cpu::COMMAND,
    &show_errors::COMMAND,
    &show_features::COMMAND,
    &show_handoff::COMMAND,
    &show_logging::COMMAND,
    &show_memory::COMMAND,
    &show_packet_accounting::COMMAND,
    &show_plugins::COMMAND,
    &show_punt_reasons::COMMAND,
    &show_punt_stats::COMMAND,
    &show_runtime::COMMAND,
    &show_runtime_loops::COMMAND,
    &show_threads::COMMAND,
    &show_trace::COMMAND,
    &show_unix_files::COMMAND,
    &show_version::COMMAND,
    &show_vlib_graph::COMMAND,
    &trace_add::COMMAND,
];
