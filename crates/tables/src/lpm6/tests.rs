//! Compared with a list of routes searched linearly, and with readers on other threads.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use proptest::prelude::*;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

const SMALL: Lpm6Config =
    Lpm6Config { max_routes: 1000, max_tails: 64, max_groups: 64, pages: Pages::Normal };

fn leaf(n: u32) -> Leaf {
    Leaf::new(n).unwrap()
}

/// The slowest route table there is.
#[derive(Default)]
struct Model(Vec<(Ipv6Prefix, Leaf)>);

impl Model {
    fn remove(&mut self, prefix: Ipv6Prefix) -> Option<Leaf> {
        let at = self.0.iter().position(|&(p, _)| p == prefix)?;
        Some(self.0.swap_remove(at).1)
    }

    fn insert(&mut self, prefix: Ipv6Prefix, leaf: Leaf) -> Option<Leaf> {
        let old = self.remove(prefix);
        self.0.push((prefix, leaf));
        old
    }

    fn lookup(&self, addr: u128) -> Option<(u32, u8)> {
        let holding = self.0.iter().filter(|(p, _)| p.contains(addr));
        holding.max_by_key(|(p, _)| p.len()).map(|(p, leaf)| (leaf.get(), p.len()))
    }
}

fn check(lpm: &Lpm6, model: &Model, touched: &[Ipv6Prefix]) -> Result<(), TestCaseError> {
    let mut lengths = vec![0; 129];
    model.0.iter().for_each(|(p, _)| lengths[usize::from(p.len())] += 1);
    prop_assert_eq!(Lpm::lengths(lpm), lengths);
    prop_assert_eq!(lpm.len(), model.0.len());
    let (mut all, mut want): (Vec<_>, _) = (lpm.iter_unordered().collect(), model.0.clone());
    all.sort_unstable();
    want.sort_unstable();
    prop_assert_eq!(all, want);
    let edges = touched.iter().flat_map(|p| {
        let middle = p.addr() / 2 + p.last() / 2;
        [p.addr().wrapping_sub(1), p.addr(), middle, p.last(), p.last().wrapping_add(1)]
    });
    let addrs: Vec<u128> = edges.chain([0, u128::MAX]).collect();
    let reader = lpm.reader();
    let mut batch = vec![0; addrs.len()];
    reader.lookup_batch(&addrs, &mut batch);
    for (&addr, &by_batch) in addrs.iter().zip(&batch) {
        let expected = model.lookup(addr);
        prop_assert_eq!(reader.lookup_route(addr), expected, "{:#x}", addr);
        let found = expected.map_or(0, |(leaf, _)| leaf);
        prop_assert_eq!((reader.lookup(addr), by_batch), (found, found), "{:#x}", addr);
    }
    // Frames whose packets go to one site.
    for site in touched.iter().map(|p| p.addr() >> 80) {
        let addrs: Vec<u128> = addrs.iter().copied().filter(|a| a >> 80 == site).collect();
        let mut batch = vec![0; addrs.len()];
        reader.lookup_batch(&addrs, &mut batch);
        for (&addr, &by_batch) in addrs.iter().zip(&batch) {
            prop_assert_eq!(by_batch, reader.lookup(addr), "{:#x}", addr);
        }
        let differ = addrs.iter().fold(0, |d, a| d | (a ^ addrs[0]));
        if let Some(leaf) = reader.lookup_alike(addrs[0], differ) {
            prop_assert!(batch.iter().all(|other| *other == leaf));
        }
    }
    for prefix in touched {
        let there = model.0.iter().find(|(p, _)| p == prefix).map(|(_, leaf)| *leaf);
        prop_assert_eq!(lpm.get(*prefix), there);
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Insert(Ipv6Prefix, Leaf),
    Remove(Ipv6Prefix),
    Reclaim,
}

/// Prefixes that often contain each other: few different bits, all lengths.
fn prefixes() -> impl Strategy<Value = Ipv6Prefix> {
    let len = prop_oneof![0u8..=128, 20u8..=50, Just(128), Just(64), Just(48), Just(32), Just(33)];
    (any::<[bool; 7]>(), len).prop_map(|(bits, len)| {
        let places = [3u8, 30, 31, 33, 47, 63, 127];
        let addr = places.iter().zip(bits).fold(0x2001_0db8 << 96, |addr: u128, (at, on)| {
            if on { addr ^ 1 << (127 - at) } else { addr }
        });
        Prefix::new(addr, len).unwrap()
    })
}

/// Prefixes of two /32, many of which there are in either.
fn dense() -> impl Strategy<Value = Ipv6Prefix> {
    let len = prop_oneof![30u8..=50, 40u8..=48, Just(48), Just(64)];
    (0u128..2, 0u128..32, 0u128..4, len).prop_map(|(top, high, low, len)| {
        let addr = (0x2001_0db8 + top) << 96 | high << 91 | low << 80;
        Prefix::new(addr, len).unwrap()
    })
}

fn ops(prefixes: impl Strategy<Value = Ipv6Prefix> + Clone) -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (prefixes.clone(), 1..TAIL).prop_map(|(p, n)| Op::Insert(p, leaf(n))),
        4 => prefixes.prop_map(Op::Remove),
        1 => Just(Op::Reclaim),
    ]
}

