//! Matching of packets' first bytes against a pattern.

/// A pattern of sixteen bytes.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    want: [u8; 16],
    mask: [u8; 16],
}

impl Pattern {
    /// Creates a pattern: bytes match if they have the bits of `want` wherever `mask` has ones.
    pub fn new(want: [u8; 16], mask: [u8; 16]) -> Pattern {
        Pattern { want, mask }
    }

    /// Returns true if these bytes match.
    #[inline(always)]
    pub fn matches(&self, head: &[u8; 16]) -> bool {
        let [head, want, mask] = [head, &self.want, &self.mask].map(|b| u128::from_le_bytes(*b));
        (head ^ want) & mask == 0
    }

    /// Returns true if all match. The mask is applied once, to the union of their differences.
    #[inline(always)]
    pub fn matches_all<'a>(&self, heads: impl Iterator<Item = &'a [u8; 16]>) -> bool {
        let mut differ = Sixteen::of(&[0; 16]);
        let want = Sixteen::of(&self.want);
        for head in heads {
            differ = differ.or(Sixteen::of(head).xor(want));
        }
        differ.is_zero_under(Sixteen::of(&self.mask))
    }

    /// Like [`matches_all`](Self::matches_all), for heads whose first sixteen bytes match one
    /// pattern, and whose last sixteen another one.
    #[inline(always)]
    pub fn both_match_all<'a>(
        first: &Pattern,
        last: &Pattern,
        heads: impl Iterator<Item = &'a [u8; 24]>,
    ) -> bool {
        let mut differ = [Sixteen::of(&[0; 16]); 2];
        let want = [Sixteen::of(&first.want), Sixteen::of(&last.want)];
        for head in heads {
            if let (Some(a), Some(b)) = (head.first_chunk(), head.last_chunk()) {
                differ[0] = differ[0].or(Sixteen::of(a).xor(want[0]));
                differ[1] = differ[1].or(Sixteen::of(b).xor(want[1]));
            }
        }
        differ[0].is_zero_under(Sixteen::of(&first.mask))
            && differ[1].is_zero_under(Sixteen::of(&last.mask))
    }
}

/// Sixteen bytes in a baseline vector register. Two plain words may or may not become one,
/// depending on the code around them: twice the instructions.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Sixteen(std::arch::x86_64::__m128i);

#[cfg(target_arch = "x86_64")]
impl Sixteen {
    #[inline(always)]
    fn of(bytes: &[u8; 16]) -> Sixteen {
        // SAFETY: sixteen bytes may be read there, and need not be aligned.
        Sixteen(unsafe { std::arch::x86_64::_mm_loadu_si128(bytes.as_ptr().cast()) })
    }

    #[inline(always)]
    fn or(self, other: Sixteen) -> Sixteen {
        // SAFETY: every x86-64 has SSE2.
        Sixteen(unsafe { std::arch::x86_64::_mm_or_si128(self.0, other.0) })
    }

    #[inline(always)]
    fn xor(self, other: Sixteen) -> Sixteen {
        // SAFETY: every x86-64 has SSE2.
        Sixteen(unsafe { std::arch::x86_64::_mm_xor_si128(self.0, other.0) })
    }

    #[inline(always)]
    fn is_zero_under(self, mask: Sixteen) -> bool {
        use std::arch::x86_64::{
            _mm_and_si128, _mm_cmpeq_epi8, _mm_movemask_epi8, _mm_setzero_si128,
        };
        // SAFETY: every x86-64 has SSE2.
        let zeros = unsafe {
            let rest = _mm_and_si128(self.0, mask.0);
            _mm_movemask_epi8(_mm_cmpeq_epi8(rest, _mm_setzero_si128()))
        };
        zeros == 0xffff
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy)]
struct Sixteen(u128);

#[cfg(not(target_arch = "x86_64"))]
impl Sixteen {
    #[inline(always)]
    fn of(bytes: &[u8; 16]) -> Sixteen {
        Sixteen(u128::from_le_bytes(*bytes))
    }

    #[inline(always)]
    fn or(self, other: Sixteen) -> Sixteen {
        Sixteen(self.0 | other.0)
    }

    #[inline(always)]
    fn xor(self, other: Sixteen) -> Sixteen {
        Sixteen(self.0 ^ other.0)
    }

    #[inline(always)]
    fn is_zero_under(self, mask: Sixteen) -> bool {
        self.0 & mask.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn all_match_if_each_does(
            want: [u8; 16],
            mask: [u8; 16],
            heads in proptest::collection::vec(any::<[u8; 16]>(), 0..5),
            alike: bool,
        ) {
            let pattern = Pattern::new(want, mask);
            let matching = |head: &[u8; 16]| (0..16).all(|i| (head[i] ^ want[i]) & mask[i] == 0);
            let heads: Vec<[u8; 16]> = heads
                .iter()
                .map(|h| std::array::from_fn(|i| if alike { h[i] & !mask[i] | want[i] & mask[i] } else { h[i] }))
                .collect();
            for head in &heads {
                prop_assert_eq!(pattern.matches(head), matching(head));
            }
            prop_assert_eq!(pattern.matches_all(heads.iter()), heads.iter().all(matching));
        }

        #[test]
        fn both_match_if_each_does(
            want: [u8; 24],
            masks: [[u8; 16]; 2],
            bits in proptest::collection::vec(proptest::option::of(0usize..192), 0..4),
        ) {
            let (first, last) = (want.first_chunk().copied(), want.last_chunk().copied());
            let first = Pattern::new(first.unwrap_or_default(), masks[0]);
            let last = Pattern::new(last.unwrap_or_default(), masks[1]);
            let heads: Vec<[u8; 24]> = bits
                .into_iter()
                .map(|bit| {
                    let mut head = want;
                    bit.into_iter().for_each(|bit| head[bit / 8] ^= 1 << (bit % 8));
                    head
                })
                .collect();
            let ends = |head: &[u8; 24]| {
                let (a, b) = (head.first_chunk().copied(), head.last_chunk().copied());
                first.matches(&a.unwrap_or_default()) && last.matches(&b.unwrap_or_default())
            };
            let expected = heads.iter().all(ends);
            prop_assert_eq!(Pattern::both_match_all(&first, &last, heads.iter()), expected);
        }

        #[test]
        fn every_bit_of_the_mask_counts(want: [u8; 16], mask: [u8; 16], bit in 0usize..128) {
            let mut head = want;
            head[bit / 8] ^= 1 << (bit % 8);
            let matches = mask[bit / 8] >> (bit % 8) & 1 == 0;
            let pattern = Pattern::new(want, mask);
            prop_assert_eq!(pattern.matches(&head), matches);
            prop_assert_eq!(pattern.matches_all([&want, &head, &want].into_iter()), matches);
        }
    }
}
