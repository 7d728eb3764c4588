//! What workers read of the routes longer than /32.
//!
//! A *tail* is a /32 with longer routes in it: which lengths from 33 to 47 there are, and the leaf
//! of the route that covers them. One with few routes has a [`Block`], in which they are found; what
//! follows is read only for tails without, and beneath a /48 that has longer routes. A *site* is a /48 with a route or longer ones in it; sites are
//! found by one hash, with their route next to their key, and so a site's tail is not read. Routes
//! of other lengths are entries, found by a hash of prefix and length. Both hashes have arrays of
//! slots that are replaced by larger ones as they fill. Each change is a store of one word.

use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::block::{Block, CLASSES, DEEP, Places, middle};
use crate::lpm4::Lpm4Reader;
use crate::paged::{AllZeroValid, MapError, PagedTable, Pages};
use crate::prefetch::{for_read, lines_for_read};
use crate::prefix::Address;
use crate::qsbr::Domain;

/// Flag of leaves of the upper half that name a tail.
pub(super) const TAIL: u32 = 1 << 25;
/// Where such a leaf has the class of its block; beneath it is the block's index, or the tail's own.
const CLASS_SHIFT: u32 = 23;
/// Blocks of a class, or tails, at most.
pub(super) const MOST_TAILS: u32 = 1 << CLASS_SHIFT;

/// The leaf of a tail with a block.
pub(super) fn block_leaf(class: usize, index: u32) -> u32 {
    TAIL | (class as u32) << CLASS_SHIFT | index
}

/// The leaf of a tail without one.
pub(super) fn tail_leaf(tail: u32) -> u32 {
    block_leaf(CLASSES, tail)
}

/// Class of a leaf that names a tail, and the index of the class.
#[inline]
fn class_of(leaf: u32) -> (usize, usize) {
    let index = leaf & (MOST_TAILS - 1);
    ((leaf >> CLASS_SHIFT) as usize & CLASSES, index as usize)
}
/// Length of the routes' upper half in bits.
pub(super) const TOP: u8 = 32;
/// Length of a site's prefix in bits.
pub(super) const SITE: u8 = 48;
/// The bits of a site's prefix.
const SITE_MASK: u128 = u128::MAX << (128 - SITE);
/// The longest length that a site's first word of lengths has.
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
        /// Lengths 33 to 47 that there are.
        lengths: AtomicU32,
    }
}

impl Tail {
    /// Begins again with no lengths.
    pub(super) fn open(&self, fallback: Option<(u32, u8)>) {
        self.lengths.store(0, Ordering::Relaxed);
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
        let word = flip(self.lengths.load(Ordering::Relaxed).into(), len - TOP - 1, there);
        self.lengths.store(word as u32, Ordering::Release);
    }

    /// Returns the lengths, the longest first.
    #[inline]
    fn lengths(&self) -> Descending {
        Descending { long: 0, middle: self.lengths.load(Ordering::Acquire), base: TOP + 1 }
    }
}

fn flip(word: u64, bit: u8, there: bool) -> u64 {
    if there { word | 1 << bit } else { word & !(1 << bit) }
}

crate::zeroable! {
    /// The lengths of the routes in a /48, if any are longer.
    pub(super) struct Site {
        /// Lengths 65 to 128 that there are.
        long: AtomicU64,
        /// Lengths 49 to 64 that there are.
        middle: AtomicU32,
    }
}

impl Site {
    /// Begins again with no lengths.
    pub(super) fn open(&self) {
        self.middle.store(0, Ordering::Relaxed);
        self.long.store(0, Ordering::Release);
    }

    /// Sets whether there are routes of a length.
    pub(super) fn set(&self, len: u8, there: bool) {
        if len > MIDDLE {
            let word = flip(self.long.load(Ordering::Relaxed), len - MIDDLE - 1, there);
            self.long.store(word, Ordering::Release);
        } else {
            let word = flip(self.middle.load(Ordering::Relaxed).into(), len - SITE - 1, there);
            self.middle.store(word as u32, Ordering::Release);
        }
    }

