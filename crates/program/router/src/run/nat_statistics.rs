//! Packets of NAT44 by interface in the statistics segment, under VPP's names:
//! `/nat44-ed/{in2out,out2in}/{fastpath,slowpath}/{tcp,udp,icmp,other,drops}`.

use thalweg_device::SwIfIndex;
use thalweg_feat_nat44::counters::{COUNT, NAMES};
use thalweg_feat_nat44::state::{self, Nat44};
use thalweg_graph::Control;
use thalweg_stats::{Change, Segment, SegmentError, Slot};

/// The counters in the segment. An interface has a column once it has had a role.
pub(super) struct NatCounters {
    slots: Vec<Slot>,
    /// Number of columns.
    known: usize,
}

impl NatCounters {
    pub(super) fn new(s: &mut Change<'_>, rows: usize) -> Result<NatCounters, SegmentError> {
        let mut slots = Vec::with_capacity(COUNT);
        for name in NAMES {
            slots.push(s.simple(&format!("/nat44-ed/{name}"), rows)?);
        }
        Ok(NatCounters { slots, known: 0 })
    }

    /// Makes room for all interfaces with a role.
    pub(super) fn describe(
        &mut self,
        c: &Control,
        segment: &mut Segment,
    ) -> Result<(), SegmentError> {
        let top =
            c.state::<Nat44>().borrow().roles().keys().next_back().map_or(0, |m| m.index() + 1);
        if top > self.known {
            segment.change(|s| self.slots.iter().try_for_each(|slot| s.widen(*slot, top)))?;
            self.known = top;
        }
        Ok(())
    }

    /// Copies the counters of interfaces with a role.
    pub(super) fn count(&self, c: &Control, segment: &Segment) {
        let roles: Vec<SwIfIndex> = c.state::<Nat44>().borrow().roles().keys().copied().collect();
        for sw_if in roles.into_iter().filter(|m| m.index() < self.known) {
            for (worker, counts) in state::counts(c, sw_if).into_iter().enumerate() {
                for (slot, count) in self.slots.iter().zip(counts) {
                    segment.count(*slot, worker + 1, sw_if.index(), [count]);
                }
            }
        }
    }
}
