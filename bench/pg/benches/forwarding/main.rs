//! Packets per second and clocks per packet from the packet generator to the packet generator, in
//! parts that words on the command line select. Settings take turns within each round, so that the
//! machine's drift meets them all; medians are printed with the least and greatest.

#![allow(clippy::panic)]

use std::time::Instant;

use thalweg_bench_common::{Args, Report, Table};
use thalweg_bench_pg::turns::Plan;

mod features;
mod forwarding;
mod frames;
mod levels;
mod limit;
mod loss;
mod nat;
mod routes;
mod sampling;
mod workers;

/// A part by its name, and what measures it.
type Part = (&'static str, fn(Plan) -> Vec<Table>);

const PARTS: [Part; 10] = [
    ("paths", forwarding::tables),
    ("sflow", sampling::tables),
    ("loss", loss::tables),
    ("frames", frames::tables),
    ("routes", routes::tables),
    ("levels", levels::tables),
    ("features", features::tables),
    ("workers", workers::tables),
    ("limit", limit::tables),
    ("nat", nat::tables),
];

fn main() -> anyhow::Result<()> {
    let Some(args) = Args::from_env()? else { return Ok(()) };
    let plan = Plan::of(&args);
    let mut report =
        Report::start("forwarding", "Packet generator to packet generator, 64-byte packets");
    report.about(format!(
        "Settings take turns in each of {} rounds; medians, with the least and greatest. A run fails \
         if a packet is dropped, or packets and buffers do not add up. One worker, unless said \
         otherwise.",
        plan.rounds
    ));
    for (name, tables) in PARTS.into_iter().filter(|(name, _)| args.wants(name)) {
        let start = Instant::now();
        tables(plan).into_iter().for_each(|table| report.table(table));
        eprintln!("{name}: {:.0} s", start.elapsed().as_secs_f64());
    }
    report.finish(&args)
}
