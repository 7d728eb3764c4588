//! The machine that figures come from.

use std::fmt;
use std::fs;

use serde::Serialize;
use thalweg_graph::clock;

/// What there is to know about a machine when comparing figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// The processor's model.
    pub cpu: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// Rate of the time-stamp counter, in MHz.
    pub tsc_mhz: f64,
    /// Release of the kernel.
    pub kernel: String,
    /// When transparent huge pages are given: `always`, `madvise` or `never`.
    pub huge_pages: String,
    /// Main memory in GiB.
    pub memory_gib: f64,
    /// Whether it is a virtual machine.
    pub hypervisor: bool,
}

impl Machine {
    /// Looks at this machine; what it does not tell is `unknown`. Takes about 20 ms.
    pub fn here() -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let huge = read("/sys/kernel/mm/transparent_hugepage/enabled");
        Machine {
            cpu: field(&cpuinfo, "model name").unwrap_or("unknown").to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            tsc_mhz: (clock::hz() / 1e5).round() / 10.0,
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            huge_pages: chosen(&huge).unwrap_or("unknown").to_owned(),
            memory_gib: memory_gib(&read("/proc/meminfo")),
            hypervisor: field(&cpuinfo, "flags")
                .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.hypervisor { " of a virtual machine" } else { "" };
        write!(
            f,
            "{} ({} cores{what}, time-stamp counter {:.1} MHz), {:.0} GiB, Linux {}, transparent \
             huge pages: {}",
            self.cpu, self.cores, self.tsc_mhz, self.memory_gib, self.kernel, self.huge_pages
        )
    }
}

/// The value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

/// The bracketed one of several words.
fn chosen(text: &str) -> Option<&str> {
    text.split_once('[')?.1.split_once(']').map(|(word, _)| word)
}

fn memory_gib(meminfo: &str) -> f64 {
    let kib = field(meminfo, "MemTotal").and_then(|v| v.split_whitespace().next()?.parse().ok());
    (kib.unwrap_or(0.0) / 1_048_576.0 * 10.0_f64).round() / 10.0
}

/// Processor time that the hypervisor gave to others, from a moment on.
#[derive(Clone, Copy, Debug)]
pub struct Steal {
    stolen: u64,
    all: u64,
}

impl Steal {
    /// Begins to count.
    pub fn start() -> Steal {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let (stolen, all) = parse_stat(&stat).unwrap_or((0, 0));
        Steal { stolen, all }
    }

    /// The stolen share of all processors' time since, in percent.
    pub fn percent(&self) -> f64 {
        let now = Steal::start();
        let all = now.all.saturating_sub(self.all).max(1);
        100.0 * now.stolen.saturating_sub(self.stolen) as f64 / all as f64
    }
}

/// Stolen ticks and all ticks, of proc_stat(5)'s first line; guests' time is in users' already.
fn parse_stat(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|t| t.parse().ok()).collect();
    Some((*ticks.get(7)?, ticks.iter().sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel_are_read() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU: X\nflags\t: fpu hypervisor\n";
        assert_eq!(field(cpuinfo, "model name"), Some("Some CPU: X"));
        assert_eq!(field("", "model name"), None);
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        assert_eq!(memory_gib("MemTotal:       25165824 kB\n"), 24.0);
        assert_eq!(parse_stat("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1"), Some((8, 36)));
        assert_eq!(parse_stat("cpu  1 2"), None);
    }

    #[test]
    fn this_machine_tells() {
        let here = Machine::here();
        assert!(here.cores > 0 && here.tsc_mhz > 100.0, "{here:?}");
        assert!(here.to_string().contains("Linux"), "{here}");
        assert!((0.0..=100.0).contains(&Steal::start().percent()));
    }
}
