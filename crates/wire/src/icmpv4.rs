//! ICMP (RFC 792), with the rules for errors of RFC 1812 sections 4.3.2 and 5.2.7.

use core::net::Ipv4Addr;

use crate::bytes::{be16, be32, header, header_mut, put};
use crate::ip::protocol;
use crate::ipv4::{self, Ipv4Repr, Ipv4View};
use crate::{Result, WireError, checksum};

/// Bytes in the header.
pub const HEADER_LEN: usize = 8;
/// Maximum length of error packets, IP header included (RFC 1812 section 4.3.2.3).
pub const MAX_ERROR_LEN: usize = 576;

/// Message types.
pub mod kind {
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 0;
    /// Destination unreachable; the code is the reason.
    pub const DESTINATION_UNREACHABLE: u8 = 3;
    /// Obsolete congestion signal.
    pub const SOURCE_QUENCH: u8 = 4;
    /// Redirect to a better gateway.
    pub const REDIRECT: u8 = 5;
    /// Echo request.
    pub const ECHO_REQUEST: u8 = 8;
    /// Router advertisement.
    pub const ROUTER_ADVERTISEMENT: u8 = 9;
    /// Router solicitation.
    pub const ROUTER_SOLICITATION: u8 = 10;
    /// TTL or reassembly time exceeded.
    pub const TIME_EXCEEDED: u8 = 11;
    /// Parameter problem.
    pub const PARAMETER_PROBLEM: u8 = 12;
    /// Timestamp request.
    pub const TIMESTAMP_REQUEST: u8 = 13;
    /// Timestamp reply.
    pub const TIMESTAMP_REPLY: u8 = 14;
}

/// Codes of [`kind::DESTINATION_UNREACHABLE`].
pub mod unreachable {
    /// Network unreachable: no route.
    pub const NET: u8 = 0;
    /// Host unreachable.
    pub const HOST: u8 = 1;
    /// Protocol unreachable.
    pub const PROTOCOL: u8 = 2;
    /// Port unreachable.
    pub const PORT: u8 = 3;
    /// Fragmentation needed and DF set; the message contains the MTU (RFC 1191).
    pub const FRAGMENTATION_NEEDED: u8 = 4;
    /// Administratively prohibited.
    pub const ADMINISTRATIVELY_PROHIBITED: u8 = 13;
}

/// Codes of [`kind::TIME_EXCEEDED`].
pub mod exceeded {
    /// TTL exceeded in transit.
    pub const TTL: u8 = 0;
    /// Fragment reassembly time exceeded.
    pub const REASSEMBLY: u8 = 1;
}

/// The name that traces print for a type, if it has one.
pub const fn kind_name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        0 => "echo_reply",
        3 => "destination_unreachable",
        4 => "source_quench",
        5 => "redirect",
        6 => "alternate_host_address",
        8 => "echo_request",
        9 => "router_advertisement",
        10 => "router_solicitation",
        11 => "time_exceeded",
        12 => "parameter_problem",
        13 => "timestamp_request",
        14 => "timestamp_reply",
        15 => "information_request",
        16 => "information_reply",
        17 => "address_mask_request",
        18 => "address_mask_reply",
        30 => "traceroute",
        40 => "photuris",
        _ => return None,
    })
}

/// The name that traces print for a type's code, if it has one.
pub const fn code_name(kind: u8, code: u8) -> Option<&'static str> {
    Some(match (kind, code) {
        (3, 0) => "destination_unreachable_net",
        (3, 1) => "destination_unreachable_host",
        (3, 2) => "protocol_unreachable",
        (3, 3) => "port_unreachable",
        (3, 4) => "fragmentation_needed_and_dont_fragment_set",
        (3, 5) => "source_route_failed",
        (3, 6) => "destination_network_unknown",
        (3, 7) => "destination_host_unknown",
        (3, 8) => "source_host_isolated",
        (3, 9) => "network_administratively_prohibited",
        (3, 10) => "host_administratively_prohibited",
        (3, 11) => "network_unreachable_for_type_of_service",
        (3, 12) => "host_unreachable_for_type_of_service",
        (3, 13) => "communication_administratively_prohibited",
        (3, 14) => "host_precedence_violation",
        (3, 15) => "precedence_cutoff_in_effect",
        (5, 0) => "network_redirect",
        (5, 1) => "host_redirect",
        (5, 2) => "type_of_service_and_network_redirect",
        (5, 3) => "type_of_service_and_host_redirect",
        (9, 16) => "does_not_route_common_traffic",
        (11, 0) => "ttl_exceeded_in_transit",
        (11, 1) => "fragment_reassembly_time_exceeded",
        (12, 0) => "pointer_indicates_error",
        (12, 1) => "missing_required_option",
        (12, 2) => "bad_length",
        _ => return None,
    })
}

