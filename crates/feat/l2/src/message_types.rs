//! Messages that the files of the folder `api` handle, and types of their fields.
//!
//! Written by `cargo xtask api` from VPP's descriptions, by which a unit test of `xtask` keeps it
//! current: add a file for a request, then run the command.
#![allow(missing_docs, reason = "VPP's `.api` files say what fields mean")]

use thalweg_api::schema::Module;
use thalweg_api::types::{Address, InterfaceIndex, MacAddr};
use thalweg_api::{ApiType, Message, Text, api_enum};

/// Module `l2`.
pub static L2: Module = Module { name: "l2", folder: "core", version: "3.3.0" };

/// Type `bd_ip_mac`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ApiType)]
pub struct BdIpMac {
    pub bd_id: u32,
    pub ip: Address,
    pub mac: MacAddr,
}

/// Message `bd_ip_mac_add_del`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct BdIpMacAddDel {
    #[api(default = "true")]
    pub is_add: bool,
    pub entry: BdIpMac,
}

/// Message `bd_ip_mac_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct BdIpMacDump {
    pub bd_id: u32,
}

/// Message `bd_ip_mac_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct BdIpMacDetails {
    pub entry: BdIpMac,
}

/// Message `bd_ip_mac_flush`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct BdIpMacFlush {
    pub bd_id: u32,
}

/// Message `bridge_domain_add_del`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply, deprecated)]
pub struct BridgeDomainAddDel {
    pub bd_id: u32,
    pub flood: bool,
    pub uu_flood: bool,
    pub forward: bool,
    pub learn: bool,
    pub arp_term: bool,
    pub arp_ufwd: bool,
    pub mac_age: u8,
    pub bd_tag: Text<64>,
    #[api(default = "true")]
    pub is_add: bool,
}

/// Message `bridge_domain_add_del_v2`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct BridgeDomainAddDelV2 {
    pub bd_id: u32,
    pub flood: bool,
    pub uu_flood: bool,
    pub forward: bool,
    pub learn: bool,
    pub arp_term: bool,
    pub arp_ufwd: bool,
    pub mac_age: u8,
    pub bd_tag: Text<64>,
    #[api(default = "true")]
    pub is_add: bool,
}

/// Message `bridge_domain_add_del_v2_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct BridgeDomainAddDelV2Reply {
    pub bd_id: u32,
}

/// Message `bridge_domain_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct BridgeDomainDump {
    #[api(default = 4294967295)]
    pub bd_id: u32,
    #[api(default = 4294967295)]
    pub sw_if_index: InterfaceIndex,
}

/// Type `bridge_domain_sw_if`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ApiType)]
pub struct BridgeDomainSwIf {
    pub context: u32,
    pub sw_if_index: InterfaceIndex,
    pub shg: u8,
}

/// Message `bridge_domain_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct BridgeDomainDetails {
    pub bd_id: u32,
    pub flood: bool,
    pub uu_flood: bool,
    pub forward: bool,
    pub learn: bool,
    pub arp_term: bool,
    pub arp_ufwd: bool,
    pub mac_age: u8,
    pub bd_tag: Text<64>,
    pub bvi_sw_if_index: InterfaceIndex,
    pub uu_fwd_sw_if_index: InterfaceIndex,
    #[api(count = "n_sw_ifs: u32")]
    pub sw_if_details: Vec<BridgeDomainSwIf>,
}

/// Message `bridge_domain_set_default_learn_limit`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct BridgeDomainSetDefaultLearnLimit {
    pub learn_limit: u32,
}

/// Message `bridge_domain_set_learn_limit`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct BridgeDomainSetLearnLimit {
    pub bd_id: u32,
    pub learn_limit: u32,
}

/// Message `bridge_domain_set_mac_age`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct BridgeDomainSetMacAge {
    pub bd_id: u32,
    pub mac_age: u8,
}

