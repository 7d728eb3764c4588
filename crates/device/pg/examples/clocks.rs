//! Cost of a generated packet: clocks per packet of `pg-input` and of the port that frees it, for
//! several kinds of streams. Medians of seven half-second rounds, with their spread.
//!
//! `cargo run --release -p thalweg-device-pg --example clocks`

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use thalweg_buffer::Frame;
use thalweg_device::{interface, loopback};
use thalweg_device_pg::{
    Data, FEATURE, Mode, StreamSpec, create_port, define_stream, delete_stream, enable_streams,
    template::{Sizes, Vary},
};
use thalweg_engine::Feature;
use thalweg_graph::{Built, Control, EngineConfig, NodeCx, NodeDecl, NodeId, Runner};

struct Out(AtomicU32);
struct Pass(Arc<Out>);

impl Runner for Pass {
    fn run(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        cx.enqueue(frame, NodeId(self.0.0.load(Relaxed) as u16));
    }
    fn message(&mut self, _: &mut NodeCx<'_>, _: Box<dyn std::any::Any + Send>) {}
}

/// Passes whole frames to the sink.
static ETHERNET_INPUT: NodeDecl = NodeDecl {
    name: "ethernet-input",
    build: |bcx| Built::Node(Box::new(Pass(bcx.shared::<Out>()))),
    ..NodeDecl::DEFAULT
};
static STUBS: Feature = Feature {
    name: "stubs",
    nodes: &[&ETHERNET_INPUT],
    init: |c| c.share(Arc::new(Out(AtomicU32::new(0)))),
    ..Feature::DEFAULT
};

/// Clocks per packet of two nodes in one round, and packets per second.
fn round(c: &mut Control, nodes: [NodeId; 2]) -> [f64; 3] {
    let counts = |c: &Control| {
        nodes.map(|n| {
            let s = c.worker_stats(0).node(n);
            (s.clocks.get(), s.vectors.get())
        })
    };
    let (before, start) = (counts(c), std::time::Instant::now());
    std::thread::sleep(Duration::from_millis(500));
    let (after, seconds) = (counts(c), start.elapsed().as_secs_f64());
    let per =
        |i: usize| (after[i].0 - before[i].0) as f64 / (after[i].1 - before[i].1).max(1) as f64;
    [per(0), per(1), (after[0].1 - before[0].1) as f64 / seconds / 1e6]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut c = Control::new(EngineConfig::default())?;
    thalweg_engine::start(&mut c, &thalweg_engine::with_needs(&[&STUBS, &FEATURE]))?;
    create_port(&mut c, 0, Mode::Ethernet)?;
    let sink = loopback::create_sink(&mut c, None)?;
    interface::set_admin(&mut c, sink, true)?;
    let output = interface::view(&c, sink)?.output;
    c.shared::<Out>().0.store(u32::from(output.0), Relaxed);
    let nodes = [c.node("pg-input").ok_or("pg-input")?, c.node("sink0-tx").ok_or("sink0-tx")?];
    let size = |min, max| Sizes { min, max, vary: Vary::Increment };
    let one = "UDP: 1.1.1.1 -> 2.2.2.2 UDP: 1 -> 2";
    let few = "UDP: 1.1.1.1 - 1.1.1.99 -> 2.2.2.2 UDP: 1 -> 2";
    let many = "UDP: 1.1.1.1 - 1.1.1.99 -> 48.0.0.0 - 48.0.3.255 UDP: 1234 -> 4321";
    let drawn = "UDP: 1.1.1.1 + 1.1.9.9 -> 48.0.0.0 + 48.0.3.255 UDP: 1 + 9999 -> 4321";
    println!("stream                    pg-input clocks (spread)      tx clocks      Mpps");
    for (name, text, sizes) in [
        ("64 B, one packet", one, size(64, 64)),
        ("64 B, ring of 99", few, size(64, 64)),
        ("64 B, two ranges", many, size(64, 64)),
        ("64 B, three drawn", drawn, size(64, 64)),
        ("64-1500 B, one range", one, size(64, 1500)),
        ("1500 B, one packet", one, size(1500, 1500)),
    ] {
        let data = Data::Description(format!("IP4: 2.0.1 -> 2.0.2 {text} incrementing 22"));
        define_stream(&mut c, StreamSpec { sizes: Some(sizes), ..StreamSpec::new("s", data) })?;
        enable_streams(&mut c, None, true)?;
        c.sync();
        let mut rounds: Vec<[f64; 3]> = (0..7).map(|_| round(&mut c, nodes)).collect();
        rounds.sort_by(|a, b| a[0].total_cmp(&b[0]));
        let [input, tx, mpps] = rounds[3];
        println!(
            "{name:24} {input:9.1} ({:.1}-{:.1}) {tx:21.1} {mpps:9.1}",
            rounds[0][0], rounds[6][0]
        );
        delete_stream(&mut c, "s")?;
    }
    let audit = c.shut_down();
    println!("buffers in use at the end: {}", audit.in_use);
    Ok(())
}
