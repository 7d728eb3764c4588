//! Looking at sessions from the main thread: bit by bit, so that no worker stands still.

use crate::session::{self, Class, Session, tcp};
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

/// Sessions that are asked for: those of a host, if one is named, in a routing table, if one is named.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Which {
    /// The host inside.
    pub host: Option<Ipv4Addr>,
    /// Its routing table.
    pub table: Option<u32>,
}

impl Which {
    fn has(&self, inside: &Tuple) -> bool {
        self.host.is_none_or(|host| host == inside.src)
            && self.table.is_none_or(|table| table == inside.table)
    }
}

fn slice(nat: &mut Nat, worker: usize, from: u32, which: Which) -> (Vec<SessionView>, u32, bool) {
    let (now, mut next) = (time::millis(clock::ticks()), from);
    let view = |flow| {
        let (inside, outside) = nat.keys(flow);
        let s = Session(*nat.table.get(flow));
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
            left: (nat.table.end(flow).wrapping_sub(now) as i32).max(0) as Millis,
        }
    };
    let wanted = |f: &FlowId| which == Which::default() || which.has(&Tuple::of(&nat.keys(*f).0));
    let live = nat.table.list(&mut next, SLICE);
    let some = live.filter(|f| !nat.table.is_over(*f, now) && wanted(f)).map(view).collect();
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
