//! IPv4 (RFC 791), with the header checks that RFC 1812 section 5.2.2 requires of a router.

use core::fmt;
use core::net::Ipv4Addr;

use crate::bytes::{be16, be32, header_mut, put};
use crate::checksum::{self, Checksum};
use crate::{Result, WireError};

/// Bytes in a header without options.
pub const HEADER_LEN: usize = 20;
/// Bytes in the longest header.
pub const MAX_HEADER_LEN: usize = 60;
/// Bytes in the longest packet, and in the longest datagram.
pub const MAX_LEN: usize = 0xffff;
/// The first byte of a header without options.
pub const VERSION_IHL: u8 = 0x45;

/// The flag bits in the word of the fragment offset.
pub mod flag {
    /// Reserved, must be zero.
    pub const RESERVED: u16 = 0x8000;
    /// Do not fragment.
    pub const DONT_FRAGMENT: u16 = 0x4000;
    /// More fragments follow.
    pub const MORE_FRAGMENTS: u16 = 0x2000;
    /// The offset, in units of 8 bytes.
    pub const OFFSET_MASK: u16 = 0x1fff;
}

const TOS: usize = 1;
const LENGTH: usize = 2;
const ID: usize = 4;
const FRAGMENT: usize = 6;
const TTL: usize = 8;
const PROTOCOL: usize = 9;
const CHECKSUM: usize = 10;
const SRC: usize = 12;
const DST: usize = 16;
const WHAT: &str = "IPv4 header";

/// The check of RFC 1812 that a packet failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ipv4Error {
    /// The bytes end before the header does.
    TooShort,
    /// The version is not 4.
    Version(u8),
    /// The header length is below 5 words (RFC 1812 (3)), or beyond the end of the packet.
    HeaderLength(u8),
    /// The total length is below the header's.
    TotalLengthBelowHeader(u16),
    /// The total length is beyond the end of the packet.
    TotalLengthBeyondData(u16),
    /// A fragment of a datagram that would be longer than [`MAX_LEN`].
    BeyondDatagram(usize),
    /// The header checksum is wrong.
    Checksum,
    /// The packet arrived with a TTL of zero.
    TtlZero,
}

impl fmt::Display for Ipv4Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort => f.write_str("IPv4 header: fewer than 20 bytes"),
            Self::Version(v) => write!(f, "IPv4 header: version {v} instead of 4"),
            Self::HeaderLength(n) => {
                write!(f, "IPv4 header: header length of {n} words, below 5 or beyond the packet")
            }
            Self::TotalLengthBelowHeader(n) => {
                write!(f, "IPv4 header: total length of {n} bytes is shorter than the header")
            }
            Self::TotalLengthBeyondData(n) => {
                write!(f, "IPv4 header: total length of {n} bytes is longer than the packet")
            }
            Self::BeyondDatagram(n) => {
                write!(f, "IPv4 header: fragment that ends at byte {n} of a datagram, behind 65535")
            }
            Self::Checksum => f.write_str("IPv4 header: wrong checksum"),
            Self::TtlZero => f.write_str("IPv4 header: time to live is zero"),
        }
    }
}

impl core::error::Error for Ipv4Error {}

impl From<Ipv4Error> for WireError {
    fn from(e: Ipv4Error) -> Self {
        let what = WHAT;
        match e {
            Ipv4Error::TooShort => Self::Truncated { what, need: HEADER_LEN, have: 0 },
            Ipv4Error::Version(found) => Self::BadVersion { what, found, want: 4 },
            Ipv4Error::HeaderLength(n) => Self::BadHeaderLength { what, length: n as usize * 4 },
            Ipv4Error::TotalLengthBelowHeader(n) | Ipv4Error::TotalLengthBeyondData(n) => {
                Self::BadTotalLength { what, length: n.into(), have: 0 }
            }
            Ipv4Error::BeyondDatagram(length) => {
                Self::BadTotalLength { what, length, have: MAX_LEN }
            }
            Ipv4Error::Checksum => Self::BadChecksum { what, found: 0, want: 0 },
            Ipv4Error::TtlZero => Self::BadField { what: "IPv4 time to live", found: 0 },
        }
    }
}