proptest! {
    #[test]
    fn agrees_with_a_list(ops in prop_oneof![
        prop::collection::vec(ops(Rc::new(prefixes())), 1..120),
        prop::collection::vec(ops(Rc::new(dense())), 1..250),
    ]) {
        let domain = Domain::new();
        let mut lpm = Lpm6::new(SMALL).unwrap();
        let (mut model, mut touched) = (Model::default(), Vec::new());
        for op in ops {
            match op {
                Op::Insert(p, n) => {
                    prop_assert_eq!(lpm.insert(p, n, &domain), Ok(model.insert(p, n)));
                    touched.push(p);
                }
                Op::Remove(p) => prop_assert_eq!(lpm.remove(p), model.remove(p)),
                Op::Reclaim => {
                    lpm.reclaim(&domain);
                    domain.reclaim();
                }
            }
        }
        check(&lpm, &model, &touched)?;
        // Nothing is left of routes that are removed.
        for (p, _) in model.0.clone() {
            prop_assert!(lpm.remove(p).is_some());
        }
        prop_assert!(lpm.is_empty() && lpm.open.is_empty() && lpm.long == 0);
        prop_assert!(lpm.deep.is_empty() && lpm.all_sites == 0);
        check(&lpm, &Model::default(), &touched)?;
        lpm.reclaim(&domain);
        domain.reclaim();
        lpm.reclaim(&domain);
        prop_assert_eq!((lpm.entries.len(), lpm.tails.len(), lpm.sites.len()), (0, 0, 0));
        prop_assert!(lpm.blocks.iter().all(IndexPool::is_empty));
    }
}

fn at(text: &str) -> Ipv6Prefix {
    let (addr, len) = text.split_once('/').unwrap();
    let addr: std::net::Ipv6Addr = addr.parse().unwrap();
    Prefix::new(addr.to_bits(), len.parse().unwrap()).unwrap()
}

#[test]
fn limits_are_errors_and_change_nothing() {
    let domain = Domain::new();
    let config = Lpm6Config { max_routes: 3, max_tails: 1, ..SMALL };
    let mut lpm = Lpm6::new(config).unwrap();
    let put = |lpm: &mut Lpm6, p: &str| lpm.insert(at(p), leaf(7), &domain);
    assert_eq!(put(&mut lpm, "2001:db8::/48"), Ok(None));
    let error = put(&mut lpm, "2001:db9::/48").unwrap_err();
    assert_eq!(error, LpmError::TailsFull { limit: 1 });
    assert_eq!(
        error.to_string(),
        "no room for another route longer than /32: the limit is 1 different /32 that have such \
         routes"
    );
    assert_eq!(put(&mut lpm, "2001:db9::/32"), Ok(None));
    assert_eq!(put(&mut lpm, "2001:db8::1/128"), Ok(None));
    assert_eq!(put(&mut lpm, "::/0"), Err(LpmError::TableFull { limit: 3 }));
    assert_eq!(lpm.len(), 3);
    // The place of a tail that is gone is free after its grace period.
    for gone in ["2001:db8::/48", "2001:db8::1/128"] {
        assert_eq!(lpm.remove(at(gone)), Some(leaf(7)));
    }
    assert_eq!(put(&mut lpm, "2001:db9::/48"), Ok(None));
    assert_eq!(lpm.reader().lookup_route(at("2001:db9::/48").addr()), Some((7, 48)));
}

