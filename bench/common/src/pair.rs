//! Ratio of the work of two processors to that of one, by loops without packets. The processors of
//! a virtual machine may be two threads of one core, whatever its topology says, and that changes
//! with the host's mood: without it, two workers compared with one say little.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::series::Spread;

/// A loop without packets.
#[derive(Clone, Copy, Debug)]
pub enum Bare {
    /// Arithmetic that fills all units of a core: two threads of one core share those.
    Dense,
    /// Arithmetic that waits for its own results.
    Chains,
    /// Reads and writes this number of bytes of its own, in order.
    Memory(usize),
}

impl Bare {
    /// Its name in a table.
    pub fn name(self) -> String {
        match self {
            Bare::Dense => "bare loop: arithmetic that fills a core".into(),
            Bare::Chains => "bare loop: arithmetic that waits for itself".into(),
            Bare::Memory(bytes) => {
                format!("bare loop: {} MiB of memory each", bytes as f64 / f64::from(1 << 20))
            }
        }
    }

    /// Runs for a time; steps per second.
    fn run(self, barrier: &Barrier, time: Duration) -> f64 {
        let words = if let Bare::Memory(bytes) = self { bytes / 8 } else { 8 };
        let mut memory = vec![1u64; words];
        barrier.wait();
        let (start, mut steps) = (Instant::now(), 0u64);
        while start.elapsed() < time {
            steps += match self {
                Bare::Dense => dense(&mut memory),
                Bare::Chains => chains(&mut memory),
                Bare::Memory(_) => {
                    for x in black_box(&mut memory) {
                        *x = x.wrapping_add(3);
                    }
                    words as u64
                }
            };
        }
        steps as f64 / start.elapsed().as_secs_f64()
    }
}

/// Some thousand steps of six short chains in registers: as many results per clock as a core has
/// units for. Rotations by different amounts keep the compiler from doing several in one
/// instruction.
fn dense(memory: &mut [u64]) -> u64 {
    const STEPS: u64 = 4000;
    let Some([a, b, c, d, e, f, ..]) = memory.first_chunk_mut::<8>() else { return 0 };
    let (mut u, mut v, mut w, mut x, mut y, mut z) = (*a, *b, *c, *d, *e, *f);
    for k in 0..STEPS {
        u = u.rotate_left(3).wrapping_add(k);
        v = v.rotate_left(7).wrapping_add(k) ^ 5;
        w = w.rotate_left(13).wrapping_sub(k);
        x = x.rotate_left(21).wrapping_add(k) ^ 9;
        y = y.rotate_left(31).wrapping_sub(k);
        z = z.rotate_left(43) ^ k;
    }
    (*a, *b, *c, *d, *e, *f) = black_box((u, v, w, x, y, z));
    STEPS
}

fn chains(memory: &mut [u64]) -> u64 {
    const STEPS: u64 = 2000;
    let Some(chains) = memory.first_chunk_mut::<8>() else { return 0 };
    for _ in 0..STEPS {
        for x in black_box(&mut *chains) {
            *x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (*x >> 29);
        }
    }
    STEPS
}

/// Runs a loop on these processors at once: all their steps per second, or nothing if one of them
/// is not ours to use.
pub fn steps(what: Bare, on: &[usize], time: Duration) -> Option<f64> {
    let barrier = Barrier::new(on.len());
    std::thread::scope(|scope| {
        let one = |core: &usize| {
            let (core, barrier) = (*core, &barrier);
            scope.spawn(move || {
                let pinned = pin(core);
                let rate = what.run(barrier, time);
                pinned.then_some(rate)
            })
        };
        let threads: Vec<_> = on.iter().map(one).collect();
        threads.into_iter().map(|t| t.join().ok().flatten()).sum()
    })
}

