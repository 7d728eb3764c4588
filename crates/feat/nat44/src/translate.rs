//! Translation of packets, common to all translating nodes.
//!
//! Packets of established sessions are handled a frame at a time: all keys, look-ups and rewrites
//! together. The rest, mainly first packets, is handled one by one.

use crate::config::{Addresses, Config, INSIDE};
use crate::counters::{Counters, What, position};
use crate::direction::Direction;
use crate::egress::{self, Egress};
use crate::events::Alarm;
use crate::kernel;
use crate::mapping::Mapping;
use crate::owners::Places;
use crate::session::{self, FAST_IN, tcp};
use crate::time;
use crate::worker::{Fate, Nat, Outside, Refusal};
use std::net::Ipv4Addr;
use std::sync::Arc;
use thalweg_buffer::{FRAME_SIZE, Flags, Frame, Iface, PktMut, Search};
use thalweg_feat_ip4::icmp::{self, Cause};
use thalweg_feat_ip4::tables::Tables;
use thalweg_fib::{Dpo, DpoTable, Kind as DpoKind, Parked, TableId};
use thalweg_graph::{BuildCx, ErrorCode, FrameVerdict, HandOff, NodeCx, PerWorker, Verdict};
use thalweg_tables::flow::{FlowId, Found, Millis};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::ip::protocol;
use thalweg_wire::nat::packet::{self, Kind, Parsed};
use thalweg_wire::nat::tuple::{self, Key, MAX_TABLE, Tuple};

mod fragments;
mod once;
pub(crate) mod own_errors;
mod tally;

/// Bytes of a packet that the fast path needs: IPv4 and TCP headers.
pub(crate) const NEED: usize = 40;

/// No counter.
const NOT_COUNTED: usize = usize::MAX;

/// TCP flags of which an opening packet has only SYN.
const OPENS: u8 = tcp::flag::SYN | tcp::flag::ACK | tcp::flag::RST | tcp::flag::FIN;

/// The worker where a packet's session is searched for.
enum NextPlace {
    /// This worker; if it has none, the other one next.
    Here(Option<(usize, Search)>),
    /// Another worker.
    There(usize),
}

/// Error codes and next nodes of a translating node.
#[derive(Clone, Copy)]
pub(crate) struct Outcomes {
    pub(crate) icmp_error: Verdict,
    pub(crate) out2in: Verdict,
    /// Looks the packet up in the table in its aux column.
    pub(crate) lookup_in: Verdict,
    pub(crate) no_translation: ErrorCode,
    pub(crate) vrf_denied: ErrorCode,
    pub(crate) non_syn: ErrorCode,
    pub(crate) out_of_ports: ErrorCode,
    pub(crate) max_sessions: ErrorCode,
    pub(crate) tuple_in_use: ErrorCode,
    pub(crate) user_limit: ErrorCode,
    pub(crate) vrf_limit: ErrorCode,
    pub(crate) fragment: ErrorCode,
    pub(crate) bad_icmp_type: ErrorCode,
    pub(crate) incomplete: ErrorCode,
}

/// The destination of an IPv4 packet; `None` if the packet ends before it.
fn destination(l3: &[u8]) -> Option<u32> {
    l3.get(16..20).and_then(|b| b.first_chunk()).map(|b| u32::from_be_bytes(*b))
}

/// Returns whether the TTL of an IPv4 packet expires here.
fn has_expired(l3: &[u8]) -> bool {
    l3.get(8).is_none_or(|ttl| *ttl <= 1)
}

/// State of a translating node.
pub(crate) struct Translator {
    direction: Direction,
    config: Arc<Snapshot<Config>>,
    tables: Arc<Snapshot<Tables>>,
    dpos: Arc<DpoTable>,
    here: PerWorker<Nat>,
    /// The worker's sessions, while the node runs.
    nat: Option<Box<Nat>>,
    queue: HandOff,
    outcomes: Outcomes,
    worker: usize,
    workers: usize,
    alarm: Alarm,
    counters: Arc<Counters>,
    /// Sessions opened by packets of the current frame.
    opened: Vec<FlowId>,
    /// The counter of the current packet, if it is translated.
    counted: usize,
    /// Time of the current frame.
    now: Millis,
    table: TableId,
    uniform: bool,
    /// Fragment: key of its datagram, and whether the fate of the first fragment is known now; if
    /// not, this fragment may wait for it.
    datagram: Option<(Key, bool)>,
}

