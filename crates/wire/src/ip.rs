//! Definitions shared by IPv4 and IPv6: protocol numbers, code points and their names.

/// IP protocol numbers (IANA), also used as IPv6 next headers.
pub mod protocol {
    /// IPv6 hop-by-hop options.
    pub const HOP_BY_HOP: u8 = 0;
    /// ICMP.
    pub const ICMP: u8 = 1;
    /// IGMP.
    pub const IGMP: u8 = 2;
    /// IPv4 in IP.
    pub const IP_IN_IP: u8 = 4;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// DCCP.
    pub const DCCP: u8 = 33;
    /// IPv6 in IP.
    pub const IPV6: u8 = 41;
    /// IPv6 routing header.
    pub const ROUTING: u8 = 43;
    /// IPv6 fragment header.
    pub const FRAGMENT: u8 = 44;
    /// RSVP.
    pub const RSVP: u8 = 46;
    /// GRE.
    pub const GRE: u8 = 47;
    /// IPsec ESP.
    pub const ESP: u8 = 50;
    /// IPsec AH.
    pub const AH: u8 = 51;
    /// ICMPv6.
    pub const ICMPV6: u8 = 58;
    /// IPv6: no next header.
    pub const NO_NEXT: u8 = 59;
    /// IPv6 destination options.
    pub const DESTINATION: u8 = 60;
    /// EIGRP.
    pub const EIGRP: u8 = 88;
    /// OSPF.
    pub const OSPF: u8 = 89;
    /// PIM.
    pub const PIM: u8 = 103;
    /// VRRP.
    pub const VRRP: u8 = 112;
    /// L2TP version 3.
    pub const L2TP: u8 = 115;
    /// SCTP.
    pub const SCTP: u8 = 132;
    /// IPv6 mobility header.
    pub const MOBILITY: u8 = 135;
    /// UDP-Lite.
    pub const UDP_LITE: u8 = 136;
    /// MPLS in IP.
    pub const MPLS_IN_IP: u8 = 137;
    /// Ethernet in IPv6 segment routing.
    pub const ETHERNET: u8 = 143;
}

/// The name that traces print for a protocol number, if it has one.
pub const fn protocol_name(number: u8) -> Option<&'static str> {
    Some(match number {
        protocol::HOP_BY_HOP => "IP6_HOP_BY_HOP_OPTIONS",
        protocol::ICMP => "ICMP",
        protocol::IGMP => "IGMP",
        protocol::IP_IN_IP => "IP_IN_IP",
        protocol::TCP => "TCP",
        protocol::UDP => "UDP",
        protocol::DCCP => "DCCP",
        protocol::IPV6 => "IPV6",
        protocol::ROUTING => "IPV6_ROUTE",
        protocol::FRAGMENT => "IPV6_FRAGMENTATION",
        protocol::RSVP => "RSVP",
        protocol::GRE => "GRE",
        protocol::ESP => "IPSEC_ESP",
        protocol::AH => "IPSEC_AH",
        protocol::ICMPV6 => "ICMP6",
        protocol::NO_NEXT => "IP6_NONXT",
        protocol::DESTINATION => "IP6_DESTINATION_OPTIONS",
        protocol::EIGRP => "EIGRP",
        protocol::OSPF => "OSPF",
        protocol::PIM => "PIM",
        protocol::VRRP => "VRRP",
        protocol::L2TP => "L2TP",
        protocol::SCTP => "SCTP",
        protocol::MOBILITY => "MOBILITY",
        protocol::UDP_LITE => "UDP_LITE",
        protocol::MPLS_IN_IP => "MPLS_IN_IP",
        protocol::ETHERNET => "IPV6_ETHERNET",
        _ => return None,
    })
}

/// The checksum of a transport whose header begins with ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportSum {
    /// An Internet checksum over a pseudo-header, the header and all data or a part of it
    /// (RFC 9293, RFC 3828, RFC 4340). Addresses and ports are always covered.
    Internet {
        /// True if 0 stands for "no checksum" (RFC 768).
        zero_is_none: bool,
    },
    /// CRC-32C over header and data, without a pseudo-header (RFC 9260 appendix A).
    Crc32c,
}

/// A transport whose header begins with source and destination port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortTransport {
    /// Bytes in its shortest header.
    pub header_len: usize,
    /// Offset of the checksum in the header.
    pub checksum_at: usize,
    /// Kind of the checksum.
    pub sum: TransportSum,
}

/// The transport with this number, if its header begins with ports: the only list of these
/// protocols.
#[inline]
pub const fn port_transport(number: u8) -> Option<PortTransport> {
    let internet = TransportSum::Internet { zero_is_none: false };
    let (header_len, checksum_at, sum) = match number {
        protocol::TCP => (20, 16, internet),
        protocol::UDP => (8, 6, TransportSum::Internet { zero_is_none: true }),
        // All of it, or the header and a part of the data, is covered (RFC 3828 section 3.1). Zero
        // is not sent, as in UDP, but does not mean anything.
        protocol::UDP_LITE => (8, 6, internet),
        protocol::DCCP => (12, 6, internet),
        protocol::SCTP => (12, 8, TransportSum::Crc32c),
        _ => return None,
    };
    Some(PortTransport { header_len, checksum_at, sum })
}

/// True for transports whose header starts with source and destination port.
#[inline]
pub const fn has_ports(number: u8) -> bool {
    port_transport(number).is_some()
}

/// Bytes in the shortest header of a transport; 0 if that is not known.
#[inline]
pub const fn min_header_len(number: u8) -> usize {
    match number {
        protocol::ICMP | protocol::IGMP | protocol::ICMPV6 => 8,
        number => match port_transport(number) {
            Some(transport) => transport.header_len,
            None => 0,
        },
    }
}

/// The name of a differentiated services code point (6 bits), if it has one.
pub const fn dscp_name(dscp: u8) -> Option<&'static str> {
    Some(match dscp {
        0 => "CS0",
        8 => "CS1",
        10 => "AF11",
        12 => "AF12",
        14 => "AF13",
        16 => "CS2",
        18 => "AF21",
        20 => "AF22",
        22 => "AF23",
        24 => "CS3",
        26 => "AF31",
        28 => "AF32",
        30 => "AF33",
        32 => "CS4",
        34 => "AF41",
        36 => "AF42",
        38 => "AF43",
        40 => "CS5",
        44 => "VA",
        46 => "EF",
        48 => "CS6",
        56 => "CS7",
        _ => return None,
    })
}

/// The name of an explicit congestion notification code point (the low 2 bits of `ecn`).
pub const fn ecn_name(ecn: u8) -> &'static str {
    match ecn & 3 {
        0 => "NON_ECN",
        1 => "ECT_1",
        2 => "ECT_0",
        _ => "CE",
    }
}
