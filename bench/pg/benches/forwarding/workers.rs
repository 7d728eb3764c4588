//! Two workers compared with one, and what two processors of this machine can do at all.

use std::time::Duration;

use thalweg_bench_common::{Bare, Cell, Column, Series, Table, steps};
use thalweg_bench_pg::paths::{Case, stream};
use thalweg_bench_pg::scaling::{Scaling, of_workers};
use thalweg_bench_pg::turns::{Plan, in_turn};
use thalweg_bench_pg::{Router, cores};

fn calibrate(plan: Plan, what: Bare) -> Scaling {
    let mut s = Scaling::default();
    let time = plan.window.min(Duration::from_millis(250));
    for round in 0..plan.rounds {
        eprintln!("{}: round {} of {}", what.name(), round + 1, plan.rounds);
        let [first, second, both] = [&[0][..], &[1], &[0, 1]].map(|on| steps(what, on, time));
        // A processor that is not ours makes a rate of zero, and that no ratio.
        let millions = |rate: Option<f64>| rate.unwrap_or(0.0) / 1e6;
        s.alone.push((millions(first) + millions(second)) / 2.0);
        s.both.push(millions(both));
    }
    s
}

fn forward(plan: Plan, case: Case) -> Scaling {
    of_workers(plan, case.name(), true, || {
        let mut r = Router::start(&[Some(0), Some(1)]);
        case.set_up(&mut r);
        let to = if case == Case::NextHops { "48.0.0.0 - 48.0.39.15" } else { "48.0.0.1" };
        r.cli(&stream("s0", "pg0", 0, to));
        r.cli(&stream("s1", "pg0", 1, to));
        r
    })
}

/// Rate that a worker without sFlow loses while another one samples one packet in ten.
fn beside_sampling(plan: Plan) -> Table {
    let mut table = Table::new(
        "A worker next to one that samples",
        vec![
            Column::text("the other samples"),
            Column::values("this worker", "Mpps"),
            Column::values("ratio", ""),
        ],
    );
    if cores() < 2 {
        table.row(vec!["all".into(), Cell::Missing("there is one processor only".into())]);
        return table;
    }
    let mut r = Router::start(&[Some(0), Some(1)]);
    Case::L2.set_up(&mut r);
    for line in ["create packet-generator interface pg2", "create packet-generator interface pg3"] {
        r.cli(line);
    }
    r.cli(
        "set interface state pg2 up
         set interface state pg3 up
         set interface l2 xconnect pg2 pg3
         set interface l2 xconnect pg3 pg2
         packet-generator disable-stream",
    );
    r.cli(&stream("other", "pg0", 0, "48.0.0.1"));
    r.cli(&stream("this", "pg2", 1, "48.0.0.1"));
    r.cli("packet-generator enable-stream other\npacket-generator enable-stream this");
    r.cli("sflow sampling-rate 10");
    let mut on = false;
    let turns = in_turn(plan, "next to sampling", &mut r, &[false, true], |r, sample| {
        if on != *sample {
            let end = if *sample { "" } else { " disable" };
            r.cli(&format!("sflow enable-disable pg0{end}"));
        }
        on = *sample;
    });
    if on {
        r.cli("sflow enable-disable pg0 disable");
    }
    r.stop();
    let mut series = [Series::default(), Series::default()];
    for (turns, series) in turns.iter().zip(&mut series) {
        turns.windows.iter().for_each(|w| series.push(w.tx_by_worker[1] / 1e6));
    }
    for (what, one) in ["nothing", "one in 10"].into_iter().zip(&series) {
        table.row(vec![what.into(), Cell::series(one, 1), Cell::ratio(one.over(&series[0]))]);
    }
    table.note(
        "Cross connects, each worker with interfaces of its own. There is no collector: the service \
         takes the samples out of the ring and drops them, on a processor that it shares with a worker.",
    );
    table
}

/// Measures.
pub fn tables(plan: Plan) -> Vec<Table> {
    let mut columns = vec![Column::text("what"), Column::text("unit")];
    columns.extend(Scaling::columns(""));
    let mut table = Table::new("Workers", columns);
    if cores() < 2 {
        table.row(vec!["all".into(), Cell::Missing("there is one processor only".into())]);
    } else {
        let mut row = |what: String, unit: &str, cells: [Cell; 4]| {
            table.row([what.into(), unit.into()].into_iter().chain(cells).collect());
        };
        for what in [Bare::Dense, Bare::Chains, Bare::Memory(512 << 10), Bare::Memory(64 << 20)] {
            row(what.name(), "million steps/s", calibrate(plan, what).cells(0));
        }
        for case in [Case::L2, Case::OneFlow, Case::NextHops] {
            row(case.name().into(), "Mpps", forward(plan, case).cells(1));
        }
    }
    table.note(
        "One is the mean of either worker alone; a stream of the generator feeds each worker. The bare loops say \
         what the machine allows: two processors of a virtual machine may be two threads of a core, and always \
         share its memory. Either worker alone and both take turns, in which a processor without work spins. Before \
         and behind each path a bare loop that fills a core ran on one processor and on both, and the path is measured \
         again if both did less than 1.9 times as much, or one less than 95 % of the most that it did in this \
         run, in five tries at most; the lesser of the two factors is in the \
         last column. The main thread and the sFlow service run on either.",
    );
    vec![table, beside_sampling(plan)]
}
