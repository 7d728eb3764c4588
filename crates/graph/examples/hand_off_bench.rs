//! Measures the cost of handing packets to another worker.
//!
//! ```text
//! cargo run --release -p thalweg-graph --example hand_off_bench [-- <seconds per run> <runs>]
//! ```
//!
//! The first worker makes frames of 64-byte packets, no more than the ring takes; a sink on the
//! first or on the second worker frees them, with or without reading 16 bytes of each. Settings
//! take turns in each run. Prints medians, with minimum and maximum, of clocks per packet: in the
//! queue's node on either worker, and in all busy loops of both.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Frame, PktMut, SwIfIndex};
use thalweg_graph::{
    Built, Control, EngineConfig, FrameVerdict, HandOff, InputNode, Kind, Node, NodeCx, NodeDecl,
    NodeId, Part, Poll, Runner, Verdict,
};

/// One measured combination.
#[derive(Clone, Copy)]
struct Setting {
    /// Packets per frame.
    size: usize,
    /// Worker that frees the packets.
    worker: usize,
    /// True if that worker reads the packets.
    touch: bool,
}

/// Number of packets freed.
#[derive(Default)]
#[repr(align(128))]
struct Done(AtomicU64);

/// Maximum of packets in flight: less than the ring takes in full frames.
const UNDER_WAY: u64 = 16 * 256;

struct Input {
    size: usize,
    made: u64,
    done: Arc<Done>,
}

impl InputNode for Input {
    fn poll(&mut self, cx: &mut NodeCx<'_>) -> Poll {
        let room = (UNDER_WAY / 256 * self.size as u64).max(16);
        if self.size == 0 || self.made - self.done.0.load(Ordering::Relaxed) + 1 > room {
            return if self.size == 0 { Poll::Idle } else { Poll::At(0) };
        }
        let frame = cx.alloc_frame(self.size, 64);
        let n = frame.len();
        self.made += n as u64;
        cx.device_input(frame, SwIfIndex(1), |_, _, _| ());
        Poll::Busy(n)
    }
    fn message(&mut self, _: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        if let Ok(size) = message.downcast::<usize>() {
            self.size = *size;
        }
    }
}

/// Assigns all packets to one worker.
struct Owner {
    queue: HandOff,
    worker: usize,
}

impl Node for Owner {
    const TOUCHES_DATA: bool = false;
    fn packet(&mut self, _: &mut NodeCx<'_>, _: PktMut<'_>) -> Verdict {
        self.queue.to(self.worker)
    }
    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        _: &mut NodeCx<'_>,
        _: &mut Frame,
        _: &mut [Verdict],
    ) -> FrameVerdict {
        FrameVerdict::Whole(self.queue.to(self.worker))
    }
    fn message(&mut self, _: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        if let Ok(worker) = message.downcast::<usize>() {
            self.worker = *worker;
        }
    }
}

struct Sink {
    done: Arc<Done>,
    touch: bool,
    sum: u64,
}

