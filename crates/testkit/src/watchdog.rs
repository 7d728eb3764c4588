//! A deadline for a test: when it has passed, what the test waits for is printed, and the process
//! ends, so that nothing hangs for ever.

use std::env;
use std::fmt::Write as _;
use std::process;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::running_programs;
use crate::stacks::stacks;

/// Seconds that a test may take, in the environment.
const DEADLINE: &str = "THALWEG_TEST_DEADLINE";
/// If the environment says nothing. On a busy machine the longest tests take half of it.
const DEFAULT: Duration = Duration::from_secs(300);
/// The status of a process that its watchdog has ended.
const STATUS: i32 = 124;

/// Something that the test waits for now.
struct Waiting {
    id: u64,
    what: String,
    since: Instant,
}

static WAITING: Mutex<(u64, Vec<Waiting>)> = Mutex::new((0, Vec::new()));

fn waiting() -> MutexGuard<'static, (u64, Vec<Waiting>)> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes what is waited for, until it is dropped.
pub(crate) struct Note(u64);

impl Note {
    pub(crate) fn new(what: &str) -> Note {
        let mut waiting = waiting();
        waiting.0 += 1;
        let id = waiting.0;
        waiting.1.push(Waiting { id, what: what.to_owned(), since: Instant::now() });
        Note(id)
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        waiting().1.retain(|one| one.id != self.0);
    }
}

/// What is waited for now, a line each.
fn report() -> String {
    let mut text = String::new();
    for one in &waiting().1 {
        let _ = writeln!(text, "waiting for {}, since {:.1?}", one.what, one.since.elapsed());
    }
    if text.is_empty() {
        text.push_str("nothing that the test kit knows of is waited for\n");
    }
    text
}

/// Ends the process if it is not dropped in time.
pub(crate) struct Watchdog {
    /// Dropped with it, which the thread notices.
    _alive: Sender<()>,
}

impl Watchdog {
    /// For the test `name`; `at_end` runs before the process ends, to save what is of use.
    pub(crate) fn start(name: &str, at_end: impl FnOnce() + Send + 'static) -> Watchdog {
        let asked = env::var(DEADLINE).ok().and_then(|text| text.parse().ok());
        let limit = asked.map_or(DEFAULT, Duration::from_secs);
        let name = name.to_owned();
        let (alive, ended) = channel::<()>();
        thread::spawn(move || {
            if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                eprintln!("--- {name} still runs after {limit:?} ({DEADLINE} changes that)");
                eprint!("{}{}", report(), running_programs());
                eprint!("{}", stacks(process::id()));
                at_end();
                process::exit(STATUS);
            }
        });
        Watchdog { _alive: alive }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cmd;

    #[test]
    fn what_is_waited_for_is_known_while_it_is() {
        let note = Note::new("a train that never comes");
        assert!(report().contains("waiting for a train that never comes, since "));
        drop(note);
        assert!(!report().contains("train"));
    }

    /// The inner one: it hangs if it is asked to.
    #[test]
    fn hangs() {
        if env::var_os("TESTKIT_HANG").is_some() {
            let _watchdog = Watchdog::start("hangs", || eprintln!("saved"));
            let never =
                crate::wait_until::<()>(Duration::from_secs(600), "the end of time", || None);
            drop(never);
        }
    }

    #[test]
    fn a_test_that_hangs_says_what_it_waits_for() {
        let own = env::current_exe().unwrap();
        let output = Cmd::new(own)
            .args(["--exact", "watchdog::tests::hangs", "--nocapture"])
            .env("TESTKIT_HANG", "1")
            .env(DEADLINE, "1")
            .deadline(Duration::from_secs(120))
            .run()
            .unwrap();
        assert_eq!(output.status.code(), Some(STATUS), "{}", output.stderr);
        assert!(output.stderr.contains("waiting for the end of time, since "), "{}", output.stderr);
        assert!(output.stderr.ends_with("saved\n"), "{}", output.stderr);
    }
}
