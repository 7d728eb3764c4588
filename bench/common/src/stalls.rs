//! A worker's loops during a large operation, compared with a loop without packets: machines pause
//! by themselves.

use std::time::Duration;

use thalweg_graph::stats::WorkerStats;
use thalweg_graph::{LoopCounts, clock};

use crate::pair::pauses;
use crate::series::Series;
use crate::table::{Cell, Column, Table};

/// The longest that a loop may take.
const LIMIT: Duration = Duration::from_micros(100);

/// Loops of a worker that had something to do: all of them, and of those over 100 µs what was its
/// own.
#[derive(Clone, Debug)]
pub struct Loops {
    all: LoopCounts,
    own: LoopCounts,
}

impl Loops {
    /// Totals so far.
    pub fn so_far(stats: &WorkerStats) -> Loops {
        Loops { all: stats.loops.read(), own: stats.long_loops.read() }
    }

    /// Loops since then.
    pub fn until_now(&self, stats: &WorkerStats) -> Loops {
        let now = Loops::so_far(stats);
        Loops { all: now.all.since(&self.all), own: now.own.since(&self.own) }
    }

    /// The longest, in microseconds.
    pub fn longest(&self) -> f64 {
        micros(self.all.longest())
    }

    /// The longest of the worker's own, in microseconds.
    pub fn longest_own(&self) -> f64 {
        let none_is_long = self.own.count() == 0;
        if none_is_long { self.longest() } else { micros(self.own.longest()) }
    }

    fn long_of_their_own(&self) -> u64 {
        self.own.longer_than(clock::ticks_in(LIMIT))
    }
}

fn micros(clocks: u64) -> f64 {
    clocks as f64 / clock::hz() * 1e6
}

/// Rounds of something that takes all of a table away, and behind each the bare loop.
#[derive(Debug)]
pub struct Stalls {
    cpu: usize,
    took: Series,
    longest: [Series; 2],
    long: [Series; 2],
}

impl Stalls {
    /// Stalls of the worker on this processor. A running router keeps the thread that started it
    /// off its workers' processors, so that thread's processors say nothing.
    pub fn on(cpu: usize) -> Stalls {
        Stalls {
            cpu,
            took: Series::default(),
            longest: Default::default(),
            long: Default::default(),
        }
    }

    /// A table for [`row`](Stalls::row)s.
    pub fn table(title: &str) -> Table {
        Table::new(
            title,
            vec![
                Column::text("how"),
                Column::values("gone in", "s"),
                Column::values("longest loop of its own", "µs"),
                Column::values("a bare loop's longest step", "µs"),
                Column::values("loops of their own above 100 µs", "a second"),
                Column::values("a bare loop's steps", "a second"),
                Column::values("more", "a second"),
            ],
        )
    }

    /// Adds a round: the loops while it went on, and how long that was. The bare loop then walks
    /// through `memory` on the worker's processor, for as long, and after as long a silence.
    pub fn round(
        &mut self,
        (loops, took): (Loops, Duration),
        silent: Duration,
        memory: &mut [u64],
    ) {
        self.took.push(took.as_secs_f64());
        let step = Duration::from_secs_f64(micros(loops.all.quantile(0.5)) / 1e6);
        self.longest[0].push(loops.longest_own());
        self.long[0].push(loops.long_of_their_own() as f64 / took.as_secs_f64());
        // A processor that was idle for seconds is long in coming back.
        std::thread::sleep(silent);
        let bare = pauses(self.cpu, memory, step, LIMIT, took);
        self.longest[1].push(bare.longest * 1e6);
        self.long[1].push(bare.long as f64 / took.as_secs_f64());
    }

    /// Adds a row to a table of these.
    pub fn row(&self, table: &mut Table, how: &str) {
        let more = self.long[0].more_than(&self.long[1]);
        table.row(vec![
            how.into(),
            Cell::series(&self.took, 2),
            Cell::series(&self.longest[0], 0),
            Cell::series(&self.longest[1], 0),
            Cell::series(&self.long[0], 1),
            Cell::series(&self.long[1], 1),
            Cell::Guide(format!("{more:.1}, none"), more.least <= 0.0),
        ]);
    }

    /// Explains the table, after words on which loops these are.
    pub const NOTE: &str = "Its own is a loop's processor time: without what the scheduler gave to others and the \
         hypervisor took, but with interrupts. A bare loop walks, in steps as long as loops were in the middle, through \
         as much memory on the worker's processor, behind each round, for as long, and after as long a silence. More: \
         the mean, with the interval in which it lies with 95 % certainty.";
}
