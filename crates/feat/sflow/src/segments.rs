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