api_enum! {
    /// Type `bd_flags`.
    pub struct BdFlags: u32 = "bd_flags" {
        NONE = 0, "BRIDGE_API_FLAG_NONE";
        LEARN = 1, "BRIDGE_API_FLAG_LEARN";
        FWD = 2, "BRIDGE_API_FLAG_FWD";
        FLOOD = 4, "BRIDGE_API_FLAG_FLOOD";
        UU_FLOOD = 8, "BRIDGE_API_FLAG_UU_FLOOD";
        ARP_TERM = 16, "BRIDGE_API_FLAG_ARP_TERM";
        ARP_UFWD = 32, "BRIDGE_API_FLAG_ARP_UFWD";
    }
}

/// Message `bridge_flags`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct BridgeFlags {
    pub bd_id: u32,
    pub is_set: bool,
    pub flags: BdFlags,
}

/// Message `bridge_flags_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct BridgeFlagsReply {
    pub resulting_feature_bitmap: u32,
}

/// Message `bvi_create`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct BviCreate {
    pub mac: MacAddr,
    #[api(default = 4294967295)]
    pub user_instance: u32,
}

/// Message `bvi_create_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct BviCreateReply {
    pub sw_if_index: InterfaceIndex,
}

/// Message `bvi_delete`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct BviDelete {
    pub sw_if_index: InterfaceIndex,
}

/// Message `l2_fib_clear_table`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct L2FibClearTable;

/// Message `l2_fib_table_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct L2FibTableDump {
    pub bd_id: u32,
}

/// Message `l2_fib_table_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct L2FibTableDetails {
    pub bd_id: u32,
    pub mac: MacAddr,
    pub sw_if_index: InterfaceIndex,
    pub static_mac: bool,
    pub filter_mac: bool,
    pub bvi_mac: bool,
}

/// Message `l2_flags`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct L2Flags {
    pub sw_if_index: InterfaceIndex,
    pub is_set: bool,
    pub feature_bitmap: u32,
}

/// Message `l2_flags_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct L2FlagsReply {
    pub resulting_feature_bitmap: u32,
}

/// Message `l2_flags_get`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct L2FlagsGet {
    pub sw_if_index: InterfaceIndex,
}

/// Message `l2_flags_get_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct L2FlagsGetReply {
    pub input_feature_bitmap: u32,
    pub output_feature_bitmap: u32,
}

/// Message `l2_flags_set`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct L2FlagsSet {
    pub sw_if_index: InterfaceIndex,
    pub is_set: bool,
    pub input_feature_bitmap: u32,
    pub output_feature_bitmap: u32,
}

/// Message `l2_interface_efp_filter`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct L2InterfaceEfpFilter {
    pub sw_if_index: InterfaceIndex,
    #[api(default = "true")]
    pub enable_disable: bool,
}

/// Message `l2_interface_feat_flags_get`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct L2InterfaceFeatFlagsGet {
    pub sw_if_index: InterfaceIndex,
}

api_enum! {
    /// Type `l2_intf_feat_flags`.
    pub struct L2IntfFeatFlags: u32 = "l2_intf_feat_flags" {
        NONE = 0, "L2_INTF_FEAT_NONE";
        LEARN = 1, "L2_INTF_FEAT_LEARN";
        FWD = 2, "L2_INTF_FEAT_FWD";
        FLOOD = 4, "L2_INTF_FEAT_FLOOD";
        UU_FLOOD = 8, "L2_INTF_FEAT_UU_FLOOD";
        ARP_TERM = 16, "L2_INTF_FEAT_ARP_TERM";
        ARP_UFWD = 32, "L2_INTF_FEAT_ARP_UFWD";
    }
}

/// Message `l2_interface_feat_flags_get_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct L2InterfaceFeatFlagsGetReply {
    pub flags: L2IntfFeatFlags,
}

/// Message `l2_interface_feat_flags_set`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct L2InterfaceFeatFlagsSet {
    pub sw_if_index: InterfaceIndex,
    pub is_set: bool,
    pub flags: L2IntfFeatFlags,
}

