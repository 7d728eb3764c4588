//! Iteration over all neighbours in order, in steps.

use crate::Family;
use crate::neighbors::{Neighbor, Neighbors};
use crate::table::Key;
use std::ops::Bound;
use std::task::Poll;
use thalweg_device::SwIfIndex;

/// Iterates over neighbours by interface and address. Neighbours that come or go meanwhile may be
/// left out.
pub struct NeighborWalk {
    /// One interface, or all.
    only: Option<SwIfIndex>,
    /// One family, or all.
    family: Option<Family>,
    /// Where the next one is.
    after: Bound<Key>,
}

impl NeighborWalk {
    /// Walks the neighbours of one interface, or all; of one family, or all.
    pub fn new(only: Option<SwIfIndex>, family: Option<Family>) -> Self {
        let [first, _] = family.unwrap_or(Family::Ip4).bounds();
        Self { only, family, after: Bound::Included((only.unwrap_or(SwIfIndex(0)), first)) }
    }

    /// Returns the next neighbour, or `None` at the end; [`Poll::Pending`] after some work, to be
    /// called again.
    pub fn next(&mut self, all: &Neighbors) -> Poll<Option<Neighbor>> {
        let found = all.after(self.after).filter(|n| self.only.is_none_or(|i| i == n.sw_if));
        let Some(n) = found else { return Poll::Ready(None) };
        let found = Family::of(n.ip);
        match self.family {
            Some(Family::Ip6) if found == Family::Ip4 => {
                let [first, _] = Family::Ip6.bounds();
                self.after = Bound::Included((n.sw_if, first));
                Poll::Pending
            }
            Some(Family::Ip4) if found == Family::Ip6 => {
                let [_, last] = Family::Ip6.bounds();
                self.after = Bound::Excluded((n.sw_if, last));
                Poll::Pending
            }
            _ => {
                self.after = Bound::Excluded((n.sw_if, n.ip));
                Poll::Ready(Some(n))
            }
        }
    }
}
