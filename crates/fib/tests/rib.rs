//! Route tables, for addresses of 32 and of 128 bits.

#![allow(clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use thalweg_device::SwIfIndex;
use thalweg_device::testing::{Lab, NO_ETHERNET};
use thalweg_fib::forwarding::{DROP, LOCAL, PROHIBIT, UNREACHABLE, UNRESOLVED};
use thalweg_fib::rib::{Labels, NeighborOn, Path, PathKind, RibError, Source, Table};
use thalweg_fib::{Dpo, FibError, Forwarding, Kind, LinkType, Member, Midchain, Peer, TableId};
use thalweg_graph::NodeId;
use thalweg_tables::qsbr::Domain;
use thalweg_tables::{Address, Leaf, Lpm, LpmError, Prefix};
use thalweg_wire::MacAddr;
use thalweg_wire::mpls::Label;

fn lab() -> Lab {
    Lab::of(&thalweg_fib::FEATURE).with(&NO_ETHERNET).buffers(256).start()
}

/// A table of leaves that counts how often one is written.
#[derive(Default)]
struct Leaves<A> {
    all: BTreeMap<Prefix<A>, Leaf>,
    stores: usize,
}

impl<A: Address> Lpm<A> for Leaves<A> {
    fn set(&mut self, prefix: Prefix<A>, leaf: Leaf, _: &Domain) -> Result<(), LpmError> {
        let old = self.all.insert(prefix, leaf);
        self.stores += usize::from(old != Some(leaf));
        Ok(())
    }
    fn unset(&mut self, prefix: Prefix<A>) {
        self.stores += usize::from(self.all.remove(&prefix).is_some());
    }
    fn memory(&self) -> usize {
        0
    }
    fn lengths(&self) -> Vec<usize> {
        let mut all = vec![0; usize::from(A::BITS) + 1];
        self.all.keys().for_each(|p| all[usize::from(p.len())] += 1);
        all
    }
    fn reclaim(&mut self, _: &Domain) {}
}

/// Values of a family that the tests need.
trait Family: Address {
    const LINK: LinkType;
    /// An address of the documentation's network of interface `n`.
    fn of(n: u8, host: u8) -> Self;
}

impl Family for u32 {
    const LINK: LinkType = LinkType::Ip4;
    fn of(n: u8, host: u8) -> u32 {
        u32::from_be_bytes([10, 0, n, host])
    }
}

impl Family for u128 {
    const LINK: LinkType = LinkType::Ip6;
    fn of(n: u8, host: u8) -> u128 {
        0x2001_0db8 << 96 | u128::from(n) << 64 | u128::from(host)
    }
}

type Routes<A> = Table<A, Leaves<A>>;

/// The prefix around an address that is `short` bits shorter than that.
fn prefix<A: Family>(addr: A, short: u8) -> Prefix<A> {
    Prefix::new(addr, A::BITS - short).expect("a length")
}

/// A table with a subnet of 8 bits on each interface.
fn table<A: Family>(lab: &Lab) -> Routes<A> {
    let mut t = Table::new(TableId(0), 0, A::LINK, Leaves::default());
    for n in 0..3 {
        let connected = vec![Path::connected(lab.sw_if(n))];
        t.set(&lab.c, prefix(A::of(n, 0), 8), Source::Interface, connected).expect("a subnet");
        let own = vec![Path::special(PathKind::Local)];
        t.set(&lab.c, Prefix::host(A::of(n, 1)), Source::Interface, own).expect("an address");
    }
    t
}

fn forwarding<T>(lab: &Lab, f: impl FnOnce(&mut Forwarding) -> T) -> T {
    let forwarding = lab.c.state::<Forwarding>();
    f(&mut forwarding.borrow_mut())
}

/// The outcome of a route as seen from outside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum End {
    Special(Dpo),
    Hop(SwIfIndex, IpAddr),
    Link(SwIfIndex),
}

/// Ends of packets of all flows.
fn ends(lab: &Lab, dpo: Dpo) -> BTreeSet<End> {
    forwarding(lab, |f| {
        let all: BTreeSet<Dpo> = (0..64).map(|hash| f.table().resolve(dpo, || hash)).collect();
        all.into_iter()
            .map(|dpo| match f.owner(dpo) {
                Some((i, Some(nh))) => End::Hop(i, nh),
                Some((i, None)) => End::Link(i),
                None => End::Special(dpo),
            })
            .collect()
    })
}

/// Prefixes that nest, outside of the subnets.
const PREFIXES: usize = 6;

fn nested<A: Family>(n: usize) -> Prefix<A> {
    match n {
        0 => prefix(A::of(40, 0), 8),
        1 => prefix(A::of(40, 16), 4),
        2 => Prefix::host(A::of(40, 17)),
        3 => prefix(A::of(50, 0), 8),
        4 => Prefix::host(A::of(50, 1)),
        _ => Prefix::new(A::of(0, 0), 0).expect("a length"),
    }
}

/// A path as it is drawn: to be made for either family.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Path to a host of a subnet, by its interface or not.
    Host(u8, u8, bool),
    /// Path to an address that a route may cover.
    Through(u8, u8),
    Link(u8),
    Special(PathKind),
}

/// Part of a path: its weight and its preference.
type Share = (u8, u8);

fn path<A: Family>(lab: &Lab, way: Way, (weight, preference): Share) -> Path {
    let path = match way {
        Way::Host(n, host, named) => Path::via(A::of(n, host).to_ip(), named.then(|| lab.sw_if(n))),
        Way::Through(net, host) => Path::via(A::of(net, host).to_ip(), None),
        Way::Link(n) => Path::connected(lab.sw_if(n)),
        Way::Special(kind) => Path::special(kind),
    };
    Path { weight, preference, ..path }
}

