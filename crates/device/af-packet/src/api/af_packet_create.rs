//! `af_packet_create`: creates a host interface, for older clients.

use crate::api_types::{AF_PACKET, chosen, config, create};
use thalweg_api::types::{InterfaceIndex, MacAddr};
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::Control;

/// Creates a host interface.
#[derive(Debug, Message)]
#[api(request, deprecated)]
pub struct AfPacketCreate {
    /// MAC address.
    pub hw_addr: MacAddr,
    /// Ignore `hw_addr` and use the default MAC address.
    pub use_random_hw_addr: bool,
    /// Linux device.
    pub host_if_name: Text<64>,
}

/// Reply to [`AfPacketCreate`].
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
