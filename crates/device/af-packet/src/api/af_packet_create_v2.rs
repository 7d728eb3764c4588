//! `af_packet_create_v2`: attaches a device of the kernel, as older clients ask for it.

use crate::api_types::{AF_PACKET, chosen, config, create, size};
use thalweg_api::types::{InterfaceIndex, MacAddress};
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::Control;

/// Asks for a host interface.
#[derive(Debug, Message)]
#[api(request, deprecated)]
pub struct AfPacketCreateV2 {
    /// Its MAC address.
    pub hw_addr: MacAddress,
    /// The MAC address is to be chosen for it.
    pub use_random_hw_addr: bool,
    /// The device.
    pub host_if_name: Text<64>,
    /// Bytes of a receive slot; 0 as usual.
    pub rx_frame_size: u32,
    /// Bytes of a transmit slot; 0 as usual.
    pub tx_frame_size: u32,
    /// Slots of a receive block; 0 as usual.
    pub rx_frames_per_block: u32,
    /// Slots of a transmit block; 0 as usual.
    pub tx_frames_per_block: u32,
    /// Without a meaning.
    pub flags: u32,
    /// Receive queues.
    #[api(default = 1)]
    pub num_rx_queues: u16,
}

/// Answers [`AfPacketCreateV2`].
#[derive(Debug, Default, Message)]
#[api(reply, deprecated)]
pub struct AfPacketCreateV2Reply {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// The service.
pub static SERVICE: Call<Control, AfPacketCreateV2, AfPacketCreateV2Reply> =
    Call::new(&AF_PACKET, handle);

fn handle(c: &mut Control, rq: AfPacketCreateV2) -> Result<AfPacketCreateV2Reply, Retval> {
    let mac = chosen(rq.hw_addr, rq.use_random_hw_addr);
    let mut config = config(&rq.host_if_name, mac, rq.num_rx_queues);
    config.options.rx_size = size(rq.rx_frame_size);
    config.options.tx_size = size(rq.tx_frame_size);
    config.options.rx_per_block = size(rq.rx_frames_per_block);
    config.options.tx_per_block = size(rq.tx_frames_per_block);
    Ok(AfPacketCreateV2Reply { sw_if_index: create(c, config)? })
}
