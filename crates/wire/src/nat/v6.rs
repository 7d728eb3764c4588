//! Rewrites a packet from its IPv6 header on. The header has no checksum; those of TCP, UDP and
//! ICMPv6 cover the addresses.

use core::net::{IpAddr, Ipv6Addr};

use super::packet::{Edit, followed};
use super::tuple::{address_delta, fold, follow, follow_partial, port_delta};
use crate::bytes::{get, get_be16, get_le16, get_le32, get_le64, set};
use crate::crc32c;
use crate::ip::{TransportSum, port_transport, protocol};
use crate::ipv6::HEADER_LEN;
use crate::packet::{PacketView, Part};

const LENGTH: usize = 4;
const ADDRESSES: usize = 8;
const ICMP_CHECKSUM: usize = 2;
const ICMP_ID: usize = 4;
/// Offset of the packet quoted by an ICMPv6 error.
const ICMP_QUOTE: usize = 8;

/// The addresses and ports of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
    /// Source port; the identifier of echo requests and replies.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
}

impl Ends {
    /// Ends of a packet; ports are 0 where it has none.
    pub fn of(l3: &[u8]) -> Option<Ends> {
        Self::read(&PacketView::read_prefix(l3)?)
    }

    fn read(packet: &PacketView<'_>) -> Option<Ends> {
        let (src, dst) = addresses(packet)?;
        let id = packet.identifier().map(|id| (id, 0));
        let (sport, dport) = packet.fixed_ports().or(id).unwrap_or((0, 0));
        Some(Ends { src, dst, sport, dport })
    }

    /// The ports as they lie in the header.
    fn ports(&self) -> u32 {
        u32::from(self.sport.swap_bytes()) | u32::from(self.dport.swap_bytes()) << 16
    }
}

fn addresses(packet: &PacketView<'_>) -> Option<(Ipv6Addr, Ipv6Addr)> {
    match (packet.src(), packet.dst()) {
        (IpAddr::V6(src), IpAddr::V6(dst)) => Some((src, dst)),
        _ => None,
    }
}

fn bytes(src: Ipv6Addr, dst: Ipv6Addr) -> [u8; 32] {
    let mut bytes = [0; 32];
    set(&mut bytes, 0, &src.octets());
    set(&mut bytes, 16, &dst.octets());
    bytes
}

/// The checksum delta of a change of both addresses at an offset.
fn delta(l3: &[u8], at: usize, new: &[u8; 32]) -> u16 {
    let word = |bytes: &[u8], at: usize| get_le64(bytes, at).unwrap_or(0);
    let one = |i: usize| u32::from(address_delta(word(l3, at + 8 * i), word(new, 8 * i)));
    fold((0..4).map(one).sum())
}

fn sum(a: u16, b: u16) -> u16 {
    fold(u32::from(a) + u32::from(b))
}

/// Layer behind the addresses of a packet.
enum Behind {
    /// A transport with ports at an offset.
    Ports(u8, usize),
    /// An echo request or reply.
    Query(usize),
    /// Another ICMPv6 message.
    Message(usize),
    /// Nothing that a change of addresses matters to.
    Other,
}

/// Rewrites addresses and ports of a packet. `partial`: the transport checksum is still to be
/// completed by a device. Returns false and changes nothing if that cannot be done: an ICMPv6
/// message but an echo, a transport header that is not whole, and a fragment of SCTP that would get
/// other ports.
#[must_use]
pub fn rewrite(l3: &mut [u8], to: &Ends, partial: bool) -> bool {
    apply(l3, to, partial, false)
}

/// Rewrites the addresses of any packet, and the ports if it has some. The packet that an ICMPv6
/// error quotes is left as it is. Returns false like [`rewrite`], except for messages.
#[must_use]
pub fn readdress(l3: &mut [u8], to: &Ends, partial: bool) -> bool {
    apply(l3, to, partial, true)
}

