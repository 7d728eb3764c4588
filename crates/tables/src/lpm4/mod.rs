//! IPv4 longest-prefix match for the packet path.
//!
//! One control thread owns the [`Lpm4`]: the routes, and the right to change the forwarding table.
//! Workers hold an [`Lpm4Reader`] and look up while it changes: each change is a sequence of
//! single-word stores, and every state in between yields the old or the new route.
//!
//! Memory for a million routes as in the Internet: the first level takes 64 MiB (only where routes
//! are), the route store about 15 MiB. A group for routes longer than /24 takes 1 KiB.
//!
//! A short prefix fills its range, but only those words that no longer route covers; each word
//! contains, next to its leaf, the length of its route. Routes of up to 8 bits fill no more than
//! 256 words in front of the first level, which are used where the first level has no route.

mod batch;
mod internet;
mod leaf;
mod table;
#[cfg(all(test, not(loom)))]
mod tests;

use std::sync::Arc;

use crate::lpm::Lpm;
pub use internet::internet;
pub use leaf::Leaf;
pub use table::Lpm4Reader;
use table::{Cell, FIRST, FIRST_BITS, GROUP, SHORT_BITS, Table, Word};

use crate::index::IndexPool;
use crate::paged::{MapError, PagedTable, Pages};
use crate::prefix::Ipv4Prefix;
use crate::prefix_map::{PrefixMap, Sweep};
use crate::qsbr::Domain;

/// Limits of a route table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lpm4Config {
    /// Maximum number of routes.
    pub max_routes: usize,
    /// Maximum number of different /24 that have routes longer than /24 in them. At most 2^24; each
    /// costs 1 KiB of address space, and memory only when used.
    pub max_groups: u32,
    /// Huge pages make random lookups faster; normal ones save memory if there are many small
    /// tables.
    pub pages: Pages,
}

impl Default for Lpm4Config {
    fn default() -> Self {
        Self { max_routes: 4 << 20, max_groups: 1 << 17, pages: Pages::Huge }
    }
}

/// Error of adding a route or creating a table. Nothing has changed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LpmError {
    /// The table holds its maximum number of routes.
    #[error("the route table is full: its limit is {limit} routes")]
    TableFull {
        /// [`Lpm4Config::max_routes`].
        limit: usize,
    },
    /// The number of /24 with longer routes in them is at its limit.
    #[error(
        "no room for another route longer than /24: the limit is {limit} different /24 that have \
         such routes"
    )]
    GroupsFull {
        /// [`Lpm4Config::max_groups`].
        limit: u32,
    },
    /// The number of IPv6 /32 with longer routes in them is at its limit.
    #[error(
        "no room for another route longer than /32: the limit is {limit} different /32 that have \
         such routes"
    )]
    TailsFull {
        /// [`Lpm6Config::max_tails`](crate::Lpm6Config::max_tails).
        limit: u32,
    },
    /// More groups were configured than there are /24.
    #[error("{max_groups} groups configured, but there are only 16777216 different /24")]
    BadLimit {
        /// [`Lpm4Config::max_groups`].
        max_groups: u32,
    },
    /// The route store could not grow.
    #[error("out of memory while growing the store of {routes} routes")]
    OutOfMemory {
        /// Number of routes.
        routes: usize,
    },
    /// The tables could not be reserved.
    #[error(transparent)]
    Map(#[from] MapError),
}

/// Usage of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lpm4Usage {
    /// Routes, the default route included.
    pub routes: usize,
    /// The limit of `routes`.
    pub max_routes: usize,
    /// Groups in use.
    pub groups: usize,
    /// Freed groups in their grace period.
    pub groups_waiting: usize,
    /// The limit of `groups` and `groups_waiting` together.
    pub max_groups: u32,
    /// Memory in bytes, as [`Lpm4::memory`] returns it.
    pub memory: usize,
}

/// The owner's half of a route table.
pub struct Lpm4 {
    table: Arc<Table>,
    /// Leaves.
    rib: PrefixMap<u32>,
    /// Number of routes longer than /24 in each group.
    group_routes: PagedTable<u16>,
    groups: IndexPool,
    /// Groups that the first level no longer names, to be tagged at the next reclaim.
    unlinked: Vec<u32>,
    max_routes: usize,
}

impl Lpm4 {
    /// Bytes of the first-level table, which [`Lpm4::memory`] leaves out.
    pub const FIRST_LEVEL_BYTES: usize = FIRST * size_of::<u32>();

