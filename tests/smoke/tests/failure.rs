//! A scenario that fails, paused.

use std::env;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use thalweg_smoke::{Router, host_pair};
use thalweg_testkit::{Cmd, Lab, Privilege, lab_test};

const LIMIT: Duration = Duration::from_secs(60);

/// Set in the environment of a process whose scenario fails on purpose.
const FAIL: &str = "THALWEG_TESTKIT_FAIL";

lab_test! {
    fn inner_scenario() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        lab.ping_all()?;
        ensure!(env::var_os(FAIL).is_none(), "on purpose");
        router.stop().map(drop)
    }
}

/// Its router answers, its hosts reach each other, and its packets are in a file.
#[test]
fn a_paused_scenario_goes_on_forwarding() -> Result<()> {
    if let Privilege::None(why) = Privilege::check() {
        ensure!(env::var_os("CI").is_none(), "{why}");
        eprintln!("NOT RUN: {why}");
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let mut scenario = Cmd::new(env::current_exe()?)
        .args(["--exact", "failure::inner_scenario"])
        .env(FAIL, "1")
        .env("PAUSE", "1")
        .env("THALWEG_TEST_FAILURES", dir.path())
        .env_remove("THALWEG_TEST_CAPTURE")
        .stdin_piped()
        .spawn()?;
    let printed = scenario.wait_for_output(LIMIT, "the pause", |_, err| {
        let at = err.find("To go on: ")?;
        err[at..].contains('\n').then(|| err.to_owned())
    })?;
    let command = |word: &str| {
        let line = printed.lines().find(|line| line.contains(word));
        let line = line.with_context(|| format!("no {word} in {printed}"))?;
        Ok::<_, anyhow::Error>(line.split_once('#').map_or(line, |(command, _)| command))
    };
    let run = |text: String| Cmd::new("sh").args(["-c", &text]).output();
    let shown = run(format!("{} show interface", command("thalctl -s")?))?;
    ensure!(shown.contains("host-eth0"), "{shown}");
    run(format!("{} ping -c 1 10.10.2.2", command("# left")?))?;
    ensure!(dir.path().join("failure.inner_scenario/lab.pcapng").is_file(), "{printed}");
    scenario.write_stdin("\n")?;
    ensure!(!scenario.wait(LIMIT)?.success(), "a failed scenario ends with a failure");
    Ok(())
}
