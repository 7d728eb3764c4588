//! A small graph for the engine's tests: packets are made on demand, their first byte selects their
//! path, and each end records what it saw.

// Each test binary uses a part of it.
#![allow(dead_code)]

use std::any::Any;
use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};
use thalweg_buffer::{Flags, Frame, Iface, Packet, PktMut, PoolConfig, SwIfIndex};
use thalweg_graph::stats::Totals;
use thalweg_graph::{
    ArcDecl, ArcId, ArcKey, Built, Control, EngineConfig, EngineError, ErrorDecl, FeatureDecl,
    HandOff, InputNode, Kind, Node, NodeCx, NodeDecl, NodeId, Part, Poll, Runner, Severity, Tap,
    TapCx, Verdict,
};

/// First byte of a packet, which selects its path.
pub const TO_SINK: u8 = 0;
/// Packets go to the other sink.
pub const TO_OTHER: u8 = 1;
/// Dropped for the splitter's reason.
pub const TO_DROP: u8 = 2;
/// Kept until released.
pub const TO_KEEP: u8 = 3;
/// Delivered to the router itself.
pub const TO_DELIVER: u8 = 4;
/// Packets go to the node that a message named.
pub const TO_NODE: u8 = 5;
/// A reason to panic.
pub const TO_PANIC: u8 = 6;
/// Packets go to the first sink, on another worker: see [`to_worker`].
pub const TO_WORKER: u8 = 7;

/// Returns the byte that sends packets to the first sink on a worker.
pub const fn to_worker(worker: u8) -> u8 {
    TO_WORKER | worker << 4
}

/// The queue by which it goes there.
pub const QUEUE: &str = "test-queue";

/// Notes of the nodes of one control.
#[derive(Default)]
pub struct Notes {
    /// Sequence numbers in the order of arrival, by sink (0, 1) and worker.
    pub arrived: Mutex<Vec<(u8, usize, u32)>>,
    /// Lengths of the frames that the first sink got.
    pub frames: Mutex<Vec<usize>>,
    /// Addresses of the input's frames and of the sink's frames.
    pub made_at: Mutex<Vec<usize>>,
    pub seen_at: Mutex<Vec<usize>>,
    /// Frames and packets that the taps saw.
    pub tap_frames: AtomicU64,
    pub tap_packets: AtomicU64,
    pub drop_tap_packets: AtomicU64,
    /// Packets through the device-input feature and the test arc's feature.
    pub feature: AtomicU64,
    pub arc_feature: AtomicU64,
    /// Packets that ended with the mark of a sampled packet.
    pub sampled: AtomicU64,
    /// Ticks at which a wake-up's first packet arrived.
    pub last_arrival: AtomicU64,
}

/// Makes the input send packets.
pub struct Make {
    pub sw_if: SwIfIndex,
    /// One frame per element: the kind of each packet.
    pub frames: Vec<Vec<u8>>,
}

thalweg_graph::errors! {
    REASON: Error, TTL_EXCEEDED, "the packet asked for it";
    SEEN: Info, UNKNOWN, "packets looked at";
}

mod input {
    use super::*;
    thalweg_graph::errors! { NO_BUFFER: Warning, UNKNOWN, "no buffer for a packet"; }

    pub static NODE: NodeDecl = NodeDecl {
        name: "test-input",
        kind: Kind::Input,
        errors: ERRORS,
        build: |cx| {
            let notes = cx.shared::<Notes>();
            Built::input(Input { notes, jobs: VecDeque::new(), next: (cx.worker as u32) << 24 })
        },
        ..NodeDecl::DEFAULT
    };

    struct Input {
        notes: Arc<Notes>,
        jobs: VecDeque<(SwIfIndex, Vec<u8>)>,
        next: u32,
    }

