//! Addresses of NAT44 that the router answers ARP for: they belong to the tables of the interfaces
//! that translate, like VPP's routes to them, and packets that come by an interface without a role
//! would not be translated.
//!
//! Interfaces have labels that follow from their roles and tables, and groups of addresses are
//! answered for on interfaces with some labels. A change of one role changes the labels of one
//! interface, however many roles there are.

use super::{Address, Nat44, Role};
use std::collections::BTreeMap;
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

/// The label of inside interfaces of a table, or of all.
fn inside(table: Option<TableId>) -> u64 {
    table.map_or(0, |table| 1 + 2 * u64::from(table.get()))
}

/// The label of interfaces of a table with any role.
fn of_table(table: TableId) -> u64 {
    2 + 2 * u64::from(table.get())
}

/// A group, a label, and whether the group is answered for on interfaces with the label.
type At = (u64, u64, bool);

/// Interfaces and groups as ARP knows them.
#[derive(Debug, Default)]
pub(super) struct Answering {
    /// Tables of interfaces with a role, and these roles.
    interfaces: BTreeMap<SwIfIndex, (TableId, Role)>,
    /// Number of outside interfaces by table.
    outsides: BTreeMap<TableId, usize>,
    /// Number of addresses of twice-NAT by the table of the hosts that they are for.
    twice: BTreeMap<Option<TableId>, usize>,
}

/// Counts one more or one less; returns whether there are any.
fn count<K: Ord>(all: &mut BTreeMap<K, usize>, key: K, more: bool) -> bool {
    match more {
        true => *all.entry(key).or_default() += 1,
        false => match all.get_mut(&key) {
            Some(n) if *n > 1 => *n -= 1,
            _ => {
                all.remove(&key);
                return false;
            }
        },
    }
    true
}

impl Answering {
    /// Takes the table and role of an interface; returns its labels, and where external addresses
    /// are answered for otherwise than before.
    fn follow(&mut self, sw_if: SwIfIndex, now: Option<(TableId, Role)>) -> (Vec<u64>, Vec<At>) {
        let before = match now {
            Some(now) => self.interfaces.insert(sw_if, now),
            None => self.interfaces.remove(&sw_if),
        };
        let mut changed = BTreeMap::new();
        for (of, more) in [(now, true), (before, false)] {
            if let Some((table, _)) = of.filter(|(_, role)| role.outside) {
                changed.entry(table).or_insert(self.outsides.contains_key(&table));
                count(&mut self.outsides, table, more);
            }
        }
        let changed = changed.into_iter().filter_map(|(table, was)| {
            let is = self.outsides.contains_key(&table);
            (is != was).then(|| (EXTERNAL, of_table(table), is))
        });
        // Inside ones answer for external addresses too, for hairpinning.
        let labels = now.map_or_else(Vec::new, |(table, role)| {
            let inside = [inside(None), inside(Some(table))].into_iter().filter(|_| role.inside);
            inside.chain([of_table(table)]).collect()
        });
        (labels, changed.collect())
    }

    /// Takes addresses of twice-NAT that have come and gone; returns where they are answered for
    /// otherwise than before.
    fn follow_twice(&mut self, gone: &[Address], come: &[Address]) -> Vec<At> {
        let mut changed = BTreeMap::new();
        for (all, more) in [(come, true), (gone, false)] {
            for Address { table, .. } in all.iter().filter(|a| a.twice) {
                changed.entry(*table).or_insert(self.twice.contains_key(table));
                count(&mut self.twice, *table, more);
            }
        }
        let changed = changed.into_iter().filter_map(|(table, was)| {
            let is = self.twice.contains_key(&table);
            (is != was).then(|| (group_of_twice(table), inside(table), is))
        });
        changed.collect()
    }
}

/// Lets ARP answer on the interfaces that translate now. To be called when an interface has another
/// role, or one with a role another table.
pub(super) fn follow_role(c: &mut Control, sw_if: SwIfIndex) {
    let (labels, changed) = {
        let (nat, ip4) = (c.state::<Nat44>(), c.state::<Ip4>());
        let mut nat = nat.borrow_mut();
        let role = nat.roles.get(&sw_if).copied();
        let now = role.map(|role| (ip4.borrow().table_of(sw_if), role));
        nat.answering.follow(sw_if, now)
    };
    thalweg_feat_arp::set_labels(c, sw_if, &labels);
    answer_at(c, &changed);
}

