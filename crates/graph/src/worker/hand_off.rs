//! Handing frames to another worker.
//!
//! Some packets must be processed by one worker: the one that owns their connection. A *queue*
//! leads to a node, on any worker: each other worker has a node (`<queue>-wk1`) to which packets
//! for it are sent like to any other, so that they gather in frames. The node hands the frame over
//! by pointer through a bounded ring, one for each ordered pair of workers, which all queues share.
//! The other worker returns an empty frame for each that it takes, and enqueues those it took at
//! the queue's node.
//!
//! Nothing waits: a frame that finds no room is dropped and counted. Room is counted in packets
//! that are on their way from one worker to another, since these keep buffers from all others:
//! [`MOST_PACKETS`] on their way to a worker, in equal shares of the senders. Where such a share
//! would be less than a frame, half of the room is for the shares, and half for whole frames of
//! whoever comes first ([`Common`]). A queue gets most of a share, not all, so that a flood of one
//! leaves room to the others. A ring that fills has its frames filled: with few packets in each, it
//! would be full whenever the other worker is without its processor for a moment.
//!
//! Buffers are freed on the worker where packets end, and the pool returns spare ones in batches.

use super::{Core, NodeCx, bound};
use crate::clock;
use crate::decl::{Kind, NodeDecl, NodeId};
use crate::mailbox::Waker;
use crate::node::{Fate, Runner, Verdict};
use crate::stats::Counter;
use crate::trace::{PacketTrace, TraceStep};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use thalweg_buffer::{FRAME_SIZE, Flags, Frame};
use thalweg_tables::swap_ring::{Gauge, Receiver, Sender, channel};

/// Packets on their way to a worker: half of the default pool.
pub(crate) const MOST_PACKETS: usize = 8192;

/// Frames in all rings to a worker, and the least and greatest capacity of one ring: a slot keeps
/// a frame on its way back, so that memory would grow with the square of the workers.
const FRAMES: usize = 128;
const ROOM: std::ops::RangeInclusive<usize> = 4..=32;

/// Maximum number of frames that a worker takes from one ring before it turns to the next, and to
/// its devices.
const AT_ONCE: usize = 4;

/// Defaults of the nodes of a queue.
pub(crate) static NODE: NodeDecl = NodeDecl { kind: Kind::Tx, ..NodeDecl::DEFAULT };

/// A worker's end of a queue, to send packets to the worker that owns them. See
/// [`Control::add_hand_off`].
///
/// [`Control::add_hand_off`]: crate::Control::add_hand_off
#[derive(Clone, Debug)]
pub struct HandOff {
    /// Nodes by worker; the queue's target for this worker itself.
    pub(crate) nodes: Arc<[NodeId]>,
    /// The queue's target node.
    pub(crate) target: NodeId,
}

impl HandOff {
    /// Returns the verdict that sends a packet to the target on a worker: on this one, the target
    /// itself. Packets for a worker that does not exist stay here.
    #[inline]
    pub fn to(&self, worker: usize) -> Verdict {
        Verdict::node(self.node(worker))
    }

    #[inline]
    pub(crate) fn node(&self, worker: usize) -> NodeId {
        self.nodes.get(worker).copied().unwrap_or(self.target)
    }

    /// Returns the worker that owns a hash: each owns an equal share.
    #[inline]
    pub fn owner(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.nodes.len() as u64) >> 32) as usize
    }
}

/// A frame in a ring; an empty one on its way back.
pub(crate) struct Handed {
    frame: Box<Frame>,
    /// Traces of its traced packets, in order.
    traces: Box<[PacketTrace]>,
    /// Node of the queue for the receiver, under which arrivals are counted.
    node: NodeId,
    /// Node that gets the packets.
    target: NodeId,
}

impl Handed {
    fn empty(frame: Box<Frame>) -> Handed {
        Handed { frame, traces: Box::default(), node: NodeId(0), target: NodeId(0) }
    }
}

/// A frame that was sent, as its sender remembers it.
#[derive(Clone, Copy, Default)]
struct Sent {
    /// Packets sent before it.
    before: u64,
    packets: u32,
    node: NodeId,
}

/// Room that the many senders to a worker have in common, for what is more than a sender's share:
/// each may have a frame's packets on their way there, and all of them [`Common::FRAMES`] times as
/// many.
pub(crate) struct Common(Box<[Claim]>);

/// A sender's claim of common room.
struct Claim {
    /// Position in its ring up to which it has some; 0 if it had none.
    end: AtomicU64,
    ring: Gauge<Handed>,
}

impl Common {
    const FRAMES: usize = MOST_PACKETS / 2 / FRAME_SIZE;

