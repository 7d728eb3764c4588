//! Signals that end a command in order: with its report, and with all that it has set up undone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ,
};
use signal_hook::flag::register_usize;

/// Signals that would end the process where it is.
const ENDS: [i32; 8] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU];
/// Status of a shell's command that a signal has ended, less the number of the signal.
const BY_SIGNAL: usize = 128;

/// The user has had enough: nothing more is measured.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(super) struct Interrupted;

/// The signal that has come, if one has. All parts of a command look at the same one.
pub(super) struct Stop(Arc<AtomicUsize>);

impl Stop {
    /// Waits for signals from now on.
    pub(super) fn on_signals() -> Result<Stop> {
        let came = Arc::new(AtomicUsize::new(0));
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        for signal in ENDS {
            // nohup(1) has asked for that. A shell does the same with SIGINT for what runs in the
            // background, where it still ends what it is sent to.
            if signal != SIGHUP || !ignores(&status, signal) {
                register_usize(signal, came.clone(), signal as usize)?;
            }
        }
        // A limit of file sizes is an error of writing, no reason to end.
        register_usize(SIGXFSZ, Arc::default(), 0)?;
        Ok(Stop(came))
    }

    /// Returns whether a signal has come.
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// The exit status for the signal that has come.
    pub(super) fn status(&self) -> Option<u8> {
        let signal = self.0.load(Ordering::Relaxed);
        (signal != 0).then(|| (BY_SIGNAL + signal) as u8)
    }
}

/// Returns whether the text of `/proc/PID/status` says that a signal is ignored.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_are_ignored_are_known() {
        let status = "Name:\tx\nSigBlk:\tffff\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert!(ignores(status, SIGHUP) && !ignores(status, SIGINT));
        assert!(!ignores("", SIGHUP));
    }

    #[test]
    fn each_signal_has_its_status() {
        let stop = Stop(Arc::default());
        assert!(!stop.is_set() && stop.status().is_none());
        for (signal, status) in [(SIGINT, 130), (SIGTERM, 143), (SIGHUP, 129)] {
            stop.0.store(signal as usize, Ordering::Relaxed);
            assert!(stop.is_set());
            assert_eq!(stop.status(), Some(status));
        }
    }
}
