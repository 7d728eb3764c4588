//! Random commands under random packets; see `thalweg_smoke::chaos`.

use anyhow::{Context, Result, bail};
use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use thalweg_smoke::chaos::{Plan, repeat, run, shrink};
use thalweg_testkit::{Privilege, enter_user_namespace};

/// A random operator: random commands under random packets
#[derive(Parser)]
struct Args {
    /// First seed; by default of the clock
    #[arg(long)]
    seed: Option<u64>,
    /// How long further seeds are tried after the first
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<f64>,
    /// Steps to do first, as they were printed: a file, or all of a directory
    #[arg(long, value_name = "PATH")]
    replay: Option<PathBuf>,
    /// How long a failing run is made shorter
    #[arg(long, value_name = "MINUTES", default_value_t = 5.0)]
    shrink: f64,
    /// Go on after a failing run
    #[arg(long)]
    all: bool,
    /// Do the steps several times in one router, which may not hold more memory each time; a
    /// failing run is not made shorter
    #[arg(long)]
    repeat: bool,
    /// Print each step
    #[arg(long)]
    verbose: bool,
}

fn minutes(number: f64) -> Duration {
    Duration::from_secs_f64((number * 60.0).clamp(0.0, 1e6))
}

/// A file, or those of a directory by name.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).with_context(|| path.display().to_string())?;
    let mut all =
        entries.map(|entry| entry.map(|e| e.path())).collect::<std::io::Result<Vec<_>>>()?;
    all.sort();
    Ok(all)
}

impl Args {
    /// Tries a plan; prints the shortest that still fails if it does.
    fn attempt(&self, what: &str, plan: &Plan) -> bool {
        let begun = Instant::now();
        let verbose = self.verbose;
        let mut tell = |step: &str| {
            if verbose {
                println!("  {step}");
            }
        };
        let end = match self.repeat {
            true => repeat(plan, &mut tell),
            false => run(plan, &mut tell),
        };
        let took = begun.elapsed().as_secs_f64();
        let Err(error) = end else {
            println!("{what}: passed in {took:.1} s");
            return true;
        };
        println!("{what}: failed after {took:.1} s: {error:#}");
        if self.shrink > 0.0 && !self.repeat {
            let least = shrink(plan, minutes(self.shrink), &mut |line| println!("  {line}"));
            let why = run(&least, &mut |_| {}).err().map(|e| format!("{e:#}")).unwrap_or_default();
            println!("{what}: these steps fail (`--replay FILE' repeats them):\n{least}{why}");
        }
        false
    }

    fn run(&self) -> Result<bool> {
        // First thing: a process with several threads may not.
        match Privilege::check() {
            Privilege::Root => {}
            Privilege::UserNamespaces => enter_user_namespace()?,
            Privilege::None(why) => bail!("{why}"),
        }
        let mut passed = true;
        for file in self.replay.as_deref().map(files).transpose()?.unwrap_or_default() {
            let name = file.display().to_string();
            let text = std::fs::read_to_string(&file).with_context(|| name.clone())?;
            passed &= self.attempt(&name, &Plan::parse(&text)?);
        }
        if self.replay.is_some() && self.seed.is_none() {
            return Ok(passed);
        }
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut seed = self.seed.unwrap_or(clock.as_secs() % 1_000_000 * 10);
        let until = Instant::now() + minutes(self.minutes.unwrap_or(0.0));
        loop {
            passed &= self.attempt(&format!("seed {seed}"), &Plan::of_seed(seed)?);
            if Instant::now() >= until || (!passed && !self.all) {
                return Ok(passed);
            }
            seed += 1;
        }
    }
}

fn main() -> ExitCode {
    match Args::parse().run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("thalweg-chaos: {error:#}");
            ExitCode::FAILURE
        }
    }
}
