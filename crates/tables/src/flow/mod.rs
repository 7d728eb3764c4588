//! The flow table: connections, owned by one worker.
//!
//! A flow is found by either of two keys, for the two directions of a translated connection, or by
//! one if both directions make the same key. A flow has a value, an expiry that packets extend, and
//! an age: while it is *young* (e.g. half-open), it may be recycled when the table is full.
//!
//! Nothing here is shared between threads, and nothing is allocated once the table is made: it
//! holds as many flows as it was made for, and refuses the next one.
//!
//! - Finding a flow reads one cache line of the index and the flow's own; [`FlowTable::find_batch`]
//!   has many of both in flight at a time.
//! - Expiring takes as many steps as [`FlowTable::expire`] is allowed, however many flows are due.
//!   An expired flow is still found; see [`FlowTable::is_expired`].

mod ahead;
mod entry;
mod index;
#[cfg(test)]
mod tests;
mod timer;

use std::num::NonZeroU32;

use crate::hash::random_seed;
use crate::paged::{AllZeroValid, MapError, PagedTable, Pages};
use entry::{Entry, FREE, LIVE, Slots, TWO_KEYS, YOUNG, Young};
use index::{Index, Place};
use timer::Wheel;
pub use timer::{MAX_TIMEOUT, Millis, is_due};

/// A flow of a table, until it is removed. The number is reused for other flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowId(u32);

impl FlowId {
    /// Returns its number, below the table's capacity.
    #[inline]
    pub fn index(self) -> u32 {
        self.0
    }
}

/// The hash of a key in one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowHash(u64);

/// The result of finding a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found(NonZeroU32);

impl Found {
    #[inline]
    fn at(place: Place) -> Found {
        let number = place.flow() << 1 | u32::from(place.is_second());
        Found(NonZeroU32::MIN.saturating_add(number))
    }
    #[inline]
    fn number(self) -> u32 {
        self.0.get() - 1
    }
    /// The flow.
    #[inline]
    pub fn flow(self) -> FlowId {
        FlowId(self.number() >> 1)
    }
    /// Returns true if the key is its second one.
    #[inline]
    pub fn by_second(self) -> bool {
        self.number() & 1 == 1
    }
}

/// A guess at where a key is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guess(Option<Found>);

impl Guess {
    /// Returns true if there is no guess: then the key is nowhere, or overflowed.
    #[inline]
    pub fn is_nothing(self) -> bool {
        self.0.is_none()
    }
}

impl From<Found> for Guess {
    #[inline]
    fn from(found: Found) -> Guess {
        Guess(Some(found))
    }
}

/// Error of [`FlowTable::add`], which has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddError {
    /// The key already belongs to a flow, which may have expired.
    #[error("flow {} has that key", .0.flow().0)]
    Taken(Found),
    /// The table holds as many flows as it can.
    #[error("the table is full")]
    Full,
    /// No memory is ready for another flow yet: flows come faster than the kernel provides it.
    #[error("no memory is ready for another flow yet")]
    Unready,
}

/// Counters since the table was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Flows that were added.
    pub added: u64,
    /// Flows that expired.
    pub expired: u64,
    /// Young flows that were recycled.
    pub recycled: u64,
    /// Flows that were removed by their owner.
    pub removed: u64,
    /// Times that the table was full.
    pub refused: u64,
    /// Times that no memory was ready.
    pub unready: u64,
}

/// Decision about an expired flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnExpiry {
    /// Remove it.
    Remove,
    /// Keep it until then.
    Until(Millis),
}

/// A table of flows with keys of `W` words, a hot value `V` and a cold one `R`.
///
/// Keys must contain every bit that distinguishes flows, and nothing else: padding must be zero.
/// With two words, and a value of 64 bytes, the hot ones first, a flow takes 120 bytes, and each
/// key 8 of index. If both keys of most flows are needed, a value of 24 bytes is on one cache line
/// with them; an `R` of 48 makes that 128 bytes.
#[derive(Debug)]
pub struct FlowTable<const W: usize, V: AllZeroValid, R: AllZeroValid = ()> {
    flows: PagedTable<Entry<W, V, R>>,
    index: Index,
    wheel: Wheel,
    young: Young,
    /// Flow + 1 that was freed last; 0: none.
    free: u32,
    /// Flows from here on were never used.
    fresh: u32,
    live: u32,
    /// Keys in use, and their limit.
    keys: u64,
    room: u64,
    seeds: [u64; 2],
    counts: FlowCounts,
    /// Flows below this need no check for memory.
    mark: u32,
    /// Declared last: its thread unmaps memory when it is dropped.
    ahead: Option<ahead::Ahead>,
}

