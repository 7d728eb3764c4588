//! Five million connections: loop times while all expire at once, latency of commands while they
//! are listed, and memory use.
//!
//! `cargo bench -p thalweg-feat-flow --bench millions`

#[path = "../tests/switch/lab.rs"]
#[expect(dead_code, reason = "the tests use all of it")]
mod lab;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lab::Lab;
use thalweg_bench_common::{Args, Cell, Column, Loops, Report, Stalls, Table};
use thalweg_conntrack::Filter;
use thalweg_feat_flow::{Next, Visit};
use thalweg_graph::stats::WorkerStats;
use thalweg_load::Profile;

const COUNT: u32 = 5_000_000;

const RULES: &str = "flow add 1 priority=1,ip,ct_state=-trk,actions=ct(table=0)
flow add 1 priority=1,ip,ct_state=+trk+new,in_port=port0,actions=ct(commit),normal
flow add 1 priority=1,ip,ct_state=+trk+est,actions=normal
flow add 1 priority=0,actions=drop
set conntrack limit 5000000
set conntrack checksums disable
set conntrack timeouts default tcp_close=1
set interface flow port0 1
set interface flow port1 1";

/// Maximum number of connections opened per loop: making up for a pause of the machine must not
/// make a loop long.
const BURST: usize = 16;

/// Number of rounds.
const ROUNDS: usize = 5;

/// Requests to a worker per slice of a listing, as in `show conntrack`.
const QUESTIONS: usize = 8;
/// Slices between two commands.
const SLICES: u32 = 10;

fn main() -> ExitCode {
    match act() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("millions: {e:#}");
            ExitCode::FAILURE
        }
    }
}

/// Counters of the worker.
fn stats(lab: &Lab) -> &WorkerStats {
    lab.c.worker_stats(0)
}

/// Resident memory in bytes.
fn resident() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").context("read /proc/self/statm")?;
    let pages: u64 = text.split(' ').nth(1).context("two numbers")?.parse()?;
    Ok(pages * 4096)
}

fn live(lab: &mut Lab) -> u64 {
    thalweg_feat_flow::sums(&mut lab.c).live.total().into()
}

/// Durations of the longest slice of a listing and of the whole listing, and of the longest short
/// command between two slices.
fn list(lab: &mut Lab) -> Result<(Duration, Duration, Duration)> {
    let mut visit = Visit::new(Filter::default());
    let (begin, mut listed) = (Instant::now(), 0u64);
    let (mut longest, mut command) = (Duration::ZERO, Duration::ZERO);
    let mut slices = 0;
    let mut text = String::new();
    while !visit.is_over(&lab.c) {
        let slice = Instant::now();
        for _ in 0..QUESTIONS {
            if visit.is_over(&lab.c) {
                break;
            }
            text.clear();
            let Next::Some(found) = visit.list(&mut lab.c) else { continue };
            for connection in found {
                use std::fmt::Write;
                let _ = writeln!(text, "{}", connection.line(Default::default()));
                listed += 1;
            }
        }
        longest = longest.max(slice.elapsed());
        slices += 1;
        if slices % SLICES == 0 {
            let begin = Instant::now();
            lab.cli("show conntrack summary");
            command = command.max(begin.elapsed());
        }
    }
    ensure!(listed >= u64::from(COUNT), "{listed} were listed");
    Ok((longest, command, begin.elapsed()))
}

