//! Connections through a switch with four stateful rules, in one process.
//!
//! `cargo bench -p thalweg-feat-flow --bench connections`
//!
//! Clients and server are in the workers that forward: what they say comes in by one port and leaves
//! by the other, eight packets a connection, with 40 bytes of data each way. Their share of the time is
//! measured too, by switching without rules.

#[path = "../tests/switch/lab.rs"]
#[expect(dead_code, reason = "the tests use all of it")]
mod lab;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lab::Lab;
use thalweg_bench_common::{Args, Cell, Column, Report, Series, Table, on_two_cores};
use thalweg_graph::clock;
use thalweg_load::Profile;

/// Connections that are opened between two loops.
const BURST: usize = 128;

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

/// What a row is about.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    rules: Rules,
    /// Whether devices bring packets to the worker that owns them.
    spread: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rules {
    No,
    Four,
    /// Thousands of others, of many forms, before them.
    Many,
}

const CASES: [Case; 4] = [
    Case { name: "no rules", rules: Rules::No, spread: true },
    Case { name: "four rules, tracked", rules: Rules::Four, spread: true },
    Case { name: "10 000 rules, tracked", rules: Rules::Many, spread: true },
    Case { name: "four rules, handed over", rules: Rules::Four, spread: false },
];

/// Rules of sixteen forms that take none of the packets.
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

/// Connections per second, and how many were never finished.
struct Rates {
    rates: Series,
    lost: u64,
}

/// Connections per second, in turns.
fn run(on: &[usize], case: Case, turns: usize) -> Result<Rates> {
    let workers = on.len();
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
    let profile = Profile {
        clients: 60,
        ports: (1024, 50_000),
        concurrent: 4096,
        patience: 5_000_000,
        ..Profile::default()
    };
    match case.spread {
        true => lab.load_spread(&profile, BURST),
        false => lab.load(&profile, BURST),
    }
    let mut rates = Series::default();
    for turn in 0..=turns {
        let (before, begin) = (lab.counts().0.completed, Instant::now());
        std::thread::sleep(Duration::from_millis(1000));
        let rate = (lab.counts().0.completed - before) as f64 / begin.elapsed().as_secs_f64();
        if turn > 0 {
            rates.push(rate / 1e6);
        }
    }
    lab.finish();
    let (client, _) = lab.counts();
    ensure!(client.lost * 100 < client.completed && client.unexpected == 0, "{client:?}");
    if client.lost > 0 {
        eprintln!("{}, {workers} workers: {}", case.name, lab.cli("show errors"));
    }
    if std::env::var_os("SHOW").is_some() {
        eprintln!("{}", lab.cli("show conntrack summary"));
    }
    lab.close();
    Ok(Rates { rates, lost: client.lost })
}

fn act() -> Result<()> {
    let Some(args) = Args::from_env()? else { return Ok(()) };
    let turns = if args.full { 9 } else { 5 };
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
        // Both first: what is started behind one finds this thread kept off its core.
        let (runs, processors) = on_two_cores(|| -> Result<_> {
            let both = run(&[1, 0], case, turns)?;
            let alone = if case.spread {
                vec![run(&[1], case, turns)?, run(&[0], case, turns)?]
            } else {
                vec![]
            };
            Ok((both, alone))
        })?;
        let (both, alone) = runs;
        let medians = alone.iter().map(|one| one.rates.spread().median);
        let either = medians.sum::<f64>() / alone.len().max(1) as f64;
        let mut over = Series::default();
        both.rates.values().iter().for_each(|rate| over.push(rate / either));
        for (workers, Rates { rates, lost }) in [(1, alone.first()), (2, Some(&both))]
            .into_iter()
            .filter_map(|(workers, rates)| Some((workers, rates?)))
        {
            eprintln!(
                "{}, {workers} workers: {:.3} M connections/s",
                case.name,
                rates.spread().median
            );
            let mut clocks = Series::default();
            for rate in rates.values() {
                clocks.push(clock::hz() * f64::from(workers) / (rate * 8e6));
            }
            let two = workers == 2;
            table.row(vec![
                Cell::Text(case.name.into()),
                Cell::Text(workers.to_string()),
                Cell::series(rates, 2),
                Cell::series(&clocks, 0),
                if two && case.spread { Cell::series(&over, 2) } else { Cell::None },
                processors.filter(|_| two).map_or(Cell::None, |factor| Cell::Number(factor, 2)),
                Cell::Number(*lost as f64, 0),
            ]);
        }
    }
    table.note(
        "Devices bring each packet to the worker that owns its connection, but in the last row, where \
         half of the packets are handed over and both sides' memory is locked by turns. Two workers \
         are compared with the mean of either processor's worker alone, and all of that is measured again if a bare \
         loop that fills a core did less than 1.9 times as much on both processors as on one, before or behind it; \
         the lesser factor is in the table.",
    );
    report.table(table);
    report.finish(&args)
}
