//! Types of messages about where packets go.

use crate::types::AddressUnion;
use crate::{ApiType, api_enum};

api_enum! {
    /// What a path ends in.
    pub struct FibPathType: u32 = "fib_path_type" {
        /// A next hop or an interface.
        NORMAL = 0, "FIB_API_PATH_TYPE_NORMAL";
        /// The router itself.
        LOCAL = 1, "FIB_API_PATH_TYPE_LOCAL";
        /// Nothing.
        DROP = 2, "FIB_API_PATH_TYPE_DROP";
        /// A UDP tunnel.
        UDP_ENCAP = 3, "FIB_API_PATH_TYPE_UDP_ENCAP";
        /// BIER.
        BIER_IMP = 4, "FIB_API_PATH_TYPE_BIER_IMP";
        /// An ICMP error "unreachable".
        ICMP_UNREACH = 5, "FIB_API_PATH_TYPE_ICMP_UNREACH";
        /// An ICMP error "prohibited".
        ICMP_PROHIBIT = 6, "FIB_API_PATH_TYPE_ICMP_PROHIBIT";
        /// Another look-up, by source.
        SOURCE_LOOKUP = 7, "FIB_API_PATH_TYPE_SOURCE_LOOKUP";
        /// An interface's layer 2.
        DVR = 8, "FIB_API_PATH_TYPE_DVR";
        /// An interface, as if received there.
        INTERFACE_RX = 9, "FIB_API_PATH_TYPE_INTERFACE_RX";
        /// A classifier.
        CLASSIFY = 10, "FIB_API_PATH_TYPE_CLASSIFY";
    }
    /// How a next hop is resolved.
    pub struct FibPathFlags: u32 = "fib_path_flags" {
        /// By any route.
        NONE = 0, "FIB_API_PATH_FLAG_NONE";
        /// By a connected subnet only.
        RESOLVE_VIA_ATTACHED = 1, "FIB_API_PATH_FLAG_RESOLVE_VIA_ATTACHED";
        /// By a host's route only.
        RESOLVE_VIA_HOST = 2, "FIB_API_PATH_FLAG_RESOLVE_VIA_HOST";
        /// A pseudo-wire's control word is taken off.
        POP_PW_CW = 4, "FIB_API_PATH_FLAG_POP_PW_CW";
    }
    /// What a next hop's address is.
    pub struct FibPathNhProto: u32 = "fib_path_nh_proto" {
        /// IPv4.
        IP4 = 0, "FIB_API_PATH_NH_PROTO_IP4";
        /// IPv6.
        IP6 = 1, "FIB_API_PATH_NH_PROTO_IP6";
        /// A label.
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
    /// Time to live and class are the packet's own.
    pub is_uniform: u8,
    /// The label.
    pub label: u32,
    /// Its time to live.
    pub ttl: u8,
    /// Its traffic class.
    pub exp: u8,
}

/// A next hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ApiType)]
pub struct FibPathNh {
    /// Its address.
    pub address: AddressUnion,
    /// Its label.
    pub via_label: u32,
    /// Number of a tunnel.
    pub obj_id: u32,
    /// Number of a classifier.
    pub classify_table_index: u32,
}

/// A path of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, ApiType)]
pub struct FibPath {
    /// Its interface, all ones for none.
    pub sw_if_index: u32,
    /// The table in which its next hop is looked up.
    pub table_id: u32,
    /// Where multicast packets may come from.
    pub rpf_id: u32,
    /// Its share.
    pub weight: u8,
    /// Paths of a lower one go first.
    pub preference: u8,
    /// What it ends in.
    pub r#type: FibPathType,
    /// How its next hop is resolved.
    pub flags: FibPathFlags,
    /// What its next hop's address is.
    pub proto: FibPathNhProto,
    /// Its next hop.
    pub nh: FibPathNh,
    /// How many labels it pushes.
    pub n_labels: u8,
    /// These.
    pub label_stack: [FibMplsLabel; 16],
}
