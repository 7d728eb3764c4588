//! Whole packets from their layers, for tests and generators.
//!
//! ```
//! # use thalweg_wire::{MacAddr, build::Packet};
//! let (a, b) = (MacAddr::new(2, 0, 0, 0, 0, 1), MacAddr::new(2, 0, 0, 0, 0, 2));
//! let frame = Packet::new()
//!     .ether(a, b)
//!     .vlan(10)
//!     .ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into())
//!     .ttl(2)
//!     .udp(1024, 53)
//!     .payload(b"hello")
//!     .build();
//! assert_eq!(frame.len(), 14 + 4 + 20 + 8 + 5);
//! ```

use crate::mpls::Label;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use crate::arp::ArpRepr;
use crate::crc32c::Crc32c;
use crate::ethernet::{EthernetRepr, MIN_FRAME_LEN, MacAddr, ethertype};
use crate::gre::GreRepr;
use crate::icmpv4::IcmpRepr;
use crate::icmpv6::Icmp6Repr;
use crate::ip::{TransportSum, port_transport, protocol};
use crate::ipv4::{Ipv4Repr, flag};
use crate::ipv6::Ipv6Repr;
use crate::tcp::TcpRepr;
use crate::udp::UdpRepr;
use crate::vlan::Tag;
use crate::{arp, checksum, ethernet, gre, icmpv6, ipv4, ipv6, mpls, tcp, udp, vlan, vxlan};

/// Ethertype of a payload that is not a layer (IEEE local experiments).
pub const EXPERIMENTAL_ETHERTYPE: u16 = 0x88b5;
/// Protocol of a payload that is not a layer (RFC 3692 experiments).
pub const EXPERIMENTAL_PROTOCOL: u8 = 253;

/// A packet under construction, outermost layer first.
///
/// Types, lengths and checksums follow from the layers. Setters change the last layer that has the
/// field, and do nothing if there is none. A length beyond what its field can hold is written as
/// the maximum, so that GSO packets can be built.
#[derive(Clone, Debug, Default)]
pub struct Packet {
    layers: Vec<Layer>,
    payload: Vec<u8>,
    min_len: usize,
}

#[derive(Clone, Debug)]
enum Layer {
    Ether { dst: MacAddr, src: MacAddr, ethertype: Option<u16> },
    Vlan { tag: Tag, ethertype: Option<u16> },
    Mpls(mpls::Entry),
    Arp(ArpRepr),
    Ipv4 { repr: Ipv4Repr, protocol: Option<u8>, options: Vec<u8> },
    Ipv6 { repr: Ipv6Repr, protocol: Option<u8> },
    Udp { repr: UdpRepr, checksum: bool },
    Tcp { repr: TcpRepr, options: Vec<u8> },
    Icmp(IcmpRepr),
    Icmp6(Icmp6Repr),
    Gre(GreRepr),
    Vxlan(u32),
}

impl Packet {
    /// Creates an empty packet.
    pub fn new() -> Self {
        Self::default()
    }

    /// An Ethernet header.
    pub fn ether(self, src: MacAddr, dst: MacAddr) -> Self {
        self.layer(Layer::Ether { dst, src, ethertype: None })
    }

    /// An 802.1Q tag.
    pub fn vlan(self, id: u16) -> Self {
        self.tag(Tag::dot1q(id))
    }

    /// An 802.1ad service tag.
    pub fn dot1ad(self, id: u16) -> Self {
        self.tag(Tag::dot1ad(id))
    }

    /// Any tag.
    pub fn tag(self, tag: Tag) -> Self {
        self.layer(Layer::Vlan { tag, ethertype: None })
    }

    /// An entry of a label stack with a TTL of 64; the last one becomes the bottom.
    pub fn mpls(self, label: u32) -> Self {
        self.layer(Layer::Mpls(mpls::Entry::new(Label(label), 0, false, 64)))
    }

    /// An ARP packet.
    pub fn arp(self, repr: ArpRepr) -> Self {
        self.layer(Layer::Arp(repr))
    }

    /// A broadcast frame with a request for `target`.
    pub fn arp_request(mac: MacAddr, ip: Ipv4Addr, target: Ipv4Addr) -> Self {
        Self::new().ether(mac, MacAddr::BROADCAST).arp(ArpRepr::request(mac, ip, target))
    }

    /// A frame with the reply to `request`: its target is at `mac`.
    pub fn arp_reply(mac: MacAddr, request: &ArpRepr) -> Self {
        Self::new().ether(mac, request.sender_mac).arp(request.reply(mac))
    }

