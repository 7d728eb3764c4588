//! Forwarding objects on test interfaces, as workers see them.

#![allow(clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use thalweg_device::testing::{Lab, NO_ETHERNET, our_mac};
use thalweg_device::{SwIfIndex, TagMatch, VlanTag, interface};
use thalweg_fib::forwarding::{DROP, LOCAL};
use thalweg_fib::rib::Labels;
use thalweg_fib::{
    AdjacencyKey, Combined, Counted, Counts, Dpo, EntryState, FibError, Forwarding, Imposed, Kind,
    KindDecl, LinkType, Member, Midchain, ObjectCounters, Peer,
};
use thalweg_graph::NodeId;
use thalweg_testkit::processor_time;
use thalweg_wire::MacAddr;
use thalweg_wire::mpls::Label;

fn lab() -> Lab {
    Lab::of(&thalweg_fib::FEATURE).with(&NO_ETHERNET).buffers(256).start()
}

fn peer(address: &str) -> Peer {
    Peer::Neighbor(address.parse().expect("an address"))
}

/// Calls a method with a borrow of the main thread's state.
fn with<T>(lab: &Lab, f: impl FnOnce(&mut Forwarding, &Lab) -> T) -> T {
    let forwarding = lab.c.state::<Forwarding>();
    f(&mut forwarding.borrow_mut(), lab)
}

fn adjacency(lab: &Lab, n: u8, link: LinkType, to: Peer) -> Dpo {
    with(lab, |f, lab| f.adjacency(&lab.c, lab.sw_if(n), link, to)).expect("an adjacency")
}

fn resolved(lab: &Lab, n: u8, to: &str, mac: Option<MacAddr>) {
    let to: IpAddr = to.parse().expect("an address");
    with(lab, |f, lab| f.set_neighbor(&lab.c, lab.sw_if(n), to, mac));
}

fn kind(lab: &Lab, dpo: Dpo) -> Kind {
    with(lab, |f, _| f.table().get(dpo).state().kind)
}

fn header(lab: &Lab, dpo: Dpo) -> Vec<u8> {
    with(lab, |f, _| f.table().rewrite(dpo).1)
}

/// Sub-interfaces follow in slices: a thread that loses the processor begins another for each.
fn followed(lab: &mut Lab) {
    for _ in 0..16 {
        lab.settle();
    }
}

fn len(lab: &Lab) -> usize {
    with(lab, |f, _| f.len())
}

fn release(lab: &Lab, dpo: Dpo) {
    with(lab, |f, lab| f.release(&lab.c, dpo));
}

const MAC: [u8; 6] = [2, 0, 0, 0x99, 0, 7];

#[test]
fn a_neighbour_has_an_adjacency_per_link_type() {
    let mut lab = lab();
    let before = len(&lab);
    let v4 = adjacency(&lab, 0, LinkType::Ip4, peer("10.0.0.2"));
    resolved(&lab, 0, "10.0.0.2", Some(MacAddr(MAC)));
    // One that comes later knows the neighbour.
    let mpls = adjacency(&lab, 0, LinkType::Mpls, peer("10.0.0.2"));
    assert_ne!(v4, mpls);
    let want = |ethertype: [u8; 2]| [&MAC[..], &our_mac(0).0, &ethertype].concat();
    assert_eq!((header(&lab, v4), header(&lab, mpls)), (want([8, 0]), want([0x88, 0x47])));
    // IPv4 by an IPv6 next hop (RFC 8950).
    let over = adjacency(&lab, 0, LinkType::Ip4, peer("fe80::7"));
    let v6 = adjacency(&lab, 0, LinkType::Ip6, peer("fe80::7"));
    assert_eq!((kind(&lab, over), kind(&lab, v6)), (Kind::INCOMPLETE, Kind::INCOMPLETE));
    resolved(&lab, 0, "fe80::7", Some(MacAddr(MAC)));
    assert_eq!((header(&lab, over), header(&lab, v6)), (want([8, 0]), want([0x86, 0xdd])));
    let hop = with(&lab, |f, _| f.table().get(over).next_hop());
    assert_eq!(hop, Some("fe80::7".parse().expect("an address")));
    resolved(&lab, 0, "10.0.0.2", None);
    let kinds = [v4, mpls, over, v6].map(|dpo| kind(&lab, dpo));
    let (no, yes) = (Kind::INCOMPLETE, Kind::REWRITE);
    assert_eq!(kinds, [no, no, yes, yes]);
    lab.up(0, false);
    assert!([v4, mpls, over, v6].iter().all(|dpo| kind(&lab, *dpo) == Kind::DOWN));
    [v4, mpls, over, v6].iter().for_each(|dpo| release(&lab, *dpo));
    assert_eq!(len(&lab), before);
    lab.close();
}

