//! Connections through a switch with four stateful rules, in one process.
//!
//! `cargo bench -p thalweg-feat-flow --bench connections`
//!
//! Clients and server run in the forwarding workers: their packets are received on one port and
//! sent by the other, eight packets per connection, with 40 bytes of data in each direction. Their
//! share of the time is measured as well, by switching without rules.

#[path = "../tests/switch/lab.rs"]
#[expect(dead_code, reason = "the tests use all of it")]
mod lab;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lab::Lab;
use thalweg_bench_common::{Args, Cell, Column, Report, Series, Table, on_two_cores, spin};
use thalweg_graph::clock;
use thalweg_load::Profile;

/// Maximum number of connections opened between two loops.
const BURST: usize = 128;

/// Processors of the workers.
const BOTH: [usize; 2] = [1, 0];
/// Duration of a turn, and of the warm-up before it.
const TURN: Duration = Duration::from_millis(500);
const WARM_UP: Duration = Duration::from_millis(150);

const RULES: &str = "flow add 1 priority=2,arp,actions=normal
flow add 1 priority=1,ip,ct_state=-trk,actions=ct(table=0)
flow add 1 priority=1,ip,ct_state=+trk+new,in_port=port0,actions=ct(commit),normal
flow add 1 priority=1,ip,ct_state=+trk+est,actions=normal
flow add 1 priority=0,actions=drop
set interface flow port0 1
set interface flow port1 1";

fn main() -> ExitCode {
    match act() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("connections: {e:#}");
            ExitCode::FAILURE
        }
    }
}

/// A row of the table.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    rules: Rules,
    /// True if devices deliver packets to the worker that owns them.
    spread: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rules {
    No,
    Four,
    /// Preceded by thousands of other rules of many forms.
    Many,
}

const CASES: [Case; 4] = [
    Case { name: "no rules", rules: Rules::No, spread: true },
    Case { name: "four rules, tracked", rules: Rules::Four, spread: true },
    Case { name: "10 000 rules, tracked", rules: Rules::Many, spread: true },
    Case { name: "four rules, handed over", rules: Rules::Four, spread: false },
];

/// Rules of sixteen forms that match none of the packets.
fn many() -> String {
    let rule = |n: u32| {
        let (form, n) = (n % 16, n / 16);
        let bits = 17 + form;
        let address = 0xac10_0000 | n << (32 - bits).min(8);
        let address = std::net::Ipv4Addr::from_bits(address & u32::MAX << (32 - bits));
        format!(
            "priority={},tcp,nw_src={address}/{bits},tp_dst={},actions=drop",
            5 + form,
            1000 + n
        )
    };
    (0..10_000).map(|n| rule(n) + "\n").collect()
}

/// Workers on some processors, with connections to open.
struct Run<'a> {
    on: &'a [usize],
    lab: Lab,
    /// Rates in millions per second.
    rates: Series,
    /// Number of connections not completed while their memory was being prepared.
    lost_first: u64,
}

fn profile() -> Profile {
    Profile {
        clients: 120,
        ports: (1024, 50_000),
        concurrent: 4096,
        patience: 5_000_000,
        ..Profile::default()
    }
}

impl<'a> Run<'a> {
    fn start(on: &'a [usize], case: Case) -> Result<Run<'a>> {
        let mut lab = Lab::on(on.iter().copied().map(Some).collect(), 1 << 15);
        if case.rules == Rules::Many {
            let file = std::env::temp_dir().join(format!("thalweg-rules-{}", std::process::id()));
            std::fs::write(&file, many())?;
            lab.ok(&format!("flow add 1 file {}", file.display()));
            std::fs::remove_file(&file)?;
        }
        if case.rules != Rules::No {
            lab.ok(RULES);
            lab.ok("set conntrack limit 4000000");
            lab.ok("set conntrack timeouts default tcp_close=1");
        }
        match case.spread {
            // A worker alone handles only its own share too, so that clients do the same work.
            true => lab.load_spread(&profile(), BURST, BOTH.len()),
            false => lab.load(&profile(), BURST),
        }
        lab.finish();
        Ok(Run { on, lab, rates: Series::default(), lost_first: 0 })
    }

    /// Opens connections for a turn; returns millions per second. Idle processors spin.
    fn turn(&mut self) -> f64 {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for cpu in BOTH.iter().filter(|cpu| !self.on.contains(cpu)) {
                let over = &over;
                scope.spawn(move || spin(*cpu, over));
            }
            self.lab.go_on(&profile());
            std::thread::sleep(WARM_UP);
            let (before, begin) = (self.lab.counts().0.completed, Instant::now());
            std::thread::sleep(TURN);
            let done = self.lab.counts().0.completed - before;
            let rate = done as f64 / begin.elapsed().as_secs_f64() / 1e6;
            self.lab.finish();
            over.store(true, Ordering::Relaxed);
            rate
        })
    }

    /// Number of connections that were not completed.
    fn end(mut self, what: &str) -> Result<u64> {
        let (client, _) = self.lab.counts();
        ensure!(client.lost * 100 < client.completed && client.unexpected == 0, "{client:?}");
        if client.lost > 0 {
            eprintln!("{what}: {}", self.lab.cli("show errors"));
        }
        if std::env::var_os("SHOW").is_some() {
            eprintln!("{}", self.lab.cli("show conntrack summary"));
        }
        self.lab.close();
        Ok(client.lost - self.lost_first)
    }
}

