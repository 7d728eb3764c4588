//! `af_packet_create_v3`: creates a host interface.

use crate::api_types::{apply, chosen, config, create, size};
use crate::message_types::{AF_PACKET, AfPacketCreateV3, AfPacketCreateV3Reply, AfPacketMode};
use thalweg_api::{Call, Retval};
use thalweg_device_linux::Framing;
use thalweg_graph::Control;

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
