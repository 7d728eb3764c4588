//! Runs the benchmarks, and makes their report.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::collect::{Program, programs};
use crate::html;
use crate::markdown;
use crate::page::PAGES;
use crate::plots;
use crate::results::{Bench, Ran};
use crate::targets::reached;

/// Lines of a failed benchmark's output that the report keeps.
const LAST_LINES: usize = 12;
/// A file that says that no benchmark was left out.
const WHOLE: &str = "whole";

/// Runs what the words select. False if one failed.
pub fn run(out: &Path, words: &[String]) -> Result<bool> {
    let full = words.iter().any(|w| w == "--full");
    let only: Vec<&String> = words.iter().filter(|w| *w != "--full").collect();
    if let Some(option) = only.iter().find(|w| w.starts_with('-')) {
        bail!("unknown option {option}; there are --full and words to select benchmarks by");
    }
    let all = programs(&only)?;
    let results = out.join("results");
    // Results of an older run must not be taken for this one's.
    if results.exists() {
        fs::remove_dir_all(&results).with_context(|| format!("empty {}", results.display()))?;
    }
    fs::create_dir_all(&results).with_context(|| format!("make {}", results.display()))?;
    let results = results.canonicalize()?;
    if only.is_empty() {
        fs::write(results.join(WHOLE), "")?;
    }
    let start = Instant::now();
    let mut ran = Vec::new();
    for (i, program) in all.iter().enumerate() {
        eprintln!("[{}/{}] {}", i + 1, all.len(), program.name);
        let one = run_one(program, &results, full)?;
        let seconds = one.seconds;
        match &one.failed {
            None => eprintln!("[{}/{}] {}: {seconds:.0} s", i + 1, all.len(), one.name),
            Some(why) => eprintln!("[{}/{}] {} FAILED:\n{why}", i + 1, all.len(), one.name),
        }
        ran.push(one);
        fs::write(results.join("ran.json"), serde_json::to_string(&ran)?)?;
    }
    eprintln!("{} benchmarks in {:.0} s", all.len(), start.elapsed().as_secs_f64());
    report(out)
}

/// Runs one, and keeps what it prints.
fn run_one(program: &Program, results: &Path, full: bool) -> Result<Ran> {
    let start = Instant::now();
    let name = program.name.clone();
    let stdout = results.join(format!("{name}.md"));
    let mut command = Command::new(&program.executable);
    command.arg("--bench").arg("--json").arg(results.join(format!("{name}.json")));
    command.args(full.then_some("--full")).current_dir(&program.dir);
    command.env("CARGO_MANIFEST_DIR", &program.dir);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(File::create(&stdout).with_context(|| format!("write {}", stdout.display()))?)
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("start {}", program.executable.display()))?;
    let mut last: Vec<String> = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            eprintln!("      {line}");
            last.push(line);
        }
    }
    let status = child.wait()?;
    last.drain(..last.len().saturating_sub(LAST_LINES));
    let failed = (!status.success()).then(|| format!("{status}\n{}", last.join("\n")));
    Ok(Ran { name, seconds: start.elapsed().as_secs_f64(), failed })
}

/// Results of the last run.
pub struct Results {
    pub ran: Vec<Ran>,
    /// Benchmarks that did not fail; and what each printed.
    pub benches: Vec<Bench>,
    pub texts: Vec<String>,
    /// No benchmark was left out.
    pub is_whole: bool,
}

impl Results {
    /// Reads them.
    pub fn read(out: &Path) -> Result<Results> {
        let results = out.join("results");
        let text = fs::read_to_string(results.join("ran.json")).with_context(|| {
            format!("no results in {}: `make bench' makes them", results.display())
        })?;
        let ran: Vec<Ran> = serde_json::from_str(&text).context("results/ran.json")?;
        let (mut benches, mut texts) = (Vec::new(), Vec::new());
        for one in ran.iter().filter(|r| r.failed.is_none()) {
            let bench = Bench::read(&results.join(format!("{}.json", one.name)))?;
            benches.push(Bench { bench: one.name.clone(), ..bench });
            texts.push(fs::read_to_string(results.join(format!("{}.md", one.name)))?);
        }
        let is_whole = results.join(WHOLE).exists();
        Ok(Results { ran, benches, texts, is_whole })
    }
}

/// Makes the report of the results in `out`. False if a benchmark failed.
pub fn report(out: &Path) -> Result<bool> {
    let Results { ran, benches, texts, .. } = Results::read(out)?;
    let targets = reached(&benches);
    let plots = plots::all(&benches)?;
    for plot in &plots {
        fs::write(out.join(format!("{}.svg", plot.name)), plot.standalone())?;
    }
    let head = markdown::head(&ran, &benches, &targets);
    fs::write(out.join("report.md"), format!("{head}{}", texts.concat()))?;
    let all = json!({ "ran": ran, "benches": benches });
    fs::write(out.join("report.json"), serde_json::to_string_pretty(&all)? + "\n")?;
    fs::write(out.join("report.html"), html::page(&ran, &benches, &targets, &plots))?;
    println!("{head}");
    let place = out.canonicalize().unwrap_or_else(|_| out.to_owned());
    println!("The whole report: {0}/report.md, {0}/report.html", place.display());
    println!("`make bench-docs' puts its tables into {}.", PAGES.join(" and "));
    Ok(ran.iter().all(|r| r.failed.is_none()))
}
