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
    /// Returns an address by its number. Numbers from `count` on, and addresses behind the last
    /// one of the family, begin anew.
    pub(super) fn address(&self, number: u32) -> IpAddr {
        match self.first {
            IpAddr::V4(first) => Ipv4Addr::from_bits(first.to_bits().wrapping_add(number)).into(),
            IpAddr::V6(first) => {
                Ipv6Addr::from_bits(first.to_bits().wrapping_add(number.into())).into()
            }
        }
    }

    /// Returns the number of an address; `None` if it is not in the pool.
    pub(super) fn number(&self, address: IpAddr) -> Option<u32> {
        let number = match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                address.to_bits().wrapping_sub(first.to_bits())
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                address.to_bits().wrapping_sub(first.to_bits()).try_into().ok()?
            }
            _ => return None,
        };
        (number < self.count).then_some(number)
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        match self.count {
            0 | 1 => Ok(()),
            count => write!(f, "-{}", self.address(count - 1)),
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
            for number in [0, 1, 999] {
                assert_eq!(pool.number(pool.address(number)), Some(number));
            }
            assert_eq!(pool.number(pool.address(1000)), None);
            assert_eq!(pool.number(pool.address(u32::MAX)), None);
        }
        let pool = Pool { first: "16.0.0.0".parse().unwrap(), count: 65_536 };
        assert_eq!(pool.to_string(), "16.0.0.0-16.0.255.255");
        assert_eq!(pool.number("2001:db8::1".parse().unwrap()), None);
    }
}
