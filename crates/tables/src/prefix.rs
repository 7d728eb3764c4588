//! Addresses and prefixes of any family.

use std::fmt;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::{BitAnd, BitOr, Not};

use crate::hash::mix64;

/// An address of some family as a number in host byte order: `u32` for IPv4, `u128` for IPv6.
pub trait Address:
    Copy
    + Ord
    + Hash
    + Default
    + fmt::Debug
    + Send
    + Sync
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + Not<Output = Self>
    + 'static
{
    /// Number of bits.
    const BITS: u8;
    /// Name of the family, as messages have it.
    const FAMILY: &'static str;

    /// Returns the network mask of `len` bits, at most [`Self::BITS`].
    fn mask(len: u8) -> Self;
    /// Returns a hash that nobody can predict who does not know the seed.
    fn mixed(self, seed: u64) -> u64;
    /// Returns the address in its usual form.
    fn to_ip(self) -> IpAddr;
    /// Returns the number; `None` for an address of another family.
    fn from_ip(address: IpAddr) -> Option<Self>;
}

impl Address for u32 {
    const BITS: u8 = 32;
    const FAMILY: &'static str = "IPv4";

    #[inline]
    fn mask(len: u8) -> u32 {
        // In 64 bits a shift by 32 is defined.
        ((u64::MAX << (32 - u32::from(len))) & 0xffff_ffff) as u32
    }
    #[inline]
    fn mixed(self, seed: u64) -> u64 {
        mix64(u64::from(self) ^ seed)
    }
    fn to_ip(self) -> IpAddr {
        Ipv4Addr::from_bits(self).into()
    }
    fn from_ip(address: IpAddr) -> Option<u32> {
        match address {
            IpAddr::V4(v4) => Some(v4.to_bits()),
            IpAddr::V6(_) => None,
        }
    }
}

impl Address for u128 {
    const BITS: u8 = 128;
    const FAMILY: &'static str = "IPv6";

    #[inline]
    fn mask(len: u8) -> u128 {
        u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0)
    }
    #[inline]
    fn mixed(self, seed: u64) -> u64 {
        mix64(mix64((self >> 64) as u64 ^ seed) ^ self as u64)
    }
    fn to_ip(self) -> IpAddr {
        Ipv6Addr::from_bits(self).into()
    }
    fn from_ip(address: IpAddr) -> Option<u128> {
        match address {
            IpAddr::V6(v6) => Some(v6.to_bits()),
            IpAddr::V4(_) => None,
        }
    }
}

/// A prefix. Bits beyond the length are zero. Sorts by address, then shorter first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix<A> {
    addr: A,
    len: u8,
}

/// An IPv4 prefix.
pub type Ipv4Prefix = Prefix<u32>;
/// An IPv6 prefix.
pub type Ipv6Prefix = Prefix<u128>;

/// A prefix length beyond the family's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("prefix length {len} is out of range: an {family} prefix has 0 to {bits} bits")]
pub struct PrefixLenError {
    len: u8,
    bits: u8,
    family: &'static str,
}

impl Prefix<u32> {
    /// `0.0.0.0/0`.
    pub const DEFAULT: Self = Self { addr: 0, len: 0 };
}

impl Prefix<u128> {
    /// `::/0`.
    pub const DEFAULT: Self = Self { addr: 0, len: 0 };
}

impl<A: Address> Prefix<A> {
    /// Returns the prefix of `len` bits that contains `addr` (host byte order).
    ///
    /// # Errors
    ///
    /// [`PrefixLenError`] if `len` is above [`Address::BITS`].
    pub fn new(addr: A, len: u8) -> Result<Self, PrefixLenError> {
        if len > A::BITS {
            return Err(PrefixLenError { len, bits: A::BITS, family: A::FAMILY });
        }
        Ok(Self::of(addr, len))
    }

    /// Returns the prefix of one address.
    pub fn host(addr: A) -> Self {
        Self { addr, len: A::BITS }
    }

    /// Like [`Prefix::new`], for a `len` known to be in range.
    pub(crate) fn of(addr: A, len: u8) -> Self {
        debug_assert!(len <= A::BITS);
        Self { addr: addr & A::mask(len), len }
    }

    /// Returns the first address, in host byte order.
    #[inline]
    pub fn addr(self) -> A {
        self.addr
    }

    /// Returns the prefix length in bits.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // it is a length in bits
    pub fn len(self) -> u8 {
        self.len
    }

    /// Returns the last address, in host byte order.
    #[inline]
    pub fn last(self) -> A {
        self.addr | !A::mask(self.len)
    }

    /// Returns the network mask, in host byte order.
    #[inline]
    pub fn mask(self) -> A {
        A::mask(self.len)
    }

    /// Returns true if the prefix contains `addr`.
    #[inline]
    pub fn contains(self, addr: A) -> bool {
        addr & A::mask(self.len) == self.addr
    }
}

impl<A: Address> fmt::Display for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr.to_ip(), self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn masks_and_edges() {
        let prefix = Ipv4Prefix::new(0x0a01_02ff, 24).unwrap();
        assert_eq!((prefix.addr(), prefix.last()), (0x0a01_0200, 0x0a01_02ff));
        assert!(prefix.contains(0x0a01_0280) && !prefix.contains(0x0a01_0300));
        assert_eq!(prefix.to_string(), "10.1.2.0/24");
        let all = Ipv4Prefix::new(7, 0).unwrap();
        assert_eq!((all, all.mask(), all.last()), (Ipv4Prefix::DEFAULT, 0, u32::MAX));
        assert_eq!(Ipv4Prefix::new(7, 32), Ok(Ipv4Prefix::host(7)));
        let error = Ipv4Prefix::new(0, 33).unwrap_err().to_string();
        assert_eq!(error, "prefix length 33 is out of range: an IPv4 prefix has 0 to 32 bits");
        let six = Ipv6Prefix::new(0x2001_0db8 << 96 | 7, 32).unwrap();
        assert_eq!(six.to_string(), "2001:db8::/32");
        let error = Ipv6Prefix::new(0, 129).unwrap_err().to_string();
        assert_eq!(error, "prefix length 129 is out of range: an IPv6 prefix has 0 to 128 bits");
    }

    fn agrees<A: Address>(a: A, b: A, len: u8) -> Result<(), TestCaseError> {
        let len = len % (A::BITS + 1);
        let prefix = Prefix::new(a, len).unwrap();
        prop_assert!(prefix.contains(a) && prefix.contains(prefix.last()));
        prop_assert_eq!(prefix.contains(b), prefix.addr() <= b && b <= prefix.last());
        prop_assert_eq!(Prefix::host(a).contains(b), a == b);
        prop_assert_eq!(A::from_ip(a.to_ip()), Some(a));
        Ok(())
    }

    proptest! {
        #[test]
        fn prefixes_are_ranges(a: u128, b: u128, near in 0u32..128, len: u8) {
            for b in [b, a ^ 1 << near] {
                agrees::<u128>(a, b, len)?;
                agrees::<u32>((a >> 96) as u32, (b >> 96) as u32, len)?;
            }
        }
    }
}
