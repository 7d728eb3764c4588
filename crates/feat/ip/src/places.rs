//! Places of tables in the list that workers read: the rows of interfaces name them.

use std::collections::BTreeMap;
use thalweg_fib::TableId;

/// Tables by place. All but one stay where they are when one goes: the last takes its place.
#[derive(Debug, Default)]
pub struct Places {
    ids: Vec<TableId>,
    places: BTreeMap<TableId, u16>,
}

impl Places {
    /// Returns the place of a table.
    pub fn of(&self, id: TableId) -> Option<u16> {
        self.places.get(&id).copied()
    }

    /// Puts a table at the end; returns its place.
    pub fn add(&mut self, id: TableId) -> u16 {
        let at = self.ids.len() as u16;
        self.ids.push(id);
        self.places.insert(id, at);
        at
    }

    /// Takes a table out. Returns where it was, and the table that is there now.
    pub fn remove(&mut self, id: TableId) -> Option<(u16, Option<TableId>)> {
        let at = self.places.remove(&id)?;
        self.ids.swap_remove(at.into());
        let moved = self.ids.get(usize::from(at)).copied();
        self.places.extend(moved.map(|id| (id, at)));
        Some((at, moved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn one_table_moves_at_most(steps in prop::collection::vec(0u32..8, 0..60)) {
            let (mut places, mut plain): (Places, Vec<TableId>) = Default::default();
            for id in steps.into_iter().map(TableId) {
                match plain.iter().position(|there| *there == id) {
                    Some(at) => {
                        let moved = plain.last().copied().filter(|last| *last != id);
                        prop_assert_eq!(places.remove(id), Some((at as u16, moved)));
                        plain.swap_remove(at);
                        prop_assert_eq!(places.remove(id), None);
                    }
                    None => {
                        prop_assert_eq!(places.add(id), plain.len() as u16);
                        plain.push(id);
                    }
                }
                for id in (0..8).map(TableId) {
                    let at = plain.iter().position(|there| *there == id);
                    prop_assert_eq!(places.of(id), at.map(|at| at as u16));
                }
            }
        }
    }
}
