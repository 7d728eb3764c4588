//! States of the neighbours as pure data: events in, [`Action`]s out. Time is an argument, so that
//! tests need not wait.
//!
//! ```text
//! unknown ── heard, configured ──────────────────────────────► reachable ◄─┐
//!  │   ▲                                            ▲   ▲          │       │
//!  │   │                                            │   │         age    answer
//!  └───│── request ──► incomplete ── answer ────────┘   │          │       │
//!      │                    │                           │          ▼       │
//!      │                no answer                    answer      probe ────┘
//!      │                    ▼                           │          │
//!      ├── forgotten ─── failed ────────────────────────┘          │
//!      └── no answer ──────────────────────────────────────────────┘
//! ```
//!
//! An answer that comes before its request is kept for a moment ([`early`]). A reachable neighbour
//! above its age is shown as stale until it is probed; a static one stays reachable. [`room`]
//! decides which neighbour makes room in a full table.

mod early;
mod room;

use crate::Version;
use crate::messages::{Origin, ResolveRequest};
use early::Early;
use room::Reason;
use std::collections::{BTreeMap, BTreeSet, HashMap, btree_map};
use std::net::IpAddr;
use std::ops::Bound;
use std::time::{Duration, Instant};
use thalweg_device::{MacAddr, SwIfIndex};
use thalweg_fib::Dpo;
use thalweg_graph::NodeId;

/// A neighbour's interface and address.
pub(crate) type Key = (SwIfIndex, IpAddr);

/// Greatest age limit of neighbours: one day. Zero disables aging.
pub const MAX_AGE: Duration = Duration::from_secs(86_400);

/// Maximum limit of the table, and of all families together.
pub const MAX_LIMIT: usize = 1_000_000;
/// Maximum number of pending neighbours of a family, and of failed ones remembered.
const MAX_PENDING: usize = 4096;
/// Requests before a neighbour fails, and probes before it expires.
const TRIES: u8 = 3;
/// Neighbours whose probing starts in one step; the others follow [`STEP`] later.
const PROBES_PER_STEP: usize = 64;
const STEP: Duration = Duration::from_millis(50);
/// Time for which failures are remembered after the silence.
const MEMORY: Duration = Duration::from_secs(60);

/// State of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// A request was sent and not answered yet.
    Incomplete,
    /// Heard within the age limit, or static.
    Reachable,
    /// Older than the age limit; will be probed.
    Stale,
    /// Being probed.
    Probe,
    /// Does not answer.
    Failed,
}

impl State {
    /// Word used by `show` commands.
    pub fn word(self) -> &'static str {
        match self {
            State::Incomplete => "incomplete",
            State::Reachable => "reachable",
            State::Stale => "stale",
            State::Probe => "probe",
            State::Failed => "failed",
        }
    }
}

/// Settings of a family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Maximum number of neighbours with a MAC address.
    pub limit: usize,
    /// The same for each interface.
    pub interface_limit: usize,
    /// Age at which dynamic neighbours are probed; zero disables aging.
    pub age: Duration,
    /// Replace at a limit the oldest dynamic neighbour instead of refusing new ones.
    pub recycle: bool,
    /// Interval between requests for one neighbour.
    pub retry: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            limit: 50_000,
            interface_limit: MAX_LIMIT,
            age: Duration::from_secs(300),
            recycle: false,
            retry: Duration::from_secs(1),
        }
    }
}

/// Counters of a family since start.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct TableStats {
    /// Neighbours refused because of a limit.
    pub refused: u64,
    /// Neighbours replaced by newer ones.
    pub recycled: u64,
    /// Changes of a neighbour's MAC address.
    pub moved: u64,
    /// Packets that contradict a static neighbour.
    pub contradicted: u64,
    /// Neighbours that did not answer any request.
    pub failed: u64,
    /// Failed neighbours no longer remembered because there were too many.
    pub forgotten: u64,
    /// Neighbours that no longer answer.
    pub expired: u64,
    /// Resolutions given up for newer ones because too many were pending.
    pub crowded: u64,
    /// Packets that claimed one of our addresses, as reported by workers (rate limited).
    pub conflicts: u64,
}

/// Limit that a new neighbour exceeds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TableFull {
    /// The limit of the family.
    Family(usize),
    /// The limit of the interface.
    Interface(usize),
    /// The limit of all families.
    All,
}

/// A node of a worker that holds packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Waiter {
    pub(crate) worker: u16,
    pub(crate) node: NodeId,
    pub(crate) request: ResolveRequest,
}

