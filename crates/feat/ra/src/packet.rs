//! Messages that the router sends: advertisements and solicitations.

use crate::config::{Config, MAX_OTHERS, MAX_PREFIXES};
use std::net::Ipv6Addr;
use std::time::Instant;
use thalweg_wire::MacAddr;
use thalweg_wire::ethernet::{EthernetRepr, HEADER_LEN, ethertype};
use thalweg_wire::icmpv6::{fill_checksum, kind};
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv6::{self, Ipv6Repr};
use thalweg_wire::nd::HOP_LIMIT;

/// The group of all nodes of the link.
pub(crate) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// The group of all routers of the link.
pub(crate) const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

/// Longest DNS search domain, in characters (RFC 1035 section 3.1 counts two more).
pub(crate) const MAX_DOMAIN: usize = 63;

// The most that an interface may have fits the smallest MTU of a link, and needs no second message:
// fixed part, MAC address, MTU, prefixes, routes, servers, domains.
const LONGEST: usize = 16
    + 8
    + 8
    + MAX_PREFIXES * 32
    + MAX_OTHERS * 24
    + (8 + MAX_OTHERS * 16)
    + (8 + (MAX_DOMAINS * (MAX_DOMAIN + 2)).next_multiple_of(8));
const _: () = assert!(LONGEST + ipv6::HEADER_LEN <= 1280);

/// Most search domains.
pub(crate) const MAX_DOMAINS: usize = 4;

/// Returns whether a name can be a search domain.
pub(crate) fn is_domain(name: &str) -> bool {
    let label = |label: &str| {
        let right = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        !label.is_empty() && label.bytes().all(right)
    };
    (1..=MAX_DOMAIN).contains(&name.len()) && name.split('.').all(label)
}

/// Destination of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// The router's MAC address and link-local address.
    pub(crate) mac: MacAddr,
    pub(crate) src: Ipv6Addr,
    /// Destination.
    pub(crate) dst: Ipv6Addr,
    /// Destination MAC address.
    pub(crate) dst_mac: MacAddr,
}

impl Way {
    /// Returns the destination for a group.
    pub(crate) fn group(mac: MacAddr, src: Ipv6Addr, dst: Ipv6Addr) -> Way {
        Way { mac, src, dst, dst_mac: MacAddr::from_ipv6_multicast(dst) }
    }

    /// Makes the frame of an ICMPv6 message, whose checksum is still to be set.
    fn frame(&self, mut message: Vec<u8>) -> Vec<u8> {
        let length = message.len() as u16;
        // Messages are never too long for their checksum.
        let _ = fill_checksum(&self.src, &self.dst, &mut message);
        let mut out = vec![0; HEADER_LEN + ipv6::HEADER_LEN];
        let ether = EthernetRepr { dst: self.dst_mac, src: self.mac, ethertype: ethertype::IPV6 };
        let header = Ipv6Repr {
            hop_limit: HOP_LIMIT,
            ..Ipv6Repr::new(self.src, self.dst, protocol::ICMPV6, length)
        };
        // The buffer has room for both.
        let _ = ether.emit(&mut out);
        let _ = header.emit(&mut out[HEADER_LEN..]);
        out.extend(message);
        out
    }

    fn source_option(&self, out: &mut Vec<u8>) {
        out.extend([1, 1]);
        out.extend(self.mac.0);
    }
}

/// A solicitation of the routers of a link.
pub(crate) fn solicitation(way: &Way) -> Vec<u8> {
    let mut message = vec![kind::ROUTER_SOLICITATION, 0, 0, 0, 0, 0, 0, 0];
    if !way.src.is_unspecified() {
        way.source_option(&mut message);
    }
    way.frame(message)
}

