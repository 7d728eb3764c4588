//! `l2fib_flush_bd`: forgets a bridge domain's stations.

use crate::Flush;
use crate::api_module::L2;
use crate::api_types::flush;
use thalweg_api::{Call, Later, Message};
use thalweg_graph::Control;

/// Forgets the stations that a bridge domain has learned.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct L2fibFlushBd {
    /// FlushFilter one.
    pub bd_id: u32,
}

/// The service.
pub static SERVICE: Call<Control, L2fibFlushBd, L2fibFlushBdReply> = Call::later(&L2, handle);

fn handle(c: &mut Control, rq: L2fibFlushBd, later: Later<L2fibFlushBdReply>) {
    flush(c, Flush::Bridge(rq.bd_id), later);
}