#[test]
fn each_link_type_has_its_mtu() {
    let mut lab = lab();
    let all = LinkType::ALL.map(|link| adjacency(&lab, 0, link, peer("10.0.0.2")));
    let sw_if = lab.sw_if(0);
    thalweg_device::interface::set_mtus(&mut lab.c, sw_if, [1500, 1400, 0, 1300].into())
        .expect("MTUs");
    let mtus = all.map(|dpo| with(&lab, |f, _| f.table().get(dpo).state().mtu));
    assert_eq!(mtus, [1400, 1500, 1300]);
    all.iter().for_each(|dpo| release(&lab, *dpo));
    lab.close();
}

#[test]
fn groups_of_receivers_and_subnets_have_objects() {
    let lab = lab();
    let cast = adjacency(&lab, 0, LinkType::Ip4, Peer::Multicast);
    assert_eq!(kind(&lab, cast), Kind::MULTICAST);
    assert_eq!(header(&lab, cast)[..6], [1, 0, 0x5e, 0, 0, 0]);
    let glean = with(&lab, |f, lab| f.glean(&lab.c, lab.sw_if(0), LinkType::Ip4)).expect("one");
    assert_eq!(kind(&lab, glean), Kind::GLEAN);
    let none = with(&lab, |f, lab| f.glean(&lab.c, SwIfIndex(99), LinkType::Ip4));
    assert_eq!(none, Err(FibError::NoInterface(SwIfIndex(99))));
    [cast, glean].iter().for_each(|dpo| release(&lab, *dpo));
    lab.close();
}

#[test]
fn tags_stand_before_the_ethertype() {
    let mut lab = lab();
    let (one, two) = ([0x81, 0, 0, 7], [0x88, 0xa8, 0, 5, 0x81, 0, 0, 7]);
    let (outer, inner, exact) = (VlanTag::dot1ad(5), VlanTag::dot1q(7), true);
    let all = [
        (&one[..], TagMatch::Outer { tag: inner, exact }),
        (&two, TagMatch::Pair { outer, inner, exact }),
        (&[], TagMatch::Untagged),
    ];
    let (port, neighbor) = (lab.sw_if(1), "10.0.1.2");
    for (id, (tags, matches)) in (1..).zip(all) {
        let sub = interface::create_sub(&mut lab.c, port, id, matches).expect("a sub-interface");
        let dpo = with(&lab, |f, lab| f.adjacency(&lab.c, sub, LinkType::Ip4, peer(neighbor)));
        let dpo = dpo.expect("an adjacency");
        assert_eq!(kind(&lab, dpo), Kind::DOWN);
        interface::set_admin(&mut lab.c, sub, true).expect("up");
        let nh = neighbor.parse().expect("an address");
        with(&lab, |f, lab| f.set_neighbor(&lab.c, sub, nh, Some(MacAddr(MAC))));
        assert_eq!(header(&lab, dpo), [&MAC[..], &our_mac(1).0, tags, &[8, 0]].concat());
        interface::set_mac(&mut lab.c, port, MacAddr([2; 6])).expect("another address");
        followed(&mut lab);
        assert_eq!(header(&lab, dpo)[..12], [MAC, [2; 6]].concat());
        interface::set_mac(&mut lab.c, port, our_mac(1)).expect("the address");
        lab.up(1, false);
        followed(&mut lab);
        assert_eq!(kind(&lab, dpo), Kind::DOWN, "with its parent");
        lab.up(1, true);
        followed(&mut lab);
        assert_eq!(kind(&lab, dpo), Kind::REWRITE);
        release(&lab, dpo);
    }
    lab.close();
}

