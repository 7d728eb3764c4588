//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod classify_filter;
pub mod pcap_dispatch_trace;
pub mod pcap_trace;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] =
    &[&classify_filter::COMMAND, &pcap_dispatch_trace::COMMAND, &pcap_trace::COMMAND];
