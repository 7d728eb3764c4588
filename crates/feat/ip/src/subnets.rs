//! Subnets of interfaces in one table, which do not overlap.

use std::collections::BTreeMap;
use thalweg_tables::{Address, Prefix};

/// Subnets that do not overlap, each with what it belongs to. Finding one takes the same time
/// however many there are.
#[derive(Clone, Debug)]
pub(crate) struct Subnets<A, T>(BTreeMap<A, (Prefix<A>, T)>);

impl<A, T> Default for Subnets<A, T> {
    fn default() -> Self {
        Subnets(BTreeMap::new())
    }
}

impl<A: Address, T> Subnets<A, T> {
    /// Returns the first subnet that has addresses in common with this one.
    pub(crate) fn meeting(&self, subnet: Prefix<A>) -> Option<(Prefix<A>, &T)> {
        let before = self.0.range(..=subnet.addr()).next_back();
        let before = before.filter(|(_, (theirs, _))| theirs.contains(subnet.addr()));
        let inside = || self.0.range(subnet.addr()..=subnet.last()).next();
        before.or_else(inside).map(|(_, (theirs, of))| (*theirs, of))
    }

    /// Returns all subnets that have addresses in common with this one; one may come twice.
    pub(crate) fn all_meeting(&self, subnet: Prefix<A>) -> impl Iterator<Item = (Prefix<A>, &T)> {
        let before = self.0.range(..=subnet.addr()).next_back();
        let before = before.filter(|(_, (theirs, _))| theirs.contains(subnet.addr()));
        let inside = self.0.range(subnet.addr()..=subnet.last());
        before.into_iter().chain(inside).map(|(_, (theirs, of))| (*theirs, of))
    }

    /// Adds a subnet that meets no other.
    pub(crate) fn insert(&mut self, subnet: Prefix<A>, of: T) {
        self.0.insert(subnet.addr(), (subnet, of));
    }

    pub(crate) fn remove(&mut self, subnet: Prefix<A>) {
        self.0.remove(&subnet.addr());
    }

    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Prefix<A>> {
        self.0.values().map(|(subnet, _)| *subnet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn prefix() -> impl Strategy<Value = Prefix<u32>> {
        // Addresses of few bits, at both ends of the address space.
        let addr = (0..32u32, any::<bool>()).prop_map(|(n, high)| if high { !n } else { n });
        (addr, 24..=32u8).prop_map(|(addr, len)| Prefix::new(addr, len).unwrap())
    }

    fn meet(a: Prefix<u32>, b: Prefix<u32>) -> bool {
        a.contains(b.addr()) || b.contains(a.addr())
    }

    proptest! {
        #[test]
        fn one_that_meets_is_found_as_by_looking_at_all(
            steps in prop::collection::vec((prefix(), any::<bool>()), 1..40),
        ) {
            let (mut subnets, mut all) = (Subnets::default(), Vec::new());
            for (subnet, goes) in steps {
                let found = subnets.meeting(subnet);
                let first = all.iter().copied().filter(|other| meet(*other, subnet)).min();
                prop_assert_eq!(found, first.map(|other| (other, &())));
                let found: BTreeSet<_> = subnets.all_meeting(subnet).map(|(p, ())| p).collect();
                let wanted: BTreeSet<_> = all.iter().copied().filter(|other| meet(*other, subnet)).collect();
                prop_assert_eq!(found, wanted);
                match (goes, first) {
                    (true, Some(other)) => {
                        subnets.remove(other);
                        all.retain(|kept| *kept != other);
                    }
                    (false, None) => {
                        subnets.insert(subnet, ());
                        all.push(subnet);
                    }
                    _ => {}
                }
            }
            all.sort_unstable();
            prop_assert_eq!(subnets.iter().collect::<Vec<_>>(), all);
        }
    }
}