#[test]
fn an_interface_that_comes_back_has_new_adjacencies() {
    let mut lab = lab();
    let before = len(&lab);
    let old = adjacency(&lab, 2, LinkType::Ip4, peer("10.0.2.2"));
    let sw_if = lab.sw_if(2);
    thalweg_device::interface::delete(&mut lab.c, sw_if).expect("delete");
    lab.interface(2);
    assert_eq!(lab.sw_if(2), sw_if);
    let new = adjacency(&lab, 2, LinkType::Ip4, peer("10.0.2.2"));
    assert_ne!(old, new);
    release(&lab, old);
    let again = adjacency(&lab, 2, LinkType::Ip4, peer("10.0.2.2"));
    assert_eq!((new, kind(&lab, new)), (again, Kind::INCOMPLETE));
    [new, again].iter().for_each(|dpo| release(&lab, *dpo));
    assert_eq!(len(&lab), before);
    lab.close();
}

/// Members of these weights, with references.
fn held(f: &mut Forwarding, members: &[(Dpo, u32)]) -> Vec<Member> {
    members.iter().for_each(|m| f.retain(m.0));
    members.iter().map(|(dpo, weight)| Member { weight: *weight, ..Member::of(*dpo) }).collect()
}

fn group(lab: &Lab, members: &[(Dpo, u32)]) -> Result<Dpo, FibError> {
    with(lab, |f, lab| {
        let members = held(f, members);
        f.group(&lab.c, members)
    })
}

fn set_group(lab: &Lab, dpo: Dpo, members: &[(Dpo, u32)]) -> Result<(), FibError> {
    with(lab, |f, lab| {
        let members = held(f, members);
        f.set_group(&lab.c, dpo, members)
    })
}

/// Shares of what packets meet, in 64ths.
fn shares(lab: &Lab, dpo: Dpo) -> BTreeMap<Dpo, usize> {
    let mut out = BTreeMap::new();
    for hash in 0..64 {
        *out.entry(with(lab, |f, _| f.table().resolve(dpo, || hash))).or_default() += 1;
    }
    out
}

#[test]
fn a_change_of_members_is_one_store() {
    let mut lab = lab();
    let before = len(&lab);
    let a = adjacency(&lab, 0, LinkType::Ip4, peer("10.0.0.2"));
    let b = adjacency(&lab, 1, LinkType::Ip4, peer("10.0.1.2"));
    let one = group(&lab, &[(a, 1)]).expect("a group");
    assert_eq!(kind(&lab, one), Kind::REDIRECT);
    resolved(&lab, 0, "10.0.0.2", Some(MacAddr(MAC)));
    assert_eq!(kind(&lab, one), Kind::REDIRECT_COMPLETE);
    let stores = |lab: &Lab| with(lab, |f, _| f.stores());
    let at = stores(&lab);
    set_group(&lab, one, &[(a, 1), (b, 3)]).expect("members");
    assert_eq!(stores(&lab) - at, 1);
    assert_eq!(shares(&lab, one), BTreeMap::from([(a, 16), (b, 48)]));
    // Members that are down take no part, unless all are.
    lab.up(1, false);
    assert_eq!(shares(&lab, one), BTreeMap::from([(a, 64)]));
    lab.up(0, false);
    assert_eq!(shares(&lab, one).len(), 2);
    set_group(&lab, one, &[(DROP, 1)]).expect("members");
    assert_eq!(shares(&lab, one), BTreeMap::from([(DROP, 64)]));
    let many = vec![(DROP, 1); 65];
    assert_eq!(set_group(&lab, one, &many), Err(FibError::Members(65)));
    assert_eq!(group(&lab, &[]), Err(FibError::Members(0)));
    [one, a, b].iter().for_each(|dpo| release(&lab, *dpo));
    assert_eq!(len(&lab), before);
    lab.close();
}

#[test]
fn groups_in_groups_are_flattened_and_never_lead_to_themselves() {
    let lab = lab();
    let before = len(&lab);
    let hosts: Vec<Dpo> = (0..4)
        .map(|n| adjacency(&lab, 0, LinkType::Ip4, peer(&format!("10.0.0.{}", 2 + n))))
        .collect();
    let inner = group(&lab, &[(hosts[0], 1), (hosts[1], 1)]).expect("a group");
    let outer = group(&lab, &[(inner, 1), (hosts[2], 1)]).expect("a group");
    let share = |all: &[(usize, usize)]| all.iter().map(|(i, n)| (hosts[*i], *n)).collect();
    let want: BTreeMap<Dpo, usize> = share(&[(0, 16), (1, 16), (2, 32)]);
    assert_eq!(shares(&lab, outer), want);
    // The outer group follows.
    set_group(&lab, inner, &[(hosts[3], 1)]).expect("members");
    let want: BTreeMap<Dpo, usize> = share(&[(2, 32), (3, 32)]);
    assert_eq!(shares(&lab, outer), want);
    assert_eq!(set_group(&lab, inner, &[(outer, 1)]), Err(FibError::Loop));
    assert_eq!(set_group(&lab, inner, &[(inner, 1), (hosts[0], 1)]), Err(FibError::Loop));
    assert_eq!(shares(&lab, outer), want);
    // The outer group keeps the inner one.
    release(&lab, inner);
    assert_eq!(shares(&lab, outer), want);
    release(&lab, outer);
    hosts.iter().for_each(|dpo| release(&lab, *dpo));
    assert_eq!(len(&lab), before);
    lab.close();
}

