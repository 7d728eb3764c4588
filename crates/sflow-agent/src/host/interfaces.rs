//! Network interfaces of this host, in sFlow's terms.

use std::path::Path;

use thalweg_netlink::{Link, ethtool};

use super::value;
use thalweg_sflow::model::{HostAdapter, HostAdapters, HostNetIo, InterfaceCounters};
use thalweg_wire::ethernet::MacAddr;

/// ifType of Ethernet (IANAifType), and of everything else that hsflowd meets.
const ETHERNET: u32 = 6;
/// ifTypes, and Linux's numbers for them (linux/if_arp.h): softwareLoopback, ppp and tunnel.
const NETWORK_TYPES: [(u32, &[u16]); 3] =
    [(24, &[772]), (23, &[512]), (131, &[768, 769, 776, 778, 823, 65_534])];
/// `IFF_UP`, `IFF_LOOPBACK` and `IFF_PROMISC` (linux/if.h).
const UP: u32 = 0x1;
/// See [`UP`].
const IS_LOOPBACK: u32 = 0x8;
/// See [`UP`].
const PROMISCUOUS: u32 = 0x100;
/// `IF_OPER_UNKNOWN` and `IF_OPER_UP`.
const RUNNING: [u8; 2] = [0, 6];
/// Kinds of interfaces whose packets are other interfaces' as well.
const MADE_OF_OTHERS: [&str; 4] = ["vlan", "bond", "bridge", "team"];

/// Interfaces that are up and have an Ethernet address, by index.
pub(super) fn adapters(links: &[Link]) -> HostAdapters {
    let adapter = |link: &Link| {
        let mac = link.mac.filter(|_| link.flags & UP != 0)?;
        Some(HostAdapter { index: link.index, macs: vec![MacAddr(mac)] })
    };
    HostAdapters(links.iter().filter_map(adapter).collect())
}

/// Sums up the traffic of all interfaces but the loopback and those whose packets others count
/// already: VLANs, bonds and bridges. `None` without interfaces.
pub(super) fn totals(links: &[Link]) -> Option<HostNetIo> {
    let mut sum = HostNetIo::default();
    for link in links {
        if link.flags & IS_LOOPBACK != 0 || MADE_OF_OTHERS.contains(&link.kind.as_str()) {
            continue;
        }
        let s = &link.statistics;
        sum.bytes_in = sum.bytes_in.wrapping_add(s.rx_bytes);
        sum.bytes_out = sum.bytes_out.wrapping_add(s.tx_bytes);
        for (field, count) in [
            (&mut sum.packets_in, s.rx_packets),
            (&mut sum.errors_in, s.rx_errors),
            // /proc/net/dev adds the two as well.
            (&mut sum.drops_in, s.rx_dropped.wrapping_add(s.rx_missed_errors)),
            (&mut sum.packets_out, s.tx_packets),
            (&mut sum.errors_out, s.tx_errors),
            (&mut sum.drops_out, s.tx_dropped),
        ] {
            *field = field.wrapping_add(count as u32);
        }
    }
    (!links.is_empty()).then_some(sum)
}

/// An interface of the kernel's.
#[derive(Debug, Clone, PartialEq)]
pub struct LinuxInterface {
    /// Its name.
    pub name: String,
    /// Its counters; all ones for those that Linux does not have.
    pub counters: InterfaceCounters,
}

/// Reads the counters of the interface that has this index in this process's network namespace;
/// `None` if there is none.
#[must_use]
pub fn linux_interface(index: u32) -> Option<LinuxInterface> {
    let link = Link::find(index).ok()??;
    let modes = match ethtool::link_modes(index) {
        (None, None) => modes_in(Path::new("/sys/class/net"), &link),
        known => known,
    };
    Some(LinuxInterface { counters: counters(&link, modes), name: link.name })
}

/// Speed and duplex as files say them, if these are about the same interface: they may be those of
/// another network namespace.
fn modes_in(root: &Path, link: &Link) -> (Option<u32>, Option<u8>) {
    let directory = root.join(&link.name);
    if value(&directory.join("ifindex")) != Some(link.index) {
        return (None, None);
    }
    let duplex: Option<String> = value(&directory.join("duplex"));
    let duplex = duplex.and_then(|d| ["half", "full"].iter().position(|known| *known == d));
    (value(&directory.join("speed")), duplex.map(|d| d as u8))
}

/// The ifType of a link by its ARP hardware type.
fn network_type(hardware: u16) -> u32 {
    let known = NETWORK_TYPES.iter().find(|(_, numbers)| numbers.contains(&hardware));
    known.map_or(ETHERNET, |(kind, _)| *kind)
}

