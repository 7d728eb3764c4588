//! Cost of packets by path: packets per second and clocks per packet from the packet generator to
//! the packet generator, on one worker.

use thalweg_bench_common::{Cell, Column, Table};
use thalweg_bench_pg::Router;
use thalweg_bench_pg::paths::Case;
use thalweg_bench_pg::turns::{Plan, Turns, in_turn};

struct Outcome {
    case: Case,
    turns: Turns,
}

fn run(case: Case, plan: Plan) -> Outcome {
    let mut r = Router::on_last_core();
    case.set_up(&mut r);
    r.cli("packet-generator enable-stream");
    let mut turns = in_turn(plan, case.name(), &mut r, &[()], |_, ()| {});
    r.stop();
    Outcome { case, turns: turns.remove(0) }
}

fn paths(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new(
        "Forwarding paths",
        vec![
            Column::text("path"),
            Column::values("rate", "Mpps"),
            Column::values("clocks/packet", "clocks/packet"),
            Column::values("with the generator's input", "clocks/packet"),
        ],
    );
    for o in outcomes {
        let turns = &o.turns;
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
        for (name, row) in o.turns.nodes() {
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
    vec![paths(&outcomes), nodes(&outcomes)]
}
