//! Rate limits.

/// A bucket of tokens, of which a portion comes in every period.
///
/// Times are ticks of any clock that starts at zero or later. A division is needed only when tokens
/// come in.
#[derive(Debug, Clone)]
pub struct RateLimit {
    /// Tokens, and as many as there can be.
    level: u32,
    burst: u32,
    /// Tokens that come in, and how often.
    portion: u32,
    period: u64,
    /// Time when the last ones came in.
    since: u64,
}

impl RateLimit {
    /// Allows `rate` events per second, one after the other, and bursts of up to `burst`.
    /// `second` is the ticks in a second.
    #[must_use]
    pub fn steady(rate: u32, burst: u32, second: u64) -> RateLimit {
        let portion = rate.min(1);
        let period = (second / u64::from(rate.max(1))).max(1);
        RateLimit { level: burst, burst, portion, period, since: 0 }
    }

    /// Allows up to `rate` events in any second that begins with one after a pause: a tenth of them
    /// per tenth of a second, or all at once if they are less than ten.
    #[must_use]
    pub fn per_second(rate: u32, second: u64) -> RateLimit {
        let (burst, period) = if rate >= 10 { (rate / 10, second / 10) } else { (rate, second) };
        RateLimit { level: burst, burst, portion: burst, period: period.max(1), since: 0 }
    }

    /// Takes a token if there is one.
    #[inline]
    pub fn allow(&mut self, now: u64) -> bool {
        let passed = now.saturating_sub(self.since);
        if passed >= self.period {
            self.come_in(now, passed / self.period);
        }
        let there = self.level > 0;
        self.level -= u32::from(there);
        there
    }

    fn come_in(&mut self, now: u64, periods: u64) {
        let tokens = periods.saturating_mul(self.portion.into());
        let level = tokens.saturating_add(self.level.into());
        if level >= u64::from(self.burst) {
            // A full bucket does not wait for a beat: the period begins with the next event.
            (self.level, self.since) = (self.burst, now);
        } else {
            self.level = level as u32;
            self.since += periods * self.period;
        }
    }
}

/// Buckets of [`Shares`].
const SHARES: usize = 64;

/// A rate limit for each of many, so that a flood by one leaves what the others may do. Some share
/// a bucket: those whose numbers differ by a multiple of 64.
#[derive(Debug, Clone)]
pub struct Shares(Box<[RateLimit; SHARES]>);

impl Shares {
    /// Gives each the same limit.
    #[must_use]
    pub fn of(limit: &RateLimit) -> Shares {
        Shares(Box::new(std::array::from_fn(|_| limit.clone())))
    }

    /// Takes a token of the one with this number, if there is one.
    #[inline]
    pub fn allow(&mut self, number: u32, now: u64) -> bool {
        self.0[number as usize % SHARES].allow(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut limit = RateLimit::steady(100, 10, SECOND);
        let now = 5 * SECOND;
        assert_eq!((0..50).filter(|_| limit.allow(now)).count(), 10);
        let later = (1..=1000).filter(|i| limit.allow(now + i * SECOND / 1000)).count();
        assert_eq!(later, 100);
        assert_eq!((0..50).filter(|_| limit.allow(now + 60 * SECOND)).count(), 10);
    }

    #[test]
    fn a_second_has_its_number() {
        for (rate, expected) in [(0, 0), (5, 5), (15, 10), (100, 100), (12_345, 10_000)] {
            let mut limit = RateLimit::per_second(rate, SECOND);
            let passed = (0..10_000).filter(|n| limit.allow(7 + n * SECOND / 10_000)).count();
            assert_eq!(passed, expected, "{rate}");
        }
    }

    #[test]
    fn a_flood_by_one_leaves_the_share_of_another() {
        let mut shares = Shares::of(&RateLimit::steady(1, 5, SECOND));
        assert_eq!((0..100).filter(|_| shares.allow(7, SECOND)).count(), 5);
        assert_eq!((0..100).filter(|_| shares.allow(8, SECOND)).count(), 5);
    }

    #[test]
    fn nothing_passes_without_tokens() {
        let mut limit = RateLimit::steady(0, 0, SECOND);
        assert!((0..100).all(|n| !limit.allow(n * SECOND)));
        let mut late = RateLimit::steady(1, 1, SECOND);
        assert!(late.allow(u64::MAX) && !late.allow(0) && !late.allow(u64::MAX));
    }

    proptest! {
        /// No more pass between any two events than the burst and what has come in.
        #[test]
        fn the_bound_holds(
            rate in 1u32..2000,
            burst in 1u32..50,
            steps in prop::collection::vec(0u64..30_000, 1..300),
        ) {
            let mut limit = RateLimit::steady(rate, burst, SECOND);
            let (mut now, mut granted) = (SECOND, Vec::new());
            for step in steps {
                now += step;
                if limit.allow(now) {
                    granted.push(now);
                }
            }
            let period = SECOND / u64::from(rate);
            for (i, from) in granted.iter().enumerate() {
                for (n, to) in (1..).zip(&granted[i..]) {
                    prop_assert!(n <= u64::from(burst) + (to - from) / period + 1);
                }
            }
        }
    }
}
