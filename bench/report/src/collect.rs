//! The benchmarks of the workspace, built.

use std::path::{Path, PathBuf};
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

/// A benchmark that Cargo knows.
#[derive(Debug, PartialEq)]
struct Target {
    name: String,
    package: String,
    bench: String,
    manifest: PathBuf,
}

/// Builds the benchmarks in the folder `bench`, and those of other packages, whose names contain
/// one of the words, or all if there are none, and lists them.
pub fn programs(words: &[&String]) -> Result<Vec<Program>> {
    let all = select(known()?, words)?;
    let mut args = vec!["bench", "--no-run", "--message-format=json-render-diagnostics"];
    for target in &all {
        args.extend(["-p", &target.package, "--bench", &target.bench]);
    }
    let text = cargo(&args)?;
    let messages: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut programs: Vec<Program> =
        messages.iter().filter_map(|message| program(message, &all)).collect();
    let rank = |name: &str| ORDER.iter().position(|n| *n == name).unwrap_or(ORDER.len());
    programs.sort_by(|a, b| (rank(&a.name), &a.name).cmp(&(rank(&b.name), &b.name)));
    Ok(programs)
}

/// All targets.
fn known() -> Result<Vec<Target>> {
    let text = cargo(&["metadata", "--no-deps", "--format-version=1"])?;
    Ok(targets(&serde_json::from_str(&text).context("read what cargo metadata says")?))
}

/// Targets whose names contain a word. A word that is in none is a mistake.
fn select(all: Vec<Target>, words: &[&String]) -> Result<Vec<Target>> {
    for word in words {
        let names = || all.iter().map(|t| &*t.name).collect::<Vec<_>>().join(" ");
        let found = all.iter().any(|t| t.name.contains(*word));
        ensure!(found, "no benchmark's name contains {word:?}; there are: {}", names());
    }
    let wanted = |t: &Target| words.is_empty() || words.iter().any(|word| t.name.contains(*word));
    Ok(all.into_iter().filter(wanted).collect())
}

/// Output of a Cargo command.
fn cargo(args: &[&str]) -> Result<String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let out =
        Command::new(cargo).args(args).stderr(Stdio::inherit()).output().context("run cargo")?;
    ensure!(out.status.success(), "cargo {} failed: the benchmarks could not be built", args[0]);
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// The benchmarks of a workspace.
fn targets(metadata: &Value) -> Vec<Target> {
    let array = |v: &Value| v.as_array().cloned().unwrap_or_default();
    let mut all = Vec::new();
    for package in array(&metadata["packages"]) {
        for target in array(&package["targets"]).iter().filter(|t| is_bench(t)) {
            all.extend(named(&package, target));
        }
    }
    all
}

fn named(package: &Value, target: &Value) -> Option<Target> {
    let manifest = PathBuf::from(package["manifest_path"].as_str()?);
    let (package, bench) = (package["name"].as_str()?, target["name"].as_str()?);
    let dir = manifest.parent()?;
    let name = if dir.parent()?.file_name()? == "bench" {
        bench.to_owned()
    } else if OTHERS.contains(&package) {
        // Another crate's benchmark may have the name of one in the folder `bench`.
        format!("{}-{bench}", dir.file_name()?.to_str()?)
    } else {
        return None;
    };
    Some(Target { name, package: package.into(), bench: bench.into(), manifest })
}

fn is_bench(target: &Value) -> bool {
    target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|k| k == "bench"))
}

/// A message of Cargo's, if it tells of one of these.
fn program(message: &Value, all: &[Target]) -> Option<Program> {
    let (target, manifest) = (&message["target"], message["manifest_path"].as_str()?);
    let of = |t: &&Target| target["name"] == *t.bench && t.manifest == Path::new(manifest);
    let found = all.iter().filter(|_| is_bench(target)).find(of)?;
    Some(Program {
        name: found.name.clone(),
        executable: message["executable"].as_str()?.into(),
        dir: found.manifest.parent()?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(name: &str, dir: &str, kind: &str) -> Value {
        json!({"name": name, "manifest_path": format!("{dir}/Cargo.toml"),
               "targets": [{"name": "x", "kind": [kind]}]})
    }

    #[test]
    fn benchmarks_are_told_from_other_targets() {
        let all = targets(&json!({"packages": [
            package("thalweg-bench-pg", "/w/bench/pg", "bench"),
            package("thalweg-bench-report", "/w/bench/report", "bin"),
            package("thalweg-tables", "/w/crates/tables", "bench"),
            package("thalweg-conntrack", "/w/crates/conntrack", "bench"),
        ]}));
        let names: Vec<_> = all.iter().map(|t| (&*t.name, &*t.package, &*t.bench)).collect();
        let pg = ("x", "thalweg-bench-pg", "x");
        assert_eq!(names, [pg, ("conntrack-x", "thalweg-conntrack", "x")]);
        assert!(targets(&json!({})).is_empty());
    }

    #[test]
    fn words_select_and_none_is_for_nothing() {
        let all = || {
            let package = |dir| package("thalweg-conntrack", dir, "bench");
            targets(&json!({"packages": [package("/w/bench/pg"), package("/w/crates/conntrack")]}))
        };
        let names = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
            let some = select(all(), &words.iter().collect::<Vec<_>>())?;
            anyhow::Ok(some.into_iter().map(|t| t.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).unwrap(), ["x", "conntrack-x"]);
        assert_eq!(names(&["track"]).unwrap(), ["conntrack-x"]);
        assert_eq!(names(&["track", "x"]).unwrap(), ["x", "conntrack-x"]);
        let said = names(&["x", "nonsense"]).unwrap_err().to_string();
        assert_eq!(said, "no benchmark's name contains \"nonsense\"; there are: x conntrack-x");
    }

    #[test]
    fn make_knows_the_names_before_it_builds() {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/bench-names.sh");
        let ask = |words: &[&str]| Command::new(script).args(words).output().unwrap();
        let said = String::from_utf8(ask(&["--list"]).stdout).unwrap();
        let mut names: Vec<String> = known().unwrap().into_iter().map(|t| t.name).collect();
        names.sort();
        let mut listed: Vec<&str> = said.lines().collect();
        listed.sort();
        assert_eq!(listed, names);
        for words in [&[][..], &["--full"], &["forward", "--full"], &[&names[0], &names[1]]] {
            assert!(ask(words).status.success(), "{words:?}");
        }
        let refused = ask(&["forward", "nonsense"]);
        assert_eq!(refused.status.code(), Some(1));
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(said.contains("\"nonsense\"") && said.contains(&names[0]), "{said}");
    }

    #[test]
    fn programs_are_what_was_built_of_them() {
        let all =
            targets(&json!({"packages": [package("thalweg-bench-pg", "/w/bench/pg", "bench")]}));
        let message = |kind: &str, dir: &str| {
            json!({"reason": "compiler-artifact", "manifest_path": format!("{dir}/Cargo.toml"),
                   "target": {"name": "x", "kind": [kind]}, "executable": "/t/x-1"})
        };
        let found = program(&message("bench", "/w/bench/pg"), &all).unwrap();
        assert_eq!((&*found.name, found.dir), ("x", PathBuf::from("/w/bench/pg")));
        assert_eq!(found.executable, Path::new("/t/x-1"));
        assert!(program(&message("bin", "/w/bench/pg"), &all).is_none());
        assert!(program(&message("bench", "/w/crates/tables"), &all).is_none());
        assert!(program(&json!({"reason": "build-finished"}), &all).is_none());
    }
}
