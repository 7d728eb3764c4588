//! `trace_set_filter_function`: selects the function that filters traces. VPP has only one such
//! function.

use super::trace_filter_function_dump::FUNCTION;
use crate::message_types::{TRACEDUMP, TraceSetFilterFunction, TraceSetFilterFunctionReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::control::Control;

/// The service.
pub static SERVICE: Call<Control, TraceSetFilterFunction, TraceSetFilterFunctionReply> =
    Call::new(&TRACEDUMP, handle);

fn handle(
    _: &mut Control,
    rq: TraceSetFilterFunction,
) -> Result<TraceSetFilterFunctionReply, Retval> {
    match rq.filter_function_name.as_str() {
        FUNCTION => Ok(TraceSetFilterFunctionReply),
        _ => Err(Retval::NO_SUCH_ENTRY),
    }
}
