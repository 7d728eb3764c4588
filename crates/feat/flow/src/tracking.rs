//! The trackers of all workers, on the main thread.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use thalweg_cli::{CliError, Outcome, Output};
use thalweg_conntrack::connection::Connection;
use thalweg_conntrack::tracker::{Counts, Live};
use thalweg_conntrack::{Filter, Policy, Tracker, WhenFull};
use thalweg_engine::ask_workers;
use thalweg_graph::control::Asked;
use thalweg_graph::worker::Core;
use thalweg_graph::{Control, clock};
use thalweg_tables::MapError;
use thalweg_tables::flow::Millis;

use crate::nodes::flow_rules::{Engine, Order, millis};
use crate::sets::Sets;

/// Connection tracking settings, for all workers together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracking {
    /// Maximum number of connections; each worker gets an equal share.
    pub limit: u32,
    /// Handling of new connections when the table is full.
    pub when_full: WhenFull,
    /// True if TCP sequence numbers are checked against windows.
    pub check_windows: bool,
    /// True if checksums are verified that the device has not verified.
    pub checksums: bool,
    /// Path of the local socket for events.
    pub events: Option<String>,
    /// Timeouts by zone; `None` is the default for all other zones.
    pub policies: BTreeMap<Option<u16>, Policy>,
    /// Connection limits by zone; `None` is the default for all other zones.
    pub zone_limits: BTreeMap<Option<u16>, u32>,
    /// True if workers have trackers.
    prepared: bool,
    /// True if trackers have memory for labels.
    labels: bool,
    /// True if trackers are sized for translated connections.
    translates: bool,
    /// True if trackers have room for connections of IPv6.
    ipv6: bool,
    /// Number of ticks since rules were last in use.
    idle: u32,
    /// The largest limit for which there was memory, of trackers that exist.
    room: u32,
    /// True if trackers could not be created, which the log says once.
    failed: bool,
}

/// No memory is left for this number of connections.
#[derive(Debug, thiserror::Error)]
#[error(
    "no memory to track {limit} connections: {source}; `set conntrack limit' lowers the number"
)]
pub struct NoRoom {
    limit: u32,
    source: MapError,
}

/// A change of a setting.
pub(crate) enum Change {
    /// Maximum number of connections.
    Limit(u32),
    /// Handling of new connections when the table is full.
    WhenFull(WhenFull),
    /// True if TCP sequence numbers are checked against windows.
    CheckWindows(bool),
    /// True if checksums are verified.
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
            ipv6: false,
            idle: 0,
            room: 0,
            failed: false,
        }
    }
}

/// Runs a function on all workers.
pub(crate) fn tell(c: &mut Control, f: impl Fn(&mut Engine) + Clone + Send + 'static) {
    drop(order(c, || (), move |engine, ()| f(engine)));
}

/// Results of workers.
type Results<R> = Vec<mpsc::Receiver<R>>;

/// Runs a function on all workers, each with a value of its own.
fn order<T: Send + 'static, R: Send + 'static>(
    c: &mut Control,
    given: impl Fn() -> T,
    f: impl Fn(&mut Engine, T) -> R + Clone + Send + 'static,
) -> Results<R> {
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
    answers
}

/// Collects the answers that are here: workers execute orders before what they are asked later.
fn collected<R>(answers: Results<R>) -> Vec<R> {
    answers.into_iter().filter_map(|rx| rx.try_recv().ok()).collect()
}

/// Runs a function on all workers, each with a value of its own, and continues with the results.
pub(crate) fn ask_with_then<T: Send + 'static, R: Send + 'static>(
    c: &mut Control,
    given: impl Fn() -> T,
    f: impl Fn(&mut Engine, T) -> R + Clone + Send + 'static,
    then: impl FnOnce(&mut Control, Vec<R>) + 'static,
) {
    let answers = order(c, given, f);
    c.when_synced(move |c| then(c, collected(answers)));
}

/// Continues a command with the results of all workers.
pub(crate) fn ask_for<R: Send + 'static>(
    c: &mut Control,
    out: &mut Output,
    f: impl Fn(&mut Engine) -> R + Clone + Send + 'static,
    then: impl FnOnce(&mut Control, Vec<R>, &mut Output) -> Result<(), CliError> + Send + 'static,
) -> Result<Outcome<Control>, CliError> {
    let answers = order(c, || (), move |engine, ()| f(engine));
    let synced = |_: &mut Core| ();
    ask_workers(c, out, synced, move |c, _, out| then(c, collected(answers), out))
}

