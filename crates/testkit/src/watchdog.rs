//! A deadline for a test: when it has passed, what the test waits for is printed, and the process
//! ends, so that nothing hangs.

use std::env;
use std::process;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use thalweg_netns::{running_programs, waits};

use crate::stacks::stacks;

/// Seconds that a test may take, in the environment.
const DEADLINE: &str = "THALWEG_TEST_DEADLINE";
/// Default without the environment variable. On a busy machine the longest tests take half of it.
const DEFAULT: Duration = Duration::from_secs(300);
/// The status of a process that its watchdog has ended.
const STATUS: i32 = 124;

/// Ends the process if it is not dropped in time.
pub(crate) struct Watchdog {
    /// Dropped with it, which the thread notices.
    _alive: Sender<()>,
}

impl Watchdog {
    /// Starts a watchdog for the test `name`; `at_end` runs before the process ends, to save what
    /// is of use.
    pub(crate) fn start(name: &str, at_end: impl FnOnce() + Send + 'static) -> Watchdog {
        let asked = env::var(DEADLINE).ok().and_then(|text| text.parse().ok());
        let limit = asked.map_or(DEFAULT, Duration::from_secs);
        let name = name.to_owned();
        let (alive, ended) = channel::<()>();
        thread::spawn(move || {
            if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                eprintln!("--- {name} still runs after {limit:?} ({DEADLINE} changes that)");
                eprint!("{}{}", waits(), running_programs());
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
