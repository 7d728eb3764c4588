//! `trace_set_filter_function`: selects the function that filters traces. There is only one.

use super::trace_filter_function_dump::FUNCTION;
use crate::api_modules::TRACEDUMP;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::control::Control;

/// Selects a function.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct TraceSetFilterFunction {
    /// Its name.
    pub filter_function_name: String,
}

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
