//! Messages that the files of the folder `api` handle, and types of their fields.
//!
//! Written by `cargo xtask api` from VPP's descriptions, by which a unit test of `xtask` keeps it
//! current: add a file for a request, then run the command.
#![allow(missing_docs, reason = "VPP's `.api` files say what fields mean")]

use thalweg_api::schema::Module;
use thalweg_api::types::fib::FibPath;
use thalweg_api::types::{Address, AddressFamily, AddressWithPrefix, InterfaceIndex, Prefix};
use thalweg_api::{ApiType, Message, Text};

/// Module `ip`.
pub static IP: Module = Module { name: "ip", folder: "core", version: "3.2.0" };

/// Type `punt_redirect_v2`.
#[derive(Clone, Debug, Default, PartialEq, Eq, ApiType)]
pub struct PuntRedirectV2 {
    #[api(default = 4294967295)]
    pub rx_sw_if_index: InterfaceIndex,
    pub af: AddressFamily,
    #[api(count = "n_paths: u32")]
    pub paths: Vec<FibPath>,
}

/// Message `add_del_ip_punt_redirect_v2`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct AddDelIpPuntRedirectV2 {
    #[api(default = "true")]
    pub is_add: bool,
    pub punt: PuntRedirectV2,
}

/// Module `fib`.
pub static FIB: Module = Module { name: "fib", folder: "core", version: "1.0.0" };

/// Message `fib_source_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct FibSourceDump;

/// Type `fib_source`.
#[derive(Clone, Debug, Default, PartialEq, Eq, ApiType)]
pub struct FibSource {
    pub priority: u8,
    pub id: u8,
    pub name: Text<64>,
}

/// Message `fib_source_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct FibSourceDetails {
    pub src: FibSource,
}

/// Message `ip_address_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct IpAddressDump {
    pub sw_if_index: InterfaceIndex,
    pub is_ipv6: bool,
}

/// Message `ip_address_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct IpAddressDetails {
    pub sw_if_index: InterfaceIndex,
    pub prefix: AddressWithPrefix,
}

/// Message `ip_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct IpDump {
    pub is_ipv6: bool,
}

/// Message `ip_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct IpDetails {
    pub sw_if_index: InterfaceIndex,
    pub is_ipv6: bool,
}

/// Message `ip_path_mtu_get`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct IpPathMtuGet {
    pub cursor: u32,
}

/// Type `ip_path_mtu`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ApiType)]
pub struct IpPathMtu {
    pub client_index: u32,
    pub context: u32,
    pub table_id: u32,
    pub nh: Address,
    pub path_mtu: u16,
}

/// Message `ip_path_mtu_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct IpPathMtuDetails {
    pub pmtu: IpPathMtu,
}

/// Message `ip_path_mtu_get_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct IpPathMtuGetReply {
    pub cursor: u32,
}

/// Message `ip_path_mtu_replace_begin`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct IpPathMtuReplaceBegin;

/// Message `ip_path_mtu_replace_end`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct IpPathMtuReplaceEnd;

/// Message `ip_path_mtu_update`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct IpPathMtuUpdate {
    pub pmtu: IpPathMtu,
}

/// Type `punt_redirect`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ApiType)]
pub struct PuntRedirect {
    pub rx_sw_if_index: InterfaceIndex,
    pub tx_sw_if_index: InterfaceIndex,
    pub nh: Address,
}

/// Message `ip_punt_redirect`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply, deprecated)]
pub struct IpPuntRedirect {
    pub punt: PuntRedirect,
    #[api(default = "true")]
    pub is_add: bool,
}

/// Message `ip_punt_redirect_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, deprecated)]
pub struct IpPuntRedirectDump {
    pub sw_if_index: InterfaceIndex,
    pub is_ipv6: bool,
}

/// Message `ip_punt_redirect_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details, deprecated)]
pub struct IpPuntRedirectDetails {
    pub punt: PuntRedirect,
}

/// Message `ip_punt_redirect_v2_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct IpPuntRedirectV2Dump {
    pub sw_if_index: InterfaceIndex,
    pub af: AddressFamily,
}

/// Message `ip_punt_redirect_v2_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct IpPuntRedirectV2Details {
    pub punt: PuntRedirectV2,
}

/// Type `ip_route`.
#[derive(Clone, Debug, Default, PartialEq, Eq, ApiType)]
pub struct IpRoute {
    pub table_id: u32,
    pub stats_index: u32,
    pub prefix: Prefix,
    #[api(count = "n_paths: u8")]
    pub paths: Vec<FibPath>,
}

/// Message `ip_route_add_del`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct IpRouteAddDel {
    #[api(default = "true")]
    pub is_add: bool,
    pub is_multipath: bool,
    pub route: IpRoute,
}

/// Message `ip_route_add_del_reply`.
#[derive(Clone, Debug, PartialEq, Message)]
#[api(reply)]
pub struct IpRouteAddDelReply {
    pub stats_index: u32,
}

/// Type `ip_route_v2`.
#[derive(Clone, Debug, Default, PartialEq, Eq, ApiType)]
pub struct IpRouteV2 {
    pub table_id: u32,
    pub stats_index: u32,
    pub prefix: Prefix,
    pub src: u8,
    #[api(count = "n_paths: u8", at = "src")]
    pub paths: Vec<FibPath>,
}

