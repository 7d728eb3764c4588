//! `trace_set_filters`: shows only traces that meet a node or table, or that do not, as
//! `trace filter` does.

use super::trace_dump::Cache;
use crate::message_types::{TRACEDUMP, TraceFilterFlag, TraceSetFilters, TraceSetFiltersReply};
use crate::traces::{ShownFilter, Tracing, What};
use thalweg_api::{Call, Retval};
use thalweg_graph::control::Control;
use thalweg_graph::decl::NodeId;

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
