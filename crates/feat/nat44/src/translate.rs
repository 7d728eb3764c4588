//! What the nodes that translate have in common.
//!
//! Packets of sessions that stand are handled a frame at a time: all keys, all look-ups, all rewriting.
//! What is left, first packets above all, is handled one by one.

use crate::config::{Config, INSIDE, OUTSIDE};
use crate::events::Alarm;
use crate::fragments::Fate;
use crate::packet::{self, Change, Kind, Parsed};
use crate::session::{self, FAST_IN, tcp};
use crate::tuple::{self, Key, Tuple};
use crate::worker::{self, Nat, Refusal};
use crate::{ports, time};
use std::sync::Arc;
use thalweg_buffer::{Flags, Frame, Iface, PktMut, Rows};
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

/// Queues by which workers hand packets to each other, and the nodes that these lead to.
pub(crate) const QUEUES: [(&str, &str); 3] = [
    ("nat44-ed-in2out-handoff", "nat44-ed-in2out"),
    ("nat44-ed-out2in-handoff", "nat44-ed-out2in"),
    ("nat44-ed-output-handoff", "nat44-ed-in2out-output"),
];

/// Counters and next nodes, which all nodes that translate have in the same order.
#[derive(Clone, Copy)]
pub(crate) struct Names {
    pub(crate) icmp_error: Verdict,
    pub(crate) out2in: Verdict,
    pub(crate) no_translation: ErrorCode,
    pub(crate) not_syn: ErrorCode,
    pub(crate) no_port: ErrorCode,
    pub(crate) full: ErrorCode,
    pub(crate) taken: ErrorCode,
    pub(crate) fragment: ErrorCode,
    pub(crate) unknown: ErrorCode,
}