const CODE: usize = 1;
const CHECKSUM: usize = 2;
const REST: usize = 4;
const WHAT: &str = "ICMP message";

/// An ICMP message.
#[derive(Clone, Copy, Debug)]
pub struct IcmpView<'a> {
    header: &'a [u8; HEADER_LEN],
    message: &'a [u8],
}

impl<'a> IcmpView<'a> {
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

    /// True if the message is intact.
    #[inline]
    pub fn checksum_ok(&self) -> bool {
        checksum::verify(self.message)
    }

    /// The second word of the header, whose meaning depends on the type.
    #[inline]
    pub fn rest(&self) -> u32 {
        be32(self.header, REST)
    }

    /// Identifier and sequence number, for queries and their replies.
    #[inline]
    pub fn echo(&self) -> Option<Echo> {
        let query = matches!(self.kind(), 0 | 8 | 13..=18);
        query.then(|| Echo { id: be16(self.header, REST), seq: be16(self.header, REST + 2) })
    }

    /// The next hop's MTU, for "fragmentation needed".
    pub fn mtu(&self) -> Option<u16> {
        let code = unreachable::FRAGMENTATION_NEEDED;
        let needed = self.kind() == kind::DESTINATION_UNREACHABLE && self.code() == code;
        needed.then(|| be16(self.header, REST + 2))
    }

    /// True for messages about another packet, to which no error may be sent.
    #[inline]
    pub fn is_error(&self) -> bool {
        is_error(self.kind())
    }

    /// The packet that an error is about, truncated as the sender of the error did.
    pub fn quoted(&self) -> Option<Result<Ipv4View<'a>>> {
        self.is_error().then(|| Ipv4View::parse_prefix(self.payload()))
    }

    /// The bytes after the header.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.message[HEADER_LEN..]
    }

    /// The header's fields.
    pub fn repr(&self) -> IcmpRepr {
        IcmpRepr { kind: self.kind(), code: self.code(), rest: self.rest() }
    }
}

/// Identifier and sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Identifier.
    pub id: u16,
    /// Sequence number.
    pub seq: u16,
}

/// True for types that are about another packet.
#[inline]
pub const fn is_error(kind: u8) -> bool {
    matches!(kind, 3 | 4 | 5 | 11 | 12)
}

/// True for queries and their replies, which have an identifier.
#[inline]
pub const fn is_query(kind: u8) -> bool {
    matches!(kind, 0 | 8 | 13..=18)
}

/// The fields of an ICMP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpRepr {
    /// The type (see [`kind`]).
    pub kind: u8,
    /// The code.
    pub code: u8,
    /// The second word of the header.
    pub rest: u32,
}

impl IcmpRepr {
    /// An echo request.
    pub const fn echo_request(id: u16, seq: u16) -> Self {
        Self { kind: kind::ECHO_REQUEST, code: 0, rest: (id as u32) << 16 | seq as u32 }
    }

    /// A "TTL exceeded in transit" error.
    pub const fn ttl_exceeded() -> Self {
        Self { kind: kind::TIME_EXCEEDED, code: exceeded::TTL, rest: 0 }
    }

    /// A "destination unreachable" error; see [`mod@unreachable`] for `code`.
    pub const fn unreachable(code: u8) -> Self {
        Self { kind: kind::DESTINATION_UNREACHABLE, code, rest: 0 }
    }