#[derive(Clone, Debug)]
enum Op {
    Set(usize, Vec<(Way, Share)>),
    Unset(usize),
    /// Takes an interface up or down.
    Up(u8, bool),
}

fn any_way() -> impl Strategy<Value = Way> {
    prop_oneof![
        3 => (0u8..3, 2u8..4, any::<bool>()).prop_map(|(n, h, named)| Way::Host(n, h, named)),
        4 => (prop::sample::select(vec![40u8, 50]), prop::sample::select(vec![1u8, 17, 99]))
            .prop_map(|(net, host)| Way::Through(net, host)),
        1 => (0u8..3).prop_map(Way::Link),
    ]
}

fn any_op() -> impl Strategy<Value = Op> {
    let ways = prop_oneof![
        5 => prop::collection::vec((any_way(), (1u8..4, 0u8..3)), 1..4),
        1 => prop::sample::select(vec![
            PathKind::Local, PathKind::Drop, PathKind::Unreachable, PathKind::Prohibit,
        ]).prop_map(|kind| vec![(Way::Special(kind), (1, 0))]),
    ];
    prop_oneof![
        6 => (0..PREFIXES, ways).prop_map(|(p, ways)| Op::Set(p, ways)),
        2 => (0..PREFIXES).prop_map(Op::Unset),
        1 => (0u8..3, any::<bool>()).prop_map(|(n, up)| Op::Up(n, up)),
    ]
}

/// Routes, and interfaces that are down.
#[derive(Default)]
struct Model {
    routes: BTreeMap<usize, Vec<(Way, Share)>>,
    down: BTreeSet<SwIfIndex>,
}

impl Model {
    /// Returns the longest prefix around an address.
    fn covering<A: Family>(&self, nh: A) -> Option<usize> {
        let covers = self.routes.keys().filter(|p| nested::<A>(**p).contains(nh));
        covers.max_by_key(|p| nested::<A>(**p).len()).copied()
    }

    fn is_up(&self, end: &End) -> bool {
        !matches!(end, End::Hop(i, _) | End::Link(i) if self.down.contains(i))
    }
}

/// Resolves the paths of the best preference from scratch: what is usable. Nothing if all paths
/// lead nowhere, back to themselves, or over links that are down.
fn resolve_all<A: Family>(
    lab: &Lab,
    model: &Model,
    ways: &[(Way, Share)],
    seen: &[usize],
) -> BTreeSet<End> {
    let mut by_preference: BTreeMap<u8, BTreeSet<End>> = BTreeMap::new();
    for (way, (_, preference)) in ways {
        let ends = resolve::<A>(lab, model, *way, seen);
        by_preference.entry(*preference).or_default().extend(ends);
    }
    by_preference.into_values().find(|ends| !ends.is_empty()).unwrap_or_default()
}

fn resolve<A: Family>(lab: &Lab, model: &Model, way: Way, seen: &[usize]) -> BTreeSet<End> {
    let nowhere = BTreeSet::new();
    let one = |end: End| if model.is_up(&end) { BTreeSet::from([end]) } else { BTreeSet::new() };
    match way {
        Way::Host(n, host, _) => one(End::Hop(lab.sw_if(n), A::of(n, host).to_ip())),
        Way::Link(n) => one(End::Link(lab.sw_if(n))),
        Way::Special(kind) => BTreeSet::from([End::Special(match kind {
            PathKind::Local => LOCAL,
            PathKind::Unreachable => UNREACHABLE,
            PathKind::Prohibit => PROHIBIT,
            _ => DROP,
        })]),
        Way::Through(net, host) => {
            let nh = A::of(net, host);
            let Some(p) = model.covering(nh) else { return nowhere };
            let ways = &model.routes[&p];
            let is_self =
                |w: &(Way, Share)| matches!(w.0, Way::Through(n, h) if (n, h) == (net, host));
            let recursive =
                |w: &(Way, Share)| matches!(w.0, Way::Through(..) | Way::Host(_, _, false));
            if seen.contains(&p) || ways.iter().any(is_self) && ways.iter().all(recursive) {
                return nowhere;
            }
            match ways[..] {
                [(Way::Special(_), _)] => nowhere,
                [(Way::Link(n), _)] => one(End::Hop(lab.sw_if(n), nh.to_ip())),
                _ => resolve_all::<A>(lab, model, ways, &[seen, &[p]].concat()),
            }
        }
    }
}

/// True if any route of the model leads back to itself: how such a loop is cut depends on the order
/// of changes.
fn has_loop<A: Family>(model: &Model, p: usize, seen: &[usize]) -> bool {
    if seen.contains(&p) {
        return true;
    }
    let seen = [seen, &[p]].concat();
    model.routes.get(&p).into_iter().flatten().any(|(way, _)| match way {
        Way::Through(net, host) => {
            let next = model.covering(A::of(*net, *host));
            next.is_some_and(|next| has_loop::<A>(model, next, &seen))
        }
        _ => false,
    })
}

