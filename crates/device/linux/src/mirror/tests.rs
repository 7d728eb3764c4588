//! Cases that the kernel brings about rarely.

#![allow(clippy::unwrap_used)]

use super::*;
use std::time::Instant;

#[test]
fn sockets_that_fail_are_opened_again() {
    let mirror = Mirror::start(None, || true).unwrap();
    mirror.watch(1, None);
    let until = |what: &str, is: &dyn Fn(MirrorCounters) -> bool| {
        let begin = Instant::now();
        while !is(mirror.counters()) {
            assert!(begin.elapsed() < Duration::from_secs(30), "{what}");
            std::thread::yield_now();
        }
    };
    until("a look", &|counters| counters.looks > 0);
    let looks = mirror.counters().looks;
    mirror.0.lock().has_failed = true;
    mirror.0.wake();
    until("new sockets", &|counters| counters.overruns > 0);
    mirror.0.lock().has_failed = false;
    mirror.0.wake();
    until("all to be looked at", &|counters| {
        counters.looks > looks && mirror.0.lock().report.all_neighbours.contains_key(&1)
    });
}
