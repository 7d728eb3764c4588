//! Messages that the files of the folder `api` handle, and types of their fields.
//!
//! Written by `cargo xtask api` from VPP's descriptions, by which a unit test of `xtask` keeps it
//! current: add a file for a request, then run the command.
#![allow(missing_docs, reason = "VPP's `.api` files say what fields mean")]

use thalweg_api::schema::Module;
use thalweg_api::types::Timestamp;
use thalweg_api::{ApiType, Message, Text, api_enum};

/// Module `vlib`.
pub static VLIB: Module = Module { name: "vlib", folder: "core", version: "1.0.0" };

/// Message `add_node_next`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct AddNodeNext {
    pub node_name: Text<64>,
    pub next_name: Text<64>,
}

/// Message `add_node_next_reply`.
#[derive(Clone, Debug, PartialEq, Message)]
#[api(reply)]
pub struct AddNodeNextReply {
    pub next_index: u32,
}

/// Module `classify`.
pub static CLASSIFY: Module = Module { name: "classify", folder: "core", version: "3.1.0" };

api_enum! {
    /// Type `classify_action`.
    pub struct ClassifyAction: u8 = "classify_action" {
        NONE = 0, "CLASSIFY_API_ACTION_NONE";
        SET_IP4_FIB_INDEX = 1, "CLASSIFY_API_ACTION_SET_IP4_FIB_INDEX";
        SET_IP6_FIB_INDEX = 2, "CLASSIFY_API_ACTION_SET_IP6_FIB_INDEX";
        SET_METADATA = 3, "CLASSIFY_API_ACTION_SET_METADATA";
    }
}

/// Message `classify_add_del_session`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct ClassifyAddDelSession {
    pub is_add: bool,
    pub table_index: u32,
    #[api(default = 4294967295)]
    pub hit_next_index: u32,
    #[api(default = 4294967295)]
    pub opaque_index: u32,
    #[api(default = 0)]
    pub advance: i32,
    #[api(default = 0)]
    pub action: ClassifyAction,
    #[api(default = 0)]
    pub metadata: u32,
    #[api(count = "match_len: u32")]
    pub r#match: Vec<u8>,
}

/// Message `classify_add_del_table`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct ClassifyAddDelTable {
    pub is_add: bool,
    pub del_chain: bool,
    #[api(default = 4294967295)]
    pub table_index: u32,
    #[api(default = 2)]
    pub nbuckets: u32,
    #[api(default = 2097152)]
    pub memory_size: u32,
    #[api(default = 0)]
    pub skip_n_vectors: u32,
    #[api(default = 1)]
    pub match_n_vectors: u32,
    #[api(default = 4294967295)]
    pub next_table_index: u32,
    #[api(default = 4294967295)]
    pub miss_next_index: u32,
    #[api(default = 0)]
    pub current_data_flag: u8,
    #[api(default = 0)]
    pub current_data_offset: i16,
    #[api(count = "mask_len: u32")]
    pub mask: Vec<u8>,
}

/// Message `classify_add_del_table_reply`.
#[derive(Clone, Debug, PartialEq, Message)]
#[api(reply)]
pub struct ClassifyAddDelTableReply {
    pub new_table_index: u32,
    pub skip_n_vectors: u32,
    pub match_n_vectors: u32,
}

/// Message `classify_session_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct ClassifySessionDump {
    pub table_id: u32,
}

/// Message `classify_session_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct ClassifySessionDetails {
    pub table_id: u32,
    pub hit_next_index: u32,
    pub advance: i32,
    pub opaque_index: u32,
    #[api(count = "match_length: u32")]
    pub r#match: Vec<u8>,
}

/// Message `classify_table_ids`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct ClassifyTableIds;

/// Message `classify_table_ids_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct ClassifyTableIdsReply {
    #[api(count = "count: u32")]
    pub ids: Vec<u32>,
}

/// Message `classify_table_info`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct ClassifyTableInfo {
    pub table_id: u32,
}

/// Message `classify_table_info_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct ClassifyTableInfoReply {
    pub table_id: u32,
    pub nbuckets: u32,
    pub match_n_vectors: u32,
    pub skip_n_vectors: u32,
    pub active_sessions: u32,
    pub next_table_index: u32,
    pub miss_next_index: u32,
    #[api(count = "mask_length: u32")]
    pub mask: Vec<u8>,
}

/// Message `classify_trace_get_tables`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct ClassifyTraceGetTables;

/// Message `classify_trace_get_tables_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct ClassifyTraceGetTablesReply {
    #[api(count = "count: u32")]
    pub indices: Vec<u32>,
}

/// Message `classify_trace_lookup_table`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct ClassifyTraceLookupTable {
    #[api(default = 0)]
    pub skip_n_vectors: u32,
    #[api(default = 1)]
    pub match_n_vectors: u32,
    #[api(count = "mask_len: u32")]
    pub mask: Vec<u8>,
}