/// Nanoseconds until a store of one processor is seen by the other, or nothing if one of them is
/// not ours to use. A virtual machine's processors may be near each other at one time and far apart
/// at another.
pub fn transfer(on: [usize; 2], time: Duration) -> Option<f64> {
    const OVER: u64 = u64::MAX;
    #[repr(align(128))]
    struct Alone(AtomicU64);
    let (word, barrier) = (&Alone(AtomicU64::new(0)), &Barrier::new(2));
    // Do not hint that this waits: a hypervisor may then take the processor away.
    let wait = |last: u64| {
        loop {
            let now = word.0.load(Ordering::Acquire);
            if now != last {
                break now;
            }
        }
    };
    std::thread::scope(|scope| {
        let answering = scope.spawn(move || {
            let pinned = pin(on[1]);
            barrier.wait();
            let mut last = 0;
            loop {
                match wait(last) {
                    OVER => break pinned,
                    now => last = now + 1,
                }
                word.0.store(last, Ordering::Release);
            }
        });
        let asking = scope.spawn(move || {
            let pinned = pin(on[0]);
            barrier.wait();
            let (start, mut last) = (Instant::now(), 0);
            while start.elapsed() < time {
                for _ in 0..16 {
                    word.0.store(last + 1, Ordering::Release);
                    last = wait(last + 1);
                }
            }
            let took = start.elapsed();
            word.0.store(OVER, Ordering::Release);
            pinned.then_some(took.as_nanos() as f64 / last as f64)
        });
        let pinned = answering.join().unwrap_or(false);
        asking.join().ok().flatten().filter(|_| pinned)
    })
}

/// Rates of processors in a loop that fills a core.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pair {
    /// Steps a second of one processor, in millions: this tells a slow hour from a fast one.
    pub one: Option<f64>,
    /// Ratio of two to one: 2 if they are two cores, about 1.2 if they are two threads of one.
    pub factor: Option<f64>,
    /// Nanoseconds that a line takes from one to the other: see `transfer`.
    pub line: Option<f64>,
}

impl Pair {
    /// Measures it, in about 150 ms. Processors that are not there say nothing.
    pub fn measure() -> Pair {
        let time = Duration::from_millis(15);
        let (mut ones, mut factors, mut lines) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..3 {
            let rate = |on: &[usize]| steps(Bare::Dense, on, time);
            let alone = [rate(&[0]), rate(&[1])];
            ones.extend(alone.iter().flatten().map(|rate| rate / 1e6));
            if let ([Some(a), Some(b)], Some(both)) = (alone, rate(&[0, 1])) {
                factors.push(2.0 * both / (a + b));
            }
            lines.extend(transfer([0, 1], time / 3));
        }
        let median = |of: &[f64]| (!of.is_empty()).then(|| Spread::of(of).median);
        Pair { one: median(&ones), factor: median(&factors), line: median(&lines) }
    }
}

/// Keeps this thread on a processor; returns false if that is not allowed, and the thread moves
/// freely.
pub fn pin(cpu: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).is_ok()
}

/// Keeps a processor from becoming another guest's until `over`.
pub fn spin(cpu: usize, over: &AtomicBool) {
    pin(cpu);
    while !over.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

/// Does something while all processors but the last keep busy, but give way to other work there:
/// whether the others are awake says by up to a percent how fast the last one is.
pub fn with_others_awake<T>(what: impl FnOnce() -> T) -> T {
    /// Tells threads to end even if what is done panics.
    struct Over<'o>(&'o AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ended = Over(&over);
        for cpu in 0..processors - 1 {
            let over = &over;
            scope.spawn(move || {
                // Linux lowers this thread only. If it refuses, others wait for their turns.
                let _ = rustix::process::nice(19);
                spin(cpu, over);
            });
        }
        what()
    })
}

/// Pauses of a loop on a processor that only walks through memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pauses {
    /// Its longest step, of the thread's own time, in seconds.
    pub longest: f64,
    /// Steps over the limit.
    pub long: u64,
}

/// Walks through memory on a processor, at random, for some time; the clock is read after each
/// step, which takes about `step`. The machine decides how much of the thread's own time a step
/// takes: by interrupts, and by memory that the hypervisor has to find.
pub fn pauses(
    cpu: usize,
    memory: &mut [u64],
    step: Duration,
    limit: Duration,
    time: Duration,
) -> Pauses {
    let own = || {
        let at = clock_gettime(ClockId::ThreadCPUTime);
        at.tv_sec as f64 + at.tv_nsec as f64 * 1e-9
    };
    std::thread::scope(|scope| {
        let walk = scope.spawn(move || {
            pin(cpu);
            let (begin, words) = (Instant::now(), memory.len() as u64);
            let (mut found, mut x) = (Pauses::default(), 0x9e37_79b9_7f4a_7c15_u64);
            while begin.elapsed() < time {
                let (from, own_from) = (Instant::now(), own());
                while from.elapsed() < step {
                    for _ in 0..16 {
                        x ^= x << 13;
                        x ^= x >> 7;
                        x ^= x << 17;
                        memory[(x % words) as usize] += 1;
                    }
                }
                let took = own() - own_from;
                found.longest = found.longest.max(took);
                found.long += u64::from(took > limit.as_secs_f64());
            }
            found
        });
        walk.join().unwrap_or_default()
    })
}

