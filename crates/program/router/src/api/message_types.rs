//! Messages that the files of the folder `messages` handle, and types of their fields.
//!
//! Written by `cargo xtask api` from VPP's descriptions, by which a unit test of `xtask` keeps it
//! current: add a file for a request, then run the command.
#![allow(missing_docs, reason = "VPP's `.api` files say what fields mean")]

use thalweg_api::schema::Module;
use thalweg_api::types::{Address, AddressFamily, InterfaceIndex, Prefix};
use thalweg_api::{ApiType, Message, Text, api_enum, api_union};

/// Module `acl`.
pub static ACL: Module = Module { name: "acl", folder: "plugins", version: "2.0.1" };

/// Message `acl_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, vat_help = "[<acl-idx>]")]
pub struct AclDump {
    pub acl_index: u32,
}

api_enum! {
    /// Type `acl_action`.
    pub struct AclAction: u8 = "acl_action" {
        DENY = 0, "ACL_ACTION_API_DENY";
        PERMIT = 1, "ACL_ACTION_API_PERMIT";
        PERMIT_REFLECT = 2, "ACL_ACTION_API_PERMIT_REFLECT";
    }
}

api_enum! {
    /// Type `ip_proto`.
    pub struct IpProto: u8 = "ip_proto" {
        HOPOPT = 0, "IP_API_PROTO_HOPOPT";
        ICMP = 1, "IP_API_PROTO_ICMP";
        IGMP = 2, "IP_API_PROTO_IGMP";
        TCP = 6, "IP_API_PROTO_TCP";
        UDP = 17, "IP_API_PROTO_UDP";
        GRE = 47, "IP_API_PROTO_GRE";
        ESP = 50, "IP_API_PROTO_ESP";
        AH = 51, "IP_API_PROTO_AH";
        ICMP6 = 58, "IP_API_PROTO_ICMP6";
        EIGRP = 88, "IP_API_PROTO_EIGRP";
        OSPF = 89, "IP_API_PROTO_OSPF";
        SCTP = 132, "IP_API_PROTO_SCTP";
        RESERVED = 255, "IP_API_PROTO_RESERVED";
    }
}

/// Type `acl_rule`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ApiType)]
pub struct AclRule {
    pub is_permit: AclAction,
    pub src_prefix: Prefix,
    pub dst_prefix: Prefix,
    pub proto: IpProto,
    pub srcport_or_icmptype_first: u16,
    pub srcport_or_icmptype_last: u16,
    pub dstport_or_icmpcode_first: u16,
    pub dstport_or_icmpcode_last: u16,
    pub tcp_flags_mask: u8,
    pub tcp_flags_value: u8,
}

/// Message `acl_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct AclDetails {
    pub acl_index: u32,
    pub tag: Text<64>,
    #[api(count = "count: u32")]
    pub r: Vec<AclRule>,
}

/// Message `acl_interface_list_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, vat_help = "[<intfc> | sw_if_index <if-idx>]")]
pub struct AclInterfaceListDump {
    #[api(default = 4294967295)]
    pub sw_if_index: InterfaceIndex,
}

/// Message `acl_interface_list_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct AclInterfaceListDetails {
    pub sw_if_index: InterfaceIndex,
    pub n_input: u8,
    #[api(count = "count: u8", at = "n_input")]
    pub acls: Vec<u32>,
}

/// Module `vlib`.
pub static VLIB: Module = Module { name: "vlib", folder: "core", version: "1.0.0" };

/// Message `cli_inband`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct CliInband {
    pub cmd: String,
}

/// Message `cli_inband_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct CliInbandReply {
    pub reply: String,
}

/// Module `punt`.
pub static PUNT: Module = Module { name: "punt", folder: "core", version: "2.2.1" };

/// Type `punt_reason`.
#[derive(Clone, Debug, Default, PartialEq, Eq, ApiType)]
pub struct PuntReason {
    pub id: u32,
    pub name: String,
}

/// Message `punt_reason_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct PuntReasonDump {
    pub reason: PuntReason,
}

/// Message `punt_reason_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct PuntReasonDetails {
    pub reason: PuntReason,
}

api_enum! {
    /// Type `punt_type`.
    pub struct PuntType: u32 = "punt_type" {
        L4 = 0, "PUNT_API_TYPE_L4";
        IP_PROTO = 1, "PUNT_API_TYPE_IP_PROTO";
        EXCEPTION = 2, "PUNT_API_TYPE_EXCEPTION";
    }
}

