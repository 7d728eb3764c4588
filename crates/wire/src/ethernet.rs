//! Ethernet II (IEEE 802.3 clause 3): addresses, types and the 14-byte header.

use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use crate::Result;
use crate::bytes::{array, be16, header, header_mut, put, room};

/// Bytes in the header.
pub const HEADER_LEN: usize = 14;
/// Minimum length of a frame without its check sequence; shorter ones are padded.
pub const MIN_FRAME_LEN: usize = 60;
/// Least ethertype: a smaller type field is the length of an 802.3 frame (see [`crate::llc`]).
pub const MIN_ETHERTYPE: u16 = 0x0600;

/// The ethertypes this crate knows.
pub mod ethertype {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// Transparent Ethernet bridging, in GRE.
    pub const TEB: u16 = 0x6558;
    /// An 802.1Q tag.
    pub const VLAN: u16 = 0x8100;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// Slow protocols (LACP).
    pub const SLOW: u16 = 0x8809;
    /// PPPoE discovery.
    pub const PPPOE_DISCOVERY: u16 = 0x8863;
    /// PPPoE session.
    pub const PPPOE_SESSION: u16 = 0x8864;
    /// MPLS unicast.
    pub const MPLS: u16 = 0x8847;
    /// MPLS with upstream-assigned labels.
    pub const MPLS_MULTICAST: u16 = 0x8848;
    /// An 802.1ad service tag.
    pub const DOT1AD: u16 = 0x88a8;
    /// LLDP.
    pub const LLDP: u16 = 0x88cc;
    /// Configuration testing (loopback).
    pub const LOOPBACK: u16 = 0x9000;
    /// The pre-standard outer tag that some switches still send.
    pub const QINQ_9100: u16 = 0x9100;
}

/// A 48-bit Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// `00:00:00:00:00:00`.
    pub const ZERO: Self = Self([0; 6]);
    /// `ff:ff:ff:ff:ff:ff`.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// An address from its six bytes.
    pub const fn new(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8) -> Self {
        Self([a, b, c, d, e, f])
    }

    /// The bytes in wire order.
    #[inline]
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }

    /// The address in the low 48 bits of a word, first byte highest: a key for tables.
    #[inline]
    pub const fn to_u64(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// The address in the low 48 bits of `v`; the high 16 are ignored.
    #[inline]
    pub const fn from_u64(v: u64) -> Self {
        let [_, _, a, b, c, d, e, f] = v.to_be_bytes();
        Self([a, b, c, d, e, f])
    }

    /// True for multicast addresses, including broadcast.
    #[inline]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// True for `ff:ff:ff:ff:ff:ff`.
    #[inline]
    pub const fn is_broadcast(self) -> bool {
        self.to_u64() == 0xffff_ffff_ffff
    }

    /// True for the all-zero address.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.to_u64() == 0
    }

    /// True for a unicast address: neither multicast nor zero.
    #[inline]
    pub const fn is_unicast(self) -> bool {
        !self.is_multicast() && !self.is_zero()
    }

    /// True for locally administered addresses.
    #[inline]
    pub const fn is_locally_administered(self) -> bool {
        self.0[0] & 2 != 0
    }

    /// The multicast address of an IPv4 group (RFC 1112 section 6.4).
    pub const fn from_ipv4_multicast(group: Ipv4Addr) -> Self {
        let [_, b, c, d] = group.octets();
        Self([0x01, 0x00, 0x5e, b & 0x7f, c, d])
    }

    /// The multicast address of an IPv6 group (RFC 2464 section 7).
    pub const fn from_ipv6_multicast(group: Ipv6Addr) -> Self {
        let o = group.octets();
        Self([0x33, 0x33, o[12], o[13], o[14], o[15]])
    }

    /// The link-local address of an interface with this address (RFC 4291 appendix A).
    pub const fn to_link_local(self) -> Ipv6Addr {
        let [a, b, c, d, e, f] = self.0;
        let be = u16::from_be_bytes;
        Ipv6Addr::new(0xfe80, 0, 0, 0, be([a ^ 2, b]), be([c, 0xff]), be([0xfe, d]), be([e, f]))
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(out, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<[u8; 6]> for MacAddr {
    fn from(octets: [u8; 6]) -> Self {
        Self(octets)
    }
}

/// A text that is not an Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacParseError;

impl fmt::Display for MacParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an Ethernet address; write it as 02:fe:00:00:00:01 or 02fe.0000.0001")
    }
}

