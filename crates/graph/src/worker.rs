//! A worker: one thread, one graph, its own buffers and counters.

use crate::arc::ArcTable;
use crate::clock;
use crate::decl::{ArcId, ArcKey, Built, NodeId};
use crate::mailbox::{Event, ToMain, ToWorker, Waker};
use crate::node::{
    CONTINUE, DROP, ErrorCode, InputNode, KEPT, KIND, NODE, Poll, Runner, SLOT, Tap, TapCx, Verdict,
};
use crate::stats::{MAX_NODES, WorkerStats};
use crate::trace::{PacketTrace, TraceStep, TraceStore};
use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Cache, Deal, FRAME_SIZE, Flags, Frame, Iface, Packet, PktMut};
use thalweg_tables::qsbr::{Guard, Reader};
use thalweg_tables::snapshot::Snapshot;

/// What a worker knows of a node.
#[derive(Clone, Debug)]
pub(crate) struct NodeInfo {
    pub(crate) name: Arc<str>,
    pub(crate) nexts: Vec<NodeId>,
    pub(crate) drop: NodeId,
    pub(crate) error_base: u32,
    pub(crate) arc: Option<(ArcId, u16)>,
}

#[derive(Default)]
struct Pending {
    open: Option<Box<Frame>>,
    full: VecDeque<Box<Frame>>,
}

struct TapSlot {
    tap: Option<Box<dyn Tap>>,
    node: NodeId,
    error_base: u32,
}

