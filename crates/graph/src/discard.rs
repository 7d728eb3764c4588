//! Reasons why packets are discarded, as sFlow numbers them (sFlow Dropped Packet Notification
//! Structures): the reasons that nodes name in [`errors!`](crate::errors). Reasons below 256 are
//! codes of ICMP destination unreachable.

/// Declares reasons, and the list of all.
macro_rules! reasons {
    ($($name:ident = $code:literal,)*) => {
        $(
            #[doc = concat!("Code ", $code, ".")]
            pub const $name: u16 = $code;
        )*
        /// Names and codes of all.
        pub const ALL: &[(&str, u16)] = &[$((stringify!($name), $code)),*];
    };
}

reasons! {
    NET_UNREACHABLE = 0,
    HOST_UNREACHABLE = 1,
    PROTOCOL_UNREACHABLE = 2,
    PORT_UNREACHABLE = 3,
    FRAG_NEEDED = 4,
    SRC_ROUTE_FAILED = 5,
    DST_HOST_PROHIBITED = 10,
    UNKNOWN = 256,
    TTL_EXCEEDED = 257,
    ACL = 258,
    NO_BUFFER_SPACE = 259,
    TRAFFIC_SHAPING = 261,
    PKT_TOO_BIG = 262,
    SRC_MAC_IS_MULTICAST = 263,
    VLAN_TAG_MISMATCH = 264,
    PORT_LIST_IS_EMPTY = 267,
    PORT_LOOPBACK_FILTER = 268,
    BLACKHOLE_ROUTE = 269,
    NON_IP = 270,
    UC_DIP_OVER_MC_DMAC = 271,
    DIP_IS_LOOPBACK_ADDRESS = 272,
    SIP_IS_MC = 273,
    SIP_IS_LOOPBACK_ADDRESS = 274,
    IP_HEADER_CORRUPTED = 275,
    UNRESOLVED_NEIGH = 279,
    NON_ROUTABLE_PACKET = 281,
    UNKNOWN_L2 = 284,
    UNKNOWN_L3 = 285,
    UNKNOWN_L3_EXCEPTION = 286,
    UNKNOWN_BUFFER = 287,
    UNKNOWN_L4 = 289,
    SIP_IS_UNSPECIFIED = 290,
    DMAC_IS_RESERVED = 294,
    SIP_IS_CLASS_E = 295,
    DIP_IS_LOCAL_NETWORK = 298,
    DIP_IS_LINK_LOCAL = 299,
    UC_REVERSE_PATH_FORWARDING = 302,
    SPLIT_HORIZON = 303,
    LOCKED_PORT = 304,
    DMAC_FILTER = 305,
    MPLS_PARSING = 311,
    ARP_PARSING = 312,
    UDP_PARSING = 316,
    PKT_TOO_SMALL = 324,
    UNHANDLED_PROTO = 325,
    IPV6DISABLED = 326,
    DEV_READY = 331,
    ICMP_PARSING = 336,
    TCP_FLAGS = 340,
    IPV6_BAD_EXTHDR = 357,
    IPV6_NDISC_FRAG = 358,
    IPV6_NDISC_HOP_LIMIT = 359,
    IPV6_NDISC_BAD_CODE = 360,
    IPV6_NDISC_BAD_OPTIONS = 361,
}
