//! ICMPv6 (RFC 4443). Neighbor discovery is in [`crate::nd`].

use core::net::Ipv6Addr;

use crate::bytes::{be16, be32, header, put, room};
use crate::checksum::{self, Checksum};
use crate::ip::protocol;
use crate::ipv6::{self, Ipv6Repr, Ipv6View};
use crate::{Result, WireError};

/// Bytes in the header.
pub const HEADER_LEN: usize = 8;
/// Maximum length of error packets: the minimum MTU (RFC 4443 section 2.4).
pub const MAX_ERROR_LEN: usize = 1280;

/// Message types; those below 128 are errors.
pub mod kind {
    /// Destination unreachable.
    pub const DESTINATION_UNREACHABLE: u8 = 1;
    /// Packet too big for the next link's MTU.
    pub const PACKET_TOO_BIG: u8 = 2;
    /// Hop limit or reassembly time exceeded.
    pub const TIME_EXCEEDED: u8 = 3;
    /// Parameter problem.
    pub const PARAMETER_PROBLEM: u8 = 4;
    /// Echo request.
    pub const ECHO_REQUEST: u8 = 128;
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 129;
    /// Query for the listeners of groups, of both versions.
    pub const LISTENER_QUERY: u8 = 130;
    /// A listener of a group (version 1).
    pub const LISTENER_REPORT: u8 = 131;
    /// A listener has left a group (version 1).
    pub const LISTENER_DONE: u8 = 132;
    /// Router solicitation.
    pub const ROUTER_SOLICITATION: u8 = 133;
    /// Router advertisement.
    pub const ROUTER_ADVERTISEMENT: u8 = 134;
    /// Neighbor solicitation.
    pub const NEIGHBOR_SOLICITATION: u8 = 135;
    /// Neighbor advertisement.
    pub const NEIGHBOR_ADVERTISEMENT: u8 = 136;
    /// Redirect to a better next hop.
    pub const REDIRECT: u8 = 137;
    /// Listeners of groups (version 2).
    pub const LISTENER_REPORT_V2: u8 = 143;
}

/// True for types that are about another packet (RFC 4443 section 2.1).
#[inline]
pub const fn is_error(kind: u8) -> bool {
    kind < 128
}

/// True for echo requests and replies, which have an identifier.
#[inline]
pub const fn is_echo(number: u8) -> bool {
    matches!(number, kind::ECHO_REQUEST | kind::ECHO_REPLY)
}

/// The name that traces print for a type, if it has one.
pub const fn kind_name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        1 => "destination_unreachable",
        2 => "packet_too_big",
        3 => "time_exceeded",
        4 => "parameter_problem",
        128 => "echo_request",
        129 => "echo_reply",
        130 => "multicast_listener_request",
        131 => "multicast_listener_report",
        132 => "multicast_listener_done",
        133 => "router_solicitation",
        134 => "router_advertisement",
        135 => "neighbor_solicitation",
        136 => "neighbor_advertisement",
        137 => "redirect",
        143 => "multicast_listener_report_v2",
        _ => return None,
    })
}

/// The name that traces print for a type's code, if it has one.
pub const fn code_name(kind: u8, code: u8) -> Option<&'static str> {
    Some(match (kind, code) {
        (1, 0) => "no_route_to_destination",
        (1, 1) => "destination_administratively_prohibited",
        (1, 2) => "beyond_scope_of_source_address",
        (1, 3) => "address_unreachable",
        (1, 4) => "port_unreachable",
        (1, 5) => "source_address_failed_policy",
        (1, 6) => "reject_route_to_destination",
        (3, 0) => "ttl_exceeded_in_transit",
        (3, 1) => "fragment_reassembly_time_exceeded",
        (4, 0) => "erroneous_header_field",
        (4, 1) => "unrecognized_next_header",
        (4, 2) => "unrecognized_option",
        _ => return None,
    })
}

const CODE: usize = 1;
const CHECKSUM: usize = 2;
const REST: usize = 4;
const WHAT: &str = "ICMPv6 message";

/// An ICMPv6 message.
#[derive(Clone, Copy, Debug)]
pub struct Icmp6View<'a> {
    header: &'a [u8; HEADER_LEN],
    message: &'a [u8],
}

