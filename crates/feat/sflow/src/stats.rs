//! Counters of the tap per interface: written by one worker, read by all.

use thalweg_device::SwIfIndex;
use thalweg_graph::stats::{Counter, MAX_INTERFACES};
use thalweg_tables::{SparseArray, zeroable};

zeroable! {
    /// One interface on one worker, since sFlow was first enabled there; up to date whenever the
    /// worker has a moment, and every millisecond.
    #[derive(Debug, Default)]
    pub struct PortCounters {
        /// Packets that could have been sampled.
        pub seen: Counter,
        /// Samples put into the ring.
        pub taken: Counter,
        /// Samples lost because the ring was full.
        pub dropped: Counter,
    }
}

impl PortCounters {
    /// Starts again. Only the owning worker may call it.
    pub(crate) fn clear(&self) {
        for counter in [&self.seen, &self.taken, &self.dropped] {
            counter.set(0);
        }
    }
}

/// All interfaces on one worker.
#[derive(Debug, Default)]
pub struct TapStats {
    ports: SparseArray<PortCounters, MAX_INTERFACES>,
    /// All interfaces together, those too that have no sFlow any more, or are gone.
    pub all: PortCounters,
    /// Drop samples suppressed by the limit.
    pub suppressed: Counter,
}

impl TapStats {
    /// An interface's counters.
    #[inline]
    pub fn port(&self, sw_if: SwIfIndex) -> &PortCounters {
        self.ports.at(sw_if)
    }
}

/// An interface's counters over all workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortTotals {
    /// Packets that could have been sampled: the pool.
    pub seen: u64,
    /// Samples put into rings.
    pub taken: u64,
    /// Samples lost because a ring was full.
    pub dropped: u64,
}

impl PortTotals {
    /// Sums workers' counters up.
    pub fn of<'s>(taps: impl IntoIterator<Item = &'s TapStats>, sw_if: SwIfIndex) -> PortTotals {
        PortTotals::sum(taps.into_iter().map(|tap| tap.port(sw_if)))
    }

    /// All interfaces that ever had sFlow.
    pub fn of_all<'s>(taps: impl IntoIterator<Item = &'s TapStats>) -> PortTotals {
        PortTotals::sum(taps.into_iter().map(|tap| &tap.all))
    }

    fn sum<'s>(counters: impl Iterator<Item = &'s PortCounters>) -> PortTotals {
        counters.fold(PortTotals::default(), |sum, c| PortTotals {
            seen: sum.seen + c.seen.get(),
            taken: sum.taken + c.taken.get(),
            dropped: sum.dropped + c.dropped.get(),
        })
    }
}