/// An IPv4 packet whose header is complete and whose length fields are consistent with the bytes,
/// and with those of the longest datagram: no offset behind it passes 16 bits.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4View<'a> {
    header: &'a [u8; HEADER_LEN],
    options: &'a [u8],
    payload: &'a [u8],
}

/// Does all header checks of RFC 1812 section 5.2.2, in its order, then checks that the TTL is not
/// zero. Link padding after the total length is cut off.
///
/// # Errors
/// The first check that fails.
#[inline]
pub fn check(data: &[u8]) -> core::result::Result<Ipv4View<'_>, Ipv4Error> {
    check_chain(data, data.len())
}

/// [`check`] for a packet of `packet_len` bytes of which only `first` are available. They must
/// contain the whole header; the view's payload is the available part.
///
/// # Errors
/// The first check that fails.
#[inline]
pub fn check_chain(
    first: &[u8],
    packet_len: usize,
) -> core::result::Result<Ipv4View<'_>, Ipv4Error> {
    let view = lengths(first, packet_len)?;
    if !view.checksum_ok() {
        return Err(Ipv4Error::Checksum);
    }
    if view.ttl() == 0 {
        return Err(Ipv4Error::TtlZero);
    }
    Ok(view)
}

#[inline]
fn lengths(first: &[u8], packet_len: usize) -> core::result::Result<Ipv4View<'_>, Ipv4Error> {
    let Some((header, rest)) = first.split_first_chunk::<HEADER_LEN>() else {
        return Err(Ipv4Error::TooShort);
    };
    let ihl = header[0] & 0xf;
    if header[0] >> 4 != 4 {
        return Err(Ipv4Error::Version(header[0] >> 4));
    }
    if ihl < 5 {
        return Err(Ipv4Error::HeaderLength(ihl));
    }
    let header_len = usize::from(ihl) * 4;
    let Some((options, payload)) = rest.split_at_checked(header_len - HEADER_LEN) else {
        return Err(Ipv4Error::HeaderLength(ihl));
    };
    let total = be16(header, LENGTH);
    if usize::from(total) < header_len {
        return Err(Ipv4Error::TotalLengthBelowHeader(total));
    }
    if usize::from(total) > packet_len {
        return Err(Ipv4Error::TotalLengthBeyondData(total));
    }
    let behind = usize::from(be16(header, FRAGMENT) & flag::OFFSET_MASK) * 8 + usize::from(total);
    if behind > MAX_LEN {
        return Err(Ipv4Error::BeyondDatagram(behind));
    }
    let end = (usize::from(total) - header_len).min(payload.len());
    Ok(Ipv4View { header, options, payload: &payload[..end] })
}

impl<'a> Ipv4View<'a> {
    /// Parses the packet at the start of `data` and checks its lengths, but not its checksum or TTL
    /// (see [`check`]).
    ///
    /// # Errors
    /// `Truncated`, `BadVersion`, `BadHeaderLength` or `BadTotalLength`.
    #[inline]
    pub fn parse(data: &'a [u8]) -> Result<Self> {
        lengths(data, data.len()).map_err(|e| e.into())
    }

    /// Parses a header whose packet may be truncated after it, as in a sample or in the quote of an
    /// ICMP error. The payload is the available part.
    ///
    /// # Errors
    /// `Truncated`, `BadVersion`, `BadHeaderLength` or a total length below the header's.
    #[inline]
    pub fn parse_prefix(data: &'a [u8]) -> Result<Self> {
        lengths(data, usize::MAX).map_err(|e| e.into())
    }

    /// Parses the packet of `packet_len` bytes whose first bytes are at hand: they contain the
    /// whole header. The payload is the available part.
    ///
    /// # Errors
    /// The errors of [`parse`](Self::parse).
    #[inline]
    pub fn parse_chain(first: &'a [u8], packet_len: usize) -> Result<Self> {
        lengths(first, packet_len).map_err(|e| e.into())
    }

