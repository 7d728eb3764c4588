//! MLRsearch (RFC 9971): the highest loads that meet several goals, with shared trials.
//!
//! Each goal is searched for in phases. The first ones decide by less time and stop at wider
//! bounds; what they find is where the next phase begins. Within a phase, a goal's relevant bounds
//! say what comes next: a bound that the last phase found is confirmed, a missing one is looked for
//! in growing steps, and a range that is too wide is halved.

use super::ladder::{Ladder, Rung};
use super::{Goal, GoalError, Trial, Verdict, Weighed};

/// A search between two loads.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// Least load, per second.
    pub least: f64,
    /// Greatest load, per second: what the tester itself can send, or less.
    pub most: f64,
    /// Goals, the strictest first.
    pub goals: Vec<Goal>,
    /// Duration of the first trials, in seconds.
    pub initial: f64,
    /// Number of phases before the one that decides.
    pub coarse: u32,
}

/// A search that cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SearchError {
    /// One of the goals.
    #[error(transparent)]
    Goal(#[from] GoalError),
    /// No goals.
    #[error("there is no goal to search for")]
    NoGoal,
    /// The range.
    #[error("a search from {least} to {most} per second: it must go from more than 0 upwards")]
    Range {
        /// Least load.
        least: f64,
        /// Greatest load.
        most: f64,
    },
    /// The first trials' duration.
    #[error("the first trials last {0} s: it must be more than 0")]
    Initial(f64),
}

/// The next step of a search.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Make a trial.
    Trial {
        /// Load, per second.
        load: f64,
        /// Duration in seconds.
        duration: f64,
    },
    /// All goals are decided, in their order.
    Done(Vec<Found>),
}

/// Result for a goal.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The goal's name.
    pub goal: String,
    /// Greatest load below the upper bound that meets the goal (RFC 9971: relevant lower bound).
    pub lower: Option<f64>,
    /// Least load that does not meet the goal (relevant upper bound).
    pub upper: Option<f64>,
    /// Rate at which packets arrive at the lower bound; 0 without one.
    pub throughput: f64,
}

/// The bounds of a target so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Bounds {
    lower: Option<Rung>,
    upper: Option<Rung>,
}

/// The first trial warms the device up and does not count.
const WARM_UP: usize = 1;

impl Search {
    /// Searches from `least` to `most` for goals, with trials of one second at first.
    pub fn new(least: f64, most: f64, goals: Vec<Goal>) -> Search {
        Search { least, most, goals, initial: 1.0, coarse: 2 }
    }

    /// Checks the numbers.
    ///
    /// # Errors
    /// [`SearchError`] names what is wrong.
    pub fn check(&self) -> Result<(), SearchError> {
        let Search { least, most, initial, .. } = *self;
        self.goals.iter().try_for_each(Goal::check)?;
        if self.goals.is_empty() {
            return Err(SearchError::NoGoal);
        }
        if !(least > 0.0 && least <= most && most.is_finite()) {
            return Err(SearchError::Range { least, most });
        }
        if !(initial > 0.0 && initial.is_finite()) {
            return Err(SearchError::Initial(initial));
        }
        Ok(())
    }

    fn ladder(&self) -> Ladder {
        let width = self.goals.iter().map(|goal| goal.width).fold(f64::INFINITY, f64::min);
        Ladder::new(self.least, self.most, width)
    }

    /// Returns what a goal asks for in a phase; the last one is the goal itself.
    fn target(&self, goal: &Goal, phase: u32) -> Goal {
        if phase == self.coarse {
            return goal.clone();
        }
        let share = f64::from(phase) / f64::from(self.coarse);
        let between = |from: f64, to: f64| from * (to / from).powf(share);
        let trial = between(self.initial.min(goal.trial), goal.trial);
        let sum = between(trial.min(goal.sum), goal.sum);
        let wider = f64::from(2u32.saturating_pow(self.coarse - phase));
        Goal { trial, sum, width: (goal.width * wider).min(0.5), ..goal.clone() }
    }

