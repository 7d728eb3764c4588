//! `sw_interface_set_rx_mode`: sets the receive mode of queues.

use crate::message_types::{INTERFACE, SwInterfaceSetRxMode, SwInterfaceSetRxModeReply};
use crate::{SwIfIndex, interface};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SwInterfaceSetRxMode, SwInterfaceSetRxModeReply> =
    Call::new(&INTERFACE, handle);

fn handle(c: &mut Control, rq: SwInterfaceSetRxMode) -> Result<SwInterfaceSetRxModeReply, Retval> {
    let queue = rq.queue_id_valid.then_some(rq.queue_id);
    interface::set_rx_mode(c, SwIfIndex(rq.sw_if_index.0), queue, rq.mode.mode()?)?;
    Ok(SwInterfaceSetRxModeReply)
}
