//! Reports of jobs as they end, and of all of them together.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use super::job::{Job, Outcome};

/// Lines of a failed job's log that are printed; all of it stays in the file.
const TAIL: usize = 400;
/// Number of the slowest that are listed.
const SLOWEST: usize = 10;

/// Progress of a round of jobs.
pub struct Report {
    start: Instant,
    total: usize,
    ended: Vec<(Duration, String)>,
    failed: Vec<String>,
    /// Tests, of which a job may be many.
    passed_tests: u64,
    failed_tests: u64,
}

impl Report {
    pub fn new(total: usize) -> Report {
        Report {
            start: Instant::now(),
            total,
            ended: Vec::new(),
            failed: Vec::new(),
            passed_tests: 0,
            failed_tests: 0,
        }
    }

    /// Prints how a job went; its log goes unless it failed.
    pub fn ended(&mut self, job: &Job, outcome: &Outcome) {
        self.ended.push((outcome.took, job.name.clone()));
        let log = fs::read(&outcome.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let (passed, failed) = counts(&log).unwrap_or((1, 0));
        let verdict = if outcome.failure.is_some() { "FAILED" } else { "ok" };
        let at = self.ended.len();
        let seconds = outcome.took.as_secs_f64();
        println!("[{at:4}/{}] {verdict:6} {seconds:6.1} s  {}", self.total, job.name);
        let Some(failure) = &outcome.failure else {
            self.passed_tests += passed;
            // The log is not needed any more.
            let _ = fs::remove_file(&outcome.log);
            return;
        };
        self.failed_tests += failed.max(1);
        self.passed_tests += if failed > 0 { passed } else { 0 };
        let lines: Vec<&str> = log.lines().collect();
        let skipped = lines.len().saturating_sub(TAIL);
        println!("--- {}: {failure}", job.name);
        if skipped > 0 {
            println!("--- {skipped} lines before these are in {}", outcome.log.display());
        }
        lines[skipped..].iter().for_each(|line| println!("{line}"));
        println!("--- end of {}; log: {}", job.name, outcome.log.display());
        self.failed.push(job.name.clone());
    }

    /// Prints the sum; whether all passed.
    pub fn finish(mut self) -> bool {
        self.ended.sort_by_key(|(took, _)| std::cmp::Reverse(*took));
        println!(
            "\nThe slowest of {} jobs, which took {} s together:",
            self.total,
            self.start.elapsed().as_secs()
        );
        for (took, name) in self.ended.iter().take(SLOWEST) {
            println!("{:8.1} s  {name}", took.as_secs_f64());
        }
        println!("\nSeconds by phase, of jobs side by side:");
        for (phase, took) in by_phase(&self.ended) {
            println!("{:8.1} s  {phase}", took.as_secs_f64());
        }
        if !self.failed.is_empty() {
            println!("\nFailed:");
            for name in &self.failed {
                println!("    make test ONLY='{name}'");
            }
        }
        println!("\n{} passed, {} failed", self.passed_tests, self.failed_tests);
        self.failed.is_empty()
    }
}

/// Times of jobs, summed up by phase.
fn by_phase(ended: &[(Duration, String)]) -> BTreeMap<&str, Duration> {
    let mut phases = BTreeMap::new();
    for (took, name) in ended {
        let phase = name.split('/').next().unwrap_or(name);
        *phases.entry(phase).or_default() += *took;
    }
    phases
}

/// Returns the numbers of tests that passed and failed, if the log is that of such a program.
fn counts(log: &str) -> Option<(u64, u64)> {
    let mut sum = None;
    for line in log.lines().filter_map(|line| line.strip_prefix("test result: ")) {
        let count = |word| {
            let part = line.split([';', '.']).find(|part| part.trim().ends_with(word))?;
            part.trim().strip_suffix(word)?.trim().parse::<u64>().ok()
        };
        let (passed, failed) = sum.unwrap_or((0, 0));
        sum = Some((passed + count("passed")?, failed + count("failed")?));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_have_the_sums_of_their_jobs() {
        let ended = ["unit/a", "smoke/a", "unit/b/c"].map(|n| (Duration::from_secs(2), n.into()));
        let sums = [("smoke", Duration::from_secs(2)), ("unit", Duration::from_secs(4))];
        assert_eq!(by_phase(&ended), sums.into());
    }

    #[test]
    fn tests_of_a_program_are_counted() {
        let line = "test result: ok. 12 passed; 1 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.51s";
        assert_eq!(counts(line), Some((12, 1)));
        assert_eq!(counts(&format!("x\n{line}\n\n{line}\n")), Some((24, 2)));
        assert_eq!(counts("nothing of the kind"), None);
    }
}
