//! Measures the engine's own cost: clocks per packet of a whole-frame hop, of a node that reads
//! each packet, of a split, and of a tap.
//!
//! ```text
//! cargo run --release -p thalweg-graph --example engine_bench [-- <seconds per run> <runs>
//! <title>]
//! ```
//!
//! An input makes frames of 64-byte packets as fast as it can. They pass eight hops that do not
//! read them, one that reads 16 bytes of each, and one that sends every other packet to another
//! node if the split is enabled. A sink frees them. Prints medians of several runs, with the
//! spread; with a third argument, only of the set-ups whose title contains it.

use std::any::Any;
use std::time::Duration;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Frame, Iface, PktMut, PoolConfig, SwIfIndex};
use thalweg_graph::{
    Built, Control, EngineConfig, FeatureDecl, FrameVerdict, InputNode, Kind, Node, NodeCx,
    NodeDecl, Part, Poll, Runner, Tap, TapCx, Verdict,
};

/// Makes frames of `size` 64-byte packets.
struct Input {
    size: usize,
}

impl InputNode for Input {
    fn poll(&mut self, cx: &mut NodeCx<'_>) -> Poll {
        if self.size == 0 {
            return Poll::Idle;
        }
        let frame = cx.alloc_frame(self.size, 64);
        let n = frame.len();
        cx.device_input(frame, SwIfIndex(1), |_, _, _| ());
        Poll::Busy(n)
    }
    fn message(&mut self, _: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        if let Ok(size) = message.downcast::<usize>() {
            self.size = *size;
        }
    }
}

/// Returns one verdict for the whole frame.
struct Hop;

impl Node for Hop {
    const TOUCHES_DATA: bool = false;
    fn packet(&mut self, _: &mut NodeCx<'_>, _: PktMut<'_>) -> Verdict {
        Verdict::next(0)
    }
    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        _: &mut NodeCx<'_>,
        _: &mut Frame,
        _: &mut [Verdict],
    ) -> FrameVerdict {
        FrameVerdict::Whole(Verdict::next(0))
    }
}

/// Returns a verdict per packet without reading it.
struct Each;

impl Node for Each {
    const TOUCHES_DATA: bool = false;
    fn packet(&mut self, _: &mut NodeCx<'_>, _: PktMut<'_>) -> Verdict {
        Verdict::next(0)
    }
}

/// Reads each packet's first 16 bytes.
struct Touch {
    sum: u64,
}

impl Node for Touch {
    fn packet(&mut self, _: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        if let Some(head) = p.data().first_chunk::<16>() {
            self.sum = self.sum.wrapping_add(u128::from_ne_bytes(*head) as u64);
        }
        Verdict::next(usize::from(self.sum == 1) as u16)
    }
}

/// Sends every other packet to another node, in runs of `run` (a power of 2); 0 keeps them
/// together.
struct Split {
    run: usize,
    at: usize,
}

impl Node for Split {
    const TOUCHES_DATA: bool = false;
    fn packet(&mut self, _: &mut NodeCx<'_>, _: PktMut<'_>) -> Verdict {
        self.at += 1;
        Verdict::next(u16::from(self.at & self.run != 0))
    }
    fn message(&mut self, _: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        if let Ok(run) = message.downcast::<usize>() {
            self.run = *run;
        }
    }
}

struct Sink;

