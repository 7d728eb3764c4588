//! Messages that the files of the folder `api` handle, and types of their fields.
//!
//! Written by `cargo xtask api` from VPP's descriptions, by which a unit test of `xtask` keeps it
//! current: add a file for a request, then run the command.
#![allow(missing_docs, reason = "VPP's `.api` files say what fields mean")]

use thalweg_api::schema::Module;
use thalweg_api::types::{IfStatusFlags, InterfaceIndex, MacAddr};
use thalweg_api::{Message, Text, api_enum};

/// Module `interface`.
pub static INTERFACE: Module = Module { name: "interface", folder: "core", version: "3.2.4" };

/// Message `collect_detailed_interface_stats`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct CollectDetailedInterfaceStats {
    pub sw_if_index: InterfaceIndex,
    pub enable_disable: bool,
}

/// Message `create_loopback`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct CreateLoopback {
    pub mac_address: MacAddr,
}

/// Message `create_loopback_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct CreateLoopbackReply {
    pub sw_if_index: InterfaceIndex,
}

/// Message `create_loopback_instance`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct CreateLoopbackInstance {
    pub mac_address: MacAddr,
    pub is_specified: bool,
    pub user_instance: u32,
}

/// Message `create_loopback_instance_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct CreateLoopbackInstanceReply {
    pub sw_if_index: InterfaceIndex,
}

api_enum! {
    /// Type `sub_if_flags`.
    pub struct SubIfFlags: u32 = "sub_if_flags" {
        NO_TAGS = 1, "SUB_IF_API_FLAG_NO_TAGS";
        ONE_TAG = 2, "SUB_IF_API_FLAG_ONE_TAG";
        TWO_TAGS = 4, "SUB_IF_API_FLAG_TWO_TAGS";
        DOT1AD = 8, "SUB_IF_API_FLAG_DOT1AD";
        EXACT_MATCH = 16, "SUB_IF_API_FLAG_EXACT_MATCH";
        DEFAULT = 32, "SUB_IF_API_FLAG_DEFAULT";
        OUTER_VLAN_ID_ANY = 64, "SUB_IF_API_FLAG_OUTER_VLAN_ID_ANY";
        INNER_VLAN_ID_ANY = 128, "SUB_IF_API_FLAG_INNER_VLAN_ID_ANY";
        MASK_VNET = 254, "SUB_IF_API_FLAG_MASK_VNET";
        DOT1AH = 256, "SUB_IF_API_FLAG_DOT1AH";
    }
}

/// Message `create_subif`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct CreateSubif {
    pub sw_if_index: InterfaceIndex,
    pub sub_id: u32,
    pub sub_if_flags: SubIfFlags,
    pub outer_vlan_id: u16,
    pub inner_vlan_id: u16,
}

/// Message `create_subif_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct CreateSubifReply {
    pub sw_if_index: InterfaceIndex,
}

/// Message `create_vlan_subif`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct CreateVlanSubif {
    pub sw_if_index: InterfaceIndex,
    pub vlan_id: u32,
}

/// Message `create_vlan_subif_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct CreateVlanSubifReply {
    pub sw_if_index: InterfaceIndex,
}

/// Message `delete_loopback`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct DeleteLoopback {
    pub sw_if_index: InterfaceIndex,
}

/// Message `delete_subif`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct DeleteSubif {
    pub sw_if_index: InterfaceIndex,
}

/// Module `feature`.
pub static FEATURE: Module = Module { name: "feature", folder: "core", version: "1.0.2" };

/// Message `feature_enable_disable`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct FeatureEnableDisable {
    pub sw_if_index: InterfaceIndex,
    pub enable: bool,
    pub arc_name: Text<64>,
    pub feature_name: Text<64>,
}

/// Message `feature_is_enabled`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct FeatureIsEnabled {
    pub arc_name: Text<64>,
    pub feature_name: Text<64>,
    pub sw_if_index: InterfaceIndex,
}

/// Message `feature_is_enabled_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct FeatureIsEnabledReply {
    pub retval: i32,
    pub is_enabled: bool,
}

/// Message `hw_interface_set_mtu`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct HwInterfaceSetMtu {
    pub sw_if_index: InterfaceIndex,
    pub mtu: u16,
}

/// Message `sw_interface_add_del_mac_address`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceAddDelMacAddress {
    pub sw_if_index: u32,
    pub addr: MacAddr,
    pub is_add: u8,
}

/// Message `sw_interface_clear_stats`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceClearStats {
    pub sw_if_index: InterfaceIndex,
}

/// Message `sw_interface_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct SwInterfaceDump {
    #[api(default = 4294967295)]
    pub sw_if_index: InterfaceIndex,
    pub name_filter_valid: bool,
    pub name_filter: String,
}

api_enum! {
    /// Type `if_type`.
    pub struct IfType: u32 = "if_type" {
        HARDWARE = 0, "IF_API_TYPE_HARDWARE";
        SUB = 1, "IF_API_TYPE_SUB";
        P2P = 2, "IF_API_TYPE_P2P";
        PIPE = 3, "IF_API_TYPE_PIPE";
    }
}

