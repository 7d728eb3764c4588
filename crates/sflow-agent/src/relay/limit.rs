//! Limit of discards that are sent per second.

use std::time::{Duration, Instant};

use thalweg_tables::limit::RateLimit;

const SECOND: Duration = Duration::from_secs(1);

/// Lets a number of items through per second, a tenth of it in 100 ms.
#[derive(Debug)]
pub(super) struct Limit {
    per_second: u32,
    limit: RateLimit,
    started: Instant,
    /// Number of samples that did not get through.
    pub suppressed: u64,
}

impl Limit {
    pub(super) fn new(per_second: u32, started: Instant) -> Limit {
        let limit = RateLimit::per_second(per_second, SECOND.as_nanos() as u64);
        Limit { per_second, limit, started, suppressed: 0 }
    }

    pub(super) fn set(&mut self, per_second: u32) {
        if self.per_second != per_second {
            *self = Limit { suppressed: self.suppressed, ..Limit::new(per_second, self.started) };
        }
    }

    /// True if one more may go.
    pub(super) fn pass(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.started).as_nanos();
        let allowed = self.limit.allow(u64::try_from(passed).unwrap_or(u64::MAX));
        self.suppressed += u64::from(!allowed);
        allowed
    }
}

/// Gives up when there are too many for too long.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    /// More than this in each of `seconds` seconds is too many; 0 never is.
    max: u32,
    seconds: u32,
    /// Begin of the second that is being counted.
    since: Option<Instant>,
    count: u32,
    /// Seconds with too many before this one.
    over: u32,
    open: bool,
}

impl Breaker {
    pub(super) fn new(max: u32, seconds: u32) -> Breaker {
        Breaker { max, seconds, ..Breaker::default() }
    }

    /// True from when it has given up.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Counts one more; false if it has given up.
    pub(super) fn pass(&mut self, now: Instant) -> bool {
        if self.since.is_none_or(|since| now >= since + SECOND) {
            let next = self.since.is_some_and(|since| now < since + 2 * SECOND);
            self.over = if next && self.count > self.max { self.over + 1 } else { 0 };
            (self.since, self.count) = (Some(now), 0);
        }
        self.count = self.count.saturating_add(1);
        self.open |= self.max > 0 && self.count > self.max && self.over + 1 >= self.seconds;
        !self.open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_for_too_long_end_it() {
        let start = Instant::now();
        // The number in each of these seconds, and whether it has given up then.
        for (max, seconds, counts, open) in [
            (10, 2, &[11, 10, 11, 10][..], false),
            (10, 2, &[11, 11], true),
            (10, 1, &[11], true),
            (10, 3, &[11, 11, 0, 11, 11], false),
            (10, 3, &[11, 11, 11], true),
            (0, 1, &[1000, 1000], false),
        ] {
            let mut breaker = Breaker::new(max, seconds);
            for (second, count) in (0..).zip(counts) {
                for _ in 0..*count {
                    breaker.pass(start + Duration::from_secs(second));
                }
            }
            assert_eq!(breaker.is_open(), open, "{max} {seconds} {counts:?}");
            assert_eq!(breaker.pass(start + Duration::from_secs(60)), !open);
        }
    }

    #[test]
    fn so_many_pass_per_second() {
        let start = Instant::now();
        for (per_second, expected) in [(0, 0), (5, 15), (100, 300)] {
            let mut limit = Limit::new(per_second, start);
            let passed =
                (0..3000).filter(|ms| limit.pass(start + Duration::from_millis(*ms))).count();
            assert_eq!(passed, expected, "{per_second}");
            assert_eq!(limit.suppressed, 3000 - expected as u64);
        }
    }
}
