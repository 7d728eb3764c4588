//! `flow-rules`: applies rules in Open vSwitch's syntax, and tracks connections for them.
//!
//! Reads: rx and tx interface, the Ethernet frame. Next: along the arc (`normal`), the output node
//! of another interface (for some sub-interfaces `l2-output` or `l2-efp-filter`, for a BVI
//! `bvi-input`), another worker (whose `flow-rules` owns the connection), or drop.
//!
//! The headers of a frame are read first, and its connections looked up together. The rules are
//! then applied packet by packet, in order, so that a packet sees the effects of the one before.
//! Most packets hit the megaflow cache (`megaflow.rs`).

use std::any::Any;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_device::SwIfIndex;

use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Flags, Frame, Iface, PktMut, Rows};
use thalweg_conntrack::batch::Kind;
use thalweg_conntrack::{Checks, IPV4, IPV6, Millis, Parts, State, Tracked, Tracker, Tuple};
use thalweg_feat_l2::L2Table;
use thalweg_graph::{
    Built, FeatureDecl, FrameVerdict, HandOff, Node, NodeCx, NodeDecl, PerWorker, Stage, Verdict,
    clock,
};
use thalweg_tables::hash::random_seed;
use thalweg_tables::random::Random;
use thalweg_tables::snapshot::Snapshot;

use crate::QUEUE;
use crate::ct::{Families, Family, Parted};
use crate::expiry::{CHUNK, ExpiryBudget, STEPS};
use crate::fragments::Part;
use crate::megaflow::{First, Known, MegaflowCache};
use crate::outputs::Outputs;
use crate::rewrite;
use crate::rule::classifier::Cache;
use crate::rule::key::{self, WORDS, Words};
use crate::spread::{Place, Spread};
use crate::tables::{Compilation, Published, Step, Tallies};

thalweg_graph::errors! {
    TABLE_MISS: Error, ACL, "flow: table miss";
    DROPPED_BY_RULE: Error, ACL, "flow: dropped by a rule";
    TOO_MANY_RESUBMITS: Error, ACL, "flow: too many resubmits";
    NO_TAG_ROOM: Error, ACL, "flow: no room for another VLAN tag";
    TOO_MANY_TAGS: Error, ACL, "flow: more VLAN tags than rules see through";
    FRAGMENT_TIMEOUT: Error, UNKNOWN_L4, "flow: timeout waiting for the first fragment";
    TTL_EXPIRED: Error, TTL_EXCEEDED, "flow: TTL expired";
    NO_BUFFERS: Warning, NO_BUFFER_SPACE, "flow: no buffers for copies";
    TOO_MANY_FRAGMENTS: Error, NO_BUFFER_SPACE, "flow: too many fragments waiting for the first";
    NO_TRANSLATION: Error, ACL, "flow: no translation";
    COPIED_TOO_OFTEN: Warning, TTL_EXCEEDED, "flow: copies of copies: outputs lead back to the rules";
    INTERFACE_DELETED: Error, DEV_READY, "flow: interface of a waiting fragment is deleted";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "flow-rules",
    errors: ERRORS,
    feature: Some(FeatureDecl::on("device-input").at(Stage::FrameTranslation)),
    build: |cx| {
        Built::node(FlowRules {
            snapshot: cx.shared(),
            tallies: cx.shared(),
            hand_off: cx.hand_off(QUEUE),
            tracker: cx.control.per_worker(),
            engine: Engine::new(cx.shared(), cx.worker, cx.control.config().workers.len()),
        })
    },
    ..NodeDecl::DEFAULT
};

/// A function that the main thread has the node run.
pub(crate) type Order = Box<dyn FnOnce(&mut Engine) + Send>;

/// A message from the main thread to a worker: this interface is deleted.
pub(crate) struct Gone(pub(crate) SwIfIndex);

/// Maximum number of look-ups per packet, in all tables.
pub(crate) const MAX_LOOKUPS: usize = 64;

struct FlowRules {
    snapshot: Arc<Snapshot<Published>>,
    tallies: Arc<Tallies>,
    hand_off: HandOff,
    /// Tracker between frames, for other nodes.
    tracker: PerWorker<Tracker>,
    engine: Engine,
}

/// The rule and tracking state shown in a trace.
#[derive(Clone, Copy, Default)]
pub(crate) struct Note {
    pub(crate) slot: Option<u32>,
    pub(crate) state: State,
}