/// What nodes work with on this worker: buffers, pending frames, counters, traces.
pub struct Core {
    pub(crate) index: usize,
    pub(crate) stats: Arc<WorkerStats>,
    pub(crate) now: u64,
    cache: Cache,
    info: Vec<NodeInfo>,
    pending: Vec<Pending>,
    rank_of: Vec<u16>,
    by_rank: Vec<NodeId>,
    ready: [u64; MAX_NODES / 64],
    ready_words: u64,
    spare: Vec<Box<Frame>>,
    // Boxes: taking one is a pointer's move.
    #[allow(clippy::vec_box)]
    scratch: Vec<Box<[Verdict; FRAME_SIZE]>>,
    pub(crate) trace: TraceStore,
    taps: Vec<Vec<TapSlot>>,
    to_main: ToMain,
    current: NodeId,
    again: Vec<NodeId>,
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
            cache,
            info: Vec::new(),
            pending: Vec::new(),
            rank_of: Vec::new(),
            by_rank: Vec::new(),
            ready: [0; MAX_NODES / 64],
            ready_words: 0,
            spare: Vec::with_capacity(64),
            scratch: (0..4).map(|_| Box::new([Verdict::next(0); FRAME_SIZE])).collect(),
            trace: TraceStore::default(),
            taps: Vec::new(),
            to_main,
            current: NodeId(0),
            again: Vec::with_capacity(16),
        }
    }

    /// Number of this worker, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Tick count at the start of the loop.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Tells the main thread. False if its queue is full (counted).
    pub fn event(&mut self, event: Event) -> bool {
        let ok = self.to_main.event(event);
        if !ok {
            self.stats.totals.events_lost.add(1);
        }
        ok
    }

    /// Starts tracing: the next `n` packets of input node `node`.
    pub fn trace_add(&mut self, node: NodeId, n: u32) {
        self.trace.wanted.retain(|(id, _)| *id != node);
        if n > 0 {
            self.trace.wanted.push((node, n));
        }
    }

    /// Forgets all traces and marks no more packets. What is under way with a mark stays marked,
    /// and its number is not given to another packet.
    pub fn trace_clear(&mut self) {
        self.trace.clear();
    }

    /// Tells the pool's audit how many buffers this worker keeps; returns how often it got none.
    pub(crate) fn publish_cache(&mut self) -> u64 {
        self.cache.publish();
        self.cache.misses()
    }

    /// Packets received, originated, sent, delivered, dropped and consumed so far.
    pub(crate) fn accounting(&mut self) -> [u64; 6] {
        self.cache.publish();
        let t = &self.stats.totals;
        [&t.rx, &t.originated, &t.tx, &t.delivered, &t.dropped, &t.consumed].map(|c| c.get())
    }

    /// Forgets how long calls and loops took at most.
    pub(crate) fn clear_max(&mut self) {
        for id in (0..self.info.len() as u16).map(NodeId) {
            let stats = self.stats.node(id);
            stats.max_clocks.set(0);
            stats.max_vectors.set(0);
        }
        self.stats.totals.max_loop.set(0);
    }

    /// A copy of the traces.
    pub fn traces(&self) -> Vec<PacketTrace> {
        self.trace.packets.clone()
    }

    /// How many traces there are, and a copy of the first `max`: copying takes a worker's time.
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

    /// Passes a whole frame on: a pointer, unless it can be merged with what waits there already.
    #[inline]
    fn enqueue(&mut self, mut frame: Box<Frame>, to: NodeId) {
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

    /// The frame that a single packet for `to` goes into; it has room.
    #[inline]
    fn open_frame(&mut self, to: NodeId) -> &mut Frame {
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

    /// Takes a new order of dispatch.
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

    fn install_tap(&mut self, arc: ArcId, bit: usize, slot: TapSlot) {
        let a = arc.0 as usize;
        while self.taps.len() <= a {
            self.taps.push(Vec::new());
        }
        let row = &mut self.taps[a];
        if bit < row.len() {
            row[bit] = slot;
        } else {
            row.push(slot);
        }
    }

    /// Lets the taps of `mask` look at a frame.
    #[cold]
    fn run_taps(&mut self, arc: ArcId, mut mask: u32, frame: &mut Frame, on: Iface) {
        while mask != 0 {
            let bit = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            let Some(slot) = self.taps.get_mut(arc.0 as usize).and_then(|r| r.get_mut(bit)) else {
                continue;
            };
            let (Some(mut tap), node, error_base) = (slot.tap.take(), slot.node, slot.error_base)
            else {
                continue;
            };
            let stats = self.stats.clone();
            let stats = stats.node(node);
            let start = clock::ticks();
            let worth_timing = tap.frame(&mut TapCx { core: self, error_base }, frame, on);
            stats.calls.add(1);
            stats.vectors.add(frame.len() as u64);
            if worth_timing {
                stats.clocks.add(clock::ticks() - start);
            }
            self.taps[arc.0 as usize][bit].tap = Some(tap);
        }
    }

    /// Marks up to as many packets of a fresh frame as are wanted for tracing.
    #[cold]
    fn mark_traced(
        &mut self,
        node: NodeId,
        frame: &mut Frame,
        trace: &dyn Fn(&Frame, u8, &mut dyn Write),
    ) {
        let n = self.trace.claim(node, frame.len());
        for i in 0..n {
            let number = self.trace.open();
            {
                let mut p = frame.pkt(i as u8);
                p.mark(Flags::TRACED);
                p.meta_mut().trace = number;
            }
            let mut text = String::new();
            trace(frame, i as u8, &mut text);
            self.trace.add(number, TraceStep { node, at: clock::ticks(), text });
        }
    }
}

/// Finds the pending frames of the nodes that packets are dealt to.
struct Dealer<'c> {
    core: &'c mut Core,
}

impl Deal for Dealer<'_> {
    #[inline]
    fn frame_for(&mut self, node: u32) -> &mut Frame {
        self.core.open_frame(NodeId(node as u16))
    }
}

