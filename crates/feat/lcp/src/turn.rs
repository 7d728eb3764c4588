//! Things that were refused and are tried again, some at a time and each in its turn: very many may
//! have the same reason, and one that is never taken keeps none of the others waiting.

use std::collections::BTreeSet;
use std::ops::Bound;

/// Things that are tried again.
#[derive(Debug)]
pub(crate) struct InTurn<K> {
    all: BTreeSet<K>,
    /// The last one that was tried.
    last: Option<K>,
}

/// Things that are tried at once.
pub(crate) const AT_ONCE: usize = 64;

impl<K> Default for InTurn<K> {
    fn default() -> Self {
        InTurn { all: BTreeSet::new(), last: None }
    }
}

impl<K: Copy + Ord> InTurn<K> {
    /// All of them.
    pub(crate) fn all(&self) -> &BTreeSet<K> {
        &self.all
    }

    /// Adds one; returns whether it is new.
    pub(crate) fn insert(&mut self, one: K) -> bool {
        self.all.insert(one)
    }

    /// Removes one that was taken, or is gone.
    pub(crate) fn remove(&mut self, one: &K) {
        self.all.remove(one);
    }

    /// Returns up to [`AT_ONCE`] whose turn it is.
    pub(crate) fn some(&mut self) -> Vec<K> {
        let behind = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let mut some: Vec<K> =
            self.all.range((behind, Bound::Unbounded)).take(AT_ONCE).copied().collect();
        if let Some(last) = self.last {
            some.extend(self.all.range(..=last).take(AT_ONCE - some.len()).copied());
        }
        self.last = some.last().copied();
        some
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_have_their_turn() {
        let mut turn = InTurn::default();
        assert_eq!(turn.some(), Vec::<u32>::new());
        (0..150).for_each(|n| assert!(turn.insert(n) && !turn.insert(n)));
        let rounds: Vec<_> = (0..3).map(|_| turn.some()).collect();
        assert!(rounds.iter().all(|round| round.len() == AT_ONCE));
        assert_eq!(rounds.concat().into_iter().collect::<BTreeSet<_>>(), *turn.all());
        (0..149).for_each(|n| turn.remove(&n));
        assert_eq!((turn.some(), turn.some()), (vec![149], vec![149]));
    }
}
