//! Reads packets into keys and the header fields that the state machines need.

use thalweg_tables::flow::{FlowHash, Guess};
use thalweg_wire::bytes::{be16, be32, be64};
use thalweg_wire::checksum;
use thalweg_wire::ip::{has_ports, protocol};
use thalweg_wire::ipv4::{Ipv4View, flag as fragment};
use thalweg_wire::packet::{PacketView, Part};
use thalweg_wire::tcp::{TcpOption, TcpView, flag};

use crate::tcp::{Scale, Segment};
use crate::tuple::{Key, icmp_query, last_word, owner_hash, protocol_of};
use crate::{IPV4, Tuple};

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

/// A fragment of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Key of the datagram in its zone. No connection has such a key.
    pub key: Key<IPV4>,
    /// Offsets of the start and the end of its data in the datagram.
    pub data: (usize, usize),
}

/// Lowest byte of a fragment's key: within a zone, and regardless of the zone.
const IN_ZONE: u64 = 1;
const ANYWHERE: u64 = 2;

impl Fragment {
    /// Reads the packet that starts with IPv4 header `l3`; `None` if it is not a fragment.
    pub fn read(zone: u16, l3: &[u8]) -> Option<Fragment> {
        let ip = Ipv4View::parse_prefix(l3).ok().filter(Ipv4View::is_fragment)?;
        let last = last_word(ip.id(), 0, zone, ip.protocol()) | IN_ZONE;
        let from = ip.fragment_offset();
        let bytes = usize::from(ip.total_len()).saturating_sub(ip.header_len());
        Some(Fragment { key: [addresses(&ip), last], data: (from, from + bytes) })
    }

    /// Returns whether it is the first fragment.
    pub fn is_first(&self) -> bool {
        self.data.0 == 0
    }

    /// Key of the datagram, regardless of the zone.
    pub fn anywhere(&self) -> Key<IPV4> {
        let [addresses, last] = self.key;
        [addresses, last & !(0xffff << 16 | 0xff) | ANYWHERE]
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
        ip: &ip,
        packet: &packet,
        length: total - ip.header_len(),
        verify: checks.transport && total <= l3.len() && !packet.is_fragment(),
    };
    match read.transport() {
        Some((key, headers)) => (key, Headers { bytes: total as u32, ..headers }),
        None => invalid,
    }
}

/// An IPv4 packet whose transport header is being read.
struct Ip<'a> {
    zone: u16,
    ip: &'a Ipv4View<'a>,
    packet: &'a PacketView<'a>,
    /// Bytes of transport header and data; not all of them may be at hand.
    length: usize,
    verify: bool,
}

impl Ip<'_> {
    fn transport(&self) -> Option<(Key<IPV4>, Headers)> {
        let number = self.packet.protocol();
        let l4 = self.packet.transport()?;
        match number {
            protocol::TCP => self.tcp(l4),
            protocol::ICMP => self.icmp(l4),
            _ => {
                let ports = if has_ports(number) { self.ports()? } else { 0 };
                if number == protocol::UDP && !self.udp_is_right(l4)? {
                    return None;
                }
                let (key, swapped) = self.key(number, ports);
                Some((key, Headers { kind: Kind::Datagram, swapped, ..Headers::default() }))
            }
        }
    }

    fn key(&self, number: u8, ports: u32) -> (Key<IPV4>, bool) {
        ordered(self.zone, number, addresses(self.ip), ports)
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
        if !self.verify || be16(header, 6) == 0 {
            return Some(true);
        }
        let (src, dst) = (self.ip.src(), self.ip.dst());
        let mut sum = checksum::pseudo_v4(src, dst, protocol::UDP, length as u32);
        sum.add(l4.get(..length)?);
        Some(sum.is_valid())
    }

    fn tcp(&self, l4: &[u8]) -> Option<(Key<IPV4>, Headers)> {
        let ports = self.ports()?;
        let tcp = TcpView::parse(l4).ok()?;
        let payload = self.length.checked_sub(tcp.header_len())?;
        if self.verify && !tcp.checksum_ok(self.ip.pseudo_header()) {
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
        let (key, swapped) = self.key(protocol::TCP, ports);
        Some((key, Headers { segment, kind: Kind::Tcp, swapped, bytes: 0 }))
    }

    fn icmp(&self, l4: &[u8]) -> Option<(Key<IPV4>, Headers)> {
        if self.verify && !checksum::verify(l4) {
            return None;
        }
        let (kind, code) = self.packet.message()?;
        if let Some((query, asks)) = icmp_query(protocol::ICMP, kind) {
            if code != 0 {
                return None;
            }
            let id = self.packet.identifier()?;
            let key = query_key(self.zone, id, query, addresses(self.ip), asks);
            let headers = Headers { kind: Kind::Query, swapped: !asks, ..Headers::default() };
            return Some((key, headers));
        }
        quoted(self.zone, self.ip, &self.packet.quote()?)
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

fn query_key(zone: u16, id: u16, query: u8, addresses: u64, asks: bool) -> Key<IPV4> {
    let addresses = if asks { addresses } else { addresses.rotate_left(32) };
    [addresses, last_word(id, u16::from(query), zone, protocol::ICMP)]
}

/// The connection that an ICMP error is about. The quoted packet went the opposite way.
fn quoted(zone: u16, outer: &Ipv4View<'_>, quote: &PacketView<'_>) -> Option<(Key<IPV4>, Headers)> {
    let ip = quote.v4().filter(|ip| ip.src() == outer.dst() && ip.fragment_offset() == 0)?;
    let number = quote.protocol();
    let (key, swapped) = if number == protocol::ICMP {
        let (query, asks) = icmp_query(number, quote.message()?.0)?;
        (query_key(zone, quote.identifier()?, query, addresses(ip), asks), !asks)
    } else if has_ports(number) {
        let (sport, dport) = quote.quoted_ports()?;
        ordered(zone, number, addresses(ip), word(sport, dport))
    } else {
        ordered(zone, number, addresses(ip), 0)
    };
    Some((key, Headers { kind: Kind::Related, swapped: !swapped, ..Headers::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;
    use thalweg_wire::build::Packet;
    use thalweg_wire::icmpv4::IcmpRepr;
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
        assert_eq!(Fragment::read(5, &whole), None);
        let mut later = first.clone();
        (later[6], later[7]) = (0, 16);
        let mut batch = Batch::default();
        batch.add_ipv4(5, &whole, whole.len(), Checks::ALL);
        assert!(!batch.has_fragments());
        batch.add_ipv4(5, &later, later.len(), Checks::NONE);
        assert!(batch.has_fragments());
        assert_eq!((batch.headers[1].kind, batch.tuple(1)), (Kind::Fragment, None));
        assert_eq!(batch.owner_hash(1), None);
        let [one, two] = [&first, &later].map(|l3| Fragment::read(5, l3).unwrap());
        assert_eq!((one.key, one.anywhere()), (two.key, two.anywhere()));
        assert_eq!((one.data, two.data, one.is_first()), ((0, 108), (128, 236), true));
        let other = Fragment::read(6, &later).unwrap();
        assert_eq!((other.key == one.key, other.anywhere() == one.anywhere()), (false, true));
        later[5] ^= 1;
        assert_ne!(Fragment::read(5, &later).unwrap().anywhere(), one.anywhere());
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
