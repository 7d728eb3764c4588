//! Reads keys and header fields: of the most frequent packets at once, of others by the view.

use thalweg_wire::bytes::{be16, be32, be64};
use thalweg_wire::checksum::{self, Checksum};
use thalweg_wire::ip::{has_ports, protocol};
use thalweg_wire::ipv4::{Ipv4View, flag as fragment};
use thalweg_wire::ipv6::{self, Ipv6View};
use thalweg_wire::packet::{PacketView, Part};
use thalweg_wire::tcp::{TcpOption, TcpView, flag};

use super::ends::{Ends, V4, V6, addresses, ordered};
use super::{Checks, Headers, Kind};
use crate::tcp::{Scale, Segment};
use crate::tuple::{Key, icmp_query, last_word};
use crate::{IPV4, IPV6};

/// Reads the most frequent kind of packet: TCP after an IPv4 header without options, not a
/// fragment, and not a SYN with options. Returns false for all others.
#[inline]
pub(super) fn plain_tcp(
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
    *headers = of_segment(be64(h, 24), last, total, before, swapped);
    true
}

/// Header fields of a plain segment: its numbers, the word with its flags and window, the lengths
/// of the packet and of its headers.
#[inline(always)]
fn of_segment(numbers: u64, last: u32, total: u32, before: u32, swapped: bool) -> Headers {
    let segment = Segment {
        ack: numbers as u32,
        seq: (numbers >> 32) as u32,
        payload: total - before,
        window: last as u16,
        flags: (last >> 16) as u8,
        scale: Scale::NONE,
    };
    Headers { segment, bytes: total, kind: Kind::Tcp, swapped }
}

/// Verifies the requested checksums of a plain TCP packet as far as the packet is at hand.
#[inline(never)]
pub(super) fn intact(l3: &[u8], checks: Checks) -> bool {
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
pub(super) fn plain_tcp6(
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
    *headers = of_segment(be64(h, 44), last, total, before, swapped);
    true
}

/// Verifies the checksum of a plain TCP packet of `total` bytes, if the packet is at hand.
#[inline(never)]
pub(super) fn intact6(l3: &[u8], total: u32) -> bool {
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
pub(super) fn read_ipv6(
    zone: u16,
    l3: &[u8],
    bytes: usize,
    checks: Checks,
) -> (Key<IPV6>, Headers) {
    let invalid = ([0; IPV6], Headers { bytes: bytes as u32, ..Headers::default() });
    let Ok(ip) = Ipv6View::parse_chain(l3, bytes) else { return invalid };
    let total = ipv6::HEADER_LEN + usize::from(ip.payload_len());
    let Some(packet) = PacketView::of_v6(ip) else { return invalid };
    let ends = V6 { src: ip.src().to_bits(), dst: ip.dst().to_bits() };
    let length = total.saturating_sub(packet.l4());
    let verify = checks.transport && total <= l3.len();
    Ip { zone, ends, packet: &packet, length, verify }.read(total).unwrap_or(invalid)
}

/// Reads any IPv4 packet. Packets that cannot be tracked become [`Kind::Invalid`].
pub(super) fn read_ipv4(
    zone: u16,
    l3: &[u8],
    bytes: usize,
    checks: Checks,
) -> (Key<IPV4>, Headers) {
    let invalid = ([0; IPV4], Headers { bytes: bytes as u32, ..Headers::default() });
    let Ok(ip) = Ipv4View::parse_chain(l3, bytes) else { return invalid };
    if checks.network && !ip.checksum_ok() {
        return invalid;
    }
    let total = usize::from(ip.total_len());
    let (ends, length) = (V4(addresses(&ip)), total - ip.header_len());
    let verify = checks.transport && total <= l3.len();
    let packet = PacketView::of_v4(ip);
    Ip { zone, ends, packet: &packet, length, verify }.read(total).unwrap_or(invalid)
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
    /// Reads a packet of `total` bytes; `None` if it cannot be tracked.
    fn read(mut self, total: usize) -> Option<(Key<W>, Headers)> {
        let bytes = total as u32;
        if self.packet.part() == Part::Later {
            return Some(([0; W], Headers { bytes, kind: Kind::Fragment, ..Headers::default() }));
        }
        self.verify &= !self.packet.is_fragment();
        let (key, headers) = self.transport()?;
        Some((key, Headers { bytes, ..headers }))
    }

    fn transport(&self) -> Option<(Key<W>, Headers)> {
        let number = self.packet.protocol();
        let l4 = self.packet.transport()?;
        match number {
            protocol::TCP => self.tcp(l4),
            number if number == E::ICMP => self.icmp(l4),
            // Neither of them exists over the other family.
            protocol::ICMP | protocol::ICMPV6 => None,
            _ => {
                let ports = if has_ports(number) { Self::ports(l4)? } else { 0 };
                if number == protocol::UDP && !self.udp_is_right(l4)? {
                    return None;
                }
                let (key, swapped) = self.ends.ordered(self.zone, number, ports);
                Some((key, Headers { kind: Kind::Datagram, swapped, ..Headers::default() }))
            }
        }
    }

    /// Both ports of a header that has them; `None` if either is 0.
    fn ports(l4: &[u8]) -> Option<u32> {
        let ports = be32(l4.first_chunk::<4>()?, 0);
        (ports as u16 != 0 && ports >> 16 != 0).then_some(ports)
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
        let ports = Self::ports(l4)?;
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
