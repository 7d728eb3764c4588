use super::room::{PENDING_PER_INTERFACE, Rank};
use super::*;
use proptest::prelude::*;
use std::net::Ipv6Addr;
use thalweg_device::SwIfIndex;
use thalweg_wire::MacAddr;

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 7]);

fn key(n: u8) -> Key {
    (SwIfIndex(1), IpAddr::from([10, 0, 0, n]))
}

/// An address of the other family with the same last bits.
fn key6(n: u8) -> Key {
    (SwIfIndex(1), IpAddr::V6(Ipv6Addr::from_bits(0x0a00_0000 | u128::from(n))))
}

fn waiter(n: u8) -> Waiter {
    waiter_for(key(n))
}

fn waiter_for(key: Key) -> Waiter {
    Waiter {
        worker: 0,
        node: NodeId(7),
        request: ResolveRequest { sw_if: key.0, ip: key.1, dpo: None },
    }
}

fn with(config: Config) -> NeighborTable {
    let mut t = NeighborTable::default();
    Version::ALL.into_iter().for_each(|family| t.set_config(family, config));
    t
}

fn configure(t: &mut NeighborTable, f: impl Fn(&mut Config)) {
    for family in Version::ALL {
        let mut config = t.config(family);
        f(&mut config);
        t.set_config(family, config);
    }
}

fn small() -> (NeighborTable, Instant) {
    let config = Config { limit: 3, age: Duration::from_secs(10), ..Config::default() };
    (with(config), Instant::now())
}

