//! IPv6 longest-prefix match for the packet path.
//!
//! One control thread owns the [`Lpm6`]; workers hold an [`Lpm6Reader`] and look up while it
//! changes, as with [`Lpm4`].
//!
//! The upper 32 bits are looked up as an IPv4 address would be: routes of up to /32 are in an
//! [`Lpm4`], and so is each /32 with longer routes in it. Beneath such a *tail*, a block has its
//! routes of up to /48, if they are few. Otherwise, and for longer routes, all lengths in use are
//! tried, the longest first, in one hash table of all longer routes: a host in a connected /64
//! takes as many steps as a /48, where a trie would take one for every eight bits.

mod block;
mod hashes;
mod internet;
mod reader;
mod table;
#[cfg(all(test, not(loom)))]
mod tests;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::hash::random_seed;
use crate::index::IndexPool;
use crate::lpm::Lpm;
use crate::lpm4::{Leaf, Lpm4, Lpm4Config, LpmError};
use crate::paged::Pages;
use crate::prefix::{Ipv4Prefix, Ipv6Prefix, Prefix};
use crate::prefix_map::PrefixMap;
use crate::qsbr::Domain;
use block::{CLASSES, Places, Route, class_for};
use hashes::{Entry, Found};
pub use internet::internet6;
pub use reader::Lpm6Reader;
use reader::top;
use table::{MOST_TAILS, SITE, Site, TAIL, TOP, Table, Tail, block_leaf, tail_leaf};

/// Limits of a route table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lpm6Config {
    /// Maximum number of routes.
    pub max_routes: usize,
    /// Maximum number of different /32 that have routes longer than /32 in them.
    pub max_tails: u32,
    /// Maximum number of different /24 that have routes longer than /24 in them.
    pub max_groups: u32,
    /// Huge pages make random lookups faster; normal ones save memory if there are many small
    /// tables.
    pub pages: Pages,
}

impl Default for Lpm6Config {
    fn default() -> Self {
        Self { max_routes: 4 << 20, max_tails: 1 << 20, max_groups: 1 << 16, pages: Pages::Huge }
    }
}

/// The owner's state of a /32 with longer routes in it.
struct Open {
    tail: u32,
    /// Class and index of its block, if it has one.
    block: Option<(usize, u32)>,
    /// A block's sorted contents: routes of up to /48, and marks.
    routes: Vec<Route>,
    /// Number of routes by length from 33 to 47, the lengths in no order.
    counts: Vec<(u8, u32)>,
    /// Number of sites.
    sites: u32,
}

/// The owner's state of a /48 with longer routes in it.
struct OpenSite {
    site: u32,
    /// Number of routes by length from 49 on, the lengths in no order.
    counts: Vec<(u8, u32)>,
}

/// Counts a route of a length; returns true if it is the first.
fn count(counts: &mut Vec<(u8, u32)>, len: u8) -> bool {
    match counts.iter_mut().find(|(other, _)| *other == len) {
        Some((_, n)) => *n += 1,
        None => {
            counts.push((len, 1));
            return true;
        }
    }
    false
}

/// Counts a route of a length less; returns true if it was the last.
fn uncount(counts: &mut Vec<(u8, u32)>, len: u8) -> bool {
    let Some(at) = counts.iter().position(|(other, _)| *other == len) else { return false };
    counts[at].1 -= 1;
    if counts[at].1 == 0 {
        counts.swap_remove(at);
        return true;
    }
    false
}

/// The owner's half of a route table.
pub struct Lpm6 {
    /// Routes of up to /32, and tails.
    top: Lpm4,
    table: Arc<Table>,
    /// Routes of up to /32.
    short: PrefixMap<u32>,
    open: BTreeMap<u32, Open>,
    /// Sites by the upper half of an address.
    deep: BTreeMap<u64, OpenSite>,
    tails: IndexPool,
    sites: IndexPool,
    entries: IndexPool,
    /// Blocks of each class.
    blocks: [IndexPool; CLASSES],
    /// Tails, sites, entries and blocks of each class that nothing names any more, to be tagged at
    /// the next reclaim.
    unlinked: [Vec<u32>; BLOCKS + CLASSES],
    lengths: [usize; 129],
    /// Number of routes longer than /32.
    long: usize,
    /// Number of sites.
    all_sites: usize,
    max_routes: usize,
}

