//! What is checked of an IPv4 packet whose last label was popped (RFC 1812 section 5.2.2).

use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Flags, Frame, PktMut, Rows};
use thalweg_graph::{ErrorCode, FrameVerdict, NodeCx, Verdict};
use thalweg_wire::ipv4;

/// Drop reasons, in the order of the nodes' counters.
#[derive(Clone, Copy)]
pub(crate) struct Reasons {
    /// It is no IPv4 packet.
    pub(crate) not_ip4: ErrorCode,
    /// The header is wrong.
    pub(crate) bad: ErrorCode,
}

/// Checks the header, and removes the padding of the link layer.
pub(crate) fn check(
    cx: &mut NodeCx<'_>,
    p: &mut PktMut<'_>,
    reasons: Reasons,
) -> Result<(), ErrorCode> {
    let data = p.data();
    let Some(h) = data.first_chunk::<20>().filter(|h| h[0] >> 4 == 4) else {
        return Err(reasons.not_ip4);
    };
    let len = usize::from(h[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([h[2], h[3]]));
    let header = data.get(..len).filter(|_| len >= ipv4::HEADER_LEN);
    let sound = header.is_some_and(thalweg_wire::checksum::verify);
    if !sound || total < len || total > p.total_len() {
        return Err(reasons.bad);
    }
    if total < p.total_len() {
        p.truncate(total, cx.cache());
    }
    Ok(())
}

/// As [`check`] for all packets of a frame; returns those that need a closer look. `None`, with
/// nothing done, if some packet is in several segments.
#[inline(always)]
pub(crate) fn check_all<V: Lanes>(frame: &mut Frame) -> Option<Rows> {
    let chained = frame.flags().contains(Flags::CHAINED);
    (!chained).then(|| thalweg_feat_ip4::check_usual::<V>(frame))
}

/// Returns the verdict of a frame whose packets but `rest` go to one node.
#[inline(always)]
pub(crate) fn verdict(
    frame: &Frame,
    each: &mut [Verdict],
    rest: Rows,
    to: Verdict,
) -> FrameVerdict {
    if rest.is_empty() {
        return FrameVerdict::Whole(to);
    }
    each[..frame.len()].fill(to);
    FrameVerdict::Each(rest)
}

/// Declares the drop reasons of a node that checks IPv4 packets.
macro_rules! reasons {
    () => {
        thalweg_graph::errors! {
            NOT_IP4: Error, 275, "no ip4 packet after the last mpls label";
            BAD: Error, 275, "bad ip4 header after the last mpls label";
            DOWN: Error, 331, "next-hop interface is down";
        }

        const REASONS: crate::disposition::Reasons =
            crate::disposition::Reasons { not_ip4: NOT_IP4, bad: BAD };
    };
}
pub(crate) use reasons;
