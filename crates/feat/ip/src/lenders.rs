//! Unnumbered interfaces, and those whose addresses they borrow.

use std::collections::{BTreeMap, BTreeSet};
use thalweg_device::SwIfIndex;

/// Found by borrower and by lender: a change of one interface takes as long with many borrowers of
/// others as with none.
#[derive(Debug, Default)]
pub(crate) struct Lenders {
    by_borrower: BTreeMap<SwIfIndex, SwIfIndex>,
    /// Lender and borrower.
    by_lender: BTreeSet<(SwIfIndex, SwIfIndex)>,
}

impl Lenders {
    /// Returns the lender of an interface, if it is unnumbered.
    pub(crate) fn get(&self, borrower: SwIfIndex) -> Option<SwIfIndex> {
        self.by_borrower.get(&borrower).copied()
    }

    /// Sets the lender of an interface, or that it has none; returns the old one.
    pub(crate) fn set(
        &mut self,
        borrower: SwIfIndex,
        lender: Option<SwIfIndex>,
    ) -> Option<SwIfIndex> {
        let old = match lender {
            Some(lender) => self.by_borrower.insert(borrower, lender),
            None => self.by_borrower.remove(&borrower),
        };
        old.map(|old| self.by_lender.remove(&(old, borrower)));
        self.by_lender.extend(lender.map(|lender| (lender, borrower)));
        old
    }

    /// Unnumbered interfaces, each with its lender, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SwIfIndex, SwIfIndex)> + '_ {
        self.by_borrower.iter().map(|(borrower, lender)| (*borrower, *lender))
    }

    /// Unnumbered interfaces, in order.
    pub(crate) fn borrowers(&self) -> impl Iterator<Item = &SwIfIndex> {
        self.by_borrower.keys()
    }

    /// Interfaces that borrow from an interface, in order.
    pub(crate) fn of(&self, lender: SwIfIndex) -> impl Iterator<Item = SwIfIndex> + '_ {
        let all = (lender, SwIfIndex(0))..=(lender, SwIfIndex(u32::MAX));
        self.by_lender.range(all).map(|(_, borrower)| *borrower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_agree() {
        let mut all = Lenders::default();
        let at = SwIfIndex;
        let steps = [(3, Some(1)), (4, Some(1)), (5, Some(2)), (3, Some(2)), (4, None), (9, None)];
        for (borrower, lender) in steps {
            all.set(at(borrower), lender.map(at));
            let pairs: Vec<_> = all.iter().collect();
            for lender in 0..6 {
                let of_it: Vec<_> = all.of(at(lender)).collect();
                let expected = pairs.iter().filter(|(_, by)| *by == at(lender)).map(|(i, _)| *i);
                assert_eq!(of_it, expected.collect::<Vec<_>>());
            }
        }
        assert_eq!(all.iter().collect::<Vec<_>>(), [(at(3), at(2)), (at(5), at(2))]);
        assert_eq!((all.get(at(3)), all.get(at(4))), (Some(at(2)), None));
    }
}
