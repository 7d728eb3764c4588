//! Rate limit of drop samples, so that a flood of drops does not become a flood of datagrams.

use std::time::Duration;
use thalweg_graph::clock;
use thalweg_tables::limit::RateLimit;

/// Allows a number of drop samples per second, a tenth of it in 100 ms, and counts the rest.
#[derive(Debug)]
pub(crate) struct Limiter {
    limit: RateLimit,
    suppressed: u32,
}

/// The limit itself; the clock may have been measured since the last one was made.
fn limit(per_second: u32) -> RateLimit {
    RateLimit::per_second(per_second, clock::ticks_in(Duration::from_secs(1)))
}

impl Limiter {
    pub(crate) fn new(per_second: u32) -> Limiter {
        Limiter { limit: limit(per_second), suppressed: 0 }
    }

    /// Takes another limit, from now on.
    pub(crate) fn set(&mut self, per_second: u32) {
        self.limit = limit(per_second);
    }

    /// Returns true if one more drop may be reported now; otherwise counts it as suppressed.
    pub(crate) fn allow(&mut self, now: u64) -> bool {
        let allowed = self.limit.allow(now);
        if !allowed {
            self.suppress(1);
        }
        allowed
    }

    /// Counts drops that could not be reported.
    pub(crate) fn suppress(&mut self, drops: u32) {
        self.suppressed = self.suppressed.wrapping_add(drops);
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