/// The state of a worker.
pub(crate) struct Engine {
    /// Connections that it owns.
    pub(crate) place: Place,
    /// Created when rules are first in use; here while the node runs.
    pub(crate) tracker: Option<Box<Tracker>>,
    /// True if checksums are verified that the device has not verified.
    pub(crate) verify: bool,
    pub(crate) v4: Family<IPV4>,
    pub(crate) v6: Family<IPV6>,
    /// The zone of their batches.
    pub(crate) zone: u16,
    /// True if any packet of the frame is a fragment that may be tracked.
    has_fragments: bool,
    /// Set if a packet of the frame may have more tags than rules see through.
    deep: bool,
    pub(crate) words: Box<[Words; 256]>,
    pub(crate) cache: Cache,
    pub(crate) megaflows: MegaflowCache,
    pub(crate) notes: Box<[Note; 256]>,
    /// Time of the current loop.
    pub(crate) now: Millis,
    /// True if expired connections are left.
    expiry_pending: bool,
    budget: ExpiryBudget,
    /// Tracking result of the current packet, its zone, and the words of its key.
    pub(crate) tracked: Option<(u16, usize, Tracked)>,
    /// The tuple under which the current packet was tracked last.
    pub(crate) tuple: Option<Tuple>,
    /// The tuple of its connection's first packet, for rules that look at it.
    pub(crate) original: Option<Tuple>,
    /// True if fields of the current packet differ from those read.
    pub(crate) rewritten: bool,
    /// Part that the current packet is of its datagram.
    pub(crate) part: Part,
    /// The in_port for the next look-up, if not the packet's own.
    port: Option<SwIfIndex>,
    /// Salt for choosing the translation of connections.
    pub(crate) salt: u64,
    pub(crate) random: Random,
    lookups: usize,
    /// Ports of layer 2.
    l2: Arc<Snapshot<L2Table>>,
}

/// A packet on its path through the tables.
pub(crate) struct Walk<'a> {
    published: &'a Published,
    pub(crate) set: &'a Compilation,
    tallies: &'a Tallies,
    bytes: u64,
    pub(crate) i: usize,
}

/// The table to continue in, and the tracking result.
pub(crate) struct Next {
    pub(crate) table: u8,
    pub(crate) state: State,
    pub(crate) zone: u16,
    pub(crate) mark: u32,
    pub(crate) label: u128,
}

impl Next {
    #[inline]
    fn show(&self, set: &Compilation, original: &Option<Tuple>, words: &mut Words) {
        if set.originals {
            key::set_original(words, original.as_ref());
        }
        key::set_tracked(words, self.state, self.zone, self.mark, self.label);
    }
}

pub(crate) fn millis(ticks: u64) -> Millis {
    (ticks as f64 * 1000.0 / clock::hz()) as u64 as Millis
}

impl Engine {
    fn new(l2: Arc<Snapshot<L2Table>>, worker: usize, workers: usize) -> Engine {
        Engine {
            l2,
            place: Place { worker, workers, spread: Spread::Tuple },
            tracker: None,
            verify: true,
            v4: Family::new(),
            v6: Family::new(),
            zone: 0,
            has_fragments: false,
            deep: false,
            words: Box::new([[0; WORDS]; 256]),
            cache: Cache::default(),
            megaflows: MegaflowCache::default(),
            notes: Box::new([Note::default(); 256]),
            now: 0,
            expiry_pending: false,
            budget: ExpiryBudget::default(),
            tracked: None,
            tuple: None,
            original: None,
            rewritten: false,
            part: Part::Whole,
            port: None,
            salt: random_seed(),
            random: Random::from_system(),
            lookups: 0,
        }
    }

