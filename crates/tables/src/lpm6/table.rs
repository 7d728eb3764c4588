//! Structures in which workers look up routes longer than /32.
//!
//! A *tail* is a /32 with longer routes in it: which lengths from 33 to 47 there are, and the leaf
//! of the route that covers them. One with few routes has a [`Block`], in which they are found;
//! what follows is read only for tails without, and beneath a /48 that has longer routes. A *site*
//! is a /48 with a route or longer ones in it; sites are found by one hash, with their route next
//! to their key, and so a site's tail is not read. Routes of other lengths are entries, found by a
//! hash of prefix and length. Both hashes have arrays of slots that are replaced by larger ones as
//! they fill. Each change is a store of one word.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::block::{Block, CLASSES, DEEP, Places, middle};
use super::hashes::{
    EMPTY, Entry, FIRST, Found, LEAST_SLOTS, Pair, Pairs, REMOVED, Slots, site_addr, site_key,
};
use crate::paged::{AllZeroValid, MapError, PagedTable, Pages};
use crate::prefix::Address;
use crate::qsbr::Domain;

/// Flag of leaves of the upper half that name a tail.
pub(super) const TAIL: u32 = 1 << 25;
/// Lowest bit of the block's class in such a leaf; the bits beneath are the index of the block, or
/// of the tail.
pub(super) const CLASS_SHIFT: u32 = 23;
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
pub(super) fn class_of(leaf: u32) -> (usize, usize) {
    let index = leaf & (MOST_TAILS - 1);
    ((leaf >> CLASS_SHIFT) as usize & CLASSES, index as usize)
}
/// Length of the routes' upper half in bits.
pub(super) const TOP: u8 = 32;
/// Length of a site's prefix in bits.
pub(super) const SITE: u8 = 48;
/// The bits of a site's prefix.
pub(super) const SITE_MASK: u128 = u128::MAX << (128 - SITE);
/// The longest length that a site's first word of lengths has.
pub(super) const MIDDLE: u8 = 64;
/// Addresses that are looked up together.
pub(super) const BATCH: usize = 256;

/// The part of a word that is a leaf; above it is the length of the route, up to 32.
pub(super) const LEAF: u32 = (1 << LEN_SHIFT) - 1;
pub(super) const LEN_SHIFT: u32 = 26;

crate::zeroable! {
    /// A /32 with longer routes in it.
    pub(super) struct Tail {
        /// Leaf and length of the longest route up to /32 around it; 0 if there is none.
        fallback: AtomicU32,
        /// Existing lengths 33 to 47.
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
    pub(super) fn lengths(&self) -> Descending {
        Descending { long: 0, middle: self.lengths.load(Ordering::Acquire), base: TOP + 1 }
    }
}

fn flip(word: u64, bit: u8, there: bool) -> u64 {
    if there { word | 1 << bit } else { word & !(1 << bit) }
}

crate::zeroable! {
    /// The lengths of the routes in a /48, if any are longer.
    pub(super) struct Site {
        /// Existing lengths 65 to 128.
        long: AtomicU64,
        /// Existing lengths 49 to 64.
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
    pub(super) fn lengths(&self) -> Descending {
        let (long, middle) =
            (self.long.load(Ordering::Acquire), self.middle.load(Ordering::Acquire));
        Descending { long, middle, base: SITE + 1 }
    }
}

pub(super) struct Descending {
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

/// Memory that workers and the owner share.
pub(super) struct Table {
    pub(super) tails: PagedTable<Tail>,
    pub(super) blocks: (PagedTable<Block<8>>, PagedTable<Block<16>>, PagedTable<Block<32>>),
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
    pub(super) fn slots(&self) -> &Slots {
        // SAFETY: never null. Slots that the owner replaces live until all readers have passed a
        // quiescent point, and readers hold them only within a lookup.
        unsafe { &*self.slots.load(Ordering::Acquire) }
    }

    #[inline]
    pub(super) fn pairs(&self) -> &Pairs {
        // SAFETY: as for the slots.
        unsafe { &*self.pairs.load(Ordering::Acquire) }
    }

    #[inline]
    pub(super) fn site_hash(&self, key: u64) -> u64 {
        let product = (key ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        product >> 32 ^ product
    }

    #[inline]
    pub(super) fn hash(&self, addr: u128, len: u8) -> u64 {
        let x = ((addr >> 64) as u64 ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let x = x ^ x >> 32 ^ addr as u64 ^ u64::from(len) << 56;
        let x = x.wrapping_mul(0xbb67_ae85_84ca_a73b);
        x ^ x >> 29
    }

    /// Returns the entry of a prefix.
    #[inline]
    pub(super) fn find(&self, slots: &Slots, addr: u128, len: u8) -> Option<&Entry> {
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
    pub(super) fn tail(&self, leaf: u32) -> &Tail {
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

    /// Looks up in a tail's block; [`DEEP`] if it does not decide.
    #[inline]
    pub(super) fn in_block(&self, leaf: u32, addr: u128) -> u32 {
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
    pub(super) fn leaf_beneath(&self, leaf: u32, addr: u128) -> u32 {
        match self.in_block(leaf, addr) {
            DEEP => self.beneath(leaf, addr).0,
            found => found,
        }
    }

    /// Looks up beneath a tail; returns leaf and length of the route.
    #[inline]
    pub(super) fn beneath(&self, leaf: u32, addr: u128) -> (u32, u8) {
        let found = self.found(addr);
        if found.deep == 0 && found.leaf != 0 {
            return (found.leaf, SITE);
        }
        self.beyond(leaf, addr, found)
    }

    /// Looks up in a site with longer routes, or next to all sites.
    #[inline]
    pub(super) fn beyond(&self, leaf: u32, addr: u128, found: Found) -> (u32, u8) {
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
    pub(super) fn site_of(&self, found: Found) -> Option<&Site> {
        found.deep.checked_sub(1).and_then(|at| self.sites.get(at))
    }

    /// Returns leaf and length of the longest route that all of an address's site is in.
    pub(super) fn around(&self, leaf: u32, addr: u128, found: Found) -> (u32, u8) {
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

    /// The entry at the site of an address.
    #[inline]
    pub(super) fn found(&self, addr: u128) -> Found {
        let key = site_key(addr);
        let pair = self.pairs().find(self.site_hash(key), key);
        pair.map_or(Found::default(), |p| Found::of(p.value.load(Ordering::Acquire)))
    }

    /// The first length that is tried for an address that no site's own route settles.
    #[inline]
    pub(super) fn first_length(&self, leaf: u32, found: Found) -> Option<u8> {
        match self.site_of(found) {
            Some(site) => site.lengths().next(),
            None => self.tail(leaf).lengths().next(),
        }
    }

    // The owner's side.

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