/// The most that one processor did so far of what fills a core, in steps a second: as bits.
static BEST: AtomicU64 = AtomicU64::new(0);

/// Share of the loop's best rate so far, and how much more both do than one: before or after
/// something, whichever is less.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct Quiet {
    two: f64,
    one: f64,
}

impl Quiet {
    fn measure() -> Option<Quiet> {
        let Pair { one: Some(one), factor: Some(two), .. } = Pair::measure() else { return None };
        let best = f64::from_bits(BEST.load(Ordering::Relaxed)).max(one);
        BEST.store(best.to_bits(), Ordering::Relaxed);
        Some(Quiet { two, one: one / best })
    }

    fn and(self, other: Quiet) -> Quiet {
        Quiet { two: self.two.min(other.two), one: self.one.min(other.one) }
    }

    /// Returns true if each processor is a core of its own, which no other guest slows down.
    fn is_quiet(self) -> bool {
        self.two >= 1.9 && self.one >= 0.95
    }

    /// Lower if more is missing.
    fn rank(self) -> f64 {
        (self.two / 1.9).min(1.0) * (self.one / 0.95).min(1.0)
    }
}

/// Runs `what` until both processors were whole cores, without another guest on their second
/// threads, or the tries are used up; returns the quietest run. With it comes how much more a bare
/// loop did on both processors than on one, before or after the run, whichever is less.
///
/// # Errors
/// Errors of `what`.
pub fn on_two_cores<T, E>(
    tries: usize,
    mut what: impl FnMut() -> Result<T, E>,
) -> Result<(T, Option<f64>), E> {
    let mut best: Option<(Quiet, T)> = None;
    for _ in 0..tries {
        let before = Quiet::measure();
        let done = what()?;
        let Some(quiet) = before.zip(Quiet::measure()).map(|(a, b)| a.and(b)) else {
            return Ok((done, None));
        };
        if best.as_ref().is_none_or(|(other, _)| quiet.rank() > other.rank()) {
            best = Some((quiet, done));
        }
        if quiet.is_quiet() {
            break;
        }
    }
    match best {
        Some((quiet, done)) => Ok((done, Some(quiet.two))),
        None => Ok((what()?, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_run_on_processors_that_there_are() {
        let time = Duration::from_millis(2);
        for what in [Bare::Dense, Bare::Chains, Bare::Memory(4096)] {
            assert!(steps(what, &[0], time).is_some_and(|rate| rate > 1e3), "{what:?}");
        }
        assert!(steps(Bare::Dense, &[CpuSet::MAX_CPU - 1], time).is_none());
        assert!(transfer([0, 1], time).is_none_or(|line| line > 1.0));
        assert!(transfer([0, CpuSet::MAX_CPU - 1], time).is_none());
        let (step, limit) = (Duration::from_micros(10), Duration::ZERO);
        let found = pauses(0, &mut [0; 4096], step, limit, time);
        assert!(found.longest > 0.0 && found.long > 0, "{found:?}");
        let mut times = 0;
        let (done, factor) = on_two_cores(5, || {
            times += 1;
            Ok::<_, std::convert::Infallible>(times)
        })
        .unwrap();
        assert!((1..=5).contains(&done) && done <= times && factor.is_none_or(|f| f > 0.0));
        let loud = Quiet { two: 1.95, one: 0.8 };
        let better = Quiet { two: 1.8, one: 1.0 };
        assert!(!loud.is_quiet() && !better.is_quiet() && better.rank() > loud.rank());
        assert!(Quiet { two: 2.0, one: 0.96 }.is_quiet());
        let pair = Pair::measure();
        assert!(pair.one.is_none_or(|rate| rate > 1.0), "{pair:?}");
        assert!(pair.factor.is_none() || pair.one.is_some(), "{pair:?}");
    }
}
