//! Lists sessions from the main thread, in slices, so that workers are not held up.

use crate::pool::SPACES;
use crate::session::{self, Class, tcp};
use crate::time;
use crate::worker::{Counts, Nat};
use std::net::Ipv4Addr;
use std::time::Duration;
use thalweg_cli::{CliError, Outcome, Output};
use thalweg_fib::TableId;
use thalweg_graph::control::{Asked, ThreadInfo};
use thalweg_graph::{Control, Core, clock};
use thalweg_tables::flow::{FlowCounts, FlowId, Millis};
use thalweg_wire::nat::tuple::{Key, Tuple};

/// A session for display.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionView {
    /// The worker that owns it.
    pub worker: usize,
    /// Its number on the worker.
    pub index: u32,
    /// Tuple of packets from inside.
    pub inside: Tuple,
    /// Tuple of packets from outside.
    pub outside: Tuple,
    /// Timeout class.
    pub class: Class,
    /// TCP state.
    pub state: u8,
    /// Marks, see [`session`].
    pub marks: u16,
    /// Packets in both directions.
    pub packets: u64,
    /// Bytes in both directions.
    pub bytes: u64,
    /// Milliseconds since it was created.
    pub age: Millis,
    /// Milliseconds until it expires.
    pub left: Millis,
}

impl SessionView {
    /// External address and port of the inside host.
    pub fn mapped(&self) -> (Ipv4Addr, u16) {
        (self.outside.dst, self.outside.dport)
    }
    /// Untranslated address and port of the external host.
    pub fn external(&self) -> (Ipv4Addr, u16) {
        (self.outside.src, self.outside.sport)
    }
    /// Returns whether it belongs to a static mapping.
    pub fn is_static(&self) -> bool {
        self.marks & session::STATIC != 0
    }
    /// Returns whether it is of a flow that is forwarded as it is.
    pub fn is_direct(&self) -> bool {
        self.marks & session::DIRECT != 0
    }
    /// Returns whether the TCP connection is closed.
    pub fn is_closing(&self) -> bool {
        tcp::is_closing(self.state)
    }
}

/// Number of sessions per request to a worker: some tens of microseconds.
const SLICE: u32 = 256;

/// A partial tuple: fields that are set must match.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// Source address.
    pub saddr: Option<Ipv4Addr>,
    /// Source port.
    pub sport: Option<u16>,
    /// Destination address.
    pub daddr: Option<Ipv4Addr>,
    /// Destination port.
    pub dport: Option<u16>,
    /// IP protocol.
    pub protocol: Option<u8>,
}

impl Pattern {
    fn matches(&self, t: &Tuple) -> bool {
        fn is<T: PartialEq>(wanted: Option<T>, is: T) -> bool {
            wanted.is_none_or(|wanted| wanted == is)
        }
        is(self.saddr, t.src)
            && is(self.sport, t.sport)
            && is(self.daddr, t.dst)
            && is(self.dport, t.dport)
            && is(self.protocol, t.protocol)
    }
}

/// Selects sessions; fields that are set must match.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct SessionFilter {
    /// The inside host.
    pub host: Option<Ipv4Addr>,
    /// Routing table of the inside host.
    pub table: Option<TableId>,
    /// Packets from inside.
    pub i2o: Pattern,
    /// Packets from outside.
    pub o2i: Pattern,
}

impl SessionFilter {
    /// Selects the sessions of an inside endpoint or, with `inside` false, of an external address
    /// and port.
    pub fn of_end(
        inside: bool,
        (address, port): (Ipv4Addr, u16),
        ip: u8,
        table: TableId,
    ) -> SessionFilter {
        let (address, port, protocol) = (Some(address), Some(port), Some(ip));
        let to = Pattern::default();
        match inside {
            true => {
                let i2o = Pattern { saddr: address, sport: port, protocol, ..to };
                SessionFilter { table: Some(table), i2o, ..SessionFilter::default() }
            }
            false => {
                let o2i = Pattern { daddr: address, dport: port, protocol, ..to };
                SessionFilter { o2i, ..SessionFilter::default() }
            }
        }
    }

    fn has(&self, (inside, outside): (&Tuple, &Tuple)) -> bool {
        self.host.is_none_or(|host| host == inside.src)
            && self.table.is_none_or(|table| table == TableId(inside.table))
            && self.i2o.matches(inside)
            && self.o2i.matches(outside)
    }
}

