//! The exact routes: one hash table per prefix length, eight bytes a slot.
//!
//! The forwarding table cannot say which route an entry came from, nor what lies beneath it; this
//! one can. The control thread alone touches it.

use std::collections::TryReserveError;

use super::prefix::{Ipv4Prefix, Leaf};
use crate::hash::{mix64, random_seed};

const SMALLEST: usize = 8;

#[derive(Clone, Copy)]
struct Slot {
    addr: u32,
    /// Zero marks a free slot.
    leaf: u32,
}

const FREE: Slot = Slot { addr: 0, leaf: 0 };

/// The routes of one prefix length: linear probing, at most 3/4 full, no tombstones.
#[derive(Default)]
struct Routes {
    /// A power of two, or empty.
    slots: Vec<Slot>,
    len: usize,
}

impl Routes {
    fn home(&self, addr: u32, seed: u64) -> usize {
        mix64(u64::from(addr) ^ seed) as usize & (self.slots.len() - 1)
    }

    /// Where `addr` is (`Ok`), or the free slot that ends its run (`Err`). The table has slots.
    fn find(&self, addr: u32, seed: u64) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut at = self.home(addr, seed);
        loop {
            match self.slots[at] {
                Slot { leaf: 0, .. } => return Err(at),
                slot if slot.addr == addr => return Ok(at),
                _ => at = (at + 1) & mask,
            }
        }
    }

    fn get(&self, addr: u32, seed: u64) -> Option<Leaf> {
        if self.len == 0 {
            return None;
        }
        self.find(addr, seed).ok().and_then(|at| Leaf::new(self.slots[at].leaf))
    }

    /// Makes room for one more.
    fn reserve(&mut self, seed: u64) -> Result<(), TryReserveError> {
        if (self.len + 1) * 4 <= self.slots.len() * 3 {
            return Ok(());
        }
        self.resize((self.slots.len() * 2).max(SMALLEST), seed)
    }

    fn resize(&mut self, slots: usize, seed: u64) -> Result<(), TryReserveError> {
        let mut new = Vec::new();
        new.try_reserve_exact(slots)?;
        new.resize(slots, FREE);
        let old = std::mem::replace(&mut self.slots, new);
        for slot in old.into_iter().filter(|slot| slot.leaf != 0) {
            if let Err(at) = self.find(slot.addr, seed) {
                self.slots[at] = slot;
            }
        }
        Ok(())
    }

    /// Room was reserved before.
    fn insert(&mut self, addr: u32, leaf: Leaf, seed: u64) -> Option<Leaf> {
        let new = Slot { addr, leaf: leaf.get() };
        match self.find(addr, seed) {
            Ok(at) => Leaf::new(std::mem::replace(&mut self.slots[at], new).leaf),
            Err(at) => {
                self.slots[at] = new;
                self.len += 1;
                None
            }
        }
    }

    fn remove(&mut self, addr: u32, seed: u64) -> Option<Leaf> {
        if self.len == 0 {
            return None;
        }
        let mut hole = self.find(addr, seed).ok()?;
        let removed = std::mem::replace(&mut self.slots[hole], FREE).leaf;
        self.len -= 1;
        // Close the gap: whoever would no longer be found from its home moves back into the hole.
        let mask = self.slots.len() - 1;
        let mut at = (hole + 1) & mask;
        while self.slots[at].leaf != 0 {
            let home = self.home(self.slots[at].addr, seed);
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.slots[hole] = std::mem::replace(&mut self.slots[at], FREE);
                hole = at;
            }
            at = (at + 1) & mask;
        }
        if self.slots.len() > SMALLEST && self.len * 8 < self.slots.len() {
            // Without memory for a smaller table the large one still serves.
            let _ = self.resize(self.slots.len() / 2, seed);
        }
        Leaf::new(removed)
    }
}

/// All routes of a table.
pub(super) struct Rib {
    lengths: [Routes; 33],
    /// One bit per prefix length that has routes.
    present: u64,
    len: usize,
    /// Routes come from the network: their author must not choose where they collide.
    seed: u64,
}

