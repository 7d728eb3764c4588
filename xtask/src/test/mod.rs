//! Every test of the project, in two steps: all that is tested is built, once; then test programs
//! and scenarios run side by side, each with a deadline, and those that measure run alone.

mod build;
mod job;
mod phases;
mod report;
mod schedule;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use job::Job;
use report::Report;

/// Options of `xtask test`.
#[derive(clap::Args)]
pub struct Options {
    /// Phases (unit, doc, smoke, levels, papi, loom, psample, guard, fuzz, aarch64) or parts of
    /// tests' names; without any, the whole list runs.
    words: Vec<String>,
    /// The list of what takes long, which the other leaves out.
    #[arg(long)]
    long: bool,
    /// Jobs at a time.
    #[arg(long)]
    jobs: Option<usize>,
    /// How often to run all of it.
    #[arg(long, default_value_t = 1)]
    repeat: usize,
    /// Keep all processors busy with other things at the same time.
    #[arg(long)]
    busy: bool,
    /// Keep the namespaces of a failed scenario, and say how to enter them; one test at a time,
    /// without deadlines.
    #[arg(long)]
    pause: bool,
    /// Only list what would run.
    #[arg(long)]
    list: bool,
}

/// Directory of failed tests' logs, below cargo's target directory.
const LOGS: &str = "test-logs";

/// Builds and runs; whether all passed.
pub fn run(options: &Options) -> Result<bool> {
    let root = crate::root()?;
    let phases = phases::chosen(&options.words, options.long)?;
    let begun = Instant::now();
    let mut jobs = Vec::new();
    for phase in &phases.names {
        let start = Instant::now();
        println!("== build {phase}");
        jobs.extend(phases::build(&root, phase, phases.may_take_long())?);
        println!("== build {phase}: {} s", start.elapsed().as_secs());
    }
    jobs.retain(|job| phases.takes(job));
    let jobs = schedule::spread(jobs);
    ensure!(!jobs.is_empty(), "no test has such a name");
    let names: BTreeSet<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    ensure!(names.len() == jobs.len(), "two tests have one name");
    if options.list {
        names.iter().for_each(|name| println!("{name}"));
        return Ok(true);
    }
    println!("== built in {} s", begun.elapsed().as_secs());
    let mut passed = true;
    for round in 1..=options.repeat {
        if options.repeat > 1 {
            println!("== round {round} of {}", options.repeat);
        }
        passed &= run_round(options, &jobs)?;
    }
    println!("== all of it took {} s", begun.elapsed().as_secs());
    Ok(passed)
}

fn run_round(options: &Options, jobs: &[Job]) -> Result<bool> {
    let logs = target().join(LOGS);
    fs::create_dir_all(&logs).with_context(|| format!("make {}", logs.display()))?;
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    // Scenarios mostly wait.
    let width = if options.pause { 1 } else { options.jobs.unwrap_or(processors * 2) };
    let mut report = Report::new(jobs.len());
    let mut all = || {
        schedule::run_all(jobs, width, options.pause, &logs, |job, outcome| {
            report.ended(job, &outcome);
        });
    };
    if options.busy {
        schedule::beside_busy_loops(all)
    } else {
        all()
    }
    Ok(report.finish())
}

/// Cargo's target directory.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from)
}
