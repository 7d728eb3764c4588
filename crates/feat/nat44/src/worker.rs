//! A worker's sessions, addresses and ports: nobody else touches them.
//!
//! They are found by the worker's thread, since several nodes of it share them; a node takes them for
//! a frame and puts them back. What the main thread wants to know or change it asks the worker to do.

use crate::config::Config;
use crate::limits::{Limits, Orders};
use crate::log::{Pen, What};
use crate::mapping::{Mapping, TwiceNat};
use crate::pool::{self, Pool, Pools};
use crate::session::{self, Class, Rest, Session, Words};
use crate::tuple::{Key, Tuple};
use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::time::Duration;
use thalweg_buffer::{FRAME_SIZE, Packet};
use thalweg_graph::clock;
use thalweg_tables::MapError;
use thalweg_tables::flow::{AddError, FlowHash, FlowId, FlowTable, Found, Millis, OnExpiry};
use thalweg_tables::fragments::Fragments;
use thalweg_tables::hash::{mix64, random_seed};
use thalweg_wire::ip::protocol;

thread_local! {
    static HERE: RefCell<Option<Box<Nat>>> = const { RefCell::new(None) };
}

/// Takes this worker's sessions, to be put back.
#[inline]
pub(crate) fn take() -> Option<Box<Nat>> {
    HERE.take()
}

/// Puts them back, or others in their place.
#[inline]
pub(crate) fn put(nat: Option<Box<Nat>>) {
    HERE.set(nat);
}

/// Asks this worker's sessions something.
pub(crate) fn with<R>(f: impl FnOnce(&mut Nat) -> R) -> Option<R> {
    let mut nat = take()?;
    let answer = f(&mut nat);
    put(Some(nat));
    Some(answer)
}

/// The table of sessions.
pub type Table = FlowTable<2, Words, Rest>;

/// Why there is no session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// No address has a port left.
    NoPort,
    /// There are as many sessions as there may be.
    Full,
    /// Another session has that tuple outside.
    Taken,
    /// The host, or its routing table, has as many sessions as it may have.
    Limit,
}

/// Columns of a frame. Workers' lie one behind the other, and are written with each frame: on lines of their own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Columns {
    pub(crate) keys: [Key; FRAME_SIZE],
    pub(crate) hashes: [FlowHash; FRAME_SIZE],
    pub(crate) found: [Option<Found>; FRAME_SIZE],
}

/// Sessions that there are, by kind.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// TCP, UDP, ICMP and all others.
    pub by_protocol: [u32; 4],
}

/// What became of a first fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It went to another worker.
    Worker(u16),
    /// It got other addresses, which the header's sum follows by so much; and went to out2in, if so.
    Translated {
        /// The addresses.
        addresses: u64,
        /// What is to be added to the sum.
        l3: u16,
        /// Whether both ends are inside.
        hairpin: bool,
        /// The table that it is looked up in, if not its interface's.
        across: Option<u32>,
    },
}

impl Fate {
    /// The table that packets are looked up in, if not their interface's.
    pub fn across(&self) -> Option<u32> {
        match self {
            Fate::Translated { across, .. } => *across,
            Fate::Worker(_) => None,
        }
    }
}

/// A worker's sessions; no line of it is another worker's.
#[derive(Debug)]
#[repr(align(128))]
pub struct Nat {
    pub(crate) table: Table,
    pub(crate) pools: Pools,
    pub(crate) counts: Counts,
    pub(crate) columns: Box<Columns>,
    /// Those that wait with the node at which they do.
    pub(crate) fragments: Fragments<Fate, (u8, Packet)>,
    pub(crate) limits: Limits,
    /// Where sessions are noted, if they are.
    pub(crate) pen: Option<Box<Pen>>,
    random: u64,
    /// Flows added before the last look at what ends.
    added: u64,
    /// Sessions that are looked at because something was removed, from this number on.
    sweep: Option<(u32, Sweep)>,
}

/// Which sessions go. Each means those before, too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sweep {
    /// Those of addresses that are given up.
    Given,
    /// Those of static mappings that are no more.
    Mapped,
    /// All of them.
    All,
}

