//! A million routes, further tables, and changes while two streams flow: how fast, how
//! much memory, and what workers' loops see of it.
//!
//! Windows with changes alternate with windows without, as the machine itself stops now and then
//! for longer than any change takes. Both streams must come out where they always do, to the last
//! packet, else there are no figures.

use std::sync::mpsc;
use std::time::{Duration, Instant};
use thalweg_feat_ip::TableId;

use anyhow::{Context, Result, bail, ensure};
use thalweg_bench_common::{Args, Cell, Column, Report, Series, Table};
use thalweg_bench_control::churn::{self, Churn};
use thalweg_bench_control::memory;
use thalweg_bench_control::steps::Slice;
use thalweg_bench_pg::Router;
use thalweg_cli::{CliJob, Gone, MainCli, Reply, Request, Status};
use thalweg_feat_ip::{Ip4, Path, add_route, del_route};
use thalweg_graph::{Control, LoopCounts, clock};
use thalweg_tables::lpm4::internet;
use thalweg_tables::{Ipv4Prefix, Lpm4};

const ROUTES: usize = 1_000_000;
/// Windows of each change, with it and without.
const WINDOWS: usize = 10;
const WINDOW: Duration = Duration::from_millis(500);
const WARM_UP: Duration = Duration::from_millis(200);
const TABLES: u32 = 64;
/// A loop that takes longer, of the worker's own time, has stalled.
const STALL: Duration = Duration::from_micros(100);
const MIB: f64 = (1 << 20) as f64;

fn start() -> Router {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut r = Router::start(&[Some(cores - 1)]);
    r.cli(churn::PORTS);
    r
}

fn next_hops(c: &Control) -> Result<[Path; 2]> {
    let via = |port: &str, last: u8| -> Result<Path> {
        let sw_if = thalweg_device::interface::find(c, port)?;
        Ok(Path::via([10, last, 0, 1], Some(sw_if)))
    };
    Ok([via("pg1", 1)?, via("pg2", 2)?])
}

/// Adds all prefixes by the function that commands call; seconds.
fn add_all(c: &mut Control, prefixes: &[Ipv4Prefix]) -> Result<f64> {
    let paths = next_hops(c)?;
    let begin = Instant::now();
    for (n, prefix) in prefixes.iter().enumerate() {
        add_route(c, TableId(0), *prefix, vec![paths[n % 2]], false)?;
    }
    Ok(begin.elapsed().as_secs_f64())
}

fn delete_all(c: &mut Control, prefixes: &[Ipv4Prefix]) -> Result<f64> {
    let begin = Instant::now();
    for prefix in prefixes {
        del_route(c, TableId(0), *prefix, &[])?;
    }
    Ok(begin.elapsed().as_secs_f64())
}

