//! Checks that workers share nothing: two of them forward under valgrind's lackey, which reports
//! each access to memory. No cache line may be written by one and touched by the other again and
//! again.
//!
//! `make sharing`, or with words of [`PATHS`]
//! `cargo run --release -p thalweg-bench-pg --example thalweg-sharing -- nat`:
//! some minutes each, as lackey tells of all that comes before, too.
//!
//! The result does not depend on the machine's other work, as rates of two workers do. Lines that
//! the processor fetches ahead, by itself or by hints, are not seen: pairs of lines are listed
//! apart, since some processors fetch those together.

#![allow(clippy::expect_used)]

use std::io::BufReader;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use thalweg_bench_common::{Args, Cell, Column, Report, Table};
use thalweg_bench_pg::paths::{self, Case, nat, stream};
use thalweg_bench_pg::sharing::{BEGIN, END, Shared, Trace};
use thalweg_bench_pg::{Router, cores, valgrind};
use thalweg_buffer::simd::Level;
use thalweg_conntrack::Tuple;
use thalweg_wire::ip::protocol;

/// Frames of each worker before tracing, and while it is on, at least; and packets of a frame.
const BEFORE: u64 = 16;
const TRACED: u64 = 16;
const FRAME: u64 = 256;
/// Most moves of a line from one to the other meanwhile: a message of the main thread, whose memory
/// the worker gives back, moves one now and then, but not with each frame.
const MOST: u64 = TRACED / 2;
/// The main thread's number.
const MAIN: u32 = 1;
/// Flows of a worker, where there are flows.
const FLOWS: usize = 512;

/// A way of packets: its word, its name, and how it is set up with streams `s0` and `s1`.
struct PathCase {
    word: &'static str,
    name: &'static str,
    set_up: fn(&mut Router),
}

const PATHS: [PathCase; 7] = [
    PathCase { word: "l2", name: "L2 cross connect", set_up: |r| case(r, Case::L2) },
    PathCase { word: "bridge", name: "L2 bridge domain", set_up: |r| case(r, Case::Bridge) },
    PathCase { word: "ip4", name: "IPv4, 1 flow", set_up: |r| case(r, Case::OneFlow) },
    PathCase { word: "hops", name: "IPv4, 16 next hops", set_up: |r| case(r, Case::NextHops) },
    PathCase { word: "sflow", name: "IPv4, 1 flow, sFlow 1:100", set_up: sampled },
    PathCase { word: "nat", name: "NAT44, 512 sessions each", set_up: nat44 },
    PathCase { word: "rules", name: "four rules, 512 connections each", set_up: rules },
];

fn main() -> ExitCode {
    match act() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("sharing: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn act() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [verb, word] = &words[..]
        && verb == "drive"
    {
        return drive(word);
    }
    for word in &words {
        let all = || PATHS.map(|case| case.word).join(" ");
        ensure!(PATHS.iter().any(|case| case.word == word), "no path {word}; there are {}", all());
    }
    let args = Args { only: words, ..Args::default() };
    let mut report = Report::start("sharing", "Cache lines that workers share");
    let mut table = Table::new(
        "Cache lines that workers share",
        vec![
            Column::text("path"),
            Column::values("written by one, touched by the other", "lines"),
            Column::values("the busiest, touches", ""),
            Column::values("pairs of lines", ""),
            Column::values("the busiest, touches", ""),
        ],
    );
    valgrind::check()?;
    let cases: Vec<_> = PATHS.iter().filter(|case| args.wants(case.word)).collect();
    let next = AtomicUsize::new(0);
    // Other processes do not change the result: run one per processor.
    let tracer = || {
        let mut traced = Vec::new();
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            eprintln!("sharing: {}", case.name);
            traced.push((case.name, trace(case)?));
        }
        Ok(traced)
    };
    let traced = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores()).map(|_| scope.spawn(tracer)).collect();
        threads.into_iter().map(|t| t.join().expect("no panic")).collect::<Result<Vec<_>>>()
    })?;
    let mut wrong = Vec::new();
    for (name, (lines, pairs)) in traced.into_iter().flatten() {
        let busiest = |all: &[Shared]| all.first().map_or(0, Shared::moves) as f64;
        let number = |n: usize| Cell::Number(n as f64, 0);
        table.row(vec![
            name.into(),
            number(lines.len()),
            Cell::Number(busiest(&lines), 0),
            number(pairs.len()),
            Cell::Number(busiest(&pairs), 0),
        ]);
        let often = lines.iter().filter(|line| line.moves() > MOST);
        wrong.extend(often.map(|line| format!("{name}: {}", say(line))));
    }
    table.note(format!(
        "Two workers, each with a stream of its own, {TRACED} frames of {FRAME} packets each or more: lines of 64 bytes, \
         and aligned pairs of them, that one worker writes and the other one reads or writes. Touches are those of the \
         worker that touches the busiest of them less often."
    ));
    report.table(table);
    report.finish(&args)?;
    ensure!(wrong.is_empty(), "lines that workers share:\n{}", wrong.join("\n"));
    Ok(())
}