#[test]
fn eight_groups_may_be_in_a_row() {
    let lab = lab();
    let before = len(&lab);
    let a = adjacency(&lab, 0, LinkType::Ip4, peer("10.0.0.2"));
    let mut row = vec![group(&lab, &[(a, 1)]).expect("a group")];
    while row.len() < 8 {
        row.push(group(&lab, &[(row[row.len() - 1], 1)]).expect("a group"));
    }
    assert_eq!(group(&lab, &[(row[7], 1)]), Err(FibError::Depth));
    // A group in the middle of the row cannot grow longer either.
    let more = group(&lab, &[(a, 1)]).expect("a group");
    assert_eq!(set_group(&lab, row[0], &[(more, 1)]), Err(FibError::Depth));
    assert_eq!(set_group(&lab, row[1], &[(more, 1)]), Ok(()));
    assert_eq!(shares(&lab, row[7]), BTreeMap::from([(a, 64)]));
    row.iter().chain([&more, &a]).for_each(|dpo| release(&lab, *dpo));
    assert_eq!(len(&lab), before);
    lab.close();
}

#[test]
fn members_of_a_higher_preference_take_over() {
    let mut lab = lab();
    let hosts = [0, 1].map(|n| {
        let dpo = adjacency(&lab, n, LinkType::Ip4, peer("10.0.0.2"));
        resolved(&lab, n, "10.0.0.2", Some(MacAddr(MAC)));
        dpo
    });
    let backed = with(&lab, |f, lab| {
        let [first, second] = hosts.map(|dpo| held(f, &[(dpo, 1)])[0]);
        f.group(&lab.c, vec![Member { preference: 1, ..second }, first])
    });
    let backed = backed.expect("a group");
    let stores = |lab: &Lab| with(lab, |f, _| f.stores());
    assert_eq!(shares(&lab, backed), BTreeMap::from([(hosts[0], 64)]));
    let at = stores(&lab);
    lab.up(0, false);
    assert_eq!(shares(&lab, backed), BTreeMap::from([(hosts[1], 64)]));
    assert_eq!(stores(&lab) - at, 2, "the adjacency and the group");
    lab.up(0, true);
    assert_eq!(shares(&lab, backed), BTreeMap::from([(hosts[0], 64)]));
    [backed, hosts[0], hosts[1]].iter().for_each(|dpo| release(&lab, *dpo));
    lab.close();
}

#[test]
fn a_number_names_a_group_whatever_its_members() {
    let lab = lab();
    let before = len(&lab);
    let a = adjacency(&lab, 0, LinkType::Ip4, peer("10.0.0.2"));
    let set = |lab: &Lab, members: &[(Dpo, u32)]| {
        with(lab, |f, lab| {
            let members = held(f, members);
            f.set_numbered(&lab.c, 7, members)
        })
    };
    let dpo = set(&lab, &[(a, 1)]).expect("a group");
    let user = group(&lab, &[(dpo, 1)]).expect("a group");
    assert_eq!(set(&lab, &[(LOCAL, 1)]), Ok(dpo));
    assert_eq!(with(&lab, |f, _| f.numbered(7)), Some(dpo));
    assert_eq!(shares(&lab, user), BTreeMap::from([(LOCAL, 64)]));
    assert!(with(&lab, |f, lab| f.remove_numbered(&lab.c, 7)));
    assert!(!with(&lab, |f, lab| f.remove_numbered(&lab.c, 7)));
    assert_eq!(shares(&lab, user), BTreeMap::from([(DROP, 64)]));
    [user, a].iter().for_each(|dpo| release(&lab, *dpo));
    assert_eq!(len(&lab), before);
    lab.close();
}

