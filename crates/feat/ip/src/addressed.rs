//! Interfaces that have addresses, by table: the first one of a table is found in the same time
//! with many interfaces as with few.

use std::collections::{BTreeMap, BTreeSet};
use thalweg_device::SwIfIndex;
use thalweg_fib::TableId;

/// An interface's table, and true if it has addresses of its own, false if it only borrows.
pub(crate) type Has = (TableId, bool);

/// Interfaces with addresses, and the same by table.
#[derive(Debug, Default)]
pub(crate) struct Addressed {
    all: BTreeMap<SwIfIndex, Has>,
    /// Interfaces with addresses of their own.
    own: BTreeSet<(TableId, SwIfIndex)>,
    /// Interfaces that only borrow.
    borrowing: BTreeSet<(TableId, SwIfIndex)>,
}

/// Members of a table, in order.
fn of(
    set: &BTreeSet<(TableId, SwIfIndex)>,
    table: TableId,
) -> impl Iterator<Item = SwIfIndex> + '_ {
    let range = (table, SwIfIndex(0))..=(table, SwIfIndex(u32::MAX));
    set.range(range).map(|(_, sw_if)| *sw_if)
}

impl Addressed {
    fn set_of(&mut self, own: bool) -> &mut BTreeSet<(TableId, SwIfIndex)> {
        if own { &mut self.own } else { &mut self.borrowing }
    }

    /// Sets what an interface has; `None` if it has no addresses.
    pub(crate) fn set(&mut self, sw_if: SwIfIndex, now: Option<Has>) {
        let before = match now {
            Some(now) => self.all.insert(sw_if, now),
            None => self.all.remove(&sw_if),
        };
        if before == now {
            return;
        }
        if let Some((table, own)) = before {
            self.set_of(own).remove(&(table, sw_if));
        }
        if let Some((table, own)) = now {
            self.set_of(own).insert((table, sw_if));
        }
    }

    /// Interfaces of a table with addresses of their own, in order.
    pub(crate) fn with_own(&self, table: TableId) -> impl Iterator<Item = SwIfIndex> + '_ {
        of(&self.own, table)
    }

    /// Interfaces of a table that only borrow addresses, in order.
    pub(crate) fn borrowing(&self, table: TableId) -> impl Iterator<Item = SwIfIndex> + '_ {
        of(&self.borrowing, table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tables_have_what_their_interfaces_have(
            steps in prop::collection::vec((0u32..6, prop::option::of((0u32..3, any::<bool>()))), 0..60)
        ) {
            let (mut all, mut plain) = (Addressed::default(), BTreeMap::new());
            for (sw_if, has) in steps {
                let has = has.map(|(table, own)| (TableId(table), own));
                all.set(SwIfIndex(sw_if), has);
                match has {
                    Some(has) => _ = plain.insert(SwIfIndex(sw_if), has),
                    None => _ = plain.remove(&SwIfIndex(sw_if)),
                }
                for table in (0..3).map(TableId) {
                    let expected = |own| -> Vec<SwIfIndex> {
                        let meant = plain.iter().filter(|(_, has)| **has == (table, own));
                        meant.map(|(sw_if, _)| *sw_if).collect()
                    };
                    prop_assert_eq!(all.with_own(table).collect::<Vec<_>>(), expected(true));
                    prop_assert_eq!(all.borrowing(table).collect::<Vec<_>>(), expected(false));
                }
            }
        }
    }
}
