//! The time budget of a loop for expiring connections.

use std::time::Duration;

use thalweg_graph::clock;

/// Maximum number of steps of a loop that has time left.
pub(crate) const STEPS: usize = 256;
/// Steps between two readings of the clock: one to two microseconds.
pub(crate) const CHUNK: usize = 16;
/// Time per loop for expiry, usually and after a long loop.
const SLICE: Duration = Duration::from_micros(10);
const SHORT_SLICE: Duration = Duration::from_micros(5);
const LONG_LOOP: Duration = Duration::from_micros(50);
/// Maximum time of a loop that keeps up with the connections created in the loop before.
const MAX_TIME: Duration = Duration::from_micros(30);
/// Maximum number of connections per loop to keep up with.
const MAX_OWED: u64 = 1024;

/// Time and steps that a loop spends on expiring connections.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExpiryBudget {
    /// Start of this loop, in TSC ticks.
    pub(crate) begun: u64,
    /// Ticks spent, and ticks that may be spent in any case.
    spent: u64,
    slice: u64,
    /// Number of connections created before the loop began.
    created: u64,
    /// Steps still needed to keep up with the connections created in the loop before.
    owed: usize,
}

impl ExpiryBudget {
    /// Begins another loop; `created` is the number of connections created so far.
    pub(crate) fn next(&mut self, begun: u64, created: u64) {
        // Loops follow each other without a pause as long as connections wait for expiry.
        let is_long = begun.wrapping_sub(self.begun) > clock::ticks_in(LONG_LOOP);
        let slice = clock::ticks_in(if is_long { SHORT_SLICE } else { SLICE });
        let owed = 2 * created.wrapping_sub(self.created).min(MAX_OWED) as usize;
        *self = ExpiryBudget { begun, spent: 0, slice, created, owed };
    }

    /// Accounts for `steps` more steps that took `ticks`; returns whether the budget is used up.
    pub(crate) fn spend(&mut self, steps: usize, ticks: u64) -> bool {
        self.spent += ticks;
        self.owed = self.owed.saturating_sub(steps);
        let limit = if self.owed > 0 { clock::ticks_in(MAX_TIME) } else { self.slice };
        self.spent >= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(n: u64) -> u64 {
        clock::ticks_in(Duration::from_micros(n))
    }

    /// Steps of a loop in which every sixteen take `each` microseconds.
    fn steps(budget: &mut ExpiryBudget, each: u64) -> usize {
        (1..1000).find(|_| budget.spend(CHUNK, micros(each) + 1)).unwrap_or(1000) * CHUNK
    }

    #[test]
    fn a_loop_expires_connections_within_its_budget() {
        let mut budget = ExpiryBudget::default();
        let mut at = micros(1_000_000);
        budget.next(at, 100);
        at += micros(20);
        // No connection was created since.
        budget.next(at, 100);
        assert_eq!(steps(&mut budget, 1), 10 * CHUNK);
        assert!(budget.spend(CHUNK, 0), "in another frame of the same loop");
        // Fewer with slow memory.
        budget.next(at + micros(20), 100);
        assert_eq!(steps(&mut budget, 4), 3 * CHUNK);
        // Fewer after a long loop, too.
        budget.next(at + micros(100), 100);
        assert_eq!(steps(&mut budget, 1), 5 * CHUNK);
    }

    #[test]
    fn expiry_keeps_up_with_new_connections_up_to_the_limit() {
        let mut budget = ExpiryBudget::default();
        let at = micros(1_000_000);
        budget.next(at, 0);
        budget.next(at + micros(60), 120);
        assert_eq!(steps(&mut budget, 1), 240);
        budget.next(at + micros(120), 120 + 256);
        assert_eq!(steps(&mut budget, 3), 10 * CHUNK);
    }
}
