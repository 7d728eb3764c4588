//! The trackers of all workers, as the main thread sees them.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use thalweg_conntrack::connection::Connection;
use thalweg_conntrack::tracker::{Counts, Live};
use thalweg_conntrack::{Filter, IPV4, Policy, Tracker, WhenFull};
use thalweg_graph::{Control, clock};

use crate::nodes::flow_rules::{Engine, Order, millis};
use crate::sets::Sets;

/// How connections are tracked: settings of all workers together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracking {
    /// Connections that there may be; each worker has an even share.
    pub limit: u32,
    /// What becomes of new ones when there is no room.
    pub when_full: WhenFull,
    /// Whether TCP's sequence numbers are held against windows.
    pub check_windows: bool,
    /// Whether checksums are verified that no device has.
    pub checksums: bool,
    /// Where events are told: a local socket.
    pub events: Option<String>,
    /// Timeouts by zone; without, those of all zones that have none of their own.
    pub policies: BTreeMap<Option<u16>, Policy>,
    /// Connections by zone; without, for all zones that have no limit of their own.
    pub zone_limits: BTreeMap<Option<u16>, u32>,
    /// Whether workers have trackers.
    prepared: bool,
    /// Whether these have memory for labels.
    labels: bool,
    /// Whether there is room for as many translated connections.
    translates: bool,
    /// Ticks since interfaces last followed rules.
    idle: u32,
}

/// What a command says about tracking.
pub(crate) enum Change {
    /// How many connections there may be.
    Limit(u32),
    /// What becomes of new ones when there is no room.
    WhenFull(WhenFull),
    /// Whether TCP's sequence numbers are held against windows.
    CheckWindows(bool),
    /// Whether checksums are verified.
    Checksums(bool),
    /// Where events are told.
    Events(Option<String>),
    /// Connections of a zone, or of those that have no limit of their own.
    ZoneLimit(Option<u16>, Option<u32>),
    /// Timeouts of a zone, or of those that have none of their own.
    Timeouts(Option<u16>, Option<Policy>),
}

/// Connections, unless said otherwise.
pub const DEFAULT_LIMIT: u32 = 1 << 20;
/// The most that may be asked for.
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

/// What workers answer.
pub(crate) fn ask<R: Send + 'static>(
    c: &mut Control,
    f: impl Fn(&mut Engine) -> R + Clone + Send + 'static,
) -> Vec<R> {
    ask_with(c, || (), move |engine, ()| f(engine))
}

/// What workers answer, each of which is given something.
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

/// Asks one worker.
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

/// How long a command waits for labels' memory, at most.
const PATIENCE: Duration = Duration::from_millis(20);

/// Gives workers trackers as soon as an interface follows rules, and these memory for labels as soon as rules
/// give any.
pub(crate) fn prepare(c: &mut Control) {
    let labels = c.state::<Sets>().borrow().have_labels();
    if labels && !std::mem::replace(&mut c.state::<Tracking>().borrow_mut().labels, true) {
        ask(c, |engine| engine.tracker.as_deref().map(Tracker::want_labels));
        // Most often it is there when the rule is followed; else new connections with labels are refused for some
        // milliseconds more.
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

/// Changes one thing, of which workers are told: what they have to do does not depend on all the rest, and
/// they neither find memory for it nor give any back.
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
                tell(c, move |tracker| tracker.set_limit(share(limit, workers)));
            }
        }
        Change::WhenFull(when_full) => {
            settings.when_full = when_full;
            drop(settings);
            tell(c, move |tracker| tracker.set_when_full(when_full));
        }
        Change::CheckWindows(check) => {
            settings.check_windows = check;
            drop(settings);
            tell(c, move |tracker| tracker.set_check_windows(check));
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
            tell(c, move |tracker| tracker.set_zone_limit(zone, limit));
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

/// Has workers that have trackers do something to these.
fn tell(c: &mut Control, f: impl Fn(&mut Tracker<IPV4>) + Clone + Send + 'static) {
    ask(c, move |engine| engine.tracker.as_deref_mut().map(&f));
}

/// Gives workers trackers with room for their share of what is set, if theirs are too small and empty. They are
/// made here, with all that is set, and what they replace is dropped here: finding memory takes longer than a
/// worker may.
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
        // One that has had a connection meanwhile is kept.
        let unused = ask_one(c, worker, move |engine| match is_small(engine) {
            true => engine.tracker.replace(tracker),
            false => Some(tracker),
        });
        drop(unused);
    }
}

impl Tracking {
    /// Whether workers track, or have tracked.
    pub fn is_prepared(&self) -> bool {
        self.prepared
    }

    /// A tracker of one of so many workers.
    fn tracker(&self, workers: usize) -> Result<Box<Tracker<IPV4>>, thalweg_tables::MapError> {
        let (limit, now) = (share(self.limit, workers), millis(clock::ticks()));
        let mut tracker = Box::new(match self.translates {
            true => Tracker::for_translated(limit, now)?,
            false => Tracker::new(limit, now)?,
        });
        if let Err(e) = tracker.prepare(self.labels) {
            tracing::warn!("connections' memory is cleared as they come to it: {e}");
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

/// Ticks after the last rules: as long as fragments may wait, and some.
const LAST_TICKS: u32 = 2 * crate::fragments::PATIENCE / crate::TICK.as_millis() as u32;

/// Has workers end connections whose time has come, should no packet do so.
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

/// Counts of all workers, the connections that there are, and what rules were found without a search.
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

/// Connections of zones.
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

/// A walk over the connections of all workers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Walk {
    worker: usize,
    from: u32,
}

/// Places that a worker looks at for one question, at most.
const PLACES: u32 = 512;
/// Places that it looks at between two looks at the clock.
const FEW: u32 = 32;
/// How long it may look: memory that was not used for long is slow.
const LOOK: Duration = Duration::from_micros(20);

/// Has a worker look at places from `*from` on, some at a time, for as long as it may.
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

    /// Whether there is nothing more.
    pub fn is_over(&self, c: &Control) -> bool {
        self.worker >= c.workers()
    }
}

/// Some connections that a filter chooses; the walk moves on.
pub fn connections(c: &mut Control, walk: &mut Walk, filter: Filter) -> Vec<Connection> {
    let mut from = walk.from;
    let answer = ask_one(c, walk.worker, move |engine| {
        let now = engine.now;
        let Some(tracker) = engine.tracker.as_deref() else { return (Vec::new(), 0, 0) };
        let mut found: Vec<Connection> = Vec::with_capacity(4 * FEW as usize);
        look(&mut from, tracker.places(), |from, few| {
            found.extend(tracker.list(from, few, now).filter(|c| filter.chooses(c)));
        });
        (found, from, tracker.places())
    });
    let (found, from, places) = answer.unwrap_or_default();
    walk.go_on(from, places);
    found
}

/// Forgets some connections that a filter chooses; the walk moves on. Returns how many.
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
