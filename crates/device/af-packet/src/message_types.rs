//! Messages that the files of the folder `api` handle, and types of their fields.
//!
//! Written by `cargo xtask api` from VPP's descriptions, by which a unit test of `xtask` keeps it
//! current: add a file for a request, then run the command.
#![allow(missing_docs, reason = "VPP's `.api` files say what fields mean")]

use thalweg_api::schema::Module;
use thalweg_api::types::{InterfaceIndex, MacAddr};
use thalweg_api::{Message, Text, api_enum};

/// Module `af_packet`.
pub static AF_PACKET: Module = Module { name: "af_packet", folder: "plugins", version: "2.0.0" };

/// Message `af_packet_create`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, deprecated)]
pub struct AfPacketCreate {
    pub hw_addr: MacAddr,
    pub use_random_hw_addr: bool,
    pub host_if_name: Text<64>,
}

/// Message `af_packet_create_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply, deprecated)]
pub struct AfPacketCreateReply {
    pub sw_if_index: InterfaceIndex,
}

/// Message `af_packet_create_v2`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, deprecated)]
pub struct AfPacketCreateV2 {
    pub hw_addr: MacAddr,
    pub use_random_hw_addr: bool,
    pub host_if_name: Text<64>,
    pub rx_frame_size: u32,
    pub tx_frame_size: u32,
    pub rx_frames_per_block: u32,
    pub tx_frames_per_block: u32,
    pub flags: u32,
    #[api(default = 1)]
    pub num_rx_queues: u16,
}

/// Message `af_packet_create_v2_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply, deprecated)]
pub struct AfPacketCreateV2Reply {
    pub sw_if_index: InterfaceIndex,
}

api_enum! {
    /// Type `af_packet_mode`.
    pub struct AfPacketMode: u32 = "af_packet_mode" {
        ETHERNET = 1, "AF_PACKET_API_MODE_ETHERNET";
        IP = 2, "AF_PACKET_API_MODE_IP";
    }
}

api_enum! {
    /// Type `af_packet_flags`.
    pub struct AfPacketFlags: u32 = "af_packet_flags" {
        QDISC_BYPASS = 1, "AF_PACKET_API_FLAG_QDISC_BYPASS";
        CKSUM_GSO = 2, "AF_PACKET_API_FLAG_CKSUM_GSO";
        VERSION_2 = 8, later "AF_PACKET_API_FLAG_VERSION_2";
    }
}

/// Message `af_packet_create_v3`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct AfPacketCreateV3 {
    pub mode: AfPacketMode,
    pub hw_addr: MacAddr,
    pub use_random_hw_addr: bool,
    pub host_if_name: Text<64>,
    pub rx_frame_size: u32,
    pub tx_frame_size: u32,
    pub rx_frames_per_block: u32,
    pub tx_frames_per_block: u32,
    pub flags: AfPacketFlags,
    #[api(default = 1)]
    pub num_rx_queues: u16,
    #[api(default = 1)]
    pub num_tx_queues: u16,
}

/// Message `af_packet_create_v3_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct AfPacketCreateV3Reply {
    pub sw_if_index: InterfaceIndex,
}

/// Message `af_packet_delete`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct AfPacketDelete {
    pub host_if_name: Text<64>,
}

/// Message `af_packet_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct AfPacketDump;

/// Message `af_packet_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct AfPacketDetails {
    pub sw_if_index: InterfaceIndex,
    pub host_if_name: Text<64>,
}

/// Message `af_packet_set_l4_cksum_offload`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct AfPacketSetL4CksumOffload {
    pub sw_if_index: InterfaceIndex,
    pub set: bool,
}
