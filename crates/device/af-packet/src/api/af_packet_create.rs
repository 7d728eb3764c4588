//! `af_packet_create`: creates a host interface, for older clients.

use crate::api_types::{chosen, config, create};
use crate::message_types::{AF_PACKET, AfPacketCreate, AfPacketCreateReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, AfPacketCreate, AfPacketCreateReply> =
    Call::new(&AF_PACKET, handle);

fn handle(c: &mut Control, rq: AfPacketCreate) -> Result<AfPacketCreateReply, Retval> {
    let mac = chosen(rq.hw_addr, rq.use_random_hw_addr);
    let config = config(&rq.host_if_name, mac, 1);
    Ok(AfPacketCreateReply { sw_if_index: create(c, config)? })
}