/// Runs a function on one worker; the result comes later.
fn order_one<R: Send + 'static>(
    c: &mut Control,
    worker: usize,
    f: impl FnOnce(&mut Engine) -> R + Send + 'static,
) -> mpsc::Receiver<R> {
    let (tx, rx) = mpsc::sync_channel(1);
    if let Some(node) = c.node("flow-rules") {
        let order: Order = Box::new(move |engine| {
            let _ = tx.send(f(engine));
        });
        c.message(worker, node, Box::new(order));
    }
    rx
}

fn share(total: u32, workers: usize) -> u32 {
    total.div_ceil(workers.max(1) as u32)
}

/// Checks that there is memory for all trackers of a limit. A command does so before it changes
/// anything: trackers are made later, in steps, when it has succeeded.
///
/// # Errors
/// [`NoRoom`].
pub(crate) fn check_room(c: &Control, limit: u32) -> Result<(), NoRoom> {
    let state = c.state::<Tracking>();
    let has_all = {
        let state = state.borrow();
        // Memory that was free for trackers which do not exist may have been taken since.
        state.prepared && state.translates && state.ipv6 && limit <= state.room
    };
    if has_all {
        return Ok(());
    }
    let (share, now) = (share(limit, c.workers()), millis(clock::ticks()));
    // Needs of everything that a tracker can do: labels, IPv6, translations.
    let all = (0..c.workers()).map(|_| Tracker::for_translated(share, now));
    let all: Result<Vec<Tracker>, MapError> = all.collect();
    all.map(drop).map_err(|source| NoRoom { limit, source })?;
    state.borrow_mut().room = limit;
    Ok(())
}

/// A continuation, called when trackers are prepared.
type Then = Box<dyn FnOnce(&mut Control)>;

/// Creates trackers once an interface uses rules, and label memory once rules set labels; then
/// calls `then`: usually at once, and when earlier preparations are done.
pub(crate) fn prepare(c: &mut Control, then: impl FnOnce(&mut Control) + 'static) {
    let labels = c.state::<Sets>().borrow().in_use().have_labels();
    if labels && !std::mem::replace(&mut c.state::<Tracking>().borrow_mut().labels, true) {
        tell(c, |engine| _ = engine.tracker.as_deref().map(Tracker::want_labels));
        await_labels(c);
    }
    let (needed, translates, ipv6) = {
        let sets = c.state::<Sets>();
        let sets = sets.borrow();
        let all = sets.in_use();
        (!all.is_idle(), all.translate(), all.track_ipv6())
    };
    let settings = {
        let state = c.state::<Tracking>();
        let mut state = state.borrow_mut();
        let suffices = state.prepared && (state.translates || !translates) && (state.ipv6 || !ipv6);
        if !needed || suffices {
            None
        } else {
            state.prepared = true;
            // Room once given stays.
            state.translates |= translates;
            state.ipv6 |= ipv6;
            Some(state.clone())
        }
    };
    match settings {
        Some(settings) => {
            let verify = settings.checksums;
            let verified = move |c: &mut Control| {
                tell(c, move |engine| engine.verify = verify);
                then(c);
            };
            provide(c, settings, Box::new(verified));
        }
        None => when_provided(c, Box::new(then)),
    }
}

/// Maximum time that a command waits for label memory.
const PATIENCE: Duration = Duration::from_millis(20);

/// Waits for label memory: usually it is there by the time the rule is in use. If not, new
/// connections with labels are refused for some milliseconds.
fn await_labels(c: &mut Control) {
    let end = Instant::now() + PATIENCE;
    let ready = |engine: &mut Engine, ()| {
        engine.tracker.as_deref().is_none_or(Tracker::has_room_for_labels)
    };
    loop {
        let answers = order(c, || (), ready);
        let answered = c.begin_asking(|_| ()).wait(c, WAIT).is_some();
        if answered && !collected(answers).contains(&false) || Instant::now() >= end {
            return;
        }
        std::thread::sleep(PATIENCE / 100);
    }
}

