//! Segmentation of GSO packets: TCP segmentation (TSO) and its UDP sibling (USO).
//!
//! A sender that offloads to its network card hands over one packet with up to 64 KiB of payload
//! and the segment size. [`Plan`] holds what all segments share; each segment is a patched copy of
//! the headers and a range of the payload:
//!
//! - the IP total length (payload length in IPv6), and an IPv4 identification that counts up;
//! - TCP: the sequence number; FIN and PSH on the last segment only, CWR on the first only (RFC
//!   3168 section 6.1.2);
//! - UDP: the length; each segment is a datagram of its own;
//! - complete checksums.

use core::net::Ipv4Addr;
use core::ops::Range;

use crate::checksum::{self, Checksum};
use crate::ethernet::ethertype;
use crate::ip::protocol;
use crate::ipv4::Ipv4View;
use crate::ipv6::Ipv6View;
use crate::tcp::{self, TcpView};
use crate::udp::{self, UdpView};
use crate::{Result, WireError, ipv4, vlan};

/// Maximum length of the headers that are repeated: Ethernet with tags, IP and transport with
/// options.
pub const MAX_HEADERS: usize = 256;
/// Maximum number of segments of a GSO packet. One packet costs no more than this number, whatever
/// a sender writes into its header. 64 KiB in segments of 36 bytes, the least that Linux sends by
/// TCP, are 1,821.
pub const MAX_SEGMENTS: usize = 2048;
const WHAT: &str = "segmentation";

/// Segmentation of a GSO packet.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    l3: usize,
    l4: usize,
    header_len: usize,
    payload_len: usize,
    gso_size: usize,
    ip: Ip,
    transport: Transport,
    /// The sum of the pseudo-header without its length.
    pseudo: Checksum,
}

#[derive(Clone, Copy, Debug)]
enum Ip {
    V4 { id: u16 },
    V6,
}

#[derive(Clone, Copy, Debug)]
enum Transport {
    Tcp { seq: u32, flags: u8 },
    Udp,
}

/// A segment: its range in the GSO packet's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Index, from 0.
    pub index: usize,
    /// Start of its payload, from the start of the GSO packet's payload.
    pub start: usize,
    /// Bytes of payload.
    pub len: usize,
}

impl Segment {
    /// The range of its payload, from the start of the GSO packet's payload.
    pub const fn range(&self) -> Range<usize> {
        self.start..self.start + self.len
    }
}

impl Plan {
    /// Parses the headers of an Ethernet GSO packet, tags and MPLS labels included.
    ///
    /// `head` holds all headers, `frame_len` counts the whole frame, and `gso_size` is the payload
    /// of each segment except the last, in bytes.
    ///
    /// # Errors
    /// See [`at`](Self::at), and `BadField` for a frame that is not IP.
    pub fn new(head: &[u8], frame_len: usize, gso_size: usize) -> Result<Self> {
        let l2 = vlan::layer2(head)?;
        match l2.ethertype {
            ethertype::IPV4 | ethertype::IPV6 => {
                Self::at(head, l2.payload_offset, frame_len, gso_size)
            }
            ethertype::MPLS => Self::at(head, vlan::network(head).0, frame_len, gso_size),
            other => {
                Err(WireError::BadField { what: "segmentation ethertype", found: other.into() })
            }
        }
    }

