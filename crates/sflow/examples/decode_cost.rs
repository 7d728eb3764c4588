//! Cost of decoding and printing a flow sample, in each format.
//!
//!     cargo run --release -p thalweg-sflow --example decode_cost [FORMAT [ROUNDS]]
//!
//! FORMAT is a letter: `x` for text, and the options of `thalweg sflow decode`.

#![allow(clippy::expect_used)]
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use thalweg_sflow::text::{Arrival, Format, Printer, Zone};
use thalweg_sflow::{Datagram, SFLOW_PORT, Sample, pcapfile::PcapReader};

/// Datagrams and when they were captured.
type Capture = Vec<(Arrival, Vec<u8>)>;

fn capture() -> Capture {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hsflowd_veth_flows.pcap");
    let mut reader = PcapReader::open(path, SFLOW_PORT).expect("a capture");
    let mut all = Vec::new();
    while let Some(datagram) = reader.next_datagram().expect("a datagram") {
        all.push((Arrival::captured(datagram.time), datagram.payload.to_vec()));
    }
    all
}

fn flow_samples(capture: &Capture) -> usize {
    let flows = |payload: &Vec<u8>| match Datagram::parse(payload) {
        Ok(datagram) => datagram.samples().filter(|s| matches!(s, Ok(Sample::Flow(_)))).count(),
        Err(_) => 0,
    };
    capture.iter().map(|(_, payload)| flows(payload)).sum()
}

/// Number of times that the capture is printed in a round.
const TIMES: usize = 100;

fn round(printer: &mut Printer, capture: &Capture) -> Duration {
    let start = Instant::now();
    for _ in 0..TIMES {
        for (arrival, payload) in capture {
            black_box(printer.format(arrival, black_box(payload)));
            black_box(printer.text());
        }
    }
    start.elapsed()
}

fn main() {
    let formats = [
        ("l", Format::Line),
        ("j", Format::Json),
        ("J", Format::JsonIndented),
        ("x", Format::Text),
        ("g", Format::Grep),
        ("L", Format::Fields(vec!["srcIP".to_owned(), "dstIP".to_owned()])),
    ];
    let mut args = std::env::args().skip(1);
    let wanted = args.next();
    let rounds = args.next().and_then(|n| n.parse().ok()).unwrap_or(30);
    let capture = capture();
    let samples = flow_samples(&capture) * TIMES;
    for (letter, format) in formats {
        if wanted.as_ref().is_some_and(|wanted| wanted != letter) {
            continue;
        }
        let mut printer = Printer::new(format).with_zone(Zone::utc());
        let mut times: Vec<_> = (0..rounds).map(|_| round(&mut printer, &capture)).collect();
        times.sort_unstable();
        let rate = |time: &Duration| samples as f64 / time.as_secs_f64() / 1e6;
        let (best, middle) =
            (times.first().map_or(0.0, rate), times.get(rounds / 2).map_or(0.0, rate));
        println!("-{letter}: {best:.2} million flow samples/s at best, {middle:.2} as a rule");
    }
}
