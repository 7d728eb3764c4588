//! Frames of several sub-interfaces: as packets alone, by one worker and by two.

use super::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::RefCell;
use thalweg_device::SwIfIndex;

/// Frames by number: what a port may receive of several networks and layers.
fn packet(n: u8, kind: u8, to: u8, ttl: u8) -> Vec<u8> {
    let (s, c) = (VlanTag::dot1ad(30), dot1q(7));
    let packet = udp(ip(4, 9), ip(1 + to % 4, 9), usize::from(to)).ttl(ttl);
    let tags: &[VlanTag] = match kind % 8 {
        0 => &[dot1q(10)],
        1 => &[dot1q(20)],
        2 => &[s, c],
        3 => &[dot1q(40), c],
        4 => &[dot1q(50)],
        5 => &[dot1q(0)],
        6 => &[dot1q(99)],
        _ => &[],
    };
    ipv4(n, 9, tags, &packet)
}

pub(super) fn everything(workers: usize) -> (Lab, Vec<(SwIfIndex, Vec<SwIfIndex>)>) {
    let (mut lab, ways) = routed(workers);
    let more = [
        sub(&mut lab, 0, 40, TagMatch::Outer { tag: dot1q(40), exact: false }),
        sub(&mut lab, 0, 50, one(50)),
        sub(&mut lab, 1, 40, TagMatch::AnyInner(dot1q(40))),
        sub(&mut lab, 1, 50, one(50)),
    ];
    lab.ok("set interface l2 xconnect test0.40 test1.40\nset interface l2 xconnect test1.40 test2");
    for port in ["test0.50", "test1.50", "test2"] {
        lab.ok(&format!("set interface l2 bridge {port} 10"));
    }
    for (net, (sw_if, ..)) in (1..).zip(&ways) {
        neighbor(&mut lab, *sw_if, ip(net, 9), host(9));
    }
    let (test0, test1) = (lab.sw_if(0), lab.sw_if(1));
    let families = vec![
        (test0, vec![ways[0].0, ways[1].0, more[0], more[1]]),
        (test1, vec![ways[2].0, more[2], more[3]]),
    ];
    (lab, families)
}

/// Counters of ports and sub-interfaces.
fn all_counts(lab: &Lab, families: &[(SwIfIndex, Vec<SwIfIndex>)]) -> Vec<[u64; 4]> {
    let each = families.iter().flat_map(|(port, subs)| [&[*port][..], subs].concat());
    each.map(|sw_if| counts(lab, sw_if)).collect()
}

pub(super) type Taken = (Vec<(SwIfIndex, Vec<u8>)>, Vec<[u64; 4]>);

/// Receives frames in loops of `size`; what was sent, and by how much counters have grown.
pub(super) fn taken(
    (lab, families): &mut (Lab, Vec<(SwIfIndex, Vec<SwIfIndex>)>),
    frames: &[(u8, Vec<u8>)],
    size: usize,
) -> Taken {
    let before = all_counts(lab, families);
    for (i, some) in frames.chunks(size).enumerate() {
        lab.deliver_mixed(i % lab.c.workers(), some.to_vec());
        lab.settle();
    }
    let mut sent = lab.sent();
    sent.sort_unstable();
    let mut after = all_counts(lab, families);
    for (after, before) in after.iter_mut().flatten().zip(before.iter().flatten()) {
        *after -= before;
    }
    (sent, after)
}

/// A port counts what belongs to its sub-interfaces, and what has no tag.
#[test]
fn frames_of_many_are_as_their_packets_alone() {
    let (one, two) = (RefCell::new(everything(1)), RefCell::new(everything(2)));
    let frames = prop::collection::vec((0u8..2, 0u8..8, 0u8..4, 2u8..5), 1..200);
    let mut runner = TestRunner::new(Config { cases: 24, ..Config::default() });
    let result = runner.run(&frames, |frames| {
        let frames: Vec<(u8, Vec<u8>)> =
            frames.into_iter().map(|(n, kind, to, ttl)| (n, packet(n, kind, to, ttl))).collect();
        let (lab, families) = (&mut *one.borrow_mut(), &mut *two.borrow_mut());
        let alone = taken(lab, &frames, 1);
        let together = taken(lab, &frames, 200);
        let parallel = taken(families, &frames, 50);
        prop_assert_eq!(&alone, &together);
        prop_assert_eq!(&alone.0, &parallel.0);
        prop_assert_eq!(&alone.1, &parallel.1);
        let mut at = 0;
        for (n, (port, subs)) in lab.1.iter().enumerate() {
            let tagged: [u64; 4] =
                std::array::from_fn(|i| (1..=subs.len()).map(|sub| alone.1[at + sub][i]).sum());
            let own = |frame: &[u8]| {
                let tags = parts(frame).2;
                let has_sub = match n {
                    0 => {
                        [10, 20, 40, 50].contains(&tags.first().map_or(0, |t| t.id.0))
                            && (tags.len() == 1 || tags[0].id.0 == 40)
                    }
                    _ => {
                        tags.first() == Some(&VlanTag::dot1ad(30))
                            || tags == [dot1q(50)]
                            || tags.len() == 2 && tags[0] == dot1q(40)
                    }
                };
                !has_sub
            };
            let sum = |frames: &mut dyn Iterator<Item = &Vec<u8>>| {
                frames.filter(|f| own(f)).fold((0, 0), |(n, b), f| (n + 1, b + f.len() as u64))
            };
            let rx = sum(&mut frames.iter().filter(|f| usize::from(f.0) == n).map(|f| &f.1));
            let tx = sum(&mut alone.0.iter().filter(|f| f.0 == *port).map(|f| &f.1));
            let expected = [rx.0, rx.1, tx.0, tx.1];
            let found: [u64; 4] = std::array::from_fn(|i| alone.1[at][i] - tagged[i]);
            prop_assert_eq!(found, expected, "port {}", n);
            at += 1 + subs.len();
        }
        Ok(())
    });
    result.unwrap_or_else(|e| panic!("{e}"));
    one.into_inner().0.close();
    two.into_inner().0.close();
}

/// A sub-interface that goes takes nothing along but its packets.
#[test]
fn deleted_with_packets_under_way() {
    let mut router = everything(2);
    let frames: Vec<(u8, Vec<u8>)> =
        (0..200).map(|i| (i % 2, packet(i % 2, i / 2, i / 16, 9))).collect();
    for round in 0..6 {
        let lab = &mut router.0;
        for worker in 0..2 {
            lab.deliver_mixed(worker, frames.clone());
        }
        let name = ["test0.40", "test0.50", "test1.3"][round % 3];
        if let Ok(gone) = interface::find(&lab.c, name) {
            interface::delete(&mut lab.c, gone).expect("delete");
        }
        lab.settle();
    }
    assert!(interface::find(&router.0.c, "test0.50").is_err());
    router.0.close();
}