fn slice(nat: &mut Nat, worker: usize, from: u32, filter: SessionFilter) -> Slice {
    let (now, mut next) = (time::millis(clock::ticks()), from);
    let view = |flow| {
        let (inside, outside) = nat.keys(flow);
        let s = nat.session(flow);
        SessionView {
            worker,
            index: flow.index(),
            inside: Tuple::of(&inside),
            outside: Tuple::of(&outside),
            class: s.class(),
            state: s.state(),
            marks: s.marks(),
            packets: s.packets(),
            bytes: s.bytes(),
            age: now.wrapping_sub(s.created()),
            left: (nat.table.expiry(flow).wrapping_sub(now) as i32).max(0) as Millis,
        }
    };
    let wanted = |f: &FlowId| {
        let (inside, outside) = nat.keys(*f);
        filter == SessionFilter::default()
            || filter.has((&Tuple::of(&inside), &Tuple::of(&outside)))
    };
    let live = nat.table.list(&mut next, SLICE);
    let sessions = live.filter(|f| !nat.table.is_expired(*f, now) && wanted(f)).map(view).collect();
    let (of, more) = (nat.table.len(), next < nat.table.used());
    Slice { worker, of, sessions, from: next, more }
}

/// Some sessions of a worker.
#[derive(Default, Debug)]
pub struct Slice {
    /// Their worker.
    pub worker: usize,
    /// Number of sessions that the worker has.
    pub of: u32,
    /// The sessions.
    pub sessions: Vec<SessionView>,
    from: u32,
    more: bool,
}

/// The next step of a listing.
#[derive(Debug)]
pub enum Next {
    /// Some sessions.
    Some(Slice),
    /// The worker is late with its answer: to be called again in a moment.
    Late,
    /// No more.
    End,
}

/// Maximum time that the main thread waits for a worker at once.
pub(crate) const WAIT: Duration = Duration::from_millis(5);
/// Time between looks at an answer that is late.
pub const REST: Duration = Duration::from_millis(2);

/// A listing of sessions, worker by worker.
pub struct Listing {
    filter: SessionFilter,
    worker: usize,
    from: u32,
    asked: Option<Asked<Option<Slice>>>,
}

impl Listing {
    /// Lists the sessions that a filter selects.
    pub fn new(filter: SessionFilter) -> Listing {
        Listing { filter, worker: 0, from: 0, asked: None }
    }

    fn ask(&self, c: &mut Control) -> Asked<Option<Slice>> {
        let here = c.per_worker::<Nat>();
        let (worker, from, filter) = (self.worker, self.from, self.filter);
        c.begin_asking(move |core| {
            let mine = core.index() == worker;
            mine.then(|| core.with_local(here, |nat| slice(nat, worker, from, filter))).flatten()
        })
    }

    /// Returns the next sessions, if the worker has them at once.
    pub fn next(&mut self, c: &mut Control) -> Next {
        if self.worker >= c.workers() {
            return Next::End;
        }
        let mut asked = match self.asked.take() {
            Some(asked) => asked,
            None => self.ask(c),
        };
        let Some(answers) = asked.wait(c, WAIT) else {
            self.asked = Some(asked);
            return Next::Late;
        };
        // One that does not answer, or has no table, has none.
        let slice = answers.into_iter().nth(self.worker).flatten().flatten().unwrap_or_default();
        let slice = Slice { worker: self.worker, ..slice };
        (self.worker, self.from) = match slice.more {
            true => (self.worker, slice.from),
            false => (self.worker + 1, 0),
        };
        Next::Some(slice)
    }
}

/// All sessions, for tests: this waits for late workers.
pub fn all_sessions(c: &mut Control) -> Vec<SessionView> {
    let (mut all, mut listing) = (Vec::new(), Listing::new(SessionFilter::default()));
    loop {
        match listing.next(c) {
            Next::Some(slice) => all.extend(slice.sessions),
            Next::Late => {}
            Next::End => return all,
        }
    }
}

/// Threads of workers, by number.
pub(crate) fn worker_threads<'a>(
    c: &Control,
    workers: &'a [usize],
) -> impl Iterator<Item = (usize, ThreadInfo)> + 'a {
    let threads = c.threads();
    workers.iter().filter_map(move |w| Some((*w, threads.get(w + 1)?.clone())))
}

