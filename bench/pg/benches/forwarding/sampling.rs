//! Cost that sFlow adds: clocks per sample and percent of the rate, by pairs of short turns with
//! and without it.

use std::convert::Infallible;

use thalweg_bench_common::{Cell, Column, Spread, Table, on_two_cores, with_others_awake};
use thalweg_bench_pg::pairs::{Paired, Pairing, QUIET, alternate};
use thalweg_bench_pg::paths::Case;
use thalweg_bench_pg::turns::Plan;
use thalweg_bench_pg::{Router, Samples};
use thalweg_graph::clock;

const RATES: [(&str, u32); 5] =
    [("1:1M", 1_000_000), ("1:10k", 10_000), ("1:1k", 1_000), ("1:100", 100), ("1:10", 10)];
/// Rate from which on a sample's clocks are too few to be measured.
const RARE: u32 = 100_000;

/// Rates that are measured without a collector, too: then the service drops samples as they lie in
/// the ring, and what is left is what they cost the worker.
const ALONE: [(&str, u32); 2] = [("1:1k", 1_000), ("1:100", 100)];

const WHEN_QUIET: &str = "clocks/sample when quiet";

/// Number of rounds in which every rate is measured with part of its pairs, so that a slow minute
/// of the machine affects all rates and none of their medians.
const PARTS: usize = 10;

