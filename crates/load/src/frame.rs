//! Writes TCP segments as Ethernet frames, and reads them.

use std::hint::black_box;
use std::net::Ipv4Addr;

use thalweg_wire::MacAddr;
use thalweg_wire::bytes;
use thalweg_wire::checksum::{self, Checksum};
use thalweg_wire::ip::protocol::TCP;
use thalweg_wire::ipv4::Ipv4View;
use thalweg_wire::tcp::{CHECKSUM_OFFSET, HEADER_LEN, TcpView};

/// Length of all headers.
pub(crate) const HEADERS: usize = IP + 20 + HEADER_LEN;
const IP: usize = 14;
const TCP_AT: usize = IP + 20;
/// Minimum frame length, without FCS.
const SHORTEST: usize = 60;

/// An endpoint.
pub(crate) type End = (Ipv4Addr, u16);

/// The fields of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) src: End,
    pub(crate) dst: End,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    /// Length of the payload.
    pub(crate) data: u16,
}

/// The byte that fills payloads.
const FILLING: u8 = b'.';
static DATA: [u8; crate::MAX_DATA as usize] = [FILLING; crate::MAX_DATA as usize];

impl Segment {
    /// Length of the frame.
    pub(crate) fn frame_len(&self) -> usize {
        (HEADERS + usize::from(self.data)).max(SHORTEST)
    }