    /// An IPv4 header.
    pub fn ipv4(self, src: Ipv4Addr, dst: Ipv4Addr) -> Self {
        let repr = Ipv4Repr::new(src, dst, 0, 0);
        self.layer(Layer::Ipv4 { repr, protocol: None, options: Vec::new() })
    }

    /// An IPv6 header.
    pub fn ipv6(self, src: Ipv6Addr, dst: Ipv6Addr) -> Self {
        self.layer(Layer::Ipv6 { repr: Ipv6Repr::new(src, dst, 0, 0), protocol: None })
    }

    /// A UDP header.
    pub fn udp(self, src_port: u16, dst_port: u16) -> Self {
        let repr = UdpRepr { src_port, dst_port, payload_len: 0 };
        self.layer(Layer::Udp { repr, checksum: true })
    }

    /// A TCP header with ACK set and a window of 65535.
    pub fn tcp(self, src_port: u16, dst_port: u16) -> Self {
        let (flags, window) = (tcp::flag::ACK, 0xffff);
        let repr = TcpRepr { src_port, dst_port, seq: 0, ack: 0, flags, window, urgent: 0 };
        self.layer(Layer::Tcp { repr, options: Vec::new() })
    }

    /// An ICMP header.
    pub fn icmp(self, repr: IcmpRepr) -> Self {
        self.layer(Layer::Icmp(repr))
    }

    /// An echo request.
    pub fn icmp_echo_request(self, id: u16, seq: u16) -> Self {
        self.icmp(IcmpRepr::echo_request(id, seq))
    }

    /// An echo reply.
    pub fn icmp_echo_reply(self, id: u16, seq: u16) -> Self {
        self.icmp(IcmpRepr {
            kind: crate::icmpv4::kind::ECHO_REPLY,
            ..IcmpRepr::echo_request(id, seq)
        })
    }

    /// An ICMPv6 header.
    pub fn icmp6(self, repr: Icmp6Repr) -> Self {
        self.layer(Layer::Icmp6(repr))
    }

    /// An ICMPv6 echo request.
    pub fn icmp6_echo_request(self, id: u16, seq: u16) -> Self {
        self.icmp6(Icmp6Repr::echo_request(id, seq))
    }

    /// A GRE header without key and sequence number.
    pub fn gre(self) -> Self {
        self.layer(Layer::Gre(GreRepr { protocol: 0, key: None, sequence: None }))
    }

    /// A VXLAN header; [`udp`](Self::udp) goes before it and [`ether`](Self::ether) after it.
    pub fn vxlan(self, vni: u32) -> Self {
        self.layer(Layer::Vxlan(vni))
    }

    /// The bytes after all layers.
    pub fn payload(mut self, bytes: &[u8]) -> Self {
        self.payload = bytes.to_vec();
        self
    }

    /// A payload of zeros.
    pub fn payload_len(mut self, len: usize) -> Self {
        self.payload = vec![0; len];
        self
    }

    /// Pads the frame with zeros to the minimum of Ethernet, 60 bytes.
    pub fn padded(mut self) -> Self {
        self.min_len = MIN_FRAME_LEN;
        self
    }

    /// Overrides the ethertype after the last Ethernet header or tag.
    pub fn ethertype(mut self, value: u16) -> Self {
        self.set(|l| match l {
            Layer::Ether { ethertype, .. } | Layer::Vlan { ethertype, .. } => {
                *ethertype = Some(value);
                true
            }
            _ => false,
        });
        self
    }

    /// Overrides the IP protocol.
    pub fn protocol(mut self, value: u8) -> Self {
        self.set(|l| match l {
            Layer::Ipv4 { protocol, .. } | Layer::Ipv6 { protocol, .. } => {
                *protocol = Some(value);
                true
            }
            _ => false,
        });
        self
    }

    /// The TTL of IPv4 or MPLS, or IPv6's hop limit.
    pub fn ttl(mut self, ttl: u8) -> Self {
        self.set(|l| {
            match l {
                Layer::Ipv4 { repr, .. } => repr.ttl = ttl,
                Layer::Ipv6 { repr, .. } => repr.hop_limit = ttl,
                Layer::Mpls(entry) => *entry = entry.with_ttl(ttl),
                _ => return false,
            }
            true
        });
        self
    }

