//! Packets held on a worker until their neighbour is resolved.
//!
//! The newest few packets per neighbour are kept, since the sender still waits for the latest (RFC
//! 1122 section 2.3.2.2; RFC 4861 section 7.2.2). Neighbours, packets per neighbour and packets in
//! all are limited. Anyone may send packets to hosts that are not there (RFC 6583 section 7): new
//! neighbours take the places of those on the interface that has most, the oldest first, if these
//! are of another interface or have been silent for a moment. Each neighbour waited for was
//! announced to the main thread, which replies to every announcement, so no packet is held for
//! longer than resolution takes: three seconds.

use crate::awaited::Awaited;
use crate::messages::{Asked, EndSilences, Gone, ResolveReply, ResolveRequest, Topics};
use std::any::Any;
use std::collections::HashMap;
use std::fmt::Write;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use thalweg_buffer::{Frame, IcmpCause, LOCAL_IF, Packet, PktMut};
use thalweg_device::SwIfIndex;
use thalweg_fib::{Dpo, DpoTable, Kind};
use thalweg_graph::clock;
use thalweg_graph::{BuildCx, ErrorCode, Event, Node, NodeCx, Topic, Verdict};
use thalweg_tables::limit::RateLimit;

/// Packets held per neighbour; a newer one replaces the oldest. A traceroute starts with 16 at
/// once, as do a few connections opened together.
pub const PER_NEIGHBOR: usize = 32;
/// Packets held per worker and node.
pub const PER_WORKER: usize = 256;
/// Neighbours per worker and node that are pending or known not to answer.
pub const NEIGHBORS: usize = 1024;

/// Next nodes, drop reasons and counters of a node that holds packets.
#[derive(Clone, Copy)]
pub struct Exits {
    /// Next node for packets of a resolved neighbour.
    pub release: Verdict,
    /// Next node for packets answered with an ICMP error.
    pub unreachable: Verdict,
    /// Type and code of that error.
    pub cause: IcmpCause,
    /// The neighbour did not answer.
    pub unresolved: ErrorCode,
    /// A newer packet took its place, or too many packets are held.
    pub overflow: ErrorCode,
    /// The number of pending neighbours is at its limit.
    pub crowded: ErrorCode,
    /// The main thread does not take more requests.
    pub busy: ErrorCode,
    /// Counter of packets held.
    pub held: ErrorCode,
}

#[derive(Default)]
struct Pending {
    /// Tick count until which no reply is expected; 0 while one is.
    dead_until: u64,
    /// Tick count of the last request.
    asked: u64,
    /// Tick count of when it was announced first.
    since: u64,
    held: [Option<Packet>; PER_NEIGHBOR],
    /// Slot of the next packet: after the newest, at the oldest.
    next: usize,
}

/// Packets held by one node.
pub struct Hold {
    exits: Exits,
    dpos: Arc<DpoTable>,
    topic: Topic,
    pending: HashMap<ResolveRequest, Pending>,
    packets: usize,
    /// Tick count of the last purge.
    purged: u64,
    throttle: Arc<Throttle>,
    awaited: Arc<Awaited>,
    /// Limit of the requests that packets repeat.
    repeats: RateLimit,
    /// Time when no place was last found to give up for an interface.
    looked: Box<[u64; COUNTS]>,
    /// Room to look for the oldest places.
    oldest: Vec<(bool, u64, ResolveRequest)>,
}

/// Counts of places, by interface: those of some interfaces are added up.
const COUNTS: usize = 256;
/// Time that a neighbour keeps its place from others of its interface: a host that is there answers
/// sooner.
const PATIENCE: Duration = Duration::from_millis(400);

/// Requests per second and worker that packets repeat, and at once.
const REPEATS: (u32, u32) = (1000, 100);

/// Least time between requests for one neighbour that packets make a worker repeat, as clients of
/// VPP's know it: one millisecond.
pub(crate) struct Throttle(pub(crate) AtomicU64);

impl Throttle {
    pub(crate) fn new() -> Throttle {
        Throttle(AtomicU64::new(clock::ticks_in(Duration::from_millis(1))))
    }
}