/// Keys whose cache lines are fetched together.
const BATCH: usize = 16;
/// Number of keys that [`FlowTable::fetch_ahead`] prefetches at once.
pub const AHEAD: usize = 8;

impl<const W: usize, V: AllZeroValid + Copy, R: AllZeroValid + Copy> FlowTable<W, V, R> {
    /// Creates a table for `capacity` flows with one key each, or two. If most have one, and some
    /// two, flows with two take the room of up to two.
    ///
    /// Reserves address space; memory is used as flows come, from the lowest number up.
    ///
    /// # Errors
    ///
    /// [`MapError`] if the kernel refuses, or for more than 2³¹ − 1 flows.
    pub fn new(capacity: u32, keys: usize, now: Millis) -> Result<Self, MapError> {
        const { assert!(W > 0, "a key has at least one word") };
        if capacity >= Place::LIMIT {
            return Err(MapError { bytes: usize::MAX, source: rustix::io::Errno::NOMEM });
        }
        let index = Index::new(u64::from(capacity) * keys.clamp(1, 2) as u64)?;
        Ok(Self {
            flows: PagedTable::with_pages(capacity as usize, Pages::Huge)?,
            room: index.room(),
            keys: 0,
            index,
            wheel: Wheel::new(now),
            young: Young::default(),
            free: 0,
            fresh: 0,
            live: 0,
            seeds: [random_seed() | 1, random_seed()],
            counts: FlowCounts::default(),
            mark: u32::MAX,
            ahead: None,
        })
    }

    /// Starts a thread of this name (at most 15 bytes) that clears memory ahead of flows, and
    /// unmaps all of it at the end: to be called before there are flows. Flows that come faster are
    /// refused. The first 16 MiB of flows and an index of up to 64 MiB are prepared at once, by the
    /// caller, which takes some milliseconds; until a larger one is ready, all flows are refused.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started. The table can still be used.
    pub fn prepare(&mut self, name: &str) -> std::io::Result<()> {
        self.start_thread(name, None)
    }

    /// Like [`prepare`](Self::prepare), also for a side table with an entry for each flow: if it is
    /// `wanted`, or once it [is](Self::want_side_memory).
    ///
    /// # Errors
    ///
    /// If the thread cannot be started. The table can still be used.
    pub fn prepare_with<T: AllZeroValid>(
        &mut self,
        name: &str,
        side: &PagedTable<T>,
        wanted: bool,
    ) -> std::io::Result<()> {
        let side = ahead::Column { region: side.region(), size: size_of::<T>() };
        self.start_thread(name, Some((side, wanted)))
    }

    fn start_thread(
        &mut self,
        name: &str,
        side: Option<(ahead::Column, bool)>,
    ) -> std::io::Result<()> {
        let flows =
            ahead::Column { region: self.flows.region(), size: size_of::<Entry<W, V, R>>() };
        self.ahead = None;
        self.mark = u32::MAX;
        self.ahead = Some(ahead::Ahead::start(name, flows, self.index.region(), side)?);
        self.mark = self.fresh;
        Ok(())
    }

    /// Returns true if a thread clears memory ahead of flows.
    pub fn is_prepared(&self) -> bool {
        self.ahead.is_some()
    }

    /// Starts to prepare memory of the side table as well. Until [all flows](Self::has_side_memory)
    /// have some, new ones come without; from then on they have it before they come.
    pub fn want_side_memory(&self) {
        if let Some(ahead) = &self.ahead {
            ahead.want_side_memory();
        }
    }

    /// Returns true if all flows have memory in the side table, or no thread prepares it.
    pub fn has_side_memory(&self) -> bool {
        self.ahead.as_ref().is_none_or(ahead::Ahead::is_side_ready)
    }

