//! GSO packets as the segments that they are on the wire.

use crate::ring::MAX_HEADER;
use thalweg_buffer::Frame;
use thalweg_device::link_header::Link;
use thalweg_device::offload::{copy, plan};
use thalweg_wire::checksum::Checksum;
use thalweg_wire::gso::{MAX_HEADERS, Plan};

/// Samples taken of one GSO packet at most; further ones are lost, and counted as such. At 1:1
/// these are all segments of 64 KiB in packets of 512 bytes.
pub(crate) const MAX_SAMPLES: u64 = 128;
/// Samples taken of the GSO packets of one frame at most, beyond the first of each.
pub(crate) const MAX_FRAME_SAMPLES: u64 = 1024;

/// A packet of a frame as on the wire.
pub(crate) struct Wire {
    plan: Option<Plan>,
    /// Bytes before its data that belong to it.
    before: usize,
    link: Link,
}

impl Wire {
    /// Describes packet `i`, which begins `before` bytes before its data.
    pub(crate) fn of(frame: &Frame, i: u8, before: usize, link: Link) -> Wire {
        Wire { plan: plan(frame, i, before, link), before, link }
    }

    /// True if it begins with its IP header.
    pub(crate) fn is_bare(&self) -> bool {
        self.link == Link::Ip
    }

    /// Returns the number of packets that it is.
    pub(crate) fn packets(&self) -> u64 {
        self.plan.as_ref().map_or(1, |plan| plan.segment_count() as u64)
    }

    /// Length and first bytes of the packet number `at` of these.
    pub(crate) fn packet<'b>(
        &self,
        frame: &Frame,
        i: u8,
        at: u64,
        limit: usize,
        buf: &'b mut [u8; MAX_HEADER],
    ) -> (u32, &'b [u8]) {
        let limit = limit.min(MAX_HEADER);
        let copy = |skip, to: &mut [u8]| copy(frame, i, self.before, skip, to);
        let segment = self.plan.as_ref().and_then(|plan| {
            let segment = plan.segment(at as usize)?;
            let mut head = [0; MAX_HEADERS];
            let n = copy(0, &mut head);
            let mut out = [0; MAX_HEADERS];
            // Checksums of the sample's own headers are left as if there were no payload.
            plan.write_header(&head[..n], segment, Checksum::new(), &mut out).ok()?;
            Some((plan.header_len(), segment, out))
        });
        let Some((header_len, segment, out)) = segment else {
            let n = copy(0, &mut buf[..limit]);
            return ((self.before + frame.total_len(i)) as u32, &buf[..n]);
        };
        let first = header_len.min(limit);
        buf[..first].copy_from_slice(&out[..first]);
        let room = segment.len.min(limit - first);
        let more = copy(header_len + segment.start, &mut buf[first..first + room]);
        ((header_len + segment.len) as u32, &buf[..first + more])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_buffer::{Cache, Flags, GsoKind, Pool, PoolConfig};

    /// A TCP GSO packet of three segments of 1000 bytes and one of 10.
    #[test]
    fn a_super_packet_is_its_segments() {
        let pool = Pool::new(&PoolConfig { buffers: 64, data_size: 256, page_size: None }).unwrap();
        let mut cache = Cache::new(pool);
        let mut bytes = vec![2; 12];
        bytes.extend([0x08, 0, 0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, 6, 0, 0]);
        bytes.extend([192, 0, 2, 1, 198, 51, 100, 1]);
        bytes.extend([0, 80, 0, 81, 0, 0, 0, 100, 0, 0, 0, 0, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
        let headers = bytes.len();
        bytes.extend((0..3010).map(|i| (i / 10) as u8));
        let mut packet = cache.alloc().unwrap();
        assert!(packet.fill(&bytes, &mut cache));
        packet.meta_mut().offload.gso_size = 1000;
        packet.meta_mut().offload.gso = GsoKind::Tcp4;
        packet.mark(Flags::OFFLOAD);
        let mut frame = Frame::new();
        assert!(frame.push(packet).is_ok());
        let wire = Wire::of(&frame, 0, 0, Link::Ethernet);
        assert_eq!(wire.packets(), 4);
        let mut buf = [0; MAX_HEADER];
        for (at, payload) in [(0usize, 1000), (1, 1000), (2, 1000), (3, 10)] {
            let (length, header) = wire.packet(&frame, 0, at as u64, 128, &mut buf);
            assert_eq!(length as usize, headers + payload);
            assert_eq!(header.len(), 128.min(length as usize));
            let total = u16::from_be_bytes([header[16], header[17]]);
            assert_eq!(usize::from(total), headers - 14 + payload);
            let sequence = u32::from_be_bytes([header[38], header[39], header[40], header[41]]);
            assert_eq!(sequence as usize, 100 + at * 1000);
            assert_eq!(header[headers..], bytes[headers + at * 1000..][..header.len() - headers]);
        }
        // Headers that routing steps over belong to the packet.
        assert!(frame.pkt(0).pull(14));
        let wire = Wire::of(&frame, 0, 14, Link::Ethernet);
        assert_eq!(wire.packets(), 4);
        let (length, header) = wire.packet(&frame, 0, 3, 128, &mut buf);
        assert_eq!((length as usize, header.len()), (headers + 10, headers + 10));
        assert_eq!(header[headers..], bytes[headers + 3000..]);
        assert_eq!(header[..14], bytes[..14]);
        assert!(frame.pkt(0).push(14).is_some());
        // A frame that cannot be cut is one packet.
        frame.pkt(0).meta_mut().offload.gso_size = 0;
        let wire = Wire::of(&frame, 0, 0, Link::Ethernet);
        assert_eq!(wire.packets(), 1);
        let (length, header) = wire.packet(&frame, 0, 0, 64, &mut buf);
        assert_eq!((length as usize, header), (bytes.len(), &bytes[..64]));
        cache.free_frame(&mut frame);
        drop((frame, cache));
        assert_eq!(pool.audit().in_use, 0);
    }
}