    /// A "fragmentation needed" error with the next hop's MTU.
    pub const fn fragmentation_needed(mtu: u16) -> Self {
        let code = unreachable::FRAGMENTATION_NEEDED;
        Self { kind: kind::DESTINATION_UNREACHABLE, code, rest: mtu as u32 }
    }

    /// Writes the header before the payload that `message` already holds from byte 8 on, with the
    /// checksum over both. Returns the header's length.
    ///
    /// # Errors
    /// `NoRoom` below 8 bytes.
    pub fn emit(&self, message: &mut [u8]) -> Result<usize> {
        let b = crate::bytes::room::<HEADER_LEN>(message, WHAT)?;
        put(b, 0, [self.kind, self.code, 0, 0]);
        put(b, REST, self.rest.to_be_bytes());
        let sum = checksum::checksum(message);
        message[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
        Ok(HEADER_LEN)
    }
}

/// Turns an echo request into its reply, in place. Returns false, and changes nothing, for other
/// messages.
///
/// # Errors
/// `Truncated` below 8 bytes.
#[inline]
pub fn make_echo_reply(message: &mut [u8]) -> Result<bool> {
    let (h, _) = header_mut::<HEADER_LEN>(message, WHAT)?;
    if h[0] != kind::ECHO_REQUEST {
        return Ok(false);
    }
    let (old, new) = (be16(h, 0), u16::from_be_bytes([kind::ECHO_REPLY, h[CODE]]));
    h[0] = kind::ECHO_REPLY;
    let sum = checksum::update_u16(be16(h, CHECKSUM), old, new);
    put(h, CHECKSUM, sum.to_be_bytes());
    Ok(true)
}

/// True if an ICMP error may be sent about this packet (RFC 1812 section 4.3.2.7): not about an
/// ICMP error, a fragment other than the first, nor a packet to or from an address that is not one
/// host. The caller checks for broadcasts of the link and of its subnet.
pub fn may_answer_with_error(packet: &Ipv4View<'_>) -> bool {
    let dst = packet.dst();
    let about_error = packet.protocol() == protocol::ICMP
        && packet.payload().first().is_none_or(|&kind| is_error(kind));
    !about_error
        && packet.fragment_offset() == 0
        && !ipv4::is_martian_source(packet.src())
        && !dst.is_multicast()
        && !dst.is_broadcast()
}

/// Writes a whole ICMP error packet, from its IP header on, about the packet `original`. The packet
/// quotes as much of the original as fits into 576 bytes and into `buf`. Returns its length.
///
/// # Errors
/// `NoRoom` when `buf` cannot hold the headers and a quoted IP header with 8 bytes.
pub fn emit_error(
    error: IcmpRepr,
    src: Ipv4Addr,
    original: &Ipv4View<'_>,
    buf: &mut [u8],
) -> Result<usize> {
    const HEADERS: usize = ipv4::HEADER_LEN + HEADER_LEN;
    let pieces = [&original.header()[..], original.options_bytes(), original.payload()];
    let least = original.header_len() + original.payload().len().min(8);
    let room = buf.len().min(MAX_ERROR_LEN);
    if room < HEADERS + least {
        let (need, have) = (HEADERS + least, buf.len());
        return Err(WireError::NoRoom { what: "ICMP error", need, have });
    }
    let mut end = HEADERS;
    for piece in pieces {
        let piece = &piece[..piece.len().min(room - end)];
        buf[end..end + piece.len()].copy_from_slice(piece);
        end += piece.len();
    }
    let length = (end - ipv4::HEADER_LEN) as u16;
    // VPP's form is routine precedence, and as many hops as there can be. Without an identification
    // of its own, a packet must not be fragmented (RFC 6864 section 4.1).
    let ip = Ipv4Repr {
        ttl: u8::MAX,
        fragment_word: ipv4::flag::DONT_FRAGMENT,
        ..Ipv4Repr::new(src, original.src(), protocol::ICMP, length)
    };
    ip.emit(buf)?;
    error.emit(&mut buf[ipv4::HEADER_LEN..end])?;
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;

    #[test]
    fn a_ping_becomes_its_reply() {
        let mut ping = [8, 0, 0, 0, 0, 7, 0, 1, 1, 2, 3];
        IcmpRepr::echo_request(7, 1).emit(&mut ping).unwrap();
        assert_eq!(IcmpView::parse(&ping).unwrap().echo(), Some(Echo { id: 7, seq: 1 }));
        assert_eq!(make_echo_reply(&mut ping), Ok(true));
        let reply = IcmpView::parse(&ping).unwrap();
        assert!(reply.checksum_ok() && reply.kind() == kind::ECHO_REPLY);
        assert_eq!(make_echo_reply(&mut ping), Ok(false));
        assert!(make_echo_reply(&mut ping[..7]).is_err());
    }

    fn packet(protocol: u8, payload: &[u8]) -> vec::Vec<u8> {
        let (src, dst) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let mut p = vec![0; 20 + payload.len()];
        Ipv4Repr::new(src, dst, protocol, payload.len() as u16).emit(&mut p).unwrap();
        p[20..].copy_from_slice(payload);
        p
    }

    #[test]
    fn an_error_quotes_up_to_576_bytes() {
        let original = packet(17, &[7; 1000]);
        let original = ipv4::check(&original).unwrap();
        let mut buf = [0; 1500];
        let src = [192, 0, 2, 1].into();
        let n = emit_error(IcmpRepr::fragmentation_needed(1400), src, &original, &mut buf).unwrap();
        assert_eq!(n, 576);
        let ip = ipv4::check(&buf[..n]).unwrap();
        assert_eq!((ip.src(), ip.dst()), (src, original.src()));
        assert_eq!((ip.tos(), ip.ttl()), (0, 255));
        let icmp = IcmpView::parse(ip.payload()).unwrap();
        assert!(icmp.checksum_ok());
        assert_eq!(icmp.mtu(), Some(1400));
        let quoted = icmp.quoted().unwrap().unwrap();
        assert_eq!((quoted.repr(), quoted.payload().len()), (original.repr(), 576 - 28 - 20));
        assert!(emit_error(IcmpRepr::ttl_exceeded(), src, &original, &mut [0; 55]).is_err());
        assert_eq!(emit_error(IcmpRepr::ttl_exceeded(), src, &original, &mut [0; 56]), Ok(56));
    }

    #[test]
    fn errors_are_sent_only_where_allowed() {
        let may = |p: &[u8]| may_answer_with_error(&Ipv4View::parse(p).unwrap());
        assert!(may(&packet(17, &[0; 8])));
        assert!(may(&packet(1, &[8, 0, 0, 0])));
        assert!(!may(&packet(1, &[3, 0, 0, 0])));
        assert!(!may(&packet(1, &[])));
        let mut p = packet(17, &[0; 8]);
        p[7] = 1; // a later fragment
        assert!(!may(&p));
        for (at, byte) in [(16, 224), (12, 127), (12, 0)] {
            let mut p = packet(17, &[0; 8]);
            p[at] = byte;
            assert!(!may(&p), "{at}");
        }
    }

    proptest! {
        #[test]
        fn emitted_messages_parse_back(
            kind: u8, code: u8, rest: u32, payload in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let repr = IcmpRepr { kind, code, rest };
            let mut message = [&[0xff; 8][..], &payload].concat();
            repr.emit(&mut message).unwrap();
            let view = IcmpView::parse(&message).unwrap();
            prop_assert!(view.checksum_ok());
            prop_assert_eq!((view.repr(), view.payload()), (repr, &payload[..]));
        }

        #[test]
        fn any_bytes_are_read_or_refused(data in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(view) = IcmpView::parse(&data) {
                let _ = (view.echo(), view.mtu(), view.quoted().map(|q| q.is_ok()));
                let _ = (kind_name(view.kind()), code_name(view.kind(), view.code()));
            }
            if let Ok(ip) = Ipv4View::parse_prefix(&data) {
                may_answer_with_error(&ip);
                let src = Ipv4Addr::LOCALHOST;
                let _ = emit_error(IcmpRepr::ttl_exceeded(), src, &ip, &mut [0; 100]);
            }
        }
    }
}
