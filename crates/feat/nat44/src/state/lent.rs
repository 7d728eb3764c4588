//! Where the router answers ARP for NAT44's addresses: they belong to the tables of the interfaces
//! that translate, like VPP's routes to them, and packets that come by an interface without a role
//! would not be translated.

use super::{Address, Nat44, Role};
use crate::config::Config;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use thalweg_device::SwIfIndex;
use thalweg_feat_arp::Lent;
use thalweg_feat_ip::Ip4;
use thalweg_fib::TableId;

/// External addresses first, those of single mappings among them; then those of twice-NAT, by the
/// routing table of their hosts.
pub(super) fn of(
    nat: &Nat44,
    ip4: &Ip4,
    config: &Config,
    addresses: &BTreeSet<Address>,
) -> Vec<Lent> {
    let pooled = addresses.iter().filter(|a| !a.twice).map(|a| a.address);
    let mapped = config.addresses.of_mappings().map(Ipv4Addr::from);
    let external =
        Lent { addresses: pooled.chain(mapped).collect(), interfaces: of_outside(nat, ip4) };
    let mut twice: BTreeMap<Option<TableId>, Vec<Ipv4Addr>> = BTreeMap::new();
    for a in addresses.iter().filter(|a| a.twice) {
        twice.entry(a.table).or_default().push(a.address);
    }
    let to_hosts = twice
        .into_iter()
        .map(|(table, addresses)| Lent { addresses, interfaces: of_inside(nat, ip4, table) });
    [external].into_iter().chain(to_hosts).collect()
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
