//! Costs of the rings in ns per 64-byte frame, on a veth pair.
//!
//! Run it in a namespace of its own: `unshare -Urn ring_rate [rounds]` (as root:
//! `unshare -n`). All cases are measured in turn, round by round, and the medians shown.

use std::error::Error;
use std::hint::black_box;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use thalweg_device_af_packet::ring::{HostPort, Options, TxRing, Version};
use thalweg_device_linux::VnetHdr;

const FRAME: usize = 64;
const BUFFERS: usize = 1024;
const BURST: usize = 256;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Results of one case in one round.
struct Sample {
    /// Reading waiting frames, without and with copying them.
    look: f64,
    copy: f64,
    /// Filling slots, and sending them to a peer without a reader.
    fill: f64,
    kick: f64,
    /// Millions of frames per second, sent and received at once on two processors.
    sent: f64,
    received: f64,
}

fn main() -> Outcome<()> {
    let rounds: usize = std::env::args().nth(1).map_or(Ok(5), |count| count.parse())?;
    let slots = |rx_size, rx_per_block| Options { rx_size, rx_per_block, ..Options::default() };
    let cases = [
        ("v2 default", Options::default()),
        ("v2 slots of 2048", slots(Some(2048), None)),
        ("v2 slots of 66 KiB", slots(Some(66 * 1024), None)),
        ("v2 no offload", Options { offload: false, ..Options::default() }),
        ("v2 qdisc", Options { qdisc_bypass: false, ..Options::default() }),
        ("v3 default", Options { version: Version::V3, ..Options::default() }),
    ];
    ip("link add left type veth peer name right")?;
    ip("link set left up")?;
    ip("link set right up")?;
    let mut samples: Vec<Vec<Sample>> = cases.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (case, samples) in cases.iter().zip(&mut samples) {
            samples.push(measure(&case.1)?);
        }
    }
    println!(
        "{:24} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "", "look", "copy", "fill", "kick", "Mpps tx", "Mpps rx"
    );
    for (case, samples) in cases.iter().zip(&samples) {
        let median = |field: fn(&Sample) -> f64| {
            let mut values: Vec<f64> = samples.iter().map(field).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        println!(
            "{:24} {:8.1} {:8.1} {:8.1} {:8.1} {:8.2} {:8.2}",
            case.0,
            median(|s| s.look),
            median(|s| s.copy),
            median(|s| s.fill),
            median(|s| s.kick),
            median(|s| s.sent),
            median(|s| s.received),
        );
    }
    Ok(())
}

fn ip(arguments: &str) -> Outcome<()> {
    let status = Command::new("ip").args(arguments.split_whitespace()).status()?;
    if status.success() { Ok(()) } else { Err(format!("ip {arguments} failed").into()) }
}

/// Sends a burst; returns the time to fill the slots and to send them.
fn burst(tx: &mut TxRing, count: usize) -> (Duration, Duration) {
    let mut frame = [0u8; FRAME];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
    let start = Instant::now();
    for _ in 0..count {
        let _ = tx.send(VnetHdr::default(), [&frame[..]]);
    }
    let filled = start.elapsed();
    tx.kick();
    (filled, start.elapsed() - filled)
}

fn measure(options: &Options) -> Outcome<Sample> {
    let mut left = HostPort::open("left", options)?;
    // No reader on the right: the cost of sending alone.
    let (mut fill, mut kick) = (Duration::ZERO, Duration::ZERO);
    const SENDS: usize = 400;
    for _ in 0..SENDS {
        let (filled, sent) = burst(&mut left.tx[0], BURST);
        fill += filled;
        kick += sent;
    }
    let each = |time: Duration, count: usize| time.as_nanos() as f64 / count as f64;
    let (look, copy) = drain(&mut left.tx[0], options)?;
    let (sent, received) = both(&mut left.tx[0], options)?;
    Ok(Sample {
        look,
        copy,
        fill: each(fill, SENDS * BURST),
        kick: each(kick, SENDS * BURST),
        sent,
        received,
    })
}

/// Reads full rings, in bursts, without and with copying.
fn drain(tx: &mut TxRing, options: &Options) -> Outcome<(f64, f64)> {
    let mut right = HostPort::open("right", options)?;
    let rx = &mut right.rx[0];
    let mut buffers = vec![[0u8; 2048]; BUFFERS];
    let mut times = [Duration::ZERO; 2];
    let mut counts = [0usize; 2];
    for round in 0..100 {
        // The burst is less than any ring holds.
        for _ in 0..4 {
            burst(tx, 30);
        }
        while !rx.is_ready() {
            thread::yield_now();
        }
        let copying = round % 2;
        let start = Instant::now();
        let mut next = 0;
        let got = rx.poll(usize::MAX, |frame| {
            if copying == 1 {
                black_box(frame.copy(0, &mut buffers[next % BUFFERS]));
            } else {
                black_box(frame.data[13]);
            }
            next += 1;
            true
        });
        times[copying] += start.elapsed();
        counts[copying] += got;
    }
    let each = |which: usize| times[which].as_nanos() as f64 / counts[which].max(1) as f64;
    Ok((each(0), each(1)))
}

/// Sends and receives at once; returns the two rates in Mpps.
fn both(tx: &mut TxRing, options: &Options) -> Outcome<(f64, f64)> {
    const SPAN: Duration = Duration::from_millis(500);
    let mut right = HostPort::open("right", options)?;
    let stop = AtomicBool::new(false);
    let before = tx.stats().frames;
    let start = Instant::now();
    let received = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut buffers = vec![[0u8; 2048]; BUFFERS];
            let mut next = 0;
            while !stop.load(Ordering::Relaxed) {
                right.rx[0].poll(BURST, |frame| {
                    black_box(frame.copy(0, &mut buffers[next % BUFFERS]));
                    next += 1;
                    true
                });
            }
            next
        });
        while start.elapsed() < SPAN {
            burst(tx, BURST);
        }
        stop.store(true, Ordering::Relaxed);
        reader.join().unwrap_or(0)
    });
    let span = start.elapsed().as_secs_f64() * 1e6;
    Ok(((tx.stats().frames - before) as f64 / span, received as f64 / span))
}