/// Sessions looked at in a turn, at most: some tens of microseconds.
const STEPS: usize = 384;
/// Sessions that are ended between looks at the clock.
const CHUNK: usize = 16;
/// Time of a turn for ending sessions whose time has come, and for each other look at all of them.
const SLICE: Duration = Duration::from_micros(25);
const PART: Duration = Duration::from_micros(15);

/// A tuple with another destination port; an ICMP query has one number for both.
fn with_port(to: Tuple, port: u16) -> Tuple {
    let sport = if to.protocol == protocol::ICMP { port } else { to.sport };
    Tuple { sport, dport: port, ..to }
}

/// Whether there is a static mapping that would make this session.
pub(crate) fn is_mapped(config: &Config, (inside, outside): &(Key, Key)) -> bool {
    let (inside, outside) = (Tuple::of(inside), Tuple::of(outside));
    let called = (outside.dst.to_bits(), outside.dport, outside.protocol);
    config.mappings.called(called.0, called.1, called.2).is_some_and(|m| {
        let one = |b: &crate::mapping::Backend| (b.address, b.port) == (inside.src, inside.sport);
        let port = m.is_address_only() || m.local_port == inside.sport;
        (m.backends.is_empty() && m.local == inside.src && port) || m.backends.iter().any(one)
    })
}

/// The worker of so many that a host inside belongs to.
pub fn owner(host: Ipv4Addr, workers: usize) -> usize {
    (((mix64(u64::from(host.to_bits())) >> 32) * workers as u64) >> 32) as usize
}

fn count(counts: &mut Counts, protocol: u8, by: i32) {
    let n = &mut counts.by_protocol[pool::position(protocol).unwrap_or(3)];
    *n = n.wrapping_add_signed(by);
}

/// What there is beside the table, and sessions have a part of.
pub(crate) struct Shares<'a> {
    pools: &'a mut Pools,
    counts: &'a mut Counts,
    limits: &'a mut Limits,
    pen: &'a mut Option<Box<Pen>>,
}

impl Shares<'_> {
    /// Gives back what a session had.
    fn release(&mut self, flow: FlowId, keys: (Key, Key), session: &Session, now: Millis) {
        let (inside, outside) = (Tuple::of(&keys.0), Tuple::of(&keys.1));
        count(self.counts, inside.protocol, -1);
        self.limits.went(flow, &keys.0);
        if let Some(pen) = self.pen {
            pen.write(What::Ends, &keys, session, now);
        }
        let at = pool::position(inside.protocol);
        let parts = [(session.pool(), outside.dport), (session.twice_pool(), inside.dport)];
        for (place, port) in parts {
            if let Some(place) = place {
                self.pools.end_use(place, at, port);
            }
        }
    }
}

/// Both keys of a session.
fn keys(table: &Table, flow: FlowId) -> (Key, Key) {
    let (inside, outside) = table.keys(flow);
    (*inside, outside.copied().unwrap_or_default())
}

/// A session.
fn session(table: &Table, flow: FlowId) -> Session {
    Session { words: *table.get(flow), rest: *table.rest(flow) }
}

impl Nat {
    /// Room for so many sessions.
    ///
    /// # Errors
    /// If the kernel refuses address space.
    pub fn new(sessions: u32, now: Millis) -> Result<Box<Nat>, MapError> {
        let columns = Box::new(Columns {
            keys: [[0; 2]; FRAME_SIZE],
            hashes: [FlowHash::default(); FRAME_SIZE],
            found: [None; FRAME_SIZE],
        });
        Ok(Box::new(Nat {
            table: Table::new(sessions, 2, now)?,
            pools: Pools::default(),
            counts: Counts::default(),
            columns,
            fragments: Fragments::new(random_seed()),
            limits: Limits::default(),
            pen: None,
            random: random_seed(),
            added: 0,
            sweep: None,
        }))
    }

    /// Has memory cleared before sessions come to it; the first of it at once, which takes milliseconds.
    pub(crate) fn prepare(&mut self) {
        if let Err(e) = self.table.prepare("nat44-memory") {
            tracing::warn!("nat44: memory is cleared as sessions come to it: {e}");
        }
    }

