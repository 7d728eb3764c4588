//! The forwarding table: what workers read.
//!
//! DIR-24-8: the upper 24 bits of an address select an entry of the first level, which holds a
//! leaf, or the number of a group of 256 entries for the last 8 bits. A lookup is one memory
//! access, or two beneath routes longer than 24 bits. Every entry is one atomic word.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::prefix::Leaf;
use crate::paged::{MapError, PagedTable, Pages};

/// Entries of the first level.
pub(super) const FIRST: usize = 1 << 24;
/// Entries of a group.
pub(super) const GROUP: usize = 256;
/// Set in entries of the first level that name a group rather than a leaf.
const IS_GROUP: u32 = 1 << 31;
/// No entry: a leaf is never zero.
pub(super) const MISS: u32 = 0;
/// Addresses whose loads are in flight together.
const BATCH: usize = 16;
/// How many batches ahead the first level is fetched. With random destinations over a million
/// routes 4 take 9 clocks a lookup where 1 takes 15; more gain little and crowd a small L1.
const AHEAD: usize = 4;

pub(super) struct Table {
    first: PagedTable<AtomicU32>,
    groups: PagedTable<AtomicU32>,
    /// The default route is not painted over 16 million entries: it answers for the misses.
    default: AtomicU32,
}

impl Table {
    pub(super) fn new(max_groups: u32, pages: Pages) -> Result<Self, MapError> {
        Ok(Self {
            first: PagedTable::with_pages(FIRST, pages)?,
            groups: PagedTable::with_pages(max_groups as usize * GROUP, pages)?,
            default: AtomicU32::new(MISS),
        })
    }

    #[inline]
    fn first(&self, addr: u32) -> &AtomicU32 {
        // SAFETY: 24 bits index 2^24 entries.
        unsafe { self.first.get_unchecked((addr >> 8) as usize) }
    }

    /// The entry for `addr` in the group that `entry`, read from the first level, names.
    #[inline]
    fn second(&self, entry: u32, addr: u32) -> &AtomicU32 {
        let group = (entry & !IS_GROUP) as usize;
        // SAFETY: the first level names groups below the limit only (`set_group` checks).
        unsafe { self.groups.get_unchecked(group * GROUP + (addr & 0xff) as usize) }
    }

    #[inline]
    fn lookup(&self, addr: u32) -> u32 {
        let mut entry = self.first(addr).load(Ordering::Acquire);
        if entry & IS_GROUP != 0 {
            entry = self.second(entry, addr).load(Ordering::Acquire);
        }
        if entry == MISS { self.default.load(Ordering::Acquire) } else { entry }
    }

    // The writer's side. Release: a worker that finds a leaf also sees what was written to the
    // object it names, and one that finds a group sees its entries.

    pub(super) fn set_default(&self, leaf: u32) {
        self.default.store(leaf, Ordering::Release);
    }

    /// The entries of the first level, to store leaves in.
    pub(super) fn entries(&self) -> &[AtomicU32] {
        self.first.as_slice()
    }

    /// The 256 entries of a group, to store leaves in.
    pub(super) fn group(&self, group: u32) -> &[AtomicU32] {
        let at = group as usize * GROUP;
        &self.groups.as_slice()[at..at + GROUP]
    }

    /// Points the first level at a group whose entries are filled.
    pub(super) fn set_group(&self, index: usize, group: u32) {
        assert!((group as usize) < self.groups.capacity() / GROUP, "group beyond the limit");
        self.first.as_slice()[index].store(group | IS_GROUP, Ordering::Release);
    }

    /// The group that an entry names, if it names one.
    pub(super) fn group_at(&self, index: usize) -> Option<u32> {
        let entry = self.first.as_slice()[index].load(Ordering::Relaxed);
        (entry & IS_GROUP != 0).then_some(entry & !IS_GROUP)
    }
}

/// A worker's view of a [`Lpm4`](super::Lpm4). Cheap to clone; keeps the tables alive.
///
/// It takes no guard, as no lookup can touch freed memory. But the leaf found stays meaningful,
/// and a group keeps its meaning, only until the worker's next quiescent point: look up between
/// [`Reader::enter`](crate::qsbr::Reader::enter) and the end of the loop, and keep no leaf.
#[derive(Clone)]
pub struct Lpm4Reader {
    table: Arc<Table>,
}

impl Lpm4Reader {
    pub(super) fn new(table: &Arc<Table>) -> Self {
        Self { table: Arc::clone(table) }
    }

    /// The leaf of the longest route that holds `addr` (host byte order), or 0 if there is none.
    #[inline]
    pub fn lookup(&self, addr: u32) -> u32 {
        self.table.lookup(addr)
    }

    /// As [`Lpm4Reader::lookup`], with an `Option` for those who are not in a hurry.
    #[inline]
    pub fn lookup_leaf(&self, addr: u32) -> Option<Leaf> {
        Leaf::new(self.lookup(addr))
    }

    /// Fetches the first memory word that a lookup of `addr` reads.
    #[inline]
    pub fn prefetch(&self, addr: u32) {
        prefetch(self.table.first(addr));
    }

    /// Looks up as many addresses as both slices have room for: `leaves[i]` becomes what
    /// [`Lpm4Reader::lookup`] says of `addrs[i]`.
    #[inline]
    pub fn lookup_batch(&self, addrs: &[u32], leaves: &mut [u32]) {
        let table = &*self.table;
        let count = addrs.len().min(leaves.len());
        let (addrs, leaves) = (&addrs[..count], &mut leaves[..count]);
        let fetch = |addrs: &[u32]| addrs.iter().for_each(|&addr| prefetch(table.first(addr)));
        fetch(&addrs[..count.min(AHEAD * BATCH)]);
        let (ins, rest_in) = addrs.as_chunks::<BATCH>();
        let (outs, rest_out) = leaves.as_chunks_mut::<BATCH>();
        for (n, (chunk, leaves)) in ins.iter().zip(outs).enumerate() {
            match ins.get(n + AHEAD) {
                Some(ahead) => fetch(ahead),
                None if n + AHEAD == ins.len() => fetch(rest_in),
                None => {}
            }
            lookup_chunk(table, chunk, leaves);
        }
        for (&addr, leaf) in rest_in.iter().zip(rest_out) {
            *leaf = table.lookup(addr);
        }
    }
}

impl std::fmt::Debug for Lpm4Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lpm4Reader").finish_non_exhaustive()
    }
}

/// A variant with AVX-512 gathers was within the noise of this one (Zen 5, 1 to a million routes),
/// so there is none.
///
/// Stage by stage, so that no load waits for another address's: all first-level words, then the
/// groups if any of them names one, then the default route.
#[inline]
fn lookup_chunk(table: &Table, addrs: &[u32; BATCH], leaves: &mut [u32; BATCH]) {
    let entries = addrs.map(|addr| table.first(addr).load(Ordering::Acquire));
    *leaves = entries;
    if entries.iter().fold(0, |all, entry| all | entry) & IS_GROUP != 0 {
        lookup_groups(table, addrs, leaves);
    }
    let default = table.default.load(Ordering::Acquire);
    for leaf in leaves {
        *leaf = if *leaf == MISS { default } else { *leaf };
    }
}

fn lookup_groups(table: &Table, addrs: &[u32; BATCH], leaves: &mut [u32; BATCH]) {
    for (&addr, leaf) in addrs.iter().zip(leaves) {
        if *leaf & IS_GROUP != 0 {
            *leaf = table.second(*leaf, addr).load(Ordering::Acquire);
        }
    }
}

#[inline]
fn prefetch(word: &AtomicU32) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(word.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = word;
}
