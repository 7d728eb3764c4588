//! IPv6 (RFC 8200): the fixed header and the walk over extension headers.

use core::net::Ipv6Addr;

use crate::bytes::{array, be16, be32, header, header_mut, put, room};
use crate::checksum::{self, Checksum};
use crate::ip::protocol;
use crate::{Result, WireError};

/// Bytes in the fixed header.
pub const HEADER_LEN: usize = 40;
/// Bytes in a fragment header.
const FRAGMENT_LEN: usize = 8;
/// Bytes in the longest payload, extension headers included.
pub const MAX_PAYLOAD: usize = 0xffff;
/// Maximum number of extension headers: as many as a frame of 2 KiB holds. A parser that gave up
/// earlier would be blind to what comes after them.
pub const MAX_EXTENSIONS: usize = 256;

const LENGTH: usize = 4;
const NEXT: usize = 6;
const HOP_LIMIT: usize = 7;
const SRC: usize = 8;
const DST: usize = 24;
const WHAT: &str = "IPv6 header";

/// An IPv6 packet whose payload length is consistent with the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6View<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> Ipv6View<'a> {
    /// Parses the packet at the start of `data`; link padding after it is cut off.
    ///
    /// # Errors
    /// `Truncated`, `BadVersion`, or `BadTotalLength` if the payload length exceeds the bytes.
    #[inline]
    pub fn parse(data: &'a [u8]) -> Result<Self> {
        Self::parse_chain(data, data.len())
    }

    /// [`parse`](Self::parse) for a packet of `packet_len` bytes of which only `first` are
    /// available.
    ///
    /// # Errors
    /// See `parse`.
    #[inline]
    pub fn parse_chain(first: &'a [u8], packet_len: usize) -> Result<Self> {
        let (header, rest) = header::<HEADER_LEN>(first, WHAT)?;
        if header[0] >> 4 != 6 {
            return Err(WireError::BadVersion { what: WHAT, found: header[0] >> 4, want: 6 });
        }
        let length = usize::from(be16(header, LENGTH));
        let have = packet_len.saturating_sub(HEADER_LEN);
        if length > have {
            return Err(WireError::BadTotalLength { what: "IPv6 payload", length, have });
        }
        Ok(Self { header, payload: &rest[..length.min(rest.len())] })
    }

    /// Parses a header whose packet may be truncated after it.
    ///
    /// # Errors
    /// `Truncated` or `BadVersion`.
    #[inline]
    pub fn parse_prefix(data: &'a [u8]) -> Result<Self> {
        Self::parse_chain(data, usize::MAX)
    }

    /// The traffic class: DSCP and ECN.
    #[inline]
    pub fn traffic_class(&self) -> u8 {
        (be16(self.header, 0) >> 4) as u8
    }

    /// The flow label, 20 bits.
    #[inline]
    pub fn flow_label(&self) -> u32 {
        be32(self.header, 0) & 0xf_ffff
    }

    /// Bytes after the fixed header, extension headers included.
    #[inline]
    pub fn payload_len(&self) -> u16 {
        be16(self.header, LENGTH)
    }

    /// The type of the first header after this one.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.header[NEXT]
    }

    /// The hop limit.
    #[inline]
    pub fn hop_limit(&self) -> u8 {
        self.header[HOP_LIMIT]
    }

    /// The source address.
    #[inline]
    pub fn src(&self) -> Ipv6Addr {
        array::<16, _>(self.header, SRC).into()
    }

    /// The destination address.
    #[inline]
    pub fn dst(&self) -> Ipv6Addr {
        array::<16, _>(self.header, DST).into()
    }

    /// The bytes after the fixed header.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Walks the extension headers to the transport.
    ///
    /// # Errors
    /// `Truncated` if one is truncated, `BadHeaderLength` after [`MAX_EXTENSIONS`],
    /// `BadTotalLength` for a fragment of a packet whose payload would be longer than
    /// [`MAX_PAYLOAD`] (RFC 8200 section 4.5).
    #[inline]
    pub fn transport(&self) -> Result<Transport<'a>> {
        let transport = walk(self.next_header(), self.payload)?;
        if let Some(fragment) = transport.fragment {
            // The packet that it is a part of has no fragment header.
            let length = fragment.offset + usize::from(self.payload_len()) - FRAGMENT_LEN;
            if length > MAX_PAYLOAD {
                let what = "IPv6 packet of a fragment";
                return Err(WireError::BadTotalLength { what, length, have: MAX_PAYLOAD });
            }
        }
        Ok(transport)
    }

    /// The value of the router alert option, if the packet has one (RFC 2711): 0 for multicast
    /// listener discovery.
    pub fn router_alert(&self) -> Option<u16> {
        const PAD1: u8 = 0;
        const ROUTER_ALERT: u8 = 5;
        if self.next_header() != protocol::HOP_BY_HOP {
            return None;
        }
        let length = (usize::from(*self.payload.get(1)?) + 1) * 8;
        let mut options = self.payload.get(2..length)?;
        while let [kind, rest @ ..] = options {
            if *kind == PAD1 {
                options = rest;
                continue;
            }
            let (length, rest) = rest.split_first()?;
            let (value, behind) = rest.split_at_checked(usize::from(*length))?;
            match (*kind, value) {
                (ROUTER_ALERT, &[a, b]) => return Some(u16::from_be_bytes([a, b])),
                _ => options = behind,
            }
        }
        None
    }

    /// Returns why the host that the packet is for discards it, if it does: an option that it does
    /// not know and may not skip, or a route that goes on (RFC 8200 sections 4.2 and 4.4).
    pub fn refusal(&self) -> Option<Refusal> {
        let (mut next, mut at) = (self.next_header(), 0);
        loop {
            let rest = self.payload.get(at..)?;
            let h = rest.first_chunk::<4>()?;
            let need = (usize::from(h[1]) + 1) * 8;
            let found = match next {
                protocol::HOP_BY_HOP | protocol::DESTINATION => unknown_option(rest.get(..need)?)
                    .map(|(off, kind)| {
                        let answers =
                            kind >> 6 == 2 || kind >> 6 == 3 && !self.dst().is_multicast();
                        Refusal { code: answers.then_some(2), pointer: HEADER_LEN + at + off }
                    }),
                protocol::ROUTING if h[3] != 0 => {
                    Some(Refusal { code: Some(0), pointer: HEADER_LEN + at + 2 })
                }
                protocol::ROUTING => None,
                // The rest of a datagram may be behind it.
                _ => return None,
            };
            if found.is_some() {
                return found;
            }
            (next, at) = (h[0], at + need);
        }
    }

    /// The sum of the pseudo-header for a transport of `length` bytes.
    #[inline]
    pub fn pseudo_header(&self, protocol: u8, length: u32) -> Checksum {
        checksum::pseudo_v6(&self.src(), &self.dst(), protocol, length)
    }

    /// The header's fields.
    pub fn repr(&self) -> Ipv6Repr {
        Ipv6Repr {
            src: self.src(),
            dst: self.dst(),
            next_header: self.next_header(),
            hop_limit: self.hop_limit(),
            traffic_class: self.traffic_class(),
            flow_label: self.flow_label(),
            payload_len: self.payload_len(),
        }
    }
}