/// Calls `then` once all trackers that are being created are there.
fn when_provided(c: &mut Control, then: Then) {
    if let Providing(Some(waiting)) = &mut *c.state::<Providing>().borrow_mut() {
        return waiting.push_back(then);
    }
    then(c);
}

/// Continuations that wait for trackers in creation; `None` if none are.
#[derive(Default)]
pub(crate) struct Providing(Option<VecDeque<Then>>);

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
                let set = move |tracker: &mut Tracker| {
                    tracker.set_limit(share(limit, workers));
                };
                provide(c, all, Box::new(move |c| on_trackers(c, set)));
            } else {
                prepare(c, |_| ());
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
            tell(c, move |engine| engine.verify = verify);
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
            let set = move |engine: &mut Engine, policy| match engine.tracker.as_deref_mut() {
                Some(tracker) => tracker.set_policy(zone, policy),
                None => policy,
            };
            // The old ones are freed here.
            ask_with_then(c, given, set, |_, old| drop(old));
        }
    }
    // Packets that come after the answer find the new setting.
    c.when_synced(|_| ());
}

/// Runs a function on all existing trackers.
fn on_trackers(c: &mut Control, f: impl Fn(&mut Tracker) + Clone + Send + 'static) {
    tell(c, move |engine| _ = engine.tracker.as_deref_mut().map(&f));
}

/// Replaces trackers that are empty and too small for their share, then calls `then`. New ones are
/// created and old ones dropped here, because mapping memory takes longer than a worker may spend.
fn provide(c: &mut Control, settings: Tracking, then: Then) {
    let providing = c.state::<Providing>();
    let mut state = providing.borrow_mut();
    if let Some(waiting) = &mut state.0 {
        return waiting.push_back(Box::new(move |c| provide(c, settings, then)));
    }
    state.0 = Some(VecDeque::new());
    drop(state);
    provide_from(c, settings, 0, then);
}

/// Does so for the workers from one on.
fn provide_from(c: &mut Control, settings: Tracking, worker: usize, then: Then) {
    let workers = c.workers();
    if worker >= workers {
        {
            let state = c.state::<Tracking>();
            let mut state = state.borrow_mut();
            if state.prepared && std::mem::take(&mut state.failed) {
                tracing::info!("connection tracking: trackers are there");
            }
        }
        then(c);
        return provided(c);
    }
    let (limit, translates) = (share(settings.limit, workers), settings.translates);
    let ipv6 = settings.ipv6;
    let lacks = move |engine: &Engine| {
        let Some(t) = engine.tracker.as_deref() else { return Lack::All };
        let room = if translates { t.capacity_translated() } else { t.capacity() };
        if t.is_empty() && room < limit {
            return Lack::All;
        }
        let is_small = !t.is_prepared_for_ipv6() || t.capacity_ipv6(translates) < limit;
        if ipv6 && t.has_no_ipv6() && is_small { Lack::Ipv6 } else { Lack::Nothing }
    };
    let answer = order_one(c, worker, move |engine| lacks(engine));
    c.when_synced(move |c| {
        let lack = match answer.try_recv() {
            Ok(lack) => lack,
            // The worker has had no processor for a second: without a tracker, its packets would
            // never be tracked.
            Err(mpsc::TryRecvError::Empty) => return provide_from(c, settings, worker, then),
            Err(mpsc::TryRecvError::Disconnected) => Lack::Nothing,
        };
        if lack == Lack::Nothing {
            return provide_from(c, settings, worker + 1, then);
        }
        let tracker = match settings.tracker(workers, lack) {
            Ok(tracker) => tracker,
            Err(e) => {
                let state = c.state::<Tracking>();
                let mut state = state.borrow_mut();
                (state.prepared, state.room) = (false, 0);
                if !std::mem::replace(&mut state.failed, true) {
                    tracing::error!(
                        "connection tracking: {e}: packets are +inv, and trackers are created \
                         once there is memory; `set conntrack limit' lowers the number"
                    );
                }
                drop(state);
                return provide_from(c, settings, workers, then);
            }
        };
        // A tracker that has got a connection meanwhile is kept.
        let unused = order_one(c, worker, move |engine| {
            let mut tracker = tracker;
            match (lacks(engine), engine.tracker.as_deref_mut()) {
                (Lack::All, _) if lack == Lack::All => return engine.tracker.replace(tracker),
                (Lack::Ipv6, Some(here)) => here.take_ipv6(&mut tracker),
                _ => {}
            }
            Some(tracker)
        });
        c.when_synced(move |c| {
            drop(unused);
            provide_from(c, settings, worker + 1, then);
        });
    });
}