impl Translator {
    pub(crate) fn new(
        cx: &BuildCx<'_>,
        direction: Direction,
        queue: &str,
        outcomes: Outcomes,
    ) -> Self {
        let workers = cx.control.config().workers.len();
        Translator {
            direction,
            config: cx.shared(),
            tables: cx.shared(),
            dpos: cx.shared(),
            here: cx.control.per_worker(),
            nat: None,
            // Before all workers run, there is only the local queue.
            queue: cx.hand_off(queue),
            outcomes,
            worker: cx.worker,
            workers,
            alarm: Alarm::new(cx),
            counters: cx.shared(),
            opened: Vec::with_capacity(FRAME_SIZE),
            counted: NOT_COUNTED,
            now: 0,
            table: TableId(0),
            uniform: false,
            datagram: None,
        }
    }

    /// Prepares for a frame.
    #[inline]
    pub(crate) fn begin(&mut self, cx: &mut NodeCx<'_>, frame: &Frame) {
        self.now = time::millis(cx.now());
        self.opened.clear();
        let tables = self.tables.load(cx.guard());
        let one_table = tables.is_single();
        self.table = if one_table { TableId(0) } else { tables.fib_id(frame.rx_if(0)) };
        self.uniform = one_table || frame.rx() != Iface::Mixed && self.table.get() <= MAX_TABLE;
        self.nat = cx.take_local(self.here);
    }

    /// Puts back what [`begin`](Self::begin) has taken.
    #[inline]
    pub(crate) fn end(&mut self, cx: &mut NodeCx<'_>) {
        if let Some(nat) = self.nat.take() {
            cx.put_local(self.here, nat);
        }
    }

    /// The fast path.
    #[inline(always)]
    pub(crate) fn frame(
        &mut self,
        cx: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        if self.direction == Direction::Hairpin {
            let config = self.config.load(cx.guard());
            let rows = kernel::hairpins(frame, &config.addresses);
            if rows.is_empty() {
                return FrameVerdict::Whole(Verdict::CONTINUE);
            }
            each[..frame.len()].fill(Verdict::CONTINUE);
            return FrameVerdict::Each(rows);
        }
        let waited = self.direction == Direction::Output
            && self.workers > 1
            && frame.aux().iter().any(|aux| Parked::is(*aux));
        if !self.uniform || waited || frame.flags().intersects(Flags::CHAINED.union(Flags::OFFLOAD))
        {
            return FrameVerdict::PerPacket;
        }
        let Some(mut nat) = self.nat.take() else { return FrameVerdict::PerPacket };
        let config = self.config.load(cx.guard());
        let n = frame.len();
        frame.note_translations();
        let one = kernel::only_key(frame, self.table, self.direction);
        let done = if let Some(key) = one {
            kernel::one_flow(&mut nat, frame, &key, config, (self.direction, self.now))
        } else {
            kernel::gather(frame, &mut nat.columns.keys, self.table, self.direction);
            let columns = &mut nat.columns;
            let (keys, hashes) = (&columns.keys[..n], &mut columns.hashes);
            nat.table.find_batch(keys, hashes, &mut columns.found);
            if !self.direction.takes_second() {
                columns.found[..n].iter_mut().for_each(kernel::without_second);
            }
            kernel::many_flows(&mut nat, frame, config, self.now)
        };
        let rest = done.rest;
        self.count_frame(&nat, frame, &done, one.is_some());
        self.nat = Some(nat);
        if rest.is_empty() {
            return FrameVerdict::Whole(Verdict::CONTINUE);
        }
        each[..n].fill(Verdict::CONTINUE);
        FrameVerdict::Each(rest)
    }

