//! Elects the host's address that names the agent.

use std::cmp::Reverse;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An address of this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalAddress {
    /// The address.
    pub addr: IpAddr,
    /// ifIndex of its interface.
    pub if_index: u32,
    /// The interface is a VLAN.
    pub vlan: bool,
    /// The address was made by SLAAC (RFC 4862) and may change.
    pub slaac: bool,
}

impl From<(IpAddr, u32)> for LocalAddress {
    fn from((addr, if_index): (IpAddr, u32)) -> Self {
        LocalAddress { addr, if_index, vlan: false, slaac: false }
    }
}

/// Addresses that the configuration prefers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressPrefix {
    /// Any address of the prefix.
    pub addr: IpAddr,
    /// Length in bits.
    pub length: u8,
}

impl AddressPrefix {
    /// True if the prefix holds the address.
    #[must_use]
    pub fn contains(&self, addr: IpAddr) -> bool {
        let bits = u32::from(self.length);
        match (self.addr, addr) {
            (IpAddr::V4(prefix), IpAddr::V4(addr)) => {
                let differ = u32::from(prefix) ^ u32::from(addr);
                differ.checked_shr(32_u32.saturating_sub(bits)).unwrap_or(0) == 0
            }
            (IpAddr::V6(prefix), IpAddr::V6(addr)) => {
                let differ = u128::from(prefix) ^ u128::from(addr);
                differ.checked_shr(128_u32.saturating_sub(bits)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl fmt::Display for AddressPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr, self.length)
    }
}

/// `192.0.2.0/24`, or an address alone.
impl FromStr for AddressPrefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}' is not a prefix such as 10.0.0.0/8 or 2001:db8::/32");
        let (addr, length) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
        let addr: IpAddr = addr.parse().map_err(|_| bad())?;
        let whole = if addr.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => whole,
            Some(digits) if digits.bytes().all(|c| c.is_ascii_digit()) => {
                digits.parse().ok().filter(|length| *length <= whole).ok_or_else(bad)?
            }
            Some(_) => return Err(bad()),
        };
        Ok(AddressPrefix { addr, length })
    }
}

/// The more an address says about where the host is, the higher it scores; 0 is no usable address.
fn score(address: &LocalAddress) -> u32 {
    match address.addr {
        IpAddr::V4(v4) if v4.is_unspecified() => 0,
        IpAddr::V4(v4) if v4.octets()[0] >= 240 => 1,
        IpAddr::V4(v4) if v4.is_multicast() => 2,
        IpAddr::V4(v4) if v4.is_loopback() => 4,
        IpAddr::V4(v4) if v4.is_link_local() => 5,
        IpAddr::V4(_) if address.vlan => 8,
        IpAddr::V4(v4) if v4.is_private() => 11,
        IpAddr::V4(_) => 12,
        IpAddr::V6(v6) if v6.is_unspecified() => 0,
        IpAddr::V6(v6) if v6.is_multicast() => 2,
        IpAddr::V6(v6) if v6.is_loopback() => 3,
        IpAddr::V6(v6) if v6.is_unicast_link_local() => 6,
        IpAddr::V6(_) if address.vlan => 7,
        IpAddr::V6(v6) if v6.is_unique_local() => 9,
        IpAddr::V6(_) => 10,
    }
}

/// Elects the agent's address as hsflowd does: an address of the first preferred prefix that any
/// has, else by kind, from class E at the bottom to global IPv4 at the top. Between equals, a
/// static address beats SLAAC, then the lower ifIndex and the earlier one win.
pub fn elect_agent_address(
    addresses: impl IntoIterator<Item = impl Into<LocalAddress>>,
    preferred: &[AddressPrefix],
) -> Option<IpAddr> {
    let rank = |a: &LocalAddress| {
        let place = preferred.iter().position(|prefix| prefix.contains(a.addr));
        let preference = place.map_or(0, |place| preferred.len() - place);
        (preference, score(a), !a.slaac, Reverse(a.if_index))
    };
    let mut best: Option<LocalAddress> = None;
    for address in addresses.into_iter().map(Into::into) {
        if score(&address) > 0 && best.is_none_or(|best| rank(&address) > rank(&best)) {
            best = Some(address);
        }
    }
    best.map(|address| address.addr)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(s: &str) -> IpAddr {
        s.parse().unwrap()
    }

    #[test]
    fn kinds_are_ordered() {
        // Each beats everything before it.
        let order = [
            "240.0.0.1",
            "224.0.0.5",
            "::1",
            "127.0.0.1",
            "169.254.1.1",
            "fe80::1",
            "fd00::1",
            "2001:db8::1",
            "10.0.0.1",
            "192.0.2.1",
        ];
        for (i, best) in order.iter().enumerate() {
            let candidates = order[..=i].iter().rev().map(|s| (ip(s), 1));
            assert_eq!(elect_agent_address(candidates, &[]), Some(ip(best)));
        }
        assert_eq!(elect_agent_address([(ip("0.0.0.0"), 1), (ip("::"), 2)], &[]), None);
        let vlan = |s| LocalAddress { vlan: true, ..LocalAddress::from((ip(s), 1)) };
        assert_eq!(
            elect_agent_address([vlan("192.0.2.1"), vlan("2001:db8::1")], &[]),
            Some(ip("192.0.2.1"))
        );
        let ula = LocalAddress::from((ip("fd00::1"), 9));
        assert_eq!(elect_agent_address([vlan("192.0.2.1"), ula], &[]), Some(ip("fd00::1")));
    }

    #[test]
    fn ties_are_broken() {
        let slaac = LocalAddress { slaac: true, ..LocalAddress::from((ip("2001:db8::a"), 1)) };
        let fixed = LocalAddress::from((ip("2001:db8::b"), 2));
        let later = LocalAddress::from((ip("2001:db8::c"), 2));
        assert_eq!(elect_agent_address([slaac, fixed, later], &[]), Some(ip("2001:db8::b")));
        let lower = LocalAddress::from((ip("2001:db8::d"), 1));
        assert_eq!(elect_agent_address([fixed, lower], &[]), Some(ip("2001:db8::d")));
    }

    #[test]
    fn preferred_prefixes_outrank_kinds() {
        let prefix = |s, length| AddressPrefix { addr: ip(s), length };
        let candidates = [(ip("192.0.2.1"), 1), (ip("10.1.0.1"), 2), (ip("fd00::1"), 3)];
        let preferred = [prefix("fd00::", 8), prefix("10.0.0.0", 8)];
        assert_eq!(elect_agent_address(candidates, &preferred), Some(ip("fd00::1")));
        assert_eq!(elect_agent_address(candidates, &preferred[1..]), Some(ip("10.1.0.1")));
        for text in ["10.0.0.0/8", "2001:db8::/32", "192.0.2.1/32"] {
            assert_eq!(text.parse::<AddressPrefix>().unwrap().to_string(), text);
        }
        assert_eq!("::1".parse(), Ok(prefix("::1", 128)));
        for bad in ["", "/8", "10.0.0.0/", "10.0.0.0/33", "::/129", "10.0.0.0/+8", "x/8"] {
            assert!(bad.parse::<AddressPrefix>().is_err(), "{bad}");
        }
        assert!(prefix("0.0.0.0", 0).contains(ip("255.1.2.3")));
        assert!(!prefix("0.0.0.0", 0).contains(ip("::1")));
        assert!(prefix("10.1.2.3", 32).contains(ip("10.1.2.3")));
        assert!(!prefix("10.1.2.3", 32).contains(ip("10.1.2.2")));
    }
}
