//! Looking at sessions from the main thread: bit by bit, so that no worker stands still.

use crate::session::{self, Class, tcp};
use crate::time;
use crate::tuple::Tuple;
use crate::worker::{self, Counts, Nat};
use std::net::Ipv4Addr;
use thalweg_graph::control::ThreadInfo;
use thalweg_graph::{Control, clock};
use thalweg_tables::flow::{FlowCounts, FlowId, Millis};

/// A session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionView {
    /// The worker that it belongs to.
    pub worker: usize,
    /// Its number there.
    pub index: u32,
    /// What comes from the inside.
    pub inside: Tuple,
    /// What comes from the outside.
    pub outside: Tuple,
    /// Which timeout holds.
    pub class: Class,
    /// TCP state.
    pub state: u8,
    /// Marks, see [`session`].
    pub marks: u16,
    /// Packets of both directions.
    pub packets: u64,
    /// Bytes of both directions.
    pub bytes: u64,
    /// Milliseconds since it began.
    pub age: Millis,
    /// Milliseconds until it ends, if no packet comes.
    pub left: Millis,
}

impl SessionView {
    /// What a host inside looks like outside.
    pub fn mapped(&self) -> (Ipv4Addr, u16) {
        (self.outside.dst, self.outside.dport)
    }
    /// The host outside, as it calls itself.
    pub fn external(&self) -> (Ipv4Addr, u16) {
        (self.outside.src, self.outside.sport)
    }
    /// Whether it is of a static mapping.
    pub fn is_static(&self) -> bool {
        self.marks & session::STATIC != 0
    }
    /// Whether TCP is over.
    pub fn is_closing(&self) -> bool {
        tcp::is_closing(self.state)
    }
}

/// Numbers of sessions that a worker looks at for one question: some tens of microseconds.
const SLICE: u32 = 256;

/// What packets of one way look like that are asked for, as far as it is said.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// From.
    pub saddr: Option<Ipv4Addr>,
    /// From its port.
    pub sport: Option<u16>,
    /// To.
    pub daddr: Option<Ipv4Addr>,
    /// To its port.
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

/// Sessions that are asked for: those of a host, if one is named, in a routing table, if one is named, and
/// whose packets look so.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Which {
    /// The host inside.
    pub host: Option<Ipv4Addr>,
    /// Its routing table.
    pub table: Option<u32>,
    /// Packets from the inside.
    pub i2o: Pattern,
    /// Packets from the outside.
    pub o2i: Pattern,
}

impl Which {
    /// The sessions of one end: a host inside's own, or the name that it has outside.
    pub fn of_end(inside: bool, (address, port): (Ipv4Addr, u16), ip: u8, table: u32) -> Which {
        let (address, port, protocol) = (Some(address), Some(port), Some(ip));
        let to = Pattern::default();
        match inside {
            true => {
                let i2o = Pattern { saddr: address, sport: port, protocol, ..to };
                Which { table: Some(table), i2o, ..Which::default() }
            }
            false => {
                let o2i = Pattern { daddr: address, dport: port, protocol, ..to };
                Which { o2i, ..Which::default() }
            }
        }
    }

    fn has(&self, (inside, outside): (&Tuple, &Tuple)) -> bool {
        self.host.is_none_or(|host| host == inside.src)
            && self.table.is_none_or(|table| table == inside.table)
            && self.i2o.matches(inside)
            && self.o2i.matches(outside)
    }
}

fn slice(nat: &mut Nat, worker: usize, from: u32, which: Which) -> (Vec<SessionView>, u32, bool) {
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
        which == Which::default() || which.has((&Tuple::of(&inside), &Tuple::of(&outside)))
    };
    let live = nat.table.list(&mut next, SLICE);
    let some = live.filter(|f| !nat.table.is_expired(*f, now) && wanted(f)).map(view).collect();
    (some, next, next < nat.table.used())
}

/// Where a listing stands.
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

/// Some sessions, and where to go on; nothing at the end.
pub fn some_sessions(
    c: &mut Control,
    at: Cursor,
    which: Which,
) -> Option<(Vec<SessionView>, Cursor)> {
    if at.worker >= c.workers() {
        return None;
    }
    let answers = c.ask(move |core| {
        let mine = core.index() == at.worker;
        if mine { worker::with(|nat| slice(nat, at.worker, at.from, which)) } else { None }
    });
    let answer = answers.into_iter().nth(at.worker).flatten().flatten();
    let (some, from, more) = answer.unwrap_or_default();
    let next = if more { Cursor { from, ..at } } else { Cursor { worker: at.worker + 1, from: 0 } };
    Some((some, next))
}

/// All sessions.
pub fn all_sessions(c: &mut Control) -> Vec<SessionView> {
    let (mut all, mut at) = (Vec::new(), Cursor::default());
    while let Some((some, next)) = some_sessions(c, at, Which::default()) {
        all.extend(some);
        at = next;
    }
    all
}

/// Threads of workers, by their numbers.
pub(crate) fn named_workers<'a>(
    c: &Control,
    workers: &'a [usize],
) -> impl Iterator<Item = (usize, ThreadInfo)> + 'a {
    let threads = c.threads();
    workers.iter().filter_map(move |w| Some((*w, threads.get(w + 1)?.clone())))
}

/// What a worker has.
#[derive(Clone, Debug, Default)]
pub struct WorkerView {
    /// Sessions, those with them whose end has come.
    pub sessions: u32,
    /// Most of them, and the bytes that these take.
    pub room: (u32, u64),
    /// By kind.
    pub counts: Counts,
    /// How they came and went.
    pub flows: FlowCounts,
    /// By address: the address, whether for sources, and ports in use of TCP, UDP and ICMP.
    pub busy: Vec<(u32, bool, [u32; 3])>,
    /// Records of sessions for which the log's ring had no room.
    pub unlogged: u64,
}

/// What workers have.
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
        unlogged: nat.pen.as_ref().map_or(0, |p| p.lost),
    };
    let answers = c.ask(move |_| worker::with(look));
    answers.into_iter().map(|a| a.flatten().unwrap_or_default()).collect()
}

/// Ends some of the sessions that are asked for; how many, and where to go on.
pub fn end_some(c: &mut Control, at: Cursor, which: Which) -> Option<(usize, Cursor)> {
    let (some, next) = some_sessions(c, at, which)?;
    let ended = some.iter().filter(|s| end_session(c, s.inside, true)).count();
    Some((ended, next))
}

/// Ends the session that has this tuple, seen from the inside or the outside. False if there is none.
pub fn end_session(c: &mut Control, tuple: Tuple, inside: bool) -> bool {
    let key = tuple.key();
    let answers = c.ask(move |_| {
        worker::with(|nat| {
            let now = time::millis(clock::ticks());
            let found = nat.find(&key, now);
            let found = found.filter(|f| f.by_second() != inside);
            found.map(|f| nat.remove(f.flow(), now)).is_some()
        })
    });
    answers.into_iter().flatten().flatten().any(|done| done)
}
