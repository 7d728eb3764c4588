//! Rate limit of drop samples, so that a flood of drops does not become a flood of datagrams.

use std::time::Duration;
use thalweg_graph::clock;

/// Windows in a second: each has its share of the limit, if that is enough to be shared.
const WINDOWS: u32 = 10;

/// Allows a number of drop samples per second, in windows of 100 ms, and counts the rest.
#[derive(Debug)]
pub(crate) struct Limiter {
    limit: u32,
    /// What is left of this window.
    left: u32,
    /// When the window ends, in ticks.
    until: u64,
    suppressed: u32,
}

impl Limiter {
    pub(crate) fn new(limit: u32) -> Limiter {
        Limiter { limit, left: 0, until: 0, suppressed: 0 }
    }

    /// Takes another limit, from now on.
    pub(crate) fn set(&mut self, limit: u32) {
        (self.limit, self.left, self.until) = (limit, 0, 0);
    }

    /// Returns true if one more drop may be reported now; otherwise counts it as suppressed.
    pub(crate) fn allow(&mut self, now: u64) -> bool {
        if now >= self.until {
            let windows = if self.limit >= WINDOWS { WINDOWS } else { 1 };
            self.left = self.limit / windows;
            self.until = now + clock::ticks_in(Duration::from_secs(1)) / u64::from(windows);
        }
        if self.left == 0 {
            self.suppress();
            return false;
        }
        self.left -= 1;
        true
    }

    /// Counts a drop that could not be reported.
    pub(crate) fn suppress(&mut self) {
        self.suppressed = self.suppressed.wrapping_add(1);
    }

    /// Number of drops that were not reported.
    pub(crate) fn suppressed(&self) -> u32 {
        self.suppressed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_limit_is_counted() {
        let second = clock::ticks_in(Duration::from_secs(1));
        for (limit, windows) in [(100, 10u64), (5, 1), (0, 1), (15, 10)] {
            let mut limiter = Limiter::new(limit);
            let mut reported = 0u64;
            for n in 0..10_000 {
                reported += u64::from(limiter.allow(7 + n * second / 10_000));
            }
            assert_eq!(reported, u64::from(limit) / windows * windows, "limit {limit}");
            assert_eq!(u64::from(limiter.suppressed()), 10_000 - reported);
        }
    }
}
