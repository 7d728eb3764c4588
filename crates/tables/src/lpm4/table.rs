//! The forwarding table: what workers read.
//!
//! DIR-24-8 with a level in front: the upper 24 bits of an address select a word of the first
//! level, which holds a leaf, or the index of a group of 256 words for the last 8 bits. If that has
//! no route, one of 256 words for the upper 8 bits is used: routes of up to 8 bits are there, the
//! default route among them, and need not be painted over millions of words. A lookup is one memory
//! access, or two beneath routes longer than 24 bits. Every word is atomic.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::batch::{self, Kernel};
use super::leaf::Leaf;
use crate::paged::{MapError, PagedTable, Pages};
use crate::prefetch::for_read;

/// Number of words of the first level.
pub(super) const FIRST: usize = 1 << 24;
/// Number of words of a group.
pub(super) const GROUP: usize = 256;
/// Number of words for the routes of up to [`SHORT_BITS`].
pub(super) const SHORT: usize = 1 << SHORT_BITS;
/// Prefixes up to this length are in front of the first level.
pub(super) const SHORT_BITS: u8 = 8;
/// Prefixes up to this length, and longer than [`SHORT_BITS`], are in the first level.
pub(super) const FIRST_BITS: u8 = 24;
/// Flag of words of the first level that contain the index of a group rather than a leaf.
pub(super) const IS_GROUP: u32 = 1 << 31;
/// Contents of a word: a leaf, and the length of its route. The length is for the writer, which
/// must not paint a short route over a longer one; readers mask it off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(u32);

impl Word {
    /// No route. A leaf is never zero.
    pub(super) const MISS: Word = Word(0);
    const LEN_SHIFT: u32 = 26;

    /// Creates the word of a route of `len` bits. Lengths are relative to the level that the route
    /// is in, so that five bits are enough: 0 to 8, and 1 to 24 beyond 8.
    pub(super) fn new(len: u8, leaf: Leaf) -> Word {
        Word(u32::from(Self::rank(len)) << Self::LEN_SHIFT | leaf.get())
    }

    fn rank(len: u8) -> u8 {
        if len <= SHORT_BITS { len } else { len - SHORT_BITS }
    }

    /// Returns true if a route of `len` bits in the same level replaces this one. A word of the
    /// group never does.
    pub(super) fn yields_to(self, len: u8) -> bool {
        self.0 >> Self::LEN_SHIFT <= u32::from(Self::rank(len))
    }

    #[inline]
    fn leaf(self) -> u32 {
        self.0 & Leaf::MAX
    }

    /// Returns the group that it refers to, if any.
    pub(super) fn group(self) -> Option<u32> {
        (self.0 & IS_GROUP != 0).then_some(self.0 & !IS_GROUP)
    }
}

/// A word of the table. The only writer reads what it wrote.
#[derive(Default)]
#[repr(transparent)]
pub(super) struct Cell(AtomicU32);

// SAFETY: an atomic integer, for which zero is a value.
unsafe impl crate::paged::AllZeroValid for Cell {}

impl Cell {
    pub(super) fn get(&self) -> Word {
        Word(self.0.load(Ordering::Relaxed))
    }

    /// Release: a worker that finds a leaf also sees what was written to the object it refers to,
    /// and one that finds a group sees its words.
    pub(super) fn set(&self, word: Word) {
        self.0.store(word.0, Ordering::Release);
    }

    #[inline]
    pub(super) fn load(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }
}

pub(super) struct Table {
    first: PagedTable<Cell>,
    groups: PagedTable<Cell>,
    short: Box<[Cell; SHORT]>,
    /// Kernel for batched lookups.
    kernel: Kernel,
}

impl Table {
    pub(super) fn new(max_groups: u32, pages: Pages) -> Result<Self, MapError> {
        Ok(Self {
            first: PagedTable::with_pages(FIRST, pages)?,
            groups: PagedTable::with_pages(max_groups as usize * GROUP, pages)?,
            short: Box::new(std::array::from_fn(|_| Cell::default())),
            kernel: Kernel::best(max_groups),
        })
    }

    #[inline]
    pub(super) fn first(&self, addr: u32) -> &Cell {
        // SAFETY: 24 bits index 2^24 words.
        unsafe { self.first.get_unchecked((addr >> 8) as usize) }
    }

    /// Returns the word for `addr` in the group that `word`, read from the first level, refers to.
    #[inline]
    pub(super) fn second(&self, word: u32, addr: u32) -> &Cell {
        let group = (word & !IS_GROUP) as usize;
        // SAFETY: the first level names groups below the limit only (`set_group` checks).
        unsafe { self.groups.get_unchecked(group * GROUP + (addr & 0xff) as usize) }
    }

    /// Returns the word of a route of up to [`SHORT_BITS`] for `addr`.
    #[inline]
    pub(super) fn short_of(&self, addr: u32) -> &Cell {
        &self.short[(addr >> 24) as usize]
    }

