//! Tools for tests and benchmarks.
//!
//! - [`lab_test!`] defines a test that needs the network namespaces of [`thalweg_netns`], all of
//!   which is here, too;
//! - [`Flood`] sends small packets as fast as it can;
//! - [`Capture`] and [`tshark_fields`] run the usual tools and read what they say;
//! - a failed test leaves the last packets of its labs in [`failure_dir`]: those of hosts in
//!   namespaces, and those that a lab within the process enters into a [`PacketLog`];
//! - [`GeneratedList`] keeps the committed list of a one-item-per-file folder current, and
//!   [`golden!`] compares text with a file.

#![forbid(unsafe_code)]

mod capture;
mod failure;
mod flood;
mod golden;
mod lab_test;
mod packets;
mod pause;
mod registry;
mod stacks;
mod watch;
mod watchdog;

pub use capture::{Capture, CaptureCounts, tshark_fields, tshark_json};
pub use failure::failure_dir;
pub use flood::Flood;
pub use golden::check_golden;
pub use lab_test::run_lab_test;
pub use packets::{PacketLog, PacketTap};
pub use pause::keep_while_paused;
pub use registry::{GeneratedList, check_feature_lists, is_same_code, rustfmt};
pub use stacks::{descendants, stacks};
pub use thalweg_netns::*;

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Number of workers that labs in the process have at least: 1, or what `THALWEG_TEST_WORKERS`
/// says. Tests that mean another number ask for it.
pub fn workers() -> usize {
    std::env::var("THALWEG_TEST_WORKERS").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

/// Time that this thread has had on a processor: the cost of what it did, however busy the machine.
pub fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Returns the first value in the usual run of a test, and the second in a long one, which
/// `THALWEG_TEST_LONG=1` asks for: numbers of repetitions, orders and sizes.
///
/// Each kind of thing is tried in the usual run, too.
pub fn sized<T>(usual: T, long: T) -> T {
    match std::env::var_os("THALWEG_TEST_LONG").is_some_and(|value| value == "1") {
        true => long,
        false => usual,
    }
}
