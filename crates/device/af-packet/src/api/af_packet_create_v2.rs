//! `af_packet_create_v2`: creates a host interface, for older clients.

use crate::api_types::{apply, chosen, config, create, size};
use crate::message_types::{AF_PACKET, AfPacketCreateV2, AfPacketCreateV2Reply, AfPacketFlags};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
