//! Parses and rewrites a packet from its IPv4 header on.

use super::tuple::{self, Key};
use crate::bytes::{be16, get, get_be16, get_le16, get_le32, get_le64, set};
use crate::ip::{PortTransport, TransportSum, has_ports, port_transport, protocol};
use crate::ipv4::{self, VERSION_IHL};
use crate::packet::{PacketView, Part};
use crate::{crc32c, icmpv4, tcp};

/// Kind of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// TCP, UDP or another protocol with ports.
    Ports,
    /// An ICMP query or its reply.
    Query,
    /// An ICMP error whose quoted packet begins at this offset. The key is that of the direction of
    /// the error, opposite to the quoted packet.
    Error(usize),
    /// Another protocol.
    Other,
    /// A fragment other than the first, without ports.
    Fragment,
    /// Without a whole transport header, or an ICMP type that has no session: a redirect, for
    /// example.
    Unknown,
}

/// The parsed fields of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parsed {
    /// Key of its session.
    pub key: Key,
    /// Kind.
    pub kind: Kind,
    /// IP protocol.
    pub protocol: u8,
    /// Offset of the transport header.
    pub l4: usize,
    /// Offset of the packet's end, or of the end of what is at hand of it.
    pub end: usize,
    /// TCP flags.
    pub flags: u8,
    /// Key of the datagram, for fragments.
    pub datagram: Option<Key>,
}

const LENGTH: usize = 2;
const CHECKSUM: usize = 10;
const ADDRESSES: usize = 12;
const TCP_FLAGS: usize = 13;
const ICMP_CHECKSUM: usize = 2;
const ICMP_ID: usize = 4;
/// Offset of the packet quoted by an ICMP error.
const ICMP_QUOTE: usize = 8;

/// Returns whether an ICMP type is a query.
#[inline]
pub fn asks(kind: u8) -> bool {
    matches!(kind, 8 | 13 | 15 | 17)
}

/// Returns whether fragments share a key that the first one's ports are part of.
fn is_keyed(ip: u8) -> bool {
    has_ports(ip) || ip == protocol::ICMP
}

/// Ports as they lie in headers.
fn word((sport, dport): (u16, u16)) -> u32 {
    u32::from(sport.swap_bytes()) | u32::from(dport.swap_bytes()) << 16
}

/// Both addresses of a packet, as in a key; 0 if its header is truncated.
#[inline]
pub fn addresses(l3: &[u8]) -> u64 {
    get_le64(l3, ADDRESSES).unwrap_or(0)
}

/// Parses a packet whose destination is looked up in `table`. Bytes behind its end are ignored.
#[inline]
pub fn parse(l3: &[u8], table: u32) -> Parsed {
    plain(l3, table).unwrap_or_else(|| general(l3, table))
}

/// Parses the most frequent kind of packet: TCP or UDP after a header without options, not a
/// fragment, and long enough for either header.
#[inline]
fn plain(l3: &[u8], table: u32) -> Option<Parsed> {
    let h = l3.first_chunk::<40>()?;
    let (total, number) = (usize::from(be16(h, LENGTH)), h[9]);
    let is_plain = h[0] == VERSION_IHL
        && be16(h, 6) & 0x3fff == 0
        && matches!(number, protocol::TCP | protocol::UDP)
        && total >= 40;
    if !is_plain {
        return None;
    }
    let ports = u32::from_le_bytes([h[20], h[21], h[22], h[23]]);
    Some(Parsed {
        key: tuple::key(addresses(h), ports, number, table),
        kind: Kind::Ports,
        protocol: number,
        l4: ipv4::HEADER_LEN,
        end: total.min(l3.len()),
        flags: if number == protocol::TCP { h[ipv4::HEADER_LEN + TCP_FLAGS] } else { 0 },
        datagram: None,
    })
}