    /// Returns the next trial, or the result, after these trials. The first one only warms up.
    pub fn next(&self, trials: &[Trial]) -> Step {
        let ladder = self.ladder();
        let opening =
            |load| Step::Trial { load: ladder.load(ladder.at_most(load)), duration: self.initial };
        match trials {
            [] | [_] => return opening(self.most),
            [.., last] if trials.len() < 4 => return opening(last.forwarding_rate()),
            _ => {}
        }
        let start = ladder.at_most(trials[2].forwarding_rate());
        let trials = by_rung(&ladder, &trials[WARM_UP..]);
        let mut hints = vec![Bounds { lower: Some(start), upper: None }; self.goals.len()];
        for phase in 0..=self.coarse {
            for (goal, hint) in self.goals.iter().zip(&mut hints) {
                let target = self.target(goal, phase);
                let wanted = wanted(&ladder, &target, &trials, *hint);
                let bounds = match wanted {
                    Ok(bounds) => bounds,
                    Err(rung) => {
                        return Step::Trial { load: ladder.load(rung), duration: target.trial };
                    }
                };
                *hint = bounds;
            }
        }
        let found = |(goal, bounds): (&Goal, &Bounds)| Found {
            goal: goal.name.clone(),
            lower: bounds.lower.map(|rung| ladder.load(rung)),
            upper: bounds.upper.map(|rung| ladder.load(rung)),
            throughput: bounds.lower.map_or(0.0, |rung| {
                let at = trials.iter().find(|(other, _)| *other == rung);
                at.map_or(0.0, |(_, at)| goal.conditional_throughput(ladder.load(rung), at))
            }),
        };
        Step::Done(self.goals.iter().zip(&hints).map(found).collect())
    }
}

/// Trials by rung, the lowest first.
type ByRung = Vec<(Rung, Vec<Trial>)>;

fn by_rung(ladder: &Ladder, trials: &[Trial]) -> ByRung {
    let mut sorted = std::collections::BTreeMap::<Rung, Vec<Trial>>::new();
    for trial in trials {
        sorted.entry(ladder.at_most(trial.load)).or_default().push(*trial);
    }
    sorted.into_iter().collect()
}

/// Returns a target's bounds if they are close enough, else the rung to try.
fn wanted(ladder: &Ladder, target: &Goal, trials: &ByRung, hint: Bounds) -> Result<Bounds, Rung> {
    let verdicts: Vec<(Rung, Verdict)> =
        trials.iter().map(|(rung, at)| (*rung, Weighed::of(target, at).verdict(target))).collect();
    let of = |wanted| {
        verdicts.iter().filter(move |(_, verdict)| *verdict == wanted).map(|(rung, _)| *rung)
    };
    let upper = of(Verdict::Upper).next();
    // A lower bound above an upper one is not believed.
    let lower = of(Verdict::Lower).rfind(|rung| upper.is_none_or(|upper| *rung < upper));
    let bounds = Bounds { lower, upper };
    let width = ladder.rungs(target.width);
    // Each miss in one direction doubles the next step.
    let grown = |misses: usize| width.saturating_mul(1 << misses.min(20));
    match (lower, upper) {
        (_, Some(0)) => Ok(bounds),
        (Some(lower), None) if lower == ladder.top() => Ok(bounds),
        (Some(lower), Some(upper)) if upper - lower <= width => Ok(bounds),
        (Some(lower), Some(upper)) => {
            let inside = |rung: &Rung| lower < *rung && *rung < upper;
            let hints = [hint.lower, hint.upper];
            let hinted = hints.into_iter().flatten().find(inside);
            Err(hinted.unwrap_or(lower + (upper - lower) / 2))
        }
        (None, None) => Err(hint.lower.or(hint.upper).unwrap_or(ladder.top())),
        (None, Some(upper)) => match hint.lower {
            Some(hinted) if hinted < upper => Err(hinted),
            hinted => {
                let from = hinted.unwrap_or(upper);
                let misses = of(Verdict::Upper).filter(|rung| *rung <= from).count();
                Err(upper.saturating_sub(grown(misses.saturating_sub(1))))
            }
        },
        (Some(lower), None) => match hint.upper {
            Some(hinted) if hinted > lower => Err(hinted),
            hinted => {
                let from = hinted.unwrap_or(lower);
                let misses = of(Verdict::Lower).filter(|rung| *rung >= from).count();
                Err(lower.saturating_add(grown(misses.saturating_sub(1))).min(ladder.top()))
            }
        },
    }
}

#[cfg(test)]
mod tests;