/// Reason why a host discards a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Code of the parameter problem (ICMPv6 type 4) that answers it; `None`: nothing does.
    pub code: Option<u8>,
    /// Offset of what is wrong.
    pub pointer: usize,
}

/// Returns offset and type of the first option in a header that a host may not skip though it does
/// not know it.
fn unknown_option(header: &[u8]) -> Option<(usize, u8)> {
    const PAD1: u8 = 0;
    let mut at = 2;
    while let Some(kind) = header.get(at) {
        if kind >> 6 != 0 {
            return Some((at, *kind));
        }
        at += match *kind {
            PAD1 => 1,
            _ => 2 + usize::from(*header.get(at + 1)?),
        };
    }
    None
}

/// A fragment header (RFC 8200 section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Offset of the payload in the datagram, in bytes.
    pub offset: usize,
    /// More fragments follow.
    pub more: bool,
    /// The datagram's identification.
    pub id: u32,
}

impl Fragment {
    /// True for an atomic fragment: the whole packet with a fragment header (RFC 6946).
    pub const fn is_atomic(&self) -> bool {
        self.offset == 0 && !self.more
    }
}

/// The transport, after the extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport<'a> {
    /// The type of the payload. After a fragment that is not the first, this is the first header of
    /// the datagram's fragmentable part, not that of `payload`.
    pub protocol: u8,
    /// Bytes of extension headers.
    pub offset: usize,
    /// The fragment header, if there is one.
    pub fragment: Option<Fragment>,
    /// Bytes of extension headers up to the fragment header, that one included; 0 without one.
    pub unfragmented: usize,
    /// The bytes after the extension headers.
    pub payload: &'a [u8],
}

