//! `trace_set_filters`: shows only traces that meet a node or table, or that do not, as
//! `trace filter` does.

use super::trace_dump::Cache;
use crate::api_modules::TRACEDUMP;
use crate::traces::{ShownFilter, Tracing, What};
use thalweg_api::{Call, Message, Retval, api_enum};
use thalweg_graph::control::Control;
use thalweg_graph::decl::NodeId;

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
    /// Maximum number of packets, per worker.
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

fn handle(c: &mut Control, rq: TraceSetFilters) -> Result<TraceSetFiltersReply, Retval> {
    use TraceFilterFlag as Flag;
    let what = match rq.flag {
        Flag::NONE => None,
        Flag::INCLUDE_NODE | Flag::EXCLUDE_NODE => {
            if rq.node_index as usize >= c.nodes().len() {
                return Err(Retval::NO_SUCH_NODE.because("no node has this index"));
            }
            Some(What::Node(NodeId(rq.node_index as u16)))
        }
        Flag::INCLUDE_CLASSIFIER | Flag::EXCLUDE_CLASSIFIER => {
            Some(What::Table(rq.classifier_table_index))
        }
        _ => return Err(Retval::INVALID_VALUE),
    };
    let include = matches!(rq.flag, Flag::INCLUDE_NODE | Flag::INCLUDE_CLASSIFIER);
    let filter = what.map(|what| ShownFilter { what, include, count: rq.count as usize });
    Tracing::show(c, filter)?;
    Cache::clear(c);
    Ok(TraceSetFiltersReply)
}