/// Indices of the lists of what is unlinked.
const TAILS: usize = 0;
const SITES: usize = 1;
const ENTRIES: usize = 2;
const BLOCKS: usize = 3;

/// A prefix of up to 32 bits as one of the upper half.
fn upper(prefix: Ipv6Prefix) -> Ipv4Prefix {
    Prefix::of(top(prefix.addr()), prefix.len().min(TOP))
}

impl Lpm6 {
    /// Creates an empty table.
    ///
    /// # Errors
    ///
    /// [`LpmError::BadLimit`] or [`LpmError::Map`].
    pub fn new(config: Lpm6Config) -> Result<Self, LpmError> {
        let Lpm6Config { max_routes, max_tails, max_groups, pages } = config;
        let both = max_routes.saturating_add(max_tails as usize);
        let top = Lpm4::new(Lpm4Config { max_routes: both, max_groups, pages })?;
        let max_tails = max_tails.min(MOST_TAILS);
        // Each new route beneath a tail takes a new one, while the old one waits to be free.
        let max_blocks = max_tails.saturating_mul(2).min(MOST_TAILS);
        let table = Table::new(max_routes, max_tails, max_blocks, pages, random_seed())?;
        Ok(Self {
            top,
            table: Arc::new(table),
            short: PrefixMap::new(),
            open: BTreeMap::new(),
            deep: BTreeMap::new(),
            tails: IndexPool::new(max_tails),
            sites: IndexPool::new(max_routes.try_into().unwrap_or(u32::MAX)),
            entries: IndexPool::new(max_routes.try_into().unwrap_or(u32::MAX)),
            blocks: std::array::from_fn(|_| IndexPool::new(max_blocks)),
            unlinked: Default::default(),
            lengths: [0; 129],
            long: 0,
            all_sites: 0,
            max_routes,
        })
    }

    /// Returns a worker's view of the table.
    pub fn reader(&self) -> Lpm6Reader {
        Lpm6Reader { top: self.top.reader(), table: Arc::clone(&self.table) }
    }

    /// Adds a route, or replaces the leaf of one; returns the leaf it had. Leaves are below 2^25.
    ///
    /// # Errors
    ///
    /// [`LpmError`]; nothing has changed then. Replacing never fails.
    pub fn insert(
        &mut self,
        prefix: Ipv6Prefix,
        leaf: Leaf,
        domain: &Domain,
    ) -> Result<Option<Leaf>, LpmError> {
        debug_assert!(leaf.get() < TAIL, "{leaf:?}");
        let old = self.get(prefix);
        if old.is_none() && self.len() >= self.max_routes {
            return Err(LpmError::TableFull { limit: self.max_routes });
        }
        if prefix.len() <= TOP {
            self.insert_short(prefix, leaf, domain)?;
        } else if prefix.len() == SITE {
            self.insert_site(prefix, leaf, domain)?;
        } else if old.is_some() {
            let entry = self.table.entry(prefix.addr(), prefix.len());
            entry.into_iter().for_each(|entry| entry.set_leaf(leaf.get()));
            if prefix.len() < SITE {
                self.put_in_block(top(prefix.addr()), Route::new(prefix, leaf.get()), domain);
            }
        } else {
            self.insert_long(prefix, leaf, domain)?;
        }
        self.lengths[usize::from(prefix.len())] += usize::from(old.is_none());
        Ok(old)
    }

