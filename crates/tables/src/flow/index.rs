//! The index from keys to places: buckets of one cache line each.
//!
//! A bucket holds twelve places and one byte of each one's hash, compared at once. Further places
//! overflow to the next bucket, and each bucket counts those that overflowed past it, so that a
//! search ends at the first bucket that nothing went past, and removal leaves no tombstone.

use super::FlowHash;
use crate::paged::{AllZeroValid, MapError, PagedTable, Pages, Region};
use crate::prefetch;

/// Places per bucket.
const WAYS: usize = 12;
/// Places in use on average when the table is full: with 8 of 12, six buckets in a hundred
/// overflow.
const FILL: u64 = 8;
/// Maximum of places in use on average.
const MOST: u64 = 10;

/// A key's place: a flow, and which of its keys it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

impl Place {
    /// Limit of flow numbers.
    pub(super) const LIMIT: u32 = 1 << 31;

    pub(super) fn new(flow: u32, second: bool) -> Place {
        Place(flow << 1 | u32::from(second))
    }
    #[inline]
    pub(super) fn flow(self) -> u32 {
        self.0 >> 1
    }
    #[inline]
    pub(super) fn is_second(self) -> bool {
        self.0 & 1 == 1
    }
}

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Bucket {
    /// A byte of the hash of each place's key; 0: empty.
    tags: [u8; WAYS],
    /// Number of keys whose first bucket is this one or one before, and which are after this one.
    passed: u32,
    places: [u32; WAYS],
}

// SAFETY: integers, for which zero is a value.
unsafe impl AllZeroValid for Bucket {}

impl Bucket {
    /// Returns a bit for each place that has this tag.
    #[inline]
    fn matches(&self, tag: u8) -> u32 {
        self.equal_bytes(tag) & ((1 << WAYS) - 1)
    }

    /// Returns a bit for each of the first sixteen bytes, which begin with the tags, that equals
    /// `byte`.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline]
    fn equal_bytes(&self, byte: u8) -> u32 {
        use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_load_si128, _mm_movemask_epi8, _mm_set1_epi8};
        // SAFETY: every x86-64 has SSE2, and a bucket is 64 bytes aligned to 64.
        unsafe {
            let bytes = _mm_load_si128(std::ptr::from_ref(self).cast());
            _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8))) as u32
        }
    }

    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    #[inline]
    fn equal_bytes(&self, byte: u8) -> u32 {
        let tags = self.tags.iter().enumerate();
        tags.fold(0, |mask, (i, tag)| mask | u32::from(*tag == byte) << i)
    }
}

#[inline]
fn tag(hash: FlowHash) -> u8 {
    (hash.0 as u8).max(1)
}

/// The index of all keys.
#[derive(Debug)]
pub(super) struct Index {
    buckets: PagedTable<Bucket>,
}

impl Index {
    pub(super) fn region(&self) -> Region {
        self.buckets.region()
    }

    /// Creates an index for `keys` keys.
    pub(super) fn new(keys: u64) -> Result<Index, MapError> {
        let buckets = keys.div_ceil(FILL).max(2);
        Ok(Index { buckets: PagedTable::with_pages(buckets as usize, Pages::Huge)? })
    }

    /// Returns the number of keys that it can hold.
    pub(super) fn room(&self) -> u64 {
        self.buckets.capacity() as u64 * MOST
    }

