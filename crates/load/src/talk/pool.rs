//! Ranges of addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The first one.
    pub first: IpAddr,
    /// Number of them, at least 1.
    pub count: u32,
}

impl Pool {
    /// True if an address is in both.
    pub fn overlaps(&self, other: &Pool) -> bool {
        let same_family = self.first.is_ipv4() == other.first.is_ipv4();
        let of = |pool: &Pool| pool.range().first;
        same_family
            && (self.range().number(of(other)).is_some()
                || other.range().number(of(self)).is_some())
    }

    pub(super) fn range(&self) -> Range {
        let (first, mask) = match self.first {
            IpAddr::V4(v4) => (v4.to_bits().into(), u32::MAX.into()),
            IpAddr::V6(v6) => (v6.to_bits(), u128::MAX),
        };
        Range { first, mask, count: self.count }
    }
}

/// A pool as numbers: those of IPv4 have 32 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    first: u128,
    mask: u128,
    pub(super) count: u32,
}

impl Range {
    /// Returns an address by its number.
    #[inline]
    pub(super) fn address(&self, number: u32) -> u128 {
        self.first.wrapping_add(number.into()) & self.mask
    }

    /// Returns an address of IPv4 by its number.
    #[inline]
    pub(super) fn address_v4(&self, number: u32) -> u32 {
        (self.first as u32).wrapping_add(number)
    }

    /// Returns the number of an address of the same family; `None` if it is not in the pool.
    #[inline]
    pub(super) fn number(&self, address: u128) -> Option<u32> {
        let number = address.wrapping_sub(self.first) & self.mask;
        (number < self.count.into()).then_some(number as u32)
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        match self.count {
            0 | 1 => Ok(()),
            count => {
                let last = self.range().address(count - 1);
                let last: IpAddr = match self.first {
                    IpAddr::V4(_) => Ipv4Addr::from_bits(last as u32).into(),
                    IpAddr::V6(_) => Ipv6Addr::from_bits(last).into(),
                };
                write!(f, "-{last}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_addresses_agree() {
        for first in ["16.0.0.0", "255.255.255.250", "2001:db8::ff", "ffff:ffff::"] {
            let pool = Pool { first: first.parse().unwrap(), count: 1000 };
            let range = pool.range();
            for number in [0, 1, 999] {
                assert_eq!(range.number(range.address(number)), Some(number));
            }
            assert_eq!(range.number(range.address(1000)), None);
            assert_eq!(range.number(range.address(u32::MAX)), None);
        }
        let pool = Pool { first: "16.0.0.0".parse().unwrap(), count: 65_536 };
        assert_eq!(pool.to_string(), "16.0.0.0-16.0.255.255");
    }
}
