//! States of the neighbours as pure data: events in, [`Action`]s out. Time is an argument, so that
//! tests need not wait.

use crate::packet::{Origin, ResolveRequest};
use std::collections::{BTreeSet, HashMap, hash_map};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use thalweg_device::{Mac, SwIfIndex};
use thalweg_fib::Dpo;

/// A neighbour's interface and address.
pub(crate) type Key = (SwIfIndex, Ipv4Addr);

/// Maximum number of pending neighbours, and of failed ones remembered.
const MAX_PENDING: usize = 4096;
/// Requests before a neighbour fails, and probes before it expires.
const TRIES: u8 = 3;
/// Neighbours whose probing starts in one step; the others follow [`STEP`] later.
const PROBES_PER_STEP: usize = 64;
const STEP: Duration = Duration::from_millis(50);
/// How long failures are remembered after the silence.
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

/// Settings of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Maximum number of neighbours with a MAC address.
    pub limit: usize,
    /// Age at which dynamic neighbours are probed; zero disables aging.
    pub age: Duration,
    /// When the table is full, replace the oldest dynamic neighbour instead of refusing new ones.
    pub recycle: bool,
    /// Interval between requests for one neighbour.
    pub retry: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            limit: 50_000,
            age: Duration::from_secs(300),
            recycle: false,
            retry: Duration::from_secs(1),
        }
    }
}

/// Counters since start.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct TableStats {
    /// Neighbours refused because the table was full.
    pub refused: u64,
    /// Neighbours replaced by newer ones.
    pub recycled: u64,
    /// Changes of a neighbour's MAC address.
    pub moved: u64,
    /// Packets that contradict a static neighbour.
    pub contradicted: u64,
    /// Neighbours that did not answer any request.
    pub failed: u64,
    /// Neighbours that no longer answer.
    pub expired: u64,
    /// Resolutions refused because too many were pending.
    pub crowded: u64,
}

/// The table is full.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TableFull;

/// A worker that holds packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Waiter {
    pub(crate) worker: u16,
    pub(crate) request: ResolveRequest,
}

/// Actions for the caller, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// The neighbour is resolved or changed.
    Resolved {
        key: Key,
        waiters: Vec<Waiter>,
        /// It had failed before: workers may still drop its packets.
        revived: bool,
    },
    /// It is no longer resolved.
    Gone { key: Key, dpo: Option<Dpo>, is_static: bool },
    /// Send a request, unicast to `to` if given.
    Request { key: Key, to: Option<Mac> },
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
    pub(crate) mac: Option<Mac>,
    pub(crate) is_static: bool,
    pub(crate) no_fib: bool,
    pub(crate) origin: Origin,
    pub(crate) dpo: Option<Dpo>,
    /// Whether subscribers added a /32 route.
    pub(crate) in_fib: bool,
    phase: Phase,
    /// When it was last heard or configured, or when resolution began.
    since: Instant,
    /// Its time in the index of its phase.
    due: Instant,
    tries: u8,
    failures: u8,
    /// End of a failed neighbour's silence.
    silent: Instant,
    waiters: Vec<Waiter>,
}

/// The neighbour table.
pub(crate) struct NeighborTable {
    entries: HashMap<Key, Entry>,
    /// Dynamic and reachable neighbours, by the time they were last heard.
    by_age: BTreeSet<(Instant, Key)>,
    /// Incomplete or probed neighbours, by the time of the next request.
    asking: BTreeSet<(Instant, Key)>,
    /// Failed neighbours, by the time they are deleted.
    failed: BTreeSet<(Instant, Key)>,
    incomplete: usize,
    resolved: usize,
    pub(crate) config: Config,
    pub(crate) stats: TableStats,
    actions: Vec<Action>,
}

