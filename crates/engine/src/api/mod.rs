//! Every API message of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod add_node_next;
pub mod classify_add_del_session;
pub mod classify_add_del_table;
pub mod classify_session_dump;
pub mod classify_table_ids;
pub mod classify_table_info;
pub mod classify_trace_get_tables;
pub mod classify_trace_lookup_table;
pub mod classify_trace_set_table;
pub mod get_f64_endian_value;
pub mod get_f64_increment_by_one;
pub mod get_next_index;
pub mod get_node_graph;
pub mod get_node_index;
pub mod graph_node_get;
pub mod log_dump;
pub mod show_threads;
pub mod show_version;
pub mod show_vpe_system_time;
pub mod trace_capture_packets;
pub mod trace_clear_cache;
pub mod trace_clear_capture;
pub mod trace_dump;
pub mod trace_filter_function_dump;
pub mod trace_set_filter_function;
pub mod trace_set_filters;
pub mod trace_v2_dump;

/// Every API message, in the order of the files' names.
pub static SERVICES: &[&dyn thalweg_api::Service<thalweg_graph::Control>] = &[
    &add_node_next::SERVICE,
    &classify_add_del_session::SERVICE,
    &classify_add_del_table::SERVICE,
    &classify_session_dump::SERVICE,
    &classify_table_ids::SERVICE,
    &classify_table_info::SERVICE,
    &classify_trace_get_tables::SERVICE,
    &classify_trace_lookup_table::SERVICE,
    &classify_trace_set_table::SERVICE,
    &get_f64_endian_value::SERVICE,
    &get_f64_increment_by_one::SERVICE,
    &get_next_index::SERVICE,
    &get_node_graph::SERVICE,
    &get_node_index::SERVICE,
    &graph_node_get::SERVICE,
    &log_dump::SERVICE,
    &show_threads::SERVICE,
    &show_version::SERVICE,
    &show_vpe_system_time::SERVICE,
    &trace_capture_packets::SERVICE,
    &trace_clear_cache::SERVICE,
    &trace_clear_capture::SERVICE,
    &trace_dump::SERVICE,
    &trace_filter_function_dump::SERVICE,
    &trace_set_filter_function::SERVICE,
    &trace_set_filters::SERVICE,
    &trace_v2_dump::SERVICE,
];
