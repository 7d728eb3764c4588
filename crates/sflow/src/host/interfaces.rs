//! Network interfaces of this host, from `/sys/class/net` and `/proc/net/dev`.

use std::path::Path;

use super::value;
use crate::model::{HostAdapter, HostAdapters, HostNetIo, InterfaceCounters};
use crate::value::Mac;

/// ifType of Ethernet (IANAifType), and of everything else that hsflowd meets.
const ETHERNET: u32 = 6;
/// `IFF_UP` and `IFF_PROMISC` (linux/if.h).
const UP: u32 = 0x1;
/// See [`UP`].
const PROMISCUOUS: u32 = 0x100;

/// A flag word such as `0x1003`.
fn flags(directory: &Path) -> u32 {
    let text: Option<String> = value(&directory.join("flags"));
    let text = text.unwrap_or_default();
    u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or(0)
}

fn mac(directory: &Path) -> Option<Mac> {
    let text: String = value(&directory.join("address"))?;
    let mut mac = [0; 6];
    let mut bytes = text.split(':');
    for byte in &mut mac {
        *byte = u8::from_str_radix(bytes.next()?, 16).ok()?;
    }
    (bytes.next().is_none() && mac != [0; 6]).then_some(Mac(mac))
}

/// Interfaces that are up and have an Ethernet address, by index.
pub(super) fn adapters(root: &Path) -> HostAdapters {
    let Ok(entries) = std::fs::read_dir(root.join("sys/class/net")) else {
        return HostAdapters::default();
    };
    let adapter = |entry: std::io::Result<std::fs::DirEntry>| {
        let directory = entry.ok()?.path();
        let index = value(&directory.join("ifindex"))?;
        let up = flags(&directory) & UP != 0;
        let mac = mac(&directory).filter(|_| up)?;
        Some(HostAdapter { index, macs: vec![mac] })
    };
    let mut adapters: Vec<HostAdapter> = entries.filter_map(adapter).collect();
    adapters.sort_by_key(|adapter| adapter.index);
    HostAdapters(adapters)
}

/// The traffic of all interfaces, but not of those whose packets others count already: VLANs, bonds
/// and bridges. Nor of the loopback.
pub(super) fn totals(root: &Path, dev: &str) -> Option<HostNetIo> {
    let part = |name: &str| {
        let directory = root.join("sys/class/net").join(name);
        let made = ["bonding", "bridge"].iter().any(|kind| directory.join(kind).exists());
        name == "lo" || made || root.join("proc/net/vlan").join(name).exists()
    };
    let mut sum = None;
    for line in dev.lines() {
        let Some((name, numbers)) = line.split_once(':') else { continue };
        let n: Vec<u64> =
            numbers.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
        if n.len() < 12 {
            continue;
        }
        let sum = sum.get_or_insert_with(HostNetIo::default);
        if part(name.trim()) {
            continue;
        }
        sum.bytes_in = sum.bytes_in.wrapping_add(n[0]);
        sum.bytes_out = sum.bytes_out.wrapping_add(n[8]);
        for (field, at) in [
            (&mut sum.packets_in, 1),
            (&mut sum.errors_in, 2),
            (&mut sum.drops_in, 3),
            (&mut sum.packets_out, 9),
            (&mut sum.errors_out, 10),
            (&mut sum.drops_out, 11),
        ] {
            *field = field.wrapping_add(n[at] as u32);
        }
    }
    sum
}

/// An interface of the kernel's.
#[derive(Debug, Clone, PartialEq)]
pub struct LinuxInterface {
    /// Its name.
    pub name: String,
    /// Its counters. What Linux does not count is all ones.
    pub counters: InterfaceCounters,
}

/// Reads the counters of the interface that has this index; `None` if there is none.
#[must_use]
pub fn linux_interface(index: u32) -> Option<LinuxInterface> {
    let name = nix::net::if_::if_indextoname(index).ok()?.into_string().ok()?;
    let counters = counters(&Path::new("/sys/class/net").join(&name), index)?;
    Some(LinuxInterface { name, counters })
}