/// Actions for the caller, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// The neighbour is resolved or changed.
    Resolved {
        key: Key,
        waiters: Vec<Waiter>,
        /// Set if it had failed before: workers may still drop its packets.
        revived: bool,
    },
    /// The neighbour is no longer resolved.
    Gone { key: Key, dpo: Option<Dpo>, is_static: bool },
    /// Send a request, unicast to `to` if given.
    Request { key: Key, to: Option<MacAddr> },
    /// Drop the held packets, and new ones for `hold`.
    Fail { waiters: Vec<Waiter>, hold: Duration },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Incomplete,
    Reachable,
    Probe,
    Failed,
}

pub(crate) struct Entry {
    pub(crate) mac: Option<MacAddr>,
    pub(crate) is_static: bool,
    pub(crate) no_fib: bool,
    pub(crate) origin: Origin,
    /// The router has asked for it, or it was configured: not only heard.
    needed: bool,
    pub(crate) dpo: Option<Dpo>,
    /// True if subscribers added a host route.
    pub(crate) in_fib: bool,
    /// Number of the replacement during which it was last configured.
    pub(crate) replacement: u64,
    phase: Phase,
    /// Time when it was last heard or configured, or when resolution began.
    since: Instant,
    /// Its time in the index of its phase.
    due: Instant,
    tries: u8,
    /// Nothing is remembered if the first request is not answered.
    once: bool,
    failures: u8,
    /// End of a failed neighbour's silence.
    silent: Instant,
    waiters: Vec<Waiter>,
}

/// Indices and settings of one family.
#[derive(Default)]
struct Side {
    /// Dynamic and reachable neighbours, by the time they were last heard.
    by_age: BTreeSet<(Instant, Key)>,
    /// Incomplete or probed neighbours, by the time of the next request.
    asking: BTreeSet<(Instant, Key)>,
    /// Failed neighbours, by the time they are deleted.
    failed: BTreeSet<(Instant, Key)>,
    incomplete: usize,
    resolved: usize,
    /// Interfaces by what their shares hold, so that the largest is found among any number.
    ranks: room::Ranks,
    config: Config,
    stats: TableStats,
}

/// Neighbours of one family on one interface.
#[derive(Default)]
struct Share {
    resolved: usize,
    /// Incomplete neighbours, by the time at which resolution began.
    pending: BTreeSet<(Instant, IpAddr)>,
    /// Neighbours of [`Side::by_age`] that are only heard, and the others.
    heard: BTreeSet<(Instant, IpAddr)>,
    needed: BTreeSet<(Instant, IpAddr)>,
}

/// An interface and a family.
type Place = (SwIfIndex, Version);

fn place(key: Key) -> Place {
    (key.0, Version::of_ip(key.1))
}

/// The neighbour table.
#[derive(Default)]
pub(crate) struct NeighborTable {
    /// Entries in order: an interface's neighbours follow each other, and of them those of a
    /// family.
    entries: BTreeMap<Key, Entry>,
    sides: [Side; 2],
    shares: HashMap<Place, Share>,
    actions: Vec<Action>,
    /// Answers to requests that this table does not know of yet.
    early: Early,
    /// Entries looked at by [`keys`](Self::keys).
    #[cfg(test)]
    visited: std::cell::Cell<usize>,
}

/// Index of the family of a key in [`NeighborTable::sides`].
fn side(key: Key) -> usize {
    Version::of_ip(key.1).index()
}

impl NeighborTable {
    /// Takes the actions accumulated since the last call.
    pub(crate) fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    pub(crate) fn get(&self, key: Key) -> Option<&Entry> {
        self.entries.get(&key)
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut Entry> {
        self.entries.get_mut(&key)
    }

    /// All entries in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &Entry)> {
        self.entries.iter().map(|(k, e)| (*k, e))
    }

    /// The first entry behind `last`, or of all.
    pub(crate) fn after(&self, last: Bound<Key>) -> Option<(Key, &Entry)> {
        self.entries.range((last, Bound::Unbounded)).next().map(|(k, e)| (*k, e))
    }

    /// The entries with keys from `first` to `last`, in order.
    pub(crate) fn range(&self, first: Key, last: Key) -> impl Iterator<Item = (Key, &Entry)> {
        self.entries.range(first..=last).map(|(k, e)| (*k, e))
    }