    /// Returns true if another flow would have memory, if there is room for it.
    pub fn is_ready(&self) -> bool {
        let needs_none = self.free != 0 || self.fresh == self.capacity();
        needs_none || self.ahead.as_ref().is_none_or(|ahead| ahead.is_ready_for(self.fresh))
    }

    /// Faults in all memory of the table.
    ///
    /// # Errors
    ///
    /// The kernel's error: it may not support this (before Linux 5.14), or have no memory.
    pub fn populate(&self) -> std::io::Result<()> {
        for region in [self.index.region(), self.flows.region()] {
            region.populate(0..region.bytes())?;
        }
        Ok(())
    }

    #[cfg(test)]
    fn is_all_ready(&self) -> Option<bool> {
        self.ahead.as_ref().and_then(|ahead| ahead.is_ready(self.capacity()))
    }

    /// Returns true if the next flow has memory.
    #[cold]
    fn has_memory(&mut self) -> bool {
        let Some(ahead) = &mut self.ahead else { return true };
        let upto = ahead.used(self.fresh);
        self.mark = upto.unwrap_or(self.fresh);
        upto.is_some()
    }

    /// Returns the number of flows.
    pub fn len(&self) -> u32 {
        self.live
    }

    /// Returns true if there are no flows.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Returns the maximum number of flows.
    pub fn capacity(&self) -> u32 {
        self.flows.capacity() as u32
    }

    /// Returns the maximum number of flows if all have two keys.
    pub fn capacity_of_two(&self) -> u32 {
        self.capacity().min((self.room / 2) as u32)
    }

    /// Returns the counters.
    pub fn counts(&self) -> FlowCounts {
        self.counts
    }

    /// Returns the bytes of memory when all flows are in use.
    pub fn bytes(&self) -> usize {
        self.flows.capacity() * size_of::<Entry<W, V, R>>() + self.index.bytes()
    }

    /// Returns the hash of a key, which outsiders cannot predict.
    #[inline]
    pub fn hash(&self, key: &[u64; W]) -> FlowHash {
        let [first, second] = self.seeds;
        let mut hash = second;
        let (pairs, rest) = key.as_chunks::<2>();
        for [low, high] in pairs {
            hash = fold(low ^ hash, high ^ first);
        }
        for word in rest {
            hash = fold(word ^ hash, first);
        }
        // A product that an outsider could make zero would still be zero without the seed.
        FlowHash(fold(hash ^ first, 0x9e37_79b9_7f4a_7c15))
    }

    #[inline]
    fn entry(&self, flow: u32) -> &Entry<W, V, R> {
        &self.flows.as_slice()[flow as usize]
    }

    #[inline]
    fn entry_mut(&mut self, flow: u32) -> &mut Entry<W, V, R> {
        &mut self.flows.as_mut_slice()[flow as usize]
    }

    #[inline]
    fn holds(&self, place: Place, key: &[u64; W]) -> bool {
        self.entry(place.flow()).key(place.is_second()) == key
    }

    /// Prefetches what [`find`](Self::find) with this hash reads first.
    #[inline]
    pub fn prefetch(&self, hash: FlowHash) {
        self.index.prefetch(hash);
    }

    /// Finds the flow that has this key, expired or not. `hash` is that of the key.
    #[inline]
    pub fn find(&self, key: &[u64; W], hash: FlowHash) -> Option<Found> {
        self.index.find(hash, |place| self.holds(place, key)).map(Found::at)
    }

    /// Finds the flows of many keys, as [`find`](Self::find) does for one. `hashes` receives the
    /// hash of each key; the shortest slice limits the number of lookups.
    pub fn find_batch(
        &self,
        keys: &[[u64; W]],
        hashes: &mut [FlowHash],
        found: &mut [Option<Found>],
    ) {
        let count = keys.len().min(hashes.len()).min(found.len());
        let (keys, found) = (&keys[..count], &mut found[..count]);
        for (key, hash) in keys.iter().zip(&mut hashes[..count]) {
            *hash = self.hash(key);
        }
        let hashes = &hashes[..count];
        // Three stages, each a chunk after the one before, so that none waits for its own
        // prefetches.
        let chunk = |n: usize| (n * BATCH).min(count)..((n + 1) * BATCH).min(count);
        for n in 0..count.div_ceil(BATCH) + 2 {
            hashes[chunk(n)].iter().for_each(|hash| self.index.prefetch(*hash));
            if let Some(n) = n.checked_sub(1) {
                hashes[chunk(n)].iter().for_each(|hash| self.fetch_guess(*hash));
            }
            if let Some(n) = n.checked_sub(2) {
                for i in chunk(n) {
                    found[i] = self.find(&keys[i], hashes[i]);
                }
            }
        }
    }