    /// Returns the lengths, the longest first.
    #[inline]
    fn lengths(&self) -> Descending {
        let (long, middle) =
            (self.long.load(Ordering::Acquire), self.middle.load(Ordering::Acquire));
        Descending { long, middle, base: SITE + 1 }
    }
}

struct Descending {
    /// Lengths from 65 on.
    long: u64,
    /// Lengths from `base` on.
    middle: u32,
    base: u8,
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
        Some(self.base + bit as u8)
    }
}

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
    fn of(word: u64) -> Found {
        Found { leaf: word as u32, deep: (word >> 32) as u32 }
    }

    fn word(self) -> u64 {
        u64::from(self.deep) << 32 | u64::from(self.leaf)
    }
}

/// A slot of a site. Its key stays until the array is replaced.
pub(super) struct Pair {
    /// The upper 48 bits of the prefix, and a bit to tell them from what follows.
    key: AtomicU64,
    /// A [`Found`].
    value: AtomicU64,
}

/// A key that no site has: an address's upper bits in the place of the prefix's.
const KEY: u64 = 1 << 15;

/// The key of the site that an address is in.
#[inline]
pub(super) fn site_key(addr: u128) -> u64 {
    ((addr >> 64) as u64 & !0xffff) | KEY
}

/// The address of a key's site.
fn site_addr(key: u64) -> u128 {
    u128::from(key & !0xffff) << 64
}

/// An open-addressed array of sites.
pub(super) struct Pairs {
    pairs: Box<[Pair]>,
    /// Pairs that are or were in use.
    used: AtomicUsize,
}

/// Slots that fit the second-level cache with what else is in it: loads from there overlap well
/// enough without being prefetched.
const FEW_SLOTS: usize = 1 << 16;

/// Pairs that fit the first-level cache with what else is in it: prefetching them gains nothing.
const FEW_PAIRS: usize = 1024;

impl Pairs {
    fn new(count: usize) -> Pairs {
        let pair = |_| Pair { key: AtomicU64::new(EMPTY), value: AtomicU64::new(0) };
        Pairs { pairs: (0..count).map(pair).collect(), used: AtomicUsize::new(0) }
    }

    #[inline]
    fn at(&self, hash: u64, step: usize) -> &Pair {
        &self.pairs[(hash as usize).wrapping_add(step) & (self.pairs.len() - 1)]
    }

