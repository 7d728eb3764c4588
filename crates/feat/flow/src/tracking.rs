//! The trackers of all workers, on the main thread.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use thalweg_conntrack::connection::Connection;
use thalweg_conntrack::tracker::{Counts, Live};
use thalweg_conntrack::{Filter, IPV4, Policy, Tracker, WhenFull};
use thalweg_graph::{Control, clock};

use crate::nodes::flow_rules::{Engine, Order, millis};
use crate::sets::Sets;

/// Connection tracking settings, for all workers together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracking {
    /// Maximum number of connections; each worker gets an equal share.
    pub limit: u32,
    /// Handling of new connections when the table is full.
    pub when_full: WhenFull,
    /// Whether TCP sequence numbers are checked against windows.
    pub check_windows: bool,
    /// Whether checksums are verified that the device has not verified.
    pub checksums: bool,
    /// Path of the local socket for events.
    pub events: Option<String>,
    /// Timeouts by zone; `None` is the default for all other zones.
    pub policies: BTreeMap<Option<u16>, Policy>,
    /// Connection limits by zone; `None` is the default for all other zones.
    pub zone_limits: BTreeMap<Option<u16>, u32>,
    /// Whether workers have trackers.
    prepared: bool,
    /// Whether trackers have memory for labels.
    labels: bool,
    /// Whether trackers are sized for translated connections.
    translates: bool,
    /// Number of ticks since rules were last in use.
    idle: u32,
}

/// A change of a setting.
pub(crate) enum Change {
    /// Maximum number of connections.
    Limit(u32),
    /// Handling of new connections when the table is full.
    WhenFull(WhenFull),
    /// Whether TCP sequence numbers are checked against windows.
    CheckWindows(bool),
    /// Whether checksums are verified.
    Checksums(bool),
    /// Path of the socket for events.
    Events(Option<String>),
    /// Connection limit of a zone, or the default.
    ZoneLimit(Option<u16>, Option<u32>),
    /// Timeouts of a zone, or the default.
    Timeouts(Option<u16>, Option<Policy>),
}

/// Default maximum number of connections.
pub const DEFAULT_LIMIT: u32 = 1 << 20;
/// Largest value of the limit.
pub const MAX_LIMIT: u32 = 1 << 27;

impl Default for Tracking {
    fn default() -> Self {
        Tracking {
            limit: DEFAULT_LIMIT,
            when_full: WhenFull::default(),
            check_windows: true,
            checksums: true,
            events: None,
            policies: BTreeMap::new(),
            zone_limits: BTreeMap::new(),
            prepared: false,
            labels: false,
            translates: false,
            idle: 0,
        }
    }
}

/// Runs a function on all workers and returns their results.
pub(crate) fn ask<R: Send + 'static>(
    c: &mut Control,
    f: impl Fn(&mut Engine) -> R + Clone + Send + 'static,
) -> Vec<R> {
    ask_with(c, || (), move |engine, ()| f(engine))
}

/// Runs a function on all workers, each with a value of its own, and returns their results.
pub(crate) fn ask_with<T: Send + 'static, R: Send + 'static>(
    c: &mut Control,
    given: impl Fn() -> T,
    f: impl Fn(&mut Engine, T) -> R + Clone + Send + 'static,
) -> Vec<R> {
    let Some(node) = c.node("flow-rules") else { return Vec::new() };
    let mut answers = Vec::new();
    for worker in 0..c.workers() {
        let (tx, rx) = mpsc::sync_channel(1);
        let (f, given) = (f.clone(), given());
        let order: Order = Box::new(move |engine| {
            let _ = tx.send(f(engine, given));
        });
        c.message(worker, node, Box::new(order));
        answers.push(rx);
    }
    c.sync();
    answers.into_iter().filter_map(|rx| rx.try_recv().ok()).collect()
}

/// Runs a function on one worker.
fn ask_one<R: Send + 'static>(
    c: &mut Control,
    worker: usize,
    f: impl FnOnce(&mut Engine) -> R + Send + 'static,
) -> Option<R> {
    let node = c.node("flow-rules")?;
    let (tx, rx) = mpsc::sync_channel(1);
    let order: Order = Box::new(move |engine| {
        let _ = tx.send(f(engine));
    });
    c.message(worker, node, Box::new(order));
    c.sync();
    rx.try_recv().ok()
}

fn share(total: u32, workers: usize) -> u32 {
    total.div_ceil(workers.max(1) as u32)
}

/// How long a command waits for label memory at most.
const PATIENCE: Duration = Duration::from_millis(20);

