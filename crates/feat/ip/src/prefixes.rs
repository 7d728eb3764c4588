//! Iteration over a table's prefixes in order, in steps: there may be a million.

use crate::Ip;
use std::task::Poll;
use thalweg_fib::TableId;
use thalweg_tables::{Address, Prefix, Sorted, Sorter, Sweep};

/// Iterates over the prefixes of a table by address, a shorter prefix before the longer ones in it.
/// Prefixes added meanwhile may be missed; deleted ones may still appear.
pub struct Prefixes<A> {
    table: TableId,
    stage: Stage<A>,
    last: Option<Prefix<A>>,
}

enum Stage<A> {
    /// Collecting the prefixes.
    Gather(Sweep, Sorter<Prefix<A>>),
    /// Returning the prefixes.
    Yield(Sorted<Prefix<A>>),
}

impl<A: Address> Prefixes<A> {
    /// Starts with a table.
    pub fn new(table: TableId) -> Self {
        Self { table, stage: Stage::Gather(Sweep::default(), Sorter::new()), last: None }
    }

    /// Returns the next prefix, or `None` at the end; [`Poll::Pending`] after some work, to be
    /// called again.
    pub fn next(&mut self, ip: &Ip<A>) -> Poll<Option<Prefix<A>>> {
        if let Stage::Gather(at, sorter) = &mut self.stage {
            let table = ip.tables.get(&self.table);
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
