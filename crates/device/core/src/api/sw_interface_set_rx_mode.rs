//! `sw_interface_set_rx_mode`: sets the receive mode of queues.

use crate::api_types::{INTERFACE, RxMode};
use crate::{SwIfIndex, interface};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Sets the receive mode of one queue, or of all queues of an interface.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetRxMode {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Use `queue_id`.
    pub queue_id_valid: bool,
    /// Queue number.
    pub queue_id: u32,
    /// Receive mode.
    pub mode: RxMode,
}

/// The service.
pub static SERVICE: Call<Control, SwInterfaceSetRxMode, SwInterfaceSetRxModeReply> =
    Call::new(&INTERFACE, handle);

fn handle(c: &mut Control, rq: SwInterfaceSetRxMode) -> Result<SwInterfaceSetRxModeReply, Retval> {
    let queue = rq.queue_id_valid.then_some(rq.queue_id);
    interface::set_rx_mode(c, SwIfIndex(rq.sw_if_index.0), queue, rq.mode.mode()?)?;
    Ok(SwInterfaceSetRxModeReply)
}