impl<'w> NodeCx<'w> {
    /// The worker's read-side guard: what is read through it lives until the end of the loop.
    #[inline]
    pub fn guard(&self) -> &'w Guard<'w> {
        self.guard
    }
    /// The arcs as they are now.
    #[inline]
    pub fn arcs(&self) -> &'w ArcTable {
        self.arcs
    }
    /// This node.
    #[inline]
    pub fn node(&self) -> NodeId {
        self.node
    }
    /// Number of this worker, from 0.
    #[inline]
    pub fn worker(&self) -> usize {
        self.core.index
    }
    /// Tick count at the start of the loop.
    #[inline]
    pub fn now(&self) -> u64 {
        self.core.now
    }
    /// The worker's free buffers.
    #[inline]
    pub fn cache(&mut self) -> &mut Cache {
        &mut self.core.cache
    }
    /// The worker's counters.
    #[inline]
    pub fn stats(&self) -> &WorkerStats {
        &self.core.stats
    }
    /// Counts `n` events of this node.
    #[inline]
    pub fn count(&self, code: ErrorCode, n: u64) {
        let base = self.core.info[self.node.0 as usize].error_base;
        self.core.stats.error(base + u32::from(code.0)).add(n);
    }
    /// The global number of one of this node's counters: what aux holds on the way to a drop.
    #[inline]
    pub fn error_id(&self, code: ErrorCode) -> u32 {
        self.core.info[self.node.0 as usize].error_base + u32::from(code.0)
    }
    /// A node's name.
    pub fn node_name(&self, id: NodeId) -> &str {
        self.core.info.get(id.0 as usize).map_or("?", |i| &i.name)
    }
    /// The node behind next number `slot` of this node.
    #[inline]
    pub fn next_node(&self, slot: u16) -> NodeId {
        self.core.info[self.node.0 as usize].nexts[slot as usize]
    }

    /// Takes a packet out of its frame; the verdict says so.
    #[inline]
    pub fn take(&mut self, p: PktMut<'_>) -> (Packet, Verdict) {
        (p.take(), Verdict(KEPT))
    }

    /// A fresh packet of the router's own, counted as originated.
    pub fn originate(&mut self) -> Option<Packet> {
        let mut p = self.core.cache.alloc()?;
        p.mark(Flags::LOCAL);
        self.core.stats.totals.originated.add(1);
        Some(p)
    }

    /// Sends an owned packet (kept, or originated) to one of this node's next nodes or any other.
    pub fn send(&mut self, packet: Packet, to: Verdict) {
        let node = self.resolve(to, packet.rx_if(), packet.tx_if());
        let mut packet = packet;
        if to.0 & KIND == DROP {
            let base = self.core.info[self.node.0 as usize].error_base;
            packet.set_aux(base + (to.0 & 0xffff));
        }
        self.core.push_packet(packet, node);
    }

    /// Ends an owned packet that other packets replace.
    pub fn consume(&mut self, packet: Packet) {
        self.core.stats.totals.consumed.add(1);
        self.core.cache.free(packet);
    }

    /// Ends a frame of packets that were delivered to the router itself.
    pub fn deliver_frame(&mut self, mut frame: Box<Frame>) {
        self.core.stats.totals.delivered.add(frame.len() as u64);
        self.core.cache.free_frame(&mut frame);
        self.core.recycle(frame);
    }

    /// Ends an owned packet that was delivered to the router itself.
    pub fn deliver(&mut self, packet: Packet) {
        self.core.stats.totals.delivered.add(1);
        self.core.cache.free(packet);
    }

    /// Ends a frame that was handed to a device.
    pub fn sent_frame(&mut self, mut frame: Box<Frame>) {
        self.core.stats.totals.tx.add(frame.len() as u64);
        self.core.cache.free_frame(&mut frame);
        self.core.recycle(frame);
    }

    /// Ends a frame of dropped packets; for the `drop` node.
    pub(crate) fn dropped_frame(&mut self, mut frame: Box<Frame>) {
        self.core.stats.totals.dropped.add(frame.len() as u64);
        self.core.cache.free_frame(&mut frame);
        self.core.recycle(frame);
    }

    /// An empty frame to fill.
    #[inline]
    pub fn new_frame(&mut self) -> Box<Frame> {
        self.core.spare_frame()
    }

    /// A frame with up to `want` fresh packets of `len` bytes each, of undefined contents.
    #[inline]
    pub fn alloc_frame(&mut self, want: usize, len: usize) -> Box<Frame> {
        let mut frame = self.core.spare_frame();
        self.core.cache.alloc_into(&mut frame, want, len);
        frame
    }

    /// Puts an empty frame back.
    #[inline]
    pub fn put_frame(&mut self, frame: Box<Frame>) {
        self.core.recycle(frame);
    }

    /// Receives a frame from a device: counts it, lets taps look, marks traced packets (`trace`
    /// describes them), and passes it to the interface's first feature or protocol.
    pub fn device_input(
        &mut self,
        mut frame: Box<Frame>,
        sw_if: u32,
        trace: impl Fn(&Frame, u8, &mut dyn Write),
    ) {
        if frame.is_empty() {
            self.core.recycle(frame);
            return;
        }
        frame.set_rx(sw_if);
        let n = frame.len() as u64;
        let stats = &self.core.stats;
        let i = stats.interface(sw_if);
        i.rx_packets.add(n);
        i.rx_bytes.add(frame.bytes());
        stats.totals.rx.add(n);
        if !self.core.trace.wanted.is_empty() {
            self.core.mark_traced(self.node, &mut frame, &trace);
        }
        let taps = self.arcs.taps(DEVICE_INPUT, sw_if);
        if taps != 0 {
            self.core.run_taps(DEVICE_INPUT, taps, &mut frame, Iface::Uniform(sw_if));
        }
        let to = self.arcs.start(DEVICE_INPUT, sw_if);
        self.core.enqueue(frame, to);
    }

    /// Sends a frame out by an interface: counts it, lets taps look, and passes it on to the
    /// interface's first output feature or its device. For the interface's output node.
    pub fn interface_output(&mut self, mut frame: Box<Frame>, sw_if: u32) {
        frame.set_tx(sw_if);
        let i = self.core.stats.interface(sw_if);
        i.tx_packets.add(frame.len() as u64);
        i.tx_bytes.add(frame.bytes());
        let taps = self.arcs.taps(INTERFACE_OUTPUT, sw_if);
        if taps != 0 {
            self.core.run_taps(INTERFACE_OUTPUT, taps, &mut frame, Iface::Uniform(sw_if));
        }
        let to = self.arcs.start(INTERFACE_OUTPUT, sw_if);
        self.core.enqueue(frame, to);
    }

    /// Lets the taps on the drop arc look at a frame; for the `error-drop` node.
    pub(crate) fn drop_taps(&mut self, frame: &mut Frame) {
        let on = frame.rx();
        let taps = match on {
            Iface::Uniform(sw_if) => self.arcs.taps(ERROR_DROP, sw_if),
            Iface::Mixed => (0..frame.len())
                .fold(0, |mask, i| mask | self.arcs.taps(ERROR_DROP, frame.rx_if(i as u8))),
        };
        if taps != 0 {
            self.core.run_taps(ERROR_DROP, taps, frame, on);
        }
    }

    /// Passes a whole frame on.
    #[inline]
    pub fn enqueue(&mut self, frame: Box<Frame>, to: NodeId) {
        if frame.is_empty() {
            self.core.recycle(frame);
        } else {
            self.core.enqueue(frame, to);
        }
    }

    /// Passes a whole frame on to next number `slot` of this node.
    #[inline]
    pub fn enqueue_next(&mut self, frame: Box<Frame>, slot: u16) {
        self.enqueue(frame, self.next_node(slot));
    }

    /// Has [`Runner::again`] of this node called in the next loop; until then the worker does not
    /// sleep.
    pub fn ask_again(&mut self) {
        if !self.core.again.contains(&self.node) {
            self.core.again.push(self.node);
        }
    }

    /// Drops a whole frame for a reason of this node.
    pub fn drop_frame(&mut self, frame: Box<Frame>, reason: ErrorCode) {
        self.dispose_whole(frame, Verdict::drop(reason));
    }

    /// Tells the main thread. False if its queue is full (counted).
    pub fn event(&mut self, event: Event) -> bool {
        self.core.event(event)
    }

    /// Gives something to the main thread to drop: unmapping and closing are not for workers.
    pub fn discard(&mut self, thing: Box<dyn std::any::Any + Send>) {
        self.core.to_main.discard(thing);
    }

    #[inline]
    pub(crate) fn take_scratch(&mut self) -> Box<[Verdict; FRAME_SIZE]> {
        self.core.scratch.pop().unwrap_or_else(|| Box::new([Verdict::next(0); FRAME_SIZE]))
    }
    #[inline]
    pub(crate) fn put_scratch(&mut self, s: Box<[Verdict; FRAME_SIZE]>) {
        self.core.scratch.push(s);
    }

    /// Adds to a packet's trace.
    pub fn add_trace(&mut self, number: u16, text: String) {
        let step = TraceStep { node: self.node, at: clock::ticks(), text };
        self.core.trace.add(number, step);
    }

    /// Adds to the traces of a whole frame's traced packets; for nodes that run frames themselves.
    pub fn trace_frame(&mut self, frame: &Frame, say: impl Fn(&Frame, u8, &mut dyn Write)) {
        if frame.flags().contains(Flags::TRACED) {
            for i in 0..frame.len() as u16 {
                let i = i as u8;
                if frame.meta(i).flags().contains(Flags::TRACED) {
                    let mut text = String::new();
                    say(frame, i, &mut text);
                    self.add_trace(frame.meta(i).trace, text);
                }
            }
        }
    }

    #[inline]
    fn resolve(&self, v: Verdict, rx_if: u32, tx_if: u32) -> NodeId {
        let info = &self.core.info[self.node.0 as usize];
        match v.0 & KIND {
            SLOT => info.nexts.get((v.0 & 0xffff) as usize).copied().unwrap_or(info.drop),
            NODE => NodeId(v.0 as u16),
            CONTINUE => match info.arc {
                Some((arc, slot)) => {
                    let key = match self.arcs.arcs[arc.0 as usize].key {
                        ArcKey::Rx => rx_if,
                        ArcKey::Tx => tx_if,
                    };
                    self.arcs.next(arc, slot, key)
                }
                None => info.drop,
            },
            _ => info.drop,
        }
    }

    /// Sends all packets of a frame the same way.
    #[inline]
    pub(crate) fn dispose_whole(&mut self, mut frame: Box<Frame>, v: Verdict) {
        if frame.is_empty() {
            self.core.recycle(frame);
            return;
        }
        if v.0 & KIND == DROP {
            let base = self.core.info[self.node.0 as usize].error_base;
            frame.aux_mut().fill(base + (v.0 & 0xffff));
        }
        match (frame.rx(), frame.tx()) {
            (Iface::Mixed, _) | (_, Iface::Mixed) if v == Verdict::CONTINUE => {
                let mut each = self.take_scratch();
                each[..frame.len()].fill(v);
                self.dispose(frame, &mut each[..]);
                self.put_scratch(each);
            }
            _ => {
                let to = self.resolve(v, frame.rx_if(0), frame.tx_if(0));
                self.core.enqueue(frame, to);
            }
        }
    }

    /// Sends each packet of a frame its own way.
    pub(crate) fn dispose(&mut self, mut frame: Box<Frame>, each: &mut [Verdict]) {
        if frame.has_holes() {
            frame.compact(verdict_words(each));
        }
        let n = frame.len();
        if n == 0 {
            self.core.recycle(frame);
            return;
        }
        let mut nodes = [0u32; FRAME_SIZE];
        let to = &mut nodes[..n];
        let kinds = each[..n].iter().fold(0, |all, v| all | v.0) & KIND;
        if kinds == SLOT {
            let info = &self.core.info[self.node.0 as usize];
            for (to, v) in to.iter_mut().zip(&each[..n]) {
                let next = info.nexts.get(v.0 as usize).unwrap_or(&info.drop);
                *to = u32::from(next.0);
            }
        } else {
            self.resolve_each(&mut frame, &each[..n], to);
        }
        let first = to[0];
        if to.iter().fold(0, |differ, t| differ | (t ^ first)) == 0 {
            self.core.enqueue(frame, NodeId(first as u16));
            return;
        }
        frame.deal(&nodes, &mut Dealer { core: self.core });
        self.core.recycle(frame);
    }

    /// Finds where each packet goes and notes the reasons of drops.
    fn resolve_each(&self, frame: &mut Frame, each: &[Verdict], to: &mut [u32]) {
        let base = self.core.info[self.node.0 as usize].error_base;
        let mut last = (Verdict(u32::MAX), NodeId(0));
        for (i, v) in each.iter().enumerate() {
            match v.0 & KIND {
                DROP => frame.aux_mut()[i] = base + (v.0 & 0xffff),
                CONTINUE => last.0 = Verdict(u32::MAX),
                _ => {}
            }
            if *v != last.0 {
                let to = self.resolve(*v, frame.rx_if(i as u8), frame.tx_if(i as u8));
                last = (*v, to);
            }
            to[i] = u32::from(last.1.0);
        }
    }
}

