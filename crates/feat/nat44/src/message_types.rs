//! Messages that the files of the folder `api` handle, and types of their fields.
//!
//! Written by `cargo xtask api` from VPP's descriptions, by which a unit test of `xtask` keeps it
//! current: add a file for a request, then run the command.
#![allow(missing_docs, reason = "VPP's `.api` files say what fields mean")]

use thalweg_api::schema::Module;
use thalweg_api::types::{InterfaceIndex, Ip4Address};
use thalweg_api::{ApiType, Message, Text, api_enum};

/// Module `nat44_ed`.
pub static NAT44_ED: Module = Module { name: "nat44_ed", folder: "plugins", version: "5.5.0" };

api_enum! {
    /// Type `nat_config_flags`.
    pub struct NatConfigFlags: u8 = "nat_config_flags" {
        NONE = 0, "NAT_IS_NONE";
        TWICE_NAT = 1, "NAT_IS_TWICE_NAT";
        SELF_TWICE_NAT = 2, "NAT_IS_SELF_TWICE_NAT";
        OUT2IN_ONLY = 4, "NAT_IS_OUT2IN_ONLY";
        ADDR_ONLY = 8, "NAT_IS_ADDR_ONLY";
        OUTSIDE = 16, "NAT_IS_OUTSIDE";
        INSIDE = 32, "NAT_IS_INSIDE";
        STATIC = 64, "NAT_IS_STATIC";
        EXT_HOST_VALID = 128, "NAT_IS_EXT_HOST_VALID";
    }
}

/// Message `nat44_add_del_address_range`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct Nat44AddDelAddressRange {
    pub first_ip_address: Ip4Address,
    pub last_ip_address: Ip4Address,
    pub vrf_id: u32,
    pub is_add: bool,
    pub flags: NatConfigFlags,
}

/// Message `nat44_add_del_identity_mapping`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct Nat44AddDelIdentityMapping {
    pub is_add: bool,
    pub flags: NatConfigFlags,
    pub ip_address: Ip4Address,
    pub protocol: u8,
    pub port: u16,
    pub sw_if_index: InterfaceIndex,
    pub vrf_id: u32,
    pub tag: Text<64>,
}

/// Message `nat44_add_del_interface_addr`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct Nat44AddDelInterfaceAddr {
    pub is_add: bool,
    pub sw_if_index: InterfaceIndex,
    pub flags: NatConfigFlags,
}

/// Type `nat44_lb_addr_port`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ApiType)]
pub struct Nat44LbAddrPort {
    pub addr: Ip4Address,
    pub port: u16,
    pub probability: u8,
    pub vrf_id: u32,
}

/// Message `nat44_add_del_lb_static_mapping`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct Nat44AddDelLbStaticMapping {
    pub is_add: bool,
    pub flags: NatConfigFlags,
    pub external_addr: Ip4Address,
    pub external_port: u16,
    pub protocol: u8,
    pub affinity: u32,
    pub tag: Text<64>,
    #[api(count = "local_num: u32")]
    pub locals: Vec<Nat44LbAddrPort>,
}

/// Message `nat44_add_del_static_mapping`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply, deprecated)]
pub struct Nat44AddDelStaticMapping {
    pub is_add: bool,
    pub flags: NatConfigFlags,
    pub local_ip_address: Ip4Address,
    pub external_ip_address: Ip4Address,
    pub protocol: u8,
    pub local_port: u16,
    pub external_port: u16,
    pub external_sw_if_index: InterfaceIndex,
    pub vrf_id: u32,
    pub tag: Text<64>,
}

/// Message `nat44_add_del_static_mapping_v2`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct Nat44AddDelStaticMappingV2 {
    pub is_add: bool,
    pub match_pool: bool,
    pub flags: NatConfigFlags,
    pub pool_ip_address: Ip4Address,
    pub local_ip_address: Ip4Address,
    pub external_ip_address: Ip4Address,
    pub protocol: u8,
    pub local_port: u16,
    pub external_port: u16,
    pub external_sw_if_index: InterfaceIndex,
    pub vrf_id: u32,
    pub tag: Text<64>,
}