    /// Like [`new`](Self::new), for a frame whose IP header starts at `l3`.
    ///
    /// # Errors
    /// `BadField` for a `gso_size` of zero or of more than [`MAX_SEGMENTS`] segments, a fragment or
    /// a transport other than TCP and UDP;
    /// `BadHeaderLength` for headers above [`MAX_HEADERS`]; `BadTotalLength` for a segment that
    /// would exceed what IP can carry; and errors of the headers themselves.
    pub fn at(head: &[u8], l3: usize, frame_len: usize, gso_size: usize) -> Result<Self> {
        if gso_size == 0 {
            return Err(WireError::BadField { what: "segmentation size", found: 0 });
        }
        let truncated = WireError::Truncated { what: WHAT, need: l3, have: head.len() };
        let packet = head.get(l3..).ok_or(truncated)?;
        let found = parse_ip(packet)?;
        let l4 = l3 + found.header_len;
        let (transport, l4_len) = match found.protocol {
            protocol::TCP => {
                let tcp = TcpView::parse(found.payload)?;
                (Transport::Tcp { seq: tcp.seq(), flags: tcp.flags() }, tcp.header_len())
            }
            protocol::UDP => {
                UdpView::parse_prefix(found.payload)?;
                (Transport::Udp, udp::HEADER_LEN)
            }
            other => {
                return Err(WireError::BadField {
                    what: "segmentation transport",
                    found: other.into(),
                });
            }
        };
        let header_len = l4 + l4_len;
        if header_len > MAX_HEADERS {
            return Err(WireError::BadHeaderLength { what: WHAT, length: header_len });
        }
        // The IP length field excludes trailing bytes, unless it is zero (BIG TCP).
        let frame_len = match found.packet_len {
            0 => frame_len,
            n => frame_len.min(l3 + n),
        };
        let Some(payload_len) = frame_len.checked_sub(header_len) else {
            return Err(WireError::Truncated { what: WHAT, need: header_len, have: frame_len });
        };
        if payload_len.div_ceil(gso_size) > MAX_SEGMENTS {
            let found = gso_size as u32;
            return Err(WireError::BadField { what: "segmentation size", found });
        }
        let length = header_len - l3 + gso_size.min(payload_len);
        if length > 0xffff {
            return Err(WireError::BadTotalLength { what: WHAT, length, have: 0xffff });
        }
        let (ip, pseudo) = (found.ip, found.pseudo);
        Ok(Self { l3, l4, header_len, payload_len, gso_size, ip, transport, pseudo })
    }

    /// Bytes of headers before each segment's payload.
    #[inline]
    pub fn header_len(&self) -> usize {
        self.header_len
    }

    /// Bytes of payload in the GSO packet.
    #[inline]
    pub fn payload_len(&self) -> usize {
        self.payload_len
    }

    /// The number of segments; at least one, even without payload.
    #[inline]
    pub fn segment_count(&self) -> usize {
        self.payload_len.div_ceil(self.gso_size).max(1)
    }

    /// The segment with that index, if there is one.
    #[inline]
    pub fn segment(&self, index: usize) -> Option<Segment> {
        let start = index.checked_mul(self.gso_size)?;
        let len = self.gso_size.min(self.payload_len.checked_sub(start)?);
        (len > 0 || index == 0).then_some(Segment { index, start, len })
    }

    /// The segments, in order.
    pub fn segments(&self) -> impl Iterator<Item = Segment> + use<> {
        let plan = *self;
        (0..plan.segment_count()).filter_map(move |index| plan.segment(index))
    }

    /// Writes one segment's headers to the start of `out`.
    ///
    /// `head` is the GSO packet that the plan was made from, and `payload` the sum of the segment's
    /// payload, in any number of pieces.
    ///
    /// # Errors
    /// `NoRoom` or `Truncated` below [`header_len`](Self::header_len) bytes in `out` or `head`.
    pub fn write_header(
        &self,
        head: &[u8],
        segment: Segment,
        payload: Checksum,
        out: &mut [u8],
    ) -> Result<()> {
        let need = self.header_len;
        let from = head.get(..need);
        let from = from.ok_or(WireError::Truncated { what: WHAT, need, have: head.len() })?;
        let have = out.len();
        let h = out.get_mut(..need).ok_or(WireError::NoRoom { what: WHAT, need, have })?;
        h.copy_from_slice(from);
        self.patch_ip(&mut h[self.l3..], segment)?;
        self.patch_transport(&mut h[self.l4..], segment, payload);
        Ok(())
    }

    fn patch_ip(&self, h: &mut [u8], segment: Segment) -> Result<()> {
        let length = self.header_len - self.l3 + segment.len;
        match self.ip {
            Ip::V4 { id } => {
                h[2..4].copy_from_slice(&(length as u16).to_be_bytes());
                let id = id.wrapping_add(segment.index as u16);
                h[4..6].copy_from_slice(&id.to_be_bytes());
                ipv4::fill_checksum(h)?;
            }
            Ip::V6 => h[4..6].copy_from_slice(&(length as u16 - 40).to_be_bytes()),
        }
        Ok(())
    }