    fn insert_short(
        &mut self,
        prefix: Ipv6Prefix,
        leaf: Leaf,
        domain: &Domain,
    ) -> Result<(), LpmError> {
        let upper = upper(prefix);
        let routes = self.len();
        self.short.reserve(upper).map_err(|_| LpmError::OutOfMemory { routes })?;
        if upper.len() < TOP || !self.open.contains_key(&upper.addr()) {
            Lpm::set(&mut self.top, upper, leaf, domain)?;
        }
        self.short.put(upper, leaf.into());
        self.cover(upper);
        Ok(())
    }

    /// Notifies the tails in a prefix of the route that covers them.
    fn cover(&self, upper: Ipv4Prefix) {
        for (addr, open) in self.open.range(upper.addr()..=upper.last()) {
            let covering = self.covering(*addr);
            let tail = self.table.tails.get(open.tail);
            tail.into_iter().for_each(|tail| tail.set_fallback(covering));
            if let Some(block) = self.block_of(open) {
                block.set_fallback(covering.map_or(0, |(leaf, _)| leaf));
            }
        }
    }

    fn block_of(&self, open: &Open) -> Option<&dyn Places> {
        open.block.and_then(|(class, index)| self.table.block(class, index))
    }

    /// Puts a route, or its new leaf, into a tail's block.
    fn put_in_block(&mut self, upper: u32, route: Route, domain: &Domain) {
        let Some(open) = self.open.get_mut(&upper) else { return };
        match open.routes.binary_search_by_key(&route.key(), Route::key) {
            Ok(at) if open.routes[at] == route => {}
            Ok(at) => {
                open.routes[at] = route;
                self.revalue_block(upper);
            }
            Err(at) => {
                open.routes.insert(at, route);
                self.replace_block(upper, domain);
            }
        }
    }

    /// Takes a route out of a tail's block.
    fn take_out_of_block(&mut self, upper: u32, route: Route) {
        let Some(open) = self.open.get_mut(&upper) else { return };
        if let Ok(at) = open.routes.binary_search_by_key(&route.key(), Route::key) {
            open.routes.remove(at);
            self.revalue_block(upper);
        }
    }

    fn revalue_block(&self, upper: u32) {
        let Some(open) = self.open.get(&upper) else { return };
        self.block_of(open).into_iter().for_each(|block| block.revalue(&open.routes));
    }

    /// Gives a tail the block that its routes need; none if they are too many, or no block is
    /// free.
    fn replace_block(&mut self, upper: u32, domain: &Domain) {
        let Some(open) = self.open.get(&upper) else { return };
        let (before, tail) = (open.block, open.tail);
        let block = class_for(&open.routes).and_then(|class| {
            let index = match self.blocks[class].alloc_ready() {
                Ok(index) => index,
                Err(_) => {
                    // Replaced blocks may only wait for their grace period.
                    self.reclaim(domain);
                    self.blocks[class].alloc_ready().ok()?
                }
            };
            let fallback = self.covering(upper).map_or(0, |(leaf, _)| leaf);
            let open = self.open.get(&upper)?;
            self.table.block(class, index)?.write(tail, fallback, &open.routes);
            Some((class, index))
        });
        if (before, block) == (None, None) {
            return;
        }
        let leaf = block.map_or(tail_leaf(tail), |(class, index)| block_leaf(class, index));
        if let Some(leaf) = Leaf::new(leaf) {
            // Replacing never fails.
            _ = self.top.insert(Prefix::host(upper), leaf);
        }
        self.open.get_mut(&upper).into_iter().for_each(|open| open.block = block);
        before.into_iter().for_each(|(class, index)| self.unlinked[BLOCKS + class].push(index));
    }

    fn covering(&self, upper: u32) -> Option<(u32, u8)> {
        self.short.covering(upper, TOP).map(|(prefix, leaf)| (leaf.get(), prefix.len()))
    }