fn apply(l3: &mut [u8], to: &Ends, partial: bool, messages: bool) -> bool {
    let Some(packet) = PacketView::read_prefix(l3).filter(|p| addresses(p).is_some()) else {
        return false;
    };
    let (number, l4, end) = (packet.protocol(), packet.l4(), packet.end());
    let behind = if packet.part() == Part::Later {
        Behind::Other
    } else if port_transport(number).is_some() {
        match packet.fixed_ports() {
            Some(_) => Behind::Ports(number, l4),
            None => return false,
        }
    } else if number == protocol::ICMPV6 {
        match (packet.identifier(), packet.message()) {
            (Some(_), _) => Behind::Query(l4),
            (None, Some(_)) if messages => Behind::Message(l4),
            _ => return false,
        }
    } else {
        Behind::Other
    };
    let is_part = packet.is_fragment();
    let total = HEADER_LEN + get_be16(l3, LENGTH).map_or(0, usize::from);
    let new = bytes(to.src, to.dst);
    let addresses = delta(l3, ADDRESSES, &new);
    // Nothing behind its end is touched.
    let l3 = &mut l3[..end];
    match behind {
        Behind::Ports(number, l4) => {
            let Some(transport) = port_transport(number) else { return false };
            let (Some(old), at) = (get_le32(l3, l4), l4 + transport.checksum_at) else {
                return false;
            };
            let ports = to.ports();
            match transport.sum {
                TransportSum::Crc32c => {
                    if is_part && old != ports {
                        return false;
                    }
                    if let Some(crc) = get(l3, at).filter(|_| !partial) {
                        let behind = total.saturating_sub(l4 + size_of::<u32>());
                        let crc =
                            crc32c::replaced(crc, old.to_le_bytes(), ports.to_le_bytes(), behind);
                        set(l3, at, &crc);
                    }
                }
                TransportSum::Internet { zero_is_none } => {
                    let Some(was) = get_le16(l3, at) else { return false };
                    let all = sum(addresses, port_delta(old, ports));
                    let is = match partial {
                        true => follow_partial(was, addresses),
                        false if zero_is_none && was == 0 => 0,
                        false => followed(number, was, all),
                    };
                    set(l3, at, &is.to_le_bytes());
                }
            }
            set(l3, l4, &ports.to_le_bytes());
        }
        Behind::Query(l4) => {
            let id = to.sport.swap_bytes();
            if let (Some(old), Some(was)) =
                (get_le16(l3, l4 + ICMP_ID), get_le16(l3, l4 + ICMP_CHECKSUM))
            {
                let all = sum(addresses, port_delta(old.into(), id.into()));
                set(l3, l4 + ICMP_ID, &id.to_le_bytes());
                set(l3, l4 + ICMP_CHECKSUM, &follow(was, all).to_le_bytes());
            }
        }
        Behind::Message(l4) => {
            if let Some(was) = get_le16(l3, l4 + ICMP_CHECKSUM) {
                set(l3, l4 + ICMP_CHECKSUM, &follow(was, addresses).to_le_bytes());
            }
        }
        Behind::Other => {}
    }
    set(l3, ADDRESSES, &new);
    true
}

