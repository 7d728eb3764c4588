//! Comparisons of what differs in one thing, taken in turns.
//!
//! Absolute times drift with the machine, so nothing here is judged by them: in each round both
//! sides are measured one after the other, and what counts is the middle of the rounds' ratios.

#![forbid(unsafe_code)]

use std::fmt;

/// Rounds of one comparison: what the router made, and what the kernel made right before it.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    /// The router's value of each round.
    pub ours: Vec<f64>,
    /// The kernel's.
    pub kernel: Vec<f64>,
}

/// The middle of some values, and the least and greatest of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The middle; of an even number, the mean of the two in the middle.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub most: f64,
}

impl Spread {
    /// Of these values; zeros if there are none.
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
        Spread { median, least, most }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        let Spread { median, least, most } = self;
        write!(f, "{median:.digits$} ({least:.digits$}–{most:.digits$})")
    }
}

impl Rounds {
    /// Adds a round.
    pub fn push(&mut self, ours: f64, kernel: f64) {
        self.ours.push(ours);
        self.kernel.push(kernel);
    }

    /// The router's value over the kernel's, round by round.
    pub fn ratio(&self) -> Spread {
        let ratios: Vec<f64> = self.ours.iter().zip(&self.kernel).map(|(a, b)| a / b).collect();
        Spread::of(&ratios)
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
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let mut rounds = Rounds::default();
        // The machine became ten times slower on the way; the ratio did not change.
        rounds.push(2.0, 1.0);
        rounds.push(20.0, 10.0);
        assert_eq!(rounds.ratio(), Spread { median: 2.0, least: 2.0, most: 2.0 });
    }
}
