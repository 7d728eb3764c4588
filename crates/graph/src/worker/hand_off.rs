//! Handing frames to another worker.
//!
//! Some packets must be processed by one worker: the one that owns their connection. A *queue*
//! leads to a node, on any worker: for each other worker there is a node (`<queue>-wk1`) that
//! packets for it are sent to like to any other, so that they gather in frames; it hands the frame
//! over by pointer through a bounded ring, one for each ordered pair of workers. The other worker
//! returns an empty frame for each that it takes, and enqueues those it took at the queue's node.
//! Nothing waits: if the ring is full, the frame is dropped and counted. A ring that fills has its
//! frames filled: with few packets in each, it would be full whenever the other worker is without
//! its processor for a moment.
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
use thalweg_buffer::{Flags, Frame};
use thalweg_tables::swap_ring::{Receiver, Sender};

/// Capacity of a ring in frames. Full ones hold 8192 packets: half of the default pool.
pub(crate) const ROOM: usize = 32;

/// Frames in a ring from which on packets gather in one frame before that is handed over.
const GATHER: usize = ROOM / 2;

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
    pub(crate) ring: Sender<Handed>,
    pub(crate) waker: Arc<Waker>,
    pub(crate) stats: Arc<PairStats>,
    /// A frame in which packets gather.
    pub(crate) held: Option<Box<Frame>>,
    /// Node that receives packets if the ring is full, and the drop reason.
    pub(crate) full: (NodeId, u32),
}

impl Runner for HandOffTx {
    #[inline]
    fn run(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        if self.held.is_none() && (frame.room() == 0 || !self.ring.holds(GATHER)) {
            self.send(cx, frame);
        } else {
            self.gather(cx, frame);
        }
    }

    fn again(&mut self, cx: &mut NodeCx<'_>) {
        if self.ring.holds(GATHER) {
            cx.ask_again();
        } else if let Some(frame) = self.held.take() {
            self.send(cx, frame);
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
                self.send(cx, full);
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

    fn send(&mut self, cx: &mut NodeCx<'_>, mut frame: Box<Frame>) {
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
        if frame.flags().contains(Flags::SAMPLED) && !self.ring.is_full() {
            cx.core.number_sampled(&mut frame);
            cx.core.sampled_end(&frame, Fate::HandedOver);
        }
        let n = frame.len() as u64;
        match self.ring.send(Handed { frame, traces }) {
            Ok(left) => {
                self.waker.wake();
                self.stats.frames.add(1);
                self.stats.packets.add(n);
                cx.core.stats.totals.handed_out.add(n);
                if let Some(empty) = left {
                    cx.put_frame(empty.frame);
                }
            }
            Err(Handed { mut frame, .. }) => {
                self.stats.drops.add(n);
                let (to, reason) = self.full;
                frame.aux_mut().fill(reason);
                cx.enqueue(frame, to);
            }
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
    /// Node under which arrivals are counted.
    pub(crate) node: NodeId,
    pub(crate) target: NodeId,
}

impl Arrivals {
    /// Takes pending frames, up to a limit, and passes them on; returns the number of packets.
    #[inline]
    pub(super) fn poll(&mut self, core: &mut Core) -> usize {
        let mut packets = 0;
        for _ in 0..AT_ONCE {
            let spare = || {
                let frame = core.spare.pop()?;
                Some(Handed { frame, traces: Box::default() })
            };
            let Some(handed) = self.ring.receive(spare) else { break };
            packets += handed.frame.len();
            self.arrive(core, handed);
        }
        packets
    }

    fn arrive(&self, core: &mut Core, handed: Handed) {
        let Handed { mut frame, traces } = handed;
        core.stats.totals.handed_in.add(frame.len() as u64);
        if frame.flags().contains(Flags::SAMPLED) {
            // Taps here must not take these for their own sampled packets that had the same
            // buffers.
            core.settle_taps();
        }
        if frame.flags().contains(Flags::TRACED) {
            let text = format!("from worker {}\n", self.from);
            let step = TraceStep { node: self.node, at: clock::ticks(), text };
            core.adopt_traces(&mut frame, traces, &step);
        }
        core.enqueue(frame, self.target);
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