    fn insert_long(
        &mut self,
        prefix: Ipv6Prefix,
        leaf: Leaf,
        domain: &Domain,
    ) -> Result<(), LpmError> {
        let full = |limit| LpmError::TableFull { limit };
        let limit = self.max_routes;
        let entry = match self.entries.alloc_ready() {
            Ok(entry) => entry,
            Err(_) => {
                // Entries of deleted routes may only wait for their grace period.
                self.reclaim(domain);
                self.entries.alloc_ready().map_err(|_| full(limit))?
            }
        };
        let is_deep = prefix.len() > SITE;
        let done = self.open_tail_of(prefix, domain).and_then(|()| match is_deep {
            true => self.open_site(prefix, domain),
            false => Ok(()),
        });
        if let Err(e) = done {
            self.close_tail_if_unused(top(prefix.addr()));
            let freed = self.entries.free_unused(entry);
            debug_assert_eq!(freed, Ok(()));
            return Err(e);
        }
        if let Some(entry) = self.table.entries.get(entry) {
            entry.write(prefix.addr(), prefix.len(), leaf.get());
        }
        self.table.link(entry, self.long, domain);
        self.long += 1;
        if is_deep {
            let key = (prefix.addr() >> 64) as u64 & !0xffff;
            let Some(deep) = self.deep.get_mut(&key) else { return Ok(()) };
            if count(&mut deep.counts, prefix.len()) {
                let site = self.table.sites.get(deep.site);
                site.into_iter().for_each(|site| site.set(prefix.len(), true));
            }
        } else if let Some(open) = self.open.get_mut(&top(prefix.addr()))
            && count(&mut open.counts, prefix.len())
        {
            let tail = self.table.tails.get(open.tail);
            tail.into_iter().for_each(|tail| tail.set(prefix.len(), true));
        }
        let (addr, upper) = (prefix.addr(), top(prefix.addr()));
        if !is_deep {
            self.put_in_block(upper, Route::new(prefix, leaf.get()), domain);
        } else {
            self.put_in_block(upper, Route::mark(addr), domain);
        }
        Ok(())
    }

    /// Adds the route to a /48, or replaces its leaf.
    fn insert_site(
        &mut self,
        prefix: Ipv6Prefix,
        leaf: Leaf,
        domain: &Domain,
    ) -> Result<(), LpmError> {
        let before = self.table.site(prefix.addr());
        if before == Found::default() {
            self.open_tail_of(prefix, domain)?;
        }
        let found = Found { leaf: leaf.get(), ..before };
        self.set_site(prefix.addr(), before, found, domain);
        self.long += usize::from(before.leaf == 0);
        self.put_in_block(top(prefix.addr()), Route::new(prefix, leaf.get()), domain);
        Ok(())
    }

    /// Gives a /48 a place for the lengths of its longer routes.
    fn open_site(&mut self, prefix: Ipv6Prefix, domain: &Domain) -> Result<(), LpmError> {
        let key = (prefix.addr() >> 64) as u64 & !0xffff;
        if self.deep.contains_key(&key) {
            return Ok(());
        }
        let limit = self.max_routes;
        let site = match self.sites.alloc_ready() {
            Ok(site) => site,
            Err(_) => {
                self.reclaim(domain);
                self.sites.alloc_ready().map_err(|_| LpmError::TableFull { limit })?
            }
        };
        self.table.sites.get(site).into_iter().for_each(Site::open);
        self.deep.insert(key, OpenSite { site, counts: Vec::new() });
        let before = self.table.site(prefix.addr());
        self.set_site(prefix.addr(), before, Found { deep: site + 1, ..before }, domain);
        Ok(())
    }

    /// Stores what is found at a site, and counts it.
    fn set_site(&mut self, addr: u128, before: Found, found: Found, domain: &Domain) {
        self.table.set_site(addr, found, self.all_sites, Some(domain));
        if before == Found::default() {
            self.all_sites += 1;
            self.open.get_mut(&top(addr)).into_iter().for_each(|open| open.sites += 1);
        }
    }

    /// Takes something of a site away.
    fn reduce_site(&mut self, addr: u128, found: Found) {
        self.table.set_site(addr, found, self.all_sites, None);
        if found == Found::default() {
            self.all_sites -= 1;
            self.open.get_mut(&top(addr)).into_iter().for_each(|open| open.sites -= 1);
        }
    }

