//! Parses and rewrites a packet from its IPv4 header on.

use super::tuple::{self, Key};
use crate::bytes::{get_le16, get_le32, get_le64, set};
use crate::ip::protocol;
use crate::tcp::TcpMut;

/// Kind of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// TCP or UDP.
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
    /// Truncated, or an ICMP type other than query, reply or error.
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
    /// TCP flags.
    pub flags: u8,
    /// Key of the datagram, for fragments.
    pub datagram: Option<Key>,
}

const CHECKSUM: usize = 10;
const ADDRESSES: usize = 12;
const TCP_FLAGS: usize = 13;
const TCP_CHECKSUM: usize = 16;
const UDP_CHECKSUM: usize = 6;
const ICMP_CHECKSUM: usize = 2;
const ICMP_ID: usize = 4;
/// Offset of the packet quoted by an ICMP error.
const ICMP_QUOTE: usize = 8;

/// Length of the IPv4 header and the addresses, if the header is complete.
fn header(l3: &[u8]) -> Option<(usize, u64)> {
    let len = usize::from(l3.first()? & 15) * 4;
    let whole = l3[0] >> 4 == 4 && len >= 20 && len <= l3.len();
    whole.then_some((len, get_le64(l3, ADDRESSES)?))
}

/// Returns whether an ICMP type is a query or reply with an identifier.
fn is_query(kind: u8) -> bool {
    matches!(kind, 0 | 8 | 13..=18)
}

/// Returns whether an ICMP type is a query.
#[inline]
pub fn asks(kind: u8) -> bool {
    matches!(kind, 8 | 13 | 15 | 17)
}

fn is_error(kind: u8) -> bool {
    matches!(kind, 3 | 4 | 11 | 12)
}

/// Both ports, or the identifier of an ICMP query twice.
fn ports(l3: &[u8], l4: usize, ip: u8) -> Option<u32> {
    match ip {
        protocol::TCP | protocol::UDP => get_le32(l3, l4),
        protocol::ICMP => {
            let id = u32::from(get_le16(l3, l4 + ICMP_ID)?);
            is_query(*l3.get(l4)?).then_some(id | id << 16)
        }
        _ => Some(0),
    }
}

/// Parses a packet whose destination is looked up in `table`.
#[inline]
pub fn parse(l3: &[u8], table: u32) -> Parsed {
    let unknown =
        Parsed { key: [0; 2], kind: Kind::Unknown, protocol: 0, l4: 0, flags: 0, datagram: None };
    let Some((l4, addresses)) = header(l3) else { return unknown };
    let ip = l3[9];
    let key = |ports| tuple::key(addresses, ports, ip, table);
    let mut parsed = Parsed { key: key(0), protocol: ip, l4, ..unknown };
    let piece = u16::from_be_bytes([l3[6], l3[7]]) & 0x3fff;
    let has_ports = matches!(ip, protocol::TCP | protocol::UDP | protocol::ICMP);
    if piece != 0 && has_ports {
        let id = u32::from(u16::from_be_bytes([l3[4], l3[5]]));
        parsed.datagram = Some(key(id));
    }
    if piece & 0x1fff != 0 && has_ports {
        return Parsed { kind: Kind::Fragment, ..parsed };
    }
    if ip == protocol::ICMP && l3.get(l4).is_some_and(|kind| is_error(*kind)) {
        let at = l4 + ICMP_QUOTE;
        let quoted = l3.get(at..).and_then(|quote| quoted_key(quote, table));
        return match quoted {
            Some(key) => Parsed { key, kind: Kind::Error(at), ..parsed },
            None => parsed,
        };
    }
    let Some(ports) = ports(l3, l4, ip) else { return parsed };
    let whole = |n: usize| l3.len() >= l4 + n;
    let kind = match ip {
        protocol::TCP if whole(20) => Kind::Ports,
        protocol::UDP if whole(8) => Kind::Ports,
        protocol::ICMP if whole(8) => Kind::Query,
        protocol::TCP | protocol::UDP | protocol::ICMP => Kind::Unknown,
        _ => Kind::Other,
    };
    let flags = if ip == protocol::TCP { l3.get(l4 + TCP_FLAGS).map_or(0, |f| *f) } else { 0 };
    Parsed { key: key(ports), kind, flags, ..parsed }
}

