//! `af_packet_delete`: deletes a host interface.

use crate::api_types::AF_PACKET;
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_device::DeviceError;
use thalweg_graph::Control;

/// Deletes a host interface.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct AfPacketDelete {
    /// Linux device.
    pub host_if_name: Text<64>,
}

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