    /// IPv4's type of service or IPv6's traffic class.
    pub fn tos(mut self, tos: u8) -> Self {
        self.set(|l| {
            match l {
                Layer::Ipv4 { repr, .. } => repr.tos = tos,
                Layer::Ipv6 { repr, .. } => repr.traffic_class = tos,
                _ => return false,
            }
            true
        });
        self
    }

    /// IPv4's identification.
    pub fn id(self, id: u16) -> Self {
        self.ipv4_field(|repr| repr.id = id)
    }

    /// Sets IPv4's "don't fragment".
    pub fn dont_fragment(self) -> Self {
        self.ipv4_field(|repr| repr.fragment_word |= flag::DONT_FRAGMENT)
    }

    /// Makes the IPv4 packet a fragment at `offset` bytes, a multiple of eight.
    pub fn fragment(self, offset: usize, more: bool) -> Self {
        let more = if more { flag::MORE_FRAGMENTS } else { 0 };
        let word = (offset / 8) as u16 & flag::OFFSET_MASK | more;
        self.ipv4_field(|repr| repr.fragment_word = repr.fragment_word & flag::DONT_FRAGMENT | word)
    }

    /// IPv4 options, padded to words and cut at 40 bytes.
    pub fn ip_options(mut self, bytes: &[u8]) -> Self {
        self.set(|l| match l {
            Layer::Ipv4 { options, .. } => {
                *options = words(bytes);
                true
            }
            _ => false,
        });
        self
    }

    /// Omits the UDP checksum.
    pub fn no_checksum(mut self) -> Self {
        self.set(|l| match l {
            Layer::Udp { checksum, .. } => {
                *checksum = false;
                true
            }
            _ => false,
        });
        self
    }

    /// TCP's sequence number.
    pub fn seq(self, seq: u32) -> Self {
        self.tcp_field(|repr, _| repr.seq = seq)
    }

    /// TCP's acknowledgement number.
    pub fn ack(self, ack: u32) -> Self {
        self.tcp_field(|repr, _| repr.ack = ack)
    }

    /// TCP's flags (see [`tcp::flag`]).
    pub fn flags(self, flags: u8) -> Self {
        self.tcp_field(|repr, _| repr.flags = flags)
    }

    /// TCP's window.
    pub fn window(self, window: u16) -> Self {
        self.tcp_field(|repr, _| repr.window = window)
    }

    /// TCP options, padded to words and cut at 40 bytes.
    pub fn tcp_options(self, bytes: &[u8]) -> Self {
        self.tcp_field(|_, options| *options = words(bytes))
    }

    /// GRE's key.
    pub fn gre_key(mut self, key: u32) -> Self {
        self.set(|l| match l {
            Layer::Gre(repr) => {
                repr.key = Some(key);
                true
            }
            _ => false,
        });
        self
    }

    /// Returns the bytes.
    pub fn build(&self) -> Vec<u8> {
        let mut bytes = self.payload.clone();
        let mut inner = None;
        for layer in self.layers.iter().rev() {
            let mut whole = layer.header(inner, bytes.len());
            let at = whole.len();
            whole.extend_from_slice(&bytes);
            layer.finish(inner, at, &mut whole);
            bytes = whole;
            inner = Some(layer);
        }
        if bytes.len() < self.min_len {
            bytes.resize(self.min_len, 0);
        }
        bytes
    }

    fn layer(mut self, layer: Layer) -> Self {
        self.layers.push(layer);
        self
    }

    /// Offers the layers to `change`, last first, until one accepts it.
    fn set(&mut self, change: impl FnMut(&mut Layer) -> bool) {
        self.layers.iter_mut().rev().any(change);
    }

    fn ipv4_field(mut self, mut change: impl FnMut(&mut Ipv4Repr)) -> Self {
        self.set(|l| match l {
            Layer::Ipv4 { repr, .. } => {
                change(repr);
                true
            }
            _ => false,
        });
        self
    }

    fn tcp_field(mut self, mut change: impl FnMut(&mut TcpRepr, &mut Vec<u8>)) -> Self {
        self.set(|l| match l {
            Layer::Tcp { repr, options } => {
                change(repr, options);
                true
            }
            _ => false,
        });
        self
    }
}

fn words(bytes: &[u8]) -> Vec<u8> {
    let mut options = bytes[..bytes.len().min(40)].to_vec();
    options.resize(options.len().next_multiple_of(4), 0);
    options
}

fn saturated(len: usize, header: usize) -> u16 {
    len.min(0xffff - header) as u16
}

