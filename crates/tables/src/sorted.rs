//! Incremental sorting, for a thread that has other work, too.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::vec;

/// Number of items that are sorted at a time: some tenths of a millisecond.
const RUN: usize = 4096;

/// Takes items in any order and returns them in order. No call takes longer than it takes to sort
/// some thousand items, however many there are.
///
/// ```
/// let mut sorter = thalweg_tables::Sorter::new();
/// [3, 1, 2, 3].into_iter().for_each(|n| sorter.push(n));
/// let sorted: Vec<i32> = sorter.sorted().collect();
/// assert_eq!(sorted, [1, 2, 3, 3]);
/// ```
#[derive(Debug)]
pub struct Sorter<T> {
    runs: Vec<Vec<T>>,
    last: Vec<T>,
}

impl<T: Ord> Default for Sorter<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Ord> Sorter<T> {
    /// Creates an empty sorter.
    pub fn new() -> Self {
        Self { runs: Vec::new(), last: Vec::new() }
    }

    /// Adds an item.
    pub fn push(&mut self, item: T) {
        self.last.push(item);
        if self.last.len() == RUN {
            self.end_run();
        }
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.runs.len() * RUN + self.last.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn end_run(&mut self) {
        self.last.sort_unstable();
        self.runs.push(std::mem::take(&mut self.last));
    }

    /// Returns the items in order.
    pub fn sorted(mut self) -> Sorted<T> {
        self.end_run();
        let mut runs: Vec<_> = self.runs.into_iter().map(Vec::into_iter).collect();
        let first = |(at, run): (usize, &mut vec::IntoIter<T>)| Some(Reverse((run.next()?, at)));
        let next = runs.iter_mut().enumerate().filter_map(first).collect();
        Sorted { runs, next }
    }
}

/// Items in order, from a [`Sorter`].
#[derive(Debug)]
pub struct Sorted<T> {
    runs: Vec<vec::IntoIter<T>>,
    /// The next item of each run, with the run's number.
    next: BinaryHeap<Reverse<(T, usize)>>,
}

impl<T: Ord> Iterator for Sorted<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let Reverse((item, at)) = self.next.pop()?;
        if let Some(item) = self.runs[at].next() {
            self.next.push(Reverse((item, at)));
        }
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.next.len() + self.runs.iter().map(ExactSizeIterator::len).sum::<usize>();
        (left, Some(left))
    }
}

impl<T: Ord> ExactSizeIterator for Sorted<T> {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_sorts(seed: u64, n in prop_oneof![0..10_usize, 0..3 * RUN]) {
            let item = |i: usize| (seed ^ i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50;
            let mut sorter = Sorter::new();
            (0..n).for_each(|i| sorter.push(item(i)));
            prop_assert_eq!((sorter.len(), sorter.is_empty()), (n, n == 0));
            let mut model: Vec<u64> = (0..n).map(item).collect();
            model.sort_unstable();
            let sorted = sorter.sorted();
            prop_assert_eq!(sorted.len(), n);
            prop_assert!(sorted.eq(model));
        }
    }
}