    /// Entries of an interface, or of all; of a family, or of all.
    fn select(
        &self,
        sw_if: Option<SwIfIndex>,
        family: Option<Version>,
    ) -> impl Iterator<Item = (Key, &Entry)> {
        let [[first, _], [_, last]] = match family {
            Some(one) => [one.bounds(), one.bounds()],
            None => [Version::V4.bounds(), Version::V6.bounds()],
        };
        let range = match sw_if {
            Some(i) => (i, first)..=(i, last),
            None => (SwIfIndex(0), first)..=(SwIfIndex::MAX, last),
        };
        let rows = self.entries.range(range).map(|(k, e)| (*k, e));
        #[cfg(test)]
        let rows = rows.inspect(|_| self.visited.set(self.visited.get() + 1));
        rows.filter(move |(key, _)| family.is_none_or(|one| one == Version::of_ip(key.1)))
    }

    /// Keys of the entries of an interface (or of all) and a family (or of all) that `which`
    /// matches. Costs as much as there are of the interface.
    pub(crate) fn keys(
        &self,
        sw_if: Option<SwIfIndex>,
        family: Option<Version>,
        which: impl Fn(Key, &Entry) -> bool,
    ) -> Vec<Key> {
        self.select(sw_if, family).filter(|(k, e)| which(*k, e)).map(|(k, _)| k).collect()
    }

    /// Returns [`keys`](Self::keys) among the next `some` entries behind `last`; also returns where
    /// to continue, `None` at the end.
    pub(crate) fn some_keys(
        &self,
        last: Bound<Key>,
        some: usize,
        (sw_if, family): (Option<SwIfIndex>, Option<Version>),
        which: impl Fn(&Entry) -> bool,
    ) -> (Vec<Key>, Option<Bound<Key>>) {
        let first = match (last, sw_if) {
            (Bound::Unbounded, Some(i)) => Bound::Included((i, Version::V4.bounds()[0])),
            _ => last,
        };
        let rows = self.entries.range((first, Bound::Unbounded)).take(some);
        let mut rows = rows.take_while(|(key, _)| sw_if.is_none_or(|i| key.0 == i)).peekable();
        if rows.peek().is_none() {
            return (Vec::new(), None);
        }
        let (mut found, mut next) = (Vec::new(), None);
        for (key, e) in rows {
            next = Some(Bound::Excluded(*key));
            if family.is_none_or(|one| one == Version::of_ip(key.1)) && which(e) {
                found.push(*key);
            }
        }
        (found, next)
    }

    pub(crate) fn config(&self, family: Version) -> Config {
        self.sides[family.index()].config
    }

    pub(crate) fn set_config(&mut self, family: Version, config: Config) {
        self.sides[family.index()].config = config;
    }

    pub(crate) fn stats(&self, family: Version) -> TableStats {
        self.sides[family.index()].stats
    }

    pub(crate) fn count_conflict(&mut self, family: Version) {
        self.sides[family.index()].stats.conflicts += 1;
    }

    /// Number of a family's neighbours with a MAC address.
    pub(crate) fn resolved(&self, family: Version) -> usize {
        self.sides[family.index()].resolved
    }

    pub(crate) fn state(&self, key: Key, e: &Entry, now: Instant) -> State {
        let age = self.sides[side(key)].config.age;
        let old = now.saturating_duration_since(e.since) > age;
        match e.phase {
            Phase::Incomplete => State::Incomplete,
            Phase::Probe => State::Probe,
            Phase::Failed => State::Failed,
            Phase::Reachable if old && !e.is_static && !age.is_zero() => State::Stale,
            Phase::Reachable => State::Reachable,
        }
    }

    /// Returns whether an entry was last heard or configured, or its resolution began, by `then`.
    pub(crate) fn is_older(e: &Entry, then: Instant) -> bool {
        e.since <= then
    }

    pub(crate) fn age(&self, e: &Entry, now: Instant) -> Duration {
        now.saturating_duration_since(e.since)
    }

