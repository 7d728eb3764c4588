//! Cost of sampling for a worker, in clocks.
//!
//! An input makes frames as fast as they are taken and an end frees them; rates are measured in
//! turn, round by round, and medians shown (least to most): `tap_clocks [rounds] [packets per
//! frame] [clocks] [bytes]`. The worker spends that many clocks on each packet otherwise, 60 if not
//! given, as forwarding it would. The service drains the ring on another core and sends to a socket
//! that is not read.
//!
//! * `frame`: clocks that a frame takes more than without sFlow, from handing it to the arc until
//!   the input is polled again: the tap, and what marked packets cost further on.
//! * `sample`: the same by samples instead of frames.
//! * `tap`: clocks per sample that the tap shows for itself, its clock's reading included.
//! * `lost`: share of the samples that the ring had no room for.

#![allow(clippy::expect_used)]

use std::error::Error;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_buffer::{Frame, PoolConfig};
use thalweg_device::SwIfIndex;
use thalweg_device::loopback::create_loopback;
use thalweg_engine::Feature;
use thalweg_feat_sflow::state;
use thalweg_graph::stats::Counter;
use thalweg_graph::{
    Built, Control, EngineConfig, InputNode, Kind, NodeCx, NodeDecl, Poll, Runner, clock,
};

/// The first is the base of the others.
const RATES: [Option<u32>; 8] =
    [None, Some(0), Some(1_000_000), Some(10_000), Some(1000), Some(100), Some(10), Some(1)];
const TURN: Duration = Duration::from_millis(250);
/// Frames that take longer than this were interrupted and are ignored.
const INTERRUPTED: u64 = 20_000;

#[derive(Default)]
struct Shared {
    /// Clocks per packet spent otherwise.
    work: Counter,
    /// Packets per frame; 0 stops.
    frame: Counter,
    /// Bytes per packet.
    bytes: Counter,
    clocks: Counter,
    frames: Counter,
}

static INPUT: NodeDecl = NodeDecl {
    name: "bench-input",
    kind: Kind::Input,
    build: |cx| Built::input(Input { shared: cx.shared(), handed: None }),
    ..NodeDecl::DEFAULT
};

struct Input {
    shared: Arc<Shared>,
    /// Time when a frame was handed to the arc.
    handed: Option<u64>,
}

impl InputNode for Input {
    fn poll(&mut self, cx: &mut NodeCx<'_>) -> Poll {
        let now = clock::ticks();
        if let Some(took) = self.handed.take().map(|at| now - at).filter(|t| *t < INTERRUPTED) {
            self.shared.clocks.add(took);
            self.shared.frames.add(1);
        }
        let want = self.shared.frame.get() as usize;
        if want == 0 {
            return Poll::At(cx.now() + clock::ticks_in(Duration::from_micros(100)));
        }
        let mut frame = cx.alloc_frame(want, self.shared.bytes.get() as usize);
        let n = frame.len();
        for i in 0..n {
            frame.pkt(i as u8).data_mut().fill(i as u8);
        }
        let until = now + self.shared.work.get() * n as u64;
        while clock::ticks() < until {}
        self.handed = Some(clock::ticks());
        cx.device_input(frame, SwIfIndex(1), |_, _, _| {});
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

/// Results of one rate in a turn.
#[derive(Clone, Copy)]
struct Turn {
    /// Clocks per frame.
    frame: f64,
    tap: f64,
    samples_per_frame: f64,
    samples_per_second: f64,
    lost: f64,
}

fn count(c: &Control, text: &str) -> u64 {
    let at = c.errors().iter().position(|(_, e)| e.text == text);
    at.map_or(0, |at| c.worker_stats(0).error(at as u32).get())
}

fn turn(c: &mut Control, shared: &Shared, rate: Option<u32>, frame: u64) -> Turn {
    match rate {
        Some(n) => state::enable(c, SwIfIndex(1), state::Rate::Own(n)).expect("enabled"),
        None => {
            let _ = state::disable(c, SwIfIndex(1));
        }
    }
    c.sync();
    let tap = c.node("sflow").expect("the tap");
    let look = |c: &Control| {
        [
            shared.clocks.get(),
            shared.frames.get(),
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
    let [clocks, frames, tap, samples, lost] =
        std::array::from_fn(|i| (after[i] - before[i]) as f64);
    Turn {
        frame: clocks / frames,
        tap: tap / samples,
        samples_per_frame: samples / frames,
        samples_per_second: samples / seconds,
        lost: 100.0 * lost / samples,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<u64> = std::env::args().skip(1).map(|n| n.parse()).collect::<Result<_, _>>()?;
    let arg = |at: usize, default| args.get(at).copied().unwrap_or(default);
    let (rounds, frame) = (arg(0, 7), arg(1, 256));
    let collector = UdpSocket::bind("127.0.0.1:0")?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut c = Control::new(EngineConfig {
        workers: vec![Some(cores - 1)],
        pool: PoolConfig { buffers: 4096, ..PoolConfig::default() },
        ..EngineConfig::default()
    })?;
    let shared = Arc::new(Shared::default());
    shared.work.set(arg(2, 60));
    shared.bytes.set(arg(3, 64));
    c.share(shared.clone());
    let features = thalweg_engine::with_needs(&[&thalweg_feat_sflow::FEATURE, &BENCH]);
    thalweg_engine::start(&mut c, &features)?;
    create_loopback(&mut c, None, None)?;
    thalweg_feat_sflow::exporting::add_collector(&mut c, collector.local_addr()?.into())?;
    let rounds: Vec<[Turn; RATES.len()]> =
        (0..rounds).map(|_| RATES.map(|rate| turn(&mut c, &shared, rate, frame))).collect();
    print(&rounds, frame);
    c.shut_down();
    Ok(())
}

fn print(rounds: &[[Turn; RATES.len()]], frame: u64) {
    let over = |f: &dyn Fn(&[Turn; RATES.len()]) -> f64| spread(rounds.iter().map(f).collect());
    let (low, mid, high) = over(&|turns| turns[0].frame);
    println!("{frame} packets per frame, {} rounds, medians (least to most)", rounds.len());
    println!("without sFlow: {mid:.1} ({low:.1} to {high:.1}) clocks per frame\n");
    println!("|    rate |            frame |             sample |     tap | samples/s |  lost |");
    println!("| ------- | ---------------: | -----------------: | ------: | --------: | ----: |");
    for (at, rate) in RATES.iter().enumerate().skip(1) {
        let name = rate.map_or("off".into(), |n| format!("1:{n}"));
        let shown = |(low, mid, high): (f64, f64, f64)| format!("{mid:.0} ({low:.0} to {high:.0})");
        let more = |turns: &[Turn; RATES.len()]| turns[at].frame - turns[0].frame;
        // Rare samples cost less than the noise of the frames.
        let often = over(&|turns| turns[at].samples_per_frame).1 > 0.1;
        let by_sample = |turns: &[Turn; RATES.len()]| more(turns) / turns[at].samples_per_frame;
        let middle = |f: &dyn Fn(&Turn) -> f64| over(&|turns| f(&turns[at])).1;
        println!(
            "| {name:<7} | {:>16} | {:>18} | {:>7} | {:>9.0} | {:>3.0} % |",
            shown(over(&more)),
            if often { shown(over(&by_sample)) } else { "–".into() },
            if often { format!("{:.0}", middle(&|t| t.tap)) } else { "–".into() },
            middle(&|t| t.samples_per_second),
            if often { middle(&|t| t.lost) } else { 0.0 },
        );
    }
}

/// Least, median, most.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[0], values[values.len() / 2], values[values.len() - 1])
}