/// Translates an ICMPv6 error about a packet of a session, and the packet that it quotes. `to` are
/// the ends of packets in the direction of the error. The source is translated if it is the other
/// endpoint. Returns false and changes nothing if it is no such error.
#[must_use]
pub fn rewrite_error(l3: &mut [u8], to: &Ends) -> bool {
    let Some(packet) = PacketView::read_prefix(l3) else { return false };
    let Some((src, dst)) = addresses(&packet) else { return false };
    let Some(quote) = packet.quote().filter(|_| packet.protocol() == protocol::ICMPV6) else {
        return false;
    };
    let Some((quoted_src, quoted_dst)) = addresses(&quote) else { return false };
    if quoted_src != dst || quote.part() == Part::Later {
        return false;
    }
    let (l4, at) = (packet.l4(), packet.l4() + ICMP_QUOTE);
    let (number, inner, end) = (quote.protocol(), at + quote.l4(), at + quote.end());
    let query = quote.identifier().filter(|_| number == protocol::ICMPV6);
    // Bytes that the quoted packet had behind its ports, also where they are not quoted.
    let total = HEADER_LEN + get_be16(l3, at + LENGTH).map_or(0, usize::from);
    let behind = total.saturating_sub(quote.l4() + size_of::<u32>());
    let outer = bytes(if src == quoted_dst { to.src } else { src }, to.dst);
    let outer_delta = delta(l3, ADDRESSES, &outer);
    // The quoted packet goes the opposite way.
    let new = bytes(to.dst, to.src);
    let addresses = delta(l3, at + ADDRESSES, &new);
    let ports = Ends { sport: to.dport, dport: to.sport, ..*to }.ports();
    let mut edit = Edit { data: &mut l3[..end], delta: 0 };
    for (i, word) in new.as_chunks::<2>().0.iter().enumerate() {
        edit.set(at + ADDRESSES + 2 * i, u16::from_le_bytes(*word));
    }
    if let Some(transport) = port_transport(number) {
        let old = get_le32(edit.data, inner);
        edit.set(inner, ports as u16);
        edit.set(inner + 2, (ports >> 16) as u16);
        let at = inner + transport.checksum_at;
        match (transport.sum, old) {
            (TransportSum::Crc32c, Some(old)) => {
                if let Some(crc) = get(edit.data, at) {
                    let (old, new) = (old.to_le_bytes(), ports.to_le_bytes());
                    let [a, b, c, d] = crc32c::replaced(crc, old, new, behind);
                    edit.set(at, u16::from_le_bytes([a, b]));
                    edit.set(at + 2, u16::from_le_bytes([c, d]));
                }
            }
            (TransportSum::Internet { zero_is_none }, Some(old)) => {
                if !(zero_is_none && get_le16(edit.data, at) == Some(0)) {
                    edit.follow(at, sum(addresses, port_delta(old, ports)));
                }
            }
            (_, None) => {}
        }
    } else if let Some(old) = query {
        let id = to.sport.swap_bytes();
        edit.set(inner + ICMP_ID, id);
        let all = sum(addresses, port_delta(old.swap_bytes().into(), id.into()));
        edit.follow(inner + ICMP_CHECKSUM, all);
    }
    let all = sum(outer_delta, edit.delta as u16);
    set(l3, ADDRESSES, &outer);
    if let Some(was) = get_le16(l3, l4 + ICMP_CHECKSUM) {
        set(l3, l4 + ICMP_CHECKSUM, &follow(was, all).to_le_bytes());
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{self, Packet};
    use crate::icmpv6::{self, Icmp6Repr};
    use crate::ipv6::Ipv6View;
    use core::net::Ipv4Addr;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn packet(number: u8, e: &Ends, data: &[u8]) -> Vec<u8> {
        let p = Packet::new().ipv6(e.src, e.dst);
        match number {
            protocol::TCP => p.tcp(e.sport, e.dport).payload(data).build(),
            protocol::UDP => p.udp(e.sport, e.dport).payload(data).build(),
            protocol::ICMPV6 => p.icmp6_echo_request(e.sport, 7).payload(data).build(),
            protocol::SCTP => {
                let any = Ipv4Addr::UNSPECIFIED;
                let l4 = build::segment(number, (any, e.sport), (any, e.dport), data, 0);
                p.protocol(number).payload(&l4).build()
            }
            number => p.protocol(number).payload(data).build(),
        }
    }

    fn ends() -> impl Strategy<Value = Ends> {
        (any::<[u128; 2]>(), any::<[u16; 2]>()).prop_map(|(ip, [sport, dport])| Ends {
            src: ip[0].into(),
            dst: ip[1].into(),
            sport,
            dport,
        })
    }

    const NUMBERS: [u8; 5] =
        [protocol::TCP, protocol::UDP, protocol::ICMPV6, protocol::SCTP, protocol::GRE];

    /// True if sums are right; 0 equals 0xffff.
    fn sums_are_right(l3: &[u8]) -> bool {
        let ip = Ipv6View::parse(l3).unwrap();
        let l4 = ip.payload();
        match ip.next_header() {
            number @ (protocol::TCP | protocol::UDP | protocol::ICMPV6) => {
                let mut sum = ip.pseudo_header(number, l4.len() as u32);
                sum.add(l4);
                sum.is_valid()
            }
            _ => true,
        }
    }

    fn without_sums(number: u8, mut l3: Vec<u8>) -> Vec<u8> {
        let at = match number {
            protocol::TCP => 56,
            protocol::UDP => 46,
            protocol::ICMPV6 => 42,
            _ => return l3,
        };
        l3[at..at + 2].fill(0);
        l3
    }

    proptest! {
        /// A rewritten packet is one built with the new ends, and bytes behind it stay.
        #[test]
        fn rewritten_packets_are_as_if_built(
            number in prop::sample::select(&NUMBERS[..]), from in ends(), to in ends(),
            data in prop::collection::vec(any::<u8>(), 0..40), trailer in any::<[u8; 5]>(),
        ) {
            let mut l3 = packet(number, &from, &data);
            let length = l3.len();
            l3.extend(trailer);
            prop_assert!(rewrite(&mut l3, &to, false));
            prop_assert_eq!(&l3[length..], &trailer);
            l3.truncate(length);
            prop_assert!(sums_are_right(&l3));
            let want = packet(number, &to, &data);
            prop_assert_eq!(without_sums(number, l3), without_sums(number, want));
        }

        /// An error about a translated packet, and the packet in it, are as its sender expects.
        #[test]
        fn errors_are_translated_with_the_packet_that_they_quote(
            number in prop::sample::select(&NUMBERS[..]), inside in ends(), outside in ends(),
            router: u128, answers: bool, data in prop::collection::vec(any::<u8>(), 0..60),
            cut in 0usize..100,
        ) {
            let outside = match number {
                protocol::ICMPV6 => Ends { dport: 0, ..outside },
                _ => outside,
            };
            let error = |original: &[u8], from: Ipv6Addr| {
                let mut buf = [0; 1280];
                let quoted = &original[..original.len().min(48 + cut)];
                let repr = Icmp6Repr::hop_limit_exceeded();
                let length = icmpv6::emit_error(repr, from, quoted, &mut buf).unwrap();
                buf[..length].to_vec()
            };
            let from = |e: &Ends| if answers { e.dst } else { router.into() };
            let sent = packet(number, &inside, &data);
            let mut seen = sent.clone();
            prop_assert!(rewrite(&mut seen, &outside, false));
            let mut l3 = error(&seen, from(&outside));
            let to = match number {
                protocol::ICMPV6 => Ends { src: inside.dst, dst: inside.src, ..inside },
                _ => Ends {
                    src: inside.dst, dst: inside.src, sport: inside.dport, dport: inside.sport,
                },
            };
            let quotes_ports = l3.len() >= 88 + 4 || number == protocol::GRE;
            if rewrite_error(&mut l3, &to) {
                prop_assert!(sums_are_right(&l3));
                let want = error(&sent, from(&inside));
                prop_assert_eq!(&l3[8..40], &want[8..40]);
                let (l3, want) = (l3[48..].to_vec(), want[48..].to_vec());
                let whole = l3.len() == sent.len();
                if whole {
                    prop_assert_eq!(without_sums(number, l3), without_sums(number, want));
                } else {
                    prop_assert_eq!(&l3[..48.min(l3.len())][..42], &want[..48.min(l3.len())][..42]);
                }
            } else {
                prop_assert!(!quotes_ports);
            }
        }

        #[test]
        fn any_bytes_are_rewritten_within_bounds(
            mut l3 in prop::collection::vec(any::<u8>(), 0..200), to in ends(),
            next in prop_oneof![Just(6u8), Just(17), Just(58), Just(44), Just(60), Just(132), any::<u8>()],
            kind in prop_oneof![Just(1u8), Just(128), any::<u8>()], length in 0u16..200, partial: bool,
        ) {
            if l3.len() > 41 {
                (l3[0], l3[6], l3[40]) = (0x60, next, kind);
                l3[4..6].copy_from_slice(&length.to_be_bytes());
            }
            let end = PacketView::read_prefix(&l3).map_or(0, |p| p.end());
            let before = l3.clone();
            for change in [rewrite_error as fn(&mut [u8], &Ends) -> bool, |l3, to| rewrite(l3, to, true),
                |l3, to| rewrite(l3, to, false), |l3, to| readdress(l3, to, false)] {
                let mut l3 = before.clone();
                if !change(&mut l3, &to) {
                    prop_assert_eq!(&l3, &before);
                }
                prop_assert_eq!(&l3[end..], &before[end..]);
            }
            let _ = (partial, Ends::of(&l3));
        }
    }

    /// A device completes the sum of the pseudo-header.
    #[test]
    fn partial_sums_follow_the_addresses() {
        let ip = |n: u16| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n);
        let from = Ends { src: ip(1), dst: ip(2), sport: 5, dport: 80 };
        let to = Ends { src: ip(9), sport: 7, ..from };
        let partial = |e: &Ends| {
            let mut l3 = packet(6, e, b"abc");
            let length = l3.len() as u32 - 40;
            let sum = Ipv6View::parse(&l3).unwrap().pseudo_header(6, length).fold();
            l3[56..58].copy_from_slice(&sum.to_be_bytes());
            l3
        };
        let mut l3 = partial(&from);
        assert!(rewrite(&mut l3, &to, true));
        assert_eq!(l3, partial(&to));
    }

    #[test]
    fn messages_are_readdressed_and_not_translated() {
        let ip = |n: u16| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n);
        let message = |src, dst| {
            let repr = Icmp6Repr { kind: 135, code: 0, rest: 0 };
            Packet::new().ipv6(src, dst).icmp6(repr).payload(&[7; 16]).build()
        };
        let mut l3 = message(ip(1), ip(2));
        let to = Ends { src: ip(3), dst: ip(4), sport: 0, dport: 0 };
        assert!(!rewrite(&mut l3, &to, false));
        assert_eq!(l3, message(ip(1), ip(2)));
        assert!(readdress(&mut l3, &to, false));
        assert_eq!(l3, message(ip(3), ip(4)));
    }
}
