//! Lookups of workers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::block::{Block, CLASSES, DEEP, middle};
use super::hashes::{FEW_PAIRS, FEW_SLOTS, FIRST, Found, site_key};
use super::table::{BATCH, CLASS_SHIFT, SITE_MASK, Site, TAIL, Table, class_of};
use crate::lpm4::Lpm4Reader;
use crate::paged::PagedTable;
use crate::prefetch::{for_read, lines_for_read};
use crate::prefix::Address;

/// A worker's view of a [`Lpm6`](super::Lpm6). Cheap to clone; keeps the tables alive.
///
/// Like an [`Lpm4Reader`], the view takes no guard: look up between
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

    /// Like [`lookup_batch`](Self::lookup_batch), for addresses of which
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
        // Addresses that no block settles.
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
        // Addresses that no site's own route settles.
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
