//! `trace_set_filters`: which packets are traced. All are.

use crate::api_modules::TRACEDUMP;
use crate::control::Control;
use thalweg_api::{Call, Message, Retval, api_enum};

api_enum! {
    /// What a filter looks at.
    pub struct TraceFilterFlag: u32 = "trace_filter_flag" {
        /// Nothing.
        NONE = 0, "TRACE_FF_NONE";
        /// Packets that reach a node.
        INCLUDE_NODE = 1, "TRACE_FF_INCLUDE_NODE";
        /// Packets that do not.
        EXCLUDE_NODE = 2, "TRACE_FF_EXCLUDE_NODE";
        /// Packets that a table knows.
        INCLUDE_CLASSIFIER = 3, "TRACE_FF_INCLUDE_CLASSIFIER";
        /// Packets that it does not.
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
    /// What it looks at.
    pub flag: TraceFilterFlag,
    /// How many packets.
    pub count: u32,
    /// The node.
    #[api(default = 0xffff_ffff)]
    pub node_index: u32,
    /// The table.
    #[api(default = 0xffff_ffff)]
    pub classifier_table_index: u32,
}

/// The service.
pub static SERVICE: Call<Control, TraceSetFilters, TraceSetFiltersReply> =
    Call::new(&TRACEDUMP, handle);

fn handle(_: &mut Control, rq: TraceSetFilters) -> Result<TraceSetFiltersReply, Retval> {
    match rq.flag {
        TraceFilterFlag::NONE => Ok(TraceSetFiltersReply),
        flag if flag.known() => Err(Retval::UNIMPLEMENTED.because("there are no trace filters")),
        _ => Err(Retval::INVALID_VALUE),
    }
}