/// A tail has the smallest block for its routes, and none where there are too many, or no block is
/// free.
#[test]
fn blocks_grow_with_a_network() {
    let domain = Domain::new();
    let mut lpm = Lpm6::new(SMALL).unwrap();
    let upper = 0x2001_0db8;
    let site = |n: u128| Prefix::new(u128::from(upper) << 96 | n << 81, 48).unwrap();
    let class = |lpm: &Lpm6| lpm.open.get(&upper).and_then(|open| open.block).map(|(c, _)| c);
    for n in 1..=32 {
        lpm.insert(site(n - 1), leaf(n as u32), &domain).unwrap();
        let expected = [(7, Some(0)), (15, Some(1)), (31, Some(2)), (32, None)];
        let expected = expected.into_iter().find(|(most, _)| n <= *most).unwrap().1;
        assert_eq!(class(&lpm), expected, "{n} routes");
    }
    let check = |lpm: &Lpm6, n: u128| {
        let found = (0..40).map(|at| lpm.reader().lookup(site(at).addr() | 5));
        let want = (0..40).map(|at| if at < n { at as u32 + 1 } else { 0 });
        assert!(found.eq(want), "{n} routes");
    };
    check(&lpm, 32);
    // Small ones come back with the next route.
    (4..32).for_each(|n| assert!(lpm.remove(site(n)).is_some()));
    check(&lpm, 4);
    lpm.remove(site(3));
    lpm.insert(site(3), leaf(4), &domain).unwrap();
    assert_eq!(class(&lpm), Some(0));
    check(&lpm, 4);
    // Routes to all of it, no longer than /32, change blocks, too.
    lpm.insert(at("2001:db8::/32"), leaf(99), &domain).unwrap();
    assert_eq!(lpm.reader().lookup(site(30).addr()), 99);
    lpm.remove(at("2001:db8::/32"));
    check(&lpm, 4);
    // No block becomes free while a worker stands still.
    let mut worker = domain.register().unwrap();
    let _guard = worker.enter();
    for _ in 0..200 {
        lpm.remove(site(3));
        lpm.insert(site(3), leaf(4), &domain).unwrap();
        lpm.reclaim(&domain);
        check(&lpm, 4);
    }
    assert_eq!(class(&lpm), None);
}

#[test]
fn many_routes_come_and_go() {
    let domain = Domain::new();
    let all = internet6(20_000);
    let mut lpm = Lpm6::new(Lpm6Config { pages: Pages::Normal, ..Lpm6Config::default() }).unwrap();
    for (n, p) in all.iter().enumerate() {
        lpm.insert(*p, leaf(n as u32 + 1), &domain).unwrap();
    }
    let reader = lpm.reader();
    for (n, p) in all.iter().enumerate() {
        assert_eq!(lpm.get(*p), Some(leaf(n as u32 + 1)));
        assert!(reader.lookup_route(p.addr()).is_some_and(|(_, len)| len >= p.len()));
    }
    all.iter().step_by(2).for_each(|p| assert!(lpm.remove(*p).is_some()));
    lpm.reclaim(&domain);
    assert_eq!(lpm.len(), 10_000);
    for p in all.iter().skip(1).step_by(2) {
        assert!(reader.lookup_route(p.addr()).is_some_and(|(_, len)| len >= p.len()));
    }
}

#[test]
fn readers_find_the_old_or_the_new_route() {
    let domain = Domain::new();
    let mut lpm = Lpm6::new(SMALL).unwrap();
    let (wide, long) = (at("2001:db8::/32"), at("2001:db8:0:1::/64"));
    lpm.insert(wide, leaf(1), &domain).unwrap();
    let (reader, stop) = (lpm.reader(), AtomicBool::new(false));
    let mut online = domain.register().unwrap();
    std::thread::scope(|s| {
        s.spawn(|| {
            let mut found = [0; 40];
            let addrs = [long.addr() | 9; 40];
            while !stop.load(Ordering::Relaxed) {
                let _guard = online.enter();
                reader.lookup_batch(&addrs, &mut found);
                assert!(found.iter().all(|leaf| (1..1000).contains(leaf)), "{found:?}");
            }
        });
        let put = |lpm: &mut Lpm6, prefix, leaf| {
            // Removed memory is only free once the reader has gone on.
            while lpm.insert(prefix, leaf, &domain).is_err() {
                std::thread::yield_now();
                domain.reclaim();
            }
        };
        for n in 0..2000u32 {
            put(&mut lpm, long, leaf(2 + n % 900));
            // Others make the hash table grow.
            let other = Prefix::new(long.addr() | u128::from(n % 200) << 8, 120).unwrap();
            put(&mut lpm, other, leaf(5));
            // Others make the block grow.
            let near = Prefix::new(wide.addr() | u128::from(n % 80) << 84, 44).unwrap();
            put(&mut lpm, near, leaf(6));
            lpm.remove(long);
            if n % 3 == 0 {
                lpm.remove(other);
                lpm.remove(near);
            }
            lpm.reclaim(&domain);
            domain.reclaim();
        }
        stop.store(true, Ordering::Relaxed);
    });
}
