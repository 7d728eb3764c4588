//! Instructions per packet of the packet path, counted by valgrind's callgrind, compared with those
//! that were accepted last: a guard that machines' moods do not disturb. Fails if a path takes over
//! 3 % more.
//!
//! `make bench-accept` accepts what is counted now, of a build as `make test` makes it. With the
//! word `guard`, which `make test` uses, the cases of thousands of VLANs and labels are left out:
//! setting them up takes most of the time, and there are cases of fewer.
//!
//! Counts cover nodes and taps, and the tracker by itself; not the generator's input, nor the loop
//! around them. callgrind knows no AVX-512: the levels below it stand in.

#![allow(clippy::expect_used)]

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use thalweg_bench_common::{Args, Cell, Column, Report, Table};
use thalweg_bench_pg::accepted::{Accepted, TOLERANCE, Verdict};
use thalweg_bench_pg::paths::{self, Case, Many, nat};
use thalweg_bench_pg::{Router, cores, valgrind};
use thalweg_buffer::simd::Level;
use thalweg_conntrack::{Batch, Checks, Commit, State, Tracker};
use thalweg_wire::build::Packet;
use thalweg_wire::tcp::flag::{ACK, SYN};

/// Whole frames, enough that a few calls more or less do not show.
const PACKETS: u64 = 64 * 1024;
/// Counted functions, by their demangled names.
const COUNTED: [&str; 5] = [
    "*thalweg_graph::node::Runner>::run*",
    "*worker::taps::*::run_gate*",
    "*worker::taps::*::run_taps*",
    "instructions::track",
    "instructions::track6",
];
const LEVELS: [Level; 3] = [Level::PerPacket, Level::Scalar, Level::Avx2];

/// A way of packets, and its word on the command line.
struct PathCase {
    word: &'static str,
    name: &'static str,
    drive: Drive,
}

/// The only stream of most paths.
const ONE: &[&str] = &["s0"];

/// The handler of the packets.
enum Drive {
    /// A router that is set up so, its stream `s0` included.
    Router {
        set_up: fn(&mut Router),
        sflow: Option<u32>,
        /// Packets of a stream that come together.
        frame: usize,
        /// Streams that run at the same time.
        streams: &'static [&'static str],
    },
    /// The tracker alone, which is the same at all levels, with connections of IPv4 or IPv6.
    Tracker(bool),
}

impl PathCase {
    const fn of(word: &'static str, name: &'static str, set_up: fn(&mut Router)) -> PathCase {
        PathCase {
            word,
            name,
            drive: Drive::Router { set_up, sflow: None, frame: 256, streams: ONE },
        }
    }

    const fn mixed(word: &'static str, name: &'static str, set_up: fn(&mut Router)) -> PathCase {
        let streams = &["s0", "s1"];
        PathCase { word, name, drive: Drive::Router { set_up, sflow: None, frame: 128, streams } }
    }

    const fn lone(word: &'static str, name: &'static str, set_up: fn(&mut Router)) -> PathCase {
        PathCase {
            word,
            name,
            drive: Drive::Router { set_up, sflow: None, frame: 1, streams: ONE },
        }
    }

    const fn sampled(word: &'static str, name: &'static str, rate: u32) -> PathCase {
        let set_up = |r: &mut Router| Case::OneFlow.set_up(r);
        PathCase {
            word,
            name,
            drive: Drive::Router { set_up, sflow: Some(rate), frame: 256, streams: ONE },
        }
    }

    fn levels(&self) -> impl Iterator<Item = Level> {
        let levels = match self.drive {
            Drive::Router { .. } => &LEVELS[..],
            Drive::Tracker(_) => &LEVELS[..1],
        };
        levels.iter().copied().filter(|l| *l <= Level::best())
    }
}

