//! The time-stamp counter and its conversion to time.
//!
//! [`cycles`] measures how long something takes. Timers, ages and time stamps follow [`ticks`] and
//! [`now`], which `set clock adjust` moves ahead of it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

/// Lead of the timers' clock, in nanoseconds and in ticks.
static AHEAD_NS: AtomicU64 = AtomicU64::new(0);
static AHEAD_TICKS: AtomicU64 = AtomicU64::new(0);

/// Returns the time of timers in ticks.
#[inline]
pub fn ticks() -> u64 {
    at(cycles())
}

/// Returns the time of timers, in ticks, at a reading of [`cycles`].
#[inline]
pub fn at(cycles: u64) -> u64 {
    cycles.wrapping_add(AHEAD_TICKS.load(Relaxed))
}

/// Returns the time of timers on the main thread.
pub fn now() -> Instant {
    Instant::now() + ahead()
}

/// Returns how far the clock of timers is ahead.
pub fn ahead() -> Duration {
    Duration::from_nanos(AHEAD_NS.load(Relaxed))
}

/// Moves the clock of timers ahead, for all threads of the process. Threads that wait for a time
/// must be woken: see [`Control::adjust_clock`](crate::Control::adjust_clock).
pub(crate) fn adjust(by: Duration) {
    AHEAD_NS.fetch_add(by.as_nanos() as u64, Relaxed);
    AHEAD_TICKS.fetch_add(ticks_in(by), Relaxed);
}

/// Reads the processor's time-stamp counter: about 20 clocks, no system call. Other processors than
/// x86-64 count nanoseconds, by the system's clock.
#[inline]
pub fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let origin = origin();
        origin.ticks + origin.instant.elapsed().as_nanos() as u64
    }
}

#[derive(Clone, Copy)]
struct Origin {
    instant: Instant,
    wall: SystemTime,
    ticks: u64,
    hz: f64,
}

/// The first tick, an hour from zero, as a counter that began when the machine started: a time of
/// zero stands for "never", and must be long ago.
#[cfg(not(target_arch = "x86_64"))]
const FIRST: u64 = 3_600_000_000_000;

static ORIGIN: OnceLock<Origin> = OnceLock::new();

fn origin() -> Origin {
    *ORIGIN.get_or_init(|| {
        #[cfg(not(target_arch = "x86_64"))]
        return Origin { instant: Instant::now(), wall: SystemTime::now(), ticks: FIRST, hz: 1e9 };
        #[cfg(target_arch = "x86_64")]
        {
            let (wall, (instant, start)) = (SystemTime::now(), by_both_clocks());
            // The time is long enough for an accuracy of a few parts in 100,000.
            while instant.elapsed() < Duration::from_millis(20) {
                std::hint::spin_loop();
            }
            let (then, end) = by_both_clocks();
            let hz = (end - start) as f64 / (then - instant).as_secs_f64();
            Origin { instant, wall, ticks: start, hz }
        }
    })
}

/// Reads the system clock and the counter at one moment. On a busy machine, the thread may be
/// preempted between the two reads: of several tries, the pair read closest together is taken.
#[cfg(target_arch = "x86_64")]
fn by_both_clocks() -> (Instant, u64) {
    let one = || {
        let before = cycles();
        let instant = Instant::now();
        // If another processor's counter lags behind, this wraps to a large number, and another
        // pair is taken.
        let took = cycles().wrapping_sub(before);
        (took, instant, before.wrapping_add(took / 2))
    };
    let rest = (1..8).map(|_| one());
    let (_, instant, ticks) = rest.fold(one(), |a, b| if b.0 < a.0 { b } else { a });
    (instant, ticks)
}

/// Measures the counter's frequency (20 ms, once) and sets the time origin.
pub fn init() {
    origin();
}

/// Returns the number of ticks per second.
pub fn hz() -> f64 {
    origin().hz
}

/// Converts a tick count to seconds since the time origin.
pub fn seconds(at: u64) -> f64 {
    let o = origin();
    (at.wrapping_sub(o.ticks) as i64) as f64 / o.hz
}

/// Returns seconds since the time origin, by the clock of timers.
pub fn now_seconds() -> f64 {
    (origin().instant.elapsed() + ahead()).as_secs_f64()
}

/// Converts a tick count to wall-clock time, as if the clock of timers had always been as far ahead
/// as it is.
pub fn wall(at: u64) -> SystemTime {
    let o = origin();
    let s = seconds(at) - ahead().as_secs_f64();
    if s >= 0.0 { o.wall + Duration::from_secs_f64(s) } else { o.wall }
}

/// Converts a duration to ticks.
pub fn ticks_in(d: Duration) -> u64 {
    (d.as_secs_f64() * hz()) as u64
}

/// Formats a tick count as `hh:mm:ss:µµµµµµ` since the time origin, as in traces.
pub fn format_since_start(at: u64) -> String {
    let us = (seconds(at).max(0.0) * 1e6) as u64;
    let s = us / 1_000_000;
    format!("{:02}:{:02}:{:02}:{:06}", s / 3600, s / 60 % 60, s % 60, us % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_follow_the_clock() {
        init();
        // Read it between two readings of the other clock: the thread may lose the processor
        // anywhere.
        let reading = || (Instant::now(), cycles(), Instant::now());
        let (before, a, after) = reading();
        while after.elapsed() < Duration::from_millis(30) {
            std::hint::spin_loop();
        }
        let (then_before, b, then_after) = reading();
        let measured = (b - a) as f64 / hz();
        let least = (then_before - after).as_secs_f64();
        let most = (then_after - before).as_secs_f64();
        assert!(measured > 0.95 * least, "{measured}, at least {least}");
        assert!(measured < 1.05 * most, "{measured}, at most {most}");
    }
}