    impl InputNode for Input {
        fn poll(&mut self, cx: &mut NodeCx<'_>) -> Poll {
            let Some((sw_if, kinds)) = self.jobs.front_mut() else { return Poll::Idle };
            let mut frame = cx.alloc_frame(kinds.len(), 60);
            let (n, sw_if) = (frame.len(), *sw_if);
            for (i, kind) in kinds.drain(..n).enumerate() {
                let mut p = frame.pkt(i as u8);
                let data = p.data_mut();
                data.fill(0);
                data[0] = kind;
                data[4..8].copy_from_slice(&self.next.to_be_bytes());
                self.next += 1;
            }
            let starved = !kinds.is_empty();
            if !starved {
                self.jobs.pop_front();
            }
            self.notes.made_at.lock().unwrap().push(&raw const *frame as usize);
            cx.device_input(frame, sw_if, |f, i, out| {
                let _ = writeln!(out, "test packet of kind {}", f.data(i)[0]);
            });
            match (starved, n) {
                (true, 0) => {
                    cx.count(NO_BUFFER, 1);
                    Poll::At(cx.now() + thalweg_graph::clock::ticks_in(Duration::from_micros(50)))
                }
                _ => Poll::Busy(n),
            }
        }

        fn message(&mut self, _: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
            let make = message.downcast::<Make>().expect("input takes Make");
            self.jobs.extend(make.frames.into_iter().map(|f| (make.sw_if, f)));
        }
    }
}

/// Replaces the real one, where the device-input arc ends; leads into the test arc.
static ETHERNET: NodeDecl = NodeDecl {
    name: "ethernet-input",
    next: &["test-split"],
    build: |cx| Built::node(Ethernet { arc: cx.arc("test-arc") }),
    ..NodeDecl::DEFAULT
};

struct Ethernet {
    arc: ArcId,
}

impl Node for Ethernet {
    const TOUCHES_DATA: bool = false;
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        match cx.arcs().first(self.arc, p.rx_if()) {
            Some(feature) => Verdict::node(feature),
            None => Verdict::next(0),
        }
    }
    fn trace(&self, _: &NodeCx<'_>, f: &Frame, i: u8, out: &mut dyn Write) {
        let _ = writeln!(out, "from {}", thalweg_graph::trace::interface_token(f.rx_if(i)));
    }
}

static SPLIT: NodeDecl = NodeDecl {
    name: "test-split",
    next: &["test-sink", "test-other", "test-keep", "test-deliver", "test-owner"],
    errors: ERRORS,
    build: |_| Built::node(Split { node: None }),
    ..NodeDecl::DEFAULT
};

struct Split {
    node: Option<NodeId>,
}

impl Node for Split {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        cx.count(SEEN, 1);
        match p.data()[0] & 0xf {
            TO_SINK => Verdict::next(0),
            TO_OTHER => Verdict::next(1),
            TO_KEEP => Verdict::next(2),
            TO_DELIVER => Verdict::next(3),
            TO_NODE => self.node.map_or(Verdict::drop(REASON), Verdict::node),
            TO_PANIC => panic!("asked to"),
            TO_WORKER => Verdict::next(4),
            _ => Verdict::drop(REASON),
        }
    }
    fn trace(&self, _: &NodeCx<'_>, f: &Frame, i: u8, out: &mut dyn Write) {
        let _ = writeln!(out, "kind {}", f.data(i)[0]);
    }
    fn message(&mut self, _: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        self.node = message.downcast::<NodeId>().ok().map(|id| *id);
    }
}

/// Sends packets to the worker that they name, and marks every fourth as sampled.
static OWNER: NodeDecl = NodeDecl {
    name: "test-owner",
    build: |cx| Built::node(Owner { queue: cx.hand_off(QUEUE) }),
    ..NodeDecl::DEFAULT
};

struct Owner {
    queue: HandOff,
}

