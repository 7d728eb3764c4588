//! The bound of circles: a packet that goes round in the graph ends here, and with it the worker's
//! loop.
//!
//! No node can know that the graph leads back to it: users combine translations, look-ups in other
//! tables, rules and bridges, and a packet whose TTL does not change could go round endlessly.
//! Counting steps in every packet would cost more than most nodes do. A worker therefore counts the
//! steps of its loop, which are few for each packet that came in, and looks at single packets only
//! when they are many:
//!
//! * Once a loop has taken [`FREE`] steps and [`EACH`] more for each packet that came in, each
//!   further step is counted in the packet that takes it, and ends a packet that has [`MOST`].
//! * Copies are counted as what they are copies of, and copying as [`COPIED`] steps
//!   ([`NodeCx::may_copy`]): a packet is copied four times in a row, in bridge after bridge, before
//!   no more is made of it. Otherwise each step could double the packets, and one would take all
//!   buffers.
//! * Many copies of many can still take long, so that after [`ENOUGH`] times the first bound, and
//!   [`FLOOD`] steps for each buffer, every packet ends that is left. A flood takes a few steps for
//!   each buffer.
//! * A circle through another worker is spread over many loops. One handed-over frame in [`LOOKED`]
//!   counts [`HANDED`] steps in each of its packets: their metadata is in a cache line that nothing
//!   else needs. A packet is handed over [`MOST`] / [`HANDED`] times at least, and about [`LOOKED`]
//!   times as often on average, before it ends.

use super::{Core, NodeCx};
use crate::decl::NodeId;
use crate::nodes::error_drop;
use thalweg_buffer::{Frame, Meta};

/// Steps that a loop may take whatever came in: floods and fragments are more than they came as.
const FREE: usize = 4096;
/// Steps for each packet that came in.
const EACH: usize = 64;
/// Steps that are counted in a packet before it ends.
const MOST: u16 = 128;
/// Multiple of the first bound at which a loop is ended, and steps for each buffer.
const ENOUGH: usize = 16;
const FLOOD: usize = 8;
/// Steps that copying counts as, so that it happens four times in a row.
const COPIED: u16 = MOST / 5;
/// Frames handed over of which one is looked at.
const LOOKED: u64 = 16;
/// Steps that a hand-over counts as.
const HANDED: u16 = MOST / 8;

/// The steps that a loop may take: one for each packet at each node.
pub(super) struct Bound {
    /// Number from which on packets are counted one by one.
    pub(super) suspicious: usize,
    /// Number from which on none goes on.
    enough: usize,
}

impl Bound {
    /// The bound of a loop into which `came_in` packets came, of a router with `buffers` buffers.
    #[inline]
    pub(super) fn of(came_in: usize, buffers: usize) -> Bound {
        let suspicious = FREE + EACH * came_in;
        Bound { suspicious, enough: ENOUGH * suspicious + FLOOD * buffers }
    }

    /// Counts a step in each packet of a frame on its way to a node, in a loop that has taken
    /// `steps`; the packets that may go on.
    #[cold]
    #[inline(never)]
    pub(super) fn step(
        &self,
        core: &mut Core,
        to: NodeId,
        frame: Box<Frame>,
        steps: usize,
    ) -> Option<Box<Frame>> {
        let all = steps > self.enough;
        core.count_laps(to, frame, if all { MOST } else { 1 })
    }
}

/// Returns whether the `nth` frame that is handed over is looked at: evenly spread, and out of
/// step with any packet that goes round.
#[inline]
pub(super) fn looks_at(nth: u64) -> bool {
    nth.wrapping_mul(0x9e37_79b9_7f4a_7c15) < u64::MAX / LOOKED
}

impl NodeCx<'_> {
    /// Counts that copies of a packet are about to be made. Returns false if it was copied too
    /// often: such packets go round in the graph, and none of them is copied any more.
    #[inline]
    pub fn may_copy(&self, meta: &mut Meta) -> bool {
        meta.laps = meta.laps.saturating_add(COPIED);
        meta.laps <= MOST - COPIED
    }
}

impl Core {
    /// Counts a hand-over in each packet of a frame; those that may go on.
    #[cold]
    #[inline(never)]
    pub(super) fn count_handed(&mut self, by: NodeId, frame: Box<Frame>) -> Option<Box<Frame>> {
        self.count_laps(by, frame, HANDED)
    }

    fn count_laps(&mut self, at: NodeId, mut frame: Box<Frame>, n: u16) -> Option<Box<Frame>> {
        let (end, reason) = self.end_of_circle();
        // Dropped packets have arrived.
        if at == end || at == self.drop_of(end) {
            return Some(frame);
        }
        for i in 0..frame.len() {
            let mut p = frame.pkt(i as u8);
            let meta = p.meta_mut();
            meta.laps = meta.laps.saturating_add(n);
            if meta.laps >= MOST {
                let mut packet = p.take();
                packet.set_aux(reason);
                self.push_packet(packet, end);
            }
        }
        frame.compact(());
        if frame.is_empty() {
            self.recycle(frame);
            return None;
        }
        Some(frame)
    }

    fn drop_of(&self, node: NodeId) -> NodeId {
        self.info[node.0 as usize].drop
    }

    /// The node where dropped packets end, before they are freed, and the reason.
    fn end_of_circle(&self) -> (NodeId, u32) {
        let mut node = self.drop_of(self.current);
        // `drop` leads to itself, and `error-drop` to it.
        while self.drop_of(self.drop_of(node)) != self.drop_of(node) {
            node = self.drop_of(node);
        }
        (node, self.info[node.0 as usize].error_base + u32::from(error_drop::CIRCLE.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_frame_in_sixteen_is_looked_at() {
        for (step, phase) in [(1, 0), (2, 1), (3, 0), (16, 5), (1 << 32, 77)] {
            let looked = (0..16_000u64).filter(|n| looks_at(phase + n * step)).count();
            assert!((900..1100).contains(&looked), "{looked} in steps of {step}");
        }
    }
}
