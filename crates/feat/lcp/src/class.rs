//! Classes of punted packets, by the protocol that they are of.

use thalweg_wire::arp;
use thalweg_wire::bytes::get_be16;
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv6::{HEADER_LEN, Ipv6View};

/// A class of punted packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Class {
    /// BGP (RFC 4271): TCP from or to port 179.
    Bgp,
    /// OSPF of both versions (RFC 2328, RFC 5340).
    Ospf,
    /// BFD (RFC 5881, RFC 5883).
    Bfd,
    /// IS-IS (ISO 10589).
    Isis,
    /// LDP (RFC 5036): UDP or TCP from or to port 646.
    Ldp,
    /// PIM (RFC 7761).
    Pim,
    /// IGMP (RFC 9776). MLD is of the class of neighbour discovery.
    Igmp,
    /// ARP (RFC 826).
    Arp,
    /// Neighbour and listener discovery (RFC 4861, RFC 3810).
    Nd,
    /// VRRP (RFC 5798).
    Vrrp,
    /// ICMP of both versions.
    Icmp,
    /// DHCP of both versions (RFC 2131, RFC 8415).
    Dhcp,
    /// LLDP (IEEE 802.1AB).
    Lldp,
    /// Other connections of TCP.
    Tcp,
    /// All else.
    Other,
}

/// Number of classes.
pub const CLASSES: usize = Class::ALL.len();

impl Class {
    /// All classes, by number.
    pub const ALL: [Class; 15] = [
        Class::Bgp,
        Class::Ospf,
        Class::Bfd,
        Class::Isis,
        Class::Ldp,
        Class::Pim,
        Class::Igmp,
        Class::Arp,
        Class::Nd,
        Class::Vrrp,
        Class::Icmp,
        Class::Dhcp,
        Class::Lldp,
        Class::Tcp,
        Class::Other,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Bgp => "bgp",
            Class::Ospf => "ospf",
            Class::Bfd => "bfd",
            Class::Isis => "isis",
            Class::Ldp => "ldp",
            Class::Pim => "pim",
            Class::Igmp => "igmp",
            Class::Arp => "arp",
            Class::Nd => "nd",
            Class::Vrrp => "vrrp",
            Class::Icmp => "icmp",
            Class::Dhcp => "dhcp",
            Class::Lldp => "lldp",
            Class::Tcp => "tcp",
            Class::Other => "other",
        }
    }

    /// Returns the class of a name.
    pub fn named(name: &str) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.name() == name)
    }

    /// The packets per second of an interface that pass on each worker without a setting.
    pub const fn usual_rate(self) -> u32 {
        match self {
            // A host takes this number of segments: each is one packet here.
            Class::Bgp | Class::Tcp => 200_000,
            Class::Bfd | Class::Ldp => 20_000,
            Class::Ospf | Class::Isis | Class::Pim => 5_000,
            Class::Igmp | Class::Arp | Class::Nd | Class::Icmp | Class::Other => 2_000,
            Class::Vrrp | Class::Dhcp | Class::Lldp => 500,
        }
    }

    /// Returns how many pass at once at a rate: those of a fifth of a second, and a few at least.
    pub const fn burst(rate: u32) -> u32 {
        match rate {
            0 => 0,
            1..50 => 10,
            _ => rate / 5,
        }
    }
}

/// UDP ports of BFD: one hop, its echoes, several hops, links of a bundle.
const BFD: [u16; 4] = [3784, 3785, 4784, 6784];
/// UDP ports of DHCP of both versions.
const DHCP: [u16; 4] = [67, 68, 546, 547];
/// TCP port of BGP.
const BGP: u16 = 179;
/// Port of LDP: UDP for hellos, TCP for sessions.
const LDP: u16 = 646;

/// Number of IGMP as an IP protocol.
const IGMP: u8 = 2;
/// Number of OSPF as an IP protocol.
const OSPF: u8 = 89;
/// Number of PIM as an IP protocol.
const PIM: u8 = 103;
/// Number of VRRP as an IP protocol.
const VRRP: u8 = 112;

/// Returns the class of an IP packet, by its first segment.
#[must_use]
pub fn of_ip(packet: &[u8]) -> Class {
    let found = match packet.first().map(|b| b >> 4) {
        Some(4) => {
            let header = usize::from(packet[0] & 15) * 4;
            let is_rest = get_be16(packet, 6).is_some_and(|word| word & 0x1fff != 0);
            let payload = if is_rest { &[] } else { packet.get(header..).unwrap_or_default() };
            packet.get(9).map(|protocol| (*protocol, payload))
        }
        Some(6) => Ipv6View::parse_prefix(packet).ok().and_then(|ip| {
            let transport = ip.transport().ok()?;
            let payload = packet.get(HEADER_LEN + transport.offset..).unwrap_or_default();
            Some((transport.protocol, payload))
        }),
        _ => None,
    };
    found.map_or(Class::Other, |(protocol, payload)| of_transport(protocol, payload))
}

fn of_transport(protocol: u8, payload: &[u8]) -> Class {
    let ports = || [0, 2].map(|at| get_be16(payload, at).unwrap_or(0));
    let either = |of: &[u16]| ports().iter().any(|port| of.contains(port));
    match protocol {
        protocol::TCP if either(&[BGP]) => Class::Bgp,
        protocol::TCP | protocol::UDP if either(&[LDP]) => Class::Ldp,
        protocol::TCP => Class::Tcp,
        protocol::UDP if either(&BFD) => Class::Bfd,
        protocol::UDP if either(&DHCP) => Class::Dhcp,
        protocol::ICMPV6 if payload.first().is_some_and(|kind| is_discovery(*kind)) => Class::Nd,
        protocol::ICMP | protocol::ICMPV6 => Class::Icmp,
        IGMP => Class::Igmp,
        OSPF => Class::Ospf,
        PIM => Class::Pim,
        VRRP => Class::Vrrp,
        _ => Class::Other,
    }
}