/// Message `nat44_address_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct Nat44AddressDump;

/// Message `nat44_address_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct Nat44AddressDetails {
    pub ip_address: Ip4Address,
    pub flags: NatConfigFlags,
    pub vrf_id: u32,
}

/// Message `nat44_del_session`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct Nat44DelSession {
    pub address: Ip4Address,
    pub protocol: u8,
    pub port: u16,
    pub vrf_id: u32,
    pub flags: NatConfigFlags,
    pub ext_host_address: Ip4Address,
    pub ext_host_port: u16,
}

/// Message `nat44_ed_add_del_output_interface`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct Nat44EdAddDelOutputInterface {
    pub is_add: bool,
    pub sw_if_index: InterfaceIndex,
}

/// Message `nat44_ed_add_del_vrf_route`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct Nat44EdAddDelVrfRoute {
    pub table_vrf_id: u32,
    pub vrf_id: u32,
    pub is_add: bool,
}

/// Message `nat44_ed_add_del_vrf_table`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct Nat44EdAddDelVrfTable {
    pub table_vrf_id: u32,
    pub is_add: bool,
}

/// Message `nat44_ed_output_interface_get`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct Nat44EdOutputInterfaceGet {
    pub cursor: u32,
}

/// Message `nat44_ed_output_interface_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct Nat44EdOutputInterfaceDetails {
    pub sw_if_index: InterfaceIndex,
}

/// Message `nat44_ed_output_interface_get_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct Nat44EdOutputInterfaceGetReply {
    pub cursor: u32,
}

api_enum! {
    /// Type `nat44_config_flags`.
    pub struct Nat44ConfigFlags: u8 = "nat44_config_flags" {
        ENDPOINT_INDEPENDENT = 0, "NAT44_IS_ENDPOINT_INDEPENDENT";
        ENDPOINT_DEPENDENT = 1, "NAT44_IS_ENDPOINT_DEPENDENT";
        STATIC_MAPPING_ONLY = 2, "NAT44_IS_STATIC_MAPPING_ONLY";
        CONNECTION_TRACKING = 4, "NAT44_IS_CONNECTION_TRACKING";
        OUT2IN_DPO = 8, "NAT44_IS_OUT2IN_DPO";
    }
}

/// Message `nat44_ed_plugin_enable_disable`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct Nat44EdPluginEnableDisable {
    pub inside_vrf: u32,
    pub outside_vrf: u32,
    pub sessions: u32,
    pub session_memory: u32,
    pub enable: bool,
    pub flags: Nat44ConfigFlags,
}

/// Message `nat44_ed_set_fq_options`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct Nat44EdSetFqOptions {
    pub frame_queue_nelts: u32,
}

/// Message `nat44_ed_show_fq_options`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct Nat44EdShowFqOptions;

/// Message `nat44_ed_show_fq_options_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct Nat44EdShowFqOptionsReply {
    pub frame_queue_nelts: u32,
}

/// Message `nat44_ed_vrf_tables_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, deprecated)]
pub struct Nat44EdVrfTablesDump;

/// Message `nat44_ed_vrf_tables_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details, deprecated)]
pub struct Nat44EdVrfTablesDetails {
    pub table_vrf_id: u32,
    #[api(count = "n_vrf_ids: u32")]
    pub vrf_ids: Vec<u32>,
}

/// Message `nat44_ed_vrf_tables_v2_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, status = "in_progress")]
pub struct Nat44EdVrfTablesV2Dump;

/// Message `nat44_ed_vrf_tables_v2_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details, status = "in_progress")]
pub struct Nat44EdVrfTablesV2Details {
    pub table_vrf_id: u32,
    #[api(count = "n_vrf_ids: u32")]
    pub vrf_ids: Vec<u32>,
}

