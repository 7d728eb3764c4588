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
    let needed = !c.state::<Sets>().borrow().is_idle();
    let prepared = c.state::<Tracking>().borrow().prepared;
    if needed && !prepared {
        c.state::<Tracking>().borrow_mut().prepared = true;
        apply(c);
    }
}

/// Tells workers the settings.
///
/// Trackers that are too small are made anew if they are empty.
pub(crate) fn apply(c: &mut Control) {
    let settings = c.state::<Tracking>().borrow().clone();
    if !settings.prepared {
        return;
    }
    let workers = c.workers();
    if let Err(e) = provide(c, share(settings.limit, workers), settings.labels) {
        tracing::error!("connection tracking: {e}");
    }
    ask(c, move |engine| settings.apply(engine, workers));
}

/// Gives workers trackers with room for so many, if theirs are too small and empty. They are made here,
/// and what they replace is dropped here: finding memory takes longer than a worker may.
fn provide(c: &mut Control, limit: u32, labels: bool) -> Result<(), thalweg_tables::MapError> {
    let is_small = move |engine: &Engine| {
        engine.tracker.as_ref().is_none_or(|t| t.is_empty() && t.capacity() < limit)
    };
    for worker in 0..c.workers() {
        if ask_one(c, worker, move |engine| is_small(engine)) != Some(true) {
            continue;
        }
        let mut tracker = Box::new(Tracker::<IPV4>::new(limit, millis(clock::ticks()))?);
        if let Err(e) = tracker.prepare(labels) {
            tracing::warn!("connections' memory is cleared as they come to it: {e}");
        }
        // One that has had a connection meanwhile is kept.
        let unused = ask_one(c, worker, move |engine| match is_small(engine) {
            true => engine.tracker.replace(tracker),
            false => Some(tracker),
        });
        drop(unused);
    }
    Ok(())
}

impl Tracking {
    /// Whether workers track, or have tracked.
    pub fn is_prepared(&self) -> bool {
        self.prepared
    }

    fn apply(&self, engine: &mut Engine, workers: usize) {
        engine.verify = self.checksums;
        let Some(tracker) = engine.tracker.as_deref_mut() else { return };
        tracker.set_limit(share(self.limit, workers));
        tracker.set_when_full(self.when_full);
        tracker.set_check_windows(self.check_windows);
        tracker.clear_zones();
        for (zone, policy) in &self.policies {
            tracker.set_policy(*zone, Some(policy.clone()));
        }
        for (zone, limit) in &self.zone_limits {
            let limit = share(*limit, workers);
            tracker.set_zone_limit(*zone, Some(limit));
        }
    }
}

/// Has workers end connections whose time has come, should no packet do so.
pub(crate) fn tick(c: &mut Control) {
    let used = !c.state::<Sets>().borrow().is_idle();
    let prepared = c.state::<Tracking>().borrow().prepared;
    let Some(node) = c.node("flow-rules").filter(|_| used && prepared) else { return };
    c.message_all(node, |_| {
        let order: Order = Box::new(|_| {});
        Box::new(order)
    });
}

/// Counts of all workers, the connections that there are, and what rules were found without a search.
pub fn counts(c: &mut Control) -> (Counts, Live, [u64; 2]) {
    let mut sum = (Counts::default(), Live::default(), [0; 2]);
    let all = ask(c, |engine| {
        let cache = [engine.cache.hits + engine.ways.saved, engine.cache.misses];
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