    /// Removes an entry from the index of its phase.
    fn unlink(&mut self, key: Key) {
        let Some(e) = self.entries.get(&key) else { return };
        let (row, own, side) = ((e.due, key), (e.due, key.1), &mut self.sides[side(key)]);
        let share = self.shares.entry(place(key)).or_default();
        let before = share.sizes();
        match e.phase {
            Phase::Reachable if e.is_static => {}
            Phase::Reachable => {
                side.by_age.remove(&row);
                if e.needed {
                    share.needed.remove(&own)
                } else {
                    share.heard.remove(&own)
                };
            }
            Phase::Incomplete | Phase::Probe => drop(side.asking.remove(&row)),
            Phase::Failed => drop(side.failed.remove(&row)),
        }
        if e.phase == Phase::Incomplete {
            share.pending.remove(&(e.since, key.1));
        }
        side.ranks.change(key.0, before, share.sizes());
        let (incomplete, resolved) =
            (usize::from(e.phase == Phase::Incomplete), usize::from(e.mac.is_some()));
        (side.incomplete, side.resolved) = (side.incomplete - incomplete, side.resolved - resolved);
        share.resolved -= resolved;
        if share.pending.is_empty() && share.resolved == 0 {
            self.shares.remove(&place(key));
        }
    }

    /// Adds an entry to the index of its phase.
    fn link(&mut self, key: Key) {
        let Some(e) = self.entries.get(&key) else { return };
        let (row, own, side) = ((e.due, key), (e.due, key.1), &mut self.sides[side(key)]);
        let (incomplete, resolved) =
            (usize::from(e.phase == Phase::Incomplete), usize::from(e.mac.is_some()));
        (side.incomplete, side.resolved) = (side.incomplete + incomplete, side.resolved + resolved);
        if e.phase == Phase::Failed {
            // No share: neither pending nor resolved.
            side.failed.insert(row);
            return;
        }
        let share = self.shares.entry(place(key)).or_default();
        let before = share.sizes();
        share.resolved += resolved;
        if e.phase == Phase::Incomplete {
            share.pending.insert((e.since, key.1));
        }
        if e.phase != Phase::Reachable {
            side.asking.insert(row);
        } else if !e.is_static {
            side.by_age.insert(row);
            if e.needed {
                share.needed.insert(own)
            } else {
                share.heard.insert(own)
            };
        }
        side.ranks.change(key.0, before, share.sizes());
    }

    fn change(&mut self, key: Key, f: impl FnOnce(&mut Entry)) {
        self.unlink(key);
        if let Some(e) = self.entries.get_mut(&key) {
            f(e);
        }
        self.link(key);
    }

    /// Creates an entry, or removes an existing one from its index; [`link`](Self::link) must
    /// follow.
    fn open(&mut self, key: Key, origin: Origin, now: Instant) {
        if let btree_map::Entry::Vacant(e) = self.entries.entry(key) {
            e.insert(Self::fresh(now, origin));
        } else {
            self.unlink(key);
        }
    }

    fn fresh(now: Instant, origin: Origin) -> Entry {
        Entry {
            mac: None,
            is_static: false,
            no_fib: false,
            origin,
            needed: false,
            dpo: None,
            in_fib: false,
            replacement: 0,
            phase: Phase::Incomplete,
            since: now,
            due: now,
            tries: 0,
            once: false,
            failures: 0,
            silent: now,
            waiters: Vec::new(),
        }
    }

    /// Requests resolution of a neighbour. `sent`: a request was sent already.
    pub(crate) fn request(&mut self, key: Key, waiter: Option<Waiter>, sent: bool, now: Instant) {
        let waiters: Vec<Waiter> = waiter.into_iter().collect();
        self.need(key);
        match self.entries.get_mut(&key) {
            Some(e) if e.mac.is_some() => {
                if !waiters.is_empty() {
                    self.actions.push(Action::Resolved { key, waiters, revived: false });
                }
                return;
            }
            Some(e) if e.phase == Phase::Incomplete => {
                e.waiters.extend(waiters.iter().filter(|w| !e.waiters.contains(w)).copied().next());
                // Packets wait now: it is asked as often as any other.
                if std::mem::take(&mut e.once) {
                    e.tries = 1;
                }
                return;
            }
            Some(e) if e.silent > now => {
                let hold = e.silent - now;
                self.actions.push(Action::Fail { waiters, hold });
                return;
            }
            _ => {}
        }
        self.make_place(key);
        let retry = self.sides[side(key)].config.retry;
        self.open(key, Origin::Reply, now);
        if let Some(e) = self.entries.get_mut(&key) {
            (e.phase, e.since, e.due, e.tries, e.waiters) =
                (Phase::Incomplete, now, now + retry, 1, waiters);
            e.needed = true;
        }
        self.link(key);
        if !sent {
            self.actions.push(Action::Request { key, to: None });
        } else if let Some(mac) = self.early.take(key, now) {
            let _ = self.resolve(key, mac, Origin::Reply, now, |_| {});
        }
    }

