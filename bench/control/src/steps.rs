//! Longest work of the main thread on one thing while clients ask for much.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use rustix::time::{ClockId, Timespec, clock_gettime};
use thalweg_graph::Control;

/// One stretch of this thread's work, by its own processor time: others on a busy machine do not
/// count, nor does the time they take from it.
pub struct Slice(Timespec);

impl Slice {
    /// Begins one.
    pub fn begin() -> Slice {
        Slice(clock_gettime(ClockId::ThreadCPUTime))
    }

    /// Seconds so far.
    pub fn seconds(&self) -> f64 {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        (now.tv_sec - self.0.tv_sec) as f64 + (now.tv_nsec - self.0.tv_nsec) as f64 / 1e9
    }
}

/// A turn of the main loop that takes no longer, in seconds, has done nothing: it is time to wait.
const IDLE: f64 = 20e-6;

/// Duration of a task.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// Seconds.
    pub seconds: f64,
    /// Processor time of the longest step of the main thread, in seconds.
    pub longest: f64,
    /// Longest step by the clock on the wall, with what others took of it.
    pub longest_wall: f64,
}

/// Runs the router's main loop while another thread does `work`.
///
/// # Errors
/// If that fails.
pub fn during<T: Send + 'static>(
    c: &mut Control,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<(T, Took)> {
    let begin = Instant::now();
    let thread = std::thread::spawn(work);
    let (mut longest, mut longest_wall): (f64, f64) = (0.0, 0.0);
    while !thread.is_finished() {
        let (slice, at) = (Slice::begin(), Instant::now());
        let next = thalweg_program_router::run::poll(c);
        c.run_once(Some(Duration::ZERO));
        longest_wall = longest_wall.max(at.elapsed().as_secs_f64());
        let took = slice.seconds();
        longest = longest.max(took);
        if took > IDLE {
            continue;
        }
        let most = Duration::from_millis(2);
        let rest = next.map_or(most, |at| at.saturating_duration_since(Instant::now()).min(most));
        let slice = Slice::begin();
        c.run_once(Some(rest));
        longest = longest.max(slice.seconds());
    }
    let seconds = begin.elapsed().as_secs_f64();
    let done = thread.join().map_err(|_| anyhow!("the client's thread panicked"))?;
    Ok((done?, Took { seconds, longest, longest_wall }))
}
