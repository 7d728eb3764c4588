//! Measured series, and their comparison.

use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;

/// Maximum time between two values whose ratio means anything.
pub const NEAR: Duration = Duration::from_secs(60);

/// Values with a greater spread, (most − least) / median, are called noisy.
pub const NOISY: f64 = 0.1;

/// The middle of some values, and the least and greatest of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The middle; of an even number, the mean of the two in the middle.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub most: f64,
    /// Number of values.
    pub rounds: usize,
}

impl Spread {
    /// Spread of these values; zeros if there are none.
    pub fn of(values: &[f64]) -> Spread {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (Some(&least), Some(&most)) = (sorted.first(), sorted.last()) else {
            return Spread::default();
        };
        let half = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            0 => (sorted[half - 1] + sorted[half]) / 2.0,
            _ => sorted[half],
        };
        Spread { median, least, most, rounds: sorted.len() }
    }

    /// The median of these values, and between which of them the median of all that could be
    /// measured lies with 95 % certainty, by the sign test: how values are distributed does not
    /// matter to it.
    pub fn interval(values: &[f64]) -> Spread {
        let whole = Spread::of(values);
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        // The number of values below the median is binomial: normal enough from ten on.
        let off = 1.96 * (n as f64).sqrt() / 2.0;
        let rank = (n as f64 / 2.0 - off).floor();
        if rank < 1.0 {
            return whole;
        }
        let rank = rank as usize - 1;
        Spread { least: sorted[rank], most: sorted[n - 1 - rank], ..whole }
    }

    /// Mean of these values, in place of the median, with the bounds of the true mean at 95 %
    /// certainty, by drawing from the values again and again (Efron's bootstrap): the mean of what
    /// comes in bursts, as stalls do, tells of those that a median does not see.
    fn of_mean(values: &[f64]) -> Spread {
        const DRAWS: usize = 4000;
        let n = values.len();
        if n == 0 {
            return Spread::default();
        }
        let mean = |sum: f64| sum / n as f64;
        let mut state = 1u64;
        let mut draw = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            values[(state >> 33) as usize % n]
        };
        let mut means: Vec<f64> = (0..DRAWS).map(|_| mean((0..n).map(|_| draw()).sum())).collect();
        means.sort_by(f64::total_cmp);
        let tail = DRAWS / 40;
        Spread {
            median: mean(values.iter().sum()),
            least: means[tail],
            most: means[DRAWS - 1 - tail],
            rounds: n,
        }
    }

    /// (most − least) / median; 0 if all are 0.
    pub fn relative(&self) -> f64 {
        let width = self.most - self.least;
        if width == 0.0 { 0.0 } else { width / self.median.abs() }
    }

    /// True if it is wider than [`NOISY`].
    pub fn is_noisy(&self) -> bool {
        self.relative() > NOISY
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        let Spread { median, least, most, .. } = self;
        if self.rounds == 1 {
            return write!(f, "{median:.digits$}");
        }
        // A dash before a sign reads badly.
        let to = if *least < 0.0 { " to " } else { "–" };
        write!(f, "{median:.digits$} ({least:.digits$}{to}{most:.digits$})")
    }
}

/// Reason why there is no ratio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Apart {
    /// The sides have different numbers of rounds.
    Rounds(usize, usize),
    /// The values of this round, counted from 1, were taken this long from each other.
    Time(usize, Duration),
}

impl fmt::Display for Apart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Apart::Rounds(a, b) => write!(f, "no ratio: {a} rounds against {b}"),
            Apart::Time(round, apart) => write!(
                f,
                "no ratio: in round {round} the sides were measured {:.0} s apart; {} s at most \
                 allow one",
                apart.as_secs_f64(),
                NEAR.as_secs()
            ),
        }
    }
}

/// One side's values, each with its time.
#[derive(Clone, Debug, Default)]
pub struct Series(Vec<(f64, Instant)>);

impl Series {
    /// Adds what has just been measured.
    pub fn push(&mut self, value: f64) {
        self.push_at(value, Instant::now());
    }

    /// Adds what was measured at `at`.
    pub fn push_at(&mut self, value: f64, at: Instant) {
        self.0.push((value, at));
    }

    /// Adds another's values.
    pub fn extend(&mut self, other: &Series) {
        self.0.extend_from_slice(&other.0);
    }

    /// The values, in the order in which they were taken.
    pub fn values(&self) -> Vec<f64> {
        self.0.iter().map(|(value, _)| *value).collect()
    }

    /// Their spread.
    pub fn spread(&self) -> Spread {
        Spread::of(&self.values())
    }

    /// Ratio of these to another side's, round by round: the mean, with the interval in which it
    /// lies with 95 % certainty.
    pub fn more_than(&self, other: &Series) -> Spread {
        let more = self.0.iter().zip(&other.0).map(|((a, _), (b, _))| a - b);
        Spread::of_mean(&more.collect::<Vec<_>>())
    }

    /// Ratios of these to another side's, round by round.
    ///
    /// # Errors
    /// If some round has no counterpart, or one that was measured too long before or after.
    pub fn over(&self, other: &Series) -> Result<Spread, Apart> {
        if self.0.len() != other.0.len() {
            return Err(Apart::Rounds(self.0.len(), other.0.len()));
        }
        let mut ratios = Vec::with_capacity(self.0.len());
        for (i, ((a, at), (b, then))) in self.0.iter().zip(&other.0).enumerate() {
            let apart = at.max(then).duration_since(*at.min(then));
            if apart > NEAR {
                return Err(Apart::Time(i + 1, apart));
            }
            ratios.push(a / b);
        }
        Ok(Spread::of(&ratios))
    }
}