/// Message `classify_trace_lookup_table_reply`.
#[derive(Clone, Debug, PartialEq, Message)]
#[api(reply)]
pub struct ClassifyTraceLookupTableReply {
    pub table_index: u32,
}

/// Message `classify_trace_set_table`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct ClassifyTraceSetTable {
    #[api(default = 4294967295)]
    pub table_index: u32,
    #[api(default = 0)]
    pub sort_masks: bool,
}

/// Message `classify_trace_set_table_reply`.
#[derive(Clone, Debug, PartialEq, Message)]
#[api(reply)]
pub struct ClassifyTraceSetTableReply {
    pub table_index: u32,
}

/// Message `get_f64_endian_value`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct GetF64EndianValue {
    #[api(default = 1.0)]
    pub f64_one: f64,
}

/// Message `get_f64_endian_value_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct GetF64EndianValueReply {
    pub retval: u32,
    pub f64_one_result: f64,
}

/// Message `get_f64_increment_by_one`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct GetF64IncrementByOne {
    #[api(default = 1.0)]
    pub f64_value: f64,
}

/// Message `get_f64_increment_by_one_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct GetF64IncrementByOneReply {
    pub retval: u32,
    pub f64_value: f64,
}

/// Message `get_next_index`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct GetNextIndex {
    pub node_name: Text<64>,
    pub next_name: Text<64>,
}

/// Message `get_next_index_reply`.
#[derive(Clone, Debug, PartialEq, Message)]
#[api(reply)]
pub struct GetNextIndexReply {
    pub next_index: u32,
}

/// Message `get_node_graph`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct GetNodeGraph;

/// Message `get_node_graph_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct GetNodeGraphReply {
    pub reply_in_shmem: u64,
}

/// Message `get_node_index`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct GetNodeIndex {
    pub node_name: Text<64>,
}

/// Message `get_node_index_reply`.
#[derive(Clone, Debug, PartialEq, Message)]
#[api(reply)]
pub struct GetNodeIndexReply {
    pub node_index: u32,
}

/// Module `graph`.
pub static GRAPH: Module = Module { name: "graph", folder: "plugins", version: "1.0.0" };

api_enum! {
    /// Type `node_flag`.
    pub struct NodeFlag: u32 = "node_flag" {
        FRAME_NO_FREE_AFTER_DISPATCH = 1, "NODE_FLAG_FRAME_NO_FREE_AFTER_DISPATCH";
        IS_OUTPUT = 2, "NODE_FLAG_IS_OUTPUT";
        IS_DROP = 4, "NODE_FLAG_IS_DROP";
        IS_PUNT = 8, "NODE_FLAG_IS_PUNT";
        IS_HANDOFF = 16, "NODE_FLAG_IS_HANDOFF";
        TRACE = 32, "NODE_FLAG_TRACE";
        SWITCH_FROM_INTERRUPT_TO_POLLING_MODE = 64, "NODE_FLAG_SWITCH_FROM_INTERRUPT_TO_POLLING_MODE";
        SWITCH_FROM_POLLING_TO_INTERRUPT_MODE = 128, "NODE_FLAG_SWITCH_FROM_POLLING_TO_INTERRUPT_MODE";
        TRACE_SUPPORTED = 256, "NODE_FLAG_TRACE_SUPPORTED";
    }
}

/// Message `graph_node_get`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(
    request,
    vat_help = "graph_node_dump [start <cursor>] [node_index <index>]|[node_name <name>]|[flags]"
)]
pub struct GraphNodeGet {
    pub cursor: u32,
    pub index: u32,
    pub name: Text<64>,
    pub flags: NodeFlag,
    pub want_arcs: bool,
}

/// Message `graph_node_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct GraphNodeDetails {
    pub index: u32,
    pub name: Text<64>,
    pub flags: NodeFlag,
    #[api(count = "n_arcs: u32")]
    pub arcs_out: Vec<u32>,
}

/// Message `graph_node_get_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct GraphNodeGetReply {
    pub cursor: u32,
}

/// Module `vpe`.
pub static VPE: Module = Module { name: "vpe", folder: "core", version: "1.7.0" };

/// Message `log_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct LogDump {
    pub start_timestamp: Timestamp,
}

api_enum! {
    /// Type `log_level`.
    pub struct LogLevel: u32 = "log_level" {
        EMERG = 0, "VPE_API_LOG_LEVEL_EMERG";
        ALERT = 1, "VPE_API_LOG_LEVEL_ALERT";
        CRIT = 2, "VPE_API_LOG_LEVEL_CRIT";
        ERR = 3, "VPE_API_LOG_LEVEL_ERR";
        WARNING = 4, "VPE_API_LOG_LEVEL_WARNING";
        NOTICE = 5, "VPE_API_LOG_LEVEL_NOTICE";
        INFO = 6, "VPE_API_LOG_LEVEL_INFO";
        DEBUG = 7, "VPE_API_LOG_LEVEL_DEBUG";
        DISABLED = 8, "VPE_API_LOG_LEVEL_DISABLED";
    }
}

