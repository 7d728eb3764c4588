//! What the nodes that translate have in common.
//!
//! Packets of sessions that stand are handled a frame at a time: all keys, all look-ups, all rewriting.
//! What is left, first packets above all, is handled one by one.

use crate::config::{Config, INSIDE};
use crate::events::Alarm;
use crate::kernel;
use crate::mapping::Mapping;
use crate::owners::{Places, Search};
use crate::packet::{self, Change, Kind, Parsed};
use crate::session::{self, FAST_IN, tcp};
use crate::time;
use crate::tuple::{self, Key, Tuple};
use crate::ways::{self, Out};
use crate::worker::{self, Fate, Nat, Refusal};
use std::net::Ipv4Addr;
use std::sync::Arc;
use thalweg_buffer::{Flags, Frame, Iface, PktMut};
use thalweg_feat_ip4::icmp::{self, Cause};
use thalweg_feat_ip4::tables::Tables;
use thalweg_fib::{DpoTable, Kind as Way};
use thalweg_graph::{BuildCx, ErrorCode, FrameVerdict, HandOff, NodeCx, Verdict};
use thalweg_tables::flow::{Found, Millis};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::ip::protocol;

/// Bytes that the fast way needs of a packet: the headers of IPv4 and TCP.
pub(crate) const NEED: usize = 40;
/// Bytes of an Ethernet header.
pub(crate) const ETHERNET: usize = 14;

/// Flags of TCP of which a packet that opens a connection has but one, SYN.
const OPENS: u8 = tcp::flag::SYN | tcp::flag::ACK | tcp::flag::RST | tcp::flag::FIN;

/// Where a packet's session is looked for.
enum NextPlace {
    /// Here; and if it is not here, there.
    Here(Option<(usize, Search)>),
    /// At another worker first.
    There(usize),
}

/// Queues by which workers hand packets to each other, and the nodes that these lead to.
/// By [`Direction`].
pub(crate) const QUEUES: [(&str, &str); 4] = [
    ("nat44-ed-in2out-handoff", "nat44-ed-in2out"),
    ("nat44-ed-out2in-handoff", "nat44-ed-out2in"),
    ("nat44-ed-output-handoff", "nat44-ed-in2out-output"),
    ("nat44-ed-hairpin-handoff", "nat44-ed-hairpin"),
];

/// Counters and next nodes of the nodes that translate.
#[derive(Clone, Copy)]
pub(crate) struct Names {
    pub(crate) icmp_error: Verdict,
    pub(crate) out2in: Verdict,
    /// Looks a packet up in the table that its side column names.
    pub(crate) lookup_in: Verdict,
    pub(crate) no_translation: ErrorCode,
    pub(crate) closed: ErrorCode,
    pub(crate) not_syn: ErrorCode,
    pub(crate) no_port: ErrorCode,
    pub(crate) full: ErrorCode,
    pub(crate) taken: ErrorCode,
    pub(crate) limit: ErrorCode,
    pub(crate) fragment: ErrorCode,
    pub(crate) unknown: ErrorCode,
}

/// Which way packets go that a node sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// From the inside.
    In2Out,
    /// From the outside.
    Out2In,
    /// From the inside, with a link header in front already.
    Output,
    /// From the inside, and translated on the way out if it is for the outside: only what hosts inside
    /// send each other by their names outside.
    Hairpin,
}

impl Direction {
    /// The one that is this number.
    pub(crate) const fn of(number: u8) -> Direction {
        match number {
            0 => Direction::In2Out,
            1 => Direction::Out2In,
            2 => Direction::Output,
            _ => Direction::Hairpin,
        }
    }
}

/// What a node that translates has.
pub(crate) struct Translator {
    direction: Direction,
    config: Arc<Snapshot<Config>>,
    tables: Arc<Snapshot<Tables>>,
    dpos: Arc<DpoTable>,
    queue: HandOff,
    names: Names,
    worker: usize,
    workers: usize,
    alarm: Alarm,
    /// Of the frame in hand.
    now: Millis,
    table: u32,
    uniform: bool,
    /// Of the packet in hand: the datagram that it is a fragment of, and whether its fate is known now;
    /// else it may wait for that.
    datagram: Option<(Key, bool)>,
}

