//! Counters by forwarding object: packets whose route leads to it, and packets that leave by it.
//!
//! Each worker has its own, in memory that is committed as they are used. They never go back; what
//! an index counted for an earlier object is subtracted by the reader.

use crate::Dpo;
use std::sync::atomic::{AtomicBool, Ordering};
use thalweg_graph::stats::Counter;
use thalweg_tables::{MapError, PagedTable};

thalweg_tables::zeroable! {
    /// Counters of an object on one worker.
    #[derive(Debug)]
    #[repr(align(32))]
    struct Row {
        to_packets: Counter,
        to_bytes: Counter,
        via_packets: Counter,
        via_bytes: Counter,
    }
}

/// Packets and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Combined {
    /// Packets; a GSO packet is one.
    pub packets: u64,
    /// Bytes, from the network header on.
    pub bytes: u64,
}

impl Combined {
    fn plus(self, more: Combined) -> Combined {
        let packets = self.packets.wrapping_add(more.packets);
        Combined { packets, bytes: self.bytes.wrapping_add(more.bytes) }
    }

    fn since(self, base: Combined) -> Combined {
        let packets = self.packets.wrapping_sub(base.packets);
        Combined { packets, bytes: self.bytes.wrapping_sub(base.bytes) }
    }
}

/// Counts of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Packets whose route leads to it.
    pub to: Combined,
    /// Packets that leave by it.
    pub via: Combined,
}

impl Counts {
    pub(crate) fn plus(self, more: Counts) -> Counts {
        Counts { to: self.to.plus(more.to), via: self.via.plus(more.via) }
    }

    pub(crate) fn since(self, base: Counts) -> Counts {
        Counts { to: self.to.since(base.to), via: self.via.since(base.via) }
    }
}

/// Counters that a packet may add to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// Its route leads to the object.
    To,
    /// The packet leaves by the object.
    Via,
}

/// The counters of all workers.
pub struct ObjectCounters {
    on: AtomicBool,
    workers: Box<[PagedTable<Row>]>,
}

impl ObjectCounters {
    pub(crate) fn new(workers: usize, capacity: usize) -> Result<ObjectCounters, MapError> {
        let tables = (0..workers).map(|_| PagedTable::new(capacity)).collect::<Result<_, _>>()?;
        Ok(ObjectCounters { on: AtomicBool::new(false), workers: tables })
    }

    /// Returns whether protocols that count on demand count.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    /// Counts packets, each with its object and length. Only the worker itself may call it.
    #[inline(never)]
    pub fn count(
        &self,
        worker: usize,
        what: Counted,
        packets: impl IntoIterator<Item = (Dpo, usize)>,
    ) {
        let Some(table) = self.workers.get(worker) else { return };
        let add = |dpo: Dpo, packets, bytes| {
            let Some(row) = table.get(dpo.0) else { return };
            let (of_packets, of_bytes) = match what {
                Counted::To => (&row.to_packets, &row.to_bytes),
                Counted::Via => (&row.via_packets, &row.via_bytes),
            };
            of_packets.add(packets);
            of_bytes.add(bytes);
        };
        // Neighbours in a frame often have the same object.
        let (mut last, mut n, mut bytes) = (Dpo(0), 0, 0);
        for (dpo, len) in packets {
            if dpo != last {
                if n > 0 {
                    add(last, n, bytes);
                }
                (last, n, bytes) = (dpo, 0, 0);
            }
            n += 1;
            bytes += len as u64;
        }
        if n > 0 {
            add(last, n, bytes);
        }
    }

    /// Number of workers.
    pub(crate) fn workers(&self) -> usize {
        self.workers.len()
    }

    /// A worker's counts for an index.
    pub(crate) fn read(&self, worker: usize, dpo: Dpo) -> Counts {
        let Some(row) = self.workers.get(worker).and_then(|table| table.get(dpo.get())) else {
            return Counts::default();
        };
        let both = |packets: &Counter, bytes: &Counter| Combined {
            packets: packets.get(),
            bytes: bytes.get(),
        };
        Counts {
            to: both(&row.to_packets, &row.to_bytes),
            via: both(&row.via_packets, &row.via_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn runs_of_packets_add_up(
            frames in prop::collection::vec(
                (0usize..3, any::<bool>(), prop::collection::vec((0u32..5, 0usize..9000), 0..40)),
                0..20,
            ),
        ) {
            let counters = ObjectCounters::new(2, 4).unwrap();
            let mut model = BTreeMap::new();
            for (worker, to, packets) in frames {
                let what = if to { Counted::To } else { Counted::Via };
                counters.count(worker, what, packets.iter().map(|(dpo, len)| (Dpo(*dpo), *len)));
                for (dpo, len) in packets.into_iter().filter(|p| worker < 2 && p.0 < 4) {
                    let counts: &mut Counts = model.entry((worker, dpo)).or_default();
                    let of = if to { &mut counts.to } else { &mut counts.via };
                    of.packets += 1;
                    of.bytes += len as u64;
                }
            }
            for (worker, dpo) in (0..3).flat_map(|worker| (0..6).map(move |dpo| (worker, dpo))) {
                let want = model.get(&(worker, dpo)).copied().unwrap_or_default();
                prop_assert_eq!(counters.read(worker, Dpo(dpo)), want);
            }
        }
    }
}