struct Outcome {
    rate: (&'static str, u32),
    /// Samples go to a collector.
    sent: bool,
    paired: Paired,
    samples: Samples,
    /// Clocks of the tap, by its own account.
    tap: u64,
}

impl Outcome {
    fn none(rate: (&'static str, u32), sent: bool) -> Outcome {
        Outcome { rate, sent, paired: Paired::default(), samples: Samples::default(), tap: 0 }
    }

    fn extend(&mut self, more: Outcome) {
        self.paired.extend(more.paired);
        self.samples.taken += more.samples.taken;
        self.samples.lost += more.samples.lost;
        self.samples.sent += more.samples.sent;
        self.tap += more.tap;
    }

    /// Clocks per sample in turns that have their core for themselves; a dash if those were too
    /// few.
    fn when_quiet(&self) -> Cell {
        let added = self.paired.added_when_quiet(f64::from(self.rate.1));
        if added.rounds > 0 { Cell::Added(added, 0) } else { Cell::None }
    }

    fn tap_per_sample(&self) -> f64 {
        self.tap as f64 / (self.samples.taken + self.samples.lost).max(1) as f64
    }
}

fn tap_clocks(r: &mut Router) -> u64 {
    let c = r.control();
    c.node("sflow").map_or(0, |tap| c.worker_stats(0).node(tap).clocks.get())
}

fn run(case: Case, plan: Pairing) -> Vec<Outcome> {
    let mut r = Router::on_last_core();
    case.set_up(&mut r);
    // Nobody else listens either.
    r.cli("sflow netlink disable");
    let mut all = rows(&mut r, case, plan, &ALONE, false);
    let _collector = r.collect();
    all.extend(rows(&mut r, case, plan, &RATES, true));
    r.stop();
    all
}

fn rows(
    r: &mut Router,
    case: Case,
    plan: Pairing,
    rates: &[(&'static str, u32)],
    sent: bool,
) -> Vec<Outcome> {
    let part = Pairing { pairs: plan.pairs.div_ceil(PARTS), ..plan };
    let mut rows: Vec<_> = rates.iter().map(|rate| Outcome::none(*rate, sent)).collect();
    for n in 0..PARTS {
        let to = if sent { "" } else { ", no collector" };
        eprintln!("{}: sFlow at {} rates{to}, {n} of {PARTS}", case.name(), rates.len());
        for row in &mut rows {
            // Worker and service have a core each, if that can be had.
            let measured = on_two_cores(2, || {
                r.cli("packet-generator enable-stream");
                let more = with_others_awake(|| outcome(r, part, row.rate, sent));
                r.cli("packet-generator disable-stream");
                Ok::<_, Infallible>(more)
            });
            let Ok((more, _)) = measured;
            row.extend(more);
        }
    }
    rows
}

fn outcome(r: &mut Router, plan: Pairing, rate: (&'static str, u32), sent: bool) -> Outcome {
    r.cli(&format!("sflow sampling-rate {}", rate.1));
    r.cli("sflow enable-disable pg0");
    let (before, tap) = (r.samples(), tap_clocks(r));
    let mut on = true;
    let paired = alternate(plan, r, |r, want| {
        if want != on {
            r.cli(if want {
                "sflow enable-disable pg0"
            } else {
                "sflow enable-disable pg0 disable"
            });
            on = want;
        }
    });
    if !on {
        r.cli("sflow enable-disable pg0");
    }
    // Samples taken are sent within a moment.
    let after = r.samples();
    let tap = tap_clocks(r) - tap;
    r.cli("sflow enable-disable pg0 disable");
    let samples = Samples {
        taken: after.taken - before.taken,
        lost: after.lost - before.lost,
        sent: after.sent - before.sent,
    };
    Outcome { rate, sent, paired, samples, tap }
}

fn share(part: u64, of: u64) -> Cell {
    if of == 0 {
        return Cell::None;
    }
    Cell::Text(format!("{:.1} %", 100.0 * part as f64 / of as f64))
}

/// Million packets per second at this number of clocks for each.
fn mpps(clocks: Spread) -> Cell {
    let of = |clocks: f64| clock::hz() / clocks / 1e6;
    let s = Spread {
        median: of(clocks.median),
        least: of(clocks.most),
        most: of(clocks.least),
        ..clocks
    };
    Cell::Added(s, 1)
}

/// Measures.
pub fn tables(plan: Plan) -> Vec<Table> {
    let plan = Pairing::of(plan);
    let mut table = Table::new(
        "sFlow: packets per second",
        vec![
            Column::text("path"),
            Column::text("sFlow"),
            Column::values("without", "Mpps"),
            Column::values("rate", "Mpps"),
            Column::values("of unsampled", ""),
            Column::values("toll", "%"),
            Column::values("clocks/sample", "clocks"),
            Column::values(WHEN_QUIET, "clocks"),
            Column::values("in the tap", "clocks/sample"),
            Column::values("samples taken", ""),
            Column::values("lost", ""),
            Column::values("sent", ""),
        ],
    );
    let mut alone = Table::new(
        "sFlow: what a sample costs the worker alone",
        vec![
            Column::text("path"),
            Column::text("sFlow"),
            Column::values("toll", "%"),
            Column::values("clocks/sample", "clocks"),
            Column::values(WHEN_QUIET, "clocks"),
            Column::values("in the tap", "clocks/sample"),
        ],
    );
    for case in [Case::L2, Case::OneFlow] {
        for o in run(case, plan) {
            let [without, with] = o.paired.clocks();
            let rate = f64::from(o.rate.1);
            if !o.sent {
                alone.row(vec![
                    case.name().into(),
                    o.rate.0.into(),
                    Cell::Added(o.paired.toll(), 2),
                    Cell::Added(o.paired.added(rate), 0),
                    o.when_quiet(),
                    Cell::Number(o.tap_per_sample(), 0),
                ]);
                continue;
            }
            let often = o.rate.1 < RARE;
            let Samples { taken, lost, sent } = o.samples;
            table.row(vec![
                case.name().into(),
                o.rate.0.into(),
                mpps(without),
                mpps(with),
                Cell::Added(o.paired.ratio(), 3),
                Cell::Added(o.paired.toll(), 2),
                if often { Cell::Added(o.paired.added(rate), 0) } else { Cell::None },
                if often { o.when_quiet() } else { Cell::None },
                if often { Cell::Number(o.tap_per_sample(), 0) } else { Cell::None },
                Cell::Number(taken as f64, 0),
                share(lost, taken + lost),
                share(sent, taken),
            ]);
        }
    }
    table.note(format!(
        "{} pairs of turns of {} ms with sFlow and without, in the order of ABBA, in one process; the \
         first {} ms after each change are left out. All rates take turns, with a tenth of their pairs each \
         time. Medians of the pairs' differences, with the interval in which the median lies with 95 % \
         certainty (sign test). Clocks are those of the worker's whole loop, the generator's input and \
         interruptions included; when quiet are those of four turns, without sFlow, with it twice, and without, \
         of which both without took no longer than {:.0} % more than the fastest tenth of all without: nobody \
         else had the other thread of the core then; in the tap is what the tap takes by its own account. Samples go to a UDP \
         socket on this host. In all turns the other processors are awake: threads that give way to everybody \
         keep them so. Before and behind each such part a bare loop that fills a core ran on one \
         processor and on both; it is measured again if both did less than 1.9 times as much, or one less than \
         95 % of the most that it did in this run, in two tries at most.",
        plan.pairs,
        plan.turn.as_millis(),
        plan.settle.as_millis(),
        100.0 * (QUIET - 1.0),
    ));
    alone.note(
        "As above, but without a collector: samples are dropped as they lie in the worker's ring. The \
         difference to the table above is what the agent's work takes from a worker whose core it shares.",
    );
    vec![table, alone]
}