impl Translator {
    pub(crate) fn new(cx: &BuildCx<'_>, direction: Direction, queue: &str, names: Names) -> Self {
        let workers = cx.control.config().workers.len();
        Translator {
            direction,
            config: cx.shared(),
            tables: cx.shared(),
            dpos: cx.shared(),
            // Before all workers run, there are no queues to any but this one.
            queue: cx.hand_off(queue),
            names,
            worker: cx.worker,
            workers,
            alarm: Alarm::new(cx),
            now: 0,
            table: 0,
            uniform: false,
            datagram: None,
        }
    }

    fn l2(&self) -> usize {
        if self.direction == Direction::Output { ETHERNET } else { 0 }
    }

    /// What holds for a frame.
    #[inline]
    pub(crate) fn begin(&mut self, cx: &mut NodeCx<'_>, frame: &Frame) {
        self.now = time::millis(cx.now());
        let tables = self.tables.load(cx.guard());
        let one_table = tables.is_single();
        self.uniform = one_table || frame.rx() != Iface::Mixed;
        self.table = if one_table { 0 } else { tables.fib_id(frame.rx_if(0)) };
    }

    /// The fast way. `N` is [`NEED`] and the bytes before the IPv4 header.
    #[inline(always)]
    pub(crate) fn frame<const N: usize>(
        &mut self,
        cx: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        if self.direction == Direction::Hairpin {
            let config = self.config.load(cx.guard());
            let rows = kernel::called::<N>(frame, &config.addresses);
            if rows.is_empty() {
                return FrameVerdict::Whole(Verdict::CONTINUE);
            }
            each[..frame.len()].fill(Verdict::CONTINUE);
            return FrameVerdict::Each(rows);
        }
        if !self.uniform || frame.flags().intersects(Flags::CHAINED.union(Flags::OFFLOAD)) {
            return FrameVerdict::PerPacket;
        }
        let Some(mut nat) = worker::take() else { return FrameVerdict::PerPacket };
        let config = self.config.load(cx.guard());
        let n = frame.len();
        frame.note_translations();
        let rest = if let Some(key) = kernel::only_key::<N>(frame, self.table, self.direction) {
            kernel::one_flow::<N>(&mut nat, frame, &key, config, self.now)
        } else {
            kernel::gather::<N>(frame, &mut nat.columns.keys, self.table, self.direction);
            let columns = &mut nat.columns;
            let (keys, hashes) = (&columns.keys[..n], &mut columns.hashes);
            nat.table.find_batch(keys, hashes, &mut columns.found);
            kernel::many_flows::<N>(&mut nat, frame, config, self.now)
        };
        worker::put(Some(nat));
        if rest.is_empty() {
            return FrameVerdict::Whole(Verdict::CONTINUE);
        }
        each[..n].fill(Verdict::CONTINUE);
        FrameVerdict::Each(rest)
    }

