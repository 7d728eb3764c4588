//! `pg_enable_disable`: starts or stops streams.

use crate::message_types::{PG, PgEnableDisable, PgEnableDisableReply};
use crate::stream::settling;
use thalweg_api::{Call, Later, Retval};
use thalweg_graph::Control;

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