impl Runner for Sink {
    fn run(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        let n = frame.len() as u64;
        if self.touch {
            for head in frame.heads::<16>() {
                self.sum ^= u128::from_ne_bytes(*head) as u64;
            }
        }
        cx.sent_frame(frame);
        // Only one worker at a time frees packets.
        self.done.0.store(self.done.0.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }
    fn message(&mut self, _: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        if let Ok(touch) = message.downcast::<bool>() {
            self.touch = *touch;
        }
    }
}

static NODES: [&NodeDecl; 3] = [
    &NodeDecl {
        name: "bench-input",
        kind: Kind::Input,
        build: |cx| Built::input(Input { size: 0, made: 0, done: cx.shared() }),
        ..NodeDecl::DEFAULT
    },
    &NodeDecl {
        name: "ethernet-input",
        build: |cx| Built::node(Owner { queue: cx.hand_off("queue"), worker: 0 }),
        ..NodeDecl::DEFAULT
    },
    &NodeDecl {
        name: "sink",
        kind: Kind::Tx,
        build: |cx| Built::Node(Box::new(Sink { done: cx.shared(), touch: false, sum: 0 })),
        ..NodeDecl::DEFAULT
    },
];

const BENCH: Part = Part {
    name: "hand-off-bench",
    nodes: &NODES,
    init: |c| {
        c.share(Arc::new(Done::default()));
        if let Err(e) = c.add_hand_off("queue", "sink") {
            eprintln!("{e}");
        }
    },
    ..Part::DEFAULT
};

fn node(c: &Control, name: &str) -> NodeId {
    c.node(name).unwrap_or_default()
}

/// Clocks per packet: handing over, taking, busy loops of either worker; and packets per second.
fn run(c: &mut Control, setting: Setting, seconds: f64) -> [f64; 5] {
    let (input, owner) = (node(c, "bench-input"), node(c, "ethernet-input"));
    let (sink, way) = (node(c, "sink"), node(c, "queue-wk1"));
    for w in 0..2 {
        c.message(w, owner, Box::new(setting.worker));
        c.message(w, sink, Box::new(setting.touch));
    }
    let counts = |c: &Control| -> [u64; 5] {
        let [a, b] = [0, 1].map(|w| c.worker_stats(w));
        let sent = a.totals.tx.get() + b.totals.tx.get();
        let clocks = [a.node(way).clocks.get(), b.node(way).clocks.get()];
        let busy = [a.totals.busy_clocks.get(), b.totals.busy_clocks.get()];
        [clocks[0], clocks[1], busy[0], busy[1], sent]
    };
    c.message(0, input, Box::new(setting.size));
    std::thread::sleep(Duration::from_secs_f64(seconds / 4.0));
    let (start, before) = (Instant::now(), counts(c));
    std::thread::sleep(Duration::from_secs_f64(seconds));
    let (took, after) = (start.elapsed().as_secs_f64(), counts(c));
    c.message(0, input, Box::new(0usize));
    c.sync();
    let grown: [u64; 5] = std::array::from_fn(|i| after[i] - before[i]);
    let packets = grown[4].max(1) as f64;
    let per_packet = |i: usize| grown[i] as f64 / packets;
    [per_packet(0), per_packet(1), per_packet(2), per_packet(3), packets / took / 1e6]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let seconds = args.next().map_or(Ok(0.3), |a| a.parse())?;
    let runs: usize = args.next().map_or(Ok(7), |a| a.parse())?;
    let mut c =
        Control::new(EngineConfig { workers: vec![Some(0), Some(1)], ..EngineConfig::default() })?;
    c.start(&[BENCH])?;
    let mut settings = Vec::new();
    for size in [256, 32, 1] {
        for (worker, touch) in [(0, false), (1, false), (0, true), (1, true)] {
            settings.push(Setting { size, worker, touch });
        }
    }
    let mut all = vec![Vec::new(); settings.len()];
    for _ in 0..runs {
        for (values, setting) in all.iter_mut().zip(&settings) {
            values.push(run(&mut c, *setting, seconds));
        }
    }
    println!(
        "packets/frame, ends on, is read | handing over, taking, loops of worker 0, of 1 | Mpps"
    );
    for (values, s) in all.iter().zip(&settings) {
        let column = |i: usize| {
            let mut one: Vec<f64> = values.iter().map(|v| v[i]).collect();
            one.sort_by(f64::total_cmp);
            format!("{:.2} ({:.2}–{:.2})", one[one.len() / 2], one[0], one[one.len() - 1])
        };
        let columns: Vec<String> = (0..5).map(column).collect();
        println!("{:>4} {} {:<5} | {}", s.size, s.worker, s.touch, columns.join(" | "));
    }
    let dropped: u64 = c.hand_off_views().iter().map(|v| v.drops).sum();
    println!("dropped by a full ring: {dropped}; {:?}", c.shut_down());
    Ok(())
}
