//! `l2fib_flush_all`: forgets all learned stations.

use crate::Flush;
use crate::api_module::L2;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Forgets the stations that all bridge domains have learned.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct L2fibFlushAll;

/// The service.
pub static SERVICE: Call<Control, L2fibFlushAll, L2fibFlushAllReply> = Call::new(&L2, handle);

fn handle(c: &mut Control, _: L2fibFlushAll) -> Result<L2fibFlushAllReply, Retval> {
    crate::flush(c, Flush::Learned)?;
    Ok(L2fibFlushAllReply)
}
