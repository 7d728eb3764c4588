//! Goals, and what a list of trials at one load says about one.

use super::Trial;

/// Goal of a search: the highest load at which not more is lost than `loss_ratio`.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// Name in reports, such as `NDR`.
    pub name: String,
    /// Share that may be lost, 0 to 1 (exclusive).
    pub loss_ratio: f64,
    /// Share of the trials' time in which more may be lost, 0 to 1 (exclusive).
    pub exceed_ratio: f64,
    /// Duration of the trials that decide, in seconds.
    pub trial: f64,
    /// Time that those trials have to last together, in seconds.
    pub sum: f64,
    /// Distance of the two bounds that ends the search, as a share of the upper one.
    pub width: f64,
}

/// A goal that cannot be searched for.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("goal {goal}: {what} is {value}; {range}")]
pub struct GoalError {
    goal: String,
    what: &'static str,
    value: f64,
    range: &'static str,
}

impl Goal {
    /// The non-drop rate: nothing is lost in most of 21 seconds.
    pub fn ndr() -> Goal {
        Goal::of("NDR", 0.0)
    }

    /// The partial drop rate: up to 0.5 % is lost.
    pub fn pdr() -> Goal {
        Goal::of("PDR", 0.005)
    }

    fn of(name: &str, loss_ratio: f64) -> Goal {
        Goal {
            name: name.into(),
            loss_ratio,
            exceed_ratio: 0.5,
            trial: 1.0,
            sum: 21.0,
            width: 0.005,
        }
    }

    /// The throughput of RFC 2544: one trial of 60 seconds without loss.
    pub fn throughput() -> Goal {
        Goal { trial: 60.0, sum: 60.0, exceed_ratio: 0.0, ..Goal::of("throughput", 0.0) }
    }

    /// Checks the numbers.
    ///
    /// # Errors
    /// [`GoalError`] names the first one that is out of range.
    pub fn check(&self) -> Result<(), GoalError> {
        let share = |value: f64| (0.0..1.0).contains(&value);
        let positive = |value: f64| value.is_finite() && value > 0.0;
        let below = "it must be at least 0 and less than 1";
        let above = "it must be more than 0";
        for (fits, what, value, range) in [
            (share(self.loss_ratio), "the loss ratio", self.loss_ratio, below),
            (share(self.exceed_ratio), "the exceed ratio", self.exceed_ratio, below),
            (positive(self.trial), "the duration of a trial", self.trial, above),
            (positive(self.sum), "the sum of durations", self.sum, above),
            (
                positive(self.width) && self.width <= 0.5,
                "the width",
                self.width,
                "it must be more than 0 and at most 0.5",
            ),
        ] {
            if !fits {
                return Err(GoalError { goal: self.name.clone(), what, value, range });
            }
        }
        Ok(())
    }
}

/// Class of a load for a goal (RFC 9971 §4.6, "load classification").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The load meets the goal, whatever the missing trials would show.
    Lower,
    /// The load does not meet the goal, whatever the missing trials would show.
    Upper,
    /// More trials are needed.
    Undecided,
}

/// The trials at one load, weighed against a goal.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Weighed {
    full_low: f64,
    full_high: f64,
    short_low: f64,
    short_high: f64,
}

/// Durations are sums of numbers that binary fractions do not hold exactly.
const SAME: f64 = 1e-9;

impl Weighed {
    /// Adds up the effective durations of trials at one load.
    pub fn of<'t>(goal: &Goal, trials: impl IntoIterator<Item = &'t Trial>) -> Weighed {
        let mut sums = Weighed::default();
        for trial in trials {
            let full = trial.duration + SAME >= goal.trial;
            let low = trial.loss_ratio <= goal.loss_ratio;
            let sum = match (full, low) {
                (true, true) => &mut sums.full_low,
                (true, false) => &mut sums.full_high,
                (false, true) => &mut sums.short_low,
                (false, false) => &mut sums.short_high,
            };
            *sum += trial.effective;
        }
        sums
    }

    /// The time that counts as lossy: short trials do as far as other short ones do not balance
    /// them.
    fn high(&self, goal: &Goal) -> f64 {
        let balance = self.short_low * goal.exceed_ratio / (1.0 - goal.exceed_ratio);
        self.full_high + (self.short_high - balance).max(0.0)
    }

    /// The time of which the exceed ratio is a share.
    fn whole(&self, goal: &Goal) -> f64 {
        (self.full_low + self.high(goal)).max(goal.sum)
    }

    /// Returns what the load is.
    pub fn verdict(&self, goal: &Goal) -> Verdict {
        let whole = self.whole(goal);
        let allowed = whole * goal.exceed_ratio + SAME * whole;
        let at_worst = whole - self.full_low <= allowed;
        let at_best = self.high(goal) <= allowed;
        match (at_worst, at_best) {
            (true, true) => Verdict::Lower,
            (false, false) => Verdict::Upper,
            _ => Verdict::Undecided,
        }
    }
}

