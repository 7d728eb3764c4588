//! Packets by interface, as VPP counts them: by direction, by whether the packet's session existed
//! when its frame came (fast path) or not (slow path), and by protocol.
//!
//! Each worker has its own, in memory that is committed as it is used.

use thalweg_device::SwIfIndex;
use thalweg_graph::stats::{Counter, MAX_INTERFACES};
use thalweg_tables::SparseArray;
use thalweg_wire::ip::protocol;

/// Number of counters of an interface.
pub const COUNT: usize = 20;

/// Names of the counters, in the order in which they are kept.
pub const NAMES: [&str; COUNT] = [
    "in2out/fastpath/tcp",
    "in2out/fastpath/udp",
    "in2out/fastpath/icmp",
    "in2out/fastpath/other",
    "in2out/fastpath/drops",
    "in2out/slowpath/tcp",
    "in2out/slowpath/udp",
    "in2out/slowpath/icmp",
    "in2out/slowpath/other",
    "in2out/slowpath/drops",
    "out2in/fastpath/tcp",
    "out2in/fastpath/udp",
    "out2in/fastpath/icmp",
    "out2in/fastpath/other",
    "out2in/fastpath/drops",
    "out2in/slowpath/tcp",
    "out2in/slowpath/udp",
    "out2in/slowpath/icmp",
    "out2in/slowpath/other",
    "out2in/slowpath/drops",
];

/// Counted fates of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// Translated; the IP protocol.
    Protocol(u8),
    /// Dropped.
    Drop,
}

/// Position of a counter.
#[inline]
pub(crate) fn position(outside: bool, slow: bool, what: What) -> usize {
    let kind = match what {
        What::Protocol(protocol::TCP) => 0,
        What::Protocol(protocol::UDP) => 1,
        What::Protocol(protocol::ICMP) => 2,
        What::Protocol(_) => 3,
        What::Drop => 4,
    };
    usize::from(outside) * (COUNT / 2) + usize::from(slow) * (COUNT / 4) + kind
}

/// The counters of all workers.
pub struct Counters {
    workers: Box<[SparseArray<[Counter; COUNT], MAX_INTERFACES>]>,
}

impl Counters {
    pub(crate) fn new(workers: usize) -> Counters {
        Counters { workers: (0..workers).map(|_| SparseArray::default()).collect() }
    }

    /// Counts packets. Only the worker itself may call it.
    #[inline]
    pub(crate) fn add(&self, worker: usize, sw_if: SwIfIndex, position: usize, packets: u64) {
        if let Some(all) = self.workers.get(worker)
            && let Some(counter) = all.at(sw_if).get(position)
        {
            counter.add(packets);
        }
    }

    /// Returns a worker's counts for an interface, in the order of [`NAMES`].
    pub fn read(&self, worker: usize, sw_if: SwIfIndex) -> [u64; COUNT] {
        let all = self.workers.get(worker).map(|all| all.at(sw_if));
        std::array::from_fn(|i| all.map_or(0, |all| all[i].get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_have_their_names() {
        let named = |outside, slow, what| NAMES[position(outside, slow, what)];
        assert_eq!(named(false, false, What::Protocol(6)), "in2out/fastpath/tcp");
        assert_eq!(named(false, true, What::Protocol(17)), "in2out/slowpath/udp");
        assert_eq!(named(true, false, What::Protocol(1)), "out2in/fastpath/icmp");
        assert_eq!(named(true, true, What::Protocol(47)), "out2in/slowpath/other");
        assert_eq!(named(true, true, What::Drop), "out2in/slowpath/drops");
    }
}
