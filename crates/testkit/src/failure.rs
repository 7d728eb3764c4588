//! The aftermath of a failed test: a directory with its packets, and with `PAUSE=1` a pause.

use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::env;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use anyhow::Result;

use crate::packets::{self, SharedRing, lock};
use crate::pause;
use crate::watch;
use crate::watchdog::Watchdog;
use thalweg_netns::{Netns, Observer, observe};

/// Names in the environment the directory in which failed tests have directories.
const FAILURES: &str = "THALWEG_TEST_FAILURES";

/// Rings of packets that are kept of one test; labs made in a loop displace the first ones.
const RINGS: usize = 16;

thread_local! {
    static CURRENT: RefCell<Option<Arc<Test>>> = const { RefCell::new(None) };
}

/// A running test with labs in namespaces.
pub(crate) struct Test {
    /// Its path below the crate, such as `nat44::hosts_share_an_address`.
    pub(crate) name: String,
    rings: Mutex<VecDeque<SharedRing>>,
    pub(crate) kept: Mutex<Kept>,
}

/// Things that stay while a failed test is paused. Programs end before their namespaces.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) things: Vec<(String, Box<dyn Any + Send>)>,
    pub(crate) namespaces: Vec<Netns>,
}

/// The test that this thread runs, if it was begun by [`run`].
pub(crate) fn current() -> Option<Arc<Test>> {
    CURRENT.with_borrow(Clone::clone)
}

impl Test {
    /// Adds a ring whose packets are written if the test fails.
    pub(crate) fn add_ring(&self, ring: SharedRing) {
        let mut rings = lock(&self.rings);
        rings.push_back(ring);
        if rings.len() > RINGS {
            rings.pop_front();
        }
    }

    pub(crate) fn rings(&self) -> Vec<SharedRing> {
        lock(&self.rings).iter().cloned().collect()
    }

    fn write_packets(&self) {
        watch::sync();
        let rings = self.rings();
        if rings.is_empty() {
            return;
        }
        let path = failure_dir().join("lab.pcapng");
        packets::report_file(&path, packets::write(&path, &self.name, &rings), &rings);
    }
}

/// Keeps namespaces and captures packets for the test that runs, if there is one.
struct CurrentTest;

impl Observer for CurrentTest {
    fn made(&self, ns: &Netns) {
        pause::keep_namespace(ns);
    }
    fn removed(&self, ns: &Netns) {
        pause::release_namespace(ns);
    }
    fn capture(&self, ns: &Netns, dev: &str) -> Result<()> {
        watch::start(ns, dev)
    }
}

/// Runs a test's body. If it fails, writes the packets of its labs and, with `PAUSE=1`, waits; then
/// the failure goes on to the caller.
pub(crate) fn run(path: &str, body: impl FnOnce() -> Result<()>) -> Result<()> {
    // libtest's names begin below the crate.
    let name = path.split_once("::").map_or(path, |(_, name)| name).to_owned();
    let test = Arc::new(Test { name, rings: Mutex::default(), kept: Mutex::default() });
    CURRENT.set(Some(test.clone()));
    observe(&CurrentTest);
    let watched = test.clone();
    let _watchdog =
        (!pause::wanted()).then(|| Watchdog::start(path, move || watched.write_packets()));
    let result = catch_unwind(AssertUnwindSafe(body));
    let failure = match &result {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("{error:#}")),
        Err(panic) => Some(message(&**panic).to_owned()),
    };
    if let Some(failure) = failure {
        test.write_packets();
        if pause::wanted() {
            pause::pause(&test, &failure);
        }
    }
    CURRENT.set(None);
    let Kept { things, namespaces } = std::mem::take(&mut *lock(&test.kept));
    drop(things);
    drop(namespaces);
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("the test panicked")
}

/// Prints a line on standard error, in one write.
pub(crate) fn report_line(line: &str) {
    eprintln!("{line}");
}

/// Prints a line on standard error at once, even where libtest captures a test's output.
pub(crate) fn report_now(line: &str) {
    // With standard error closed there is nowhere else to report.
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// The directory for the files of the current test, should it fail; it may not exist yet.
///
/// Its path is `test-failures/NAME` in Cargo's target directory, or `NAME` in the directory that
/// `THALWEG_TEST_FAILURES` names. `NAME` is the test's.
pub fn failure_dir() -> PathBuf {
    let root = env::var_os(FAILURES).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    root.unwrap_or_else(|| target_dir().join("test-failures")).join(file_name(&test_name()))
}

/// Cargo's target directory: the one that this program was built in. A relative `CARGO_TARGET_DIR`
/// would be of no use, as tests run in the directory of their package.
fn target_dir() -> PathBuf {
    let program = env::current_exe().unwrap_or_default();
    // TARGET/PROFILE/deps/NAME-HASH
    let deps = program.ancestors().find(|dir| dir.ends_with("deps"));
    let found = deps.and_then(Path::parent).and_then(Path::parent).map(Path::to_owned);
    let named = || env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    found.or_else(named).unwrap_or_else(|| PathBuf::from("target"))
}

/// The name of the test that this thread runs.
///
/// libtest names threads so. With one thread it runs tests in the main thread: then the only test
/// that the arguments name is meant, or else the program.
pub(crate) fn test_name() -> String {
    if let Some(test) = current() {
        return test.name.clone();
    }
    match thread::current().name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => name_from_arguments(env::args()),
    }
}

fn name_from_arguments(mut args: impl Iterator<Item = String>) -> String {
    let program = args.next().unwrap_or_default();
    let args: Vec<_> = args.collect();
    let mut names = args.iter().filter(|arg| !arg.starts_with('-'));
    match (names.next(), names.next()) {
        (Some(name), None) if args.iter().any(|arg| arg == "--exact") => name.clone(),
        _ => {
            let stem = Path::new(&program).file_stem().unwrap_or_default().to_string_lossy();
            stem.rsplit_once('-').map_or(&*stem, |(name, _)| name).to_owned()
        }
    }
}

/// A name as one part of a path: `nat44::ports` becomes `nat44.ports`.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let text: String = name.replace("::", ".").chars().map(plain).take(200).collect();
    match text.trim_start_matches(['.', '-']) {
        "" => "test".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe() {
        assert_eq!(file_name("nat44::ports_are_kept"), "nat44.ports_are_kept");
        assert_eq!(file_name("../a b/ü"), "_a_b__");
        assert_eq!(file_name("::"), "test");
        assert_eq!(file_name(&"x".repeat(999)).len(), 200);
    }

    #[test]
    fn a_test_is_named_by_its_thread_or_the_arguments() {
        assert_eq!(test_name(), "failure::tests::a_test_is_named_by_its_thread_or_the_arguments");
        let name = |args: &str| name_from_arguments(args.split(' ').map(str::to_owned));
        assert_eq!(name("/t/deps/router-0a1b --exact icmp::a --test-threads=1"), "icmp::a");
        assert_eq!(name("/t/deps/router-0a1b icmp --test-threads=1"), "router");
        assert_eq!(name("/t/deps/some_router-0a1b"), "some_router");
    }

    #[test]
    fn failures_are_kept_in_the_target_directory() {
        let dir = target_dir();
        assert!(env::current_exe().unwrap().starts_with(&dir), "{}", dir.display());
        assert!(!dir.ends_with("deps") && !dir.ends_with("debug"));
    }
}
