//! A map from prefixes: one hash table per prefix length, eight bytes a slot.
//!
//! The forwarding table cannot say which route a word came from, nor what lies beneath it; this
//! can. The control thread alone touches it.

use std::collections::TryReserveError;
use std::num::NonZeroU32;

use super::prefix::Ipv4Prefix;
use crate::hash::{mix64, random_seed};

const SMALLEST: usize = 8;

#[derive(Clone, Copy)]
struct Slot {
    addr: u32,
    /// Zero marks a free slot.
    value: u32,
}

const FREE: Slot = Slot { addr: 0, value: 0 };

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
                Slot { value: 0, .. } => return Err(at),
                slot if slot.addr == addr => return Ok(at),
                _ => at = (at + 1) & mask,
            }
        }
    }

    fn get(&self, addr: u32, seed: u64) -> Option<NonZeroU32> {
        if self.len == 0 {
            return None;
        }
        self.find(addr, seed).ok().and_then(|at| NonZeroU32::new(self.slots[at].value))
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
        for slot in old.into_iter().filter(|slot| slot.value != 0) {
            if let Err(at) = self.find(slot.addr, seed) {
                self.slots[at] = slot;
            }
        }
        Ok(())
    }

    /// Room was reserved before.
    fn insert(&mut self, addr: u32, value: NonZeroU32, seed: u64) -> Option<NonZeroU32> {
        let new = Slot { addr, value: value.get() };
        match self.find(addr, seed) {
            Ok(at) => NonZeroU32::new(std::mem::replace(&mut self.slots[at], new).value),
            Err(at) => {
                self.slots[at] = new;
                self.len += 1;
                None
            }
        }
    }

    fn remove(&mut self, addr: u32, seed: u64) -> Option<NonZeroU32> {
        if self.len == 0 {
            return None;
        }
        let mut hole = self.find(addr, seed).ok()?;
        let removed = std::mem::replace(&mut self.slots[hole], FREE).value;
        self.len -= 1;
        // Close the gap: whoever would no longer be found from its home moves back into the hole.
        let mask = self.slots.len() - 1;
        let mut at = (hole + 1) & mask;
        while self.slots[at].value != 0 {
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
        NonZeroU32::new(removed)
    }
}

/// A map from IPv4 prefixes to numbers, that also finds the longest prefix that holds an address. 8
/// bytes a slot, of which at most three quarters are used.
pub struct PrefixMap {
    lengths: [Routes; 33],
    /// One bit per prefix length that has routes.
    present: u64,
    len: usize,
    /// Routes come from the network: their author must not choose where they collide.
    seed: u64,
}

impl Default for PrefixMap {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for PrefixMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PrefixMap").field("len", &self.len).finish_non_exhaustive()
    }
}

impl PrefixMap {
    /// An empty one. Needs no heap.
    pub fn new() -> Self {
        let lengths = std::array::from_fn(|_| Routes::default());
        Self { lengths, present: 0, len: 0, seed: random_seed() }
    }

    /// How many prefixes there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of exactly this prefix.
    pub fn get(&self, prefix: Ipv4Prefix) -> Option<NonZeroU32> {
        self.lengths[usize::from(prefix.len())].get(prefix.addr(), self.seed)
    }

    /// Makes room for one more prefix of this length, so that the next `put` cannot fail.
    pub(super) fn reserve(&mut self, len: u8) -> Result<(), TryReserveError> {
        self.lengths[usize::from(len)].reserve(self.seed)
    }

    /// Sets a prefix's value; returns the one it had.
    ///
    /// # Errors
    ///
    /// [`TryReserveError`] if there is no memory; nothing has changed then. Replacing never fails.
    pub fn insert(
        &mut self,
        prefix: Ipv4Prefix,
        value: NonZeroU32,
    ) -> Result<Option<NonZeroU32>, TryReserveError> {
        if self.get(prefix).is_none() {
            self.reserve(prefix.len())?;
        }
        Ok(self.put(prefix, value))
    }

    /// As [`PrefixMap::insert`], after [`PrefixMap::reserve`] or for a prefix that is there.
    pub(super) fn put(&mut self, prefix: Ipv4Prefix, value: NonZeroU32) -> Option<NonZeroU32> {
        let routes = &mut self.lengths[usize::from(prefix.len())];
        let old = routes.insert(prefix.addr(), value, self.seed);
        self.present |= 1 << prefix.len();
        self.len += usize::from(old.is_none());
        old
    }

    /// Removes a prefix; returns its value.
    pub fn remove(&mut self, prefix: Ipv4Prefix) -> Option<NonZeroU32> {
        let routes = &mut self.lengths[usize::from(prefix.len())];
        let old = routes.remove(prefix.addr(), self.seed)?;
        if routes.len == 0 {
            self.present &= !(1 << prefix.len());
        }
        self.len -= 1;
        Some(old)
    }

    /// The longest prefix of at most `longest` bits that holds `addr`.
    pub fn covering(&self, addr: u32, longest: u8) -> Option<(Ipv4Prefix, NonZeroU32)> {
        let mut lengths = self.present & ((2 << longest) - 1);
        while lengths != 0 {
            let len = lengths.ilog2();
            lengths &= !(1 << len);
            let prefix = Ipv4Prefix::of(addr, len as u8);
            if let Some(value) = self.get(prefix) {
                return Some((prefix, value));
            }
        }
        None
    }

    /// All prefixes, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Prefix, NonZeroU32)> {
        self.lengths.iter().zip(0u8..).flat_map(|(routes, len)| {
            let slots = routes.slots.iter();
            slots
                .filter_map(move |s| Some((Ipv4Prefix::of(s.addr, len), NonZeroU32::new(s.value)?)))
        })
    }

    /// Bytes of heap.
    pub fn memory(&self) -> usize {
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
            let mut map = PrefixMap::new();
            let mut model = BTreeMap::new();
            for (op, n, value) in ops {
                // Few lengths and addresses, so that runs collide, wrap and shrink.
                let prefix = Ipv4Prefix::of(n << 26 | n, if n % 2 == 0 { 6 } else { 32 });
                let value = NonZeroU32::new(value).unwrap();
                if op < 3 {
                    let old = map.insert(prefix, value).unwrap();
                    prop_assert_eq!(old, model.insert(prefix, value));
                } else {
                    prop_assert_eq!(map.remove(prefix), model.remove(&prefix));
                }
                prop_assert_eq!(map.len(), model.len());
            }
            prop_assert_eq!(map.iter().collect::<BTreeMap<_, _>>(), model.clone());
            prop_assert!(model.iter().all(|(&p, &value)| map.get(p) == Some(value)));
        }
    }

    #[test]
    fn gives_memory_back() {
        let mut map = PrefixMap::new();
        for n in 0..10_000 {
            map.insert(Ipv4Prefix::host(n), NonZeroU32::new(1).unwrap()).unwrap();
        }
        assert_eq!(map.memory(), 16384 * 8);
        (0..10_000).for_each(|n| assert!(map.remove(Ipv4Prefix::host(n)).is_some()));
        assert_eq!((map.len(), map.memory()), (0, SMALLEST * 8));
    }
}
