//! A table's prefixes in order, bit by bit: there may be a million.

use crate::Ip4;
use std::task::Poll;
use thalweg_tables::{Ipv4Prefix, Sorted, Sorter, Sweep};

/// Goes through the prefixes of a table, the lowest address first, a shorter prefix before the longer
/// ones in it. Those that come meanwhile may be left out; those that go may still be there.
pub struct Prefixes {
    table: u32,
    stage: Stage,
    last: Option<Ipv4Prefix>,
}

enum Stage {
    /// They are being gathered.
    Gather(Sweep, Sorter<Ipv4Prefix>),
    /// They are being told.
    Tell(Sorted<Ipv4Prefix>),
}

impl Prefixes {
    /// Begins with a table.
    pub fn new(table: u32) -> Self {
        Self { table, stage: Stage::Gather(Sweep::default(), Sorter::new()), last: None }
    }

    /// The next prefix, or `None` at the end; [`Poll::Pending`] if it should be asked again, as it has
    /// done some work.
    pub fn next(&mut self, ip4: &Ip4) -> Poll<Option<Ipv4Prefix>> {
        if let Stage::Gather(at, sorter) = &mut self.stage {
            let lpm = ip4.tables.get(&self.table).map(|t| &t.lpm);
            if lpm.is_some_and(|lpm| lpm.sweep(at, |prefix| sorter.push(prefix))) {
                return Poll::Pending;
            }
            self.stage = Stage::Tell(std::mem::take(sorter).sorted());
        }
        let Stage::Tell(sorted) = &mut self.stage else { return Poll::Pending };
        let next = sorted.next();
        if next.is_some() && next == self.last {
            return Poll::Pending;
        }
        self.last = next;
        Poll::Ready(next)
    }

    /// How many are left to tell, which is known once the first has been.
    pub fn left(&self) -> usize {
        match &self.stage {
            Stage::Gather(..) => 0,
            Stage::Tell(sorted) => sorted.len(),
        }
    }
}