    #[inline]
    fn find(&self, hash: u64, key: u64) -> Option<&Pair> {
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

    fn put(&self, hash: u64, key: u64, value: u64) {
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
    fn live(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
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
    blocks: (PagedTable<Block<8>>, PagedTable<Block<16>>, PagedTable<Block<32>>),
    pub(super) sites: PagedTable<Site>,
    pub(super) entries: PagedTable<Entry>,
    /// Owned; the owner replaces it.
    slots: AtomicPtr<Slots>,
    /// Owned; the owner replaces it.
    pairs: AtomicPtr<Pairs>,
    seed: u64,
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: it came from a box, and this is the table's last owner.
        drop(unsafe { Box::from_raw(*self.slots.get_mut()) });
        // SAFETY: as above.
        drop(unsafe { Box::from_raw(*self.pairs.get_mut()) });
    }
}

impl Table {
    pub(super) fn new(
        max_routes: usize,
        max_tails: u32,
        max_blocks: u32,
        pages: Pages,
        seed: u64,
    ) -> Result<Table, MapError> {
        fn blocks<T: AllZeroValid>(count: u32, pages: Pages) -> Result<PagedTable<T>, MapError> {
            PagedTable::with_pages(count as usize, pages)
        }
        Ok(Table {
            tails: PagedTable::new(max_tails as usize)?,
            blocks: (
                blocks(max_blocks, pages)?,
                blocks(max_blocks, pages)?,
                blocks(max_blocks, pages)?,
            ),
            sites: PagedTable::new(max_routes)?,
            entries: PagedTable::new(max_routes)?,
            slots: AtomicPtr::new(Box::into_raw(Box::new(Slots::new(LEAST_SLOTS)))),
            pairs: AtomicPtr::new(Box::into_raw(Box::new(Pairs::new(LEAST_SLOTS)))),
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
    fn pairs(&self) -> &Pairs {
        // SAFETY: as for the slots.
        unsafe { &*self.pairs.load(Ordering::Acquire) }
    }

    #[inline]
    fn site_hash(&self, key: u64) -> u64 {
        let product = (key ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        product >> 32 ^ product
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
        let (class, index) = class_of(leaf);
        let (small, medium, large) = &self.blocks;
        // SAFETY: the owner names blocks and tails below the limits only, which each `PagedTable`
        // has.
        unsafe {
            let tail = match class {
                0 => small.get_unchecked(index).tail() as usize,
                1 => medium.get_unchecked(index).tail() as usize,
                2 => large.get_unchecked(index).tail() as usize,
                _ => index,
            };
            self.tails.get_unchecked(tail)
        }
    }

    /// Looks up in a tail's block; [`DEEP`] if it does not tell.
    #[inline]
    fn in_block(&self, leaf: u32, addr: u128) -> u32 {
        let (class, index) = class_of(leaf);
        let (small, medium, large) = &self.blocks;
        // SAFETY: as for tails.
        unsafe {
            match class {
                0 => small.get_unchecked(index).lookup(middle(addr)),
                1 => medium.get_unchecked(index).lookup(middle(addr)),
                2 => large.get_unchecked(index).lookup(middle(addr)),
                _ => DEEP,
            }
        }
    }

    /// Returns the leaf beneath a tail.
    #[inline]
    fn leaf_beneath(&self, leaf: u32, addr: u128) -> u32 {
        match self.in_block(leaf, addr) {
            DEEP => self.beneath(leaf, addr).0,
            found => found,
        }
    }

    /// Looks up beneath a tail; returns leaf and length of the route.
    #[inline]
    fn beneath(&self, leaf: u32, addr: u128) -> (u32, u8) {
        let found = self.found(addr);
        if found.deep == 0 && found.leaf != 0 {
            return (found.leaf, SITE);
        }
        self.beyond(leaf, addr, found)
    }

    /// Looks up in a site with longer routes, or next to all sites.
    fn beyond(&self, leaf: u32, addr: u128, found: Found) -> (u32, u8) {
        if let Some(site) = self.site_of(found) {
            let slots = self.slots();
            for len in site.lengths() {
                if let Some(entry) = self.find(slots, addr & u128::mask(len), len) {
                    return (entry.leaf(), len);
                }
            }
        }
        self.around(leaf, addr, found)
    }

    /// The lengths of a site's longer routes, if there are any.
    #[inline]
    fn site_of(&self, found: Found) -> Option<&Site> {
        found.deep.checked_sub(1).and_then(|at| self.sites.get(at))
    }

    /// Returns leaf and length of the longest route that all of an address's site is in.
    fn around(&self, leaf: u32, addr: u128, found: Found) -> (u32, u8) {
        if found.leaf != 0 {
            return (found.leaf, SITE);
        }
        let (tail, slots) = (self.tail(leaf), self.slots());
        for len in tail.lengths() {
            if let Some(entry) = self.find(slots, addr & u128::mask(len), len) {
                return (entry.leaf(), len);
            }
        }
        tail.fallback()
    }

    /// What is found at the site of an address.
    #[inline]
    fn found(&self, addr: u128) -> Found {
        let key = site_key(addr);
        let pair = self.pairs().find(self.site_hash(key), key);
        pair.map_or(Found::default(), |p| Found::of(p.value.load(Ordering::Acquire)))
    }

    /// The first length that is tried for an address that no site's own route settles.
    #[inline]
    fn first_length(&self, leaf: u32, found: Found) -> Option<u8> {
        match self.site_of(found) {
            Some(site) => site.lengths().next(),
            None => self.tail(leaf).lengths().next(),
        }
    }

    // The owner's side.

    /// Returns a block.
    pub(super) fn block(&self, class: usize, index: u32) -> Option<&dyn Places> {
        let (small, medium, large) = &self.blocks;
        match class {
            0 => small.get(index).map(|b| b as &dyn Places),
            1 => medium.get(index).map(|b| b as &dyn Places),
            _ => large.get(index).map(|b| b as &dyn Places),
        }
    }

    /// Bytes of a block of each class.
    pub(super) fn block_bytes() -> [usize; CLASSES] {
        [size_of::<Block<8>>(), size_of::<Block<16>>(), size_of::<Block<32>>()]
    }

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

    /// Returns what is found at the site of an address.
    pub(super) fn site(&self, addr: u128) -> Found {
        let key = site_key(addr);
        let pair = self.pairs().find(self.site_hash(key), key);
        pair.map_or(Found::default(), |p| Found::of(p.value.load(Ordering::Relaxed)))
    }

    /// Sets what is found at the site of an address; by nothing, it is removed. `live` is the
    /// number of sites.
    pub(super) fn set_site(&self, addr: u128, found: Found, live: usize, domain: Option<&Domain>) {
        let key = site_key(addr);
        let hash = self.site_hash(key);
        if let Some(pair) = self.pairs().find(hash, key) {
            // The key stays: one that comes back finds its place, until the array is replaced.
            return pair.value.store(found.word(), Ordering::Release);
        }
        let (true, Some(domain)) = (found != Found::default(), domain) else { return };
        let full = {
            let pairs = self.pairs();
            (pairs.used.load(Ordering::Relaxed) + 1) * 2 > pairs.pairs.len()
        };
        if full {
            let count = ((live + 1) * 4).next_power_of_two().max(LEAST_SLOTS);
            let new = Box::new(Pairs::new(count));
            for (key, value) in self.pairs().live() {
                new.put(self.site_hash(key), key, value);
            }
            let old = self.pairs.swap(Box::into_raw(new), Ordering::AcqRel);
            // SAFETY: it came from a box. Readers that may be in it are waited for.
            domain.retire_box(unsafe { Box::from_raw(old) });
        }
        self.pairs().put(hash, key, found.word());
    }

    /// Returns the routes to sites.
    pub(super) fn all_sites(&self) -> impl Iterator<Item = (u128, u32)> + '_ {
        let live = self.pairs().live().map(|(key, value)| (site_addr(key), Found::of(value).leaf));
        live.filter(|(_, leaf)| *leaf != 0)
    }

    /// Returns all entries.
    pub(super) fn all(&self) -> impl Iterator<Item = &Entry> {
        let slots = self.slots().slots.iter().map(|s| s.load(Ordering::Relaxed));
        let linked = slots.filter(|slot| *slot >= FIRST);
        linked.filter_map(|slot| self.entries.get((slot as u32).wrapping_sub(FIRST as u32)))
    }

    /// Returns the bytes of both hashes.
    pub(super) fn slot_bytes(&self) -> usize {
        self.slots().slots.len() * size_of::<AtomicU64>()
            + self.pairs().pairs.len() * size_of::<Pair>()
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
        if leaf & TAIL == 0 { leaf } else { self.table.leaf_beneath(leaf, addr) }
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

    /// Returns the leaf of all addresses that differ from `addr` in bits of `differ` only, if one
    /// look-up tells: they are the same one, or of one /48 without longer routes.
    #[inline]
    pub fn lookup_alike(&self, addr: u128, differ: u128) -> Option<u32> {
        if differ == 0 {
            return Some(self.lookup(addr));
        }
        if differ & SITE_MASK != 0 {
            return None;
        }
        let leaf = self.top.lookup(top(addr));
        if leaf & TAIL == 0 {
            return Some(leaf);
        }
        match self.table.in_block(leaf, addr) {
            DEEP => {}
            found => return Some(found),
        }
        let found = self.table.found(addr);
        (found.deep == 0).then(|| self.table.around(leaf, addr, found).0)
    }

    /// Looks up addresses; the shorter slice limits the number. `leaves[i]` becomes the result of
    /// [`lookup`](Self::lookup) for `addrs[i]`.
    #[inline]
    pub fn lookup_batch(&self, addrs: &[u128], leaves: &mut [u32]) {
        let Some(first) = addrs.first().copied() else { return };
        let differ = addrs.iter().fold(0, |differ, addr| differ | (addr ^ first));
        match self.lookup_alike(first, differ) {
            Some(leaf) => leaves.iter_mut().zip(addrs).for_each(|(to, _)| *to = leaf),
            None => self.lookup_unlike(addrs, differ, leaves),
        }
    }

    /// As [`lookup_batch`](Self::lookup_batch), for addresses of which
    /// [`lookup_alike`](Self::lookup_alike) does not tell: all bits in which any two of them differ
    /// are in `differ`.
    #[inline]
    pub fn lookup_unlike(&self, addrs: &[u128], differ: u128, leaves: &mut [u32]) {
        for (addrs, leaves) in addrs.chunks(BATCH).zip(leaves.chunks_mut(BATCH)) {
            let count = addrs.len().min(leaves.len());
            let (addrs, leaves) = (&addrs[..count], &mut leaves[..count]);
            match differ & SITE_MASK {
                0 => self.lookup_site(addrs, leaves),
                _ => self.lookup_some(addrs, leaves),
            }
        }
    }

    /// Looks up addresses of one /48, a length at a time.
    #[inline]
    fn lookup_site(&self, addrs: &[u128], leaves: &mut [u32]) {
        let (table, slots) = (&*self.table, self.table.slots());
        let Some(first) = addrs.first().copied() else { return };
        let leaf = self.top.lookup(top(first));
        if leaf & TAIL == 0 {
            return leaves.fill(leaf);
        }
        let found = table.found(first);
        let mut left = addrs.len();
        leaves.fill(0);
        for len in table.site_of(found).into_iter().flat_map(Site::lengths) {
            let mask = u128::mask(len);
            if slots.slots.len() > FEW_SLOTS {
                addrs.iter().for_each(|a| for_read(slots.at(table.hash(a & mask, len), 0)));
            }
            for (addr, leaf) in addrs.iter().zip(&mut *leaves).filter(|(_, leaf)| **leaf == 0) {
                if let Some(entry) = table.find(slots, addr & mask, len) {
                    *leaf = entry.leaf();
                    left -= 1;
                }
            }
            if left == 0 {
                return;
            }
        }
        let around = table.around(leaf, first, found).0;
        leaves.iter_mut().filter(|leaf| **leaf == 0).for_each(|leaf| *leaf = around);
    }

    /// Stage by stage, so that no load waits for another address's.
    #[inline]
    fn lookup_some(&self, addrs: &[u128], leaves: &mut [u32]) {
        let count = addrs.len();
        let mut tops = [0; BATCH];
        tops.iter_mut().zip(addrs).for_each(|(to, addr)| *to = top(*addr));
        self.top.lookup_batch(&tops[..count], leaves);
        if leaves.iter().fold(0, |all, leaf| all | leaf) & TAIL == 0 {
            return;
        }
        // Sorted by the class of their block: a branch for each would rarely be predicted.
        let (mut lists, mut counts) = ([[0u8; BATCH]; KINDS], [0; KINDS]);
        for (i, leaf) in leaves.iter().enumerate() {
            let kind = (leaf >> CLASS_SHIFT) as usize & (KINDS - 1);
            lists[kind][counts[kind] & (BATCH - 1)] = i as u8;
            counts[kind] += 1;
        }
        let list = |class: usize| &lists[FIRST_KIND + class][..counts[FIRST_KIND + class]];
        let (small, medium, large) = &self.table.blocks;
        fetch(small, list(0), leaves);
        fetch(medium, list(1), leaves);
        fetch(large, list(2), leaves);
        // Those of which no block tells.
        let mut open = Few { list: [0; BATCH], count: 0 };
        settle(small, list(0), addrs, leaves, &mut open);
        settle(medium, list(1), addrs, leaves, &mut open);
        settle(large, list(2), addrs, leaves, &mut open);
        list(CLASSES).iter().for_each(|i| open.push_if(*i, true));
        if open.count > 0 {
            self.lookup_sites(addrs, leaves, &open.list[..open.count]);
        }
    }

    /// Looks up addresses by the hash of sites, again stage by stage.
    fn lookup_sites(&self, addrs: &[u128], leaves: &mut [u32], list: &[u8]) {
        let (table, pairs) = (&*self.table, self.table.pairs());
        let all = || list.iter().map(|i| usize::from(*i));
        if pairs.pairs.len() > FEW_PAIRS {
            all().for_each(|i| for_read(pairs.at(table.site_hash(site_key(addrs[i])), 0)));
        }
        // Those that no site's own route settles.
        let (mut open, mut left) = ([(0u8, Found::default()); BATCH], 0);
        for i in all() {
            let found = table.found(addrs[i]);
            if found.deep == 0 && found.leaf != 0 {
                leaves[i] = found.leaf;
                continue;
            }
            match found.deep.checked_sub(1).and_then(|at| table.sites.get(at)) {
                Some(site) => for_read(site),
                None => for_read(table.tail(leaves[i])),
            }
            open[left] = (i as u8, found);
            left += 1;
        }
        if left > 0 {
            self.lookup_open(addrs, leaves, &open[..left]);
        }
    }

    /// Looks up the addresses that are neither in the upper half nor settled by a site.
    fn lookup_open(&self, addrs: &[u128], leaves: &mut [u32], open: &[(u8, Found)]) {
        let (table, slots) = (&*self.table, self.table.slots());
        let mut hashes = [0u64; BATCH];
        for ((i, found), hash) in open.iter().zip(&mut hashes) {
            let i = usize::from(*i);
            if let Some(len) = table.first_length(leaves[i], *found) {
                *hash = table.hash(addrs[i] & u128::mask(len), len);
                for_read(slots.at(*hash, 0));
            }
        }
        for (_, hash) in open.iter().zip(&hashes) {
            let slot = slots.at(*hash, 0).load(Ordering::Acquire);
            if (slot ^ hash) >> 32 == 0 {
                let index = (slot as u32).wrapping_sub(FIRST as u32);
                table.entries.get(index).into_iter().for_each(for_read);
            }
        }
        for (i, found) in open {
            let i = usize::from(*i);
            leaves[i] = table.beyond(leaves[i], addrs[i], *found).0;
        }
    }
}

/// Kinds of leaves of the upper half, by their bits from [`CLASS_SHIFT`] on: those from
/// [`FIRST_KIND`] on name a tail.
const KINDS: usize = 8;
const FIRST_KIND: usize = (TAIL >> CLASS_SHIFT) as usize;

/// Places in a batch.
struct Few {
    list: [u8; BATCH],
    count: usize,
}

impl Few {
    #[inline]
    fn push_if(&mut self, i: u8, is: bool) {
        self.list[self.count & (BATCH - 1)] = i;
        self.count += usize::from(is);
    }
}

/// Prefetches the blocks that leaves name, all of one class.
#[inline]
fn fetch<const PLACES: usize>(blocks: &PagedTable<Block<PLACES>>, list: &[u8], leaves: &[u32]) {
    for i in list {
        // SAFETY: as for tails.
        let block = unsafe { blocks.get_unchecked(class_of(leaves[usize::from(*i)]).1) };
        lines_for_read(block);
    }
}

/// Looks up addresses in the blocks that their leaves name, all of one class.
#[inline]
fn settle<const PLACES: usize>(
    blocks: &PagedTable<Block<PLACES>>,
    list: &[u8],
    addrs: &[u128],
    leaves: &mut [u32],
    open: &mut Few,
) {
    for i in list {
        let at = usize::from(*i);
        // SAFETY: as for tails.
        let block = unsafe { blocks.get_unchecked(class_of(leaves[at]).1) };
        let found = block.lookup(middle(addrs[at]));
        open.push_if(*i, found == DEEP);
        leaves[at] = if found == DEEP { leaves[at] } else { found };
    }
}

impl std::fmt::Debug for Lpm6Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lpm6Reader").finish_non_exhaustive()
    }
}
