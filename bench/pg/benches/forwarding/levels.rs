//! The same packets with each level of instructions that frame kernels are compiled for.

use thalweg_bench_common::{Cell, Column, Table};
use thalweg_bench_pg::Router;
use thalweg_bench_pg::paths::Case;
use thalweg_bench_pg::turns::{Plan, in_turn};
use thalweg_buffer::simd::{Level, set_level};

/// Measures.
pub fn tables(plan: Plan) -> Vec<Table> {
    let mut columns = vec![Column::text("path")];
    columns.extend(Level::ALL.iter().map(|l| Column::values(l.name(), "clocks/packet")));
    let mut table = Table::new("Levels of instructions", columns);
    let levels: Vec<Level> = Level::ALL.into_iter().filter(|l| *l <= Level::best()).collect();
    for case in Case::ALL {
        let mut r = Router::on_last_core();
        case.set_up(&mut r);
        r.cli("packet-generator enable-stream");
        let turns = in_turn(plan, case.name(), &mut r, &levels, |_, level| set_level(*level));
        r.stop();
        let mut row = vec![case.name().into()];
        row.extend(turns.iter().map(|t| Cell::series(&t.clocks, 2)));
        row.resize(Level::ALL.len() + 1, Cell::Missing("not on this processor".into()));
        table.row(row);
        set_level(Level::best());
    }
    table.note(
        "per-packet uses no frame kernels, the others the same ones: scalar with what every processor \
         of the architecture has. THALWEG_SIMD names a level for a running router.",
    );
    vec![table]
}
