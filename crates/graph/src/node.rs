//! Nodes: the traits, the verdict, and the loop that runs a per-packet function over a frame.

use crate::decl::{ArcId, NodeId};
use crate::stats::WorkerStats;
use crate::worker::NodeCx;
use std::any::Any;
use std::fmt::Write;
use std::os::fd::RawFd;
use std::sync::Arc;
use thalweg_buffer::simd::{self, Lanes, Level};
use thalweg_buffer::{Flags, Frame, Iface, PacketKey, PktMut, Rows, SwIfIndex};
use thalweg_tables::prefetch::Line;

/// A counter of a node, by its index in the declaration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErrorCode(pub u16);

/// A node's decision about a packet. "Kept" cannot be returned without taking the packet: see
/// [`NodeCx::take`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a verdict decides where the packet goes"]
pub struct Verdict(pub(crate) u32);

pub(crate) const SLOT: u32 = 0;
pub(crate) const NODE: u32 = 1 << 28;
pub(crate) const DROP: u32 = 2 << 28;
pub(crate) const CONTINUE: u32 = 3 << 28;
pub(crate) const KEPT: u32 = 4 << 28;
pub(crate) const KIND: u32 = 0xf << 28;

impl Verdict {
    /// Sends the packet to the declaration's next node `slot`.
    pub const fn next(slot: u16) -> Verdict {
        Verdict(SLOT | slot as u32)
    }
    /// Sends the packet to a node found at run time: an interface's output, a feature.
    #[inline]
    pub const fn node(id: NodeId) -> Verdict {
        Verdict(NODE | id.0 as u32)
    }
    /// Drops the packet for a reason.
    #[inline]
    pub const fn drop(reason: ErrorCode) -> Verdict {
        Verdict(DROP | reason.0 as u32)
    }
    /// Returns whether the packet is dropped.
    #[inline]
    pub const fn is_drop(self) -> bool {
        self.0 & KIND == DROP
    }
    /// Passes the packet on along the feature arc.
    pub const CONTINUE: Verdict = Verdict(CONTINUE);
}

/// A frame kernel's decision.
pub enum FrameVerdict {
    /// Nothing: the engine calls [`Node::packet`] for each packet.
    PerPacket,
    /// The whole frame has one verdict.
    Whole(Verdict),
    /// The kernel has written a verdict for each packet except these, for which the engine calls
    /// [`Node::packet`].
    Each(Rows),
}

