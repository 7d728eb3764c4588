//! Equal parts of a plan, one for each worker of a tester.

use std::ops::Range;

/// One of several equal parts of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    at: u32,
    of: u32,
}

/// Most parts of a plan.
pub const MAX_PARTS: u32 = 64;

impl Part {
    /// All of it.
    pub const WHOLE: Part = Part { at: 0, of: 1 };

    /// All parts, of which there are 1 to [`MAX_PARTS`].
    pub fn all(of: u32) -> impl Iterator<Item = Part> {
        let of = of.clamp(1, MAX_PARTS);
        (0..of).map(move |at| Part { at, of })
    }

    /// Its number, from 0.
    pub fn number(self) -> u32 {
        self.at
    }

    /// Number of parts.
    pub fn count(self) -> u32 {
        self.of
    }

    /// Bits of a sequence number that say which part sent it.
    #[inline]
    pub(crate) fn bits(self) -> u32 {
        self.of.next_power_of_two().trailing_zeros()
    }

    /// Elements that it has of `all`. With fewer elements than parts, some parts have none, but
    /// never the first.
    pub fn range(self, all: u64) -> Range<u64> {
        let begin =
            |at: u32| (u128::from(at) * u128::from(all)).div_ceil(u128::from(self.of)) as u64;
        begin(self.at)..begin(self.at + 1)
    }

    /// Its share of an amount, of which a part has as much as another.
    pub(crate) fn share(self) -> f64 {
        1.0 / f64::from(self.of)
    }
}

/// Number of the part that has an element of `all`.
#[inline]
pub(crate) fn owner(element: u32, all: u32, parts: u32) -> usize {
    (u64::from(element) * u64::from(parts) / u64::from(all.max(1))) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_element_is_in_one_part(all in 1u32..300, of in 1u32..=MAX_PARTS) {
            let mut next = 0;
            for part in Part::all(of) {
                let range = part.range(all.into());
                prop_assert_eq!(range.start, next);
                prop_assert!(range.end - range.start <= all.div_ceil(of).into());
                next = range.end;
                for element in range {
                    prop_assert_eq!(owner(element as u32, all, of), part.number() as usize);
                }
            }
            prop_assert_eq!(next, u64::from(all));
            prop_assert!(!Part::WHOLE.range(all.into()).is_empty());
        }
    }

    #[test]
    fn the_greatest_numbers_have_owners() {
        assert_eq!(owner(u32::MAX - 1, u32::MAX, MAX_PARTS), 63);
        assert_eq!(Part::all(2).map(|part| part.range(u64::MAX).end).last(), Some(u64::MAX));
        assert_eq!((Part::WHOLE.bits(), Part::all(3).count()), (0, 3));
        assert_eq!(Part::all(0).collect::<Vec<_>>(), [Part::WHOLE]);
        assert_eq!(Part::all(3).map(Part::bits).collect::<Vec<_>>(), [2; 3]);
    }
}
