//! Host routes of neighbours.

use crate::{Family, Leaves, Routes, lab, prefix, table};
use proptest::prelude::*;
use std::collections::BTreeMap;
use thalweg_device::SwIfIndex;
use thalweg_device::testing::Lab;
use thalweg_fib::TableId;
use thalweg_fib::rib::{NeighborOn, Path, PathKind, Source, Table};
use thalweg_tables::Prefix;

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