    /// Reads the headers of a frame, and looks up its connections.
    fn read(&mut self, published: &Published, frame: &Frame) {
        self.v4.batch.clear();
        self.v6.batch.clear();
        (self.place.spread, self.deep) = (published.spread, false);
        let (mut tracks, mut tracks_ipv4) = (false, false);
        let of = |rx_if, tx_if| {
            let set = published.set(rx_if, tx_if);
            (rx_if, set.filter(|set| set.tracks), set.is_some_and(|set| set.wide))
        };
        let uniform = match (frame.rx(), frame.tx()) {
            (Iface::Uniform(rx_if), Iface::Uniform(tx_if)) => Some(of(rx_if, tx_if)),
            _ => None,
        };
        for i in 0..frame.len() {
            frame.prefetch_data(i + 8);
            let at = i as u8;
            let (rx_if, set, wide) =
                uniform.unwrap_or_else(|| of(frame.rx_if(at), frame.tx_if(at)));
            let data = frame.data(at);
            let l3 = key::read(rx_if.get(), data, frame.total_len(at), wide, &mut self.words[i]);
            if l3.is_none() {
                self.deep |= key::ends_in_tags(&self.words[i]);
            }
            let Some(set) = set else { continue };
            if !tracks {
                (tracks, self.zone) = (true, set.zone);
            }
            let Some((l3_at, ipv6)) = l3 else { continue };
            let Some(l3) = data.get(l3_at..) else { continue };
            let offloaded = frame.flags().contains(Flags::OFFLOAD)
                && frame.meta(at).flags().contains(Flags::OFFLOAD);
            let verify = self.verify && !offloaded;
            let checks = Checks { network: self.verify, transport: verify };
            let bytes = frame.total_len(at) - l3_at;
            if !ipv6 {
                tracks_ipv4 = true;
                self.v4.batch.pad(i);
                self.v4.batch.add_ipv4(self.zone, l3, bytes, checks);
            } else if set.tracks_ipv6 {
                self.v6.batch.pad(i);
                self.v6.batch.add_ipv6(self.zone, l3, bytes, checks);
            }
        }
        if tracks {
            self.v4.batch.pad(frame.len());
        }
        self.has_fragments = self.v4.batch.has_fragments() | self.v6.batch.has_fragments();
        if let Some(tracker) = self.tracker.as_ref().filter(|_| tracks) {
            if tracks_ipv4 {
                tracker.look_up(&mut self.v4.batch);
            }
            if !self.v6.batch.is_empty() {
                tracker.look_up(&mut self.v6.batch);
            }
        }
    }

    /// Returns whether packet `i` of the frame is of IPv6, and may be tracked.
    #[inline]
    pub(crate) fn is_of_ipv6(&self, i: usize) -> bool {
        self.v6.batch.headers(i).is_some_and(|headers| headers.kind != Kind::Invalid)
    }

    /// Looks a packet up in a table and applies the rule, up to the end of the path.
    fn table(
        &mut self,
        cx: &mut NodeCx<'_>,
        walk: &Walk<'_>,
        mut number: u8,
        words: &mut Words,
        out: &mut Outputs<'_>,
    ) {
        let mut tracked: Words;
        let mut words = words;
        while let Some(next) = self.follow(cx, walk, number, words, out) {
            number = next.table;
            let before = *words;
            tracked = before;
            words = &mut tracked;
            next.show(walk.set, &self.original, words);
        }
    }

    /// Looks a packet up in a table and applies the rule. Returns the next table if the last step
    /// is a `ct` with one.
    #[inline]
    fn follow(
        &mut self,
        cx: &mut NodeCx<'_>,
        walk: &Walk<'_>,
        number: u8,
        words: &mut Words,
        out: &mut Outputs<'_>,
    ) -> Option<Next> {
        self.lookups += 1;
        let port = self.port.take();
        if self.lookups > MAX_LOOKUPS {
            out.why = TOO_MANY_RESUBMITS;
            return None;
        }
        let set = walk.set;
        out.why = TABLE_MISS;
        let table = set.table(number)?;
        let rules = set.generation + u64::from(number);
        let rule = match port {
            None => self.cache.find(&table.classifier, rules, words, self.lookups)?,
            // Only the look-up sees the other in_port.
            Some(port) => {
                let mut seen = *words;
                key::IN_PORT.set(&mut seen, port.0.into());
                self.cache.find(&table.classifier, rules, &seen, self.lookups)?
            }
        };
        let rule = table.rule(rule)?;
        walk.tallies.0[self.place.worker].add(rule.slot, walk.bytes);
        self.notes[walk.i].slot = Some(rule.slot);
        out.why = DROPPED_BY_RULE;
        let (last, others) = rule.steps.split_last()?;
        for step in others {
            let next = self.step(cx, walk, step, words, out);
            if out.is_refused() {
                return next;
            }
            if let Some(next) = next {
                // Later steps of this rule do not see the tracking result.
                let mut words = *words;
                next.show(set, &self.original, &mut words);
                self.table(cx, walk, next.table, &mut words, out);
            }
        }
        self.step(cx, walk, last, words, out)
    }

