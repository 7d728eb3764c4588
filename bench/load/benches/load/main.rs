//! The load tester without a device between its ends: packets a second, connections a second, and
//! ten million connections held.
//!
//! `cargo bench -p thalweg-bench-load --bench load`

mod connections;
mod streams;

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};
use thalweg_bench_common::{Args, Report, pin};

const PROCESSOR: usize = 0;

fn main() -> Result<()> {
    let Some(args) = Args::from_env()? else { return Ok(()) };
    let mut report = Report::start("load", "Streams and connections of the load tester");
    report.about(
        "Both ends on one processor, without a device between them. Each packet of a stream is written into another \
         buffer, with its number, received from there and counted. Each frame of a connection is written with its \
         checksums, read, and has them verified; timers for retransmission, delayed acknowledgements and TIME_WAIT run.",
    );
    pin(PROCESSOR);
    let rounds = if args.full { 20 } else { 7 };
    if args.wants("streams") {
        report.table(streams::rate(rounds)?);
    }
    if args.wants("rate") {
        report.table(connections::rate(rounds)?);
    }
    if args.wants("held") {
        report.table(connections::held()?);
    }
    report.finish(&args)
}

/// Processor time of the thread, in seconds.
fn own() -> f64 {
    let at = clock_gettime(ClockId::ThreadCPUTime);
    at.tv_sec as f64 + at.tv_nsec as f64 * 1e-9
}
