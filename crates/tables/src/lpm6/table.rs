//! What workers read of the routes longer than /32.
//!
//! A *tail* is a /32 with longer routes in it: which lengths there are, and the leaf of the route
//! that covers them. Routes are entries, found by a hash of prefix and length in an array of slots
//! that is replaced by a larger one as it fills. Each change is a store of one word.

use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::lpm4::Lpm4Reader;
use crate::paged::{MapError, PagedTable};
use crate::prefetch::for_read;
use crate::prefix::Address;
use crate::qsbr::Domain;

/// Flag of leaves of the upper half that name a tail.
pub(super) const TAIL: u32 = 1 << 25;
/// Length of the routes' upper half in bits.
pub(super) const TOP: u8 = 32;
/// The longest length that a tail's first word of lengths has.
const MIDDLE: u8 = 64;
/// Addresses that are looked up together.
const BATCH: usize = 256;

/// The part of a word that is a leaf; above it is the length of the route, up to 32.
const LEAF: u32 = (1 << LEN_SHIFT) - 1;
const LEN_SHIFT: u32 = 26;

crate::zeroable! {
    /// A /32 with longer routes in it.
    pub(super) struct Tail {
        /// Leaf and length of the longest route up to /32 around it; 0 if there is none.
        fallback: AtomicU32,
        /// Lengths 33 to 64 that there are.
        middle: AtomicU32,
        /// Lengths 65 to 128 that there are.
        long: AtomicU64,
    }
}

impl Tail {
    /// Begins again with no lengths.
    pub(super) fn open(&self, fallback: Option<(u32, u8)>) {
        self.middle.store(0, Ordering::Relaxed);
        self.long.store(0, Ordering::Relaxed);
        self.set_fallback(fallback);
    }

    /// Sets what is found where no longer route is.
    pub(super) fn set_fallback(&self, fallback: Option<(u32, u8)>) {
        let word = fallback.map_or(0, |(leaf, len)| u32::from(len) << LEN_SHIFT | leaf);
        self.fallback.store(word, Ordering::Release);
    }

    fn fallback(&self) -> (u32, u8) {
        let word = self.fallback.load(Ordering::Acquire);
        (word & LEAF, (word >> LEN_SHIFT) as u8)
    }

    /// Sets whether there are routes of a length.
    pub(super) fn set(&self, len: u8, there: bool) {
        let flip = |word: u64, bit: u8| if there { word | 1 << bit } else { word & !(1 << bit) };
        if len > MIDDLE {
            let word = self.long.load(Ordering::Relaxed);
            self.long.store(flip(word, len - MIDDLE - 1), Ordering::Release);
        } else {
            let word = u64::from(self.middle.load(Ordering::Relaxed));
            self.middle.store(flip(word, len - TOP - 1) as u32, Ordering::Release);
        }
    }

    /// Returns the lengths, the longest first.
    #[inline]
    fn lengths(&self) -> Descending {
        let (long, middle) =
            (self.long.load(Ordering::Acquire), self.middle.load(Ordering::Acquire));
        Descending { long, middle }
    }
}

struct Descending {
    long: u64,
    middle: u32,
}

impl Iterator for Descending {
    type Item = u8;

    #[inline]
    fn next(&mut self) -> Option<u8> {
        if let Some(bit) = self.long.checked_ilog2() {
            self.long ^= 1 << bit;
            return Some(MIDDLE + 1 + bit as u8);
        }
        let bit = self.middle.checked_ilog2()?;
        self.middle ^= 1 << bit;
        Some(TOP + 1 + bit as u8)
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
    pub(super) fn key(&self) -> (u128, u8) {
        let [high, low] = [&self.high, &self.low].map(|w| u128::from(w.load(Ordering::Relaxed)));
        (high << 64 | low, self.len.load(Ordering::Relaxed) as u8)
    }

    #[inline]
    fn is(&self, addr: u128, len: u8) -> bool {
        self.key() == (addr, len)
    }
}

/// An open-addressed array of slots: the upper half of a slot is a part of the hash, the lower one
/// the index of an entry, plus 2.
pub(super) struct Slots {
    slots: Box<[AtomicU64]>,
    /// Slots that are or were in use.
    used: AtomicUsize,
}

const EMPTY: u64 = 0;
/// A slot whose entry was removed: others may be behind it.
const REMOVED: u64 = 1;
const FIRST: u64 = 2;
const LEAST_SLOTS: usize = 64;

impl Slots {
    fn new(count: usize) -> Slots {
        Slots {
            slots: (0..count).map(|_| AtomicU64::new(EMPTY)).collect(),
            used: AtomicUsize::new(0),
        }
    }

    #[inline]
    fn at(&self, hash: u64, step: usize) -> &AtomicU64 {
        &self.slots[(hash as usize).wrapping_add(step) & (self.slots.len() - 1)]
    }

