//! The machine that figures come from.

use std::fmt;
use std::fs;

use serde::Serialize;
use thalweg_graph::clock;

/// Properties of a machine that comparisons of figures need.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// The processor: its name, and its family and model if they have numbers, as a virtual
    /// machine's name may mean several kinds.
    pub cpu: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// Rate of the time-stamp counter, in MHz.
    pub tsc_mhz: f64,
    /// Release of the kernel.
    pub kernel: String,
    /// Policy for transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: String,
    /// Main memory in GiB.
    pub memory_gib: f64,
    /// True on a virtual machine.
    pub hypervisor: bool,
}

impl Machine {
    /// Describes this machine; figures that it does not report are `unknown`. Takes about 20 ms.
    pub fn here() -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let huge = read("/sys/kernel/mm/transparent_hugepage/enabled");
        Machine {
            cpu: processor(&cpuinfo),
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

fn processor(cpuinfo: &str) -> String {
    let name = field(cpuinfo, "model name").unwrap_or("unknown");
    match (field(cpuinfo, "cpu family"), field(cpuinfo, "model")) {
        (Some(family), Some(model)) => format!("{name}, family {family} model {model}"),
        _ => name.to_owned(),
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

/// Time that all processors have used since a moment, in the kernel's ticks.
#[derive(Clone, Copy, Debug)]
pub struct Processors {
    ticks: [u64; 8],
}

/// Seconds that processors spent in some time, summed over all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Doing anything.
    pub busy: f64,
    /// Busy in programs (not in the kernel on their behalf).
    pub user: f64,
    /// Busy in software interrupts, in which the kernel receives and forwards.
    pub softirq: f64,
    /// Given to others by the hypervisor.
    pub stolen: f64,
    /// All of them together, idle ones too.
    pub all: f64,
}

impl Processors {
    /// Begins to count. Counters that the kernel lacks are zero.
    pub fn start() -> Processors {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        Processors { ticks: parse_stat(&stat).unwrap_or_default() }
    }

    /// Time that they have used since.
    pub fn usage(&self) -> Usage {
        let now = Processors::start();
        let hz = rustix::param::clock_ticks_per_second() as f64;
        let since: Vec<f64> = now
            .ticks
            .iter()
            .zip(&self.ticks)
            .map(|(now, then)| now.saturating_sub(*then) as f64 / hz)
            .collect();
        // user nice system idle iowait irq softirq steal
        let all = since.iter().sum();
        let (idle, softirq, stolen) = (since[3] + since[4], since[6], since[7]);
        Usage { busy: all - idle - stolen, user: since[0] + since[1], softirq, stolen, all }
    }

    /// The share of their time that the hypervisor gave to others since, in percent.
    pub fn stolen_percent(&self) -> f64 {
        let usage = self.usage();
        if usage.all > 0.0 { 100.0 * usage.stolen / usage.all } else { 0.0 }
    }
}

/// The first eight columns of proc_stat(5)'s first line; guests' time is in users' already.
fn parse_stat(stat: &str) -> Option<[u64; 8]> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|t| t.parse().ok()).collect();
    ticks.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel_are_read() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU: X\nflags\t: fpu hypervisor\n";
        assert_eq!(field(cpuinfo, "model name"), Some("Some CPU: X"));
        assert_eq!(field("", "model name"), None);
        assert_eq!(processor(cpuinfo), "Some CPU: X");
        let numbered = "cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n";
        assert_eq!(processor(numbered), "AMD EPYC, family 25 model 17");
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        assert_eq!(memory_gib("MemTotal:       25165824 kB\n"), 24.0);
        let ticks = Some([1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(parse_stat("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1"), ticks);
        assert_eq!(parse_stat("cpu  1 2"), None);
    }

    #[test]
    fn this_machine_tells() {
        let here = Machine::here();
        assert!(here.cores > 0 && here.tsc_mhz > 100.0, "{here:?}");
        assert!(here.to_string().contains("Linux"), "{here}");
        let before = Processors::start();
        assert!((0.0..=100.0).contains(&before.stolen_percent()));
        let usage = before.usage();
        assert!(usage.busy >= usage.softirq && usage.all >= usage.busy, "{usage:?}");
    }
}