    /// Returns the addresses of the levels, for instructions that gather words: the first, the
    /// groups, the short routes.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(super) fn bases(&self) -> (*const i32, *const i32, *const i32) {
        let groups = self.groups.as_slice().as_ptr();
        (self.first.as_slice().as_ptr().cast(), groups.cast(), self.short.as_ptr().cast())
    }

    #[inline]
    pub(super) fn lookup(&self, addr: u32) -> u32 {
        let mut word = self.first(addr).load();
        if word & IS_GROUP != 0 {
            word = self.second(word, addr).load();
        }
        if word == Word::MISS.0 {
            word = self.short_of(addr).load();
        }
        Word(word).leaf()
    }

    /// Returns the leaf, and the length of its route.
    fn lookup_route(&self, addr: u32) -> Option<(Leaf, u8)> {
        let mut word = self.first(addr).load();
        if word & IS_GROUP != 0 {
            word = self.second(word, addr).load();
        }
        let mut beyond = SHORT_BITS;
        if word == Word::MISS.0 {
            (word, beyond) = (self.short_of(addr).load(), 0);
        }
        let leaf = Leaf::new(Word(word).leaf())?;
        Some((leaf, (word >> Word::LEN_SHIFT) as u8 + beyond))
    }

    // The writer's side.

    /// Returns the words in front, to store routes of up to [`SHORT_BITS`] in.
    pub(super) fn short(&self) -> &[Cell] {
        &self.short[..]
    }

    /// Returns the words of the first level, to store routes in.
    pub(super) fn words(&self) -> &[Cell] {
        self.first.as_slice()
    }

    /// Returns the 256 words of a group, to store routes in.
    pub(super) fn group(&self, group: u32) -> &[Cell] {
        let at = group as usize * GROUP;
        &self.groups.as_slice()[at..at + GROUP]
    }

    /// Points the first level at a group whose words are filled.
    pub(super) fn set_group(&self, index: usize, group: u32) {
        assert!((group as usize) < self.groups.capacity() / GROUP, "group beyond the limit");
        self.first.as_slice()[index].set(Word(group | IS_GROUP));
    }

    /// Returns the group that a word of the first level refers to, if any.
    pub(super) fn group_at(&self, index: usize) -> Option<u32> {
        self.first.as_slice()[index].get().group()
    }
}

/// A worker's view of a [`Lpm4`](super::Lpm4). Cheap to clone; keeps the tables alive.
///
/// Lookups take no guard, as none can touch freed memory. A leaf is valid, and a group keeps its
/// meaning, only until the worker's next quiescent point: look up between
/// [`Reader::enter`](crate::qsbr::Reader::enter) and the end of the loop, and keep no leaf.
#[derive(Clone)]
pub struct Lpm4Reader {
    table: Arc<Table>,
}

impl Lpm4Reader {
    pub(super) fn new(table: &Arc<Table>) -> Self {
        Self { table: Arc::clone(table) }
    }

    /// Returns the leaf of the longest route that contains `addr` (host byte order), or 0 if there
    /// is none.
    #[inline]
    pub fn lookup(&self, addr: u32) -> u32 {
        self.table.lookup(addr)
    }

    /// Like [`Lpm4Reader::lookup`], but returns an `Option`; for slow paths.
    #[inline]
    pub fn lookup_leaf(&self, addr: u32) -> Option<Leaf> {
        Leaf::new(self.lookup(addr))
    }

    /// Returns the leaf of the longest route that contains `addr`, and that route's length.
    #[must_use]
    pub fn lookup_route(&self, addr: u32) -> Option<(Leaf, u8)> {
        self.table.lookup_route(addr)
    }

    /// Prefetches the first memory word that a lookup of `addr` reads.
    #[inline]
    pub fn prefetch(&self, addr: u32) {
        for_read(self.table.first(addr));
    }

    /// Looks up addresses; the shorter slice limits the number. `leaves[i]` becomes the result of
    /// [`Lpm4Reader::lookup`] for `addrs[i]`.
    #[inline]
    pub fn lookup_batch(&self, addrs: &[u32], leaves: &mut [u32]) {
        batch::lookup(&self.table, self.table.kernel, addrs, leaves);
    }

    /// Like [`Lpm4Reader::lookup_batch`], with each kernel that this processor supports.
    #[cfg(all(test, not(loom)))]
    pub(super) fn lookup_batches(&self, addrs: &[u32]) -> Vec<Vec<u32>> {
        let groups = (self.table.groups.capacity() / GROUP) as u32;
        let one = |kernel| {
            let mut leaves = vec![0; addrs.len()];
            batch::lookup(&self.table, kernel, addrs, &mut leaves);
            leaves
        };
        Kernel::available(groups).into_iter().map(one).collect()
    }
}

impl std::fmt::Debug for Lpm4Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lpm4Reader").finish_non_exhaustive()
    }
}