/// Lists accesses to a line, and the instruction that wrote it first.
fn say(shared: &Shared) -> String {
    let by = shared.touches.iter().map(|(thread, t)| {
        format!("thread {thread} reads {}, writes {}, first at {:#x}", t.reads, t.writes, t.by)
    });
    format!("{:#x}: {}", shared.address, by.collect::<Vec<_>>().join("; "))
}

/// Lines, and pairs of lines, that both workers touch and one of them writes.
fn trace(case: &PathCase) -> Result<(Vec<Shared>, Vec<Shared>)> {
    let mut run = Command::new("valgrind")
        .args(["--tool=lackey", "--basic-counts=no", "--trace-mem=yes", "--trace-sched=yes"])
        .arg("--fair-sched=yes")
        .arg(std::env::current_exe().context("find this program")?)
        .args(["drive", case.word])
        .env("THALWEG_SIMD", Level::best().min(Level::Avx2).name())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .context("run valgrind")?;
    let said = run.stderr.take().context("valgrind's output")?;
    let trace = Trace::read(BufReader::new(said)).context("read valgrind's output")?;
    let status = run.wait().context("wait for valgrind")?;
    ensure!(status.success(), "{} under valgrind: {status}\n{}", case.name, trace.said());
    // Next to the main thread, which always has something to do.
    let workers = trace.busiest_but(MAIN, 2);
    let [(a, _), (b, n)] = workers[..] else {
        bail!("{}: two workers should have run: {workers:?}", case.name);
    };
    ensure!(n > TRACED * FRAME / 2, "{}: a worker did nothing: {workers:?}", case.name);
    // Proves that sharing is seen: the main thread reads the workers' counters.
    let control = trace.shared(&[MAIN, a], 1).len().min(trace.shared(&[MAIN, b], 1).len());
    ensure!(control > 0, "{}: what the main thread reads of the workers was not seen", case.name);
    Ok((trace.shared(&[a, b], 1), trace.shared(&[a, b], 2)))
}

/// Forwards packets, in the process that is traced.
fn drive(word: &str) -> Result<()> {
    let case = PATHS.iter().find(|case| case.word == word).context("no such path")?;
    let mut r = Router::start(&[None, None]);
    (case.set_up)(&mut r);
    r.cli("packet-generator enable-stream s0\npacket-generator enable-stream s1");
    let end = Instant::now() + Duration::from_secs(240);
    for (mark, frames) in [(BEGIN, BEFORE), (END, TRACED)] {
        let sent = |r: &mut Router| [0, 1].map(|w| r.control().worker_stats(w).totals.tx.get());
        let before = sent(&mut r);
        while sent(&mut r).iter().zip(before).any(|(now, before)| now - before < frames * FRAME) {
            ensure!(Instant::now() < end, "not forwarded in time: {}", r.cli("show errors"));
            r.wait(Duration::from_millis(20));
        }
        eprintln!("{mark}");
    }
    r.cli("packet-generator disable-stream");
    r.stop();
    Ok(())
}

fn case(r: &mut Router, case: Case) {
    case.set_up(r);
    let to = if case == Case::NextHops { "48.0.0.0 - 48.0.39.15" } else { "48.0.0.1" };
    r.cli(&stream("s1", "pg0", 1, to));
}

fn sampled(r: &mut Router) {
    case(r, Case::OneFlow);
    r.cli("sflow sampling-rate 100\nsflow enable-disable pg0");
}

/// Streams of these flows on both workers.
fn streams(r: &mut Router, flows: impl Fn(usize) -> Vec<u32>) {
    for worker in 0..2 {
        let packets = flows(worker).into_iter().map(nat::packet);
        paths::stream_of(r, &format!("s{worker}"), worker, packets);
    }
}

fn nat44(r: &mut Router) {
    nat::set_up(r, 4 * FLOWS as u32);
    streams(r, |worker| nat::flows(worker, true).take(FLOWS).collect());
    r.cli("set interface nat44 in pg0 out pg1");
}

/// Connections of the worker that receives them, as rules share them out.
fn rules(r: &mut Router) {
    Case::Bridge.set_up(r);
    r.cli(
        "packet-generator delete s0
         flow add 1 priority=1,ip,ct_state=-trk,actions=ct(table=0)
         flow add 1 priority=1,ip,ct_state=+trk+new,in_port=pg0,actions=ct(commit),normal
         flow add 1 priority=1,ip,ct_state=+trk+est,actions=normal
         flow add 1 priority=0,actions=drop",
    );
    let mine = |worker: usize, n: u32| {
        let ((src, sport), (dst, dport)) = (nat::source(n), nat::SERVER);
        let (src, dst) = (src.into(), dst.into());
        let tuple = Tuple { src, dst, protocol: protocol::UDP, sport, dport };
        tuple.owner_hash().is_some_and(|h| (u64::from(h) * 2) >> 32 == worker as u64)
    };
    streams(r, |worker| (0..u32::MAX).filter(|n| mine(worker, *n)).take(FLOWS).collect());
}
