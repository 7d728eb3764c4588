//! The addresses of packets, by family.

use std::hint::select_unpredictable;
use std::net::IpAddr;

use thalweg_wire::checksum::{self, Checksum};
use thalweg_wire::icmpv6;
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv4::Ipv4View;
use thalweg_wire::packet::PacketView;

use crate::tuple::{Key, last_word};
use crate::{IPV4, IPV6};

/// The addresses of a packet of a family whose keys have `W` words.
pub(super) trait Ends<const W: usize>: Copy + PartialEq {
    /// Its ICMP.
    const ICMP: u8;
    /// True if a UDP checksum of zero stands for none (RFC 768; not so in RFC 8200 section 8.1).
    const ZERO_IS_NONE: bool;

    /// Endpoints of a packet; `None` if it is of the other family.
    fn of(packet: &PacketView<'_>) -> Option<Self>;
    /// Endpoints of the other direction.
    fn back(self) -> Self;
    /// True if a packet between them, back, goes to the source of this one.
    fn goes_to_source_of(self, other: Self) -> bool;
    /// A key of them, with a last word.
    fn key(self, last: u64) -> Key<W>;
    /// Key and direction, with ports as they lie in the header, the source first.
    fn ordered(self, zone: u16, number: u8, ports: u32) -> (Key<W>, bool);
    /// The sum of the pseudo-header.
    fn pseudo(self, number: u8, length: u32) -> Checksum;
    /// The sum that ICMP begins with.
    fn icmp_pseudo(self, length: u32) -> Checksum;
    /// True if ICMP messages of a type are about the packet that they quote.
    fn is_error(kind: u8) -> bool;
}

/// Addresses of IPv4 as they lie in the header, the source first.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct V4(pub(super) u64);

impl Ends<IPV4> for V4 {
    const ICMP: u8 = protocol::ICMP;
    const ZERO_IS_NONE: bool = true;

    fn of(packet: &PacketView<'_>) -> Option<Self> {
        packet.v4().map(|ip| V4(addresses(ip)))
    }
    fn back(self) -> Self {
        V4(self.0.rotate_left(32))
    }
    fn goes_to_source_of(self, other: Self) -> bool {
        self.0 as u32 == (other.0 >> 32) as u32
    }
    fn key(self, last: u64) -> Key<IPV4> {
        [self.0, last]
    }
    #[inline]
    fn ordered(self, zone: u16, number: u8, ports: u32) -> (Key<IPV4>, bool) {
        ordered(zone, number, self.0, ports)
    }
    #[inline]
    fn pseudo(self, number: u8, length: u32) -> Checksum {
        checksum::pseudo_v4(((self.0 >> 32) as u32).into(), (self.0 as u32).into(), number, length)
    }
    fn icmp_pseudo(self, _length: u32) -> Checksum {
        Checksum::new()
    }
    fn is_error(_kind: u8) -> bool {
        true
    }
}

/// Addresses of IPv6.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct V6 {
    pub(super) src: u128,
    pub(super) dst: u128,
}

impl Ends<IPV6> for V6 {
    const ICMP: u8 = protocol::ICMPV6;
    const ZERO_IS_NONE: bool = false;

    fn of(packet: &PacketView<'_>) -> Option<Self> {
        let (IpAddr::V6(src), IpAddr::V6(dst)) = (packet.src(), packet.dst()) else { return None };
        Some(V6 { src: src.to_bits(), dst: dst.to_bits() })
    }
    fn back(self) -> Self {
        V6 { src: self.dst, dst: self.src }
    }
    fn goes_to_source_of(self, other: Self) -> bool {
        self.dst == other.src
    }
    #[inline]
    fn key(self, last: u64) -> Key<IPV6> {
        let V6 { src, dst } = self;
        [(src >> 64) as u64, src as u64, (dst >> 64) as u64, dst as u64, last]
    }
    /// Branch-free, because directions alternate.
    #[inline]
    fn ordered(self, zone: u16, number: u8, ports: u32) -> (Key<IPV6>, bool) {
        let [a, b, c, d, _] = self.key(0);
        let lower = (b > d) | ((b == d) & (ports >> 16 > ports & 0xffff));
        let swapped = (a > c) | ((a == c) & lower);
        let either = |this: u64, other: u64| select_unpredictable(swapped, other, this);
        let ports = either(ports.into(), ports.rotate_left(16).into());
        let last = ports << 32 | last_word(0, 0, zone, number);
        ([either(a, c), either(b, d), either(c, a), either(d, b), last], swapped)
    }
    fn pseudo(self, number: u8, length: u32) -> Checksum {
        checksum::pseudo_v6(&self.src.into(), &self.dst.into(), number, length)
    }
    fn icmp_pseudo(self, length: u32) -> Checksum {
        self.pseudo(protocol::ICMPV6, length)
    }
    fn is_error(kind: u8) -> bool {
        use icmpv6::kind::{
            DESTINATION_UNREACHABLE, PACKET_TOO_BIG, PARAMETER_PROBLEM, TIME_EXCEEDED,
        };
        matches!(kind, DESTINATION_UNREACHABLE | PACKET_TOO_BIG | TIME_EXCEEDED | PARAMETER_PROBLEM)
    }
}

/// Key and direction of two endpoints with ports. Addresses and ports are pairs as they lie in the
/// headers, the source first. Branch-free, because directions alternate.
#[inline]
pub(super) fn ordered(zone: u16, number: u8, addresses: u64, ports: u32) -> (Key<IPV4>, bool) {
    let whole = |addresses: u64, ports: u32| u128::from(addresses) << 64 | u128::from(ports);
    let back = (addresses.rotate_left(32), ports.rotate_left(16));
    let swapped = whole(addresses, ports) > whole(back.0, back.1);
    let (addresses, ports) = if swapped { back } else { (addresses, ports) };
    ([addresses, u64::from(ports) << 32 | last_word(0, 0, zone, number)], swapped)
}

/// The addresses of a packet, the source first.
pub(super) fn addresses(ip: &Ipv4View<'_>) -> u64 {
    u64::from(ip.src().to_bits()) << 32 | u64::from(ip.dst().to_bits())
}