fn counters(link: &Link, (speed, duplex): (Option<u32>, Option<u8>)) -> InterfaceCounters {
    let (up, s) = (link.flags & UP != 0, &link.statistics);
    InterfaceCounters {
        index: link.index,
        network_type: network_type(link.hardware),
        speed: u64::from(speed.unwrap_or(0)) * 1_000_000,
        direction: match duplex {
            Some(1) => 1,
            Some(0) => 2,
            _ => 0,
        },
        status: u32::from(up) | u32::from(up && RUNNING.contains(&link.state)) << 1,
        in_octets: s.rx_bytes,
        in_unicast: s.rx_packets.saturating_sub(s.multicast) as u32,
        in_multicast: s.multicast as u32,
        in_broadcast: u32::MAX,
        in_discards: s.rx_dropped as u32,
        in_errors: s.rx_errors as u32,
        in_unknown_protocols: u32::MAX,
        out_octets: s.tx_bytes,
        out_unicast: s.tx_packets as u32,
        out_multicast: u32::MAX,
        out_broadcast: u32::MAX,
        out_discards: s.tx_dropped as u32,
        out_errors: s.tx_errors as u32,
        promiscuous: u32::from(link.flags & PROMISCUOUS != 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use thalweg_netlink::LinkStats;

    fn link(name: &str, index: u32, flags: u32, mac: Option<u8>) -> Link {
        let mac = mac.map(|last| [2, 0, 0, 0, 0, last]);
        Link { name: name.into(), index, flags, mac, hardware: 1, ..Link::default() }
    }

    #[test]
    fn adapters_are_those_that_are_up() {
        let links = [
            link("lo", 1, 0x9, None),
            link("eth0", 2, 0x1103, Some(10)),
            link("down", 3, 0x1002, Some(12)),
            link("tunnel", 4, 0x1, None),
            link("eth1", 12, 0x1003, Some(11)),
        ];
        let found: Vec<_> =
            adapters(&links).0.into_iter().map(|a| (a.index, a.macs[0].0)).collect();
        assert_eq!(found, [(2, [2, 0, 0, 0, 0, 10]), (12, [2, 0, 0, 0, 0, 11])]);
    }

    #[test]
    fn traffic_is_counted_once() {
        let mut statistics = LinkStats::default();
        (statistics.rx_packets, statistics.tx_packets) = (10, 20);
        (statistics.rx_bytes, statistics.tx_bytes) = (1000, 2000);
        (statistics.rx_errors, statistics.tx_errors) = (1, 3);
        (statistics.rx_dropped, statistics.tx_dropped) = (2, 4);
        (statistics.multicast, statistics.rx_missed_errors) = (5, 6);
        let of = |name: &str, flags, kind: &str| {
            let kind = kind.to_owned();
            Link { statistics, kind, ..link(name, 1, flags, None) }
        };
        let links = [
            of("eth0", 1, ""),
            of("lo", 9, ""),
            of("br0", 1, "bridge"),
            of("eth0.5", 1, "vlan"),
            of("bond0", 1, "bond"),
            of("eth1", 1, "veth"),
        ];
        let sum = totals(&links).unwrap();
        assert_eq!((sum.bytes_in, sum.packets_in, sum.errors_in, sum.drops_in), (2000, 20, 2, 16));
        assert_eq!((sum.bytes_out, sum.packets_out), (4000, 40));
        assert_eq!((sum.errors_out, sum.drops_out), (6, 8));
        assert_eq!(totals(&[]), None);
    }

    #[test]
    fn an_interface_is_read() {
        let mut statistics = LinkStats::default();
        (statistics.rx_bytes, statistics.rx_packets, statistics.multicast) = (5000, 50, 5);
        let link = Link { statistics, state: 6, ..link("eth0", 2, 0x1103, Some(10)) };
        let c = counters(&link, (Some(10_000), Some(1)));
        assert_eq!((c.network_type, c.speed, c.direction, c.status), (6, 10_000_000_000, 1, 3));
        assert_eq!((c.in_octets, c.in_unicast, c.in_multicast, c.promiscuous), (5000, 45, 5, 1));
        assert_eq!((c.in_broadcast, c.out_multicast, c.out_octets), (u32::MAX, u32::MAX, 0));
        let c = counters(&Link { state: 2, hardware: 772, ..link }, (None, None));
        assert_eq!((c.network_type, c.speed, c.direction, c.status), (24, 0, 0, 1));
    }

    #[test]
    fn files_of_another_namespace_are_not_believed() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("eth0");
        fs::create_dir_all(&directory).unwrap();
        for (name, text) in [("ifindex", "2\n"), ("speed", "10000\n"), ("duplex", "full\n")] {
            fs::write(directory.join(name), text).unwrap();
        }
        assert_eq!(modes_in(root.path(), &link("eth0", 2, 1, None)), (Some(10_000), Some(1)));
        assert_eq!(modes_in(root.path(), &link("eth0", 3, 1, None)), (None, None));
        assert_eq!(modes_in(root.path(), &link("eth1", 2, 1, None)), (None, None));
        fs::write(directory.join("speed"), "-1\n").unwrap();
        fs::write(directory.join("duplex"), "unknown\n").unwrap();
        assert_eq!(modes_in(root.path(), &link("eth0", 2, 1, None)), (None, None));
    }

    #[test]
    fn the_loopback_is_an_interface() {
        let lo = linux_interface(1).expect("every namespace has one");
        assert_eq!((lo.name.as_str(), lo.counters.network_type), ("lo", 24));
        assert_eq!(linux_interface(i32::MAX as u32), None);
    }
}