/// Creates trackers once an interface uses rules, and label memory once rules set labels.
pub(crate) fn prepare(c: &mut Control) {
    let labels = c.state::<Sets>().borrow().have_labels();
    if labels && !std::mem::replace(&mut c.state::<Tracking>().borrow_mut().labels, true) {
        ask(c, |engine| engine.tracker.as_deref().map(Tracker::want_labels));
        // Usually the memory is ready by the time the rule is in use. If not, new connections with
        // labels are refused for some milliseconds.
        let end = Instant::now() + PATIENCE;
        let ready = |engine: &mut Engine| {
            engine.tracker.as_deref().is_none_or(Tracker::has_room_for_labels)
        };
        while ask(c, ready).contains(&false) && Instant::now() < end {
            std::thread::sleep(PATIENCE / 100);
        }
    }
    let (needed, translates) = {
        let sets = c.state::<Sets>();
        let sets = sets.borrow();
        (!sets.is_idle(), sets.translate())
    };
    let settings = {
        let state = c.state::<Tracking>();
        let mut state = state.borrow_mut();
        if !needed || (state.prepared && (state.translates || !translates)) {
            return;
        }
        (state.prepared, state.translates) = (true, translates);
        state.clone()
    };
    provide(c, &settings);
    ask(c, move |engine| engine.verify = settings.checksums);
}

fn set<T>(all: &mut BTreeMap<Option<u16>, T>, zone: Option<u16>, value: Option<T>) {
    match value {
        Some(value) => drop(all.insert(zone, value)),
        None => drop(all.remove(&zone)),
    }
}

/// Applies a single change. Workers do only what the change requires, and neither allocate nor free
/// memory.
pub(crate) fn change(c: &mut Control, change: Change) {
    let (prepared, workers) = (c.state::<Tracking>().borrow().prepared, c.workers());
    let state = c.state::<Tracking>();
    let mut settings = state.borrow_mut();
    match change {
        Change::Limit(limit) => {
            settings.limit = limit;
            let all = settings.clone();
            drop(settings);
            if prepared {
                provide(c, &all);
                on_trackers(c, move |tracker| tracker.set_limit(share(limit, workers)));
            }
        }
        Change::WhenFull(when_full) => {
            settings.when_full = when_full;
            drop(settings);
            on_trackers(c, move |tracker| tracker.set_when_full(when_full));
        }
        Change::CheckWindows(check) => {
            settings.check_windows = check;
            drop(settings);
            on_trackers(c, move |tracker| tracker.set_check_windows(check));
        }
        Change::Checksums(verify) => {
            settings.checksums = verify;
            drop(settings);
            ask(c, move |engine| engine.verify = verify);
        }
        Change::Events(path) => settings.events = path,
        Change::ZoneLimit(zone, limit) => {
            set(&mut settings.zone_limits, zone, limit);
            drop(settings);
            let limit = limit.map(|limit| share(limit, workers));
            on_trackers(c, move |tracker| tracker.set_zone_limit(zone, limit));
        }
        Change::Timeouts(zone, policy) => {
            set(&mut settings.policies, zone, policy.clone());
            drop(settings);
            let given = || policy.clone().map(Box::new);
            ask_with(c, given, move |engine, policy| match engine.tracker.as_deref_mut() {
                Some(tracker) => tracker.set_policy(zone, policy),
                None => policy,
            });
        }
    }
}

/// Runs a function on all existing trackers.
fn on_trackers(c: &mut Control, f: impl Fn(&mut Tracker<IPV4>) + Clone + Send + 'static) {
    ask(c, move |engine| engine.tracker.as_deref_mut().map(&f));
}

/// Replaces trackers that are empty and too small for their share. New ones are created and old
/// ones dropped here, because mapping memory takes longer than a worker may spend.
fn provide(c: &mut Control, settings: &Tracking) {
    let workers = c.workers();
    let (limit, translates) = (share(settings.limit, workers), settings.translates);
    let is_small = move |engine: &Engine| {
        let room = |t: &Tracker<IPV4>| {
            if translates { t.capacity_translated() } else { t.capacity() }
        };
        engine.tracker.as_deref().is_none_or(|t| t.is_empty() && room(t) < limit)
    };
    for worker in 0..workers {
        if ask_one(c, worker, move |engine| is_small(engine)) != Some(true) {
            continue;
        }
        let tracker = match settings.tracker(workers) {
            Ok(tracker) => tracker,
            Err(e) => return tracing::error!("connection tracking: {e}"),
        };
        // A tracker that has got a connection meanwhile is kept.
        let unused = ask_one(c, worker, move |engine| match is_small(engine) {
            true => engine.tracker.replace(tracker),
            false => Some(tracker),
        });
        drop(unused);
    }
}

impl Tracking {
    /// Returns whether workers have trackers.
    pub fn is_prepared(&self) -> bool {
        self.prepared
    }

    /// Creates the tracker of one of `workers` workers.
    fn tracker(&self, workers: usize) -> Result<Box<Tracker<IPV4>>, thalweg_tables::MapError> {
        let (limit, now) = (share(self.limit, workers), millis(clock::ticks()));
        let mut tracker = Box::new(match self.translates {
            true => Tracker::for_translated(limit, now)?,
            false => Tracker::new(limit, now)?,
        });
        if let Err(e) = tracker.prepare(self.labels) {
            tracing::warn!("connection memory is cleared on first use, not in advance: {e}");
        }
        tracker.set_when_full(self.when_full);
        tracker.set_check_windows(self.check_windows);
        for (zone, policy) in &self.policies {
            tracker.set_policy(*zone, Some(Box::new(policy.clone())));
        }
        for (zone, limit) in &self.zone_limits {
            tracker.set_zone_limit(*zone, Some(share(*limit, workers)));
        }
        Ok(tracker)
    }
}

