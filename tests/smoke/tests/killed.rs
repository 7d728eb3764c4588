//! A router that is killed (SIGKILL) at random moments while a document is applied or saved.
//!
//! The next one always has the whole of what was saved last, or of what was being saved; it has the
//! sessions that were saved, and no file is left behind.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use tempfile::TempDir;
use thalweg_cli::client::Client;
use thalweg_smoke::{Config, Router};
use thalweg_testkit::{Lab, PingOptions, WAIT_LIMIT, lab_test, ping, wait_until_seen};

/// Moments in the short list, and in the long one.
const FEW: usize = 10;
const MANY: usize = 200;

/// Routes of each document: enough that a change takes a while.
const ROUTES: usize = 2000;

/// A router that is killed again and again, and its files.
struct Victim {
    lab: Lab,
    keep: TempDir,
    config: Config,
    router: Router,
    rng: Rng,
}

impl Victim {
    fn start(seed: u64) -> Result<Victim> {
        let lab = Lab::new()?;
        let keep = tempfile::tempdir()?;
        let config = Config::empty().keeps(&keep.path().join("thalweg.yaml"));
        let router = Router::start(&lab.router, &config)?;
        let victim = Victim { lab, keep, config, router, rng: Rng::with_seed(seed) };
        victim.router.cli(&format!("config apply {}", victim.document(0)?))?;
        victim.router.cli("config commit")?;
        // One session, which outlives all that follows.
        let (left, right) = (&victim.lab.left.ns, victim.lab.right.addr);
        ping(left, right, &PingOptions::default())?.all_answered()?;
        victim.router.cli(&format!("nat44 save {}", victim.sessions().display()))?;
        Ok(victim)
    }

    fn file(&self) -> PathBuf {
        self.keep.path().join("thalweg.yaml")
    }

    fn sessions(&self) -> PathBuf {
        self.keep.path().join("sessions")
    }

    /// Writes one of the documents between which the router changes.
    fn document(&self, number: usize) -> Result<String> {
        let sessions = self.sessions().display().to_string();
        let mut text = format!(
            "interfaces:
  host-eth0: {{mtu: 1500, addresses: [10.10.1.1/24]}}
  host-eth1: {{mtu: 1500, addresses: [10.10.2.1/24]}}
loopbacks:
  loop{number}: {{addresses: [10.77.{number}.1/24]}}
thalweg:
  interfaces:
    host-eth0: {{nat44: in}}
    host-eth1: {{nat44: out, nat44-address: pool}}
  nat44:
    sessions: 1000
    timeouts: {{icmp: 86400}}
    save: {{file: {sessions}, every: 1}}
  ip-tables:
    0:
      routes:
"
        );
        for n in 0..ROUTES {
            writeln!(text, "        10.{}.{}.0/24: loop{number}", 100 + (n >> 8), n & 255)?;
        }
        let path = self.keep.path().join(format!("document{number}.yaml"));
        fs::write(&path, text)?;
        Ok(path.display().to_string())
    }

    /// Runs a command and kills the router within about the time that it takes. Returns whether it
    /// was done by then.
    fn kill_during(&mut self, command: &str, takes: Duration) -> Result<bool> {
        let (socket, line) = (self.router.socket().to_owned(), command.to_owned());
        let asked = thread::spawn(move || Client::connect(&socket)?.run(&line));
        // Paced: a random moment, whatever happens then.
        thread::sleep(takes.mul_f64(1.2 * self.rng.f64()));
        self.router.kill_and_start(&self.config)?;
        let answer = asked.join().map_err(|_| anyhow::anyhow!("the client panicked"))?;
        Ok(answer.is_ok())
    }

    /// Checks the invariants after each start; `texts`: the allowed contents of the file.
    fn check(&self, texts: &[&str]) -> Result<()> {
        let saved = fs::read_to_string(self.file()).context("the saved document")?;
        ensure!(texts.contains(&&*saved), "neither old nor new:\n{saved}");
        let differs = self.router.cli("config diff")?;
        ensure!(differs.is_empty(), "the router has not what was saved: {differs}");
        let planned = self.router.cli("config plan")?;
        ensure!(planned.trim().is_empty(), "the router is not what its file says: {planned}");
        let missing = self.router.cli("show configuration unresolved")?;
        ensure!(missing.contains("all of the configuration"), "{missing}");
        // Each revision is whole.
        let revisions = self.router.json("show configuration revisions")?;
        let revisions = revisions["revisions"].as_array().context("revisions")?.len();
        for back in [0, 1].into_iter().filter(|back| *back < revisions) {
            self.router.cli(&format!("config diff rollback {back}"))?;
        }
        // Sessions may wait for their interfaces.
        wait_until_seen(WAIT_LIMIT, "the session", || {
            let all = self.router.cli("show nat44 sessions").map_err(|e| format!("{e:#}"))?;
            if all.contains("10.10.1.2") { Ok(()) } else { Err(all) }
        })
    }

