//! Route tables, for addresses of 32 and of 128 bits.

#![allow(clippy::expect_used, clippy::panic)]

mod following;
mod labels;
mod model;
mod neighbors;
mod paths;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use thalweg_device::SwIfIndex;
use thalweg_device::testing::{Lab, NO_ETHERNET};
use thalweg_fib::rib::{Path, PathKind, Source, Table};
use thalweg_fib::{Dpo, Forwarding, LinkType, TableId};
use thalweg_tables::qsbr::Domain;
use thalweg_tables::{Address, Leaf, Lpm, LpmError, Prefix};

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