impl Node for Owner {
    fn packet(&mut self, _: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        if p.data()[7].is_multiple_of(4) {
            p.mark(Flags::SAMPLED);
        }
        self.queue.to(usize::from(p.data()[0] >> 4))
    }
    fn trace(&self, _: &NodeCx<'_>, f: &Frame, i: u8, out: &mut dyn Write) {
        let _ = writeln!(out, "owned by {}", f.data(i)[0] >> 4);
    }
    fn message(&mut self, _: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        self.queue = *message.downcast().expect("takes a queue");
    }
}

/// Ends packets: as sent (the sinks) or as delivered.
struct End {
    notes: Arc<Notes>,
    number: u8,
}

impl Runner for End {
    fn run(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        self.notes.last_arrival.store(thalweg_graph::clock::ticks(), Relaxed);
        let worker = cx.worker();
        let seq = |i| u32::from_be_bytes(frame.data(i)[4..8].try_into().expect("4 bytes"));
        let rows = (0..frame.len()).map(|i| (self.number, worker, seq(i as u8)));
        self.notes.arrived.lock().unwrap().extend(rows);
        if frame.flags().contains(Flags::SAMPLED) {
            self.notes.sampled.fetch_add(frame.sampled().len() as u64, Relaxed);
        }
        if self.number == 0 {
            self.notes.frames.lock().unwrap().push(frame.len());
            self.notes.seen_at.lock().unwrap().push(&raw const *frame as usize);
        }
        cx.trace_frame(&frame, |_, _, out| {
            let _ = writeln!(out, "the end");
        });
        match self.number {
            2 => cx.deliver_frame(frame),
            _ => cx.sent_frame(frame),
        }
    }
    /// Pauses between two visits to a barrier.
    fn message(&mut self, _: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        if let Ok(stop) = message.downcast::<Arc<Barrier>>() {
            stop.wait();
            stop.wait();
        }
    }
}

static SINK: NodeDecl = NodeDecl {
    name: "test-sink",
    kind: Kind::Tx,
    build: |cx| Built::Node(Box::new(End { notes: cx.shared(), number: 0 })),
    ..NodeDecl::DEFAULT
};

static OTHER: NodeDecl = NodeDecl {
    name: "test-other",
    kind: Kind::Tx,
    build: |cx| Built::Node(Box::new(End { notes: cx.shared(), number: 1 })),
    ..NodeDecl::DEFAULT
};

static DELIVER: NodeDecl = NodeDecl {
    name: "test-deliver",
    build: |cx| Built::Node(Box::new(End { notes: cx.shared(), number: 2 })),
    ..NodeDecl::DEFAULT
};

/// A run-time node, as an interface's output would be; it counts as the other sink.
pub static RUNTIME: NodeDecl = NodeDecl {
    name: "test-runtime",
    kind: Kind::Tx,
    build: |cx| Built::Node(Box::new(End { notes: cx.shared(), number: 1 })),
    ..NodeDecl::DEFAULT
};

/// Another one, with counters.
pub static COUNTING: NodeDecl = NodeDecl {
    name: "test-counting",
    errors: &[
        ErrorDecl { name: "A", text: "a", severity: Severity::Info, discard: 256 },
        ErrorDecl { name: "B", text: "b", severity: Severity::Error, discard: 256 },
    ],
    kind: Kind::Tx,
    ..NodeDecl::DEFAULT
};

/// An instance for [`Control::add_node`].
pub fn runtime(c: &Control) -> impl FnMut(usize) -> Built + use<> {
    let notes = c.shared::<Notes>();
    move |_| Built::Node(Box::new(End { notes: notes.clone(), number: 1 }))
}

/// Actions on kept packets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Release {
    Send,
    Drop,
    Deliver,
    Consume,
}

static KEEP: NodeDecl = NodeDecl {
    name: "test-keep",
    next: &["test-sink"],
    errors: ERRORS,
    build: |_| Built::node(Keep { held: Vec::new() }),
    ..NodeDecl::DEFAULT
};

