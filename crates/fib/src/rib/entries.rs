//! Prefixes with their sources and path lists: eight bytes per slot for the vast majority of
//! prefixes, which have one source.

use super::ListId;
use super::path::Source;
use std::collections::{BTreeSet, TryReserveError};
use std::num::NonZeroU32;
use thalweg_tables::{Address, Prefix, PrefixMap, Sweep};

/// Source route entry: (source, path list) of a prefix.
type SourceRoute = (Source, ListId);

/// Bit position of the tag, which says how to read the bits below; these count from 1.
const TAG: u32 = 28;
/// Tag of a prefix with several sources: the lower bits index their list.
const MANY: u32 = 15;

/// Prefixes and their sources.
pub(super) struct Entries<A> {
    map: PrefixMap<A>,
    many: Vec<Vec<SourceRoute>>,
    free: Vec<u32>,
}

enum Entry {
    One(SourceRoute),
    Many(u32),
}

fn unpack(entry: NonZeroU32) -> Entry {
    let (tag, number) = (entry.get() >> TAG, (entry.get() & ((1 << TAG) - 1)) - 1);
    match Source::ALL.get(tag as usize) {
        Some(source) => Entry::One((*source, number)),
        None => Entry::Many(number),
    }
}

fn pack(tag: u32, number: u32) -> NonZeroU32 {
    // Path lists up to here would fill some 50 GiB: their numbers never reach the tag.
    NonZeroU32::MIN.saturating_add(tag << TAG | number)
}

fn one((source, list): SourceRoute) -> NonZeroU32 {
    pack(source as u32, list)
}

impl<A: Address> Default for Entries<A> {
    fn default() -> Self {
        Entries { map: PrefixMap::new(), many: Vec::new(), free: Vec::new() }
    }
}

impl<A: Address> Entries<A> {
    /// The longest prefix of at most `longest` bits that contains an address.
    pub(super) fn covering(&self, addr: A, longest: u8) -> Option<Prefix<A>> {
        self.map.covering(addr, longest).map(|(prefix, _)| prefix)
    }

    /// Continues a walk over all prefixes, as [`PrefixMap::sweep`] does.
    pub(super) fn sweep_all(&self, at: &mut Sweep, mut each: impl FnMut(Prefix<A>)) -> bool {
        self.map.sweep(at, |(prefix, _)| each(prefix))
    }