    /// Applies a step of a rule. Returns the next table of a `ct`.
    #[inline]
    fn step(
        &mut self,
        cx: &mut NodeCx<'_>,
        walk: &Walk<'_>,
        step: &Step,
        words: &mut Words,
        out: &mut Outputs<'_>,
    ) -> Option<Next> {
        match step {
            Step::Normal => out.send(cx, Verdict::CONTINUE),
            Step::Ct(ct) => return self.ct(cx, walk, ct, words, out),
            Step::Output(port) => out.send_by(cx, (walk.published, &self.l2), *port),
            Step::InPort => {
                if let Some(port) = walk.published.port(out.rx_if()) {
                    out.send_by(cx, (walk.published, &self.l2), port);
                }
            }
            Step::Resubmit(table, port) => {
                self.port = *port;
                self.table(cx, walk, *table, words, out);
            }
            Step::CtClear => {
                if walk.set.originals {
                    key::set_original(words, None);
                }
                key::set_tracked(words, State::NONE, 0, 0, 0);
            }
            other => self.change(cx, other, words, out),
        }
        None
    }

    /// Applies a step that changes the packet.
    fn change(
        &mut self,
        cx: &mut NodeCx<'_>,
        step: &Step,
        words: &mut Words,
        out: &mut Outputs<'_>,
    ) {
        match step {
            Step::SetSource(mac) => {
                out.change(cx, |data| data.get_mut(6..12).map(|b| b.copy_from_slice(mac)));
                key::DL_SRC.set(words, key::mac_bits(mac));
            }
            Step::SetDestination(mac) => {
                out.change(cx, |data| data.get_mut(..6).map(|b| b.copy_from_slice(mac)));
                key::DL_DST.set(words, key::mac_bits(mac));
            }
            Step::SetTos(tos) => {
                let is_set = out.change(cx, |data| crate::outputs::set_tos(data, *tos, 0xfc));
                if is_set {
                    key::NW_DSCP.set(words, u64::from(*tos) >> 2);
                }
            }
            Step::SetEcn(ecn) => {
                let is_set = out.change(cx, |data| crate::outputs::set_tos(data, *ecn, 3));
                if is_set {
                    key::NW_ECN.set(words, (*ecn).into());
                }
            }
            Step::DecTtl => match key::NW_TTL.get(words) as u8 {
                0 | 1 => out.refuse(TTL_EXPIRED),
                ttl => self.change(cx, &Step::SetTtl(ttl - 1), words, out),
            },
            Step::SetBits(field, value, mask) => {
                let all = field.of(words) & !mask | value;
                if let Some(step) = crate::compile::step(&field.whole(all), 0, &|_: &str| None) {
                    self.change(cx, &step, words, out);
                }
            }
            Step::Set(source, end) => {
                let partial = out.is_partial();
                out.change(cx, |data| rewrite::set(data, *source, *end, partial));
                rewrite::note_end(words, *source, *end);
                self.rewritten = true;
            }
            Step::SetSome6(source, value, mask) => {
                let end = rewrite::some_of_6(words, *source, *value, *mask);
                self.change(cx, &Step::Set(*source, end), words, out);
            }
            Step::Tag(tag) => {
                let was = key::DL_TYPE.get(words);
                out.tag(cx, *tag, words);
                // The tracker has not read what was after the tag.
                self.rewritten |= key::DL_TYPE.get(words) != was;
            }
            Step::SetTtl(ttl) => {
                let is_set = out.change(cx, |data| crate::outputs::set_ttl(data, *ttl));
                if is_set {
                    key::NW_TTL.set(words, u64::from(*ttl));
                }
            }
            _ => {}
        }
    }

    /// Expires connections in up to `steps` steps of the loop that began at `begun`, and within the
    /// time budget: memory that is not in the cache is slow.
    fn expire(&mut self, begun: u64, steps: usize) {
        let Some(tracker) = self.tracker.as_deref_mut() else { return };
        let budget = &mut self.budget;
        let created = tracker.counts().created;
        if budget.begun != begun {
            budget.next(begun, created);
        }
        let (mut left, mut last) = (steps, clock::ticks());
        while left > 0 {
            let some = left.min(CHUNK);
            self.expiry_pending = tracker.expire(self.now, some);
            if !self.expiry_pending {
                return;
            }
            left -= some;
            let now = clock::ticks();
            if budget.spend(some, now - last) {
                return;
            }
            last = now;
        }
    }
}

/// Whole frames through the megaflow cache.
impl Engine {
    /// Applies the rules to a packet, step by step.
    #[inline]
    pub(crate) fn steps(&mut self, cx: &mut NodeCx<'_>, walk: &Walk<'_>, p: PktMut<'_>) -> Verdict {
        (self.tracked, self.lookups, self.rewritten) = (None, 0, false);
        let mut words = self.words[walk.i];
        let mut out = Outputs::new(p, TABLE_MISS);
        self.table(cx, walk, 0, &mut words, &mut out);
        out.verdict()
    }

