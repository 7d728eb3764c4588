//! Runs of buckets: each reused only after a grace period, as workers may be choosing from it.

use std::collections::VecDeque;
use thalweg_tables::{Domain, Tag};

/// Largest size of a run, as a power of two.
const LARGEST: usize = 6;

/// Runs of one size.
#[derive(Debug, Default)]
struct Class {
    free: Vec<u32>,
    waiting: VecDeque<(Tag, u32)>,
}

/// Allocates runs of 2, 4 … 64 buckets. Owned by the main thread.
#[derive(Debug)]
pub(crate) struct Runs {
    classes: [Class; LARGEST + 1],
    /// Buckets from here on were never allocated.
    fresh: u32,
    limit: u32,
}

impl Runs {
    /// Creates runs out of `limit` buckets.
    pub(crate) fn new(limit: u32) -> Runs {
        Runs { classes: Default::default(), fresh: 0, limit }
    }

    /// Allocates a run of 2^`log2` buckets that no worker can know from a previous use; `None` if
    /// there is no room, or the size is none.
    pub(crate) fn alloc(&mut self, log2: u8, domain: &Domain) -> Option<u32> {
        let class = self.classes.get_mut(usize::from(log2))?;
        while let Some(&(tag, base)) = class.waiting.front()
            && domain.passed(tag)
        {
            class.waiting.pop_front();
            class.free.push(base);
        }
        if let Some(base) = class.free.pop() {
            return Some(base);
        }
        let (base, size) = (self.fresh, 1u32 << log2);
        self.fresh = base.checked_add(size).filter(|end| *end <= self.limit)?;
        Some(base)
    }

    /// Frees a run that no entry names any more since `tag`.
    pub(crate) fn free(&mut self, log2: u8, base: u32, tag: Tag) {
        if let Some(class) = self.classes.get_mut(usize::from(log2)) {
            class.waiting.push_back((tag, base));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// No bucket is in two runs, nor in one that a worker may still see.
        #[test]
        fn a_run_comes_back_after_its_grace_period(
            ops in prop::collection::vec((0u8..4, 0u8..8, any::<prop::sample::Index>()), 1..300),
        ) {
            const LIMIT: u32 = 200;
            let domain = Domain::new();
            let mut worker = domain.register().unwrap();
            worker.enter();
            let mut runs = Runs::new(LIMIT);
            let (mut live, mut seen) = (BTreeMap::new(), BTreeMap::new());
            for (op, log2, which) in ops {
                match op {
                    0 | 1 => {
                        if let Some(base) = runs.alloc(log2, &domain) {
                            let end = base + (1 << log2);
                            prop_assert!(log2 <= 6 && end <= LIMIT);
                            let apart = |(b, l): (&u32, &u8)| *b >= end || b + (1 << l) <= base;
                            prop_assert!(live.iter().all(apart) && seen.iter().all(apart));
                            live.insert(base, log2);
                        }
                    }
                    2 if !live.is_empty() => {
                        let base = *which.get(&live.keys().copied().collect::<Vec<_>>());
                        let log2 = live.remove(&base).unwrap();
                        runs.free(log2, base, domain.tag());
                        seen.insert(base, log2);
                    }
                    _ => {
                        worker.enter();
                        seen.clear();
                    }
                }
            }
            // All of them come back.
            live.into_iter().for_each(|(base, log2)| runs.free(log2, base, domain.tag()));
            let fresh = runs.fresh;
            worker.enter();
            for log2 in 0..=6 {
                let n = runs.classes[usize::from(log2)].waiting.len()
                    + runs.classes[usize::from(log2)].free.len();
                prop_assert!((0..n).all(|_| runs.alloc(log2, &domain).is_some()));
            }
            prop_assert_eq!(runs.fresh, fresh);
        }
    }
}
