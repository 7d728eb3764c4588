//! Cost of connection tracking: reading headers, look-up, update and commit.
//!
//! `cargo bench -p thalweg-conntrack --bench tracker`
//!
//! Packets come in frames of 256 in memory that is in the core's own caches, as from a device. With
//! two workers, each has its own tracker, packets and processor.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context, Result};
use thalweg_bench_common::{Args, Cell, Column, Report, Series, Table, on_two_cores, pin};
use thalweg_conntrack::{Batch, Checks, Commit, Policy, State, Tracker};
use thalweg_graph::clock;
use thalweg_wire::build::Packet;
use thalweg_wire::tcp::flag::{ACK, FIN, PSH, SYN};

/// Packets per frame.
const FRAME: usize = 256;
/// Packets per turn.
const PACKETS: usize = 1 << 19;
/// Distance between packets in bytes.
const STRIDE: usize = 128;

fn main() -> ExitCode {
    match act() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("tracker: {e:#}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Clone, Copy)]
enum Case {
    /// Packets of this many established connections, in random order.
    Established(u32),
    /// First packets of connections.
    New,
    /// Connections of six packets, from SYN to the acknowledgement of the second FIN.
    Life,
}

impl Case {
    /// Case, whether of IPv6, name, and target in clocks: of IPv6, 1.3 times that of IPv4.
    const ALL: [(Case, bool, &'static str, Option<f64>); 10] = [
        (Case::Established(1), false, "established TCP, 1 connection", None),
        (Case::Established(1 << 10), false, "established TCP, 1k connections", Some(50.0)),
        (Case::Established(1 << 14), false, "established TCP, 16k connections", Some(65.0)),
        (Case::Established(1 << 20), false, "established TCP, 1M connections", Some(150.0)),
        (Case::New, false, "new TCP connections", Some(250.0)),
        (Case::Life, false, "short TCP connections, 6 packets", Some(90.0)),
        (Case::Established(1 << 10), true, "IPv6, established TCP, 1k connections", Some(65.0)),
        (Case::Established(1 << 20), true, "IPv6, established TCP, 1M connections", Some(195.0)),
        (Case::New, true, "IPv6, new TCP connections", Some(325.0)),
        (Case::Life, true, "IPv6, short TCP connections, 6 packets", Some(117.0)),
    ];
}

/// Segments of a connection: from the server or not, flags, sequence and acknowledgement numbers,
/// bytes of data.
const LIFE: [(bool, u8, u32, u32, usize); 6] = [
    (false, SYN, 100, 0, 0),
    (true, SYN | ACK, 500, 101, 0),
    (false, ACK | PSH, 101, 501, 40),
    (true, ACK | PSH | FIN, 501, 141, 40),
    (false, ACK | FIN, 141, 542, 0),
    (true, ACK, 542, 142, 0),
];

fn segment(
    six: bool,
    n: u32,
    (server, flags, seq, ack, data): (bool, u8, u32, u32, usize),
) -> Vec<u8> {
    let port = 1024 + (n & 0x3fff) as u16;
    let ip = Packet::new();
    let ip = if six {
        let client = Ipv6Addr::from_bits(0x2001_0db8_0001 << 80 | u128::from(n >> 14));
        let at = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);
        if server { ip.ipv6(at, client) } else { ip.ipv6(client, at) }
    } else {
        let client = Ipv4Addr::from_bits(0x1000_0000 + (n >> 14));
        let at = Ipv4Addr::new(48, 0, 0, 1);
        if server { ip.ipv4(at, client) } else { ip.ipv4(client, at) }
    };
    let tcp = if server { ip.tcp(80, port) } else { ip.tcp(port, 80) };
    tcp.flags(flags).seq(seq).ack(ack).window(60000).payload_len(data).build()
}

/// Packets one after the other.
struct Packets {
    bytes: Vec<u8>,
    lengths: Vec<u8>,
}

impl Packets {
    fn new(all: impl Iterator<Item = Vec<u8>>) -> Packets {
        let mut packets = Packets { bytes: Vec::new(), lengths: Vec::new() };
        for packet in all {
            let length = packet.len().min(STRIDE);
            packets.lengths.push(length as u8);
            packets.bytes.extend_from_slice(&packet[..length]);
            packets.bytes.resize(packets.lengths.len() * STRIDE, 0);
        }
        packets
    }
}

/// A worker's prepared part of a case.
struct Stage {
    tracker: Tracker,
    batch: Batch<2>,
    batch6: Batch<5>,
    six: bool,
    packets: Packets,
    /// The current frame, where a device would put it.
    frame: Vec<u8>,
    case: Case,
    now: u32,
}

impl Stage {
    fn new(case: Case, six: bool) -> Result<Stage> {
        let capacity = 2 << 20;
        let tracker = Tracker::new(capacity, 0).context("no memory for the tracker")?;
        let count = PACKETS as u32;
        let packets = match case {
            Case::Established(flows) => {
                let random = |n: u32| {
                    let mixed = thalweg_tables::hash::mix64(u64::from(n));
                    ((mixed % u64::from(flows)) as u32, mixed >> 63 == 1)
                };
                Packets::new((0..count).map(|n| {
                    let (flow, server) = random(n);
                    let (seq, ack) = if server { (501, 101) } else { (101, 501) };
                    segment(six, flow, (server, ACK, seq, ack, 0))
                }))
            }
            Case::New => Packets::new((0..count).map(|n| segment(six, n, LIFE[0]))),
            Case::Life => {
                let flows = count / LIFE.len() as u32 / FRAME as u32 * FRAME as u32;
                let frames = (0..flows).step_by(FRAME).flat_map(|first| {
                    LIFE.into_iter().flat_map(move |part| {
                        (first..first + FRAME as u32).map(move |n| segment(six, n, part))
                    })
                });
                Packets::new(frames)
            }
        };
        let mut stage = Stage {
            tracker,
            batch: Batch::default(),
            batch6: Batch::default(),
            six,
            packets,
            frame: vec![0; FRAME * STRIDE],
            case,
            now: 0,
        };
        // Connections expire 1 s after their last packet, so that turns can follow each other.
        let short = Policy::parse("tcp_close=1 tcp_syn_sent=1")?;
        match case {
            Case::Established(flows) => stage.establish(flows),
            _ => drop(stage.tracker.set_policy(None, Some(Box::new(short)))),
        }
        Ok(stage)
    }

    fn establish(&mut self, flows: u32) {
        let how = Commit::default();
        let mut states = [State::NONE; FRAME];
        for n in 0..flows {
            self.batch.clear();
            self.batch6.clear();
            for part in [LIFE[0], LIFE[1], (false, ACK, 101, 501, 0)] {
                let l3 = segment(self.six, n, part);
                match self.six {
                    false => self.batch.add_ipv4(0, &l3, l3.len(), Checks::NONE),
                    true => self.batch6.add_ipv6(0, &l3, l3.len(), Checks::NONE),
                }
            }
            match self.six {
                false => self.tracker.track_all(&mut self.batch, Some(&how), 0, &mut states),
                true => self.tracker.track_all(&mut self.batch6, Some(&how), 0, &mut states),
            }
        }
    }

    /// Clocks per packet in a turn; asserts that all packets had the expected state.
    fn turn(&mut self) -> f64 {
        let how = Commit::default();
        let mut states = [State::NONE; FRAME];
        let mut ticks = 0;
        let frames = self.packets.bytes.chunks(FRAME * STRIDE);
        for (bytes, lengths) in frames.zip(self.packets.lengths.chunks(FRAME)) {
            // Outside the measurement: copies the packets to where a device puts them.
            self.frame[..bytes.len()].copy_from_slice(bytes);
            let begin = clock::ticks();
            self.batch.clear();
            self.batch6.clear();
            let packets = self.frame.chunks_exact(STRIDE).zip(lengths);
            let packets = packets.map(|(packet, length)| &packet[..usize::from(*length)]);
            match self.six {
                false => packets.for_each(|l3| self.batch.add_ipv4(0, l3, l3.len(), Checks::NONE)),
                true => packets.for_each(|l3| self.batch6.add_ipv6(0, l3, l3.len(), Checks::NONE)),
            }
            let (tracker, batch, batch6) = (&mut self.tracker, &mut self.batch, &mut self.batch6);
            match self.six {
                false => tracker.track_all(batch, Some(&how), self.now, &mut states),
                true => tracker.track_all(batch6, Some(&how), self.now, &mut states),
            }
            if !matches!(self.case, Case::Established(_)) {
                // The clock advances by one second per half a million connections.
                self.now += 1;
                self.tracker.expire(self.now, 2 * FRAME);
            }
            ticks += clock::ticks() - begin;
        }
        let clocks = ticks as f64 / self.packets.lengths.len() as f64;
        // Outside the measurement: prepares the next turn.
        if let Case::New = self.case {
            self.now += 2000;
            while self.tracker.expire(self.now, 1 << 16) {}
        }
        clocks
    }
}

/// Results by round: clocks per packet and Mpps of the first worker alone, Mpps of both together,
/// and the ratio of both together to the mean of each alone.
struct Rounds {
    clocks: Series,
    rate: Series,
    together: Series,
    over: Series,
}

/// Runs rounds of three turns: either worker alone, then both. A waiting worker spins, because an
/// idle processor may be given to another virtual machine.
fn run(case: Case, six: bool, name: &str, rounds: usize) -> Result<Rounds> {
    let turn = AtomicUsize::new(0);
    let (waiting, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let all_here = |phase: usize| {
        if waiting.fetch_add(1, Ordering::AcqRel) == 1 {
            waiting.store(0, Ordering::Relaxed);
            turn.store(phase + 1, Ordering::Release);
        }
        while turn.load(Ordering::Acquire) <= phase && !failed.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    };
    let worker = |cpu: usize| -> Result<Vec<[f64; 2]>> {
        pin(cpu);
        let stage = Stage::new(case, six);
        failed.fetch_or(stage.is_err(), Ordering::Relaxed);
        let (mut stage, mut found) = (stage?, Vec::new());
        for round in 0..=rounds {
            let mut clocks = [0.0; 3];
            for (part, clocks) in clocks.iter_mut().enumerate() {
                all_here(3 * round + part);
                if part == cpu || part == 2 {
                    *clocks = stage.turn();
                }
            }
            found.push([clocks[cpu], clocks[2]]);
        }
        let counts = stage.tracker.counts();
        let wrong = counts.invalid + counts.full + counts.zone_full;
        anyhow::ensure!(wrong == 0, "{name}: {wrong} packets were refused");
        // The first round warms caches and branch predictors.
        found.remove(0);
        Ok(found)
    };
    let [a, b] = std::thread::scope(|scope| {
        [0, 1].map(|cpu| scope.spawn(move || worker(cpu))).map(|thread| thread.join())
    });
    let join =
        |found: std::thread::Result<_>| found.map_err(|_| anyhow::anyhow!("a worker failed"))?;
    let (a, b): (Vec<[f64; 2]>, Vec<_>) = (join(a)?, join(b)?);
    let mut all = Rounds {
        clocks: Series::default(),
        rate: Series::default(),
        together: Series::default(),
        over: Series::default(),
    };
    let mpps = |clocks: f64| clock::hz() / clocks / 1e6;
    for (a, b) in a.into_iter().zip(b) {
        let together = mpps(a[1]) + mpps(b[1]);
        all.clocks.push(a[0]);
        all.rate.push(mpps(a[0]));
        all.together.push(together);
        all.over.push(2.0 * together / (mpps(a[0]) + mpps(b[0])));
    }
    Ok(all)
}

fn act() -> Result<()> {
    let Some(args) = Args::from_env()? else { return Ok(()) };
    clock::init();
    let turns = 7;
    let mut report = Report::start("tracker", "Connection tracking alone");
    report.about(
        "Headers read, connections looked up, moved on and committed, in frames of 256 packets that \
         were just put there; checksums are not verified. New and short connections also expire. A \
         turn is half a million packets.",
    );
    let mut table = Table::new(
        "Tracking",
        vec![
            Column::text("what"),
            Column::values("one worker", "clocks/packet"),
            Column::text("target"),
            Column::values("rate", "Mpps"),
            Column::values("two workers together", "Mpps"),
            Column::values("two over one", "×"),
            Column::values("the processors then", "×"),
        ],
    );
    for (case, six, name, target) in Case::ALL {
        if !args.wants(name) {
            continue;
        }
        let (all, processors) = on_two_cores(5, || run(case, six, name, turns))?;
        table.row(vec![
            Cell::Text(name.into()),
            Cell::series(&all.clocks, 1),
            Cell::Text(target.map_or("–".into(), |t| format!("≤ {t}"))),
            Cell::series(&all.rate, 1),
            Cell::series(&all.together, 1),
            Cell::series(&all.over, 2),
            processors.map_or(Cell::None, |factor| Cell::Number(factor, 2)),
        ]);
    }
    table.note(
        "Either worker alone and both take turns of some hundredths of a second; two are compared with the mean of \
         either. The processors of a virtual machine may be threads of one core for seconds: before and behind each \
         row a bare loop that fills a core ran on one and on both, and the row is measured again if both did less \
         than 1.9 times as much, or one less than 95 % of the most that it did in this run, in five tries at most. \
         The lesser of the two factors is in the last column.",
    );
    report.table(table);
    report.finish(&args)
}
