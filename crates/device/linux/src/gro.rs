//! Software GRO on transmit: joins consecutive TCP segments of one connection in a frame into one
//! GSO packet.
//!
//! Each packet passed to the kernel costs the whole path through it. A GSO packet of forty segments
//! costs it once, and is cut into the same segments at the device, or not at all if its receiver
//! takes it whole. Segments are therefore joined only if the kernel reproduces them bit by bit:
//! headers may differ only in lengths, sequence numbers, consecutive IPv4 identifications and a
//! final PSH, and checksums must be valid.

use crate::{Framing, VnetHdr};
use thalweg_buffer::{Flags, Frame};
use thalweg_wire::checksum::{self, Checksum};
use thalweg_wire::ethernet::ethertype;
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv4::Ipv4View;
use thalweg_wire::ipv6::{self, Ipv6View};
use thalweg_wire::tcp::{self, TcpView, flag};
use thalweg_wire::{gso, ipv4, vlan};

/// Maximum number of segments: with their headers, fewer than the pieces that the kernel gathers.
const MAX_SEGMENTS: usize = 60;
/// Minimum number of segments worth a system call of their own.
const MIN_SEGMENTS: usize = 3;
/// Maximum value of IP's length field.
const MAX_IP_LEN: usize = 0xffff;

/// A candidate segment.
#[derive(Clone, Copy)]
struct Segment<'a> {
    bytes: &'a [u8],
    l3: usize,
    l4: usize,
    payload: usize,
    ip: Ip<'a>,
    tcp: TcpView<'a>,
}

