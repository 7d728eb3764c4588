//! IPv4 forwarding by the size of the route table and the number of destinations.

use thalweg_bench_common::{Cell, Column, Table};
use thalweg_bench_pg::Router;
use thalweg_bench_pg::paths::{self, PORTS};
use thalweg_bench_pg::turns::{Plan, Turns, in_turn, only_stream};
use thalweg_tables::lpm4::internet;

const ROUTES: [usize; 4] = [1, 1000, 100_000, 1_000_000];
const DESTINATIONS: [usize; 3] = [1, 10_000, 1_000_000];

fn run(r: &mut Router, plan: Plan, routes: usize) -> Vec<Turns> {
    let prefixes = internet(routes);
    paths::add_routes(r, &prefixes);
    let names = DESTINATIONS.map(|n| format!("d{n}"));
    for (name, n) in names.iter().zip(DESTINATIONS) {
        paths::stream_to(r, name, &paths::destinations(&prefixes, n));
    }
    let title = format!("{routes} routes");
    let turns = in_turn(plan, &title, r, &names, |r, name| only_stream(r, name));
    r.cli("packet-generator disable-stream");
    turns
}

/// Measures.
pub fn tables(plan: Plan) -> Vec<Table> {
    let mut table = Table::new(
        "Route tables",
        vec![
            Column::values("routes", ""),
            Column::values("destinations", ""),
            Column::values("look-up", "clocks/packet"),
            Column::values("clocks/packet", "clocks/packet"),
            Column::values("rate", "Mpps"),
        ],
    );
    let mut r = Router::on_last_core();
    r.cli(PORTS);
    paths::address(&mut r);
    for routes in ROUTES {
        let turns = run(&mut r, plan, routes);
        for (destinations, t) in DESTINATIONS.iter().zip(&turns) {
            table.row(vec![
                Cell::Number(routes as f64, 0),
                Cell::Number(*destinations as f64, 0),
                Cell::Spread(t.spread_of(|w| w.clocks_of("ip4-lookup")), 1),
                Cell::series(&t.clocks, 1),
                Cell::series(&t.mpps, 1),
            ]);
        }
    }
    r.stop();
    table.note(
        "Prefixes have lengths as in the Internet's table, over 16 next hops; destinations are drawn \
         at random from prefixes drawn at random, and come in that order again and again. A \
         million packets are 61 MiB that the generator reads, and push the route table out of the \
         caches: the rate has its input in it, clocks per packet have not.",
    );
    vec![table]
}