/// Results of some workers.
struct Row {
    workers: usize,
    /// Rates in millions per second.
    rates: Series,
    /// Ratio to the mean of either worker alone, turn by turn.
    over: Option<Series>,
    lost: u64,
}

/// Turns of the first worker alone, the second alone, and both.
fn measure(case: Case, turns: usize) -> Result<Vec<Row>> {
    let alone: &[&[usize]] = if case.spread { &[&[1], &[0]] } else { &[] };
    // The run with the most workers starts first: it leaves this thread few processors.
    let mut both = Run::start(&BOTH, case)?;
    let mut alone: Vec<Run<'_>> =
        alone.iter().map(|on| Run::start(on, case)).collect::<Result<_>>()?;
    let mut over = case.spread.then(Series::default);
    // The first turn warms tables and branch predictors; meanwhile connections are refused for lack
    // of prepared memory.
    for run in alone.iter_mut().chain([&mut both]) {
        run.turn();
        run.lost_first = run.lab.counts().0.lost;
    }
    for _ in 0..turns {
        let rates: Vec<f64> = alone.iter_mut().map(Run::turn).collect();
        let together = both.turn();
        if let Some(over) = &mut over {
            over.push(together * rates.len() as f64 / rates.iter().sum::<f64>());
        }
        both.rates.push(together);
        alone.iter_mut().zip(rates).for_each(|(run, rate)| run.rates.push(rate));
    }
    if let Some(other) = alone.pop() {
        other.end(case.name)?;
    }
    let one = alone.into_iter().map(|run| (run, None));
    one.chain([(both, over)])
        .map(|(run, over)| {
            let (workers, rates) = (run.on.len(), run.rates.clone());
            Ok(Row { workers, rates, over, lost: run.end(case.name)? })
        })
        .collect()
}

fn act() -> Result<()> {
    let Some(args) = Args::from_env()? else { return Ok(()) };
    let turns = if args.full { 15 } else { 7 };
    let mut report = Report::start("connections", "Connections through stateful rules");
    report.about(
        "TCP connections of eight packets with 40 bytes of data each way, both sides of which are in \
         the worker that forwards, through a cross connect; none is lost.",
    );
    let columns = vec![
        Column::text("path"),
        Column::text("workers"),
        Column::values("rate", "M connections/s"),
        Column::values("all", "clocks/packet"),
        Column::values("over one worker", ""),
        Column::values("the processors then", "×"),
        Column::values("lost", "connections"),
    ];
    let mut table = Table::new("Connections", columns);
    for case in CASES.into_iter().filter(|case| args.wants(case.name)) {
        let (rows, processors) = match case.spread {
            true => on_two_cores(5, || measure(case, turns))?,
            false => (measure(case, turns)?, None),
        };
        for row in rows {
            let workers = row.workers;
            eprintln!(
                "{}, {workers} workers: {:.3} M connections/s",
                case.name,
                row.rates.spread().median
            );
            let mut clocks = Series::default();
            for rate in row.rates.values() {
                clocks.push(clock::hz() * workers as f64 / (rate * 8e6));
            }
            let processors = processors.filter(|_| row.over.is_some());
            table.row(vec![
                Cell::Text(case.name.into()),
                Cell::Text(workers.to_string()),
                Cell::series(&row.rates, 2),
                Cell::series(&clocks, 0),
                row.over.as_ref().map_or(Cell::None, |over| Cell::series(over, 2)),
                processors.map_or(Cell::None, |factor| Cell::Number(factor, 2)),
                Cell::Number(row.lost as f64, 0),
            ]);
        }
    }
    table.note(
        "Devices bring each packet to the worker that owns its connection, but in the last row, where \
         half of the packets are handed over and both sides' memory is locked by turns. Either \
         processor's worker alone, with its share of the connections, and both take turns of half a second, in which a \
         processor without work spins; two are compared with the mean of either, and rows of one worker are the \
         first's. The turn in which memory comes into being is not counted. Before and behind each pair of rows a bare loop that fills a core ran on one processor and on \
         both, and they are measured again if both did less than 1.9 times as much, or one less than 95 % of \
         the most that it did in this run, in five tries at most; the \
         lesser of the two factors is in the table.",
    );
    report.table(table);
    report.finish(&args)
}