    /// Makes it for the rings to a worker; `None` if shares are frames at least.
    pub(crate) fn new(rings: Vec<Gauge<Handed>>) -> Option<Common> {
        if has_frames(rings.len()) {
            return None;
        }
        let claim = |ring| Claim { end: AtomicU64::new(0), ring };
        Some(Common(rings.into_iter().map(claim).collect()))
    }

    /// Claims room for what is in a sender's ring up to a position; returns whether there is some.
    #[cold]
    fn claim(&self, sender: usize, position: u64) -> bool {
        let own = &self.0[sender].end;
        let before = own.load(Ordering::Relaxed);
        own.store(position + 1, Ordering::Relaxed);
        // If two claim at once, one sees the other: all may be refused, and never too many let in.
        fence(Ordering::SeqCst);
        let is_there = |c: &&Claim| c.end.load(Ordering::Relaxed) > c.ring.received();
        let has_room = self.0.iter().filter(is_there).count() <= Common::FRAMES;
        if !has_room {
            own.store(before, Ordering::Relaxed);
        }
        has_room
    }
}

/// Returns whether the shares of this number of senders to a worker are frames at least.
fn has_frames(senders: usize) -> bool {
    MOST_PACKETS / senders.max(1) >= FRAME_SIZE
}

/// A worker's end of the ring to another one.
pub(crate) struct Outbound {
    ring: Sender<Handed>,
    waker: Arc<Waker>,
    /// Frames in the ring, by the low bits of their position.
    sent: Box<[Sent]>,
    /// Packets sent since the ring was made.
    packets: u64,
    /// Packets that wait in frames for the ring to have room.
    held: u64,
    /// Maximum number of packets on their way.
    most: u64,
    /// Room for larger frames, and the place of this sender in it.
    pub(crate) common: Option<(Arc<Common>, usize)>,
}

impl Outbound {
    /// Makes the ring between two of `workers` workers.
    pub(crate) fn new(workers: usize, waker: Arc<Waker>) -> (Outbound, Receiver<Handed>) {
        let senders = workers.saturating_sub(1).max(1);
        let room = (FRAMES / senders).clamp(*ROOM.start(), *ROOM.end());
        let (ring, end) = channel(room);
        let sent = vec![Sent::default(); room.next_power_of_two()].into();
        let shared = if has_frames(senders) { MOST_PACKETS } else { MOST_PACKETS / 2 };
        let most = (shared / senders) as u64;
        (Outbound { ring, waker, sent, packets: 0, held: 0, most, common: None }, end)
    }

    /// Returns a gauge of the ring.
    pub(crate) fn gauge(&self) -> Gauge<Handed> {
        self.ring.gauge()
    }

    #[inline]
    fn at(&self, position: u64) -> usize {
        position as usize & (self.sent.len() - 1)
    }

    /// Returns the number of packets on their way, as last read.
    #[inline]
    fn on_their_way(&self) -> u64 {
        let received = self.ring.received();
        let gone = if received == self.ring.sent() {
            self.packets
        } else {
            self.sent[self.at(received)].before
        };
        self.packets - gone + self.held
    }

    /// Returns whether a frame of `n` packets, of a queue that holds `held` itself, has room.
    #[inline]
    fn has_room(&mut self, n: u64, node: NodeId, held: u64) -> bool {
        self.on_their_way() + n <= share(self.most) || self.has_room_now(n, node, held)
    }

    /// The same, with the receiver's position read again.
    #[cold]
    fn has_room_now(&mut self, n: u64, node: NodeId, held: u64) -> bool {
        self.ring.refresh();
        let all = self.on_their_way();
        if all + n <= share(self.most) {
            return true;
        }
        // More than the share of this sender: a frame, in the common room.
        let beyond = self.common.as_ref().filter(|_| all + n > self.most);
        let most = if beyond.is_some() { FRAME_SIZE as u64 } else { self.most };
        let waiting = (self.ring.received()..self.ring.sent()).map(|p| &self.sent[self.at(p)]);
        let own: u64 = waiting.filter(|s| s.node == node).map(|s| u64::from(s.packets)).sum();
        let fits = all == 0 || all + n <= most && own + held + n <= share(most);
        let position = self.ring.sent();
        fits && beyond.is_none_or(|(common, sender)| common.claim(*sender, position))
    }

    /// Returns whether packets gather before they are handed over.
    #[inline]
    fn is_filling(&mut self) -> bool {
        self.ring.holds(self.sent.len() / 2)
    }
}

/// The part of the room between two workers that one queue may take.
#[inline]
fn share(of: u64) -> u64 {
    of - of / 8
}