    fn chance(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix64(self.random)
    }

    /// Both keys of a session: packets from the inside, packets from the outside.
    pub fn keys(&self, flow: FlowId) -> (Key, Key) {
        keys(&self.table, flow)
    }

    /// A session.
    pub fn session(&self, flow: FlowId) -> Session {
        session(&self.table, flow)
    }

    /// The live session of a key; one whose end has come is removed.
    pub fn find(&mut self, key: &Key, now: Millis) -> Option<Found> {
        let found = self.table.find(key, self.table.hash(key))?;
        if self.table.is_expired(found.flow(), now) {
            self.remove(found.flow(), now);
            return None;
        }
        Some(found)
    }

    fn parts(&mut self) -> (&mut Table, Shares<'_>) {
        let Nat { table, pools, counts, limits, pen, .. } = self;
        (table, Shares { pools, counts, limits, pen })
    }

    /// Ends a session.
    pub fn remove(&mut self, flow: FlowId, now: Millis) {
        let keys = self.keys(flow);
        let session = self.session(flow);
        self.table.remove(flow);
        self.parts().1.release(flow, keys, &session, now);
    }

    /// Gives the address of the session that has been half open for longest to another.
    fn recycle(&mut self, now: Millis) -> bool {
        let (table, mut shares) = self.parts();
        let release = |table: &Table, flow| {
            shares.release(flow, keys(table, flow), &session(table, flow), now);
        };
        table.recycle(release)
    }

    /// Adds a session, in the place of one that is half open if there is no room and it may.
    pub(crate) fn add(
        &mut self,
        inside: &Key,
        outside: &Key,
        end: Millis,
        session: Session,
        (recycle, now): (bool, Millis),
    ) -> Result<FlowId, Refusal> {
        let inside = (*inside, self.table.hash(inside));
        let outside = (*outside, self.table.hash(outside));
        for _ in 0..3 {
            match self.table.add(inside, Some(outside), end, (session.words, session.rest)) {
                Ok(flow) => {
                    // The very next number belongs to what is counted: no gap may come to be.
                    if self.limits.is_none() {
                    } else if self.limits.upto() == flow.index() {
                        self.limits.count_up(std::iter::once(inside.0), flow.index() + 1, now);
                    } else {
                        self.limits.came(flow, &inside.0, now);
                    }
                    count(&mut self.counts, Tuple::of(&inside.0).protocol, 1);
                    if let Some(pen) = &mut self.pen {
                        pen.write(What::Begins, &(inside.0, outside.0), &session, now);
                    }
                    let places = [session.pool(), session.twice_pool()];
                    places.into_iter().flatten().for_each(|p| self.pools.use_one(p));
                    return Ok(flow);
                }
                Err(AddError::Taken(found)) if self.table.is_expired(found.flow(), now) => {
                    self.remove(found.flow(), now);
                }
                Err(AddError::Taken(_)) => return Err(Refusal::Taken),
                Err(AddError::Full | AddError::Unready) if recycle && self.recycle(now) => {}
                Err(AddError::Full | AddError::Unready) => return Err(Refusal::Full),
            }
        }
        Err(Refusal::Full)
    }

    /// A session for a packet from the inside, whose answers are looked up in `outside` table.
    ///
    /// # Errors
    /// Why not.
    pub fn open(
        &mut self,
        config: &Config,
        inside: &Tuple,
        outside: u32,
        marks: u16,
        now: Millis,
    ) -> Result<FlowId, Refusal> {
        let Tuple { src, sport, protocol, table, .. } = *inside;
        let back = Tuple { table: outside, ..inside.reversed() };
        let mut own = None;
        if let Some(m) = config.mappings.of_host(src.to_bits(), sport, protocol, table) {
            let dport = if m.is_address_only() { sport } else { m.external_port };
            let back = with_port(Tuple { dst: m.external, ..back }, dport);
            let done = self.enter(config, inside, &back, [None; 2], marks | session::STATIC, now);
            // Of a shared address another host may have that port already: this one gets another.
            let shared = m.is_address_only() && config.pooled.contains(&m.external.to_bits());
            if !shared || done != Err(Refusal::Taken) {
                return done;
            }
            own = Some(m.external.to_bits());
        }
        let Some(at) = pool::position(protocol) else {
            return self.open_without_ports(config, inside, &back, marks, now);
        };
        // A port that is free may be a static mapping's on the way to one destination.
        for _ in 0..4 {
            let random = self.chance();
            let taken = match own {
                None => self.pools.take((src, sport), (table, false), at, random),
                Some(address) => self.pools.take_of((address, false), sport, at, random),
            };
            let (pool, port) = taken.ok_or(Refusal::NoPort)?;
            let dst = self.pools.address(pool);
            let back = with_port(Tuple { dst, ..back }, port);
            match self.enter(config, inside, &back, [Some(pool), None], marks, now) {
                Err(refusal) => {
                    self.pools.give_back(pool, at, port);
                    if refusal != Refusal::Taken {
                        return Err(refusal);
                    }
                }
                done => return done,
            }
        }
        Err(Refusal::NoPort)
    }

