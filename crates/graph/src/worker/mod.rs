//! A worker: one thread, one graph, its own buffers and counters.

mod bound;
mod cx;
pub(crate) mod hand_off;
mod local;
mod own_time;
mod pace;
mod run;
mod taps;

pub use hand_off::HandOff;
pub use local::PerWorker;
pub use own_time::LONG;
pub(crate) use pace::Pace;
pub(crate) use run::Worker;

use crate::arc::ArcTable;
use crate::clock;
use crate::decl::{ArcId, NodeId};
use crate::filter::ByteFilter;
use crate::mailbox::{Event, ToMain};
use crate::node::Verdict;
use crate::stats::{MAX_NODES, WorkerStats};
use crate::trace::{Dispatch, Dispatches, PacketTrace, TraceStep, TraceStore, Wanted};
use std::collections::{HashMap, VecDeque};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use thalweg_buffer::{Cache, FRAME_SIZE, Flags, Frame, Packet};
use thalweg_tables::qsbr::Guard;

/// A worker's copy of a node's declaration.
#[derive(Clone, Debug)]
pub(crate) struct NodeInfo {
    pub(crate) name: Arc<str>,
    pub(crate) nexts: Vec<NodeId>,
    pub(crate) drop: NodeId,
    pub(crate) error_base: u32,
    pub(crate) arc: Option<(ArcId, u16)>,
    /// Arcs and bits, if it is a tap.
    pub(crate) taps: Vec<(ArcId, u16)>,
}

/// Number of empty frames that a worker starts with: more than wait at once where a few streams
/// meet, so that a peak allocates none.
const SPARE: usize = 64;
/// Number of full frames that may wait for a node before its queue has to grow.
const WAITING: usize = 16;

/// Frames that wait for a node, on cache lines of the worker's own.
#[repr(align(64))]
struct Pending {
    open: Option<Box<Frame>>,
    full: VecDeque<Box<Frame>>,
}

impl Default for Pending {
    fn default() -> Pending {
        Pending { open: None, full: VecDeque::with_capacity(WAITING) }
    }
}

/// A worker's state that nodes use: buffers, pending frames, counters, traces.
pub struct Core {
    pub(crate) index: usize,
    pub(crate) stats: Arc<WorkerStats>,
    pub(crate) now: u64,
    cache: Cache,
    /// Number of buffers of all workers.
    buffers: usize,
    info: Vec<NodeInfo>,
    pending: Vec<Pending>,
    rank_of: Vec<u16>,
    by_rank: Vec<NodeId>,
    ready: [u64; MAX_NODES / 64],
    ready_words: u64,
    /// The only frame in the graph, and its node: it need not be queued and found again. While
    /// there is one, all queues are empty.
    lone: Option<(NodeId, Box<Frame>)>,
    spare: Vec<Box<Frame>>,
    // Boxes: taking one moves a pointer.
    #[allow(clippy::vec_box)]
    scratch: Vec<Box<[Verdict; FRAME_SIZE]>>,
    pub(crate) trace: TraceStore,
    taps: taps::Taps,
    to_main: ToMain,
    current: NodeId,
    again: Vec<NodeId>,
    /// The last sample id that this worker assigned.
    numbered: u32,
    /// State that nodes of this worker share.
    locals: local::Locals,
    /// Ends of the rings to each other worker, by its number.
    pub(crate) outbound: Vec<Option<hand_off::Outbound>>,
}

/// A node's view of its worker while it runs.
pub struct NodeCx<'w> {
    pub(crate) core: &'w mut Core,
    guard: &'w Guard<'w>,
    arcs: &'w ArcTable,
    node: NodeId,
}

/// The arc that every received frame enters.
pub const DEVICE_INPUT: ArcId = ArcId(0);
/// The arc that every frame passes on its way to a device.
pub const INTERFACE_OUTPUT: ArcId = ArcId(1);
/// The arc that dropped packets pass.
pub const ERROR_DROP: ArcId = ArcId(2);

impl Core {
    fn new(index: usize, cache: Cache, stats: Arc<WorkerStats>, to_main: ToMain) -> Core {
        Core {
            index,
            stats,
            now: clock::ticks(),
            buffers: cache.pool().audit().total,
            cache,
            info: Vec::new(),
            pending: Vec::new(),
            rank_of: Vec::new(),
            by_rank: Vec::new(),
            ready: [0; MAX_NODES / 64],
            ready_words: 0,
            lone: None,
            spare: Vec::new(),
            scratch: (0..4).map(|_| Box::new([Verdict::next(0); FRAME_SIZE])).collect(),
            trace: TraceStore::default(),
            taps: taps::Taps::default(),
            to_main,
            current: NodeId(0),
            again: Vec::with_capacity(16),
            numbered: 0,
            locals: local::Locals::default(),
            outbound: Vec::new(),
        }
    }