impl<'a> Icmp6View<'a> {
    /// Parses the message in `data`, which the caller has cut to the IP payload.
    ///
    /// # Errors
    /// `Truncated` below 8 bytes.
    #[inline]
    pub fn parse(data: &'a [u8]) -> Result<Self> {
        let (header, _) = header(data, WHAT)?;
        Ok(Self { header, message: data })
    }

    /// The type (see [`kind`]).
    #[inline]
    pub fn kind(&self) -> u8 {
        self.header[0]
    }

    /// The code.
    #[inline]
    pub fn code(&self) -> u8 {
        self.header[CODE]
    }

    /// The checksum field.
    #[inline]
    pub fn checksum(&self) -> u16 {
        be16(self.header, CHECKSUM)
    }

    /// True if the message is intact, given the addresses of its packet.
    pub fn checksum_ok(&self, src: &Ipv6Addr, dst: &Ipv6Addr) -> bool {
        let mut sum = pseudo(src, dst, self.message.len());
        sum.add(self.message);
        sum.is_valid()
    }

    /// The second word of the header, whose meaning depends on the type.
    #[inline]
    pub fn rest(&self) -> u32 {
        be32(self.header, REST)
    }

    /// Identifier and sequence number of an echo request or reply.
    #[inline]
    pub fn echo(&self) -> Option<crate::icmpv4::Echo> {
        matches!(self.kind(), kind::ECHO_REQUEST | kind::ECHO_REPLY).then(|| {
            let (id, seq) = (be16(self.header, REST), be16(self.header, REST + 2));
            crate::icmpv4::Echo { id, seq }
        })
    }

    /// True for messages about another packet, to which no error may be sent.
    #[inline]
    pub fn is_error(&self) -> bool {
        is_error(self.kind())
    }

    /// The packet that an error is about, truncated as the sender of the error did.
    pub fn quoted(&self) -> Option<Result<Ipv6View<'a>>> {
        self.is_error().then(|| Ipv6View::parse_prefix(self.payload()))
    }

    /// The whole message, header included.
    #[inline]
    pub fn message(&self) -> &'a [u8] {
        self.message
    }

    /// The bytes after the header.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.message[HEADER_LEN..]
    }

    /// The header's fields.
    pub fn repr(&self) -> Icmp6Repr {
        Icmp6Repr { kind: self.kind(), code: self.code(), rest: self.rest() }
    }
}

fn pseudo(src: &Ipv6Addr, dst: &Ipv6Addr, length: usize) -> Checksum {
    checksum::pseudo_v6(src, dst, protocol::ICMPV6, length as u32)
}

/// Computes and writes the checksum of a whole message.
///
/// # Errors
/// `NoRoom` below 8 bytes.
pub fn fill_checksum(src: &Ipv6Addr, dst: &Ipv6Addr, message: &mut [u8]) -> Result<u16> {
    put(room::<HEADER_LEN>(message, WHAT)?, CHECKSUM, [0, 0]);
    let mut sum = pseudo(src, dst, message.len());
    sum.add(message);
    let value = sum.finish();
    message[CHECKSUM..CHECKSUM + 2].copy_from_slice(&value.to_be_bytes());
    Ok(value)
}

/// The fields of an ICMPv6 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icmp6Repr {
    /// The type (see [`kind`]).
    pub kind: u8,
    /// The code.
    pub code: u8,
    /// The second word of the header.
    pub rest: u32,
}

impl Icmp6Repr {
    /// An echo request.
    pub const fn echo_request(id: u16, seq: u16) -> Self {
        Self { kind: kind::ECHO_REQUEST, code: 0, rest: (id as u32) << 16 | seq as u32 }
    }

    /// A "hop limit exceeded in transit" error.
    pub const fn hop_limit_exceeded() -> Self {
        Self { kind: kind::TIME_EXCEEDED, code: 0, rest: 0 }
    }

    /// A "packet too big" error with the next hop's MTU.
    pub const fn packet_too_big(mtu: u32) -> Self {
        Self { kind: kind::PACKET_TOO_BIG, code: 0, rest: mtu }
    }