    /// Sets the hashes of keys, guesses where the first of them are, and prefetches those. The
    /// shortest slice limits the number.
    pub fn hash_all(&self, keys: &[[u64; W]], hashes: &mut [FlowHash], guesses: &mut [Guess]) {
        let count = keys.len().min(hashes.len()).min(guesses.len());
        let hashes = &mut hashes[..count];
        for (n, (key, hash)) in keys.iter().zip(hashes.iter_mut()).enumerate() {
            *hash = self.hash(key);
            if n < 2 * AHEAD {
                self.index.prefetch(*hash);
            }
        }
        for (hash, guess) in hashes.iter().zip(guesses).take(AHEAD) {
            *guess = self.guess(*hash);
        }
    }

    /// Guesses where [`AHEAD`] keys are, from number `at + `[`AHEAD`] on: to be called for every
    /// [`AHEAD`]th of the keys that are found one after the other.
    #[inline]
    pub fn fetch_ahead(&self, hashes: &[FlowHash], guesses: &mut [Guess], at: usize) {
        let count = hashes.len().min(guesses.len());
        let chunk = |n: usize| (at + n * AHEAD).min(count)..(at + (n + 1) * AHEAD).min(count);
        hashes[chunk(2)].iter().for_each(|hash| self.index.prefetch(*hash));
        for (hash, guess) in hashes[chunk(1)].iter().zip(&mut guesses[chunk(1)]) {
            *guess = self.guess(*hash);
        }
    }

    #[inline]
    fn guess(&self, hash: FlowHash) -> Guess {
        let place = self.index.guess(hash);
        if let Some(place) = place {
            // Most flows that are guessed have one key.
            self.entry(place.flow()).fetch();
        }
        Guess(place.map(Found::at))
    }

    /// Returns where a key is if the guess is right, the flow's expiry, which may be extended, and
    /// its value: all that most packets need, at once. `None` does not mean that the key is
    /// unknown.
    #[inline]
    pub fn guessed(
        &mut self,
        key: &[u64; W],
        guess: Guess,
    ) -> Option<(Found, &mut Millis, &mut V)> {
        let found = guess.0?;
        let entry = self.entry_mut(found.flow().0);
        entry.has(key, found).then_some((found, &mut entry.end, &mut entry.value))
    }

    #[inline]
    fn fetch_guess(&self, hash: FlowHash) {
        if let Some(place) = self.index.guess(hash) {
            self.entry(place.flow()).fetch_both();
        }
    }

    /// Returns the value of a flow.
    #[inline]
    pub fn get(&self, flow: FlowId) -> &V {
        &self.entry(flow.0).value
    }

    /// Returns the value of a flow.
    #[inline]
    pub fn get_mut(&mut self, flow: FlowId) -> &mut V {
        &mut self.entry_mut(flow.0).value
    }

    /// Returns the cold value of a flow.
    #[inline]
    pub fn rest(&self, flow: FlowId) -> &R {
        &self.entry(flow.0).rest
    }

    /// Returns the keys of a flow: the first, and the second if it has one.
    pub fn keys(&self, flow: FlowId) -> (&[u64; W], Option<&[u64; W]>) {
        let entry = self.entry(flow.0);
        (&entry.first, (entry.state & TWO_KEYS != 0).then_some(&entry.second))
    }

    /// Returns the other key of the flow that was found (zeros if it has none), its expiry, which
    /// may be extended, and its value: all that a translation needs, at once.
    #[inline]
    pub fn counterpart(&mut self, found: Found) -> (&[u64; W], &mut Millis, &mut V) {
        let Entry { first, second, end, value, .. } = self.entry_mut(found.flow().0);
        (if found.by_second() { first } else { second }, end, value)
    }

