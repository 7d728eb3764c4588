//! Cases that the kernel brings about rarely.

#![allow(clippy::unwrap_used)]

use super::*;
use anyhow::{Context, ensure};
use std::time::Instant;
use thalweg_netns::{LinkOptions, Netns, WAIT_LIMIT, veth, wait_until};
use thalweg_testkit::lab_test;

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

const OLD: [u8; 6] = [2, 0, 0, 0, 0, 1];
const NEW: [u8; 6] = [2, 0, 0, 0, 0, 2];

lab_test! {
    fn a_move_that_the_kernel_refuses_takes_nobody_back() {
        let (ns, far) = (Netns::new("mirror")?, Netns::new("far")?);
        let usual = LinkOptions::default();
        veth((&ns, "e0", &usual), (&far, "e1", &usual))?;
        ns.ip("address add 192.0.2.1/24 dev e0")?;
        let shown = ns.ip("-o link show dev e0")?;
        let index: u32 = shown.split(':').next().context("an index")?.trim().parse()?;
        let place = Namespace::open(&ns.path().display().to_string())?;
        let mirror = Mirror::start(Some(&place), || true)?;
        mirror.watch(index, None);
        let know = |n: u8| {
            let words = "lladdr 02:00:00:00:00:01 dev e0 nud reachable";
            ns.ip(&format!("neigh replace 192.0.2.{n} {words}"))
        };
        let key = |n: u8| (index, IpAddr::from([192, 0, 2, n]));
        let until = |mac: [u8; 6]| {
            wait_until(WAIT_LIMIT, "an address", || {
                let now = mirror.take().neighbours.remove(&key(9)).flatten();
                now.filter(|n| n.mac == Some(mac))
            })
        };
        know(9)?;
        until(OLD)?;
        mirror.0.lock().refuses_moves = true;
        mirror.move_neighbour(index, key(9).1, NEW);
        // Other news are reported, and so is a list of all.
        let overruns = mirror.counters().overruns;
        mirror.0.lock().has_failed = true;
        mirror.0.wake();
        wait_until(WAIT_LIMIT, "new sockets", || {
            (mirror.counters().overruns > overruns).then_some(())
        })?;
        mirror.0.lock().has_failed = false;
        let mut seen = Report::default();
        let mut until_seen = |what: &str, done: &dyn Fn(&Report) -> bool| {
            wait_until(WAIT_LIMIT, what, || {
                let now = mirror.take();
                seen.neighbours.extend(now.neighbours);
                seen.all_neighbours.extend(now.all_neighbours);
                done(&seen).then_some(())
            })
        };
        until_seen("a list", &|seen| seen.all_neighbours.contains_key(&index))?;
        for n in 10..20 {
            know(n)?;
            until_seen("another neighbour", &|seen| seen.neighbours.contains_key(&key(n)))?;
        }
        ensure!(seen.all_neighbours[&index].contains(&key(9).1), "it is there");
        ensure!(!seen.neighbours.contains_key(&key(9)), "with the old address");
        mirror.0.lock().refuses_moves = false;
        until(NEW)?;
        let shown = ns.ip("neigh show 192.0.2.9")?;
        ensure!(shown.contains("02:00:00:00:00:02"), "{shown}");
        // Once it has moved, it may move back.
        know(9)?;
        until(OLD)?;
        Ok(())
    }
}