struct Keep {
    held: Vec<Packet>,
}

impl Node for Keep {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let (packet, verdict) = cx.take(p);
        self.held.push(packet);
        verdict
    }
    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        let how = *message.downcast::<Release>().expect("keeper takes Release");
        for p in self.held.drain(..) {
            match how {
                Release::Send => cx.send(p, Verdict::next(0)),
                Release::Drop => cx.send(p, Verdict::drop(REASON)),
                Release::Deliver => cx.deliver(p),
                Release::Consume => cx.consume(p),
            }
        }
    }
}

static FEATURE: NodeDecl = NodeDecl {
    name: "test-feature",
    feature: Some(FeatureDecl::on("device-input")),
    build: |cx| {
        let notes = cx.shared::<Notes>();
        Built::node(Counting { notes, which: |n| &n.feature })
    },
    ..NodeDecl::DEFAULT
};

static ARC_FEATURE: NodeDecl = NodeDecl {
    name: "test-arc-feature",
    feature: Some(FeatureDecl::on("test-arc")),
    build: |cx| {
        let notes = cx.shared::<Notes>();
        Built::node(Counting { notes, which: |n| &n.arc_feature })
    },
    ..NodeDecl::DEFAULT
};

struct Counting {
    notes: Arc<Notes>,
    which: fn(&Notes) -> &AtomicU64,
}

impl Node for Counting {
    fn packet(&mut self, _: &mut NodeCx<'_>, _: PktMut<'_>) -> Verdict {
        (self.which)(&self.notes).fetch_add(1, Relaxed);
        Verdict::CONTINUE
    }
}

static TAP: NodeDecl = NodeDecl {
    name: "test-tap",
    kind: Kind::Tap,
    errors: ERRORS,
    feature: Some(FeatureDecl::on("device-input")),
    build: |cx| Built::tap(Look { notes: cx.shared(), drops: false }),
    ..NodeDecl::DEFAULT
};

static DROP_TAP: NodeDecl = NodeDecl {
    name: "test-drop-tap",
    kind: Kind::Tap,
    errors: ERRORS,
    feature: Some(FeatureDecl::on("error-drop")),
    build: |cx| Built::tap(Look { notes: cx.shared(), drops: true }),
    ..NodeDecl::DEFAULT
};

struct Look {
    notes: Arc<Notes>,
    drops: bool,
}

impl Tap for Look {
    fn frame(&mut self, cx: &mut TapCx, frame: &mut Frame, _: Iface) {
        let n = frame.len() as u64;
        cx.count(SEEN, n);
        if self.drops {
            self.notes.drop_tap_packets.fetch_add(n, Relaxed);
        } else {
            self.notes.tap_frames.fetch_add(1, Relaxed);
            self.notes.tap_packets.fetch_add(n, Relaxed);
        }
    }
}

static ARC: ArcDecl = ArcDecl { name: "test-arc", key: ArcKey::Rx, end: "test-split" };

/// The graph.
pub const TEST: Part = Part {
    name: "test",
    nodes: &[
        &input::NODE,
        &ETHERNET,
        &SPLIT,
        &OWNER,
        &SINK,
        &OTHER,
        &KEEP,
        &DELIVER,
        &FEATURE,
        &ARC_FEATURE,
        &TAP,
        &DROP_TAP,
    ],
    arcs: &[&ARC],
    init: |c| c.add_hand_off(QUEUE, "test-sink").expect("before the start"),
    ..Part::DEFAULT
};

/// A running engine with the test graph.
pub struct Lab {
    pub c: Control,
    pub notes: Arc<Notes>,
}

impl Lab {
    pub fn new(workers: usize) -> Lab {
        Lab::with_buffers(workers, 4096 * workers)
    }

    pub fn with_buffers(workers: usize, buffers: usize) -> Lab {
        Lab::with_parts(workers, buffers, &[])
    }

