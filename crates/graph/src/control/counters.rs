//! Counters since the last clear, for `show` commands and exporters.

use super::Control;
use crate::decl::NodeId;
use crate::stats::{IfStats, IfTotals};
use thalweg_buffer::SwIfIndex;

impl Control {
    /// Returns an error counter of one worker since the last clear.
    pub fn error_count(&self, worker: usize, error: u32) -> u64 {
        let base = self.baseline.errors.get(worker).and_then(|row| row.get(error as usize));
        let now = self.worker_stats(worker).error(error).get();
        now.wrapping_sub(base.copied().unwrap_or(0))
    }

    /// Returns a node's calls, vectors, clocks and suspends on one worker since the last clear.
    pub fn node_counts(&self, worker: usize, id: NodeId) -> [u64; 4] {
        let base = self.baseline.nodes.get(worker).and_then(|row| row.get(usize::from(id.0)));
        since(self.node_counts_raw(worker, id), base)
    }

    /// Returns a node's calls, vectors, clocks and suspends on one worker, never cleared.
    pub fn node_counts_raw(&self, worker: usize, id: NodeId) -> [u64; 4] {
        let n = self.worker_stats(worker).node(id);
        [n.calls.get(), n.vectors.get(), n.clocks.get(), n.suspends.get()]
    }

    /// Returns an interface's counters, summed over all workers, since they were last cleared.
    pub fn interface_totals(&self, sw_if: SwIfIndex) -> IfTotals {
        let all = self.interface_totals_raw(sw_if);
        match self.baseline.interfaces.get(&sw_if) {
            Some(base) => all.since(base),
            None => all,
        }
    }

    /// Returns an interface's counters per worker, such that their sum is the count since they were
    /// last cleared: the count before is subtracted from the first workers that have counted as
    /// much.
    pub fn interface_counts(&self, sw_if: SwIfIndex) -> Vec<IfTotals> {
        let mut before = self.baseline.interfaces.get(&sw_if).copied().unwrap_or_default();
        let workers = (0..self.workers()).map(|w| self.worker_stats(w).interface(sw_if));
        workers.map(|stats| since_in_turn(stats, &mut before)).collect()
    }

    /// Returns an interface's counters, summed over all workers, never cleared: for exporters whose
    /// counters must not go back.
    pub fn interface_totals_raw(&self, sw_if: SwIfIndex) -> IfTotals {
        let mut t = IfTotals::default();
        for w in 0..self.workers() {
            t.add(self.worker_stats(w).interface(sw_if));
        }
        t
    }
}

/// Subtracts the baseline from `now`; a missing row is zero.
pub fn since<const N: usize>(now: [u64; N], base: Option<&[u64; N]>) -> [u64; N] {
    let base = base.copied().unwrap_or([0; N]);
    std::array::from_fn(|i| now[i].wrapping_sub(base[i]))
}

/// Subtracts the remainder of `before` from a worker's counters, and reduces it by the amount
/// subtracted.
fn since_in_turn(stats: &IfStats, before: &mut IfTotals) -> IfTotals {
    let mut all = IfTotals::default();
    all.add(stats);
    let taken = all.least(before);
    *before = before.since(&taken);
    all.since(&taken)
}
