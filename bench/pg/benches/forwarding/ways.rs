//! What packets cost on their ways, and what sFlow adds to it: packets per second and clocks per
//! packet from the packet generator to the packet generator, on one worker.

use thalweg_bench_common::{Cell, Column, Spread, Table};
use thalweg_bench_pg::paths::Case;
use thalweg_bench_pg::turns::{Plan, Turns, in_turn};
use thalweg_bench_pg::{Router, Samples};

/// Rates of sampling; without one, sFlow is off.
const RATES: [(&str, Option<u32>); 6] = [
    ("off", None),
    ("1:1M", Some(1_000_000)),
    ("1:10k", Some(10_000)),
    ("1:1k", Some(1_000)),
    ("1:100", Some(100)),
    ("1:10", Some(10)),
];

struct Outcome {
    case: Case,
    rates: &'static [(&'static str, Option<u32>)],
    turns: Vec<Turns>,
}

/// Measures a way: those of the article with all rates, the others without sFlow.
fn run(case: Case, plan: Plan) -> Outcome {
    let mut r = Router::on_last_core();
    case.set_up(&mut r);
    let _collector = r.collect();
    r.cli("packet-generator enable-stream");
    let rates = if matches!(case, Case::L2 | Case::OneFlow) { &RATES[..] } else { &RATES[..1] };
    let mut now = None;
    let turns = in_turn(plan, case.name(), &mut r, rates, |r, (_, rate)| {
        set_sflow(r, now, *rate);
        now = *rate;
    });
    set_sflow(&mut r, now, None);
    r.stop();
    Outcome { case, rates, turns }
}

fn set_sflow(r: &mut Router, was: Option<u32>, rate: Option<u32>) {
    match (was, rate) {
        (None, None) => {}
        (Some(_), None) => drop(r.cli("sflow enable-disable pg0 disable")),
        (was, Some(n)) => {
            r.cli(&format!("sflow sampling-rate {n}"));
            if was.is_none() {
                r.cli("sflow enable-disable pg0");
            }
        }
    }
}

/// Clocks that a sample adds to its worker's loop, round by round.
fn per_sample(with: &Turns, without: &Turns, rate: Option<u32>) -> Cell {
    let Some(rate) = rate.filter(|n| *n <= 10_000) else { return Cell::None };
    let pairs = with.loops.values().into_iter().zip(without.loops.values());
    let each: Vec<f64> = pairs.map(|(a, b)| (a - b) * f64::from(rate)).collect();
    Cell::Added(Spread::of(&each), 0)
}

fn share(part: u64, of: u64) -> Cell {
    if of == 0 {
        Cell::None
    } else {
        Cell::Text(format!("{:.1} %", 100.0 * part as f64 / of as f64))
    }
}

fn sampling(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new(
        "sFlow: packets per second",
        vec![
            Column::text("path"),
            Column::text("sFlow"),
            Column::values("rate", "Mpps"),
            Column::values("of unsampled", ""),
            Column::values("clocks/packet", "clocks/packet"),
            Column::values("clocks/sample", "clocks"),
            Column::values("samples taken", ""),
            Column::values("lost", ""),
            Column::values("sent", ""),
        ],
    );
    for o in outcomes.iter().filter(|o| o.turns.len() > 1) {
        for ((name, rate), turns) in o.rates.iter().zip(&o.turns) {
            let Samples { taken, lost, sent } = turns.samples();
            let mut row = vec![
                o.case.name().into(),
                (*name).into(),
                Cell::series(&turns.mpps, 1),
                Cell::ratio(turns.mpps.over(&o.turns[0].mpps)),
                Cell::series(&turns.clocks, 2),
            ];
            if rate.is_some() {
                row.extend([
                    per_sample(turns, &o.turns[0], *rate),
                    Cell::Number(taken as f64, 0),
                    share(lost, taken + lost),
                    share(sent, taken),
                ]);
            }
            table.row(row);
        }
    }
    table.note(
        "Clocks per packet are without the generator's input, in which the tap is; clocks per sample \
         are what the worker's whole loop takes more than without sFlow, round by round, per sample. \
         Samples go to a UDP socket on this host. What is taken and not sent yet when a turn ends is \
         sent in the next, so that a share may exceed 100 %.",
    );
    table
}

fn ways(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new(
        "Ways of packets",
        vec![
            Column::text("path"),
            Column::values("rate", "Mpps"),
            Column::values("clocks/packet", "clocks/packet"),
            Column::values("with the generator's input", "clocks/packet"),
        ],
    );
    for o in outcomes {
        let turns = &o.turns[0];
        table.row(vec![
            o.case.name().into(),
            Cell::series(&turns.mpps, 1),
            Cell::series(&turns.clocks, 2),
            Cell::series(&turns.loops, 2),
        ]);
    }
    table.note("64-byte packets, frames of 256, no sFlow.");
    table
}

fn nodes(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new(
        "Clocks per node",
        vec![
            Column::text("path"),
            Column::text("node"),
            Column::values("clocks/packet", "clocks/packet"),
            Column::values("packets/call", "packets/call"),
        ],
    );
    for o in outcomes {
        for (name, row) in o.turns[0].nodes() {
            table.row(vec![
                o.case.name().into(),
                name.into(),
                Cell::Number(row.clocks, 2),
                Cell::Number(row.per_call, 0),
            ]);
        }
    }
    table.note("Without sFlow, in the middle of the rounds.");
    table
}

/// Measures.
pub fn tables(plan: Plan) -> Vec<Table> {
    let outcomes: Vec<Outcome> = Case::ALL.into_iter().map(|case| run(case, plan)).collect();
    vec![sampling(&outcomes), ways(&outcomes), nodes(&outcomes)]
}
