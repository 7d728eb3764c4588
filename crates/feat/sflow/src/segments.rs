//! Super-packets as what they are on the wire: the packets that they are cut into.

use crate::ring::MAX_HEADER;
use thalweg_buffer::{Flags, Frame, GsoKind};
use thalweg_wire::checksum::Checksum;
use thalweg_wire::gso::Plan;

/// What a packet of a frame is on the wire.
pub(crate) struct Wire {
    plan: Option<Plan>,
}

/// Bytes before a super-packet's payload, at most: what is read of it to see how it is cut.
const HEAD: usize = thalweg_wire::gso::MAX_HEADERS;

impl Wire {
    /// Of packet `i`, which begins with its Ethernet header.
    pub(crate) fn of(frame: &Frame, i: u8) -> Wire {
        let meta = frame.meta(i);
        let is_super = meta.flags().contains(Flags::OFFLOAD) && meta.offload.gso != GsoKind::None;
        if !is_super {
            return Wire { plan: None };
        }
        let mut head = [0; HEAD];
        let n = copy(frame, i, 0, &mut head);
        // What cannot be cut will be dropped: it is one packet.
        let size = usize::from(meta.offload.gso_size);
        Wire { plan: Plan::new(&head[..n], frame.total_len(i), size).ok() }
    }

    /// How many packets it is.
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
        let whole = frame.total_len(i);
        let segment = self.plan.as_ref().and_then(|plan| {
            let segment = plan.segments().nth(at as usize)?;
            let mut head = [0; HEAD];
            let n = copy(frame, i, 0, &mut head);
            let mut out = [0; HEAD];
            // Checksums of the sample's own headers are left as if there were no payload.
            plan.write_header(&head[..n], segment, Checksum::new(), &mut out).ok()?;
            Some((plan.header_len(), segment, out))
        });
        let Some((header_len, segment, out)) = segment else {
            let n = copy(frame, i, 0, &mut buf[..limit]);
            return (whole as u32, &buf[..n]);
        };
        let first = header_len.min(limit);
        buf[..first].copy_from_slice(&out[..first]);
        let room = segment.len.min(limit - first);
        let more = copy(frame, i, header_len + segment.start, &mut buf[first..first + room]);
        ((header_len + segment.len) as u32, &buf[..first + more])
    }
}

/// Copies a packet's bytes from `skip` on, over all its segments; returns how many there were.
fn copy(frame: &Frame, i: u8, mut skip: usize, to: &mut [u8]) -> usize {
    let mut n = 0;
    for segment in frame.segments(i) {
        let from = skip.min(segment.len());
        skip -= from;
        let more = (segment.len() - from).min(to.len() - n);
        to[n..n + more].copy_from_slice(&segment[from..from + more]);
        n += more;
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_buffer::{Cache, Pool, PoolConfig};

    /// A TCP super-packet of three segments of 1000 bytes and one of 10.
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
        let wire = Wire::of(&frame, 0);
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
        // What cannot be cut is one packet.
        frame.pkt(0).meta_mut().offload.gso_size = 0;
        let wire = Wire::of(&frame, 0);
        assert_eq!(wire.packets(), 1);
        let (length, header) = wire.packet(&frame, 0, 0, 64, &mut buf);
        assert_eq!((length as usize, header), (bytes.len(), &bytes[..64]));
        cache.free_frame(&mut frame);
        drop((frame, cache));
        assert_eq!(pool.audit().in_use, 0);
    }
}