    /// Treats any 20 bytes as a header, so that traces can show what is wrong with it. Options and
    /// payload are what the header length leaves of the bytes.
    pub fn parse_unchecked(data: &'a [u8]) -> Result<Self> {
        let (header, rest) = crate::bytes::header::<HEADER_LEN>(data, WHAT)?;
        let options = (usize::from(header[0] & 0xf) * 4).saturating_sub(HEADER_LEN);
        let (options, payload) = rest.split_at(options.min(rest.len()));
        Ok(Self { header, options, payload })
    }

    /// The version, which is 4 unless the packet was not checked.
    #[inline]
    pub fn version(&self) -> u8 {
        self.header[0] >> 4
    }

    /// The fixed part of the header.
    #[inline]
    pub fn header(&self) -> &'a [u8; HEADER_LEN] {
        self.header
    }

    /// Bytes in the header with its options.
    #[inline]
    pub fn header_len(&self) -> usize {
        HEADER_LEN + self.options.len()
    }

    /// The type of service byte: DSCP and ECN.
    #[inline]
    pub fn tos(&self) -> u8 {
        self.header[TOS]
    }

    /// The differentiated services code point.
    #[inline]
    pub fn dscp(&self) -> u8 {
        self.tos() >> 2
    }

    /// The congestion notification code point.
    #[inline]
    pub fn ecn(&self) -> u8 {
        self.tos() & 3
    }

    /// Bytes in the whole packet, header included.
    #[inline]
    pub fn total_len(&self) -> u16 {
        be16(self.header, LENGTH)
    }

    /// The identification.
    #[inline]
    pub fn id(&self) -> u16 {
        be16(self.header, ID)
    }

    /// The flags and offset as on the wire (see [`flag`]).
    #[inline]
    pub fn fragment_word(&self) -> u16 {
        be16(self.header, FRAGMENT)
    }

    /// True if routers must not fragment this packet.
    #[inline]
    pub fn dont_fragment(&self) -> bool {
        self.fragment_word() & flag::DONT_FRAGMENT != 0
    }

    /// True if more fragments of the datagram follow this one.
    #[inline]
    pub fn more_fragments(&self) -> bool {
        self.fragment_word() & flag::MORE_FRAGMENTS != 0
    }

    /// The offset of the payload in the datagram, in bytes.
    #[inline]
    pub fn fragment_offset(&self) -> usize {
        usize::from(self.fragment_word() & flag::OFFSET_MASK) * 8
    }

    /// True for every fragment of a datagram, the first included.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        self.fragment_word() & (flag::MORE_FRAGMENTS | flag::OFFSET_MASK) != 0
    }

    /// The TTL.
    #[inline]
    pub fn ttl(&self) -> u8 {
        self.header[TTL]
    }

    /// The payload's protocol (see [`crate::ip::protocol`]).
    #[inline]
    pub fn protocol(&self) -> u8 {
        self.header[PROTOCOL]
    }

    /// The header checksum in the packet.
    #[inline]
    pub fn checksum(&self) -> u16 {
        be16(self.header, CHECKSUM)
    }

    /// The correct header checksum.
    #[inline]
    pub fn computed_checksum(&self) -> u16 {
        if self.options.is_empty() {
            return checksum::ipv4_header(self.header);
        }
        let mut sum = Checksum::new();
        sum.add_u16(!checksum::ipv4_header(self.header));
        sum.add(self.options);
        sum.finish()
    }

    /// True if the header is intact.
    #[inline]
    pub fn checksum_ok(&self) -> bool {
        // 0xffff is the other representation of zero, which some senders emit.
        let (found, want) = (self.checksum(), self.computed_checksum());
        found == want || (found == 0xffff && want == 0)
    }

    /// The source address.
    #[inline]
    pub fn src(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(be32(self.header, SRC))
    }

    /// The destination address.
    #[inline]
    pub fn dst(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(be32(self.header, DST))
    }

    /// The options as on the wire, up to 40 bytes.
    #[inline]
    pub fn options_bytes(&self) -> &'a [u8] {
        self.options
    }

    /// The options one by one.
    #[inline]
    pub fn options(&self) -> Options<'a> {
        Options { rest: self.options }
    }

    /// The bytes after the header, without link padding.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The sum of the pseudo-header for a transport of this packet's payload length.
    #[inline]
    pub fn pseudo_header(&self) -> Checksum {
        let length = self.total_len().saturating_sub(self.header_len() as u16);
        checksum::pseudo_v4(self.src(), self.dst(), self.protocol(), length.into())
    }

    /// The header's fields, without its options.
    pub fn repr(&self) -> Ipv4Repr {
        Ipv4Repr {
            src: self.src(),
            dst: self.dst(),
            protocol: self.protocol(),
            ttl: self.ttl(),
            tos: self.tos(),
            id: self.id(),
            fragment_word: self.fragment_word(),
            payload_len: self.total_len().saturating_sub(self.header_len() as u16),
        }
    }
}

