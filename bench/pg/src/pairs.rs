//! Two settings in short turns, many times: differences far below the machine's drift.

use std::time::Duration;

use thalweg_bench_common::Spread;

use crate::Router;
use crate::turns::Plan;

/// How often and how long.
#[derive(Clone, Copy, Debug)]
pub struct Pairing {
    /// Pairs of turns.
    pub pairs: usize,
    /// What is measured of a turn.
    pub turn: Duration,
    /// What goes before it: loops around a change are nobody's, and who works on what the turn
    /// before left behind gets time to end.
    pub settle: Duration,
}

impl Pairing {
    /// As many pairs as planned.
    pub fn of(plan: Plan) -> Pairing {
        let (turn, settle) = (Duration::from_millis(8), Duration::from_millis(2));
        Pairing { pairs: plan.pairs, turn, settle }
    }
}

/// Clocks per packet of the worker, pair by pair.
#[derive(Clone, Debug, Default)]
pub struct Paired {
    without: Vec<f64>,
    with: Vec<f64>,
}

impl Paired {
    /// More pairs of the same settings.
    pub fn extend(&mut self, more: Paired) {
        self.without.extend(more.without);
        self.with.extend(more.with);
    }

    fn each(&self, f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        self.without.iter().zip(&self.with).map(|(off, on)| f(*off, *on)).collect()
    }

    /// Clocks that the second setting adds for each `n` packets.
    pub fn added(&self, n: f64) -> Spread {
        Spread::interval(&self.each(|off, on| (on - off) * n))
    }

    /// By how many percent the second setting lowers the rate.
    pub fn toll(&self) -> Spread {
        Spread::interval(&self.each(|off, on| 100.0 * (1.0 - off / on)))
    }

    /// The rate with the second setting over that without.
    pub fn ratio(&self) -> Spread {
        Spread::interval(&self.each(|off, on| off / on))
    }

    /// Clocks per packet without it and with it.
    pub fn clocks(&self) -> [Spread; 2] {
        [&self.without, &self.with].map(|side| Spread::interval(side))
    }
}

/// Alternates between two settings; `set` makes the first (false) or the second (true) the router's,
/// and is called in the order of ABBA, so that a drift has no side. Worker 0 has to be busy.
pub fn alternate(plan: Pairing, r: &mut Router, mut set: impl FnMut(&mut Router, bool)) -> Paired {
    let mut paired = Paired::default();
    for pair in 0..plan.pairs {
        let first = pair % 2 == 1;
        for on in [first, !first] {
            set(r, on);
            r.wait(plan.settle);
            let clocks = r.clocks_per_packet(plan.turn);
            let side = if on { &mut paired.with } else { &mut paired.without };
            side.push(clocks);
        }
    }
    paired
}
