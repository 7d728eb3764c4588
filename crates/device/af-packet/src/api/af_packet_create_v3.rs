//! `af_packet_create_v3`: creates a host interface.

use crate::api_types::{
    AF_PACKET, AfPacketFlags, AfPacketMode, apply, chosen, config, create, size,
};
use thalweg_api::types::{InterfaceIndex, MacAddr};
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_device_linux::Framing;
use thalweg_graph::Control;

/// Creates a host interface.
#[derive(Debug, Message)]
#[api(request)]
pub struct AfPacketCreateV3 {
    /// Framing; Ethernet by default.
    pub mode: AfPacketMode,
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
    /// Flags.
    pub flags: AfPacketFlags,
    /// Number of receive queues.
    #[api(default = 1)]
    pub num_rx_queues: u16,
    /// Number of transmit queues.
    #[api(default = 1)]
    pub num_tx_queues: u16,
}

/// Reply to [`AfPacketCreateV3`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct AfPacketCreateV3Reply {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// The service.
pub static SERVICE: Call<Control, AfPacketCreateV3, AfPacketCreateV3Reply> =
    Call::new(&AF_PACKET, handle);

fn handle(c: &mut Control, rq: AfPacketCreateV3) -> Result<AfPacketCreateV3Reply, Retval> {
    let mac = chosen(rq.hw_addr, rq.use_random_hw_addr);
    let mut config = config(&rq.host_if_name, mac, rq.num_rx_queues);
    config.options.rx_size = size(rq.rx_frame_size);
    config.options.tx_size = size(rq.tx_frame_size);
    config.options.rx_per_block = size(rq.rx_frames_per_block);
    config.options.tx_per_block = size(rq.tx_frames_per_block);
    config.options.tx_queues = rq.num_tx_queues.max(1);
    apply(rq.flags, &mut config.options)?;
    config.options.framing = match rq.mode {
        AfPacketMode(0) | AfPacketMode::ETHERNET => Framing::Ethernet,
        AfPacketMode::IP => Framing::Ip,
        _ => return Err(Retval::INVALID_VALUE),
    };
    Ok(AfPacketCreateV3Reply { sw_if_index: create(c, config)? })
}