    fn patch_transport(&self, h: &mut [u8], segment: Segment, payload: Checksum) {
        let length = h.len() + segment.len;
        let at = match self.transport {
            Transport::Tcp { seq, flags } => {
                let seq = seq.wrapping_add(segment.start as u32);
                h[tcp::SEQ..tcp::SEQ + 4].copy_from_slice(&seq.to_be_bytes());
                let mut flags = flags;
                if segment.start + segment.len < self.payload_len {
                    flags &= !(tcp::flag::FIN | tcp::flag::PSH);
                }
                if segment.index > 0 {
                    flags &= !tcp::flag::CWR;
                }
                h[tcp::FLAGS] = flags;
                tcp::CHECKSUM_OFFSET
            }
            Transport::Udp => {
                h[4..6].copy_from_slice(&(length as u16).to_be_bytes());
                udp::CHECKSUM_OFFSET
            }
        };
        h[at..at + 2].fill(0);
        let mut sum = self.pseudo;
        sum.add_u32(length as u32);
        sum.add(h); // headers have an even length, so that the payload's sum fits on
        sum.add_u16(payload.fold());
        let value = match self.transport {
            Transport::Tcp { .. } => sum.finish(),
            Transport::Udp => sum.finish_udp(),
        };
        h[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }
}

struct FoundIp<'a> {
    ip: Ip,
    protocol: u8,
    header_len: usize,
    /// The value of the length field, header included; 0 if it is zero.
    packet_len: usize,
    payload: &'a [u8],
    pseudo: Checksum,
}

fn parse_ip(packet: &[u8]) -> Result<FoundIp<'_>> {
    if packet.first().is_some_and(|b| b >> 4 == 6) {
        return parse_ipv6(packet);
    }
    // A GSO packet may leave the length zero, so it is not checked.
    let header_len = usize::from(packet.first().copied().unwrap_or(0) & 0xf) * 4;
    let h = packet.first_chunk::<{ ipv4::HEADER_LEN }>();
    let have = packet.len();
    let h = h.ok_or(WireError::Truncated { what: "IPv4 header", need: 20, have })?;
    if h[0] >> 4 != 4 {
        let found = h[0] >> 4;
        return Err(WireError::BadVersion { what: "IPv4 header", found, want: 4 });
    }
    let packet_len = usize::from(u16::from_be_bytes([h[2], h[3]]));
    if packet_len != 0 {
        Ipv4View::parse_prefix(packet)?;
    }
    let bad_length = WireError::BadHeaderLength { what: "IPv4 header", length: header_len };
    let payload = packet.get(header_len..).filter(|_| header_len >= ipv4::HEADER_LEN);
    let fragment = u16::from_be_bytes([h[6], h[7]]);
    if fragment & (ipv4::flag::MORE_FRAGMENTS | ipv4::flag::OFFSET_MASK) != 0 {
        let found = fragment.into();
        return Err(WireError::BadField { what: "segmentation of a fragment", found });
    }
    let src = Ipv4Addr::new(h[12], h[13], h[14], h[15]);
    let dst = Ipv4Addr::new(h[16], h[17], h[18], h[19]);
    Ok(FoundIp {
        ip: Ip::V4 { id: u16::from_be_bytes([h[4], h[5]]) },
        protocol: h[9],
        header_len,
        packet_len,
        payload: payload.ok_or(bad_length)?,
        pseudo: checksum::pseudo_v4(src, dst, h[9], 0),
    })
}

fn parse_ipv6(packet: &[u8]) -> Result<FoundIp<'_>> {
    let ip = Ipv6View::parse_prefix(packet)?;
    let payload_len = usize::from(ip.payload_len());
    let t = match payload_len {
        // A jumbogram's length is in a hop-by-hop option, which segments must not repeat.
        0 if ip.next_header() == protocol::HOP_BY_HOP => {
            return Err(WireError::BadField { what: "segmentation of a jumbogram", found: 0 });
        }
        0 => crate::ipv6::walk(ip.next_header(), &packet[crate::ipv6::HEADER_LEN..])?,
        _ => ip.transport()?,
    };
    if t.fragment.is_some() {
        let found = protocol::FRAGMENT.into();
        return Err(WireError::BadField { what: "segmentation of a fragment", found });
    }
    Ok(FoundIp {
        ip: Ip::V6,
        protocol: t.protocol,
        header_len: crate::ipv6::HEADER_LEN + t.offset,
        packet_len: if payload_len == 0 { 0 } else { crate::ipv6::HEADER_LEN + payload_len },
        payload: t.payload,
        pseudo: ip.pseudo_header(t.protocol, 0),
    })
}

/// Segments a GSO packet in one piece: calls `emit` with each segment's headers and payload, in
/// order. Returns the number of segments.
///
/// # Errors
/// See [`Plan::new`]; `emit` is then not called.
pub fn segment(frame: &[u8], gso_size: usize, emit: impl FnMut(&[u8], &[u8])) -> Result<usize> {
    segment_by(&Plan::new(frame, frame.len(), gso_size)?, frame, emit)
}