/// Returns whether a type of ICMPv6 is of neighbour or listener discovery.
fn is_discovery(kind: u8) -> bool {
    use thalweg_wire::icmpv6::kind as k;
    (k::LISTENER_QUERY..=k::REDIRECT).contains(&kind) || kind == k::LISTENER_REPORT_V2
}

/// Ethertype of LLDP.
const LLDP: u16 = 0x88cc;
/// Network layer protocol identifier of IS-IS (ISO/IEC TR 9577).
const NLPID_ISIS: u8 = 0x83;

/// Returns the class of a frame that is no IP packet, by its ethertype, or a length in its place,
/// and what follows.
#[must_use]
pub fn of_frame(ethertype: u16, payload: &[u8]) -> Class {
    match ethertype {
        LLDP => Class::Lldp,
        thalweg_wire::ethernet::ethertype::ARP => Class::Arp,
        0..0x600 if osi_protocol(payload) == Some(NLPID_ISIS) => Class::Isis,
        _ => Class::Other,
    }
}

/// Returns the OSI protocol of a frame with a length: behind an LLC header for OSI's network layer
/// (ISO/IEC 8802-2, DSAP and SSAP FE, unnumbered information).
#[must_use]
pub fn osi_protocol(payload: &[u8]) -> Option<u8> {
    match payload {
        [0xfe, 0xfe, 0x03, protocol, ..] => Some(*protocol),
        _ => None,
    }
}

/// Returns whether a host that is notified of neighbours wants an ARP packet, too: a reply, or what
/// a host says of itself unasked (RFC 5227 section 3).
#[must_use]
pub fn is_news(packet: &[u8]) -> bool {
    arp::ArpView::parse(packet)
        .is_ok_and(|arp| arp.operation() == arp::Operation::Reply || arp.is_gratuitous())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ip4(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut p = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 1, protocol, 0, 0];
        p.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        p.extend(payload);
        p
    }

    fn ip6(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut p = vec![0x60, 0, 0, 0];
        p.extend((payload.len() as u16).to_be_bytes());
        p.extend([protocol, 255]);
        p.extend([0; 32]);
        p.extend(payload);
        p
    }

    /// A transport header between these ports.
    fn ports(from: u16, to: u16) -> Vec<u8> {
        let mut p = [from.to_be_bytes(), to.to_be_bytes()].concat();
        p.extend([0; 16]);
        p
    }

    #[test]
    fn packets_have_the_class_of_their_protocol() {
        for make in [ip4, ip6] {
            let class = |protocol, payload: &[u8]| of_ip(&make(protocol, payload));
            assert_eq!(class(6, &ports(179, 40_000)), Class::Bgp);
            assert_eq!(class(6, &ports(40_000, 179)), Class::Bgp);
            assert_eq!(class(6, &ports(40_000, 22)), Class::Tcp);
            assert_eq!(class(17, &ports(49_152, 3784)), Class::Bfd);
            assert_eq!(class(17, &ports(68, 67)), Class::Dhcp);
            assert_eq!(class(17, &ports(546, 547)), Class::Dhcp);
            assert_eq!(class(17, &ports(500, 500)), Class::Other);
            assert_eq!(class(89, &[2, 1]), Class::Ospf);
            assert_eq!(class(112, &[]), Class::Vrrp);
            assert_eq!(class(17, &ports(646, 646)), Class::Ldp);
            assert_eq!(class(6, &ports(40_000, 646)), Class::Ldp);
            assert_eq!(class(103, &[]), Class::Pim);
            assert_eq!(class(2, &[]), Class::Igmp);
            assert_eq!(class(50, &[]), Class::Other);
        }
        assert_eq!(of_ip(&ip4(1, &[3, 3])), Class::Icmp);
        assert_eq!(of_ip(&ip6(58, &[1, 3, 0, 0])), Class::Icmp);
        assert_eq!(of_ip(&ip6(58, &[136, 0, 0, 0])), Class::Nd);
        let mut rest = ip4(6, &ports(179, 179));
        rest[7] = 1;
        assert_eq!(of_ip(&rest), Class::Tcp, "a later fragment has no ports");
        assert_eq!(of_ip(&[]), Class::Other);
    }

    #[test]
    fn frames_have_the_class_of_their_type() {
        assert_eq!(of_frame(0x88cc, &[]), Class::Lldp);
        assert_eq!(of_frame(0x806, &[]), Class::Arp);
        assert_eq!(of_frame(1497, &[0xfe, 0xfe, 3, 0x83]), Class::Isis);
        assert_eq!(of_frame(100, &[0xfe, 0xfe, 3, 0x82]), Class::Other);
        assert_eq!(of_frame(100, &[0x42, 0x42, 3]), Class::Other);
    }

    #[test]
    fn classes_are_found_by_their_names() {
        for (i, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!((class as usize, Class::named(class.name())), (i, Some(class)));
            assert!(Class::burst(class.usual_rate()) > 0);
        }
        assert_eq!(Class::named("egp"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_class(bytes in prop::collection::vec(any::<u8>(), 0..120), kind: u16) {
            let _ = (of_ip(&bytes), of_frame(kind, &bytes), is_news(&bytes));
        }
    }
}