    /// By address alone: one host inside for each pair of address and host outside.
    fn open_without_ports(
        &mut self,
        config: &Config,
        inside: &Tuple,
        back: &Tuple,
        marks: u16,
        now: Millis,
    ) -> Result<FlowId, Refusal> {
        for place in self.pools.all_for(inside.table) {
            let back = Tuple { dst: self.pools.address(place), ..*back };
            match self.enter(config, inside, &back, [Some(place), None], marks, now) {
                Err(Refusal::Taken) => {}
                done => return done,
            }
        }
        Err(Refusal::NoPort)
    }

    fn enter(
        &mut self,
        config: &Config,
        inside: &Tuple,
        outside: &Tuple,
        pools: [Option<u16>; 2],
        marks: u16,
        now: Millis,
    ) -> Result<FlowId, Refusal> {
        if !self.limits.allow(inside.src, inside.table) {
            return Err(Refusal::Limit);
        }
        let across = if inside.table == outside.table { 0 } else { session::ACROSS };
        let marks = marks | across;
        let (inside, outside) = (inside.key(), outside.key());
        let mut session = Session::new(&inside, &outside, now);
        if let Some(pool) = pools[0] {
            session.set_pool(pool);
        }
        if let Some(pool) = pools[1] {
            session.set_twice_pool(pool);
        }
        session.mark(marks);
        if session.class() != Class::TcpTransitory && marks & session::SLOW == 0 {
            let first = if marks & session::FROM_OUTSIDE != 0 {
                session::FAST_OUT
            } else {
                session::FAST_IN
            };
            session.words[0] |= first;
        }
        let end = now.wrapping_add(config.timeouts[session.class() as usize]);
        self.add(&inside, &outside, end, session, (!config.refuse, now))
    }

    /// A session for a packet from the outside that calls a static mapping.
    ///
    /// # Errors
    /// Why not.
    pub fn open_mapped(
        &mut self,
        config: &Config,
        outside: &Tuple,
        mapping: &Mapping,
        marks: u16,
        now: Millis,
    ) -> Result<FlowId, Refusal> {
        let target = mapping.target(outside.src, outside.sport, outside.dport);
        let (src, sport, table) = target.ok_or(Refusal::NoPort)?;
        let mut inside = Tuple { src, sport, table, ..outside.reversed() };
        let mut marks = marks | session::FROM_OUTSIDE | session::STATIC;
        if !mapping.backends.is_empty() {
            marks |= session::BALANCED;
        }
        let icmp = outside.protocol == protocol::ICMP;
        if icmp {
            inside.dport = sport;
        }
        let twice = match mapping.twice {
            TwiceNat::Never => false,
            TwiceNat::Always => true,
            TwiceNat::OfItself => outside.src == src,
        };
        if !twice {
            return self.enter(config, &inside, outside, [None; 2], marks, now);
        }
        let at = pool::position(outside.protocol).ok_or(Refusal::NoPort)?;
        let random = self.chance();
        let host = (outside.src, outside.sport);
        let taken = match mapping.exact {
            None => self.pools.take(host, (table, true), at, random),
            Some(address) => self.pools.take_of((address.to_bits(), true), host.1, at, random),
        };
        let (pool, port) = taken.ok_or(Refusal::NoPort)?;
        inside.dst = self.pools.address(pool);
        inside.dport = port;
        if icmp {
            inside.sport = port;
        }
        let marks = marks | session::TWICE;
        let done = self.enter(config, &inside, outside, [None, Some(pool)], marks, now);
        if done.is_err() {
            self.pools.give_back(pool, at, port);
        }
        done
    }

