use super::*;
use proptest::prelude::*;

const MAC: Mac = [2, 0, 0, 0, 0, 7];

fn key(n: u8) -> Key {
    (1, Ipv4Addr::new(10, 0, 0, n))
}

fn waiter(n: u8) -> Waiter {
    Waiter { worker: 0, request: ResolveRequest::Host(1, key(n).1) }
}

fn small() -> (NeighborTable, Instant) {
    let config = Config { limit: 3, age: Duration::from_secs(10), ..Config::default() };
    (NeighborTable::new(config), Instant::now())
}

fn s(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[test]
fn failures_are_remembered_longer_each_time() {
    let (mut t, mut now) = small();
    let mut holds = Vec::new();
    for _ in 0..6 {
        t.request(key(7), Some(waiter(7)), true, now);
        assert!(t.take_actions().is_empty(), "the worker has asked already");
        for _ in 0..2 {
            now += s(1);
            t.tick(now);
            assert_eq!(t.take_actions(), [Action::Request { key: key(7), to: None }]);
        }
        now += s(1);
        t.tick(now);
        let [Action::Fail { waiters, hold }] = &t.take_actions()[..] else { panic!() };
        assert_eq!(waiters, &[waiter(7)]);
        holds.push(hold.as_secs());
        // A request during the silence fails for the rest of it.
        t.request(key(7), Some(waiter(7)), true, now + s(1));
        let left = *hold - s(1);
        assert_eq!(t.take_actions(), [Action::Fail { waiters: vec![waiter(7)], hold: left }]);
        now += *hold;
    }
    assert_eq!(holds, [2, 4, 8, 16, 30, 30]);
    t.tick(now + MEMORY);
    assert!(t.get(key(7)).is_none());
}

#[test]
fn resolution_releases_the_waiters_once() {
    let (mut t, now) = small();
    t.request(key(7), Some(waiter(7)), false, now);
    t.request(key(7), Some(waiter(7)), false, now);
    assert_eq!(t.take_actions(), [Action::Request { key: key(7), to: None }]);
    t.learn(key(7), MAC, Origin::Reply, now);
    let (key, waiters) = (key(7), vec![waiter(7)]);
    assert_eq!(t.take_actions(), [Action::Resolved { key, waiters, revived: false }]);
    assert_eq!(t.next_due(now), Some(now + s(10)));
}

#[test]
fn a_full_table_refuses_or_recycles_the_oldest_but_never_static_ones() {
    let (mut t, now) = small();
    t.set(key(1), MAC, true, false, now).unwrap();
    t.learn(key(2), MAC, Origin::Request, now + s(1));
    t.learn(key(3), MAC, Origin::Request, now + s(2));
    t.learn(key(2), MAC, Origin::Request, now + s(3));
    t.learn(key(4), MAC, Origin::Request, now + s(4));
    assert!(t.get(key(4)).is_none());
    assert_eq!(t.set(key(4), MAC, true, false, now), Err(TableFull));
    assert_eq!(t.stats.refused, 2);
    t.config.recycle = true;
    t.learn(key(4), MAC, Origin::Request, now + s(5));
    assert!(t.get(key(4)).is_some() && t.get(key(3)).is_none());
    for n in 5..9 {
        let _ = t.set(key(n), MAC, true, false, now + s(6));
    }
    assert!(t.get(key(1)).is_some());
    assert_eq!(t.resolved(), 3);
}

#[test]
fn many_old_neighbours_are_probed_in_steps() {
    let config = Config { age: s(10), ..Config::default() };
    let (mut t, now) = (NeighborTable::new(config), Instant::now());
    for n in 0..200 {
        t.learn(key(n), MAC, Origin::Request, now);
    }
    t.take_actions();
    let old = now + s(11);
    t.tick(old);
    assert_eq!(t.take_actions().len(), PROBES_PER_STEP);
    let stale = t.iter().filter(|(_, e)| t.state(e, old) == State::Stale).count();
    assert_eq!(stale, 200 - PROBES_PER_STEP);
    assert_eq!(t.next_due(old), Some(old + STEP));
    t.config.age = Duration::ZERO;
    t.tick(old + STEP);
    assert!(t.take_actions().is_empty());
}

#[derive(Debug, Clone)]
enum Op {
    Want(u8),
    Learn(u8, u8, Origin),
    Set(u8, bool),
    Remove(u8),
    Flush,
    Pass(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let origin = prop_oneof![Just(Origin::Request), Just(Origin::Reply), Just(Origin::Gratuitous)];
    prop_oneof![
        4 => (0u8..8).prop_map(Op::Want),
        6 => (0u8..8, 0u8..2, origin).prop_map(|(n, m, o)| Op::Learn(n, m, o)),
        1 => (0u8..8, any::<bool>()).prop_map(|(n, s)| Op::Set(n, s)),
        1 => (0u8..8).prop_map(Op::Remove),
        1 => Just(Op::Flush),
        4 => (0u64..4000).prop_map(Op::Pass),
    ]
}

/// The indices agree with the entries, and every waiter has a pending neighbour.
fn check(t: &NeighborTable) {
    let count = |p: Phase| t.entries.values().filter(|e| e.phase == p).count();
    let dynamic = t.entries.values().filter(|e| e.phase == Phase::Reachable && !e.is_static);
    assert_eq!(t.by_age.len(), dynamic.count());
    assert_eq!(t.asking.len(), count(Phase::Incomplete) + count(Phase::Probe));
    assert_eq!(t.failed.len(), count(Phase::Failed));
    assert_eq!(t.incomplete, count(Phase::Incomplete));
    assert_eq!(t.resolved, t.entries.values().filter(|e| e.mac.is_some()).count());
    for (due, key) in t.by_age.iter().chain(&t.asking).chain(&t.failed) {
        assert_eq!(t.entries[key].due, *due);
    }
    for e in t.entries.values() {
        assert!(e.waiters.is_empty() || e.phase == Phase::Incomplete);
        assert_eq!(e.mac.is_some(), matches!(e.phase, Phase::Reachable | Phase::Probe));
        assert!(!e.is_static || e.phase == Phase::Reachable);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn every_waiter_is_answered_once(ops in prop::collection::vec(op(), 0..80), recycle: bool) {
        let (mut t, mut now) = small();
        t.config.recycle = recycle;
        let mut waiting = std::collections::BTreeSet::new();
        let mut known = std::collections::BTreeSet::new();
        for op in ops {
            match op {
                Op::Want(n) => {
                    waiting.insert(n);
                    t.request(key(n), Some(waiter(n)), true, now);
                }
                Op::Learn(n, m, origin) => t.learn(key(n), [2, 0, 0, 0, m, n], origin, now),
                Op::Set(n, is_static) => drop(t.set(key(n), MAC, is_static, false, now)),
                Op::Remove(n) => drop(t.remove(key(n))),
                Op::Flush => drop(t.flush(|_, e| !e.is_static)),
                Op::Pass(ms) => {
                    now += Duration::from_millis(ms);
                    t.tick(now);
                }
            }
            for action in t.take_actions() {
                let answered = match action {
                    Action::Resolved { key, waiters, .. } => {
                        known.insert(key);
                        waiters
                    }
                    Action::Fail { waiters, .. } => waiters,
                    Action::Gone { key, .. } => {
                        prop_assert!(known.remove(&key));
                        Vec::new()
                    }
                    Action::Request { .. } => Vec::new(),
                };
                for w in answered {
                    let ResolveRequest::Host(_, ip) = w.request else { panic!() };
                    prop_assert!(waiting.remove(&ip.octets()[3]), "answered twice");
                }
            }
            check(&t);
            let held: Vec<u8> = (0..8)
                .filter(|n| t.get(key(*n)).is_some_and(|e| !e.waiters.is_empty()))
                .collect();
            prop_assert_eq!(held, waiting.iter().copied().collect::<Vec<_>>());
            prop_assert!(t.resolved() <= t.config.limit);
            prop_assert_eq!(t.resolved(), known.len());
        }
        // Without reports, all resolutions end within seconds.
        for _ in 0..5 {
            now += s(1);
            t.tick(now);
        }
        prop_assert_eq!(t.incomplete, 0);
    }
}
