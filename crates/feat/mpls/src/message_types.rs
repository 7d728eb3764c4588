//! Messages that the files of the folder `api` handle, and types of their fields.
//!
//! Written by `cargo xtask api` from VPP's descriptions, by which a unit test of `xtask` keeps it
//! current: add a file for a request, then run the command.
#![allow(missing_docs, reason = "VPP's `.api` files say what fields mean")]

use thalweg_api::schema::Module;
use thalweg_api::types::fib::FibPath;
use thalweg_api::types::{InterfaceIndex, Prefix};
use thalweg_api::{ApiType, Message, Text};

/// Module `mpls`.
pub static MPLS: Module = Module { name: "mpls", folder: "core", version: "1.1.1" };

/// Message `mpls_interface_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct MplsInterfaceDump {
    #[api(default = 4294967295)]
    pub sw_if_index: InterfaceIndex,
}

/// Message `mpls_interface_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct MplsInterfaceDetails {
    pub sw_if_index: InterfaceIndex,
}

/// Message `mpls_ip_bind_unbind`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct MplsIpBindUnbind {
    pub mb_mpls_table_id: u32,
    pub mb_label: u32,
    pub mb_ip_table_id: u32,
    pub mb_is_bind: bool,
    pub mb_prefix: Prefix,
}

/// Type `mpls_route`.
#[derive(Clone, Debug, Default, PartialEq, Eq, ApiType)]
pub struct MplsRoute {
    pub mr_table_id: u32,
    pub mr_label: u32,
    pub mr_eos: u8,
    pub mr_eos_proto: u8,
    pub mr_is_multicast: bool,
    #[api(count = "mr_n_paths: u8")]
    pub mr_paths: Vec<FibPath>,
}

/// Message `mpls_route_add_del`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct MplsRouteAddDel {
    pub mr_is_add: bool,
    pub mr_is_multipath: bool,
    pub mr_route: MplsRoute,
}

/// Message `mpls_route_add_del_reply`.
#[derive(Clone, Debug, PartialEq, Message)]
#[api(reply)]
pub struct MplsRouteAddDelReply {
    pub stats_index: u32,
}

/// Type `mpls_table`.
#[derive(Clone, Debug, Default, PartialEq, Eq, ApiType)]
pub struct MplsTable {
    pub mt_table_id: u32,
    pub mt_name: Text<64>,
}

/// Message `mpls_route_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct MplsRouteDump {
    pub table: MplsTable,
}

/// Message `mpls_route_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct MplsRouteDetails {
    pub mr_route: MplsRoute,
}

/// Message `mpls_table_add_del`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct MplsTableAddDel {
    #[api(default = "true")]
    pub mt_is_add: bool,
    pub mt_table: MplsTable,
}

/// Message `mpls_table_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct MplsTableDump;

/// Message `mpls_table_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct MplsTableDetails {
    pub mt_table: MplsTable,
}

/// Type `mpls_tunnel`.
#[derive(Clone, Debug, Default, PartialEq, Eq, ApiType)]
pub struct MplsTunnel {
    pub mt_sw_if_index: InterfaceIndex,
    pub mt_tunnel_index: u32,
    pub mt_l2_only: bool,
    pub mt_is_multicast: bool,
    pub mt_tag: Text<64>,
    #[api(count = "mt_n_paths: u8")]
    pub mt_paths: Vec<FibPath>,
}

/// Message `mpls_tunnel_add_del`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct MplsTunnelAddDel {
    #[api(default = "true")]
    pub mt_is_add: bool,
    pub mt_tunnel: MplsTunnel,
}

/// Message `mpls_tunnel_add_del_reply`.
#[derive(Clone, Debug, PartialEq, Message)]
#[api(reply)]
pub struct MplsTunnelAddDelReply {
    pub sw_if_index: InterfaceIndex,
    pub tunnel_index: u32,
}

/// Message `mpls_tunnel_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct MplsTunnelDump {
    #[api(default = 4294967295)]
    pub sw_if_index: InterfaceIndex,
}

/// Message `mpls_tunnel_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct MplsTunnelDetails {
    pub mt_tunnel: MplsTunnel,
}

/// Message `sw_interface_set_mpls_enable`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetMplsEnable {
    pub sw_if_index: InterfaceIndex,
    #[api(default = "true")]
    pub enable: bool,
}
