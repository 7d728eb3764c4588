//! `trace_clear_cache`: clears the cached traces, so that the next dump reads the workers' again.

use super::trace_dump::Cache;
use crate::message_types::{TRACEDUMP, TraceClearCache, TraceClearCacheReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::control::Control;

/// The service.
pub static SERVICE: Call<Control, TraceClearCache, TraceClearCacheReply> =
    Call::new(&TRACEDUMP, handle);

fn handle(c: &mut Control, _: TraceClearCache) -> Result<TraceClearCacheReply, Retval> {
    Cache::clear(c);
    Ok(TraceClearCacheReply)
}
