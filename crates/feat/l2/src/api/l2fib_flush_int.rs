//! `l2fib_flush_int`: flushes a port's learned MAC addresses.

use crate::Flush;
use crate::api_types::flush;
use crate::message_types::{L2, L2fibFlushInt, L2fibFlushIntReply};
use thalweg_api::{Call, Later};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, L2fibFlushInt, L2fibFlushIntReply> = Call::later(&L2, handle);

fn handle(c: &mut Control, rq: L2fibFlushInt, later: Later<L2fibFlushIntReply>) {
    flush(c, Flush::Port(SwIfIndex(rq.sw_if_index.0)), later);
}
