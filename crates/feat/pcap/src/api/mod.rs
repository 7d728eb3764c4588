//! Every API message of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod classify_pcap_get_tables;
pub mod classify_pcap_lookup_table;
pub mod classify_pcap_set_table;
pub mod pcap_set_filter_function;
pub mod pcap_trace_off;
pub mod pcap_trace_on;

/// Every API message, in the order of the files' names.
pub static SERVICES: &[&dyn thalweg_api::Service<thalweg_graph::Control>] = &[
    &classify_pcap_get_tables::SERVICE,
    &classify_pcap_lookup_table::SERVICE,
    &classify_pcap_set_table::SERVICE,
    &pcap_set_filter_function::SERVICE,
    &pcap_trace_off::SERVICE,
    &pcap_trace_on::SERVICE,
];