    /// Handles one packet.
    pub(crate) fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        if self.direction == Direction::Output && Parked::is(p.aux()) {
            p.set_aux(self.dpos.unpark(Parked(p.aux())).get());
        }
        let Some(mut nat) = self.nat.take() else { return self.without_state(cx, &p) };
        p.note_translation();
        self.counted = NOT_COUNTED;
        let mut verdict = self.one(cx, &mut nat, &mut p);
        match self.datagram.take() {
            Some((datagram, false)) if self.has_room(cx, &mut nat, &datagram, p.rx_if()) => {
                let of = p.rx_if().get();
                self.park(&mut p);
                let (packet, kept) = cx.take(p);
                nat.fragments.wait(datagram, of, self.now, (self.direction as u8, packet));
                verdict = kept;
            }
            first => {
                self.count_one(&p, verdict);
                if let Some((datagram, true)) = first {
                    self.release(cx, &mut nat, &datagram);
                }
            }
        }
        self.nat = Some(nat);
        verdict
    }

    /// Handles a packet while this worker has no sessions yet, or no longer: it does not leave as
    /// it is.
    #[cold]
    fn without_state(&self, cx: &NodeCx<'_>, p: &PktMut<'_>) -> Verdict {
        let config = self.config.load(cx.guard());
        let parsed = packet::parse(p.data(), 0);
        match self.direction {
            Direction::In2Out | Direction::Output | Direction::Both
                if self.is_for_others(cx, config, p, &parsed) =>
            {
                Verdict::drop(self.outcomes.no_translation)
            }
            _ => Verdict::CONTINUE,
        }
    }

    /// Keeps a packet's adjacency, if it has one, over a wait.
    #[cold]
    fn park(&self, p: &mut PktMut<'_>) {
        if self.direction == Direction::Output {
            p.set_aux(self.dpos.park(Dpo(p.aux())).get());
        }
    }

    /// Hands a packet over to another worker.
    fn hand_over(&self, p: &mut PktMut<'_>, to: usize) -> Verdict {
        self.park(p);
        self.queue.to(to)
    }

    /// Handles a later fragment by the fate of the first.
    fn follow(&self, fate: Fate, data: &mut [u8]) -> Verdict {
        match fate {
            Fate::Worker(owner) => self.queue.to(usize::from(owner)),
            Fate::Passed => Verdict::CONTINUE,
            Fate::Translated { addresses, l3: delta, hairpin, across } => {
                packet::readdress(data, addresses, delta);
                self.goes_on(hairpin, across)
            }
        }
    }

    /// The verdict for a translated packet.
    fn goes_on(&self, hairpin: bool, across: Option<TableId>) -> Verdict {
        match across {
            _ if hairpin => self.outcomes.out2in,
            Some(_) => self.outcomes.lookup_in,
            None => Verdict::CONTINUE,
        }
    }

    fn one(&mut self, cx: &mut NodeCx<'_>, nat: &mut Nat, p: &mut PktMut<'_>) -> Verdict {
        let l3 = p.data();
        let addresses = &self.config.load(cx.guard()).addresses;
        let is_to =
            |of: fn(&Addresses, &u32) -> bool| destination(l3).is_some_and(|to| of(addresses, &to));
        if self.direction == Direction::Hairpin && !is_to(Addresses::may_hairpin) {
            return Verdict::CONTINUE;
        }
        // An ICMP error about a packet whose TTL expires here goes to the untranslated sender. Only
        // its translation knows the way of one to an inside host: the error undoes that.
        let from_inside = match self.direction {
            Direction::In2Out | Direction::Hairpin => true,
            Direction::Both => !is_to(Addresses::contains),
            Direction::Out2In | Direction::Output => false,
        };
        if from_inside && has_expired(l3) && !is_to(Addresses::may_hairpin) {
            return self.ttl_expired(cx, p);
        }
        let table = self.tables.load(cx.guard()).fib_id(p.rx_if());
        let parsed = packet::parse(l3, table.get());
        if table.get() > MAX_TABLE {
            // Its interface was moved there later. Keys would name another table.
            let config = self.config.load(cx.guard());
            return match self.is_for_others(cx, config, p, &parsed) {
                true => Verdict::drop(self.outcomes.no_translation),
                false => Verdict::CONTINUE,
            };
        }
        if parsed.kind == Kind::Fragment {
            return self.fragment(cx, nat, p, &parsed);
        }
        if parsed.kind == Kind::Unknown {
            return self.untracked(cx, p, &parsed);
        }
        let mut other = None;
        if self.workers > 1 {
            let search = p.take_search();
            match self.next_place(cx, &parsed, search) {
                NextPlace::Here(next) => other = next,
                NextPlace::There(_) if self.is_done(cx, nat, p, &parsed) => {
                    return self.passes(nat, p.rx_if(), &parsed);
                }
                NextPlace::There(owner) => {
                    if let Some(datagram) = parsed.datagram {
                        self.remember(nat, p.rx_if(), datagram, Fate::Worker(owner as u16));
                    }
                    return self.hand_over(p, owner);
                }
            }
        }
        match (self.find(nat, &parsed.key), other) {
            (Some(found), _) => {
                let slow = !self.opened.is_empty() && self.opened.contains(&found.flow());
                self.translate(cx, nat, p, &parsed, found, slow)
            }
            (None, _) if self.is_done(cx, nat, p, &parsed) => self.passes(nat, p.rx_if(), &parsed),
            (None, Some((worker, search))) => {
                p.meta_mut().search = search;
                self.hand_over(p, worker)
            }
            (None, None) => match self.side(cx, &parsed) {
                Direction::Out2In => self.first_outside(cx, nat, p, &parsed),
                _ => self.first_inside(cx, nat, p, &parsed),
            },
        }
    }

    /// The verdict for a packet whose TTL expires: it follows the path of translated ones, so that
    /// the sender gets the ICMP error of this hop.
    fn ttl_expired(&self, cx: &NodeCx<'_>, p: &mut PktMut<'_>) -> Verdict {
        let (config, to) =
            (self.config.load(cx.guard()), destination(p.data()).unwrap_or_default());
        match self.egress(cx, config, p, to) {
            Egress::Outside { table, via: true } => {
                p.set_aux(table.get());
                self.outcomes.lookup_in
            }
            _ => Verdict::CONTINUE,
        }
    }

    /// Handles a later fragment, which shares the fate of the first or waits for it.
    fn fragment(
        &mut self,
        cx: &mut NodeCx<'_>,
        nat: &mut Nat,
        p: &mut PktMut<'_>,
        parsed: &Parsed,
    ) -> Verdict {
        // A packet that was sent here by the first worker, and is sent back, would go to and fro
        // endlessly.
        let was_sent = self.workers > 1 && p.take_search() == Search::Done;
        let is_useful = |fate: &Fate| !was_sent || !matches!(fate, Fate::Worker(_));
        let fate = parsed.datagram.and_then(|d| nat.fragments.find(&d, self.now));
        if let Some(fate) = fate.filter(is_useful) {
            let verdict = self.follow(fate, p.data_mut());
            if let Some(table) = fate.across() {
                p.set_aux(table.get());
            }
            if matches!(fate, Fate::Worker(_)) {
                p.meta_mut().search = Search::Done;
                self.park(p);
            }
            return verdict;
        }
        let verdict = self.untracked(cx, p, parsed);
        if verdict == Verdict::drop(self.outcomes.fragment) {
            self.datagram = parsed.datagram.map(|d| (d, false));
        }
        verdict
    }

    /// The worker where a packet's session is searched for next.
    fn next_place(&self, cx: &NodeCx<'_>, parsed: &Parsed, search: Search) -> NextPlace {
        let config = self.config.load(cx.guard());
        let t = Tuple::of(&parsed.key);
        // Sources that twice-NAT has translated are external addresses, too, but inside.
        let outside = match self.direction {
            Direction::Both => {
                let twice = config.twice.contains(&t.dst.to_bits())
                    && !config.pooled.contains(&t.dst.to_bits());
                !twice && self.side(cx, parsed) == Direction::Out2In
            }
            direction => direction == Direction::Out2In,
        };
        let Places { owner, before } = config.places(&t, outside, self.worker, self.workers);
        let elsewhere = |worker: &usize| *worker != self.worker;
        match search {
            Search::New if elsewhere(&owner) => NextPlace::There(owner),
            // An opening packet has no older session, and later fragments would be misled by a
            // first one that moves on.
            Search::New if self.is_new(parsed) => NextPlace::Here(None),
            Search::New => NextPlace::Here(before.filter(elsewhere).map(|w| (w, Search::Before))),
            Search::Before => {
                NextPlace::Here(Some(owner).filter(elsewhere).map(|w| (w, Search::Done)))
            }
            Search::Done => NextPlace::Here(None),
        }
    }

    fn is_new(&self, parsed: &Parsed) -> bool {
        let opens = parsed.kind == Kind::Ports
            && parsed.protocol == protocol::TCP
            && parsed.flags & OPENS == tcp::flag::SYN;
        opens || parsed.datagram.is_some()
    }

    /// Handles a packet that cannot have a session because of its kind.
    fn untracked(&self, cx: &mut NodeCx<'_>, p: &mut PktMut<'_>, parsed: &Parsed) -> Verdict {
        let config = self.config.load(cx.guard());
        let t = Tuple::of(&parsed.key);
        if !self.is_for_others(cx, config, p, parsed) {
            return Verdict::CONTINUE;
        }
        let passes = match self.side(cx, parsed) {
            Direction::Out2In => config.forwarding && !config.addresses.contains(&t.dst.to_bits()),
            // A fragment follows the first one, which may have a mapping.
            side => {
                let on_output = side == Direction::Output;
                parsed.kind != Kind::Fragment && config.leaves_alone(&t, on_output)
            }
        };
        if passes {
            return Verdict::CONTINUE;
        }
        Verdict::drop(match parsed.kind {
            Kind::Fragment => self.outcomes.fragment,
            // An incomplete ICMP header has no type that could be supported.
            _ if parsed.protocol == protocol::ICMP => self.outcomes.bad_icmp_type,
            _ => self.outcomes.incomplete,
        })
    }

    /// Returns whether a packet is subject to translation: from inside to outside, or from outside
    /// and not for the router itself.
    fn is_for_others(
        &self,
        cx: &NodeCx<'_>,
        config: &Config,
        p: &PktMut<'_>,
        parsed: &Parsed,
    ) -> bool {
        // For an ICMP error, the key is about the packet that it quotes.
        let t = match parsed.kind {
            Kind::Error(_) => Tuple::of(&[packet::addresses(p.data()), 0]),
            _ => Tuple::of(&parsed.key),
        };
        let tables = self.tables.load(cx.guard());
        let route = |to: Ipv4Addr| tables.resolve(&self.dpos, p.rx_if(), to.to_bits());
        match self.side(cx, parsed) {
            Direction::Out2In => route(t.dst).kind != DpoKind::LOCAL,
            // A host that keeps its address gets what has no session as it is.
            Direction::Hairpin => {
                config.addresses.contains(&t.dst.to_bits()) && route(t.dst).kind != DpoKind::LOCAL
            }
            Direction::Output => {
                // The router's own packets are not translated.
                let own = p.may_have_flags() && p.flags().contains(Flags::LOCAL);
                !own && route(t.src).kind != DpoKind::LOCAL
            }
            Direction::In2Out | Direction::Both => {
                self.egress(cx, config, p, t.dst.to_bits()) != Egress::NotOutside
            }
        }
    }

    /// The egress of a packet from inside.
    fn egress(&self, cx: &NodeCx<'_>, config: &Config, p: &PktMut<'_>, to: u32) -> Egress {
        egress::find(self.tables.load(cx.guard()), &self.dpos, config, p.rx_if(), to)
    }

    /// Translates a packet of a session.
    fn translate(
        &mut self,
        cx: &mut NodeCx<'_>,
        nat: &mut Nat,
        p: &mut PktMut<'_>,
        parsed: &Parsed,
        found: Found,
        slow: bool,
    ) -> Verdict {
        let (flow, outside) = (found.flow(), found.by_second());
        let what = What::Protocol(parsed.protocol);
        self.counted = position(self.counts_as_outside(outside), slow, what);
        let partial =
            p.may_have_flags() && p.flags().contains(Flags::OFFLOAD) && p.meta().offload.needs_csum;
        let change = kernel::change(nat, found);
        let bytes = p.total_len() as u64;
        let l3 = p.data_mut();
        let marks = session::marks(nat.table.rest(flow));
        let hairpin = marks & session::HAIRPIN != 0 && !outside;
        let across = marks & if outside { session::ACROSS } else { session::VIA } != 0;
        // On output its route is known.
        let across = (across && self.direction != Direction::Output).then(|| {
            let (inside_key, outside_key) = nat.keys(flow);
            TableId(Tuple::of(if outside { &inside_key } else { &outside_key }).table)
        });
        let config = self.config.load(cx.guard());
        if marks & session::DIRECT != 0 {
            if !matches!(parsed.kind, Kind::Error(_)) {
                note(nat, found, parsed, false, bytes, config, self.now);
            }
            return self.passes(nat, p.rx_if(), parsed);
        }
        let before = packet::addresses(l3);
        if let Kind::Error(_) = parsed.kind {
            packet::rewrite_error(l3, parsed, &change, !outside);
        } else {
            if !packet::rewrite(l3, parsed, &change, partial) {
                return Verdict::drop(self.outcomes.fragment);
            }
            if config.mss != 0 && parsed.flags & tcp::flag::SYN != 0 {
                packet::clamp_mss(l3, parsed, config.mss, partial);
            }
            note(nat, found, parsed, marks & session::SLOW != 0, bytes, config, self.now);
        }
        if let Some(datagram) = parsed.datagram {
            // The source of an error may stay.
            let addresses = packet::addresses(p.data());
            let l3 = tuple::address_delta(before, addresses);
            let fate = Fate::Translated { addresses, l3, hairpin, across };
            self.remember(nat, p.rx_if(), datagram, fate);
        }
        if let Some(table) = across {
            p.set_aux(table.get());
        }
        self.goes_on(hairpin, across)
    }

    /// Handles a packet from inside without a session.
    fn first_inside(
        &mut self,
        cx: &mut NodeCx<'_>,
        nat: &mut Nat,
        p: &mut PktMut<'_>,
        parsed: &Parsed,
    ) -> Verdict {
        let config = self.config.load(cx.guard());
        let t = Tuple::of(&parsed.key);
        let dst = t.dst.to_bits();
        // Hairpinning: an inside host calls another one by external address. One that a mapping
        // leaves as it is, such as the router's own, is called like any other.
        let mapping = config.mappings.by_external(dst, t.dport, t.protocol);
        let is_identity = mapping.is_some_and(Mapping::is_identity);
        let is_external = config.addresses.contains(&dst) && !is_identity;
        let hairpin = mapping.filter(|_| is_external);
        let (outside, marks) = match (self.direction, hairpin) {
            // Answers come from the other host's table.
            (_, Some(mapping)) => (Outside::Mapping(mapping), session::HAIRPIN),
            // Other packets leave by an outside interface, or are for the router.
            (Direction::Hairpin, _) => return Verdict::CONTINUE,
            (Direction::In2Out | Direction::Both, _) => match self.egress(cx, config, p, dst) {
                Egress::NotOutside => return Verdict::CONTINUE,
                Egress::Denied => return Verdict::drop(self.outcomes.vrf_denied),
                Egress::Outside { table, via } => {
                    (Outside::Table(table.get()), if via { session::VIA } else { 0 })
                }
            },
            _ if !self.is_for_others(cx, config, p, parsed) => return Verdict::CONTINUE,
            _ => {
                let table = self.tables.load(cx.guard()).fib_id(p.tx_if());
                (Outside::Table(table.get()), 0)
            }
        };
        let beyond = matches!(outside, Outside::Table(table) if table > MAX_TABLE);
        let is_of_nobody = is_external && hairpin.is_none();
        if is_of_nobody && self.direction.may_be_from_inside() && has_expired(p.data()) {
            return self.ttl_expired(cx, p);
        }
        if beyond || is_of_nobody {
            // Its answers would meet no session: keys do not reach that table, or it would return
            // here without one.
            return Verdict::drop(self.outcomes.no_translation);
        }
        let on_output = self.direction == Direction::Output;
        if hairpin.is_none() && config.leaves_alone(&t, on_output) {
            return self.passes(nat, p.rx_if(), parsed);
        }
        let own = config.mappings.of_host(t.src.to_bits(), t.sport, t.protocol, TableId(t.table));
        if hairpin.is_some() && own.is_some_and(Mapping::is_identity) {
            // Its source stays as it is: the other host's session is the only one, and has the same
            // key.
            if let Some(datagram) = parsed.datagram {
                let addresses = packet::addresses(p.data());
                let l3 = tuple::address_delta(addresses, addresses);
                let fate = Fate::Translated { addresses, l3, hairpin: true, across: None };
                self.remember(nat, p.rx_if(), datagram, fate);
            }
            return self.goes_on(true, None);
        }
        if let Some(why) = self.cannot_open(p, parsed, own) {
            return Verdict::drop(why);
        }
        match nat.open(config, &t, outside, marks, self.now) {
            Ok(flow) => self.opened(cx, nat, p, parsed, flow),
            Err(refusal) => self.refused(cx, p, refusal, (t.src, t.table)),
        }
    }

    /// Translates the packet that has opened a session.
    fn opened(
        &mut self,
        cx: &mut NodeCx<'_>,
        nat: &mut Nat,
        p: &mut PktMut<'_>,
        parsed: &Parsed,
        flow: FlowId,
    ) -> Verdict {
        let Some(found) = nat.find(&parsed.key, self.now) else {
            return Verdict::drop(self.outcomes.tuple_in_use);
        };
        if self.opened.len() < FRAME_SIZE {
            self.opened.push(flow);
        }
        self.translate(cx, nat, p, parsed, found, true)
    }

    /// Returns the reason why a packet cannot open a session. A mapping of a whole address needs no
    /// question before an answer: nothing else is behind that address.
    fn cannot_open(
        &self,
        p: &PktMut<'_>,
        parsed: &Parsed,
        mapping: Option<&Mapping>,
    ) -> Option<ErrorCode> {
        let kind = p.data().get(parsed.l4).copied().unwrap_or(0);
        let whole = mapping.is_some_and(Mapping::is_address_only);
        match parsed.kind {
            Kind::Error(_) => Some(self.outcomes.no_translation),
            Kind::Query if !packet::asks(kind) && !whole => Some(self.outcomes.no_translation),
            Kind::Ports if parsed.protocol == protocol::TCP => {
                (parsed.flags & OPENS != tcp::flag::SYN).then_some(self.outcomes.non_syn)
            }
            _ => None,
        }
    }

    #[cold]
    fn refused(
        &mut self,
        cx: &mut NodeCx<'_>,
        p: &mut PktMut<'_>,
        refusal: Refusal,
        host: (Ipv4Addr, u32),
    ) -> Verdict {
        let outcomes = self.outcomes;
        let (reason, cause) = match refusal {
            Refusal::NoPort => (outcomes.out_of_ports, Cause::HOST_UNREACHABLE),
            Refusal::Full => (outcomes.max_sessions, Cause::HOST_UNREACHABLE),
            Refusal::Taken => (outcomes.tuple_in_use, Cause::HOST_UNREACHABLE),
            Refusal::HostLimit => (outcomes.user_limit, Cause::HOST_UNREACHABLE),
            Refusal::TableLimit => (outcomes.vrf_limit, Cause::HOST_UNREACHABLE),
        };
        self.alarm.raise(cx, refusal, host);
        icmp::request_error(cx, p, cause, reason, outcomes.icmp_error)
    }

    /// Handles a packet from outside without a session.
    fn first_outside(
        &mut self,
        cx: &mut NodeCx<'_>,
        nat: &mut Nat,
        p: &mut PktMut<'_>,
        parsed: &Parsed,
    ) -> Verdict {
        let config = self.config.load(cx.guard());
        let t = Tuple::of(&parsed.key);
        let dst = t.dst.to_bits();
        if let Some(m) = config.mappings.by_external(dst, t.dport, t.protocol) {
            if let Some(why) = self.cannot_open(p, parsed, Some(m)) {
                return Verdict::drop(why);
            }
            // An inside host that keeps its address is answered at that.
            let own = config.mappings.by_external(t.src.to_bits(), t.sport, t.protocol);
            let inside = config.addresses.contains(&t.src.to_bits())
                && !own.is_some_and(Mapping::is_identity);
            let mut marks = if inside { session::HAIRPIN } else { 0 };
            if !inside && self.needs_outside_table(cx, &t, m) {
                marks |= session::VIA;
            }
            return match nat.open_mapped(config, &t, m, marks, self.now) {
                Ok(flow) => self.opened(cx, nat, p, parsed, flow),
                Err(refusal) => {
                    let target = m.target(t.src, t.sport, t.dport);
                    let host = target.map_or((t.dst, t.table), |(host, _, table)| (host, table));
                    self.refused(cx, p, refusal, host)
                }
            };
        }
        // With both roles and translation on output, it may be from inside as well.
        let both = self.direction == Direction::Out2In && config.role(p.rx_if()) & INSIDE != 0;
        if both || !self.is_for_others(cx, config, p, parsed) {
            return Verdict::CONTINUE;
        }
        if config.forwarding && !config.addresses.contains(&dst) {
            return self.straight(cx, nat, p, parsed);
        }
        Verdict::drop(self.outcomes.no_translation)
    }
}

impl Translator {
    /// Returns whether replies of an inside host have to be looked up in the outside table, because
    /// its own has no route.
    fn needs_outside_table(&self, cx: &NodeCx<'_>, t: &Tuple, m: &Mapping) -> bool {
        let tables = self.tables.load(cx.guard());
        let table = m.target(t.src, t.sport, t.dport).map_or(t.table, |(.., table)| table);
        table != t.table
            && tables.resolve_in(&self.dpos, TableId(table), t.src.to_bits()).kind == DpoKind::MISS
    }
}

/// Counts a packet, updates the TCP state, and restarts the timeout.
#[inline]
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
