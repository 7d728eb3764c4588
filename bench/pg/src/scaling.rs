//! Two workers compared with one, by turns: the processors of a virtual machine differ from each
//! other for seconds, and one that is idle is another guest's for a while.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};

use thalweg_bench_common::{Cell, Column, Series, on_two_cores, spin};

use crate::Router;
use crate::turns::Plan;

/// One side next to the other, and both together.
#[derive(Clone, Debug, Default)]
pub struct Scaling {
    /// The mean of either alone.
    pub alone: Series,
    /// Both together.
    pub both: Series,
    /// Ratio of what a bare loop that fills a core did on both processors to that on one, before or
    /// behind.
    pub processors: Option<f64>,
}

impl Scaling {
    /// Columns of [`cells`](Scaling::cells); `unit` is that of either.
    pub fn columns(unit: &str) -> [Column; 4] {
        [
            Column::values("one", unit),
            Column::values("two", unit),
            Column::values("ratio", ""),
            Column::values("the processors then", "×"),
        ]
    }

    /// The cells of a row.
    pub fn cells(&self, digits: usize) -> [Cell; 4] {
        [
            Cell::series(&self.alone, digits),
            Cell::series(&self.both, digits),
            Cell::ratio(self.both.over(&self.alone)),
            self.processors.map_or(Cell::None, |factor| Cell::Number(factor, 2)),
        ]
    }
}

/// Million packets per second that two workers forward, on the first two processors, of which the
/// stream `s0` is the first's and `s1` the second's. `start` makes the router. If workers are
/// `apart`, the processor of one that has nothing to do spins, and nothing may be lost; else
/// packets are handed over, for which a ring may be full.
///
/// # Panics
/// If something was lost nevertheless.
pub fn of_workers(plan: Plan, title: &str, apart: bool, start: impl FnMut() -> Router) -> Scaling {
    // Turns are short, so that all of a round meet the same minute; there are more of them instead.
    let plan = Plan { rounds: plan.rounds * 2, ..plan };
    of_turns(plan, title, apart, start, |_| {})
}

/// The same of workers apart; `begin` is called before each turn.
///
/// # Panics
/// If something was lost.
pub fn of_turns(
    plan: Plan,
    title: &str,
    apart: bool,
    mut start: impl FnMut() -> Router,
    mut begin: impl FnMut(&mut Router),
) -> Scaling {
    let measured = on_two_cores(5, || {
        let mut r = start();
        let mut s = Scaling::default();
        let mut turn = |r: &mut Router, streams: &[&str], idle| {
            r.cli("packet-generator disable-stream");
            begin(r);
            turn(r, plan, streams, idle)
        };
        for round in 0..plan.rounds {
            eprintln!("{title}: round {} of {}", round + 1, plan.rounds);
            let first = turn(&mut r, &["s0"], apart.then_some(1));
            let second = turn(&mut r, &["s1"], apart.then_some(0));
            s.both.push(turn(&mut r, &["s0", "s1"], None));
            s.alone.push((first + second) / 2.0);
        }
        if apart {
            r.stop();
        }
        Ok::<_, Infallible>(s)
    });
    let Ok((s, processors)) = measured;
    Scaling { processors, ..s }
}

fn turn(r: &mut Router, plan: Plan, streams: &[&str], idle: Option<usize>) -> f64 {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if let Some(cpu) = idle {
            let over = &over;
            scope.spawn(move || spin(cpu, over));
        }
        for stream in streams {
            r.cli(&format!("packet-generator enable-stream {stream}"));
        }
        r.wait(plan.warm_up);
        let mpps = r.measure(plan.window / 2).tx_pps / 1e6;
        over.store(true, Ordering::Relaxed);
        mpps
    })
}
