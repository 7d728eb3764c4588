//! The addresses of this host, from which the agent's is elected.

use nix::ifaddrs::getifaddrs;
use nix::net::if_::if_nametoindex;
use std::net::IpAddr;
use thalweg_sflow::agent::{LocalAddress, elect_agent_address};

/// All addresses of this host; none if the system does not tell.
fn addresses() -> Vec<LocalAddress> {
    let Ok(list) = getifaddrs() else { return Vec::new() };
    let address = |entry: nix::ifaddrs::InterfaceAddress| {
        let address = entry.address?;
        let v4 = address.as_sockaddr_in().map(|a| IpAddr::V4(a.ip()));
        let addr = v4.or_else(|| address.as_sockaddr_in6().map(|a| IpAddr::V6(a.ip())))?;
        let name = entry.interface_name.as_str();
        let if_index = if_nametoindex(name).unwrap_or(u32::MAX);
        let vlan = std::path::Path::new("/proc/net/vlan").join(name).exists();
        Some(LocalAddress { addr, if_index, vlan, slaac: false })
    };
    list.filter_map(address).collect()
}

/// Elects the agent's address. The one that is in use stays while the host has it, unless it is
/// good on this host alone: a new identity costs collectors the agent's history.
pub(super) fn elect(current: Option<IpAddr>) -> Option<IpAddr> {
    elect_among(&addresses(), current)
}

fn elect_among(all: &[LocalAddress], current: Option<IpAddr>) -> Option<IpAddr> {
    let stays = |address: &IpAddr| !address.is_loopback() && all.iter().any(|a| a.addr == *address);
    current.filter(stays).or_else(|| elect_agent_address(all.iter().copied(), &[]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_in_use_stays() {
        let ip = |s: &str| s.parse::<IpAddr>().unwrap();
        let list = |all: &[&str]| -> Vec<LocalAddress> {
            all.iter().map(|s| LocalAddress::from((ip(s), 1))).collect()
        };
        assert_eq!(elect_among(&[], None), None);
        let mut all = list(&["127.0.0.1"]);
        assert_eq!(elect_among(&all, None), Some(ip("127.0.0.1")));
        all.extend(list(&["10.0.0.1"]));
        let elected = elect_among(&all, Some(ip("127.0.0.1")));
        assert_eq!(elected, Some(ip("10.0.0.1")));
        all.extend(list(&["192.0.2.1"]));
        assert_eq!(elect_among(&all, elected), Some(ip("10.0.0.1")));
        all.remove(1);
        assert_eq!(elect_among(&all, elected), Some(ip("192.0.2.1")));
    }

    #[test]
    fn this_host_has_addresses() {
        assert!(addresses().iter().any(|a| a.addr.is_loopback()) || addresses().is_empty());
    }
}