/// Message `log_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct LogDetails {
    pub timestamp: Timestamp,
    pub level: LogLevel,
    pub msg_class: Text<32>,
    pub message: Text<256>,
}

/// Message `show_threads`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct ShowThreads;

/// Type `thread_data`.
#[derive(Clone, Debug, Default, PartialEq, Eq, ApiType)]
pub struct ThreadData {
    pub id: u32,
    pub name: Text<64>,
    pub r#type: Text<64>,
    pub pid: u32,
    pub cpu_id: u32,
    pub core: u32,
    pub cpu_socket: u32,
}

/// Message `show_threads_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct ShowThreadsReply {
    #[api(count = "count: u32")]
    pub thread_data: Vec<ThreadData>,
}

/// Message `show_version`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct ShowVersion;

/// Message `show_version_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct ShowVersionReply {
    pub program: Text<32>,
    pub version: Text<32>,
    pub build_date: Text<32>,
    pub build_directory: Text<256>,
}

/// Message `show_vpe_system_time`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct ShowVpeSystemTime;

/// Message `show_vpe_system_time_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct ShowVpeSystemTimeReply {
    pub vpe_system_time: Timestamp,
}

/// Module `tracedump`.
pub static TRACEDUMP: Module = Module { name: "tracedump", folder: "plugins", version: "0.2.0" };

/// Message `trace_capture_packets`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(
    request,
    autoreply,
    vat_help = "trace_capture_packets [node_index <index>] [max <max>] [pre_capture_clear] [use_filter] [verbose]"
)]
pub struct TraceCapturePackets {
    pub node_index: u32,
    pub max_packets: u32,
    pub use_filter: bool,
    pub verbose: bool,
    pub pre_capture_clear: bool,
}

/// Message `trace_clear_cache`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct TraceClearCache;

/// Message `trace_clear_capture`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply, vat_help = "trace_clear_capture")]
pub struct TraceClearCapture;

/// Message `trace_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, vat_help = "trace_dump [thread_id <tid>] [position <pos>] [max <max>]")]
pub struct TraceDump {
    pub clear_cache: u8,
    pub thread_id: u32,
    pub position: u32,
    pub max_records: u32,
}

/// Message `trace_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct TraceDetails {
    pub thread_id: u32,
    pub position: u32,
    pub more_this_thread: u8,
    pub more_threads: u8,
    pub done: u8,
    pub packet_number: u32,
    pub trace_data: String,
}

/// Message `trace_dump_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct TraceDumpReply {
    pub last_thread_id: u32,
    pub last_position: u32,
    pub more_this_thread: u8,
    pub more_threads: u8,
    pub flush_only: u8,
    pub done: u8,
}

/// Message `trace_filter_function_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct TraceFilterFunctionDump;

/// Message `trace_filter_function_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct TraceFilterFunctionDetails {
    pub selected: bool,
    pub name: String,
}

/// Message `trace_set_filter_function`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct TraceSetFilterFunction {
    pub filter_function_name: String,
}

api_enum! {
    /// Type `trace_filter_flag`.
    pub struct TraceFilterFlag: u32 = "trace_filter_flag" {
        NONE = 0, "TRACE_FF_NONE";
        INCLUDE_NODE = 1, "TRACE_FF_INCLUDE_NODE";
        EXCLUDE_NODE = 2, "TRACE_FF_EXCLUDE_NODE";
        INCLUDE_CLASSIFIER = 3, "TRACE_FF_INCLUDE_CLASSIFIER";
        EXCLUDE_CLASSIFIER = 4, "TRACE_FF_EXCLUDE_CLASSIFIER";
    }
}

/// Message `trace_set_filters`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(
    request,
    autoreply,
    vat_help = "trace_set_filters [none] | [(include_node|exclude_node) <node-index>] | [(include_classifier|exclude_classifier) <classifier-index>] [count <count>]"
)]
pub struct TraceSetFilters {
    pub flag: TraceFilterFlag,
    pub count: u32,
    #[api(default = 4294967295)]
    pub node_index: u32,
    #[api(default = 4294967295)]
    pub classifier_table_index: u32,
}

/// Message `trace_v2_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, vat_help = "trace_v2_dump [thread_id <tid>] [position <pos>] [max <max>]")]
pub struct TraceV2Dump {
    #[api(default = 4294967295)]
    pub thread_id: u32,
    pub position: u32,
    #[api(default = 50)]
    pub max: u32,
    pub clear_cache: bool,
}

/// Message `trace_v2_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct TraceV2Details {
    pub thread_id: u32,
    pub position: u32,
    pub more: bool,
    pub trace_data: String,
}
