//! `af_packet_create_v2`: creates a host interface, for older clients.

use crate::api_types::{AF_PACKET, AfPacketFlags, apply, chosen, config, create, size};
use thalweg_api::types::{InterfaceIndex, MacAddr};
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::Control;

/// Creates a host interface.
#[derive(Debug, Message)]
#[api(request, deprecated)]
pub struct AfPacketCreateV2 {
    /// MAC address.
    pub hw_addr: MacAddr,
    /// Ignore `hw_addr` and use the default MAC address.
    pub use_random_hw_addr: bool,
    /// Linux device.
    pub host_if_name: Text<64>,
    /// Receive slot size in bytes; 0 for the default.
    pub rx_frame_size: u32,
    /// Transmit slot size in bytes; 0 for the default.
    pub tx_frame_size: u32,
    /// Slots per receive block; 0 for the default.
    pub rx_frames_per_block: u32,
    /// Slots per transmit block; 0 for the default.
    pub tx_frames_per_block: u32,
    /// As `AfPacketFlags`; 0 for the defaults.
    pub flags: u32,
    /// Number of receive queues.
    #[api(default = 1)]
    pub num_rx_queues: u16,
}

/// Reply to [`AfPacketCreateV2`].
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
    if rq.flags != 0 {
        apply(AfPacketFlags(rq.flags), &mut config.options)?;
    }
    Ok(AfPacketCreateV2Reply { sw_if_index: create(c, config)? })
}