    /// Returns the bytes of memory when all of it is in use.
    pub(super) fn bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<Bucket>()
    }

    #[inline]
    fn home(&self, hash: FlowHash) -> usize {
        // The upper half of the hash, as a fraction of the number of buckets.
        (((hash.0 >> 32) * self.buckets.capacity() as u64) >> 32) as usize
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.buckets.capacity() { 0 } else { at + 1 }
    }

    /// Prefetches what [`find`](Index::find) reads first.
    #[inline]
    pub(super) fn prefetch(&self, hash: FlowHash) {
        prefetch::for_read(&self.buckets.as_slice()[self.home(hash)]);
    }

    /// Returns a place that is probably the key's, if its first bucket has one.
    #[inline]
    pub(super) fn guess(&self, hash: FlowHash) -> Option<Place> {
        let bucket = &self.buckets.as_slice()[self.home(hash)];
        let found = bucket.matches(tag(hash));
        (found != 0).then(|| Place(bucket.places[found.trailing_zeros() as usize]))
    }

    /// Returns the place with this hash for which `is` returns true.
    #[inline]
    pub(super) fn find(&self, hash: FlowHash, mut is: impl FnMut(Place) -> bool) -> Option<Place> {
        let buckets = self.buckets.as_slice();
        let home = self.home(hash);
        let mut at = home;
        loop {
            let bucket = &buckets[at];
            let mut found = bucket.matches(tag(hash));
            while found != 0 {
                let place = Place(bucket.places[found.trailing_zeros() as usize]);
                if is(place) {
                    return Some(place);
                }
                found &= found - 1;
            }
            if bucket.passed == 0 {
                return None;
            }
            at = self.after(at);
            // In a small table, something may have overflowed past every bucket.
            if at == home {
                return None;
            }
        }
    }

    /// Adds a place. The index must not be full: see [`Index::new`].
    #[inline]
    pub(super) fn insert(&mut self, hash: FlowHash, place: Place) {
        let mut at = self.home(hash);
        loop {
            let next = self.after(at);
            let bucket = &mut self.buckets.as_mut_slice()[at];
            let free = bucket.matches(0);
            if free != 0 {
                let way = free.trailing_zeros() as usize;
                bucket.tags[way] = tag(hash);
                bucket.places[way] = place.0;
                return;
            }
            bucket.passed += 1;
            at = next;
        }
    }

    /// Removes a place that was added with this hash.
    pub(super) fn remove(&mut self, hash: FlowHash, place: Place) {
        let mut at = self.home(hash);
        loop {
            let next = self.after(at);
            let bucket = &mut self.buckets.as_mut_slice()[at];
            let mut found = bucket.matches(tag(hash));
            while found != 0 {
                let way = found.trailing_zeros() as usize;
                if bucket.places[way] == place.0 {
                    bucket.tags[way] = 0;
                    return;
                }
                found &= found - 1;
            }
            debug_assert!(bucket.passed > 0, "removed a key that was not there");
            bucket.passed = bucket.passed.saturating_sub(1);
            at = next;
        }
    }

    /// Returns true if it is empty and no bucket counts an overflow.
    #[cfg(test)]
    pub(super) fn is_blank(&self) -> bool {
        self.buckets.as_slice().iter().all(|b| b.tags == [0; WAYS] && b.passed == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_a_cache_line() {
        assert_eq!((size_of::<Bucket>(), align_of::<Bucket>()), (64, 64));
    }

    #[test]
    fn tags_are_compared_at_once() {
        let tags = [7, 0, 7, 1, 0, 0, 0, 0, 0, 7, 0, 255];
        let bucket = Bucket { tags, passed: 0x0707_0707, places: [0; WAYS] };
        assert_eq!(bucket.matches(7), 0b10_0000_0101);
        assert_eq!(bucket.matches(0), 0b101_1111_0010);
        assert_eq!(bucket.matches(255), 1 << 11);
        assert_eq!(bucket.matches(9), 0);
    }

    /// Keys of either bucket are in the other: a search that finds nothing ends nevertheless.
    #[test]
    fn a_search_ends_where_it_began() {
        let mut index = Index::new(16).unwrap();
        assert_eq!(index.buckets.capacity(), 2);
        let (low, high) = (FlowHash(1), FlowHash(u64::MAX << 32 | 1));
        (0..13).for_each(|n| index.insert(low, Place::new(n, false)));
        index.remove(low, Place::new(0, false));
        (13..25).for_each(|n| index.insert(high, Place::new(n, false)));
        assert!(index.buckets.as_slice().iter().all(|b| b.passed > 0));
        for hash in [low, high] {
            assert!(index.find(hash, |_| false).is_none());
            assert!(index.find(FlowHash(hash.0 + 1), |_| true).is_none());
        }
        (1..13).for_each(|n| index.remove(low, Place::new(n, false)));
        (13..25).for_each(|n| index.remove(high, Place::new(n, false)));
        assert!(index.is_blank());
    }

    /// All keys in one bucket: they overflow into the others, around the end too.
    #[test]
    fn keys_that_do_not_fit_overflow() {
        let mut index = Index::new(60).unwrap();
        let hash = |n: u32| FlowHash(u64::MAX << 32 | u64::from(n % 3));
        for n in 0..60 {
            index.insert(hash(n), Place::new(n, n % 2 == 0));
        }
        for n in 0..60 {
            let found = index.find(hash(n), |place| place.flow() == n).unwrap();
            assert_eq!((found.flow(), found.is_second()), (n, n % 2 == 0));
        }
        assert!(index.find(FlowHash(u64::MAX << 32 | 9), |_| true).is_none());
        for n in (0..60).rev().step_by(2).chain((0..60).step_by(2)) {
            index.remove(hash(n), Place::new(n, n % 2 == 0));
            assert!(index.find(hash(n), |place| place.flow() == n).is_none());
        }
        assert!(index.is_blank());
    }
}