    /// Ends sessions whose time has come, a bounded number of them. True if there are more.
    pub fn expire(&mut self, config: &Config, now: Millis) -> bool {
        let added = self.table.counts().added;
        let new = (added - self.added) as usize;
        self.added = added;
        let (table, mut shares) = self.parts();
        let (mut left, began) = ((32 + 2 * new).min(STEPS), clock::ticks());
        let more = loop {
            let more = table.expire(now, left.min(CHUNK), |table, flow| {
                shares.release(flow, keys(table, flow), &session(table, flow), now);
                OnExpiry::Remove
            });
            left = left.saturating_sub(CHUNK);
            // Memory that was not used for long is slow.
            if !more || left == 0 || clock::ticks() - began > clock::ticks_in(SLICE) {
                break more;
            }
        };
        let more = self.sweep_some(config, now) | self.count_some(now) | more;
        if let Some(pen) = &mut self.pen {
            pen.publish();
        }
        more
    }

    /// Has limits hold from now on. What the old ones needed is given back.
    pub(crate) fn limit(&mut self, orders: Orders) -> Limits {
        std::mem::replace(&mut self.limits, Limits::new(orders))
    }

    fn count_some(&mut self, now: Millis) -> bool {
        let used = self.table.used();
        if self.limits.is_none() || self.limits.upto() >= used {
            return false;
        }
        let (mut upto, began) = (self.limits.upto(), clock::ticks());
        let Nat { table, limits, .. } = self;
        for _ in 0..STEPS / CHUNK {
            let flows = table.list(&mut upto, CHUNK as u32).collect::<Vec<_>>();
            limits.count_up(flows.into_iter().map(|f| keys(table, f).0), upto, now);
            if upto >= used || clock::ticks() - began > clock::ticks_in(PART) {
                break;
            }
        }
        upto < used
    }

    /// Has all sessions looked at, bit by bit.
    pub fn sweep(&mut self, which: Sweep) {
        let old = self.sweep.map_or(Sweep::Given, |(_, old)| old);
        self.sweep = Some((0, old.max(which)));
    }

    fn sweep_some(&mut self, config: &Config, now: Millis) -> bool {
        let Some((mut from, which)) = self.sweep else { return false };
        let began = clock::ticks();
        for _ in 0..STEPS / CHUNK {
            let flows: Vec<FlowId> = self.table.list(&mut from, CHUNK as u32).collect();
            self.table.fetch_removal(&flows);
            for flow in flows {
                let session = self.session(flow);
                let pools = [session.pool(), session.twice_pool()];
                let given = |at: &u16| self.pools.get(*at).is_none_or(|p| !p.live);
                let mapped = which == Sweep::Mapped
                    && session.marks() & session::STATIC != 0
                    && !is_mapped(config, &self.keys(flow));
                if which == Sweep::All || mapped || pools.iter().flatten().any(given) {
                    self.remove(flow, now);
                }
            }
            if from >= self.table.used() || clock::ticks() - began > clock::ticks_in(PART) {
                break;
            }
        }
        self.sweep = (from < self.table.used()).then_some((from, which));
        self.sweep.is_some()
    }

    /// Adds an address.
    pub fn add_pool(&mut self, pool: Pool) {
        self.pools.add(pool);
    }

    /// Gives an address up: its sessions end.
    pub fn drop_pool(&mut self, address: u32, twice: bool) {
        self.pools.drop_these(|p| p.address == address && p.twice == twice);
        self.sweep(Sweep::Given);
    }

    /// Keeps a port of an address for a static mapping, or gives it free.
    pub fn reserve(&mut self, address: u32, protocol: u8, port: u16, keep: bool) {
        self.pools.reserve(address, protocol, port, keep);
    }
}