    /// Applies the rest of the rules to a tracked packet, step by step.
    fn last_steps<const W: usize>(
        &mut self,
        cx: &mut NodeCx<'_>,
        walk: &Walk<'_>,
        p: PktMut<'_>,
        (table, tracked): (u8, Tracked),
    ) -> Verdict
    where
        Self: Families<W>,
        Tracker: Parts<W>,
    {
        let zone = walk.set.zone;
        (self.tracked, self.lookups, self.rewritten) = (Some((zone, W, tracked)), 1, false);
        let mut words = self.words[walk.i];
        if walk.set.originals {
            self.tuple = self.family().batch.tuple(walk.i);
        }
        let next = self.next::<W>(walk.set, table, zone, &tracked);
        next.show(walk.set, &self.original, &mut words);
        let mut out = Outputs::new(p, TABLE_MISS);
        self.table(cx, walk, table, &mut words, &mut out);
        out.verdict()
    }

    /// Applies the rules to a frame whose packets all match the megaflow `at`, except for `others`.
    ///
    /// `MIXED`: some packets may be of IPv6.
    fn follow_megaflows<const MIXED: bool>(
        &mut self,
        cx: &mut NodeCx<'_>,
        (mut walk, hand_off): (Walk<'_>, &HandOff),
        frame: &mut Frame,
        each: &mut [Verdict],
        (mut at, others): (usize, Rows),
    ) -> FrameVerdict {
        let tally = &walk.tallies.0[self.place.worker];
        // Learning an end can narrow the megaflow.
        let mut are_compared = true;
        let mut same = true;
        for i in 0..frame.len() {
            let row = i as u8;
            (walk.i, walk.bytes) = (i, frame.total_len(row) as u64);
            let owner = match walk.set.tracks {
                true => self.owner(hand_off, walk.set, i),
                false => None,
            };
            let matches = match are_compared {
                true => !others.contains(row),
                false => self.megaflows.get(at).matches(&self.words[i], walk.set.wide),
            };
            let megaflow = match matches {
                true => Some(at),
                false => {
                    are_compared = false;
                    self.megaflows.settle(at, tally);
                    self.megaflows.find(walk.set, &self.words[i])
                }
            };
            at = megaflow.unwrap_or(at);
            let verdict = match (owner, megaflow) {
                (Some(owner), _) => hand_off.to(owner),
                (None, Some(megaflow)) if MIXED && self.is_of_ipv6(i) => {
                    self.follow_megaflow::<IPV6>(cx, &walk, megaflow, frame, &mut are_compared)
                }
                (None, Some(megaflow)) => {
                    self.follow_megaflow::<IPV4>(cx, &walk, megaflow, frame, &mut are_compared)
                }
                (None, None) => self.steps(cx, &walk, frame.pkt(row)),
            };
            each[i] = verdict;
            same &= verdict == each[0];
        }
        self.megaflows.settle(at, tally);
        match same && !frame.has_holes() {
            true => FrameVerdict::Whole(each[0]),
            false => FrameVerdict::Each(Rows::NONE),
        }
    }

    #[inline]
    fn follow_megaflow<const W: usize>(
        &mut self,
        cx: &mut NodeCx<'_>,
        walk: &Walk<'_>,
        megaflow: usize,
        frame: &mut Frame,
        are_compared: &mut bool,
    ) -> Verdict
    where
        Self: Families<W>,
        Tracker: Parts<W>,
    {
        let now = self.now;
        let Parted { family, tracker, megaflows, words } = self.parted();
        let megaflow = megaflows.get(megaflow);
        let p = |frame| Frame::pkt(frame, walk.i as u8);
        let table = match (megaflow.first, tracker.is_some()) {
            (First::Track(table), true) => table,
            (First::End, _) => {
                let end = megaflow.only_end().map(|end| {
                    end.count(walk.bytes);
                    end.verdict
                });
                return end.unwrap_or(Verdict::drop(DROPPED_BY_RULE));
            }
            _ => return self.steps(cx, walk, p(frame)),
        };
        let Some(tracker) = tracker else { return Verdict::drop(DROPPED_BY_RULE) };
        let tracked = tracker.track(&mut family.batch, walk.i, now);
        megaflow.count(walk.bytes);
        if let Known::Nothing = megaflow.known(tracked.state) {
            megaflow.learn(walk.set, &words[walk.i], tracked.state, walk.set.zone);
            *are_compared = false;
        }
        let Known::End(end) = megaflow.known(tracked.state) else {
            return self.last_steps::<W>(cx, walk, p(frame), (table, tracked));
        };
        end.count(walk.bytes);
        if let Some(how) = &end.commit {
            tracker.commit(&family.batch, walk.i, tracked, how, now);
        }
        end.verdict
    }
}

impl FlowRules {
    /// Takes the tracker while the node runs.
    #[inline]
    fn take(&mut self, cx: &mut NodeCx<'_>) {
        self.engine.tracker = cx.take_local(self.tracker);
    }
}

impl Node for FlowRules {
    fn begin(&mut self, cx: &mut NodeCx<'_>, frame: &Frame) {
        self.take(cx);
        self.engine.now = millis(cx.now());
        // Two steps for each connection that may be created, and some to catch up.
        let more = if self.engine.expiry_pending { STEPS } else { 8 };
        self.engine.expire(cx.now(), 2 * frame.len() + more);
        self.engine.read(self.snapshot.load(cx.guard()), frame);
    }

