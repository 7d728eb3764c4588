//! `af_packet_delete`: deletes a host interface.

use crate::message_types::{AF_PACKET, AfPacketDelete, AfPacketDeleteReply};
use thalweg_api::{Call, Retval};
use thalweg_device::DeviceError;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, AfPacketDelete, AfPacketDeleteReply> =
    Call::new(&AF_PACKET, handle);

fn handle(c: &mut Control, rq: AfPacketDelete) -> Result<AfPacketDeleteReply, Retval> {
    match crate::delete(c, rq.host_if_name.as_str()) {
        Ok(()) => Ok(AfPacketDeleteReply),
        // VPP's error for a device without a host interface.
        Err(e @ DeviceError::Unknown(_)) => Err(Retval::SYSCALL_ERROR_1.because(e)),
        Err(e) => Err(e.into()),
    }
}
