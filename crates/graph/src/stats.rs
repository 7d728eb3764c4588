//! Counters: each is written by one worker, read by any thread, and never reset by readers.
//!
//! An increment is a plain load, add and store: each word has one writer, so no atomic
//! read-modify-write is needed. `clear …` commands keep a baseline on the reader's side.

mod interface;

pub use interface::{IfCounter, IfMib, IfStats, IfTotals, Metric, Unit};

use crate::loop_times::LoopTimes;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use thalweg_buffer::SwIfIndex;
use thalweg_tables::{AllZeroValid, SparseArray};

/// Maximum number of nodes in a graph, interfaces' nodes included.
pub const MAX_NODES: usize = 4096;
/// Maximum number of error counters of all nodes.
pub const MAX_ERRORS: usize = 32_768;
/// Maximum number of interfaces.
pub const MAX_INTERFACES: usize = 65_536;

/// A number that one thread increments and any thread may read.
#[derive(Default, Debug)]
#[repr(transparent)]
pub struct Counter(AtomicU64);

// SAFETY: an atomic number, for which zero is a value.
unsafe impl AllZeroValid for Counter {}

impl Counter {
    /// Adds `n`. Only the owning thread may call it.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }
    /// Sets the value. Only the owning thread may call it.
    #[inline]
    pub fn set(&self, n: u64) {
        self.0.store(n, Relaxed);
    }
    /// Reads the value.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Counters of one node on one worker.
#[derive(Default, Debug)]
#[repr(align(64))]
pub struct NodeStats {
    /// Number of calls.
    pub calls: Counter,
    /// Packets processed.
    pub vectors: Counter,
    /// Clocks spent.
    pub clocks: Counter,
    /// Times that it slept.
    pub suspends: Counter,
    /// Clocks of the longest call.
    pub max_clocks: Counter,
    /// Packets of that call.
    pub max_vectors: Counter,
}

/// Accounting of all packets of a worker: `rx + originated + handed_in = tx + delivered + dropped +
/// consumed + handed_out + in flight`.
#[derive(Default, Debug)]
#[repr(align(128))]
pub struct Totals {
    /// Received from devices.
    pub rx: Counter,
    /// Made by the router: replies, requests, fragments.
    pub originated: Counter,
    /// Sent to devices.
    pub tx: Counter,
    /// Delivered to the router itself.
    pub delivered: Counter,
    /// Dropped for a reason.
    pub dropped: Counter,
    /// Replaced by other packets (a packet that was fragmented).
    pub consumed: Counter,
    /// Handed to another worker.
    pub handed_out: Counter,
    /// Received from another worker.
    pub handed_in: Counter,
    /// Number of loops.
    pub loops: Counter,
    /// Loops with work.
    pub busy_loops: Counter,
    /// Clocks spent in busy loops.
    pub busy_clocks: Counter,
    /// Times that the worker slept.
    pub sleeps: Counter,
    /// Events that did not fit into the queue to the main thread.
    pub events_lost: Counter,
}

/// Counters on a pair of cache lines of their own.
#[derive(Default, Debug)]
#[repr(align(128))]
struct Sixteen([Counter; 16]);

/// All counters of one worker. None of its cache lines holds anything that another thread writes.
#[repr(align(128))]
pub struct WorkerStats {
    nodes: Box<[NodeStats]>,
    errors: Box<[Sixteen]>,
    /// Memory is committed for those that count.
    interfaces: SparseArray<IfStats, MAX_INTERFACES>,
    /// Accounting of packets.
    pub totals: Totals,
    /// Durations of loops with work.
    pub loops: LoopTimes,
    /// Own time of loops over 100 µs: without the time in which other threads had the processor.
    pub long_loops: LoopTimes,
}

fn boxed<T: Default>(n: usize) -> Box<[T]> {
    (0..n).map(|_| T::default()).collect()
}

impl Default for WorkerStats {
    fn default() -> Self {
        WorkerStats {
            nodes: boxed(MAX_NODES),
            errors: boxed(MAX_ERRORS / 16),
            interfaces: SparseArray::default(),
            totals: Totals::default(),
            loops: LoopTimes::default(),
            long_loops: LoopTimes::default(),
        }
    }
}

impl WorkerStats {
    /// Returns a node's counters.
    #[inline]
    pub fn node(&self, id: crate::NodeId) -> &NodeStats {
        &self.nodes[id.0 as usize % MAX_NODES]
    }
    /// Returns an error's counter by its global index.
    #[inline]
    pub fn error(&self, index: u32) -> &Counter {
        let index = index as usize % MAX_ERRORS;
        &self.errors[index / 16].0[index % 16]
    }
    /// Returns the memory ranges that it writes, for tests of the layout.
    pub fn written(&self) -> [Range<usize>; 4] {
        fn range<T: ?Sized>(at: &T) -> Range<usize> {
            let start = std::ptr::from_ref(at).addr();
            start..start + size_of_val(at)
        }
        [
            range(self),
            range(&self.nodes[..]),
            range(&self.errors[..]),
            range(self.interfaces.as_slice()),
        ]
    }
    /// Returns an interface's counters.
    #[inline]
    pub fn interface(&self, sw_if: SwIfIndex) -> &IfStats {
        self.interfaces.at(sw_if)
    }
    /// Commits the memory of an interface's counters, so that the worker need not wait for it.
    pub(crate) fn make_ready(&self, sw_if: SwIfIndex) {
        self.interfaces.memory().make_ready(sw_if);
    }
}
