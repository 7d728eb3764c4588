//! Lists sessions from the main thread, in slices, so that workers are not held up.

use crate::pool::SPACES;
use crate::session::{self, Class, tcp};
use crate::time;
use crate::worker::{Counts, Nat};
use std::net::Ipv4Addr;
use thalweg_fib::TableId;
use thalweg_graph::control::ThreadInfo;
use thalweg_graph::{Control, clock};
use thalweg_tables::flow::{FlowCounts, FlowId, Millis};
use thalweg_wire::nat::tuple::Tuple;

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

fn slice(
    nat: &mut Nat,
    worker: usize,
    from: u32,
    filter: SessionFilter,
) -> (Vec<SessionView>, u32, bool) {
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
    let some = live.filter(|f| !nat.table.is_expired(*f, now) && wanted(f)).map(view).collect();
    (some, next, next < nat.table.used())
}

/// Position of a listing.
#[derive(Clone, Copy, Default, Debug)]
pub struct Cursor {
    worker: usize,
    from: u32,
}

impl Cursor {
    /// The worker whose sessions come next.
    pub fn worker(&self) -> usize {
        self.worker
    }
}

/// The next sessions and position; `None` at the end.
pub fn some_sessions(
    c: &mut Control,
    at: Cursor,
    filter: SessionFilter,
) -> Option<(Vec<SessionView>, Cursor)> {
    if at.worker >= c.workers() {
        return None;
    }
    let here = c.per_worker::<Nat>();
    let answers = c.ask(move |core| {
        let mine = core.index() == at.worker;
        mine.then(|| core.with_local(here, |nat| slice(nat, at.worker, at.from, filter))).flatten()
    });
    let answer = answers.into_iter().nth(at.worker).flatten().flatten();
    let (some, from, more) = answer.unwrap_or_default();
    let next = if more { Cursor { from, ..at } } else { Cursor { worker: at.worker + 1, from: 0 } };
    Some((some, next))
}

/// All sessions.
pub fn all_sessions(c: &mut Control) -> Vec<SessionView> {
    let (mut all, mut at) = (Vec::new(), Cursor::default());
    while let Some((some, next)) = some_sessions(c, at, SessionFilter::default()) {
        all.extend(some);
        at = next;
    }
    all
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

/// Counters and resources of all workers.
pub fn workers(c: &mut Control) -> Vec<WorkerView> {
    let look = |nat: &mut Nat| WorkerView {
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
    };
    let here = c.per_worker::<Nat>();
    let answers = c.ask(move |core| core.with_local(here, look));
    answers.into_iter().map(|a| a.flatten().unwrap_or_default()).collect()
}

/// Ends the next sessions that a filter selects. Returns their number and the next position.
pub fn delete_some(c: &mut Control, at: Cursor, filter: SessionFilter) -> Option<(usize, Cursor)> {
    let (some, next) = some_sessions(c, at, filter)?;
    let ended = some.iter().filter(|s| delete_session(c, s.inside, true)).count();
    Some((ended, next))
}

/// Ends the session with this tuple, seen from inside or outside. Returns false if there is none.
pub fn delete_session(c: &mut Control, tuple: Tuple, inside: bool) -> bool {
    let key = tuple.key();
    let here = c.per_worker::<Nat>();
    let answers = c.ask(move |core| {
        core.with_local(here, |nat| {
            let now = time::millis(clock::ticks());
            let found = nat.find(&key, now);
            let found = found.filter(|f| f.by_second() != inside);
            found.map(|f| nat.remove(f.flow(), now)).is_some()
        })
    });
    answers.into_iter().flatten().flatten().any(|done| done)
}
