//! Processor time of a process.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Measures which share of a processor a process uses.
pub struct CpuClock {
    pid: u32,
    began: Instant,
    used: Duration,
}

impl CpuClock {
    /// Starts to measure.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn start(pid: u32) -> Result<CpuClock> {
        Ok(CpuClock { pid, began: Instant::now(), used: used(pid)? })
    }

    /// The share in percent of one processor since the start.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn percent(&self) -> Result<f64> {
        let used = used(self.pid)?.saturating_sub(self.used);
        Ok(100.0 * used.as_secs_f64() / self.began.elapsed().as_secs_f64())
    }
}

/// Time that all threads of a process have run, in user and kernel mode.
fn used(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let ticks = parse_ticks(&stat).with_context(|| format!("{path} holds {stat:?}"))?;
    let per_second = rustix::param::clock_ticks_per_second();
    Ok(Duration::from_secs_f64(ticks as f64 / per_second as f64))
}

/// Fields 14 and 15 of proc_pid_stat(5); the name in field 2 may hold blanks and brackets.
fn parse_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 31 11 0 0 20 0 3 0 5 6 7";
        assert_eq!(parse_ticks(stat), Some(42));
        assert_eq!(parse_ticks("7 (a"), None);
    }

    #[test]
    fn a_busy_loop_is_seen() {
        let clock = CpuClock::start(std::process::id()).unwrap();
        let mut n = 0u64;
        while clock.percent().unwrap() < 5.0 {
            n = std::hint::black_box(n + 1);
        }
        assert!(CpuClock::start(u32::MAX).is_err());
    }
}