/// Runs a line as a session's, in slices; seconds, and those of the longest slice.
fn in_slices(r: &mut Router, line: &str) -> Result<(f64, f64)> {
    let c = r.control();
    let tree = thalweg_engine::command_tree(c).context("two commands of one name")?;
    let mut main = MainCli::new(tree);
    let (tx, rx) = mpsc::channel();
    let sink = move |reply| tx.send(reply).map_err(|_| Gone);
    let (begin, slice) = (Instant::now(), Slice::begin());
    main.handle(c, CliJob::new(Request::Run { line: line.to_owned() }, sink));
    let mut longest = slice.seconds();
    loop {
        let slice = Slice::begin();
        let more = main.poll_tasks(c, Instant::now());
        c.run_once(Some(Duration::ZERO));
        longest = longest.max(slice.seconds());
        if more.is_none() {
            break;
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    for reply in rx {
        if let Reply::Done { text, status } = reply {
            ensure!(status == Status::Ok, "{line}: {text}");
            return Ok((seconds, longest));
        }
    }
    bail!("{line}: no answer")
}

/// Moves the next hop that all routes resolve through: seconds, and those of the longest slice.
fn follow(r: &mut Router, prefixes: &[Ipv4Prefix]) -> Result<(f64, f64)> {
    r.cli("ip route add 10.9.0.0/16 via 10.1.0.1 pg1");
    for prefix in prefixes {
        add_route(r.control(), TableId(0), *prefix, vec![Path::via([10, 9, 0, 1], None)], false)?;
    }
    let moved = in_slices(r, "ip route add 10.9.0.0/24 via 10.2.0.1 pg2")?;
    delete_all(r.control(), prefixes)?;
    r.cli("ip route del 10.9.0.0/24\nip route del 10.9.0.0/16");
    Ok(moved)
}

/// Lets the main thread go on until it has `settled`: seconds, and those of the longest slice,
/// `first` being one.
fn go_on(
    r: &mut Router,
    first: impl FnOnce(&mut Control) -> Result<()>,
    settled: impl Fn(&Control) -> bool,
) -> Result<(f64, f64)> {
    let c = r.control();
    let (begin, slice) = (Instant::now(), Slice::begin());
    first(c)?;
    let mut longest = slice.seconds();
    while !settled(c) {
        let slice = Slice::begin();
        c.run_once(Some(Duration::ZERO));
        longest = longest.max(slice.seconds());
    }
    Ok((begin.elapsed().as_secs_f64(), longest))
}

/// Deletes an interface that all routes lead to.
fn orphan(r: &mut Router, prefixes: &[Ipv4Prefix]) -> Result<(f64, f64)> {
    r.cli("create packet-generator interface pg9\nset interface state pg9 up");
    let c = r.control();
    let sw_if = thalweg_device::interface::find(c, "pg9")?;
    for prefix in prefixes {
        add_route(c, TableId(0), *prefix, vec![Path::via([10, 9, 0, 1], Some(sw_if))], false)?;
    }
    let before = c.state::<Ip4>().borrow().route_count(TableId(0));
    let delete = |c: &mut Control| Ok(thalweg_device::interface::delete(c, sw_if)?);
    let all = go_on(r, delete, |c| c.state::<Ip4>().borrow().is_resolved())?;
    let left = r.control().state::<Ip4>().borrow().route_count(TableId(0));
    ensure!(before - left == prefixes.len(), "{before} routes became {left}");
    Ok(all)
}

/// Deletes a table that they are all in, until its memory is given back.
fn drop_table(r: &mut Router, prefixes: &[Ipv4Prefix]) -> Result<(f64, f64)> {
    r.cli("ip table add 9");
    let paths = next_hops(r.control())?;
    for (n, prefix) in prefixes.iter().enumerate() {
        add_route(r.control(), TableId(9), *prefix, vec![paths[n % 2]], false)?;
    }
    let delete = |c: &mut Control| Ok(thalweg_feat_ip::del_table::<u32>(c, TableId(9))?);
    go_on(r, delete, |c| c.domain().pending() == 0 && c.state::<Ip4>().borrow().is_resolved())
}

struct Load {
    way: &'static str,
    mega_per_second: Series,
    slice_ms: Series,
}

fn load(r: &mut Router, prefixes: &[Ipv4Prefix]) -> Result<Table> {
    let row = |way| Load { way, mega_per_second: Series::default(), slice_ms: Series::default() };
    let ways = [
        "added by the function",
        "deleted by the function",
        "`exec FILE`",
        "`ip route add count 1000000`",
        "moved with the next hop that all resolve through",
        "gone with the interface that all lead to",
        "gone with the table that all are in",
    ];
    let mut rows = ways.map(row);
    let file = churn::script(prefixes)?;
    let exec = format!("exec {}", file.path().display());
    for _ in 0..3 {
        let mega = |n: usize, seconds: f64| n as f64 / seconds / 1e6;
        let n = prefixes.len();
        rows[0].mega_per_second.push(mega(n, add_all(r.control(), prefixes)?));
        rows[1].mega_per_second.push(mega(n, delete_all(r.control(), prefixes)?));
        let (seconds, slice) = in_slices(r, &exec)?;
        rows[2].mega_per_second.push(mega(n, seconds));
        rows[2].slice_ms.push(slice * 1e3);
        delete_all(r.control(), prefixes)?;
        let count = format!("count {ROUTES} 16.0.0.0/28 via 10.1.0.1 pg1");
        let (seconds, slice) = in_slices(r, &format!("ip route add {count}"))?;
        rows[3].mega_per_second.push(mega(ROUTES, seconds));
        rows[3].slice_ms.push(slice * 1e3);
        in_slices(r, &format!("ip route del {count}"))?;
        let (seconds, slice) = follow(r, prefixes)?;
        rows[4].mega_per_second.push(mega(n, seconds));
        rows[4].slice_ms.push(slice * 1e3);
        for (at, all) in [(5, orphan(r, prefixes)?), (6, drop_table(r, prefixes)?)] {
            rows[at].mega_per_second.push(mega(n, all.0));
            rows[at].slice_ms.push(all.1 * 1e3);
        }
        r.wait(Duration::from_millis(600));
    }
    let columns = vec![
        Column::text("a million routes"),
        Column::values("rate", "M routes/s"),
        Column::values("longest slice, main thread's processor time", "ms"),
        Column::text("guide"),
    ];
    let mut table = Table::new("A million routes", columns);
    for load in rows {
        let rate = load.mega_per_second.spread();
        let slices = match load.slice_ms.values().is_empty() {
            true => Cell::None,
            false => Cell::series(&load.slice_ms, 1),
        };
        let guide = match load.way {
            "added by the function" => Cell::Guide("≥ 1".into(), rate.median >= 1.0),
            "deleted by the function" => Cell::None,
            _ => Cell::Guide("slices ≤ 5 ms".into(), load.slice_ms.spread().median <= 5.0),
        };
        table.row(vec![load.way.into(), Cell::Spread(rate, 2), slices, guide]);
    }
    Ok(table)
}

fn memory_table(r: &mut Router, prefixes: &[Ipv4Prefix]) -> Result<Table> {
    let (before, huge) = (memory::resident(), memory::huge());
    add_all(r.control(), prefixes)?;
    let (after, huge) = (memory::resident(), memory::huge() - huge);
    let shown = r.control().state::<Ip4>().borrow().table_memory(TableId(0));
    let first = Lpm4::FIRST_LEVEL_BYTES as f64 / MIB;
    let grown = after.saturating_sub(before) as f64 / MIB;
    let mut table = Table::new(
        "Memory",
        vec![Column::text("what"), Column::values("memory", "MiB"), Column::text("guide")],
    );
    let shown = shown as f64 / MIB;
    let guide = Cell::Guide("≤ 64".into(), shown <= 64.0);
    table.row(vec!["a million routes, by `show ip table`".into(), Cell::Number(shown, 1), guide]);
    let what = "the process's growth by them, the first level (64) included";
    let guide = Cell::Guide("≤ 128".into(), grown <= 64.0 + first);
    table.row(vec![what.into(), Cell::Number(grown, 1), guide]);
    let what = "of that in transparent huge pages";
    table.row(vec![what.into(), Cell::Number(huge as f64 / MIB, 1), Cell::None]);
    let before = memory::resident();
    for id in 1..=TABLES {
        r.cli(&format!("ip table add {id}"));
    }
    let each = memory::resident().saturating_sub(before) as f64 / f64::from(TABLES) / MIB;
    let what = format!("each of {TABLES} more tables without routes");
    let guide = Cell::Guide("< 1".into(), each < 1.0);
    table.row(vec![what.into(), Cell::Number(each, 3), guide]);
    table.note("Measured ahead of all else: no memory that was freed before is used again.");
    Ok(table)
}

/// The worker's counts in several windows.
#[derive(Default)]
struct Windows {
    loops: LoopCounts,
    /// The worker's own time in loops over 100 µs.
    long: LoopCounts,
    seconds: f64,
    mpps: Series,
    /// A second.
    stalls: Series,
}

impl Windows {
    fn measure(
        &mut self,
        r: &mut Router,
        work: impl FnOnce(&mut Router) -> Result<()>,
    ) -> Result<()> {
        let look = |r: &mut Router| {
            let stats = r.control().worker_stats(0);
            let loops = [stats.loops.read(), stats.long_loops.read()];
            (loops, stats.totals.tx.get(), clock::ticks())
        };
        let (before, sent, begin) = look(r);
        work(r)?;
        let (after, sent_after, end) = look(r);
        let seconds = (end - begin) as f64 / clock::hz();
        let [loops, long] = [0, 1].map(|n| after[n].since(&before[n]));
        self.stalls.push(long.longer_than(clock::ticks_in(STALL)) as f64 / seconds);
        self.loops.add(&loops);
        self.long.add(&long);
        self.seconds += seconds;
        self.mpps.push((sent_after - sent) as f64 / seconds / 1e6);
        Ok(())
    }

    /// Adds another's loops and time to these.
    fn add(&mut self, other: &Windows) {
        self.loops.add(&other.loops);
        self.long.add(&other.long);
        self.stalls.extend(&other.stalls);
        self.seconds += other.seconds;
    }

    fn us(clocks: u64) -> f64 {
        clocks as f64 / clock::hz() * 1e6
    }

    fn cells(&self) -> Vec<Cell> {
        let us = |clocks| Cell::Number(Self::us(clocks), 1);
        vec![
            Cell::series(&self.mpps, 2),
            us(self.loops.quantile(0.5)),
            us(self.loops.quantile(0.999)),
            us(self.loops.longest()),
            us(self.long.longest()),
            Cell::series(&self.stalls, 1),
        ]
    }
}

fn measure(
    r: &mut Router,
    churn: &Churn,
    table: &mut Table,
    all: &mut (Windows, Windows),
) -> Result<()> {
    let (mut without, mut with) = (Windows::default(), Windows::default());
    let mut n = 0;
    if let Some((on, _)) = churn.around {
        r.command(on);
    }
    let (mut changes, mut changing) = (0, 0.0);
    for round in 0..WINDOWS {
        eprint!("\r{}: round {} of {WINDOWS}      ", churn.name, round + 1);
        r.wait(WARM_UP);
        without.measure(r, |r| {
            r.wait(WINDOW);
            Ok(())
        })?;
        let (first, begin) = (n, Instant::now());
        with.measure(r, |r| {
            n = churn.run(r, n, WINDOW)?;
            Ok(())
        })?;
        (changes, changing) = (changes + n - first, changing + begin.elapsed().as_secs_f64());
    }
    eprintln!();
    if let Some((_, off)) = churn.around {
        r.command(off);
    }
    let mut row = vec![format!("without ({})", churn.name).into(), Cell::None];
    row.extend(without.cells());
    table.row(row);
    let mut row = vec![churn.name.into(), Cell::Number(changes as f64 / changing, 0)];
    row.extend(with.cells());
    let p999 = Windows::us(with.loops.quantile(0.999));
    row.push(Cell::Guide("99.9 % ≤ 100 µs".into(), p999 <= STALL.as_secs_f64() * 1e6));
    row.push(more(&with, &without));
    table.row(row);
    all.0.add(&without);
    all.1.add(&with);
    Ok(())
}

/// True if changes add stalls. A machine that stops its processors now and then makes some without.
fn more(with: &Windows, without: &Windows) -> Cell {
    let more = with.stalls.more_than(&without.stalls);
    Cell::Guide(format!("{more:.1}, none"), more.least <= 0.0)
}

/// The sums: a machine that stops now and then does so in bursts, which are no one change's fault.
fn sums(without: &Windows, with: &Windows, table: &mut Table) {
    for (name, w) in [("all windows without", without), ("all windows with changes", with)] {
        let us = |clocks| Cell::Number(Windows::us(clocks), 1);
        let mut row = vec![name.into(), Cell::None, Cell::None];
        row.extend([0.5, 0.999].map(|part| us(w.loops.quantile(part))));
        let stalls = w.long.longer_than(clock::ticks_in(STALL)) as f64;
        let per_second = stalls / w.seconds.max(1e-9);
        row.extend([us(w.loops.longest()), us(w.long.longest()), Cell::Number(per_second, 1)]);
        table.row(row);
    }
    if let Some(cell) = table.rows.last_mut().and_then(|row| row.last_mut()) {
        *cell = more(with, without);
    }
}

/// Stops the streams and sees that each packet went where it had to.
fn check(r: &mut Router) -> Result<Table> {
    r.settle();
    let c = r.control();
    let mut table = Table::new(
        "Where the packets went",
        ["from", "to"]
            .map(Column::text)
            .into_iter()
            .chain(
                ["received", "sent", "lost or misrouted"]
                    .map(|name| Column::values(name, "packets")),
            )
            .collect(),
    );
    let mut dropped = 0;
    for w in 0..c.workers() {
        dropped += c.worker_stats(w).totals.dropped.get();
    }
    for (from, to) in [("pg0", "pg1"), ("pg3", "pg2")] {
        let totals = |port: &str| -> Result<_> {
            Ok(c.interface_totals_raw(thalweg_device::interface::find(c, port)?))
        };
        let (came, went) = (totals(from)?.rx_packets, totals(to)?.tx_packets);
        ensure!(came == went, "{came} packets came by {from}, but {went} left by {to}");
        let numbers = [came, went, came - went].map(|n| Cell::Number(n as f64, 0));
        table.row([from.into(), to.into()].into_iter().chain(numbers).collect());
    }
    ensure!(dropped == 0, "{dropped} packets were dropped");
    Ok(table)
}

fn under_load(r: &mut Router, args: &Args) -> Result<Vec<Table>> {
    let columns = [
        ("change", "", false),
        ("changes", "per s", true),
        ("rate", "Mpps", true),
        ("loop, median", "µs", true),
        ("99.9 %", "µs", true),
        ("longest", "µs", true),
        ("longest, own time", "µs", true),
        ("own time over 100 µs", "per s", true),
        ("guide", "", false),
        ("more of these than without, per s", "", false),
    ];
    let column = |(name, unit, values)| match values {
        true => Column::values(name, unit),
        false => Column::text(name),
    };
    let mut table = Table::new("Changes under load", columns.map(column).to_vec());
    let mut all = (Windows::default(), Windows::default());
    r.cli(&churn::streams());
    r.cli("packet-generator enable-stream");
    let chosen: Vec<_> = churn::ALL.iter().filter(|c| args.wants(c.name)).collect();
    for churn in &chosen {
        measure(r, churn, &mut table, &mut all)?;
    }
    if chosen.is_empty() {
        // Nothing was measured, and nothing held.
        return Ok(vec![check(r)?]);
    }
    sums(&all.0, &all.1, &mut table);
    table.note(
        "A million routes; four streams of 64-byte packets to 20,256 destinations by two next hops, \
         as fast as one worker takes them. Windows without changes alternate with those with.",
    );
    Ok(vec![table, check(r)?])
}

fn main() -> Result<()> {
    let Some(args) = Args::from_env()? else { return Ok(()) };
    let mut report = Report::start("control", "Control under load");
    report.about(
        "One worker on a core of its own; the main thread has the other one. Own time is what of a \
         loop the system did not give to others. How many more loops had more than 100 µs of it in windows \
         with changes than in those without is the mean, with the interval in which it lies with \
         95 % certainty.",
    );
    let prefixes = internet(ROUTES);
    let mut r = start();
    if args.wants("load") {
        // Measure the memory before `load`, whose freed memory would be used again.
        let memory = memory_table(&mut r, &prefixes)?;
        delete_all(r.control(), &prefixes)?;
        report.table(load(&mut r, &prefixes)?);
        report.table(memory);
    }
    add_all(r.control(), &prefixes)?;
    for table in under_load(&mut r, &args)? {
        report.table(table);
    }
    r.stop();
    report.finish(&args)
}