/// The key of the direction opposite to a quoted packet.
fn quoted_key(quote: &[u8], table: u32) -> Option<Key> {
    let (l4, addresses) = header(quote)?;
    let ip = quote[9];
    if u16::from_be_bytes([quote[6], quote[7]]) & 0x1fff != 0 {
        return None;
    }
    let ports = ports(quote, l4, ip)?;
    Some(tuple::reversed(&tuple::key(addresses, ports, ip, table)))
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

/// Rewrites the tuple of a packet. `partial`: the transport checksum is a pseudo-header sum that a
/// device will complete.
#[inline]
pub fn rewrite(l3: &mut [u8], p: &Parsed, change: &Change, partial: bool) {
    let follow = |l3: &mut [u8], at: usize, delta: u16| {
        if let Some(old) = get_le16(l3, at) {
            set(l3, at, &tuple::follow(old, delta).to_le_bytes());
        }
    };
    set(l3, ADDRESSES, &change.addresses.to_le_bytes());
    follow(l3, CHECKSUM, change.l3);
    match p.kind {
        Kind::Query => {
            set(l3, p.l4 + ICMP_ID, &(change.ports as u16).to_le_bytes());
            follow(l3, p.l4 + ICMP_CHECKSUM, change.l4);
        }
        Kind::Ports => {
            set(l3, p.l4, &change.ports.to_le_bytes());
            let udp = p.protocol == protocol::UDP;
            let at = p.l4 + if udp { UDP_CHECKSUM } else { TCP_CHECKSUM };
            let Some(old) = get_le16(l3, at) else { return };
            let new = match () {
                () if partial => tuple::follow_partial(old, change.l3),
                // No checksum (RFC 768).
                () if udp && old == 0 => 0,
                () => match tuple::follow(old, change.l4) {
                    0 if udp => 0xffff,
                    sum => sum,
                },
            };
            set(l3, at, &new.to_le_bytes());
        }
        _ => {}
    }
}

/// Changed bytes and their effect on a checksum.
struct Edit<'a> {
    data: &'a mut [u8],
    delta: u32,
}

impl Edit<'_> {
    /// Sets two bytes at an even offset, if present.
    fn set(&mut self, at: usize, new: u16) {
        if let Some(old) = get_le16(self.data, at) {
            set(self.data, at, &new.to_le_bytes());
            self.delta = u32::from(tuple::fold(self.delta + u32::from(!old) + u32::from(new)));
        }
    }
    fn follow(&mut self, at: usize, delta: u16) {
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
    let mut edit = Edit { data: l3, delta: 0 };
    let inner = quote + usize::from(edit.data.get(quote).map_or(0, |b| b & 15)) * 4;
    let ip = edit.data.get(quote + 9).copied().unwrap_or(0);
    // The quoted packet goes the opposite way.
    let (addresses, ports) = (to.addresses.rotate_left(32), to.ports.rotate_left(16));
    for i in 0..4 {
        edit.set(quote + ADDRESSES + 2 * i, (addresses >> (16 * i)) as u16);
    }
    edit.follow(quote + CHECKSUM, to.l3);
    match ip {
        protocol::TCP | protocol::UDP => {
            edit.set(inner, ports as u16);
            edit.set(inner + 2, (ports >> 16) as u16);
            let udp = ip == protocol::UDP;
            let at = inner + if udp { UDP_CHECKSUM } else { TCP_CHECKSUM };
            // Only the first eight bytes of the transport header are guaranteed (RFC 792).
            if !(udp && get_le16(edit.data, at) == Some(0)) {
                edit.follow(at, to.l4);
            }
        }
        protocol::ICMP => {
            edit.set(inner + ICMP_ID, ports as u16);
            edit.follow(inner + ICMP_CHECKSUM, to.l4);
        }
        _ => {}
    }
    let delta = edit.delta as u16;
    if let Some(sum) = get_le16(l3, p.l4 + ICMP_CHECKSUM) {
        set(l3, p.l4 + ICMP_CHECKSUM, &tuple::follow(sum, delta).to_le_bytes());
    }
}

