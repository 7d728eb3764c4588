//! `af_packet_set_l4_cksum_offload`: switches checksum and segmentation offload.

use crate::api_types::AF_PACKET;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

/// Enables or disables checksum and segmentation offload to the kernel.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct AfPacketSetL4CksumOffload {
    /// The host interface.
    pub sw_if_index: InterfaceIndex,
    /// True to enable.
    pub set: bool,
}

/// The service.
pub static SERVICE: Call<Control, AfPacketSetL4CksumOffload, AfPacketSetL4CksumOffloadReply> =
    Call::new(&AF_PACKET, handle);

fn handle(
    c: &mut Control,
    rq: AfPacketSetL4CksumOffload,
) -> Result<AfPacketSetL4CksumOffloadReply, Retval> {
    let view = view(c, rq.sw_if_index)?;
    if view.dev_type != crate::DEV_TYPE {
        let why = format!("`{}` is not a host interface", view.name);
        return Err(Retval::INVALID_INTERFACE.because(why));
    }
    crate::set_checksum_offload(c, &view.name, rq.set)?;
    Ok(AfPacketSetL4CksumOffloadReply)
}
