//! `l2fib_flush_all`: flushes learned MAC addresses.

use crate::Flush;
use crate::api_types::flush;
use crate::message_types::{L2, L2fibFlushAll, L2fibFlushAllReply};
use thalweg_api::{Call, Later};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, L2fibFlushAll, L2fibFlushAllReply> = Call::later(&L2, handle);

fn handle(c: &mut Control, _: L2fibFlushAll, later: Later<L2fibFlushAllReply>) {
    flush(c, Flush::Learned, later);
}
