//! Instructions per packet of the packet path, counted by valgrind's callgrind, beside those that
//! were accepted last: a guard that machines' moods do not disturb. Fails if a path takes over 3 %
//! more.
//!
//! `cargo bench -p thalweg-bench-pg --bench instructions -- accept` accepts what is counted now
//! (`make bench-accept`).
//!
//! What is counted is what runs in nodes and taps; not the generator's input, nor the loop around
//! them. callgrind knows no AVX-512: the levels below it stand in.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use thalweg_bench_common::{Args, Cell, Column, Report, Table};
use thalweg_bench_pg::Router;
use thalweg_bench_pg::accepted::{Accepted, TOLERANCE, Verdict};
use thalweg_bench_pg::paths::Case;
use thalweg_buffer::simd::Level;

/// Whole frames, so many that a few calls more or less do not show.
const PACKETS: u64 = 256 * 1024;
/// What is counted: functions by their demangled names.
const COUNTED: [&str; 3] = [
    "*thalweg_graph::node::Runner>::run*",
    "*worker::taps::*::run_gate*",
    "*worker::taps::*::run_taps*",
];
const LEVELS: [Level; 3] = [Level::PerPacket, Level::Scalar, Level::Avx2];

/// A way of packets, and its word on the command line.
struct Way {
    word: &'static str,
    name: &'static str,
    case: Case,
    sflow: Option<u32>,
    /// Packets that come together.
    frame: usize,
}

impl Way {
    const fn of(word: &'static str, name: &'static str, case: Case) -> Way {
        Way { word, name, case, sflow: None, frame: 256 }
    }
}

const PATHS: [Way; 6] = [
    Way::of("l2", "L2 cross connect", Case::L2),
    Way::of("flow", "IPv4, 1 flow", Case::OneFlow),
    Way::of("hops", "IPv4, 16 next hops", Case::NextHops),
    Way { sflow: Some(1000), ..Way::of("sflow", "IPv4, 1 flow, sFlow 1:1k", Case::OneFlow) },
    Way { frame: 1, ..Way::of("l2-lone", "L2 cross connect, lone packets", Case::L2) },
    Way { frame: 1, ..Way::of("flow-lone", "IPv4, lone packets", Case::OneFlow) },
];

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
    match valgrind() {
        Ok(()) => guard(&args, report),
        // Where tests must not pass by not running, this must not, either.
        Err(e) if std::env::var_os("CI").is_some() => Err(e),
        Err(e) => {
            let mut table = Table::new("Instructions per packet", vec![Column::text("path")]);
            table.row(vec![Cell::Missing(format!("not available: {e:#}"))]);
            report.table(table);
            report.finish(&args)
        }
    }
}

/// Forwards the packets of a path, in the process that is counted.
fn drive(word: &str) -> Result<()> {
    let path = PATHS.iter().find(|p| p.word == word).context("no such path")?;
    let mut r = Router::start(&[None]);
    path.case.set_up(&mut r);
    if let Some(rate) = path.sflow {
        r.cli(&format!("sflow sampling-rate {rate}\nsflow enable-disable pg0"));
    }
    r.cli(&format!("packet-generator configure s0 limit {PACKETS} maxframe {}", path.frame));
    r.cli("packet-generator enable-stream s0");
    let end = Instant::now() + Duration::from_secs(120);
    while r.control().worker_stats(0).totals.tx.get() < PACKETS {
        ensure!(Instant::now() < end, "not forwarded in time:\n{}", r.cli("show packet-generator"));
        r.wait(Duration::from_millis(5));
    }
    r.stop();
    Ok(())
}

fn valgrind() -> Result<()> {
    let out = Command::new("valgrind").arg("--version").output();
    let out = out.context("valgrind cannot be run; `scripts/setup.sh' installs it")?;
    ensure!(out.status.success(), "valgrind --version: {}", out.status);
    Ok(())
}

/// Instructions per packet of one path at one level.
fn count(path: &Way, level: Level, dir: &Path) -> Result<f64> {
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
    let accepting = args.only.iter().any(|word| word == "accept");
    let dir = tempfile::tempdir().context("a folder for callgrind")?;
    let mut now = Accepted::by_this_compiler()?;
    for path in &PATHS {
        for level in LEVELS.into_iter().filter(|l| *l <= Level::best()) {
            eprintln!("instructions: {}, {}", path.name, level.name());
            now.set(path.name, level.name(), count(path, level, dir.path())?);
        }
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
        "In nodes and taps, without the generator's input and the loop around nodes. Accepted with \
         {}; counted with {}.",
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
            "{text}\nNo failure, as another compiler made the accepted ones: {}.",
            before.rustc
        );
        return Ok(());
    }
    bail!("{text}")
}
