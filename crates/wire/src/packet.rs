//! The one reading of a packet: addresses, protocol, ports, flags and fragment.
//!
//! Code that decides by these fields takes them from a [`PacketView`]: rules, the tracker,
//! translation, hashes, ICMP errors and samples. Two readers that disagree let packets through that
//! one of them would have stopped. The view never reads behind the end of the IP packet, whatever
//! follows it in the frame. The view takes no field from an incomplete transport header (RFC 1858,
//! RFC 3128), walks the extension headers of IPv6, and reads no transport header in a fragment
//! other than the first. Kernels may read common packets by themselves, if tests hold them equal to
//! it.

use core::net::IpAddr;

use crate::bytes::be16;
use crate::ip::{has_ports, min_header_len, protocol};
use crate::ipv4::Ipv4View;
use crate::ipv6::{self, Ipv6View};
use crate::{icmpv4, icmpv6, nat, tcp};

/// Offset of the byte with the header length of TCP.
const TCP_OFFSET: usize = 12;

/// The part of its datagram that a packet is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Part {
    /// All of it.
    #[default]
    Whole,
    /// The first fragment.
    First,
    /// A fragment other than the first: it has no transport header.
    Later,
}

/// The IP header.
#[derive(Clone, Copy, Debug)]
enum Ip<'a> {
    V4(Ipv4View<'a>),
    V6(Ipv6View<'a>),
}

/// An IP packet, and where its transport header is.
#[derive(Clone, Copy, Debug)]
pub struct PacketView<'a> {
    ip: Ip<'a>,
    protocol: u8,
    part: Part,
    l4: usize,
    payload: &'a [u8],
}

impl<'a> PacketView<'a> {
    /// Reads a packet of at most `len` bytes; `l3` are those at hand, from the IP header on. `None`
    /// if the IP header or an extension header is malformed or truncated, or the packet is longer.
    #[inline]
    pub fn read(l3: &'a [u8], len: usize) -> Option<Self> {
        match l3.first()? >> 4 {
            4 => Some(Self::of_v4(Ipv4View::parse_chain(l3, len).ok()?)),
            6 => Self::of_v6(Ipv6View::parse_chain(l3, len).ok()?),
            _ => None,
        }
    }

    /// Reads a packet that may be truncated after its headers, as in a sample or in the quote of an
    /// ICMP error.
    #[inline]
    pub fn read_prefix(l3: &'a [u8]) -> Option<Self> {
        Self::read(l3, usize::MAX)
    }

    /// The view of a packet whose IPv4 header was parsed.
    #[inline]
    pub fn of_v4(ip: Ipv4View<'a>) -> Self {
        let part = match (ip.fragment_offset(), ip.more_fragments()) {
            (0, false) => Part::Whole,
            (0, true) => Part::First,
            _ => Part::Later,
        };
        let (protocol, l4, payload) = (ip.protocol(), ip.header_len(), ip.payload());
        PacketView { ip: Ip::V4(ip), protocol, part, l4, payload }
    }

    /// The view of a packet whose IPv6 header was parsed; `None` if an extension header is
    /// truncated or there are too many.
    #[inline]
    pub fn of_v6(ip: Ipv6View<'a>) -> Option<Self> {
        let behind = ip.transport().ok()?;
        let part = match behind.fragment {
            Some(f) if f.offset != 0 => Part::Later,
            Some(f) if f.more => Part::First,
            _ => Part::Whole,
        };
        let (protocol, l4) = (behind.protocol, ipv6::HEADER_LEN + behind.offset);
        Some(PacketView { ip: Ip::V6(ip), protocol, part, l4, payload: behind.payload })
    }

    /// The source address.
    #[inline]
    pub fn src(&self) -> IpAddr {
        match &self.ip {
            Ip::V4(ip) => ip.src().into(),
            Ip::V6(ip) => ip.src().into(),
        }
    }

    /// The destination address.
    #[inline]
    pub fn dst(&self) -> IpAddr {
        match &self.ip {
            Ip::V4(ip) => ip.dst().into(),
            Ip::V6(ip) => ip.dst().into(),
        }
    }