impl Layer {
    fn ethertype(&self) -> u16 {
        match self {
            Self::Vlan { tag, .. } => tag.tpid,
            Self::Mpls(_) => ethertype::MPLS,
            Self::Arp(_) => ethertype::ARP,
            Self::Ipv4 { .. } => ethertype::IPV4,
            Self::Ipv6 { .. } => ethertype::IPV6,
            Self::Ether { .. } => ethertype::TEB,
            _ => EXPERIMENTAL_ETHERTYPE,
        }
    }

    fn protocol(&self) -> u8 {
        match self {
            Self::Udp { .. } => protocol::UDP,
            Self::Tcp { .. } => protocol::TCP,
            Self::Icmp(_) => protocol::ICMP,
            Self::Icmp6(_) => protocol::ICMPV6,
            Self::Gre(_) => protocol::GRE,
            Self::Ipv4 { .. } => protocol::IP_IN_IP,
            Self::Ipv6 { .. } => protocol::IPV6,
            Self::Mpls(_) => protocol::MPLS_IN_IP,
            Self::Ether { .. } => protocol::ETHERNET,
            _ => EXPERIMENTAL_PROTOCOL,
        }
    }

    /// The header in front of `inner`, which has `len` bytes. Checksums that cover more than the
    /// header are missing (see [`finish`](Self::finish)).
    fn header(&self, inner: Option<&Self>, len: usize) -> Vec<u8> {
        let kind = inner.map_or(EXPERIMENTAL_ETHERTYPE, Self::ethertype);
        let next = inner.map_or(EXPERIMENTAL_PROTOCOL, Self::protocol);
        let mut h = vec![0; 128];
        // Nothing here can fail: the buffer holds the longest header, lengths are saturated and
        // options are whole words.
        let written = match self {
            Self::Ether { dst, src, ethertype } => {
                let ethertype = ethertype.unwrap_or(kind);
                EthernetRepr { dst: *dst, src: *src, ethertype }.emit(&mut h)
            }
            Self::Vlan { tag, ethertype } => vlan::emit(tag.tci, ethertype.unwrap_or(kind), &mut h),
            Self::Mpls(e) => {
                let bottom = !matches!(inner, Some(Self::Mpls(_)));
                mpls::Entry::new(e.label(), e.traffic_class(), bottom, e.ttl()).emit(&mut h)
            }
            Self::Arp(repr) => repr.emit(&mut h),
            Self::Ipv4 { repr, protocol, options } => {
                let payload_len = saturated(len, ipv4::HEADER_LEN + options.len());
                let protocol = protocol.unwrap_or(next);
                Ipv4Repr { protocol, payload_len, ..*repr }.emit_with_options(options, &mut h)
            }
            Self::Ipv6 { repr, protocol } => {
                let (payload_len, next_header) = (saturated(len, 0), protocol.unwrap_or(next));
                Ipv6Repr { next_header, payload_len, ..*repr }.emit(&mut h)
            }
            Self::Udp { repr, .. } => {
                let payload_len = saturated(len, udp::HEADER_LEN);
                UdpRepr { payload_len, ..*repr }.emit(&mut h)
            }
            Self::Tcp { repr, options } => repr.emit(options, &mut h),
            Self::Icmp(_) | Self::Icmp6(_) => Ok(icmpv6::HEADER_LEN),
            Self::Gre(repr) => GreRepr { protocol: kind, ..*repr }.emit(&mut h),
            Self::Vxlan(vni) => vxlan::emit(*vni, &mut h),
        };
        h.truncate(written.unwrap_or_default());
        h
    }

    /// Writes the checksums that cover what follows the header, which is `at` bytes long.
    fn finish(&self, inner: Option<&Self>, at: usize, whole: &mut [u8]) {
        let (header, body) = whole.split_at_mut(at);
        // A body of at least its header's length cannot be refused.
        let _ = match (self, inner) {
            (Self::Icmp(repr), _) => repr.emit(whole),
            (Self::Icmp6(repr), _) => {
                header[..2].copy_from_slice(&[repr.kind, repr.code]);
                header[4..8].copy_from_slice(&repr.rest.to_be_bytes());
                Ok(at)
            }
            (Self::Ipv6 { repr, .. }, Some(Self::Icmp6(_))) => {
                icmpv6::fill_checksum(&repr.src, &repr.dst, body).map(usize::from)
            }
            (_, Some(Self::Udp { checksum: true, .. })) => match self.pseudo(17, body.len()) {
                Some(pseudo) => udp::fill_checksum(pseudo, body).map(usize::from),
                None => Ok(0),
            },
            (_, Some(Self::Tcp { .. })) => match self.pseudo(6, body.len()) {
                Some(pseudo) => tcp::fill_checksum(pseudo, body).map(usize::from),
                None => Ok(0),
            },
            _ => Ok(0),
        };
    }

