//! `pg_enable_disable`: starts or stops streams.

use crate::api_types::PG;
use crate::stream::settling;
use thalweg_api::{Call, Later, Message, Retval};
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
pub static SERVICE: Call<Control, PgEnableDisable, PgEnableDisableReply> = Call::later(&PG, handle);

fn handle(c: &mut Control, rq: PgEnableDisable, later: Later<PgEnableDisableReply>) {
    let name = (!rq.stream_name.is_empty()).then_some(rq.stream_name.as_str());
    if let Err(e) = crate::enable_streams(c, name, rq.is_enabled) {
        return later.answer(Retval::from(e).0, &PgEnableDisableReply);
    }
    if rq.is_enabled {
        return later.answer(0, &PgEnableDisableReply);
    }
    let settling = settling(c);
    later.answer_aside(0, || {
        settling.wait();
        PgEnableDisableReply
    });
}
