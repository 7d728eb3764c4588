//! Tunnels, routes and labels that follow a route.

use crate::{End, Family, Routes, ends, forwarding, lab, prefix, table};
use std::collections::BTreeSet;
use thalweg_fib::forwarding::UNRESOLVED;
use thalweg_fib::rib::{Path, PathKind, Source};
use thalweg_fib::{Dpo, Kind, LinkType, Member, Midchain};
use thalweg_graph::NodeId;
use thalweg_tables::{Address, Prefix};
use thalweg_wire::MacAddr;

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