/// Message `nat44_forwarding_enable_disable`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply, deprecated)]
pub struct Nat44ForwardingEnableDisable {
    pub enable: bool,
}

/// Message `nat44_identity_mapping_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct Nat44IdentityMappingDump;

/// Message `nat44_identity_mapping_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct Nat44IdentityMappingDetails {
    pub flags: NatConfigFlags,
    pub ip_address: Ip4Address,
    pub protocol: u8,
    pub port: u16,
    pub sw_if_index: InterfaceIndex,
    pub vrf_id: u32,
    pub tag: Text<64>,
}

/// Message `nat44_interface_add_del_feature`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct Nat44InterfaceAddDelFeature {
    pub is_add: bool,
    pub flags: NatConfigFlags,
    pub sw_if_index: InterfaceIndex,
}

/// Message `nat44_interface_addr_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct Nat44InterfaceAddrDump;

/// Message `nat44_interface_addr_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct Nat44InterfaceAddrDetails {
    pub sw_if_index: InterfaceIndex,
    pub flags: NatConfigFlags,
}

/// Message `nat44_interface_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct Nat44InterfaceDump;

/// Message `nat44_interface_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct Nat44InterfaceDetails {
    pub flags: NatConfigFlags,
    pub sw_if_index: InterfaceIndex,
}

/// Message `nat44_lb_static_mapping_add_del_local`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct Nat44LbStaticMappingAddDelLocal {
    pub is_add: bool,
    pub external_addr: Ip4Address,
    pub external_port: u16,
    pub protocol: u8,
    pub local: Nat44LbAddrPort,
}

/// Message `nat44_lb_static_mapping_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct Nat44LbStaticMappingDump;

/// Message `nat44_lb_static_mapping_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct Nat44LbStaticMappingDetails {
    pub external_addr: Ip4Address,
    pub external_port: u16,
    pub protocol: u8,
    pub flags: NatConfigFlags,
    pub affinity: u32,
    pub tag: Text<64>,
    #[api(count = "local_num: u32")]
    pub locals: Vec<Nat44LbAddrPort>,
}

/// Message `nat44_set_session_limit`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct Nat44SetSessionLimit {
    pub session_limit: u32,
    pub vrf_id: u32,
}

/// Message `nat44_show_running_config`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct Nat44ShowRunningConfig;

/// Type `nat_timeouts`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ApiType)]
pub struct NatTimeouts {
    pub udp: u32,
    pub tcp_established: u32,
    pub tcp_transitory: u32,
    pub icmp: u32,
}

api_enum! {
    /// Type `nat_log_level`.
    pub struct NatLogLevel: u8 = "nat_log_level" {
        NONE = 0, "NAT_LOG_NONE";
        ERROR = 1, "NAT_LOG_ERROR";
        WARNING = 2, "NAT_LOG_WARNING";
        NOTICE = 3, "NAT_LOG_NOTICE";
        INFO = 4, "NAT_LOG_INFO";
        DEBUG = 5, "NAT_LOG_DEBUG";
    }
}

/// Message `nat44_show_running_config_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct Nat44ShowRunningConfigReply {
    pub inside_vrf: u32,
    pub outside_vrf: u32,
    pub users: u32,
    pub sessions: u32,
    pub user_sessions: u32,
    pub user_buckets: u32,
    pub translation_buckets: u32,
    pub forwarding_enabled: bool,
    pub ipfix_logging_enabled: bool,
    pub timeouts: NatTimeouts,
    pub log_level: NatLogLevel,
    pub flags: Nat44ConfigFlags,
}

/// Message `nat44_static_mapping_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct Nat44StaticMappingDump;

/// Message `nat44_static_mapping_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct Nat44StaticMappingDetails {
    pub flags: NatConfigFlags,
    pub local_ip_address: Ip4Address,
    pub external_ip_address: Ip4Address,
    pub protocol: u8,
    pub local_port: u16,
    pub external_port: u16,
    pub external_sw_if_index: InterfaceIndex,
    pub vrf_id: u32,
    pub tag: Text<64>,
}

