//! Packets per second and clocks per packet, from the packet generator to the packet generator, one
//! worker: layer 2 cross connect and IPv4, without sFlow and with it at several rates. Settings
//! alternate within each round, so that the machine's drift meets them all; medians are printed with
//! their spread.

use std::time::Duration;

use thalweg_bench_common::{Args, Cell, Column, Report, Series, Spread, Table};
use thalweg_bench_pg::{NodeRow, Router, Window};

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

struct Case {
    name: &'static str,
    setup: String,
    stream: &'static str,
}

const PORTS: &str = "create packet-generator interface pg0
    create packet-generator interface pg1
    set interface state pg0 up
    set interface state pg1 up";

const ADDRESSES: &str = "set interface mac address pg0 02:fe:00:00:00:01
    set interface mac address pg1 02:fe:00:00:00:02
    set interface ip address pg0 10.0.0.254/24
    set interface ip address pg1 10.1.0.254/24
    set ip neighbor pg1 10.1.0.1 02:00:00:00:00:99 static
    set ip neighbor pg1 10.1.0.2 02:00:00:00:00:98 static";

fn cases() -> Vec<Case> {
    let one = "packet-generator new { name s0 limit -1 size 64-64 interface pg0 worker 0 \
               data { IP4: 0200.0000.00aa -> 02fe.0000.0001 UDP: 10.0.0.1 -> 48.0.0.1 \
               UDP: 1234 -> 4321 incrementing 22 } }";
    let many = "packet-generator new { name s0 limit -1 size 64-64 interface pg0 worker 0 \
                data { IP4: 0200.0000.00aa -> 02fe.0000.0001 UDP: 10.0.0.1 -> \
                48.0.0.0 - 48.0.39.15 UDP: 1234 -> 4321 incrementing 22 } }";
    vec![
        Case {
            name: "L2 cross connect",
            setup: format!("{PORTS}\nset interface l2 xconnect pg0 pg1"),
            stream: one,
        },
        Case {
            name: "IPv4, 1 flow",
            setup: format!("{PORTS}\n{ADDRESSES}\nip route add 48.0.0.0/8 via 10.1.0.1 pg1"),
            stream: one,
        },
        Case {
            name: "IPv4, 10,000 flows over 10,000 /32 routes",
            setup: format!(
                "{PORTS}\n{ADDRESSES}\nip route add 48.0.0.0/32 count 10000 via 10.1.0.1 pg1"
            ),
            stream: many,
        },
    ]
}

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
