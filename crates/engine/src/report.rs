//! Helpers of the show commands: numbers in VPP's formats, and the sampler behind the "10 sec"
//! rates.

use std::collections::VecDeque;
use std::time::{Duration, Instant};
pub(crate) use thalweg_graph::control::since;
use thalweg_graph::control::{Baseline, Control};
use thalweg_graph::decl::{Kind, NodeId};
use thalweg_graph::loop_times::LoopCounts;

/// Number of samples kept: one a second.
const SAMPLES: usize = 11;

/// Centres `text` in `width` columns, an odd blank to the left, as VPP's headings are.
pub(crate) fn centre(text: &str, width: usize) -> String {
    let spare = width.saturating_sub(text.chars().count());
    let left = spare.div_ceil(2);
    format!("{:left$}{text}{:2$}", "", "", spare - left)
}

/// Centres like [`centre`], with at least one blank on either side, so that columns stay apart.
pub(crate) fn centre_apart(text: &str, width: usize) -> String {
    let spare = width.saturating_sub(text.chars().count());
    let left = spare.div_ceil(2).max(1);
    format!("{:left$}{text}{:2$}", "", "", spare.saturating_sub(left).max(1))
}

/// Joins cells to a line without trailing blanks.
pub(crate) fn line(cells: impl IntoIterator<Item = String>) -> String {
    let text: String = cells.into_iter().collect();
    text.trim_end().to_owned()
}

/// A snapshot of a thread's counters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) at: Instant,
    pub(crate) loops: u64,
    /// Calls of internal nodes and the packets that they processed.
    pub(crate) calls: u64,
    pub(crate) vectors: u64,
    /// Packets from devices.
    pub(crate) rx: u64,
}

/// Rates of a thread per second, averaged over the last ten.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Packets per call of internal nodes.
    pub vector_rate: f64,
    /// Loops per second.
    pub loops: f64,
    /// Packets received per second.
    pub rx: f64,
}

/// Samples all threads' counters once a second.
#[derive(Default, Debug)]
pub(crate) struct Sampler {
    /// Samples per thread (main first), newest last.
    rings: Vec<VecDeque<Sample>>,
}

impl Sampler {
    /// Inserts the sampler.
    pub(crate) fn init(c: &mut Control) {
        c.insert(Sampler::default());
    }

    /// Starts the sampling.
    pub(crate) fn start(c: &mut Control) {
        Sampler::sample(c);
        c.every(Duration::from_secs(1), |c| {
            Sampler::sample(c);
            true
        });
    }

    fn sample(c: &mut Control) {
        let state = c.state::<Sampler>();
        let now: Vec<Sample> = (0..=c.workers()).map(|t| look(c, t)).collect();
        state.borrow_mut().enter(&now);
    }

    fn enter(&mut self, now: &[Sample]) {
        self.rings.resize_with(now.len(), VecDeque::new);
        for (ring, sample) in self.rings.iter_mut().zip(now) {
            if ring.len() == SAMPLES {
                ring.pop_front();
            }
            ring.push_back(*sample);
        }
    }

    /// Returns a thread's rates over the last ten seconds (or since start, if that is later).
    pub(crate) fn rates(&self, thread: usize, now: Sample) -> Rates {
        let Some(old) = self.rings.get(thread).and_then(VecDeque::front) else {
            return Rates::default();
        };
        let seconds = now.at.saturating_duration_since(old.at).as_secs_f64();
        let calls = now.calls.saturating_sub(old.calls);
        let vectors = now.vectors.saturating_sub(old.vectors);
        let per_second = |now: u64, old: u64| match seconds > 0.0 {
            true => now.saturating_sub(old) as f64 / seconds,
            false => 0.0,
        };
        Rates {
            vector_rate: if calls == 0 { 0.0 } else { vectors as f64 / calls as f64 },
            loops: per_second(now.loops, old.loops),
            rx: per_second(now.rx, old.rx),
        }
    }
}

/// Returns the rates of a thread; thread 0 is main, which forwards nothing.
pub fn rates(c: &Control, thread: usize) -> Rates {
    let sampler = c.state::<Sampler>();
    sampler.borrow().rates(thread, look(c, thread))
}

/// Returns a thread's counters; thread 0 is main.
pub(crate) fn look(c: &Control, thread: usize) -> Sample {
    let at = Instant::now();
    let Some(worker) = thread.checked_sub(1) else {
        return Sample { at, loops: c.main_stats().loops, calls: 0, vectors: 0, rx: 0 };
    };
    let stats = c.worker_stats(worker);
    let (mut calls, mut vectors) = (0, 0);
    for (i, entry) in c.nodes().iter().enumerate() {
        if entry.kind == Kind::Internal {
            let n = stats.node(NodeId(i as u16));
            calls += n.calls.get();
            vectors += n.vectors.get();
        }
    }
    let totals = &stats.totals;
    Sample { at, loops: totals.loops.get(), calls, vectors, rx: totals.rx.get() }
}

/// Returns a worker's packets received, sent, dropped and delivered, and its loops, never cleared.
pub(crate) fn total_counts(c: &Control, worker: usize) -> [u64; 5] {
    let t = &c.worker_stats(worker).totals;
    [t.rx.get(), t.tx.get(), t.dropped.get(), t.delivered.get(), t.loops.get()]
}