/// An IPv4 option (RFC 791 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Option<'a> {
    /// Copied flag, class and number in one byte.
    pub kind: u8,
    /// The bytes after kind and length.
    pub data: &'a [u8],
}

impl Ipv4Option<'_> {
    /// Routers must examine the packet (RFC 2113).
    pub const ROUTER_ALERT: u8 = 148;
    /// Record route.
    pub const RECORD_ROUTE: u8 = 7;
    /// Loose source route.
    pub const LOOSE_SOURCE_ROUTE: u8 = 131;
    /// Strict source route.
    pub const STRICT_SOURCE_ROUTE: u8 = 137;
    /// Timestamp.
    pub const TIMESTAMP: u8 = 68;
}

/// Walks the options; ends at the end-of-list option, or with an error at a bad length.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<Ipv4Option<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        match crate::bytes::next_option(&mut self.rest, "IPv4 option")? {
            Ok((kind, data)) => Some(Ok(Ipv4Option { kind, data })),
            Err(e) => Some(Err(e)),
        }
    }
}

/// The fields of an IPv4 header without options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Repr {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// The payload's protocol.
    pub protocol: u8,
    /// TTL.
    pub ttl: u8,
    /// DSCP and ECN.
    pub tos: u8,
    /// The identification.
    pub id: u16,
    /// Flags and offset (see [`flag`]).
    pub fragment_word: u16,
    /// Bytes after the header.
    pub payload_len: u16,
}

impl Ipv4Repr {
    /// Returns a header with a TTL of 64 and defaults.
    pub const fn new(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, payload_len: u16) -> Self {
        Self { src, dst, protocol, ttl: 64, tos: 0, id: 0, fragment_word: 0, payload_len }
    }

    /// Writes the header with its checksum and returns its length.
    ///
    /// # Errors
    /// `NoRoom` below 20 bytes; `BadTotalLength` for a payload that IPv4 cannot carry.
    #[inline]
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize> {
        self.emit_with_options(&[], buf)
    }

    /// [`emit`](Self::emit) with options, whose length must be a multiple of four and at most 40.
    ///
    /// # Errors
    /// The errors of `emit`; `BadHeaderLength` for options of another length.
    pub fn emit_with_options(&self, options: &[u8], buf: &mut [u8]) -> Result<usize> {
        let length = HEADER_LEN + options.len();
        if !length.is_multiple_of(4) || length > MAX_HEADER_LEN {
            return Err(WireError::BadHeaderLength { what: WHAT, length });
        }
        let total = length + usize::from(self.payload_len);
        let Ok(total) = u16::try_from(total) else {
            return Err(WireError::BadTotalLength { what: WHAT, length: total, have: 0xffff });
        };
        let have = buf.len();
        let no_room = WireError::NoRoom { what: WHAT, need: length, have };
        let whole = buf.get_mut(..length).ok_or(no_room)?;
        let (b, tail) = whole.split_first_chunk_mut::<HEADER_LEN>().ok_or(no_room)?;
        b[0] = 0x40 | (length / 4) as u8;
        b[TOS] = self.tos;
        put(b, LENGTH, total.to_be_bytes());
        put(b, ID, self.id.to_be_bytes());
        put(b, FRAGMENT, self.fragment_word.to_be_bytes());
        b[TTL] = self.ttl;
        b[PROTOCOL] = self.protocol;
        put(b, CHECKSUM, [0, 0]);
        put(b, SRC, self.src.octets());
        put(b, DST, self.dst.octets());
        tail.copy_from_slice(options);
        let sum = checksum::checksum(whole);
        whole[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
        Ok(length)
    }
}

/// A header for changes in place. Each setter updates the checksum (RFC 1624).
#[derive(Debug)]
pub struct Ipv4Mut<'a> {
    header: &'a mut [u8; HEADER_LEN],
}