/// [`parse`] for any packet, by the [view](PacketView) of it.
#[inline(never)]
fn general(l3: &[u8], table: u32) -> Parsed {
    let unknown = Parsed {
        key: [0; 2],
        kind: Kind::Unknown,
        protocol: 0,
        l4: 0,
        end: 0,
        flags: 0,
        datagram: None,
    };
    let packet = PacketView::read_prefix(l3);
    let Some((packet, ip)) = packet.as_ref().and_then(|p| Some((p, p.v4()?))) else {
        return unknown;
    };
    let (addresses, number) = (addresses(ip.header()), packet.protocol());
    let key = |ports| tuple::key(addresses, ports, number, table);
    let (l4, end) = (packet.l4(), packet.end());
    let mut parsed = Parsed { key: key(0), protocol: number, l4, end, ..unknown };
    if packet.is_fragment() && is_keyed(number) {
        parsed.datagram = Some(key(ip.id().into()));
        if packet.part() == Part::Later {
            return Parsed { kind: Kind::Fragment, ..parsed };
        }
    }
    if !is_keyed(number) {
        return Parsed { kind: Kind::Other, ..parsed };
    }
    if let Some(ports) = packet.fixed_ports() {
        let is_tcp = number == protocol::TCP;
        let flags = if is_tcp { packet.payload().get(TCP_FLAGS).map_or(0, |f| *f) } else { 0 };
        return Parsed { key: key(word(ports)), kind: Kind::Ports, flags, ..parsed };
    }
    if let Some(id) = packet.identifier() {
        return Parsed { key: key(word((id, id))), kind: Kind::Query, ..parsed };
    }
    // A redirect is about the sender's own link: on the other side of a translation it would be
    // wrong.
    let redirects = packet.message().is_some_and(|(kind, _)| kind == icmpv4::kind::REDIRECT);
    // An error goes to the sender of the packet that it quotes.
    let quote = packet.quote().filter(|quote| !redirects && quote.src() == packet.dst());
    match quote.and_then(|quote| quoted_key(&quote, table)) {
        Some(key) => Parsed { key, kind: Kind::Error(l4 + ICMP_QUOTE), ..parsed },
        None => parsed,
    }
}

/// The key of the direction opposite to a quoted packet.
fn quoted_key(quote: &PacketView<'_>, table: u32) -> Option<Key> {
    let (ip, number) = (quote.v4()?, quote.protocol());
    if ip.fragment_offset() != 0 {
        return None;
    }
    let ports = match number {
        protocol::ICMP => quote.identifier().map(|id| (id, id))?,
        _ if has_ports(number) => quote.quoted_ports()?,
        _ => (0, 0),
    };
    Some(tuple::reversed(&tuple::key(addresses(ip.header()), word(ports), number, table)))
}

/// The new tuple of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// New addresses.
    pub addresses: u64,
    /// New ports.
    pub ports: u32,
    /// Delta for checksums over the addresses.
    pub l3: u16,
    /// Delta for checksums over addresses and ports.
    pub l4: u16,
}

/// Rewrites the addresses of a packet and updates the header checksum by `delta`.
#[inline]
pub fn readdress(l3: &mut [u8], addresses: u64, delta: u16) {
    set(l3, ADDRESSES, &addresses.to_le_bytes());
    if let Some(old) = get_le16(l3, CHECKSUM) {
        set(l3, CHECKSUM, &tuple::follow(old, delta).to_le_bytes());
    }
}

