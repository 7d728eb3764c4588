//! Searches for the highest load that a device bears, as pure functions of the trials made.
//!
//! A search looks at the trials so far and names the next one, or its result. Searches run nothing
//! themselves and keep no state, so that a report's trials give the same result again, and a
//! simulated device tests it as well as a real one.
//!
//! - [`mlr`] is MLRsearch (RFC 9971): several goals at once, each decided by as many trials as its
//!   exceed ratio asks for.
//! - [`binary`] halves the range after each trial, as TRex's `cps_ndr.py` does.

pub mod binary;
mod goal;
mod ladder;
pub mod mlr;

pub use goal::{Goal, GoalError, Verdict, Weighed};

/// Result of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Load meant: packets or connections per second, both directions together.
    pub load: f64,
    /// Time for which the load was meant to last, in seconds.
    pub duration: f64,
    /// Time that the trial counts for, in seconds (RFC 9971: effective duration).
    pub effective: f64,
    /// Share of what was sent that did not arrive, 0 to 1.
    pub loss_ratio: f64,
}

impl Trial {
    /// A trial that lasted as long as it was meant to.
    pub fn new(load: f64, duration: f64, loss_ratio: f64) -> Trial {
        Trial { load, duration, effective: duration, loss_ratio }
    }

    /// Rate at which packets or connections arrived, per second (RFC 9971: trial forwarding rate).
    pub fn forwarding_rate(&self) -> f64 {
        self.load * (1.0 - self.loss_ratio)
    }
}
