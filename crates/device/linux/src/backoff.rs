//! Attempts at what has failed, ever more rarely: what the system refuses at one time it may grant
//! later.

use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(30);

/// Time of the next attempt.
#[derive(Debug, Default)]
pub struct Backoff {
    next: Option<Instant>,
    /// Attempts that have failed in a row.
    failures: u32,
}

impl Backoff {
    /// Takes note of a failure; returns true if it is the first one since all was well.
    pub fn fail(&mut self) -> bool {
        let pause = FIRST.saturating_mul(1 << self.failures.min(16)).min(MOST);
        self.next = Some(Instant::now() + pause);
        self.failures = self.failures.saturating_add(1);
        self.failures == 1
    }

    /// Takes note that all is well; returns true if it was not.
    pub fn succeed(&mut self) -> bool {
        std::mem::take(self).failures > 0
    }

    /// Returns the time until the next attempt, none if that is due; `None` if none is awaited.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        self.next.map(|next| next.saturating_duration_since(Instant::now()))
    }

    /// Returns whether an attempt may be made now.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.left().is_none_or(|left| left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit() {
        let mut backoff = Backoff::default();
        assert!(backoff.is_due() && !backoff.succeed() && backoff.fail());
        assert!(!backoff.is_due() && backoff.left().is_some_and(|left| left <= FIRST));
        for _ in 0..100 {
            assert!(!backoff.fail());
        }
        assert!(backoff.left().is_some_and(|left| left <= MOST && left > MOST / 2));
        assert!(backoff.succeed() && backoff.is_due() && backoff.fail());
    }
}
