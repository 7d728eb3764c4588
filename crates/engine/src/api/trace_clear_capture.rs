//! `trace_clear_capture`: clears traces and stops tracing.

use super::trace_dump::Cache;
use crate::api_modules::TRACEDUMP;
use crate::asking::tell_workers;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::control::Control;
use thalweg_graph::worker::Core;

/// Clears all traces.
#[derive(Debug, Message)]
#[api(request, autoreply, vat_help = "trace_clear_capture")]
pub struct TraceClearCapture;

/// The service.
pub static SERVICE: Call<Control, TraceClearCapture, TraceClearCaptureReply> =
    Call::new(&TRACEDUMP, handle);

fn handle(c: &mut Control, _: TraceClearCapture) -> Result<TraceClearCaptureReply, Retval> {
    tell_workers(c, Core::trace_clear);
    Cache::clear(c);
    Ok(TraceClearCaptureReply)
}