    fn put(&self, hash: u64, entry: u32) {
        let slot = (0..).map(|step| self.at(hash, step));
        // Half of them are empty.
        let free = slot.into_iter().find(|s| s.load(Ordering::Relaxed) == EMPTY);
        if let Some(slot) = free {
            slot.store(hash >> 32 << 32 | (u64::from(entry) + FIRST), Ordering::Release);
            self.used.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What workers and the owner share.
pub(super) struct Table {
    pub(super) tails: PagedTable<Tail>,
    pub(super) entries: PagedTable<Entry>,
    /// Owned; the owner replaces it.
    slots: AtomicPtr<Slots>,
    seed: u64,
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: it came from a box, and this is the table's last owner.
        drop(unsafe { Box::from_raw(*self.slots.get_mut()) });
    }
}

impl Table {
    pub(super) fn new(max_routes: usize, max_tails: u32, seed: u64) -> Result<Table, MapError> {
        Ok(Table {
            tails: PagedTable::new(max_tails as usize)?,
            entries: PagedTable::new(max_routes)?,
            slots: AtomicPtr::new(Box::into_raw(Box::new(Slots::new(LEAST_SLOTS)))),
            seed,
        })
    }

    #[inline]
    fn slots(&self) -> &Slots {
        // SAFETY: never null. What the owner replaces lives until all readers have passed a
        // quiescent point, and they hold it only within a lookup.
        unsafe { &*self.slots.load(Ordering::Acquire) }
    }

    #[inline]
    fn hash(&self, addr: u128, len: u8) -> u64 {
        let x = ((addr >> 64) as u64 ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let x = x ^ x >> 32 ^ addr as u64 ^ u64::from(len) << 56;
        let x = x.wrapping_mul(0xbb67_ae85_84ca_a73b);
        x ^ x >> 29
    }

    /// Returns the entry of a prefix.
    #[inline]
    fn find(&self, slots: &Slots, addr: u128, len: u8) -> Option<&Entry> {
        let hash = self.hash(addr, len);
        for step in 0.. {
            let slot = slots.at(hash, step).load(Ordering::Acquire);
            if slot == EMPTY {
                return None;
            }
            if (slot ^ hash) >> 32 == 0 && slot != REMOVED {
                let entry = self.entries.get((slot as u32).wrapping_sub(FIRST as u32));
                if let Some(entry) = entry.filter(|e| e.is(addr, len)) {
                    return Some(entry);
                }
            }
        }
        None
    }

    #[inline]
    fn tail(&self, leaf: u32) -> &Tail {
        // SAFETY: the owner names tails below the limit only, which `PagedTable` has.
        unsafe { self.tails.get_unchecked((leaf & !TAIL) as usize) }
    }

    /// Looks up beneath a tail; returns leaf and length of the route.
    #[inline]
    fn beneath(&self, leaf: u32, addr: u128) -> (u32, u8) {
        let (tail, slots) = (self.tail(leaf), self.slots());
        for len in tail.lengths() {
            if let Some(entry) = self.find(slots, addr & u128::mask(len), len) {
                return (entry.leaf(), len);
            }
        }
        tail.fallback()
    }

    // The owner's side.

    /// Returns the entry of a prefix.
    pub(super) fn entry(&self, addr: u128, len: u8) -> Option<&Entry> {
        self.find(self.slots(), addr, len)
    }

    /// Adds an entry, which has been written. `live` is the number of the others.
    pub(super) fn link(&self, entry: u32, live: usize, domain: &Domain) {
        let Some((addr, len)) = self.entries.get(entry).map(Entry::key) else { return };
        let full = {
            let slots = self.slots();
            (slots.used.load(Ordering::Relaxed) + 1) * 2 > slots.slots.len()
        };
        if full {
            let count = ((live + 1) * 4).next_power_of_two().max(LEAST_SLOTS);
            let new = Box::new(Slots::new(count));
            for slot in &self.slots().slots {
                let slot = slot.load(Ordering::Relaxed);
                let old = (slot >= FIRST).then(|| (slot as u32).wrapping_sub(FIRST as u32));
                if let Some((index, key)) = old.and_then(|i| Some((i, self.entries.get(i)?.key())))
                {
                    new.put(self.hash(key.0, key.1), index);
                }
            }
            let old = self.slots.swap(Box::into_raw(new), Ordering::AcqRel);
            // SAFETY: it came from a box. Readers that may be in it are waited for.
            domain.retire_box(unsafe { Box::from_raw(old) });
        }
        self.slots().put(self.hash(addr, len), entry);
    }

    /// Removes the entry of a prefix; returns its index and its leaf.
    pub(super) fn unlink(&self, addr: u128, len: u8) -> Option<(u32, u32)> {
        let (slots, hash) = (self.slots(), self.hash(addr, len));
        for step in 0.. {
            let at = slots.at(hash, step);
            let slot = at.load(Ordering::Relaxed);
            if slot == EMPTY {
                return None;
            }
            if (slot ^ hash) >> 32 != 0 || slot == REMOVED {
                continue;
            }
            let index = (slot as u32).wrapping_sub(FIRST as u32);
            if let Some(entry) = self.entries.get(index).filter(|e| e.is(addr, len)) {
                at.store(REMOVED, Ordering::Release);
                return Some((index, entry.leaf()));
            }
        }
        None
    }

    /// Returns all entries.
    pub(super) fn all(&self) -> impl Iterator<Item = &Entry> {
        let slots = self.slots().slots.iter().map(|s| s.load(Ordering::Relaxed));
        let linked = slots.filter(|slot| *slot >= FIRST);
        linked.filter_map(|slot| self.entries.get((slot as u32).wrapping_sub(FIRST as u32)))
    }

    /// Returns the bytes of the slots.
    pub(super) fn slot_bytes(&self) -> usize {
        self.slots().slots.len() * size_of::<AtomicU64>()
    }
}

/// A worker's view of a [`Lpm6`](super::Lpm6). Cheap to clone; keeps the tables alive.
///
/// As an [`Lpm4Reader`], it takes no guard: look up between
/// [`Reader::enter`](crate::qsbr::Reader::enter) and the end of the loop, and keep no leaf.
#[derive(Clone)]
pub struct Lpm6Reader {
    pub(super) top: Lpm4Reader,
    pub(super) table: Arc<Table>,
}

/// The upper half, in which the first look-up is.
#[inline]
pub(super) const fn top(addr: u128) -> u32 {
    (addr >> 96) as u32
}

impl Lpm6Reader {
    /// Returns the leaf of the longest route that contains `addr` (host byte order), or 0 if there
    /// is none.
    #[inline]
    pub fn lookup(&self, addr: u128) -> u32 {
        let leaf = self.top.lookup(top(addr));
        if leaf & TAIL == 0 { leaf } else { self.table.beneath(leaf, addr).0 }
    }

    /// Returns the leaf of the longest route that contains `addr`, and that route's length.
    #[must_use]
    pub fn lookup_route(&self, addr: u128) -> Option<(u32, u8)> {
        let (leaf, len) = self.top.lookup_route(top(addr))?;
        let found = match leaf.get() & TAIL {
            0 => (leaf.get(), len),
            _ => self.table.beneath(leaf.get(), addr),
        };
        (found.0 != 0).then_some(found)
    }

    /// Prefetches the first memory word that a lookup of `addr` reads.
    #[inline]
    pub fn prefetch(&self, addr: u128) {
        self.top.prefetch(top(addr));
    }

    /// Looks up addresses; the shorter slice limits the number. `leaves[i]` becomes the result of
    /// [`lookup`](Self::lookup) for `addrs[i]`.
    #[inline]
    pub fn lookup_batch(&self, addrs: &[u128], leaves: &mut [u32]) {
        for (addrs, leaves) in addrs.chunks(BATCH).zip(leaves.chunks_mut(BATCH)) {
            self.lookup_some(addrs, leaves);
        }
    }

    /// Stage by stage, so that no load waits for another address's.
    #[inline]
    fn lookup_some(&self, addrs: &[u128], leaves: &mut [u32]) {
        let count = addrs.len().min(leaves.len());
        let (addrs, leaves) = (&addrs[..count], &mut leaves[..count]);
        let mut tops = [0; BATCH];
        tops.iter_mut().zip(addrs).for_each(|(to, addr)| *to = top(*addr));
        self.top.lookup_batch(&tops[..count], leaves);
        if leaves.iter().fold(0, |all, leaf| all | leaf) & TAIL == 0 {
            return;
        }
        let (table, slots) = (&*self.table, self.table.slots());
        let tails = leaves.iter().filter(|leaf| **leaf & TAIL != 0);
        tails.for_each(|leaf| for_read(table.tail(*leaf)));
        let mut hashes = [0u64; BATCH];
        for ((addr, leaf), hash) in addrs.iter().zip(&*leaves).zip(&mut hashes) {
            if *leaf & TAIL != 0
                && let Some(len) = table.tail(*leaf).lengths().next()
            {
                *hash = table.hash(*addr & u128::mask(len), len);
                for_read(slots.at(*hash, 0));
            }
        }
        for (leaf, hash) in leaves.iter().zip(&hashes) {
            let slot = slots.at(*hash, 0).load(Ordering::Acquire);
            if *leaf & TAIL != 0 && (slot ^ hash) >> 32 == 0 {
                let index = (slot as u32).wrapping_sub(FIRST as u32);
                table.entries.get(index).into_iter().for_each(for_read);
            }
        }
        for (addr, leaf) in addrs.iter().zip(leaves) {
            if *leaf & TAIL != 0 {
                *leaf = table.beneath(*leaf, *addr).0;
            }
        }
    }
}

impl std::fmt::Debug for Lpm6Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lpm6Reader").finish_non_exhaustive()
    }
}