/// Walks extension headers from a header of type `next` at the start of `data`.
///
/// Ends at the first type that is not an extension header, at "no next header", and at a fragment
/// that is not the first of its datagram. ESP hides its payload and counts as a transport; so does
/// mobility, behind which nothing follows (RFC 6275 section 6.1.1).
///
/// # Errors
/// `Truncated` if a header is truncated, `BadHeaderLength` after [`MAX_EXTENSIONS`].
pub fn walk(mut next: u8, data: &[u8]) -> Result<Transport<'_>> {
    const WHAT: &str = "IPv6 extension header";
    let (mut rest, mut fragment, mut unfragmented) = (data, None, 0);
    for _ in 0..=MAX_EXTENSIONS {
        let extension = matches!(
            next,
            protocol::HOP_BY_HOP
                | protocol::ROUTING
                | protocol::DESTINATION
                | protocol::AH
                | protocol::FRAGMENT
        );
        if !extension {
            let offset = data.len() - rest.len();
            let protocol = next;
            return Ok(Transport { protocol, offset, fragment, unfragmented, payload: rest });
        }
        let (h, _) = header::<8>(rest, WHAT)?;
        let need = match next {
            protocol::FRAGMENT => FRAGMENT_LEN,
            // The length of AH counts words of four bytes, less two (RFC 4302 section 2.2).
            protocol::AH => (usize::from(h[1]) + 2) * 4,
            _ => (usize::from(h[1]) + 1) * 8,
        };
        let have = rest.len();
        let behind = rest.get(need..).ok_or(WireError::Truncated { what: WHAT, need, have })?;
        if next == protocol::FRAGMENT {
            let word = be16(h, 2);
            let f = Fragment {
                offset: usize::from(word & 0xfff8),
                more: word & 1 != 0,
                id: be32(h, 4),
            };
            // A second one cannot make a whole of a fragment.
            if f.offset != 0 || fragment.is_none_or(|before: Fragment| before.is_atomic()) {
                fragment = Some(f);
                unfragmented = data.len() - behind.len();
            }
            if f.offset != 0 {
                let (protocol, offset) = (h[0], data.len() - behind.len());
                let payload = behind;
                return Ok(Transport { protocol, offset, fragment, unfragmented, payload });
            }
        }
        next = h[0];
        rest = behind;
    }
    Err(WireError::BadHeaderLength { what: WHAT, length: data.len() - rest.len() })
}

/// The fields of the fixed header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Repr {
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
    /// The type of the payload.
    pub next_header: u8,
    /// The hop limit.
    pub hop_limit: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// The flow label; bits above the 20 are not sent.
    pub flow_label: u32,
    /// Bytes after the fixed header.
    pub payload_len: u16,
}

impl Ipv6Repr {
    /// Returns a header with a hop limit of 64 and defaults.
    pub const fn new(src: Ipv6Addr, dst: Ipv6Addr, next_header: u8, payload_len: u16) -> Self {
        let (hop_limit, traffic_class, flow_label) = (64, 0, 0);
        Self { src, dst, next_header, hop_limit, traffic_class, flow_label, payload_len }
    }

    /// Writes the header and returns its length.
    ///
    /// # Errors
    /// `NoRoom` below 40 bytes.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize> {
        let b = room::<HEADER_LEN>(buf, WHAT)?;
        let word = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & 0xf_ffff;
        put(b, 0, word.to_be_bytes());
        put(b, LENGTH, self.payload_len.to_be_bytes());
        b[NEXT] = self.next_header;
        b[HOP_LIMIT] = self.hop_limit;
        put(b, SRC, self.src.octets());
        put(b, DST, self.dst.octets());
        Ok(HEADER_LEN)
    }
}

/// A fixed header for changes in place. IPv6 has no header checksum.
#[derive(Debug)]
pub struct Ipv6Mut<'a> {
    header: &'a mut [u8; HEADER_LEN],
}

