//! ICMP errors about labelled packets: with the label stack as an extension (RFC 4884, RFC 4950).

use std::net::{Ipv4Addr, Ipv6Addr};
use thalweg_buffer::IcmpCause;
use thalweg_wire::checksum::checksum;
use thalweg_wire::icmpv4::{self, IcmpRepr};
use thalweg_wire::icmpv6::{self, Icmp6Repr};
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv4::{self, Ipv4Repr, Ipv4View};
use thalweg_wire::ipv6::{self, Ipv6Repr, Ipv6View};

/// Bytes of the original datagram before an extension, padded with zeros (RFC 4884 section 5.1).
const QUOTED: usize = 128;
/// Bytes of the header of an extension structure, and of an object in it (RFC 4884 section 7).
const HEADERS: usize = 8;
/// Version of extension structures, in the upper half of the first byte.
const VERSION: u8 = 2 << 4;
/// Class and type of the object "incoming label stack" (RFC 4950 section 3).
const LABEL_STACK: [u8; 2] = [1, 1];
/// Offset of the quoted datagram.
const START: usize = ipv4::HEADER_LEN + icmpv4::HEADER_LEN;
/// Maximum length of a message (RFC 1812 section 4.3.2.3).
pub(crate) const MAX_MESSAGE: usize = icmpv4::MAX_ERROR_LEN;

/// Puts the quoted datagram at `start` of a message, and the extension with the stack behind it;
/// returns where that ends.
fn quote<'p>(
    buf: &mut [u8],
    start: usize,
    packet: impl Iterator<Item = &'p u8>,
    labels: &[u8],
) -> Option<usize> {
    let quoted = packet.take(QUOTED);
    buf.iter_mut().skip(start).zip(quoted).for_each(|(to, byte)| *to = *byte);
    let extension = start + QUOTED;
    let end = extension + HEADERS + labels.len();
    let structure = buf.get_mut(extension..end)?;
    structure[0] = VERSION;
    structure[4..6].copy_from_slice(&((labels.len() + 4) as u16).to_be_bytes());
    structure[6..HEADERS].copy_from_slice(&LABEL_STACK);
    structure[HEADERS..].copy_from_slice(labels);
    let sum = checksum(structure);
    structure[2..4].copy_from_slice(&sum.to_be_bytes());
    Some(end)
}

/// Maximum length of an ICMPv6 error (RFC 4443 section 2.4 (c)).
pub(crate) const MAX_MESSAGE6: usize = icmpv6::MAX_ERROR_LEN;
/// Offset of the datagram that it quotes.
const START6: usize = ipv6::HEADER_LEN + icmpv6::HEADER_LEN;

/// Returns the ICMPv6 error for a cause that is one of ICMP.
pub(crate) fn cause6(cause: IcmpCause) -> IcmpCause {
    let of = |kind, code| IcmpCause { kind, code, mtu: cause.mtu };
    match (cause.kind, cause.code) {
        (3, 4) => of(icmpv6::kind::PACKET_TOO_BIG, 0),
        // The address is not reachable.
        (3, _) => of(icmpv6::kind::DESTINATION_UNREACHABLE, 3),
        _ => of(icmpv6::kind::TIME_EXCEEDED, 0),
    }
}

/// Builds what [`message`] does, for an IPv6 packet and a cause of ICMPv6. A packet that was too
/// big is quoted without the stack, for which that message has no place (RFC 4884 section 4).
pub(crate) fn message6<'b>(
    cause: IcmpCause,
    from: Ipv6Addr,
    packet: &[u8],
    labels: &[u8],
    buf: &'b mut [u8; MAX_MESSAGE6],
) -> Option<&'b [u8]> {
    buf.fill(0);
    let IcmpCause { kind, code, mtu } = cause;
    if kind == icmpv6::kind::PACKET_TOO_BIG {
        let repr = Icmp6Repr { kind, code, rest: u32::from(mtu) };
        let end = icmpv6::emit_error(repr, from, packet, buf.as_mut_slice()).ok()?;
        buf[HOP_LIMIT_AT] = u8::MAX;
        return buf.get(..end);
    }
    let original = Ipv6View::parse_prefix(packet).ok()?;
    let to = original.src();
    let end = quote(buf.as_mut_slice(), START6, packet.iter(), labels)?;
    let length = (end - ipv6::HEADER_LEN) as u16;
    Ipv6Repr::new(from, to, protocol::ICMPV6, length).emit(buf.as_mut_slice()).ok()?;
    // The length of the datagram in words of 64 bits comes first (RFC 4884 section 4).
    let repr = Icmp6Repr { kind, code, rest: (QUOTED as u32 / 8) << 24 };
    repr.emit(&from, &to, buf.get_mut(ipv6::HEADER_LEN..end)?).ok()?;
    buf[HOP_LIMIT_AT] = u8::MAX;
    buf.get(..end)
}

/// Offset of the hop limit.
const HOP_LIMIT_AT: usize = 7;

