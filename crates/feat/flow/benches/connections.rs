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
use thalweg_bench_common::{Args, Cell, Column, Report, Series, Table};
use thalweg_graph::clock;
use thalweg_load::Profile;

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

/// Connections per second, in turns.
fn run(workers: usize, rules: bool, turns: usize) -> Result<Series> {
    let mut lab = Lab::new(workers, 1 << 15);
    if rules {
        lab.ok(RULES);
        lab.ok("set conntrack limit 4000000");
        lab.ok("set conntrack timeouts default tcp_close=1");
    }
    let profile = Profile {
        clients: 60,
        ports: (1024, 50_000),
        concurrent: 2048,
        patience: 5_000_000,
        ..Profile::default()
    };
    lab.load(&profile, 64);
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
    ensure!(client.lost == 0 && client.unexpected == 0, "{client:?}");
    if std::env::var_os("SHOW").is_some() {
        eprintln!("{}", lab.cli("show conntrack summary"));
    }
    lab.close();
    Ok(rates)
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
    ];
    let mut table = Table::new("Connections", columns);
    for (rules, name) in [(false, "no rules"), (true, "four rules, tracked")] {
        for workers in [1, 2] {
            if !args.wants(name) {
                continue;
            }
            let rates = run(workers, rules, turns)?;
            let mut clocks = Series::default();
            for rate in rates.values() {
                clocks.push(clock::hz() * workers as f64 / (rate * 8e6));
            }
            table.row(vec![
                Cell::Text(name.into()),
                Cell::Text(workers.to_string()),
                Cell::series(&rates, 2),
                Cell::series(&clocks, 0),
            ]);
        }
    }
    report.table(table);
    report.finish(&args)
}
