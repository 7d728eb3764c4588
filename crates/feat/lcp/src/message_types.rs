//! Messages that the files of the folder `api` handle, and types of their fields.
//!
//! Written by `cargo xtask api` from VPP's descriptions, by which a unit test of `xtask` keeps it
//! current: add a file for a request, then run the command.
#![allow(missing_docs, reason = "VPP's `.api` files say what fields mean")]

use thalweg_api::schema::Module;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Message, Text, api_enum};

/// Module `lcp`.
pub static LCP: Module = Module { name: "lcp", folder: "plugins", version: "1.0.0" };

/// Message `lcp_default_ns_get`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct LcpDefaultNsGet;

/// Message `lcp_default_ns_get_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details, in_progress)]
pub struct LcpDefaultNsGetReply {
    pub netns: Text<32>,
}

/// Message `lcp_default_ns_set`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply, in_progress)]
pub struct LcpDefaultNsSet {
    pub netns: Text<32>,
}

/// Message `lcp_ethertype_enable`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct LcpEthertypeEnable {
    pub ethertype: u16,
}

/// Message `lcp_ethertype_get`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct LcpEthertypeGet;

/// Message `lcp_ethertype_get_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct LcpEthertypeGetReply {
    #[api(count = "count: u16")]
    pub ethertypes: Vec<u16>,
}

api_enum! {
    /// Type `lcp_itf_host_type`.
    pub struct LcpItfHostType: u8 = "lcp_itf_host_type" {
        TAP = 0, "LCP_API_ITF_HOST_TAP";
        TUN = 1, "LCP_API_ITF_HOST_TUN";
    }
}

/// Message `lcp_itf_pair_add_del`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply, deprecated)]
pub struct LcpItfPairAddDel {
    pub is_add: bool,
    pub sw_if_index: InterfaceIndex,
    pub host_if_name: Text<16>,
    pub host_if_type: LcpItfHostType,
    pub netns: Text<32>,
}

/// Message `lcp_itf_pair_add_del_v2`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, in_progress)]
pub struct LcpItfPairAddDelV2 {
    pub is_add: bool,
    pub sw_if_index: InterfaceIndex,
    pub host_if_name: Text<16>,
    pub host_if_type: LcpItfHostType,
    pub netns: Text<32>,
}

/// Message `lcp_itf_pair_add_del_v2_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply, in_progress)]
pub struct LcpItfPairAddDelV2Reply {
    pub host_sw_if_index: InterfaceIndex,
}

/// Message `lcp_itf_pair_add_del_v3`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, in_progress)]
pub struct LcpItfPairAddDelV3 {
    pub is_add: bool,
    pub sw_if_index: InterfaceIndex,
    pub host_if_name: Text<16>,
    pub host_if_type: LcpItfHostType,
    pub netns: Text<32>,
}

/// Message `lcp_itf_pair_add_del_v3_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply, in_progress)]
pub struct LcpItfPairAddDelV3Reply {
    pub vif_index: u32,
    pub host_sw_if_index: InterfaceIndex,
}

/// Message `lcp_itf_pair_get`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct LcpItfPairGet {
    pub cursor: u32,
}

/// Message `lcp_itf_pair_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details, in_progress)]
pub struct LcpItfPairDetails {
    pub phy_sw_if_index: InterfaceIndex,
    pub host_sw_if_index: InterfaceIndex,
    pub vif_index: u32,
    pub host_if_name: Text<16>,
    pub host_if_type: LcpItfHostType,
    pub netns: Text<32>,
}

/// Message `lcp_itf_pair_get_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct LcpItfPairGetReply {
    pub cursor: u32,
}

/// Message `lcp_itf_pair_get_v2`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct LcpItfPairGetV2 {
    pub cursor: u32,
    pub sw_if_index: InterfaceIndex,
}

/// Message `lcp_itf_pair_get_v2_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct LcpItfPairGetV2Reply {
    pub cursor: u32,
}

/// Message `lcp_itf_pair_replace_begin`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct LcpItfPairReplaceBegin;

/// Message `lcp_itf_pair_replace_end`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct LcpItfPairReplaceEnd;

/// Message `lcp_osi_proto_enable`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct LcpOsiProtoEnable {
    pub osi_proto: u8,
}

/// Message `lcp_osi_proto_get`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct LcpOsiProtoGet;

/// Message `lcp_osi_proto_get_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct LcpOsiProtoGetReply {
    #[api(count = "count: u8")]
    pub osi_protos: Vec<u8>,
}

/// Message `lcp_sync_unnumbered_get`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct LcpSyncUnnumberedGet;

/// Message `lcp_sync_unnumbered_get_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct LcpSyncUnnumberedGetReply {
    pub is_enable: bool,
}

/// Message `lcp_sync_unnumbered_set`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct LcpSyncUnnumberedSet {
    pub is_enable: bool,
}
