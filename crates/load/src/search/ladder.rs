//! The loads that a search tries: rungs of equal ratio between the least and the greatest.

/// Loads from `least` to `most`, each a fixed share below the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ladder {
    least: f64,
    most: f64,
    /// Natural logarithm of the ratio of two rungs.
    step: f64,
    top: u32,
}

/// A rung; 0 is the least load.
pub(super) type Rung = u32;

impl Ladder {
    /// `width`: distance of two rungs as a share of the upper one.
    pub(super) fn new(least: f64, most: f64, width: f64) -> Ladder {
        let step = -(1.0 - width).ln();
        let top = ((most / least).ln() / step).ceil().clamp(0.0, f64::from(u32::MAX)) as u32;
        Ladder { least, most, step, top }
    }

    pub(super) fn top(&self) -> Rung {
        self.top
    }

    pub(super) fn load(&self, rung: Rung) -> f64 {
        match rung {
            0 => self.least,
            _ => self.most * (-self.step * f64::from(self.top.saturating_sub(rung))).exp(),
        }
    }

    /// Returns the rung of a load, or the next one below it.
    pub(super) fn at_most(&self, load: f64) -> Rung {
        let below = ((self.most / load.max(self.least)).ln() / self.step - 1e-6).ceil();
        self.top.saturating_sub(below.clamp(0.0, f64::from(self.top)) as u32)
    }

    /// Number of rungs between two loads that a goal of this width leaves apart.
    pub(super) fn rungs(&self, width: f64) -> u32 {
        ((-(1.0 - width).ln() / self.step + 1e-6) as u32).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rungs_and_loads_agree(least in 1.0f64..1e6, ratio in 1.0f64..1e6, width in 0.0005f64..0.5) {
            let ladder = Ladder::new(least, least * ratio, width);
            prop_assert_eq!(ladder.load(0), least);
            prop_assert!((ladder.load(ladder.top()) / (least * ratio) - 1.0).abs() < 1e-9);
            for rung in [0, 1, ladder.top() / 2, ladder.top()] {
                let rung = rung.min(ladder.top());
                prop_assert_eq!(ladder.at_most(ladder.load(rung)), rung);
                if rung > 0 {
                    let (below, at) = (ladder.load(rung - 1), ladder.load(rung));
                    prop_assert!((at - below) / at <= width * 1.000_001);
                    prop_assert_eq!(ladder.at_most((below + at) / 2.0), rung - 1);
                }
            }
            prop_assert_eq!(ladder.rungs(width), 1);
            prop_assert_eq!(ladder.at_most(least / 2.0), 0);
            prop_assert_eq!(ladder.at_most(f64::INFINITY), ladder.top());
        }
    }
}