/// A node that processes packets one by one; the engine does the rest.
pub trait Node: Send + 'static {
    /// False for nodes that do not read packets.
    const TOUCHES_DATA: bool = true;

    /// Runs before each frame: per-frame work (lookups that hold for a uniform frame).
    #[inline]
    fn begin(&mut self, _cx: &mut NodeCx<'_>, _frame: &Frame) {}

    /// Returns the verdict for the whole frame that [`begin`](Self::begin) saw, if no packet of it
    /// needs a look: a frame of one packet then costs no more than a full one. Frames with traced
    /// packets do not ask for it.
    #[inline]
    fn whole(&self) -> Option<Verdict> {
        None
    }

    /// Decides about one packet.
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict;

    /// Prefetches what [`packet`](Self::packet) will need; called a few packets ahead of it.
    #[inline]
    fn prefetch(&self, _cx: &NodeCx<'_>, _frame: &Frame, _i: usize) {}

    /// Frame kernel: decides about the common packets of a whole frame, and leaves the others to
    /// [`packet`](Self::packet). A test checks that both agree. A frame with traced packets does
    /// not come here.
    ///
    /// Mark it `#[inline(always)]`, and what it calls, too: it is then compiled for each of the
    /// levels of [`simd`], `V` being the lanes of one.
    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        _cx: &mut NodeCx<'_>,
        _frame: &mut Frame,
        _each: &mut [Verdict],
    ) -> FrameVerdict {
        FrameVerdict::PerPacket
    }

    /// Runs after each frame: returns what [`begin`](Self::begin) has taken.
    #[inline]
    fn end(&mut self, _cx: &mut NodeCx<'_>) {}

    /// Describes a traced packet after the verdict, in one or more lines; see `show trace`.
    fn trace(&self, _cx: &NodeCx<'_>, _frame: &Frame, _i: u8, _out: &mut dyn Write) {}

    /// Handles a message from the main thread.
    fn message(&mut self, _cx: &mut NodeCx<'_>, _message: Box<dyn Any + Send>) {}

    /// Runs in the next loop after [`NodeCx::ask_again`]: work done in slices.
    fn again(&mut self, _cx: &mut NodeCx<'_>) {}
}

/// A node as the worker sees it: runs frames.
pub trait Runner: Send {
    /// Processes a frame, which must leave through `cx`.
    fn run(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>);
    /// Handles a message from the main thread.
    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>);
    /// Runs in the next loop after [`NodeCx::ask_again`]: e.g. for a device whose ring was full.
    fn again(&mut self, _cx: &mut NodeCx<'_>) {}
}

/// Result of polling an input node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Poll {
    /// No packets; a descriptor will wake the worker.
    Idle,
    /// No packets now; poll again at this tick count.
    At(u64),
    /// Number of packets; poll again at once.
    Busy(usize),
}

/// A node that receives packets.
pub trait InputNode: Send + 'static {
    /// Receives pending packets, at most about a frame per queue, and passes them on by
    /// [`NodeCx::device_input`].
    fn poll(&mut self, cx: &mut NodeCx<'_>) -> Poll;
    /// Returns descriptors that become readable when there are packets to poll.
    fn descriptors(&self) -> Vec<RawFd> {
        Vec::new()
    }
    /// Returns the receive modes of its queues; none for a node without queues.
    fn rx_modes(&self) -> Vec<RxMode> {
        Vec::new()
    }
    /// Handles an error on a descriptor, which reports it until it is cleared.
    fn trouble(&mut self) {}
    /// Handles a message from the main thread. Descriptors and modes are read again afterwards.
    fn message(&mut self, _cx: &mut NodeCx<'_>, _message: Box<dyn Any + Send>) {}
}

/// Receive mode of a queue, as set by `set interface rx-mode`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RxMode {
    /// The worker never sleeps.
    Polling,
    /// The worker sleeps as soon as there are no packets.
    Interrupt,
    /// The worker polls through short gaps and sleeps through long ones.
    #[default]
    Adaptive,
}

impl RxMode {
    /// All modes.
    pub const ALL: [RxMode; 3] = [RxMode::Polling, RxMode::Interrupt, RxMode::Adaptive];

    /// Returns the mode of a worker with these queues: the most eager one.
    pub(crate) fn for_all(modes: impl Iterator<Item = RxMode>) -> RxMode {
        let eagerness = |m: &RxMode| match m {
            RxMode::Interrupt => 0,
            RxMode::Adaptive => 1,
            RxMode::Polling => 2,
        };
        modes.max_by_key(eagerness).unwrap_or_default()
    }

    /// Returns its name in commands.
    pub const fn name(self) -> &'static str {
        match self {
            RxMode::Polling => "polling",
            RxMode::Interrupt => "interrupt",
            RxMode::Adaptive => "adaptive",
        }
    }
}

/// Disposition of a sampled packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Sent by this interface. The packet may still be dropped, which is reported as well; a packet
    /// that features on the interface's output arc changed is reported once more.
    Sent(SwIfIndex),
    /// Like [`Sent`](Self::Sent), each packet by the interface in the frame's tx column.
    SentEach,
    /// Dropped; its aux is the index of the reason.
    Dropped,
    /// Delivered to the router itself.
    Delivered,
    /// Handed over to another worker, where it keeps its mark: the taps there are notified of its
    /// disposition under the sample id that it has from now on,
    /// [`Meta::sample_id`](thalweg_buffer::Meta).
    HandedOver,
}

/// Way in which a sampled packet leaves by several interfaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copies {
    /// Number of interfaces.
    pub outputs: u16,
    /// Its addresses, ports or tags may have been changed since it was sampled.
    pub changed: bool,
}