/// Stores the runtime counters as the baseline, so that `show runtime` starts at zero.
pub(crate) fn clear_runtime(c: &mut Control) {
    let workers = c.workers();
    let nodes = (0..c.nodes().len() as u16).map(NodeId);
    c.baseline = Baseline {
        nodes: (0..workers)
            .map(|w| nodes.clone().map(|id| c.node_counts_raw(w, id)).collect())
            .collect(),
        totals: (0..workers).map(|w| total_counts(c, w)).collect(),
        main: c.main_stats(),
        loops: (0..=workers).map(|t| c.loop_times(t).read()).collect(),
        long_loops: (0..workers).map(|w| c.worker_stats(w).long_loops.read()).collect(),
        runtime_since: Some(Instant::now()),
        ..std::mem::take(&mut c.baseline)
    };
    c.loop_times(0).clear_longest();
}

/// Returns the durations of a thread's loops since the last clear; thread 0 is main.
pub(crate) fn loop_counts(c: &Control, thread: usize) -> LoopCounts {
    let now = c.loop_times(thread).read();
    c.baseline.loops.get(thread).map_or_else(|| now.clone(), |base| now.since(base))
}

/// Returns the own time of a worker's long loops since the last clear.
pub(crate) fn long_loop_counts(c: &Control, worker: usize) -> LoopCounts {
    let now = c.worker_stats(worker).long_loops.read();
    c.baseline.long_loops.get(worker).map_or_else(|| now.clone(), |base| now.since(base))
}

/// Returns an error counter's value over all workers since the last clear.
pub(crate) fn error_count(c: &Control, error: usize) -> u64 {
    (0..c.workers()).map(|w| c.error_count(w, error as u32)).sum()
}

/// Returns an error's text in traces.
/// Returns a drop reason in the form of `show errors`: its node and its text.
pub fn error_text(c: &Control, error: u32) -> String {
    match c.errors().get(error as usize) {
        Some((node, decl)) => format!("{}: {}", c.nodes()[node.0 as usize].name, decl.text),
        None => format!("error {error}"),
    }
}

/// Processor and scheduling policy of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scheduling {
    pub(crate) cpu: Option<usize>,
    pub(crate) policy: String,
}

/// Reads `/proc/self/task/<tid>/stat`; all fields are unknown if that fails.
pub(crate) fn scheduling(tid: i32) -> Scheduling {
    let text = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat"));
    text.map(|t| parse_stat(&t)).unwrap_or_default()
}

/// Parses the processor, priority and policy (fields 39 to 41) of proc(5)'s stat line.
fn parse_stat(text: &str) -> Scheduling {
    // The name, in parentheses, may hold anything.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |i: usize| fields.get(i - 3).and_then(|f| f.parse::<usize>().ok());
    let name = match number(41) {
        Some(0) => "other",
        Some(1) => "fifo",
        Some(2) => "rr",
        Some(3) => "batch",
        Some(5) => "idle",
        Some(6) => "deadline",
        _ => "unknown",
    };
    Scheduling { cpu: number(39), policy: format!("{name} ({})", number(40).unwrap_or(0)) }
}

/// Returns a number from a CPU's topology directory in sysfs: `core_id`, `physical_package_id`.
pub(crate) fn topology(cpu: usize, what: &str) -> Option<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{what}");
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn centring() {
        assert_eq!(centre("Count", 10), "   Count  ");
        assert_eq!(centre("long", 2), "long");
        assert_eq!(centre_apart("ab", 2), " ab ");
        assert_eq!(centre_apart("ab", 6), "  ab  ");
    }

    #[test]
    fn ten_seconds_slide() {
        let start = Instant::now();
        let at = |s: u64| Sample {
            at: start + Duration::from_secs(s),
            loops: 100 * s,
            calls: 10 * s,
            vectors: 40 * s,
            rx: 7 * s,
        };
        let mut sampler = Sampler::default();
        assert_eq!(sampler.rates(0, at(0)), Rates::default());
        for s in 0..30 {
            sampler.enter(&[at(s)]);
        }
        assert_eq!(sampler.rings[0].len(), SAMPLES);
        assert_eq!(sampler.rings[0][0].loops, 1900);
        assert_eq!(sampler.rates(0, at(29)), Rates { vector_rate: 4.0, loops: 100.0, rx: 7.0 });
        let idle = Sample { at: start + Duration::from_secs(49), ..at(19) };
        assert_eq!(sampler.rates(0, idle), Rates::default());
        assert_eq!(sampler.rates(7, at(29)), Rates::default());
    }

    #[test]
    fn a_stat_line_gives_cpu_and_policy() {
        let numbers: Vec<String> = (4..=52).map(|n| n.to_string()).collect();
        let text = format!("77 (a) b) S {}", numbers.join(" "));
        let want = Scheduling { cpu: Some(39), policy: "unknown (40)".into() };
        assert_eq!(parse_stat(&text), want);
        assert_eq!(parse_stat(""), Scheduling { cpu: None, policy: "unknown (0)".into() });
        let me = scheduling(rustix::thread::gettid().as_raw_nonzero().get());
        assert!(me.cpu.is_some() && me.policy.starts_with("other"), "{me:?}");
    }
}
