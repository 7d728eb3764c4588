//! `trace_filter_function_dump`: lists the functions that can filter traces.

use crate::message_types::{TRACEDUMP, TraceFilterFunctionDetails, TraceFilterFunctionDump};
use thalweg_api::{Details, Dump};
use thalweg_graph::control::Control;

/// The only function, which looks at the patterns of `classify filter`.
pub(crate) const FUNCTION: &str = "vnet_is_packet_traced";

/// The service.
pub static SERVICE: Dump<Control, TraceFilterFunctionDump, TraceFilterFunctionDetails> =
    Dump::new(&TRACEDUMP, handle);

fn handle(
    _: &mut Control,
    _: TraceFilterFunctionDump,
    out: &mut Details<TraceFilterFunctionDetails>,
) {
    out.send(&TraceFilterFunctionDetails { selected: true, name: FUNCTION.into() });
}