#[test]
fn a_midchain_follows_what_it_is_stacked_on() {
    let mut lab = lab();
    let before = len(&lab);
    let a = adjacency(&lab, 0, LinkType::Ip4, peer("10.0.0.2"));
    let under = group(&lab, &[(a, 1)]).expect("a group");
    let bytes: Vec<u8> = (1..=50).collect();
    let make = |lab: &Lab, header: &[u8]| {
        with(lab, |f, lab| {
            f.retain(under);
            let (sw_if, link, node) = (lab.sw_if(2), LinkType::Ip4, NodeId(3));
            f.midchain(&lab.c, &Midchain { sw_if, link, header, node, stacked: under })
        })
    };
    let tunnel = make(&lab, &bytes).expect("a midchain");
    assert_eq!((kind(&lab, tunnel), header(&lab, tunnel)), (Kind::MIDCHAIN, bytes));
    let entry = with(&lab, |f, _| {
        let entry = f.table().get(tunnel);
        (entry.next(), entry.stacked())
    });
    assert_eq!(entry, (3, under));
    let over = group(&lab, &[(tunnel, 1)]).expect("a group");
    assert_eq!(kind(&lab, over), Kind::REDIRECT_COMPLETE);
    // Nothing can be sent where it leads.
    set_group(&lab, under, &[(DROP, 1)]).expect("members");
    assert_eq!((kind(&lab, tunnel), kind(&lab, over)), (Kind::DOWN, Kind::REDIRECT));
    assert_eq!(set_group(&lab, under, &[(tunnel, 1)]), Err(FibError::Loop));
    assert_eq!(set_group(&lab, under, &[(over, 1)]), Err(FibError::Loop));
    set_group(&lab, under, &[(a, 1)]).expect("members");
    assert_eq!((kind(&lab, tunnel), kind(&lab, over)), (Kind::MIDCHAIN, Kind::REDIRECT_COMPLETE));
    lab.up(0, false);
    assert_eq!(kind(&lab, tunnel), Kind::DOWN);
    lab.up(0, true);
    lab.up(2, false);
    assert_eq!(kind(&lab, tunnel), Kind::DOWN);
    lab.up(2, true);
    assert_eq!(kind(&lab, tunnel), Kind::MIDCHAIN);
    assert_eq!(make(&lab, &[0; 97]), Err(FibError::Rewrite(97)));
    [over, tunnel, under, a].iter().for_each(|dpo| release(&lab, *dpo));
    assert_eq!(len(&lab), before);
    lab.close();
}

#[test]
fn a_feature_adds_a_kind_of_object() {
    let mut lab = lab();
    let decl = KindDecl {
        name: "mine",
        type_number: 9,
        sent: false,
        describe: |f, _, dpo| format!("mine {}", f.table().get(dpo).state().value),
    };
    let kind = with(&lab, |f, _| f.register(decl)).expect("a kind");
    let dpo = with(&lab, |f, lab| f.plain(&lab.c, kind, 42)).expect("an object");
    assert_eq!(with(&lab, |f, lab| f.describe(&lab.c, dpo)), "mine 42");
    assert_eq!(with(&lab, |f, _| f.kind(kind).name), "mine");
    assert_eq!(with(&lab, |f, _| f.table().exit(LinkType::Ip4, kind)), None);
    let state = with(&lab, |f, _| f.table().get(dpo).state());
    assert_eq!(state, EntryState { value: 42, ..EntryState::of(kind) });
    release(&lab, dpo);
    lab.settle();
    lab.close();
}

/// Changes of five groups over six hosts on two interfaces.
#[derive(Clone, Debug)]
enum Op {
    Set(usize, Vec<(usize, u32)>),
    Up(u8, bool),
    Mac(usize, bool),
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0..5usize, prop::collection::vec((0..11usize, 1..4u32), 1..5))
            .prop_map(|(g, m)| Op::Set(g, m)),
        1 => (0..2u8, any::<bool>()).prop_map(|(n, up)| Op::Up(n, up)),
        1 => (0..6usize, any::<bool>()).prop_map(|(n, known)| Op::Mac(n, known)),
    ]
}

/// Objects that packets may meet, from scratch: items 0 to 5 are hosts, the others groups.
fn ends(groups: &[Vec<(usize, u32)>], item: usize, out: &mut BTreeSet<usize>) {
    match item.checked_sub(6) {
        None => _ = out.insert(item),
        Some(g) => groups[g].iter().for_each(|m| ends(groups, m.0, out)),
    }
}