fn agrees<A: Family>(lab: &mut Lab, ops: &[Op]) -> Result<(), TestCaseError> {
    (0..3).for_each(|n| lab.up(n, true));
    let before = forwarding(lab, |f| f.len());
    let mut t = table::<A>(lab);
    let mut model = Model::default();
    for op in ops {
        match op {
            Op::Set(p, ways) => {
                let paths: Vec<Path> = ways.iter().map(|(w, n)| path::<A>(lab, *w, *n)).collect();
                // Next hops may lead anywhere or nowhere.
                let done = t.set(&lab.c, nested(*p), Source::Static, paths);
                prop_assert!(done.is_ok(), "{} {:?}: {:?}", p, ways, done);
                model.routes.insert(*p, ways.clone());
            }
            Op::Unset(p) => {
                let done = t.unset(&lab.c, nested(*p), Source::Static);
                prop_assert_eq!(done, model.routes.remove(p).is_some());
            }
            Op::Up(n, up) => {
                lab.up(*n, *up);
                let sw_if = lab.sw_if(*n);
                _ = if *up { model.down.remove(&sw_if) } else { model.down.insert(sw_if) };
            }
        }
        for (p, ways) in &model.routes {
            let view = t.view(nested(*p)).expect("the route");
            prop_assert_eq!(t.lpm().all.get(&nested(*p)).map(|l| Dpo(l.get())), Some(view.dpo));
            prop_assert!(t.lookup(nested::<A>(*p).addr()).is_some());
            let met = ends(lab, view.dpo);
            if model.routes.keys().any(|p| has_loop::<A>(&model, *p, &[])) {
                prop_assert!(!met.is_empty());
                continue;
            }
            let want = resolve_all::<A>(lab, &model, ways, &[]);
            let unresolved = t.unresolved(&lab.c, &view);
            prop_assert_eq!(unresolved.len(), ways.len());
            if want.is_empty() {
                let dead = |end: &End| *end == End::Special(UNRESOLVED) || !model.is_up(end);
                prop_assert!(met.iter().all(dead), "{p}: {met:?}");
                continue;
            }
            let lost = unresolved.iter().all(Option::is_some);
            prop_assert!(!lost, "{p}: {unresolved:?}");
            // A small share of many may get no bucket.
            prop_assert!(met.is_subset(&want), "{p}: {met:?} {want:?}");
            prop_assert!(met.len() == want.len() || want.len() > 3, "{p}: {met:?} {want:?}");
        }
        prop_assert_eq!(t.len(), 6 + model.routes.len());
    }
    t.clear(&lab.c);
    prop_assert_eq!(forwarding(lab, |f| f.len()), before, "objects are left over");
    Ok(())
}

#[test]
fn tables_of_both_families_agree_with_a_plain_model() {
    let lab = std::cell::RefCell::new(lab());
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) };
    proptest!(config, |(ops in prop::collection::vec(any_op(), 1..30))| {
        agrees::<u32>(&mut lab.borrow_mut(), &ops)?;
        agrees::<u128>(&mut lab.borrow_mut(), &ops)?;
    });
    lab.into_inner().close();
}

fn refusals<A: Family>(lab: &Lab) {
    let mut t = table::<A>(lab);
    let before = forwarding(lab, |f| f.len());
    let mut set = |path: Path| {
        t.set(&lab.c, prefix(A::of(40, 0), 8), Source::Static, vec![path]).expect_err("refused")
    };
    let via = |net, host| Path::via(A::of(net, host).to_ip(), None);
    assert!(matches!(set(Path { sw_if: Some(SwIfIndex(99)), ..via(1, 2) }), RibError::Device(_)));
    assert!(matches!(set(Path::special(PathKind::Group(3))), RibError::NoGroup(3)));
    let other: IpAddr =
        if A::BITS == 32 { "2001:db8::1" } else { "10.0.0.1" }.parse().expect("one");
    assert!(matches!(set(Path::via(other, None)), RibError::NotTracked(_, 0)));
    assert_eq!(forwarding(lab, |f| f.len()), before);
    t.clear(&lab.c);
}

#[test]
fn paths_that_can_never_lead_anywhere_are_refused() {
    let lab = lab();
    refusals::<u32>(&lab);
    refusals::<u128>(&lab);
    let mut six = table::<u128>(&lab);
    let local: IpAddr = "fe80::1".parse().expect("an address");
    let to = prefix(u128::of(40, 0), 8);
    let refused = six.set(&lab.c, to, Source::Static, vec![Path::via(local, None)]);
    assert!(matches!(refused, Err(RibError::LinkLocal(_))));
    // The address on a link is a neighbour like any other; of IPv4 routes as well (RFC 8950).
    let path = Path::via(local, Some(lab.sw_if(2)));
    six.set(&lab.c, to, Source::Static, vec![path]).expect("a route");
    let mut four = table::<u32>(&lab);
    let to = prefix(u32::of(40, 0), 8);
    four.set(&lab.c, to, Source::Static, vec![path]).expect("a route");
    let dpos = [
        six.view(prefix(u128::of(40, 0), 8)).expect("a route").dpo,
        four.view(to).expect("a route").dpo,
    ];
    assert_ne!(dpos[0], dpos[1]);
    let hop = BTreeSet::from([End::Hop(lab.sw_if(2), local)]);
    assert!(dpos.iter().all(|dpo| ends(&lab, *dpo) == hop));
    assert_eq!(
        dpos.map(|dpo| forwarding(&lab, |f| f.link(dpo))),
        [Some(LinkType::Ip6), Some(LinkType::Ip4)]
    );
    six.clear(&lab.c);
    four.clear(&lab.c);
    lab.close();
}