/// Rewrites the tuple of a packet. `partial`: the transport checksum is still to be completed by a
/// device. Returns false and changes nothing if the checksum cannot follow: that of a fragment of
/// SCTP depends on the whole datagram.
#[inline]
#[must_use]
pub fn rewrite(l3: &mut [u8], p: &Parsed, change: &Change, partial: bool) -> bool {
    let ports = match p.kind {
        Kind::Ports => port_transport(p.protocol),
        _ => None,
    };
    let is_crc = matches!(ports, Some(PortTransport { sum: TransportSum::Crc32c, .. }));
    if is_crc && p.datagram.is_some() && get_le32(l3, p.l4) != Some(change.ports) {
        return false;
    }
    let follow = |l3: &mut [u8], at: usize, delta: u16| {
        if let Some(old) = get_le16(l3, at) {
            set(l3, at, &tuple::follow(old, delta).to_le_bytes());
        }
    };
    set(l3, ADDRESSES, &change.addresses.to_le_bytes());
    follow(l3, CHECKSUM, change.l3);
    if p.kind == Kind::Query {
        set(l3, p.l4 + ICMP_ID, &(change.ports as u16).to_le_bytes());
        follow(l3, p.l4 + ICMP_CHECKSUM, change.l4);
    }
    let Some(transport) = ports else { return true };
    let at = p.l4 + transport.checksum_at;
    let (Some(old_ports), Some(old)) = (get(l3, p.l4), get_le16(l3, at)) else { return true };
    let new_ports = change.ports.to_le_bytes();
    set(l3, p.l4, &new_ports);
    match transport.sum {
        TransportSum::Crc32c => {
            let length = get_be16(l3, LENGTH).map_or(0, usize::from);
            let behind = length.saturating_sub(p.l4 + new_ports.len());
            if let Some(crc) = get(l3, at).filter(|_| !partial) {
                set(l3, at, &crc32c::replaced(crc, old_ports, new_ports, behind));
            }
        }
        TransportSum::Internet { .. } if partial => {
            set(l3, at, &tuple::follow_partial(old, change.l3).to_le_bytes());
        }
        TransportSum::Internet { zero_is_none: true } if old == 0 => {}
        TransportSum::Internet { .. } => {
            set(l3, at, &followed(p.protocol, old, change.l4).to_le_bytes());
        }
    }
    true
}

/// A checksum after a change. Only TCP sends zero as it is (RFC 768, RFC 3828).
#[inline]
pub(super) fn followed(number: u8, old: u16, delta: u16) -> u16 {
    match tuple::follow(old, delta) {
        0 if number != protocol::TCP => 0xffff,
        sum => sum,
    }
}

/// Changed bytes and their effect on a checksum.
pub(super) struct Edit<'a> {
    pub(super) data: &'a mut [u8],
    pub(super) delta: u32,
}

impl Edit<'_> {
    /// Sets two bytes at an even offset, if present.
    pub(super) fn set(&mut self, at: usize, new: u16) {
        if let Some(old) = get_le16(self.data, at) {
            set(self.data, at, &new.to_le_bytes());
            self.delta = u32::from(tuple::fold(self.delta + u32::from(!old) + u32::from(new)));
        }
    }
    /// Updates a checksum by a delta.
    pub(super) fn follow(&mut self, at: usize, delta: u16) {
        if let Some(old) = get_le16(self.data, at) {
            self.set(at, tuple::follow(old, delta));
        }
    }
}

/// Translates an ICMP error about a packet of a session. `to` is the tuple for packets in the
/// direction of the error. The source is translated if `source` is set, or if it is the other
/// endpoint.
pub fn rewrite_error(l3: &mut [u8], p: &Parsed, to: &Change, source: bool) {
    let Kind::Error(quote) = p.kind else { return };
    let Some(old) = get_le64(l3, ADDRESSES) else { return };
    let answers = old as u32 == p.key[0] as u32;
    let src = if source || answers { to.addresses as u32 } else { old as u32 };
    let new = u64::from(src) | to.addresses & !0xffff_ffff;
    set(l3, ADDRESSES, &new.to_le_bytes());
    let sum = get_le16(l3, CHECKSUM).map(|sum| tuple::follow(sum, tuple::address_delta(old, new)));
    set(l3, CHECKSUM, &sum.unwrap_or(0).to_le_bytes());
    // Nothing behind the quoted packet is touched.
    let Some(read) = l3.get(quote..p.end).and_then(PacketView::read_prefix) else { return };
    let (number, inner, end) = (read.protocol(), quote + read.l4(), quote + read.end());
    let length = read.v4().map_or(0, |ip| usize::from(ip.total_len()));
    let behind = length.saturating_sub(read.l4() + size_of::<u32>());
    let mut edit = Edit { data: &mut l3[..end], delta: 0 };
    // The quoted packet goes the opposite way.
    let (addresses, ports) = (to.addresses.rotate_left(32), to.ports.rotate_left(16));
    for i in 0..4 {
        edit.set(quote + ADDRESSES + 2 * i, (addresses >> (16 * i)) as u16);
    }
    edit.follow(quote + CHECKSUM, to.l3);
    if let Some(transport) = port_transport(number) {
        let old_ports = get(edit.data, inner);
        edit.set(inner, ports as u16);
        edit.set(inner + 2, (ports >> 16) as u16);
        // Only the first eight bytes of the transport header are guaranteed (RFC 792).
        let at = inner + transport.checksum_at;
        match transport.sum {
            TransportSum::Crc32c => {
                if let (Some(crc), Some(old)) = (get(edit.data, at), old_ports) {
                    let [a, b, c, d] = crc32c::replaced(crc, old, ports.to_le_bytes(), behind);
                    edit.set(at, u16::from_le_bytes([a, b]));
                    edit.set(at + 2, u16::from_le_bytes([c, d]));
                }
            }
            TransportSum::Internet { zero_is_none } => {
                if !(zero_is_none && get_le16(edit.data, at) == Some(0)) {
                    edit.follow(at, to.l4);
                }
            }
        }
    } else if number == protocol::ICMP {
        edit.set(inner + ICMP_ID, ports as u16);
        edit.follow(inner + ICMP_CHECKSUM, to.l4);
    }
    let delta = edit.delta as u16;
    if let Some(sum) = get_le16(l3, p.l4 + ICMP_CHECKSUM) {
        set(l3, p.l4 + ICMP_CHECKSUM, &tuple::follow(sum, delta).to_le_bytes());
    }
}