/// An advertisement. With `cease`, it says that the router stops.
pub(crate) fn advertisement(
    way: &Way,
    config: &Config,
    mtu: u32,
    cease: bool,
    now: Instant,
) -> Vec<u8> {
    let flag = |on: bool, bit: u8| if on { bit } else { 0 };
    let lifetime = if cease { 0 } else { config.lifetime };
    // A router that stops has no preference (RFC 4191 section 2.2).
    let preference = if lifetime == 0 { 0 } else { config.preference.bits() };
    let flags = flag(config.managed, 0x80) | flag(config.other, 0x40) | preference;
    let mut m = vec![kind::ROUTER_ADVERTISEMENT, 0, 0, 0, config.hop_limit, flags];
    m.extend(lifetime.to_be_bytes());
    m.extend(config.reachable_ms.to_be_bytes());
    m.extend(config.retransmit_ms.to_be_bytes());
    if config.link_layer {
        way.source_option(&mut m);
    }
    if mtu >= 1280 {
        m.extend([5, 1, 0, 0]);
        m.extend(mtu.to_be_bytes());
    }
    for p in config.prefixes.iter().filter(|p| p.advertised) {
        let left = p.left(now);
        m.extend([3, 4, p.len, flag(p.on_link, 0x80) | flag(p.autonomous, 0x40)]);
        m.extend(left.valid.to_be_bytes());
        m.extend(left.preferred.to_be_bytes());
        m.extend([0; 4]);
        m.extend(p.ip.octets());
    }
    for r in &config.routes {
        // Bytes of the prefix that its length needs.
        let bytes = usize::from(r.len).div_ceil(64) * 8;
        m.extend([24, 1 + (bytes / 8) as u8, r.len, r.preference.bits()]);
        m.extend(if cease { 0 } else { r.lifetime }.to_be_bytes());
        m.extend(&r.ip.octets()[..bytes]);
    }
    // RFC 8106 section 5: three times the longest interval.
    let dns = if cease { 0 } else { u32::from(config.interval.0) * 3 };
    if !config.servers.is_empty() {
        m.extend([25, 1 + 2 * config.servers.len() as u8, 0, 0]);
        m.extend(dns.to_be_bytes());
        config.servers.iter().for_each(|server| m.extend(server.octets()));
    }
    if !config.domains.is_empty() {
        let mut names = Vec::new();
        for domain in &config.domains {
            for label in domain.split('.') {
                names.push(label.len() as u8);
                names.extend(label.bytes());
            }
            names.push(0);
        }
        names.resize(names.len().next_multiple_of(8), 0);
        m.extend([31, 1 + (names.len() / 8) as u8, 0, 0]);
        m.extend(dns.to_be_bytes());
        m.extend(names);
    }
    way.frame(m)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Preference, Prefix, Route};
    use thalweg_wire::icmpv6::Icmp6View;
    use thalweg_wire::ipv6::Ipv6View;
    use thalweg_wire::nd::{Message, NdOption};

    fn at(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    #[test]
    fn an_advertisement_has_all_options() {
        let now = thalweg_graph::clock::now();
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        let way = Way::group(mac, at("fe80::1"), ALL_NODES);
        let config = Config {
            managed: true,
            preference: Preference::High,
            lifetime: 1800,
            prefixes: vec![Prefix::new(at("2001:db8::"), 64)],
            routes: vec![Route {
                ip: at("2001:db8:8000::"),
                len: 33,
                lifetime: 70,
                preference: Preference::Low,
            }],
            servers: vec![at("2001:db8::53")],
            domains: vec!["lab.example".to_owned(), "example".to_owned()],
            ..Config::default()
        };
        let frame = advertisement(&way, &config, 1500, false, now);
        assert_eq!(frame[..6], [0x33, 0x33, 0, 0, 0, 1]);
        let ip = Ipv6View::parse(&frame[14..]).unwrap();
        assert_eq!((ip.hop_limit(), ip.src(), ip.dst()), (255, at("fe80::1"), ALL_NODES));
        let icmp = Icmp6View::parse(ip.payload()).unwrap();
        assert!(icmp.checksum_ok(&ip.src(), &ip.dst()));
        let Some(Ok(message)) = Message::parse(&icmp) else { panic!("{icmp:?}") };
        let Message::RouterAdvertisement { flags, lifetime, .. } = message else {
            panic!("{message:?}")
        };
        assert_eq!((flags, lifetime, message.link_layer()), (0x88, 1800, Some(mac)));
        let kinds: Vec<u8> = message
            .options()
            .map(|o| match o.unwrap() {
                NdOption::SourceLinkLayer(_) => 1,
                NdOption::Mtu(1500) => 5,
                NdOption::Prefix { prefix, length: 64, flags: 0xc0, valid: 2_592_000, .. } => {
                    assert_eq!(prefix, at("2001:db8::"));
                    3
                }
                NdOption::Other { kind, data } => {
                    match kind {
                        24 => assert_eq!(data[..6], [33, 0x18, 0, 0, 0, 70]),
                        25 => assert_eq!(data[2..6], 600u32.to_be_bytes()),
                        _ => assert_eq!(&data[6..19], b"\x03lab\x07example\0"),
                    }
                    kind
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(kinds, [1, 5, 3, 24, 25, 31]);
        // The last one says that it stops.
        let frame = advertisement(&way, &config, 1500, true, now);
        assert_eq!(frame[54 + 5..54 + 8], [0x80, 0, 0]);
    }

    #[test]
    fn domains_are_names() {
        for name in ["example", "lab-1.example", "_x.example"] {
            assert!(is_domain(name), "{name}");
        }
        let long = "a".repeat(MAX_DOMAIN + 1);
        for name in ["", ".", "a.", "a..b", "a b", "ä", &long] {
            assert!(!is_domain(name), "{name}");
        }
    }
}
