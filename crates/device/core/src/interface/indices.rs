//! Indices of interfaces: free, in use, or reserved for an interface of some name.

use std::collections::{BTreeMap, BTreeSet};

/// Every step takes the same time for any number of interfaces.
#[derive(Debug, Default)]
pub(super) struct Indices {
    limit: u32,
    /// Indices from here on are neither in use nor reserved.
    fresh: u32,
    /// Indices below `fresh` that are neither.
    holes: BTreeSet<u32>,
    /// Reserved indices by name.
    reserved: BTreeMap<String, u32>,
    /// Names by reserved index.
    holders: BTreeMap<u32, String>,
    used: BTreeSet<u32>,
}

impl Indices {
    pub(super) fn new(limit: u32) -> Indices {
        Indices { limit, ..Indices::default() }
    }

    /// Returns the name that an index is reserved for.
    pub(super) fn holder(&self, index: u32) -> Option<&str> {
        self.holders.get(&index).map(String::as_str)
    }

    /// Reserves an index that no other name holds.
    pub(super) fn reserve(&mut self, name: &str, index: u32) {
        self.release(name);
        self.cover(index);
        self.holes.remove(&index);
        self.reserved.insert(name.to_owned(), index);
        self.holders.insert(index, name.to_owned());
    }

    /// Reserved indices, by the name of the future interface.
    pub(super) fn reserved(&self) -> impl Iterator<Item = (&str, u32)> {
        self.holders.iter().map(|(index, name)| (name.as_str(), *index))
    }

    /// Ends the reservation of a name. Returns whether there was one.
    pub(super) fn release(&mut self, name: &str) -> bool {
        let Some(index) = self.reserved.remove(name) else { return false };
        self.holders.remove(&index);
        if !self.used.contains(&index) {
            self.holes.insert(index);
        }
        true
    }

    /// Returns the index of a new interface: the one reserved for its name, else the lowest that is
    /// neither used nor reserved, else the lowest that is not used.
    pub(super) fn next(&self, name: &str) -> Option<u32> {
        let is_free = |i: &u32| !self.used.contains(i);
        let own = self.reserved.get(name).copied().filter(is_free);
        let fresh = Some(self.fresh).filter(|i| *i < self.limit);
        let open = self.holes.first().copied().or(fresh);
        own.or(open).or_else(|| self.holders.keys().copied().find(is_free))
    }

    /// Takes an index for an interface, which needs its reservation no longer.
    pub(super) fn take(&mut self, name: &str, index: u32) {
        self.cover(index);
        self.used.insert(index);
        self.holes.remove(&index);
        self.release(name);
    }

    /// Returns an index.
    pub(super) fn give_back(&mut self, index: u32) {
        if self.used.remove(&index) && !self.holders.contains_key(&index) {
            self.holes.insert(index);
        }
    }

    /// Raises `fresh` above an index.
    fn cover(&mut self, index: u32) {
        if index >= self.fresh {
            self.holes.extend(self.fresh..=index);
            self.fresh = index + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: u32 = 12;

    /// Looks at all indices for the one that an interface gets.
    fn expected(name: &str, used: &BTreeSet<u32>, reserved: &BTreeMap<String, u32>) -> Option<u32> {
        let own = reserved.get(name).copied().filter(|i| !used.contains(i));
        let mut all = (0..LIMIT).filter(|i| !used.contains(i));
        let open = all.clone().find(|i| reserved.values().all(|r| r != i));
        own.or(open).or_else(|| all.next())
    }

    proptest! {
        #[test]
        fn are_as_if_all_were_looked_at(
            ops in prop::collection::vec((0u8..3, 0u32..LIMIT, 0u8..5), 1..80),
        ) {
            let mut indices = Indices::new(LIMIT);
            let (mut used, mut reserved) = (BTreeSet::new(), BTreeMap::new());
            for (op, index, n) in ops {
                let name = format!("if{n}");
                match op {
                    0 => {
                        let next = indices.next(&name);
                        prop_assert_eq!(next, expected(&name, &used, &reserved));
                        if let Some(next) = next {
                            indices.take(&name, next);
                            used.insert(next);
                            reserved.remove(&name);
                        }
                    }
                    1 => {
                        indices.give_back(index);
                        used.remove(&index);
                    }
                    _ => {
                        let holder = reserved.iter().find(|(_, i)| **i == index);
                        let holder = holder.map(|(name, _)| name.as_str());
                        prop_assert_eq!(indices.holder(index), holder);
                        if holder.is_none_or(|h| h == name) && !used.contains(&index) {
                            indices.reserve(&name, index);
                            reserved.insert(name, index);
                        }
                    }
                }
            }
        }
    }
}
