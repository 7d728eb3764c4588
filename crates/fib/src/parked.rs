//! Objects of packets that wait.
//!
//! A packet that a worker forwards names its object by index, and an index is reused only after
//! all workers have passed a quiescent point: the packet is gone by then. Some packets wait for
//! longer, in a ring to another worker or until the first fragment of their datagram comes. These
//! carry a stamp with the index, which changes when the object is freed.

use crate::{Dpo, DpoTable};
use std::sync::atomic::Ordering;

thalweg_wire::number! {
    /// An object's index with its stamp, as the scalar of a packet that waits.
    pub struct Parked(u32);
}

/// Bits of the index.
const INDEX_BITS: u32 = 20;
/// Number of stamps. They start with 1, so that an index alone is not taken for a parked object.
const STAMPS: u32 = (1 << (u32::BITS - INDEX_BITS)) - 1;

const _: () = assert!(crate::dpo::CAPACITY == 1 << INDEX_BITS);

impl Parked {
    /// Returns whether a packet's scalar, which is an object's index or a parked object, is the
    /// latter.
    #[inline]
    #[must_use]
    pub const fn is(aux: u32) -> bool {
        aux >> INDEX_BITS != 0
    }

    /// Returns the object, whose index may be another one's by now.
    #[inline]
    #[must_use]
    pub const fn dpo(self) -> Dpo {
        Dpo(self.0 & ((1 << INDEX_BITS) - 1))
    }
}

impl DpoTable {
    /// Returns what a packet that will wait carries in place of its object.
    #[must_use]
    pub fn park(&self, dpo: Dpo) -> Parked {
        let stamp = self.stamps.at(dpo).load(Ordering::Acquire) % STAMPS + 1;
        Parked(stamp << INDEX_BITS | dpo.get())
    }

    /// Returns the object of a packet that has waited; `Dpo(0)`, which is "no route", if that was
    /// freed meanwhile. The object is the caller's until its next quiescent point. (An index that
    /// is freed exactly 4095 times within the wait would be missed.)
    #[must_use]
    pub fn unpark(&self, parked: Parked) -> Dpo {
        let dpo = parked.dpo();
        if self.park(dpo) == parked { dpo } else { Dpo(0) }
    }

    /// Lets packets that wait for an object find that it is gone. To be called before the grace
    /// period of its index begins: who sees the old stamp after that is within that period.
    pub(crate) fn forget(&self, dpo: Dpo) {
        let stamp = self.stamps.at(dpo);
        stamp.store(stamp.load(Ordering::Relaxed).wrapping_add(1) % STAMPS, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_found_until_it_is_freed() {
        let table = DpoTable::new().unwrap();
        for dpo in [Dpo(1), Dpo(7), Dpo((1 << INDEX_BITS) - 1)] {
            let mut seen = Vec::new();
            for _ in 0..STAMPS {
                let parked = table.park(dpo);
                assert!(Parked::is(parked.get()) && !Parked::is(dpo.get()));
                assert_eq!((parked.dpo(), table.unpark(parked)), (dpo, dpo));
                table.forget(dpo);
                assert_eq!(table.unpark(parked), Dpo(0));
                seen.push(parked);
            }
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), STAMPS as usize);
        }
    }
}