impl core::error::Error for MacParseError {}

impl FromStr for MacAddr {
    type Err = MacParseError;

    /// Parses `02:fe:0:0:0:1`, the same with dashes, and `02fe.0000.0001`.
    fn from_str(s: &str) -> core::result::Result<Self, MacParseError> {
        let (separator, width) = match s {
            _ if s.contains('.') => ('.', 4),
            _ if s.contains('-') => ('-', 2),
            _ => (':', 2),
        };
        let (mut value, mut groups) = (0u64, 0);
        for group in s.split(separator) {
            let digits = group.len();
            // from_str_radix would accept a sign.
            let hex = group.bytes().all(|b| b.is_ascii_hexdigit());
            if !hex || digits == 0 || digits > width || groups >= 12 / width {
                return Err(MacParseError);
            }
            let v = u64::from_str_radix(group, 16).map_err(|_| MacParseError)?;
            value = value << (width * 4) | v;
            groups += 1;
        }
        if groups == 12 / width { Ok(Self::from_u64(value)) } else { Err(MacParseError) }
    }
}

const DST: usize = 0;
const SRC: usize = 6;
const TYPE: usize = 12;
const WHAT: &str = "Ethernet header";

/// A frame that has at least an Ethernet header.
#[derive(Clone, Copy, Debug)]
pub struct EthernetView<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> EthernetView<'a> {
    /// Reads the header at the start of `data`.
    ///
    /// # Errors
    /// `Truncated` below 14 bytes.
    #[inline]
    pub fn parse(data: &'a [u8]) -> Result<Self> {
        let (header, payload) = header(data, WHAT)?;
        Ok(Self { header, payload })
    }

    /// The destination.
    #[inline]
    pub fn dst(&self) -> MacAddr {
        MacAddr(array(self.header, DST))
    }

    /// The source.
    #[inline]
    pub fn src(&self) -> MacAddr {
        MacAddr(array(self.header, SRC))
    }

    /// The type of the payload, which may be a tag, or a length below [`MIN_ETHERTYPE`].
    #[inline]
    pub fn ethertype(&self) -> u16 {
        be16(self.header, TYPE)
    }

    /// True if the type field is an 802.3 length.
    #[inline]
    pub fn is_802_3(&self) -> bool {
        self.ethertype() < MIN_ETHERTYPE
    }

    /// The payload, with padding if there is some.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The header's fields.
    pub fn repr(&self) -> EthernetRepr {
        EthernetRepr { dst: self.dst(), src: self.src(), ethertype: self.ethertype() }
    }
}

/// The fields of an Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthernetRepr {
    /// The destination.
    pub dst: MacAddr,
    /// The source.
    pub src: MacAddr,
    /// The type of the payload.
    pub ethertype: u16,
}

impl EthernetRepr {
    /// Writes the header and returns its length.
    ///
    /// # Errors
    /// `NoRoom` below 14 bytes.
    #[inline]
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize> {
        let b = room::<HEADER_LEN>(buf, WHAT)?;
        put(b, DST, self.dst.0);
        put(b, SRC, self.src.0);
        put(b, TYPE, self.ethertype.to_be_bytes());
        Ok(HEADER_LEN)
    }
}

/// An Ethernet header for changes in place.
#[derive(Debug)]
pub struct EthernetMut<'a> {
    header: &'a mut [u8; HEADER_LEN],
}

impl<'a> EthernetMut<'a> {
    /// Takes the header at the start of `data`.
    ///
    /// # Errors
    /// `Truncated` below 14 bytes.
    #[inline]
    pub fn parse(data: &'a mut [u8]) -> Result<Self> {
        Ok(Self { header: header_mut(data, WHAT)?.0 })
    }

    /// Sets the destination.
    #[inline]
    pub fn set_dst(&mut self, mac: MacAddr) {
        put(self.header, DST, mac.0);
    }

    /// Sets the source.
    #[inline]
    pub fn set_src(&mut self, mac: MacAddr) {
        put(self.header, SRC, mac.0);
    }