    /// Starts a lab with more parts.
    pub fn with_parts(workers: usize, buffers: usize, more: &[Part]) -> Lab {
        Lab::started_by(workers, buffers, |c| c.start(&[&[TEST], more].concat()))
    }

    /// Starts a lab by a function that starts [`TEST`] among others.
    pub fn started_by(
        workers: usize,
        buffers: usize,
        start: impl FnOnce(&mut Control) -> Result<(), EngineError>,
    ) -> Lab {
        let pool = PoolConfig { buffers, data_size: 256, page_size: None };
        let config = EngineConfig { workers: vec![None; workers], pool, ..EngineConfig::default() };
        let mut c = Control::new(config).expect("engine");
        let notes = Arc::new(Notes::default());
        c.share(notes.clone());
        start(&mut c).expect("graph");
        Lab { c, notes }
    }

    /// A node's id.
    pub fn node(&self, name: &str) -> NodeId {
        self.c.node(name).expect(name)
    }

    /// Makes packets on a worker, a frame per element.
    pub fn make(&mut self, worker: usize, sw_if: SwIfIndex, frames: Vec<Vec<u8>>) {
        let input = self.node("test-input");
        self.c.message(worker, input, Box::new(Make { sw_if, frames }));
    }

    /// Sends a release to the keepers of all workers; [`settle`](Self::settle) waits for it.
    pub fn release(&mut self, how: Release) {
        let keep = self.node("test-keep");
        self.c.message_all(keep, |_| Box::new(how));
    }

    /// Sum of one of the workers' totals.
    pub fn total(&self, which: impl Fn(&Totals) -> u64) -> u64 {
        (0..self.c.workers()).map(|w| which(&self.c.worker_stats(w).totals)).sum()
    }

    pub fn rx(&self) -> u64 {
        self.total(|t| t.rx.get())
    }

    /// Returns the number of packets in the graph by the workers' counters.
    pub fn in_flight(&self) -> i64 {
        let into = self.total(|t| t.rx.get() + t.originated.get());
        let out = |t: &Totals| t.tx.get() + t.delivered.get() + t.dropped.get() + t.consumed.get();
        into as i64 - self.total(out) as i64
    }

    /// Waits until `n` packets came in and all but `held` left.
    pub fn settle(&mut self, n: u64, held: i64) {
        self.wait(|lab| lab.rx() == n && lab.in_flight() == held);
        self.c.sync();
    }

    /// Waits until `done`, running the main loop.
    pub fn wait(&mut self, done: impl Fn(&Lab) -> bool) {
        let start = Instant::now();
        while !done(self) {
            let (rx, flying) = (self.rx(), self.in_flight());
            assert!(
                start.elapsed() < thalweg_testkit::WAIT_LIMIT,
                "waited too long: rx {rx}, in flight {flying}"
            );
            self.c.run_once(Some(Duration::from_micros(200)));
        }
    }

    /// An error counter by node and text, over all workers.
    pub fn error(&self, node: &str, text: &str) -> u64 {
        let id = self.node(node);
        let all = self.c.errors().iter();
        let number = all.clone().position(|(n, e)| *n == id && e.text == text).expect(text);
        let one = |w| self.c.worker_stats(w).error(number as u32).get();
        (0..self.c.workers()).map(one).sum()
    }

    /// Sequence numbers in the order in which a sink got them from a worker.
    pub fn arrived(&self, sink: u8, worker: usize) -> Vec<u32> {
        let all = self.notes.arrived.lock().unwrap();
        all.iter().filter(|a| (a.0, a.1) == (sink, worker)).map(|a| a.2).collect()
    }

    /// Stops everything; all buffers must be back in the pool.
    pub fn close(mut self) {
        let audit = self.c.shut_down();
        assert_eq!(audit.in_use, 0, "{audit:?}");
        assert_eq!(audit.depot, audit.total, "{audit:?}");
    }
}