fn counters(directory: &Path, index: u32) -> Option<InterfaceCounters> {
    let count = |name: &str| value::<u64>(&directory.join("statistics").join(name)).unwrap_or(0);
    let word = |name: &str| value::<String>(&directory.join(name)).unwrap_or_default();
    let flags = flags(directory);
    let loopback: u32 = value(&directory.join("type"))?;
    // Speed in Mb/s; -1 where there is none.
    let speed: i64 = value(&directory.join("speed")).unwrap_or(0);
    let duplex = word("duplex");
    let running = matches!(word("operstate").as_str(), "up" | "unknown");
    let up = flags & UP != 0;
    Some(InterfaceCounters {
        index,
        // ARPHRD_LOOPBACK is 772, softwareLoopback 24.
        network_type: if loopback == 772 { 24 } else { ETHERNET },
        speed: u64::try_from(speed).unwrap_or(0) * 1_000_000,
        direction: match duplex.as_str() {
            "full" => 1,
            "half" => 2,
            _ => 0,
        },
        status: u32::from(up) | u32::from(up && running) << 1,
        in_octets: count("rx_bytes"),
        in_unicast: count("rx_packets").saturating_sub(count("multicast")) as u32,
        in_multicast: count("multicast") as u32,
        in_broadcast: u32::MAX,
        in_discards: count("rx_dropped") as u32,
        in_errors: count("rx_errors") as u32,
        in_unknown_protocols: u32::MAX,
        out_octets: count("tx_bytes"),
        out_unicast: count("tx_packets") as u32,
        out_multicast: u32::MAX,
        out_broadcast: u32::MAX,
        out_discards: count("tx_dropped") as u32,
        out_errors: count("tx_errors") as u32,
        promiscuous: u32::from(flags & PROMISCUOUS != 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn interface(root: &Path, name: &str, index: u32, flags: &str, mac: &str) {
        let directory = root.join("sys/class/net").join(name);
        fs::create_dir_all(directory.join("statistics")).unwrap();
        fs::write(directory.join("ifindex"), format!("{index}\n")).unwrap();
        fs::write(directory.join("flags"), format!("{flags}\n")).unwrap();
        fs::write(directory.join("address"), format!("{mac}\n")).unwrap();
    }

    #[test]
    fn adapters_are_those_that_are_up() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        interface(root, "eth1", 12, "0x1003", "02:00:00:00:00:0b");
        interface(root, "eth0", 2, "0x1103", "02:00:00:00:00:0a");
        interface(root, "down", 3, "0x1002", "02:00:00:00:00:0c");
        interface(root, "lo", 1, "0x9", "00:00:00:00:00:00");
        interface(root, "tunnel", 4, "0x1", "10.0.0.1");
        let found: Vec<_> = adapters(root).0.into_iter().map(|a| (a.index, a.macs[0].0)).collect();
        assert_eq!(found, [(2, [2, 0, 0, 0, 0, 10]), (12, [2, 0, 0, 0, 0, 11])]);
    }

    #[test]
    fn traffic_is_counted_once() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        fs::create_dir_all(root.join("sys/class/net/br0/bridge")).unwrap();
        fs::create_dir_all(root.join("proc/net/vlan/eth0.5")).unwrap();
        let line = |name: &str| format!("{name}: 1000 10 1 2 0 0 0 0 2000 20 3 4 0 0 0 0\n");
        let names = ["  eth0", "lo", "br0", "eth0.5", "eth1"];
        let text: String = names.iter().map(|name| line(name)).collect();
        let sum = totals(root, &format!("Inter-| Receive\n face |bytes\n{text}bad: 1\n")).unwrap();
        assert_eq!((sum.bytes_in, sum.packets_in, sum.errors_in, sum.drops_in), (2000, 20, 2, 4));
        assert_eq!((sum.bytes_out, sum.packets_out), (4000, 40));
        assert_eq!((sum.errors_out, sum.drops_out), (6, 8));
        assert_eq!(totals(root, ""), None);
    }

    #[test]
    fn an_interface_is_read() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        interface(root, "eth0", 2, "0x1103", "02:00:00:00:00:0a");
        let directory = root.join("sys/class/net/eth0");
        for (name, text) in [("type", "1"), ("speed", "10000"), ("duplex", "full")] {
            fs::write(directory.join(name), text).unwrap();
        }
        fs::write(directory.join("operstate"), "up\n").unwrap();
        for (name, count) in [("rx_bytes", 5000_u64), ("rx_packets", 50), ("multicast", 5)] {
            fs::write(directory.join("statistics").join(name), count.to_string()).unwrap();
        }
        let c = counters(&directory, 2).unwrap();
        assert_eq!((c.network_type, c.speed, c.direction, c.status), (6, 10_000_000_000, 1, 3));
        assert_eq!((c.in_octets, c.in_unicast, c.in_multicast, c.promiscuous), (5000, 45, 5, 1));
        assert_eq!((c.in_broadcast, c.out_multicast, c.out_octets), (u32::MAX, u32::MAX, 0));
    }
}