impl Hold {
    /// Makes room for packets, in the node's `build` function.
    pub fn new(cx: &BuildCx<'_>, exits: Exits) -> Hold {
        // Allocated up front: nothing is allocated while packets flow.
        let pending = HashMap::with_capacity(NEIGHBORS * 2);
        let topic = cx.shared::<Topics>().requests;
        let limit = |(rate, burst)| RateLimit::steady(rate, burst, clock::hz() as u64);
        let (repeats, looked) = (limit(REPEATS), Box::new([0; COUNTS]));
        let (dpos, throttle, awaited) = (cx.shared(), cx.shared(), cx.shared());
        let oldest = Vec::with_capacity(NEIGHBORS + 1);
        Hold {
            exits,
            dpos,
            topic,
            pending,
            packets: 0,
            purged: 0,
            throttle,
            awaited,
            repeats,
            looked,
            oldest,
        }
    }

    /// Keeps a packet until a host is resolved. `ask` sends a request: the first, if none is under
    /// way yet, and others as packets come, no faster than one per millisecond.
    #[inline]
    pub fn keep_for_host(
        &mut self,
        cx: &mut NodeCx<'_>,
        p: PktMut<'_>,
        (sw_if, ip): (SwIfIndex, IpAddr),
        ask: impl FnMut(&mut NodeCx<'_>),
    ) -> Verdict {
        self.keep(cx, p, ResolveRequest { sw_if, ip, dpo: None }, ask)
    }

    /// Keeps a packet until an adjacency's neighbour is resolved. The main thread sends the first
    /// request; `ask` sends others, as for a host.
    #[inline]
    pub fn keep_for_adjacency(
        &mut self,
        cx: &mut NodeCx<'_>,
        p: PktMut<'_>,
        (sw_if, ip): (SwIfIndex, IpAddr),
        dpo: Dpo,
        ask: impl FnMut(&mut NodeCx<'_>),
    ) -> Verdict {
        let dpo = Some(self.dpos.park(dpo));
        self.keep(cx, p, ResolveRequest { sw_if, ip, dpo }, ask)
    }

    fn keep(
        &mut self,
        cx: &mut NodeCx<'_>,
        mut p: PktMut<'_>,
        request: ResolveRequest,
        mut ask: impl FnMut(&mut NodeCx<'_>),
    ) -> Verdict {
        let (topic, now, awaited) = (self.topic, cx.now(), self.awaited.clone());
        let mut ask = |cx: &mut NodeCx<'_>| {
            awaited.note(request.sw_if, request.ip, now);
            ask(cx);
        };
        if let Some(e) = self.pending.get_mut(&request)
            && (e.dead_until == 0 || e.dead_until > now)
            && now.saturating_sub(e.asked) >= self.throttle.0.load(Ordering::Relaxed)
            && self.repeats.allow(now)
        {
            e.asked = now;
            ask(cx);
        }
        let mut announce = |cx: &mut NodeCx<'_>| {
            let asked = Asked { request, node: cx.node() };
            let taken = cx.event(Event::new(topic, request.sw_if, now, &asked.encode()));
            if taken && request.dpo.is_none() {
                ask(cx);
            }
            taken
        };
        match self.pending.get_mut(&request) {
            Some(e) if e.dead_until > now => {
                if p.tx_if() == LOCAL_IF {
                    p.set_tx_if(request.sw_if);
                }
                p.set_aux(cx.error_id(self.exits.unresolved));
                p.meta_mut().icmp = self.exits.cause;
                return self.exits.unreachable;
            }
            Some(e) if e.dead_until > 0 => {
                if !announce(cx) {
                    return Verdict::drop(self.exits.busy);
                }
                (e.dead_until, e.asked) = (0, now);
            }
            Some(_) => {}
            None => {
                let has_room = self.pending.len() < NEIGHBORS
                    || self.purge(now)
                    || self.give_up_oldest(cx, request.sw_if, |_| 1);
                if !has_room {
                    return Verdict::drop(self.exits.crowded);
                }
                if !announce(cx) {
                    return Verdict::drop(self.exits.busy);
                }
                let new = Pending { asked: now, since: now, ..Pending::default() };
                self.pending.insert(request, new);
            }
        }
        let holds = |e: &Pending| e.held.iter().any(Option::is_some);
        if self.packets >= PER_WORKER && !self.pending.get(&request).is_some_and(holds) {
            self.give_up_oldest(cx, request.sw_if, |e| e.held.iter().flatten().count());
        }
        let full = self.packets >= PER_WORKER;
        let Some(e) = self.pending.get_mut(&request) else {
            return Verdict::drop(self.exits.crowded);
        };
        let oldest = (0..PER_NEIGHBOR).map(|i| (e.next + i) % PER_NEIGHBOR);
        let mut oldest = oldest.filter(|i| e.held[*i].is_some());
        let displaced = match oldest.next() {
            // If the ring is full, the oldest is at `next`.
            Some(i) if full || i == e.next => e.held[i].take(),
            None if full => return Verdict::drop(self.exits.overflow),
            _ => None,
        };
        let (packet, kept) = cx.take(p);
        e.held[e.next] = Some(packet);
        e.next = (e.next + 1) % PER_NEIGHBOR;
        cx.count(self.exits.held, 1);
        match displaced {
            Some(old) => cx.send(old, Verdict::drop(self.exits.overflow)),
            None => self.packets += 1,
        }
        kept
    }

    /// Takes a message to the node: the main thread's replies release or drop the held packets.
    pub fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        match message.downcast::<ResolveReply>() {
            Ok(reply) => self.reply(cx, *reply),
            Err(other) => match other.downcast::<EndSilences>() {
                Ok(which) => self.end_silences(*which),
                Err(other) => {
                    if let Ok(gone) = other.downcast::<Gone>() {
                        self.drop_of(cx, gone.0);
                    }
                }
            },
        }
    }