#[test]
fn a_path_that_leads_nowhere_leaves_the_others() {
    let lab = lab();
    let mut t = table::<u32>(&lab);
    let through = |net, host| Path::via(u32::of(net, host).to_ip(), None);
    let set = |t: &mut Routes<u32>, net: u8, paths: Vec<Path>| {
        t.set(&lab.c, prefix(u32::of(net, 0), 8), Source::Static, paths).expect("a route");
    };
    set(&mut t, 40, vec![through(0, 2)]);
    set(&mut t, 50, vec![through(1, 2)]);
    set(&mut t, 60, vec![through(40, 1), through(50, 1)]);
    let dpo = t.view(prefix(u32::of(60, 0), 8)).expect("a route").dpo;
    let hop = |n: u8| End::Hop(lab.sw_if(n), u32::of(n, 2).to_ip());
    assert_eq!(ends(&lab, dpo), BTreeSet::from([hop(0), hop(1)]));
    t.unset(&lab.c, prefix(u32::of(40, 0), 8), Source::Static);
    assert_eq!(ends(&lab, dpo), BTreeSet::from([hop(1)]));
    t.unset(&lab.c, prefix(u32::of(50, 0), 8), Source::Static);
    assert_eq!(ends(&lab, dpo), BTreeSet::from([End::Special(UNRESOLVED)]));
    set(&mut t, 40, vec![through(0, 2)]);
    assert_eq!(ends(&lab, dpo), BTreeSet::from([hop(0)]));
    t.clear(&lab.c);
    lab.close();
}

/// The reasons why the paths of a route lead nowhere.
fn reasons<A: Family>(lab: &Lab, t: &Routes<A>, prefix: Prefix<A>) -> Vec<Option<RibError>> {
    t.unresolved(&lab.c, &t.view(prefix).expect("a route"))
}

/// Routes before what they lead through: kept, with the reason, and resolved later.
fn kept_in_any_order<A: Family>(lab: &Lab) {
    let before = forwarding(lab, |f| f.len());
    let mut t = table::<A>(lab);
    let net = |n: u8| prefix(A::of(n, 0), 8);
    let through = |n: u8, host: u8| Path::via(A::of(n, host).to_ip(), None);
    let set = |t: &mut Routes<A>, n: u8, paths: Vec<Path>| {
        t.set(&lab.c, net(n), Source::Static, paths).expect("a route");
    };
    let at = |t: &Routes<A>, n: u8| ends(lab, t.view(net(n)).expect("a route").dpo);
    let nowhere = BTreeSet::from([End::Special(UNRESOLVED)]);
    set(&mut t, 60, vec![through(50, 1)]);
    assert!(matches!(reasons(lab, &t, net(60))[..], [Some(RibError::Unreachable(_))]));
    set(&mut t, 50, vec![through(40, 1), through(2, 9)]);
    let hop = |n: u8, host: u8| End::Hop(lab.sw_if(n), A::of(n, host).to_ip());
    assert_eq!(at(&t, 60), BTreeSet::from([hop(2, 9)]), "one path is enough");
    assert!(matches!(
        reasons(lab, &t, net(50))[..],
        [Some(RibError::Unreachable(_)), None] | [None, Some(RibError::Unreachable(_))]
    ));
    assert!(matches!(reasons(lab, &t, net(60))[..], [None]));
    // A route through itself, and one to an address of the router.
    set(&mut t, 40, vec![through(40, 7)]);
    assert_eq!(at(&t, 40), nowhere);
    assert!(matches!(reasons(lab, &t, net(40))[..], [Some(RibError::Loop(_))]));
    set(&mut t, 40, vec![through(1, 1)]);
    assert!(matches!(reasons(lab, &t, net(40))[..], [Some(RibError::Own(_))]));
    let of_50 = reasons(lab, &t, net(50));
    assert!(of_50.iter().any(|r| matches!(r, Some(RibError::Nowhere(_)))), "{of_50:?}");
    set(&mut t, 40, vec![through(1, 2)]);
    assert_eq!(at(&t, 60), BTreeSet::from([hop(1, 2), hop(2, 9)]));
    assert!(reasons(lab, &t, net(50)).iter().all(Option::is_none));
    // The subnet of a next hop goes and returns.
    t.unset(&lab.c, net(1), Source::Interface);
    assert_eq!(at(&t, 60), BTreeSet::from([hop(2, 9)]));
    t.unset(&lab.c, net(2), Source::Interface);
    assert_eq!(at(&t, 60), nowhere);
    for n in [1, 2] {
        let connected = vec![Path::connected(lab.sw_if(n))];
        t.set(&lab.c, net(n), Source::Interface, connected).expect("a subnet");
    }
    assert_eq!(at(&t, 60), BTreeSet::from([hop(1, 2), hop(2, 9)]));
    t.clear(&lab.c);
    assert_eq!(forwarding(lab, |f| f.len()), before);
}

#[test]
fn routes_may_come_before_what_they_lead_through() {
    let lab = lab();
    kept_in_any_order::<u32>(&lab);
    kept_in_any_order::<u128>(&lab);
    lab.close();
}

/// More levels than are followed: the deepest routes wait, and recover.
#[test]
fn levels_beyond_the_limit_wait() {
    let lab = lab();
    let mut t = table::<u32>(&lab);
    let net = |n: u8| prefix(u32::of(n, 0), 8);
    let through = |n: u8| vec![Path::via(u32::of(n, 1).to_ip(), None)];
    t.set(&lab.c, net(40), Source::Static, vec![Path::via(u32::of(0, 2).to_ip(), None)])
        .expect("0");
    for n in 41..52 {
        t.set(&lab.c, net(n), Source::Static, through(n - 1)).expect("a route");
    }
    let at = |t: &Routes<u32>, n: u8| ends(&lab, t.view(net(n)).expect("a route").dpo);
    let hop = BTreeSet::from([End::Hop(lab.sw_if(0), u32::of(0, 2).to_ip())]);
    assert_eq!(at(&t, 47), hop);
    assert_eq!(at(&t, 51), BTreeSet::from([End::Special(UNRESOLVED)]));
    let why = reasons(&lab, &t, net(48));
    assert!(matches!(why[..], [Some(RibError::Fib(FibError::Depth))]), "{why:?}");
    // A shorter way for one in the middle.
    t.set(&lab.c, net(46), Source::Static, through(40)).expect("a route");
    assert!((46..52).all(|n| at(&t, n) == hop));
    t.clear(&lab.c);
    lab.close();
}