impl NeighborTable {
    pub(crate) fn new(config: Config) -> NeighborTable {
        NeighborTable {
            entries: HashMap::new(),
            by_age: BTreeSet::new(),
            asking: BTreeSet::new(),
            failed: BTreeSet::new(),
            incomplete: 0,
            resolved: 0,
            config,
            stats: TableStats::default(),
            actions: Vec::new(),
        }
    }

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

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &Entry)> {
        self.entries.iter().map(|(k, e)| (*k, e))
    }

    /// Number of neighbours with a MAC address.
    pub(crate) fn resolved(&self) -> usize {
        self.resolved
    }

    pub(crate) fn state(&self, e: &Entry, now: Instant) -> State {
        let old = now.saturating_duration_since(e.since) > self.config.age;
        match e.phase {
            Phase::Incomplete => State::Incomplete,
            Phase::Probe => State::Probe,
            Phase::Failed => State::Failed,
            Phase::Reachable if old && !e.is_static && !self.config.age.is_zero() => State::Stale,
            Phase::Reachable => State::Reachable,
        }
    }

    pub(crate) fn age(&self, e: &Entry, now: Instant) -> Duration {
        now.saturating_duration_since(e.since)
    }

    /// Removes an entry from the index of its phase.
    fn unlink(&mut self, key: Key) {
        let Some(e) = self.entries.get(&key) else { return };
        let row = (e.due, key);
        match e.phase {
            Phase::Reachable if e.is_static => {}
            Phase::Reachable => drop(self.by_age.remove(&row)),
            Phase::Incomplete | Phase::Probe => drop(self.asking.remove(&row)),
            Phase::Failed => drop(self.failed.remove(&row)),
        }
        self.incomplete -= usize::from(e.phase == Phase::Incomplete);
        self.resolved -= usize::from(e.mac.is_some());
    }

    /// Adds an entry to the index of its phase.
    fn link(&mut self, key: Key) {
        let Some(e) = self.entries.get(&key) else { return };
        let row = (e.due, key);
        match e.phase {
            Phase::Reachable if e.is_static => {}
            Phase::Reachable => drop(self.by_age.insert(row)),
            Phase::Incomplete | Phase::Probe => drop(self.asking.insert(row)),
            Phase::Failed => drop(self.failed.insert(row)),
        }
        self.incomplete += usize::from(e.phase == Phase::Incomplete);
        self.resolved += usize::from(e.mac.is_some());
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
        if let hash_map::Entry::Vacant(e) = self.entries.entry(key) {
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
            dpo: None,
            in_fib: false,
            phase: Phase::Incomplete,
            since: now,
            due: now,
            tries: 0,
            failures: 0,
            silent: now,
            waiters: Vec::new(),
        }
    }

    /// Requests resolution of a neighbour. `sent`: a request was sent already.
    pub(crate) fn request(&mut self, key: Key, waiter: Option<Waiter>, sent: bool, now: Instant) {
        let waiters: Vec<Waiter> = waiter.into_iter().collect();
        match self.entries.get_mut(&key) {
            Some(e) if e.mac.is_some() => {
                if !waiters.is_empty() {
                    self.actions.push(Action::Resolved { key, waiters, revived: false });
                }
                return;
            }
            Some(e) if e.phase == Phase::Incomplete => {
                e.waiters.extend(waiters.iter().filter(|w| !e.waiters.contains(w)).copied().next());
                return;
            }
            Some(e) if e.silent > now => {
                let hold = e.silent - now;
                self.actions.push(Action::Fail { waiters, hold });
                return;
            }
            _ => {}
        }
        if self.incomplete >= MAX_PENDING {
            self.stats.crowded += 1;
            self.actions.push(Action::Fail { waiters, hold: self.config.retry });
            return;
        }
        self.open(key, Origin::Reply, now);
        let due = now + self.config.retry;
        if let Some(e) = self.entries.get_mut(&key) {
            (e.phase, e.since, e.due, e.tries, e.waiters) =
                (Phase::Incomplete, now, due, 1, waiters);
        }
        self.link(key);
        if !sent {
            self.actions.push(Action::Request { key, to: None });
        }
    }

    /// Handles a report of a sender.
    pub(crate) fn learn(&mut self, key: Key, mac: Mac, origin: Origin, now: Instant) {
        match self.entries.get(&key) {
            // A gratuitous announcement only updates known neighbours.
            None if origin == Origin::Gratuitous => {}
            Some(e) if e.phase == Phase::Failed && origin == Origin::Gratuitous => {}
            Some(e) if e.is_static => {
                self.stats.contradicted += u64::from(e.mac != Some(mac));
            }
            Some(e) if e.mac == Some(mac) => self.change(key, |e| e.refresh(now)),
            Some(e) if e.mac.is_some() => {
                self.stats.moved += 1;
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
        mac: Mac,
        origin: Origin,
        now: Instant,
        f: impl FnOnce(&mut Entry),
    ) -> Result<(), TableFull> {
        self.make_room()?;
        self.open(key, origin, now);
        let (mut waiters, mut revived) = (Vec::new(), false);
        if let Some(e) = self.entries.get_mut(&key) {
            revived = e.phase == Phase::Failed;
            e.refresh(now);
            (e.mac, e.origin, e.failures) = (Some(mac), origin, 0);
            waiters = std::mem::take(&mut e.waiters);
            f(e);
        }
        self.link(key);
        self.actions.push(Action::Resolved { key, waiters, revived });
        Ok(())
    }

    fn make_room(&mut self) -> Result<(), TableFull> {
        while self.resolved >= self.config.limit {
            let oldest = self.by_age.first().map(|(_, k)| *k).filter(|_| self.config.recycle);
            let Some(oldest) = oldest else {
                self.stats.refused += 1;
                return Err(TableFull);
            };
            self.stats.recycled += 1;
            self.remove(oldest);
        }
        Ok(())
    }

    /// Configures a neighbour.
    ///
    /// # Errors
    /// If the table is full; nothing has changed then.
    pub(crate) fn set(
        &mut self,
        key: Key,
        mac: Mac,
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
            (e.mac, e.origin) = (Some(mac), Origin::Config);
            f(e);
        });
        self.actions.push(Action::Resolved { key, waiters: Vec::new(), revived: false });
        Ok(())
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

    /// Deletes all neighbours that `which` matches; returns their number.
    pub(crate) fn flush(&mut self, which: impl Fn(Key, &Entry) -> bool) -> usize {
        let keys: Vec<Key> = self.iter().filter(|(k, e)| which(*k, e)).map(|(k, _)| k).collect();
        for key in &keys {
            self.remove(*key);
        }
        keys.len()
    }

    /// Performs what is due.
    pub(crate) fn tick(&mut self, now: Instant) {
        while let Some((due, key)) = self.asking.first().copied().filter(|(due, _)| *due <= now) {
            self.ask_again(key, due, now);
        }
        while let Some((_, key)) = self.failed.first().copied().filter(|(due, _)| *due <= now) {
            self.remove(key);
        }
        for _ in 0..PROBES_PER_STEP {
            let Some((_, key)) = self.next_stale(now) else { break };
            self.probe(key, now);
        }
    }

    fn next_stale(&self, now: Instant) -> Option<(Instant, Key)> {
        let old = |t: &Instant| now.saturating_duration_since(*t) >= self.config.age;
        let first = self.by_age.first().copied();
        first.filter(|(t, _)| !self.config.age.is_zero() && old(t))
    }

    fn probe(&mut self, key: Key, now: Instant) {
        let due = now + self.config.retry;
        self.change(key, |e| (e.phase, e.due, e.tries) = (Phase::Probe, due, 1));
        let to = self.entries.get(&key).and_then(|e| e.mac);
        self.actions.push(Action::Request { key, to });
    }

    fn ask_again(&mut self, key: Key, due: Instant, now: Instant) {
        let Some(e) = self.entries.get(&key) else {
            self.asking.remove(&(due, key));
            return;
        };
        let (to, more) = (e.mac, e.tries < TRIES);
        if more {
            let due = now + self.config.retry;
            self.change(key, |e| (e.due, e.tries) = (due, e.tries + 1));
            self.actions.push(Action::Request { key, to });
        } else if to.is_some() {
            self.stats.expired += 1;
            self.remove(key);
        } else {
            self.fail(key, now);
        }
    }

    /// Marks a neighbour as failed: silent for 2, 4, 8, 16, then 30 times the retry interval.
    fn fail(&mut self, key: Key, now: Instant) {
        self.stats.failed += 1;
        let retry = self.config.retry;
        let (mut waiters, mut hold) = (Vec::new(), retry);
        self.change(key, |e| {
            e.failures = e.failures.saturating_add(1);
            hold = retry * (1u32 << e.failures.min(5)).min(30);
            waiters = std::mem::take(&mut e.waiters);
            (e.phase, e.silent, e.due) = (Phase::Failed, now + hold, now + hold + MEMORY);
        });
        self.actions.push(Action::Fail { waiters, hold });
        if self.failed.len() > MAX_PENDING
            && let Some((_, oldest)) = self.failed.first().copied()
        {
            self.remove(oldest);
        }
    }

    /// Time at which [`tick`](Self::tick) is due next.
    pub(crate) fn next_due(&self, now: Instant) -> Option<Instant> {
        let first = |s: &BTreeSet<(Instant, Key)>| s.first().map(|(t, _)| *t);
        let aged = first(&self.by_age).filter(|_| !self.config.age.is_zero());
        // Further aged neighbours wait for a later step, as this one's share is used up.
        let aged = aged.map(|t| (t + self.config.age).max(now + STEP));
        [first(&self.asking), first(&self.failed), aged].into_iter().flatten().min()
    }
}

impl Entry {
    fn refresh(&mut self, now: Instant) {
        (self.phase, self.since, self.due, self.tries) = (Phase::Reachable, now, now, 0);
    }
}

#[cfg(test)]
mod tests;