    fn pseudo(&self, protocol: u8, len: usize) -> Option<checksum::Checksum> {
        let len = len as u32;
        match self {
            Self::Ipv4 { repr, .. } => Some(checksum::pseudo_v4(repr.src, repr.dst, protocol, len)),
            Self::Ipv6 { repr, .. } => {
                Some(checksum::pseudo_v6(&repr.src, &repr.dst, protocol, len))
            }
            _ => None,
        }
    }
}

// The longest header is IPv4's or TCP's with options.
const _: () = assert!(ipv4::MAX_HEADER_LEN <= 128 && tcp::MAX_HEADER_LEN <= 128);
const _: () =
    assert!(arp::PACKET_LEN <= 128 && ipv6::HEADER_LEN <= 128 && ethernet::HEADER_LEN <= 128);
const _: () = assert!(gre::HEADER_LEN + 8 <= 128);

/// A transport header of a protocol with ports, with the data behind it and the right checksum: for
/// those that [`Packet`] has no method for. UDP-Lite covers `covered` bytes of the data. Protocols
/// without ports get the data alone.
pub fn segment(
    number: u8,
    (src, sport): (Ipv4Addr, u16),
    (dst, dport): (Ipv4Addr, u16),
    data: &[u8],
    covered: usize,
) -> Vec<u8> {
    let Some(transport) = port_transport(number) else { return data.to_vec() };
    let mut l4 = (u32::from(sport) << 16 | u32::from(dport)).to_be_bytes().to_vec();
    l4.resize(transport.header_len, 0);
    l4.extend(data);
    let mut end = l4.len();
    if number == protocol::UDP_LITE {
        end = (transport.header_len + covered).min(end);
        l4[4..6].copy_from_slice(&(end as u16).to_be_bytes());
    }
    let at = transport.checksum_at;
    if transport.sum == TransportSum::Crc32c {
        let mut crc = Crc32c::default();
        crc.add(&l4);
        l4[at..at + 4].copy_from_slice(&crc.finish());
    } else {
        let mut sum = checksum::pseudo_v4(src, dst, number, l4.len() as u32);
        sum.add(&l4[..end]);
        l4[at..at + 2].copy_from_slice(&sum.finish_udp().to_be_bytes());
    }
    l4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arp::ArpView;
    use crate::icmpv4::IcmpView;
    use crate::icmpv6::Icmp6View;
    use crate::ipv6::Ipv6View;
    use crate::tcp::TcpView;
    use crate::udp::UdpView;
    use crate::vlan::layer2;

    const A: MacAddr = MacAddr::new(2, 0, 0, 0, 0, 1);
    const B: MacAddr = MacAddr::new(2, 0, 0, 0, 0, 2);
    const IP_A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const IP_B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    #[test]
    fn a_tagged_udp_packet() {
        let p = Packet::new().ether(A, B).dot1ad(100).vlan(10).ipv4(IP_A, IP_B).ttl(2).tos(0xb8);
        let frame = p.id(7).dont_fragment().udp(1, 2).payload(b"abc").build();
        let l2 = layer2(&frame).unwrap();
        assert_eq!((l2.ethernet.src(), l2.ethernet.dst()), (A, B));
        assert_eq!(l2.tags, [Some(Tag::dot1ad(100)), Some(Tag::dot1q(10))]);
        let ip = ipv4::check(l2.payload).unwrap();
        assert_eq!((ip.ttl(), ip.tos(), ip.id(), ip.dont_fragment()), (2, 0xb8, 7, true));
        let udp = UdpView::parse(ip.payload()).unwrap();
        assert!(udp.checksum() != 0 && udp.checksum_ok(ip.pseudo_header()));
        assert_eq!((udp.src_port(), udp.dst_port(), udp.payload()), (1, 2, &b"abc"[..]));
        let none = Packet::new().ipv4(IP_A, IP_B).udp(1, 2).no_checksum().build();
        assert_eq!(none[26..28], [0, 0]);
    }

    #[test]
    fn tcp_with_options_over_ipv6() {
        let (a, b) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
        let p = Packet::new().ipv6(a, b).ttl(3).tcp(1, 2).seq(5).ack(6).flags(tcp::flag::SYN);
        let packet = p.window(7).tcp_options(&[2, 4, 5, 0xb4, 1]).payload(b"x").build();
        let ip = Ipv6View::parse(&packet).unwrap();
        assert_eq!((ip.hop_limit(), ip.next_header(), ip.payload_len()), (3, 6, 29));
        let tcp = TcpView::parse(ip.payload()).unwrap();
        assert!(tcp.checksum_ok(ip.pseudo_header(6, 29)));
        assert_eq!((tcp.seq(), tcp.ack(), tcp.window(), tcp.mss()), (5, 6, 7, Some(1460)));
        assert_eq!((tcp.flags(), tcp.payload()), (tcp::flag::SYN, &b"x"[..]));
    }

    #[test]
    fn arp_and_pings() {
        let frame = Packet::arp_request(A, IP_A, IP_B).padded().build();
        assert_eq!(frame.len(), 60);
        let request = ArpView::parse(layer2(&frame).unwrap().payload).unwrap().repr();
        let frame = Packet::arp_reply(B, &request).build();
        let reply = ArpView::parse(layer2(&frame).unwrap().payload).unwrap();
        assert_eq!((reply.sender_mac(), reply.target_ip()), (B, IP_A));

        let packet = Packet::new().ipv4(IP_A, IP_B).icmp_echo_request(7, 1).payload(b"abc").build();
        let icmp = IcmpView::parse(ipv4::check(&packet).unwrap().payload()).unwrap();
        assert!(icmp.checksum_ok());
        assert_eq!((icmp.repr(), icmp.payload()), (IcmpRepr::echo_request(7, 1), &b"abc"[..]));
        let (a, b) = ("fe80::1".parse().unwrap(), "fe80::2".parse().unwrap());
        let packet = Packet::new().ipv6(a, b).icmp6_echo_request(7, 1).payload(b"abc").build();
        let icmp = Icmp6View::parse(Ipv6View::parse(&packet).unwrap().payload()).unwrap();
        assert!(icmp.checksum_ok(&a, &b));
        assert_eq!(icmp.repr(), Icmp6Repr::echo_request(7, 1));
    }

    #[test]
    fn tunnels() {
        let inner = Packet::new().ether(B, A).ipv4(IP_B, IP_A).udp(5, 6).build();
        let outer = Packet::new().ipv4(IP_A, IP_B).udp(4, udp::port::VXLAN).vxlan(42);
        let packet = outer.ether(B, A).ipv4(IP_B, IP_A).udp(5, 6).build();
        let ip = ipv4::check(&packet).unwrap();
        let vxlan = vxlan::VxlanView::parse(UdpView::parse(ip.payload()).unwrap().payload());
        assert_eq!(vxlan.map(|v| (v.vni(), v.payload())), Ok((42, &inner[..])));

        let packet = Packet::new().ipv4(IP_A, IP_B).gre().gre_key(9).ipv4(IP_B, IP_A).build();
        let ip = ipv4::check(&packet).unwrap();
        let gre = gre::GreView::parse(ip.payload()).unwrap();
        assert_eq!((ip.protocol(), gre.protocol(), gre.key()), (47, 0x800, Some(9)));

        let frame = Packet::new().ether(A, B).mpls(16).mpls(17).ttl(3).ipv4(IP_A, IP_B).build();
        let l2 = layer2(&frame).unwrap();
        let mut stack = mpls::Stack::new(l2.payload);
        assert_eq!(stack.next(), Some(mpls::Entry::new(Label(16), 0, false, 64)));
        assert_eq!(stack.next(), Some(mpls::Entry::new(Label(17), 0, true, 3)));
        assert_eq!(l2.ethertype, ethertype::MPLS);
        assert!(ipv4::check(stack.payload()).is_ok());
    }

    #[test]
    fn overrides_and_fragments() {
        let p = Packet::new().ether(A, B).ethertype(0x1234).payload(b"x").build();
        assert_eq!(layer2(&p).unwrap().ethertype, 0x1234);
        let p = Packet::new().ipv4(IP_A, IP_B).protocol(89).ip_options(&[148, 4, 0, 0]);
        let p = p.fragment(1480, true).payload_len(8).build();
        let ip = ipv4::check(&p).unwrap();
        assert_eq!((ip.protocol(), ip.fragment_offset(), ip.header_len()), (89, 1480, 24));
        assert!(ip.more_fragments() && ip.options().count() == 1);
    }
}