/// Inspects frames on an arc, once per frame, and cannot move them.
///
/// A tap runs on one worker's thread, between packets: it must not lock, allocate or wait.
pub trait Tap: Send + 'static {
    /// Inspects a frame. `on` is the interface for which the tap was enabled; on the drop arc a
    /// frame may be mixed, and the tap checks each packet.
    ///
    /// A tap that skips packets by [`TapCx::skip_packets`] is shown the frame that holds the next
    /// one it needs, and all frames with offload work.
    fn frame(&mut self, cx: &mut TapCx, frame: &mut Frame, on: Iface);
    /// Reports that packets of an interface have passed which the tap skipped: before it sees the
    /// next frame of that interface, and before [`settle`](Self::settle).
    fn passed(&mut self, _cx: &mut TapCx, _sw_if: SwIfIndex, _packets: u64) {}
    /// Calls both, one after the other; a tap on the hot path may combine them.
    #[inline]
    fn passed_and_frame(
        &mut self,
        cx: &mut TapCx,
        (sw_if, packets): (SwIfIndex, u64),
        frame: &mut Frame,
    ) {
        if packets > 0 {
            self.passed(cx, sw_if, packets);
        }
        self.frame(cx, frame, Iface::Uniform(sw_if));
    }
    /// Returns the cache lines that the tap needs first for an interface's frames, so that they are
    /// prefetched together before it is called. Called when it starts to inspect that interface.
    fn lines(&self, _sw_if: SwIfIndex) -> Option<[Line; NEEDED]> {
        None
    }
    /// Returns true if the tap marks packets by [`Frame::mark_sampled`], and thus is notified of
    /// marked packets. Called once.
    fn marks(&self) -> bool {
        false
    }
    /// Reports the disposition of packets that a tap has marked by [`Frame::mark_sampled`]. Packets
    /// with a sample id in [`Meta::sample_id`](thalweg_buffer::Meta) come from another worker.
    fn ends(&mut self, _frame: &Frame, _fate: Fate) {}
    /// Reports that a marked packet was delivered to the router itself; `sample_id` is 0 for one of
    /// this worker's.
    fn delivered(&mut self, _key: PacketKey, _sample_id: u32) {}
    /// Reports that a marked packet was replaced by another one.
    fn replaced(&mut self, _old: PacketKey, _new: PacketKey) {}
    /// Reports that a marked packet was freed without a disposition. Its buffer may be reused soon.
    fn gone(&mut self, _key: PacketKey) {}
    /// Reports that a marked packet leaves by several interfaces and has lost its mark;
    /// `sample_id` is 0 for one of this worker's.
    fn copied(&mut self, _key: PacketKey, _sample_id: u32, _copies: Copies) {}
    /// Publishes counters and samples: called when there is time, or has been none for long.
    fn settle(&mut self, _cx: &mut TapCx) {}
    /// Handles a message from the main thread.
    fn message(&mut self, _message: Box<dyn Any + Send>) {}
}

/// Number of cache lines that [`Tap::lines`] returns.
pub const NEEDED: usize = 3;

/// Limit of [`TapCx::skip_packets`]: its sum with a packet count does not overflow 64 bits.
pub(crate) const MAX_SKIP: u64 = 1 << 62;

/// Context of a tap. The tap owns it, so that a call has little to fill in.
#[repr(C)]
pub struct TapCx {
    pub(crate) now: u64,
    /// Number of packets that the tap does not need to see.
    pub(crate) skip: u64,
    pub(crate) arc: ArcId,
    pub(crate) error_base: u32,
    pub(crate) index: usize,
    pub(crate) stats: Arc<WorkerStats>,
}

impl TapCx {
    /// Skips the interface's next `packets` packets: the tap does not need to see them.
    #[inline]
    pub fn skip_packets(&mut self, packets: u64) {
        self.skip = packets.min(MAX_SKIP);
    }
    /// Returns the arc that the frame is on.
    #[inline]
    pub fn arc(&self) -> ArcId {
        self.arc
    }
    /// Counts `n` events.
    #[inline]
    pub fn count(&self, code: ErrorCode, n: u64) {
        self.stats.error(self.error_base + u32::from(code.0)).add(n);
    }
    /// Returns the index of this worker, from 0.
    pub fn worker(&self) -> usize {
        self.index
    }
    /// Returns the tick count at the start of the loop.
    pub fn now(&self) -> u64 {
        self.now
    }
    /// Returns the number of packets that this worker has received on an interface.
    pub fn rx_packets(&self, sw_if: SwIfIndex) -> u64 {
        self.stats.interface(sw_if).rx_packets.get()
    }
}

/// Number of packets that are prefetched ahead.
const AHEAD: usize = 6;

/// Frames with fewer packets do not go to kernels, whose set-up takes longer than deciding about so
/// small a number: a single IPv4 packet took 565 clocks end to end with them and 430 without, and
/// with four it came out even.
const FEW: usize = 4;

thread_local! {
    /// Bytes of the packet that a node was processing when it panicked, for the report.
    pub(crate) static PANIC_CONTEXT: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
}