fn contains(groups: &[Vec<(usize, u32)>], item: usize, looked_for: usize) -> bool {
    let below = item.checked_sub(6).map_or(&[][..], |g| &groups[g]);
    item == looked_for || below.iter().any(|m| contains(groups, m.0, looked_for))
}

#[test]
fn groups_agree_with_a_plain_model() {
    let lab = std::cell::RefCell::new(lab());
    let before = len(&lab.borrow());
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) };
    proptest!(config, |(ops in prop::collection::vec(any_op(), 1..40))| {
        let mut lab = lab.borrow_mut();
        let address = |n: usize| format!("10.0.{}.{}", n % 2, 2 + n);
        let hosts = (0..6).map(|n| {
            adjacency(&lab, n as u8 % 2, LinkType::Ip4, peer(&address(n)))
        });
        let mut items: Vec<Dpo> = hosts.collect();
        let mut groups = vec![vec![(0, 1)]; 5];
        items.extend((0..5).map(|_| group(&lab, &[(items[0], 1)]).expect("a group")).collect::<Vec<_>>());
        let (mut up, mut known) = ([true; 2], [false; 6]);
        for op in ops {
            match op {
                Op::Set(g, members) => {
                    let loops = members.iter().any(|m| contains(&groups, m.0, g + 6));
                    let new: Vec<_> = members.iter().map(|m| (items[m.0], m.1)).collect();
                    let done = set_group(&lab, items[g + 6], &new);
                    prop_assert_eq!(done, if loops { Err(FibError::Loop) } else { Ok(()) });
                    if !loops {
                        groups[g] = members;
                    }
                }
                Op::Up(n, is) => {
                    lab.up(n, is);
                    up[usize::from(n)] = is;
                }
                Op::Mac(n, is) => {
                    resolved(&lab, n as u8 % 2, &address(n), is.then_some(MacAddr(MAC)));
                    known[n] = is;
                }
            }
            for g in 0..5 {
                let mut all = BTreeSet::new();
                ends(&groups, g + 6, &mut all);
                let live: BTreeSet<usize> = all.iter().copied().filter(|n| up[n % 2]).collect();
                let want = if live.is_empty() { all } else { live };
                let met: BTreeSet<Dpo> = shares(&lab, items[g + 6]).into_keys().collect();
                let all: BTreeSet<Dpo> = want.iter().map(|n| items[*n]).collect();
                prop_assert!(met.is_subset(&all));
                if let [n] = want.iter().copied().collect::<Vec<_>>()[..] {
                    let complete = up[n % 2] && known[n];
                    let kind = kind(&lab, items[g + 6]);
                    prop_assert_eq!(kind.is_complete(), complete);
                    prop_assert_eq!(met.len(), 1);
                }
            }
        }
        for n in 0..6 {
            resolved(&lab, n as u8 % 2, &address(n), None);
        }
        items.iter().for_each(|dpo| release(&lab, *dpo));
        (0..2).for_each(|n| lab.up(n, true));
        prop_assert_eq!(len(&lab), before);
    });
    lab.into_inner().close();
}

#[test]
fn a_group_says_whether_all_its_members_are_complete() {
    let mut lab = lab();
    let hosts = [0, 1].map(|n| adjacency(&lab, n, LinkType::Ip4, peer("10.0.0.2")));
    let both = group(&lab, &[(hosts[0], 1), (hosts[1], 1)]).expect("a group");
    let nested = group(&lab, &[(both, 1), (hosts[1], 2)]).expect("a group");
    let kinds = |lab: &Lab| [both, nested].map(|dpo| kind(lab, dpo));
    resolved(&lab, 0, "10.0.0.2", Some(MacAddr(MAC)));
    assert_eq!(kinds(&lab), [Kind::LOAD_BALANCE; 2]);
    resolved(&lab, 1, "10.0.0.2", Some(MacAddr(MAC)));
    assert_eq!(kinds(&lab), [Kind::LOAD_BALANCE_COMPLETE; 2]);
    resolved(&lab, 0, "10.0.0.2", None);
    assert_eq!(kinds(&lab), [Kind::LOAD_BALANCE; 2]);
    // Members that are down take no part.
    lab.up(0, false);
    assert_eq!(kinds(&lab), [Kind::REDIRECT_COMPLETE; 2]);
    [nested, both, hosts[0], hosts[1]].iter().for_each(|dpo| release(&lab, *dpo));
    lab.close();
}

