//! Iteration over all neighbours in order, in steps.

use crate::neighbors::{Neighbor, Neighbors};
use crate::table::Key;
use std::task::Poll;
use std::vec;
use thalweg_device::SwIfIndex;
use thalweg_tables::{Sorted, Sorter};

/// Keys sorted per step.
const SOME: usize = 256;

/// Iterates over neighbours by interface and address. Neighbours added meanwhile are left out.
pub struct NeighborWalk {
    only: Option<SwIfIndex>,
    stage: Stage,
}

enum Stage {
    Begin,
    Sort(vec::IntoIter<Key>, Sorter<Key>),
    Yield(Sorted<Key>),
}

impl NeighborWalk {
    /// Walks the neighbours of one interface, or all.
    pub fn new(only: Option<SwIfIndex>) -> Self {
        Self { only, stage: Stage::Begin }
    }

    /// Returns the next neighbour, or `None` at the end; [`Poll::Pending`] after some work, to be
    /// called again.
    pub fn next(&mut self, all: &Neighbors) -> Poll<Option<Neighbor>> {
        match &mut self.stage {
            Stage::Begin => {
                let keys = all.keys().into_iter();
                self.stage = Stage::Sort(keys, Sorter::new());
            }
            Stage::Sort(keys, sorter) => {
                let wanted = |key: &Key| self.only.is_none_or(|only| key.0 == only);
                keys.by_ref().take(SOME).filter(wanted).for_each(|key| sorter.push(key));
                if keys.len() == 0 {
                    self.stage = Stage::Yield(std::mem::take(sorter).sorted());
                }
            }
            Stage::Yield(keys) => {
                let Some((sw_if, ip)) = keys.next() else { return Poll::Ready(None) };
                if let Some(neighbor) = all.find(sw_if, ip) {
                    return Poll::Ready(Some(neighbor));
                }
            }
        }
        Poll::Pending
    }
}