/// Clamps the MSS of a SYN.
pub fn clamp_mss(l3: &mut [u8], p: &Parsed, most: u16, partial: bool) {
    let at = p.l4 + TCP_CHECKSUM;
    let before = get_le16(l3, at);
    let clamped = l3.get_mut(p.l4..).and_then(|tcp| TcpMut::parse(tcp).ok()?.clamp_mss(most));
    // A sum that is still to be completed does not include options.
    if let (Some(_), Some(before), true) = (clamped, before, partial) {
        set(l3, at, &before.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Packet;
    use crate::nat::tuple::Tuple;
    use crate::{checksum, icmpv4};
    use core::net::Ipv4Addr;
    use proptest::prelude::*;
    use std::vec::Vec;

    const HEADER: usize = 20;

    /// What makes `new` of `old`, as features do.
    fn change(old: &Key, new: &Key) -> Change {
        let l3 = tuple::address_delta(old[0], new[0]);
        let (was, is) = (old[1] as u32, new[1] as u32);
        let l4 = match (old[1] >> 32) as u8 {
            protocol::ICMP => tuple::port_delta(was & 0xffff, is & 0xffff),
            _ => tuple::fold(u32::from(l3) + u32::from(tuple::port_delta(was, is))),
        };
        Change { addresses: new[0], ports: is, l3, l4 }
    }

    /// An IPv4 packet of a protocol with these endpoints; of ICMP, the source port is the
    /// identifier.
    fn packet(t: Tuple, data: &[u8]) -> Vec<u8> {
        let packet = Packet::new().ipv4(t.src, t.dst);
        let packet = match t.protocol {
            protocol::TCP => packet.tcp(t.sport, t.dport),
            protocol::UDP => packet.udp(t.sport, t.dport),
            _ => packet.icmp_echo_request(t.sport, 7),
        };
        packet.payload(data).build()
    }

    fn tuples() -> impl Strategy<Value = (Tuple, Tuple)> {
        let protocol = prop::sample::select(&[protocol::TCP, protocol::UDP, protocol::ICMP][..]);
        (protocol, any::<[u32; 4]>(), any::<[u16; 4]>()).prop_map(|(protocol, a, p)| {
            let one = |i: usize| {
                let dport = if protocol == protocol::ICMP { p[2 * i] } else { p[2 * i + 1] };
                let (src, dst) = (Ipv4Addr::from(a[2 * i]), Ipv4Addr::from(a[2 * i + 1]));
                Tuple { src, sport: p[2 * i], dst, dport, protocol, table: 5 }
            };
            (one(0), one(1))
        })
    }

    /// Whether header and transport checksums are right.
    fn is_valid(l3: &[u8], t: Tuple) -> bool {
        let length = (l3.len() - HEADER) as u32;
        let mut sum = match t.protocol {
            protocol::ICMP => checksum::Checksum::new(),
            number => checksum::pseudo_v4(t.src, t.dst, number, length),
        };
        sum.add(&l3[HEADER..]);
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
            rewrite(&mut l3, &parsed, &change(&parsed.key, &new.key()), false);
            prop_assert_eq!(Tuple::of(&parse(&l3, 5).key), new);
            prop_assert!(is_valid(&l3, new), "{:02x?}", l3);
        }

        /// The same for a sum of the pseudo-header that a device completes.
        #[test]
        fn partial_sums_follow_the_addresses(
            (old, new) in tuples(),
            data in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            prop_assume!(old.protocol != protocol::ICMP);
            let mut l3 = packet(old, &data);
            let at = HEADER + if old.protocol == protocol::UDP { UDP_CHECKSUM } else { TCP_CHECKSUM };
            let length = (l3.len() - HEADER) as u32;
            let pseudo = |t: Tuple| checksum::pseudo_v4(t.src, t.dst, t.protocol, length).fold();
            l3[at..at + 2].copy_from_slice(&pseudo(old).to_be_bytes());
            let parsed = parse(&l3, 5);
            rewrite(&mut l3, &parsed, &change(&parsed.key, &new.key()), true);
            let (found, right) = (u16::from_be_bytes([l3[at], l3[at + 1]]), pseudo(new));
            prop_assert!(found == right || found ^ right == 0xffff, "{:04x} {:04x}", found, right);
        }

        /// An error about a packet of a session is translated with the packet that it quotes.
        #[test]
        fn errors_are_rewritten_with_their_quotes(
            (old, new) in tuples(),
            router: u32,
            data in prop::collection::vec(any::<u8>(), 0..40),
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
            let parsed = parse(&l3, 5);
            prop_assert_eq!(parsed.kind, Kind::Error(HEADER + ICMP_QUOTE));
            prop_assert_eq!(Tuple::of(&parsed.key), old);
            rewrite_error(&mut l3, &parsed, &change(&parsed.key, &new.key()), false);
            let again = parse(&l3, 5);
            prop_assert_eq!(Tuple::of(&again.key), new);
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
            number in prop::sample::select(&[protocol::TCP, protocol::UDP, protocol::ICMP][..]),
            most: u16,
        ) {
            if let (true, [first, .., _, _, _, _, _, _, _, _, _, _]) = (plain, &mut l3[..]) {
                *first = 0x45;
                l3[9] = number;
            }
            let parsed = parse(&l3, 1);
            let change = Change { addresses: 1, ports: 2, l3: 3, l4: 4 };
            rewrite(&mut l3.clone(), &parsed, &change, plain);
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
        rewrite(&mut l3, &parsed, &to, false);
        assert_eq!(l3[HEADER + UDP_CHECKSUM..][..2], [0, 0]);
    }
}