fn s(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[test]
fn a_reply_may_be_read_before_the_request_of_another_worker() {
    let (mut t, now) = (NeighborTable::default(), Instant::now());
    t.learn(key(7), MAC, Origin::Reply, now);
    assert!(t.get(key(7)).is_none(), "nobody has asked");
    t.request(key(7), None, true, now + Duration::from_millis(50));
    assert_eq!(t.get(key(7)).and_then(|e| e.mac), Some(MAC));
    // The message is not the answer later, or while the main thread asks.
    t.learn(key(8), MAC, Origin::Reply, now);
    t.request(key(8), None, true, now + s(1));
    t.learn(key(9), MAC, Origin::Reply, now);
    t.request(key(9), None, false, now);
    assert!([8, 9].iter().all(|n| t.get(key(*n)).is_some_and(|e| e.mac.is_none())));
}

#[test]
fn replies_on_one_interface_leave_early_answers_of_others_alone() {
    let (mut t, now) = (NeighborTable::default(), Instant::now());
    let there = (SwIfIndex(2), IpAddr::from([10, 0, 2, 7]));
    let flood = |t: &mut NeighborTable| {
        (0..=255).for_each(|n| t.learn(key(n), MAC, Origin::Reply, now));
    };
    flood(&mut t);
    t.learn(there, MAC, Origin::Reply, now);
    flood(&mut t);
    t.request(there, None, true, now);
    assert_eq!(t.get(there).and_then(|e| e.mac), Some(MAC));
}

#[test]
fn one_that_is_asked_for_once_is_forgotten_unless_packets_wait() {
    let (mut t, now) = small();
    t.request_once(key(7), now);
    assert_eq!(t.take_actions(), [Action::Request { key: key(7), to: None }]);
    t.tick(now + s(1));
    assert!(t.get(key(7)).is_none() && t.take_actions().is_empty());
    // A packet makes it one like others.
    t.request_once(key(7), now);
    t.request(key(7), Some(waiter(7)), true, now);
    t.take_actions();
    for n in 1..3 {
        t.tick(now + s(n));
        assert_eq!(t.take_actions(), [Action::Request { key: key(7), to: None }]);
    }
    t.tick(now + s(3));
    assert_eq!(t.state(key(7), t.get(key(7)).unwrap(), now), State::Failed);
    // Nobody is asked who is known, or known not to answer.
    t.take_actions();
    t.request_once(key(7), now + s(3));
    t.learn(key(8), MAC, Origin::Request, now);
    t.take_actions();
    t.request_once(key(8), now);
    assert!(t.take_actions().is_empty());
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
    assert_eq!(t.stats(Version::V4).refused, 1);
    configure(&mut t, |c| c.recycle = true);
    t.learn(key(4), MAC, Origin::Request, now + s(5));
    assert!(t.get(key(4)).is_some() && t.get(key(3)).is_none());
    for n in 5..9 {
        let _ = t.set(key(n), MAC, true, false, now + s(6));
    }
    assert!(t.get(key(1)).is_some());
    assert_eq!(t.resolved(Version::V4), 3);
    assert_eq!(t.set(key(9), MAC, true, false, now), Err(TableFull::Family(3)));
}

/// A host of another interface.
fn other(n: u8) -> Key {
    (SwIfIndex(2), key(n).1)
}

/// Asks for a neighbour, which answers.
fn resolve(t: &mut NeighborTable, key: Key, now: Instant) {
    t.request(key, None, true, now);
    t.learn(key, MAC, Origin::Reply, now);
}

/// RFC 6583 section 7: a host that fills a table does not keep others out.
#[test]
fn awaited_answers_replace_what_was_only_heard() {
    for at in [key as fn(u8) -> Key, other] {
        let (mut t, now) = small();
        (1..=3).for_each(|n| t.learn(key(n), MAC, Origin::Request, now + s(n.into())));
        resolve(&mut t, at(7), now + s(4));
        assert!(t.get(at(7)).is_some_and(|e| e.mac.is_some()) && t.get(key(1)).is_none());
        // One that is asked for later is no longer only heard.
        t.request_once(key(2), now + s(5));
        resolve(&mut t, at(8), now + s(5));
        assert!(t.get(key(2)).is_some() && t.get(key(3)).is_none());
    }
}

#[test]
fn what_is_configured_replaces_what_is_learned() {
    let (mut t, now) = small();
    t.learn(key(1), MAC, Origin::Request, now);
    resolve(&mut t, key(2), now + s(1));
    resolve(&mut t, key(3), now + s(2));
    for (n, gone) in [(4, 1), (5, 2), (6, 3)] {
        assert_eq!(t.set(key(n), MAC, n > 4, false, now + s(3)), Ok(()));
        assert!(t.get(key(gone)).is_none());
    }
    // Two are static, and the other one is not older than itself.
    assert_eq!(t.set(key(7), MAC, true, false, now + s(4)), Ok(()));
    assert_eq!(t.set(key(8), MAC, true, false, now + s(4)), Err(TableFull::Family(3)));
}

#[test]
fn interfaces_with_fewer_neighbours_get_the_places_of_those_with_more() {
    let (mut t, now) = small();
    (1..=3).for_each(|n| resolve(&mut t, key(n), now + s(n.into())));
    // Being heard is not enough when all others answer.
    t.learn(other(1), MAC, Origin::Request, now + s(4));
    assert!(t.get(other(1)).is_none());
    resolve(&mut t, other(1), now + s(4));
    assert!(t.get(other(1)).is_some() && t.get(key(1)).is_none());
    // Each has its share now: neither takes more.
    for host in [key(4), other(4)] {
        resolve(&mut t, host, now + s(5));
    }
    assert_eq!(t.keys(Some(SwIfIndex(1)), None, |_, e| e.mac.is_some()).len(), 1);
    // A neighbour that was only heard makes room for one that was only heard elsewhere.
    let (mut t, now) = small();
    (1..=3).for_each(|n| t.learn(key(n), MAC, Origin::Request, now + s(n.into())));
    t.learn(key(4), MAC, Origin::Request, now + s(4));
    t.learn(other(1), MAC, Origin::Request, now + s(4));
    assert!(t.get(key(4)).is_none() && t.get(other(1)).is_some() && t.get(key(1)).is_none());
}

/// 60,000 invented senders of one link, then a host of another one.
#[test]
fn a_flood_of_senders_does_not_keep_other_interfaces_out() {
    let (mut t, now) = (NeighborTable::default(), Instant::now());
    let host = |sw_if, n: u32| (SwIfIndex(sw_if), IpAddr::from((0x0a00_0000 + n).to_be_bytes()));
    (0..60_000).for_each(|n| t.learn(host(1, n), MAC, Origin::Request, now));
    assert_eq!(t.resolved(Version::V4), 50_000);
    for n in 0..100 {
        resolve(&mut t, host(2, n), now + s(1));
        resolve(&mut t, host(1, 70_000 + n), now + s(1));
    }
    let known = |key| t.get(key).is_some_and(|e| e.mac.is_some());
    assert!((0..100).all(|n| known(host(2, n)) && known(host(1, 70_000 + n))));
}

#[test]
fn many_old_neighbours_are_probed_in_steps() {
    let config = Config { age: s(10), ..Config::default() };
    let (mut t, now) = (with(config), Instant::now());
    for n in 0..200 {
        t.learn(key(n), MAC, Origin::Request, now);
    }
    t.take_actions();
    let old = now + s(11);
    t.tick(old);
    assert_eq!(t.take_actions().len(), PROBES_PER_STEP);
    let stale = t.iter().filter(|(k, e)| t.state(*k, e, old) == State::Stale).count();
    assert_eq!(stale, 200 - PROBES_PER_STEP);
    assert_eq!(t.next_due(old), Some(old + STEP));
    configure(&mut t, |c| c.age = Duration::ZERO);
    t.tick(old + STEP);
    assert!(t.take_actions().is_empty());
}

#[test]
fn each_family_has_limits_of_its_own() {
    let (mut t, now) = small();
    for n in 1..=3 {
        assert_eq!(t.set(key(n), MAC, n > 1, false, now), Ok(()));
        assert_eq!(t.set(key6(n), MAC, true, false, now), Ok(()));
    }
    // Room is made by the family's own.
    configure(&mut t, |c| c.recycle = true);
    assert_eq!(t.set(key6(4), MAC, true, false, now), Err(TableFull::Family(3)));
    assert_eq!(t.set(key(4), MAC, true, false, now), Ok(()));
    assert!(t.get(key(1)).is_none() && t.get(key6(1)).is_some());
    assert_eq!((t.stats(Version::V4).recycled, t.stats(Version::V6).refused), (1, 1));
}

#[test]
fn an_interface_at_its_limit_replaces_its_own_neighbours() {
    let (mut t, now) = small();
    configure(&mut t, |c| (c.limit, c.interface_limit) = (100, 2));
    t.learn(other(1), MAC, Origin::Request, now);
    t.learn(key(1), MAC, Origin::Request, now + s(1));
    t.learn(key(2), MAC, Origin::Request, now + s(2));
    t.learn(key(3), MAC, Origin::Request, now + s(3));
    assert!(t.get(key(3)).is_none());
    t.learn(key6(3), MAC, Origin::Request, now + s(3));
    t.set(key(3), MAC, true, false, now + s(3)).unwrap();
    assert!(t.get(key(1)).is_none() && t.get(other(1)).is_some() && t.get(key6(3)).is_some());
    t.set(key(4), MAC, true, false, now + s(3)).unwrap();
    // Static ones stay.
    assert_eq!(t.set(key(5), MAC, true, false, now + s(3)), Err(TableFull::Interface(2)));
}

#[test]
fn a_scan_of_one_interface_leaves_room_for_others() {
    let (mut t, now) = small();
    let host = |sw_if, n: u32| (sw_if, IpAddr::from((0x0a00_0000 + n).to_be_bytes()));
    let scan = |t: &mut NeighborTable, sw_if| {
        (0..MAX_PENDING as u32).for_each(|n| t.request(host(sw_if, n), None, true, now));
        let pending = |i| t.keys(Some(SwIfIndex(i)), None, |_, _| true).len();
        [1, 2, 3].map(pending)
    };
    let (own, third) = (PENDING_PER_INTERFACE, MAX_PENDING / 3);
    assert_eq!(scan(&mut t, SwIfIndex(1)), [own, 0, 0]);
    assert_eq!(scan(&mut t, SwIfIndex(2)), [own, own, 0]);
    let shares = scan(&mut t, SwIfIndex(3));
    assert!(shares.iter().all(|n| n.abs_diff(third) < 3), "{shares:?}");
    assert_eq!(t.stats(Version::V4).crowded, 2 * 2048 + 4096);
    // The other family has its own room.
    t.take_actions();
    t.request(key6(1), Some(waiter_for(key6(1))), true, now);
    assert!(t.take_actions().is_empty());
    // Failures are remembered up to a number.
    for step in 1..=3 {
        t.tick(now + s(step));
    }
    assert_eq!(t.sides[0].failed.len(), MAX_PENDING);
    let later = now + s(3);
    (0..10).for_each(|n| t.request(host(SwIfIndex(4), n), None, true, later));
    for step in 1..=3 {
        t.tick(later + s(step));
    }
    assert_eq!((t.sides[0].failed.len(), t.stats(Version::V4).forgotten), (MAX_PENDING, 10));
}

/// The newest have the best chance: a host that is there answers at once.
#[test]
fn the_place_that_has_waited_longest_is_given_up() {
    let (mut t, now) = small();
    let host = |n: u32| (SwIfIndex(1), IpAddr::from((0x0a00_0000 + n).to_be_bytes()));
    let waits = |n| waiter_for(host(n));
    for n in 0..PENDING_PER_INTERFACE as u32 {
        t.request(host(n), Some(waits(n)), true, now + Duration::from_micros(n.into()));
    }
    assert!(t.take_actions().is_empty());
    t.request(host(9000), Some(waits(9000)), true, now + s(1));
    let hold = Duration::ZERO;
    assert_eq!(t.take_actions(), [Action::Fail { waiters: vec![waits(0)], hold }]);
    t.learn(host(9000), MAC, Origin::Reply, now + s(1));
    assert!(t.get(host(9000)).is_some_and(|e| e.mac.is_some()));
}

#[test]
fn a_neighbour_that_another_interface_has_heard_is_asked() {
    let (mut t, now) = small();
    t.learn(key(1), MAC, Origin::Request, now);
    t.set(key(2), MAC, true, false, now).unwrap();
    t.take_actions();
    for n in 1..=3 {
        t.confirm(key(n), now);
        t.confirm(key(n), now);
    }
    assert_eq!(t.take_actions(), [Action::Request { key: key(1), to: Some(MAC) }]);
    for step in 1..=3 {
        t.tick(now + s(step));
    }
    assert!(t.get(key(1)).is_none() && t.get(key(2)).is_some());
}

#[test]
fn an_interface_costs_its_own_neighbours() {
    let config = Config { limit: MAX_LIMIT, ..Config::default() };
    let (mut t, now) = (with(config), Instant::now());
    for sw_if in 0..10_000 {
        for n in 1..=3 {
            t.learn((SwIfIndex(sw_if), key(n).1), MAC, Origin::Request, now);
            t.learn((SwIfIndex(sw_if), key6(n).1), MAC, Origin::Request, now);
        }
    }
    t.take_actions();
    let visits = |t: &NeighborTable, sw_if, family| {
        t.visited.set(0);
        let n = t.keys(sw_if, family, |_, _| true).len();
        (n, t.visited.take())
    };
    assert_eq!(visits(&t, Some(SwIfIndex(5000)), None), (6, 6));
    assert_eq!(visits(&t, Some(SwIfIndex(5000)), Some(Version::V6)), (3, 3));
    assert_eq!(visits(&t, Some(SwIfIndex::MAX), None), (0, 0));
    let keys = t.keys(Some(SwIfIndex(5000)), None, |_, _| true);
    assert_eq!(t.remove_all(&keys), 6);
    assert_eq!(t.take_actions().len(), 6);
    assert_eq!(visits(&t, Some(SwIfIndex(5000)), None), (0, 0));
    assert_eq!(visits(&t, Some(SwIfIndex(4999)), None), (6, 6));
    assert_eq!(visits(&t, None, Some(Version::V4)).0, 29_997);
    assert_eq!(t.shares.len(), 2 * 9_999);
    check(&t);
}

#[derive(Debug, Clone)]
enum Op {
    Want(u8),
    Learn(u8, u8, Origin),
    Set(u8, bool),
    Remove(u8),
    Flush(u8),
    Pass(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let origin = prop_oneof![Just(Origin::Request), Just(Origin::Reply), Just(Origin::Gratuitous)];
    prop_oneof![
        4 => (0u8..ALL).prop_map(Op::Want),
        6 => (0u8..ALL, 0u8..2, origin).prop_map(|(n, m, o)| Op::Learn(n, m, o)),
        1 => (0u8..ALL, any::<bool>()).prop_map(|(n, s)| Op::Set(n, s)),
        1 => (0u8..ALL).prop_map(Op::Remove),
        1 => (0u8..4).prop_map(Op::Flush),
        4 => (0u64..4000).prop_map(Op::Pass),
    ]
}

/// Number of keys that the operations are about: two interfaces, two families.
const ALL: u8 = 16;

fn any_key(n: u8) -> Key {
    let host = n % 4 + 1;
    let (sw_if, ip) = if (n / 4).is_multiple_of(2) { key(host) } else { key6(host) };
    (SwIfIndex(sw_if.0 + u32::from(n / 8)), ip)
}

/// The indices agree with the entries, and every waiter has a pending neighbour.
fn check(t: &NeighborTable) {
    let mut shares = 0;
    for family in Version::ALL {
        let side = &t.sides[family.index()];
        let own: Vec<(&Key, &Entry)> =
            t.entries.iter().filter(|(k, _)| Version::of_ip(k.1) == family).collect();
        let count = |p: Phase| own.iter().filter(|(_, e)| e.phase == p).count();
        let dynamic = own.iter().filter(|(_, e)| e.phase == Phase::Reachable && !e.is_static);
        assert_eq!(side.by_age.len(), dynamic.count());
        assert_eq!(side.asking.len(), count(Phase::Incomplete) + count(Phase::Probe));
        assert_eq!(side.failed.len(), count(Phase::Failed));
        assert_eq!(side.incomplete, count(Phase::Incomplete));
        assert_eq!(side.resolved, own.iter().filter(|(_, e)| e.mac.is_some()).count());
        for (due, key) in side.by_age.iter().chain(&side.asking).chain(&side.failed) {
            assert_eq!(t.entries[key].due, *due);
        }
        let all = t.shares.iter().filter(|((_, f), _)| *f == family).map(|(_, share)| share);
        let sum = |of: fn(&Share) -> usize| all.clone().map(of).sum::<usize>();
        assert_eq!(sum(|s| s.pending.len()), side.incomplete);
        assert_eq!(sum(|s| s.resolved), side.resolved);
        assert_eq!(sum(Share::replaceable), side.by_age.len());
        shares += sum(|s| usize::from(s.pending.len() + s.resolved > 0));
        // The largest share is found without a look at the others.
        for by in [Rank::Pending, Rank::Heard, Rank::Replaceable] {
            let sizes = t.shares.iter().filter(|((_, f), _)| *f == family);
            let sizes = sizes.map(|((sw_if, _), share)| (share.sizes()[by as usize], *sw_if));
            assert_eq!(side.ranks.largest(by), sizes.filter(|(size, _)| *size > 0).max());
        }
    }
    assert_eq!(shares, t.shares.len(), "no share is empty");
    for e in t.entries.values() {
        assert!(e.waiters.is_empty() || e.phase == Phase::Incomplete);
        assert_eq!(e.mac.is_some(), matches!(e.phase, Phase::Reachable | Phase::Probe));
        assert!(!e.is_static || e.phase == Phase::Reachable);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn every_waiter_is_answered_once(
        ops in prop::collection::vec(op(), 0..120), recycle: bool, interface_limit in 1usize..4,
    ) {
        let (mut t, mut now) = small();
        configure(&mut t, |c| (c.recycle, c.interface_limit) = (recycle, interface_limit));
        let mut waiting = std::collections::BTreeSet::new();
        let mut known = std::collections::BTreeSet::new();
        for op in ops {
            match op {
                Op::Want(n) => {
                    waiting.insert(any_key(n));
                    t.request(any_key(n), Some(waiter_for(any_key(n))), true, now);
                }
                Op::Learn(n, m, origin) => t.learn(any_key(n), MacAddr([2, 0, 0, 0, m, n]), origin, now),
                Op::Set(n, is_static) => drop(t.set(any_key(n), MAC, is_static, false, now)),
                Op::Remove(n) => drop(t.remove(any_key(n))),
                Op::Flush(n) => {
                    let (sw_if, ip) = any_key(4 * n);
                    let keys = t.keys(Some(sw_if), Some(Version::of_ip(ip)), |_, e| !e.is_static);
                    let is_own = |k: &Key| k.0 == sw_if && Version::of_ip(k.1) == Version::of_ip(ip);
                    prop_assert!(keys.iter().all(is_own));
                    t.remove_all(&keys);
                }
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
                    let key = (w.request.sw_if, w.request.ip);
                    prop_assert!(waiting.remove(&key), "answered twice");
                }
            }
            check(&t);
            let held: Vec<Key> =
                t.iter().filter(|(_, e)| !e.waiters.is_empty()).map(|(k, _)| k).collect();
            prop_assert_eq!(held, waiting.iter().copied().collect::<Vec<_>>());
            for family in Version::ALL {
                prop_assert!(t.resolved(family) <= t.config(family).limit);
                let of = known.iter().filter(|k| Version::of_ip(k.1) == family).count();
                prop_assert_eq!(t.resolved(family), of);
            }
            prop_assert!(t.shares.values().all(|s| s.resolved <= interface_limit));
        }
        // Without reports, all resolutions end within seconds.
        for _ in 0..5 {
            now += s(1);
            t.tick(now);
        }
        prop_assert_eq!(t.sides[0].incomplete + t.sides[1].incomplete, 0);
    }
}
