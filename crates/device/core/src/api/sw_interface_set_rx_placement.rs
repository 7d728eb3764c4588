//! `sw_interface_set_rx_placement`: assigns a receive queue to a worker.

use crate::api_types::{INTERFACE, view};
use crate::interface;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Assigns a receive queue to a worker.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetRxPlacement {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// The queue.
    pub queue_id: u32,
    /// Worker, from 0.
    pub worker_id: u32,
    /// Assign to the main thread, which never polls: refused.
    pub is_main: bool,
}

/// The service.
pub static SERVICE: Call<Control, SwInterfaceSetRxPlacement, SwInterfaceSetRxPlacementReply> =
    Call::new(&INTERFACE, handle);

fn handle(
    c: &mut Control,
    rq: SwInterfaceSetRxPlacement,
) -> Result<SwInterfaceSetRxPlacementReply, Retval> {
    let sw_if = view(c, rq.sw_if_index)?.sw_if;
    if rq.is_main {
        return Err(Retval::INVALID_VALUE.because("the main thread cannot poll receive queues"));
    }
    interface::set_rx_placement(c, sw_if, rq.queue_id, Some(rq.worker_id as usize))?;
    Ok(SwInterfaceSetRxPlacementReply)
}