    #[inline]
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let published = self.snapshot.load(cx.guard());
        let Some(set) = published.set(p.rx_if(), p.tx_if()) else { return Verdict::CONTINUE };
        let i = usize::from(p.index());
        let engine = &mut self.engine;
        engine.notes[i] = Note::default();
        if engine.deep && key::ends_in_tags(&engine.words[i]) {
            return Verdict::drop(TOO_MANY_TAGS);
        }
        if set.tracks && engine.place.spread == Spread::One && engine.place.worker != 0 {
            return self.hand_off.to(0);
        }
        let bytes = p.total_len() as u64;
        let walk = Walk { published, set, tallies: &self.tallies, bytes, i };
        if engine.has_fragments && set.tracks {
            return engine.with_fragments(cx, &walk, &self.hand_off, p);
        }
        if set.tracks
            && let Some(owner) = engine.owner(&self.hand_off, set, i)
        {
            return self.hand_off.to(owner);
        }
        engine.steps(cx, &walk, p)
    }

    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        cx: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        let FlowRules { snapshot, tallies, hand_off, engine, .. } = self;
        let published = snapshot.load(cx.guard());
        let Some(set) = published.common_set(frame) else { return FrameVerdict::PerPacket };
        if engine.has_fragments || engine.deep {
            return FrameVerdict::PerPacket;
        }
        let words = &engine.words[..frame.len()];
        let megaflow =
            if engine.megaflows.begin() { engine.megaflows.find(set, &words[0]) } else { None };
        let Some(megaflow) = megaflow else { return FrameVerdict::PerPacket };
        let others = engine.megaflows.get(megaflow).others(words, set.wide);
        let walk = Walk { published, set, tallies, bytes: 0, i: 0 };
        let (walk, at) = ((walk, &*hand_off), (megaflow, others));
        match engine.v6.batch.is_empty() {
            true => engine.follow_megaflows::<false>(cx, walk, frame, each, at),
            false => engine.follow_megaflows::<true>(cx, walk, frame, each, at),
        }
    }

    #[inline]
    fn end(&mut self, cx: &mut NodeCx<'_>) {
        if let Some(tracker) = self.engine.tracker.take() {
            cx.put_local(self.tracker, tracker);
        }
    }

    fn trace(&self, _cx: &NodeCx<'_>, _frame: &Frame, i: u8, out: &mut dyn Write) {
        let note = self.engine.notes[usize::from(i)];
        let _ = match note.slot {
            Some(slot) => writeln!(out, "flow-rules: rule {slot} ct_state {}", note.state),
            None => writeln!(out, "flow-rules: no rule"),
        };
    }

    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        self.engine.now = millis(clock::ticks());
        self.take(cx);
        match message.downcast::<Order>() {
            Ok(order) => order(&mut self.engine),
            Err(other) => match other.downcast::<Gone>() {
                Ok(gone) => self.engine.drop_of(cx, gone.0),
                Err(other) => cx.discard(other),
            },
        }
        self.end(cx);
        self.again(cx);
    }

    /// Expires connections in small steps, so that the next packets are hardly delayed.
    fn again(&mut self, cx: &mut NodeCx<'_>) {
        self.engine.now = millis(cx.now());
        self.take(cx);
        self.engine.expire(cx.now(), STEPS);
        self.end(cx);
        self.engine.drop_overdue(cx);
        if self.engine.expiry_pending {
            cx.ask_again();
        }
    }
}
