//! Prefixes with their sources and path lists: eight bytes per slot for the vast majority of
//! prefixes, which have one source.

use crate::route::{ListId, Source};
use std::collections::{BTreeSet, TryReserveError};
use std::num::NonZeroU32;
use thalweg_tables::{Ipv4Prefix, PrefixMap, Sweep};

/// Source route entry: (source, path list) of a prefix.
type SourceRoute = (Source, ListId);

/// Bit position of the tag, which says how to read the bits below; these count from 1.
const TAG: u32 = 29;
/// Tag of a prefix with several sources: the lower bits index their list.
const MANY: u32 = 7;
const SOURCES: [Source; 4] =
    [Source::Interface, Source::Static, Source::Adjacency, Source::Default];

/// Prefixes and their sources.
#[derive(Default)]
pub(crate) struct Entries {
    map: PrefixMap,
    many: Vec<Vec<SourceRoute>>,
    free: Vec<u32>,
}

enum Entry {
    One(SourceRoute),
    Many(u32),
}

fn unpack(entry: NonZeroU32) -> Entry {
    let (tag, number) = (entry.get() >> TAG, (entry.get() & ((1 << TAG) - 1)) - 1);
    match SOURCES.get(tag as usize) {
        Some(source) => Entry::One((*source, number)),
        None => Entry::Many(number),
    }
}

fn pack(tag: u32, number: u32) -> NonZeroU32 {
    // This many path lists would fill some 50 GiB: their numbers never reach the tag.
    NonZeroU32::MIN.saturating_add(tag << TAG | number)
}

fn one((source, list): SourceRoute) -> NonZeroU32 {
    pack(source as u32, list)
}

impl Entries {
    fn get(&self, prefix: Ipv4Prefix) -> Option<Entry> {
        self.map.get(prefix).map(unpack)
    }

    /// The entry that wins for a prefix.
    pub(crate) fn best(&self, prefix: Ipv4Prefix) -> Option<SourceRoute> {
        match self.get(prefix)? {
            Entry::One(route) => Some(route),
            Entry::Many(at) => self.many[at as usize].first().copied(),
        }
    }

    /// All entries of a prefix, best first.
    pub(crate) fn all(&self, prefix: Ipv4Prefix) -> Vec<SourceRoute> {
        match self.get(prefix) {
            None => Vec::new(),
            Some(Entry::One(route)) => vec![route],
            Some(Entry::Many(at)) => self.many[at as usize].clone(),
        }
    }

    /// The path list of one source of a prefix.
    pub(crate) fn find(&self, prefix: Ipv4Prefix, source: Source) -> Option<ListId> {
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
    pub(crate) fn set(
        &mut self,
        prefix: Ipv4Prefix,
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
    pub(crate) fn unset(&mut self, prefix: Ipv4Prefix, source: Source) -> Option<ListId> {
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
    fn put(&mut self, prefix: Ipv4Prefix, all: Vec<SourceRoute>) -> Result<(), TryReserveError> {
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
    pub(crate) fn sweep(
        &self,
        at: &mut Sweep,
        lists: &BTreeSet<ListId>,
        hit: &mut Vec<(Ipv4Prefix, Source)>,
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
    pub(crate) fn sweep_of(
        &self,
        at: &mut Sweep,
        source: Source,
        mut each: impl FnMut(Ipv4Prefix, ListId),
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

    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    /// Heap memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        let lists: usize = self.many.iter().map(|l| l.capacity() * size_of::<SourceRoute>()).sum();
        self.map.memory() + self.many.capacity() * size_of::<Vec<SourceRoute>>() + lists
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn behave_like_a_map_of_maps(
            ops in prop::collection::vec((any::<bool>(), 0u32..4, 0usize..4, 0u32..5), 1..200),
        ) {
            let mut entries = Entries::default();
            let mut model: BTreeMap<Ipv4Prefix, BTreeMap<Source, ListId>> = BTreeMap::new();
            for (set, n, source, list) in ops {
                let (prefix, source) = (Ipv4Prefix::host(n), SOURCES[source]);
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
                    let prefix = Ipv4Prefix::host(n);
                    let all: Vec<SourceRoute> = model.get(&prefix).map_or_else(Vec::new, |routes| {
                        routes.iter().map(|(s, l)| (*s, *l)).collect()
                    });
                    prop_assert_eq!(entries.best(prefix), all.first().copied());
                    for source in SOURCES {
                        let list = all.iter().find(|e| e.0 == source).map(|e| e.1);
                        prop_assert_eq!(entries.find(prefix, source), list);
                    }
                    prop_assert_eq!(entries.all(prefix), all);
                }
                let twos = model.iter().flat_map(|(p, routes)| {
                    routes.iter().filter(|e| *e.1 == 2).map(|(s, _)| (*p, *s))
                });
                let (mut at, mut hit, mut seen) = (Sweep::default(), Vec::new(), 0);
                while let Some(n) = entries.sweep(&mut at, &BTreeSet::from([2]), &mut hit) {
                    seen += n;
                }
                hit.sort_unstable();
                prop_assert!(hit.into_iter().eq(twos));
                prop_assert_eq!(seen, model.len());
            }
        }
    }

    #[test]
    fn tags_and_numbers_stay_apart() {
        for source in SOURCES {
            let Entry::One(route) = unpack(one((source, 123_456))) else { panic!("{source:?}") };
            assert_eq!(route, (source, 123_456));
        }
        assert!(matches!(unpack(pack(MANY, 0)), Entry::Many(0)));
        assert_eq!(size_of::<Option<NonZeroU32>>(), 4);
    }
}
