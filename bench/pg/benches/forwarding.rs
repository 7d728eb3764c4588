//! Packets per second and clocks per packet, from the packet generator to the packet generator, one
//! worker: layer 2 cross connect and IPv4, without sFlow and with it at several rates. Settings
//! alternate within each round, so that the machine's drift meets them all; medians are printed with
//! their spread.

use std::time::Duration;

use thalweg_bench_common::{Args, Cell, Column, Report, Series, Spread, Table};
use thalweg_bench_pg::{Case, NodeRow, Router, Window, cases};

const ROUNDS: usize = 5;
const WINDOW: Duration = Duration::from_millis(400);
const WARM_UP: Duration = Duration::from_millis(100);
const RATES: [(&str, Option<u32>); 5] = [
    ("off", None),
    ("1:1M", Some(1_000_000)),
    ("1:10k", Some(10_000)),
    ("1:1k", Some(1_000)),
    ("1:100", Some(100)),
];

fn set_sflow(r: &mut Router, was: Option<u32>, rate: Option<u32>) {
    match (was, rate) {
        (None, None) => {}
        (Some(_), None) => {
            r.cli("sflow enable-disable pg0 disable");
        }
        (was, Some(n)) => {
            r.cli(&format!("sflow sampling-rate {n}"));
            if was.is_none() {
                r.cli("sflow enable-disable pg0");
            }
        }
    }
}

struct Outcome {
    name: &'static str,
    rates: Vec<Rate>,
    nodes: Vec<(String, NodeRow)>,
}

/// What was measured at one sampling rate.
#[derive(Default)]
struct Rate {
    mpps: Series,
    clocks: Series,
}

fn run(case: &Case) -> Outcome {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut r = Router::start(&[Some(cores - 1)]);
    r.cli(&case.setup);
    r.cli(case.stream);
    r.cli("packet-generator enable-stream");
    let mut rates: Vec<Rate> = RATES.iter().map(|_| Rate::default()).collect();
    let mut plain: Vec<Window> = Vec::new();
    let mut now = None;
    for round in 0..ROUNDS {
        eprint!("\r{}: round {} of {ROUNDS} ", case.name, round + 1);
        for (measured, (_, rate)) in rates.iter_mut().zip(&RATES) {
            set_sflow(&mut r, now, *rate);
            now = *rate;
            r.wait(WARM_UP);
            let w = r.measure(WINDOW);
            measured.mpps.push(w.tx_pps / 1e6);
            measured.clocks.push(w.clocks_without_input());
            if rate.is_none() {
                plain.push(w);
            }
        }
    }
    eprintln!();
    set_sflow(&mut r, now, None);
    r.stop();
    Outcome { name: case.name, rates, nodes: medians(&plain) }
}

/// Each node's figures in the middle of several windows.
fn medians(windows: &[Window]) -> Vec<(String, NodeRow)> {
    let mut names: Vec<&String> = windows.iter().flat_map(|w| w.nodes.keys()).collect();
    names.sort();
    names.dedup();
    let median_row = |name: &String| {
        let rows: Vec<NodeRow> =
            windows.iter().filter_map(|w| w.nodes.get(name).copied()).collect();
        let of =
            |f: fn(&NodeRow) -> f64| Spread::of(&rows.iter().map(f).collect::<Vec<_>>()).median;
        NodeRow { packets: rows[0].packets, clocks: of(|r| r.clocks), per_call: of(|r| r.per_call) }
    };
    names.into_iter().map(|n| (n.clone(), median_row(n))).collect()
}

fn rates(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new(
        "Packets per second",
        vec![
            Column::text("path"),
            Column::text("sFlow"),
            Column::values("rate", "Mpps"),
            Column::values("of unsampled", ""),
            Column::values("clocks/packet", "clocks/packet"),
        ],
    );
    for o in outcomes {
        for ((name, _), rate) in RATES.iter().zip(&o.rates) {
            table.row(vec![
                o.name.into(),
                (*name).into(),
                Cell::series(&rate.mpps, 2),
                Cell::ratio(rate.mpps.over(&o.rates[0].mpps)),
                Cell::series(&rate.clocks, 1),
            ]);
        }
    }
    table.note("Clocks per packet are without the generator's input.");
    table
}

fn nodes(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new(
        "Clocks per node, without sFlow",
        vec![
            Column::text("path"),
            Column::text("node"),
            Column::values("clocks/packet", "clocks/packet"),
            Column::values("packets/call", "packets/call"),
        ],
    );
    for o in outcomes {
        for (name, row) in &o.nodes {
            table.row(vec![
                o.name.into(),
                name.as_str().into(),
                Cell::Number(row.clocks, 2),
                Cell::Number(row.per_call, 0),
            ]);
        }
    }
    table
}

fn main() -> anyhow::Result<()> {
    let Some(args) = Args::from_env()? else { return Ok(()) };
    let mut report =
        Report::start("forwarding", "Packet generator to packet generator, 64 bytes, one worker");
    report.about(format!(
        "Settings alternate within each of {ROUNDS} rounds; medians, with the least and greatest."
    ));
    let outcomes: Vec<Outcome> =
        cases().iter().filter(|case| args.wants(case.name)).map(run).collect();
    report.table(rates(&outcomes));
    report.table(nodes(&outcomes));
    report.finish(&args)
}