/// Message `nat44_user_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct Nat44UserDump;

/// Message `nat44_user_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct Nat44UserDetails {
    pub vrf_id: u32,
    pub ip_address: Ip4Address,
    pub nsessions: u32,
    pub nstaticsessions: u32,
}

/// Message `nat44_user_session_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, deprecated)]
pub struct Nat44UserSessionDump {
    pub ip_address: Ip4Address,
    pub vrf_id: u32,
}

/// Message `nat44_user_session_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details, deprecated)]
pub struct Nat44UserSessionDetails {
    pub outside_ip_address: Ip4Address,
    pub outside_port: u16,
    pub inside_ip_address: Ip4Address,
    pub inside_port: u16,
    pub protocol: u16,
    pub flags: NatConfigFlags,
    pub last_heard: u64,
    pub total_bytes: u64,
    pub total_pkts: u32,
    pub ext_host_address: Ip4Address,
    pub ext_host_port: u16,
    pub ext_host_nat_address: Ip4Address,
    pub ext_host_nat_port: u16,
}

/// Message `nat44_user_session_v2_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, deprecated)]
pub struct Nat44UserSessionV2Dump {
    pub ip_address: Ip4Address,
    pub vrf_id: u32,
}

/// Message `nat44_user_session_v2_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details, deprecated)]
pub struct Nat44UserSessionV2Details {
    pub outside_ip_address: Ip4Address,
    pub outside_port: u16,
    pub inside_ip_address: Ip4Address,
    pub inside_port: u16,
    pub protocol: u16,
    pub flags: NatConfigFlags,
    pub last_heard: u64,
    pub total_bytes: u64,
    pub total_pkts: u32,
    pub ext_host_address: Ip4Address,
    pub ext_host_port: u16,
    pub ext_host_nat_address: Ip4Address,
    pub ext_host_nat_port: u16,
    pub is_timed_out: bool,
}

/// Message `nat44_user_session_v3_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct Nat44UserSessionV3Dump {
    pub ip_address: Ip4Address,
    pub vrf_id: u32,
}

/// Message `nat44_user_session_v3_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct Nat44UserSessionV3Details {
    pub outside_ip_address: Ip4Address,
    pub outside_port: u16,
    pub inside_ip_address: Ip4Address,
    pub inside_port: u16,
    pub protocol: u16,
    pub flags: NatConfigFlags,
    pub last_heard: u64,
    pub time_since_last_heard: u64,
    pub total_bytes: u64,
    pub total_pkts: u32,
    pub ext_host_address: Ip4Address,
    pub ext_host_port: u16,
    pub ext_host_nat_address: Ip4Address,
    pub ext_host_nat_port: u16,
    pub is_timed_out: bool,
}

/// Message `nat_get_mss_clamping`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct NatGetMssClamping;

/// Message `nat_get_mss_clamping_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct NatGetMssClampingReply {
    pub mss_value: u16,
    pub enable: bool,
}

/// Message `nat_ipfix_enable_disable`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply, deprecated)]
pub struct NatIpfixEnableDisable {
    pub domain_id: u32,
    pub src_port: u16,
    pub enable: bool,
}

/// Message `nat_set_mss_clamping`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct NatSetMssClamping {
    pub mss_value: u16,
    pub enable: bool,
}

/// Message `nat_set_timeouts`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply, deprecated)]
pub struct NatSetTimeouts {
    pub udp: u32,
    pub tcp_established: u32,
    pub tcp_transitory: u32,
    pub icmp: u32,
}

/// Message `nat_set_workers`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct NatSetWorkers {
    pub worker_mask: u64,
}

/// Message `nat_worker_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct NatWorkerDump;

/// Message `nat_worker_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct NatWorkerDetails {
    pub worker_index: u32,
    pub lcore_id: u32,
    pub name: Text<64>,
}
