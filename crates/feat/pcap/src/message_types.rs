//! Messages that the files of the folder `api` handle, and types of their fields.
//!
//! Written by `cargo xtask api` from VPP's descriptions, by which a unit test of `xtask` keeps it
//! current: add a file for a request, then run the command.
#![allow(missing_docs, reason = "VPP's `.api` files say what fields mean")]

use thalweg_api::schema::Module;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Message, Text};

/// Module `classify`.
pub static CLASSIFY: Module = Module { name: "classify", folder: "core", version: "3.1.0" };

/// Message `classify_pcap_get_tables`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct ClassifyPcapGetTables {
    pub sw_if_index: InterfaceIndex,
}

/// Message `classify_pcap_get_tables_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct ClassifyPcapGetTablesReply {
    #[api(count = "count: u32")]
    pub indices: Vec<u32>,
}

/// Message `classify_pcap_lookup_table`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct ClassifyPcapLookupTable {
    #[api(default = 4294967295)]
    pub sw_if_index: InterfaceIndex,
    #[api(default = 0)]
    pub skip_n_vectors: u32,
    #[api(default = 1)]
    pub match_n_vectors: u32,
    #[api(count = "mask_len: u32")]
    pub mask: Vec<u8>,
}

/// Message `classify_pcap_lookup_table_reply`.
#[derive(Clone, Debug, PartialEq, Message)]
#[api(reply)]
pub struct ClassifyPcapLookupTableReply {
    pub table_index: u32,
}

/// Message `classify_pcap_set_table`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct ClassifyPcapSetTable {
    pub sw_if_index: InterfaceIndex,
    #[api(default = 4294967295)]
    pub table_index: u32,
    #[api(default = 0)]
    pub sort_masks: bool,
}

/// Message `classify_pcap_set_table_reply`.
#[derive(Clone, Debug, PartialEq, Message)]
#[api(reply)]
pub struct ClassifyPcapSetTableReply {
    pub table_index: u32,
}

/// Module `interface`.
pub static INTERFACE: Module = Module { name: "interface", folder: "core", version: "3.2.4" };

/// Message `pcap_set_filter_function`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct PcapSetFilterFunction {
    pub filter_function_name: String,
}

/// Message `pcap_trace_off`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct PcapTraceOff;

/// Message `pcap_trace_on`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(
    request,
    autoreply,
    vat_help = "pcap_trace_on [capture_rx] [capture_tx] [capture_drop] [max_packets <nn>] [sw_if_index <sw_if_index>|0 for any] [error <node>.<error>] [filename <name>] [max_bytes_per_packet <nnnn>] [filter] [preallocate_data] [free_data]"
)]
pub struct PcapTraceOn {
    pub capture_rx: bool,
    pub capture_tx: bool,
    pub capture_drop: bool,
    pub filter: bool,
    pub preallocate_data: bool,
    pub free_data: bool,
    #[api(default = 1000)]
    pub max_packets: u32,
    #[api(default = 512)]
    pub max_bytes_per_packet: u32,
    pub sw_if_index: InterfaceIndex,
    pub error: Text<128>,
    pub filename: Text<64>,
}