    /// Drops held packets that came from an interface that is deleted: another one may have its
    /// index before they go on.
    fn drop_of(&mut self, cx: &mut NodeCx<'_>, gone: SwIfIndex) {
        if self.packets == 0 {
            return;
        }
        let slots = self.pending.values_mut().flat_map(|e| &mut e.held);
        for packet in slots.filter_map(|slot| slot.take_if(|packet| packet.rx_if() == gone)) {
            self.packets -= 1;
            cx.send(packet, Verdict::drop(self.exits.unresolved));
        }
    }

    fn end_silences(&mut self, which: EndSilences) {
        let meant = |request: &ResolveRequest| {
            which.sw_if.is_none_or(|i| i == request.sw_if)
                && which.ip.is_none_or(|ip| ip == request.ip)
        };
        // Nothing is held for them.
        self.pending.retain(|request, e| e.dead_until == 0 || !meant(request));
    }

    fn reply(&mut self, cx: &mut NodeCx<'_>, reply: ResolveReply) {
        let (ResolveReply::Release { request, .. } | ResolveReply::Fail { request, .. }) = reply;
        let Some(mut e) = self.pending.remove(&request) else { return };
        for i in 0..PER_NEIGHBOR {
            let Some(mut packet) = e.held[(e.next + i) % PER_NEIGHBOR].take() else { continue };
            self.packets -= 1;
            match reply {
                ResolveReply::Release { dpo, .. } => {
                    // "No route" if it was deleted while the reply was on its way.
                    packet.set_aux(self.dpos.unpark(dpo).get());
                    cx.send(packet, self.exits.release);
                }
                ResolveReply::Fail { until, .. } if until > cx.now() => {
                    if packet.tx_if() == LOCAL_IF {
                        packet.set_tx_if(request.sw_if);
                    }
                    packet.set_aux(cx.error_id(self.exits.unresolved));
                    packet.meta_mut().icmp = self.exits.cause;
                    cx.send(packet, self.exits.unreachable);
                }
                // No request went unanswered: the interface went down, or an operator flushed the
                // table.
                ResolveReply::Fail { .. } => cx.send(packet, Verdict::drop(self.exits.unresolved)),
            }
        }
        match reply {
            ResolveReply::Fail { until, .. } if until > cx.now() => {
                self.pending.insert(request, Pending { dead_until: until, ..e });
            }
            _ => {}
        }
    }

