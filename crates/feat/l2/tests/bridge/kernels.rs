//! Frame kernels and per-packet functions agree at every instruction set level.

use crate::{BROADCAST, frame, host_mac, lab};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::cell::RefCell;
use thalweg_buffer::simd::{self, Level};
use thalweg_device::SwIfIndex;

/// Known, moved, filtered, unknown, broadcast and multicast addresses.
fn address() -> impl Strategy<Value = [u8; 6]> {
    prop_oneof![
        12 => (0u8..40).prop_map(host_mac),
        1 => Just(BROADCAST),
        1 => Just([1, 0, 0x5e, 0, 0, 5]),
    ]
}

fn arrival() -> impl Strategy<Value = Vec<u8>> {
    (address(), address(), 0usize..80, 0u8..40).prop_map(|(to, from, len, kind)| {
        let mut f = frame(to, from, len);
        if kind == 0 {
            f.truncate(len % 15);
        }
        f
    })
}

/// Frames, each with the port that receives it: all the same, or two by turns.
fn on_ports() -> impl Strategy<Value = Vec<(u8, Vec<u8>)>> {
    (arrivals(), prop::collection::vec(0u8..2, 256), any::<bool>()).prop_map(|(all, ports, one)| {
        all.into_iter().zip(ports).map(|(f, port)| (if one { 0 } else { port }, f)).collect()
    })
}

fn arrivals() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let mixed = prop::collection::vec(arrival(), 1..=256);
    let alike = (arrival(), 1usize..=256).prop_map(|(f, n)| vec![f; n]);
    let almost =
        (arrival(), arrival(), 1usize..=256, any::<usize>()).prop_map(|(f, odd, n, at)| {
            let mut all = vec![f; n];
            all[at % n] = odd;
            all
        });
    prop_oneof![mixed, alike, almost]
}

/// Steps that a port may leave out.
const SWITCHES: [&str; 4] = ["learn", "forward", "flood", "uu-flood"];

type Outcome = (Vec<(SwIfIndex, Vec<u8>)>, Vec<(String, u64)>);

#[test]
fn all_levels_do_the_same() {
    let mut lab = lab(4);
    // Nothing is learned and nothing moves, so that each run starts from the same table.
    lab.ok("set bridge-domain learn-limit 10 0");
    for n in 0..30 {
        lab.ok(&format!("l2fib add 02:00:00:99:00:{n:02x} 10 test{} static", n % 4));
    }
    lab.ok("l2fib add 02:00:00:99:00:1e 10 filter");
    let lab = RefCell::new(lab);
    let outcome = |level: Level, frames: Vec<(u8, Vec<u8>)>| -> Outcome {
        let mut lab = lab.borrow_mut();
        simd::set_level(level);
        let before = lab.counters(&[]);
        lab.deliver_mixed(0, frames);
        lab.settle();
        let mut sent = lab.sent();
        sent.sort_by_key(|(sw_if, _)| *sw_if);
        let after = lab.counters(&[]);
        let counted = before.into_iter().zip(after).map(|((name, b), (_, a))| (name, a - b));
        (sent, counted.filter(|(name, _)| name != "MAC addresses reported").collect())
    };
    let mut runner = TestRunner::new(Config::with_cases(150));
    // Bits of those, for each of two ports; most of the time it does all.
    let some = || prop_oneof![3 => Just(0u8), 2 => 0u8..16];
    let flags = (some(), some());
    let result = runner.run(&(on_ports(), flags), |(frames, (a, b))| {
        for (port, off) in [(0, a), (1, b)] {
            let mut lab = lab.borrow_mut();
            for (bit, word) in SWITCHES.iter().enumerate() {
                let state = if off & 1 << bit != 0 { "disable" } else { "enable" };
                lab.ok(&format!("set interface l2 {word} test{port} {state}"));
            }
        }
        let first = outcome(Level::PerPacket, frames.clone());
        for level in [Level::Scalar, Level::Avx2, Level::Avx512] {
            let other = outcome(level, frames.clone());
            if first != other {
                let text = format!("{}: {first:?}\n{other:?}", level.name());
                return Err(TestCaseError::fail(text));
            }
        }
        Ok(())
    });
    simd::set_level(Level::best());
    result.unwrap_or_else(|e| panic!("{e}"));
    lab.into_inner().close();
}
