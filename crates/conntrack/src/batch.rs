//! Reads packets into keys and the header fields that the state machines need.

use std::hint::select_unpredictable;
use std::net::IpAddr;

use thalweg_tables::flow::{FlowHash, Guess};
use thalweg_wire::bytes::{be16, be32, be64};
use thalweg_wire::checksum::{self, Checksum};
use thalweg_wire::icmpv6;
use thalweg_wire::ip::{has_ports, protocol};
use thalweg_wire::ipv4::{Ipv4View, flag as fragment};
use thalweg_wire::ipv6::{self, Ipv6View};
use thalweg_wire::packet::{PacketView, Part};
use thalweg_wire::tcp::{TcpOption, TcpView, flag};

use crate::tcp::{Scale, Segment};
use crate::tuple::{Key, icmp_query, last_word, owner_hash, protocol_of};
use crate::{IPV4, IPV6, Tuple};

/// Maximum number of packets in a batch.
pub const ROOM: usize = 256;

/// Checksums to verify. Those that a device has verified, or will fill in, need not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// The IPv4 header checksum.
    pub network: bool,
    /// The TCP, UDP or ICMP checksum, if the whole packet is at hand.
    pub transport: bool,
}

impl Checks {
    /// No checksum.
    pub const NONE: Checks = Checks { network: false, transport: false };
    /// All checksums.
    pub const ALL: Checks = Checks { network: true, transport: true };
}

/// The kind of a packet, as the tracker sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Cannot be tracked.
    #[default]
    Invalid,
    /// A fragment other than the first, which has no ports: see [`Fragment`].
    Fragment,
    /// TCP.
    Tcp,
    /// UDP, or another protocol without states.
    Datagram,
    /// An ICMP query, or its reply.
    Query,
    /// An ICMP error about the connection of its key.
    Related,
}

impl Kind {
    /// Whether there is a key to track it by.
    #[inline]
    pub(crate) fn is_tracked(self) -> bool {
        self > Kind::Fragment
    }
}

/// The header fields that the tracker needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Headers {
    /// TCP sequence numbers, flags and windows.
    pub segment: Segment,
    /// Length in bytes, from the network header on.
    pub bytes: u32,
    /// Kind of the packet.
    pub kind: Kind,
    /// Whether the sender is the higher endpoint of the key; for ICMP queries, whether it is a
    /// reply.
    pub swapped: bool,
}

/// Packets that are looked up together, as columns.
#[derive(Debug)]
pub struct Batch<const W: usize> {
    pub(crate) keys: Box<[Key<W>; ROOM]>,
    pub(crate) headers: Box<[Headers; ROOM]>,
    pub(crate) hashes: Box<[FlowHash; ROOM]>,
    pub(crate) guesses: Box<[Guess; ROOM]>,
    pub(crate) len: usize,
    /// First packet that has not been prefetched.
    pub(crate) ahead: usize,
    /// Whether any packet is a fragment.
    fragments: bool,
}

impl<const W: usize> Default for Batch<W> {
    fn default() -> Self {
        Batch {
            keys: Box::new([[0; W]; ROOM]),
            headers: Box::new([Headers::default(); ROOM]),
            hashes: Box::new([FlowHash::default(); ROOM]),
            guesses: Box::new([Guess::default(); ROOM]),
            len: 0,
            ahead: 0,
            fragments: false,
        }
    }
}

impl<const W: usize> Batch<W> {
    /// Removes all packets.
    pub fn clear(&mut self) {
        self.len = 0;
        self.fragments = false;
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether any packet added from its bytes is a fragment.
    #[inline]
    pub fn has_fragments(&self) -> bool {
        self.fragments
    }

    /// Returns whether the batch is full.
    pub fn is_full(&self) -> bool {
        self.len == ROOM
    }

    /// The headers of packet `i`, or `None` past the end.
    pub fn headers(&self, i: usize) -> Option<&Headers> {
        self.headers[..self.len].get(i)
    }

    /// The tuple of a packet or, for an ICMP error, of the connection it is about. `None` for
    /// packets that cannot be tracked.
    pub fn tuple(&self, i: usize) -> Option<Tuple> {
        let headers = self.headers(i).filter(|h| h.kind.is_tracked())?;
        Some(Tuple::of_key(&self.keys[i], headers.swapped))
    }

    /// Adds a packet of another batch under a zone. Does nothing if the batch is full.
    ///
    /// # Panics
    /// If the other batch has no packet `i`.
    pub fn add_from(&mut self, other: &Batch<W>, i: usize, zone: u16) {
        assert!(i < other.len, "no packet {i} of {}", other.len);
        let mut key = other.keys[i];
        key[W - 1] = key[W - 1] & !(0xffff << 16) | u64::from(zone) << 16;
        self.add(key, other.headers[i]);
    }

    /// The protocol of the connection of packet `i`. `None` for packets that cannot be tracked, and
    /// past the end.
    #[inline]
    pub fn protocol(&self, i: usize) -> Option<u8> {
        let headers = self.headers[..self.len].get(i)?;
        headers.kind.is_tracked().then(|| protocol_of(&self.keys[i]))
    }

    /// The hash that selects the worker that owns the connection of packet `i`: the same for both
    /// directions, for ICMP errors about it, and in all zones. `None` for packets that cannot be
    /// tracked, and past the end.
    #[inline]
    pub fn owner_hash(&self, i: usize) -> Option<u32> {
        let headers = self.headers[..self.len].get(i)?;
        if !headers.kind.is_tracked() {
            return None;
        }
        Some(owner_hash(&self.keys[i]))
    }

    /// Adds a packet whose headers were read elsewhere. Does nothing if the batch is full.
    pub fn add(&mut self, key: Key<W>, headers: Headers) {
        if let (Some(k), Some(h)) = (self.keys.get_mut(self.len), self.headers.get_mut(self.len)) {
            (*k, *h) = (key, headers);
            self.len += 1;
        }
    }
}

impl Batch<IPV4> {
    /// Adds the packet that starts with IPv4 header `l3`, under a zone. `l3` may be truncated after
    /// its headers; the packet has `bytes` bytes. Does nothing if the batch is full.
    #[inline]
    pub fn add_ipv4(&mut self, zone: u16, l3: &[u8], bytes: usize, checks: Checks) {
        let at = self.len;
        let (Some(key), Some(headers)) = (self.keys.get_mut(at), self.headers.get_mut(at)) else {
            return;
        };
        self.len = at + 1;
        if !(plain_tcp(zone, l3, bytes, key, headers)
            && (checks == Checks::NONE || intact(l3, checks)))
        {
            self.reread(zone, l3, bytes, checks);
        }
    }

