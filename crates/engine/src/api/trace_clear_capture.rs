//! `trace_clear_capture`: clears traces and stops tracing.

use super::trace_dump::Cache;
use crate::asking::tell_workers;
use crate::message_types::{TRACEDUMP, TraceClearCapture, TraceClearCaptureReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::control::Control;
use thalweg_graph::worker::Core;

/// The service.
pub static SERVICE: Call<Control, TraceClearCapture, TraceClearCaptureReply> =
    Call::new(&TRACEDUMP, handle);

fn handle(c: &mut Control, _: TraceClearCapture) -> Result<TraceClearCaptureReply, Retval> {
    tell_workers(c, Core::trace_clear);
    Cache::clear(c);
    Ok(TraceClearCaptureReply)
}