#[test]
fn shares_follow_weights_up_to_64_members() {
    let lab = lab();
    let hosts: Vec<Dpo> =
        (2..66).map(|n| adjacency(&lab, 0, LinkType::Ip4, peer(&format!("10.0.0.{n}")))).collect();
    let all: Vec<(Dpo, u32)> = hosts.iter().map(|dpo| (*dpo, 1)).collect();
    let many = group(&lab, &all).expect("a group");
    assert_eq!(shares(&lab, many), all.iter().map(|m| (m.0, 1)).collect());
    // No weight is a weight of 1.
    set_group(&lab, many, &[(hosts[0], 0), (hosts[1], 1)]).expect("members");
    assert_eq!(shares(&lab, many), BTreeMap::from([(hosts[0], 32), (hosts[1], 32)]));
    set_group(&lab, many, &[(hosts[0], 0), (hosts[1], 255)]).expect("members");
    let uneven = shares(&lab, many);
    assert!(uneven[&hosts[1]] >= 63, "{uneven:?}");
    set_group(&lab, many, &[(hosts[0], u32::MAX), (hosts[1], u32::MAX)]).expect("members");
    assert_eq!(shares(&lab, many), BTreeMap::from([(hosts[0], 32), (hosts[1], 32)]));
    release(&lab, many);
    hosts.iter().for_each(|dpo| release(&lab, *dpo));
    lab.close();
}

#[test]
fn an_interfaces_objects_are_found_among_those_of_many() {
    let mut lab = lab();
    let mut others = Vec::new();
    let mut visits = Vec::new();
    let own = adjacency(&lab, 0, LinkType::Ip4, peer("10.0.0.2"));
    let over = group(&lab, &[(own, 1)]).expect("a group");
    for many in [10u32, 10_000] {
        while others.len() < many as usize {
            let host = std::net::Ipv4Addr::from_bits(0x0a01_0000 + others.len() as u32);
            let dpo = adjacency(&lab, 1, LinkType::Ip4, Peer::Neighbor(host.into()));
            others.push(dpo);
            others.push(group(&lab, &[(dpo, 1)]).expect("a group"));
        }
        let before = with(&lab, |f, _| f.visits());
        lab.up(0, false);
        lab.up(0, true);
        resolved(&lab, 0, "10.0.0.2", Some(MacAddr(MAC)));
        resolved(&lab, 0, "10.0.0.2", None);
        visits.push(with(&lab, |f, _| f.visits()) - before);
    }
    assert_eq!(visits, [visits[0]; 2]);
    assert!((4..20).contains(&visits[0]), "{visits:?}");
    [over, own].iter().chain(others.iter().rev()).for_each(|dpo| release(&lab, *dpo));
    lab.close();
}

#[test]
fn an_index_that_is_used_again_counts_from_zero() {
    let mut lab = lab();
    let counters = lab.c.shared::<ObjectCounters>();
    let old = adjacency(&lab, 0, LinkType::Ip4, peer("10.0.0.2"));
    counters.count(0, Counted::To, [(old, 100), (old, 50)]);
    counters.count(0, Counted::Via, [(old, 70)]);
    let counts = |lab: &Lab, dpo| with(lab, |f, _| f.counts(dpo));
    assert_eq!(counts(&lab, old).to, Combined { packets: 2, bytes: 150 });
    assert_eq!(counts(&lab, old).via, Combined { packets: 1, bytes: 70 });
    release(&lab, old);
    let mut held = Vec::new();
    lab.until("the index is used again", |lab| {
        let new = held.len() as u8;
        held.push(adjacency(lab, 1, LinkType::Ip4, peer(&format!("10.0.1.{new}"))));
        held.last() == Some(&old)
    });
    assert_eq!(counts(&lab, old), Counts::default());
    counters.count(0, Counted::To, [(old, 9)]);
    assert_eq!(counts(&lab, old).to, Combined { packets: 1, bytes: 9 });
    held.iter().for_each(|dpo| release(&lab, *dpo));
    lab.close();
}