    /// One packet.
    pub(crate) fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let Some(mut nat) = worker::take() else { return Verdict::CONTINUE };
        p.note_translation();
        let mut verdict = self.one(cx, &mut nat, &mut p);
        if let Some((datagram, first)) = self.datagram.take() {
            if first {
                self.release(cx, &mut nat, &datagram);
            } else if nat.fragments.has_room(&datagram) {
                let (packet, kept) = cx.take(p);
                nat.fragments.wait(datagram, self.now, (self.direction as u8, packet));
                verdict = kept;
            }
        }
        worker::put(Some(nat));
        verdict
    }

    /// Fragments that came before their first go its way, now that it is known.
    #[cold]
    fn release(&mut self, cx: &mut NodeCx<'_>, nat: &mut Nat, datagram: &Key) {
        let Some(fate) = nat.fragments.find(datagram, self.now) else { return };
        let here = self.direction as u8;
        while let Some((_, mut packet)) = nat.fragments.next_of(datagram, |w| w.0 == here) {
            let verdict = self.follow(fate, packet.data_mut());
            if let Some(table) = fate.across() {
                packet.set_aux(table);
            }
            cx.send(packet, verdict);
        }
    }

    /// What becomes of a fragment whose first had this fate.
    fn follow(&self, fate: Fate, data: &mut [u8]) -> Verdict {
        match fate {
            Fate::Worker(owner) => self.queue.to(usize::from(owner)),
            Fate::Translated { addresses, l3: delta, hairpin, across } => {
                if let Some(l3) = data.get_mut(self.l2()..) {
                    packet::readdress(l3, addresses, delta);
                }
                self.goes_on(hairpin, across)
            }
        }
    }

    /// Where a packet goes that was translated.
    fn goes_on(&self, hairpin: bool, across: Option<u32>) -> Verdict {
        match across {
            _ if hairpin => self.names.out2in,
            Some(_) => self.names.lookup_in,
            None => Verdict::CONTINUE,
        }
    }

    /// Remembers what became of a datagram's first fragment.
    fn remember(&mut self, nat: &mut Nat, datagram: Key, fate: Fate) {
        nat.fragments.note(datagram, fate, self.now);
        if nat.fragments.any_waits() {
            self.datagram = Some((datagram, true));
        }
    }

    fn one(&mut self, cx: &mut NodeCx<'_>, nat: &mut Nat, p: &mut PktMut<'_>) -> Verdict {
        let l2 = self.l2();
        let Some(l3) = p.data().get(l2..) else { return Verdict::CONTINUE };
        if l2 > 0 && p.data()[l2 - 2..l2] != [8, 0] {
            return Verdict::CONTINUE;
        }
        if self.direction == Direction::Hairpin && !self.calls_inside(cx, l3) {
            return Verdict::CONTINUE;
        }
        // The answer to a packet that dies here goes to who sent it.
        let from_inside = matches!(self.direction, Direction::In2Out | Direction::Hairpin);
        if from_inside && l3.get(8).is_none_or(|ttl| *ttl <= 1) {
            return self.dies(cx, p);
        }
        let table = self.tables.load(cx.guard()).fib_id(p.rx_if());
        let parsed = packet::parse(l3, table);
        if parsed.kind == Kind::Fragment {
            return self.fragment(cx, nat, p, &parsed);
        }
        if parsed.kind == Kind::Unknown {
            return self.untracked(cx, p, &parsed);
        }
        let mut other = None;
        if self.workers > 1 {
            let search = Search::take(p);
            match self.next_place(cx, &parsed, search) {
                NextPlace::Here(next) => other = next,
                NextPlace::There(owner) => {
                    if let Some(datagram) = parsed.datagram {
                        self.remember(nat, datagram, Fate::Worker(owner as u16));
                    }
                    return self.queue.to(owner);
                }
            }
        }
        match (nat.find(&parsed.key, self.now), other) {
            (Some(found), _) => self.translate(cx, nat, p, &parsed, found),
            (None, Some((worker, search))) => {
                search.note(p);
                self.queue.to(worker)
            }
            (None, None) if self.direction == Direction::Out2In => {
                self.first_outside(cx, nat, p, &parsed)
            }
            (None, None) => self.first_inside(cx, nat, p, &parsed),
        }
    }

    /// Whether a packet is for an address that stands for hosts inside.
    fn calls_inside(&self, cx: &NodeCx<'_>, l3: &[u8]) -> bool {
        let to = l3.get(16..20).and_then(|b| b.first_chunk()).map(|b| u32::from_be_bytes(*b));
        to.is_some_and(|to| self.config.load(cx.guard()).addresses.contains(&to))
    }

    /// A packet on its last hop goes where the others go, so that who sent it learns of this hop.
    fn dies(&self, cx: &NodeCx<'_>, p: &mut PktMut<'_>) -> Verdict {
        let to = p.data().get(16..20).and_then(|b| b.first_chunk()).copied();
        let (config, to) =
            (self.config.load(cx.guard()), u32::from_be_bytes(to.unwrap_or_default()));
        match self.way_out(cx, config, p, to) {
            Out::Through { table, via: true } => {
                p.set_aux(table);
                self.names.lookup_in
            }
            _ => Verdict::CONTINUE,
        }
    }

    /// A fragment behind the first goes the way of that, or waits for it.
    fn fragment(
        &mut self,
        cx: &mut NodeCx<'_>,
        nat: &mut Nat,
        p: &mut PktMut<'_>,
        parsed: &Parsed,
    ) -> Verdict {
        if let Some(fate) = parsed.datagram.and_then(|d| nat.fragments.find(&d, self.now)) {
            let verdict = self.follow(fate, p.data_mut());
            if let Some(table) = fate.across() {
                p.set_aux(table);
            }
            return verdict;
        }
        let verdict = self.untracked(cx, p, parsed);
        if verdict == Verdict::drop(self.names.fragment) {
            self.datagram = parsed.datagram.map(|d| (d, false));
        }
        verdict
    }

    /// The worker at which a packet's session is looked for next, and what is known by then; if that is
    /// here, where it is looked for if it is not here.
    fn next_place(&self, cx: &NodeCx<'_>, parsed: &Parsed, search: Search) -> NextPlace {
        let config = self.config.load(cx.guard());
        let (t, outside) = (Tuple::of(&parsed.key), self.direction == Direction::Out2In);
        let Places { owner, before } = config.places(&t, outside, self.worker, self.workers);
        let elsewhere = |worker: &usize| *worker != self.worker;
        match search {
            Search::New if elsewhere(&owner) => NextPlace::There(owner),
            // What opens a connection belongs to none, and other fragments would follow this one astray.
            Search::New if self.cannot_be_old(parsed) => NextPlace::Here(None),
            Search::New => NextPlace::Here(before.filter(elsewhere).map(|w| (w, Search::Before))),
            Search::Before => {
                NextPlace::Here(Some(owner).filter(elsewhere).map(|w| (w, Search::Done)))
            }
            Search::Done => NextPlace::Here(None),
        }
    }

    fn cannot_be_old(&self, parsed: &Parsed) -> bool {
        let opens = parsed.kind == Kind::Ports
            && parsed.protocol == protocol::TCP
            && parsed.flags & OPENS == tcp::flag::SYN;
        opens || parsed.datagram.is_some()
    }

    /// A packet that belongs to no session for what it is.
    fn untracked(&self, cx: &mut NodeCx<'_>, p: &mut PktMut<'_>, parsed: &Parsed) -> Verdict {
        let config = self.config.load(cx.guard());
        let dst = Tuple::of(&parsed.key).dst.to_bits();
        if parsed.protocol == 0 || !self.is_for_others(cx, config, p, parsed) {
            return Verdict::CONTINUE;
        }
        if self.direction == Direction::Out2In
            && config.forwarding
            && !config.addresses.contains(&dst)
        {
            return Verdict::CONTINUE;
        }
        Verdict::drop(match parsed.kind {
            Kind::Fragment => self.names.fragment,
            _ => self.names.unknown,
        })
    }

    /// Whether a packet is the translator's business: from the inside to the outside, or from the
    /// outside and not to the router.
    fn is_for_others(
        &self,
        cx: &NodeCx<'_>,
        config: &Config,
        p: &PktMut<'_>,
        parsed: &Parsed,
    ) -> bool {
        let t = Tuple::of(&parsed.key);
        let tables = self.tables.load(cx.guard());
        let way = |to: Ipv4Addr| tables.way(&self.dpos, p.rx_if(), to.to_bits());
        match self.direction {
            Direction::Out2In | Direction::Hairpin => way(t.dst).kind != Way::Local,
            Direction::Output => {
                // What the router says itself needs no other name.
                let own = p.may_have_flags() && p.flags().contains(Flags::LOCAL);
                !own && way(t.src).kind != Way::Local
            }
            Direction::In2Out => self.way_out(cx, config, p, t.dst.to_bits()) != Out::Stays,
        }
    }

    /// Where a packet from the inside leaves.
    fn way_out(&self, cx: &NodeCx<'_>, config: &Config, p: &PktMut<'_>, to: u32) -> Out {
        ways::out(self.tables.load(cx.guard()), &self.dpos, config, p.rx_if(), to)
    }

    /// A packet of a session.
    fn translate(
        &mut self,
        cx: &mut NodeCx<'_>,
        nat: &mut Nat,
        p: &mut PktMut<'_>,
        parsed: &Parsed,
        found: Found,
    ) -> Verdict {
        let (flow, outside) = (found.flow(), found.by_second());
        let l2 = self.l2();
        let partial =
            p.may_have_flags() && p.flags().contains(Flags::OFFLOAD) && p.meta().offload.needs_csum;
        let change = change(nat, found);
        let bytes = (p.total_len() - l2) as u64;
        let Some(l3) = p.data_mut().get_mut(l2..) else { return Verdict::CONTINUE };
        let marks = session::marks(nat.table.rest(flow));
        let hairpin = marks & session::HAIRPIN != 0 && !outside;
        let across = marks & if outside { session::ACROSS } else { session::VIA } != 0;
        let across = across.then(|| {
            let (inside_key, outside_key) = nat.keys(flow);
            Tuple::of(if outside { &inside_key } else { &outside_key }).table
        });
        if let Some(datagram) = parsed.datagram {
            let Change { addresses, l3, .. } = change;
            self.remember(nat, datagram, Fate::Translated { addresses, l3, hairpin, across });
        }
        let config = self.config.load(cx.guard());
        if let Kind::Error(_) = parsed.kind {
            packet::rewrite_error(l3, parsed, &change, !outside);
        } else {
            packet::rewrite(l3, parsed, &change, partial);
            if config.mss != 0 && parsed.flags & tcp::flag::SYN != 0 {
                packet::clamp_mss(l3, parsed, config.mss, partial);
            }
            note(nat, found, parsed, marks & session::SLOW != 0, bytes, config, self.now);
        }
        if let Some(table) = across {
            p.set_aux(table);
        }
        self.goes_on(hairpin, across)
    }

    /// The first packet of what may become a session, from the inside.
    fn first_inside(
        &mut self,
        cx: &mut NodeCx<'_>,
        nat: &mut Nat,
        p: &mut PktMut<'_>,
        parsed: &Parsed,
    ) -> Verdict {
        let config = self.config.load(cx.guard());
        let t = Tuple::of(&parsed.key);
        let called = t.dst.to_bits();
        // One host inside calls another by its name outside.
        let named = config.addresses.contains(&called);
        let hairpin = named && config.mappings.called(called, t.dport, t.protocol).is_some();
        let (outside, marks) = match self.direction {
            _ if hairpin => (t.table, session::HAIRPIN),
            // Whatever else it is, it leaves by an interface outside, or is for the router.
            Direction::Hairpin => return Verdict::CONTINUE,
            Direction::In2Out => match self.way_out(cx, config, p, called) {
                Out::Stays => return Verdict::CONTINUE,
                Out::Closed => return Verdict::drop(self.names.closed),
                Out::Through { table, via } => (table, if via { session::VIA } else { 0 }),
            },
            _ if !self.is_for_others(cx, config, p, parsed) => return Verdict::CONTINUE,
            _ => (self.tables.load(cx.guard()).fib_id(p.tx_if()), 0),
        };
        if named && !hairpin {
            // It would come back here, and belong to nobody.
            return Verdict::drop(self.names.no_translation);
        }
        if let Some(why) = self.cannot_begin(p, parsed) {
            return Verdict::drop(why);
        }
        match nat.open(config, &t, outside, marks, self.now) {
            Ok(_) => match nat.find(&parsed.key, self.now) {
                Some(found) => self.translate(cx, nat, p, parsed, found),
                None => Verdict::drop(self.names.taken),
            },
            Err(refusal) => self.refused(cx, nat, p, refusal, (t.src, t.table)),
        }
    }

    /// Why a packet cannot begin a session, if so.
    fn cannot_begin(&self, p: &PktMut<'_>, parsed: &Parsed) -> Option<ErrorCode> {
        let kind = p.data().get(self.l2() + parsed.l4).copied().unwrap_or(0);
        match parsed.kind {
            Kind::Error(_) => Some(self.names.no_translation),
            Kind::Query if !packet::asks(kind) => Some(self.names.no_translation),
            Kind::Ports if parsed.protocol == protocol::TCP => {
                (parsed.flags & OPENS != tcp::flag::SYN).then_some(self.names.not_syn)
            }
            _ => None,
        }
    }

    #[cold]
    fn refused(
        &mut self,
        cx: &mut NodeCx<'_>,
        nat: &Nat,
        p: &mut PktMut<'_>,
        refusal: Refusal,
        host: (Ipv4Addr, u32),
    ) -> Verdict {
        let names = self.names;
        let (reason, cause) = match refusal {
            Refusal::NoPort => (names.no_port, Cause::HOST_UNREACHABLE),
            Refusal::Full => (names.full, Cause::HOST_UNREACHABLE),
            Refusal::Taken => (names.taken, Cause::HOST_UNREACHABLE),
            Refusal::Limit => (names.limit, Cause::HOST_UNREACHABLE),
        };
        let own = refusal == Refusal::Limit && nat.limits.is_spent(host.0, host.1);
        self.alarm.raise(cx, refusal, host, own);
        if self.l2() > 0 && !p.pull(self.l2()) {
            return Verdict::drop(reason);
        }
        icmp::ask(cx, p, cause, reason, names.icmp_error)
    }

    /// The first packet of what may become a session, from the outside.
    fn first_outside(
        &mut self,
        cx: &mut NodeCx<'_>,
        nat: &mut Nat,
        p: &mut PktMut<'_>,
        parsed: &Parsed,
    ) -> Verdict {
        let config = self.config.load(cx.guard());
        let t = Tuple::of(&parsed.key);
        let called = t.dst.to_bits();
        if let Some(m) = config.mappings.called(called, t.dport, t.protocol) {
            if let Some(why) = self.cannot_begin(p, parsed) {
                return Verdict::drop(why);
            }
            let inside = config.addresses.contains(&t.src.to_bits());
            let mut marks = if inside { session::HAIRPIN } else { 0 };
            if !inside && self.needs_outside_table(cx, &t, m) {
                marks |= session::VIA;
            }
            return match nat.open_mapped(config, &t, m, marks, self.now) {
                Ok(_) => match nat.find(&parsed.key, self.now) {
                    Some(found) => self.translate(cx, nat, p, parsed, found),
                    None => Verdict::drop(self.names.taken),
                },
                Err(refusal) => {
                    let target = m.target(t.src, t.sport, t.dport);
                    let host = target.map_or((t.dst, t.table), |(host, _, table)| (host, table));
                    self.refused(cx, nat, p, refusal, host)
                }
            };
        }
        // An interface may be both; then the other node comes next.
        let both = config.role(p.rx_if()) & INSIDE != 0;
        if both || !self.is_for_others(cx, config, p, parsed) {
            return Verdict::CONTINUE;
        }
        if config.forwarding && !config.addresses.contains(&called) {
            return Verdict::CONTINUE;
        }
        Verdict::drop(self.names.no_translation)
    }
}