/// Counters of one worker's hand-offs to another; written by the first only.
#[derive(Default, Debug)]
#[repr(align(128))]
pub(crate) struct PairStats {
    pub(crate) frames: Counter,
    pub(crate) packets: Counter,
    pub(crate) drops: Counter,
    /// Grows whenever a frame begins to gather packets, and whenever one ends: odd in between.
    pub(crate) gathered: Counter,
}

/// The node that hands packets to another worker.
pub(crate) struct HandOffTx {
    pub(crate) to: usize,
    /// Node that gets the packets there.
    pub(crate) target: NodeId,
    pub(crate) stats: Arc<PairStats>,
    /// A frame in which packets gather.
    pub(crate) held: Option<Box<Frame>>,
    /// Node that receives packets for which there is no room, and the drop reason.
    pub(crate) full: (NodeId, u32),
}

/// Returns the worker's end of the ring to another one.
#[inline]
fn outbound<'c>(cx: &'c mut NodeCx<'_>, to: usize) -> &'c mut Outbound {
    match &mut cx.core.outbound[to] {
        Some(way) => way,
        None => unreachable!("a queue to a worker to which there is no ring"),
    }
}

impl Runner for HandOffTx {
    #[inline]
    fn run(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        let (n, node) = (frame.len() as u64, cx.node());
        let held = self.held.as_ref().map_or(0, |f| f.len() as u64);
        let way = outbound(cx, self.to);
        if !way.has_room(n, node, held) {
            self.refuse(cx, frame);
        } else if self.held.is_none() && (frame.room() == 0 || !way.is_filling()) {
            self.send(cx, frame);
        } else {
            way.held += n;
            self.gather(cx, frame);
        }
    }

    fn again(&mut self, cx: &mut NodeCx<'_>) {
        if outbound(cx, self.to).is_filling() {
            cx.ask_again();
        } else if let Some(frame) = self.held.take() {
            self.send_held(cx, frame);
            self.stats.gathered.add(1);
        }
    }

    fn message(&mut self, _: &mut NodeCx<'_>, _: Box<dyn Any + Send>) {}
}

impl HandOffTx {
    /// Adds a frame's packets to those that wait, in order; hands over what is full.
    #[cold]
    fn gather(&mut self, cx: &mut NodeCx<'_>, mut frame: Box<Frame>) {
        match self.held.take() {
            Some(mut open) if open.room() >= frame.len() => {
                frame.append_to(&mut open);
                cx.put_frame(frame);
                self.held = Some(open);
            }
            Some(full) => {
                self.send_held(cx, full);
                self.held = Some(frame);
                self.stats.gathered.add(2);
            }
            None => {
                self.held = Some(frame);
                self.stats.gathered.add(1);
            }
        }
        cx.ask_again();
    }

    fn send_held(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        outbound(cx, self.to).held -= frame.len() as u64;
        self.send(cx, frame);
    }

    #[cold]
    fn refuse(&mut self, cx: &mut NodeCx<'_>, mut frame: Box<Frame>) {
        self.stats.drops.add(frame.len() as u64);
        let (to, reason) = self.full;
        frame.aux_mut().fill(reason);
        cx.enqueue(frame, to);
    }

