//! Random numbers, for what outsiders must not foresee but no secret hangs on.

use crate::hash::{mix64, random_seed};

/// A small random generator (wyrand by Wang Yi).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator that no other one resembles, seeded by the operating system.
    #[must_use]
    pub fn from_system() -> Random {
        Random::with_seed(random_seed())
    }

    /// A generator that gives the same numbers each time.
    #[must_use]
    pub const fn with_seed(seed: u64) -> Random {
        // Mixing keeps neighbouring seeds apart.
        Random(mix64(seed.wrapping_add(0x9e37_79b9_7f4a_7c15)))
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0xa076_1d64_78bd_642f);
        let product = u128::from(self.0) * u128::from(self.0 ^ 0xe703_7ed1_a0b4_28db);
        (product >> 64) as u64 ^ product as u64
    }

    /// A number in `0..limit`; 0 if `limit` is 0. For limits of 33 bits its bias is below one in
    /// two thousand million.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }

    /// A number in `low..=high`.
    #[inline]
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        let span = u128::from(high - low) + 1;
        low + ((u128::from(self.bits()) * span) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_range_and_spread() {
        let mut random = Random::with_seed(1);
        let mut counts = [0u32; 16];
        for _ in 0..16_000 {
            counts[random.below(16) as usize] += 1;
        }
        assert!(counts.iter().all(|n| (800..1200).contains(n)), "{counts:?}");
        assert_eq!((random.below(0), random.below(1), random.between(7, 7)), (0, 0, 7));
        let mut ends = [false; 2];
        for _ in 0..100 {
            ends[random.between(u64::MAX - 1, u64::MAX) as usize & 1] = true;
        }
        assert_eq!(ends, [true; 2]);
        assert!(random.between(0, u64::MAX) != random.between(0, u64::MAX));
    }

    #[test]
    fn neighbouring_seeds_are_far_apart() {
        let first = |seed| Random::with_seed(seed).bits();
        assert!((0..100).all(|seed| (first(seed) ^ first(seed + 1)).count_ones() > 10));
        assert_eq!(first(5), first(5));
    }
}
