//! Route tables, for addresses of 32 and of 128 bits.

#![allow(clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use thalweg_buffer::PktMut;
use thalweg_device::SwIfIndex;
use thalweg_device::testing::Lab;
use thalweg_engine::Feature;
use thalweg_fib::forwarding::{DROP, LOCAL, PROHIBIT, UNREACHABLE};
use thalweg_fib::rib::{Labels, Path, PathKind, RibError, Source, Table};
use thalweg_fib::{Dpo, FibError, Forwarding, Kind, LinkType, Member, Midchain, Peer, TableId};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, NodeId, Verdict};
use thalweg_tables::qsbr::Domain;
use thalweg_tables::{Address, Leaf, Lpm, LpmError, Prefix};
use thalweg_wire::MacAddr;
use thalweg_wire::mpls::Label;

/// Where the arc of received packets ends.
static INPUT: NodeDecl =
    NodeDecl { name: "ethernet-input", build: |_| Built::node(Input), ..NodeDecl::DEFAULT };

struct Input;

impl Node for Input {
    fn packet(&mut self, _: &mut NodeCx<'_>, _: PktMut<'_>) -> Verdict {
        Verdict::CONTINUE
    }
}

static STAND_IN: Feature = Feature {
    name: "stand-in",
    about: "what surrounds route tables",
    nodes: &[&INPUT],
    ..Feature::DEFAULT
};

fn lab() -> Lab {
    Lab::new(&[&thalweg_device::FEATURE, &thalweg_fib::FEATURE, &STAND_IN], 1, 256, 3)
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

/// What the tests need of a family.
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

/// What packets of all flows meet.
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
    /// To a host of a subnet, by its interface or not.
    Host(u8, u8, bool),
    /// To an address that a route may cover.
    Through(u8, u8),
    Link(u8),
    Special(PathKind),
}

fn path<A: Family>(lab: &Lab, way: Way, weight: u8) -> Path {
    let path = match way {
        Way::Host(n, host, named) => Path::via(A::of(n, host).to_ip(), named.then(|| lab.sw_if(n))),
        Way::Through(net, host) => Path::via(A::of(net, host).to_ip(), None),
        Way::Link(n) => Path::connected(lab.sw_if(n)),
        Way::Special(kind) => Path::special(kind),
    };
    Path { weight, ..path }
}

#[derive(Clone, Debug)]
enum Op {
    Set(usize, Vec<(Way, u8)>),
    Unset(usize),
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
        5 => prop::collection::vec((any_way(), 1u8..4), 1..4),
        1 => prop::sample::select(vec![
            PathKind::Local, PathKind::Drop, PathKind::Unreachable, PathKind::Prohibit,
        ]).prop_map(|kind| vec![(Way::Special(kind), 1)]),
    ];
    prop_oneof![
        3 => (0..PREFIXES, ways).prop_map(|(p, ways)| Op::Set(p, ways)),
        1 => (0..PREFIXES).prop_map(Op::Unset),
    ]
}

type Model = BTreeMap<usize, Vec<(Way, u8)>>;

/// Resolves a path from scratch: `None` if it leads nowhere or back to itself.
fn resolve<A: Family>(lab: &Lab, model: &Model, way: Way, seen: &[usize]) -> BTreeSet<End> {
    let nowhere = BTreeSet::new();
    match way {
        Way::Host(n, host, _) => BTreeSet::from([End::Hop(lab.sw_if(n), A::of(n, host).to_ip())]),
        Way::Link(n) => BTreeSet::from([End::Link(lab.sw_if(n))]),
        Way::Special(kind) => BTreeSet::from([End::Special(match kind {
            PathKind::Local => LOCAL,
            PathKind::Unreachable => UNREACHABLE,
            PathKind::Prohibit => PROHIBIT,
            _ => DROP,
        })]),
        Way::Through(net, host) => {
            let nh = A::of(net, host);
            let covers = model.keys().filter(|p| nested::<A>(**p).contains(nh));
            let Some(&p) = covers.max_by_key(|p| nested::<A>(**p).len()) else { return nowhere };
            let ways = &model[&p];
            let is_self =
                |w: &(Way, u8)| matches!(w.0, Way::Through(n, h) if (n, h) == (net, host));
            let recursive =
                |w: &(Way, u8)| matches!(w.0, Way::Through(..) | Way::Host(_, _, false));
            if seen.contains(&p) || ways.iter().any(is_self) && ways.iter().all(recursive) {
                return nowhere;
            }
            match ways[..] {
                [(Way::Special(_), _)] => nowhere,
                [(Way::Link(n), _)] => BTreeSet::from([End::Hop(lab.sw_if(n), nh.to_ip())]),
                _ => {
                    let seen = [seen, &[p]].concat();
                    let all = ways.iter().flat_map(|w| resolve::<A>(lab, model, w.0, &seen));
                    all.collect()
                }
            }
        }
    }
}