    /// Its IPv4 header, if it has one.
    #[inline]
    pub fn v4(&self) -> Option<&Ipv4View<'a>> {
        match &self.ip {
            Ip::V4(ip) => Some(ip),
            Ip::V6(_) => None,
        }
    }

    /// TTL or hop limit.
    #[inline]
    pub fn ttl(&self) -> u8 {
        match &self.ip {
            Ip::V4(ip) => ip.ttl(),
            Ip::V6(ip) => ip.hop_limit(),
        }
    }

    /// Type of service or traffic class.
    #[inline]
    pub fn tos(&self) -> u8 {
        match &self.ip {
            Ip::V4(ip) => ip.tos(),
            Ip::V6(ip) => ip.traffic_class(),
        }
    }

    /// The transport protocol, behind extension headers. In a later fragment of IPv6, the type of
    /// the first header of the datagram's fragmented part.
    #[inline]
    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// The part of its datagram that it is.
    #[inline]
    pub fn part(&self) -> Part {
        self.part
    }

    /// True for every fragment of a datagram, the first included.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        self.part != Part::Whole
    }

    /// Offset of the transport header.
    #[inline]
    pub fn l4(&self) -> usize {
        self.l4
    }

    /// Offset of the end of the packet, or of what is at hand of it.
    #[inline]
    pub fn end(&self) -> usize {
        self.l4 + self.payload.len()
    }

    /// The bytes at hand behind the IP header and its extensions.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The transport header and what follows it, if the header's fixed part is whole.
    #[inline]
    fn fixed(&self) -> Option<&'a [u8]> {
        let whole = self.payload.len() >= min_header_len(self.protocol);
        (whole && self.part != Part::Later).then_some(self.payload)
    }

    /// The transport header and what follows it, if the header is whole: of TCP, with its options.
    #[inline]
    pub fn transport(&self) -> Option<&'a [u8]> {
        let l4 = self.fixed()?;
        if self.protocol != protocol::TCP {
            return Some(l4);
        }
        let length = usize::from(*l4.get(TCP_OFFSET)? >> 4) * 4;
        (tcp::HEADER_LEN..=l4.len()).contains(&length).then_some(l4)
    }

    /// Source and destination port of a protocol that has them.
    #[inline]
    pub fn ports(&self) -> Option<(u16, u16)> {
        if !has_ports(self.protocol) {
            return None;
        }
        two_words(self.transport()?)
    }

    /// [`ports`](Self::ports) for what does not decide whether a packet passes, such as its path
    /// and the translation of what passes: options need not be whole.
    #[inline]
    pub fn fixed_ports(&self) -> Option<(u16, u16)> {
        if !has_ports(self.protocol) {
            return None;
        }
        two_words(self.fixed()?)
    }

    /// TCP flags, without those that share a byte with the data offset.
    #[inline]
    pub fn tcp_flags(&self) -> Option<u8> {
        if self.protocol != protocol::TCP {
            return None;
        }
        self.transport()?.get(13).copied()
    }

    /// Type and code of ICMP, ICMPv6 or IGMP.
    #[inline]
    pub fn message(&self) -> Option<(u8, u8)> {
        match (self.protocol, self.transport()?) {
            (protocol::ICMP | protocol::ICMPV6 | protocol::IGMP, [kind, code, ..]) => {
                Some((*kind, *code))
            }
            _ => None,
        }
    }

    /// The identifier of an ICMP query or its answer.
    #[inline]
    pub fn identifier(&self) -> Option<u16> {
        let (kind, _) = self.message()?;
        let is_query = match self.protocol {
            protocol::ICMP => icmpv4::is_query(kind),
            protocol::ICMPV6 => icmpv6::is_echo(kind),
            _ => false,
        };
        if !is_query {
            return None;
        }
        Some(be16(self.payload.first_chunk::<8>()?, 4))
    }

    /// Returns whether it is an ICMP message about another packet.
    #[inline]
    pub fn is_error(&self) -> bool {
        match (self.protocol, self.message()) {
            (protocol::ICMP, Some((kind, _))) => icmpv4::is_error(kind),
            (protocol::ICMPV6, Some((kind, _))) => icmpv6::is_error(kind),
            _ => false,
        }
    }

    /// The packet that an ICMP error is about, as far as it is quoted.
    #[inline]
    pub fn quote(&self) -> Option<PacketView<'a>> {
        if !self.is_error() {
            return None;
        }
        Self::read_prefix(self.payload.get(icmpv4::HEADER_LEN..)?)
    }

    /// The ports of a [quoted](Self::quote) packet: its first eight bytes suffice, since no more is
    /// guaranteed (RFC 792).
    #[inline]
    pub fn quoted_ports(&self) -> Option<(u16, u16)> {
        let begins = has_ports(self.protocol) && self.part != Part::Later;
        if begins { two_words(self.payload) } else { None }
    }
}