    /// Opens the tail that a route is beneath.
    fn open_tail_of(&mut self, prefix: Ipv6Prefix, domain: &Domain) -> Result<(), LpmError> {
        let upper = top(prefix.addr());
        match self.open.contains_key(&upper) {
            true => Ok(()),
            false => self.open_tail(upper, domain),
        }
    }

    fn open_tail(&mut self, upper: u32, domain: &Domain) -> Result<(), LpmError> {
        let limit = self.tails.limit();
        let full = |_| LpmError::TailsFull { limit };
        let tail = match self.tails.alloc_ready() {
            Ok(tail) => tail,
            Err(_) => {
                self.reclaim(domain);
                self.tails.alloc_ready().map_err(full)?
            }
        };
        self.table.tails.get(tail).into_iter().for_each(|t| t.open(self.covering(upper)));
        let leaf = Leaf::new(tail_leaf(tail)).ok_or(LpmError::TailsFull { limit });
        let done = leaf.and_then(|leaf| Lpm::set(&mut self.top, Prefix::host(upper), leaf, domain));
        if let Err(e) = done {
            let freed = self.tails.free_unused(tail);
            debug_assert_eq!(freed, Ok(()));
            return Err(e);
        }
        let open = Open { tail, block: None, routes: Vec::new(), counts: Vec::new(), sites: 0 };
        self.open.insert(upper, open);
        Ok(())
    }

    /// Removes a route; returns the leaf it had.
    pub fn remove(&mut self, prefix: Ipv6Prefix) -> Option<Leaf> {
        let old = if prefix.len() <= TOP {
            let upper = upper(prefix);
            let old = self.short.remove(upper)?.get();
            if upper.len() < TOP || !self.open.contains_key(&upper.addr()) {
                self.top.remove(upper);
            }
            self.cover(upper);
            old
        } else {
            self.remove_long(prefix)?
        };
        self.lengths[usize::from(prefix.len())] -= 1;
        Leaf::new(old)
    }

    fn remove_long(&mut self, prefix: Ipv6Prefix) -> Option<u32> {
        let (addr, len) = (prefix.addr(), prefix.len());
        if len == SITE {
            let before = self.table.site(addr);
            if before.leaf == 0 {
                return None;
            }
            self.reduce_site(addr, Found { leaf: 0, ..before });
            self.take_out_of_block(top(addr), Route::new(prefix, 0));
            self.long -= 1;
            self.close_tail_if_unused(top(addr));
            return Some(before.leaf);
        }
        let (entry, old) = self.table.unlink(addr, len)?;
        self.unlinked[ENTRIES].push(entry);
        self.long -= 1;
        if len > SITE {
            let key = (addr >> 64) as u64 & !0xffff;
            let deep = self.deep.get_mut(&key)?;
            if uncount(&mut deep.counts, len) {
                let site = self.table.sites.get(deep.site);
                site.into_iter().for_each(|site| site.set(len, false));
            }
            if deep.counts.is_empty() {
                self.unlinked[SITES].push(deep.site);
                self.deep.remove(&key);
                self.reduce_site(addr, Found { deep: 0, ..self.table.site(addr) });
                self.take_out_of_block(top(addr), Route::mark(addr));
            }
            self.close_tail_if_unused(top(addr));
            return Some(old);
        }
        self.take_out_of_block(top(addr), Route::new(prefix, 0));
        if let Some(open) = self.open.get_mut(&top(addr))
            && uncount(&mut open.counts, len)
        {
            let tail = self.table.tails.get(open.tail);
            tail.into_iter().for_each(|tail| tail.set(len, false));
        }
        self.close_tail_if_unused(top(addr));
        Some(old)
    }