/// Whether any route of the model leads back to itself: how such a loop is cut depends on the
/// order of changes.
fn has_loop<A: Family>(model: &Model, p: usize, seen: &[usize]) -> bool {
    if seen.contains(&p) {
        return true;
    }
    let seen = [seen, &[p]].concat();
    model.get(&p).into_iter().flatten().any(|(way, _)| match way {
        Way::Through(net, host) => {
            let nh = A::of(*net, *host);
            let covers = model.keys().filter(|p| nested::<A>(**p).contains(nh));
            let next = covers.max_by_key(|p| nested::<A>(**p).len());
            next.is_some_and(|next| has_loop::<A>(model, *next, &seen))
        }
        _ => false,
    })
}

fn sorted(mut paths: Vec<Path>) -> Vec<Path> {
    paths.sort_unstable();
    paths
}

fn agrees<A: Family>(lab: &Lab, ops: &[Op]) -> Result<(), TestCaseError> {
    let before = forwarding(lab, |f| f.len());
    let mut t = table::<A>(lab);
    let mut model = Model::new();
    for op in ops {
        match op {
            Op::Set(p, ways) => {
                let paths: Vec<Path> = ways.iter().map(|(w, n)| path::<A>(lab, *w, *n)).collect();
                let nowhere = |way: &(Way, u8)| resolve::<A>(lab, &model, way.0, &[]).is_empty();
                let refused = ways.iter().any(nowhere);
                let known = model.keys().filter_map(|p| t.paths(nested(*p), Source::Static));
                let known = known.map(sorted).any(|known| known == sorted(paths.clone()));
                let looped = model.keys().any(|p| has_loop::<A>(&model, *p, &[]));
                let done = t.set(&lab.c, nested(*p), Source::Static, paths);
                if !looped {
                    // A list that exists may have become unreachable.
                    prop_assert_eq!(done.is_ok(), !refused || known, "{} {:?}", p, ways);
                }
                if done.is_ok() {
                    model.insert(*p, ways.clone());
                }
            }
            Op::Unset(p) => {
                let done = t.unset(&lab.c, nested(*p), Source::Static);
                prop_assert_eq!(done, model.remove(p).is_some());
            }
        }
        for (p, ways) in &model {
            let view = t.view(nested(*p)).expect("the route");
            prop_assert_eq!(t.lpm().all.get(&nested(*p)).map(|l| Dpo(l.get())), Some(view.dpo));
            prop_assert!(t.lookup(nested::<A>(*p).addr()).is_some());
            let met = ends(lab, view.dpo);
            if model.keys().any(|p| has_loop::<A>(&model, *p, &[])) {
                prop_assert!(!met.is_empty());
                continue;
            }
            let mut want: BTreeSet<End> = BTreeSet::new();
            for (way, _) in ways {
                want.extend(resolve::<A>(lab, &model, *way, &[]));
            }
            if want.is_empty() {
                want.insert(End::Special(UNREACHABLE));
            }
            // A small share of many may get no bucket.
            prop_assert!(met.is_subset(&want), "{p}: {met:?} {want:?}");
            prop_assert!(met.len() == want.len() || want.len() > 3, "{p}: {met:?} {want:?}");
        }
        prop_assert_eq!(t.len(), 6 + model.len());
    }
    t.clear(&lab.c);
    prop_assert_eq!(forwarding(lab, |f| f.len()), before, "objects are left over");
    Ok(())
}

#[test]
fn tables_of_both_families_agree_with_a_plain_model() {
    let lab = lab();
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) };
    proptest!(config, |(ops in prop::collection::vec(any_op(), 1..30))| {
        agrees::<u32>(&lab, &ops)?;
        agrees::<u128>(&lab, &ops)?;
    });
    lab.close();
}