/// Several paths over several paths over several paths.
#[test]
fn shares_of_shares_of_shares_are_flattened() {
    let lab = lab();
    let mut t = table::<u32>(&lab);
    let net = |n: u8| prefix(u32::of(n, 0), 8);
    let host = |n: u8, host: u8| Path::via(u32::of(n, host).to_ip(), None);
    let mut set = |n: u8, paths: [Path; 2]| {
        t.set(&lab.c, net(n), Source::Static, paths.to_vec()).expect("a route");
    };
    set(40, [host(0, 2), host(1, 2)]);
    set(41, [host(1, 3), host(2, 3)]);
    set(50, [host(40, 1), host(41, 1)]);
    set(60, [host(50, 1), host(2, 4)]);
    set(70, [host(60, 1), host(50, 1)]);
    let hop = |n: u8, host: u8| End::Hop(lab.sw_if(n), u32::of(n, host).to_ip());
    let four = BTreeSet::from([hop(0, 2), hop(1, 2), hop(1, 3), hop(2, 3)]);
    let five: BTreeSet<End> = four.iter().copied().chain([hop(2, 4)]).collect();
    let at = |n: u8| ends(&lab, t.view(net(n)).expect("a route").dpo);
    assert_eq!((at(50), at(60), at(70)), (four, five.clone(), five));
    t.clear(&lab.c);
    lab.close();
}

#[test]
fn the_best_preference_carries_and_the_next_takes_over() {
    let mut lab = lab();
    let mut t = table::<u32>(&lab);
    let to = prefix(u32::of(40, 0), 8);
    let path = |n: u8, preference| Path { preference, ..Path::via(u32::of(n, 2).to_ip(), None) };
    t.set(&lab.c, to, Source::Static, vec![path(0, 0), path(1, 1), path(2, 1)]).expect("a route");
    let dpo = t.view(to).expect("the route").dpo;
    let hop = |n: u8| End::Hop(lab.sw_if(n), u32::of(n, 2).to_ip());
    let (first, second) = (BTreeSet::from([hop(0)]), BTreeSet::from([hop(1), hop(2)]));
    assert_eq!(ends(&lab, dpo), first);
    lab.up(0, false);
    assert_eq!(ends(&lab, dpo), second);
    lab.up(0, true);
    assert_eq!(ends(&lab, dpo), first);
    // Its subnet goes.
    t.unset(&lab.c, prefix(u32::of(0, 0), 8), Source::Interface);
    assert_eq!(ends(&lab, dpo), second);
    t.clear(&lab.c);
    lab.close();
}

#[test]
fn routes_share_a_group_that_has_a_number() {
    let lab = lab();
    let mut t = table::<u128>(&lab);
    let adjacency = |n: u8| {
        let to = Peer::Neighbor(u128::of(n, 2).to_ip());
        let dpo = forwarding(&lab, |f| f.adjacency(&lab.c, lab.sw_if(n), LinkType::Ip6, to));
        vec![Member::of(dpo.expect("an adjacency"))]
    };
    let set = |n: u8| {
        let members = adjacency(n);
        forwarding(&lab, |f| f.set_numbered(&lab.c, 7, members)).expect("a group");
    };
    set(0);
    let path = vec![Path::special(PathKind::Group(7))];
    for net in 40..50 {
        t.set(&lab.c, prefix(u128::of(net, 0), 8), Source::Static, path.clone()).expect("a route");
    }
    // Other routes resolve their next hops through them.
    let through = vec![Path::via(u128::of(40, 1).to_ip(), None)];
    t.set(&lab.c, prefix(u128::of(50, 0), 8), Source::Static, through).expect("a route");
    let stores = t.lpm().stores;
    for n in [1, 2, 0] {
        set(n);
        let want = BTreeSet::from([End::Hop(lab.sw_if(n), u128::of(n, 2).to_ip())]);
        for net in 40..=50 {
            let view = t.view(prefix(u128::of(net, 0), 8)).expect("a route");
            assert_eq!(ends(&lab, view.dpo), want);
        }
    }
    assert_eq!(t.lpm().stores, stores);
    forwarding(&lab, |f| f.remove_numbered(&lab.c, 7));
    t.clear(&lab.c);
    lab.close();
}

fn labels(all: &[u32]) -> Labels {
    let all: Vec<Label> = all.iter().map(|l| Label(*l)).collect();
    Labels::new(&all).expect("labels")
}

/// The label words at the end of an object's rewrite.
fn words(lab: &Lab, dpo: Dpo) -> Vec<(u32, bool, u8)> {
    let (_, header) = forwarding(lab, |f| f.table().rewrite(dpo));
    let entry = |word: &[u8; 4]| {
        let e = thalweg_wire::mpls::Entry(u32::from_be_bytes(*word));
        (e.label().0, e.is_bottom(), e.ttl())
    };
    header.get(14..).unwrap_or_default().as_chunks().0.iter().map(entry).collect()
}

