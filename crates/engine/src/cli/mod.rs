//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod classify_session;
pub mod classify_table;
pub mod clear_errors;
pub mod clear_logging;
pub mod clear_runtime;
pub mod clear_trace;
pub mod set_clock_adjust;
pub mod set_punt;
pub mod set_punt_limit;
pub mod set_trace_timestamp_format;
pub mod show_api_clients;
pub mod show_api_message_table;
pub mod show_buffers;
pub mod show_classify_filter;
pub mod show_classify_tables;
pub mod show_clock;
pub mod show_cpu;
pub mod show_errors;
pub mod show_features;
pub mod show_graph;
pub mod show_handoff;
pub mod show_logging;
pub mod show_memory;
pub mod show_node;
pub mod show_packet_accounting;
pub mod show_plugins;
pub mod show_punt_ports;
pub mod show_punt_reasons;
pub mod show_punt_stats;
pub mod show_runtime;
pub mod show_runtime_loops;
pub mod show_settings;
pub mod show_threads;
pub mod show_trace;
pub mod show_trace_filter_function;
pub mod show_trace_path;
pub mod show_trace_paths;
pub mod show_trace_timestamp_format;
pub mod show_unix_files;
pub mod show_version;
pub mod show_vlib_graph;
pub mod show_vlib_graphviz;
pub mod test_log;
pub mod trace_add;
pub mod trace_filter;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] = &[
    &classify_session::COMMAND,
    &classify_table::COMMAND,
    &clear_errors::COMMAND,
    &clear_logging::COMMAND,
    &clear_runtime::COMMAND,
    &clear_trace::COMMAND,
    &set_clock_adjust::COMMAND,
    &set_punt::COMMAND,
    &set_punt_limit::COMMAND,
    &set_trace_timestamp_format::COMMAND,
    &show_api_clients::COMMAND,
    &show_api_message_table::COMMAND,
    &show_buffers::COMMAND,
    &show_classify_filter::COMMAND,
    &show_classify_tables::COMMAND,
    &show_clock::COMMAND,
    &show_cpu::COMMAND,
    &show_errors::COMMAND,
    &show_features::COMMAND,
    &show_graph::COMMAND,
    &show_handoff::COMMAND,
    &show_logging::COMMAND,
    &show_memory::COMMAND,
    &show_node::COMMAND,
    &show_packet_accounting::COMMAND,
    &show_plugins::COMMAND,
    &show_punt_ports::COMMAND,
    &show_punt_reasons::COMMAND,
    &show_punt_stats::COMMAND,
    &show_runtime::COMMAND,
    &show_runtime_loops::COMMAND,
    &show_settings::COMMAND,
    &show_threads::COMMAND,
    &show_trace::COMMAND,
    &show_trace_filter_function::COMMAND,
    &show_trace_path::COMMAND,
    &show_trace_paths::COMMAND,
    &show_trace_timestamp_format::COMMAND,
    &show_unix_files::COMMAND,
    &show_version::COMMAND,
    &show_vlib_graph::COMMAND,
    &show_vlib_graphviz::COMMAND,
    &test_log::COMMAND,
    &trace_add::COMMAND,
    &trace_filter::COMMAND,
];
