//! `sw_interface_set_rx_placement`: assigns a receive queue to a worker.

use crate::api_types::view;
use crate::interface;
use crate::message_types::{INTERFACE, SwInterfaceSetRxPlacement, SwInterfaceSetRxPlacementReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
