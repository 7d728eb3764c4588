//! `af_packet_set_l4_cksum_offload`: switches checksum and segmentation offload.

use crate::message_types::{AF_PACKET, AfPacketSetL4CksumOffload, AfPacketSetL4CksumOffloadReply};
use thalweg_api::{Call, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

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
