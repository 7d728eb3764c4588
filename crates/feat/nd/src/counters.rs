//! Neighbour discovery packets by interface, as VPP's clients read them in the statistics segment.

use std::sync::Arc;
use thalweg_buffer::SwIfIndex;
use thalweg_device::InterfaceEvent;
use thalweg_graph::Control;
use thalweg_graph::stats::{Counter, MAX_INTERFACES};
use thalweg_tables::{SparseArray, zeroable};

/// Names of the counters below `/net/ip6-nd`, in the order of `Counted`.
pub const NAMES: [&str; 4] = ["rx/requests", "rx/replies", "tx/requests", "tx/replies"];

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Counted {
    RxRequest,
    RxReply,
    TxRequest,
    TxReply,
}

zeroable! {
    /// An interface on one thread.
    struct Row {
        each: [Counter; NAMES.len()],
    }
}

/// The counters of all threads.
pub struct NdCounters {
    /// The main thread's, then one for each worker.
    threads: Box<[SparseArray<Row, MAX_INTERFACES>]>,
}

pub(crate) fn init(c: &mut Control) {
    let threads = (0..=c.config().workers.len()).map(|_| SparseArray::default()).collect();
    c.share(Arc::new(NdCounters { threads }));
    c.subscribe(|c, event: &InterfaceEvent| {
        // The next interface of this index begins at zero.
        if let InterfaceEvent::Deleted(i) = *event {
            let counters = c.shared::<NdCounters>();
            let rows = counters.threads.iter().map(|thread| thread.at(i));
            rows.flat_map(|row| &row.each).for_each(|counter| counter.set(0));
        }
    });
}

impl NdCounters {
    /// Counts a packet on a worker, which only that worker may call.
    pub(crate) fn count(&self, worker: usize, sw_if: SwIfIndex, what: Counted) {
        self.add(worker + 1, sw_if, what);
    }

    /// Counts a packet that the main thread has made.
    pub(crate) fn count_main(&self, sw_if: SwIfIndex, what: Counted) {
        self.add(0, sw_if, what);
    }

    fn add(&self, thread: usize, sw_if: SwIfIndex, what: Counted) {
        if let Some(thread) = self.threads.get(thread) {
            thread.at(sw_if).each[what as usize].add(1);
        }
    }

    /// Returns what a thread (0: the main thread, then the workers) has counted on an interface, in
    /// the order of [`NAMES`].
    pub fn read(&self, thread: usize, sw_if: SwIfIndex) -> [u64; NAMES.len()] {
        let row = self.threads.get(thread).map(|thread| thread.at(sw_if));
        row.map_or([0; NAMES.len()], |row| std::array::from_fn(|i| row.each[i].get()))
    }
}
