//! Types of messages about forwarding.

use crate::types::AddressUnion;
use crate::{ApiType, api_enum};

api_enum! {
    /// Type of a path.
    pub struct FibPathType: u32 = "fib_path_type" {
        /// A next hop or an interface.
        NORMAL = 0, "FIB_API_PATH_TYPE_NORMAL";
        /// The router itself.
        LOCAL = 1, "FIB_API_PATH_TYPE_LOCAL";
        /// Drop.
        DROP = 2, "FIB_API_PATH_TYPE_DROP";
        /// A UDP tunnel.
        UDP_ENCAP = 3, "FIB_API_PATH_TYPE_UDP_ENCAP";
        /// BIER.
        BIER_IMP = 4, "FIB_API_PATH_TYPE_BIER_IMP";
        /// An ICMP error "unreachable".
        ICMP_UNREACH = 5, "FIB_API_PATH_TYPE_ICMP_UNREACH";
        /// An ICMP error "prohibited".
        ICMP_PROHIBIT = 6, "FIB_API_PATH_TYPE_ICMP_PROHIBIT";
        /// A lookup by source address.
        SOURCE_LOOKUP = 7, "FIB_API_PATH_TYPE_SOURCE_LOOKUP";
        /// An interface's layer 2.
        DVR = 8, "FIB_API_PATH_TYPE_DVR";
        /// An interface, as if received there.
        INTERFACE_RX = 9, "FIB_API_PATH_TYPE_INTERFACE_RX";
        /// A classifier.
        CLASSIFY = 10, "FIB_API_PATH_TYPE_CLASSIFY";
    }
    /// Flags of a path.
    pub struct FibPathFlags: u32 = "fib_path_flags" {
        /// Resolved by any route.
        NONE = 0, "FIB_API_PATH_FLAG_NONE";
        /// Resolved by a connected subnet only.
        RESOLVE_VIA_ATTACHED = 1, "FIB_API_PATH_FLAG_RESOLVE_VIA_ATTACHED";
        /// Resolved by a host route only.
        RESOLVE_VIA_HOST = 2, "FIB_API_PATH_FLAG_RESOLVE_VIA_HOST";
        /// Pops a pseudo-wire's control word.
        POP_PW_CW = 4, "FIB_API_PATH_FLAG_POP_PW_CW";
    }
    /// Protocol of a next hop.
    pub struct FibPathNhProto: u32 = "fib_path_nh_proto" {
        /// IPv4.
        IP4 = 0, "FIB_API_PATH_NH_PROTO_IP4";
        /// IPv6.
        IP6 = 1, "FIB_API_PATH_NH_PROTO_IP6";
        /// MPLS label.
        MPLS = 2, "FIB_API_PATH_NH_PROTO_MPLS";
        /// Ethernet.
        ETHERNET = 3, "FIB_API_PATH_NH_PROTO_ETHERNET";
        /// BIER.
        BIER = 4, "FIB_API_PATH_NH_PROTO_BIER";
    }
}

/// An MPLS label that a path pushes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ApiType)]
pub struct FibMplsLabel {
    /// Nonzero for uniform mode: TTL and traffic class are the packet's own.
    pub is_uniform: u8,
    /// The label.
    pub label: u32,
    /// TTL.
    pub ttl: u8,
    /// Traffic class.
    pub exp: u8,
}

/// A next hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ApiType)]
pub struct FibPathNh {
    /// Its address.
    pub address: AddressUnion,
    /// Its label.
    pub via_label: u32,
    /// Index of a tunnel.
    pub obj_id: u32,
    /// Index of a classifier table.
    pub classify_table_index: u32,
}

/// A path of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, ApiType)]
pub struct FibPath {
    /// Index of its interface, all ones for none.
    pub sw_if_index: u32,
    /// Table in which its next hop is looked up.
    pub table_id: u32,
    /// RPF id of multicast packets.
    pub rpf_id: u32,
    /// Weight.
    pub weight: u8,
    /// Preference; paths with the lowest are used first.
    pub preference: u8,
    /// Type.
    pub r#type: FibPathType,
    /// Flags.
    pub flags: FibPathFlags,
    /// Protocol of the next hop.
    pub proto: FibPathNhProto,
    /// Next hop.
    pub nh: FibPathNh,
    /// Number of labels that it pushes.
    pub n_labels: u8,
    /// Labels.
    pub label_stack: [FibMplsLabel; 16],
}
