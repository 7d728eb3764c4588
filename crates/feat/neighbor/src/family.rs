//! Address families.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thalweg_fib::LinkType;

/// Family of a neighbour's address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Family {
    /// IPv4.
    Ip4,
    /// IPv6.
    Ip6,
}

impl Family {
    /// All of them.
    pub const ALL: [Family; 2] = [Family::Ip4, Family::Ip6];

    /// Returns an address's family.
    #[must_use]
    pub const fn of(ip: IpAddr) -> Family {
        match ip {
            IpAddr::V4(_) => Family::Ip4,
            IpAddr::V6(_) => Family::Ip6,
        }
    }

    /// Returns the word that commands use.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Family::Ip4 => "ip4",
            Family::Ip6 => "ip6",
        }
    }

    /// Returns the family of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Family> {
        Family::ALL.into_iter().find(|f| f.word() == word)
    }

    /// Returns what adjacencies of a neighbour carry of its own family.
    #[must_use]
    pub const fn link(self) -> LinkType {
        match self {
            Family::Ip4 => LinkType::Ip4,
            Family::Ip6 => LinkType::Ip6,
        }
    }

    /// Returns the lowest and the highest address.
    pub(crate) const fn bounds(self) -> [IpAddr; 2] {
        match self {
            Family::Ip4 => [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::BROADCAST)],
            Family::Ip6 => {
                let last = Ipv6Addr::from_bits(u128::MAX);
                [IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V6(last)]
            }
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::Ip4 => "IPv4",
            Family::Ip6 => "IPv6",
        })
    }
}