/// Verdicts as the words that they are, for compaction beside a frame.
fn verdict_words(v: &mut [Verdict]) -> Companion<'_> {
    Companion(v)
}

pub(crate) struct Companion<'a>(&'a mut [Verdict]);

impl thalweg_buffer::Companion for Companion<'_> {
    fn keep(&mut self, from: usize, to: usize) {
        self.0[to] = self.0[from];
    }
}

/// A worker before its thread starts.
pub(crate) struct Worker {
    pub(crate) core: Core,
    pub(crate) runners: Vec<Option<Box<dyn Runner>>>,
    inputs: Vec<(NodeId, Box<dyn InputNode>)>,
    pub(crate) reader: Reader,
    pub(crate) arcs: Arc<Snapshot<ArcTable>>,
    pub(crate) inbox: rtrb::Consumer<ToWorker>,
    pub(crate) waker: Arc<Waker>,
    poller: crate::mailbox::Poller,
    pub(crate) spin: u64,
    stop: bool,
}

impl Worker {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn new(
        index: usize,
        cache: Cache,
        stats: Arc<WorkerStats>,
        to_main: ToMain,
        reader: Reader,
        arcs: Arc<Snapshot<ArcTable>>,
        inbox: rtrb::Consumer<ToWorker>,
        waker: Arc<Waker>,
        spin: u64,
    ) -> std::io::Result<Worker> {
        let poller = crate::mailbox::Poller::new(&waker)?;
        Ok(Worker {
            core: Core::new(index, cache, stats, to_main),
            runners: Vec::new(),
            inputs: Vec::new(),
            reader,
            arcs,
            inbox,
            waker,
            poller,
            spin,
            stop: false,
        })
    }