/// Like [`segment`], by a plan of that packet.
///
/// # Errors
/// See [`Plan::write_header`].
pub fn segment_by(plan: &Plan, frame: &[u8], mut emit: impl FnMut(&[u8], &[u8])) -> Result<usize> {
    let mut headers = [0; MAX_HEADERS];
    let headers = &mut headers[..plan.header_len()];
    let payload = &frame[plan.header_len()..];
    for segment in plan.segments() {
        let piece = &payload[segment.range()];
        let mut sum = Checksum::new();
        sum.add(piece);
        plan.write_header(frame, segment, sum, headers)?;
        emit(headers, piece);
    }
    Ok(plan.segment_count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Packet;
    use crate::ethernet::MacAddr;
    use crate::flow::five_tuple;
    use crate::tcp::flag;
    use proptest::prelude::*;
    use std::vec::Vec;

    const A: MacAddr = MacAddr::new(2, 0, 0, 0, 0, 1);
    const B: MacAddr = MacAddr::new(2, 0, 0, 0, 0, 2);

    fn super_frame(v6: bool, tcp: bool, tagged: bool, options: usize, payload: &[u8]) -> Vec<u8> {
        let p = Packet::new().ether(A, B);
        let p = if tagged { p.vlan(10) } else { p };
        let p = match v6 {
            true => p.ipv6("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap()),
            false => p.ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).id(0xfffe),
        };
        let all = flag::FIN | flag::PSH | flag::ACK | flag::CWR;
        let p = match tcp {
            true => p.tcp(1, 2).seq(0xffff_ff00).flags(all).tcp_options(&[1; 40][..options * 4]),
            false => p.udp(1, 2),
        };
        p.payload(payload).build()
    }

    fn cut(frame: &[u8], size: usize) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        let n = segment(frame, size, |h, p| out.push([h, p].concat())).unwrap();
        assert_eq!(n, out.len());
        out
    }

    /// Checks every length and checksum of a packet and returns its transport's payload.
    fn verified(frame: &[u8]) -> Vec<u8> {
        let l2 = vlan::layer2(frame).unwrap();
        let (pseudo, l4) = match l2.ethertype {
            ethertype::IPV4 => {
                let ip = ipv4::check(l2.payload).unwrap();
                assert_eq!(usize::from(ip.total_len()), l2.payload.len());
                (ip.pseudo_header(), ip.payload())
            }
            _ => {
                let ip = Ipv6View::parse(l2.payload).unwrap();
                assert_eq!(usize::from(ip.payload_len()) + 40, l2.payload.len());
                let length = ip.payload().len() as u32;
                (ip.pseudo_header(ip.next_header(), length), ip.payload())
            }
        };
        match five_tuple(l2.payload).unwrap().protocol {
            protocol::TCP => {
                let tcp = TcpView::parse(l4).unwrap();
                assert!(tcp.checksum_ok(pseudo));
                tcp.payload().to_vec()
            }
            _ => {
                let udp = UdpView::parse(l4).unwrap();
                assert!(udp.checksum() != 0 && udp.checksum_ok(pseudo));
                assert_eq!(usize::from(udp.length()), l4.len());
                udp.payload().to_vec()
            }
        }
    }

    #[test]
    fn labels_are_repeated() {
        for (v6, tagged) in [(false, false), (false, true), (true, false), (true, true)] {
            let plain = super_frame(v6, true, tagged, 3, &[7; 5000]);
            let at = if tagged { 16 } else { 12 };
            let stack = [0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 9];
            let labelled = [&plain[..at], &stack, &plain[at + 2..]].concat();
            let (with, without) = (cut(&labelled, 1200), cut(&plain, 1200));
            assert_eq!((with.len(), without.len()), (5, 5));
            for (with, without) in with.iter().zip(without) {
                let want = [&without[..at], &stack, &without[at + 2..]].concat();
                assert_eq!(*with, want);
                verified(&without);
            }
        }
    }

    #[test]
    fn more_segments_than_a_packet_may_have_are_refused() {
        let cut =
            |size| segment(&super_frame(false, true, false, 0, &[7; 60_000]), size, |_, _| {});
        assert!(cut(1).is_err() && cut(29).is_err());
        assert_eq!(cut(30), Ok(2000));
    }

    #[test]
    fn flags_numbers_and_identifications() {
        let frame = super_frame(false, true, true, 3, &[7; 1000]);
        let cut = cut(&frame, 400);
        let fields: Vec<_> = cut
            .iter()
            .map(|f| {
                let ip = ipv4::check(&f[18..]).unwrap();
                let tcp = TcpView::parse(ip.payload()).unwrap();
                (ip.id(), tcp.seq(), tcp.flags(), tcp.payload().len())
            })
            .collect();
        let want = [
            (0xfffe, 0xffff_ff00, flag::ACK | flag::CWR, 400),
            (0xffff, 0x0000_0090, flag::ACK, 400),
            (0x0000, 0x0000_0220, flag::ACK | flag::FIN | flag::PSH, 200),
        ];
        assert_eq!(fields, want);
    }

    #[test]
    fn invalid_gso_packets_are_refused() {
        let frame = super_frame(false, true, false, 0, &[7; 100]);
        let fails = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut f = frame.clone();
            change(&mut f);
            segment(&f, 50, |_, _| panic!("emitted")).unwrap_err();
        };
        fails(&|f| f.truncate(33));
        fails(&|f| f.truncate(53));
        fails(&|f| f[12] = 9);
        fails(&|f| f[14] = 0x55);
        fails(&|f| f[14] = 0x42);
        fails(&|f| f[20] = 0x20);
        fails(&|f| f[23] = 1);
        fails(&|f| f[46] = 0x40);
        assert!(segment(&frame, 0, |_, _| ()).is_err());
    }

    #[test]
    fn big_tcp_leaves_the_length_zero() {
        let mut frame = super_frame(false, true, false, 0, &[7; 60_000]);
        frame.extend([7; 20_000]);
        frame[16..18].fill(0);
        let back: Vec<u8> = cut(&frame, 1448).iter().flat_map(|f| verified(f)).collect();
        assert_eq!(back, [7; 80_000]);
        let mut frame = super_frame(true, true, false, 0, &[7; 3000]);
        frame[18..20].fill(0);
        let back: Vec<u8> = cut(&frame, 1448).iter().flat_map(|f| verified(f)).collect();
        assert_eq!(back, [7; 3000]);
        assert!(segment(&frame, 70_000, |_, _| ()).is_ok());
    }

    proptest! {
        #[test]
        fn segments_add_up_and_verify(
            v6: bool, tcp: bool, tagged: bool, options in 0usize..10, size in 1usize..2000,
            mut payload in proptest::collection::vec(any::<u8>(), 0..5000), padding in 0usize..4,
        ) {
            payload.truncate(size * 40);
            let mut frame = super_frame(v6, tcp, tagged, options, &payload);
            frame.extend([0xee; 4][..padding].iter());
            let cut = cut(&frame, size);
            prop_assert_eq!(cut.len(), payload.len().div_ceil(size).max(1));
            let back: Vec<u8> = cut.iter().flat_map(|f| verified(f)).collect();
            prop_assert_eq!(back, payload);
        }

        #[test]
        fn a_segment_is_found_by_its_index(size in 1usize..3000, length in 0usize..65_000) {
            let frame = super_frame(true, true, false, 0, &[]);
            let frame_len = frame.len() + length;
            let frame = &mut frame[..].to_vec();
            frame[18..20].fill(0);
            let Ok(plan) = Plan::new(frame, frame_len, size) else {
                prop_assert!(length.div_ceil(size) > MAX_SEGMENTS);
                return Ok(());
            };
            let count = plan.segment_count();
            prop_assert!(count <= MAX_SEGMENTS);
            prop_assert_eq!(plan.segments().count(), count);
            prop_assert!(plan.segments().all(|s| plan.segment(s.index) == Some(s)));
            prop_assert_eq!(plan.segment(count), None);
            prop_assert_eq!(plan.segments().map(|s| s.len).sum::<usize>(), length);
        }

        #[test]
        fn any_bytes_are_cut_or_refused(
            noise in proptest::collection::vec((0usize..80, any::<u8>()), 0..6),
            v6: bool, tcp: bool, len in 0usize..200, size in 0usize..300,
        ) {
            let mut frame = super_frame(v6, tcp, false, 2, &[7; 100]);
            for (at, byte) in noise {
                frame[at] = byte;
            }
            frame.truncate(len);
            let _ = segment(&frame, size, |h, p| assert!(h.len() + p.len() <= len));
        }
    }
}
