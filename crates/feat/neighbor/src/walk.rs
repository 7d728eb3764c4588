//! Iteration over all neighbours in order, in steps.

use crate::Version;
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
    family: Option<Version>,
    /// Place of the next one.
    after: Bound<Key>,
}

impl NeighborWalk {
    /// Walks the neighbours of one interface, or all; of one family, or all.
    pub fn new(only: Option<SwIfIndex>, family: Option<Version>) -> Self {
        let [first, _] = family.unwrap_or(Version::V4).bounds();
        Self { only, family, after: Bound::Included((only.unwrap_or(SwIfIndex(0)), first)) }
    }

    /// Returns the next neighbour, or `None` at the end; [`Poll::Pending`] after some work, to be
    /// called again.
    pub fn next(&mut self, all: &Neighbors) -> Poll<Option<Neighbor>> {
        let found = all.after(self.after).filter(|n| self.only.is_none_or(|i| i == n.sw_if));
        let Some(n) = found else { return Poll::Ready(None) };
        let found = Version::of_ip(n.ip);
        match self.family {
            Some(Version::V6) if found == Version::V4 => {
                let [first, _] = Version::V6.bounds();
                self.after = Bound::Included((n.sw_if, first));
                Poll::Pending
            }
            Some(Version::V4) if found == Version::V6 => {
                let [_, last] = Version::V6.bounds();
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