/// The same for addresses of twice-NAT that have come and gone.
pub(super) fn follow_twice(c: &mut Control, gone: &[Address], come: &[Address]) {
    let changed = c.state::<Nat44>().borrow_mut().answering.follow_twice(gone, come);
    answer_at(c, &changed);
}

fn answer_at(c: &mut Control, changes: &[At]) {
    if !changes.is_empty() {
        thalweg_feat_arp::answer_at(c, changes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::net::Ipv4Addr;
    use thalweg_tables::hash::mix64;

    /// Interfaces and groups as ARP has them.
    #[derive(Default)]
    struct Arp {
        labels: BTreeMap<SwIfIndex, Vec<u64>>,
        at: BTreeSet<(u64, u64)>,
    }

    impl Arp {
        fn take(&mut self, changes: Vec<At>) {
            for (group, label, is) in changes {
                let changed = match is {
                    true => self.at.insert((group, label)),
                    false => self.at.remove(&(group, label)),
                };
                assert!(changed, "a change of {group} at {label} that is none");
            }
        }

        /// Interfaces on which a group is answered for.
        fn on(&self, group: u64) -> BTreeSet<SwIfIndex> {
            let is_here = |labels: &[u64]| labels.iter().any(|l| self.at.contains(&(group, *l)));
            let all = self.labels.iter().filter(|(_, labels)| is_here(labels));
            all.map(|(sw_if, _)| *sw_if).collect()
        }
    }

    #[test]
    fn changes_one_by_one_lead_where_all_at_once_would() {
        let (mut all, mut arp, mut random) = (Answering::default(), Arp::default(), 1);
        let mut interfaces: BTreeMap<SwIfIndex, (TableId, Role)> = BTreeMap::new();
        let mut twice: Vec<Address> = Vec::new();
        for step in 0..2000_u64 {
            random = mix64(random + step);
            let bit = |at: u32| random >> at & 1 == 1;
            let sw_if = SwIfIndex((random >> 8) as u32 % 6);
            let table = TableId((random >> 16) as u32 % 3);
            let role = Role { inside: bit(24), outside: bit(25), output: bit(26) };
            let now = (role.inside || role.outside).then_some((table, role));
            match now {
                Some(now) => _ = interfaces.insert(sw_if, now),
                None => _ = interfaces.remove(&sw_if),
            }
            let (labels, changes) = all.follow(sw_if, now);
            arp.labels.insert(sw_if, labels);
            arp.take(changes);
            let address = Address {
                twice: bit(40),
                address: Ipv4Addr::from_bits((random >> 48) as u32 % 4),
                table: bit(41).then_some(table),
            };
            let changes = match twice.iter().position(|a| *a == address) {
                Some(at) => all.follow_twice(&[twice.remove(at)], &[]),
                None => {
                    twice.push(address);
                    all.follow_twice(&[], &[address])
                }
            };
            arp.take(changes);
            let with = |which: &dyn Fn(TableId, Role) -> bool| -> BTreeSet<SwIfIndex> {
                let meant = interfaces.iter().filter(|(_, (table, role))| which(*table, *role));
                meant.map(|(sw_if, _)| *sw_if).collect()
            };
            let has_outside =
                |t: TableId| interfaces.values().any(|(table, role)| *table == t && role.outside);
            assert_eq!(arp.on(EXTERNAL), with(&|table, _| has_outside(table)));
            for t in [None, Some(TableId(0)), Some(TableId(2))] {
                let is_used = twice.iter().any(|a| a.twice && a.table == t);
                let is_meant =
                    |table, role: Role| is_used && role.inside && t.is_none_or(|t| t == table);
                assert_eq!(arp.on(group_of_twice(t)), with(&is_meant), "{t:?}");
            }
        }
    }
}
