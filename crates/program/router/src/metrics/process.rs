//! Process metrics from /proc.

use std::fs;

/// CPU time, memory and file descriptors of the process.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Process {
    pub cpu_seconds: f64,
    pub threads: u64,
    pub virtual_bytes: u64,
    pub resident_bytes: u64,
    /// Seconds since the Unix epoch.
    pub start_seconds: f64,
    pub open_fds: u64,
    pub max_fds: Option<u64>,
}

/// Reads /proc; values that it does not have are zero.
pub(super) fn read() -> Process {
    let text = |name: &str| fs::read_to_string(format!("/proc/{name}")).unwrap_or_default();
    let stat = text("self/stat");
    let fields = fields(&stat);
    let number = |at: usize| field(&fields, at);
    let hz = rustix::param::clock_ticks_per_second() as f64;
    let page = rustix::param::page_size() as u64;
    let boot = text("stat");
    let boot = boot.lines().find_map(|line| line.strip_prefix("btime "));
    let boot = boot.and_then(|seconds| seconds.trim().parse::<f64>().ok()).unwrap_or(0.0);
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    Process {
        cpu_seconds: (number(14) + number(15)) as f64 / hz,
        threads: number(20),
        virtual_bytes: number(23),
        resident_bytes: number(24) * page,
        start_seconds: boot + number(22) as f64 / hz,
        open_fds: fs::read_dir("/proc/self/fd").map_or(0, |fds| fds.count() as u64),
        max_fds: limit.current,
    }
}

/// Returns the CPU time of a thread of the process in seconds; `None` if there is no such thread.
pub(super) fn thread_seconds(tid: i32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/self/task/{tid}/stat")).ok()?;
    let fields = fields(&stat);
    let hz = rustix::param::clock_ticks_per_second() as f64;
    Some((field(&fields, 14) + field(&fields, 15)) as f64 / hz)
}

/// Splits the fields after the name in the stat line of proc(5); the name may hold any character.
fn fields(stat: &str) -> Vec<&str> {
    stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect()
}

/// Returns a field by its number in proc(5); the name is field 2.
fn field(fields: &[&str], number: usize) -> u64 {
    fields.get(number - 3).and_then(|field| field.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn this_process() {
        let process = read();
        assert!(process.resident_bytes > 1 << 20 && process.virtual_bytes > process.resident_bytes);
        assert!(process.threads >= 1 && process.open_fds >= 3);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
        let age = now - process.start_seconds;
        assert!((-2.0..86_400.0).contains(&age), "{age}");
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        assert!(thread_seconds(tid).is_some_and(|seconds| seconds <= read().cpu_seconds + 1.0));
        assert_eq!(thread_seconds(-1), None);
    }

    #[test]
    fn a_name_may_hold_anything() {
        assert_eq!(field(&fields("7 (a) b) S 1 2"), 4), 1);
        assert_eq!(field(&fields(""), 14), 0);
    }
}
