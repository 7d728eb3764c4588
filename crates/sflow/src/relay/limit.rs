//! How many discards are sent per second.

use std::time::{Duration, Instant};

/// Lets so many through per second, in tenths of one where these hold at least one.
#[derive(Debug)]
pub(super) struct Limit {
    per_second: u32,
    left: u32,
    /// Parts of a second that the quota was given for.
    until: Option<Instant>,
    /// What did not get through.
    pub suppressed: u64,
}

impl Limit {
    pub(super) fn new(per_second: u32) -> Limit {
        Limit { per_second, left: 0, until: None, suppressed: 0 }
    }

    pub(super) fn set(&mut self, per_second: u32) {
        if self.per_second != per_second {
            *self = Limit { suppressed: self.suppressed, ..Limit::new(per_second) };
        }
    }

    /// Whether one more may go.
    pub(super) fn pass(&mut self, now: Instant) -> bool {
        if self.until.is_none_or(|until| now >= until) {
            let tenth = self.per_second >= 10;
            let period = Duration::from_millis(if tenth { 100 } else { 1000 });
            self.left = if tenth { self.per_second / 10 } else { self.per_second };
            self.until = Some(now + period);
        }
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                true
            }
            None => {
                self.suppressed += 1;
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_pass_per_second() {
        let start = Instant::now();
        for (per_second, expected) in [(0, 0), (5, 15), (100, 300)] {
            let mut limit = Limit::new(per_second);
            let passed =
                (0..3000).filter(|ms| limit.pass(start + Duration::from_millis(*ms))).count();
            assert_eq!(passed, expected, "{per_second}");
            assert_eq!(limit.suppressed, 3000 - expected as u64);
        }
    }
}
