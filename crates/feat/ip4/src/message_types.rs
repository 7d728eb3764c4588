//! Messages that the files of the folder `api` handle, and types of their fields.
//!
//! Written by `cargo xtask api` from VPP's descriptions, by which a unit test of `xtask` keeps it
//! current: add a file for a request, then run the command.
#![allow(missing_docs, reason = "VPP's `.api` files say what fields mean")]

use thalweg_api::schema::Module;
use thalweg_api::types::{InterfaceIndex, Ip4Address};
use thalweg_api::{ApiType, Message};

/// Module `arp`.
pub static ARP: Module = Module { name: "arp", folder: "core", version: "1.0.0" };

/// Type `proxy_arp`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ApiType)]
pub struct ProxyArp {
    pub table_id: u32,
    pub low: Ip4Address,
    pub hi: Ip4Address,
}

/// Message `proxy_arp_add_del`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct ProxyArpAddDel {
    pub is_add: bool,
    pub proxy: ProxyArp,
}

/// Message `proxy_arp_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct ProxyArpDump;

/// Message `proxy_arp_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct ProxyArpDetails {
    pub proxy: ProxyArp,
}

/// Message `proxy_arp_intfc_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct ProxyArpIntfcDump;

/// Message `proxy_arp_intfc_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct ProxyArpIntfcDetails {
    pub sw_if_index: u32,
}

/// Message `proxy_arp_intfc_enable_disable`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct ProxyArpIntfcEnableDisable {
    pub sw_if_index: InterfaceIndex,
    pub enable: bool,
}

/// Module `interface`.
pub static INTERFACE: Module = Module { name: "interface", folder: "core", version: "3.2.4" };

/// Message `sw_interface_set_ip_directed_broadcast`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetIpDirectedBroadcast {
    pub sw_if_index: InterfaceIndex,
    pub enable: bool,
}
