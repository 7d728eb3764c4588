//! A bounded pool of `u32` indices, each reused only after a grace period.
//!
//! Workers carry indices (of an adjacency, of a group of routes) along with their packets. An index
//! that is freed may still be in a worker's hands until its next quiescent point.

use std::collections::VecDeque;

use crate::qsbr::{Domain, Tag};

/// Errors of an [`IndexPool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// Every index is allocated or waits for its grace period.
    #[error("all {limit} indices are in use")]
    Full {
        /// The size of the pool.
        limit: u32,
    },
    /// The index was not allocated, or was freed before.
    #[error("index {index} is not allocated")]
    NotAllocated {
        /// The index in question.
        index: u32,
    },
}

/// Allocates the indices `0..limit`, low ones first. Owned by the control thread.
#[derive(Debug)]
pub struct IndexPool {
    limit: u32,
    /// Indices from here on were never allocated.
    fresh: u32,
    free: Vec<u32>,
    waiting: VecDeque<(Tag, u32)>,
    /// One bit per index below `fresh`: whether it is allocated.
    allocated: Vec<u64>,
}

impl IndexPool {
    /// Creates a pool of the indices `0..limit`.
    pub fn new(limit: u32) -> Self {
        let (free, waiting, allocated) = (Vec::new(), VecDeque::new(), Vec::new());
        Self { limit, fresh: 0, free, waiting, allocated }
    }

    /// Allocates an index that no reader can know from a previous use.
    ///
    /// # Errors
    ///
    /// [`IndexError::Full`] if there is none. Trying again after the workers' next loop may succeed
    /// if [`IndexPool::waiting`] is not zero.
    pub fn alloc(&mut self, domain: &Domain) -> Result<u32, IndexError> {
        if self.free.is_empty() {
            self.reclaim(domain);
        }
        self.alloc_ready()
    }

    /// Like [`IndexPool::alloc`], with what the last [`IndexPool::reclaim`] found.
    ///
    /// # Errors
    ///
    /// [`IndexError::Full`] if there is none.
    pub fn alloc_ready(&mut self) -> Result<u32, IndexError> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.fresh < self.limit => {
                self.fresh += 1;
                self.allocated.resize(self.fresh.div_ceil(64) as usize, 0);
                self.fresh - 1
            }
            None => return Err(IndexError::Full { limit: self.limit }),
        };
        self.allocated[index as usize / 64] |= 1 << (index % 64);
        Ok(index)
    }

    /// Frees `index`; it is reused once the domain has passed `tag`, which must have been taken
    /// after the last reference to the index was unlinked.
    ///
    /// # Errors
    ///
    /// [`IndexError::NotAllocated`], and nothing is changed.
    pub fn free_after(&mut self, index: u32, tag: Tag) -> Result<(), IndexError> {
        self.clear(index)?;
        self.waiting.push_back((tag, index));
        Ok(())
    }

    /// Frees an index that was never published to readers.
    ///
    /// # Errors
    ///
    /// [`IndexError::NotAllocated`], and nothing is changed.
    pub fn free_unused(&mut self, index: u32) -> Result<(), IndexError> {
        self.clear(index)?;
        self.free.push(index);
        Ok(())
    }

    /// Makes the indices whose grace period is over available; returns their number.
    pub fn reclaim(&mut self, domain: &Domain) -> usize {
        let before = self.free.len();
        while let Some(&(tag, index)) = self.waiting.front()
            && domain.passed(tag)
        {
            self.waiting.pop_front();
            self.free.push(index);
        }
        self.free.len() - before
    }

    /// Returns true if `index` is allocated.
    pub fn contains(&self, index: u32) -> bool {
        let word = self.allocated.get(index as usize / 64);
        word.is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Returns the number of allocated indices.
    pub fn len(&self) -> usize {
        self.fresh as usize - self.free.len() - self.waiting.len()
    }

    /// Returns true if no index is allocated.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of freed indices that wait for their grace period.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the size of the pool.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Returns one more than the highest index ever allocated.
    pub fn high_water(&self) -> u32 {
        self.fresh
    }

    fn clear(&mut self, index: u32) -> Result<(), IndexError> {
        if !self.contains(index) {
            return Err(IndexError::NotAllocated { index });
        }
        self.allocated[index as usize / 64] &= !(1 << (index % 64));
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn an_index_comes_back_after_the_grace_period() {
        let domain = Domain::new();
        let mut reader = domain.register().unwrap();
        let mut pool = IndexPool::new(2);
        assert_eq!((pool.alloc(&domain), pool.alloc(&domain)), (Ok(0), Ok(1)));
        assert_eq!(pool.alloc(&domain), Err(IndexError::Full { limit: 2 }));
        reader.enter();
        pool.free_after(0, domain.tag()).unwrap();
        assert_eq!((pool.len(), pool.waiting(), pool.contains(0)), (1, 1, false));
        assert!(pool.alloc(&domain).is_err(), "the reader may hold it");
        reader.enter();
        assert_eq!((pool.alloc(&domain), pool.waiting()), (Ok(0), 0));
        pool.free_unused(1).unwrap();
        assert_eq!((pool.alloc_ready(), pool.high_water(), pool.limit()), (Ok(1), 2, 2));
    }

    #[test]
    fn refuses_to_free_twice() {
        let domain = Domain::new();
        let mut pool = IndexPool::new(100);
        let index = pool.alloc(&domain).unwrap();
        pool.free_after(index, domain.tag()).unwrap();
        let twice = pool.free_after(index, domain.tag()).unwrap_err();
        assert_eq!(twice.to_string(), "index 0 is not allocated");
        assert_eq!(pool.free_unused(64), Err(IndexError::NotAllocated { index: 64 }));
        assert!(pool.is_empty());
    }

    proptest! {
        #[test]
        fn behaves_like_a_set(ops in prop::collection::vec((0u8..4, 0u32..40), 1..200)) {
            let domain = Domain::new();
            let mut reader = domain.register().unwrap();
            let mut pool = IndexPool::new(20);
            let (mut live, mut held) = (HashSet::new(), HashSet::new());
            for (op, index) in ops {
                match op {
                    0 => match pool.alloc(&domain) {
                        Ok(got) => {
                            prop_assert!(got < 20 && !held.contains(&got) && live.insert(got));
                        }
                        Err(_) => prop_assert_eq!(live.len() + held.len(), 20),
                    },
                    1 => {
                        let freed = pool.free_after(index, domain.tag()).is_ok();
                        prop_assert_eq!(freed, live.remove(&index));
                        if freed && reader.is_online() {
                            held.insert(index);
                        }
                    }
                    2 => {
                        reader.enter();
                        held.clear();
                    }
                    _ => {
                        reader.offline();
                        held.clear();
                    }
                }
                prop_assert_eq!(pool.len(), live.len());
                prop_assert!((0..40).all(|i| pool.contains(i) == live.contains(&i)));
            }
        }
    }
}