    /// Writes the frame; `frame` has [`frame_len`](Self::frame_len) bytes.
    pub(crate) fn write(&self, macs: (MacAddr, MacAddr), frame: &mut [u8]) {
        let Some((h, data)) = frame.split_first_chunk_mut::<HEADERS>() else { return };
        let length = usize::from(self.data).min(data.len()).min(DATA.len());
        let (data, padding) = data.split_at_mut(length);
        // black_box keeps the compiler from turning these into memset calls, which are slow on some
        // processors for a few bytes.
        if length > 0 {
            data.copy_from_slice(&black_box(&DATA)[..length]);
        }
        if let Some(all) = padding.first_chunk_mut::<{ SHORTEST - HEADERS }>() {
            *all = [0; SHORTEST - HEADERS];
        } else {
            padding.iter_mut().for_each(|byte| *byte = black_box(0));
        }
        h[..6].copy_from_slice(&macs.1.0);
        h[6..12].copy_from_slice(&macs.0.0);
        h[12..14].copy_from_slice(&[8, 0]);
        h[IP..IP + 10].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, TCP]);
        let total = (40 + length) as u16;
        // The sum over constant fields is precomputed, and the rest is added from registers.
        let halves = |word: u32| (word >> 16) + (word & 0xffff);
        let addresses = halves(self.src.0.to_bits()) + halves(self.dst.0.to_bits());
        let fixed = 0x4500 + 0x4000 + (64 << 8 | u32::from(TCP));
        let sum = !checksum::fold(fixed + u32::from(total) + addresses);
        h[IP + 2..IP + 4].copy_from_slice(&total.to_be_bytes());
        h[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
        h[IP + 12..IP + 16].copy_from_slice(&self.src.0.octets());
        h[IP + 16..IP + 20].copy_from_slice(&self.dst.0.octets());
        let tcp = &mut h[TCP_AT..];
        tcp[..2].copy_from_slice(&self.src.1.to_be_bytes());
        tcp[2..4].copy_from_slice(&self.dst.1.to_be_bytes());
        tcp[4..8].copy_from_slice(&self.seq.to_be_bytes());
        tcp[8..12].copy_from_slice(&self.ack.to_be_bytes());
        tcp[12..16].copy_from_slice(&[0x50, self.flags, 0xff, 0xff]);
        let ports = u32::from(self.src.1) + u32::from(self.dst.1);
        let filling = u32::from(FILLING);
        let pairs = (filling << 8 | filling) * (length as u32 / 2);
        let data = pairs + (filling << 8) * (length as u32 % 2);
        let fixed = u32::from(TCP) + 0x5000 + 0xffff;
        let lengths = u32::from(total) - 20 + u32::from(self.flags);
        let numbers = halves(self.seq) + halves(self.ack);
        let sum = !checksum::fold(fixed + addresses + ports + lengths + numbers + data);
        tcp[CHECKSUM_OFFSET..18].copy_from_slice(&sum.to_be_bytes());
        tcp[18..20].copy_from_slice(&[0; 2]);
    }

    /// Reads a frame; `None` if it does not contain a valid TCP segment over IPv4.
    #[inline]
    pub(crate) fn read(frame: &[u8]) -> Option<Segment> {
        match Segment::read_plain(frame) {
            Some(segment) => Some(segment),
            None => Segment::read_any(frame),
        }
    }

    /// Reads the most frequent kind of frame: valid, and without options.
    #[inline]
    fn read_plain(frame: &[u8]) -> Option<Segment> {
        let (h, rest) = frame.split_first_chunk::<HEADERS>()?;
        let (be16, be32) = (|at| bytes::be16(h, at), |at| bytes::be32(h, at));
        let plain = (be16(12) == 0x0800)
            & (h[IP] == 0x45)
            & (h[IP + 9] == TCP)
            & (be16(IP + 6) & 0x3fff == 0)
            & (h[TCP_AT + 12] >> 4 == 5);
        if !plain {
            return None;
        }
        let total = be16(IP + 2);
        let data = rest.get(..usize::from(total).checked_sub(40)?)?;
        let (ip, mut tcp) = checksum::ipv4_and_tcp(h[IP..].first_chunk()?);
        tcp.add_u16(u16::from(TCP) + (total - 20));
        if !data.is_empty() {
            tcp.add(data);
        }
        if !ip.is_valid() || !tcp.is_valid() {
            return None;
        }
        Some(Segment {
            src: (Ipv4Addr::from_bits(be32(IP + 12)), be16(TCP_AT)),
            dst: (Ipv4Addr::from_bits(be32(IP + 16)), be16(TCP_AT + 2)),
            seq: be32(TCP_AT + 4),
            ack: be32(TCP_AT + 8),
            flags: h[TCP_AT + 13],
            data: data.len() as u16,
        })
    }

    fn read_any(frame: &[u8]) -> Option<Segment> {
        let l3 = frame.get(IP..).filter(|_| frame[12..14] == [8, 0])?;
        let ip = Ipv4View::parse(l3).ok().filter(|ip| ip.protocol() == TCP)?;
        let tcp = TcpView::parse(ip.payload()).ok()?;
        let pseudo: Checksum = ip.pseudo_header();
        if ip.is_fragment() || !ip.checksum_ok() || !tcp.checksum_ok(pseudo) {
            return None;
        }
        Some(Segment {
            src: (ip.src(), tcp.src_port()),
            dst: (ip.dst(), tcp.dst_port()),
            seq: tcp.seq(),
            ack: tcp.ack(),
            flags: tcp.flags(),
            data: tcp.payload().len() as u16,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            ips: [u32; 2], ports: [u16; 2], seq: u32, ack: u32, flags: u8, data in 0u16..1460,
            flip: prop::sample::Index, with in 1u8..,
        ) {
            let [src, dst] = ips.map(Ipv4Addr::from_bits);
            let segment =
                Segment { src: (src, ports[0]), dst: (dst, ports[1]), seq, ack, flags, data };
            let mut frame = vec![0xaa; segment.frame_len()];
            segment.write((MacAddr([1; 6]), MacAddr([2; 6])), &mut frame);
            prop_assert_eq!(Segment::read(&frame), Some(segment));
            let at = flip.index(frame.len());
            frame[at] ^= with;
            if let Some(read) = Segment::read(&frame) {
                // Checksums do not cover Ethernet addresses and padding, and a checksum of zero has
                // two representations.
                let sum = at == 24 || at == 25 || at == 50 || at == 51;
                let covered = (14..54 + usize::from(data)).contains(&at);
                prop_assert!(!covered || sum, "{at}");
                prop_assert_eq!(read, segment);
            }
        }

        /// The fast reader agrees with the general one on everything it accepts.
        #[test]
        fn fast_reader_agrees_with_the_general_one(
            mut bytes in prop::collection::vec(any::<u8>(), 54..80), ports: [u16; 2], data in 0u16..20,
            flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        ) {
            let ends = [(Ipv4Addr::LOCALHOST, ports[0]), (Ipv4Addr::BROADCAST, ports[1])];
            let [src, dst] = ends;
            let segment = Segment { src, dst, seq: 1, ack: 2, flags: 16, data };
            bytes.resize(segment.frame_len(), 0);
            segment.write((MacAddr([1; 6]), MacAddr([2; 6])), &mut bytes);
            for (at, with) in flips {
                let at = at.index(bytes.len());
                bytes[at] = with;
            }
            if let Some(short) = Segment::read_plain(&bytes) {
                prop_assert_eq!(Segment::read_any(&bytes), Some(short));
            }
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Segment::read(&bytes);
        }
    }
}