/// Rounds of one comparison: what the router made, and what the kernel made right before it.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// The router's value of each round.
    pub ours: Series,
    /// The kernel's.
    pub kernel: Series,
    since: Instant,
}

impl Default for Rounds {
    fn default() -> Self {
        Rounds { ours: Series::default(), kernel: Series::default(), since: Instant::now() }
    }
}

impl Rounds {
    /// Adds a round, which began when the last one, or this value's life, did.
    pub fn push(&mut self, ours: f64, kernel: f64) {
        let now = Instant::now();
        self.ours.push_at(ours, now);
        self.kernel.push_at(kernel, self.since);
        self.since = now;
    }

    /// The router's value over the kernel's, round by round.
    ///
    /// # Errors
    /// If a round took longer than [`NEAR`].
    pub fn ratio(&self) -> Result<Spread, Apart> {
        self.ours.over(&self.kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_ends() {
        assert_eq!(Spread::of(&[]), Spread::default());
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]).median, 2.0);
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]).median, 2.5);
        assert_eq!(format!("{:.1}", Spread::of(&[3.0, 1.0, 2.0])), "2.0 (1.0–3.0)");
        assert_eq!(format!("{:.1}", Spread::of(&[3.0])), "3.0");
        assert!(Spread::of(&[1.0, 1.2]).is_noisy());
        assert!(!Spread::of(&[1.0, 1.05]).is_noisy());
        assert!(!Spread::of(&[0.0, 0.0]).is_noisy());
    }

    #[test]
    fn an_interval_holds_the_median_of_all() {
        // One to nine: too few to leave any out.
        let few: Vec<f64> = (1..=9).map(f64::from).collect();
        assert_eq!(
            Spread::interval(&few),
            Spread { median: 5.0, least: 1.0, most: 9.0, rounds: 9 }
        );
        let many: Vec<f64> = (1..=100).map(f64::from).collect();
        let s = Spread::interval(&many);
        assert_eq!((s.median, s.least, s.most), (50.5, 40.0, 61.0));
        assert_eq!(Spread::interval(&[]), Spread::default());
        assert_eq!(format!("{:.0}", Spread::interval(&[-2.0, 1.0, 4.0])), "1 (-2 to 4)");
        // Intervals of values around zero: 95 of 100 hold it.
        let mut state = 1u64;
        let mut value = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) as f64 / f64::from(1u32 << 31) - 0.5).powi(3)
        };
        let hits = (0..1000).filter(|_| {
            let values: Vec<f64> = (0..80).map(|_| value()).collect();
            let s = Spread::interval(&values);
            s.least <= 0.0 && 0.0 <= s.most
        });
        let hits = hits.count();
        assert!((930..=985).contains(&hits), "{hits}");
    }

    #[test]
    fn more_is_the_mean_of_differences() {
        let (mut a, mut b) = (Series::default(), Series::default());
        for round in 0..10 {
            b.push(f64::from(round));
            a.push(f64::from(round) + 2.0);
        }
        let s = a.more_than(&b);
        assert_eq!((s.median, s.least, s.most), (2.0, 2.0, 2.0));
    }

    #[test]
    fn a_mean_tells_of_what_is_rare() {
        assert_eq!(Spread::of_mean(&[]), Spread::default());
        assert_eq!(
            Spread::of_mean(&[3.0; 5]),
            Spread { median: 3.0, least: 3.0, most: 3.0, rounds: 5 }
        );
        // One window of five has stalls, where a median is zero.
        let rare: Vec<f64> = (0..40).map(|n| if n % 5 == 0 { 10.0 } else { 0.0 }).collect();
        let s = Spread::of_mean(&rare);
        assert_eq!(s.median, 2.0);
        assert!(s.least > 0.5 && s.most < 4.0, "{s:?}");
        // Ups and downs are equal: nothing to see.
        let even: Vec<f64> = (0..40).map(|n| if n % 2 == 0 { 7.0 } else { -7.0 }).collect();
        let s = Spread::of_mean(&even);
        assert!(s.least < 0.0 && s.most > 0.0, "{s:?}");
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let mut rounds = Rounds::default();
        // The machine became ten times slower on the way; the ratio did not change.
        rounds.push(2.0, 1.0);
        rounds.push(20.0, 10.0);
        let two = Spread { median: 2.0, least: 2.0, most: 2.0, rounds: 2 };
        assert_eq!(rounds.ratio(), Ok(two));
    }

    #[test]
    fn what_was_measured_apart_has_no_ratio() {
        let (mut a, mut b) = (Series::default(), Series::default());
        let now = Instant::now();
        a.push_at(1.0, now);
        assert_eq!(a.over(&b), Err(Apart::Rounds(1, 0)));
        b.push_at(1.0, now + NEAR + Duration::from_secs(1));
        let apart = a.over(&b).unwrap_err();
        assert_eq!(apart, Apart::Time(1, Duration::from_secs(61)));
        assert!(apart.to_string().contains("61 s apart"), "{apart}");
    }
}
