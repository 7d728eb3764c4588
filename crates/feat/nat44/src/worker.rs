//! The sessions, addresses and ports of a worker.
//!
//! Several nodes of a worker share them: a node takes them for a frame and puts them back. The main
//! thread sends requests to the worker.

use crate::config::Config;
use crate::limits::{LimitSettings, Limits};
use crate::log::{LogWriter, SessionEvent};
use crate::mapping::{Mapping, TwiceNat};
use crate::pool::{self, Pool, Pools};
use crate::session::{self, Class, Rest, Session, Words};
use std::net::Ipv4Addr;
use std::time::Duration;
use thalweg_buffer::{FRAME_SIZE, Packet};
use thalweg_fib::TableId;
use thalweg_graph::clock;
use thalweg_tables::MapError;
use thalweg_tables::flow::{AddError, FlowHash, FlowId, FlowTable, Found, Millis, OnExpiry};
use thalweg_tables::fragments::Fragments;
use thalweg_tables::hash::{mix64, random_seed};
use thalweg_tables::random::Random;
use thalweg_wire::ip::protocol;
use thalweg_wire::nat::tuple::{Key, Tuple};
use thalweg_wire::owner::share;

/// The session table.
pub type Table = FlowTable<2, Words, Rest>;

/// Reason why a session was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// No address has a free port.
    NoPort,
    /// The session table is full.
    Full,
    /// Another session has the same external tuple.
    Taken,
    /// The session limit of the host is reached.
    HostLimit,
    /// The session limit of its routing table is reached.
    TableLimit,
}

/// Columns of a frame. They are written with each frame, so each worker's are on cache lines of
/// their own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Columns {
    pub(crate) keys: [Key; FRAME_SIZE],
    pub(crate) hashes: [FlowHash; FRAME_SIZE],
    pub(crate) found: [Option<Found>; FRAME_SIZE],
}

/// Number of sessions by kind.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// TCP, UDP, ICMP and other protocols.
    pub by_protocol: [u32; 4],
}

/// The fate of a first fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Handed over to another worker.
    Worker(u16),
    /// Translated.
    Translated {
        /// The new addresses.
        addresses: u64,
        /// Delta for the header checksum.
        l3: u16,
        /// True if both endpoints are inside; the fragment continues in out2in.
        hairpin: bool,
        /// The table it is looked up in, if not that of its interface.
        across: Option<TableId>,
    },
    /// Forwarded as it was.
    Passed,
}

impl Fate {
    /// The table that packets are looked up in, if not that of their interface.
    pub fn across(&self) -> Option<TableId> {
        match self {
            Fate::Translated { across, .. } => *across,
            Fate::Worker(_) | Fate::Passed => None,
        }
    }
}

/// The NAT state of a worker, on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub struct Nat {
    pub(crate) table: Table,
    pub(crate) pools: Pools,
    pub(crate) counts: Counts,
    pub(crate) columns: Box<Columns>,
    /// Waiting fragments, with the node they wait at.
    pub(crate) fragments: Fragments<Fate, (u8, Packet)>,
    pub(crate) limits: Limits,
    /// The session log, if enabled.
    pub(crate) log: Option<Box<LogWriter>>,
    random: Random,
    /// Number of sessions added before the last expiry.
    added: u64,
    /// A sweep in progress, and the session number it continues at.
    sweep: Option<(u32, Sweep)>,
}

/// Sessions to be removed by a sweep. Each value includes the ones before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sweep {
    /// Sessions of removed addresses.
    Addresses,
    /// Sessions of removed static mappings, and of forwarding that is off.
    Mappings,
    /// All sessions.
    All,
}

/// Maximum number of sessions visited per turn: some tens of microseconds.
const STEPS: usize = 384;
/// Number of sessions between two readings of the clock.
const CHUNK: usize = 16;
/// Time per turn for expiry, and for each other walk over the sessions.
const SLICE: Duration = Duration::from_micros(25);
const PART: Duration = Duration::from_micros(15);

