//! Two settings in short turns, many times: differences far below the machine's drift.

use std::time::Duration;

use thalweg_bench_common::Spread;

use crate::Router;
use crate::turns::Plan;

/// Number and length of turns.
#[derive(Clone, Copy, Debug)]
pub struct Pairing {
    /// Pairs of turns.
    pub pairs: usize,
    /// Length of a turn's measured part.
    pub turn: Duration,
    /// Pause before it: loops around a change belong to no setting, and work left from the turn
    /// before gets time to end.
    pub settle: Duration,
}

impl Pairing {
    /// Takes as many pairs as planned.
    pub fn of(plan: Plan) -> Pairing {
        let (turn, settle) = (Duration::from_millis(8), Duration::from_millis(2));
        Pairing { pairs: plan.pairs, turn, settle }
    }
}

/// A turn is quiet if it takes at most QUIET times the fastest tenth; a guest on the other thread
/// of the core adds about a third.
pub const QUIET: f64 = 1.02;
/// Number of groups of four turns that must be quiet.
pub const ENOUGH: usize = 12;

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

    /// Returns the same for runs of four turns (without it, with it, with it, without it) in which
    /// both turns without it were within [`QUIET`] of the fastest tenth; zeros if they are fewer
    /// than [`ENOUGH`]. Turns with it have no say in which these are: what they meet by chance
    /// counts.
    pub fn added_when_quiet(&self, n: f64) -> Spread {
        let mut sorted = self.without.clone();
        sorted.sort_by(f64::total_cmp);
        let Some(fast) = sorted.get(sorted.len() / 10) else { return Spread::default() };
        let limit = fast * QUIET;
        let fours = self.without.as_chunks::<2>().0.iter().zip(self.with.as_chunks::<2>().0);
        let quiet = fours.filter(|(off, _)| off.iter().all(|clocks| *clocks <= limit));
        let added: Vec<f64> =
            quiet.map(|(off, on)| (on[0] + on[1] - off[0] - off[1]) / 2.0 * n).collect();
        if added.len() < ENOUGH { Spread::default() } else { Spread::interval(&added) }
    }

    /// Returns the percentage by which the second setting lowers the rate.
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

/// Alternates between two settings. `set` gives the router the first (false) or the second (true);
/// its order is ABBA, so that a drift favours neither. Worker 0 has to be busy.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_turns_are_those_whose_neighbours_without_are_fast() {
        let mut paired = Paired::default();
        for four in 0..100 {
            // Every other run of four has a guest during its first turn, and a turn with sFlow that
            // took longer.
            let loud = four % 2 == 1;
            let first = if loud { 6.0 } else { 4.0 };
            paired.extend(Paired {
                without: vec![first, 4.0],
                with: vec![4.5, 4.5 + 2.0 * f64::from(loud)],
            });
        }
        let added = paired.added_when_quiet(100.0);
        assert_eq!((added.median, added.rounds), (50.0, 50));
        let few = Paired { without: vec![4.0; 22], with: vec![5.0; 22] };
        assert_eq!(few.added_when_quiet(1.0), Spread::default());
        assert_eq!(Paired::default().added_when_quiet(1.0), Spread::default());
    }
}