fn refusals<A: Family>(lab: &Lab) {
    let mut t = table::<A>(lab);
    let before = forwarding(lab, |f| f.len());
    let mut set = |path: Path| {
        t.set(&lab.c, prefix(A::of(40, 0), 8), Source::Static, vec![path]).expect_err("refused")
    };
    let via = |net, host| Path::via(A::of(net, host).to_ip(), None);
    assert!(matches!(set(via(60, 1)), RibError::Unreachable(_)));
    assert!(matches!(set(via(1, 1)), RibError::Own(_)));
    assert!(matches!(set(Path { sw_if: Some(SwIfIndex(99)), ..via(1, 2) }), RibError::Device(_)));
    assert!(matches!(set(Path::special(PathKind::Group(3))), RibError::NoGroup(3)));
    let labels = Labels::new(&[Label(16)]).expect("labels");
    let sw_if = Some(lab.sw_if(1));
    assert!(matches!(set(Path { labels, ..via(1, 2) }), RibError::Labels));
    assert!(matches!(set(Path { labels, sw_if, ..via(1, 2) }), RibError::Labels));
    let other: IpAddr =
        if A::BITS == 32 { "2001:db8::1" } else { "10.0.0.1" }.parse().expect("one");
    assert!(matches!(set(Path::via(other, None)), RibError::Family(_)));
    assert_eq!(forwarding(lab, |f| f.len()), before);
    t.clear(&lab.c);
}

#[test]
fn paths_that_lead_nowhere_are_refused() {
    let lab = lab();
    refusals::<u32>(&lab);
    refusals::<u128>(&lab);
    let mut six = table::<u128>(&lab);
    let local: IpAddr = "fe80::1".parse().expect("an address");
    let to = prefix(u128::of(40, 0), 8);
    let refused = six.set(&lab.c, to, Source::Static, vec![Path::via(local, None)]);
    assert!(matches!(refused, Err(RibError::LinkLocal(_))));
    // On a link, it is a neighbour like any other; of IPv4 routes as well (RFC 8950).
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
    assert_eq!(ends(&lab, dpo), BTreeSet::from([End::Special(UNREACHABLE)]));
    set(&mut t, 40, vec![through(0, 2)]);
    assert_eq!(ends(&lab, dpo), BTreeSet::from([hop(0)]));
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

/// Puts four bytes a label before a packet.
fn impose(
    f: &mut Forwarding,
    c: &thalweg_graph::Control,
    labels: &[Label],
    link: LinkType,
    adjacency: Dpo,
) -> Result<Dpo, FibError> {
    let header: Vec<u8> = labels.iter().flat_map(|l| (l.0 << 12 | 255).to_be_bytes()).collect();
    let (sw_if, _) = f.owner(adjacency).expect("an adjacency");
    f.midchain(c, &Midchain { sw_if, link, header: &header, node: NodeId(0), stacked: adjacency })
}

#[test]
fn labels_are_imposed_before_an_mpls_adjacency() {
    let lab = lab();
    forwarding(&lab, |f| f.set_imposer(impose));
    let before = forwarding(&lab, |f| f.len());
    let mut t = table::<u32>(&lab);
    let next_hop = Path::via(u32::of(1, 2).to_ip(), Some(lab.sw_if(1)));
    let labels = Labels::new(&[Label(16), Label(17)]).expect("labels");
    let to = prefix(u32::of(40, 0), 8);
    t.set(&lab.c, to, Source::Static, vec![Path { labels, ..next_hop }]).expect("a route");
    let dpo = t.view(to).expect("the route").dpo;
    let (state, header) = forwarding(&lab, |f| f.table().rewrite(dpo));
    assert_eq!((state.kind, header), (Kind::MIDCHAIN, vec![0, 1, 0, 255, 0, 1, 16, 255]));
    let under = forwarding(&lab, |f| f.table().get(dpo).stacked());
    assert_eq!(forwarding(&lab, |f| f.link(under)), Some(LinkType::Mpls));
    t.clear(&lab.c);
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
    let nowhere = BTreeSet::from([End::Special(UNREACHABLE)]);
    assert_eq!((ends(&lab, under), kind()), (hop(0), Kind::MIDCHAIN));
    set(&mut t, host(1));
    assert_eq!((ends(&lab, under), kind()), (hop(1), Kind::MIDCHAIN));
    t.unset(&lab.c, far, Source::Static);
    assert_eq!((ends(&lab, under), kind()), (nowhere.clone(), Kind::DOWN));
    // By the tunnel itself, its destination cannot be reached.
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
    // But for the leaf of that route itself.
    assert!(t.lpm().stores - leaves <= 3, "{}", t.lpm().stores - leaves);
    // The link goes down.
    let at = forwarding(&lab, |f| f.stores());
    lab.up(1, false);
    assert!(forwarding(&lab, |f| f.stores()) - at <= lists);
    t.clear(&lab.c);
    lab.close();
}