    /// All prefixes, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Prefix<A>> {
        self.map.iter().map(|(prefix, _)| prefix)
    }

    fn get(&self, prefix: Prefix<A>) -> Option<Entry> {
        self.map.get(prefix).map(unpack)
    }

    /// The entry that wins for a prefix.
    pub(super) fn best(&self, prefix: Prefix<A>) -> Option<SourceRoute> {
        match self.get(prefix)? {
            Entry::One(route) => Some(route),
            Entry::Many(at) => self.many[at as usize].first().copied(),
        }
    }

    /// All entries of a prefix, best first.
    pub(super) fn all(&self, prefix: Prefix<A>) -> Vec<SourceRoute> {
        match self.get(prefix) {
            None => Vec::new(),
            Some(Entry::One(route)) => vec![route],
            Some(Entry::Many(at)) => self.many[at as usize].clone(),
        }
    }

    /// The path list of one source of a prefix.
    pub(super) fn find(&self, prefix: Prefix<A>, source: Source) -> Option<ListId> {
        let find = |all: &[SourceRoute]| all.iter().find(|e| e.0 == source).map(|e| e.1);
        match self.get(prefix)? {
            Entry::One(route) => find(&[route]),
            Entry::Many(at) => find(&self.many[at as usize]),
        }
    }

    /// Sets the path list of a source for a prefix; returns its previous one.
    ///
    /// # Errors
    /// If memory is exhausted; nothing has changed then. Replacing never fails.
    pub(super) fn set(
        &mut self,
        prefix: Prefix<A>,
        source: Source,
        list: ListId,
    ) -> Result<Option<ListId>, TryReserveError> {
        let mut all = match self.get(prefix) {
            None => return self.map.insert(prefix, one((source, list))).map(|_| None),
            Some(Entry::One(old)) if old.0 == source => {
                return self.map.insert(prefix, one((source, list))).map(|_| Some(old.1));
            }
            Some(Entry::One(old)) => vec![old],
            Some(Entry::Many(at)) => std::mem::take(&mut self.many[at as usize]),
        };
        let old = all.iter().position(|e| e.0 == source).map(|at| all.swap_remove(at).1);
        all.push((source, list));
        all.sort_unstable();
        self.put(prefix, all)?;
        Ok(old)
    }

    /// Removes a source's entry of a prefix; returns its path list.
    pub(super) fn unset(&mut self, prefix: Prefix<A>, source: Source) -> Option<ListId> {
        let old = self.find(prefix, source)?;
        match self.get(prefix)? {
            Entry::One(_) => _ = self.map.remove(prefix),
            Entry::Many(at) => {
                let mut all = std::mem::take(&mut self.many[at as usize]);
                all.retain(|e| e.0 != source);
                // The prefix exists, so this needs no memory.
                let _ = self.put(prefix, all);
            }
        }
        Some(old)
    }

    /// Stores all entries of an existing prefix, at least one.
    fn put(&mut self, prefix: Prefix<A>, all: Vec<SourceRoute>) -> Result<(), TryReserveError> {
        match (self.get(prefix), &all[..]) {
            (Some(Entry::Many(at)), [route]) => {
                self.free.push(at);
                self.map.insert(prefix, one(*route))?;
            }
            (Some(Entry::Many(at)), _) => self.many[at as usize] = all,
            _ => {
                let at = self.free.pop().unwrap_or(self.many.len() as u32);
                if at as usize == self.many.len() {
                    self.many.push(Vec::new());
                }
                self.many[at as usize] = all;
                self.map.insert(prefix, pack(MANY, at))?;
            }
        }
        Ok(())
    }

    /// Continues a walk over all prefixes, and adds those with a source that uses one of these
    /// lists to `hit`. Returns the number of prefixes visited, a few hundred at most; `None` at the
    /// end.
    pub(super) fn sweep(
        &self,
        at: &mut Sweep,
        lists: &BTreeSet<ListId>,
        hit: &mut Vec<(Prefix<A>, Source)>,
    ) -> Option<usize> {
        let mut seen = 0;
        let more = self.map.sweep(at, |(prefix, entry)| {
            seen += 1;
            let mut add = |route: &SourceRoute| {
                if lists.contains(&route.1) {
                    hit.push((prefix, route.0));
                }
            };
            match unpack(entry) {
                Entry::One(route) => add(&route),
                Entry::Many(at) => self.many[at as usize].iter().for_each(add),
            }
        });
        more.then_some(seen)
    }

    /// Continues a walk over the prefixes of a source, a few hundred at most; returns false at the
    /// end. A prefix may be visited twice.
    pub(super) fn sweep_of(
        &self,
        at: &mut Sweep,
        source: Source,
        mut each: impl FnMut(Prefix<A>, ListId),
    ) -> bool {
        self.map.sweep(at, |(prefix, entry)| match unpack(entry) {
            Entry::One(route) if route.0 == source => each(prefix, route.1),
            Entry::One(_) => {}
            Entry::Many(at) => {
                let all = self.many[at as usize].iter().filter(|route| route.0 == source);
                all.for_each(|route| each(prefix, route.1));
            }
        })
    }

    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    /// Heap memory in bytes.
    pub(super) fn memory(&self) -> usize {
        let lists: usize = self.many.iter().map(|l| l.capacity() * size_of::<SourceRoute>()).sum();
        self.map.memory() + self.many.capacity() * size_of::<Vec<SourceRoute>>() + lists
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn like_a_map_of_maps<A: Address>(
        ops: &[(bool, u32, usize, u32)],
        host: impl Fn(u32) -> Prefix<A>,
    ) -> Result<(), TestCaseError> {
        let mut entries = Entries::<A>::default();
        let mut model: BTreeMap<Prefix<A>, BTreeMap<Source, ListId>> = BTreeMap::new();
        for &(set, n, source, list) in ops {
            let (prefix, source) = (host(n), Source::ALL[source]);
            let routes = model.entry(prefix).or_default();
            let old = if set {
                prop_assert_eq!(entries.set(prefix, source, list), Ok(routes.insert(source, list)));
                continue;
            } else {
                routes.remove(&source)
            };
            prop_assert_eq!(entries.unset(prefix, source), old);
            if routes.is_empty() {
                model.remove(&prefix);
            }
            prop_assert_eq!(entries.len(), model.len());
            for n in 0..4 {
                let prefix = host(n);
                let all: Vec<SourceRoute> = model
                    .get(&prefix)
                    .map_or_else(Vec::new, |routes| routes.iter().map(|(s, l)| (*s, *l)).collect());
                prop_assert_eq!(entries.best(prefix), all.first().copied());
                for source in Source::ALL {
                    let list = all.iter().find(|e| e.0 == source).map(|e| e.1);
                    prop_assert_eq!(entries.find(prefix, source), list);
                }
                prop_assert_eq!(entries.all(prefix), all);
            }
            let twos = model
                .iter()
                .flat_map(|(p, routes)| routes.iter().filter(|e| *e.1 == 2).map(|(s, _)| (*p, *s)));
            let (mut at, mut hit, mut seen) = (Sweep::default(), Vec::new(), 0);
            while let Some(n) = entries.sweep(&mut at, &BTreeSet::from([2]), &mut hit) {
                seen += n;
            }
            hit.sort_unstable();
            prop_assert!(hit.into_iter().eq(twos));
            prop_assert_eq!(seen, model.len());
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn behave_like_a_map_of_maps(
            ops in prop::collection::vec((any::<bool>(), 0u32..4, 0usize..4, 0u32..5), 1..200),
        ) {
            like_a_map_of_maps(&ops, Prefix::<u32>::host)?;
            like_a_map_of_maps(&ops, |n| Prefix::<u128>::host(u128::from(n) << 96))?;
        }
    }

    #[test]
    fn tags_and_numbers_stay_apart() {
        for source in Source::ALL {
            let Entry::One(route) = unpack(one((source, 123_456))) else { panic!("{source:?}") };
            assert_eq!(route, (source, 123_456));
        }
        assert!(matches!(unpack(pack(MANY, 0)), Entry::Many(0)));
        assert_eq!(size_of::<Option<NonZeroU32>>(), 4);
    }
}
