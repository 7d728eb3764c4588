//! Compared with a list of routes searched linearly, and with readers on other threads.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SMALL: Lpm4Config = Lpm4Config { max_routes: 1000, max_groups: 64, pages: Pages::Normal };

fn prefix(addr: [u8; 4], len: u8) -> Ipv4Prefix {
    Ipv4Prefix::new(u32::from_be_bytes(addr), len).unwrap()
}

fn leaf(n: u32) -> Leaf {
    Leaf::new(n).unwrap()
}

/// The slowest route table there is.
#[derive(Default)]
struct Model(Vec<(Ipv4Prefix, Leaf)>);

impl Model {
    fn remove(&mut self, prefix: Ipv4Prefix) -> Option<Leaf> {
        let at = self.0.iter().position(|&(p, _)| p == prefix)?;
        Some(self.0.swap_remove(at).1)
    }

    fn insert(&mut self, prefix: Ipv4Prefix, leaf: Leaf) -> Option<Leaf> {
        let old = self.remove(prefix);
        self.0.push((prefix, leaf));
        old
    }

    fn lookup(&self, addr: u32) -> Option<(Ipv4Prefix, Leaf)> {
        let holding = self.0.iter().filter(|(p, _)| p.contains(addr));
        holding.max_by_key(|(p, _)| p.len()).copied()
    }
}

