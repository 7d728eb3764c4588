//! All benchmarks in one report, and flame graphs.
//!
//! - `run [--full] [WORD…]` runs the benchmarks of the workspace, those whose names contain a word,
//!   each as a process of its own, and writes `report.md`, `report.json` and `report.html` below
//!   `target/bench`.
//! - `again` writes the report of the last run's results once more.
//! - `docs [FILE…]` puts the tables of the last run into `docs/performance.md` and
//!   `docs/performance-tables.md`, or into other pages.
//! - `profile [CASE]` writes `target/bench/profile.svg`: where a worker under load spends its time.
#![forbid(unsafe_code)]

mod collect;
mod html;
mod markdown;
mod page;
mod plots;
mod profile;
mod results;
mod run;
mod summary;
mod targets;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};

/// Directory of results: below Cargo's target directory.
fn out_dir() -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    target.join("bench")
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match act(&words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("bench: {e:#}");
            ExitCode::FAILURE
        }
    }
}

/// False if a benchmark failed.
fn act(words: &[String]) -> Result<bool> {
    let (verb, rest) = words.split_first().map_or(("", words), |(v, rest)| (v.as_str(), rest));
    match verb {
        "run" => run::run(&out_dir(), rest),
        "again" => run::report(&out_dir()),
        "docs" => {
            let named: Vec<&Path> = rest.iter().map(Path::new).collect();
            let files = if named.is_empty() { page::PAGES.map(Path::new).to_vec() } else { named };
            page::put(&out_dir(), &files).map(|()| true)
        }
        "profile" => profile::profile(&out_dir(), rest).map(|()| true),
        "load" => profile::load(rest).map(|()| true),
        _ => bail!("say run [--full] [WORD…], again, docs [FILE…], or profile [CASE]"),
    }
}