    /// Reads the last packet the general way. Not inlined, so that most packets need registers for
    /// [`plain_tcp`] only.
    #[inline(never)]
    fn reread(&mut self, zone: u16, l3: &[u8], bytes: usize, checks: Checks) {
        let at = self.len - 1;
        (self.keys[at], self.headers[at]) = read_ipv4(zone, l3, bytes, checks);
        self.fragments |= is_fragment(l3);
    }
}

impl Batch<IPV6> {
    /// Adds the packet that starts with IPv6 header `l3`, under a zone. `l3` may be truncated after
    /// its headers; the packet has `bytes` bytes. Does nothing if the batch is full.
    #[inline]
    pub fn add_ipv6(&mut self, zone: u16, l3: &[u8], bytes: usize, checks: Checks) {
        let at = self.len;
        let (Some(key), Some(headers)) = (self.keys.get_mut(at), self.headers.get_mut(at)) else {
            return;
        };
        self.len = at + 1;
        if !(plain_tcp6(zone, l3, bytes, key, headers)
            && (!checks.transport || intact6(l3, headers.bytes)))
        {
            self.reread6(zone, l3, bytes, checks);
        }
    }

    /// Reads the last packet the general way.
    #[inline(never)]
    fn reread6(&mut self, zone: u16, l3: &[u8], bytes: usize, checks: Checks) {
        let at = self.len - 1;
        (self.keys[at], self.headers[at]) = read_ipv6(zone, l3, bytes, checks);
        self.fragments |= Fragment::<IPV6>::read(zone, l3).is_some();
    }

    /// Adds packets that cannot be tracked until there are `len`: those of other families that are
    /// between packets of IPv6 in a frame.
    pub fn pad(&mut self, len: usize) {
        let len = len.min(ROOM);
        for at in self.len..len {
            (self.keys[at], self.headers[at]) = ([0; IPV6], Headers::default());
        }
        self.len = self.len.max(len);
    }
}

/// Reading packets of the family whose keys have `W` words.
pub trait Packets<const W: usize> {
    /// Adds the packet that starts with IP header `l3`, as [`Batch::add_ipv4`] and
    /// [`Batch::add_ipv6`] do.
    fn add_packet(&mut self, zone: u16, l3: &[u8], bytes: usize, checks: Checks);
    /// Reads a packet as a fragment; `None` if it is not one.
    fn fragment(zone: u16, l3: &[u8]) -> Option<Fragment<W>>;
}

impl Packets<IPV4> for Batch<IPV4> {
    fn add_packet(&mut self, zone: u16, l3: &[u8], bytes: usize, checks: Checks) {
        self.add_ipv4(zone, l3, bytes, checks);
    }
    fn fragment(zone: u16, l3: &[u8]) -> Option<Fragment<IPV4>> {
        Fragment::<IPV4>::read(zone, l3)
    }
}

impl Packets<IPV6> for Batch<IPV6> {
    fn add_packet(&mut self, zone: u16, l3: &[u8], bytes: usize, checks: Checks) {
        self.add_ipv6(zone, l3, bytes, checks);
    }
    fn fragment(zone: u16, l3: &[u8]) -> Option<Fragment<IPV6>> {
        Fragment::<IPV6>::read(zone, l3)
    }
}

/// A fragment of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<const W: usize> {
    /// Key of the datagram in its zone. No connection has such a key.
    pub key: Key<W>,
    /// Offsets of the start and the end of its data in the datagram.
    pub data: (usize, usize),
}

/// Lowest byte of a fragment's key: within a zone, and regardless of the zone.
const IN_ZONE: u64 = 1;
const ANYWHERE: u64 = 2;

impl Fragment<IPV4> {
    /// Reads the packet that starts with IPv4 header `l3`; `None` if it is not a fragment.
    pub fn read(zone: u16, l3: &[u8]) -> Option<Fragment<IPV4>> {
        let ip = Ipv4View::parse_prefix(l3).ok().filter(Ipv4View::is_fragment)?;
        let last = last_word(ip.id(), 0, zone, ip.protocol()) | IN_ZONE;
        let from = ip.fragment_offset();
        let bytes = usize::from(ip.total_len()).saturating_sub(ip.header_len());
        Some(Fragment { key: [addresses(&ip), last], data: (from, from + bytes) })
    }
}

impl Fragment<IPV6> {
    /// Reads the packet that starts with IPv6 header `l3`; `None` if it is not a fragment. The
    /// protocol is not part of the key (RFC 8200 section 4.5).
    pub fn read(zone: u16, l3: &[u8]) -> Option<Fragment<IPV6>> {
        let ip = Ipv6View::parse_prefix(l3).ok()?;
        let behind = ip.transport().ok()?;
        let part = behind.fragment.filter(|fragment| !fragment.is_atomic())?;
        let last = u64::from(part.id) << 32 | u64::from(zone) << 16 | IN_ZONE;
        let bytes = usize::from(ip.payload_len()).saturating_sub(behind.unfragmented);
        let key = V6 { src: ip.src().to_bits(), dst: ip.dst().to_bits() }.key(last);
        Some(Fragment { key, data: (part.offset, part.offset + bytes) })
    }
}

