//! Messages that the files of the folder `api` handle, and types of their fields.
//!
//! Written by `cargo xtask api` from VPP's descriptions, by which a unit test of `xtask` keeps it
//! current: add a file for a request, then run the command.
#![allow(missing_docs, reason = "VPP's `.api` files say what fields mean")]

use thalweg_api::schema::Module;
use thalweg_api::types::{InterfaceIndex, Ip6Address};
use thalweg_api::{Message, api_enum};

/// Module `ip6_dad`.
pub static IP6_DAD: Module = Module { name: "ip6_dad", folder: "core", version: "1.0.0" };

/// Message `ip6_dad_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct Ip6DadDump;

/// Message `ip6_dad_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct Ip6DadDetails {
    pub enabled: bool,
    pub dad_transmits: u8,
    pub dad_retransmit_delay: f64,
}

/// Message `ip6_dad_enable_disable`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct Ip6DadEnableDisable {
    #[api(default = "true")]
    pub enable: bool,
    #[api(default = 1)]
    pub dad_transmits: u8,
    #[api(default = 1.0)]
    pub dad_retransmit_delay: f64,
}

/// Module `ip6_nd`.
pub static IP6_ND: Module = Module { name: "ip6_nd", folder: "core", version: "1.1.0" };

/// Message `ip6nd_proxy_add_del`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct Ip6ndProxyAddDel {
    pub sw_if_index: InterfaceIndex,
    pub is_add: bool,
    pub ip: Ip6Address,
}

/// Message `ip6nd_proxy_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct Ip6ndProxyDump;

/// Message `ip6nd_proxy_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct Ip6ndProxyDetails {
    pub sw_if_index: InterfaceIndex,
    pub ip: Ip6Address,
}

/// Module `ip`.
pub static IP: Module = Module { name: "ip", folder: "core", version: "3.2.0" };

/// Message `sw_interface_ip6_enable_disable`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceIp6EnableDisable {
    pub sw_if_index: InterfaceIndex,
    pub enable: bool,
}

/// Message `sw_interface_ip6_get_link_local_address`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct SwInterfaceIp6GetLinkLocalAddress {
    pub sw_if_index: InterfaceIndex,
}

/// Message `sw_interface_ip6_get_link_local_address_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct SwInterfaceIp6GetLinkLocalAddressReply {
    pub ip: Ip6Address,
}

/// Message `sw_interface_ip6_set_link_local_address`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceIp6SetLinkLocalAddress {
    pub sw_if_index: InterfaceIndex,
    pub ip: Ip6Address,
}

/// Message `want_ip6_dad_events`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct WantIp6DadEvents {
    pub enable_disable: bool,
    pub pid: u32,
}

api_enum! {
    /// Type `ip6_dad_state`.
    pub struct Ip6DadState: u8 = "ip6_dad_state" {
        IDLE = 0, "IP6_DAD_STATE_IDLE";
        TENTATIVE = 1, "IP6_DAD_STATE_TENTATIVE";
        PREFERRED = 2, "IP6_DAD_STATE_PREFERRED";
        DUPLICATE = 3, "IP6_DAD_STATE_DUPLICATE";
    }
}

/// Message `ip6_dad_event`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(event)]
pub struct Ip6DadEvent {
    pub pid: u32,
    pub state: Ip6DadState,
    pub sw_if_index: InterfaceIndex,
    pub address: Ip6Address,
    pub dad_count: u8,
    pub dad_transmits: u8,
}
