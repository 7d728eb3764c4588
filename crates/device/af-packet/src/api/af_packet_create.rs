//! `af_packet_create`: attaches a device of the kernel, as older clients ask for it.

use crate::api_types::{AF_PACKET, chosen, config, create};
use thalweg_api::types::{InterfaceIndex, MacAddress};
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::Control;

/// Asks for a host interface.
#[derive(Debug, Message)]
#[api(request, deprecated)]
pub struct AfPacketCreate {
    /// Its MAC address.
    pub hw_addr: MacAddress,
    /// The MAC address is to be chosen for it.
    pub use_random_hw_addr: bool,
    /// The device.
    pub host_if_name: Text<64>,
}

/// Answers [`AfPacketCreate`].
#[derive(Debug, Default, Message)]
#[api(reply, deprecated)]
pub struct AfPacketCreateReply {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// The service.
pub static SERVICE: Call<Control, AfPacketCreate, AfPacketCreateReply> =
    Call::new(&AF_PACKET, handle);

fn handle(c: &mut Control, rq: AfPacketCreate) -> Result<AfPacketCreateReply, Retval> {
    let mac = chosen(rq.hw_addr, rq.use_random_hw_addr);
    let config = config(&rq.host_if_name, mac, 1);
    Ok(AfPacketCreateReply { sw_if_index: create(c, config)? })
}