impl<'a> Ipv4Mut<'a> {
    /// Takes the header at the start of `data`, which the caller has checked to be IPv4.
    ///
    /// # Errors
    /// `Truncated` below 20 bytes.
    #[inline]
    pub fn parse(data: &'a mut [u8]) -> Result<Self> {
        Ok(Self { header: header_mut(data, WHAT)?.0 })
    }

    /// The TTL.
    #[inline]
    pub fn ttl(&self) -> u8 {
        self.header[TTL]
    }

    /// Decrements the TTL and returns it; zero stays zero.
    #[inline]
    pub fn decrement_ttl(&mut self) -> u8 {
        let ttl = self.header[TTL];
        if ttl == 0 {
            return 0;
        }
        self.header[TTL] = ttl - 1;
        let sum = checksum::ttl_decrement(be16(self.header, CHECKSUM));
        put(self.header, CHECKSUM, sum.to_be_bytes());
        ttl - 1
    }

    /// Sets the TTL.
    #[inline]
    pub fn set_ttl(&mut self, ttl: u8) {
        self.set_u16(TTL, u16::from_be_bytes([ttl, self.header[PROTOCOL]]));
    }

    /// Sets DSCP and ECN.
    #[inline]
    pub fn set_tos(&mut self, tos: u8) {
        self.set_u16(0, u16::from_be_bytes([self.header[0], tos]));
    }

    /// Sets the whole packet's length.
    #[inline]
    pub fn set_total_len(&mut self, length: u16) {
        self.set_u16(LENGTH, length);
    }

    /// Sets the identification.
    #[inline]
    pub fn set_id(&mut self, id: u16) {
        self.set_u16(ID, id);
    }

    /// Sets flags and offset (see [`flag`]).
    #[inline]
    pub fn set_fragment_word(&mut self, word: u16) {
        self.set_u16(FRAGMENT, word);
    }

    /// Sets the source address.
    #[inline]
    pub fn set_src(&mut self, addr: Ipv4Addr) {
        self.set_u32(SRC, addr.to_bits());
    }

    /// Sets the destination address.
    #[inline]
    pub fn set_dst(&mut self, addr: Ipv4Addr) {
        self.set_u32(DST, addr.to_bits());
    }

    #[inline]
    fn set_u16(&mut self, at: usize, new: u16) {
        let sum = checksum::update_u16(be16(self.header, CHECKSUM), be16(self.header, at), new);
        put(self.header, at, new.to_be_bytes());
        put(self.header, CHECKSUM, sum.to_be_bytes());
    }

    #[inline]
    fn set_u32(&mut self, at: usize, new: u32) {
        let sum = checksum::update_u32(be16(self.header, CHECKSUM), be32(self.header, at), new);
        put(self.header, at, new.to_be_bytes());
        put(self.header, CHECKSUM, sum.to_be_bytes());
    }
}