#[test]
fn labels_are_part_of_an_mpls_adjacency() {
    let lab = lab();
    let before = forwarding(&lab, |f| f.len());
    let mut t = table::<u32>(&lab);
    let next_hop = u32::of(1, 2).to_ip();
    let path = Path::via(next_hop, Some(lab.sw_if(1)));
    let to = prefix(u32::of(40, 0), 8);
    for stack in [&[16, 17][..], &[16, 3, 17], &[3], &[16, 17, 18, 19, 20, 21, 22, 23]] {
        let path = Path { labels: labels(stack), ..path };
        t.set(&lab.c, to, Source::Static, vec![path]).expect("a route");
        let dpo = t.view(to).expect("the route").dpo;
        let mac = thalweg_device::MacAddr::new(2, 0, 0, 0, 1, 2);
        forwarding(&lab, |f| f.set_neighbor(&lab.c, lab.sw_if(1), next_hop, Some(mac)));
        let sent: Vec<u32> = stack.iter().copied().filter(|l| *l != 3).collect();
        let last = sent.len().wrapping_sub(1);
        let want: Vec<(u32, bool, u8)> =
            sent.iter().enumerate().map(|(i, l)| (*l, i == last, 64)).collect();
        assert_eq!(words(&lab, dpo), want);
        let link = if sent.is_empty() { LinkType::Ip4 } else { LinkType::Mpls };
        let state = forwarding(&lab, |f| f.table().get(dpo).state());
        assert_eq!((state.kind, forwarding(&lab, |f| f.link(dpo))), (Kind::REWRITE, Some(link)));
        assert_eq!(usize::from(state.mtu), 9000 - 4 * sent.len());
        forwarding(&lab, |f| f.set_neighbor(&lab.c, lab.sw_if(1), next_hop, None));
        assert_eq!(forwarding(&lab, |f| f.table().get(dpo).state().kind), Kind::INCOMPLETE);
    }
    t.clear(&lab.c);
    assert_eq!(forwarding(&lab, |f| f.len()), before);
    lab.close();
}

#[test]
fn labels_of_a_recursive_next_hop_come_after_those_of_its_route() {
    let lab = lab();
    let before = forwarding(&lab, |f| f.len());
    let mut t = table::<u32>(&lab);
    let far = u32::of(41, 9);
    for n in [1, 2] {
        let mac = thalweg_device::MacAddr::new(2, 0, 0, 0, n, 2);
        let host = u32::of(n, 2).to_ip();
        forwarding(&lab, |f| f.set_neighbor(&lab.c, lab.sw_if(n), host, Some(mac)));
    }
    let hop = |n: u8, stack: &[u32]| {
        let path = Path::via(u32::of(n, 2).to_ip(), Some(lab.sw_if(n)));
        Path { labels: labels(stack), ..path }
    };
    let vpn = prefix(u32::of(40, 0), 8);
    let own = Path { labels: labels(&[100]), ..Path::via(far.to_ip(), None) };
    t.set(&lab.c, vpn, Source::Static, vec![own]).expect("a route");
    for (paths, want) in [
        (vec![hop(1, &[17])], vec![vec![17, 100]]),
        (vec![hop(1, &[17]), hop(2, &[18])], vec![vec![17, 100], vec![18, 100]]),
        (vec![hop(2, &[3])], vec![vec![100]]),
        (vec![hop(2, &[])], vec![vec![100]]),
    ] {
        t.set(&lab.c, Prefix::host(far), Source::Static, paths).expect("a route");
        for mac in [None, Some(thalweg_device::MacAddr::new(2, 0, 0, 0, 7, 2))] {
            for n in [1, 2] {
                let host = u32::of(n, 2).to_ip();
                forwarding(&lab, |f| f.set_neighbor(&lab.c, lab.sw_if(n), host, mac));
            }
        }
        let group = t.view(vpn).expect("the route").dpo;
        let got: BTreeSet<Vec<u32>> = (0..64)
            .map(|hash| forwarding(&lab, |f| f.table().resolve(group, || hash)))
            .map(|dpo| words(&lab, dpo).into_iter().map(|w| w.0).collect())
            .collect();
        assert_eq!(got, want.into_iter().collect());
    }
    t.clear(&lab.c);
    for n in [1, 2] {
        let host = u32::of(n, 2).to_ip();
        forwarding(&lab, |f| f.set_neighbor(&lab.c, lab.sw_if(n), host, None));
    }
    assert_eq!(forwarding(&lab, |f| f.len()), before);
    lab.close();
}

