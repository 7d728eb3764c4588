//! `l2fib_flush_int`: flushes a port's learned MAC addresses.

use crate::Flush;
use crate::api_module::L2;
use crate::api_types::flush;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Later, Message};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// Flushes the MAC addresses learned on a port.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct L2fibFlushInt {
    /// The port.
    pub sw_if_index: InterfaceIndex,
}

/// The service.
pub static SERVICE: Call<Control, L2fibFlushInt, L2fibFlushIntReply> = Call::later(&L2, handle);

fn handle(c: &mut Control, rq: L2fibFlushInt, later: Later<L2fibFlushIntReply>) {
    flush(c, Flush::Port(SwIfIndex(rq.sw_if_index.0)), later);
}
