//! Interfaces that have a table of their own, and the same by table.

use std::collections::{BTreeMap, BTreeSet};
use thalweg_device::SwIfIndex;
use thalweg_fib::TableId;

/// Tables of interfaces that were given one.
#[derive(Debug, Default)]
pub(crate) struct Bound {
    tables: BTreeMap<SwIfIndex, TableId>,
    interfaces: BTreeSet<(TableId, SwIfIndex)>,
}

impl Bound {
    /// Returns the table of an interface, if it was given one.
    pub(crate) fn table(&self, sw_if: SwIfIndex) -> Option<TableId> {
        self.tables.get(&sw_if).copied()
    }

    /// Gives an interface a table, or none any more; returns whether it had one.
    pub(crate) fn set(&mut self, sw_if: SwIfIndex, table: Option<TableId>) -> bool {
        let before = match table {
            Some(table) => self.tables.insert(sw_if, table),
            None => self.tables.remove(&sw_if),
        };
        if let Some(before) = before {
            self.interfaces.remove(&(before, sw_if));
        }
        self.interfaces.extend(table.map(|table| (table, sw_if)));
        before.is_some()
    }

    /// Interfaces that were given a table.
    pub(crate) fn interfaces(&self) -> impl Iterator<Item = SwIfIndex> + '_ {
        self.tables.keys().copied()
    }

    /// Interfaces that were given this one, in order.
    pub(crate) fn to(&self, table: TableId) -> impl Iterator<Item = SwIfIndex> + '_ {
        let range = (table, SwIfIndex(0))..=(table, SwIfIndex(u32::MAX));
        self.interfaces.range(range).map(|(_, sw_if)| *sw_if)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tables_have_the_interfaces_that_were_given_them(
            steps in prop::collection::vec((0u32..6, prop::option::of(0u32..3)), 0..60)
        ) {
            let (mut bound, mut plain) = (Bound::default(), BTreeMap::new());
            for (sw_if, table) in steps {
                let (sw_if, table) = (SwIfIndex(sw_if), table.map(TableId));
                let before = match table {
                    Some(table) => plain.insert(sw_if, table),
                    None => plain.remove(&sw_if),
                };
                prop_assert_eq!(bound.set(sw_if, table), before.is_some());
                prop_assert_eq!(bound.table(sw_if), table);
                prop_assert!(bound.interfaces().eq(plain.keys().copied()));
                for table in (0..3).map(TableId) {
                    let expected = plain.iter().filter(|(_, t)| **t == table).map(|(i, _)| *i);
                    prop_assert!(bound.to(table).eq(expected));
                }
            }
        }
    }
}