    pub(crate) fn install(&mut self, id: NodeId, info: NodeInfo, built: Built) {
        let error_base = info.error_base;
        let arc = info.arc;
        self.core.install(id, info);
        while self.runners.len() <= id.0 as usize {
            self.runners.push(None);
        }
        // A revived or removed input node: the one before it must not be polled on.
        if let Some(at) = self.inputs.iter().position(|(i, _)| *i == id) {
            let (_, old) = self.inputs.remove(at);
            self.core.to_main.discard(Box::new(old));
            self.rearm();
        }
        match built {
            Built::Node(r) => {
                if let Some(old) = self.runners[id.0 as usize].replace(r) {
                    self.core.to_main.discard(Box::new(old));
                }
            }
            Built::Input(i) => {
                self.inputs.push((id, i));
                self.rearm();
            }
            Built::Tap(t) => {
                if let Some((arc, bit)) = arc {
                    let slot = TapSlot { tap: Some(t), node: id, error_base };
                    self.core.install_tap(arc, bit as usize, slot);
                }
            }
        }
    }

    pub(crate) fn reorder(&mut self, by_rank: Vec<NodeId>) {
        self.core.reorder(by_rank);
    }

    pub(crate) fn epoll_fd(&self) -> std::os::fd::RawFd {
        self.poller.fd()
    }

