//! Where the router answers ARP for NAT44's addresses: they belong to the tables of the interfaces
//! that translate, like VPP's routes to them, and packets that come by an interface without a role
//! would not be translated.

use super::{Nat44, Role};
use std::collections::BTreeSet;
use thalweg_device::SwIfIndex;
use thalweg_feat_ip::Ip4;
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// The group of external addresses, for ARP.
pub(super) const EXTERNAL: u64 = 0;

/// The group of twice-NAT's addresses for hosts of a table, or of all.
pub(super) fn group_of_twice(table: Option<TableId>) -> u64 {
    table.map_or(1, |table| 2 + u64::from(table.get()))
}

/// Has ARP answer where interfaces translate now. To be called when roles change, tables of
/// interfaces with a role, or addresses of twice-NAT.
pub(super) fn follow_roles(c: &mut Control) {
    let groups = {
        let (nat, ip4) = (c.state::<Nat44>(), c.state::<Ip4>());
        let (nat, ip4) = (nat.borrow(), ip4.borrow());
        let twice = nat.active.iter().filter(|a| a.twice).map(|a| a.table);
        let to_hosts = twice.collect::<BTreeSet<_>>().into_iter();
        let to_hosts = to_hosts.map(|t| (group_of_twice(t), of_inside(&nat, &ip4, t)));
        [(EXTERNAL, of_outside(&nat, &ip4))].into_iter().chain(to_hosts).collect()
    };
    thalweg_feat_arp::answer_on(c, groups);
}

fn with_role<'a>(
    nat: &'a Nat44,
    which: impl Fn(&Role) -> bool + 'a,
) -> impl Iterator<Item = SwIfIndex> + 'a {
    nat.roles.iter().filter(move |(_, role)| which(role)).map(|(sw_if, _)| *sw_if)
}

/// Interfaces with a role, inside ones for hairpinning, in a table of an outside interface.
fn of_outside(nat: &Nat44, ip4: &Ip4) -> BTreeSet<SwIfIndex> {
    let tables: BTreeSet<TableId> =
        with_role(nat, |role| role.outside).map(|i| ip4.table_of(i)).collect();
    with_role(nat, |_| true).filter(|i| tables.contains(&ip4.table_of(*i))).collect()
}

/// Interfaces of inside hosts of a table, or of all: they answer to an address of twice-NAT.
fn of_inside(nat: &Nat44, ip4: &Ip4, table: Option<TableId>) -> BTreeSet<SwIfIndex> {
    let is_meant = |sw_if: &SwIfIndex| table.is_none_or(|table| ip4.table_of(*sw_if) == table);
    with_role(nat, |role| role.inside).filter(is_meant).collect()
}