    fn send(&mut self, cx: &mut NodeCx<'_>, mut frame: Box<Frame>) {
        let node = cx.node();
        if outbound(cx, self.to).ring.is_full() {
            return self.refuse(cx, frame);
        }
        if bound::looks_at(self.stats.frames.get()) {
            match cx.core.count_handed(cx.node(), frame) {
                Some(left) => frame = left,
                None => return,
            }
        }
        let traces = if frame.flags().contains(Flags::TRACED) {
            let to = self.to;
            cx.trace_frame(&frame, |_, _, out| {
                let _ = writeln!(out, "to worker {to}");
            });
            cx.core.copy_traces(&frame)
        } else {
            Box::default()
        };
        if frame.flags().contains(Flags::SAMPLED) {
            cx.core.number_sampled(&mut frame);
            cx.core.sampled_end(&frame, Fate::HandedOver);
        }
        let n = frame.len() as u64;
        let way = outbound(cx, self.to);
        let at = way.at(way.ring.sent());
        let handed = Handed { frame, traces, node, target: self.target };
        match way.ring.send(handed) {
            Ok(left) => {
                way.sent[at] = Sent { before: way.packets, packets: n as u32, node };
                way.packets += n;
                way.waker.wake();
                self.stats.frames.add(1);
                self.stats.packets.add(n);
                cx.core.stats.totals.handed_out.add(n);
                if let Some(empty) = left {
                    cx.put_frame(empty.frame);
                }
            }
            // The ring has room: only this thread sends.
            Err(Handed { frame, .. }) => self.refuse(cx, frame),
        }
    }
}

/// The node of a queue on the queue's own worker; counts what arrives.
pub(crate) struct LocalEnd {
    pub(crate) target: NodeId,
}

impl Runner for LocalEnd {
    fn run(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        cx.enqueue(frame, self.target);
    }
    fn message(&mut self, _: &mut NodeCx<'_>, _: Box<dyn Any + Send>) {}
}

/// The receiving end of a ring.
pub(crate) struct Arrivals {
    pub(crate) from: usize,
    pub(crate) ring: Receiver<Handed>,
}

impl Arrivals {
    /// Takes pending frames, up to a limit, and passes them on; returns the number of packets.
    /// `note` gets each queue's node, and the number of packets that came by it in a row.
    #[inline]
    pub(super) fn poll(
        &mut self,
        core: &mut Core,
        mut note: impl FnMut(&mut Core, NodeId, usize),
    ) -> usize {
        let (mut packets, mut row) = (0, (NodeId(0), 0));
        for _ in 0..AT_ONCE {
            let spare = || Some(Handed::empty(core.spare.pop()?));
            let Some(handed) = self.ring.receive(spare) else { break };
            let (node, n) = (handed.node, handed.frame.len());
            if row.0 != node && row.1 > 0 {
                note(core, row.0, std::mem::take(&mut row.1));
            }
            row = (node, row.1 + n);
            packets += n;
            self.arrive(core, handed);
        }
        if row.1 > 0 {
            note(core, row.0, row.1);
        }
        packets
    }

    fn arrive(&self, core: &mut Core, handed: Handed) {
        let Handed { mut frame, traces, node, target } = handed;
        core.stats.totals.handed_in.add(frame.len() as u64);
        if frame.flags().contains(Flags::SAMPLED) {
            // Taps here must not take these for their own sampled packets that had the same
            // buffers.
            core.settle_taps();
        }
        if frame.flags().contains(Flags::TRACED) {
            let text = format!("from worker {}\n", self.from);
            let step = TraceStep { node, at: clock::ticks(), text };
            core.adopt_traces(&mut frame, traces, &step);
        }
        core.enqueue(frame, target);
    }

    /// Frees the frames in the ring.
    pub(super) fn shut_down(&mut self, core: &mut Core) {
        while let Some(mut handed) = self.ring.receive(|| None) {
            core.cache.free_frame(&mut handed.frame);
        }
    }
}

/// Number of low bits of a sample id that count; the bits above are the worker that assigned it.
const COUNT_BITS: u32 = 24;

impl Core {
    /// Assigns a sample id to each sampled packet of a frame, unless it has one, by which other
    /// workers report its disposition. Ids repeat after sixteen million: by then nothing waits for
    /// the old one.
    #[cold]
    fn number_sampled(&mut self, frame: &mut Frame) {
        for i in frame.sampled().iter() {
            if frame.meta(i).sample_id == 0 {
                let count = self.numbered.wrapping_add(1) & ((1 << COUNT_BITS) - 1);
                self.numbered = count;
                frame.pkt(i).meta_mut().sample_id = (self.index as u32 + 1) << COUNT_BITS | count;
            }
        }
    }

    /// Copies the traces of a frame's traced packets; empty ones if they were cleared.
    #[cold]
    fn copy_traces(&self, frame: &Frame) -> Box<[PacketTrace]> {
        let rows = (0..frame.len()).map(|i| frame.meta(i as u8));
        let traced = rows.filter(|meta| meta.flags().contains(Flags::TRACED));
        traced.map(|meta| self.trace.get(meta.trace).cloned().unwrap_or_default()).collect()
    }

    /// Continues traces that another worker has started. Marks without one are removed: their
    /// number is that worker's, and another packet's here.
    #[cold]
    fn adopt_traces(&mut self, frame: &mut Frame, traces: Box<[PacketTrace]>, step: &TraceStep) {
        let mut traces = traces.into_iter();
        for i in 0..frame.len() {
            let mut p = frame.pkt(i as u8);
            if !p.meta().flags().contains(Flags::TRACED) {
                continue;
            }
            let trace = traces.next().filter(|t| !t.steps.is_empty());
            match trace.and_then(|t| self.trace.adopt(t)) {
                Some(number) => {
                    p.meta_mut().trace = number;
                    self.trace.add(number, step.clone());
                }
                None => p.unmark(Flags::TRACED),
            }
        }
    }
}
