//! How long a loop ends connections.

use std::time::Duration;

use thalweg_graph::clock;

/// Steps of a loop in which there is time, at most.
pub(crate) const STEPS: usize = 256;
/// Steps between looks at the clock: one to two microseconds.
pub(crate) const CHUNK: usize = 16;
/// Time of a loop for ending connections, and if the one before was long.
const SLICE: Duration = Duration::from_micros(10);
const LITTLE: Duration = Duration::from_micros(5);
const LONG: Duration = Duration::from_micros(50);
/// Time of a loop for ending as many connections as the one before brought.
const LIMIT: Duration = Duration::from_micros(30);
/// Connections that a loop may have brought, for this.
const MOST_OWED: u64 = 1024;

/// What loops spend on ending connections.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ending {
    /// When this loop began.
    pub(crate) begun: u64,
    /// Clocks that it has spent, and that it may spend in any case.
    spent: u64,
    slice: u64,
    /// Connections that had been committed when the loop began.
    came: u64,
    /// Steps that keep up with connections that came in the loop before, as far as these are left to do.
    owed: usize,
}

impl Ending {
    /// Another loop begins, with so many connections committed so far.
    pub(crate) fn next(&mut self, begun: u64, came: u64) {
        // While there are connections to end, loops follow each other.
        let is_long = begun.wrapping_sub(self.begun) > clock::ticks_in(LONG);
        let slice = clock::ticks_in(if is_long { LITTLE } else { SLICE });
        let owed = 2 * came.wrapping_sub(self.came).min(MOST_OWED) as usize;
        *self = Ending { begun, spent: 0, slice, came, owed };
    }

    /// Whether a loop that has taken so many more steps in so many clocks has done enough: more than its
    /// part, or all that it may.
    pub(crate) fn are_enough(&mut self, steps: usize, clocks: u64) -> bool {
        self.spent += clocks;
        self.owed = self.owed.saturating_sub(steps);
        let may = if self.owed > 0 { clock::ticks_in(LIMIT) } else { self.slice };
        self.spent >= may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(n: u64) -> u64 {
        clock::ticks_in(Duration::from_micros(n))
    }

    /// Steps of a loop of which every sixteen take `each` microseconds.
    fn steps(ending: &mut Ending, each: u64) -> usize {
        (1..1000).find(|_| ending.are_enough(CHUNK, micros(each) + 1)).unwrap_or(1000) * CHUNK
    }

    #[test]
    fn a_loop_ends_connections_for_as_long_as_it_may() {
        let mut ending = Ending::default();
        let mut at = micros(1_000_000);
        ending.next(at, 100);
        at += micros(20);
        // Nobody has come since.
        ending.next(at, 100);
        assert_eq!(steps(&mut ending, 1), 10 * CHUNK);
        assert!(ending.are_enough(CHUNK, 0), "in another frame of the same loop");
        // Slow memory: fewer.
        ending.next(at + micros(20), 100);
        assert_eq!(steps(&mut ending, 4), 3 * CHUNK);
        // After a long loop, too.
        ending.next(at + micros(100), 100);
        assert_eq!(steps(&mut ending, 1), 5 * CHUNK);
    }

    #[test]
    fn more_end_than_come_but_not_for_longer_than_a_loop_may_take() {
        let mut ending = Ending::default();
        let at = micros(1_000_000);
        ending.next(at, 0);
        ending.next(at + micros(60), 120);
        assert_eq!(steps(&mut ending, 1), 240);
        ending.next(at + micros(120), 120 + 256);
        assert_eq!(steps(&mut ending, 3), 10 * CHUNK);
    }
}