/// Counters and resources of a worker.
#[derive(Clone, Debug, Default)]
pub struct WorkerView {
    /// Number of sessions, including expired ones.
    pub sessions: u32,
    /// Maximum number of sessions, and the memory they would take in bytes.
    pub room: (u32, u64),
    /// Number of sessions by protocol.
    pub counts: Counts,
    /// Counters of the session table.
    pub flows: FlowCounts,
    /// Address, whether for twice-NAT, and ports in use by port space; by pool address.
    pub busy: Vec<(u32, bool, [u32; SPACES])>,
    /// Log records lost because the ring was full.
    pub unlogged: u64,
}

/// Counters and resources of all workers, for those who can wait.
pub fn workers(c: &mut Control) -> Vec<WorkerView> {
    let here = c.per_worker::<Nat>();
    let answers = c.ask(move |core| core.with_local(here, look));
    views(answers)
}

/// Continues with the counters and resources of all workers.
pub fn workers_then(c: &mut Control, then: impl FnOnce(&mut Control, Vec<WorkerView>) + 'static) {
    let here = c.per_worker::<Nat>();
    let asked = c.begin_asking(move |core| core.with_local(here, look));
    asked.then(c, |c, answers| then(c, views(answers)));
}

/// Continues a command with the counters and resources of all workers, which it does not wait for
/// if one is late.
///
/// # Errors
/// The error of `then`.
pub fn with_workers(
    c: &mut Control,
    out: &mut Output,
    then: impl FnOnce(&mut Control, Vec<WorkerView>, &mut Output) + Send + 'static,
) -> Result<Outcome<Control>, CliError> {
    let here = c.per_worker::<Nat>();
    let answered = |c: &mut Control, answers, out: &mut Output| {
        then(c, views(answers), out);
        Ok(())
    };
    thalweg_engine::ask_workers(c, out, move |core| core.with_local(here, look), answered)
}

fn views(answers: Vec<Option<Option<WorkerView>>>) -> Vec<WorkerView> {
    answers.into_iter().map(|a| a.flatten().unwrap_or_default()).collect()
}

fn look(nat: &mut Nat) -> WorkerView {
    WorkerView {
        sessions: nat.table.len(),
        room: (nat.table.capacity(), nat.table.bytes() as u64),
        counts: nat.counts,
        flows: nat.table.counts(),
        busy: nat
            .pools
            .iter()
            .filter(|p| p.live)
            .map(|p| (p.address, p.twice, p.ports.each_ref().map(|p| p.count() - p.left())))
            .collect(),
        unlogged: nat.log.as_ref().map_or(0, |p| p.lost),
    }
}

/// Ends the next sessions of a listing. Returns their number; `None` at the end.
pub fn delete_some(c: &mut Control, listing: &mut Listing) -> Option<usize> {
    match listing.next(c) {
        Next::Some(slice) => {
            let ended = slice.sessions.len();
            let (worker, here) = (slice.worker, c.per_worker::<Nat>());
            let keys: Vec<_> = slice.sessions.iter().map(|s| s.inside.key()).collect();
            // The worker does so before it answers anything else.
            let mut asked = c.begin_asking(move |core| {
                if core.index() == worker {
                    core.with_local(here, |nat| keys.iter().for_each(|k| _ = remove(nat, k, true)));
                }
            });
            let _ = asked.wait(c, WAIT);
            Some(ended)
        }
        Next::Late => Some(0),
        Next::End => None,
    }
}

fn remove(nat: &mut Nat, key: &Key, inside: bool) -> bool {
    let now = time::millis(clock::ticks());
    let found = nat.find(key, now).filter(|f| f.by_second() != inside);
    found.map(|f| nat.remove(f.flow(), now)).is_some()
}

/// Returns a function that ends the session with this tuple, seen from inside or outside, on its
/// worker, and returns true if there is one.
pub(crate) fn removal(
    c: &Control,
    tuple: Tuple,
    inside: bool,
) -> impl Fn(&mut Core) -> bool + Clone + Send + 'static {
    let (key, here) = (tuple.key(), c.per_worker::<Nat>());
    move |core| core.with_local(here, |nat| remove(nat, &key, inside)).unwrap_or(false)
}