/// Message `l2_interface_vlan_tag_rewrite`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct L2InterfaceVlanTagRewrite {
    pub sw_if_index: InterfaceIndex,
    pub vtr_op: u32,
    pub push_dot1q: u32,
    pub tag1: u32,
    pub tag2: u32,
}

/// Message `l2_xconnect_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct L2XconnectDump;

/// Message `l2_xconnect_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct L2XconnectDetails {
    pub rx_sw_if_index: InterfaceIndex,
    pub tx_sw_if_index: InterfaceIndex,
}

/// Message `l2fib_add_del`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct L2fibAddDel {
    pub mac: MacAddr,
    pub bd_id: u32,
    pub sw_if_index: InterfaceIndex,
    #[api(default = "true")]
    pub is_add: bool,
    pub static_mac: bool,
    pub filter_mac: bool,
    pub bvi_mac: bool,
}

/// Message `l2fib_flush_all`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct L2fibFlushAll;

/// Message `l2fib_flush_bd`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct L2fibFlushBd {
    pub bd_id: u32,
}

/// Message `l2fib_flush_int`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct L2fibFlushInt {
    pub sw_if_index: InterfaceIndex,
}

/// Message `l2fib_set_scan_delay`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct L2fibSetScanDelay {
    #[api(default = 10)]
    pub scan_delay: u16,
}

api_enum! {
    /// Type `l2_port_type`.
    pub struct L2PortType: u32 = "l2_port_type" {
        NORMAL = 0, "L2_API_PORT_TYPE_NORMAL";
        BVI = 1, "L2_API_PORT_TYPE_BVI";
        UU_FWD = 2, "L2_API_PORT_TYPE_UU_FWD";
    }
}

/// Message `sw_interface_set_l2_bridge`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetL2Bridge {
    pub rx_sw_if_index: InterfaceIndex,
    pub bd_id: u32,
    pub port_type: L2PortType,
    pub shg: u8,
    #[api(default = "true")]
    pub enable: bool,
}

/// Message `sw_interface_set_l2_xconnect`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetL2Xconnect {
    pub rx_sw_if_index: InterfaceIndex,
    pub tx_sw_if_index: InterfaceIndex,
    #[api(default = "true")]
    pub enable: bool,
}

/// Message `want_l2_arp_term_events`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct WantL2ArpTermEvents {
    pub enable: bool,
    pub pid: u32,
}

/// Message `l2_arp_term_event`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(event)]
pub struct L2ArpTermEvent {
    pub pid: u32,
    pub ip: Address,
    pub sw_if_index: InterfaceIndex,
    pub mac: MacAddr,
}

/// Message `want_l2_macs_events`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply, deprecated)]
pub struct WantL2MacsEvents {
    #[api(default = 1000)]
    pub learn_limit: u32,
    #[api(default = 10)]
    pub scan_delay: u8,
    #[api(default = 10)]
    pub max_macs_in_event: u8,
    #[api(default = "true")]
    pub enable_disable: bool,
    pub pid: u32,
}

api_enum! {
    /// Type `mac_event_action`.
    pub struct MacEventAction: u32 = "mac_event_action" {
        ADD = 0, "MAC_EVENT_ACTION_API_ADD";
        DELETE = 1, "MAC_EVENT_ACTION_API_DELETE";
        MOVE = 2, "MAC_EVENT_ACTION_API_MOVE";
    }
}

/// Type `mac_entry`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ApiType)]
pub struct MacEntry {
    pub sw_if_index: InterfaceIndex,
    pub mac_addr: MacAddr,
    pub action: MacEventAction,
    pub flags: u8,
}

/// Message `l2_macs_event`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(event)]
pub struct L2MacsEvent {
    pub pid: u32,
    #[api(count = "n_macs: u32")]
    pub mac: Vec<MacEntry>,
}

/// Message `want_l2_macs_events2`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct WantL2MacsEvents2 {
    #[api(default = 10)]
    pub max_macs_in_event: u8,
    #[api(default = "true")]
    pub enable_disable: bool,
    pub pid: u32,
}