    /// Moves what is written all the time into memory that this thread has allocated: memory
    /// allocated by the main thread may share cache lines with that of other workers.
    fn unshare(&mut self) {
        self.spare = Vec::with_capacity(2 * SPARE);
        self.spare.resize_with(SPARE, Frame::new);
        for p in &mut self.pending {
            let queued = std::mem::replace(&mut p.full, VecDeque::with_capacity(WAITING));
            p.full.extend(queued);
        }
        self.scratch = (0..4).map(|_| Box::new([Verdict::next(0); FRAME_SIZE])).collect();
        self.again = Vec::with_capacity(16);
        self.cache.unshare();
    }

    /// Returns the index of this worker, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the tick count at the start of the loop.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Sends an event to the main thread. Returns false if its queue is full (counted).
    pub fn event(&mut self, event: Event) -> bool {
        let ok = self.to_main.event(event);
        if !ok {
            self.stats.totals.events_lost.add(1);
        }
        ok
    }

    /// Like [`event`](Self::event), if the queue is less than half full.
    pub fn event_if_room(&mut self, event: Event) -> bool {
        let ok = self.to_main.event_if_room(event);
        if !ok {
            self.stats.totals.events_lost.add(1);
        }
        ok
    }

    /// Starts tracing the next `n` packets that enter at `node`: an input node, or one at which
    /// the router's own packets begin; with a filter only those that match, which are frames.
    pub fn trace_add(&mut self, node: NodeId, n: u32, filter: Option<Arc<ByteFilter>>) {
        self.trace.wanted.retain(|wanted| wanted.node != node);
        if n > 0 {
            self.trace.wanted.push(Wanted { node, left: n, filter });
        }
    }

    /// Clears all traces and stops tracing. Packets in flight keep their mark, and their number is
    /// not given to another packet.
    pub fn trace_clear(&mut self) {
        self.trace.clear();
    }

    /// Begins to keep dispatches of traced packets: up to `max`, counted in `taken`.
    pub fn dispatches_begin(&mut self, max: u32, taken: Arc<AtomicU64>) {
        self.trace.dispatches = Some(Dispatches::new(max, taken));
    }

    /// Ends that, and returns them with the traces that are still there, by number.
    pub fn dispatches_end(&mut self) -> (Vec<Dispatch>, HashMap<u16, PacketTrace>) {
        let kept = self.trace.dispatches.take().map(|d| d.kept).unwrap_or_default();
        let mut traces = HashMap::new();
        for number in kept.iter().map(|d| d.trace) {
            if let Some(trace) = self.trace.get(number) {
                traces.entry(number).or_insert_with(|| trace.clone());
            }
        }
        (kept, traces)
    }

    /// Publishes the number of cached buffers for the pool's audit; returns the number of failed
    /// allocations.
    pub fn publish_cache(&mut self) -> u64 {
        self.cache.publish();
        self.cache.misses()
    }

    /// Returns the packets received, originated, received from other workers, sent, delivered,
    /// dropped, consumed and handed to other workers.
    pub fn accounting(&mut self) -> [u64; 8] {
        self.cache.publish();
        let t = &self.stats.totals;
        let into = [&t.rx, &t.originated, &t.handed_in].map(|c| c.get());
        let out = [&t.tx, &t.delivered, &t.dropped, &t.consumed, &t.handed_out].map(|c| c.get());
        let ([a, b, c], [d, e, f, g, h]) = (into, out);
        [a, b, c, d, e, f, g, h]
    }

    /// Clears the maxima of calls and loops.
    pub fn clear_max(&mut self) {
        for id in (0..self.info.len() as u16).map(NodeId) {
            let stats = self.stats.node(id);
            stats.max_clocks.set(0);
            stats.max_vectors.set(0);
        }
        self.stats.loops.clear_longest();
        self.stats.long_loops.clear_longest();
    }

    /// Returns a copy of the traces.
    pub fn traces(&self) -> Vec<PacketTrace> {
        self.trace.packets.clone()
    }

    /// Returns the number of traces and a copy of the first `max`: copying takes a worker's time.
    pub fn first_traces(&self, max: usize) -> (usize, Vec<PacketTrace>) {
        let all = &self.trace.packets;
        (all.len(), all[..max.min(all.len())].to_vec())
    }

    #[inline]
    fn set_ready(&mut self, node: NodeId) {
        let rank = self.rank_of[node.0 as usize] as usize;
        self.ready[rank / 64] |= 1 << (rank % 64);
        self.ready_words |= 1 << (rank / 64);
    }

    #[inline]
    fn first_ready(&self) -> Option<(usize, NodeId)> {
        if self.ready_words == 0 {
            return None;
        }
        let word = self.ready_words.trailing_zeros() as usize;
        let rank = word * 64 + self.ready[word].trailing_zeros() as usize;
        Some((rank, self.by_rank[rank]))
    }