impl Rib {
    pub(super) fn new() -> Self {
        let lengths = std::array::from_fn(|_| Routes::default());
        Self { lengths, present: 0, len: 0, seed: random_seed() }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, prefix: Ipv4Prefix) -> Option<Leaf> {
        self.lengths[usize::from(prefix.len())].get(prefix.addr(), self.seed)
    }

    /// Makes room for one more route of this length, so that the next insert cannot fail.
    pub(super) fn reserve(&mut self, len: u8) -> Result<(), TryReserveError> {
        self.lengths[usize::from(len)].reserve(self.seed)
    }

    /// After [`Rib::reserve`].
    pub(super) fn insert(&mut self, prefix: Ipv4Prefix, leaf: Leaf) -> Option<Leaf> {
        let routes = &mut self.lengths[usize::from(prefix.len())];
        let old = routes.insert(prefix.addr(), leaf, self.seed);
        self.present |= 1 << prefix.len();
        self.len += usize::from(old.is_none());
        old
    }

    pub(super) fn remove(&mut self, prefix: Ipv4Prefix) -> Option<Leaf> {
        let routes = &mut self.lengths[usize::from(prefix.len())];
        let old = routes.remove(prefix.addr(), self.seed)?;
        if routes.len == 0 {
            self.present &= !(1 << prefix.len());
        }
        self.len -= 1;
        Some(old)
    }

    /// The longest route of at most `longest` bits that holds `addr`.
    pub(super) fn covering(&self, addr: u32, longest: u8) -> Option<(Ipv4Prefix, Leaf)> {
        let mut lengths = self.present & ((2 << longest) - 1);
        while lengths != 0 {
            let len = lengths.ilog2();
            lengths &= !(1 << len);
            let prefix = Ipv4Prefix::of(addr, len as u8);
            if let Some(leaf) = self.get(prefix) {
                return Some((prefix, leaf));
            }
        }
        None
    }

    /// All routes, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Ipv4Prefix, Leaf)> {
        self.lengths.iter().zip(0u8..).flat_map(|(routes, len)| {
            let slots = routes.slots.iter();
            slots.filter_map(move |s| Some((Ipv4Prefix::of(s.addr, len), Leaf::new(s.leaf)?)))
        })
    }

    /// Bytes of heap.
    pub(super) fn memory(&self) -> usize {
        self.lengths.iter().map(|r| r.slots.capacity() * size_of::<Slot>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn behaves_like_a_map(ops in prop::collection::vec((0u8..5, 0u32..64, 1u32..9), 1..400)) {
            let mut rib = Rib::new();
            let mut model = BTreeMap::new();
            for (op, n, leaf) in ops {
                // Few lengths and addresses, so that runs collide, wrap and shrink.
                let prefix = Ipv4Prefix::of(n << 26 | n, if n % 2 == 0 { 6 } else { 32 });
                let leaf = Leaf::new(leaf).unwrap();
                if op < 3 {
                    rib.reserve(prefix.len()).unwrap();
                    prop_assert_eq!(rib.insert(prefix, leaf), model.insert(prefix, leaf));
                } else {
                    prop_assert_eq!(rib.remove(prefix), model.remove(&prefix));
                }
                prop_assert_eq!(rib.len(), model.len());
            }
            prop_assert_eq!(rib.iter().collect::<BTreeMap<_, _>>(), model.clone());
            prop_assert!(model.iter().all(|(&p, &leaf)| rib.get(p) == Some(leaf)));
        }
    }

    #[test]
    fn gives_memory_back() {
        let mut rib = Rib::new();
        for n in 0..10_000 {
            rib.reserve(32).unwrap();
            rib.insert(Ipv4Prefix::host(n), Leaf::new(1).unwrap());
        }
        assert_eq!(rib.memory(), 16384 * 8);
        (0..10_000).for_each(|n| assert!(rib.remove(Ipv4Prefix::host(n)).is_some()));
        assert_eq!((rib.len(), rib.memory()), (0, SMALLEST * 8));
    }
}
