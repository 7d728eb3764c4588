//! Cost of packets in frames of 1 to 256, and of one that comes alone.

use thalweg_bench_common::{Cell, Column, Table};
use thalweg_bench_pg::Router;
use thalweg_bench_pg::paths::{Case, stream};
use thalweg_bench_pg::turns::{Plan, Turns, in_turn, only_stream};

const SIZES: [usize; 5] = [1, 4, 16, 64, 256];
/// Packets per second that come so far apart that the worker sleeps in between.
const SLOW: u32 = 2000;

struct Outcome {
    case: Case,
    turns: Vec<Turns>,
}

fn run(case: Case, plan: Plan) -> Outcome {
    let mut r = Router::on_last_core();
    case.set_up(&mut r);
    let mut names = Vec::new();
    for size in SIZES {
        let name = format!("f{size}");
        r.cli(&stream(&name, "pg0", 0, "48.0.0.1"));
        r.cli(&format!("packet-generator configure {name} maxframe {size}"));
        names.push(name);
    }
    r.cli(&stream("slow", "pg0", 0, "48.0.0.1"));
    r.cli(&format!("packet-generator configure slow maxframe 1 rate {SLOW}"));
    names.push("slow".into());
    let turns = in_turn(plan, case.name(), &mut r, &names, |r, name| only_stream(r, name));
    r.stop();
    Outcome { case, turns }
}

fn curve(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new(
        "Frame sizes",
        vec![
            Column::text("path"),
            Column::values("packets/frame", "packets/frame"),
            Column::values("clocks/packet", "clocks/packet"),
            Column::values("end to end", "clocks/packet"),
            Column::values("rate", "Mpps"),
        ],
    );
    for o in outcomes {
        for (size, turns) in SIZES.iter().zip(&o.turns) {
            table.row(vec![
                o.case.name().into(),
                size.to_string().into(),
                Cell::series(&turns.clocks, 1),
                Cell::series(&turns.loops, 1),
                Cell::series(&turns.mpps, 2),
            ]);
        }
    }
    table.note(
        "End to end is the worker's whole loop per packet: the generator's input, all nodes, the loop \
         itself. One frame per loop.",
    );
    table
}

fn alone(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new(
        "A lone packet after sleep",
        vec![
            Column::text("path"),
            Column::values("end to end", "clocks"),
            Column::values("nodes", "clocks"),
        ],
    );
    for o in outcomes {
        let slow = o.turns.last().unwrap_or_else(|| unreachable!("as many as names"));
        table.row(vec![
            o.case.name().into(),
            Cell::series(&slow.loops, 0),
            Cell::series(&slow.clocks, 0),
        ]);
    }
    table.note(format!(
        "{SLOW} packets come a second, one at a time, and the worker sleeps before each. The caches are \
         what others have left of them. The loop begins when the worker is awake: what waking it takes \
         is not in it."
    ));
    table
}

/// Measures.
pub fn tables(plan: Plan) -> Vec<Table> {
    let outcomes = [Case::L2, Case::OneFlow].map(|case| run(case, plan));
    vec![curve(&outcomes), alone(&outcomes)]
}
