//! The search of TRex's `cps_ndr.py`: each trial decides which half of the range remains.

/// A range that a binary search halves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Binary {
    /// Lower end of the range at first, per second.
    pub least: f64,
    /// Upper end of the range at first, per second.
    pub most: f64,
    /// Share by which the other end moves away after more than three equal verdicts, 0 to 1; 0
    /// leaves it where it is. With it, a search follows a device whose limit moves, and never ends.
    pub adaptive: f64,
}

/// State of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The greatest load that was good, or the least of the range.
    pub lower: f64,
    /// The load to try, in the middle.
    pub current: f64,
    /// The least load that was bad, or the greatest of the range.
    pub upper: f64,
}

/// Equal verdicts in a row after which an adaptive range widens.
const IN_A_ROW: usize = 3;

impl Binary {
    /// Returns the range after these verdicts, of which true is good.
    pub fn after(&self, verdicts: &[bool]) -> Range {
        let (mut lower, mut upper) = (self.least, self.most);
        let mut row = 0;
        for (at, good) in verdicts.iter().enumerate() {
            let current = (lower + upper) / 2.0;
            let same = at.checked_sub(1).is_some_and(|before| verdicts[before] == *good);
            row = if same { row + 1 } else { 1 };
            let widens = self.adaptive > 0.0 && row > IN_A_ROW;
            if *good {
                lower = current;
                if widens {
                    upper *= 1.0 + self.adaptive;
                }
            } else {
                upper = current;
                if widens {
                    lower *= 1.0 - self.adaptive;
                }
            }
        }
        Range { lower, current: (lower + upper) / 2.0, upper }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The first lines of the connection tracking article.
    #[test]
    fn ranges_are_those_of_the_article() {
        let search = Binary { least: 1e3, most: 100e3, adaptive: 0.0 };
        let at = |verdicts: &[bool]| search.after(verdicts);
        assert_eq!(at(&[]), Range { lower: 1e3, current: 50_500.0, upper: 100e3 });
        assert_eq!(at(&[false]), Range { lower: 1e3, current: 25_750.0, upper: 50_500.0 });
        assert_eq!(
            at(&[false, true]),
            Range { lower: 25_750.0, current: 38_125.0, upper: 50_500.0 }
        );
    }

    #[test]
    fn adaptive_range_widens_after_the_third_equal_verdict() {
        let search = Binary { least: 0.0, most: 16.0, adaptive: 0.5 };
        assert_eq!(search.after(&[true; 3]).upper, 16.0);
        assert_eq!(search.after(&[true; 4]), Range { lower: 15.0, current: 19.5, upper: 24.0 });
        let search = Binary { least: 8.0, ..search };
        assert_eq!(search.after(&[false; 4]), Range { lower: 4.0, current: 6.25, upper: 8.5 });
    }

    proptest! {
        #[test]
        fn range_closes_around_the_limit(limit in 1e3f64..1e5, steps in 0usize..40) {
            let search = Binary { least: 1e3, most: 1e5, adaptive: 0.0 };
            let mut verdicts = Vec::new();
            for _ in 0..steps {
                verdicts.push(search.after(&verdicts).current <= limit);
            }
            let range = search.after(&verdicts);
            prop_assert!(range.lower <= limit && limit <= range.upper);
            let width = (1e5 - 1e3) / 2f64.powi(steps as i32);
            prop_assert!(range.upper - range.lower <= width * 1.000_001 + 1e-6);
        }
    }
}