    /// Sets the type.
    #[inline]
    pub fn set_ethertype(&mut self, ethertype: u16) {
        put(self.header, TYPE, ethertype.to_be_bytes());
    }

    /// Swaps source and destination.
    #[inline]
    pub fn swap(&mut self) {
        let (dst, src) = (array(self.header, DST), array(self.header, SRC));
        put::<6, _>(self.header, DST, src);
        put::<6, _>(self.header, SRC, dst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn addresses_are_read_in_every_usual_form() {
        let want = MacAddr::new(0x02, 0xfe, 0, 0x0a, 0xbc, 0xde);
        for text in ["02:fe:00:0a:bc:de", "02-FE-00-0A-BC-DE", "2:fe:0:a:bc:de", "02fe.000a.bcde"] {
            assert_eq!(text.parse(), Ok(want), "{text}");
        }
        assert_eq!(want.to_string(), "02:fe:00:0a:bc:de");
    }

    #[test]
    fn other_texts_are_refused() {
        let bad = [
            "",
            ":",
            "02",
            "02:fe:00:0a:bc",
            "02:fe:00:0a:bc:de:ff",
            "02:fe:00:0a:bc:1de",
            "+2:fe:00:0a:bc:de",
            "02fe.000a",
            "02fe.000a.bcde.0000",
            "02fe:000a:bcde",
            "02:fe:00:0a:bc:dg",
            "02:fe:00:0a:bc:d\u{e9}",
            "02fe000abcde",
            "1.2.3.4",
        ];
        for text in bad {
            assert_eq!(text.parse::<MacAddr>(), Err(MacParseError), "{text}");
        }
    }

    #[test]
    fn kinds_of_addresses() {
        assert!(MacAddr::BROADCAST.is_broadcast() && MacAddr::BROADCAST.is_multicast());
        assert!(!MacAddr::ZERO.is_unicast());
        assert!(MacAddr::new(2, 0, 0, 0, 0, 1).is_unicast());
        assert!(MacAddr::new(2, 0, 0, 0, 0, 1).is_locally_administered());
        let group = MacAddr::from_ipv4_multicast(Ipv4Addr::new(224, 128, 0, 5));
        assert_eq!(group, MacAddr::new(1, 0, 0x5e, 0, 0, 5));
        let group = MacAddr::from_ipv6_multicast("ff02::1:ff00:42".parse().unwrap());
        assert_eq!(group, MacAddr::new(0x33, 0x33, 0xff, 0, 0, 0x42));
        let link_local = MacAddr::new(0, 0x1b, 0x21, 0xaa, 0xbb, 0xcc).to_link_local();
        assert_eq!(link_local.to_string(), "fe80::21b:21ff:feaa:bbcc");
    }

    #[test]
    fn a_header_is_changed_in_place() {
        let mut frame = [0u8; 14];
        let (a, b) = (MacAddr::new(2, 0, 0, 0, 0, 1), MacAddr::new(2, 0, 0, 0, 0, 2));
        let mut e = EthernetMut::parse(&mut frame).unwrap();
        e.set_dst(a);
        e.set_src(b);
        e.set_ethertype(ethertype::ARP);
        e.swap();
        let want = EthernetRepr { dst: b, src: a, ethertype: ethertype::ARP };
        assert_eq!(EthernetView::parse(&frame).unwrap().repr(), want);
        assert!(EthernetView::parse(&frame[..13]).is_err());
    }

    proptest! {
        #[test]
        fn emitted_headers_parse_back(dst: [u8; 6], src: [u8; 6], ethertype: u16) {
            let repr = EthernetRepr { dst: MacAddr(dst), src: MacAddr(src), ethertype };
            let mut buf = [0; HEADER_LEN];
            repr.emit(&mut buf).unwrap();
            prop_assert_eq!(EthernetView::parse(&buf).unwrap().repr(), repr);
        }

        #[test]
        fn addresses_survive_text_and_numbers(octets: [u8; 6]) {
            let mac = MacAddr(octets);
            prop_assert_eq!(mac.to_string().parse(), Ok(mac));
            prop_assert_eq!(MacAddr::from_u64(mac.to_u64()), mac);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9a-f:.+-]{0,20}|\\PC{0,20}") {
            let _ = text.parse::<MacAddr>();
        }
    }
}
