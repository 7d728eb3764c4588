//! A node's interface to its worker while it runs.

use super::taps::{RX, TX};
use super::{Core, DEVICE_INPUT, ERROR_DROP, HandOff, INTERFACE_OUTPUT, NodeCx};
use crate::arc::ArcTable;
use crate::clock;
use crate::decl::{ArcKey, NodeId};
use crate::mailbox::Event;
use crate::node::{CONTINUE, Copies, DROP, ErrorCode, Fate, KEPT, KIND, NODE, SLOT, Verdict};
use crate::stats::WorkerStats;
use crate::trace::TraceStep;
use std::fmt::Write;
use thalweg_buffer::{
    Cache, Deal, FRAME_SIZE, Flags, Frame, Iface, LOCAL_IF, Lineage, Packet, PktMut, SwIfIndex,
};
use thalweg_tables::qsbr::Guard;

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
    /// Returns the worker's read-side guard: references read through it are valid until the end of
    /// the loop.
    #[inline]
    pub fn guard(&self) -> &'w Guard<'w> {
        self.guard
    }
    /// Returns the current arcs.
    #[inline]
    pub fn arcs(&self) -> &'w ArcTable {
        self.arcs
    }
    /// Returns the id of this node.
    #[inline]
    pub fn node(&self) -> NodeId {
        self.node
    }
    /// Returns the index of this worker, from 0.
    #[inline]
    pub fn worker(&self) -> usize {
        self.core.index
    }
    /// Returns the tick count at the start of the loop.
    #[inline]
    pub fn now(&self) -> u64 {
        self.core.now
    }
    /// Returns the worker's cache of free buffers.
    #[inline]
    pub fn cache(&mut self) -> &mut Cache {
        &mut self.core.cache
    }
    /// Returns the worker's counters.
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
    /// Returns the global index of one of this node's counters: the value of aux on the way to a
    /// drop.
    #[inline]
    pub fn error_id(&self, code: ErrorCode) -> u32 {
        self.core.info[self.node.0 as usize].error_base + u32::from(code.0)
    }
    /// Returns a node's name.
    pub fn node_name(&self, id: NodeId) -> &str {
        self.core.info.get(id.0 as usize).map_or("?", |i| &i.name)
    }
    /// Returns next node `slot` of this node.
    #[inline]
    pub fn next_node(&self, slot: u16) -> NodeId {
        self.core.info[self.node.0 as usize].nexts[slot as usize]
    }

    /// Takes a packet out of its frame; the verdict marks it as kept.
    #[inline]
    pub fn take(&mut self, p: PktMut<'_>) -> (Packet, Verdict) {
        (p.take(), Verdict(KEPT))
    }

    /// Allocates a packet that the router itself originates, counted as originated.
    ///
    /// Packets made from another one come from [`derive`](Self::derive).
    pub fn originate(&mut self) -> Option<Packet> {
        let mut p = self.core.cache.alloc()?;
        p.mark(Flags::LOCAL);
        self.core.stats.totals.originated.add(1);
        if !self.core.trace.wanted.is_empty() {
            self.core.mark_made(self.node, &mut p);
        }
        Some(p)
    }

    /// Allocates an empty packet that is made of another one (a fragment, a segment, a copy),
    /// counted as originated. The new packet is treated as the other is: a forwarded packet's
    /// fragments are forwarded packets.
    pub fn derive(&mut self, from: Lineage) -> Option<Packet> {
        let mut p = self.core.cache.alloc()?;
        p.inherit(from);
        self.core.stats.totals.originated.add(1);
        Some(p)
    }

    /// Copies a packet, with its offload work, for a further receiver: flooding, multicast and
    /// mirroring. `None` if there are not enough buffers. To be asked for before the first copy:
    /// [`may_copy`](Self::may_copy).
    pub fn copy(&mut self, of: &PktMut<'_>) -> Option<Packet> {
        let mut new = self.derive(of.lineage())?;
        let mut whole = true;
        for segment in of.segments() {
            whole &= new.append(segment, self.cache());
        }
        if of.flags().contains(Flags::OFFLOAD) {
            new.meta_mut().offload = of.meta().offload;
            new.mark(Flags::OFFLOAD);
        }
        if !whole {
            self.consume(new);
            return None;
        }
        Some(new)
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

    /// Hands an owned packet to the queue's node on a worker, which may be this one.
    ///
    /// A per-packet function returns [`HandOff::to`] instead.
    pub fn hand_off(&mut self, packet: Packet, queue: &HandOff, worker: usize) {
        self.send(packet, queue.to(worker));
    }

    /// Hands a whole frame to the queue's node on a worker, which may be this one.
    pub fn hand_off_frame(&mut self, frame: Box<Frame>, queue: &HandOff, worker: usize) {
        self.enqueue(frame, queue.node(worker));
    }

    /// Frees an owned packet that other packets replace.
    pub fn consume(&mut self, packet: Packet) {
        if packet.meta().flags().contains(Flags::SAMPLED) {
            self.core.sampled_gone(packet.key());
        }
        self.core.stats.totals.consumed.add(1);
        self.core.cache.free(packet);
    }

    /// Records that `new` replaces `old`, as the first of its fragments or segments: the trace of
    /// `old` goes on with it, and if `old` was sampled, the disposition of `new` is reported as its
    /// own.
    #[inline]
    pub fn replaces(&mut self, old: &mut Packet, new: &mut Packet) {
        if old.meta().flags().contains(Flags::TRACED) {
            old.unmark(Flags::TRACED);
            new.mark(Flags::TRACED);
            new.meta_mut().trace = old.meta().trace;
        }
        if old.meta().flags().contains(Flags::SAMPLED) {
            old.unmark(Flags::SAMPLED);
            let translated = old.meta().flags().contains(Flags::TRANSLATED);
            let also = if translated { Flags::TRANSLATED } else { Flags::empty() };
            new.mark(Flags::SAMPLED.union(also));
            if old.meta().sample_id != 0 {
                new.meta_mut().sample_id = old.meta().sample_id;
            }
            self.core.sampled_replaced(old, new);
        }
    }

    /// Records that a packet leaves by `outputs` interfaces, all but one by copies: if it was
    /// sampled, that is its disposition.
    #[inline]
    pub fn copied(&mut self, p: &mut PktMut<'_>, outputs: u16) {
        if p.flags().contains(Flags::SAMPLED) {
            p.unmark(Flags::SAMPLED);
            let changed = p.flags().contains(Flags::TRANSLATED);
            let copies = Copies { outputs, changed };
            self.core.sampled_copied(p.key(), p.meta().sample_id, copies);
        }
    }

    /// Frees a frame of packets that were delivered to the router itself.
    pub fn deliver_frame(&mut self, mut frame: Box<Frame>) {
        if frame.flags().contains(Flags::SAMPLED) {
            frame.compact(());
            self.core.sampled_end(&frame, Fate::Delivered);
        }
        self.core.stats.totals.delivered.add(frame.len() as u64);
        self.core.cache.free_frame(&mut frame);
        self.core.recycle(frame);
    }

    /// Frees an owned packet that was delivered to the router itself.
    pub fn deliver(&mut self, packet: Packet) {
        if packet.meta().flags().contains(Flags::SAMPLED) {
            self.core.sampled_delivered(packet.key(), packet.meta().sample_id);
        }
        self.core.stats.totals.delivered.add(1);
        self.core.cache.free(packet);
    }

    /// Frees a frame that was handed to a device.
    pub fn sent_frame(&mut self, mut frame: Box<Frame>) {
        // Checked here, not where it is counted as sent: features of the output arc may change or
        // drop it, and the branch is unpredictable, so one check is enough.
        if frame.flags().contains(Flags::SAMPLED) {
            match frame.tx() {
                Iface::Uniform(sw_if) if sw_if != LOCAL_IF => {
                    self.core.sampled_end(&frame, Fate::Sent(sw_if));
                }
                Iface::Mixed => self.core.sampled_end(&frame, Fate::SentEach),
                Iface::Uniform(_) => {
                    frame.sampled().iter().for_each(|i| self.core.sampled_gone(frame.key(i)));
                }
            }
        }
        self.core.stats.totals.tx.add(frame.len() as u64);
        self.core.cache.free_frame(&mut frame);
        self.core.recycle(frame);
    }

    /// Counts packets as dropped that were counted as [sent](Self::sent_frame), and that the device
    /// of an interface gave up later.
    pub fn count_refused(
        &mut self,
        sw_if: SwIfIndex,
        (packets, bytes): (u64, u64),
        why: ErrorCode,
    ) {
        self.count(why, packets);
        let stats = &self.core.stats;
        stats.interface(sw_if).refused(packets, bytes);
        stats.totals.tx.set(stats.totals.tx.get().wrapping_sub(packets));
        stats.totals.dropped.add(packets);
    }

    /// Frees a frame of dropped packets; for the `drop` node.
    pub(crate) fn dropped_frame(&mut self, mut frame: Box<Frame>) {
        self.core.stats.totals.dropped.add(frame.len() as u64);
        self.core.cache.free_frame(&mut frame);
        self.core.recycle(frame);
    }

    /// Returns an empty frame.
    #[inline]
    pub fn new_frame(&mut self) -> Box<Frame> {
        self.core.spare_frame()
    }

    /// Returns a frame with up to `want` packets of `len` bytes each, of undefined contents.
    #[inline]
    pub fn alloc_frame(&mut self, want: usize, len: usize) -> Box<Frame> {
        let mut frame = self.core.spare_frame();
        self.core.cache.alloc_into(&mut frame, want, len);
        frame
    }

    /// Returns an empty frame to the worker.
    #[inline]
    pub fn put_frame(&mut self, frame: Box<Frame>) {
        self.core.recycle(frame);
    }

    /// Receives a frame from a device: counts it, runs taps, marks traced packets (`trace`
    /// describes them), and passes it to the interface's first feature or protocol.
    pub fn device_input(
        &mut self,
        mut frame: Box<Frame>,
        sw_if: SwIfIndex,
        trace: impl Fn(&Frame, u8, &mut dyn Write),
    ) {
        if frame.is_empty() {
            self.core.recycle(frame);
            return;
        }
        frame.set_rx(sw_if);
        self.core.stats.totals.rx.add(frame.len() as u64);
        self.trace_input(&mut frame, trace);
        self.interface_input(&mut frame, sw_if);
        let to = self.arcs.start(DEVICE_INPUT, sw_if);
        self.core.enqueue(frame, to);
    }

    /// Counts a frame as received by an interface, and runs its taps. For interfaces without a
    /// device, to which packets come that a device has received; those of devices go by
    /// [`device_input`](Self::device_input), which alone counts what comes from a wire.
    #[inline(always)]
    pub fn interface_input(&mut self, frame: &mut Frame, sw_if: SwIfIndex) {
        let i = self.core.stats.interface(sw_if);
        let count = i.rx_packets.get().wrapping_add(frame.len() as u64);
        i.rx_packets.set(count);
        i.rx_bytes.add(frame.bytes());
        let offload = frame.flags().contains(Flags::OFFLOAD);
        if self.core.taps.due::<RX>(sw_if, count, offload) {
            self.core.run_gate::<RX>(sw_if, count, frame);
        }
    }

    /// Counts packets as received by an interface whose taps never see such, since they have no
    /// Ethernet header.
    pub fn count_input_past_taps(&mut self, sw_if: SwIfIndex, packets: u64, bytes: u64) {
        self.count_input(sw_if, packets, bytes);
        self.core.taps.let_pass::<RX>(sw_if, packets);
    }

    /// Counts some packets of a frame as received by an interface without a device. Its taps do not
    /// see them: see [`input_taps_wait`](Self::input_taps_wait).
    #[inline]
    pub fn count_input(&self, sw_if: SwIfIndex, packets: u64, bytes: u64) {
        let i = self.core.stats.interface(sw_if);
        i.rx_packets.add(packets);
        i.rx_bytes.add(bytes);
    }

    /// Returns whether a tap has to see one of the next packets that an interface receives, in a
    /// frame of its own ([`interface_input`](Self::interface_input)).
    #[inline]
    pub fn input_taps_wait(&self, sw_if: SwIfIndex, packets: u64) -> bool {
        let count = self.core.stats.interface(sw_if).rx_packets.get().wrapping_add(packets);
        self.core.taps.due::<RX>(sw_if, count, true)
    }

    /// Returns whether any interface has features for what it receives: if not, there is no need to
    /// ask for [one](Self::has_input_features).
    #[inline]
    pub fn are_input_features(&self) -> bool {
        self.arcs.is_used(DEVICE_INPUT)
    }

    /// Returns whether an interface has features for what it receives. Packets that enter one
    /// without a device have to go to them: see [`enter_interface`](Self::enter_interface).
    #[inline]
    pub fn has_input_features(&self, sw_if: SwIfIndex) -> bool {
        self.arcs.first(DEVICE_INPUT, sw_if).is_some()
    }

    /// Passes a frame on as received by an interface without a device: to its features, and behind
    /// them to the end of the arc `device-input`. Counts it, and runs taps.
    pub fn enter_interface(&mut self, mut frame: Box<Frame>, sw_if: SwIfIndex) {
        frame.set_rx(sw_if);
        self.interface_input(&mut frame, sw_if);
        let to = self.arcs.start(DEVICE_INPUT, sw_if);
        self.core.enqueue(frame, to);
    }

    /// Marks packets of a fresh frame for tracing (`trace` describes them), as
    /// [`device_input`](Self::device_input) does: for an input node whose packets enter elsewhere.
    #[inline]
    pub fn trace_input(&mut self, frame: &mut Frame, trace: impl Fn(&Frame, u8, &mut dyn Write)) {
        if !self.core.trace.wanted.is_empty() {
            self.core.mark_traced(self.node, frame, &trace);
        }
    }

    /// Sends a frame out by an interface: counts it, runs taps, and passes it on to the interface's
    /// first output feature or its device. For the interface's output node.
    pub fn interface_output(&mut self, mut frame: Box<Frame>, sw_if: SwIfIndex) {
        frame.set_tx(sw_if);
        self.count_output(&mut frame, sw_if);
        let to = self.arcs.start(INTERFACE_OUTPUT, sw_if);
        self.core.enqueue(frame, to);
    }

    /// Counts a frame as sent by an interface, and runs its taps.
    #[inline(always)]
    fn count_output(&mut self, frame: &mut Frame, sw_if: SwIfIndex) {
        let i = self.core.stats.interface(sw_if);
        let count = i.tx_packets.get().wrapping_add(frame.len() as u64);
        i.tx_packets.set(count);
        i.tx_bytes.add(frame.bytes());
        let offload = frame.flags().contains(Flags::OFFLOAD);
        if self.core.taps.due::<TX>(sw_if, count, offload) {
            self.core.run_gate::<TX>(sw_if, count, frame);
        }
    }

    /// Like [`interface_output`](Self::interface_output), for a frame of packets that leave by the
    /// interfaces in the frame's tx column: by `port` on behalf of that and its sub-interfaces, or
    /// by interfaces without a device if there is no port. The frame is counted for `port` and for
    /// each of them, and takes the arc of each.
    ///
    /// Taps of these interfaces see frames of one interface only: see
    /// [`output_taps_wait`](Self::output_taps_wait).
    pub fn interfaces_output(&mut self, mut frame: Box<Frame>, port: Option<SwIfIndex>) {
        if let Some(port) = port {
            self.count_output(&mut frame, port);
        }
        if let Iface::Uniform(sw_if) = frame.tx() {
            if Some(sw_if) != port {
                self.count_output(&mut frame, sw_if);
            }
            let to = self.arcs.start(INTERFACE_OUTPUT, sw_if);
            self.core.enqueue(frame, to);
            return;
        }
        let (mut at, mut nodes) = (0, [0u32; FRAME_SIZE]);
        for (sw_if, n) in frame.tx_runs() {
            if Some(sw_if) != port {
                let i = self.core.stats.interface(sw_if);
                i.tx_packets.add(n as u64);
                i.tx_bytes.add((at..at + n).map(|i| frame.total_len(i as u8) as u64).sum());
            }
            let to = self.arcs.start(INTERFACE_OUTPUT, sw_if);
            nodes[at..at + n].fill(u32::from(to.0));
            at += n;
        }
        self.deal(frame, &nodes);
    }

    /// Returns whether a tap has to see one of the next packets that an interface sends.
    pub fn output_taps_wait(&self, sw_if: SwIfIndex, packets: u64) -> bool {
        let count = self.core.stats.interface(sw_if).tx_packets.get().wrapping_add(packets);
        self.core.taps.due::<TX>(sw_if, count, true)
    }

    /// Runs the taps of the drop arc on a frame; for the `error-drop` node.
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
        if frame.flags().contains(Flags::SAMPLED) {
            self.core.sampled_end(frame, Fate::Dropped);
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

    /// Passes a whole frame on to next node `slot` of this node.
    #[inline]
    pub fn enqueue_next(&mut self, frame: Box<Frame>, slot: u16) {
        self.enqueue(frame, self.next_node(slot));
    }

    /// Requests a call of [`Runner::again`](crate::Runner::again) of this node in the next loop;
    /// until then the worker does not sleep.
    pub fn ask_again(&mut self) {
        if !self.core.again.contains(&self.node) {
            self.core.again.push(self.node);
        }
    }

    /// Drops a whole frame for a reason of this node.
    pub fn drop_frame(&mut self, frame: Box<Frame>, reason: ErrorCode) {
        self.dispose_whole(frame, Verdict::drop(reason));
    }

    /// Sends an event to the main thread. Returns false if its queue is full (counted).
    pub fn event(&mut self, event: Event) -> bool {
        self.core.event(event)
    }

    /// Like [`event`](Self::event), but leaves half of the queue to other events: for events that
    /// hosts can flood, and those that come again.
    pub fn event_if_room(&mut self, event: Event) -> bool {
        self.core.event_if_room(event)
    }

    /// Passes a value to the main thread to be dropped: workers do not unmap memory or close files.
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

    /// Keeps this node's turn with a traced packet, if a capture of dispatches runs.
    pub(crate) fn keep_dispatch(&mut self, number: u16, frame: &Frame, i: u8) {
        self.core.trace.dispatch(number, self.node, frame, i);
    }

    /// Adds to the traces of a whole frame's traced packets; for nodes that run frames themselves.
    pub fn trace_frame(&mut self, frame: &Frame, say: impl Fn(&Frame, u8, &mut dyn Write)) {
        if frame.flags().contains(Flags::TRACED) {
            for i in 0..frame.len() as u16 {
                let i = i as u8;
                if frame.meta(i).flags().contains(Flags::TRACED) {
                    let mut text = String::new();
                    say(frame, i, &mut text);
                    let number = frame.meta(i).trace;
                    self.keep_dispatch(number, frame, i);
                    self.add_trace(number, text);
                }
            }
        }
    }

    #[inline]
    fn resolve(&self, v: Verdict, rx_if: SwIfIndex, tx_if: SwIfIndex) -> NodeId {
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

    /// Dispatches all packets of a frame by one verdict.
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

    /// Dispatches each packet of a frame by its own verdict.
    pub(crate) fn dispose(&mut self, mut frame: Box<Frame>, each: &mut [Verdict]) {
        if frame.has_holes() {
            frame.compact(verdict_words(each));
        }
        let n = frame.len();
        if n == 0 {
            self.core.recycle(frame);
            return;
        }
        let same = each[0];
        if same != Verdict::CONTINUE && each[..n].iter().fold(0, |d, v| d | (v.0 ^ same.0)) == 0 {
            self.dispose_whole(frame, same);
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
        self.deal(frame, &nodes);
    }

    /// Passes each packet of a frame to its node.
    #[inline(always)]
    fn deal(&mut self, mut frame: Box<Frame>, nodes: &[u32; FRAME_SIZE]) {
        let to = &nodes[..frame.len()];
        let first = to.first().copied().unwrap_or_default();
        if to.iter().fold(0, |differ, t| differ | (t ^ first)) == 0 {
            self.core.enqueue(frame, NodeId(first as u16));
            return;
        }
        frame.deal(nodes, &mut Dealer { core: self.core });
        self.core.recycle(frame);
    }

    /// Resolves each packet's verdict to a node and notes the reasons of drops.
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

/// Returns verdicts as plain words, to compact them along with a frame.
fn verdict_words(v: &mut [Verdict]) -> Companion<'_> {
    Companion(v)
}

pub(crate) struct Companion<'a>(&'a mut [Verdict]);

impl thalweg_buffer::Companion for Companion<'_> {
    fn keep(&mut self, from: usize, to: usize) {
        self.0[to] = self.0[from];
    }
}
