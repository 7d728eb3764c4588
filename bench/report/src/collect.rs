//! The benchmarks of the workspace, built.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// A benchmark, ready to run.
#[derive(Clone, Debug)]
pub struct Program {
    pub name: String,
    pub executable: PathBuf,
    /// The package's folder, in which Cargo would run it.
    pub dir: PathBuf,
}

/// These come first, in this order; others follow by name.
const ORDER: [&str; 2] = ["forwarding", "instructions"];

/// Packages outside the folder `bench` whose benchmarks write the same results.
const OTHERS: [&str; 2] = ["thalweg-conntrack", "thalweg-feat-flow"];

/// Builds all benchmarks in the folder `bench`, and those of other packages, and lists them.
pub fn programs() -> Result<Vec<Program>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let out = Command::new(cargo)
        .args(["bench", "-p", "thalweg-bench-*", "--bench", "*", "--no-run"])
        .args(OTHERS.iter().flat_map(|package| ["-p", package]))
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .context("run cargo")?;
    ensure!(out.status.success(), "the benchmarks could not be built");
    let text = String::from_utf8_lossy(&out.stdout);
    let mut all: Vec<Program> =
        text.lines().filter_map(|line| program(&serde_json::from_str(line).ok()?)).collect();
    let rank = |name: &str| ORDER.iter().position(|n| *n == name).unwrap_or(ORDER.len());
    all.sort_by(|a, b| (rank(&a.name), &a.name).cmp(&(rank(&b.name), &b.name)));
    Ok(all)
}

/// A message of Cargo's, if it tells of such a benchmark.
fn program(message: &Value) -> Option<Program> {
    let is_bench = message["target"]["kind"].as_array()?.iter().any(|k| k == "bench");
    let manifest = PathBuf::from(message["manifest_path"].as_str()?);
    let dir = manifest.parent()?.to_owned();
    let name = message["target"]["name"].as_str()?;
    let package = message["package_id"].as_str().unwrap_or_default();
    let name = if dir.parent()?.file_name()? == "bench" {
        name.to_owned()
    } else if OTHERS.iter().any(|other| package.contains(&format!("#{other}@"))) {
        // Which may be a name of the folder `bench`, too.
        format!("{}-{name}", dir.file_name()?.to_str()?)
    } else {
        return None;
    };
    is_bench.then_some(Program { name, executable: message["executable"].as_str()?.into(), dir })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn benchmarks_are_told_from_other_artifacts() {
        let message = |kind: &str, manifest: &str| {
            json!({"reason": "compiler-artifact", "manifest_path": manifest,
                   "target": {"name": "x", "kind": [kind]}, "executable": "/t/x-1"})
        };
        let found = program(&message("bench", "/w/bench/pg/Cargo.toml")).unwrap();
        assert_eq!((found.name.as_str(), found.dir), ("x", PathBuf::from("/w/bench/pg")));
        assert!(program(&message("bin", "/w/bench/pg/Cargo.toml")).is_none());
        assert!(program(&message("bench", "/w/crates/tables/Cargo.toml")).is_none());
        let mut other = message("bench", "/w/crates/conntrack/Cargo.toml");
        assert!(program(&other).is_none());
        other["package_id"] = json!("path+file:///w/crates/conntrack#thalweg-conntrack@0.1.0");
        assert_eq!(program(&other).unwrap().name, "conntrack-x");
        assert!(program(&json!({"reason": "build-finished"})).is_none());
    }
}