/// A tuple with another destination port; for ICMP, the identifier is both ports.
fn with_port(to: Tuple, port: u16) -> Tuple {
    let sport = if to.protocol == protocol::ICMP { port } else { to.sport };
    Tuple { sport, dport: port, ..to }
}

/// Returns whether a static mapping exists that would create this session.
pub(crate) fn is_mapped(config: &Config, (inside, outside): &(Key, Key)) -> bool {
    let (inside, outside) = (Tuple::of(inside), Tuple::of(outside));
    let external = (outside.dst.to_bits(), outside.dport, outside.protocol);
    config.mappings.by_external(external.0, external.1, external.2).is_some_and(|m| {
        let one = |b: &crate::mapping::Backend| (b.address, b.port) == (inside.src, inside.sport);
        let port = m.is_address_only() || m.local_port == inside.sport;
        (m.backends.is_empty() && m.local == inside.src && port) || m.backends.iter().any(one)
    })
}

/// The worker, of `workers`, that an inside host belongs to.
pub fn owner(host: Ipv4Addr, workers: usize) -> usize {
    share((mix64(u64::from(host.to_bits())) >> 32) as u32, workers)
}

fn count(counts: &mut Counts, protocol: u8, by: i32) {
    let n = &mut counts.by_protocol[pool::position(protocol).unwrap_or(3)];
    *n = n.wrapping_add_signed(by);
}

/// The state besides the table that removing a session updates.
pub(crate) struct Resources<'a> {
    pools: &'a mut Pools,
    counts: &'a mut Counts,
    limits: &'a mut Limits,
    log: &'a mut Option<Box<LogWriter>>,
}

