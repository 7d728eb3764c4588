//! Resolution against a plain model.

use crate::{End, Family, ends, forwarding, lab, prefix, table};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use thalweg_device::SwIfIndex;
use thalweg_device::testing::Lab;
use thalweg_fib::Dpo;
use thalweg_fib::forwarding::{DROP, LOCAL, PROHIBIT, UNREACHABLE, UNRESOLVED};
use thalweg_fib::rib::{Path, PathKind, Source};
use thalweg_tables::Prefix;

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
