//! Durations of loops: a histogram that its owner updates by plain stores and any thread reads.
//!
//! Buckets are log-linear, 16 per power of two, so that a value is known to within 1/16 whatever
//! its size.

use crate::stats::Counter;

/// Number of buckets per power of two.
const LINEAR: u64 = 16;
const LINEAR_BITS: u32 = LINEAR.ilog2();
/// Loops longer than 2^40 clocks (some minutes) count as that long.
const LONGEST: u64 = (1 << 40) - 1;
const BUCKETS: usize = bucket(LONGEST) + 1;

/// Returns the bucket of a number of clocks. Below 16 each has its own.
#[inline]
const fn bucket(clocks: u64) -> usize {
    if clocks < LINEAR {
        return clocks as usize;
    }
    let octave = clocks.ilog2() - LINEAR_BITS;
    // The leading bit and the four after it: 16 to 31.
    (octave as u64 * LINEAR + (clocks >> octave)) as usize
}

/// Returns the largest number of clocks that falls into a bucket.
const fn upper_bound(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < LINEAR {
        return bucket;
    }
    let octave = bucket / LINEAR - 1;
    ((bucket % LINEAR + LINEAR + 1) << octave) - 1
}

/// The histogram, written by one thread.
#[derive(Debug)]
#[repr(align(128))]
pub struct LoopTimes {
    buckets: [Counter; BUCKETS],
    longest: Counter,
}

impl Default for LoopTimes {
    fn default() -> Self {
        let buckets = std::array::from_fn(|_| Counter::default());
        LoopTimes { buckets, longest: Counter::default() }
    }
}

impl LoopTimes {
    /// Counts a loop. Only the owning thread may call it.
    #[inline]
    pub fn add(&self, clocks: u64) {
        self.buckets[bucket(clocks.min(LONGEST))].add(1);
        if clocks > self.longest.get() {
            self.longest.set(clocks);
        }
    }

    /// Clears the longest loop. Only the owning thread may call it.
    pub fn clear_longest(&self) {
        self.longest.set(0);
    }

    /// Returns a copy of the histogram.
    pub fn read(&self) -> LoopCounts {
        let buckets = self.buckets.iter().map(Counter::get).collect();
        LoopCounts { buckets, longest: self.longest.get() }
    }
}

/// A copy of a histogram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoopCounts {
    buckets: Vec<u64>,
    longest: u64,
}

impl LoopCounts {
    /// Returns the loops counted since `base` was read.
    #[must_use]
    pub fn since(&self, base: &LoopCounts) -> LoopCounts {
        let zeros = std::iter::repeat(&0);
        let pairs = self.buckets.iter().zip(base.buckets.iter().chain(zeros));
        let buckets: Vec<u64> = pairs.map(|(now, base)| now.wrapping_sub(*base)).collect();
        // The longest loop may be older than `base`: then only its bucket is known.
        let top = buckets.iter().rposition(|n| *n > 0);
        let longest = top.map_or(0, |top| match bucket(self.longest.min(LONGEST)) == top {
            true => self.longest,
            false => upper_bound(top),
        });
        LoopCounts { buckets, longest }
    }

    /// Adds another histogram's loops.
    pub fn add(&mut self, other: &LoopCounts) {
        self.buckets.resize(self.buckets.len().max(other.buckets.len()), 0);
        for (sum, n) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum += n;
        }
        self.longest = self.longest.max(other.longest);
    }

    /// Returns the number of loops.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the number of loops that took longer than `clocks`, to the edge of a bucket.
    pub fn longer_than(&self, clocks: u64) -> u64 {
        self.buckets.iter().skip(bucket(clocks.min(LONGEST)) + 1).sum()
    }

    /// Returns the number of clocks that the share `part` (0 to 1) of the loops did not exceed, too
    /// large by at most 1/16; 0 if there was no loop.
    pub fn quantile(&self, part: f64) -> u64 {
        let rank = ((self.count() as f64 * part).ceil() as u64).max(1);
        let mut seen = 0;
        let at = self.buckets.iter().position(|n| {
            seen += n;
            seen >= rank
        });
        at.map_or(0, |at| upper_bound(at).min(self.longest))
    }

    /// Returns the clocks of the longest loop.
    pub fn longest(&self) -> u64 {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_are_those_of_a_sorted_list(
            mut values in prop::collection::vec((0u32..41, any::<u64>()), 1..200),
            part in 0.0f64..=1.0,
        ) {
            let times = LoopTimes::default();
            // Values have all orders of magnitude.
            let mut sorted: Vec<u64> =
                values.drain(..).map(|(bits, v)| v & ((1u64 << bits) - 1)).collect();
            sorted.iter().for_each(|v| times.add(*v));
            sorted.sort_unstable();
            let counts = times.read();
            let rank = ((sorted.len() as f64 * part).ceil() as usize).max(1);
            let (exact, found) = (sorted[rank - 1], counts.quantile(part));
            prop_assert!(exact <= found && found <= exact + exact / 16, "{exact} {found}");
            prop_assert_eq!(counts.longest(), *sorted.last().unwrap());
            prop_assert_eq!(counts.count(), sorted.len() as u64);
            let longer = sorted.iter().filter(|v| **v > upper_bound(bucket(exact))).count() as u64;
            prop_assert_eq!(counts.longer_than(exact), longer);
        }
    }

    #[test]
    fn buckets_follow_each_other() {
        for at in 0..BUCKETS - 1 {
            assert_eq!((bucket(upper_bound(at)), bucket(upper_bound(at) + 1)), (at, at + 1));
        }
        assert_eq!(upper_bound(BUCKETS - 1), LONGEST);
        assert_eq!(LoopCounts::default().quantile(0.5), 0);
    }

    #[test]
    fn windows_are_apart() {
        let times = LoopTimes::default();
        times.add(1000);
        let base = times.read();
        times.add(10);
        times.add(500);
        let window = times.read().since(&base);
        assert_eq!((window.count(), window.quantile(0.5)), (2, 10));
        assert!((500..532).contains(&window.longest()), "{window:?}");
        times.add(2000);
        let mut both = times.read().since(&base);
        assert_eq!((both.count(), both.longest(), both.longer_than(501)), (3, 2000, 1));
        both.add(&base);
        assert_eq!(both.count(), 4);
        times.clear_longest();
        assert_eq!(times.read().longest(), 0);
    }
}
