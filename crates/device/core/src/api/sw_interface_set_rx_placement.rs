//! `sw_interface_set_rx_placement`: chooses the worker of a receive queue.

use crate::Interfaces;
use crate::api_types::{INTERFACE, view};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Gives a receive queue to a worker.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetRxPlacement {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// The queue.
    pub queue_id: u32,
    /// The worker, from 0.
    pub worker_id: u32,
    /// The main thread instead, which never polls.
    pub is_main: bool,
}

/// The service.
pub static SERVICE: Call<Control, SwInterfaceSetRxPlacement, SwInterfaceSetRxPlacementReply> =
    Call::new(&INTERFACE, handle);

fn handle(
    c: &mut Control,
    rq: SwInterfaceSetRxPlacement,
) -> Result<SwInterfaceSetRxPlacementReply, Retval> {
    view(c, rq.sw_if_index)?;
    let device = c.state::<Interfaces>().borrow().device(rq.sw_if_index.0);
    let queues = device.map(|device| device.borrow().rx_queues()).unwrap_or_default();
    let queue = queues.iter().find(|q| q.queue == rq.queue_id).ok_or(Retval::INVALID_VALUE)?;
    if rq.is_main || rq.worker_id as usize >= c.workers() {
        return Err(Retval::INVALID_VALUE.because("a receive queue is polled by a worker"));
    }
    // Queues stay with the worker that got them when their interface came into being.
    match queue.worker == rq.worker_id as usize {
        true => Ok(SwInterfaceSetRxPlacementReply),
        false => Err(Retval::UNSUPPORTED.because("queues do not move between workers")),
    }
}