/// Type `punt_exception`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ApiType)]
pub struct PuntException {
    pub id: u32,
}

/// Type `punt_l4`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ApiType)]
pub struct PuntL4 {
    pub af: AddressFamily,
    pub protocol: IpProto,
    pub port: u16,
}

/// Type `punt_ip_proto`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ApiType)]
pub struct PuntIpProto {
    pub af: AddressFamily,
    pub protocol: IpProto,
}

api_union! {
    /// Type `punt_union`.
    pub struct PuntUnion(4) = "punt_union" {
        exception: PuntException, case "PUNT_API_TYPE_EXCEPTION";
        l4: PuntL4, case "PUNT_API_TYPE_L4";
        ip_proto: PuntIpProto, case "PUNT_API_TYPE_IP_PROTO";
    }
}

/// Type `punt`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ApiType)]
pub struct Punt {
    pub r#type: PuntType,
    #[api(discriminator = "type")]
    pub punt: PuntUnion,
}

/// Message `punt_socket_deregister`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct PuntSocketDeregister {
    pub punt: Punt,
}

/// Message `punt_socket_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct PuntSocketDump {
    pub r#type: PuntType,
}

/// Message `punt_socket_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct PuntSocketDetails {
    pub punt: Punt,
    pub pathname: Text<108>,
}

/// Message `punt_socket_register`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct PuntSocketRegister {
    pub header_version: u32,
    pub punt: Punt,
    pub pathname: Text<108>,
}

/// Message `punt_socket_register_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct PuntSocketRegisterReply {
    pub pathname: Text<108>,
}

/// Message `set_punt`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SetPunt {
    pub is_add: bool,
    pub punt: Punt,
}

/// Module `bond`.
pub static BOND: Module = Module { name: "bond", folder: "core", version: "2.1.0" };

/// Message `sw_bond_interface_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct SwBondInterfaceDump {
    #[api(default = 4294967295)]
    pub sw_if_index: InterfaceIndex,
}

api_enum! {
    /// Type `bond_mode`.
    pub struct BondMode: u32 = "bond_mode" {
        ROUND_ROBIN = 1, "BOND_API_MODE_ROUND_ROBIN";
        ACTIVE_BACKUP = 2, "BOND_API_MODE_ACTIVE_BACKUP";
        XOR = 3, "BOND_API_MODE_XOR";
        BROADCAST = 4, "BOND_API_MODE_BROADCAST";
        LACP = 5, "BOND_API_MODE_LACP";
    }
}

api_enum! {
    /// Type `bond_lb_algo`.
    pub struct BondLbAlgo: u32 = "bond_lb_algo" {
        L2 = 0, "BOND_API_LB_ALGO_L2";
        L34 = 1, "BOND_API_LB_ALGO_L34";
        L23 = 2, "BOND_API_LB_ALGO_L23";
        RR = 3, "BOND_API_LB_ALGO_RR";
        BC = 4, "BOND_API_LB_ALGO_BC";
        AB = 5, "BOND_API_LB_ALGO_AB";
    }
}

/// Message `sw_bond_interface_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct SwBondInterfaceDetails {
    pub sw_if_index: InterfaceIndex,
    pub id: u32,
    pub mode: BondMode,
    pub lb: BondLbAlgo,
    pub numa_only: bool,
    pub active_members: u32,
    pub members: u32,
    pub interface_name: Text<64>,
}

/// Message `sw_member_interface_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct SwMemberInterfaceDump {
    pub sw_if_index: InterfaceIndex,
}

/// Message `sw_member_interface_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct SwMemberInterfaceDetails {
    pub sw_if_index: InterfaceIndex,
    pub interface_name: Text<64>,
    pub is_passive: bool,
    pub is_long_timeout: bool,
    pub is_local_numa: bool,
    pub weight: u32,
}

/// Module `vxlan`.
pub static VXLAN: Module = Module { name: "vxlan", folder: "plugins", version: "2.1.0" };

/// Message `vxlan_tunnel_v2_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct VxlanTunnelV2Dump {
    pub sw_if_index: InterfaceIndex,
}

/// Message `vxlan_tunnel_v2_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct VxlanTunnelV2Details {
    pub sw_if_index: InterfaceIndex,
    pub instance: u32,
    pub src_address: Address,
    pub dst_address: Address,
    pub src_port: u16,
    pub dst_port: u16,
    pub mcast_sw_if_index: InterfaceIndex,
    pub encap_vrf_id: u32,
    pub decap_next_index: u32,
    pub vni: u32,
}
