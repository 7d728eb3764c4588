//! Paths of routes: which are refused, which wait, and which carry.

use crate::{End, Family, Routes, ends, forwarding, lab, prefix, table};
use std::collections::BTreeSet;
use std::net::IpAddr;
use thalweg_device::SwIfIndex;
use thalweg_device::testing::Lab;
use thalweg_fib::forwarding::UNRESOLVED;
use thalweg_fib::rib::{Path, PathKind, RibError, Source};
use thalweg_fib::{FibError, LinkType, Member, Peer};
use thalweg_tables::{Address, Prefix};

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
