//! The own time of long loops.
//!
//! A loop is long because the worker had much to do, or because the system ran another thread on
//! its processor: only the first can be improved here. The thread's processor time distinguishes
//! the two. Reading it is a system call, so it is done once a millisecond, and after a long loop.

use crate::clock;
use crate::loop_times::LoopTimes;
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Loops that took longer are long: what matters is how often they occur.
pub const LONG: Duration = Duration::from_micros(100);
/// Maximum age of a reading from before a long loop.
const FRESH: Duration = Duration::from_millis(1);

/// The system's times of this thread.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    /// Time of the reading, in clocks.
    at: u64,
    /// The thread's processor time, in clocks.
    own: u64,
    /// Number of voluntary context switches, for the disk or a lock of the kernel's.
    waits: i64,
}

impl Reading {
    fn now() -> Reading {
        // The crate rustix will not do: it looks for the kernel's vDSO, which valgrind does not
        // have.
        let own =
            clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from);
        let waits = getrusage(UsageWho::RUSAGE_THREAD)
            .map_or(0, |usage| usage.voluntary_context_switches());
        Reading { at: clock::cycles(), own: clock::ticks_in(own), waits }
    }
}

/// Watches a worker's loops. Used by that thread only.
#[derive(Debug)]
pub(crate) struct OwnTime {
    long: u64,
    fresh: u64,
    last: Reading,
}

impl OwnTime {
    pub(crate) fn new() -> OwnTime {
        let (long, fresh) = (clock::ticks_in(LONG), clock::ticks_in(FRESH));
        OwnTime { long, fresh, last: Reading::default() }
    }

    /// Runs after a loop with work; returns true if taking a reading took a while.
    #[inline]
    pub(crate) fn after(&mut self, start: u64, end: u64, long_loops: &LoopTimes) -> bool {
        let looks =
            end.wrapping_sub(start) > self.long || end.wrapping_sub(self.last.at) > self.fresh;
        if looks {
            self.look(start, end, long_loops);
        }
        looks
    }

    #[cold]
    fn look(&mut self, start: u64, end: u64, long_loops: &LoopTimes) {
        let now = Reading::now();
        let took = end.wrapping_sub(start);
        if took > self.long {
            long_loops.add(own(took, start, self.last, now, 2 * self.fresh));
        }
        self.last = now;
    }

    /// Records that the worker slept: the last reading is useless for the next loop.
    pub(crate) fn slept(&mut self) {
        self.last.at = 0;
    }
}

/// Returns the thread's own time of a loop that took `took`. All of it if that is not known, or if
/// the thread blocked voluntarily: then something in the loop made it wait.
fn own(took: u64, start: u64, before: Reading, now: Reading, fresh: u64) -> u64 {
    if start.wrapping_sub(before.at) > fresh || before.waits != now.waits {
        return took;
    }
    let others = now.at.wrapping_sub(before.at).saturating_sub(now.own.wrapping_sub(before.own));
    took.saturating_sub(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at: u64, own: u64, waits: i64) -> Reading {
        Reading { at, own, waits }
    }

    #[test]
    fn time_of_other_threads_is_not_the_workers() {
        let before = reading(1000, 500, 3);
        // 5000 clocks passed, of which the thread had 1200.
        let own = |now, took| own(took, 1500, before, now, 2000);
        assert_eq!(own(reading(6000, 1700, 3), 4500), 700);
        assert_eq!(own(reading(6000, 5500, 3), 4500), 4500);
        // A clock that ticks more coarsely than ours.
        assert_eq!(own(reading(6000, 5600, 3), 4500), 4500);
        assert_eq!(own(reading(6000, 500, 3), 4500), 0);
        // The thread blocked voluntarily.
        assert_eq!(own(reading(6000, 1700, 4), 4500), 4500);
    }

    #[test]
    fn unknown_time_is_the_workers() {
        let now = reading(90_000, 10, 0);
        assert_eq!(own(5000, 85_000, reading(80_000, 0, 0), now, 2000), 5000);
        let mut watch = OwnTime::new();
        watch.last = Reading::now();
        watch.slept();
        let loops = LoopTimes::default();
        let (start, end) = (clock::cycles(), clock::cycles() + 2 * watch.long);
        watch.after(start, end, &loops);
        assert_eq!(loops.read().longest(), end - start);
        assert!(watch.last.at > 0);
    }

    #[test]
    fn short_loops_cost_a_look_a_millisecond() {
        let mut watch = OwnTime::new();
        let loops = LoopTimes::default();
        let start = clock::cycles();
        watch.after(start, start + 10, &loops);
        let read_at = watch.last.at;
        assert!(read_at >= start);
        watch.after(read_at, read_at + watch.long, &loops);
        assert_eq!((watch.last.at, loops.read().count()), (read_at, 0));
    }

    #[test]
    fn a_thread_that_sleeps_waits_and_one_that_works_does_not() {
        let begin = clock::cycles();
        let first = Reading::now();
        while clock::cycles() - first.at < clock::ticks_in(Duration::from_millis(5)) {}
        let busy = Reading::now();
        // A reading takes a while itself, and the two clocks agree only approximately.
        let (own, wall) = (busy.own - first.own, clock::cycles() - begin);
        assert!(own > 0 && own <= wall + wall / 100, "{own} of {wall}");
        let end = std::time::Instant::now() + Duration::from_secs(60);
        while Reading::now().waits == busy.waits {
            assert!(std::time::Instant::now() < end, "the thread never waits: {busy:?}");
            std::thread::park_timeout(Duration::from_micros(100));
        }
        assert!(Reading::now().waits > busy.waits);
    }
}