    /// Gives up the oldest neighbours of the interface with most, by weight, and the packets held
    /// for them, for one on `sw_if`; those that do not answer go first. If that is the same
    /// interface, only those that have been silent for a moment. The main thread goes on resolving
    /// them. Several at once, as it looks at all, and a hundred times a second if it finds none.
    /// Returns whether there were any.
    #[cold]
    fn give_up_oldest(
        &mut self,
        cx: &mut NodeCx<'_>,
        sw_if: SwIfIndex,
        weigh: impl Fn(&Pending) -> usize,
    ) -> bool {
        let place = |sw_if: SwIfIndex| sw_if.get() as usize % COUNTS;
        let (now, own) = (cx.now(), place(sw_if));
        if now.wrapping_sub(self.looked[own]) < clock::hz() as u64 / 100 {
            return false;
        }
        let mut counts = [0; COUNTS];
        for (request, e) in &self.pending {
            counts[place(request.sw_if)] += weigh(e);
        }
        let most = (0..COUNTS).max_by_key(|at| counts[*at]).unwrap_or(own);
        let most = if counts[most] > counts[own] { most } else { own };
        let silent = now.saturating_sub(clock::ticks_in(PATIENCE));
        let of_it = self.pending.iter().filter(|(request, e)| {
            place(request.sw_if) == most
                && weigh(e) > 0
                && (most != own || e.dead_until > 0 || e.since <= silent)
        });
        self.oldest.clear();
        self.oldest.extend(of_it.map(|(request, e)| (e.dead_until == 0, e.since, *request)));
        let some = self.oldest.len().div_ceil(16);
        if some < self.oldest.len() {
            self.oldest.select_nth_unstable_by_key(some, |(waits, since, _)| (*waits, *since));
        }
        for (.., request) in &self.oldest[..some] {
            let Some(e) = self.pending.remove(request) else { continue };
            for packet in e.held.into_iter().flatten() {
                self.packets -= 1;
                cx.send(packet, Verdict::drop(self.exits.overflow));
            }
        }
        if some == 0 {
            self.looked[own] = now;
        }
        some > 0
    }

    /// Removes neighbours whose silence is over; returns whether that made room. Runs at most a
    /// hundred times a second, whatever arrives.
    fn purge(&mut self, now: u64) -> bool {
        if now.wrapping_sub(self.purged) < clock::hz() as u64 / 100 {
            return false;
        }
        self.purged = now;
        self.pending.retain(|_, e| e.dead_until == 0 || e.dead_until > now);
        self.pending.len() < NEIGHBORS
    }
}

/// A node that holds packets of one link type for adjacencies whose neighbour is not resolved:
/// `aux` is the adjacency. The main thread, which knows its neighbour, sends the requests: the
/// first as soon as it learns of the first packet.
pub struct IncompleteNode {
    dpos: Arc<DpoTable>,
    hold: Hold,
    gone: ErrorCode,
    describe: fn(&[u8], &mut dyn Write, usize) -> std::fmt::Result,
    ask: Ask,
}

/// Sends a request for a neighbour by an interface.
type Ask = Box<dyn Fn(&mut NodeCx<'_>, SwIfIndex, IpAddr) + Send>;

impl IncompleteNode {
    /// Makes the node, in its `build` function. `gone`: the adjacency was deleted or is down.
    /// `describe` is for traces.
    pub fn new(
        cx: &BuildCx<'_>,
        exits: Exits,
        gone: ErrorCode,
        describe: fn(&[u8], &mut dyn Write, usize) -> std::fmt::Result,
    ) -> IncompleteNode {
        let (hold, ask) = (Hold::new(cx, exits), Box::new(|_: &mut NodeCx<'_>, _, _| {}));
        IncompleteNode { dpos: cx.shared(), hold, gone, describe, ask }
    }

    /// Makes the node itself repeat requests as packets come.
    #[must_use]
    pub fn asking(
        self,
        ask: impl Fn(&mut NodeCx<'_>, SwIfIndex, IpAddr) + Send + 'static,
    ) -> IncompleteNode {
        IncompleteNode { ask: Box::new(ask), ..self }
    }
}

impl Node for IncompleteNode {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let dpo = p.aux();
        let entry = self.dpos.get(Dpo(dpo));
        let state = entry.state();
        match state.kind {
            Kind::INCOMPLETE => match entry.next_hop() {
                Some(ip) => {
                    let (ask, key) = (&self.ask, (state.tx_if(), ip));
                    let ask = |cx: &mut NodeCx<'_>| ask(cx, key.0, key.1);
                    self.hold.keep_for_adjacency(cx, p, key, Dpo(dpo), ask)
                }
                None => Verdict::drop(self.hold.exits.unresolved),
            },
            // The reply overtook the packet.
            Kind::REWRITE => self.hold.exits.release,
            _ => Verdict::drop(self.gone),
        }
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = writeln!(out, "dpo-idx {}", frame.aux()[i as usize]);
        let _ = (self.describe)(frame.data(i), out, 0);
    }

    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        self.hold.message(cx, message);
    }
}
