//! One program to run, with a deadline.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use thalweg_testkit::{descendants, stacks};

/// Seconds that a test may take whose failure is being looked into.
const PATIENT: &str = "864000";

/// A test, or a program that holds many.
#[derive(Clone, Debug)]
pub struct Job {
    /// Unique among all jobs, such as `smoke/routing::ecmp_spreads_flows`.
    pub name: String,
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub env: Vec<(&'static str, OsString)>,
    pub dir: PathBuf,
    /// Time from its start after which it has failed.
    pub deadline: Duration,
    /// Belongs to the long list.
    pub long: bool,
    /// The job measures: nothing else runs at the same time.
    pub alone: bool,
}

/// Outcome of a job.
#[derive(Debug)]
pub struct Outcome {
    pub failure: Option<String>,
    pub took: Duration,
    /// Its output, both streams.
    pub log: PathBuf,
}

impl Job {
    /// Runs it to its end or its deadline.
    pub fn run(&self, logs: &Path, pause: bool) -> Outcome {
        let log = logs.join(format!("{}.log", file_name(&self.name)));
        let start = Instant::now();
        let failure = match self.run_logged(&log, pause) {
            Ok(failure) => failure,
            Err(error) => Some(format!("{error:#}")),
        };
        Outcome { failure, took: start.elapsed(), log }
    }

    fn run_logged(&self, log: &Path, pause: bool) -> Result<Option<String>> {
        let mut child = self.spawn(log, pause)?;
        let pid = Pid::from_child(&child);
        let ended = if pause { true } else { ends_within(pid, self.deadline)? };
        if !ended {
            let report = format!(
                "\n--- still running after {:?}; where its threads are:\n{}",
                self.deadline,
                stacks(child.id())
            );
            append(log, &report)?;
            end(&mut child)?;
            return Ok(Some(format!("still running after {:?}", self.deadline)));
        }
        let status = child.wait().context("wait for it")?;
        Ok(if status.success() { None } else { Some(status.to_string()) })
    }

    fn spawn(&self, log: &Path, pause: bool) -> Result<Child> {
        // The kernel ends it when the thread that starts it ends, so nothing outlives this program.
        // Signals have their usual effect, also if this runs under nohup(1).
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "env", "--default-signal"]);
        command.arg(&self.program).args(&self.args);
        command.current_dir(&self.dir);
        for (key, value) in &self.env {
            command.env(key, value);
        }
        if pause {
            command.env("PAUSE", "1").env("THALWEG_TEST_DEADLINE", PATIENT);
        } else {
            let file = File::create(log).with_context(|| format!("create {}", log.display()))?;
            let copy = file.try_clone().context("share the log")?;
            command.stdin(Stdio::null()).stdout(file).stderr(copy).process_group(0);
        }
        command.spawn().with_context(|| format!("start {}", self.program.display()))
    }
}

/// Reports if the process ended in time.
fn ends_within(pid: Pid, limit: Duration) -> Result<bool> {
    let watched = pidfd_open(pid, PidfdFlags::empty()).context("watch it")?;
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: left.as_secs().min(1 << 30) as i64,
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut [PollFd::new(&watched, PollFlags::IN)], Some(&timeout)) {
            Ok(0) if left.is_zero() => return Ok(false),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error).context("wait for it"),
        }
    }
}

/// Ends a process and all that it has started.
fn end(child: &mut Child) -> Result<()> {
    let below = descendants(child.id());
    child.kill().context("end it")?;
    child.wait().context("wait for its end")?;
    for pid in below.into_iter().filter_map(|pid| Pid::from_raw(pid as i32)) {
        // Most have ended with their parent.
        let _ = kill_process(pid, Signal::KILL);
    }
    Ok(())
}

fn append(log: &Path, text: &str) -> Result<()> {
    let mut all = match fs::read(log) {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        read => read.context("read the log")?,
    };
    all.extend_from_slice(text.as_bytes());
    fs::write(log, all).context("write the log")
}

/// A job's name as that of a file.
fn file_name(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '-' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, deadline: Duration) -> Job {
        Job {
            name: format!("sh {script}"),
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![("JOB", "yes".into())],
            dir: "/".into(),
            deadline,
            long: false,
            alone: false,
        }
    }

    #[test]
    fn what_it_prints_is_in_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let outcome = shell("echo $JOB; pwd >&2", Duration::from_secs(60)).run(dir.path(), false);
        assert_eq!(outcome.failure, None);
        assert_eq!(fs::read_to_string(outcome.log).unwrap(), "yes\n/\n");
    }

    #[test]
    fn a_status_other_than_zero_is_a_failure() {
        let dir = tempfile::tempdir().unwrap();
        let outcome = shell("exit 3", Duration::from_secs(60)).run(dir.path(), false);
        assert_eq!(outcome.failure.unwrap(), "exit status: 3");
    }

    #[test]
    fn a_deadline_ends_it_with_all_that_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let script = "echo begun; sleep 1000 & echo $!; wait";
        let outcome = shell(script, Duration::from_millis(300)).run(dir.path(), false);
        assert_eq!(outcome.failure.unwrap(), "still running after 300ms");
        let log = fs::read_to_string(outcome.log).unwrap();
        assert!(log.starts_with("begun\n"), "{log}");
        assert!(log.contains("where its threads are"), "{log}");
        let below: u32 = log.lines().nth(1).unwrap().parse().unwrap();
        let gone = || {
            let state = fs::read_to_string(format!("/proc/{below}/stat")).unwrap_or_default();
            // Ended, and perhaps not yet reaped by the process that inherited it.
            (state.is_empty() || state.contains(") Z ")).then_some(())
        };
        thalweg_testkit::wait_until(Duration::from_secs(60), "its child to end", gone).unwrap();
    }

    #[test]
    fn names_become_files() {
        assert_eq!(file_name("smoke a::b/../c"), "smoke-a--b-..-c");
    }
}