impl<const W: usize> Fragment<W> {
    /// Returns whether it is the first fragment.
    pub fn is_first(&self) -> bool {
        self.data.0 == 0
    }

    /// Key of the datagram, regardless of the zone.
    pub fn anywhere(&self) -> Key<W> {
        let mut key = self.key;
        key[W - 1] = key[W - 1] & !(0xffff << 16 | 0xff) | ANYWHERE;
        key
    }
}

/// Returns whether a packet with a complete header is a fragment.
fn is_fragment(l3: &[u8]) -> bool {
    let parts = fragment::MORE_FRAGMENTS | fragment::OFFSET_MASK;
    l3.len() >= 20 && be16(l3, 6) & parts != 0
}

/// Key and direction of two endpoints with ports. Addresses and ports are pairs as they lie in the
/// headers, the source first. Branch-free, because directions alternate.
#[inline]
fn ordered(zone: u16, number: u8, addresses: u64, ports: u32) -> (Key<IPV4>, bool) {
    let whole = |addresses: u64, ports: u32| u128::from(addresses) << 64 | u128::from(ports);
    let back = (addresses.rotate_left(32), ports.rotate_left(16));
    let swapped = whole(addresses, ports) > whole(back.0, back.1);
    let (addresses, ports) = if swapped { back } else { (addresses, ports) };
    ([addresses, u64::from(ports) << 32 | last_word(0, 0, zone, number)], swapped)
}

/// Reads the most frequent kind of packet: TCP after an IPv4 header without options, not a
/// fragment, and not a SYN with options. Returns false for all others.
#[inline]
fn plain_tcp(
    zone: u16,
    l3: &[u8],
    bytes: usize,
    key: &mut Key<IPV4>,
    headers: &mut Headers,
) -> bool {
    let Some(h) = l3.first_chunk::<40>() else { return false };
    let total = u32::from(be16(h, 2));
    // Header length, flags and window.
    let last = be32(h, 32);
    let before = 20 + (last >> 26 & 0x3c);
    let (ports, flags) = (be32(h, 20), (last >> 16) as u8);
    let parts = fragment::MORE_FRAGMENTS | fragment::OFFSET_MASK | fragment::RESERVED;
    let plain = h[0] == 0x45
        && h[9] == protocol::TCP
        && be16(h, 6) & parts == 0
        && before >= 40
        && before <= total
        && total as usize <= bytes
        && ports as u16 != 0
        && ports >> 16 != 0
        && (flags & flag::SYN == 0 || before == 40);
    if !plain {
        return false;
    }
    let (k, swapped) = ordered(zone, protocol::TCP, be64(h, 12), ports);
    *key = k;
    let numbers = be64(h, 24);
    *headers = Headers {
        segment: Segment {
            ack: numbers as u32,
            seq: (numbers >> 32) as u32,
            payload: total - before,
            window: last as u16,
            flags,
            scale: Scale::NONE,
        },
        bytes: total,
        kind: Kind::Tcp,
        swapped,
    };
    true
}

/// Verifies the requested checksums of a plain TCP packet as far as the packet is at hand.
#[inline(never)]
fn intact(l3: &[u8], checks: Checks) -> bool {
    let Some(h) = l3.first_chunk::<40>() else { return false };
    let (ip, mut tcp) = checksum::ipv4_and_tcp(h);
    if checks.network && !ip.is_valid() {
        return false;
    }
    let total = be16(h, 2);
    let Some(data) = l3.get(40..usize::from(total)).filter(|_| checks.transport) else {
        return true;
    };
    tcp.add_u16(u16::from(protocol::TCP) + (total - 20));
    if !data.is_empty() {
        tcp.add(data);
    }
    tcp.is_valid()
}

/// [`plain_tcp`] of IPv6: directly after the fixed header.
#[inline]
fn plain_tcp6(
    zone: u16,
    l3: &[u8],
    bytes: usize,
    key: &mut Key<IPV6>,
    headers: &mut Headers,
) -> bool {
    let Some(h) = l3.first_chunk::<60>() else { return false };
    let total = u32::from(be16(h, 4)) + ipv6::HEADER_LEN as u32;
    // Header length, flags and window.
    let last = be32(h, 52);
    let before = ipv6::HEADER_LEN as u32 + (last >> 26 & 0x3c);
    let (ports, flags) = (be32(h, 40), (last >> 16) as u8);
    let plain = h[0] >> 4 == 6
        && h[6] == protocol::TCP
        && before >= 60
        && before <= total
        && total as usize <= bytes
        && ports as u16 != 0
        && ports >> 16 != 0
        && (flags & flag::SYN == 0 || before == 60);
    if !plain {
        return false;
    }
    let whole = |at: usize| u128::from(be64(h, at)) << 64 | u128::from(be64(h, at + 8));
    let (k, swapped) = V6 { src: whole(8), dst: whole(24) }.ordered(zone, protocol::TCP, ports);
    *key = k;
    let numbers = be64(h, 44);
    *headers = Headers {
        segment: Segment {
            ack: numbers as u32,
            seq: (numbers >> 32) as u32,
            payload: total - before,
            window: last as u16,
            flags,
            scale: Scale::NONE,
        },
        bytes: total,
        kind: Kind::Tcp,
        swapped,
    };
    true
}

/// Verifies the checksum of a plain TCP packet of `total` bytes, if the packet is at hand.
#[inline(never)]
fn intact6(l3: &[u8], total: u32) -> bool {
    // The addresses stand in front of the segment.
    let Some(covered) = l3.get(8..total as usize) else { return true };
    let mut sum = Checksum::new();
    sum.add(covered);
    sum.add_u32(total - ipv6::HEADER_LEN as u32);
    sum.add_u16(protocol::TCP.into());
    sum.is_valid()
}

