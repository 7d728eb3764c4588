//! Packets of a resolver's protocol by interface, as VPP's clients read them in the statistics
//! segment.

use std::marker::PhantomData;
use std::sync::Arc;
use thalweg_device::{InterfaceEvent, SwIfIndex};
use thalweg_graph::Control;
use thalweg_graph::stats::{Counter, MAX_INTERFACES};
use thalweg_tables::SparseArray;

/// Counted packets of a protocol: `N` kinds.
pub trait Counted<const N: usize>: Copy + Send + Sync + 'static {
    /// Returns the kind's position, below `N`.
    fn index(self) -> usize;
}

/// The counters of all threads.
pub struct PacketCounters<K, const N: usize> {
    /// The main thread's, then one for each worker.
    threads: Box<[SparseArray<[Counter; N], MAX_INTERFACES>]>,
    kinds: PhantomData<fn(K)>,
}

impl<K: Counted<N>, const N: usize> PacketCounters<K, N> {
    /// Shares the counters with workers. To be called from the `init` of the feature.
    pub fn init(c: &mut Control) {
        let threads = (0..=c.config().workers.len()).map(|_| SparseArray::default()).collect();
        c.share(Arc::new(Self { threads, kinds: PhantomData }));
        c.subscribe(|c, event: &InterfaceEvent| {
            // The next interface of this index begins at zero.
            if let InterfaceEvent::Deleted(i) = *event {
                let counters = c.shared::<Self>();
                let rows = counters.threads.iter().map(|thread| thread.at(i));
                rows.flatten().for_each(|counter| counter.set(0));
            }
        });
    }

    /// Counts a packet on a worker, which only that worker may call.
    pub fn count(&self, worker: usize, sw_if: SwIfIndex, what: K) {
        self.add(worker + 1, sw_if, what);
    }

    /// Counts a packet that the main thread has made.
    pub fn count_main(&self, sw_if: SwIfIndex, what: K) {
        self.add(0, sw_if, what);
    }

    fn add(&self, thread: usize, sw_if: SwIfIndex, what: K) {
        if let Some(thread) = self.threads.get(thread) {
            thread.at(sw_if)[what.index()].add(1);
        }
    }

    /// Returns what a thread (0: the main thread, then the workers) has counted on an interface, by
    /// the kinds' positions.
    pub fn read(&self, thread: usize, sw_if: SwIfIndex) -> [u64; N] {
        let row = self.threads.get(thread).map(|thread| thread.at(sw_if));
        row.map_or([0; N], |row| std::array::from_fn(|i| row[i].get()))
    }
}