const PATHS: [PathCase; 31] = [
    PathCase::of("l2", "L2 cross connect", |r| Case::L2.set_up(r)),
    PathCase::of("bridge", "L2 bridge domain, 1 MAC address", |r| Case::Bridge.set_up(r)),
    PathCase::of("flow", "IPv4, 1 flow", |r| Case::OneFlow.set_up(r)),
    PathCase::of("counted", "IPv4, 1 flow, counted by route", counted),
    PathCase::of("hops", "IPv4, 16 next hops", |r| Case::NextHops.set_up(r)),
    PathCase::of("vlan", Case::Vlan.name(), |r| Case::Vlan.set_up(r)),
    PathCase::of("vlan-of-many", Case::VlanOfMany.name(), |r| Case::VlanOfMany.set_up(r)),
    PathCase::of("vlan-of-some", "IPv4, 1 flow between 2 of 128 VLANs", |r| {
        Case::VlanOfMany.set_up_with(r, &Many::FEW);
    }),
    PathCase::of("vlan-random", Case::VlanRandom.name(), |r| Case::VlanRandom.set_up(r)),
    PathCase::of("vlan-random-some", "IPv4, 128 VLANs at random", |r| {
        Case::VlanRandom.set_up_with(r, &Many::FEW);
    }),
    PathCase::of("retag", Case::Retag.name(), |r| Case::Retag.set_up(r)),
    PathCase::of("retag-macs", Case::RetagMacs.name(), |r| Case::RetagMacs.set_up(r)),
    PathCase::of("ecmp", "IPv4, 16-way ECMP", |r| Case::Ecmp.set_up(r)),
    PathCase::of("six", Case::Six.name(), |r| Case::Six.set_up(r)),
    PathCase::of("six-hosts", Case::SixDestinations.name(), |r| Case::SixDestinations.set_up(r)),
    PathCase::of("six-hops", Case::SixNextHops.name(), |r| Case::SixNextHops.set_up(r)),
    PathCase::of("mpls-swap", Case::MplsSwap.name(), |r| Case::MplsSwap.set_up(r)),
    PathCase::of("mpls-push", Case::MplsPush.name(), |r| Case::MplsPush.set_up(r)),
    PathCase::of("mpls-pop", Case::MplsPop.name(), |r| Case::MplsPop.set_up(r)),
    PathCase::of("mpls-labels", Case::MplsLabels.name(), |r| Case::MplsLabels.set_up(r)),
    PathCase::of("mpls-some-labels", "MPLS, 1,000 labels swapped, at random", |r| {
        Case::MplsLabels.set_up_with(r, &Many::FEW);
    }),
    PathCase::mixed("mixed", "IPv4, frames of 2 interfaces", two_interfaces),
    PathCase::of("nat", "NAT44, 1024 sessions", nat44),
    PathCase::of("rules", "flow rules, 1 table", rules),
    PathCase::of("rules-ct", "flow rules, with ct", rules_with_ct),
    PathCase::sampled("sflow", "IPv4, 1 flow, sFlow 1:1k", 1000),
    PathCase::sampled("sflow100", "IPv4, 1 flow, sFlow 1:100", 100),
    PathCase::lone("l2-lone", "L2 cross connect, lone packets", |r| Case::L2.set_up(r)),
    PathCase::lone("flow-lone", "IPv4, lone packets", |r| Case::OneFlow.set_up(r)),
    PathCase { word: "tracker", name: "tracker, 1024 connections", drive: Drive::Tracker(false) },
    PathCase {
        word: "tracker6",
        name: "tracker, 1024 connections of IPv6",
        drive: Drive::Tracker(true),
    },
];

/// Paths that the guard leaves to `make bench`.
const LONG: [&str; 3] = ["vlan-of-many", "vlan-random", "mpls-labels"];