/// Missing parts of a worker's tracker that can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lack {
    Nothing,
    /// Room for connections of IPv6.
    Ipv6,
    All,
}

/// Calls what has waited for trackers, until more must be created.
fn provided(c: &mut Control) {
    let waiting = c.state::<Providing>().borrow_mut().0.take();
    let mut waiting = waiting.unwrap_or_default();
    while let Some(next) = waiting.pop_front() {
        next(c);
        if let Providing(Some(more)) = &mut *c.state::<Providing>().borrow_mut() {
            more.extend(waiting);
            return;
        }
    }
}

impl Tracking {
    /// Returns whether workers have trackers.
    pub fn is_prepared(&self) -> bool {
        self.prepared
    }

    /// Creates the tracker of one of `workers` workers, or one with what that lacks.
    fn tracker(&self, workers: usize, lack: Lack) -> Result<Box<Tracker>, MapError> {
        let (limit, now) = (share(self.limit, workers), millis(clock::ticks()));
        let mut tracker = Box::new(match self.translates {
            true => Tracker::for_translated(limit, now)?,
            false => Tracker::new(limit, now)?,
        });
        let mut prepared = Ok(());
        if lack == Lack::All {
            prepared = tracker.prepare(self.labels);
        }
        if self.ipv6 {
            prepared = prepared.and(tracker.prepare_ipv6(self.labels));
        }
        if let Err(e) = prepared {
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

/// Makes workers expire connections if no packet does so.
pub(crate) fn tick(c: &mut Control) {
    let used = !c.state::<Sets>().borrow().in_use().is_idle();
    let goes_on = {
        let state = c.state::<Tracking>();
        let mut state = state.borrow_mut();
        state.idle = if used { 0 } else { state.idle.saturating_add(1) };
        state.prepared && state.idle < LAST_TICKS
    };
    if used && c.state::<Tracking>().borrow().failed {
        prepare(c, |_| ());
    }
    let Some(node) = c.node("flow-rules").filter(|_| goes_on) else { return };
    c.message_all(node, |_| {
        let order: Order = Box::new(|_| {});
        Box::new(order)
    });
}

/// Counters of all workers and numbers of connections.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// Counters.
    pub counts: Counts,
    /// Connections by protocol.
    pub live: Live,
    /// Rule look-ups: hits and misses of caches.
    pub cache: [u64; 2],
    /// Connections of the zones that have limits.
    pub zones: BTreeMap<u16, u32>,
}

/// One worker's part of [`Sums`].
type Part = (Option<(Counts, Live, Vec<(u16, u32)>)>, [u64; 2]);

fn part(engine: &mut Engine, zones: &[u16]) -> Part {
    let cache = [engine.cache.hits + engine.megaflows.saved, engine.cache.misses];
    let of = |t: &Tracker| {
        let zones = zones.iter().map(|zone| (*zone, t.zone_len(*zone))).collect();
        (t.counts(), t.live(), zones)
    };
    (engine.tracker.as_deref().map(of), cache)
}

fn sum_of(zones: &[u16], parts: Vec<Part>) -> Sums {
    let mut sum = Sums { zones: zones.iter().map(|z| (*z, 0)).collect(), ..Sums::default() };
    for (tracker, cache) in parts {
        if let Some((counts, live, zones)) = tracker {
            sum.counts.add(&counts);
            sum.live.add_all(&live);
            for (zone, count) in zones {
                *sum.zones.entry(zone).or_default() += count;
            }
        }
        sum.cache[0] += cache[0];
        sum.cache[1] += cache[1];
    }
    sum
}

/// A question to all workers about [`Sums`], which they answer before others asked later.
pub struct SumsAsked {
    zones: Vec<u16>,
    answers: Results<Part>,
}

impl SumsAsked {
    /// Asks.
    pub fn begin(c: &mut Control) -> SumsAsked {
        let zones: Vec<u16> =
            c.state::<Tracking>().borrow().zone_limits.keys().flatten().copied().collect();
        let asked = zones.clone();
        SumsAsked { zones, answers: order(c, || (), move |engine, ()| part(engine, &asked)) }
    }

    /// Returns the sums of the workers that have answered.
    #[must_use]
    pub fn collect(self) -> Sums {
        sum_of(&self.zones, collected(self.answers))
    }
}

/// The sums of all workers, for those who can wait.
pub fn sums(c: &mut Control) -> Sums {
    let asked = SumsAsked::begin(c);
    c.sync();
    asked.collect()
}

/// Continues a command with the sums of all workers.
pub(crate) fn with_sums(
    c: &mut Control,
    out: &mut Output,
    then: impl FnOnce(&mut Control, Sums, &mut Output) + Send + 'static,
) -> Result<Outcome<Control>, CliError> {
    let asked = SumsAsked::begin(c);
    let synced = |_: &mut Core| ();
    ask_workers(c, out, synced, move |c, _, out| {
        then(c, asked.collect(), out);
        Ok(())
    })
}

/// The position of a walk over the connections of all workers.
#[derive(Clone, Copy, Debug, Default)]
struct Walk {
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
}

/// An answer to a question of a walk, which may be late.
pub enum Next<T> {
    /// The worker has not answered yet: to be asked again.
    Late,
    /// Its answer.
    Some(T),
}

/// A question of a walk to a worker: what it found, and the next place of all places.
struct Question<T> {
    answer: mpsc::Receiver<(T, u32, u32)>,
    asked: Asked<()>,
}

/// Connections of all workers that a filter selects, visited in pieces.
pub struct Visit<T> {
    walk: Walk,
    filter: Filter,
    question: Option<Question<T>>,
}

/// Maximum time that the main thread waits at once.
const WAIT: Duration = Duration::from_millis(5);
/// Time between looks at answers that are late.
pub(crate) const REST: Duration = Duration::from_millis(2);

impl<T: Default + Send + 'static> Visit<T> {
    /// Begins a visit.
    #[must_use]
    pub fn new(filter: Filter) -> Visit<T> {
        Visit { walk: Walk::default(), filter, question: None }
    }

    /// Returns whether all connections were visited.
    #[must_use]
    pub fn is_over(&self, c: &Control) -> bool {
        self.walk.worker >= c.workers()
    }

    fn next(
        &mut self,
        c: &mut Control,
        visit: fn(&mut Tracker, &mut u32, &Filter, Millis) -> T,
    ) -> Next<T> {
        let mut question = match self.question.take() {
            Some(question) => question,
            None => {
                let (mut from, filter) = (self.walk.from, self.filter);
                let answer = order_one(c, self.walk.worker, move |engine| {
                    let now = engine.now;
                    let Some(tracker) = engine.tracker.as_deref_mut() else {
                        return (T::default(), 0, 0);
                    };
                    let found = visit(tracker, &mut from, &filter, now);
                    (found, from, tracker.places())
                });
                Question { answer, asked: c.begin_asking(|_| ()) }
            }
        };
        if question.asked.wait(c, WAIT).is_none() {
            self.question = Some(question);
            return Next::Late;
        }
        let (found, from, places) = question.answer.try_recv().unwrap_or_else(|_| {
            tracing::warn!("worker {} does not respond: left out", self.walk.worker);
            Default::default()
        });
        self.walk.go_on(from, places);
        Next::Some(found)
    }
}

impl Visit<Vec<Connection>> {
    /// Returns the next connections.
    pub fn list(&mut self, c: &mut Control) -> Next<Vec<Connection>> {
        self.next(c, |tracker, from, filter, now| {
            let mut found: Vec<Connection> = Vec::with_capacity(4 * FEW as usize);
            look(from, tracker.places(), |from, few| {
                found.extend(tracker.list(from, few, now).filter(|c| filter.selects(c)));
            });
            found
        })
    }
}

impl Visit<usize> {
    /// Flushes the next connections; returns their number.
    pub fn flush(&mut self, c: &mut Control) -> Next<usize> {
        self.next(c, |tracker, from, filter, now| {
            let mut gone = 0;
            look(from, tracker.places(), |from, few| {
                gone += tracker.flush(from, few, filter, now);
            });
            gone
        })
    }
}
