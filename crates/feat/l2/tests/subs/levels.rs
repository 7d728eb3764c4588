//! Frame kernels and per-packet functions agree at every level of instructions for what happens to
//! frames with tags: classes of sub-interfaces, tag rewrites, flags of ports, EFP filters.

use super::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::cell::RefCell;
use thalweg_buffer::simd::{self, Level};

/// Ports of one bridge domain: sub-interfaces with rewrites, without, and a port without tags.
const PORTS: [&str; 5] = ["test0.10", "test0.20", "test1.10", "test1.20", "test2"];

fn network() -> Lab {
    let mut lab = lab(1);
    for n in 0..2 {
        sub(&mut lab, n, 10, one(10));
        sub(&mut lab, n, 20, TagMatch::Outer { tag: dot1q(20), exact: false });
    }
    for port in PORTS {
        lab.ok(&format!("set interface l2 bridge {port} 10"));
    }
    // Nothing is learned and nothing moves, so that each run starts from the same table.
    lab.ok("set bridge-domain learn-limit 10 0");
    for n in 0..20 {
        let port = PORTS[usize::from(n) % PORTS.len()];
        lab.ok(&format!("l2fib add {} 10 {port} static", host(n)));
    }
    lab.ok("set interface l2 tag-rewrite test0.10 pop 1");
    lab.ok("set interface l2 tag-rewrite test1.10 translate 1-1 dot1q 300");
    lab
}

/// Frames with up to three tags, each with the port that receives it.
fn arrivals() -> impl Strategy<Value = Vec<(u8, Vec<u8>)>> {
    let tag = prop_oneof![
        8 => Just(dot1q(10)),
        6 => Just(dot1q(20)),
        2 => Just(dot1q(300)),
        1 => Just(dot1q(0)),
        1 => Just(VlanTag::dot1ad(10)),
    ];
    let to = prop_oneof![9 => (0u8..24).prop_map(|n| host(n).0), 1 => Just([0xff; 6])];
    let tags = prop::collection::vec(tag, 0..=3);
    let one = (0u8..3, to, 0u8..24, tags, 0usize..70, 0u8..40).prop_map(
        |(port, to, from, tags, len, odd)| {
            let mut bytes = frame(port, from, &tags, [8, 0], &vec![0x45; len]);
            bytes[..6].copy_from_slice(&to);
            if odd == 0 {
                bytes.truncate(12 + len % 12);
            }
            (port, bytes)
        },
    );
    let mixed = prop::collection::vec(one.clone(), 1..=256);
    let alike = (one, 1usize..=256).prop_map(|(one, n)| vec![one; n]);
    prop_oneof![3 => mixed, 2 => alike]
}

/// A switch of a port: what frames that it receives may not do, or that it checks those it sends.
fn switch() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec!["learn", "forward", "flood", "uu-flood"]);
    let port = || prop::sample::select(PORTS.to_vec());
    let on = any::<bool>();
    let flag = (word, port(), on).prop_map(|(word, port, on)| {
        format!("set interface l2 {word} {port} {}", if on { "enable" } else { "disable" })
    });
    let filter = (port(), any::<bool>()).prop_map(|(port, on)| {
        format!("set interface l2 efp-filter {port} {}", if on { "enable" } else { "disable" })
    });
    prop_oneof![flag, filter]
}

type Outcome = (Vec<(SwIfIndex, Vec<u8>)>, Vec<(String, u64)>, Vec<[u64; 4]>);

#[test]
fn all_levels_do_the_same_with_tags_flags_and_filters() {
    let lab = RefCell::new(network());
    let subs: Vec<SwIfIndex> = {
        let lab = lab.borrow();
        PORTS.iter().map(|name| interface::find(&lab.c, name).expect("a port")).collect()
    };
    let outcome = |level: Level, frames: Vec<(u8, Vec<u8>)>| -> Outcome {
        let mut lab = lab.borrow_mut();
        simd::set_level(level);
        let all = |lab: &Lab| subs.iter().map(|s| counts(lab, *s)).collect::<Vec<_>>();
        let (before, of_ports) = (lab.counters(&[]), all(&lab));
        lab.deliver_mixed(0, frames);
        lab.settle();
        let mut sent = lab.sent();
        sent.sort_by_key(|(sw_if, _)| *sw_if);
        let after = lab.counters(&[]);
        let counted = before.into_iter().zip(after).map(|((name, b), (_, a))| (name, a - b));
        let counted = counted.filter(|(name, _)| name != "MAC addresses reported").collect();
        let ports = all(&lab).into_iter().zip(of_ports);
        (sent, counted, ports.map(|(a, b)| std::array::from_fn(|i| a[i] - b[i])).collect())
    };
    let mut runner = TestRunner::new(Config::with_cases(120));
    let cases = (arrivals(), prop::collection::vec(switch(), 0..4));
    let result = runner.run(&cases, |(frames, switches)| {
        for line in switches {
            lab.borrow_mut().ok(&line);
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