#[test]
fn a_tunnel_follows_the_route_of_its_destination() {
    let lab = lab();
    let before = forwarding(&lab, |f| f.len());
    let mut t = table::<u32>(&lab);
    let far = prefix(u32::of(40, 0), 8);
    let set = |t: &mut Routes<u32>, path: Path| {
        t.set(&lab.c, far, Source::Static, vec![path]).expect("a route");
    };
    let host = |n: u8| Path::via(u32::of(n, 2).to_ip(), None);
    set(&mut t, host(0));
    let destination = Path::via(u32::of(40, 9).to_ip(), None);
    let (list, under) = t.intern(&lab.c, vec![destination]).expect("a path list");
    let tunnel = forwarding(&lab, |f| {
        f.retain(under);
        let (sw_if, link, node) = (lab.sw_if(2), LinkType::Ip4, NodeId(0));
        f.midchain(&lab.c, &Midchain { sw_if, link, header: &[0x45; 28], node, stacked: under })
    });
    let tunnel = tunnel.expect("a midchain");
    let kind = || forwarding(&lab, |f| f.table().get(tunnel).state().kind);
    let hop = |n: u8| BTreeSet::from([End::Hop(lab.sw_if(n), u32::of(n, 2).to_ip())]);
    let nowhere = BTreeSet::from([End::Special(UNRESOLVED)]);
    assert_eq!((ends(&lab, under), kind()), (hop(0), Kind::MIDCHAIN));
    set(&mut t, host(1));
    assert_eq!((ends(&lab, under), kind()), (hop(1), Kind::MIDCHAIN));
    t.unset(&lab.c, far, Source::Static);
    assert_eq!((ends(&lab, under), kind()), (nowhere.clone(), Kind::DOWN));
    // The tunnel's destination cannot be reached by the tunnel itself.
    forwarding(&lab, |f| {
        f.retain(tunnel);
        f.set_numbered(&lab.c, 3, vec![Member::of(tunnel)]).expect("a group");
    });
    set(&mut t, Path::special(PathKind::Group(3)));
    assert_eq!((ends(&lab, under), kind()), (nowhere, Kind::DOWN));
    set(&mut t, host(0));
    assert_eq!((ends(&lab, under), kind()), (hop(0), Kind::MIDCHAIN));
    forwarding(&lab, |f| {
        f.remove_numbered(&lab.c, 3);
        f.release(&lab.c, tunnel);
    });
    t.release(&lab.c, list);
    t.clear(&lab.c);
    assert_eq!(forwarding(&lab, |f| f.len()), before);
    lab.close();
}

const ROUTES: u32 = 1_000_000;
const LABELS: usize = 100_000;

/// A million routes and a hundred thousand labels by way of one neighbour: what its loss, its
/// return and a new next hop cost does not depend on their number.
#[test]
fn convergence_costs_stores_by_path_lists() {
    let mut lab = lab();
    let mut t = table::<u32>(&lab);
    let through = |net: u8, host: u8| Path::via(u32::of(net, host).to_ip(), None);
    let set = |t: &mut Routes<u32>, prefix: Prefix<u32>, paths: Vec<Path>| {
        t.set(&lab.c, prefix, Source::Static, paths).expect("a route");
    };
    let loopback = prefix(u32::of(99, 0), 8);
    set(&mut t, loopback, vec![through(1, 2)]);
    // Ten path lists: recursive ones, and one that goes by the interface.
    let direct = Path::via(u32::of(1, 2).to_ip(), Some(lab.sw_if(1)));
    let lists: Vec<Vec<Path>> =
        (1..10).map(|host| vec![through(99, host)]).chain([vec![direct]]).collect();
    for n in 0..ROUTES {
        set(&mut t, Prefix::host(0x6400_0000 + n), lists[n as usize % lists.len()].clone());
    }
    let mut labels = vec![Dpo(0); LABELS];
    for (n, leaf) in labels.iter_mut().enumerate() {
        *leaf = t.intern(&lab.c, lists[n % lists.len()].clone()).expect("a path list").1;
    }
    let some = |t: &Routes<u32>| -> BTreeSet<End> {
        let routes = (0..ROUTES).step_by(9973).map(|n| t.lookup(0x6400_0000 + n).expect("one").dpo);
        let labels = labels.iter().step_by(997).copied();
        routes.chain(labels).flat_map(|dpo| ends(&lab, dpo)).collect()
    };
    let hop = |n: u8| End::Hop(lab.sw_if(n), u32::of(n, 2).to_ip());
    assert_eq!(some(&t), BTreeSet::from([hop(1)]));
    let leaves = t.lpm().stores;
    let stores = || forwarding(&lab, |f| f.stores());
    let lists = t.lists() as u64 + 10;
    // The neighbour is resolved, lost, and resolved.
    let mac = Some(MacAddr([2, 0, 0, 0, 0, 7]));
    for mac in [mac, None, mac] {
        let at = stores();
        let (sw_if, ip) = (lab.sw_if(1), u32::of(1, 2).to_ip());
        forwarding(&lab, |f| f.set_neighbor(&lab.c, sw_if, ip, mac));
        assert!(stores() - at <= lists, "{} stores", stores() - at);
    }
    // The next hop of all next hops moves to another neighbour, and back.
    let at = stores();
    set(&mut t, loopback, vec![through(2, 2)]);
    assert_eq!(some(&t), BTreeSet::from([hop(1), hop(2)]), "one goes by the interface");
    set(&mut t, loopback, vec![through(1, 2), through(2, 2)]);
    set(&mut t, loopback, vec![through(1, 2)]);
    assert!(stores() - at <= 3 * lists, "{} stores", stores() - at);
    assert_eq!(some(&t), BTreeSet::from([hop(1)]));
    // Only the leaf of that route itself is written.
    assert!(t.lpm().stores - leaves <= 3, "{}", t.lpm().stores - leaves);
    // The link goes down.
    let at = forwarding(&lab, |f| f.stores());
    lab.up(1, false);
    assert!(forwarding(&lab, |f| f.stores()) - at <= lists);
    t.clear(&lab.c);
    lab.close();
}

/// A neighbour that was heard on an interface.
fn heard(sw_if: SwIfIndex) -> NeighborOn {
    NeighborOn { sw_if, lender: None, is_written: false }
}

/// A change of a table with neighbours.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// The route of a prefix around the neighbours, by a source: to an interface as a whole, to a
    /// host of another one, or nowhere.
    Route(u8, Source, Option<(u8, bool)>),
    NoRoute(u8, Source),
    /// A neighbour on an interface, which may borrow the subnets of another one; written or heard.
    Claim(u8, u8, Option<u8>, bool),
    NoClaim(u8, u8),
}