/// Writes the checksum of the header at the start of `data`, options included.
///
/// # Errors
/// `Truncated` or `BadHeaderLength` unless the header is complete.
pub fn fill_checksum(data: &mut [u8]) -> Result<u16> {
    let have = data.len();
    let length = usize::from(data.first().copied().unwrap_or(0) & 0xf) * 4;
    if have >= HEADER_LEN && length < HEADER_LEN {
        return Err(WireError::BadHeaderLength { what: WHAT, length });
    }
    let need = length.max(HEADER_LEN);
    let header = data.get_mut(..need).ok_or(WireError::Truncated { what: WHAT, need, have })?;
    header[CHECKSUM..CHECKSUM + 2].fill(0);
    let sum = checksum::checksum(header);
    header[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    Ok(sum)
}

/// True for an address that is not a valid source of a packet on a router's port: "this network",
/// loopback, multicast, and the reserved class E with the limited broadcast (RFC 1812 section
/// 5.3.7).
#[inline]
pub fn is_martian_source(addr: Ipv4Addr) -> bool {
    matches!(addr.octets()[0], 0 | 127 | 224..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    const PING: [u8; 28] = [
        0x45, 0x00, 0x00, 0x1c, 0x40, 0x0e, 0x40, 0x00, 0x3f, 0x01, 0xe7, 0xd0, 10, 0, 0, 1, 10, 0,
        0, 2, 8, 0, 0xf7, 0xff, 0, 0, 0, 0,
    ];

    #[test]
    fn a_ping_passes_every_check() {
        let mut padded = PING.to_vec();
        padded.extend([0; 18]);
        let ip = check(&padded).unwrap();
        assert_eq!((ip.src(), ip.dst()), ([10, 0, 0, 1].into(), [10, 0, 0, 2].into()));
        assert_eq!((ip.ttl(), ip.protocol(), ip.id()), (63, 1, 0x400e));
        assert!(ip.dont_fragment() && !ip.is_fragment() && ip.options().next().is_none());
        assert_eq!(ip.payload(), &PING[20..]);
        assert_eq!(ip.checksum(), 0xe7d0);
    }

    #[test]
    fn each_failure_is_distinguished() {
        let with = |changes: &[(usize, u8)], fix: bool| {
            let mut p = PING;
            for (at, v) in changes {
                p[*at] = *v;
            }
            if fix {
                fill_checksum(&mut p).unwrap();
            }
            check(&p).map(|_| ()).unwrap_err()
        };
        assert_eq!(check(&PING[..19]).map(|_| ()), Err(Ipv4Error::TooShort));
        assert_eq!(with(&[(0, 0x65)], true), Ipv4Error::Version(6));
        assert_eq!(with(&[(0, 0x44)], false), Ipv4Error::HeaderLength(4));
        assert_eq!(with(&[(0, 0x4f)], false), Ipv4Error::HeaderLength(15));
        assert_eq!(with(&[(3, 19)], true), Ipv4Error::TotalLengthBelowHeader(19));
        assert_eq!(with(&[(3, 29)], true), Ipv4Error::TotalLengthBeyondData(29));
        assert_eq!(with(&[(10, 0)], false), Ipv4Error::Checksum);
        assert_eq!(with(&[(8, 0)], true), Ipv4Error::TtlZero);
    }

    #[test]
    fn a_fragment_ends_within_the_longest_datagram() {
        let word = |bytes: usize| (bytes / 8) as u16;
        for (offset, len, sound) in
            [(65_512, 23, true), (65_512, 24, false), (64_984, 608, false), (0, 0xffff, true)]
        {
            let mut p = std::vec![0; len];
            let payload_len = (len - HEADER_LEN) as u16;
            let repr = Ipv4Repr::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 6, payload_len);
            Ipv4Repr { fragment_word: word(offset), ..repr }.emit(&mut p).unwrap();
            assert_eq!(check(&p).is_ok(), sound, "{offset} {len}");
            assert_eq!(Ipv4View::parse_prefix(&p[..HEADER_LEN]).is_ok(), sound);
        }
    }

    #[test]
    fn a_chain_is_judged_by_its_whole_length() {
        let mut p = PING;
        p[2..4].copy_from_slice(&1500u16.to_be_bytes());
        fill_checksum(&mut p).unwrap();
        assert_eq!(check_chain(&p, 1500).unwrap().payload().len(), 8);
        let short = check_chain(&p, 1499).map(|_| ());
        assert_eq!(short, Err(Ipv4Error::TotalLengthBeyondData(1500)));
        assert!(Ipv4View::parse(&p).is_err() && Ipv4View::parse_prefix(&p).is_ok());
    }

    #[test]
    fn options_are_walked_and_summed() {
        let repr = Ipv4Repr::new([10, 0, 0, 1].into(), [224, 0, 0, 22].into(), 2, 4);
        let mut buf = [0; 32];
        let options = [1, 148, 4, 0, 0, 1, 0, 9];
        assert_eq!(repr.emit_with_options(&options, &mut buf), Ok(28));
        let ip = check(&buf).unwrap();
        let walked: Vec<_> = ip.options().collect();
        assert_eq!(walked, [Ok(Ipv4Option { kind: 148, data: &[0, 0] })]);
        assert_eq!((ip.header_len(), ip.payload().len()), (28, 4));
        assert!(repr.emit_with_options(&[1; 3], &mut buf).is_err());
        assert!(repr.emit_with_options(&[1; 44], &mut [0; 99]).is_err());
        assert!(repr.emit(&mut [0; 19]).is_err());
    }

    #[test]
    fn a_bad_option_length_ends_the_walk() {
        for bad in [[7, 1, 0, 0], [7, 9, 0, 0], [1, 1, 1, 7]] {
            let mut options = Options { rest: &bad };
            assert!(options.next().unwrap().is_err());
            assert!(options.next().is_none());
        }
    }

    #[test]
    fn martians() {
        for bad in ["0.0.0.0", "127.0.0.1", "224.0.0.5", "255.255.255.255", "240.0.0.1"] {
            assert!(is_martian_source(bad.parse().unwrap()), "{bad}");
        }
        assert!(!is_martian_source([100, 64, 0, 1].into()));
    }

    prop_compose! {
        fn reprs()(src: u32, dst: u32, protocol: u8, ttl in 1u8.., tos: u8, id: u16,
                   word: u16, payload_len in 0u16..64) -> Ipv4Repr {
            let (src, dst) = (src.into(), dst.into());
            // Fragments behind the end of a datagram are refused.
            let fragment_word = word & !flag::OFFSET_MASK | (word & flag::OFFSET_MASK).min(8181);
            Ipv4Repr { src, dst, protocol, ttl, tos, id, fragment_word, payload_len }
        }
    }

    proptest! {
        #[test]
        fn emitted_headers_parse_back(repr in reprs()) {
            let mut buf = [0xee; 128];
            repr.emit(&mut buf).unwrap();
            prop_assert_eq!(check(&buf).unwrap().repr(), repr);
        }

        #[test]
        fn setters_keep_the_checksum(a in reprs(), b in reprs()) {
            let (mut buf, mut want) = ([0; 128], [0; 128]);
            a.emit(&mut buf).unwrap();
            Ipv4Repr { protocol: a.protocol, ..b }.emit(&mut want).unwrap();
            let mut m = Ipv4Mut::parse(&mut buf).unwrap();
            m.set_src(b.src);
            m.set_dst(b.dst);
            m.set_ttl(b.ttl);
            m.set_tos(b.tos);
            m.set_id(b.id);
            m.set_fragment_word(b.fragment_word);
            m.set_total_len(20 + b.payload_len);
            prop_assert_eq!(buf, want);
            let left = Ipv4Mut::parse(&mut buf).unwrap().decrement_ttl();
            prop_assert_eq!(left, b.ttl - 1);
            Ipv4Repr { protocol: a.protocol, ttl: left, ..b }.emit(&mut want).unwrap();
            prop_assert_eq!(buf, want);
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            mut data in proptest::collection::vec(any::<u8>(), 0..90),
            likely: bool,
        ) {
            if let (true, Some(first)) = (likely, data.first_mut()) {
                *first = 0x40 | *first & 0xf;
            }
            for parse in [Ipv4View::parse, Ipv4View::parse_prefix, Ipv4View::parse_unchecked] {
                let Ok(view) = parse(&data) else { continue };
                prop_assert!(view.header_len() + view.payload().len() <= data.len());
                prop_assert!(view.options().count() <= 40);
                let _ = (view.pseudo_header(), view.repr(), view.checksum_ok());
            }
            let _ = fill_checksum(&mut data);
        }
    }
}