impl Runner for Sink {
    fn run(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        cx.sent_frame(frame);
    }
    fn message(&mut self, _: &mut NodeCx<'_>, _: Box<dyn Any + Send>) {}
}

/// Counts packets, as sampling does between two samples.
struct Count {
    skip: usize,
}

impl Tap for Count {
    fn frame(&mut self, _: &mut TapCx, frame: &mut Frame, _: Iface) {
        self.skip = self.skip.wrapping_sub(frame.len());
    }
}

macro_rules! node {
    ($name:ident, $label:literal, $next:expr, $build:expr) => {
        static $name: NodeDecl = NodeDecl {
            name: $label,
            next: $next,
            build: |_| Built::node($build),
            ..NodeDecl::DEFAULT
        };
    };
}

static INPUT: NodeDecl = NodeDecl {
    name: "bench-input",
    kind: Kind::Input,
    build: |_| Built::input(Input { size: 0 }),
    ..NodeDecl::DEFAULT
};
node!(START, "ethernet-input", &["hop-1"], Hop);
node!(HOP1, "hop-1", &["hop-2"], Hop);
node!(HOP2, "hop-2", &["hop-3"], Hop);
node!(HOP3, "hop-3", &["hop-4"], Hop);
node!(HOP4, "hop-4", &["each-1"], Hop);
node!(EACH1, "each-1", &["each-2"], Each);
node!(EACH2, "each-2", &["touch-1"], Each);
node!(TOUCH1, "touch-1", &["touch-2", "sink"], Touch { sum: 0 });
node!(TOUCH2, "touch-2", &["split", "sink"], Touch { sum: 0 });
node!(SPLIT, "split", &["way-1", "way-2"], Split { run: 0, at: 0 });
node!(WAY1, "way-1", &["sink"], Hop);
node!(WAY2, "way-2", &["sink"], Hop);

static SINK: NodeDecl = NodeDecl {
    name: "sink",
    kind: Kind::Tx,
    build: |_| Built::Node(Box::new(Sink)),
    ..NodeDecl::DEFAULT
};

static TAP: NodeDecl = NodeDecl {
    name: "tap",
    kind: Kind::Tap,
    feature: Some(FeatureDecl::on("device-input")),
    build: |_| Built::tap(Count { skip: 0 }),
    ..NodeDecl::DEFAULT
};

const BENCH: Part = Part {
    name: "bench",
    nodes: &[
        &INPUT, &START, &HOP1, &HOP2, &HOP3, &HOP4, &EACH1, &EACH2, &TOUCH1, &TOUCH2, &SPLIT,
        &WAY1, &WAY2, &SINK, &TAP,
    ],
    ..Part::DEFAULT
};

const ROWS: &[&str] = &[
    "bench-input",
    "ethernet-input",
    "hop-1",
    "hop-4",
    "each-1",
    "each-2",
    "touch-1",
    "touch-2",
    "split",
    "way-1",
    "way-2",
    "sink",
];

/// Does one run; returns clocks per packet of each row, and of the worker's busy loops as a whole.
fn run(c: &mut Control, size: usize, seconds: f64) -> Vec<f64> {
    let counts = |c: &Control| -> Vec<(u64, u64)> {
        let stats = c.worker_stats(0);
        let node = |name: &&str| c.node(name).map(|id| stats.node(id));
        let rows = ROWS.iter().filter_map(node).map(|n| (n.vectors.get(), n.clocks.get()));
        let total = (stats.totals.rx.get(), stats.totals.busy_clocks.get());
        rows.chain([total]).collect()
    };
    let Some(input) = c.node("bench-input") else { return Vec::new() };
    c.message(0, input, Box::new(size));
    std::thread::sleep(Duration::from_secs_f64(seconds / 4.0));
    let before = counts(c);
    std::thread::sleep(Duration::from_secs_f64(seconds));
    let after = counts(c);
    c.message(0, input, Box::new(0usize));
    c.sync();
    let each = before.iter().zip(&after);
    each.map(|(b, a)| (a.1 - b.1) as f64 / (a.0 - b.0).max(1) as f64).collect()
}

/// Does several runs and prints medians with minimum and maximum.
fn measure(c: &mut Control, title: &str, size: usize, seconds: f64, runs: usize) {
    if std::env::args().nth(3).is_some_and(|only| !title.contains(&only)) {
        return;
    }
    let all: Vec<Vec<f64>> = (0..runs).map(|_| run(c, size, seconds)).collect();
    println!("\n{title}: clocks per packet (median of {runs}, minimum to maximum)");
    for (i, name) in ROWS.iter().chain(&["whole loop"]).enumerate() {
        let mut values: Vec<f64> = all.iter().filter_map(|r| r.get(i).copied()).collect();
        values.sort_by(f64::total_cmp);
        if let (Some(low), Some(high)) = (values.first(), values.last())
            && *high > 0.0
        {
            println!("  {name:<16}{:>8.2}   {low:.2} to {high:.2}", values[values.len() / 2]);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let seconds = args.next().map_or(Ok(0.4), |a| a.parse())?;
    let runs = args.next().map_or(Ok(7), |a| a.parse())?;
    let mut c = Control::new(EngineConfig {
        workers: vec![Some(1)],
        pool: PoolConfig::default(),
        ..EngineConfig::default()
    })?;
    c.start(&[BENCH])?;
    println!("buffers on {}, {:.0} MHz", c.pool().pages(), thalweg_graph::clock::hz() / 1e6);
    measure(&mut c, "frames of 256", 256, seconds, runs);
    measure(&mut c, "frames of 32", 32, seconds, runs);
    measure(&mut c, "frames of 1", 1, seconds, runs);
    if let Some(split) = c.node("split") {
        for (title, length) in [("split one by one", 1usize), ("split in runs of 16", 16)] {
            c.message(0, split, Box::new(length));
            measure(&mut c, &format!("frames of 256, {title}"), 256, seconds, runs);
        }
        c.message(0, split, Box::new(0usize));
    }
    c.enable_feature("device-input", "tap", SwIfIndex(1), true)?;
    measure(&mut c, "frames of 256 with a tap", 256, seconds, runs);
    println!("\n{:?}", c.shut_down());
    Ok(())
}