    /// Closes a tail with nothing beneath it.
    fn close_tail_if_unused(&mut self, upper: u32) {
        let Some(open) = self.open.get(&upper) else { return };
        if open.sites > 0 || !open.counts.is_empty() {
            return;
        }
        self.unlinked[TAILS].push(open.tail);
        open.block.into_iter().for_each(|(class, at)| self.unlinked[BLOCKS + class].push(at));
        self.open.remove(&upper);
        let upper = Prefix::host(upper);
        match self.short.get(upper).and_then(|leaf| Leaf::new(leaf.get())) {
            // Replacing never fails.
            Some(leaf) => _ = self.top.insert(upper, leaf),
            None => _ = self.top.remove(upper),
        }
    }

    /// Returns the leaf of exactly this route.
    pub fn get(&self, prefix: Ipv6Prefix) -> Option<Leaf> {
        let leaf = match prefix.len() {
            0..=TOP => self.short.get(upper(prefix)).map(NonZeroU32::get),
            SITE => Some(self.table.site(prefix.addr()).leaf),
            len => self.table.entry(prefix.addr(), len).map(Entry::leaf),
        };
        leaf.and_then(Leaf::new)
    }

    /// Returns all routes in no particular order.
    pub fn iter_unordered(&self) -> impl Iterator<Item = (Ipv6Prefix, Leaf)> {
        let short = self
            .short
            .iter()
            .map(|(p, leaf)| (Prefix::of(u128::from(p.addr()) << 96, p.len()), leaf.get()));
        let long = self.table.all().map(|entry| {
            let (addr, len) = entry.key();
            (Prefix::of(addr, len), entry.leaf())
        });
        let sites = self.table.all_sites().map(|(addr, leaf)| (Prefix::of(addr, SITE), leaf));
        short.chain(long).chain(sites).filter_map(|(prefix, leaf)| Some((prefix, Leaf::new(leaf)?)))
    }

    /// Returns the number of routes.
    pub fn len(&self) -> usize {
        self.short.len() + self.long
    }

    /// Returns true if there is no route.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes in use, without [`Lpm4::FIRST_LEVEL_BYTES`].
    pub fn memory(&self) -> usize {
        let entries = self.entries.high_water() as usize * size_of::<Entry>();
        let tails = self.tails.high_water() as usize * size_of::<Tail>();
        let sites = self.sites.high_water() as usize * size_of::<Site>();
        let blocks = self.blocks.iter().zip(Table::block_bytes());
        let blocks: usize = blocks.map(|(pool, bytes)| pool.high_water() as usize * bytes).sum();
        let rest = entries + tails + sites + blocks;
        self.top.memory() + self.short.memory() + self.table.slot_bytes() + rest
    }

    /// Makes what workers no longer read available again. To be called regularly.
    pub fn reclaim(&mut self, domain: &Domain) {
        let Self { tails, sites, entries, blocks, unlinked, .. } = self;
        let pools = [tails, sites, entries].into_iter().chain(blocks);
        let tag = unlinked.iter().any(|list| !list.is_empty()).then(|| domain.tag());
        for (pool, list) in pools.zip(unlinked) {
            for (index, tag) in list.drain(..).zip(std::iter::repeat(tag)) {
                let freed = tag.map(|tag| pool.free_after(index, tag));
                debug_assert_eq!(freed, Some(Ok(())), "unlinked once");
            }
            pool.reclaim(domain);
        }
        self.top.reclaim(domain);
    }
}

impl std::fmt::Debug for Lpm6 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lpm6").field("routes", &self.len()).finish_non_exhaustive()
    }
}

impl Lpm<u128> for Lpm6 {
    fn set(&mut self, prefix: Ipv6Prefix, leaf: Leaf, domain: &Domain) -> Result<(), LpmError> {
        self.insert(prefix, leaf, domain).map(drop)
    }

    fn unset(&mut self, prefix: Ipv6Prefix) {
        self.remove(prefix);
    }

    fn memory(&self) -> usize {
        Lpm6::memory(self)
    }

    fn lengths(&self) -> Vec<usize> {
        self.lengths.to_vec()
    }

    fn reclaim(&mut self, domain: &Domain) {
        Lpm6::reclaim(self, domain);
    }
}