api_enum! {
    /// Type `link_duplex`.
    pub struct LinkDuplex: u32 = "link_duplex" {
        UNKNOWN = 0, "LINK_DUPLEX_API_UNKNOWN";
        HALF = 1, "LINK_DUPLEX_API_HALF";
        FULL = 2, "LINK_DUPLEX_API_FULL";
    }
}

/// Message `sw_interface_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct SwInterfaceDetails {
    pub sw_if_index: InterfaceIndex,
    pub sup_sw_if_index: u32,
    pub l2_address: MacAddr,
    pub flags: IfStatusFlags,
    pub r#type: IfType,
    pub link_duplex: LinkDuplex,
    pub link_speed: u32,
    pub link_mtu: u16,
    pub mtu: [u32; 4],
    pub sub_id: u32,
    pub sub_number_of_tags: u8,
    pub sub_outer_vlan_id: u16,
    pub sub_inner_vlan_id: u16,
    pub sub_if_flags: SubIfFlags,
    pub vtr_op: u32,
    pub vtr_push_dot1q: u32,
    pub vtr_tag1: u32,
    pub vtr_tag2: u32,
    pub outer_tag: u16,
    pub b_dmac: MacAddr,
    pub b_smac: MacAddr,
    pub b_vlanid: u16,
    pub i_sid: u32,
    pub interface_name: Text<64>,
    pub interface_dev_type: Text<64>,
    pub tag: Text<64>,
}

/// Message `sw_interface_get_mac_address`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct SwInterfaceGetMacAddress {
    pub sw_if_index: InterfaceIndex,
}

/// Message `sw_interface_get_mac_address_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct SwInterfaceGetMacAddressReply {
    pub mac_address: MacAddr,
}

/// Message `sw_interface_rx_placement_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct SwInterfaceRxPlacementDump {
    pub sw_if_index: InterfaceIndex,
}

api_enum! {
    /// Type `rx_mode`.
    pub struct RxMode: u32 = "rx_mode" {
        UNKNOWN = 0, "RX_MODE_API_UNKNOWN";
        POLLING = 1, "RX_MODE_API_POLLING";
        INTERRUPT = 2, "RX_MODE_API_INTERRUPT";
        ADAPTIVE = 3, "RX_MODE_API_ADAPTIVE";
        DEFAULT = 4, "RX_MODE_API_DEFAULT";
    }
}

/// Message `sw_interface_rx_placement_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct SwInterfaceRxPlacementDetails {
    pub sw_if_index: InterfaceIndex,
    pub queue_id: u32,
    pub worker_id: u32,
    pub mode: RxMode,
}

/// Message `sw_interface_set_flags`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetFlags {
    pub sw_if_index: InterfaceIndex,
    pub flags: IfStatusFlags,
}

/// Message `sw_interface_set_mac_address`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetMacAddress {
    pub sw_if_index: InterfaceIndex,
    pub mac_address: MacAddr,
}

/// Message `sw_interface_set_mtu`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetMtu {
    pub sw_if_index: InterfaceIndex,
    pub mtu: [u32; 4],
}

/// Message `sw_interface_set_promisc`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetPromisc {
    pub sw_if_index: InterfaceIndex,
    pub promisc_on: bool,
}

/// Message `sw_interface_set_rx_mode`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetRxMode {
    pub sw_if_index: InterfaceIndex,
    pub queue_id_valid: bool,
    pub queue_id: u32,
    pub mode: RxMode,
}

/// Message `sw_interface_set_rx_placement`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetRxPlacement {
    pub sw_if_index: InterfaceIndex,
    pub queue_id: u32,
    pub worker_id: u32,
    pub is_main: bool,
}

/// Message `sw_interface_tag_add_del`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceTagAddDel {
    pub is_add: bool,
    pub sw_if_index: InterfaceIndex,
    pub tag: Text<64>,
}

/// Message `sw_interface_tx_placement_get`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, vat_help = "[interface | sw_if_index <index>]")]
pub struct SwInterfaceTxPlacementGet {
    pub cursor: u32,
    pub sw_if_index: InterfaceIndex,
}

/// Message `sw_interface_tx_placement_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct SwInterfaceTxPlacementDetails {
    pub sw_if_index: InterfaceIndex,
    pub queue_id: u32,
    pub shared: u8,
    #[api(count = "array_size: u32")]
    pub threads: Vec<u32>,
}

/// Message `sw_interface_tx_placement_get_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct SwInterfaceTxPlacementGetReply {
    pub cursor: u32,
}

/// Message `want_interface_events`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct WantInterfaceEvents {
    pub enable_disable: u32,
    pub pid: u32,
}

/// Message `sw_interface_event`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(event)]
pub struct SwInterfaceEvent {
    pub pid: u32,
    pub sw_if_index: InterfaceIndex,
    pub flags: IfStatusFlags,
    pub deleted: bool,
}
