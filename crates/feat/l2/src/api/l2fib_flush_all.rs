//! `l2fib_flush_all`: flushes learned MAC addresses.

use crate::Flush;
use crate::api_module::L2;
use crate::api_types::flush;
use thalweg_api::{Call, Later, Message};
use thalweg_graph::Control;

/// Flushes the learned MAC addresses of all bridge domains.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct L2fibFlushAll;

/// The service.
pub static SERVICE: Call<Control, L2fibFlushAll, L2fibFlushAllReply> = Call::later(&L2, handle);

fn handle(c: &mut Control, _: L2fibFlushAll, later: Later<L2fibFlushAllReply>) {
    flush(c, Flush::Learned, later);
}