/// Reads any IPv6 packet, behind its extension headers. Packets that cannot be tracked become
/// [`Kind::Invalid`].
fn read_ipv6(zone: u16, l3: &[u8], bytes: usize, checks: Checks) -> (Key<IPV6>, Headers) {
    let invalid = ([0; IPV6], Headers { bytes: bytes as u32, ..Headers::default() });
    let Ok(ip) = Ipv6View::parse_chain(l3, bytes) else { return invalid };
    let total = ipv6::HEADER_LEN + usize::from(ip.payload_len());
    let Some(packet) = PacketView::of_v6(ip) else { return invalid };
    if packet.part() == Part::Later {
        let headers = Headers { bytes: total as u32, kind: Kind::Fragment, ..Headers::default() };
        return ([0; IPV6], headers);
    }
    let read = Ip {
        zone,
        ends: V6 { src: ip.src().to_bits(), dst: ip.dst().to_bits() },
        packet: &packet,
        length: total.saturating_sub(packet.l4()),
        verify: checks.transport && total <= l3.len() && !packet.is_fragment(),
    };
    match read.transport() {
        Some((key, headers)) => (key, Headers { bytes: total as u32, ..headers }),
        None => invalid,
    }
}

/// Reads any IPv4 packet. Packets that cannot be tracked become [`Kind::Invalid`].
fn read_ipv4(zone: u16, l3: &[u8], bytes: usize, checks: Checks) -> (Key<IPV4>, Headers) {
    let invalid = ([0; IPV4], Headers { bytes: bytes as u32, ..Headers::default() });
    let Ok(ip) = Ipv4View::parse_chain(l3, bytes) else { return invalid };
    if checks.network && !ip.checksum_ok() {
        return invalid;
    }
    let total = usize::from(ip.total_len());
    let packet = PacketView::of_v4(ip);
    if packet.part() == Part::Later {
        let headers = Headers { bytes: total as u32, kind: Kind::Fragment, ..Headers::default() };
        return ([0; IPV4], headers);
    }
    let read = Ip {
        zone,
        ends: V4(addresses(&ip)),
        packet: &packet,
        length: total - ip.header_len(),
        verify: checks.transport && total <= l3.len() && !packet.is_fragment(),
    };
    match read.transport() {
        Some((key, headers)) => (key, Headers { bytes: total as u32, ..headers }),
        None => invalid,
    }
}

/// The addresses of a packet of a family whose keys have `W` words.
trait Ends<const W: usize>: Copy + PartialEq {
    /// Its ICMP.
    const ICMP: u8;
    /// Whether a UDP checksum of zero stands for none (RFC 768; not so in RFC 8200 section 8.1).
    const ZERO_IS_NONE: bool;

    /// Those of a packet; `None` if it is of the other family.
    fn of(packet: &PacketView<'_>) -> Option<Self>;
    /// Those of the other direction.
    fn back(self) -> Self;
    /// Whether a packet between them, back, goes to the source of this one.
    fn goes_to_source_of(self, other: Self) -> bool;
    /// A key of them, with a last word.
    fn key(self, last: u64) -> Key<W>;
    /// Key and direction, with ports as they lie in the header, the source first.
    fn ordered(self, zone: u16, number: u8, ports: u32) -> (Key<W>, bool);
    /// The sum of the pseudo-header.
    fn pseudo(self, number: u8, length: u32) -> Checksum;
    /// The sum that ICMP begins with.
    fn icmp_pseudo(self, length: u32) -> Checksum;
    /// Whether ICMP messages of a type are about the packet that they quote.
    fn is_error(kind: u8) -> bool;
}

/// Addresses of IPv4 as they lie in the header, the source first.
#[derive(Clone, Copy, PartialEq)]
struct V4(u64);

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
struct V6 {
    src: u128,
    dst: u128,
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

/// A packet whose transport header is being read.
struct Ip<'a, const W: usize, E> {
    zone: u16,
    ends: E,
    packet: &'a PacketView<'a>,
    /// Bytes of transport header and data; not all of them may be at hand.
    length: usize,
    verify: bool,
}

impl<const W: usize, E: Ends<W>> Ip<'_, W, E> {
    fn transport(&self) -> Option<(Key<W>, Headers)> {
        let number = self.packet.protocol();
        let l4 = self.packet.transport()?;
        match number {
            protocol::TCP => self.tcp(l4),
            number if number == E::ICMP => self.icmp(l4),
            // Neither of them exists over the other family.
            protocol::ICMP | protocol::ICMPV6 => None,
            _ => {
                let ports = if has_ports(number) { self.ports()? } else { 0 };
                if number == protocol::UDP && !self.udp_is_right(l4)? {
                    return None;
                }
                let (key, swapped) = self.ends.ordered(self.zone, number, ports);
                Some((key, Headers { kind: Kind::Datagram, swapped, ..Headers::default() }))
            }
        }
    }

    /// Both ports; `None` if either is 0.
    fn ports(&self) -> Option<u32> {
        let (sport, dport) = self.packet.ports()?;
        (sport != 0 && dport != 0).then_some(word(sport, dport))
    }

    fn udp_is_right(&self, l4: &[u8]) -> Option<bool> {
        let header = l4.first_chunk::<8>()?;
        let length = usize::from(be16(header, 4));
        // The UDP length of a first fragment is that of the whole datagram.
        if length < 8 || (length > self.length && !self.packet.is_fragment()) {
            return Some(false);
        }
        if !self.verify || (E::ZERO_IS_NONE && be16(header, 6) == 0) {
            return Some(true);
        }
        let mut sum = self.ends.pseudo(protocol::UDP, length as u32);
        sum.add(l4.get(..length)?);
        Some(sum.is_valid())
    }