impl Resources<'_> {
    /// Releases the resources of a session.
    fn release(&mut self, flow: FlowId, keys: (Key, Key), session: &Session, now: Millis) {
        let (inside, outside) = (Tuple::of(&keys.0), Tuple::of(&keys.1));
        count(self.counts, inside.protocol, -1);
        self.limits.remove(flow, &keys.0);
        if let Some(log) = self.log
            && session.marks() & session::DIRECT == 0
        {
            log.write(SessionEvent::Delete, &keys, session, now);
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

/// The value of a session.
fn session(table: &Table, flow: FlowId) -> Session {
    Session { words: *table.get(flow), rest: *table.rest(flow) }
}

/// Source of the replies of a session that is opened from inside.
#[derive(Clone, Copy, Debug)]
pub enum Outside<'a> {
    /// A table.
    Table(u32),
    /// The host behind a static mapping. The translated caller selects one of several, and so its
    /// table.
    Mapping(&'a Mapping),
}

impl Outside<'_> {
    /// The replies, in the table from which they come.
    fn replies(&self, back: Tuple) -> Tuple {
        let table = match self {
            Outside::Table(table) => *table,
            Outside::Mapping(m) => {
                let target = m.target(back.dst, back.dport, back.sport);
                target.map_or(m.table.get(), |(.., table)| table)
            }
        };
        Tuple { table, ..back }
    }
}

impl Nat {
    /// NAT state with room for `sessions` sessions.
    ///
    /// # Errors
    /// Fails if there is not enough address space.
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
            log: None,
            random: Random::from_system(),
            added: 0,
            sweep: None,
        }))
    }

    /// Starts clearing memory ahead of new sessions; the first part is cleared at once, which takes
    /// milliseconds.
    pub(crate) fn prepare(&mut self) {
        if let Err(e) = self.table.prepare("nat44-memory") {
            tracing::warn!("nat44: session memory is cleared on first use, not in advance: {e}");
        }
    }

    /// Both keys of a session: of packets from inside, and from outside.
    pub fn keys(&self, flow: FlowId) -> (Key, Key) {
        keys(&self.table, flow)
    }

    /// The value of a session.
    pub fn session(&self, flow: FlowId) -> Session {
        session(&self.table, flow)
    }

    /// The session with a key; removes an expired one.
    pub fn find(&mut self, key: &Key, now: Millis) -> Option<Found> {
        let found = self.table.find(key, self.table.hash(key))?;
        if self.table.is_expired(found.flow(), now) {
            self.remove(found.flow(), now);
            return None;
        }
        Some(found)
    }

    fn parts(&mut self) -> (&mut Table, Resources<'_>) {
        let Nat { table, pools, counts, limits, log, .. } = self;
        (table, Resources { pools, counts, limits, log })
    }

    /// Removes a session.
    pub fn remove(&mut self, flow: FlowId, now: Millis) {
        let keys = self.keys(flow);
        let session = self.session(flow);
        self.table.remove(flow);
        self.parts().1.release(flow, keys, &session, now);
    }

    /// Removes the oldest half-open session.
    fn recycle(&mut self, now: Millis) -> bool {
        let (table, mut resources) = self.parts();
        let release = |table: &Table, flow| {
            resources.release(flow, keys(table, flow), &session(table, flow), now);
        };
        table.recycle(release)
    }

    /// Adds a session. If there is no room and `recycle` is set, the oldest half-open session is
    /// removed.
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
                    // Sessions are counted without gaps, so the next number is counted at once.
                    if self.limits.is_none() {
                    } else if self.limits.upto() == flow.index() {
                        self.limits.count_up(std::iter::once(inside.0), flow.index() + 1, now);
                    } else {
                        self.limits.add(flow, &inside.0, now);
                    }
                    count(&mut self.counts, Tuple::of(&inside.0).protocol, 1);
                    if let Some(log) = &mut self.log
                        && session.marks() & session::DIRECT == 0
                    {
                        log.write(SessionEvent::Create, &(inside.0, outside.0), &session, now);
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

    /// Opens a session for a packet from inside, whose replies come from `outside`.
    ///
    /// # Errors
    /// The reason for the refusal.
    pub fn open(
        &mut self,
        config: &Config,
        inside: &Tuple,
        outside: Outside<'_>,
        marks: u16,
        now: Millis,
    ) -> Result<FlowId, Refusal> {
        let Tuple { src, sport, protocol, table, .. } = *inside;
        let back = inside.reversed();
        let mut own = None;
        if let Some(m) = config.mappings.of_host(src.to_bits(), sport, protocol, TableId(table)) {
            let dport = if m.is_address_only() { sport } else { m.external_port };
            let back = outside.replies(with_port(Tuple { dst: m.external, ..back }, dport));
            let done = self.enter(config, inside, &back, [None; 2], marks | session::STATIC, now);
            // On a shared address another host may have that port: this one gets another.
            let shared = m.is_address_only() && config.pooled.contains(&m.external.to_bits());
            if !shared || done != Err(Refusal::Taken) {
                return done;
            }
            own = Some(m.external.to_bits());
        }
        let Some(at) = pool::position(protocol) else {
            let back = outside.replies(back);
            return self.open_without_ports(config, inside, &back, marks, now);
        };
        // A free port may be in use by a static mapping towards this destination.
        for _ in 0..4 {
            let random = self.random.bits();
            let taken = match own {
                None => self.pools.take((src, sport), (table, false), at, random),
                Some(address) => self.pools.take_of((address, false), sport, at, random),
            };
            let (pool, port) = taken.ok_or(Refusal::NoPort)?;
            let dst = self.pools.address(pool);
            let back = outside.replies(with_port(Tuple { dst, ..back }, port));
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

    /// Opens by address alone: one inside host per pair of external address and external host.
    fn open_without_ports(
        &mut self,
        config: &Config,
        inside: &Tuple,
        back: &Tuple,
        marks: u16,
        now: Millis,
    ) -> Result<FlowId, Refusal> {
        for place in self.pools.all_for(inside.src, TableId(inside.table)) {
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
        let is_as_it_was = Tuple { table: outside.table, ..inside.reversed() } == *outside;
        if marks & session::HAIRPIN != 0 && is_as_it_was {
            // Its packets would be from inside again when they turn to the other host.
            return Err(Refusal::Taken);
        }
        self.limits.allow(inside.src, TableId(inside.table))?;
        // Packets that are not translated stay in the table where they were looked up.
        let stays = inside.table == outside.table || marks & session::DIRECT != 0;
        let across = if stays { 0 } else { session::ACROSS };
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
        // Nobody outside displaces sessions of inside hosts by packets that need none.
        let recycle = !config.refuse && marks & session::DIRECT == 0;
        self.add(&inside, &outside, end, session, (recycle, now))
    }

    /// Opens a session for a packet from outside that is forwarded as it is, so that its answers
    /// are, too. `inside` is the tuple of the answers.
    ///
    /// # Errors
    /// The reason for the refusal.
    pub fn open_direct(
        &mut self,
        config: &Config,
        inside: &Tuple,
        outside: &Tuple,
        now: Millis,
    ) -> Result<FlowId, Refusal> {
        let marks = session::DIRECT | session::FROM_OUTSIDE;
        self.enter(config, inside, outside, [None; 2], marks, now)
    }

    /// Opens a session for a packet from outside that matches a static mapping.
    ///
    /// # Errors
    /// The reason for the refusal.
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
            TwiceNat::SelfOnly => outside.src == src,
        };
        if !twice {
            return self.enter(config, &inside, outside, [None; 2], marks, now);
        }
        let at = pool::position(outside.protocol).ok_or(Refusal::NoPort)?;
        let random = self.random.bits();
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

    /// Removes expired sessions, in a bounded number of steps. Returns whether more are left.
    pub fn expire(&mut self, config: &Config, now: Millis) -> bool {
        let added = self.table.counts().added;
        let new = (added - self.added) as usize;
        self.added = added;
        let (table, mut resources) = self.parts();
        let (mut left, began) = ((32 + 2 * new).min(STEPS), clock::ticks());
        let more = loop {
            let more = table.expire(now, left.min(CHUNK), |table, flow| {
                resources.release(flow, keys(table, flow), &session(table, flow), now);
                OnExpiry::Remove
            });
            left = left.saturating_sub(CHUNK);
            // Memory that is not in the cache is slow.
            if !more || left == 0 || clock::ticks() - began > clock::ticks_in(SLICE) {
                break more;
            }
        };
        let more = self.sweep_some(config, now) | self.count_some(now) | more;
        if let Some(log) = &mut self.log {
            log.publish();
        }
        more
    }

    /// Replaces the limits. Returns the old ones, whose memory must be freed elsewhere.
    pub(crate) fn limit(&mut self, settings: LimitSettings) -> Limits {
        std::mem::replace(&mut self.limits, Limits::new(settings))
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

    /// Starts a sweep over all sessions.
    pub fn sweep(&mut self, which: Sweep) {
        let old = self.sweep.map_or(Sweep::Addresses, |(_, old)| old);
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
                let marks = session.marks();
                let mapped = which == Sweep::Mappings
                    && (marks & session::DIRECT != 0 && !config.forwarding
                        || marks & session::STATIC != 0 && !is_mapped(config, &self.keys(flow)));
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

    /// Adds a pool address.
    pub fn add_pool(&mut self, pool: Pool) {
        self.pools.add(pool);
    }

    /// Removes a pool address and ends its sessions.
    pub fn drop_pool(&mut self, address: u32, twice: bool) {
        self.pools.remove(address, twice);
        self.sweep(Sweep::Addresses);
    }

    /// Reserves a port of an address for a static mapping, or releases it.
    pub fn reserve(&mut self, address: u32, protocol: u8, port: u16, keep: bool) {
        self.pools.reserve(address, protocol, port, keep);
    }
}