fn act() -> Result<()> {
    let Some(args) = Args::from_env()? else { return Ok(()) };
    let mut report = Report::start("millions", "Five million connections");
    report.about(
        "One worker, through four rules and a cross connect. The loops are measured while 100 000 new TCP \
         connections per second pass as well.",
    );
    // The processor of the lab's worker.
    let cpu = std::thread::available_parallelism().map_or(0, |n| n.get() - 1);
    let mut lab = Lab::without_log(1, 1 << 14);
    // Touches buffers before connections.
    lab.pairs(100_000);
    let before = resident()?;
    lab.ok(RULES);
    lab.ok("set conntrack timeouts default udp_first=600 udp_multiple=600 tcp_close=1");
    let (begin, before_fill, faults) =
        (Instant::now(), Loops::so_far(stats(&lab)), worker_faults()?);
    let refused = fill(&mut lab)?;
    let (filled, filling) = (begin.elapsed(), before_fill.until_now(stats(&lab)));
    let faults = worker_faults()? - faults;
    let memory = (resident()? - before) as f64 / f64::from(COUNT);
    let (slice, command, listed) = list(&mut lab)?;
    let mut table = Table::new(
        "Five million connections",
        vec![Column::text("what"), Column::values("value", ""), Column::text("target")],
    );
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let rows = [
        ("filled, million/s", f64::from(COUNT) / 1e6 / filled.as_secs_f64(), 2, "–"),
        ("refused meanwhile: no memory yet", refused as f64, 0, "–"),
        ("longest loop of its own meanwhile, µs", filling.longest_own(), 0, "–"),
        ("longest loop meanwhile, µs", filling.longest(), 0, "–"),
        ("page faults of the worker meanwhile", faults as f64, 0, "–"),
        ("memory per connection, bytes", memory, 0, "≤ 128"),
        ("longest slice of a list, ms", ms(slice), 2, "≤ 50"),
        ("longest command meanwhile, ms", ms(command), 2, "≤ 50"),
        ("the whole list, s", listed.as_secs_f64(), 2, "–"),
    ];
    for (what, value, digits, target) in rows {
        table.row(vec![what.into(), Cell::Number(value, digits), target.into()]);
    }
    report.table(table);

    // Makes room for connections created meanwhile.
    lab.cli("clear conntrack");
    lab.ok("set conntrack limit 5500000");
    lab.load_spread(&profile(), BURST, 1);
    lab.finish();
    let mut memory = vec![1; COUNT as usize * 128 / size_of::<u64>()];
    let mut cleared = Stalls::on(cpu);
    for _ in 0..ROUNDS {
        fill(&mut lab)?;
        round(&mut lab, &mut cleared, (&mut memory, Duration::ZERO), clear)?;
    }
    lab.ok(&format!(
        "set conntrack timeouts default udp_first={SILENCE} udp_multiple={SILENCE} tcp_close=1"
    ));
    let mut ended = Stalls::on(cpu);
    for _ in 0..ROUNDS {
        lab.pairs(COUNT);
        // Nothing expires until a packet arrives.
        std::thread::sleep(SILENT);
        round(&mut lab, &mut ended, (&mut memory, SILENT), end_all)?;
    }
    let (client, _) = lab.counts();
    ensure!(client.lost == 0, "{client:?}");
    lab.close();
    let mut table = Stalls::table("Five million connections deleted at once");
    cleared.row(&mut table, "`clear conntrack ct_nw_proto=17`");
    ended.row(&mut table, "silent for too long, all of them");
    table.note(format!(
        "Of loops with something to do, while 100 000 connections a second pass. {}",
        Stalls::NOTE
    ));
    report.table(table);
    report.finish(&args)
}

/// Ends all connections with `by`, then runs the bare loop for comparison.
fn round(
    lab: &mut Lab,
    stalls: &mut Stalls,
    (memory, silent): (&mut [u64], Duration),
    by: impl FnOnce(&mut Lab) -> Result<(Loops, Duration)>,
) -> Result<()> {
    let went = by(lab)?;
    lab.finish();
    stalls.round(went, silent, memory);
    Ok(())
}

/// Creates five million connections. Returns how often one was refused for lack of memory and
/// retried.
fn fill(lab: &mut Lab) -> Result<u64> {
    let unready = |lab: &mut Lab| thalweg_feat_flow::sums(&mut lab.c).counts.unready;
    let before = unready(lab);
    let end = Instant::now() + Duration::from_secs(30);
    while live(lab) < u64::from(COUNT) {
        ensure!(Instant::now() < end, "{} connections", live(lab));
        lab.pairs(COUNT);
    }
    Ok(unready(lab) - before)
}

/// Number of page faults of the worker so far.
fn worker_faults() -> Result<u64> {
    for task in std::fs::read_dir("/proc/self/task")? {
        let stat = std::fs::read_to_string(task?.path().join("stat"))?;
        let (name, rest) = stat.rsplit_once(')').context("a name")?;
        if name.ends_with("(thalweg_wk_0") {
            return Ok(rest.split_whitespace().nth(7).context("faults")?.parse()?);
        }
    }
    anyhow::bail!("there is no worker")
}

/// Flushes the five million by a command while TCP connections pass, which stay.
fn clear(lab: &mut Lab) -> Result<(Loops, Duration)> {
    lab.go_on(&profile());
    std::thread::sleep(Duration::from_millis(300));
    let (begin, before) = (Instant::now(), Loops::so_far(stats(lab)));
    let said = lab.cli("clear conntrack ct_nw_proto=17");
    let (took, loops) = (begin.elapsed(), before.until_now(stats(lab)));
    ensure!(said.trim() == format!("{COUNT} connections flushed"), "{said}");
    Ok((loops, took))
}

/// 100 000 connections per second.
fn profile() -> Profile {
    Profile {
        clients: 60,
        ports: (1024, 50_000),
        client: std::net::Ipv4Addr::new(17, 0, 0, 1),
        concurrent: 2048,
        rate: Some(100_000.0),
        patience: 5_000_000,
        ..Profile::default()
    }
}

/// Timeout of a connection in seconds: longer than it takes to create them all.
const SILENCE: u64 = 4;

/// Silence until all have expired.
const SILENT: Duration = Duration::from_millis(SILENCE * 1000 + 300);

/// Waits until nearly all have expired.
fn end_all(lab: &mut Lab) -> Result<(Loops, Duration)> {
    ensure!(live(lab) >= u64::from(COUNT), "{} connections", live(lab));
    let (begin, loops) = (Instant::now(), Loops::so_far(stats(lab)));
    lab.go_on(&profile());
    while begin.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
        if live(lab) < u64::from(COUNT) / 20 {
            return Ok((loops.until_now(stats(lab)), begin.elapsed()));
        }
    }
    anyhow::bail!("{} are left", live(lab))
}