    /// Creates an empty table.
    ///
    /// # Errors
    ///
    /// [`LpmError::BadLimit`] or [`LpmError::Map`].
    pub fn new(config: Lpm4Config) -> Result<Self, LpmError> {
        let Lpm4Config { max_routes, max_groups, pages } = config;
        if max_groups as usize > FIRST {
            return Err(LpmError::BadLimit { max_groups });
        }
        Ok(Self {
            table: Arc::new(Table::new(max_groups, pages)?),
            rib: PrefixMap::new(),
            group_routes: PagedTable::new(max_groups as usize)?,
            groups: IndexPool::new(max_groups),
            unlinked: Vec::new(),
            max_routes,
        })
    }

    /// Returns a worker's view of the table.
    pub fn reader(&self) -> Lpm4Reader {
        Lpm4Reader::new(&self.table)
    }

    /// Adds a route, or replaces the leaf of one; returns the leaf it had.
    ///
    /// # Errors
    ///
    /// [`LpmError::TableFull`], [`LpmError::GroupsFull`] or [`LpmError::OutOfMemory`]. Replacing
    /// never fails.
    pub fn insert(&mut self, prefix: Ipv4Prefix, leaf: Leaf) -> Result<Option<Leaf>, LpmError> {
        let old = self.get(prefix);
        if old == Some(leaf) {
            return Ok(old);
        }
        if old.is_none() {
            self.make_room(prefix)?;
        }
        self.rib.put(prefix, leaf.into());
        self.paint(prefix, Word::new(prefix.len(), leaf));
        Ok(old)
    }

    /// Removes a route; returns the leaf it had.
    pub fn remove(&mut self, prefix: Ipv4Prefix) -> Option<Leaf> {
        let old = Leaf::from(self.rib.remove(prefix)?);
        // The route that shows through, in the same level. The short routes are used if there is
        // none.
        let least = if prefix.len() <= SHORT_BITS { 0 } else { SHORT_BITS + 1 };
        let below = self.parent(prefix);
        let below = below.filter(|(below, _)| below.len() >= least);
        let cover = below.map_or(Word::MISS, |(below, leaf)| Word::new(below.len(), leaf));
        self.paint(prefix, cover);
        if prefix.len() > FIRST_BITS {
            self.drop_group_route((prefix.addr() >> 8) as usize);
        }
        Some(old)
    }

    /// Returns the leaf of exactly this route.
    pub fn get(&self, prefix: Ipv4Prefix) -> Option<Leaf> {
        self.rib.get(prefix).map(Leaf::from)
    }

    /// Returns the longest route that contains `addr` (host byte order), from the routes rather
    /// than from the forwarding table.
    pub fn lookup(&self, addr: u32) -> Option<(Ipv4Prefix, Leaf)> {
        self.covering(addr, 32)
    }

    /// Returns the longest route that contains all of `prefix` and is shorter than it.
    pub fn parent(&self, prefix: Ipv4Prefix) -> Option<(Ipv4Prefix, Leaf)> {
        self.covering(prefix.addr(), prefix.len().checked_sub(1)?)
    }

    fn covering(&self, addr: u32, longest: u8) -> Option<(Ipv4Prefix, Leaf)> {
        self.rib.covering(addr, longest).map(|(prefix, leaf)| (prefix, Leaf::from(leaf)))
    }

