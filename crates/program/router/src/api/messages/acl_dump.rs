//! `acl_dump`: access lists, of which there are none yet; clients such as `vppcfg` insist on the
//! message.

use super::acl_interface_list_dump::ACL;
use thalweg_api::types::Prefix;
use thalweg_api::{ApiType, Details, Dump, Message, Text, api_enum};
use thalweg_graph::Control;

api_enum! {
    /// What becomes of a packet.
    pub struct AclAction: u8 = "acl_action" {
        /// It is dropped.
        DENY = 0, "ACL_ACTION_API_DENY";
        /// It goes on.
        PERMIT = 1, "ACL_ACTION_API_PERMIT";
        /// It goes on, and so do answers.
        PERMIT_REFLECT = 2, "ACL_ACTION_API_PERMIT_REFLECT";
    }
    /// Protocols above IP.
    pub struct IpProto: u8 = "ip_proto" {
        /// Hop-by-hop options.
        HOPOPT = 0, "IP_API_PROTO_HOPOPT";
        /// ICMP.
        ICMP = 1, "IP_API_PROTO_ICMP";
        /// IGMP.
        IGMP = 2, "IP_API_PROTO_IGMP";
        /// TCP.
        TCP = 6, "IP_API_PROTO_TCP";
        /// UDP.
        UDP = 17, "IP_API_PROTO_UDP";
        /// GRE.
        GRE = 47, "IP_API_PROTO_GRE";
        /// Encrypted.
        ESP = 50, "IP_API_PROTO_ESP";
        /// Authenticated.
        AH = 51, "IP_API_PROTO_AH";
        /// ICMPv6.
        ICMP6 = 58, "IP_API_PROTO_ICMP6";
        /// EIGRP.
        EIGRP = 88, "IP_API_PROTO_EIGRP";
        /// OSPF.
        OSPF = 89, "IP_API_PROTO_OSPF";
        /// SCTP.
        SCTP = 132, "IP_API_PROTO_SCTP";
        /// None.
        RESERVED = 255, "IP_API_PROTO_RESERVED";
    }
}

/// Asks for access lists.
#[derive(Debug, Message)]
#[api(request, vat_help = "[<acl-idx>]")]
pub struct AclDump {
    /// Which one; all ones means all.
    pub acl_index: u32,
}

/// A rule of an access list.
#[derive(Debug, ApiType)]
pub struct AclRule {
    /// What becomes of a packet.
    pub is_permit: AclAction,
    /// Where it comes from.
    pub src_prefix: Prefix,
    /// Where it goes.
    pub dst_prefix: Prefix,
    /// Its protocol.
    pub proto: IpProto,
    /// The lowest source port, or ICMP type.
    pub srcport_or_icmptype_first: u16,
    /// The highest.
    pub srcport_or_icmptype_last: u16,
    /// The lowest destination port, or ICMP code.
    pub dstport_or_icmpcode_first: u16,
    /// The highest.
    pub dstport_or_icmpcode_last: u16,
    /// TCP flags that matter.
    pub tcp_flags_mask: u8,
    /// How they must be.
    pub tcp_flags_value: u8,
}

/// An access list.
#[derive(Debug, Message)]
#[api(details)]
pub struct AclDetails {
    /// Its number.
    pub acl_index: u32,
    /// Free-text tag.
    pub tag: Text<64>,
    /// Its rules.
    #[api(count = "count: u32")]
    pub r: Vec<AclRule>,
}

/// The service.
pub static SERVICE: Dump<Control, AclDump, AclDetails> = Dump::new(&ACL, handle);

fn handle(_: &mut Control, _: AclDump, _: &mut Details<AclDetails>) {}
