//! What sampling costs a worker, in clocks.
//!
//! An input makes frames of 64-byte packets as fast as they are taken; rates are measured in turn,
//! round by round, and medians shown: `tap_clocks [rounds] [packets per frame] [clocks]`. The worker
//! spends so many clocks on each packet otherwise, 60 if not given, as forwarding it would.
//!
//! * `input`: clocks per packet from handing a frame to the arc until that returns. What a rate has
//!   more than `off` is the sampling.
//! * `sample`: clocks that the tap took in frames with samples, per sample; the engine reads the
//!   time twice per frame, which is in it.

use std::error::Error;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_buffer::{Frame, PoolConfig};
use thalweg_device::loopback::create_loopback;
use thalweg_feat_sflow::state;
use thalweg_graph::stats::Counter;
use thalweg_graph::{
    Built, Control, EngineConfig, Feature, InputNode, Kind, NodeCx, NodeDecl, Poll, Runner, clock,
};

const RATES: [Option<u32>; 7] =
    [None, Some(1_000_000), Some(10_000), Some(1000), Some(100), Some(10), Some(1)];
const TURN: Duration = Duration::from_millis(250);

#[derive(Default)]
struct Shared {
    /// Clocks per packet spent otherwise.
    work: Counter,
    /// Packets per frame; 0 stops.
    frame: Counter,
    clocks: Counter,
    packets: Counter,
}

static INPUT: NodeDecl = NodeDecl {
    name: "bench-input",
    kind: Kind::Input,
    build: |cx| Built::input(Input(cx.shared())),
    ..NodeDecl::DEFAULT
};

struct Input(Arc<Shared>);

impl InputNode for Input {
    fn poll(&mut self, cx: &mut NodeCx<'_>) -> Poll {
        let want = self.0.frame.get() as usize;
        if want == 0 {
            return Poll::At(cx.now() + clock::ticks_in(Duration::from_micros(100)));
        }
        let mut frame = cx.alloc_frame(want, 64);
        let n = frame.len();
        for i in 0..n {
            frame.pkt(i as u8).data_mut().fill(i as u8);
        }
        let start = clock::ticks();
        cx.device_input(frame, 1, |_, _, _| {});
        self.0.clocks.add(clock::ticks() - start);
        self.0.packets.add(n as u64);
        let until = start + self.0.work.get() * n as u64;
        while clock::ticks() < until {}
        Poll::Busy(n)
    }
}

static END: NodeDecl =
    NodeDecl { name: "ethernet-input", build: |_| Built::Node(Box::new(End)), ..NodeDecl::DEFAULT };

struct End;

impl Runner for End {
    fn run(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        cx.deliver_frame(frame);
    }
    fn message(&mut self, _: &mut NodeCx<'_>, _: Box<dyn std::any::Any + Send>) {}
}

static BENCH: Feature = Feature { name: "bench", nodes: &[&INPUT, &END], ..Feature::DEFAULT };

/// One turn of one rate.
struct Turn {
    input: f64,
    sample: f64,
    samples: f64,
    lost: f64,
}

fn count(c: &Control, text: &str) -> u64 {
    let at = c.errors().iter().position(|(_, e)| e.text == text);
    at.map_or(0, |at| c.worker_stats(0).error(at as u32).get())
}

fn turn(c: &mut Control, shared: &Shared, rate: Option<u32>, frame: u64) -> Turn {
    match rate {
        Some(n) => state::enable(c, 1, Some(n)).expect("enabled"),
        None => {
            let _ = state::disable(c, 1);
        }
    }
    c.sync();
    let tap = c.node("sflow").expect("the tap");
    let look = |c: &Control| {
        [
            shared.clocks.get(),
            shared.packets.get(),
            c.worker_stats(0).node(tap).clocks.get(),
            count(c, "sflow packets sampled"),
            count(c, "sflow packets dropped"),
        ]
    };
    // Any thread may set it in between: the worker only reads.
    shared.frame.set(frame);
    std::thread::sleep(Duration::from_millis(20));
    let (before, start) = (look(c), Instant::now());
    std::thread::sleep(TURN);
    let (after, seconds) = (look(c), start.elapsed().as_secs_f64());
    shared.frame.set(0);
    let [clocks, packets, tap, samples, lost] =
        std::array::from_fn(|i| (after[i] - before[i]) as f64);
    Turn {
        input: clocks / packets,
        sample: tap / samples,
        samples: samples / seconds,
        lost: lost / seconds,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let rounds: usize = args.next().map_or(Ok(7), |n| n.parse())?;
    let frame: u64 = args.next().map_or(Ok(256), |n| n.parse())?;
    let work: u64 = args.next().map_or(Ok(60), |n| n.parse())?;
    let collector = UdpSocket::bind("127.0.0.1:0")?;
    let mut c = Control::new(EngineConfig {
        pool: PoolConfig { buffers: 4096, ..PoolConfig::default() },
        ..EngineConfig::default()
    })?;
    let shared = Arc::new(Shared::default());
    shared.work.set(work);
    c.share(shared.clone());
    c.start(&[&thalweg_device::FEATURE, &thalweg_feat_sflow::FEATURE, &BENCH])?;
    create_loopback(&mut c, None, None)?;
    let SocketAddr::V4(_) = collector.local_addr()? else { return Err("no IPv4".into()) };
    state::add_collector(&mut c, collector.local_addr()?)?;
    let mut turns: Vec<Vec<Turn>> = RATES.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (rate, turns) in RATES.iter().zip(&mut turns) {
            turns.push(turn(&mut c, &shared, *rate, frame));
        }
    }
    println!("{frame} packets per frame, {rounds} rounds, medians (least to most)");
    println!("{:>9} {:>26} {:>26} {:>12} {:>12}", "rate", "input", "sample", "samples/s", "lost/s");
    for (rate, turns) in RATES.iter().zip(&turns) {
        let name = rate.map_or("off".into(), |n| format!("1:{n}"));
        let spread = |field: fn(&Turn) -> f64| {
            let (low, mid, high) = spread(turns.iter().map(field).collect());
            format!("{mid:.2} ({low:.2} to {high:.2})")
        };
        let middle = |field: fn(&Turn) -> f64| spread_of(turns, field);
        println!(
            "{name:>9} {:>26} {:>26} {:>12.0} {:>12.0}",
            spread(|t| t.input),
            spread(|t| t.sample),
            middle(|t| t.samples),
            middle(|t| t.lost),
        );
    }
    c.shut_down();
    Ok(())
}

fn spread_of(turns: &[Turn], field: fn(&Turn) -> f64) -> f64 {
    spread(turns.iter().map(field).collect()).1
}

/// Least, median, most.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[0], values[values.len() / 2], values[values.len() - 1])
}