    fn rearm(&mut self) {
        let fds = self.inputs.iter().flat_map(|(_, i)| i.descriptors());
        self.poller.watch(fds.collect());
    }

    /// Name of the node that runs, for the report of a panic.
    pub(crate) fn current(&self) -> String {
        self.core.info.get(self.core.current.0 as usize).map_or("?".into(), |i| i.name.to_string())
    }

    /// Runs until told to stop.
    pub(crate) fn run(&mut self) {
        let mut last_work = clock::ticks();
        while !self.stop {
            let start = clock::ticks();
            self.core.now = start;
            self.messages();
            if self.stop {
                // Not to sleep first: nobody would wake us.
                break;
            }
            let (packets, deadline) = self.turn();
            let end = clock::ticks();
            let totals = &self.core.stats.totals;
            totals.loops.add(1);
            if packets > 0 {
                last_work = end;
                totals.busy_loops.add(1);
                totals.busy_clocks.add(end - start);
                if end - start > totals.max_loop.get() {
                    totals.max_loop.set(end - start);
                }
                self.core.cache.publish();
            } else if end.wrapping_sub(last_work) >= self.spin {
                self.core.cache.publish();
                self.sleep(deadline);
                last_work = clock::ticks();
            } else {
                std::hint::spin_loop();
            }
        }
        self.core.cache.publish();
    }