impl Goal {
    /// Returns the conditional throughput at a load: the rate at which packets arrive in all but
    /// the worst trials that the exceed ratio leaves out (RFC 9971 §4.7).
    pub fn conditional_throughput(&self, load: f64, trials: &[Trial]) -> f64 {
        let whole = Weighed::of(self, trials).whole(self);
        let mut full: Vec<&Trial> =
            trials.iter().filter(|trial| trial.duration + SAME >= self.trial).collect();
        full.sort_by(|a, b| a.loss_ratio.total_cmp(&b.loss_ratio));
        let mut remaining = whole * (1.0 - self.exceed_ratio) - SAME * whole;
        for trial in full {
            remaining -= trial.effective;
            if remaining <= 0.0 {
                return load * (1.0 - trial.loss_ratio);
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn weighed(goal: &Goal, clean: usize, lossy: usize) -> Verdict {
        let mut trials = vec![Trial::new(1e6, goal.trial, 0.0); clean];
        trials.extend(vec![Trial::new(1e6, goal.trial, 0.01); lossy]);
        Weighed::of(goal, &trials).verdict(goal)
    }

    #[test]
    fn eleven_of_21_trials_decide() {
        let ndr = Goal::ndr();
        assert_eq!(weighed(&ndr, 10, 0), Verdict::Undecided);
        assert_eq!(weighed(&ndr, 11, 0), Verdict::Lower);
        assert_eq!(weighed(&ndr, 0, 10), Verdict::Undecided);
        assert_eq!(weighed(&ndr, 0, 11), Verdict::Upper);
        assert_eq!(weighed(&ndr, 11, 10), Verdict::Lower);
        assert_eq!(weighed(&ndr, 10, 11), Verdict::Upper);
    }

    #[test]
    fn one_trial_decides_rfc_2544() {
        let goal = Goal::throughput();
        assert_eq!(weighed(&goal, 1, 0), Verdict::Lower);
        assert_eq!(weighed(&goal, 0, 1), Verdict::Upper);
    }

    #[test]
    fn short_trials_condemn_but_do_not_acquit() {
        let goal = Goal { trial: 10.0, sum: 10.0, ..Goal::ndr() };
        let short = |clean, lossy| {
            let mut trials = vec![Trial::new(1.0, 1.0, 0.0); clean];
            trials.extend(vec![Trial::new(1.0, 1.0, 0.5); lossy]);
            Weighed::of(&goal, &trials).verdict(&goal)
        };
        assert_eq!(short(100, 0), Verdict::Undecided);
        assert_eq!(short(0, 6), Verdict::Upper);
        // Clean ones balance as many lossy ones at an exceed ratio of one half.
        assert_eq!(short(6, 6), Verdict::Undecided);
    }

    #[test]
    fn throughput_is_of_the_trial_at_the_quantile() {
        let goal = Goal { loss_ratio: 0.005, sum: 4.0, ..Goal::pdr() };
        let losses = [0.5, 0.001, 0.002, 0.003];
        let trials = losses.map(|loss| Trial::new(1000.0, 1.0, loss));
        assert_eq!(goal.conditional_throughput(1000.0, &trials), 1000.0 * (1.0 - 0.002));
        assert_eq!(goal.conditional_throughput(1000.0, &trials[..1]), 0.0);
    }

    #[test]
    fn numbers_out_of_range_are_named() {
        let error = Goal { exceed_ratio: 1.0, ..Goal::ndr() }.check().unwrap_err();
        let text = "goal NDR: the exceed ratio is 1; it must be at least 0 and less than 1";
        assert_eq!(error.to_string(), text);
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            Goal { trial: value, ..Goal::ndr() }.check().unwrap_err();
            Goal { sum: value, ..Goal::ndr() }.check().unwrap_err();
        }
        for goal in [Goal::ndr(), Goal::pdr(), Goal::throughput()] {
            goal.check().unwrap();
        }
    }

    proptest! {
        /// "Decided" means it: no continuation within the sum of durations changes the verdict.
        #[test]
        fn what_is_decided_stays_so(
            exceed in 0.0f64..0.9, sum in 1usize..30, low in prop::collection::vec(any::<bool>(), 0..60),
        ) {
            let goal = Goal { exceed_ratio: exceed, sum: sum as f64, ..Goal::ndr() };
            let trials: Vec<Trial> =
                low.iter().map(|low| Trial::new(1.0, 1.0, f64::from(u8::from(!low)))).collect();
            let decided = (0..=trials.len().min(sum))
                .map(|n| Weighed::of(&goal, &trials[..n]).verdict(&goal))
                .find(|verdict| *verdict != Verdict::Undecided);
            let last = Weighed::of(&goal, &trials[..trials.len().min(sum)]).verdict(&goal);
            if let Some(decided) = decided {
                prop_assert_eq!(decided, last);
            }
            // The share of lossy trials is the verdict once enough are made.
            if trials.len() >= sum {
                let all = Weighed::of(&goal, &trials).verdict(&goal);
                let lossy = low.iter().filter(|low| !**low).count() as f64;
                let share = lossy / low.len() as f64;
                let margin = (share - exceed).abs();
                prop_assert!(all != Verdict::Undecided);
                if margin > 1e-6 {
                    prop_assert_eq!(all == Verdict::Lower, share < exceed);
                }
            }
        }
    }
}