/// Which way packets go that a node sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// From the inside.
    In2Out,
    /// From the inside, with a link header in front already.
    Output,
    /// From the outside.
    Out2In,
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
        if !self.uniform || frame.flags().intersects(Flags::CHAINED.union(Flags::OFFLOAD)) {
            return FrameVerdict::PerPacket;
        }
        let Some(mut nat) = worker::take() else { return FrameVerdict::PerPacket };
        let config = self.config.load(cx.guard());
        let n = frame.len();
        let same = gather::<N>(frame, &mut nat.columns.keys, self.table, self.direction);
        let rest = if same {
            one_flow::<N>(&mut nat, frame, config, self.now)
        } else {
            let columns = &mut nat.columns;
            let (keys, hashes) = (&columns.keys[..n], &mut columns.hashes);
            nat.table.find_batch(keys, hashes, &mut columns.found);
            many_flows::<N>(&mut nat, frame, config, self.now)
        };
        worker::put(Some(nat));
        if rest.is_empty() {
            return FrameVerdict::Whole(Verdict::CONTINUE);
        }
        each[..n].fill(Verdict::CONTINUE);
        FrameVerdict::Each(rest)
    }

    /// One packet.
    pub(crate) fn packet(&mut self, cx: &mut NodeCx<'_>, p: &mut PktMut<'_>) -> Verdict {
        let Some(mut nat) = worker::take() else { return Verdict::CONTINUE };
        let verdict = self.one(cx, &mut nat, p);
        worker::put(Some(nat));
        verdict
    }

    fn one(&mut self, cx: &mut NodeCx<'_>, nat: &mut Nat, p: &mut PktMut<'_>) -> Verdict {
        let l2 = self.l2();
        let Some(l3) = p.data().get(l2..) else { return Verdict::CONTINUE };
        if l2 > 0 && p.data()[l2 - 2..l2] != [8, 0] {
            return Verdict::CONTINUE;
        }
        // The answer to a packet that dies here goes to who sent it.
        if self.direction == Direction::In2Out && l3.get(8).is_none_or(|ttl| *ttl <= 1) {
            return Verdict::CONTINUE;
        }
        let table = self.tables.load(cx.guard()).fib_id(p.rx_if());
        let parsed = packet::parse(l3, table);
        if parsed.kind == Kind::Fragment {
            return self.fragment(cx, nat, p, &parsed);
        }
        if parsed.kind == Kind::Unknown {
            return self.untracked(cx, p, &parsed);
        }
        if self.workers > 1 {
            let owner = self.owner(cx, &parsed);
            if owner != self.worker {
                if let Some(datagram) = parsed.datagram {
                    nat.fragments.note(datagram, Fate::Worker(owner as u16), self.now);
                }
                return self.queue.to(owner);
            }
        }
        match nat.find(&parsed.key, self.now) {
            Some(found) => self.translate(cx, nat, p, &parsed, found),
            None if self.direction == Direction::Out2In => self.first_outside(cx, nat, p, &parsed),
            None => self.first_inside(cx, nat, p, &parsed),
        }
    }

    /// A fragment behind the first goes the way of that.
    fn fragment(
        &self,
        cx: &mut NodeCx<'_>,
        nat: &mut Nat,
        p: &mut PktMut<'_>,
        parsed: &Parsed,
    ) -> Verdict {
        let fate = parsed.datagram.and_then(|d| nat.fragments.find(&d, self.now));
        match fate {
            Some(Fate::Worker(owner)) => self.queue.to(usize::from(owner)),
            Some(Fate::Translated { addresses, l3: delta, hairpin }) => {
                let change = Change { addresses, ports: 0, l3: delta, l4: 0 };
                if let Some(l3) = p.data_mut().get_mut(self.l2()..) {
                    packet::rewrite(l3, parsed, &change, false);
                }
                if hairpin { self.names.out2in } else { Verdict::CONTINUE }
            }
            None => self.untracked(cx, p, parsed),
        }
    }

    /// The worker that has a packet's session.
    fn owner(&self, cx: &NodeCx<'_>, parsed: &Parsed) -> usize {
        let t = Tuple::of(&parsed.key);
        let of = |host| worker::owner(host, self.workers);
        let ip = t.protocol;
        match self.direction {
            _ if !matches!(ip, protocol::TCP | protocol::UDP | protocol::ICMP) => {
                of(if self.direction == Direction::Out2In { t.src } else { t.dst })
            }
            Direction::In2Out | Direction::Output => of(t.src),
            Direction::Out2In => {
                let config = self.config.load(cx.guard());
                let mapping = config.mappings.called(t.dst.to_bits(), t.dport, ip);
                match mapping.and_then(|m| m.target(worker::spread(&t), t.dport)) {
                    Some((local, ..)) => of(local),
                    None => ports::owner(t.dport, self.workers).unwrap_or(self.worker),
                }
            }
        }
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
        let way = |to: std::net::Ipv4Addr| tables.way(&self.dpos, p.rx_if(), to.to_bits());
        match self.direction {
            Direction::Out2In => way(t.dst).kind != Way::Local,
            Direction::Output => {
                // What the router says itself needs no other name.
                let own = p.may_have_flags() && p.flags().contains(Flags::LOCAL);
                !own && way(t.src).kind != Way::Local
            }
            Direction::In2Out => {
                let state = way(t.dst);
                let sent = matches!(state.kind, Way::Rewrite | Way::Incomplete | Way::Glean);
                sent && config.role(state.tx_if) & OUTSIDE != 0
            }
        }
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
        let config = self.config.load(cx.guard());
        let (flow, outside) = (found.flow(), found.by_second());
        let l2 = self.l2();
        let partial =
            p.may_have_flags() && p.flags().contains(Flags::OFFLOAD) && p.meta().offload.needs_csum;
        let change = change(nat, found);
        let bytes = (p.total_len() - l2) as u64;
        let Some(l3) = p.data_mut().get_mut(l2..) else { return Verdict::CONTINUE };
        let hairpin = session::Session(*nat.table.get(flow)).marks() & session::HAIRPIN != 0;
        if let Some(datagram) = parsed.datagram {
            let hairpin = hairpin && !outside;
            let fate = Fate::Translated { addresses: change.addresses, l3: change.l3, hairpin };
            nat.fragments.note(datagram, fate, self.now);
        }
        if let Kind::Error(_) = parsed.kind {
            packet::rewrite_error(l3, parsed, &change, !outside);
        } else {
            packet::rewrite(l3, parsed, &change, partial);
            if config.mss != 0 && parsed.flags & tcp::flag::SYN != 0 {
                packet::clamp_mss(l3, parsed, config.mss, partial);
            }
            note(nat, found, parsed, hairpin, bytes, config, self.now);
        }
        if hairpin && !outside { self.names.out2in } else { Verdict::CONTINUE }
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
        let hairpin = config.addresses.contains(&called)
            && config.mappings.called(called, t.dport, t.protocol).is_some();
        if !hairpin && !self.is_for_others(cx, config, p, parsed) {
            return Verdict::CONTINUE;
        }
        if let Some(why) = self.cannot_begin(p, parsed) {
            return Verdict::drop(why);
        }
        let tables = self.tables.load(cx.guard());
        let outside = match self.direction {
            Direction::Output => tables.fib_id(p.tx_if()),
            _ if hairpin => t.table,
            _ => tables.fib_id(tables.way(&self.dpos, p.rx_if(), called).tx_if),
        };
        let marks = if hairpin { session::HAIRPIN } else { 0 };
        match nat.open(config, &t, outside, marks, self.now) {
            Ok(_) => match nat.find(&parsed.key, self.now) {
                Some(found) => self.translate(cx, nat, p, parsed, found),
                None => Verdict::drop(self.names.taken),
            },
            Err(refusal) => self.refused(cx, p, refusal),
        }
    }

    /// Why a packet cannot begin a session, if so.
    fn cannot_begin(&self, p: &PktMut<'_>, parsed: &Parsed) -> Option<ErrorCode> {
        const SYN: u8 = tcp::flag::SYN | tcp::flag::ACK | tcp::flag::RST | tcp::flag::FIN;
        let kind = p.data().get(self.l2() + parsed.l4).copied().unwrap_or(0);
        match parsed.kind {
            Kind::Error(_) => Some(self.names.no_translation),
            Kind::Query if !packet::asks(kind) => Some(self.names.no_translation),
            Kind::Ports if parsed.protocol == protocol::TCP => {
                (parsed.flags & SYN != tcp::flag::SYN).then_some(self.names.not_syn)
            }
            _ => None,
        }
    }

    #[cold]
    fn refused(&mut self, cx: &mut NodeCx<'_>, p: &mut PktMut<'_>, refusal: Refusal) -> Verdict {
        let names = self.names;
        let (reason, cause) = match refusal {
            Refusal::NoPort => (names.no_port, Cause::HOST_UNREACHABLE),
            Refusal::Full => (names.full, Cause::HOST_UNREACHABLE),
            Refusal::Taken => (names.taken, Cause::HOST_UNREACHABLE),
        };
        self.alarm.raise(cx, refusal);
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
            let marks = if inside { session::HAIRPIN } else { 0 };
            return match nat.open_mapped(config, &t, m, marks, self.now) {
                Ok(_) => match nat.find(&parsed.key, self.now) {
                    Some(found) => self.translate(cx, nat, p, parsed, found),
                    None => Verdict::drop(self.names.taken),
                },
                Err(refusal) => self.refused(cx, p, refusal),
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

/// What a session does to packets that were found by one of its keys.
fn change(nat: &Nat, found: Found) -> Change {
    let (inside, outside) = nat.keys(found.flow());
    let (l3, l4) = session::Session(*nat.table.get(found.flow())).deltas();
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
fn note(
    nat: &mut Nat,
    found: Found,
    parsed: &Parsed,
    hairpin: bool,
    bytes: u64,
    config: &Config,
    now: Millis,
) {
    let (flow, outside) = (found.flow(), found.by_second());
    let words = nat.table.get_mut(flow);
    words[1] += 1;
    words[2] += bytes;
    let tcp = parsed.protocol == protocol::TCP;
    let answered = session::Session(*words).marks() & session::FROM_OUTSIDE != 0;
    let is_answer = outside != answered;
    if tcp {
        session::note_tcp(&mut words[0], parsed.flags, outside, hairpin);
    } else if !hairpin {
        words[0] |= if outside { FAST_IN << 1 } else { FAST_IN };
    }
    let class = session::class_number(words[0]);
    let stands = if tcp { class == session::Class::TcpEstablished as usize } else { is_answer };
    let end = now.wrapping_add(config.timeouts[class]);
    nat.table.set_end(flow, end);
    if stands {
        nat.table.grow_up(flow);
    }
}

/// Reads the keys of a frame's packets; those that are not as most are get one that no session has.
/// True if all packets have the same.
#[inline(always)]
fn gather<const N: usize>(
    frame: &Frame,
    keys: &mut [Key],
    table: u32,
    direction: Direction,
) -> bool {
    let l2 = N - NEED;
    let (mut first, mut differ) = ([0; 2], 0);
    let dies = if direction == Direction::In2Out { 1 } else { 0 };
    for (i, (head, key)) in frame.heads::<N>().zip(keys.iter_mut()).enumerate() {
        let h = &head[l2..];
        let word = |at: usize| u32::from_le_bytes([h[at], h[at + 1], h[at + 2], h[at + 3]]);
        let ip = h[9];
        let mut plain = (h[0] == 0x45)
            & (word(4) & 0xff3f_0000 == 0)
            & ((ip == protocol::TCP) | (ip == protocol::UDP))
            & (h[8] > dies);
        if l2 > 0 {
            plain &= head[l2 - 2..l2] == [8, 0];
        }
        let addresses = u64::from(word(12)) | u64::from(word(16)) << 32;
        let found = tuple::key(addresses, word(20), ip, table);
        *key = if plain { found } else { [0; 2] };
        if i == 0 {
            first = *key;
        }
        differ |= (key[0] ^ first[0]) | (key[1] ^ first[1]);
    }
    differ == 0
}

/// What rewriting needs of a session.
#[derive(Clone, Copy)]
struct Fast {
    addresses: u64,
    ports: u32,
    l3: u16,
    l4: u16,
}

/// What a session does to packets, if they need no second look.
#[inline(always)]
fn fast(keys: &[Key; 2], word: u64, second: bool) -> Option<Fast> {
    if word & (FAST_IN << u32::from(second)) == 0 {
        return None;
    }
    let other = &keys[usize::from(!second)];
    let flip = if second { 0xffff } else { 0 };
    Some(Fast {
        addresses: tuple::reversed_addresses(other),
        ports: tuple::reversed_ports(other),
        l3: word as u16 ^ flip,
        l4: (word >> 16) as u16 ^ flip,
    })
}

/// Rewrites a TCP or UDP packet; false, and nothing done, if it opens or ends a connection.
#[inline(always)]
fn rewrite(h: &mut [u8], f: &Fast) -> bool {
    const ENDS: u8 = tcp::flag::SYN | tcp::flag::FIN | tcp::flag::RST;
    let udp = h[9] == protocol::UDP;
    if !udp && h[33] & ENDS != 0 {
        return false;
    }
    let follow = |h: &mut [u8], at: usize, delta: u16| {
        let sum = tuple::follow(u16::from_le_bytes([h[at], h[at + 1]]), delta);
        h[at..at + 2].copy_from_slice(&sum.to_le_bytes());
    };
    h[12..20].copy_from_slice(&f.addresses.to_le_bytes());
    h[20..24].copy_from_slice(&f.ports.to_le_bytes());
    follow(h, 10, f.l3);
    if udp {
        let old = u16::from_le_bytes([h[26], h[27]]);
        if old != 0 {
            let sum = tuple::follow(old, f.l4);
            let sum = if sum == 0 { 0xffff } else { sum };
            h[26..28].copy_from_slice(&sum.to_le_bytes());
        }
    } else {
        follow(h, 36, f.l4);
    }
    true
}

#[inline(always)]
fn length(h: &[u8]) -> u64 {
    u64::from(u16::from_be_bytes([h[2], h[3]]))
}

/// All packets are of one session.
#[inline(always)]
fn one_flow<const N: usize>(
    nat: &mut Nat,
    frame: &mut Frame,
    config: &Config,
    now: Millis,
) -> Rows {
    let key = nat.columns.keys[0];
    let found = nat.table.find(&key, nat.table.hash(&key));
    let all = |frame: &Frame| Rows::of((0..frame.len()).map(|_| true));
    let Some(found) = found else { return all(frame) };
    let (flow, second) = (found.flow(), found.by_second());
    if nat.table.is_over(flow, now) {
        return all(frame);
    }
    let (keys, word) = (nat.keys(flow), nat.table.get(flow)[0]);
    let Some(f) = fast(&[keys.0, keys.1], word, second) else { return all(frame) };
    let (mut packets, mut bytes) = (0, 0);
    let mut rest = Rows::NONE;
    for (i, window) in frame.windows_mut::<N>(0).enumerate() {
        let Some(w) = window else {
            rest.insert(i as u8);
            continue;
        };
        let h = &mut w[N - NEED..];
        if rewrite(h, &f) {
            packets += 1;
            bytes += length(h);
        } else {
            rest.insert(i as u8);
        }
    }
    let words = nat.table.get_mut(flow);
    words[1] += packets;
    words[2] += bytes;
    if packets > 0 {
        nat.table.put_off(flow, now.wrapping_add(config.timeouts[session::class_number(word)]));
    }
    rest
}

/// Packets of many sessions, which have been looked up.
#[inline(always)]
fn many_flows<const N: usize>(
    nat: &mut Nat,
    frame: &mut Frame,
    config: &Config,
    now: Millis,
) -> Rows {
    let mut rest = Rows::NONE;
    let Nat { table, columns, .. } = nat;
    let found = &columns.found[..frame.len()];
    for (i, (window, found)) in frame.windows_mut::<N>(0).zip(found).enumerate() {
        let (Some(w), Some(found)) = (window, found) else {
            rest.insert(i as u8);
            continue;
        };
        let h = &mut w[N - NEED..];
        let (keys, end, words) = table.whole(found.flow());
        let over = now.wrapping_sub(*end) < 1 << 31;
        let f = fast(keys, words[0], found.by_second()).filter(|_| !over);
        match f {
            Some(f) if rewrite(h, &f) => {
                words[1] += 1;
                words[2] += length(h);
                *end = now.wrapping_add(config.timeouts[session::class_number(words[0])]);
            }
            _ => rest.insert(i as u8),
        }
    }
    rest
}
