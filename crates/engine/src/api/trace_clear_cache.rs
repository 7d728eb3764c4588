//! `trace_clear_cache`: clears the cached traces, so that the next dump reads the workers' again.

use super::trace_dump::Cache;
use crate::api_modules::TRACEDUMP;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::control::Control;

/// Clears the cache of the last dump.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct TraceClearCache;

/// The service.
pub static SERVICE: Call<Control, TraceClearCache, TraceClearCacheReply> =
    Call::new(&TRACEDUMP, handle);

fn handle(c: &mut Control, _: TraceClearCache) -> Result<TraceClearCacheReply, Retval> {
    Cache::clear(c);
    Ok(TraceClearCacheReply)
}
