//! Flame graphs of a worker under load.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options as Folding};
use inferno::flamegraph;
use thalweg_bench_pg::Router;
use thalweg_bench_pg::paths::Case;

/// Seconds under load.
const SECONDS: u64 = 6;
/// Samples per second.
const RATE: &str = "1999";
/// Bytes of stack kept with each sample, for its callers.
const STACK: &str = "dwarf,4096";

/// Words for cases.
const CASES: [(&str, Case); 7] = [
    ("l2", Case::L2),
    ("bridge", Case::Bridge),
    ("macs", Case::Macs),
    ("ip4", Case::OneFlow),
    ("hosts", Case::HostRoutes),
    ("hops", Case::NextHops),
    ("internet", Case::Internet),
];

fn case(words: &[String]) -> Result<(&'static str, Case)> {
    let word = words.first().map_or("internet", String::as_str);
    match CASES.iter().find(|(name, _)| *name == word) {
        Some(found) => Ok(*found),
        None => {
            let known = CASES.map(|(name, _)| name).join(", ");
            bail!("there is no case {word}; there are {known}")
        }
    }
}

/// Keeps a worker busy, for a profiler.
pub fn load(words: &[String]) -> Result<()> {
    let (_, case) = case(words)?;
    let mut r = Router::on_last_core();
    case.set_up(&mut r);
    r.cli("packet-generator enable-stream");
    r.wait(Duration::from_secs(SECONDS));
    r.stop();
    Ok(())
}

/// Records a load, and draws where its worker was.
pub fn profile(out: &Path, words: &[String]) -> Result<()> {
    let (word, case) = case(words)?;
    std::fs::create_dir_all(out).with_context(|| format!("make {}", out.display()))?;
    let (data, svg) = (out.join("perf.data"), out.join("profile.svg"));
    eprintln!("profile: {}, {SECONDS} s", case.name());
    let me = std::env::current_exe().context("find this program")?;
    let status = Command::new("perf")
        .args(["record", "--quiet", "-e", "cpu-clock:u", "-F", RATE, "--call-graph", STACK, "-o"])
        .arg(&data)
        .arg("--")
        .arg(me)
        .args(["load", word])
        .status()
        .context("run perf: `scripts/setup.sh profile' installs it (Debian: linux-perf)")?;
    ensure!(status.success(), "perf record: {status}; see /proc/sys/kernel/perf_event_paranoid");
    let folded = readable(&fold(&data)?);
    // Tens of megabytes that nobody looks at again.
    std::fs::remove_file(&data).with_context(|| format!("remove {}", data.display()))?;
    // Only workers forward.
    let of_workers = |l: &&str| l.starts_with("thalweg_wk");
    let lines: Vec<&str> = folded.lines().filter(of_workers).collect();
    ensure!(!lines.is_empty(), "perf saw no worker's thread; it saw\n{folded}");
    let mut options = flamegraph::Options::default();
    options.title = format!("A worker: {}", case.name());
    options.count_name = "ns".into();
    let file = File::create(&svg).with_context(|| format!("write {}", svg.display()))?;
    let mut file = BufWriter::new(file);
    flamegraph::from_lines(&mut options, lines.iter().copied(), &mut file)
        .context("draw the flame graph")?;
    file.flush()?;
    println!("{}", svg.canonicalize()?.display());
    Ok(())
}

/// Folded lines with the names of functions as their authors know them, without the crates' hashes.
fn readable(folded: &str) -> String {
    let name = |word: &str| format!("{:#}", rustc_demangle::demangle(word)).replace(';', ",");
    let line = |line: &str| {
        let (stack, count) = line.rsplit_once(' ').unwrap_or((line, ""));
        let stack: Vec<String> = stack.split(';').map(name).collect();
        format!("{} {count}\n", stack.join(";"))
    };
    folded.lines().map(line).collect()
}

/// The samples as lines of `thread;caller;…;function count`.
fn fold(data: &Path) -> Result<String> {
    let mut script = Command::new("perf")
        .args(["script", "--no-inline", "-i"])
        .arg(data)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("run perf script")?;
    let stdout = script.stdout.take().context("perf script's output")?;
    let mut folded = Vec::new();
    Folder::from(Folding::default())
        .collapse(BufReader::new(stdout), &mut folded)
        .context("read perf script's output")?;
    let status = script.wait()?;
    ensure!(status.success(), "perf script: {status}");
    Ok(String::from_utf8_lossy(&folded).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_functions_are_readable() {
        let line = "thalweg_wk_0;_RNvC7mycrate3run;main 12\n";
        assert_eq!(readable(line), "thalweg_wk_0;mycrate::run;main 12\n");
    }

    #[test]
    fn cases_have_words() {
        assert_eq!(case(&[]).unwrap().1, Case::Internet);
        assert_eq!(case(&["l2".into()]).unwrap().1, Case::L2);
        assert!(case(&["l3".into()]).unwrap_err().to_string().contains("l2, bridge"));
    }
}