    #[inline]
    fn clear_ready(&mut self, rank: usize) {
        self.ready[rank / 64] &= !(1 << (rank % 64));
        if self.ready[rank / 64] == 0 {
            self.ready_words &= !(1 << (rank / 64));
        }
    }

    #[inline]
    fn spare_frame(&mut self) -> Box<Frame> {
        self.spare.pop().unwrap_or_default()
    }

    #[inline]
    fn recycle(&mut self, frame: Box<Frame>) {
        debug_assert!(frame.is_empty());
        self.spare.push(frame);
    }

    /// Passes a whole frame on: moves a pointer, unless it can be merged with a frame that waits
    /// there already.
    #[inline]
    fn enqueue(&mut self, frame: Box<Frame>, to: NodeId) {
        if self.ready_words == 0 && self.lone.is_none() {
            self.lone = Some((to, frame));
        } else {
            self.queue_lone();
            self.queue(frame, to);
        }
    }

    /// Queues the lone frame: it is no longer the only one.
    #[inline]
    fn queue_lone(&mut self) {
        if let Some((to, frame)) = self.lone.take() {
            self.queue(frame, to);
        }
    }

    #[inline(never)]
    fn queue(&mut self, mut frame: Box<Frame>, to: NodeId) {
        let p = &mut self.pending[to.0 as usize];
        match &mut p.open {
            None => p.open = Some(frame),
            Some(open) if open.room() >= frame.len() => {
                frame.append_to(open);
                self.recycle(frame);
            }
            Some(_) => {
                let old = p.open.replace(frame);
                p.full.extend(old);
            }
        }
        self.set_ready(to);
    }

    /// Returns the frame that a single packet for `to` goes into; it has room.
    #[inline]
    fn open_frame(&mut self, to: NodeId) -> &mut Frame {
        self.queue_lone();
        let i = to.0 as usize;
        if self.pending[i].open.as_ref().is_none_or(|f| f.room() == 0) {
            let fresh = self.spare_frame();
            let p = &mut self.pending[i];
            let old = p.open.replace(fresh);
            p.full.extend(old);
            self.set_ready(to);
        }
        let p = &mut self.pending[i];
        p.open.get_or_insert_with(Frame::new)
    }

    fn push_packet(&mut self, packet: Packet, to: NodeId) {
        if let Err(back) = self.open_frame(to).push(packet) {
            self.cache.free(back);
        }
        self.set_ready(to);
    }

    fn next_frame(&mut self, node: NodeId) -> Option<Box<Frame>> {
        let p = &mut self.pending[node.0 as usize];
        p.full.pop_front().or_else(|| p.open.take())
    }

    fn install(&mut self, id: NodeId, info: NodeInfo) {
        let i = id.0 as usize;
        while self.info.len() <= i {
            self.info.push(info.clone());
            self.pending.push(Pending::default());
            self.rank_of.push(self.by_rank.len() as u16);
            self.by_rank.push(NodeId(self.info.len() as u16 - 1));
        }
        self.info[i] = info;
    }

    /// Installs a new order of dispatch.
    fn reorder(&mut self, by_rank: Vec<NodeId>) {
        for (rank, id) in by_rank.iter().enumerate() {
            self.rank_of[id.0 as usize] = rank as u16;
        }
        self.by_rank = by_rank;
        (self.ready, self.ready_words) = ([0; MAX_NODES / 64], 0);
        for id in (0..self.pending.len() as u16).map(NodeId) {
            let p = &self.pending[id.0 as usize];
            if p.open.is_some() || !p.full.is_empty() {
                self.set_ready(id);
            }
        }
    }

    /// Marks packets of a fresh frame for tracing, as long as more are wanted.
    #[cold]
    fn mark_traced(
        &mut self,
        node: NodeId,
        frame: &mut Frame,
        trace: &dyn Fn(&Frame, u8, &mut dyn Write),
    ) {
        for i in 0..frame.len() {
            let mut p = frame.pkt(i as u8);
            if !self.trace.claim(node, Some(p.data())) {
                continue;
            }
            let number = self.trace.open(p.data());
            p.mark(Flags::TRACED);
            p.meta_mut().trace = number;
            let mut text = String::new();
            trace(frame, i as u8, &mut text);
            self.trace.dispatch(number, node, frame, i as u8);
            self.trace.add(number, TraceStep { node, at: clock::ticks(), text });
        }
    }

    /// Marks a packet that the router makes at `node` for tracing, if it is wanted.
    #[cold]
    fn mark_made(&mut self, node: NodeId, packet: &mut Packet) {
        if self.trace.claim(node, None) {
            let number = self.trace.open(&[]);
            packet.mark(Flags::TRACED);
            packet.meta_mut().trace = number;
            let text = "made by the router".to_owned();
            self.trace.add(number, TraceStep { node, at: clock::ticks(), text });
        }
    }
}