    /// Returns all routes by address, a shorter prefix before the longer ones in it. Sorts a copy:
    /// tens of milliseconds for a million routes.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Ipv4Prefix, Leaf)> + use<> {
        let mut routes = Vec::with_capacity(self.len());
        routes.extend(self.iter_unordered());
        routes.sort_unstable();
        routes.into_iter()
    }

    /// Returns all routes in no particular order, without a copy.
    pub fn iter_unordered(&self) -> impl Iterator<Item = (Ipv4Prefix, Leaf)> {
        self.rib.iter().map(|(prefix, leaf)| (prefix, Leaf::from(leaf)))
    }

    /// Continues a walk over all routes, as [`PrefixMap::sweep`] does.
    pub fn sweep(&self, at: &mut Sweep, mut each: impl FnMut(Ipv4Prefix)) -> bool {
        self.rib.sweep(at, |(prefix, _)| each(prefix))
    }

    /// Returns the number of routes of each prefix length.
    pub fn lengths(&self) -> [usize; 33] {
        let mut out = [0; 33];
        out.iter_mut().zip(self.rib.lengths()).for_each(|(out, n)| *out = n);
        out
    }

    /// Returns the number of routes, the default route included.
    pub fn len(&self) -> usize {
        self.rib.len()
    }

    /// Returns true if there is no route.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes in use, without [`Lpm4::FIRST_LEVEL_BYTES`]: the routes, and the groups
    /// that were ever used.
    pub fn memory(&self) -> usize {
        let per_group = GROUP * size_of::<u32>() + size_of::<u16>();
        self.rib.memory() + self.groups.high_water() as usize * per_group
    }

    /// Returns the usage of the table.
    pub fn usage(&self) -> Lpm4Usage {
        Lpm4Usage {
            routes: self.len(),
            max_routes: self.max_routes,
            groups: self.groups.len() - self.unlinked.len(),
            groups_waiting: self.groups.waiting() + self.unlinked.len(),
            max_groups: self.groups.limit(),
            memory: self.memory(),
        }
    }

    /// Makes groups available that no worker can be reading any more; returns their number. To be
    /// called regularly, with the domain in which the workers are readers.
    pub fn reclaim(&mut self, domain: &Domain) -> usize {
        if !self.unlinked.is_empty() {
            let tag = domain.tag();
            for group in self.unlinked.drain(..) {
                let freed = self.groups.free_after(group, tag);
                debug_assert_eq!(freed, Ok(()), "a group is unlinked once");
            }
        }
        self.groups.reclaim(domain)
    }

    /// Does everything that can fail when `prefix` is added, before anything has changed.
    fn make_room(&mut self, prefix: Ipv4Prefix) -> Result<(), LpmError> {
        if self.len() >= self.max_routes {
            return Err(LpmError::TableFull { limit: self.max_routes });
        }
        let routes = self.len();
        self.rib.reserve(prefix).map_err(|_| LpmError::OutOfMemory { routes })?;
        if prefix.len() > FIRST_BITS {
            let group = self.open_group((prefix.addr() >> 8) as usize)?;
            self.group_routes.as_mut_slice()[group as usize] += 1;
        }
        Ok(())
    }

    /// Returns the group of a word; creates one with the word's route if there is none.
    fn open_group(&mut self, index: usize) -> Result<u32, LpmError> {
        if let Some(group) = self.table.group_at(index) {
            return Ok(group);
        }
        let limit = self.groups.limit();
        let group = self.groups.alloc_ready().map_err(|_| LpmError::GroupsFull { limit })?;
        let word = self.table.words()[index].get();
        self.table.group(group).iter().for_each(|cell| cell.set(word));
        // Publishes the 256 words above.
        self.table.set_group(index, group);
        Ok(group)
    }

    /// Removes one route of a word's group; the last one frees the group.
    fn drop_group_route(&mut self, index: usize) {
        let Some(group) = self.table.group_at(index) else { return };
        let routes = &mut self.group_routes.as_mut_slice()[group as usize];
        *routes -= 1;
        if *routes > 0 {
            return;
        }
        // No longer route is left: all words are alike.
        self.table.words()[index].set(self.table.group(group)[0].get());
        self.unlinked.push(group);
    }

    /// Writes `cover` to all words in `prefix` that no route longer than it covers.
    fn paint(&self, prefix: Ipv4Prefix, cover: Word) {
        let (addr, len) = (prefix.addr(), prefix.len());
        if len <= SHORT_BITS {
            let (from, count) = ((addr >> 24) as usize, 1 << (SHORT_BITS - len));
            fill(&self.table.short()[from..from + count], len, cover);
            return;
        }
        let index = (addr >> 8) as usize;
        if len > FIRST_BITS {
            let Some(group) = self.table.group_at(index) else { return };
            let (from, count) = ((addr & 0xff) as usize, 1 << (32 - len));
            fill(&self.table.group(group)[from..from + count], len, cover);
            return;
        }
        let count = 1 << (FIRST_BITS - len);
        for cell in &self.table.words()[index..index + count] {
            let word = cell.get();
            if word.yields_to(len) {
                cell.set(cover);
            } else if let Some(group) = word.group() {
                fill(self.table.group(group), len, cover);
            }
        }
    }
}

fn fill(cells: &[Cell], len: u8, cover: Word) {
    for cell in cells {
        if cell.get().yields_to(len) {
            cell.set(cover);
        }
    }
}

impl std::fmt::Debug for Lpm4 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lpm4").field("usage", &self.usage()).finish_non_exhaustive()
    }
}

impl Lpm<u32> for Lpm4 {
    fn set(&mut self, prefix: Ipv4Prefix, leaf: Leaf, domain: &Domain) -> Result<(), LpmError> {
        match self.insert(prefix, leaf) {
            Err(LpmError::GroupsFull { .. }) => {
                // Groups of deleted routes may only wait for their grace period.
                Lpm4::reclaim(self, domain);
                self.insert(prefix, leaf).map(drop)
            }
            done => done.map(drop),
        }
    }

    fn unset(&mut self, prefix: Ipv4Prefix) {
        self.remove(prefix);
    }

    fn memory(&self) -> usize {
        Lpm4::memory(self)
    }

    fn lengths(&self) -> Vec<usize> {
        Lpm4::lengths(self).to_vec()
    }

    fn reclaim(&mut self, domain: &Domain) {
        Lpm4::reclaim(self, domain);
    }
}