impl<'a> Ipv6Mut<'a> {
    /// Takes the header at the start of `data`, which the caller has checked to be IPv6.
    ///
    /// # Errors
    /// `Truncated` below 40 bytes.
    #[inline]
    pub fn parse(data: &'a mut [u8]) -> Result<Self> {
        Ok(Self { header: header_mut(data, WHAT)?.0 })
    }

    /// Decrements the hop limit and returns it; zero stays zero.
    #[inline]
    pub fn decrement_hop_limit(&mut self) -> u8 {
        self.header[HOP_LIMIT] = self.header[HOP_LIMIT].saturating_sub(1);
        self.header[HOP_LIMIT]
    }

    /// Sets the hop limit.
    #[inline]
    pub fn set_hop_limit(&mut self, hops: u8) {
        self.header[HOP_LIMIT] = hops;
    }

    /// Sets the payload's length.
    #[inline]
    pub fn set_payload_len(&mut self, length: u16) {
        put(self.header, LENGTH, length.to_be_bytes());
    }

    /// Sets the source address. The caller updates transport checksums.
    #[inline]
    pub fn set_src(&mut self, addr: Ipv6Addr) {
        put(self.header, SRC, addr.octets());
    }

    /// Sets the destination address. The caller updates transport checksums.
    #[inline]
    pub fn set_dst(&mut self, addr: Ipv6Addr) {
        put(self.header, DST, addr.octets());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;

    fn fixed(next: u8, payload_len: u16) -> [u8; 40] {
        let (src, dst) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
        let mut buf = [0; 40];
        Ipv6Repr::new(src, dst, next, payload_len).emit(&mut buf).unwrap();
        buf
    }

    #[test]
    fn extension_headers_lead_to_the_transport() {
        let mut p = fixed(0, 8 + 16 + 8 + 12 + 8).to_vec();
        p.extend([43, 0, 1, 4, 0, 0, 0, 0]); // hop-by-hop
        p.extend([44, 1, 4, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]); // routing, two units
        p.extend([51, 0, 0, 1, 0, 0, 0, 7]); // first fragment
        p.extend([17, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]); // AH, three words
        p.extend([0, 1, 0, 2, 0, 8, 0, 0]);
        let t = Ipv6View::parse(&p).unwrap().transport().unwrap();
        assert_eq!((t.protocol, t.offset, t.payload.len()), (17, 44, 8));
        assert_eq!(t.fragment, Some(Fragment { offset: 0, more: true, id: 7 }));
        assert_eq!(t.unfragmented, 32);
    }

    #[test]
    fn a_router_alert_is_found_among_options() {
        let with = |next: u8, options: &[u8]| {
            let p = [&fixed(next, options.len() as u16)[..], options].concat();
            Ipv6View::parse(&p).unwrap().router_alert()
        };
        assert_eq!(with(0, &[58, 0, 5, 2, 0, 0, 1, 0]), Some(0));
        assert_eq!(with(0, &[58, 0, 0, 1, 0, 5, 2, 0]), None);
        assert_eq!(with(0, &[58, 1, 1, 2, 0, 0, 0, 0, 5, 2, 0, 7, 1, 2, 0, 0]), Some(7));
        for cut in [&[58, 1, 5, 2, 0, 0, 1, 0][..], &[58, 0, 1, 9, 0, 0, 0, 0], &[58], &[]] {
            assert_eq!(with(0, cut), None);
        }
        assert_eq!(with(60, &[58, 0, 5, 2, 0, 0, 1, 0]), None);
    }

    #[test]
    fn options_that_must_be_known_are_refused() {
        let with = |next: u8, options: &[u8]| {
            let p = [&fixed(next, options.len() as u16)[..], options].concat();
            let refused = Ipv6View::parse(&p).unwrap().refusal();
            refused.map(|r| (r.code, r.pointer))
        };
        // Padding, router alert, and one that may be skipped.
        for known in
            [[58, 0, 1, 4, 0, 0, 0, 0], [58, 0, 5, 2, 0, 0, 1, 0], [58, 0, 0x1e, 4, 0, 0, 0, 0]]
        {
            assert_eq!((with(0, &known), with(60, &known)), (None, None));
        }
        let of = |kind| [58, 0, 0, kind, 3, 0xff, 0xff, 0xff];
        assert_eq!(with(0, &of(0x40)), Some((None, 43)));
        assert_eq!(with(60, &of(0x80)), Some((Some(2), 43)));
        assert_eq!(with(0, &of(0xc2)), Some((Some(2), 43)));
        let mut to_group = [&fixed(60, 8)[..], &of(0xc2)].concat();
        to_group[24] = 0xff;
        let refused = Ipv6View::parse(&to_group).unwrap().refusal();
        assert_eq!(refused, Some(Refusal { code: None, pointer: 43 }));
        // A route that has ended, and one that goes on, behind another header.
        assert_eq!(with(43, &[58, 0, 0, 0, 0, 0, 0, 0]), None);
        let on = [43, 0, 1, 4, 0, 0, 0, 0, 58, 0, 0, 1, 0, 0, 0, 0];
        assert_eq!(with(0, &on), Some((Some(0), 50)));
        // Nothing behind a fragment header, or the end.
        assert_eq!(with(44, &of(0xc2)), None);
        assert_eq!(with(0, &[58, 9, 0xc2, 4]), None);
    }

    #[test]
    fn a_later_fragment_ends_the_walk() {
        let data = [0, 0, 0x05, 0xa8, 0, 0, 0, 9, 0xff, 0xff];
        let t = walk(protocol::FRAGMENT, &data).unwrap();
        assert_eq!((t.protocol, t.offset, t.payload), (0, 8, &data[8..]));
        assert_eq!(t.fragment, Some(Fragment { offset: 1448, more: false, id: 9 }));
    }

    #[test]
    fn a_fragment_ends_within_the_longest_packet() {
        let at = |offset: u16, bytes: usize| {
            let [a, b] = offset.to_be_bytes();
            let header = [17, 0, a, b, 0, 0, 0, 9];
            let length = (FRAGMENT_LEN + bytes) as u16;
            let p = [&fixed(protocol::FRAGMENT, length)[..], &header, &vec![0; bytes]].concat();
            Ipv6View::parse(&p).unwrap().transport().is_ok()
        };
        assert!(at(65_528, 7) && at(64_984, 551) && at(0, 1448));
        assert!(!at(65_528, 8) && !at(64_984, 608));
    }

    #[test]
    fn endless_extensions_are_refused() {
        assert!(walk(0, &[0; 8 * 8]).is_err());
        let mut eight = vec![0u8; 8 * 8];
        eight[7 * 8] = protocol::TCP;
        assert_eq!(walk(0, &eight).map(|t| (t.protocol, t.offset)), Ok((6, 64)));
        assert!(walk(0, &[0; 7]).is_err());
    }

    #[test]
    fn version_and_length_are_checked() {
        let mut p = fixed(59, 0);
        p[0] = 0x45;
        assert!(matches!(Ipv6View::parse(&p), Err(WireError::BadVersion { found: 4, .. })));
        let p = fixed(59, 1);
        assert!(matches!(Ipv6View::parse(&p), Err(WireError::BadTotalLength { length: 1, .. })));
        assert!(Ipv6View::parse_prefix(&p).is_ok());
        assert!(Ipv6View::parse(&p[..39]).is_err());
    }

    proptest! {
        #[test]
        fn emitted_headers_parse_back(
            src: u128, dst: u128, next_header: u8, hop_limit: u8, traffic_class: u8,
            flow_label in 0u32..1 << 20, payload_len in 0u16..50,
        ) {
            let (src, dst) = (src.into(), dst.into());
            let repr = Ipv6Repr {
                src, dst, next_header, hop_limit, traffic_class, flow_label, payload_len,
            };
            let mut buf = [0; 90];
            repr.emit(&mut buf).unwrap();
            let view = Ipv6View::parse(&buf).unwrap();
            prop_assert_eq!(view.repr(), repr);
            prop_assert_eq!(view.payload().len(), usize::from(payload_len));
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            data in proptest::collection::vec(any::<u8>(), 0..160),
            next in prop_oneof![Just(0), Just(43), Just(44), Just(51), Just(60), any::<u8>()],
        ) {
            if let Ok(t) = walk(next, &data) {
                prop_assert_eq!(t.offset + t.payload.len(), data.len());
            }
            let _ = Ipv6View::parse_prefix(&data).map(|v| v.transport());
            let whole = [&fixed(next, data.len() as u16)[..], &data].concat();
            if let Some(refused) = Ipv6View::parse(&whole).unwrap().refusal() {
                prop_assert!(refused.pointer < whole.len());
            }
        }
    }
}
