//! What packets cost on their ways, and what sFlow adds to it: packets per second and clocks per
//! packet from the packet generator to the packet generator, on one worker.

use thalweg_bench_common::{Cell, Column, Spread, Table};
use thalweg_bench_pg::paths::Case;
use thalweg_bench_pg::turns::{Plan, Turns, in_turn};
use thalweg_bench_pg::{Router, Samples, Window};

/// Rates of sampling. A sample is so little of what packets take that each rate has its own turns
/// without sFlow right before it.
const RATES: [(&str, u32); 5] =
    [("1:1M", 1_000_000), ("1:10k", 10_000), ("1:1k", 1_000), ("1:100", 100), ("1:10", 10)];

struct Outcome {
    case: Case,
    /// Without sFlow, then at the first rate, without, at the second, and so on.
    turns: Vec<Turns>,
}

/// Measures a way: those of the article with all rates, the others without sFlow.
fn run(case: Case, plan: Plan) -> Outcome {
    let mut r = Router::on_last_core();
    case.set_up(&mut r);
    let _collector = r.collect();
    r.cli("packet-generator enable-stream");
    let settings: Vec<Option<u32>> = match case {
        Case::L2 | Case::OneFlow => RATES.iter().flat_map(|(_, n)| [None, Some(*n)]).collect(),
        _ => vec![None],
    };
    let mut now = None;
    let turns = in_turn(plan, case.name(), &mut r, &settings, |r, rate| {
        set_sflow(r, now, *rate);
        now = *rate;
    });
    set_sflow(&mut r, now, None);
    r.stop();
    Outcome { case, turns }
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
fn per_sample(with: &Turns, without: &Turns, rate: u32) -> Cell {
    if rate > 10_000 {
        return Cell::None;
    }
    let pairs = with.loops.values().into_iter().zip(without.loops.values());
    let each: Vec<f64> = pairs.map(|(a, b)| (a - b) * f64::from(rate)).collect();
    Cell::Added(Spread::of(&each), 0)
}

/// Clocks that the tap took by its own account, per sample.
fn in_tap(with: &Turns, rate: u32) -> Cell {
    if rate > 10_000 {
        return Cell::None;
    }
    let one = |w: &Window| {
        let tap = w.nodes.get("sflow").copied().unwrap_or_default();
        tap.clocks * tap.packets as f64 / (w.samples.taken + w.samples.lost).max(1) as f64
    };
    Cell::Spread(with.spread_of(one), 0)
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
            Column::values("in the tap", "clocks/sample"),
            Column::values("samples taken", ""),
            Column::values("lost", ""),
            Column::values("sent", ""),
        ],
    );
    for o in outcomes.iter().filter(|o| o.turns.len() > 1) {
        let off = &o.turns[0];
        table.row(vec![
            o.case.name().into(),
            "off".into(),
            Cell::series(&off.mpps, 1),
            Cell::ratio(off.mpps.over(&off.mpps)),
            Cell::series(&off.clocks, 2),
        ]);
        for ((name, rate), pair) in RATES.iter().zip(o.turns.chunks_exact(2)) {
            let (off, on) = (&pair[0], &pair[1]);
            let Samples { taken, lost, sent } = on.samples();
            table.row(vec![
                o.case.name().into(),
                (*name).into(),
                Cell::series(&on.mpps, 1),
                Cell::ratio(on.mpps.over(&off.mpps)),
                Cell::series(&on.clocks, 2),
                per_sample(on, off, *rate),
                in_tap(on, *rate),
                Cell::Number(taken as f64, 0),
                share(lost, taken + lost),
                share(sent, taken),
            ]);
        }
    }
    table.note(
        "Clocks per packet are without the generator's input, in which the tap is; clocks per sample \
         are what the worker's whole loop takes more than without sFlow right before, round by round, \
         per sample, and what the tap takes by its own account. \
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
