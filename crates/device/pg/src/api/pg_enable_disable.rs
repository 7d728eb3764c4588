//! `pg_enable_disable`: starts or stops streams.

use crate::api_types::PG;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Starts or stops one stream, or all.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct PgEnableDisable {
    /// True to start, false to stop.
    #[api(default = "true")]
    pub is_enabled: bool,
    /// Name of the stream; empty for all.
    pub stream_name: String,
}

/// The service.
pub static SERVICE: Call<Control, PgEnableDisable, PgEnableDisableReply> = Call::new(&PG, handle);

fn handle(c: &mut Control, rq: PgEnableDisable) -> Result<PgEnableDisableReply, Retval> {
    let name = (!rq.stream_name.is_empty()).then_some(rq.stream_name.as_str());
    crate::enable_streams(c, name, rq.is_enabled)?;
    Ok(PgEnableDisableReply)
}
