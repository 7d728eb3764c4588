//! `l2fib_flush_bd`: flushes a bridge domain's learned MAC addresses.

use crate::Flush;
use crate::api_types::flush;
use crate::message_types::{L2, L2fibFlushBd, L2fibFlushBdReply};
use thalweg_api::{Call, Later};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, L2fibFlushBd, L2fibFlushBdReply> = Call::later(&L2, handle);

fn handle(c: &mut Control, rq: L2fibFlushBd, later: Later<L2fibFlushBdReply>) {
    flush(c, Flush::Bridge(rq.bd_id), later);
}