fn any_turn() -> impl Strategy<Value = Turn> {
    let source = || prop_oneof![Just(Source::Static), Just(Source::Interface), Just(Source::Nd)];
    let to = prop::option::of((0..3u8, any::<bool>()));
    prop_oneof![
        2 => (0..9u8, source(), to).prop_map(|(short, by, to)| Turn::Route(short, by, to)),
        1 => (0..9u8, source()).prop_map(|(short, by)| Turn::NoRoute(short, by)),
        2 => (0..4u8, 0..3u8, prop::option::of(0..3u8), any::<bool>())
            .prop_map(|(host, on, lender, written)| Turn::Claim(host, on, lender, written)),
        1 => (0..4u8, 0..3u8).prop_map(|(host, on)| Turn::NoClaim(host, on)),
    ]
}

/// Neighbours against a plain model: the longest route decides, whatever has come first.
fn neighbors_agree<A: Family>(lab: &Lab, turns: &[Turn]) -> Result<(), TestCaseError> {
    let mut t: Routes<A> = Table::new(TableId(0), 0, A::LINK, Leaves::default());
    let net = 9;
    let mut routes: BTreeMap<(u8, Source), Option<(u8, bool)>> = BTreeMap::new();
    let mut claims: Vec<(u8, u8, Option<u8>, bool)> = Vec::new();
    for turn in turns {
        match *turn {
            Turn::Route(short, source, to) => {
                let path = match to {
                    Some((n, true)) => Path::connected(lab.sw_if(n)),
                    Some((n, false)) => Path::via(A::of(7, 7).to_ip(), Some(lab.sw_if(n))),
                    None => Path::special(PathKind::Drop),
                };
                t.set(&lab.c, prefix(A::of(net, 0), short), source, vec![path]).expect("a route");
                routes.insert((short, source), to);
            }
            Turn::NoRoute(short, source) => {
                t.unset(&lab.c, prefix(A::of(net, 0), short), source);
                routes.remove(&(short, source));
            }
            Turn::Claim(host, on, lender, is_written) => {
                let lender_if = lender.map(|n| lab.sw_if(n));
                let by = NeighborOn { sw_if: lab.sw_if(on), lender: lender_if, is_written };
                t.set_neighbor(&lab.c, A::of(net, host), by, true);
                match claims.iter_mut().find(|claim| (claim.0, claim.1) == (host, on)) {
                    Some(claim) => (claim.2, claim.3) = (lender, is_written),
                    None => claims.push((host, on, lender, is_written)),
                }
            }
            Turn::NoClaim(host, on) => {
                t.set_neighbor(&lab.c, A::of(net, host), heard(lab.sw_if(on)), false);
                claims.retain(|claim| (claim.0, claim.1) != (host, on));
            }
        }
        for host in 0..4 {
            let addr = A::of(net, host);
            let cover =
                routes.iter().find(|((short, _), _)| prefix(A::of(net, 0), *short).contains(addr));
            let attached = match cover {
                Some((_, Some((n, true)))) => Some(*n),
                _ => None,
            };
            // Without a route around it, there is nothing that it could beat.
            let own = |c: &&(_, u8, _, _)| cover.is_none() || Some(c.1) == attached;
            let lent = |c: &&(_, _, Option<u8>, _)| c.2.is_some() && c.2 == attached;
            let by = |is_written: bool| {
                let all = || claims.iter().filter(move |c| c.0 == host && c.3 == is_written);
                all().find(own).or_else(|| all().find(lent))
            };
            let want = by(true).or_else(|| by(false));
            let want = want.map(|c| vec![Path::via(addr.to_ip(), Some(lab.sw_if(c.1)))]);
            prop_assert_eq!(t.paths(Prefix::host(addr), Source::Adjacency), want, "{:?}", turn);
        }
    }
    t.clear(&lab.c);
    Ok(())
}

#[test]
fn neighbours_fill_gaps_of_what_is_written() {
    let lab = lab();
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) };
    proptest!(config, |(turns in prop::collection::vec(any_turn(), 1..40))| {
        neighbors_agree::<u32>(&lab, &turns)?;
        neighbors_agree::<u128>(&lab, &turns)?;
    });
    lab.close();
}

/// A default route may change while an interface has tens of thousands of neighbours.
#[test]
fn neighbours_of_longer_routes_are_not_looked_at() {
    let lab = lab();
    let mut t = table::<u32>(&lab);
    for host in 2..250 {
        t.set_neighbor(&lab.c, u32::of(0, host), heard(lab.sw_if(0)), true);
    }
    let before = t.lpm().stores;
    let all = Prefix::new(0, 0).expect("a prefix");
    t.set(&lab.c, all, Source::Static, vec![Path::connected(lab.sw_if(1))]).expect("a route");
    assert_eq!(t.lpm().stores, before + 1);
    // A wish that another route holds back is granted once that has gone.
    let longer = prefix(u32::of(0, 64), 6);
    t.set(&lab.c, longer, Source::Static, vec![Path::special(PathKind::Drop)]).expect("a route");
    assert_eq!(t.paths(Prefix::host(u32::of(0, 65)), Source::Adjacency), None);
    assert!(t.paths(Prefix::host(u32::of(0, 63)), Source::Adjacency).is_some());
    t.unset(&lab.c, longer, Source::Static);
    assert!(t.paths(Prefix::host(u32::of(0, 65)), Source::Adjacency).is_some());
    t.clear(&lab.c);
    lab.close();
}