    /// Returns the expiry of a flow.
    #[inline]
    pub fn expiry(&self, flow: FlowId) -> Millis {
        self.entry(flow.0).end
    }

    /// Returns true if a flow has expired.
    #[inline]
    pub fn is_expired(&self, flow: FlowId, now: Millis) -> bool {
        is_due(self.expiry(flow), now)
    }

    /// Moves the expiry of a flow to `end`, which must be later than before.
    #[inline]
    pub fn extend(&mut self, flow: FlowId, end: Millis) {
        self.entry_mut(flow.0).end = end;
    }

    /// Sets the expiry of a flow to `end`, earlier or later than before.
    #[inline]
    pub fn set_expiry(&mut self, flow: FlowId, end: Millis) {
        self.entry_mut(flow.0).end = end;
        self.wheel.moved(self.flows.as_mut_slice(), flow.0, end);
    }

    /// Returns true if a flow may be recycled for another.
    #[inline]
    pub fn is_young(&self, flow: FlowId) -> bool {
        self.entry(flow.0).state & YOUNG != 0
    }

    /// Makes a flow no longer young: it is not recycled for another any more.
    pub fn promote(&mut self, flow: FlowId) {
        if self.is_young(flow) {
            self.entry_mut(flow.0).state &= !YOUNG;
            self.young.remove(self.flows.as_mut_slice(), flow.0);
        }
    }

    /// Adds a young flow with a key and its hash, a second key and its hash, an expiry at most
    /// [`MAX_TIMEOUT`] away, and its values.
    ///
    /// # Errors
    ///
    /// [`AddError`]. After [`AddError::Full`] and [`AddError::Unready`], [`recycle`](Self::recycle)
    /// may make room.
    pub fn add(
        &mut self,
        key: ([u64; W], FlowHash),
        second: Option<([u64; W], FlowHash)>,
        end: Millis,
        (value, rest): (V, R),
    ) -> Result<FlowId, AddError> {
        for (key, hash) in [Some(key), second].iter().flatten() {
            if let Some(found) = self.find(key, *hash) {
                return Err(AddError::Taken(found));
            }
        }
        let keys = self.keys + 1 + u64::from(second.is_some());
        if keys > self.room {
            self.counts.refused += 1;
            return Err(AddError::Full);
        }
        let flow = self.take_free()?;
        self.keys = keys;
        self.index.insert(key.1, Place::new(flow, false));
        let mut state = LIVE | YOUNG;
        if let Some((_, hash)) = second {
            self.index.insert(hash, Place::new(flow, true));
            state |= TWO_KEYS;
        }
        let entry = self.entry_mut(flow);
        (entry.first, entry.second) = (key.0, second.map_or([0; W], |second| second.0));
        (entry.end, entry.state, entry.value, entry.rest) = (end, state, value, rest);
        self.wheel.add(self.flows.as_mut_slice(), flow, end);
        self.young.add(self.flows.as_mut_slice(), flow);
        self.live += 1;
        self.counts.added += 1;
        Ok(FlowId(flow))
    }

    fn take_free(&mut self) -> Result<u32, AddError> {
        if let Some(flow) = self.free.checked_sub(1) {
            self.free = self.flows.as_mut_slice().age(flow).next;
            // Flows come in bursts: the next one finds its cache lines here.
            if let Some(next) = self.free.checked_sub(1) {
                self.entry(next).fetch_all();
            }
            return Ok(flow);
        }
        if self.fresh == self.capacity() {
            self.counts.refused += 1;
            return Err(AddError::Full);
        }
        if self.fresh >= self.mark && !self.has_memory() {
            self.counts.unready += 1;
            return Err(AddError::Unready);
        }
        self.fresh += 1;
        if self.fresh < self.capacity() {
            self.entry(self.fresh).fetch_all();
        }
        Ok(self.fresh - 1)
    }

    /// Removes a flow.
    pub fn remove(&mut self, flow: FlowId) -> V {
        self.counts.removed += 1;
        self.take_out(flow.0)
    }

