//! The neighbours' states, as pure data: what happens goes in, what is to be done comes out as
//! [`Action`]s. Time is an argument, so that tests need not wait.

use crate::packet::{Origin, ResolveRequest};
use std::collections::{BTreeSet, HashMap, hash_map};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use thalweg_device::{Mac, SwIfIndex};
use thalweg_fib::Dpo;

/// A neighbour's interface and address.
pub(crate) type Key = (SwIfIndex, Ipv4Addr);

/// Neighbours being asked for at once, and neighbours remembered for not answering.
const MAX_PENDING: usize = 4096;
/// Requests before a neighbour counts as absent, and probes before one counts as gone.
const TRIES: u8 = 3;
/// Neighbours whose probing begins in one step; the rest follow [`STEP`] later.
const PROBES_PER_STEP: usize = 64;
const STEP: Duration = Duration::from_millis(50);
/// How long an absent neighbour's failures are remembered after its silence.
const MEMORY: Duration = Duration::from_secs(60);

/// What is known of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It was asked for and has not answered yet.
    Incomplete,
    /// It was heard of within the age limit, or is static.
    Reachable,
    /// It is older than the age limit and will be probed.
    Stale,
    /// It is being probed.
    Probe,
    /// It does not answer.
    Failed,
}

impl State {
    /// The word for `show` commands.
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

/// How the table behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Most neighbours with a MAC address.
    pub limit: usize,
    /// Dynamic neighbours not heard of for this long are probed; zero: never.
    pub age: Duration,
    /// When the table is full: the oldest dynamic neighbour gives way, else newcomers are refused.
    pub recycle: bool,
    /// Time between requests for one neighbour.
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

/// Events of the table since start.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct TableStats {
    /// Neighbours refused because the table was full.
    pub refused: u64,
    /// Neighbours that gave way to newer ones.
    pub recycled: u64,
    /// Changes of a neighbour's MAC address.
    pub moved: u64,
    /// Packets that contradicted a static neighbour.
    pub contradicted: u64,
    /// Neighbours that were asked for in vain.
    pub failed: u64,
    /// Neighbours that no longer answered.
    pub expired: u64,
    /// Resolutions refused because too many were under way.
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

/// What is to be done, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// The neighbour is known, or something about it changed.
    Resolved {
        key: Key,
        waiters: Vec<Waiter>,
        /// It had failed before: workers may still drop packets for it.
        revived: bool,
    },
    /// It is no longer known.
    Gone { key: Key, dpo: Option<Dpo>, is_static: bool },
    /// Send a request, to that address if there is one.
    Request { key: Key, to: Option<Mac> },
    /// Drop what is held, and what comes within `hold`.
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
    /// Whether subscribers were told of a route of its own.
    pub(crate) in_fib: bool,
    phase: Phase,
    /// When it was last heard of or set; when asking began.
    since: Instant,
    /// When it is this entry's turn in its index.
    due: Instant,
    tries: u8,
    failures: u8,
    /// Until when a failed neighbour is not asked for again.
    silent: Instant,
    waiters: Vec<Waiter>,
}

/// The table.
pub(crate) struct NeighborTable {
    entries: HashMap<Key, Entry>,
    /// Dynamic, reachable: by when they were last heard of.
    by_age: BTreeSet<(Instant, Key)>,
    /// Incomplete or probed: by the time of the next request.
    asking: BTreeSet<(Instant, Key)>,
    /// Failed: by when they are forgotten.
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

    /// What is to be done since the last call.
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

    /// Neighbours with a MAC address.
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

    /// Takes an entry out of the index that its phase is kept in.
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

    /// Enters it again after a change.
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

    /// Makes an entry, or takes the one there is out of its index; [`link`](Self::link) is due.
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

    /// Somebody needs the neighbour. `asked`: a request is on its way already.
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

    /// A neighbour was heard of.
    pub(crate) fn learn(&mut self, key: Key, mac: Mac, origin: Origin, now: Instant) {
        match self.entries.get(&key) {
            // An announcement concerns those who know the announcer.
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

    /// Gives an entry that has none a MAC address.
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
    /// If the table is full; it is as before then.
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

    /// Forgets a neighbour; false if it was unknown.
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

    /// Forgets all neighbours that `which` names; returns how many.
    pub(crate) fn flush(&mut self, which: impl Fn(Key, &Entry) -> bool) -> usize {
        let keys: Vec<Key> = self.iter().filter(|(k, e)| which(*k, e)).map(|(k, _)| k).collect();
        for key in &keys {
            self.remove(*key);
        }
        keys.len()
    }

    /// Does what is due.
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

    /// Nobody answers: silence for 2, 4, 8, 16, at last 30 times the retry interval.
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

    /// When [`tick`](Self::tick) has something to do next.
    pub(crate) fn next_due(&self, now: Instant) -> Option<Instant> {
        let first = |s: &BTreeSet<(Instant, Key)>| s.first().map(|(t, _)| *t);
        let aged = first(&self.by_age).filter(|_| !self.config.age.is_zero());
        // Those over age wait for a later step, as this one has done its share.
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