/// A change of nested groups, or a look at them.
#[derive(Clone, Debug)]
enum Step {
    /// Members for the inner group, or the outer one, which keeps the inner one.
    Members(bool, Vec<(prop::sample::Index, u32)>),
    /// A neighbour is resolved, or not.
    Resolved(prop::sample::Index, bool),
    /// A worker reads the groups' states.
    Look,
    /// The worker passes a quiescent point.
    Pass,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let members = prop::collection::vec((any::<prop::sample::Index>(), 0u32..9), 1..17);
    let step = prop_oneof![
        4 => (any::<bool>(), members).prop_map(|(inner, all)| Step::Members(inner, all)),
        2 => any::<(prop::sample::Index, bool)>().prop_map(|(n, yes)| Step::Resolved(n, yes)),
        3 => Just(Step::Look),
        1 => Just(Step::Pass),
    ];
    prop::collection::vec(step, 1..60)
}

/// Members that a worker has read from a group it may use until its next quiescent point, whatever
/// becomes of the group: they stay those of that moment.
#[test]
fn workers_keep_the_members_that_they_have_read() {
    let lab = RefCell::new(lab());
    let hosts: Vec<Dpo> = (2..18)
        .map(|n| adjacency(&lab.borrow(), 0, LinkType::Ip4, peer(&format!("10.0.0.{n}"))))
        .collect();
    let mut runner = proptest::test_runner::TestRunner::new(proptest::test_runner::Config {
        cases: 60,
        failure_persistence: None,
        ..Default::default()
    });
    let run = runner.run(&steps(), |steps| {
        let lab = &*lab.borrow();
        let mut worker = lab.c.domain().register().expect("a worker");
        worker.enter();
        let inner = group(lab, &[(hosts[0], 1)]).expect("a group");
        let outer = group(lab, &[(inner, 1), (hosts[1], 1)]).expect("a group");
        let picks = |state| (0..64).map(move |hash| with(lab, |f, _| f.table().pick(state, hash)));
        let mut seen = Vec::new();
        for step in steps {
            match step {
                Step::Members(of_inner, all) => {
                    let all = all.iter().map(|(n, weight)| (*n.get(&hosts), *weight));
                    let nested = (!of_inner).then_some((inner, 3));
                    let all: BTreeMap<Dpo, u32> = all.chain(nested).collect();
                    let all: Vec<(Dpo, u32)> = all.into_iter().collect();
                    let group = if of_inner { inner } else { outer };
                    set_group(lab, group, &all).expect("members");
                }
                Step::Resolved(n, yes) => {
                    let host = format!("10.0.0.{}", 2 + n.index(hosts.len()));
                    resolved(lab, 0, &host, yes.then_some(MacAddr(MAC)));
                }
                Step::Look => {
                    for group in [inner, outer] {
                        let state = with(lab, |f, _| f.table().get(group).state());
                        let balanced =
                            [Kind::LOAD_BALANCE, Kind::LOAD_BALANCE_COMPLETE].contains(&state.kind);
                        if balanced {
                            let all: Vec<Dpo> = picks(state).collect();
                            prop_assert!(all.iter().all(|dpo| hosts.contains(dpo)), "{:?}", all);
                            seen.push((state, all));
                        }
                    }
                }
                Step::Pass => {
                    worker.enter();
                    seen.clear();
                }
            }
            for (state, all) in &seen {
                prop_assert!(picks(*state).eq(all.iter().copied()));
            }
        }
        [outer, inner].iter().for_each(|dpo| release(lab, *dpo));
        Ok(())
    });
    run.unwrap_or_else(|e| panic!("{e}"));
    let lab = lab.into_inner();
    hosts.iter().for_each(|dpo| release(&lab, *dpo));
    lab.close();
}

/// Paths with labels to a neighbour that nobody knows yet.
#[test]
fn one_more_labelled_path_of_many_costs_what_the_first_did() {
    let lab = lab();
    let to = peer("10.0.0.2");
    let shortest = |paths: std::ops::Range<u32>| {
        let add = |n: u32| {
            let labels = Labels::new(&[Label(n + 16)]).expect("a stack");
            let imposed = Imposed { labels, bottom: true, swap: None };
            let key = AdjacencyKey { sw_if: lab.sw_if(0), link: LinkType::Ip4, peer: to, imposed };
            let began = processor_time();
            with(&lab, |f, lab| f.imposing(&lab.c, key)).expect("an adjacency");
            processor_time() - began
        };
        paths.map(add).min().expect("some")
    };
    let few = shortest(0..50);
    shortest(50..20_000);
    let many = shortest(20_000..20_050);
    assert!(many < 10 * few, "{few:?}, with many {many:?}");
    lab.close();
}
