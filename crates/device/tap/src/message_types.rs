//! Messages that the files of the folder `api` handle, and types of their fields.
//!
//! Written by `cargo xtask api` from VPP's descriptions, by which a unit test of `xtask` keeps it
//! current: add a file for a request, then run the command.
#![allow(missing_docs, reason = "VPP's `.api` files say what fields mean")]

use thalweg_api::schema::Module;
use thalweg_api::types::{InterfaceIndex, Ip4Address, Ip6Address, MacAddr};
use thalweg_api::{ApiType, Message, Text, api_alias, api_enum};

/// Module `tapv2`.
pub static TAPV2: Module = Module { name: "tapv2", folder: "plugins", version: "4.0.0" };

/// Message `sw_interface_tap_v2_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct SwInterfaceTapV2Dump {
    #[api(default = 4294967295)]
    pub sw_if_index: InterfaceIndex,
}

/// Type `ip4_prefix`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ApiType)]
pub struct Ip4Prefix {
    pub address: Ip4Address,
    pub len: u8,
}

api_alias! {
    /// Type `ip4_address_with_prefix`.
    #[derive(Default, Eq)]
    pub struct Ip4AddressWithPrefix(Ip4Prefix) = "ip4_address_with_prefix";
}

/// Type `ip6_prefix`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ApiType)]
pub struct Ip6Prefix {
    pub address: Ip6Address,
    pub len: u8,
}

api_alias! {
    /// Type `ip6_address_with_prefix`.
    #[derive(Default, Eq)]
    pub struct Ip6AddressWithPrefix(Ip6Prefix) = "ip6_address_with_prefix";
}

api_enum! {
    /// Type `tap_flags`.
    pub struct TapFlags: u32 = "tap_flags" {
        GSO = 1, "TAP_API_FLAG_GSO";
        CSUM_OFFLOAD = 2, "TAP_API_FLAG_CSUM_OFFLOAD";
        PERSIST = 4, "TAP_API_FLAG_PERSIST";
        ATTACH = 8, "TAP_API_FLAG_ATTACH";
        TUN = 16, "TAP_API_FLAG_TUN";
        GRO_COALESCE = 32, "TAP_API_FLAG_GRO_COALESCE";
        PACKED = 64, later "TAP_API_FLAG_PACKED";
        IN_ORDER = 128, later "TAP_API_FLAG_IN_ORDER";
        CONSISTENT_QP = 256, later "TAP_API_FLAG_CONSISTENT_QP";
    }
}

/// Message `sw_interface_tap_v2_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct SwInterfaceTapV2Details {
    pub sw_if_index: u32,
    pub id: u32,
    pub tx_ring_sz: u16,
    pub rx_ring_sz: u16,
    pub host_mtu_size: u32,
    pub host_mac_addr: MacAddr,
    pub host_ip4_prefix: Ip4AddressWithPrefix,
    pub host_ip6_prefix: Ip6AddressWithPrefix,
    pub tap_flags: TapFlags,
    pub dev_name: Text<64>,
    pub host_if_name: Text<64>,
    pub host_namespace: Text<64>,
    pub host_bridge: Text<64>,
}

/// Message `tap_create_v2`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, deprecated)]
pub struct TapCreateV2 {
    #[api(default = 4294967295)]
    pub id: u32,
    #[api(default = "true")]
    pub use_random_mac: bool,
    pub mac_address: MacAddr,
    #[api(default = 1)]
    pub num_rx_queues: u8,
    #[api(default = 256)]
    pub tx_ring_sz: u16,
    #[api(default = 256)]
    pub rx_ring_sz: u16,
    pub host_mtu_set: bool,
    pub host_mtu_size: u32,
    pub host_mac_addr_set: bool,
    pub host_mac_addr: MacAddr,
    pub host_ip4_prefix_set: bool,
    pub host_ip4_prefix: Ip4AddressWithPrefix,
    pub host_ip6_prefix_set: bool,
    pub host_ip6_prefix: Ip6AddressWithPrefix,
    pub host_ip4_gw_set: bool,
    pub host_ip4_gw: Ip4Address,
    pub host_ip6_gw_set: bool,
    pub host_ip6_gw: Ip6Address,
    pub tap_flags: TapFlags,
    pub host_namespace_set: bool,
    pub host_namespace: Text<64>,
    pub host_if_name_set: bool,
    pub host_if_name: Text<64>,
    pub host_bridge_set: bool,
    pub host_bridge: Text<64>,
    pub tag: String,
}

/// Message `tap_create_v2_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply, deprecated)]
pub struct TapCreateV2Reply {
    pub sw_if_index: InterfaceIndex,
}

/// Message `tap_create_v3`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct TapCreateV3 {
    #[api(default = 4294967295)]
    pub id: u32,
    #[api(default = "true")]
    pub use_random_mac: bool,
    pub mac_address: MacAddr,
    #[api(default = 1)]
    pub num_rx_queues: u16,
    #[api(default = 1)]
    pub num_tx_queues: u16,
    #[api(default = 256)]
    pub tx_ring_sz: u16,
    #[api(default = 256)]
    pub rx_ring_sz: u16,
    pub host_mtu_set: bool,
    pub host_mtu_size: u32,
    pub host_mac_addr_set: bool,
    pub host_mac_addr: MacAddr,
    pub host_ip4_prefix_set: bool,
    pub host_ip4_prefix: Ip4AddressWithPrefix,
    pub host_ip6_prefix_set: bool,
    pub host_ip6_prefix: Ip6AddressWithPrefix,
    pub host_ip4_gw_set: bool,
    pub host_ip4_gw: Ip4Address,
    pub host_ip6_gw_set: bool,
    pub host_ip6_gw: Ip6Address,
    pub tap_flags: TapFlags,
    pub host_namespace_set: bool,
    pub host_namespace: Text<64>,
    pub host_if_name_set: bool,
    pub host_if_name: Text<64>,
    pub host_bridge_set: bool,
    pub host_bridge: Text<64>,
    pub tag: String,
}

/// Message `tap_create_v3_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct TapCreateV3Reply {
    pub sw_if_index: InterfaceIndex,
}

/// Message `tap_delete_v2`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct TapDeleteV2 {
    pub sw_if_index: InterfaceIndex,
}
