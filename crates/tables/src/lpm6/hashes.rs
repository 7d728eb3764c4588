//! The hashes of routes beneath tails without a block, and of sites.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// A site as it is found: what a /48 leads to, and the index of its lengths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Found {
    /// Leaf of the route to the /48; 0 if there is none.
    pub(super) leaf: u32,
    /// Index of its [`Site`] plus 1; 0 if there are no longer routes.
    pub(super) deep: u32,
}

impl Found {
    #[inline]
    pub(super) fn of(word: u64) -> Found {
        Found { leaf: word as u32, deep: (word >> 32) as u32 }
    }

    pub(super) fn word(self) -> u64 {
        u64::from(self.deep) << 32 | u64::from(self.leaf)
    }
}

/// A slot of a site. Its key stays until the array is replaced.
pub(super) struct Pair {
    /// The upper 48 bits of the prefix, and a bit to tell them from what follows.
    key: AtomicU64,
    /// A [`Found`].
    pub(super) value: AtomicU64,
}

/// A key that no site has: an address's upper bits in the place of the prefix's.
pub(super) const KEY: u64 = 1 << 15;

/// The key of the site that an address is in.
#[inline]
pub(super) fn site_key(addr: u128) -> u64 {
    ((addr >> 64) as u64 & !0xffff) | KEY
}

/// The address of a key's site.
pub(super) fn site_addr(key: u64) -> u128 {
    u128::from(key & !0xffff) << 64
}

/// An open-addressed array of sites.
pub(super) struct Pairs {
    pub(super) pairs: Box<[Pair]>,
    /// Pairs that are or were in use.
    pub(super) used: AtomicUsize,
}

/// Slots that fit the second-level cache with what else is in it: loads from there overlap well
/// enough without being prefetched.
pub(super) const FEW_SLOTS: usize = 1 << 16;

/// Pairs that fit the first-level cache with what else is in it: prefetching them gains nothing.
pub(super) const FEW_PAIRS: usize = 1024;

impl Pairs {
    pub(super) fn new(count: usize) -> Pairs {
        let pair = |_| Pair { key: AtomicU64::new(EMPTY), value: AtomicU64::new(0) };
        Pairs { pairs: (0..count).map(pair).collect(), used: AtomicUsize::new(0) }
    }

    #[inline]
    pub(super) fn at(&self, hash: u64, step: usize) -> &Pair {
        &self.pairs[(hash as usize).wrapping_add(step) & (self.pairs.len() - 1)]
    }

    #[inline]
    pub(super) fn find(&self, hash: u64, key: u64) -> Option<&Pair> {
        for step in 0.. {
            let pair = self.at(hash, step);
            match pair.key.load(Ordering::Acquire) {
                found if found == key => return Some(pair),
                EMPTY => return None,
                _ => {}
            }
        }
        None
    }

    pub(super) fn put(&self, hash: u64, key: u64, value: u64) {
        let pairs = (0..).map(|step| self.at(hash, step));
        // Half of them are empty.
        let free = pairs.into_iter().find(|p| p.key.load(Ordering::Relaxed) == EMPTY);
        if let Some(pair) = free {
            pair.value.store(value, Ordering::Relaxed);
            pair.key.store(key, Ordering::Release);
            self.used.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// All sites that lead anywhere, with their keys.
    pub(super) fn live(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let words = self
            .pairs
            .iter()
            .map(|p| (p.key.load(Ordering::Relaxed), p.value.load(Ordering::Relaxed)));
        words.filter(|(_, value)| *value != 0)
    }
}

crate::zeroable! {
    /// A route. All but the leaf stays as it is while a slot names it.
    pub(super) struct Entry {
        high: AtomicU64,
        low: AtomicU64,
        len: AtomicU32,
        leaf: AtomicU32,
    }
}

impl Entry {
    pub(super) fn write(&self, addr: u128, len: u8, leaf: u32) {
        self.high.store((addr >> 64) as u64, Ordering::Relaxed);
        self.low.store(addr as u64, Ordering::Relaxed);
        self.len.store(u32::from(len), Ordering::Relaxed);
        self.set_leaf(leaf);
    }

    /// Release: a worker that finds a leaf also sees the object that it refers to.
    pub(super) fn set_leaf(&self, leaf: u32) {
        self.leaf.store(leaf, Ordering::Release);
    }

    #[inline]
    pub(super) fn leaf(&self) -> u32 {
        self.leaf.load(Ordering::Acquire)
    }

    /// Address and length.
    #[inline]
    pub(super) fn key(&self) -> (u128, u8) {
        let [high, low] = [&self.high, &self.low].map(|w| u128::from(w.load(Ordering::Relaxed)));
        (high << 64 | low, self.len.load(Ordering::Relaxed) as u8)
    }

    #[inline]
    pub(super) fn is(&self, addr: u128, len: u8) -> bool {
        self.key() == (addr, len)
    }
}

/// An open-addressed array of slots: the upper half of a slot is a part of the hash, the lower one
/// the index of an entry, plus 2.
pub(super) struct Slots {
    pub(super) slots: Box<[AtomicU64]>,
    /// Slots that are or were in use.
    pub(super) used: AtomicUsize,
}

pub(super) const EMPTY: u64 = 0;
/// A slot whose entry was removed: others may be behind it.
pub(super) const REMOVED: u64 = 1;
pub(super) const FIRST: u64 = 2;
pub(super) const LEAST_SLOTS: usize = 64;

impl Slots {
    pub(super) fn new(count: usize) -> Slots {
        Slots {
            slots: (0..count).map(|_| AtomicU64::new(EMPTY)).collect(),
            used: AtomicUsize::new(0),
        }
    }

    #[inline]
    pub(super) fn at(&self, hash: u64, step: usize) -> &AtomicU64 {
        &self.slots[(hash as usize).wrapping_add(step) & (self.slots.len() - 1)]
    }

    pub(super) fn put(&self, hash: u64, entry: u32) {
        let slot = (0..).map(|step| self.at(hash, step));
        // Half of them are empty.
        let free = slot.into_iter().find(|s| s.load(Ordering::Relaxed) == EMPTY);
        if let Some(slot) = free {
            slot.store(hash >> 32 << 32 | (u64::from(entry) + FIRST), Ordering::Release);
            self.used.fetch_add(1, Ordering::Relaxed);
        }
    }
}
