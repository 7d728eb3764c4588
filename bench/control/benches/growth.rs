//! The time of one more setting, with few of its kind and with many: a list that is gone through,
//! or a table that is compiled again, shows.

use std::time::Instant;

use anyhow::Result;
use thalweg_bench_common::{Args, Cell, Column, Report, Series, Table};
use thalweg_bench_pg::paths::{self, PORTS};
use thalweg_bench_pg::{Router, cores};

const FEW: usize = 60;
const MANY: usize = 60_000;
/// Settings that are added one by one, and measured.
const MEASURED: usize = 60;
const ROUNDS: usize = 5;
/// With many, one more may take this much longer.
const GUIDE: f64 = 3.0;

/// A kind of settings.
struct Kind {
    name: &'static str,
    before: &'static str,
    /// The command that adds one, by number.
    add: fn(usize) -> String,
}

/// An address within a network of 24 bits.
fn address(first: u8, n: usize) -> String {
    format!("{first}.{}.{}.{}", n >> 16, n >> 8 & 255, n & 255)
}

/// Command that creates the nth of interfaces that have no device, of all kinds in turn.
fn interface(n: usize) -> String {
    let of = n / 4;
    match n % 4 {
        0 => format!("create loopback interface instance {of}"),
        1 => format!("bvi create instance {of}"),
        2 => format!("mpls tunnel add mpls-tunnel{of} via 10.1.0.1 pg1 out-labels 40"),
        _ => format!(
            "create sub-interfaces pg0 {} dot1q {} inner-dot1q {} exact-match",
            of + 1,
            of / 4000 + 1,
            of % 4000 + 1
        ),
    }
}

const ALL: [Kind; 5] = [
    Kind {
        name: "static mapping of NAT44",
        before: "nat44 plugin enable\nset interface nat44 in pg0 out pg1",
        add: |n| {
            let (local, external) = (address(10, n), address(48, n));
            format!("nat44 add static mapping tcp local {local} 80 external {external} 80")
        },
    },
    Kind {
        name: "flow rule, in use",
        before: "flow add 7 'actions=normal'\nset interface flow pg0 7",
        add: |n| {
            let (source, priority) = (address(10, n), n % 1000 + 1);
            format!("flow add 7 'priority={priority},ip,nw_src={source},actions=normal'")
        },
    },
    Kind {
        name: "flow rule, not in use",
        before: "",
        add: |n| {
            let (source, priority) = (address(10, n), n % 1000 + 1);
            format!("flow add 8 'priority={priority},ip,nw_src={source},actions=normal'")
        },
    },
    Kind {
        name: "route",
        before: "",
        add: |n| format!("ip route add {}/32 via 10.1.0.1 pg1", address(48, n)),
    },
    Kind { name: "interface without a device", before: "", add: interface },
];

/// Adds settings one by one; gives the median time in microseconds.
fn one_more(r: &mut Router, kind: &Kind, from: usize) -> f64 {
    let mut times: Vec<f64> = (from..from + MEASURED)
        .map(|n| {
            let line = (kind.add)(n);
            let begin = Instant::now();
            r.command(&line);
            begin.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn round(kind: &Kind, of: &mut [Series; 2]) {
    let mut r = Router::start(&[Some(cores() - 1)]);
    r.cli(PORTS);
    paths::address(&mut r);
    r.cli(kind.before);
    for n in 0..FEW {
        r.command(&(kind.add)(n));
    }
    of[0].push(one_more(&mut r, kind, FEW));
    for n in FEW + MEASURED..MANY {
        r.command(&(kind.add)(n));
    }
    of[1].push(one_more(&mut r, kind, MANY));
    r.stop();
}

fn main() -> Result<()> {
    let Some(args) = Args::from_env()? else { return Ok(()) };
    let mut report = Report::start("growth", "One more of many settings");
    report.about("One worker on a core of its own; the main thread has the other one.");
    let columns = vec![
        Column::text("one more"),
        Column::values("with 60", "µs"),
        Column::values("with 60,000", "µs"),
        Column::text("guide"),
    ];
    let mut table = Table::new("One more setting, with few and with many of its kind", columns);
    for kind in ALL.iter().filter(|kind| args.wants(kind.name)) {
        let mut times = [Series::default(), Series::default()];
        for n in 0..ROUNDS {
            eprintln!("{}: round {} of {ROUNDS}", kind.name, n + 1);
            round(kind, &mut times);
        }
        let [few, many] = times.each_ref().map(|series| series.spread().median);
        let guide = Cell::Guide(format!("≤ {GUIDE} ×"), many <= GUIDE * few);
        let [few, many] = times.each_ref().map(|series| Cell::series(series, 1));
        table.row(vec![kind.name.into(), few, many, guide]);
    }
    table.note(format!("Medians of {MEASURED} commands. Each is in force when it returns."));
    report.table(table);
    report.finish(&args)
}