/// Tracks the packet that a node is processing; if the node panics, saves the packet's bytes in
/// [`PANIC_CONTEXT`].
struct PanicContext<'f> {
    frame: &'f mut Frame,
    at: u8,
}

impl Drop for PanicContext<'_> {
    fn drop(&mut self) {
        if std::thread::panicking()
            && (self.at as usize) < self.frame.len()
            && !self.frame.has_holes()
        {
            let data = self.frame.data(self.at);
            let mut text = format!("packet of {} bytes: ", data.len());
            for b in data.iter().take(256) {
                let _ = write!(text, "{b:02x}");
            }
            PANIC_CONTEXT.with(|b| b.replace(text));
        }
    }
}

/// Runs a node's frame kernel.
struct AtOnce<'a, 'w, N> {
    node: &'a mut N,
    cx: &'a mut NodeCx<'w>,
    frame: &'a mut Frame,
    each: &'a mut [Verdict],
}

impl<N: Node> simd::Kernel for AtOnce<'_, '_, N> {
    type Out = FrameVerdict;
    #[inline(always)]
    fn run<V: Lanes>(self) -> FrameVerdict {
        self.node.frame::<V>(self.cx, self.frame, self.each)
    }
}

/// A value that one worker writes all the time, on cache lines of its own: the main thread
/// allocates the nodes of all workers next to each other.
#[repr(align(128))]
pub(crate) struct OwnLines<T>(pub(crate) T);

impl<N: InputNode> InputNode for OwnLines<N> {
    #[inline]
    fn poll(&mut self, cx: &mut NodeCx<'_>) -> Poll {
        self.0.poll(cx)
    }
    fn descriptors(&self) -> Vec<RawFd> {
        self.0.descriptors()
    }
    fn rx_modes(&self) -> Vec<RxMode> {
        self.0.rx_modes()
    }
    fn trouble(&mut self) {
        self.0.trouble();
    }
    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        self.0.message(cx, message);
    }
}

impl<R: Runner> Runner for OwnLines<R> {
    #[inline]
    fn run(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        self.0.run(cx, frame);
    }
    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        self.0.message(cx, message);
    }
    fn again(&mut self, cx: &mut NodeCx<'_>) {
        self.0.again(cx);
    }
}

impl<T: Tap> Tap for OwnLines<T> {
    #[inline]
    fn frame(&mut self, cx: &mut TapCx, frame: &mut Frame, on: Iface) {
        self.0.frame(cx, frame, on);
    }
    #[inline]
    fn passed(&mut self, cx: &mut TapCx, sw_if: SwIfIndex, packets: u64) {
        self.0.passed(cx, sw_if, packets);
    }
    #[inline]
    fn passed_and_frame(&mut self, cx: &mut TapCx, passed: (SwIfIndex, u64), frame: &mut Frame) {
        self.0.passed_and_frame(cx, passed, frame);
    }
    #[inline]
    fn ends(&mut self, frame: &Frame, fate: Fate) {
        self.0.ends(frame, fate);
    }
    fn lines(&self, sw_if: SwIfIndex) -> Option<[Line; NEEDED]> {
        self.0.lines(sw_if)
    }
    fn marks(&self) -> bool {
        self.0.marks()
    }
    fn delivered(&mut self, key: PacketKey, sample_id: u32) {
        self.0.delivered(key, sample_id);
    }
    fn replaced(&mut self, old: PacketKey, new: PacketKey) {
        self.0.replaced(old, new);
    }
    fn copied(&mut self, key: PacketKey, sample_id: u32, copies: Copies) {
        self.0.copied(key, sample_id, copies);
    }
    fn gone(&mut self, key: PacketKey) {
        self.0.gone(key);
    }
    fn settle(&mut self, cx: &mut TapCx) {
        self.0.settle(cx);
    }
    fn message(&mut self, message: Box<dyn Any + Send>) {
        self.0.message(message);
    }
}

/// Runs a [`Node`]'s per-packet function over frames.
#[repr(align(128))]
pub(crate) struct Adapter<N> {
    node: N,
}

impl<N: Node> Adapter<N> {
    pub(crate) fn new(node: N) -> Self {
        Adapter { node }
    }