    /// Polls the inputs and runs the graph until nothing is pending. Returns the packets that came
    /// in and the earliest time at which an input wants to be polled again.
    fn turn(&mut self) -> (usize, Option<u64>) {
        let guard = self.reader.enter();
        let arcs = self.arcs.load(&guard);
        let mut packets = 0;
        let mut deadline: Option<u64> = None;
        for id in std::mem::take(&mut self.core.again) {
            packets += 1;
            let mut cx = NodeCx { core: &mut self.core, guard: &guard, arcs, node: id };
            if let Some(Some(r)) = self.runners.get_mut(id.0 as usize) {
                r.again(&mut cx);
            }
        }
        let mut at = clock::ticks();
        for (id, input) in &mut self.inputs {
            self.core.current = *id;
            let before = self.core.stats.totals.rx.get();
            let mut cx = NodeCx { core: &mut self.core, guard: &guard, arcs, node: *id };
            let poll = input.poll(&mut cx);
            match poll {
                Poll::Idle => {}
                Poll::At(t) => deadline = Some(deadline.map_or(t, |d| d.min(t))),
                Poll::Busy(n) => packets += n.max(1),
            }
            let got = self.core.stats.totals.rx.get() - before;
            if got > 0 || matches!(poll, Poll::Busy(_)) {
                let now = clock::ticks();
                note(self.core.stats.node(*id), got, now - at);
                at = now;
            }
        }
        packets += dispatch(&mut self.core, &mut self.runners, &guard, arcs);
        (packets, deadline)
    }

    fn messages(&mut self) {
        while let Ok(m) = self.inbox.pop() {
            self.message(m);
        }
    }

    fn message(&mut self, m: ToWorker) {
        match m {
            ToWorker::Install { id, info, built } => self.install(id, info, built),
            ToWorker::Order(by_rank) => self.core.reorder(by_rank),
            ToWorker::Node { node, message } => self.node_message(node, message),
            ToWorker::Inject(i) => {
                let Some(mut p) = self.core.cache.alloc() else { return };
                p.mark(Flags::LOCAL);
                if !p.fill(&i.bytes, &mut self.core.cache) {
                    self.core.cache.free(p);
                    return;
                }
                p.set_rx_if(i.rx_if);
                p.set_tx_if(i.tx_if);
                p.set_aux(i.aux);
                self.core.stats.totals.originated.add(1);
                self.core.push_packet(p, i.node);
            }
            ToWorker::Call(f) => f(&mut self.core),
            ToWorker::Stop => self.stop = true,
        }
    }

