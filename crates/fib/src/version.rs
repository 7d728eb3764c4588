//! Versions of IP.

use crate::{LinkType, TableId};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thalweg_tables::Address;

/// A version of IP: the family of an address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Version {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Version {
    /// All of them.
    pub const ALL: [Version; 2] = [Version::V4, Version::V6];

    /// Returns the version of addresses of a type.
    #[must_use]
    pub const fn of<A: Address>() -> Version {
        if A::BITS == 32 { Version::V4 } else { Version::V6 }
    }

    /// Returns the version of an address.
    #[must_use]
    pub const fn of_ip(address: IpAddr) -> Version {
        if address.is_ipv4() { Version::V4 } else { Version::V6 }
    }

    /// Returns the version that a message's flag names.
    #[must_use]
    pub const fn of_flag(is_ip6: bool) -> Version {
        if is_ip6 { Version::V6 } else { Version::V4 }
    }

    /// Returns its name: `IPv4`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Version::V4 => "IPv4",
            Version::V6 => "IPv6",
        }
    }

    /// Returns the word that its commands have: `ip` as in `ip table`, `ip6` as in `ip6 table`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Version::V4 => "ip",
            Version::V6 => "ip6",
        }
    }

    /// Returns the word that names the protocol, in descriptions of routes and as an argument:
    /// `ip4`.
    #[must_use]
    pub const fn protocol(self) -> &'static str {
        match self {
            Version::V4 => "ip4",
            Version::V6 => "ip6",
        }
    }

    /// Returns the version of such a word.
    #[must_use]
    pub fn of_protocol(word: &str) -> Option<Version> {
        Version::ALL.into_iter().find(|version| version.protocol() == word)
    }

    /// Returns the usual name of a table: `ipv4-VRF:0`.
    #[must_use]
    pub fn table_name(self, id: TableId) -> String {
        match self {
            Version::V4 => format!("ipv4-VRF:{id}"),
            Version::V6 => format!("ipv6-VRF:{id}"),
        }
    }

    /// Returns what its packets are to a link.
    #[must_use]
    pub const fn link(self) -> LinkType {
        match self {
            Version::V4 => LinkType::Ip4,
            Version::V6 => LinkType::Ip6,
        }
    }

    /// Returns the address that stands for none.
    pub const fn unspecified(self) -> IpAddr {
        let [least, _] = self.bounds();
        least
    }

    /// Returns the lowest and the highest address.
    #[must_use]
    pub const fn bounds(self) -> [IpAddr; 2] {
        match self {
            Version::V4 => [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::BROADCAST)],
            Version::V6 => {
                let last = Ipv6Addr::from_bits(u128::MAX);
                [IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V6(last)]
            }
        }
    }

    /// Returns its place in [`ALL`](Self::ALL).
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
