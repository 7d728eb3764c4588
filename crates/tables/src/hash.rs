//! Hashing of small integer keys.

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

/// Spreads every bit of `x` over the whole word. Different inputs stay different: the function is a
/// bijection. Mix a random seed into `x` where outsiders choose the keys.
#[inline]
pub const fn mix64(x: u64) -> u64 {
    // Stafford's variant 13 of the 64-bit finalizer.
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Hashes two words, with `seed` to make the result unpredictable to outsiders.
#[inline]
pub const fn mix128(seed: u64, low: u64, high: u64) -> u64 {
    mix64(mix64(low ^ seed).wrapping_add(high).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Hashes a word with one multiplication by an odd, random `seed`; mix another one into `x` where
/// outsiders choose the keys.
#[inline]
pub const fn fold(x: u64, seed: u64) -> u64 {
    let product = x as u128 * seed as u128;
    product as u64 ^ (product >> 64) as u64
}

/// Base of the next seed, if seeds are fixed.
static FIXED: AtomicU64 = AtomicU64::new(0);

/// Makes seeds the same in each run from now on: for measurements, whose instructions depend on
/// which keys meet. Tables whose keys outsiders choose must not use it.
pub fn fix_seeds() {
    FIXED.store(1, Ordering::Relaxed);
}

/// Returns a seed that differs between runs of the program, for tables whose keys come from
/// outside.
pub fn random_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    match FIXED.load(Ordering::Relaxed) {
        0 => RandomState::new().hash_one(0u64),
        _ => mix64(FIXED.fetch_add(1, Ordering::Relaxed)),
    }
}

/// A fast hash for configured keys, which an attacker cannot choose.
#[derive(Clone, Copy, Default, Debug)]
pub struct FastHash;

/// The hasher.
#[derive(Debug)]
pub struct FastHasher(u64);

impl BuildHasher for FastHash {
    type Hasher = FastHasher;
    #[inline]
    fn build_hasher(&self) -> FastHasher {
        FastHasher(0)
    }
}

impl Hasher for FastHasher {
    #[inline]
    fn finish(&self) -> u64 {
        mix64(self.0)
    }
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }
    #[inline]
    fn write_u8(&mut self, n: u8) {
        self.write_u64(u64::from(n));
    }
    #[inline]
    fn write_u16(&mut self, n: u16) {
        self.write_u64(u64::from(n));
    }
    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bit_of_input_flips_about_half_of_the_output() {
        for bit in 0..64 {
            let flipped: u32 = (0..256u64)
                .map(|n| mix64(n * 0x0101_0101) ^ mix64((n * 0x0101_0101) ^ (1 << bit)))
                .map(u64::count_ones)
                .sum();
            assert!((30 * 256..34 * 256).contains(&flipped), "bit {bit}: {flipped}");
        }
    }

    #[test]
    fn folding_spreads_neighbours() {
        // The seed is like the addresses of a vendor's cards, which differ in their last bytes.
        let seed = mix64(7) | 1;
        let mut buckets = [0u32; 1024];
        (0..8192u64).for_each(|n| buckets[fold(n << 32 ^ mix64(3), seed) as usize % 1024] += 1);
        let most = buckets.iter().max();
        assert!(most.is_some_and(|m| *m < 32), "{most:?} of 8 expected");
    }

    #[test]
    fn both_words_and_the_seed_count() {
        let base = mix128(1, 2, 3);
        assert!([mix128(2, 2, 3), mix128(1, 3, 3), mix128(1, 2, 4)].iter().all(|&h| h != base));
    }
}
