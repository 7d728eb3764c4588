//! Processor time of a process.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Measures which share of a processor a process uses.
pub struct CpuClock {
    pid: u32,
    began: Instant,
    before: Times,
}

/// Processor time of all threads of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Time in the program itself.
    pub user: Duration,
    /// Time in the kernel on its behalf.
    pub system: Duration,
}

impl Times {
    /// Both.
    pub fn sum(&self) -> Duration {
        self.user + self.system
    }
}

impl CpuClock {
    /// Starts to measure.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn start(pid: u32) -> Result<CpuClock> {
        Ok(CpuClock { pid, began: Instant::now(), before: times(pid)? })
    }

    /// The share in percent of one processor since the start.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn percent(&self) -> Result<f64> {
        Ok(100.0 * self.used()?.sum().as_secs_f64() / self.began.elapsed().as_secs_f64())
    }

    /// The processor time since the start.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn used(&self) -> Result<Times> {
        let now = times(self.pid)?;
        Ok(Times {
            user: now.user.saturating_sub(self.before.user),
            system: now.system.saturating_sub(self.before.system),
        })
    }
}

fn times(pid: u32) -> Result<Times> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let (user, system) = parse_ticks(&stat).with_context(|| format!("{path} holds {stat:?}"))?;
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    let time = |ticks: u64| Duration::from_secs_f64(ticks as f64 / per_second);
    Ok(Times { user: time(user), system: time(system) })
}

/// Fields 14 and 15 of proc_pid_stat(5); the name in field 2 may hold blanks and brackets.
fn parse_ticks(stat: &str) -> Option<(u64, u64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Measures to the nanosecond what all threads of a process do, and how often they wake up.
pub struct ActivityClock {
    pid: u32,
    began: Instant,
    before: Activity,
}

/// Work of a process's threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Time on a processor.
    pub busy: Duration,
    /// Number of times that one has gone to sleep: as often, one was woken.
    pub sleeps: u64,
}

impl ActivityClock {
    /// Starts to measure.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn start(pid: u32) -> Result<ActivityClock> {
        Ok(ActivityClock { pid, before: activity(pid)?, began: Instant::now() })
    }

    /// The share of one processor in percent, and sleeps per second, since the start.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn rates(&self) -> Result<(f64, f64)> {
        let (now, seconds) = (activity(self.pid)?, self.began.elapsed().as_secs_f64());
        let busy = now.busy.saturating_sub(self.before.busy).as_secs_f64();
        let sleeps = now.sleeps.saturating_sub(self.before.sleeps) as f64;
        Ok((100.0 * busy / seconds, sleeps / seconds))
    }
}

/// Sums over the threads that live; one that ends in between is no longer counted.
fn activity(pid: u32) -> Result<Activity> {
    let folder = format!("/proc/{pid}/task");
    let mut all = Activity::default();
    for thread in fs::read_dir(&folder).with_context(|| format!("read {folder}"))? {
        let thread = thread?.path();
        let read = |name| fs::read_to_string(thread.join(name));
        let (Ok(schedstat), Ok(status)) = (read("schedstat"), read("status")) else { continue };
        let (busy, sleeps) = parse_activity(&schedstat, &status)
            .with_context(|| format!("{} holds {schedstat:?}, {status:?}", thread.display()))?;
        all.busy += busy;
        all.sleeps += sleeps;
    }
    Ok(all)
}

/// Nanoseconds on a processor are the first field of `schedstat`.
fn parse_activity(schedstat: &str, status: &str) -> Option<(Duration, u64)> {
    let busy = schedstat.split_whitespace().next()?.parse().ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    Some((Duration::from_nanos(busy), line.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 31 11 0 0 20 0 3 0 5 6 7";
        assert_eq!(parse_ticks(stat), Some((31, 11)));
        assert_eq!(parse_ticks("7 (a"), None);
    }

    #[test]
    fn activity_is_read_and_grows() {
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t9\n";
        assert_eq!(parse_activity("1500 2 3\n", status), Some((Duration::from_nanos(1500), 7)));
        assert_eq!(parse_activity("", status), None);
        let clock = ActivityClock::start(std::process::id()).unwrap();
        let mut n = 0u64;
        while clock.rates().unwrap().0 < 1.0 {
            n = std::hint::black_box(n + 1);
        }
        assert!(ActivityClock::start(u32::MAX).is_err());
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
