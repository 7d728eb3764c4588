//! Values of a route table.

use std::num::NonZeroU32;

/// The value of a route: any number but zero that fits in 26 bits, such as the index of an
/// adjacency. The other bits of a table's word are the length of the route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Leaf(NonZeroU32);

impl Leaf {
    /// The largest leaf.
    pub const MAX: u32 = (1 << 26) - 1;

    /// Returns `None` for zero and for numbers above [`Leaf::MAX`].
    #[inline]
    pub const fn new(value: u32) -> Option<Self> {
        match NonZeroU32::new(value) {
            Some(value) if value.get() <= Self::MAX => Some(Self(value)),
            _ => None,
        }
    }

    /// Converts a number that was a leaf before.
    pub(super) fn from(value: NonZeroU32) -> Self {
        debug_assert!(value.get() <= Self::MAX);
        Leaf(value)
    }

    /// Returns the number.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

impl From<Leaf> for NonZeroU32 {
    fn from(leaf: Leaf) -> Self {
        leaf.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_have_26_bits() {
        assert!(Leaf::new(0).is_none() && Leaf::new(1 << 26).is_none());
        assert_eq!(Leaf::new(Leaf::MAX).unwrap().get(), Leaf::MAX);
        assert_eq!(size_of::<Option<Leaf>>(), 4);
    }
}
