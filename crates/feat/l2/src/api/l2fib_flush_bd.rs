//! `l2fib_flush_bd`: flushes a bridge domain's learned MAC addresses.

use crate::Flush;
use crate::api_module::L2;
use crate::api_types::flush;
use thalweg_api::{Call, Later, Message};
use thalweg_graph::Control;

/// Flushes the learned MAC addresses of a bridge domain.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct L2fibFlushBd {
    /// Bridge domain id.
    pub bd_id: u32,
}

/// The service.
pub static SERVICE: Call<Control, L2fibFlushBd, L2fibFlushBdReply> = Call::later(&L2, handle);

fn handle(c: &mut Control, rq: L2fibFlushBd, later: Later<L2fibFlushBdReply>) {
    flush(c, Flush::Bridge(rq.bd_id), later);
}
