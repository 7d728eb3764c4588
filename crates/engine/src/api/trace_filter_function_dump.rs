//! `trace_filter_function_dump`: lists the functions that can filter traces.

use crate::api_modules::TRACEDUMP;
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::control::Control;

/// The only function, which looks at the patterns of `classify filter`.
pub(crate) const FUNCTION: &str = "vnet_is_packet_traced";

/// Requests the functions.
#[derive(Debug, Message)]
#[api(request)]
pub struct TraceFilterFunctionDump;

/// A function.
#[derive(Debug, Message)]
#[api(details)]
pub struct TraceFilterFunctionDetails {
    /// True for the function in use.
    pub selected: bool,
    /// Its name.
    pub name: String,
}

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
