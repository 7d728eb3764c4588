//! `trace_clear_cache`: has the next dump read the workers' traces anew.

use super::trace_dump::Cache;
use crate::api_modules::TRACEDUMP;
use crate::control::Control;
use thalweg_api::{Call, Message, Retval};

/// Forgets what the last dump has read.
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
