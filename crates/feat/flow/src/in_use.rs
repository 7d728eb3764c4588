//! Interfaces with their sets, and the sets in use as workers have them. Needs of all sets in use
//! are counted: a change of one set or interface takes as long with many others as with none.

use crate::spread::Spread;
use crate::tables::Compilation;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thalweg_device::SwIfIndex;

/// The packets of an interface that pass a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// Packets that it receives.
    Received,
    /// Packets that the router sends into a bridge domain by it, the domain's BVI.
    IntoBridge,
}

impl Side {
    pub(crate) const BOTH: [Side; 2] = [Side::Received, Side::IntoBridge];
}

/// An interface, and which of its packets.
pub(crate) type User = (SwIfIndex, Side);

/// Sets in use.
#[derive(Debug, Default)]
pub(crate) struct InUse {
    /// The set by user: attached ones, and those of bridge domains with the number of a set.
    following: BTreeMap<User, u32>,
    /// The same by set.
    users: BTreeMap<u32, BTreeSet<User>>,
    compiled: BTreeMap<u32, Arc<Compilation>>,
    /// Sets that may have no user any more.
    idle: BTreeSet<u32>,
    needs: Needs,
}

/// Numbers of compiled sets with a need.
#[derive(Debug, Default, PartialEq, Eq)]
struct Needs {
    labels: usize,
    ipv6: usize,
    translation: usize,
    spreads: BTreeMap<Spread, usize>,
    translated_zones: BTreeMap<u16, usize>,
}

/// Counts one more or one less; a key at zero goes.
fn count<K: Ord + Copy>(all: &mut BTreeMap<K, usize>, key: K, more: bool) {
    let n = all.entry(key).or_default();
    *n = if more { *n + 1 } else { n.saturating_sub(1) };
    if *n == 0 {
        all.remove(&key);
    }
}

impl Needs {
    fn count(&mut self, set: &Compilation, more: bool) {
        for (n, has) in [
            (&mut self.labels, set.labels),
            (&mut self.ipv6, set.tracks_ipv6),
            (&mut self.translation, set.translates),
        ] {
            let one = usize::from(has);
            *n = if more { *n + one } else { n.saturating_sub(one) };
        }
        count(&mut self.spreads, set.spread, more);
        for zone in &set.translated_zones {
            count(&mut self.translated_zones, *zone, more);
        }
    }
}

impl InUse {
    /// The set of a user.
    pub(crate) fn set_of(&self, user: User) -> Option<u32> {
        self.following.get(&user).copied()
    }

    /// Users of all sets, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = (User, u32)> + '_ {
        self.following.iter().map(|(user, set)| (*user, *set))
    }

    /// Users of a set, in order.
    pub(crate) fn users(&self, set: u32) -> impl Iterator<Item = User> + '_ {
        self.users.get(&set).into_iter().flatten().copied()
    }

    /// Returns whether a set has users.
    pub(crate) fn is_used(&self, set: u32) -> bool {
        self.users.contains_key(&set)
    }

    /// Returns whether no interface uses rules.
    pub(crate) fn is_idle(&self) -> bool {
        self.following.is_empty()
    }

    /// Sets or clears the set of a user; returns whether it had another one.
    pub(crate) fn use_set(&mut self, user: User, set: Option<u32>) -> bool {
        let old = match set {
            Some(set) => self.following.insert(user, set),
            None => self.following.remove(&user),
        };
        if old == set {
            return false;
        }
        if let Some(old) = old
            && let Some(users) = self.users.get_mut(&old)
        {
            users.remove(&user);
            if users.is_empty() {
                self.users.remove(&old);
                self.idle.insert(old);
            }
        }
        if let Some(set) = set {
            self.users.entry(set).or_default().insert(user);
        }
        true
    }

    /// A set as workers have it.
    pub(crate) fn compiled(&self, set: u32) -> Option<&Arc<Compilation>> {
        self.compiled.get(&set)
    }

    /// Sets what workers have of a set; `None` if they have it no more.
    pub(crate) fn store(&mut self, set: u32, new: Option<Compilation>) {
        let old = match new {
            Some(new) => {
                self.needs.count(&new, true);
                self.compiled.insert(set, Arc::new(new))
            }
            None => self.compiled.remove(&set),
        };
        if let Some(old) = old {
            self.needs.count(&old, false);
        }
    }

    /// Forgets sets that have lost their last user.
    pub(crate) fn forget_idle(&mut self) {
        for set in std::mem::take(&mut self.idle) {
            if !self.is_used(set) {
                self.store(set, None);
            }
        }
    }

    /// Returns whether rules set connection labels.
    pub(crate) fn have_labels(&self) -> bool {
        self.needs.labels > 0
    }

    /// Returns whether rules track connections of IPv6.
    pub(crate) fn track_ipv6(&self) -> bool {
        self.needs.ipv6 > 0
    }

    /// Returns whether rules translate connections.
    pub(crate) fn translate(&self) -> bool {
        self.needs.translation > 0
    }

    /// Returns the spread of the connections of all sets.
    pub(crate) fn spread(&self) -> Spread {
        self.needs.spreads.last_key_value().map(|(spread, _)| *spread).unwrap_or_default()
    }

    /// The zones in which any set translates connections, in order.
    pub(crate) fn translated_zones(&self) -> Vec<u16> {
        self.needs.translated_zones.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn compilation(n: u16) -> Compilation {
        Compilation {
            labels: n & 1 == 1,
            tracks_ipv6: n & 2 == 2,
            translates: n & 4 == 4,
            translated_zones: (0..n % 3).collect(),
            spread: if n & 8 == 8 { Spread::One } else { Spread::Tuple },
            ..Compilation::default()
        }
    }

    proptest! {
        #[test]
        fn counts_are_those_of_the_sets_in_use(
            steps in prop::collection::vec((0u32..5, any::<bool>(), prop::option::of(0u32..4), 0u16..16), 0..60)
        ) {
            let mut all = InUse::default();
            for (sw_if, into, set, n) in steps {
                let side = if into { Side::IntoBridge } else { Side::Received };
                all.use_set((SwIfIndex(sw_if), side), set);
                if let Some(set) = set {
                    all.store(set, Some(compilation(n)));
                }
                all.forget_idle();
                let mut plain = Needs::default();
                all.compiled.values().for_each(|set| plain.count(set, true));
                prop_assert_eq!(&all.needs, &plain);
                for set in 0..4 {
                    let users: Vec<User> =
                        all.all().filter(|(_, of)| *of == set).map(|(user, _)| user).collect();
                    prop_assert_eq!(all.users(set).collect::<Vec<_>>(), users.clone());
                    prop_assert_eq!(all.compiled(set).is_some(), !users.is_empty());
                }
            }
            prop_assert_eq!(all.have_labels(), all.compiled.values().any(|set| set.labels));
        }
    }
}
