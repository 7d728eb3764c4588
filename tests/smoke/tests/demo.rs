//! The demonstrations keep their promises, and so does what they suggest.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use thalweg_smoke::thalweg;
use thalweg_testkit::{Cmd, Signal, WAIT_LIMIT, lab_test};

/// The demonstration takes half a minute, more on a busy machine.
const LIMIT: Duration = Duration::from_secs(240);

/// Runs it in a directory of its own, which it leaves empty but for its results.
fn demo(daemon: &str) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let results = dir.path().join("results.json");
    let files = dir.path().join("files");
    fs::create_dir(&files)?;
    let output = Cmd::new(thalweg()?)
        .args(["demo", "bgp", "--plain", "--routes", "5000", "--daemon", daemon, "--json"])
        .arg(&results)
        .env("TMPDIR", &files)
        .deadline(LIMIT)
        .run()?;
    ensure!(output.status.success(), "{}: {}{}", output.status, output.stdout, output.stderr);
    ensure!(output.stdout.contains("All claims hold."), "{}", output.stdout);
    let results: Value = serde_json::from_str(&fs::read_to_string(&results)?).context("results")?;
    ensure!(results["ok"] == true && results["routes"] == 5000, "{results}");
    leaves_nothing(&files)
}

/// Checks that neither files nor processes with such files are left.
fn leaves_nothing(files: &std::path::Path) -> Result<()> {
    let left: Vec<_> = fs::read_dir(files)?.flatten().map(|entry| entry.path()).collect();
    ensure!(left.is_empty(), "{left:?}");
    let mark = files.as_os_str().as_encoded_bytes();
    for process in fs::read_dir("/proc")?.flatten() {
        let words = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let ours = words.windows(mark.len()).any(|part| part == mark);
        ensure!(!ours, "{}", String::from_utf8_lossy(&words));
    }
    Ok(())
}

/// Runs each command that the demonstration ends with.
fn suggestions(files: &std::path::Path) -> Result<()> {
    let run = |words: &[&str], typed: &str| {
        let command = Cmd::new(thalweg()?).args(words).env("TMPDIR", files);
        command.stdin(typed).deadline(LIMIT).run()
    };
    let first = run(&["demo", "--plain"], "")?;
    let (_, next) = first.stdout.split_once("Try next:\n").with_context(|| first.stdout.clone())?;
    let mut tried = 0;
    for line in next.lines().filter(|line| line.starts_with("    ")) {
        let (typed, _) = line.split_once(" # ").with_context(|| line.to_owned())?;
        let own = files.join("thalweg");
        let typed = typed.replace("/tmp/thalweg", &own.to_string_lossy());
        let words: Vec<&str> = typed.split_whitespace().skip(1).collect();
        let output = run(&words, "show version\nquit\n")?;
        ensure!(output.status.success(), "{line}: {}{}", output.stdout, output.stderr);
        tried += 1;
        if words == ["demo", "--keep"] {
            let end = run(&["demo", "--end"], "")?;
            ensure!(end.status.success(), "{}{}", end.stdout, end.stderr);
        }
    }
    ensure!(tried == 3, "{next}");
    Ok(())
}

lab_test! {
    fn what_it_suggests_works() {
        let files = tempfile::tempdir()?;
        suggestions(files.path())
    }

    fn full_routes_by_bird() {
        demo("bird")
    }

    fn full_routes_by_frr() {
        demo("frr")
    }

    fn one_that_is_interrupted_leaves_nothing() {
        let files = tempfile::tempdir()?;
        let words = ["demo", "bgp", "--plain", "--routes", "2000"];
        let mut demo =
            Cmd::new(thalweg()?).args(words).env("TMPDIR", files.path()).spawn()?;
        demo.wait_for_output(WAIT_LIMIT, "the first figures", |out, _| {
            out.contains("Stream of").then_some(())
        })?;
        demo.signal(Signal::TERM)?;
        let output = demo.finish(WAIT_LIMIT)?;
        ensure!(output.status.code() == Some(130), "{}: {}", output.status, output.stderr);
        leaves_nothing(files.path())
    }
}