    fn tcp(&self, l4: &[u8]) -> Option<(Key<W>, Headers)> {
        let ports = self.ports()?;
        let tcp = TcpView::parse(l4).ok()?;
        let payload = self.length.checked_sub(tcp.header_len())?;
        let pseudo = || self.ends.pseudo(protocol::TCP, self.length as u32);
        if self.verify && !tcp.checksum_ok(pseudo()) {
            return None;
        }
        let scale = if tcp.flags() & flag::SYN != 0 { offered(&tcp) } else { Scale::NONE };
        let segment = Segment {
            seq: tcp.seq(),
            ack: tcp.ack(),
            payload: payload as u32,
            window: tcp.window(),
            flags: tcp.flags(),
            scale,
        };
        let (key, swapped) = self.ends.ordered(self.zone, protocol::TCP, ports);
        Some((key, Headers { segment, kind: Kind::Tcp, swapped, bytes: 0 }))
    }

    fn icmp(&self, l4: &[u8]) -> Option<(Key<W>, Headers)> {
        if self.verify {
            let mut sum = self.ends.icmp_pseudo(self.length as u32);
            sum.add(l4);
            if !sum.is_valid() {
                return None;
            }
        }
        let (kind, code) = self.packet.message()?;
        if let Some((query, asks)) = icmp_query(E::ICMP, kind) {
            if code != 0 {
                return None;
            }
            let id = self.packet.identifier()?;
            let key = query_key(self.zone, id, query, self.ends, asks);
            let headers = Headers { kind: Kind::Query, swapped: !asks, ..Headers::default() };
            return Some((key, headers));
        }
        if !E::is_error(kind) {
            return None;
        }
        quoted(self.zone, self.ends, &self.packet.quote()?)
    }
}

/// Two ports as they lie in headers, read as one number.
fn word(sport: u16, dport: u16) -> u32 {
    u32::from(sport) << 16 | u32::from(dport)
}

fn offered(tcp: &TcpView<'_>) -> Scale {
    let shift = tcp.options().find_map(|option| match option {
        Ok(TcpOption::WindowScale(shift)) => Some(shift),
        _ => None,
    });
    shift.map_or(Scale::NONE, Scale::offered)
}

/// The addresses of a packet, the source first.
fn addresses(ip: &Ipv4View<'_>) -> u64 {
    u64::from(ip.src().to_bits()) << 32 | u64::from(ip.dst().to_bits())
}

fn query_key<const W: usize, E: Ends<W>>(
    zone: u16,
    id: u16,
    query: u8,
    ends: E,
    asks: bool,
) -> Key<W> {
    let ends = if asks { ends } else { ends.back() };
    ends.key(last_word(id, u16::from(query), zone, E::ICMP))
}

