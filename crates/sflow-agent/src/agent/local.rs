//! Addresses of this host, and the settings that choose the agent's.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::if_nametoindex;

use super::{AddressPrefix, LocalAddress, elect_agent_address};

/// Way in which the agent's address is found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentChoice {
    /// The configured address.
    pub address: Option<IpAddr>,
    /// An address of this device.
    pub device: Option<String>,
    /// One of these prefixes, the first that any address is in.
    pub preferred: Vec<AddressPrefix>,
    /// None of these.
    pub excluded: Vec<AddressPrefix>,
}

impl AgentChoice {
    /// The address that names the agent; `None` if the host has none that could. The one in use
    /// stays while it is as good by these settings: a new identity costs collectors the agent's
    /// history. Unless it is good on this host alone.
    #[must_use]
    pub fn elect(&self, current: Option<IpAddr>) -> Option<IpAddr> {
        self.address.or_else(|| self.elect_among(&local_addresses(), current))
    }

    fn elect_among(
        &self,
        all: &[(String, LocalAddress)],
        current: Option<IpAddr>,
    ) -> Option<IpAddr> {
        let excluded = |addr| self.excluded.iter().any(|prefix| prefix.contains(addr));
        let possible: Vec<LocalAddress> = all
            .iter()
            .filter(|(device, _)| self.device.as_ref().is_none_or(|wanted| wanted == device))
            .map(|(_, address)| *address)
            .filter(|address| !excluded(address.addr))
            .collect();
        let place = |addr: IpAddr| self.preferred.iter().position(|prefix| prefix.contains(addr));
        let elected = elect_agent_address(possible.iter().copied(), &self.preferred)?;
        let stays = |old: &IpAddr| {
            !old.is_loopback()
                && place(*old) == place(elected)
                && possible.iter().any(|a| a.addr == *old)
        };
        current.filter(stays).or(Some(elected))
    }
}

/// Flags of IPv6 addresses in `/proc/net/if_inet6`.
const TENTATIVE: u32 = 0x40;
/// See [`TENTATIVE`].
const PERMANENT: u32 = 0x80;

/// Flags by IPv6 address.
fn inet6_flags(text: &str) -> HashMap<Ipv6Addr, u32> {
    let line = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let addr = u128::from_str_radix(words.next()?, 16).ok()?;
        let flags = u32::from_str_radix(words.nth(3)?, 16).ok()?;
        Some((Ipv6Addr::from(addr), flags))
    };
    text.lines().filter_map(line).collect()
}

/// Returns all addresses of this host with their devices; none if the system call fails.
#[must_use]
pub fn local_addresses() -> Vec<(String, LocalAddress)> {
    let Ok(list) = getifaddrs() else { return Vec::new() };
    let flags = inet6_flags(&std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default());
    let address = |entry: nix::ifaddrs::InterfaceAddress| {
        let address = entry.address?;
        let v4 = address.as_sockaddr_in().map(|a| IpAddr::V4(a.ip()));
        let addr = v4.or_else(|| address.as_sockaddr_in6().map(|a| IpAddr::V6(a.ip())))?;
        let flags = match addr {
            IpAddr::V6(v6) => flags.get(&v6).copied().unwrap_or(PERMANENT),
            IpAddr::V4(_) => PERMANENT,
        };
        // Another host may yet turn out to have it.
        if flags & TENTATIVE != 0 {
            return None;
        }
        let name = entry.interface_name;
        let if_index = if_nametoindex(name.as_str()).unwrap_or(u32::MAX);
        let vlan = std::path::Path::new("/proc/net/vlan").join(&name).exists();
        let slaac = flags & PERMANENT == 0;
        Some((name, LocalAddress { addr, if_index, vlan, slaac }))
    };
    list.filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(s: &str) -> IpAddr {
        s.parse().unwrap()
    }

    fn list(all: &[(&str, &str)]) -> Vec<(String, LocalAddress)> {
        all.iter().map(|(d, s)| ((*d).to_owned(), LocalAddress::from((ip(s), 1)))).collect()
    }

    #[test]
    fn the_address_in_use_stays() {
        let choice = AgentChoice::default();
        let elect = |all: &[(String, LocalAddress)], now| choice.elect_among(all, now);
        assert_eq!(elect(&[], None), None);
        let mut all = list(&[("lo", "127.0.0.1")]);
        assert_eq!(elect(&all, None), Some(ip("127.0.0.1")));
        all.extend(list(&[("eth0", "10.0.0.1")]));
        let elected = elect(&all, Some(ip("127.0.0.1")));
        assert_eq!(elected, Some(ip("10.0.0.1")));
        all.extend(list(&[("eth1", "192.0.2.1")]));
        assert_eq!(elect(&all, elected), Some(ip("10.0.0.1")));
        all.remove(1);
        assert_eq!(elect(&all, elected), Some(ip("192.0.2.1")));
    }

    #[test]
    fn what_was_said_is_kept() {
        let all = list(&[("a", "192.0.2.1"), ("a", "10.1.0.1"), ("b", "10.2.0.1"), ("b", "fd::1")]);
        let prefix = |s, length| AddressPrefix { addr: ip(s), length };
        let mut choice = AgentChoice { device: Some("b".into()), ..AgentChoice::default() };
        assert_eq!(choice.elect_among(&all, None), Some(ip("10.2.0.1")));
        choice.excluded = vec![prefix("10.0.0.0", 8)];
        assert_eq!(choice.elect_among(&all, None), Some(ip("fd::1")));
        choice = AgentChoice { preferred: vec![prefix("10.2.0.0", 16)], ..AgentChoice::default() };
        assert_eq!(choice.elect_among(&all, Some(ip("192.0.2.1"))), Some(ip("10.2.0.1")));
        choice.address = Some(ip("198.51.100.1"));
        assert_eq!(choice.elect(None), Some(ip("198.51.100.1")));
    }

    #[test]
    fn flags_are_read() {
        let text = "20010db8000000000000000000000001 02 40 00 80     eth0\n\
                    20010db80000000000000000000000aa 02 40 00 00 eth0\nbad\n";
        let flags = inet6_flags(text);
        assert_eq!(flags.len(), 2);
        assert_eq!(flags[&"2001:db8::aa".parse::<Ipv6Addr>().unwrap()], 0);
    }

    #[test]
    fn this_host_has_addresses() {
        let all = local_addresses();
        assert!(all.is_empty() || all.iter().any(|(_, a)| a.addr.is_loopback()));
    }
}