/// Number of ticks after rules were last in use: as long as fragments may wait, twice.
const LAST_TICKS: u32 = 2 * crate::fragments::PATIENCE / crate::TICK.as_millis() as u32;

/// Has workers expire connections, should no packet do so.
pub(crate) fn tick(c: &mut Control) {
    let used = !c.state::<Sets>().borrow().is_idle();
    let goes_on = {
        let state = c.state::<Tracking>();
        let mut state = state.borrow_mut();
        state.idle = if used { 0 } else { state.idle.saturating_add(1) };
        state.prepared && state.idle < LAST_TICKS
    };
    let Some(node) = c.node("flow-rules").filter(|_| goes_on) else { return };
    c.message_all(node, |_| {
        let order: Order = Box::new(|_| {});
        Box::new(order)
    });
}

/// Counters of all workers, the number of connections, and rule look-ups by cache hits and misses.
pub fn counts(c: &mut Control) -> (Counts, Live, [u64; 2]) {
    let mut sum = (Counts::default(), Live::default(), [0; 2]);
    let all = ask(c, |engine| {
        let cache = [engine.cache.hits + engine.megaflows.saved, engine.cache.misses];
        let tracker = engine.tracker.as_deref();
        (tracker.map(|t| (t.counts(), t.live())), cache)
    });
    for (tracker, cache) in all {
        if let Some((counts, live)) = tracker {
            sum.0.add(&counts);
            sum.1.tcp += live.tcp;
            sum.1.udp += live.udp;
            sum.1.icmp += live.icmp;
            sum.1.other += live.other;
        }
        sum.2[0] += cache[0];
        sum.2[1] += cache[1];
    }
    sum
}

/// Number of connections by zone.
pub fn zone_counts(c: &mut Control, zones: Vec<u16>) -> BTreeMap<u16, u32> {
    let mut sums: BTreeMap<u16, u32> = zones.iter().map(|zone| (*zone, 0)).collect();
    let all = ask(c, move |engine| {
        let tracker = engine.tracker.as_deref();
        let count = |zone: &u16| (*zone, tracker.map_or(0, |t| t.zone_len(*zone)));
        zones.iter().map(count).collect::<Vec<_>>()
    });
    for (zone, count) in all.into_iter().flatten() {
        *sums.entry(zone).or_default() += count;
    }
    sums
}

/// The position of a walk over the connections of all workers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Walk {
    worker: usize,
    from: u32,
}

/// Maximum number of places per request to a worker.
const PLACES: u32 = 512;
/// Number of places between two readings of the clock.
const FEW: u32 = 32;
/// Time limit of a request: memory that is not in the cache is slow.
const LOOK: Duration = Duration::from_micros(20);

/// Visits places from `*from` on in chunks, within the time limit.
fn look(from: &mut u32, places: u32, mut some: impl FnMut(&mut u32, u32)) {
    let (first, began) = (*from, clock::ticks());
    while *from < places && *from - first < PLACES {
        some(from, FEW);
        if clock::ticks() - began > clock::ticks_in(LOOK) {
            return;
        }
    }
}

impl Walk {
    fn go_on(&mut self, from: u32, places: u32) {
        *self = match from < places {
            true => Walk { worker: self.worker, from },
            false => Walk { worker: self.worker + 1, from: 0 },
        };
    }

    /// Returns whether the walk is complete.
    pub fn is_over(&self, c: &Control) -> bool {
        self.worker >= c.workers()
    }
}

/// The next connections that a filter selects; advances the walk.
pub fn connections(c: &mut Control, walk: &mut Walk, filter: Filter) -> Vec<Connection> {
    let mut from = walk.from;
    let answer = ask_one(c, walk.worker, move |engine| {
        let now = engine.now;
        let Some(tracker) = engine.tracker.as_deref() else { return (Vec::new(), 0, 0) };
        let mut found: Vec<Connection> = Vec::with_capacity(4 * FEW as usize);
        look(&mut from, tracker.places(), |from, few| {
            found.extend(tracker.list(from, few, now).filter(|c| filter.selects(c)));
        });
        (found, from, tracker.places())
    });
    let (found, from, places) = answer.unwrap_or_default();
    walk.go_on(from, places);
    found
}

/// Flushes the next connections that a filter selects; advances the walk. Returns the number of
/// connections flushed.
pub fn flush(c: &mut Control, walk: &mut Walk, filter: Filter) -> usize {
    let mut from = walk.from;
    let answer = ask_one(c, walk.worker, move |engine| {
        let now = engine.now;
        let Some(tracker) = engine.tracker.as_deref_mut() else { return (0, 0, 0) };
        let mut gone = 0;
        look(&mut from, tracker.places(), |from, few| {
            gone += tracker.flush(from, few, &filter, now);
        });
        (gone, from, tracker.places())
    });
    let (gone, from, places) = answer.unwrap_or_default();
    walk.go_on(from, places);
    gone
}