/// Builds an ICMP error about a packet that came with these label stack entries; `None` if they are
/// too many.
pub(crate) fn message<'b>(
    cause: IcmpCause,
    from: Ipv4Addr,
    original: &Ipv4View<'_>,
    labels: &[u8],
    buf: &'b mut [u8; MAX_MESSAGE],
) -> Option<&'b [u8]> {
    buf.fill(0);
    let pieces = [&original.header()[..], original.options_bytes(), original.payload()];
    let end = quote(buf, START, pieces.into_iter().flatten(), labels)?;
    let repr = match (cause.kind, cause.code) {
        (3, 4) => IcmpRepr::fragmentation_needed(cause.mtu),
        (3, code) => IcmpRepr::unreachable(code),
        _ => IcmpRepr::ttl_exceeded(),
    };
    let ip = Ipv4Repr {
        ttl: u8::MAX,
        fragment_word: ipv4::flag::DONT_FRAGMENT,
        ..Ipv4Repr::new(from, original.src(), 1, (end - ipv4::HEADER_LEN) as u16)
    };
    ip.emit(buf.as_mut_slice()).ok()?;
    let icmp = buf.get_mut(ipv4::HEADER_LEN..end)?;
    repr.emit(icmp).ok()?;
    // The length of the datagram in words of 32 bits, which the checksum covers (RFC 4884 section
    // 4).
    icmp[5] = (QUOTED / 4) as u8;
    icmp[2..4].fill(0);
    let sum = checksum(icmp);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    buf.get(..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_wire::build::Packet;
    use thalweg_wire::checksum::verify;

    #[test]
    fn the_stack_follows_128_bytes_of_the_packet() {
        let ip = |n| Ipv4Addr::new(10, 0, 0, n);
        let packet = Packet::new().ipv4(ip(1), ip(2)).udp(1, 2).payload(&[7; 300]).build();
        let original = Ipv4View::parse_prefix(&packet).unwrap();
        let labels = [0, 1, 0x01, 1];
        let mut buf = [0; MAX_MESSAGE];
        let cause = IcmpCause::TTL_EXCEEDED;
        let all = message(cause, ip(9), &original, &labels, &mut buf).unwrap();
        let outer = ipv4::check(all).unwrap();
        assert_eq!((outer.src(), outer.dst()), (ip(9), ip(1)));
        let icmp = outer.payload();
        assert!(verify(icmp));
        assert_eq!((icmp[0], icmp[1], icmp[5]), (11, 0, 32));
        assert_eq!(icmp[8..136], packet[..128]);
        assert!(verify(&icmp[136..]));
        assert_eq!(
            icmp[136..],
            [&[0x20, 0, icmp[138], icmp[139], 0, 8, 1, 1], &labels[..]].concat()
        );
    }

    #[test]
    fn errors_about_ip6_packets_quote_the_stack_too() {
        let ip = |n| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n);
        let packet = Packet::new().ipv6(ip(1), ip(2)).udp(1, 2).payload(&[7; 300]).build();
        let labels = [0, 1, 0x01, 1];
        let mut buf = [0; MAX_MESSAGE6];
        let cause = cause6(IcmpCause::TTL_EXCEEDED);
        let all = message6(cause, ip(9), &packet, &labels, &mut buf).unwrap().to_vec();
        let outer = Ipv6View::parse(&all).unwrap();
        assert_eq!((outer.src(), outer.dst(), outer.hop_limit()), (ip(9), ip(1), 255));
        let icmp = icmpv6::Icmp6View::parse(outer.payload()).unwrap();
        assert!(icmp.checksum_ok(&ip(9), &ip(1)));
        let icmp = outer.payload();
        assert_eq!((icmp[0], icmp[1], icmp[4]), (3, 0, 16));
        assert_eq!(icmp[8..136], packet[..128]);
        assert!(verify(&icmp[136..]));
        assert_eq!(icmp[140..], [&[0, 8, 1, 1], &labels[..]].concat());
        // The MTU takes the place of the length.
        let cause = cause6(IcmpCause::frag_needed(1400));
        let all = message6(cause, ip(9), &packet, &labels, &mut buf).unwrap();
        let icmp = icmpv6::Icmp6View::parse(Ipv6View::parse(all).unwrap().payload()).unwrap();
        assert_eq!((icmp.kind(), icmp.rest()), (2, 1400));
        assert_eq!(all[48..], packet);
        let mut fits = |n: usize| {
            let stack = vec![0; n * 4];
            message6(cause6(IcmpCause::TTL_EXCEEDED), ip(9), &packet, &stack, &mut buf).is_some()
        };
        assert!(fits(274) && !fits(275));
        assert!(message6(IcmpCause::TTL_EXCEEDED, ip(9), &packet[..39], &[], &mut buf).is_none());
    }

    #[test]
    fn too_many_labels_are_refused() {
        let ip = |n| Ipv4Addr::new(10, 0, 0, n);
        let packet = Packet::new().ipv4(ip(1), ip(2)).udp(1, 2).build();
        let original = Ipv4View::parse_prefix(&packet).unwrap();
        let mut buf = [0; MAX_MESSAGE];
        let mut fits = |n: usize| {
            message(IcmpCause::TTL_EXCEEDED, ip(9), &original, &vec![0; n * 4], &mut buf).is_some()
        };
        assert!(fits(103) && !fits(104));
    }
}