fn main() -> ExitCode {
    match act() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("instructions: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn act() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [verb, path] = &words[..]
        && verb == "drive"
    {
        return drive(path);
    }
    let Some(args) = Args::from_env()? else { return Ok(()) };
    let mut report = Report::start("instructions", "Instructions per packet, counted by callgrind");
    match valgrind::check() {
        Ok(()) => guard(&args, report),
        // CI must not pass without running this, either.
        Err(e) if std::env::var_os("CI").is_some() => Err(e),
        Err(e) => {
            let mut table = Table::new("Instructions per packet", vec![Column::text("path")]);
            table.row(vec![Cell::Missing(format!("not available: {e:#}"))]);
            report.table(table);
            report.finish(&args)
        }
    }
}

/// Handles the packets of a path, in the process that is counted.
fn drive(word: &str) -> Result<()> {
    let path = PATHS.iter().find(|p| p.word == word).context("no such path")?;
    let (set_up, sflow, frame, streams) = match path.drive {
        Drive::Router { set_up, sflow, frame, streams } => (set_up, sflow, frame, streams),
        Drive::Tracker(ipv6) => return track_packets(ipv6),
    };
    let mut r = Router::start(&[None]);
    set_up(&mut r);
    if let Some(rate) = sflow {
        r.cli(&format!("sflow sampling-rate {rate}\nsflow enable-disable pg0"));
    }
    let limit = PACKETS / streams.len() as u64;
    for s in streams {
        r.cli(&format!("packet-generator configure {s} limit {limit} maxframe {frame}"));
    }
    // One command starts all: several streams begin in the same loop, so that all runs are alike.
    r.cli("packet-generator enable-stream");
    let end = Instant::now() + Duration::from_secs(120);
    while r.control().worker_stats(0).totals.tx.get() < PACKETS {
        ensure!(Instant::now() < end, "not forwarded in time:\n{}", r.cli("show packet-generator"));
        r.wait(Duration::from_millis(5));
    }
    r.stop();
    Ok(())
}

/// Sessions, and connections that are tracked.
const FLOWS: u32 = 1024;

/// Routes and adjacencies count packets.
fn counted(r: &mut Router) {
    Case::OneFlow.set_up(r);
    r.cli("adjacency counters enable");
}

/// Half of the packets come from one interface, half from another, in the same loop: nodes run on
/// frames of both.
fn two_interfaces(r: &mut Router) {
    Case::OneFlow.set_up(r);
    r.cli(
        "create packet-generator interface pg2
         set interface state pg2 up
         enable ip4 interface pg2
         set interface mac address pg2 02:fe:00:00:00:01",
    );
    r.cli(&paths::stream("s1", "pg2", 0, "48.0.0.1"));
}

/// Translation of packets that come in turn.
fn nat44(r: &mut Router) {
    nat::set_up(r, 2 * FLOWS);
    paths::stream_of(r, "s0", 0, (0..FLOWS).map(nat::packet));
    r.cli("set interface nat44 in pg0 out pg1");
}

/// Rules on a cross connect: the third that is tried passes packets on.
fn rules(r: &mut Router) {
    Case::L2.set_up(r);
    r.cli(
        "flow add 7 priority=3,arp,actions=normal
         flow add 7 priority=2,udp,nw_dst=192.0.2.0/24,actions=drop
         flow add 7 priority=1,ip,actions=normal
         set interface flow pg0 7",
    );
}

/// Rules on a cross connect that track a connection of one direction.
fn rules_with_ct(r: &mut Router) {
    Case::L2.set_up(r);
    r.cli(
        "flow add 7 table=0,ip,actions=ct(table=1)
         flow add 7 table=1,ip,ct_state=+new,actions=ct(commit),normal
         flow add 7 table=1,ip,ct_state=+est,actions=normal
         set interface flow pg0 7",
    );
}

/// Tracks segments of connections that stand, a frame at a time, in either direction.
fn track_packets(ipv6: bool) -> Result<()> {
    let at = |n: u32| Ipv4Addr::from_bits(0x1000_0000 + n);
    let at6 = |n: u32| Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(n));
    let segment = |n: u32, server: bool, flags, seq, ack| {
        let ip = Packet::new();
        let (src, dst) = if server { (FLOWS, n) } else { (n, FLOWS) };
        let ip = match ipv6 {
            false => ip.ipv4(at(src), at(dst)),
            true => ip.ipv6(at6(src), at6(dst)),
        };
        let tcp = if server { ip.tcp(80, 1024) } else { ip.tcp(1024, 80) };
        tcp.flags(flags).seq(seq).ack(ack).window(60000).build()
    };
    let mut tracker = Tracker::new(2 * FLOWS, 0).context("no memory for the tracker")?;
    let (mut batch, mut batch6) = (Batch::default(), Batch::default());
    let mut track = |tracker: &mut Tracker, frame: &[Vec<u8>]| match ipv6 {
        false => track(tracker, &mut batch, frame),
        true => track6(tracker, &mut batch6, frame),
    };
    for n in 0..FLOWS {
        let opening = [(false, SYN, 100, 0), (true, SYN | ACK, 500, 101), (false, ACK, 101, 501)];
        let opening = opening.map(|(server, flags, seq, ack)| segment(n, server, flags, seq, ack));
        track(&mut tracker, &opening);
    }
    let frames: Vec<Vec<Vec<u8>>> = [false, true]
        .into_iter()
        .flat_map(|server| {
            let (seq, ack) = if server { (501, 101) } else { (101, 501) };
            let all: Vec<_> = (0..FLOWS).map(|n| segment(n, server, ACK, seq, ack)).collect();
            all.chunks(256).map(<[Vec<u8>]>::to_vec).collect::<Vec<_>>()
        })
        .collect();
    for frame in frames.iter().cycle().take(PACKETS as usize / 256) {
        track(&mut tracker, frame);
    }
    let stand = tracker.counts().established;
    ensure!(stand > PACKETS, "only {stand} packets were of connections that stand");
    Ok(())
}

/// Headers read, connections looked up, moved on and committed.
#[inline(never)]
fn track(tracker: &mut Tracker, batch: &mut Batch<2>, frame: &[Vec<u8>]) {
    let mut states = [State::NONE; 256];
    batch.clear();
    for l3 in frame {
        batch.add_ipv4(0, l3, l3.len(), Checks::NONE);
    }
    tracker.track_all(batch, Some(&Commit::default()), 0, &mut states);
}