    /// Files that are half written, by their names.
    fn leftovers(&self) -> Result<usize> {
        let revisions = self.file().with_extension("yaml.revisions");
        let count = |dir: &Path| -> Result<usize> {
            let names = fs::read_dir(dir)?.map(|e| Ok(e?.file_name()));
            let names: BTreeSet<_> = names.collect::<Result<_>>()?;
            Ok(names.iter().filter(|n| n.to_string_lossy().starts_with(".thalweg-")).count())
        };
        Ok(count(self.keep.path())? + count(&revisions)? + count(self.router.dir())?)
    }

    /// Checks that what killed routers have left is gone once this one has saved.
    fn finish(self) -> Result<()> {
        self.router.cli("create loopback interface instance 9\nconfig commit")?;
        let sessions = self.sessions();
        self.router.cli(&format!("nat44 save {}", sessions.display()))?;
        wait_until_seen(WAIT_LIMIT, "nothing half written", || match self.leftovers() {
            Ok(0) => Ok(()),
            other => Err(format!("{other:?}")),
        })?;
        self.router.stop().map(drop)
    }
}

/// Returns the time that a command takes when nothing comes in between.
fn time_of(router: &Router, command: &str) -> Result<Duration> {
    let begin = Instant::now();
    router.cli(command)?;
    Ok(begin.elapsed())
}

/// An apply saves nothing: the next router is the one before it.
fn during_apply(moments: usize) -> Result<()> {
    let mut victim = Victim::start(46_001)?;
    let (zero, one) = (victim.document(0)?, victim.document(1)?);
    let takes = time_of(&victim.router, &format!("config apply {one}"))?;
    victim.router.cli(&format!("config apply {zero}"))?;
    let saved = fs::read_to_string(victim.file())?;
    let mut done = 0;
    for moment in 0..moments {
        let applied = victim.kill_during(&format!("config apply {one}"), takes)?;
        done += usize::from(applied);
        victim.check(&[&saved]).with_context(|| format!("moment {moment} of {takes:?}"))?;
        ensure!(victim.leftovers()? < FEW, "files are left lying about");
    }
    eprintln!("{done} of {moments} were applied before the kill");
    victim.finish()
}

/// A commit saves all or nothing.
fn during_commit(moments: usize) -> Result<()> {
    let mut victim = Victim::start(46_002)?;
    let documents = [victim.document(0)?, victim.document(1)?];
    victim.router.cli(&format!("config apply {}", documents[1]))?;
    let takes = time_of(&victim.router, "config commit")?;
    let (mut done, mut new) = (0, 0);
    for moment in 0..moments {
        let old = fs::read_to_string(victim.file())?;
        let next = usize::from(old.contains("loop0"));
        victim.router.cli(&format!("config apply {}", documents[next]))?;
        let text = victim.router.cli("show configuration")?;
        let committed = victim.kill_during("config commit", takes)?;
        victim.check(&[&old, &text]).with_context(|| format!("moment {moment} of {takes:?}"))?;
        let is_new = fs::read_to_string(victim.file())? == text;
        ensure!(is_new || !committed, "what was said to be saved is not");
        (done, new) = (done + usize::from(committed), new + usize::from(is_new));
        ensure!(victim.leftovers()? < FEW, "files are left lying about");
    }
    eprintln!("{new} of {moments} were saved, {done} with an answer");
    victim.finish()
}

lab_test! {
    /// A few moments of an apply.
    fn an_apply_that_is_killed_leaves_what_was_saved() {
        during_apply(FEW)
    }

    /// A few moments of a commit.
    fn a_commit_that_is_killed_saves_all_or_nothing() {
        during_commit(FEW)
    }

    /// Very many moments of an apply.
    fn many_applies_that_are_killed_leave_what_was_saved() {
        during_apply(MANY)
    }

    /// Very many moments of a commit.
    fn many_commits_that_are_killed_save_all_or_nothing() {
        during_commit(MANY)
    }
}