#[derive(Clone, Copy)]
enum Ip<'a> {
    V4(Ipv4View<'a>),
    V6(Ipv6View<'a>),
}

impl<'a> Segment<'a> {
    /// Parses a packet; `None` unless it is a plain TCP segment with data, in one buffer.
    fn read(framing: Framing, frame: &'a Frame, i: usize) -> Option<Segment<'a>> {
        let i = i as u8;
        let unusual = Flags::OFFLOAD.union(Flags::CHAINED);
        if frame.flags().intersects(unusual) && frame.meta(i).flags().intersects(unusual) {
            return None;
        }
        Segment::parse(framing, frame.data(i))
    }

    fn parse(framing: Framing, bytes: &'a [u8]) -> Option<Segment<'a>> {
        let (l3, v6) = match framing {
            Framing::Ip => (0, bytes.first()? >> 4 == 6),
            Framing::Ethernet => {
                let l2 = vlan::layer2(bytes).ok()?;
                match l2.ethertype {
                    ethertype::IPV4 => (l2.payload_offset, false),
                    ethertype::IPV6 => (l2.payload_offset, true),
                    _ => return None,
                }
            }
        };
        let packet = &bytes[l3..];
        let (ip, header, protocol, len) = if v6 {
            let ip = Ipv6View::parse(packet).ok()?;
            let len = ipv6::HEADER_LEN + usize::from(ip.payload_len());
            (Ip::V6(ip), ipv6::HEADER_LEN, ip.next_header(), len)
        } else {
            let ip = Ipv4View::parse(packet).ok()?;
            if ip.is_fragment() || ip.header_len() != ipv4::HEADER_LEN || !ip.checksum_ok() {
                return None;
            }
            (Ip::V4(ip), ipv4::HEADER_LEN, ip.protocol(), usize::from(ip.total_len()))
        };
        if protocol != protocol::TCP || len != packet.len() {
            return None;
        }
        let tcp = TcpView::parse(&packet[header..]).ok()?;
        let l4 = l3 + header;
        let payload = l4 + tcp.header_len();
        let plain = tcp.flags() & !flag::PSH == flag::ACK && tcp.urgent() == 0;
        let fits = payload < bytes.len() && payload <= gso::MAX_HEADERS;
        (plain && fits).then_some(Segment { bytes, l3, l4, payload, ip, tcp })
    }

    fn data(&self) -> &'a [u8] {
        &self.bytes[self.payload..]
    }

    /// Pseudo-header checksum of a segment of `len` bytes, header included.
    fn pseudo(&self, len: usize) -> Checksum {
        match self.ip {
            Ip::V4(ip) => checksum::pseudo_v4(ip.src(), ip.dst(), protocol::TCP, len as u32),
            Ip::V6(ip) => checksum::pseudo_v6(&ip.src(), &ip.dst(), protocol::TCP, len as u32),
        }
    }

    fn is_intact(&self) -> bool {
        self.tcp.checksum_ok(self.pseudo(self.bytes.len() - self.l4))
    }

    /// Returns whether this segment directly follows `last` in the GSO packet that starts with
    /// `first`.
    fn follows(&self, first: &Segment<'_>, last: &Segment<'_>) -> bool {
        let (a, b) = (first, self);
        let same_link = (a.l3, a.l4, a.payload) == (b.l3, b.l4, b.payload)
            && a.bytes[..a.l3] == b.bytes[..b.l3];
        let same_ip = match (a.ip, last.ip, b.ip) {
            (Ip::V4(a), Ip::V4(last), Ip::V4(b)) => {
                // All but length, identification and checksum.
                let (x, y) = (a.header(), b.header());
                x[..2] == y[..2]
                    && x[6..10] == y[6..10]
                    && x[12..] == y[12..]
                    && b.id() == last.id().wrapping_add(1)
            }
            // All but the length.
            (Ip::V6(_), _, Ip::V6(_)) => {
                let (x, y) = (&a.bytes[a.l3..a.l4], &b.bytes[b.l3..b.l4]);
                x[..4] == y[..4] && x[6..] == y[6..]
            }
            _ => false,
        };
        let next = last.tcp.seq().wrapping_add(last.data().len() as u32);
        // Ports; acknowledgement; window; options.
        let same_tcp = {
            let (x, y) = (&a.bytes[a.l4..a.payload], &b.bytes[b.l4..b.payload]);
            x[..4] == y[..4] && x[8..13] == y[8..13] && x[14..16] == y[14..16] && x[20..] == y[20..]
        };
        same_link && same_ip && same_tcp && b.tcp.seq() == next && b.data().len() <= a.data().len()
    }

    /// Returns whether no segment may follow: this one is shorter than the first, or has PSH set.
    fn is_last(&self, first: &Segment<'_>) -> bool {
        self.data().len() < first.data().len() || self.tcp.flags() & flag::PSH != 0
    }
}

/// A GSO packet joined from several segments.
pub struct GsoPacket {
    headers: [u8; gso::MAX_HEADERS],
    payload: usize,
    /// Number of segments.
    pub count: usize,
    /// Length of the first packet in bytes, the longest.
    pub first_len: usize,
    /// Offload header for the kernel.
    pub vnet: VnetHdr,
}

impl GsoPacket {
    /// Joins the packets from `at` on, if enough of them belong together.
    #[inline]
    pub fn coalesce(framing: Framing, frame: &Frame, at: usize) -> Option<GsoPacket> {
        if frame.len() - at < MIN_SEGMENTS {
            return None;
        }
        let read = |i| Segment::read(framing, frame, i);
        GsoPacket::from_segments(|i| read(at + i), (frame.len() - at).min(MAX_SEGMENTS))
    }

    fn from_segments<'a>(
        read: impl Fn(usize) -> Option<Segment<'a>>,
        max: usize,
    ) -> Option<GsoPacket> {
        let first = read(0)?;
        let second = read(1)?;
        if first.is_last(&first) || !second.follows(&first, &first) || !first.is_intact() {
            return None;
        }
        let (mut last, mut count, mut data) = (first, 1, first.data().len());
        while count < max && (count == 1 || !last.is_last(&first)) {
            let Some(next) = read(count) else { break };
            let whole = first.payload - first.l3 + data + next.data().len();
            if whole > MAX_IP_LEN || !next.follows(&first, &last) || !next.is_intact() {
                break;
            }
            (last, count, data) = (next, count + 1, data + next.data().len());
        }
        (count >= MIN_SEGMENTS).then(|| GsoPacket::new(&first, &last, count, data))
    }

    fn new(first: &Segment<'_>, last: &Segment<'_>, count: usize, data: usize) -> GsoPacket {
        let Segment { l3, l4, payload, .. } = *first;
        let mut headers = [0; gso::MAX_HEADERS];
        headers[..payload].copy_from_slice(&first.bytes[..payload]);
        let len = payload - l3 + data;
        let mut put = |at: usize, value: u16| {
            headers[at..at + 2].copy_from_slice(&value.to_be_bytes());
        };
        // The kernel completes the checksum, starting from the pseudo-header's.
        put(l4 + tcp::CHECKSUM_OFFSET, first.pseudo(len - (l4 - l3)).fold());
        let gso_type = match first.ip {
            Ip::V4(ip) => {
                let sum = checksum::update_u16(ip.checksum(), ip.total_len(), len as u16);
                put(l3 + 2, len as u16);
                put(l3 + 10, sum);
                VnetHdr::GSO_TCPV4
            }
            Ip::V6(_) => {
                put(l3 + 4, (len - (l4 - l3)) as u16);
                VnetHdr::GSO_TCPV6
            }
        };
        headers[l4 + 13] |= last.tcp.flags() & flag::PSH;
        let vnet = VnetHdr {
            flags: VnetHdr::NEEDS_CSUM,
            gso_type,
            hdr_len: payload as u16,
            gso_size: first.data().len() as u16,
            csum_start: l4 as u16,
            csum_offset: tcp::CHECKSUM_OFFSET as u16,
        };
        GsoPacket { headers, payload, count, first_len: first.bytes.len(), vnet }
    }

    /// Pieces of the GSO packet whose first packet is `at`.
    pub fn pieces<'a>(
        &'a self,
        frame: &'a Frame,
        at: usize,
    ) -> impl Iterator<Item = &'a [u8]> + Clone {
        let payloads = (at..at + self.count).map(|i| &frame.data(i as u8)[self.payload..]);
        std::iter::once(&self.headers[..self.payload]).chain(payloads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, Ipv6Addr};
    use thalweg_wire::ipv4::Ipv4Repr;

    const ETHERNET: usize = 14;

    fn tcp_at(v6: bool) -> usize {
        ETHERNET + if v6 { ipv6::HEADER_LEN } else { ipv4::HEADER_LEN }
    }

    fn pseudo(v6: bool, len: usize) -> Checksum {
        match v6 {
            true => {
                let (a, b) = (Ipv6Addr::new(1, 0, 0, 0, 0, 0, 0, 2), Ipv6Addr::LOCALHOST);
                checksum::pseudo_v6(&a, &b, protocol::TCP, len as u32)
            }
            false => {
                let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 1, 2));
                checksum::pseudo_v4(a, b, protocol::TCP, len as u32)
            }
        }
    }

    /// A frame with valid checksums.
    fn frame(v6: bool, seq: u32, flags: u8, options: &[u8], data: &[u8]) -> Vec<u8> {
        let len = tcp::HEADER_LEN + options.len() + data.len();
        let mut f = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        if v6 {
            f.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            f.extend((len as u16).to_be_bytes());
            f.extend([protocol::TCP, 64]);
            f.extend(Ipv6Addr::new(1, 0, 0, 0, 0, 0, 0, 2).octets());
            f.extend(Ipv6Addr::LOCALHOST.octets());
        } else {
            f.extend([8, 0]);
            let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 1, 2));
            let mut header = [0; ipv4::HEADER_LEN];
            Ipv4Repr::new(a, b, protocol::TCP, len as u16).emit(&mut header).unwrap();
            f.extend(header);
        }
        f.extend([0x30, 0x39, 0x14, 0x51]);
        f.extend(seq.to_be_bytes());
        f.extend([0, 0, 0, 7, ((20 + options.len()) << 2) as u8, flags, 2, 0, 0, 0, 0, 0]);
        f.extend(options);
        f.extend(data);
        correct(v6, &mut f);
        f
    }

    /// Sets both checksums.
    fn correct(v6: bool, f: &mut [u8]) {
        let l4 = tcp_at(v6);
        if !v6 {
            let _ = ipv4::fill_checksum(&mut f[ETHERNET..]);
        }
        let len = f.len() - l4;
        let _ = tcp::fill_checksum(pseudo(v6, len), &mut f[l4..]);
    }

    fn coalesce(frames: &[Vec<u8>]) -> Option<GsoPacket> {
        let read = |i: usize| Segment::parse(Framing::Ethernet, frames.get(i)?);
        GsoPacket::from_segments(read, frames.len().min(MAX_SEGMENTS))
    }

    fn cut(whole: &[u8], size: usize) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        gso::segment(whole, size, |headers, data| all.push([headers, data].concat())).unwrap();
        all
    }

    /// The GSO packet as sent, cut into segments as by a device.
    fn resegment(packet: &GsoPacket, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut whole = packet.headers[..packet.payload].to_vec();
        frames[..packet.count].iter().for_each(|f| whole.extend(&f[packet.payload..]));
        packet.vnet.check(whole.len()).unwrap();
        cut(&whole, usize::from(packet.vnet.gso_size))
    }

    proptest! {
        /// Joined packets are reproduced exactly, whatever the input.
        #[test]
        fn joined_segments_are_resegmented(
            v6: bool,
            pushed: bool,
            seq: u32,
            options in (0usize..=10).prop_map(|n| vec![1u8; 4 * n]),
            data in proptest::collection::vec(any::<u8>(), 300..3000),
            size in 100usize..700,
            changes in proptest::collection::vec((any::<u8>(), 0usize..110, any::<u8>(), any::<bool>()), 0..3),
        ) {
            let flags = flag::ACK | if pushed { flag::PSH } else { 0 };
            let mut frames = cut(&frame(v6, seq, flags, &options, &data), size);
            let untouched = frames.clone();
            let count = frames.len();
            for (which, at, bits, right) in changes {
                let f = &mut frames[usize::from(which) % count];
                if let Some(byte) = f.get_mut(at) {
                    *byte ^= bits;
                }
                if right {
                    correct(v6, f);
                }
            }
            let found = coalesce(&frames);
            if let Some(found) = &found {
                prop_assert!((MIN_SEGMENTS..=MAX_SEGMENTS).contains(&found.count));
                prop_assert_eq!(resegment(found, &frames), frames[..found.count].to_vec());
            }
            if frames == untouched && count >= MIN_SEGMENTS {
                prop_assert_eq!(found.map(|t| t.count), Some(count.min(MAX_SEGMENTS)));
            }
        }

        #[test]
        fn bytes_from_outside_are_read_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..120),
            ip: bool,
        ) {
            let framing = if ip { Framing::Ip } else { Framing::Ethernet };
            let _ = Segment::parse(framing, &bytes).map(|s| (s.is_intact(), s.data().len()));
        }
    }

    #[test]
    fn unrelated_segments_are_not_joined() {
        let f = |seq, flags| frame(false, seq, flags, &[], &[7; 100]);
        let three = |flags: [u8; 3]| {
            let mut frames: Vec<_> = (0..3).map(|i| f(100 * i as u32, flags[i])).collect();
            for (id, f) in (1u16..).zip(&mut frames) {
                f[18..20].copy_from_slice(&id.to_be_bytes());
                correct(false, f);
            }
            frames
        };
        let (ack, push) = (flag::ACK, flag::ACK | flag::PSH);
        assert_eq!(coalesce(&three([ack; 3])).map(|t| t.count), Some(3));
        assert_eq!(coalesce(&three([ack, ack, push])).map(|t| t.count), Some(3));
        for flags in [
            [ack, push, ack],
            [ack, ack, ack | flag::FIN],
            [ack, flag::SYN, ack],
            [ack, ack | flag::RST, ack],
            [ack, ack | flag::CWR, ack],
        ] {
            assert!(coalesce(&three(flags)).is_none(), "{flags:?}");
        }
        let gap: Vec<_> = [0, 100, 300].into_iter().map(|seq| f(seq, ack)).collect();
        assert!(coalesce(&gap).is_none());
        let mut damaged = three([ack; 3]);
        damaged[1][60] ^= 1;
        assert!(coalesce(&damaged).is_none());
    }
}