/// The connection that an ICMP error is about. The quoted packet went the opposite way.
fn quoted<const W: usize, E: Ends<W>>(
    zone: u16,
    outer: E,
    quote: &PacketView<'_>,
) -> Option<(Key<W>, Headers)> {
    let ends = E::of(quote).filter(|ends| outer.goes_to_source_of(*ends))?;
    if quote.part() == Part::Later {
        return None;
    }
    let number = quote.protocol();
    let (key, swapped) = if number == E::ICMP {
        let (query, asks) = icmp_query(number, quote.message()?.0)?;
        (query_key(zone, quote.identifier()?, query, ends, asks), !asks)
    } else if has_ports(number) {
        let (sport, dport) = quote.quoted_ports()?;
        ends.ordered(zone, number, word(sport, dport))
    } else if matches!(number, protocol::ICMP | protocol::ICMPV6) {
        return None;
    } else {
        ends.ordered(zone, number, 0)
    };
    Some((key, Headers { kind: Kind::Related, swapped: !swapped, ..Headers::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, Ipv6Addr};
    use thalweg_wire::build::Packet;
    use thalweg_wire::icmpv4::IcmpRepr;
    use thalweg_wire::icmpv6::Icmp6Repr;
    use thalweg_wire::owner;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn read(l3: &[u8], checks: Checks) -> (Headers, Option<Tuple>) {
        let mut batch = Batch::default();
        batch.add_ipv4(5, l3, l3.len(), checks);
        (batch.headers[0], batch.tuple(0))
    }

    #[test]
    fn whole_packets_are_read() {
        let udp = Packet::new().ipv4(B, A).udp(1000, 53).payload(b"abc").build();
        let (headers, tuple) = read(&udp, Checks::ALL);
        assert_eq!((headers.kind, headers.swapped, headers.bytes), (Kind::Datagram, true, 31));
        let want = Tuple { src: B.into(), dst: A.into(), protocol: 17, sport: 1000, dport: 53 };
        assert_eq!(tuple, Some(want));
        let ping = Packet::new().ipv4(B, A).icmp_echo_request(7, 1).build();
        let (headers, tuple) = read(&ping, Checks::ALL);
        assert_eq!((headers.kind, headers.swapped), (Kind::Query, false));
        let want = Tuple { src: B.into(), dst: A.into(), protocol: 1, sport: 7, dport: 8 };
        assert_eq!(tuple, Some(want));
    }

    #[test]
    fn what_is_broken_is_invalid() {
        let tcp = Packet::new().ipv4(A, B).tcp(1000, 80).payload(b"abcd").build();
        assert_eq!(read(&tcp, Checks::ALL).0.kind, Kind::Tcp);
        let with = |at: usize, value: u8| {
            let mut packet = tcp.clone();
            packet[at] = value;
            read(&packet, Checks::NONE).0.kind
        };
        // Version, length, port, offset.
        for (at, value) in [(0, 0x65), (3, 200), (3, 30), (32, 0x40), (32, 0xf0)] {
            assert_eq!(with(at, value), Kind::Invalid, "{at}: {value:#x}");
        }
        assert_eq!(with(6, 0x20), Kind::Tcp, "a first fragment");
        assert_eq!(with(7, 1), Kind::Fragment);
        let mut no_port = tcp.clone();
        no_port[22..24].fill(0);
        assert_eq!(read(&no_port, Checks::NONE).0.kind, Kind::Invalid);
        for (at, checks) in [
            (8, Checks { network: true, transport: false }),
            (43, Checks { network: false, transport: true }),
        ] {
            let mut packet = tcp.clone();
            packet[at] ^= 1;
            assert_eq!(read(&packet, checks).0.kind, Kind::Invalid);
            assert_eq!(read(&packet, Checks::NONE).0.kind, Kind::Tcp);
        }
    }

    /// The UDP length covers all fragments together, and later ones have no ports.
    #[test]
    fn fragments_are_known_by_their_datagram() {
        let mut first = Packet::new().ipv4(A, B).udp(1000, 53).payload_len(100).build();
        (first[6], first[25]) = (0x20, 255);
        assert_eq!(read(&first, Checks::NONE).0.kind, Kind::Datagram);
        let whole = Packet::new().ipv4(A, B).udp(1000, 53).build();
        assert_eq!(Fragment::<IPV4>::read(5, &whole), None);
        let mut later = first.clone();
        (later[6], later[7]) = (0, 16);
        let mut batch = Batch::default();
        batch.add_ipv4(5, &whole, whole.len(), Checks::ALL);
        assert!(!batch.has_fragments());
        batch.add_ipv4(5, &later, later.len(), Checks::NONE);
        assert!(batch.has_fragments());
        assert_eq!((batch.headers[1].kind, batch.tuple(1)), (Kind::Fragment, None));
        assert_eq!(batch.owner_hash(1), None);
        let [one, two] = [&first, &later].map(|l3| Fragment::<IPV4>::read(5, l3).unwrap());
        assert_eq!((one.key, one.anywhere()), (two.key, two.anywhere()));
        assert_eq!((one.data, two.data, one.is_first()), ((0, 108), (128, 236), true));
        let other = Fragment::<IPV4>::read(6, &later).unwrap();
        assert_eq!((other.key == one.key, other.anywhere() == one.anywhere()), (false, true));
        later[5] ^= 1;
        assert_ne!(Fragment::<IPV4>::read(5, &later).unwrap().anywhere(), one.anywhere());
    }

    const A6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    const B6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

    fn read6(l3: &[u8], checks: Checks) -> (Headers, Option<Tuple>) {
        let mut batch = Batch::default();
        batch.add_ipv6(5, l3, l3.len(), checks);
        (batch.headers[0], batch.tuple(0))
    }

    /// Puts extension headers, with their types, in front of the transport.
    fn extended(l3: &[u8], headers: &[(u8, &[u8])]) -> Vec<u8> {
        let mut l3 = l3.to_vec();
        for (kind, header) in headers.iter().rev() {
            let mut header = header.to_vec();
            header[0] = std::mem::replace(&mut l3[6], *kind);
            let length = be16(&l3[..40].try_into().unwrap() as &[u8; 40], 4) + header.len() as u16;
            l3[4..6].copy_from_slice(&length.to_be_bytes());
            l3.splice(40..40, header);
        }
        l3
    }

    const OPTIONS: [u8; 8] = [0, 0, 1, 4, 0, 0, 0, 0];

    #[test]
    fn whole_packets_of_ipv6_are_read() {
        let udp = Packet::new().ipv6(B6, A6).udp(1000, 53).payload(b"abc").build();
        for l3 in [udp.clone(), extended(&udp, &[(0, &OPTIONS), (60, &OPTIONS)])] {
            let (headers, tuple) = read6(&l3, Checks::ALL);
            assert_eq!((headers.kind, headers.swapped), (Kind::Datagram, true));
            assert_eq!(headers.bytes as usize, l3.len());
            let want =
                Tuple { src: B6.into(), dst: A6.into(), protocol: 17, sport: 1000, dport: 53 };
            assert_eq!(tuple, Some(want));
        }
        let ping = Packet::new().ipv6(B6, A6).icmp6_echo_request(7, 1).build();
        let (headers, tuple) = read6(&ping, Checks::ALL);
        assert_eq!((headers.kind, headers.swapped), (Kind::Query, false));
        let want = Tuple { src: B6.into(), dst: A6.into(), protocol: 58, sport: 7, dport: 128 };
        assert_eq!(tuple, Some(want));
        let tcp = Packet::new().ipv6(A6, B6).tcp(1000, 80).payload(b"abcd").build();
        let behind = extended(&tcp, &[(60, &OPTIONS)]);
        let (one, other) = (read6(&tcp, Checks::ALL), read6(&behind, Checks::ALL));
        assert_eq!((one.0.segment, one.1), (other.0.segment, other.1));
    }

    #[test]
    fn what_is_broken_of_ipv6_is_invalid() {
        let tcp = Packet::new().ipv6(A6, B6).tcp(1000, 80).payload(b"abcd").build();
        assert_eq!(read6(&tcp, Checks::ALL).0.kind, Kind::Tcp);
        for (at, value) in [(0, 0x45), (4, 1), (5, 10), (52, 0x40), (52, 0xf0)] {
            let mut packet = tcp.clone();
            packet[at] = value;
            assert_eq!(read6(&packet, Checks::NONE).0.kind, Kind::Invalid, "{at}: {value:#x}");
        }
        for at in [8, 39, 63] {
            let mut packet = tcp.clone();
            packet[at] ^= 1;
            assert_eq!(read6(&packet, Checks::ALL).0.kind, Kind::Invalid);
            assert_eq!(read6(&packet, Checks::NONE).0.kind, Kind::Tcp);
        }
        // A checksum of zero means none in IPv4 only.
        let udp = Packet::new().ipv6(A6, B6).udp(1, 2).no_checksum().build();
        assert_eq!(read6(&udp, Checks::ALL).0.kind, Kind::Invalid);
        let udp = Packet::new().ipv4(A, B).udp(1, 2).no_checksum().build();
        assert_eq!(read(&udp, Checks::ALL).0.kind, Kind::Datagram);
        // ICMP of the other family.
        let icmp =
            Packet::new().ipv6(A6, B6).protocol(1).payload(&[8, 0, 0, 0, 0, 1, 0, 1]).build();
        assert_eq!(read6(&icmp, Checks::NONE).0.kind, Kind::Invalid);
        let icmp = Packet::new().ipv4(A, B).protocol(58).payload(&[128, 0, 0, 0, 0, 1, 0, 1]);
        assert_eq!(read(&icmp.build(), Checks::NONE).0.kind, Kind::Invalid);
    }

    /// Where the first fragment ends, whatever headers are in the fragmented part.
    #[test]
    fn fragments_of_ipv6_are_known_by_their_datagram() {
        let part = |offset: u16, more: u16, id: u8| {
            let [high, low] = (offset | more).to_be_bytes();
            [0, 0, high, low, 0, 0, 0, id]
        };
        let udp = Packet::new().ipv6(A6, B6).udp(1000, 53).payload_len(100).build();
        let first = extended(&udp, &[(0, &OPTIONS), (44, &part(0, 1, 9)), (60, &OPTIONS)]);
        let later = extended(&udp, &[(0, &OPTIONS), (44, &part(120, 1, 9))]);
        let atomic = extended(&udp, &[(44, &part(0, 0, 9))]);
        assert_eq!(read6(&first, Checks::ALL).0.kind, Kind::Datagram);
        assert_eq!(read6(&atomic, Checks::ALL).0.kind, Kind::Datagram);
        assert_eq!(Fragment::<IPV6>::read(5, &atomic), None);
        assert_eq!(Fragment::<IPV6>::read(5, &udp), None);
        let mut batch = Batch::default();
        batch.add_ipv6(5, &atomic, atomic.len(), Checks::ALL);
        assert!(!batch.has_fragments());
        batch.pad(3);
        batch.add_ipv6(5, &later, later.len(), Checks::NONE);
        assert!(batch.has_fragments());
        assert_eq!((batch.headers[1].kind, batch.tuple(1)), (Kind::Invalid, None));
        assert_eq!((batch.headers[3].kind, batch.tuple(3)), (Kind::Fragment, None));
        let [one, two] = [&first, &later].map(|l3| Fragment::<IPV6>::read(5, l3).unwrap());
        assert_eq!((one.key, one.anywhere()), (two.key, two.anywhere()));
        assert_eq!((one.data, two.data, one.is_first()), ((0, 116), (120, 228), true));
        let other = Fragment::<IPV6>::read(6, &later).unwrap();
        assert_eq!((other.key == one.key, other.anywhere() == one.anywhere()), (false, true));
        let other = extended(&udp, &[(44, &part(120, 1, 8))]);
        assert_ne!(Fragment::<IPV6>::read(5, &other).unwrap().anywhere(), one.anywhere());
    }

    proptest! {
        /// The fast reader agrees with the general one.
        #[test]
        fn plain_segments_are_read_the_same(
            ips: [u32; 2], head in prop::collection::vec(any::<u8>(), 20), payload in 0usize..30,
            odd in (0usize..70, any::<u8>()), zone: u16, cut in 0usize..70, sums: [bool; 3],
        ) {
            let [src, dst] = ips.map(Ipv4Addr::from_bits);
            let mut l3 = Packet::new().ipv4(src, dst).tcp(1, 2).payload(&vec![7; payload]).build();
            l3[20..40].copy_from_slice(&head);
            l3[32] = 0x50 | head[12] & 3;
            if let Some(byte) = l3.get_mut(odd.0) {
                *byte = odd.1;
            }
            let checks = Checks { network: sums[0], transport: sums[1] };
            if sums[2] {
                let h: [u8; 20] = l3[..20].try_into().unwrap();
                l3[10..12].copy_from_slice(&checksum::ipv4_header(&h).to_be_bytes());
                let (src, dst) = (be32(&h, 12).into(), be32(&h, 16).into());
                let length = l3.len() as u32 - 20;
                let pseudo = checksum::pseudo_v4(src, dst, protocol::TCP, length);
                let _ = thalweg_wire::tcp::fill_checksum(pseudo, &mut l3[20..]);
            }
            let at_hand = &l3[..cut.min(l3.len())];
            let (mut key, mut headers) = ([0; 2], Headers::default());
            if plain_tcp(zone, at_hand, l3.len(), &mut key, &mut headers)
                && intact(at_hand, checks)
            {
                // The general reader rejects headers that are truncated within the options.
                let (k, h) = read_ipv4(zone, at_hand, l3.len(), checks);
                if h.kind == Kind::Tcp {
                    prop_assert_eq!((key, headers), (k, h));
                } else {
                    prop_assert!(at_hand.len() < l3.len());
                }
            }
        }

        #[test]
        fn any_bytes_are_read(data in prop::collection::vec(any::<u8>(), 0..120), checks: bool) {
            let checks = if checks { Checks::ALL } else { Checks::NONE };
            let mut data = data;
            if let Some(first) = data.first_mut() { *first = 0x45 }
            let mut batch = Batch::default();
            batch.add_ipv4(0, &data, data.len(), checks);
            prop_assert_eq!(batch.len(), 1);
            let _ = batch.tuple(0);
            if let Some(hash) = batch.owner_hash(0) {
                prop_assert_eq!(owner::flow(&data).map(|t| t.symmetric_hash32()), Some(hash));
            }
        }

        #[test]
        fn plain_segments_of_ipv6_are_read_the_same(
            ips: [u128; 2], near: bool, head in prop::collection::vec(any::<u8>(), 20),
            payload in 0usize..30, odd in (0usize..90, any::<u8>()), zone: u16, cut in 0usize..90,
            sums: [bool; 2],
        ) {
            // Addresses that are the same, or differ in one half only.
            let ips = if near { ips.map(|ip| ip & (1 << 64 | 1)) } else { ips };
            let [src, dst] = ips.map(Ipv6Addr::from_bits);
            let mut l3 = Packet::new().ipv6(src, dst).tcp(1, 2).payload(&vec![7; payload]).build();
            l3[40..60].copy_from_slice(&head);
            l3[52] = 0x50 | head[12] & 3;
            if let Some(byte) = l3.get_mut(odd.0) {
                *byte = odd.1;
            }
            let checks = Checks { network: false, transport: sums[0] };
            if sums[1] {
                let length = l3.len() as u32 - 40;
                let pseudo = checksum::pseudo_v6(&src, &dst, protocol::TCP, length);
                let _ = thalweg_wire::tcp::fill_checksum(pseudo, &mut l3[40..]);
            }
            let at_hand = &l3[..cut.min(l3.len())];
            let (mut key, mut headers) = ([0; 5], Headers::default());
            if plain_tcp6(zone, at_hand, l3.len(), &mut key, &mut headers)
                && (!checks.transport || intact6(at_hand, headers.bytes))
            {
                let (k, h) = read_ipv6(zone, at_hand, l3.len(), checks);
                if h.kind == Kind::Tcp {
                    prop_assert_eq!((key, headers), (k, h));
                    let tuple = Tuple::of_key(&key, headers.swapped);
                    let ends = (IpAddr::V6(src), IpAddr::V6(dst));
                    if odd.0 < 8 || odd.0 >= 40 {
                        prop_assert_eq!((tuple.src, tuple.dst), ends);
                    }
                    prop_assert_eq!(tuple.key::<IPV6>(zone), Some((key, headers.swapped)));
                } else {
                    prop_assert!(at_hand.len() < l3.len());
                }
            }
        }

        #[test]
        fn any_bytes_of_ipv6_are_read(
            data in prop::collection::vec(any::<u8>(), 0..160), checks: bool, length: bool,
            next in prop_oneof![Just(6u8), Just(17), Just(58), Just(44), Just(60), any::<u8>()],
        ) {
            let checks = if checks { Checks::ALL } else { Checks::NONE };
            let mut data = data;
            if let Some(first) = data.first_mut() { *first = 0x60 }
            if length && data.len() >= 40 {
                let payload = data.len() as u16 - 40;
                data[4..6].copy_from_slice(&payload.to_be_bytes());
                data[6] = next;
            }
            let mut batch = Batch::default();
            batch.add_ipv6(0, &data, data.len(), checks);
            prop_assert_eq!(batch.len(), 1);
            let _ = (batch.tuple(0), Fragment::<IPV6>::read(0, &data));
            if let Some(hash) = batch.owner_hash(0) {
                prop_assert_eq!(owner::flow(&data).map(|t| t.symmetric_hash32()), Some(hash));
            }
        }

        #[test]
        fn owners_of_ipv6_are_those_of_frames(
            ends in any::<[u128; 2]>(), ports in any::<[u16; 2]>(), kind in 0u8..5, zone: u16,
        ) {
            let [from, to] = ends.map(Ipv6Addr::from_bits);
            let ports = ports.map(|port| port.max(1));
            let packet = Packet::new().ipv6(from, to);
            let packet = match kind {
                0 => packet.tcp(ports[0], ports[1]).payload(b"abcd"),
                1 => packet.udp(ports[0], ports[1]).payload(b"abcd"),
                2 => packet.icmp6_echo_request(ports[0], 1),
                3 => packet.icmp6(Icmp6Repr { kind: 129, code: 0, rest: u32::from(ports[0]) << 16 }),
                _ => packet.protocol(47).payload(&[0; 12]),
            };
            let l3 = packet.build();
            let error = Packet::new().ipv6(to, from).icmp6(Icmp6Repr::hop_limit_exceeded());
            for l3 in [&l3, &extended(&l3, &[(60, &OPTIONS)]), &error.payload(&l3).build()] {
                let mut batch = Batch::default();
                batch.add_ipv6(zone, l3, l3.len(), Checks::ALL);
                let hash = batch.owner_hash(0);
                prop_assert!(hash.is_some());
                prop_assert_eq!(owner::flow(l3).map(|t| t.symmetric_hash32()), hash);
            }
        }

        /// Whoever reads a packet finds the same owner.
        #[test]
        fn owners_are_those_of_frames(
            ends in any::<[u32; 2]>(), ports in any::<[u16; 2]>(), kind in 0u8..6, zone: u16,
        ) {
            let [from, to] = ends.map(Ipv4Addr::from_bits);
            let ports = ports.map(|port| port.max(1));
            let packet = Packet::new().ipv4(from, to);
            let packet = match kind {
                0 => packet.tcp(ports[0], ports[1]).payload(b"abcd"),
                1 => packet.udp(ports[0], ports[1]).payload(b"abcd"),
                2 => packet.icmp_echo_request(ports[0], 1),
                3 => packet.icmp_echo_reply(ports[0], 1),
                4 => packet.protocol(47).payload(&[0; 12]),
                _ => packet.udp(ports[0], ports[1]).payload(b"abcd").fragment(0, true),
            };
            let l3 = packet.build();
            let error = Packet::new().ipv4(to, from).icmp(IcmpRepr::ttl_exceeded()).payload(&l3);
            for l3 in [&l3, &error.build()] {
                let mut batch = Batch::default();
                batch.add_ipv4(zone, l3, l3.len(), Checks::ALL);
                let hash = batch.owner_hash(0);
                prop_assert!(hash.is_some());
                prop_assert_eq!(owner::flow(l3).map(|t| t.symmetric_hash32()), hash);
            }
        }
    }
}
