//! Twins that are not followed, as the system has refused their namespace a mirror: a thread or a
//! socket. One attempt is made for all twins of a namespace, ever more rarely; once it succeeds,
//! they are attached in slices.

use super::{Sync, attach, pair, reports};
use crate::pairs::Pair;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::{Duration, Instant};
use thalweg_device::SwIfIndex;
use thalweg_device_linux::mirror::Mirror;
use thalweg_device_linux::{Backoff, Namespace, NamespaceId};
use thalweg_graph::Control;

/// Most time on the main thread per slice.
const SLICE: Duration = Duration::from_millis(1);

/// Interfaces whose twins are there, and not followed.
#[derive(Debug, Default)]
pub(super) struct Unattached {
    /// Namespaces of the twins.
    twins: BTreeMap<SwIfIndex, NamespaceId>,
    /// Namespaces without a mirror, with the next attempt to start one.
    refused: BTreeMap<NamespaceId, Backoff>,
}

impl Unattached {
    /// Returns whether a mirror may be started for a namespace now.
    fn is_due(&self, id: NamespaceId) -> bool {
        self.refused.get(&id).is_none_or(Backoff::is_due)
    }

    /// Adds a twin whose namespace has no mirror.
    fn add(&mut self, phy: SwIfIndex, id: NamespaceId) {
        self.twins.insert(phy, id);
    }

    /// Takes note that the system has refused a mirror; returns true for the first time.
    fn fail(&mut self, id: NamespaceId) -> bool {
        self.refused.entry(id).or_default().fail()
    }

    /// Removes a twin that is followed, or gone.
    pub(super) fn remove(&mut self, phy: SwIfIndex) {
        let Some(id) = self.twins.remove(&phy) else { return };
        if !self.twins.values().any(|of| *of == id) {
            self.refused.remove(&id);
        }
    }

    /// Returns the next one that may be attached, behind another one.
    fn next(&self, behind: Option<SwIfIndex>) -> Option<SwIfIndex> {
        let behind = behind.map_or(Bound::Unbounded, Bound::Excluded);
        let mut all = self.twins.range((behind, Bound::Unbounded));
        all.find(|(_, id)| self.is_due(**id)).map(|(phy, _)| *phy)
    }
}

/// Returns whether a namespace has a mirror, or gets one now. A twin without one is kept in mind.
pub(super) fn is_mirrored(
    c: &Control,
    pair: &Pair,
    id: NamespaceId,
    namespace: Option<&Namespace>,
) -> bool {
    let sync = c.state::<Sync>();
    {
        let mut sync = sync.borrow_mut();
        let Sync { mirrors, unattached, .. } = &mut *sync;
        if mirrors.contains_key(&id) {
            return true;
        }
        if !unattached.is_due(id) {
            unattached.add(pair.phy, id);
            return false;
        }
    }
    let remote = c.remote();
    let announce = move || remote.submit(move |c| reports::take(c, id));
    let name = namespace.map_or_else(String::new, |n| n.name().to_owned());
    match Mirror::start(namespace, announce) {
        Ok(mirror) => {
            let mut sync = sync.borrow_mut();
            sync.mirrors.insert(id, (name, mirror));
            sync.unattached.refused.remove(&id);
            true
        }
        Err(e) => {
            let mut sync = sync.borrow_mut();
            sync.unattached.add(pair.phy, id);
            if sync.unattached.fail(id) {
                tracing::error!("twins in namespace `{name}' are not followed for now: {e}");
            }
            false
        }
    }
}

/// Tries again to follow twins, those behind one of them, for about a millisecond; goes on later.
pub(super) fn try_again(c: &mut Control, behind: Option<SwIfIndex>) {
    let (begin, mut behind) = (Instant::now(), behind);
    loop {
        let next = c.state::<Sync>().borrow().unattached.next(behind);
        let Some(phy) = next else { return };
        match pair(c, phy) {
            Some(pair) => attach(c, &pair),
            None => c.state::<Sync>().borrow_mut().unattached.remove(phy),
        }
        behind = Some(phy);
        if begin.elapsed() >= SLICE {
            c.after(Duration::ZERO, move |c| try_again(c, behind));
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attempts of ten thousand twins in one namespace, and of one in another, in some time.
    #[test]
    fn one_twin_of_a_namespace_tries_for_all() {
        let (here, there) = (NamespaceId::default(), NamespaceId::own());
        let mut all = Unattached::default();
        for n in 0..10_000 {
            all.add(SwIfIndex(n), here);
        }
        all.add(SwIfIndex(20_000), there);
        let mut tried = BTreeMap::from([(here, 0), (there, 0)]);
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(500) {
            let mut behind = None;
            while let Some(phy) = all.next(behind) {
                let id = all.twins[&phy];
                let is_first = tried[&id] == 0;
                assert_eq!(all.fail(id), is_first);
                tried.entry(id).and_modify(|n| *n += 1);
                behind = Some(phy);
            }
            std::thread::yield_now();
        }
        // At 0, 100 and 300 ms, or later on a busy machine.
        assert!(tried.values().all(|n| (1..=4).contains(n)), "{tried:?}");
        for n in 0..10_000 {
            all.remove(SwIfIndex(n));
        }
        assert!(all.is_due(here) && !all.refused.contains_key(&here));
        assert!(all.refused.contains_key(&there));
    }
}