/// The same of IPv6.
#[inline(never)]
fn track6(tracker: &mut Tracker, batch: &mut Batch<5>, frame: &[Vec<u8>]) {
    let mut states = [State::NONE; 256];
    batch.clear();
    for l3 in frame {
        batch.add_ipv6(0, l3, l3.len(), Checks::NONE);
    }
    tracker.track_all(batch, Some(&Commit::default()), 0, &mut states);
}

/// Instructions per packet of one path at one level.
fn count(path: &PathCase, level: Level, dir: &Path) -> Result<f64> {
    let out = dir.join(format!("{}-{}.out", path.word, level.name()));
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--fair-sched=yes"])
        .args(COUNTED.map(|f| format!("--toggle-collect={f}")))
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe().context("find this program")?)
        .args(["drive", path.word])
        .env("THALWEG_SIMD", level.name())
        .output()
        .context("run valgrind")?;
    let said = String::from_utf8_lossy(&run.stderr);
    ensure!(run.status.success(), "{} under valgrind: {}\n{said}", path.name, run.status);
    let text = std::fs::read_to_string(&out).with_context(|| out.display().to_string())?;
    let total = text.lines().find_map(|l| l.strip_prefix("totals:")?.trim().parse::<u64>().ok());
    match total {
        Some(n) if n > 0 => Ok(n as f64 / PACKETS as f64),
        _ => bail!("callgrind counted nothing in {COUNTED:?}; were these functions inlined?"),
    }
}

fn accepted_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.json")
}

fn guard(args: &Args, mut report: Report) -> Result<()> {
    let asked = |word: &str| args.only.iter().any(|other| other == word);
    let (accepting, short) = (asked("accept"), asked("guard"));
    let dir = tempfile::tempdir().context("a folder for callgrind")?;
    let mut now = Accepted::by_this_compiler()?;
    let paths = PATHS.iter().filter(|path| !short || !LONG.contains(&path.word));
    let all: Vec<_> = paths.flat_map(|p| p.levels().map(move |l| (p, l))).collect();
    let next = AtomicUsize::new(0);
    // Other processes do not change the counts: run one per processor.
    let counter = || {
        let mut counted = Vec::new();
        while let Some((path, level)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            eprintln!("instructions: {}, {}", path.name, level.name());
            counted.push((path.name, level.name(), count(path, *level, dir.path())?));
        }
        Ok(counted)
    };
    let counted = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores()).map(|_| scope.spawn(counter)).collect();
        threads.into_iter().map(|t| t.join().expect("no panic")).collect::<Result<Vec<_>>>()
    })?;
    for (path, level, n) in counted.into_iter().flatten() {
        now.set(path, level, n);
    }
    let before = if accepting { now.clone() } else { Accepted::read(&accepted_file())? };
    let mut table = Table::new(
        "Instructions per packet",
        vec![
            Column::text("path"),
            Column::text("level"),
            Column::values("accepted", "instructions"),
            Column::values("now", "instructions"),
            Column::values("change", "%"),
        ],
    );
    let verdicts = now.compare(&before);
    for v in &verdicts {
        let accepted = v.before.map_or(Cell::Missing("none".into()), |n| Cell::Number(n, 2));
        let change = v.change().map_or(Cell::None, |c| Cell::Number(100.0 * c, 1));
        let row = vec![v.path.as_str().into(), v.level.as_str().into(), accepted];
        table.row([row, vec![Cell::Number(v.now, 2), change]].concat());
    }
    table.note(format!(
        "In nodes, taps and the tracker, without the generator's input and the loop around nodes. \
         Accepted with {}; counted with {}.",
        before.rustc, now.rustc
    ));
    report.table(table);
    report.finish(args)?;
    if accepting {
        return now.write(&accepted_file());
    }
    judge(&verdicts, &before, &now)
}

/// Fails if a path has become dearer.
fn judge(verdicts: &[Verdict], before: &Accepted, now: &Accepted) -> Result<()> {
    let worse: Vec<String> = verdicts.iter().filter(|v| v.is_worse()).map(Verdict::say).collect();
    if worse.is_empty() {
        return Ok(());
    }
    let text = format!(
        "{}\nMore than {:.0} % more than accepted. If that is what the change is worth, \
         `make bench-accept' accepts it; say in the commit why.",
        worse.join("\n"),
        100.0 * TOLERANCE
    );
    if before.rustc != now.rustc {
        // Another compiler is nobody's change.
        eprintln!(
            "{text}\nNo failure, as the accepted ones were made otherwise: {}.",
            before.rustc
        );
        return Ok(());
    }
    bail!("{text}")
}
