//! Iteration over a table's prefixes in order, in steps: there may be a million.

use crate::Ip4;
use std::task::Poll;
use thalweg_tables::{Ipv4Prefix, Sorted, Sorter, Sweep};

/// Iterates over the prefixes of a table by address, a shorter prefix before the longer ones in it.
/// Prefixes added meanwhile may be missed; deleted ones may still appear.
pub struct Prefixes {
    table: u32,
    stage: Stage,
    last: Option<Ipv4Prefix>,
}

enum Stage {
    /// Collecting the prefixes.
    Gather(Sweep, Sorter<Ipv4Prefix>),
    /// Returning the prefixes.
    Yield(Sorted<Ipv4Prefix>),
}

impl Prefixes {
    /// Starts with a table.
    pub fn new(table: u32) -> Self {
        Self { table, stage: Stage::Gather(Sweep::default(), Sorter::new()), last: None }
    }

    /// Returns the next prefix, or `None` at the end; [`Poll::Pending`] after some work, to be
    /// called again.
    pub fn next(&mut self, ip4: &Ip4) -> Poll<Option<Ipv4Prefix>> {
        if let Stage::Gather(at, sorter) = &mut self.stage {
            let table = ip4.tables.get(&self.table);
            if table.is_some_and(|table| table.sweep(at, |prefix| sorter.push(prefix))) {
                return Poll::Pending;
            }
            self.stage = Stage::Yield(std::mem::take(sorter).sorted());
        }
        let Stage::Yield(sorted) = &mut self.stage else { return Poll::Pending };
        let next = sorted.next();
        if next.is_some() && next == self.last {
            return Poll::Pending;
        }
        self.last = next;
        Poll::Ready(next)
    }

    /// Number of prefixes left, known once the first was returned.
    pub fn left(&self) -> usize {
        match &self.stage {
            Stage::Gather(..) => 0,
            Stage::Yield(sorted) => sorted.len(),
        }
    }
}