    /// Notes that the router needs a neighbour, if it has been heard.
    fn need(&mut self, key: Key) {
        if self.entries.get(&key).is_some_and(|e| e.mac.is_some() && !e.needed) {
            self.change(key, |e| e.needed = true);
        }
    }

    /// Requests a neighbour that nobody waits for, by one request, unless anything is known of it.
    pub(crate) fn request_once(&mut self, key: Key, now: Instant) {
        if self.entries.contains_key(&key) {
            self.need(key);
            return;
        }
        self.request(key, None, false, now);
        if let Some(e) = self.entries.get_mut(&key) {
            (e.once, e.tries) = (true, TRIES);
        }
    }

    /// Handles a report of a sender.
    pub(crate) fn learn(&mut self, key: Key, mac: MacAddr, origin: Origin, now: Instant) {
        let stats = &mut self.sides[side(key)].stats;
        match self.entries.get(&key) {
            // A gratuitous announcement only updates known neighbours, as does a reply: nobody has
            // asked. Another worker may have, whose request waits to be read.
            None if origin == Origin::Reply => self.early.note(key, mac, now),
            None if origin == Origin::Gratuitous => {}
            Some(e) if e.phase == Phase::Failed && origin == Origin::Gratuitous => {}
            Some(e) if e.is_static => {
                stats.contradicted += u64::from(e.mac != Some(mac));
            }
            Some(e) if e.mac == Some(mac) => self.change(key, |e| e.refresh(now)),
            Some(e) if e.mac.is_some() => {
                stats.moved += 1;
                self.change(key, |e| {
                    e.refresh(now);
                    (e.mac, e.origin) = (Some(mac), origin);
                });
                self.actions.push(Action::Resolved { key, waiters: Vec::new(), revived: false });
            }
            _ => {
                let _ = self.resolve(key, mac, origin, now, |_| {});
            }
        }
    }

    /// Sets the MAC address of an entry that has none.
    fn resolve(
        &mut self,
        key: Key,
        mac: MacAddr,
        origin: Origin,
        now: Instant,
        f: impl FnOnce(&mut Entry),
    ) -> Result<(), TableFull> {
        let reason = match self.entries.get(&key) {
            _ if origin == Origin::Config => Reason::Configured,
            Some(e) if e.needed => Reason::Awaited,
            _ => Reason::Heard,
        };
        self.make_room(key, reason)?;
        self.open(key, origin, now);
        let (mut waiters, mut revived) = (Vec::new(), false);
        if let Some(e) = self.entries.get_mut(&key) {
            revived = e.phase == Phase::Failed;
            e.refresh(now);
            (e.mac, e.origin, e.failures) = (Some(mac), origin, 0);
            e.needed = reason > Reason::Heard;
            waiters = std::mem::take(&mut e.waiters);
            f(e);
        }
        self.link(key);
        self.actions.push(Action::Resolved { key, waiters, revived });
        Ok(())
    }

    /// Configures a neighbour.
    ///
    /// # Errors
    /// If the table is full; nothing has changed then.
    pub(crate) fn set(
        &mut self,
        key: Key,
        mac: MacAddr,
        is_static: bool,
        no_fib: bool,
        now: Instant,
    ) -> Result<(), TableFull> {
        let f = |e: &mut Entry| (e.is_static, e.no_fib) = (is_static, no_fib);
        if self.entries.get(&key).is_none_or(|e| e.mac.is_none()) {
            return self.resolve(key, mac, Origin::Config, now, f);
        }
        self.change(key, |e| {
            e.refresh(now);
            (e.mac, e.origin, e.needed) = (Some(mac), Origin::Config, true);
            f(e);
        });
        self.actions.push(Action::Resolved { key, waiters: Vec::new(), revived: false });
        Ok(())
    }

    /// Forgets early answers on an interface, whose number may be another one's later.
    pub(crate) fn forget_early(&mut self, sw_if: SwIfIndex) {
        self.early.forget(sw_if);
    }

    /// Deletes a neighbour; returns false if it was unknown.
    pub(crate) fn remove(&mut self, key: Key) -> bool {
        self.unlink(key);
        let Some(e) = self.entries.remove(&key) else { return false };
        if e.mac.is_some() {
            self.actions.push(Action::Gone { key, dpo: e.dpo, is_static: e.is_static });
        }
        if !e.waiters.is_empty() {
            self.actions.push(Action::Fail { waiters: e.waiters, hold: Duration::ZERO });
        }
        true
    }