    /// Decides about each packet; returns the bits in which verdicts differ from the first.
    #[inline]
    fn each(&mut self, cx: &mut NodeCx<'_>, frame: &mut Frame, each: &mut [Verdict]) -> u32 {
        let n = frame.len();
        let mut guard = PanicContext { frame, at: 0 };
        let frame = &mut *guard.frame;
        if n >= FEW {
            if N::TOUCHES_DATA {
                for i in 0..2 * AHEAD {
                    frame.prefetch_data(i);
                }
            }
            for i in 0..AHEAD.min(n) {
                self.node.prefetch(cx, frame, i);
            }
        }
        let mut first = Verdict(0);
        let mut differ = 0;
        for (i, slot) in each[..n].iter_mut().enumerate() {
            if N::TOUCHES_DATA {
                frame.prefetch_data(i + 2 * AHEAD);
            }
            if i + AHEAD < n {
                self.node.prefetch(cx, frame, i + AHEAD);
            }
            guard.at = i as u8;
            let v = self.node.packet(cx, frame.pkt(i as u8));
            if i == 0 {
                first = v;
            }
            differ |= v.0 ^ first.0;
            *slot = v;
        }
        // Its destructor matters only if the node panicked.
        std::mem::forget(guard);
        differ
    }

    /// Decides about each packet, and dispatches them.
    #[inline(never)]
    fn one_by_one(&mut self, cx: &mut NodeCx<'_>, mut frame: Box<Frame>, each: &mut [Verdict]) {
        let differ = self.each(cx, &mut frame, each);
        if differ == 0 && !frame.has_holes() && !frame.is_empty() {
            cx.dispose_whole(frame, each[0]);
        } else {
            cx.dispose(frame, each);
        }
    }

    /// Decides about the packets that a kernel has left.
    fn rest(&mut self, cx: &mut NodeCx<'_>, frame: &mut Frame, each: &mut [Verdict], rest: Rows) {
        let n = frame.len();
        let mut guard = PanicContext { frame, at: 0 };
        for i in rest.iter().take_while(|i| usize::from(*i) < n) {
            guard.at = i;
            each[usize::from(i)] = self.node.packet(cx, guard.frame.pkt(i));
        }
    }

    /// Decides about each packet and adds a trace step for each traced one; slow.
    #[cold]
    fn each_traced(&mut self, cx: &mut NodeCx<'_>, frame: &mut Frame, each: &mut [Verdict]) {
        let mut guard = PanicContext { frame, at: 0 };
        let frame = &mut *guard.frame;
        for i in 0..frame.len() {
            let i = i as u8;
            guard.at = i;
            let traced = frame.meta(i).flags().contains(Flags::TRACED);
            let number = frame.meta(i).trace;
            if traced {
                cx.keep_dispatch(number, frame, i);
            }
            let v = self.node.packet(cx, frame.pkt(i));
            each[i as usize] = v;
            if traced {
                let mut text = String::new();
                if v.0 & KIND == KEPT {
                    text.push_str("kept\n");
                } else {
                    self.node.trace(cx, frame, i, &mut text);
                }
                cx.add_trace(number, text);
            }
        }
    }
}

impl<N: Node> Runner for Adapter<N> {
    fn run(&mut self, cx: &mut NodeCx<'_>, mut frame: Box<Frame>) {
        self.node.begin(cx, &frame);
        let traced = frame.flags().contains(Flags::TRACED);
        if let Some(verdict) = self.node.whole().filter(|_| !traced) {
            cx.dispose_whole(frame, verdict);
            self.node.end(cx);
            return;
        }
        if frame.len() < FEW && !traced {
            let mut each = [Verdict::next(0); FEW];
            self.one_by_one(cx, frame, &mut each);
            self.node.end(cx);
            return;
        }
        let mut scratch = cx.take_scratch();
        let each = &mut scratch[..];
        if traced {
            self.each_traced(cx, &mut frame, each);
            cx.dispose(frame, each);
        } else {
            let decided = match simd::level() {
                Level::PerPacket => FrameVerdict::PerPacket,
                _ => simd::run(AtOnce { node: &mut self.node, cx, frame: &mut frame, each }),
            };
            match decided {
                FrameVerdict::Whole(v) => cx.dispose_whole(frame, v),
                FrameVerdict::Each(rest) => {
                    self.rest(cx, &mut frame, each, rest);
                    cx.dispose(frame, each);
                }
                FrameVerdict::PerPacket => self.one_by_one(cx, frame, each),
            }
        }
        cx.put_scratch(scratch);
        self.node.end(cx);
    }

    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        self.node.message(cx, message);
    }

    fn again(&mut self, cx: &mut NodeCx<'_>) {
        self.node.again(cx);
    }
}
