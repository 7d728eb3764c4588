//! `trace_set_filters`: sets the trace filter. Only "no filter" is supported.

use crate::api_modules::TRACEDUMP;
use thalweg_api::{Call, Message, Retval, api_enum};
use thalweg_graph::control::Control;

api_enum! {
    /// Kind of a trace filter.
    pub struct TraceFilterFlag: u32 = "trace_filter_flag" {
        /// No filter.
        NONE = 0, "TRACE_FF_NONE";
        /// Packets that reach a node.
        INCLUDE_NODE = 1, "TRACE_FF_INCLUDE_NODE";
        /// Packets that do not reach it.
        EXCLUDE_NODE = 2, "TRACE_FF_EXCLUDE_NODE";
        /// Packets that match a classifier table.
        INCLUDE_CLASSIFIER = 3, "TRACE_FF_INCLUDE_CLASSIFIER";
        /// Packets that do not match it.
        EXCLUDE_CLASSIFIER = 4, "TRACE_FF_EXCLUDE_CLASSIFIER";
    }
}

/// Sets a filter.
#[derive(Debug, Message)]
#[api(
    request,
    autoreply,
    vat_help = "trace_set_filters [none] | [(include_node|exclude_node) <node-index>] | \
                [(include_classifier|exclude_classifier) <classifier-index>] [count <count>]"
)]
pub struct TraceSetFilters {
    /// Kind of the filter.
    pub flag: TraceFilterFlag,
    /// Number of packets.
    pub count: u32,
    /// Index of the node.
    #[api(default = 0xffff_ffff)]
    pub node_index: u32,
    /// Index of the classifier table.
    #[api(default = 0xffff_ffff)]
    pub classifier_table_index: u32,
}

/// The service.
pub static SERVICE: Call<Control, TraceSetFilters, TraceSetFiltersReply> =
    Call::new(&TRACEDUMP, handle);

fn handle(_: &mut Control, rq: TraceSetFilters) -> Result<TraceSetFiltersReply, Retval> {
    match rq.flag {
        TraceFilterFlag::NONE => Ok(TraceSetFiltersReply),
        flag if flag.known() => {
            Err(Retval::UNIMPLEMENTED.because("trace filters are not supported"))
        }
        _ => Err(Retval::INVALID_VALUE),
    }
}