    /// Deletes neighbours; returns their number.
    pub(crate) fn remove_all(&mut self, keys: &[Key]) -> usize {
        keys.iter().filter(|key| self.remove(**key)).count()
    }

    /// Performs what is due.
    pub(crate) fn tick(&mut self, now: Instant) {
        for family in Version::ALL {
            self.tick_family(family.index(), now);
        }
    }

    fn tick_family(&mut self, side: usize, now: Instant) {
        let due = |set: &BTreeSet<(Instant, Key)>| set.first().copied().filter(|x| x.0 <= now);
        while let Some((due, key)) = due(&self.sides[side].asking) {
            self.ask_again(key, due, now);
        }
        while let Some((_, key)) = due(&self.sides[side].failed) {
            self.remove(key);
        }
        for _ in 0..PROBES_PER_STEP {
            let Some(key) = self.next_stale(side, now) else { break };
            self.probe(key, now);
        }
    }

    fn next_stale(&self, side: usize, now: Instant) -> Option<Key> {
        let age = self.sides[side].config.age;
        let (heard, key) = self.sides[side].by_age.first().copied()?;
        let old = !age.is_zero() && now.saturating_duration_since(heard) >= age;
        old.then_some(key)
    }

    /// Probes a neighbour that is reachable as far as is known.
    pub(crate) fn confirm(&mut self, key: Key, now: Instant) {
        let known = self.entries.get(&key);
        if known.is_some_and(|e| e.phase == Phase::Reachable && !e.is_static) {
            self.probe(key, now);
        }
    }

    fn probe(&mut self, key: Key, now: Instant) {
        let due = now + self.sides[side(key)].config.retry;
        self.change(key, |e| (e.phase, e.due, e.tries) = (Phase::Probe, due, 1));
        let to = self.entries.get(&key).and_then(|e| e.mac);
        self.actions.push(Action::Request { key, to });
    }

    fn ask_again(&mut self, key: Key, due: Instant, now: Instant) {
        let side = &mut self.sides[side(key)];
        let Some(e) = self.entries.get(&key) else {
            side.asking.remove(&(due, key));
            return;
        };
        let (to, more, once) = (e.mac, e.tries < TRIES, e.once);
        if more {
            let due = now + side.config.retry;
            self.change(key, |e| (e.due, e.tries) = (due, e.tries + 1));
            self.actions.push(Action::Request { key, to });
        } else if to.is_some() {
            side.stats.expired += 1;
            self.remove(key);
        } else if once {
            self.remove(key);
        } else {
            self.fail(key, now);
        }
    }

    /// Marks a neighbour as failed: silent for 2, 4, 8, 16, then 30 times the retry interval.
    fn fail(&mut self, key: Key, now: Instant) {
        let stats = &mut self.sides[side(key)];
        stats.stats.failed += 1;
        let retry = stats.config.retry;
        let (mut waiters, mut hold) = (Vec::new(), retry);
        self.change(key, |e| {
            e.failures = e.failures.saturating_add(1);
            hold = retry * (1u32 << e.failures.min(5)).min(30);
            waiters = std::mem::take(&mut e.waiters);
            (e.phase, e.silent, e.due) = (Phase::Failed, now + hold, now + hold + MEMORY);
        });
        self.actions.push(Action::Fail { waiters, hold });
        let side = &mut self.sides[side(key)];
        if side.failed.len() > MAX_PENDING
            && let Some((_, oldest)) = side.failed.first().copied()
        {
            side.stats.forgotten += 1;
            self.remove(oldest);
        }
    }

    /// Time at which [`tick`](Self::tick) is due next.
    pub(crate) fn next_due(&self, now: Instant) -> Option<Instant> {
        let first = |s: &BTreeSet<(Instant, Key)>| s.first().map(|(t, _)| *t);
        let of = |side: &Side| {
            let age = side.config.age;
            let aged = first(&side.by_age).filter(|_| !age.is_zero());
            // Further aged neighbours wait for a later step, as this one's share is used up.
            let aged = aged.map(|t| (t + age).max(now + STEP));
            [first(&side.asking), first(&side.failed), aged].into_iter().flatten().min()
        };
        self.sides.iter().filter_map(of).min()
    }
}

impl Entry {
    fn refresh(&mut self, now: Instant) {
        (self.phase, self.since, self.due, self.tries) = (Phase::Reachable, now, now, 0);
        self.once = false;
    }
}

#[cfg(test)]
mod tests;
