//! Messages that the files of the folder `api` handle, and types of their fields.
//!
//! Written by `cargo xtask api` from VPP's descriptions, by which a unit test of `xtask` keeps it
//! current: add a file for a request, then run the command.
#![allow(missing_docs, reason = "VPP's `.api` files say what fields mean")]

use thalweg_api::schema::Module;
use thalweg_api::types::{Address, AddressFamily, InterfaceIndex, MacAddr};
use thalweg_api::{ApiType, Message, api_enum};

/// Module `ip_neighbor`.
pub static IP_NEIGHBOR: Module = Module { name: "ip_neighbor", folder: "core", version: "1.0.1" };

api_enum! {
    /// Type `ip_neighbor_flags`.
    pub struct IpNeighborFlags: u8 = "ip_neighbor_flags" {
        NONE = 0, "IP_API_NEIGHBOR_FLAG_NONE";
        STATIC = 1, "IP_API_NEIGHBOR_FLAG_STATIC";
        NO_FIB_ENTRY = 2, "IP_API_NEIGHBOR_FLAG_NO_FIB_ENTRY";
    }
}

/// Type `ip_neighbor`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ApiType)]
pub struct IpNeighbor {
    pub sw_if_index: InterfaceIndex,
    pub flags: IpNeighborFlags,
    pub mac_address: MacAddr,
    pub ip_address: Address,
}

/// Message `ip_neighbor_add_del`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct IpNeighborAddDel {
    pub is_add: bool,
    pub neighbor: IpNeighbor,
}

/// Message `ip_neighbor_add_del_reply`.
#[derive(Clone, Debug, PartialEq, Message)]
#[api(reply)]
pub struct IpNeighborAddDelReply {
    pub stats_index: u32,
}

/// Message `ip_neighbor_config`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct IpNeighborConfig {
    pub af: AddressFamily,
    pub max_number: u32,
    pub max_age: u32,
    pub recycle: bool,
}

/// Message `ip_neighbor_config_get`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, in_progress)]
pub struct IpNeighborConfigGet {
    pub af: AddressFamily,
}

/// Message `ip_neighbor_config_get_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply, in_progress)]
pub struct IpNeighborConfigGetReply {
    pub af: AddressFamily,
    pub max_number: u32,
    pub max_age: u32,
    pub recycle: bool,
}

/// Message `ip_neighbor_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct IpNeighborDump {
    #[api(default = 4294967295)]
    pub sw_if_index: InterfaceIndex,
    pub af: AddressFamily,
}

/// Message `ip_neighbor_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct IpNeighborDetails {
    pub age: f64,
    pub neighbor: IpNeighbor,
}

/// Message `ip_neighbor_flush`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct IpNeighborFlush {
    pub af: AddressFamily,
    #[api(default = 4294967295)]
    pub sw_if_index: InterfaceIndex,
}

/// Message `ip_neighbor_replace_begin`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct IpNeighborReplaceBegin;

/// Message `ip_neighbor_replace_end`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct IpNeighborReplaceEnd;

/// Message `want_ip_neighbor_events`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply, deprecated)]
pub struct WantIpNeighborEvents {
    pub enable: bool,
    pub pid: u32,
    pub ip: Address,
    #[api(default = 4294967295)]
    pub sw_if_index: InterfaceIndex,
}

/// Message `ip_neighbor_event`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(event, deprecated)]
pub struct IpNeighborEvent {
    pub pid: u32,
    pub neighbor: IpNeighbor,
}

/// Message `want_ip_neighbor_events_v2`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct WantIpNeighborEventsV2 {
    pub enable: bool,
    pub pid: u32,
    pub ip: Address,
    #[api(default = 4294967295)]
    pub sw_if_index: InterfaceIndex,
}

api_enum! {
    /// Type `ip_neighbor_event_flags`.
    pub struct IpNeighborEventFlags: u32 = "ip_neighbor_event_flags" {
        ADDED = 1, "IP_NEIGHBOR_API_EVENT_FLAG_ADDED";
        REMOVED = 2, "IP_NEIGHBOR_API_EVENT_FLAG_REMOVED";
    }
}

/// Message `ip_neighbor_event_v2`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(event)]
pub struct IpNeighborEventV2 {
    pub pid: u32,
    pub flags: IpNeighborEventFlags,
    pub neighbor: IpNeighbor,
}
