//! `show runtime loops`: how long loops took, i.e. how long they delay packets that arrive
//! meanwhile.

use crate::report;
use serde_json::{Value, json};
use thalweg_cli::{Align, Args, CliError, Command, Outcome, Output, Table};
use thalweg_graph::clock;
use thalweg_graph::control::Control;
use thalweg_graph::loop_times::LoopCounts;
use thalweg_graph::worker::LONG;

/// `show runtime loops`
pub struct ShowRuntimeLoops;

/// The command.
pub static COMMAND: ShowRuntimeLoops = ShowRuntimeLoops;

/// Percentiles shown as columns.
const PARTS: [(&str, &str, f64); 3] =
    [("p50 us", "p50_us", 0.5), ("p99 us", "p99_us", 0.99), ("p99.9 us", "p999_us", 0.999)];

struct Row {
    thread: usize,
    name: String,
    counts: LoopCounts,
    /// A worker's long loops, by its own time.
    long: Option<LoopCounts>,
}

impl Command<Control> for ShowRuntimeLoops {
    fn path(&self) -> &'static str {
        "show runtime loops"
    }

    fn help(&self) -> &'static str {
        "Show how long the loops of each thread took\n\
         Idle loops are not counted. p99.9 is the time that 999 of 1000 loops did not exceed, to\n\
         within 1/16; max is the longest. Of the loops over 100 us, `own' are those in which the\n\
         worker itself ran for over 100 us, and `own us' is the longest of these; in the others the\n\
         system ran something else on its processor. Counters start at the last `clear runtime'."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let rows: Vec<Row> = c
            .threads()
            .into_iter()
            .enumerate()
            .map(|(thread, t)| Row {
                thread,
                name: t.name,
                counts: report::loop_counts(c, thread),
                long: thread.checked_sub(1).map(|worker| report::long_loop_counts(c, worker)),
            })
            .collect();
        out.json(rows.iter().map(|r| to_json(r, clock::hz())).collect());
        out.text(&format(&rows, clock::hz()));
        Ok(Outcome::Done)
    }
}

fn to_json(r: &Row, hz: f64) -> Value {
    let us = |clocks: u64| clocks as f64 / hz * 1e6;
    let mut row = json!({
        "thread": r.thread, "name": r.name, "loops": r.counts.count(),
        "max_us": us(r.counts.longest()),
    });
    for (_, key, part) in PARTS {
        row[key] = json!(us(r.counts.quantile(part)));
    }
    if let Some(long) = &r.long {
        row["over_100us"] = json!(long.count());
        row["own_over_100us"] = json!(long.longer_than(limit(hz)));
        row["own_max_us"] = json!(us(long.longest()));
    }
    row
}

fn limit(hz: f64) -> u64 {
    (LONG.as_secs_f64() * hz) as u64
}

fn format(rows: &[Row], hz: f64) -> String {
    let us = |clocks: u64| format!("{:.1}", clocks as f64 / hz * 1e6);
    let mut table =
        Table::new().column("Thread", Align::Left, 24).column("Loops", Align::Right, 14);
    for (heading, ..) in PARTS {
        table = table.column(heading, Align::Right, 10);
    }
    table = table.column("max us", Align::Right, 10);
    for (heading, width) in [(">100 us", 9), ("own", 7), ("own us", 10)] {
        table = table.column(heading, Align::Right, width);
    }
    for r in rows {
        let mut cells = vec![format!("{} {}", r.thread, r.name), r.counts.count().to_string()];
        cells.extend(PARTS.map(|(_, _, part)| us(r.counts.quantile(part))));
        cells.push(us(r.counts.longest()));
        if let Some(long) = &r.long {
            let own = long.longer_than(limit(hz));
            cells.extend([long.count().to_string(), own.to_string(), us(long.longest())]);
        }
        table.row(cells);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_graph::loop_times::LoopTimes;

    #[test]
    fn a_row_per_thread() {
        let counts = |clocks: &[u64]| {
            let times = LoopTimes::default();
            clocks.iter().for_each(|n| times.add(*n));
            times.read()
        };
        let row = |thread, name: &str, clocks: &[u64], long: Option<&[u64]>| Row {
            thread,
            name: name.into(),
            counts: counts(clocks),
            long: long.map(counts),
        };
        let worker: &[u64] = &[10_000, 20_000, 400_000, 3_000_000];
        let rows =
            [row(0, "main", &[], None), row(1, "thalweg_wk_0", worker, Some(&[50_000, 2_500_000]))];
        thalweg_testkit::golden!("tests/golden/runtime_loops.txt", format(&rows, 2e9));
        let json = to_json(&rows[1], 2e9);
        assert_eq!((&json["loops"], &json["max_us"]), (&json!(4), &json!(1500.0)));
        assert_eq!((&json["over_100us"], &json["own_over_100us"]), (&json!(2), &json!(1)));
        assert_eq!(json["own_max_us"], json!(1250.0));
    }
}