    /// Writes the header before the payload that `message` already holds from byte 8 on, with the
    /// checksum over both. Returns the header's length.
    ///
    /// # Errors
    /// `NoRoom` below 8 bytes.
    pub fn emit(&self, src: &Ipv6Addr, dst: &Ipv6Addr, message: &mut [u8]) -> Result<usize> {
        let b = room::<HEADER_LEN>(message, WHAT)?;
        put(b, 0, [self.kind, self.code, 0, 0]);
        put(b, REST, self.rest.to_be_bytes());
        fill_checksum(src, dst, message)?;
        Ok(HEADER_LEN)
    }
}

/// Writes a whole ICMPv6 error packet, from its IP header on, about the packet whose bytes from the
/// IP header on are `original`. The packet quotes as much as fits into 1280 bytes and into `buf`.
/// Returns its length.
///
/// # Errors
/// `Truncated` when `original` has no IPv6 header; `NoRoom` when `buf` cannot hold the headers and
/// a quoted IPv6 header.
pub fn emit_error(
    error: Icmp6Repr,
    src: Ipv6Addr,
    original: &[u8],
    buf: &mut [u8],
) -> Result<usize> {
    const HEADERS: usize = ipv6::HEADER_LEN + HEADER_LEN;
    let dst = Ipv6View::parse_prefix(original)?.src();
    let (need, have) = (HEADERS + ipv6::HEADER_LEN, buf.len());
    if have < need {
        return Err(WireError::NoRoom { what: "ICMPv6 error", need, have });
    }
    let quote = original.len().min(have.min(MAX_ERROR_LEN) - HEADERS);
    let end = HEADERS + quote;
    buf[HEADERS..end].copy_from_slice(&original[..quote]);
    let length = (quote + HEADER_LEN) as u16;
    Ipv6Repr::new(src, dst, protocol::ICMPV6, length).emit(buf)?;
    error.emit(&src, &dst, &mut buf[ipv6::HEADER_LEN..end])?;
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;

    #[test]
    fn an_error_quotes_up_to_the_smallest_mtu() {
        let (a, b) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
        let mut original = vec![0; 40 + 1400];
        Ipv6Repr::new(a, b, 17, 1400).emit(&mut original).unwrap();
        let mut buf = [0; 2000];
        let error = Icmp6Repr::packet_too_big(1400);
        assert_eq!(emit_error(error, b, &original, &mut buf), Ok(1280));
        let ip = Ipv6View::parse(&buf).unwrap();
        assert_eq!((ip.src(), ip.dst(), ip.next_header()), (b, a, 58));
        let icmp = Icmp6View::parse(ip.payload()).unwrap();
        assert!(icmp.checksum_ok(&b, &a) && icmp.is_error());
        assert_eq!((icmp.kind(), icmp.rest()), (kind::PACKET_TOO_BIG, 1400));
        assert_eq!(icmp.quoted().unwrap().unwrap().dst(), b);
        assert!(emit_error(error, b, &original, &mut buf[..87]).is_err());
        assert!(emit_error(error, b, &original[..39], &mut buf).is_err());
    }

    proptest! {
        #[test]
        fn emitted_messages_parse_back(
            kind: u8, code: u8, rest: u32, ips: [u128; 2],
            payload in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let repr = Icmp6Repr { kind, code, rest };
            let [src, dst] = ips.map(Ipv6Addr::from);
            let mut message = [&[0xff; 8][..], &payload].concat();
            repr.emit(&src, &dst, &mut message).unwrap();
            let view = Icmp6View::parse(&message).unwrap();
            prop_assert!(view.checksum_ok(&src, &dst));
            prop_assert_eq!((view.repr(), view.payload()), (repr, &payload[..]));
        }

        #[test]
        fn any_bytes_are_read_or_refused(data in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(view) = Icmp6View::parse(&data) {
                let _ = (view.echo(), view.quoted().map(|q| q.is_ok()));
                let _ = (kind_name(view.kind()), code_name(view.kind(), view.code()));
            }
            let _ = emit_error(
                Icmp6Repr::hop_limit_exceeded(), Ipv6Addr::LOCALHOST, &data, &mut [0; 100],
            );
        }
    }
}