/// Message `ip_route_add_del_v2`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, in_progress)]
pub struct IpRouteAddDelV2 {
    #[api(default = "true")]
    pub is_add: bool,
    pub is_multipath: bool,
    pub route: IpRouteV2,
}

/// Message `ip_route_add_del_v2_reply`.
#[derive(Clone, Debug, PartialEq, Message)]
#[api(reply, in_progress)]
pub struct IpRouteAddDelV2Reply {
    pub stats_index: u32,
}

/// Type `ip_table`.
#[derive(Clone, Debug, Default, PartialEq, Eq, ApiType)]
pub struct IpTable {
    pub table_id: u32,
    pub is_ip6: bool,
    pub name: Text<64>,
}

/// Message `ip_route_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct IpRouteDump {
    pub table: IpTable,
}

/// Message `ip_route_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct IpRouteDetails {
    pub route: IpRoute,
}

/// Message `ip_route_lookup`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct IpRouteLookup {
    pub table_id: u32,
    pub exact: u8,
    pub prefix: Prefix,
}

/// Message `ip_route_lookup_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct IpRouteLookupReply {
    pub route: IpRoute,
}

/// Message `ip_route_lookup_v2`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, in_progress)]
pub struct IpRouteLookupV2 {
    pub table_id: u32,
    pub exact: u8,
    pub prefix: Prefix,
}

/// Message `ip_route_lookup_v2_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply, in_progress)]
pub struct IpRouteLookupV2Reply {
    pub route: IpRouteV2,
}

/// Message `ip_route_v2_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, in_progress)]
pub struct IpRouteV2Dump {
    pub src: u8,
    pub table: IpTable,
}

/// Message `ip_route_v2_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details, in_progress)]
pub struct IpRouteV2Details {
    pub route: IpRouteV2,
}

/// Message `ip_table_add_del`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct IpTableAddDel {
    #[api(default = "true")]
    pub is_add: bool,
    pub table: IpTable,
}

/// Message `ip_table_add_del_v2`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct IpTableAddDelV2 {
    pub table: IpTable,
    #[api(default = "true")]
    pub create_mfib: bool,
    #[api(default = "true")]
    pub is_add: bool,
}

/// Message `ip_table_allocate`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct IpTableAllocate {
    pub table: IpTable,
}

/// Message `ip_table_allocate_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct IpTableAllocateReply {
    pub table: IpTable,
}

/// Message `ip_table_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct IpTableDump;

/// Message `ip_table_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct IpTableDetails {
    pub table: IpTable,
}

/// Message `ip_table_flush`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct IpTableFlush {
    pub table: IpTable,
}

/// Message `ip_table_replace_begin`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct IpTableReplaceBegin {
    pub table: IpTable,
}

/// Message `ip_table_replace_end`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct IpTableReplaceEnd {
    pub table: IpTable,
}

/// Message `ip_unnumbered_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct IpUnnumberedDump {
    #[api(default = 4294967295)]
    pub sw_if_index: InterfaceIndex,
}

/// Message `ip_unnumbered_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct IpUnnumberedDetails {
    pub sw_if_index: InterfaceIndex,
    pub ip_sw_if_index: InterfaceIndex,
}

/// Module `interface`.
pub static INTERFACE: Module = Module { name: "interface", folder: "core", version: "3.2.4" };

/// Message `sw_interface_add_del_address`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceAddDelAddress {
    pub sw_if_index: InterfaceIndex,
    pub is_add: bool,
    pub del_all: bool,
    pub prefix: AddressWithPrefix,
}

/// Message `sw_interface_address_replace_begin`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceAddressReplaceBegin;

/// Message `sw_interface_address_replace_end`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceAddressReplaceEnd;

/// Message `sw_interface_get_table`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct SwInterfaceGetTable {
    pub sw_if_index: InterfaceIndex,
    pub is_ipv6: bool,
}

/// Message `sw_interface_get_table_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct SwInterfaceGetTableReply {
    pub vrf_id: u32,
}

/// Message `sw_interface_ip4_enable_disable`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceIp4EnableDisable {
    pub sw_if_index: InterfaceIndex,
    pub enable: bool,
}

/// Message `sw_interface_set_table`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetTable {
    pub sw_if_index: InterfaceIndex,
    pub is_ipv6: bool,
    pub vrf_id: u32,
}

/// Message `sw_interface_set_unnumbered`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetUnnumbered {
    pub sw_if_index: InterfaceIndex,
    pub unnumbered_sw_if_index: InterfaceIndex,
    pub is_add: bool,
}

/// Module `ping`.
pub static PING: Module = Module { name: "ping", folder: "plugins", version: "0.1.0" };

/// Message `want_ping_finished_events`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct WantPingFinishedEvents {
    pub address: Address,
    #[api(default = 1)]
    pub repeat: u32,
    #[api(default = 1.0)]
    pub interval: f64,
}

/// Message `ping_finished_event`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(event)]
pub struct PingFinishedEvent {
    pub request_count: u32,
    pub reply_count: u32,
}