    fn node_message(&mut self, node: NodeId, message: Box<dyn std::any::Any + Send>) {
        let guard = self.reader.enter();
        let arcs = self.arcs.load(&guard);
        let mut cx = NodeCx { core: &mut self.core, guard: &guard, arcs, node };
        if let Some((_, input)) = self.inputs.iter_mut().find(|(id, _)| *id == node) {
            input.message(&mut cx, message);
        } else if let Some(Some(r)) = self.runners.get_mut(node.0 as usize) {
            r.message(&mut cx, message);
        } else {
            let tap = self.core.taps.iter_mut().flatten().find(|t| t.node == node);
            if let Some(TapSlot { tap: Some(tap), .. }) = tap {
                tap.message(message);
            }
            return;
        }
        self.rearm();
    }

    /// Sleeps until a descriptor, the main thread or the deadline calls.
    fn sleep(&mut self, deadline: Option<u64>) {
        let timeout = match deadline {
            Some(t) => {
                let left = t.saturating_sub(clock::ticks());
                if left == 0 {
                    return;
                }
                Some(std::time::Duration::from_secs_f64(left as f64 / clock::hz()))
            }
            None => None,
        };
        self.waker.begin_sleep();
        if self.inbox.is_empty() {
            self.core.stats.totals.sleeps.add(1);
            for (id, _) in &self.inputs {
                self.core.stats.node(*id).suspends.add(1);
            }
            self.reader.offline();
            self.poller.wait(timeout);
        }
        self.waker.end_sleep();
    }

    /// Frees what is pending and hands everything back: the pool must be whole afterwards.
    pub(crate) fn shut_down(&mut self) {
        for p in &mut self.core.pending {
            for mut f in p.full.drain(..).chain(p.open.take()) {
                self.core.cache.free_frame(&mut f);
            }
        }
        self.inputs.clear();
        self.runners.clear();
        self.core.taps.clear();
    }
}

#[inline]
fn note(stats: &crate::stats::NodeStats, n: u64, clocks: u64) {
    stats.calls.add(1);
    stats.vectors.add(n);
    stats.clocks.add(clocks);
    if clocks > stats.max_clocks.get() {
        stats.max_clocks.set(clocks);
        stats.max_vectors.set(n);
    }
}

/// Runs nodes in the graph's order until no frame is pending; returns the packets handled by the
/// first nodes (so that injected packets count as work).
fn dispatch(
    core: &mut Core,
    runners: &mut [Option<Box<dyn Runner>>],
    guard: &Guard<'_>,
    arcs: &ArcTable,
) -> usize {
    let mut handled = 0;
    let mut at = clock::ticks();
    while let Some((rank, id)) = core.first_ready() {
        // Only what is there now: a node upstream may have more for us meanwhile.
        let waiting = {
            let p = &core.pending[id.0 as usize];
            p.full.len() + usize::from(p.open.is_some())
        };
        core.clear_ready(rank);
        core.current = id;
        for _ in 0..waiting {
            let Some(frame) = core.next_frame(id) else { break };
            let n = frame.len();
            handled += n;
            let mut cx = NodeCx { core, guard, arcs, node: id };
            match runners.get_mut(id.0 as usize) {
                Some(Some(r)) => r.run(&mut cx, frame),
                // An arc or adjacency still named a node that is gone: nothing is lost silently.
                _ => cx.dropped_frame(frame),
            }
            let now = clock::ticks();
            note(core.stats.node(id), n as u64, now - at);
            at = now;
        }
    }
    handled
}