impl Translator {
    /// Whether what a host inside answers has to be looked up in the table of the outside, as its own has
    /// no route.
    fn needs_outside_table(&self, cx: &NodeCx<'_>, t: &Tuple, m: &Mapping) -> bool {
        let tables = self.tables.load(cx.guard());
        let table = m.target(t.src, t.sport, t.dport).map_or(t.table, |(.., table)| table);
        table != t.table && tables.way_in(&self.dpos, table, t.src.to_bits()).kind == Way::Miss
    }
}

/// What a session does to packets that were found by one of its keys.
pub(crate) fn change(nat: &Nat, found: Found) -> Change {
    let (inside, outside) = nat.keys(found.flow());
    let (l3, l4) = nat.session(found.flow()).deltas();
    let back = |key: &Key| (tuple::reversed_addresses(key), tuple::reversed_ports(key));
    if found.by_second() {
        let (addresses, ports) = back(&inside);
        return Change { addresses, ports, l3: !l3, l4: !l4 };
    }
    let (addresses, ports) = back(&outside);
    Change { addresses, ports, l3, l4 }
}

/// Translates an ICMP error that the router itself has made about a packet that was translated.
pub(crate) fn own_error(nat: &mut Nat, l3: &mut [u8], table: u32, now: Millis) -> bool {
    let parsed = packet::parse(l3, table);
    let Kind::Error(_) = parsed.kind else { return false };
    let Some(found) = nat.find(&parsed.key, now) else { return false };
    let change = change(nat, found);
    packet::rewrite_error(l3, &parsed, &change, false);
    true
}

/// Counts a packet, follows its flags, and puts the session's end off.
pub(crate) fn note(
    nat: &mut Nat,
    found: Found,
    parsed: &Parsed,
    slow: bool,
    bytes: u64,
    config: &Config,
    now: Millis,
) {
    let (flow, outside) = (found.flow(), found.by_second());
    let answered = session::marks(nat.table.rest(flow)) & session::FROM_OUTSIDE != 0;
    let words = nat.table.get_mut(flow);
    words[1] += 1;
    words[2] += bytes;
    let tcp = parsed.protocol == protocol::TCP;
    let is_answer = outside != answered;
    if tcp {
        session::note_tcp(&mut words[0], parsed.flags, outside, slow);
    } else if !slow {
        words[0] |= if outside { FAST_IN << 1 } else { FAST_IN };
    }
    let class = session::class_number(words[0]);
    let stands = if tcp { class == session::Class::TcpEstablished as usize } else { is_answer };
    let end = now.wrapping_add(config.timeouts[class]);
    nat.table.set_expiry(flow, end);
    if stands {
        nat.table.promote(flow);
    }
}