/// Clamps the MSS of a SYN.
pub fn clamp_mss(l3: &mut [u8], p: &Parsed, most: u16, partial: bool) {
    if let Some(segment) = l3.get_mut(p.l4..p.end) {
        tcp::clamp_mss(segment, most, partial);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{self, Packet};
    use crate::nat::tuple::Tuple;
    use crate::{checksum, icmpv4};
    use core::net::Ipv4Addr;
    use proptest::prelude::*;
    use std::vec::Vec;

    const HEADER: usize = 20;

    /// Change that makes `new` of `old`, as features do.
    fn change(old: &Key, new: &Key) -> Change {
        let l3 = tuple::address_delta(old[0], new[0]);
        let (was, is) = (old[1] as u32, new[1] as u32);
        let l4 = match (old[1] >> 32) as u8 {
            protocol::ICMP => tuple::port_delta(was & 0xffff, is & 0xffff),
            _ => tuple::fold(u32::from(l3) + u32::from(tuple::port_delta(was, is))),
        };
        Change { addresses: new[0], ports: is, l3, l4 }
    }

    const PROTOCOLS: [u8; 6] = [
        protocol::TCP,
        protocol::UDP,
        protocol::UDP_LITE,
        protocol::DCCP,
        protocol::SCTP,
        protocol::ICMP,
    ];

    /// An IPv4 packet of a protocol with these endpoints; of ICMP, the source port is the
    /// identifier.
    fn packet(t: Tuple, data: &[u8]) -> Vec<u8> {
        let packet = Packet::new().ipv4(t.src, t.dst);
        let packet = match t.protocol {
            protocol::TCP => packet.tcp(t.sport, t.dport),
            protocol::UDP => packet.udp(t.sport, t.dport),
            protocol::ICMP => packet.icmp_echo_request(t.sport, 7),
            number => {
                let l4 = build::segment(number, (t.src, t.sport), (t.dst, t.dport), data, 3);
                return packet.protocol(number).payload(&l4).build();
            }
        };
        packet.payload(data).build()
    }

    /// The bytes that a checksum covers.
    fn covered(l3: &[u8], number: u8) -> &[u8] {
        let l4 = &l3[HEADER..];
        match number {
            protocol::UDP_LITE => &l4[..usize::from(l4[5])],
            _ => l4,
        }
    }

    fn tuples() -> impl Strategy<Value = (Tuple, Tuple)> {
        let protocol = prop::sample::select(&PROTOCOLS[..]);
        (protocol, any::<[u32; 4]>(), any::<[u16; 4]>()).prop_map(|(protocol, a, p)| {
            let one = |i: usize| {
                let dport = if protocol == protocol::ICMP { p[2 * i] } else { p[2 * i + 1] };
                let (src, dst) = (Ipv4Addr::from(a[2 * i]), Ipv4Addr::from(a[2 * i + 1]));
                Tuple { src, sport: p[2 * i], dst, dport, protocol, table: 5 }
            };
            (one(0), one(1))
        })
    }

    /// True if header and transport checksums are right.
    fn is_valid(l3: &[u8], t: Tuple) -> bool {
        if t.protocol == protocol::SCTP {
            let again = packet(t, &l3[HEADER + 12..]);
            return again[HEADER..] == l3[HEADER..] && checksum::verify(&l3[..HEADER]);
        }
        let length = (l3.len() - HEADER) as u32;
        let mut sum = match t.protocol {
            protocol::ICMP => checksum::Checksum::new(),
            number => checksum::pseudo_v4(t.src, t.dst, number, length),
        };
        sum.add(covered(l3, t.protocol));
        checksum::verify(&l3[..HEADER]) && sum.is_valid()
    }

    proptest! {
        /// A rewritten packet is the one that is built with the new endpoints, up to the two ways
        /// of writing a checksum of zero.
        #[test]
        fn packets_are_rewritten(
            (old, new) in tuples(),
            data in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut l3 = packet(old, &data);
            let parsed = parse(&l3, 5);
            prop_assert_eq!(Tuple::of(&parsed.key), old);
            let kind = if old.protocol == protocol::ICMP { Kind::Query } else { Kind::Ports };
            prop_assert_eq!((parsed.kind, parsed.l4), (kind, HEADER));
            prop_assert!(rewrite(&mut l3, &parsed, &change(&parsed.key, &new.key()), false));
            prop_assert_eq!(Tuple::of(&parse(&l3, 5).key), new);
            prop_assert!(is_valid(&l3, new), "{:02x?}", l3);
        }

        /// The same for a sum of the pseudo-header that a device completes.
        #[test]
        fn partial_sums_follow_the_addresses(
            (old, new) in tuples(),
            data in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let transport = port_transport(old.protocol);
            prop_assume!(transport.is_some_and(|t| t.sum != TransportSum::Crc32c));
            let mut l3 = packet(old, &data);
            let at = HEADER + transport.unwrap().checksum_at;
            let length = (l3.len() - HEADER) as u32;
            let pseudo = |t: Tuple| checksum::pseudo_v4(t.src, t.dst, t.protocol, length).fold();
            l3[at..at + 2].copy_from_slice(&pseudo(old).to_be_bytes());
            let parsed = parse(&l3, 5);
            prop_assert!(rewrite(&mut l3, &parsed, &change(&parsed.key, &new.key()), true));
            let (found, right) = (u16::from_be_bytes([l3[at], l3[at + 1]]), pseudo(new));
            prop_assert!(found == right || found ^ right == 0xffff, "{:04x} {:04x}", found, right);
        }

        /// An error about a packet of a session is translated with the packet that it quotes.
        #[test]
        fn errors_are_rewritten_with_their_quotes(
            (old, new) in tuples(),
            router: u32,
            data in prop::collection::vec(any::<u8>(), 0..40),
            trailer in prop::collection::vec(any::<u8>(), 0..40),
            whole: bool,
        ) {
            // The quoted packet went the other way.
            let mut quote = packet(old.reversed(), &data);
            let t = Tuple { src: router.into(), ..old };
            if !whole {
                quote.truncate(HEADER + 8);
            }
            let error = icmpv4::IcmpRepr::unreachable(1);
            let mut l3 = Packet::new().ipv4(t.src, t.dst).icmp(error).payload(&quote).build();
            let size = l3.len();
            // Bytes behind it in the frame are not part of it.
            l3.extend(&trailer);
            let parsed = parse(&l3, 5);
            prop_assert_eq!(parsed.end, size);
            prop_assert_eq!(parsed.kind, Kind::Error(HEADER + ICMP_QUOTE));
            prop_assert_eq!(Tuple::of(&parsed.key), old);
            rewrite_error(&mut l3, &parsed, &change(&parsed.key, &new.key()), false);
            let again = parse(&l3, 5);
            prop_assert_eq!(Tuple::of(&again.key), new);
            prop_assert_eq!(l3.split_off(size), trailer);
            let src = if t.src == old.src { new.src } else { t.src };
            let outer = Tuple { src, protocol: protocol::ICMP, ..new };
            prop_assert!(is_valid(&l3, outer), "{:02x?}", l3);
            if whole {
                prop_assert!(is_valid(&l3[HEADER + ICMP_QUOTE..], new.reversed()), "{:02x?}", l3);
            }
        }

        /// No bytes panic, and what is not understood stays as it is behind the header.
        #[test]
        fn any_bytes_are_parsed(
            mut l3 in prop::collection::vec(any::<u8>(), 0..120),
            plain: bool,
            number in prop::sample::select(&PROTOCOLS[..]),
            most: u16,
        ) {
            if let (true, [first, .., _, _, _, _, _, _, _, _, _, _]) = (plain, &mut l3[..]) {
                *first = 0x45;
                l3[9] = number;
                l3[2] = 0;
                l3[6..8].fill(0);
            }
            let parsed = parse(&l3, 1);
            // The quick reader agrees with the view.
            prop_assert_eq!(parsed, super::general(&l3, 1));
            let change = Change { addresses: 1, ports: 2, l3: 3, l4: 4 };
            let _ = rewrite(&mut l3.clone(), &parsed, &change, plain);
            rewrite_error(&mut l3.clone(), &parsed, &change, plain);
            clamp_mss(&mut l3, &parsed, most, plain);
        }
    }

    #[test]
    fn fragments_have_the_key_of_their_datagram() {
        let t = Tuple {
            src: [10, 0, 0, 1].into(),
            sport: 7,
            dst: [10, 0, 0, 2].into(),
            dport: 9,
            protocol: protocol::UDP,
            table: 0,
        };
        let build = |offset, more| {
            let packet = Packet::new().ipv4(t.src, t.dst).id(77).fragment(offset, more);
            packet.udp(t.sport, t.dport).payload(&[0; 32]).build()
        };
        let (first, later) = (parse(&build(0, true), 0), parse(&build(40, false), 0));
        assert_eq!((first.kind, later.kind), (Kind::Ports, Kind::Fragment));
        assert_eq!(Tuple::of(&first.key), t);
        assert!(first.datagram.is_some() && first.datagram == later.datagram);
    }

    #[test]
    fn a_udp_packet_without_checksum_keeps_none() {
        let (src, dst) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let mut l3 = Packet::new().ipv4(src, dst).udp(7, 9).no_checksum().build();
        let parsed = parse(&l3, 0);
        let to = Change { addresses: 1, ports: 2, l3: 3, l4: 4 };
        assert!(rewrite(&mut l3, &parsed, &to, false));
        assert_eq!(l3[HEADER + 6..][..2], [0, 0]);
    }

    /// The checksum of a whole datagram of SCTP cannot be known from its first fragment.
    #[test]
    fn the_ports_of_a_fragment_of_sctp_stay() {
        let ends = |sport| Tuple {
            src: [10, 0, 0, 1].into(),
            sport,
            dst: [10, 0, 0, 2].into(),
            dport: 9,
            protocol: protocol::SCTP,
            table: 0,
        };
        let mut l3 = packet(ends(7), &[1; 40]);
        l3[6] = 0x20;
        let (before, parsed) = (l3.clone(), parse(&l3, 0));
        assert!(!rewrite(&mut l3, &parsed, &change(&parsed.key, &ends(8).key()), false));
        assert_eq!(l3, before);
        let far = Tuple { src: [192, 0, 2, 1].into(), ..ends(7) };
        assert!(rewrite(&mut l3, &parsed, &change(&parsed.key, &far.key()), false));
        assert_eq!(l3[20..], before[20..]);
    }

    #[test]
    fn a_redirect_has_no_session() {
        let quote =
            Packet::new().ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).udp(7, 9).build();
        let kind = |kind| {
            let error = icmpv4::IcmpRepr { kind, ..icmpv4::IcmpRepr::unreachable(1) };
            let error = Packet::new().ipv4([10, 0, 0, 3].into(), [10, 0, 0, 1].into()).icmp(error);
            parse(&error.payload(&quote).build(), 0).kind
        };
        assert_eq!((kind(3), kind(5)), (Kind::Error(28), Kind::Unknown));
    }
}
