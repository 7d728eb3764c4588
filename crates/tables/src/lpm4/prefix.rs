//! Keys and values of a route table: prefixes and leaves.

use std::fmt;
use std::net::Ipv4Addr;
use std::num::NonZeroU32;

/// An IPv4 prefix. Bits beyond the length are zero. Sorts by address, then shorter first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ipv4Prefix {
    addr: u32,
    len: u8,
}

/// A prefix length above 32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("prefix length {0} is out of range: an IPv4 prefix has 0 to 32 bits")]
pub struct PrefixLenError(pub u8);

impl Ipv4Prefix {
    /// `0.0.0.0/0`.
    pub const DEFAULT: Self = Self { addr: 0, len: 0 };

    /// Returns the prefix of `len` bits that contains `addr` (host byte order).
    ///
    /// # Errors
    ///
    /// [`PrefixLenError`] if `len` is above 32.
    pub const fn new(addr: u32, len: u8) -> Result<Self, PrefixLenError> {
        if len > 32 { Err(PrefixLenError(len)) } else { Ok(Self::of(addr, len)) }
    }

    /// Returns the `/32` of an address.
    pub const fn host(addr: u32) -> Self {
        Self { addr, len: 32 }
    }

    /// Like [`Ipv4Prefix::new`], for a `len` known to be at most 32.
    pub(super) const fn of(addr: u32, len: u8) -> Self {
        debug_assert!(len <= 32);
        Self { addr: addr & mask(len), len }
    }

    /// Returns the first address, in host byte order.
    #[inline]
    pub const fn addr(self) -> u32 {
        self.addr
    }

    /// Returns the prefix length in bits.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // it is a length in bits
    pub const fn len(self) -> u8 {
        self.len
    }

    /// Returns the last address, in host byte order.
    #[inline]
    pub const fn last(self) -> u32 {
        self.addr | !mask(self.len)
    }

    /// Returns the network mask, in host byte order.
    #[inline]
    pub const fn mask(self) -> u32 {
        mask(self.len)
    }

    /// Returns true if the prefix contains `addr`.
    #[inline]
    pub const fn contains(self, addr: u32) -> bool {
        addr & mask(self.len) == self.addr
    }
}

/// Returns the network mask of `len` bits.
const fn mask(len: u8) -> u32 {
    // In 64 bits a shift by 32 is defined.
    ((u64::MAX << (32 - len as u32)) & 0xffff_ffff) as u32
}

impl fmt::Display for Ipv4Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from_bits(self.addr), self.len)
    }
}

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
    fn masks_and_edges() {
        let prefix = Ipv4Prefix::new(0x0a01_02ff, 24).unwrap();
        assert_eq!((prefix.addr(), prefix.last()), (0x0a01_0200, 0x0a01_02ff));
        assert!(prefix.contains(0x0a01_0280) && !prefix.contains(0x0a01_0300));
        assert_eq!(prefix.to_string(), "10.1.2.0/24");
        let all = Ipv4Prefix::new(7, 0).unwrap();
        assert_eq!((all, all.mask(), all.last()), (Ipv4Prefix::DEFAULT, 0, u32::MAX));
        assert_eq!(Ipv4Prefix::new(7, 32), Ok(Ipv4Prefix::host(7)));
        let error = Ipv4Prefix::new(0, 33).unwrap_err();
        assert!(error.to_string().contains("prefix length 33"), "{error}");
    }

    #[test]
    fn leaves_have_26_bits() {
        assert!(Leaf::new(0).is_none() && Leaf::new(1 << 26).is_none());
        assert_eq!(Leaf::new(Leaf::MAX).unwrap().get(), Leaf::MAX);
        assert_eq!(size_of::<Option<Leaf>>(), 4);
    }
}