fn check(lpm: &Lpm4, model: &Model, touched: &[Ipv4Prefix]) -> Result<(), TestCaseError> {
    let mut sorted = model.0.clone();
    sorted.sort_unstable();
    let mut lengths = [0; 33];
    sorted.iter().for_each(|(p, _)| lengths[usize::from(p.len())] += 1);
    prop_assert_eq!(lpm.lengths(), lengths);
    let (mut at, mut swept) = (Sweep::default(), Vec::new());
    while lpm.sweep(&mut at, |p| swept.push(p)) {}
    swept.sort_unstable();
    prop_assert!(swept.into_iter().eq(sorted.iter().map(|(p, _)| *p)));
    prop_assert!(lpm.iter().eq(sorted));
    prop_assert_eq!(lpm.len(), model.0.len());
    let edges = touched.iter().flat_map(|p| {
        let middle = p.addr() / 2 + p.last() / 2;
        [p.addr().wrapping_sub(1), p.addr(), middle, p.last(), p.last().wrapping_add(1)]
    });
    let addrs: Vec<u32> = edges.chain([0, u32::MAX]).collect();
    let reader = lpm.reader();
    let batches = reader.lookup_batches(&addrs);
    for (i, &addr) in addrs.iter().enumerate() {
        let expected = model.lookup(addr);
        prop_assert_eq!(lpm.lookup(addr), expected, "routes, {:#x}", addr);
        prop_assert_eq!(reader.lookup_leaf(addr), expected.map(|(_, l)| l), "table, {:#x}", addr);
        let route = expected.map(|(prefix, leaf)| (leaf, prefix.len()));
        prop_assert_eq!(reader.lookup_route(addr), route, "table, {:#x}", addr);
        let single = reader.lookup(addr);
        for (kernel, leaves) in batches.iter().enumerate() {
            prop_assert_eq!(single, leaves[i], "batch by kernel {}, {:#x}", kernel, addr);
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Insert(Ipv4Prefix, Leaf),
    Remove(Ipv4Prefix),
    Reclaim,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    // Few addresses and all lengths, so that prefixes nest.
    let addr = prop_oneof![
        4 => (0u32..4, 0u32..4, any::<u8>()).prop_map(|(b, c, d)| {
            u32::from_be_bytes([10, b as u8, c as u8, d])
        }),
        1 => Just(u32::MAX),
        1 => Just(0),
        1 => any::<u32>(),
    ];
    let len = prop_oneof![1 => Just(0u8), 4 => 0u8..10, 8 => 9u8..25, 8 => 25u8..33];
    let prefix = (addr, len).prop_map(|(addr, len)| Ipv4Prefix::new(addr, len).unwrap());
    let op = (prefix, 1u32..6, 0..10).prop_map(|(prefix, n, op)| match op {
        0..6 => Op::Insert(prefix, leaf(n)),
        6..9 => Op::Remove(prefix),
        _ => Op::Reclaim,
    });
    prop::collection::vec(op, 1..60)
}

/// Adds removals of what was inserted, half of it, in another order: otherwise removals seldom find
/// anything.
fn with_removals(mut ops: Vec<Op>) -> Vec<Op> {
    let inserted: Vec<_> = ops
        .iter()
        .filter_map(|op| if let Op::Insert(prefix, _) = op { Some(*prefix) } else { None })
        .collect();
    ops.extend(inserted.iter().step_by(2).rev().copied().map(Op::Remove));
    ops.extend(inserted.first().map(|&prefix| Op::Insert(prefix, leaf(9))));
    ops
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn behaves_like_a_list(ops in ops().prop_map(with_removals)) {
        let domain = Domain::new();
        let mut lpm = Lpm4::new(SMALL).unwrap();
        let (mut model, mut touched) = (Model::default(), Vec::new());
        for op in ops {
            match op {
                Op::Insert(prefix, leaf) => {
                    touched.push(prefix);
                    prop_assert_eq!(lpm.insert(prefix, leaf).unwrap(), model.insert(prefix, leaf));
                    prop_assert_eq!(lpm.get(prefix), Some(leaf));
                }
                Op::Remove(prefix) => {
                    touched.push(prefix);
                    prop_assert_eq!(lpm.remove(prefix), model.remove(prefix));
                    prop_assert_eq!(lpm.get(prefix), None);
                }
                Op::Reclaim => {
                    lpm.reclaim(&domain);
                }
            }
            check(&lpm, &model, &touched[touched.len().saturating_sub(4)..])?;
        }
        check(&lpm, &model, &touched)?;
        for (prefix, _) in model.0 {
            prop_assert!(lpm.remove(prefix).is_some());
        }
        prop_assert_eq!((lpm.len(), lpm.usage().groups), (0, 0));
        let word = |p: &Ipv4Prefix| lpm.table.words()[(p.addr() >> 8) as usize].get();
        let empty = touched.iter().all(|p| word(p) == Word::MISS)
            && lpm.table.short().iter().all(|cell| cell.get() == Word::MISS);
        prop_assert!(empty, "nothing is left behind");
    }
}

#[test]
fn batches_of_every_size_agree_with_single_lookups() {
    let mut lpm = Lpm4::new(SMALL).unwrap();
    for (n, len) in [(1, 0), (2, 8), (3, 16), (4, 24), (5, 26), (6, 32)] {
        lpm.insert(prefix([10, 1, 2, 128], len), leaf(n)).unwrap();
    }
    let reader = lpm.reader();
    let near = (0..300u32).map(|n| 0x0a01_0280 ^ crate::hash::mix64(n.into()) as u32 >> (n % 32));
    let addrs: Vec<u32> = near.collect();
    let single: Vec<u32> = addrs.iter().map(|&addr| reader.lookup(addr)).collect();
    for count in 0..=addrs.len() {
        for leaves in reader.lookup_batches(&addrs[..count]) {
            assert_eq!(leaves, single[..count]);
        }
    }
    let mut fewer = [0; 3];
    reader.lookup_batch(&addrs, &mut fewer);
    assert_eq!(fewer, single[..3]);
}

#[test]
fn short_routes_touch_no_first_level() {
    let mut lpm = Lpm4::new(SMALL).unwrap();
    let reader = lpm.reader();
    assert_eq!(reader.lookup(5), 0);
    lpm.insert(Ipv4Prefix::DEFAULT, leaf(7)).unwrap();
    assert_eq!((reader.lookup(5), lpm.lookup(5)), (7, Some((Ipv4Prefix::DEFAULT, leaf(7)))));
    lpm.insert(prefix([10, 0, 0, 1], 32), leaf(8)).unwrap();
    let around: Vec<_> = (0x0a00_0000..0x0a00_0003).map(|addr| reader.lookup(addr)).collect();
    assert_eq!(around, [7, 8, 7], "also for what a group does not cover");
    lpm.insert(prefix([0, 0, 0, 0], 1), leaf(9)).unwrap();
    assert_eq!((reader.lookup(5), reader.lookup(0x0a00_0000), reader.lookup(1 << 31)), (9, 9, 7));
    assert_eq!(lpm.table.words()[5].get(), Word::MISS);
    assert_eq!(lpm.remove(prefix([0, 0, 0, 0], 1)), Some(leaf(9)));
    assert_eq!(lpm.remove(Ipv4Prefix::DEFAULT), Some(leaf(7)));
    assert_eq!((reader.lookup(5), lpm.remove(Ipv4Prefix::DEFAULT)), (0, None));
    assert_eq!(lpm.parent(Ipv4Prefix::DEFAULT), None);
}

#[test]
fn limits_are_errors_and_leave_no_trace() {
    let mut lpm = Lpm4::new(Lpm4Config { max_routes: 2, max_groups: 1, ..SMALL }).unwrap();
    lpm.insert(prefix([10, 0, 0, 1], 32), leaf(1)).unwrap();
    let error = lpm.insert(prefix([10, 0, 1, 1], 32), leaf(1)).unwrap_err();
    assert_eq!(error, LpmError::GroupsFull { limit: 1 });
    assert_eq!((lpm.len(), lpm.reader().lookup(0x0a00_0101)), (1, 0));
    lpm.insert(prefix([10, 0, 0, 2], 32), leaf(2)).unwrap();
    let error = lpm.insert(prefix([11, 0, 0, 0], 8), leaf(3)).unwrap_err();
    assert_eq!(error.to_string(), "the route table is full: its limit is 2 routes");
    let replaced = lpm.insert(prefix([10, 0, 0, 2], 32), leaf(4));
    assert_eq!(replaced, Ok(Some(leaf(2))), "replacing needs no room");
    let too_many = Lpm4Config { max_groups: (1 << 24) + 1, ..SMALL };
    assert!(matches!(Lpm4::new(too_many), Err(LpmError::BadLimit { .. })));
}

#[test]
fn groups_collapse_and_wait_for_readers() {
    let domain = Domain::new();
    let mut worker = domain.register().unwrap();
    worker.enter();
    let mut lpm = Lpm4::new(Lpm4Config { max_groups: 1, ..SMALL }).unwrap();
    lpm.insert(prefix([10, 0, 0, 0], 8), leaf(1)).unwrap();
    lpm.insert(prefix([10, 0, 0, 0], 25), leaf(2)).unwrap();
    lpm.insert(prefix([10, 0, 0, 0], 24), leaf(3)).unwrap();
    assert_eq!((lpm.reader().lookup(0x0a00_0000), lpm.reader().lookup(0x0a00_0080)), (2, 3));
    lpm.remove(prefix([10, 0, 0, 0], 25));
    assert_eq!((lpm.reader().lookup(0x0a00_0000), lpm.table.group_at(0x0a_0000)), (3, None));
    assert_eq!((lpm.usage().groups, lpm.usage().groups_waiting), (0, 1));
    assert_eq!(lpm.reclaim(&domain), 0, "the worker may be in the group");
    assert!(lpm.insert(prefix([11, 0, 0, 0], 32), leaf(4)).is_err());
    worker.enter();
    assert_eq!(lpm.reclaim(&domain), 1);
    lpm.insert(prefix([11, 0, 0, 0], 32), leaf(4)).unwrap();
    lpm.remove(prefix([10, 0, 0, 0], 24));
    assert_eq!(lpm.reader().lookup(0x0a00_0080), 1, "the /8 shines through");
}

/// Routes of all lengths at once, as in a full table: nothing beneath is disturbed.
#[test]
fn a_full_group_with_510_routes_empties_again() {
    let mut lpm = Lpm4::new(SMALL).unwrap();
    let all: Vec<_> = (25..=32u8)
        .flat_map(|len| (0..1u32 << (len - 24)).map(move |n| (n << (32 - len), len)))
        .map(|(low, len)| Ipv4Prefix::new(0xc0a8_0100 | low, len).unwrap())
        .collect();
    for (n, &p) in all.iter().enumerate() {
        lpm.insert(p, leaf(n as u32 + 1)).unwrap();
    }
    assert_eq!((lpm.len(), lpm.usage().groups), (510, 1));
    for &p in all.iter().rev() {
        assert_eq!(lpm.reader().lookup_leaf(p.addr()), lpm.lookup(p.addr()).map(|(_, l)| l));
        lpm.remove(p);
    }
    assert_eq!((lpm.reader().lookup(0xc0a8_0101), lpm.usage().groups), (0, 0));
}

#[test]
fn a_million_routes_fit_in_32_mib() {
    let mut lpm = Lpm4::new(Lpm4Config::default()).unwrap();
    // Routes are mostly /24, some /23 and /22, one in 128 longer.
    for n in 0..1_000_000u32 {
        let addr = n.wrapping_mul(0x9e37_79b1);
        let len = if n % 128 == 0 { 28 } else { 24 - (n % 8).saturating_sub(5) as u8 };
        lpm.insert(Ipv4Prefix::new(addr, len).unwrap(), leaf(n + 1)).unwrap();
    }
    assert!(lpm.len() > 900_000, "{}", lpm.len());
    assert!(lpm.memory() < 32 << 20, "{} bytes", lpm.memory());
}

/// A reader must find one of the leaves that an address may legally have, while the writer opens,
/// repaints and collapses groups around it.
#[test]
fn readers_always_find_a_legal_leaf() {
    let domain = Domain::new();
    let mut lpm = Lpm4::new(Lpm4Config { max_groups: 8, ..SMALL }).unwrap();
    // Leaves name the /24 they belong to: a group reused too early is noticed.
    let under = |third: u8, kind: u32| leaf(1 + u32::from(third) * 4 + kind);
    lpm.insert(prefix([10, 0, 0, 0], 8), leaf(1)).unwrap();
    let stop = AtomicBool::new(false);
    let (reader, mut worker) = (lpm.reader(), domain.register().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let addrs: [u32; 64] = std::array::from_fn(|n| 0x0a00_0000 | (n as u32) << 6 | 1);
            let mut leaves = [0; 64];
            while !stop.load(Ordering::Relaxed) {
                let _guard = worker.enter();
                reader.lookup_batch(&addrs, &mut leaves);
                for (addr, found) in addrs.iter().zip(leaves) {
                    let third = addr >> 8 & 0xff;
                    let legal = found == 1 || (found - 1) / 4 == third;
                    assert!(legal, "{addr:#x} leads to {found}");
                    let single = reader.lookup(*addr);
                    assert!(single == 1 || (single - 1) / 4 == third, "{addr:#x}: {single}");
                }
            }
        });
        let until = Instant::now() + Duration::from_millis(400);
        let mut turn = 0u32;
        while Instant::now() < until || turn <= 100 {
            turn += 1;
            let third = (turn % 16) as u8;
            // May fail for lack of groups until the reader has moved on: that is legal too.
            for (kind, len) in [(1, 24), (2, 26), (3, 32)] {
                let _ = lpm.insert(prefix([10, 0, third, 1], len), under(third, kind));
            }
            let before = third.wrapping_sub(5) % 16;
            for len in if turn.is_multiple_of(2) { [24, 26, 32] } else { [32, 26, 24] } {
                lpm.remove(prefix([10, 0, before, 1], len));
            }
            lpm.reclaim(&domain);
        }
        stop.store(true, Ordering::Relaxed);
        assert!(turn > 100);
    });
}