    fn take_out(&mut self, flow: u32) -> V {
        let Entry { first, second, state, value, .. } = *self.entry(flow);
        debug_assert!(state & LIVE != 0, "flow {flow} was removed before");
        self.index.remove(self.hash(&first), Place::new(flow, false));
        self.keys -= 1;
        if state & TWO_KEYS != 0 {
            self.keys -= 1;
            self.index.remove(self.hash(&second), Place::new(flow, true));
        }
        let flows = self.flows.as_mut_slice();
        self.wheel.remove(flows, flow);
        if state & YOUNG != 0 {
            self.young.remove(flows, flow);
        }
        flows[flow as usize].state = FREE;
        flows.age(flow).next = std::mem::replace(&mut self.free, flow + 1);
        self.live -= 1;
        value
    }

    /// Removes the flow that has been young for longest; `with` sees it before. Returns false if
    /// none is young.
    pub fn recycle(&mut self, with: impl FnOnce(&Self, FlowId)) -> bool {
        let Some(flow) = self.young.oldest() else { return false };
        with(self, FlowId(flow));
        self.take_out(flow);
        self.counts.recycled += 1;
        true
    }

    /// Checks up to `steps` flows that may have expired; `at_end` decides about those that have.
    /// Returns true if there is more to check.
    ///
    /// To keep up, allow two steps for each flow that was added since.
    pub fn expire(
        &mut self,
        now: Millis,
        steps: usize,
        mut at_end: impl FnMut(&mut Self, FlowId) -> OnExpiry,
    ) -> bool {
        // Number of flows that were prefetched, and the one that is next.
        let (mut lead, mut ahead) = (0, 0);
        for _ in 0..steps {
            let Some(flow) = self.wheel.due(now) else { return false };
            if lead == 0 {
                ahead = flow + 1;
            }
            for _ in 0..if lead < AHEAD { 2 } else { 1 } {
                lead += usize::from(ahead != 0);
                ahead = self.fetch(ahead);
            }
            lead = lead.saturating_sub(1);
            if self.is_expired(FlowId(flow), now) {
                match at_end(self, FlowId(flow)) {
                    OnExpiry::Until(end) => self.entry_mut(flow).end = end,
                    OnExpiry::Remove => {
                        self.take_out(flow);
                        self.counts.expired += 1;
                        continue;
                    }
                }
            }
            let end = self.entry(flow).end;
            self.wheel.remove(self.flows.as_mut_slice(), flow);
            self.wheel.add(self.flows.as_mut_slice(), flow, end);
        }
        true
    }

    /// Prefetches what removing a flow (+ 1) reads, and the next flow in its slot (+ 1), which is
    /// returned; 0: none.
    #[inline]
    fn fetch(&mut self, flow: u32) -> u32 {
        let Some(flow) = flow.checked_sub(1) else { return 0 };
        let flows = self.flows.as_mut_slice();
        let next = flows.timer(flow).next;
        if let Some(next) = next.checked_sub(1) {
            flows[next as usize].fetch_all();
        }
        self.fetch_places(flow);
        next
    }

    /// Prefetches the index entries of a flow.
    #[inline]
    fn fetch_places(&self, flow: u32) {
        let Entry { first, second, state, .. } = self.entry(flow);
        self.index.prefetch(self.hash(first));
        if state & TWO_KEYS != 0 {
            self.index.prefetch(self.hash(second));
        }
    }

    /// Prefetches what removing some flows reads beyond themselves.
    #[inline]
    pub fn fetch_removal(&self, flows: &[FlowId]) {
        flows.iter().for_each(|flow| self.fetch_places(flow.0));
    }

    /// Returns the flows among up to `steps` numbers from `*from` on, which moves; for listing a
    /// table in slices. The list ends when `*from` is [`used`](Self::used).
    pub fn list<'a>(
        &'a self,
        from: &mut u32,
        steps: u32,
    ) -> impl Iterator<Item = FlowId> + use<'a, W, V, R> {
        let first = *from;
        *from = first.saturating_add(steps).min(self.fresh);
        (first..*from).filter(|flow| self.entry(*flow).state & LIVE != 0).map(FlowId)
    }

    /// Returns the limit of numbers that have ever been flows.
    pub fn used(&self) -> u32 {
        self.fresh
    }
}

/// Folds both halves of the product.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}