#[inline]
fn two_words(l4: &[u8]) -> Option<(u16, u16)> {
    let [a, b, c, d] = *l4.first_chunk()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

/// Fuzzing entry: the view of any bytes is bounded, what follows the packet does not matter, and
/// rewriting stays within it.
///
/// # Panics
/// If that does not hold.
pub fn fuzz_packet(l3: &[u8]) {
    let Some(view) = PacketView::read_prefix(l3) else { return };
    let fields = |v: &PacketView<'_>| {
        let quote = v.quote().map(|q| (q.src(), q.dst(), q.protocol(), q.quoted_ports()));
        let ends = (v.src(), v.dst(), v.protocol(), v.part(), v.ttl(), v.tos());
        (ends, v.ports(), v.fixed_ports(), v.tcp_flags(), v.message(), v.identifier(), quote)
    };
    let (l4, end) = (view.l4(), view.end());
    assert!(l4 <= end && end <= l3.len(), "{l4} {end} {}", l3.len());
    assert_eq!(view.payload(), &l3[l4..end]);
    // The bytes behind it do not matter.
    let mut others = l3.to_vec();
    others[end..].iter_mut().for_each(|byte| *byte = !*byte);
    others.extend([0xa5; 9]);
    let cut = PacketView::read_prefix(&l3[..end]).map(|v| fields(&v));
    assert_eq!(cut, Some(fields(&view)));
    if end < l3.len() {
        let other = PacketView::read_prefix(&others).map(|v| fields(&v));
        assert_eq!(other, Some(fields(&view)));
    }
    if let Some((sport, dport)) = view.fixed_ports() {
        let word = |at: usize| u16::from_be_bytes([l3[l4 + at], l3[l4 + at + 1]]);
        assert_eq!((sport, dport), (word(0), word(2)));
        assert!(view.part() != Part::Later);
        assert!(view.ports().is_none_or(|ports| ports == (sport, dport)));
    }
    let _ = crate::owner::flow(l3).map(|t| t.symmetric_hash32());
    // The packet goes there and back again.
    let parsed = nat::packet::parse(l3, 0);
    if view.v4().is_none() {
        let (src, dst) = (1u128.into(), (!7u128).into());
        let to = nat::v6::Ends { src, dst, sport: 0x1122, dport: 0x3344 };
        type Change = fn(&mut [u8], &nat::v6::Ends) -> bool;
        let all: [Change; 3] = [
            nat::v6::rewrite_error,
            |l3, to| nat::v6::rewrite(l3, to, false),
            |l3, to| nat::v6::readdress(l3, to, true),
        ];
        for change in all {
            let mut there = l3.to_vec();
            if !change(&mut there, &to) {
                assert_eq!(there, l3);
            }
            assert_eq!(there[end..], l3[end..]);
        }
        return;
    }
    if parsed.kind == nat::packet::Kind::Unknown {
        return;
    }
    assert_eq!((parsed.l4, parsed.end), (l4, end));
    let (mut there, to) = (l3.to_vec(), [0x0102_0304_0506_0708, 0x1122_3344]);
    let change = |from: &nat::tuple::Key, to: [u64; 2]| {
        let l3 = nat::tuple::address_delta(from[0], to[0]);
        let ports = nat::tuple::port_delta(from[1] as u32, to[1] as u32);
        let l4 = nat::tuple::fold(u32::from(l3) + u32::from(ports));
        nat::packet::Change { addresses: to[0], ports: to[1] as u32, l3, l4 }
    };
    match parsed.kind {
        nat::packet::Kind::Error(_) => {
            nat::packet::rewrite_error(&mut there, &parsed, &change(&parsed.key, to), false);
        }
        _ if !nat::packet::rewrite(&mut there, &parsed, &change(&parsed.key, to), false) => {
            assert_eq!(there, l3);
        }
        _ => {}
    }
    assert_eq!(there[end..], l3[end..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{self, Packet};
    use crate::icmpv4::IcmpRepr;
    use proptest::prelude::*;
    use std::vec::Vec;

    const A: core::net::Ipv4Addr = core::net::Ipv4Addr::new(10, 0, 0, 1);
    const B: core::net::Ipv4Addr = core::net::Ipv4Addr::new(10, 0, 0, 2);

    /// A field is read once the header that it is in is whole, and not before.
    #[test]
    fn truncated_at_every_byte() {
        for number in [6, 17, 33, 132, 136] {
            let l4 = build::segment(number, (A, 5), (B, 80), &[0x50; 30], 0);
            let mut l3 = Packet::new().ipv4(A, B).protocol(number).payload(&l4).build();
            if number == 6 {
                l3[32] = 0x60;
            }
            let (fixed, whole) = match number {
                6 => (20, 24),
                17 | 136 => (8, 8),
                _ => (12, 12),
            };
            for end in 0..=l3.len() {
                let cut = PacketView::read_prefix(&l3[..end]);
                assert_eq!(cut.is_some(), end >= 20);
                let there = cut.and_then(|v| v.ports());
                assert_eq!(there.is_some(), end >= 20 + whole, "{number} {end}");
                assert_eq!(cut.and_then(|v| v.fixed_ports()).is_some(), end >= 20 + fixed);
                assert_eq!(PacketView::read(&l3[..end], end).is_some(), end == l3.len());
                // The same if the packet says that it ends there.
                let mut said = l3.clone();
                said[2..4].copy_from_slice(&(end as u16).to_be_bytes());
                let said = PacketView::read(&said, l3.len());
                assert_eq!(said.is_some(), end >= 20);
                assert_eq!(said.and_then(|v| v.ports()), there);
                fuzz_packet(&l3[..end]);
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_within_bounds(
            mut l3 in prop::collection::vec(any::<u8>(), 0..160),
            kind in 0u8..3, number in 0usize..9, length in 0usize..160,
        ) {
            let numbers = [1, 6, 17, 33, 44, 58, 60, 132, 136];
            if let (0 | 1, [first, .., _, _, _, _, _, _, _, _, _, _]) = (kind, &mut l3[..]) {
                *first = [0x45, 0x60][usize::from(kind)];
                let at = [9, 6][usize::from(kind)];
                l3[at] = numbers[number];
                let at = [2, 4][usize::from(kind)];
                l3[at..at + 2].copy_from_slice(&(length as u16).to_be_bytes());
            }
            fuzz_packet(&l3);
        }

        #[test]
        fn errors_are_read_within_bounds(
            quote in prop::collection::vec(any::<u8>(), 0..80), number in 0usize..6,
            trailer in prop::collection::vec(any::<u8>(), 0..30), part: bool,
        ) {
            let number = [1, 6, 17, 33, 132, 136][number];
            let quoted = Packet::new().ipv4(B, A).protocol(number).payload(&quote).build();
            let mut l3: Vec<u8> =
                Packet::new().ipv4(A, B).icmp(IcmpRepr::unreachable(3)).payload(&quoted).build();
            if part {
                l3[6] = 0x20;
            }
            l3.extend(trailer);
            fuzz_packet(&l3);
        }
    }
}
