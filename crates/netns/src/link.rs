//! Virtual Ethernet pairs, bridges, and what `ip` says about an interface.

use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::ethtool::{Offloads, set_offloads};
use crate::netns::Netns;
use crate::wait::{WAIT_LIMIT, wait_for_link_up};

/// Interface numbers for the ends of pairs.
///
/// The kernel passes on a change of carrier at once if an interface and the one below it have
/// different numbers, which it takes as a sign that a process waits; otherwise only within a
/// second. Left to itself it would give both ends of a pair across namespaces the same number.
static NEXT_INDEX: AtomicU32 = AtomicU32::new(1001);

/// Setup of one end of a pair.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    /// Largest packet in bytes, without the Ethernet header.
    pub mtu: u32,
    /// Hardware address, `02:00:00:00:00:01`; the kernel's choice if none.
    pub mac: Option<String>,
    /// Addresses with prefix length, `10.0.0.1/24`.
    pub addresses: Vec<String>,
    /// Brings the interface up.
    pub up: bool,
    /// Work that the kernel may leave to the hardware.
    pub offloads: Offloads,
    /// Number of transmit and receive queues.
    pub queues: u16,
}

impl Default for LinkOptions {
    fn default() -> Self {
        LinkOptions {
            mtu: 1500,
            mac: None,
            addresses: Vec::new(),
            up: true,
            offloads: Offloads::OFF,
            queues: 1,
        }
    }
}

impl LinkOptions {
    /// Adds an address with prefix length.
    #[must_use]
    pub fn address(mut self, address: impl Into<String>) -> Self {
        self.addresses.push(address.into());
        self
    }

    /// Sets the hardware address.
    #[must_use]
    pub fn mac(mut self, mac: impl Into<String>) -> Self {
        self.mac = Some(mac.into());
        self
    }

    /// Words after `ip link add` for this end.
    fn creation(&self) -> String {
        let mac = self.mac.as_ref().map(|mac| format!(" address {mac}")).unwrap_or_default();
        let index = NEXT_INDEX.fetch_add(1, Ordering::Relaxed);
        format!(
            "index {index} mtu {}{mac} numtxqueues {q} numrxqueues {q}",
            self.mtu,
            q = self.queues
        )
    }

    fn finish(&self, ns: &Netns, dev: &str) -> Result<()> {
        set_offloads(ns, dev, self.offloads)?;
        let mut lines: Vec<_> = self
            .addresses
            .iter()
            .map(|address| format!("address add {address} dev {dev}"))
            .collect();
        if self.up {
            lines.push(format!("link set {dev} up"));
        }
        if lines.is_empty() { Ok(()) } else { ns.ip_batch(&lines) }
    }
}

/// Joins two namespaces by a virtual Ethernet pair, and waits for both ends to come up if both
/// are meant to.
pub fn veth(
    (a, a_name, a_options): (&Netns, &str, &LinkOptions),
    (b, b_name, b_options): (&Netns, &str, &LinkOptions),
) -> Result<()> {
    a.ip(&format!(
        "link add name {a_name} {} type veth peer name {b_name} {} netns {}",
        a_options.creation(),
        b_options.creation(),
        b.path().display()
    ))
    .with_context(|| format!("join {a_name} of {} and {b_name} of {}", a.label(), b.label()))?;
    a_options.finish(a, a_name)?;
    b_options.finish(b, b_name)?;
    if a_options.up && b_options.up {
        wait_for_link_up(a, a_name, WAIT_LIMIT)?;
        wait_for_link_up(b, b_name, WAIT_LIMIT)?;
    }
    Ok(())
}

/// Makes the kernel bridge the given interfaces of `ns`. The bridge forwards at once between those
/// that are up.
pub fn bridge(ns: &Netns, name: &str, members: &[&str]) -> Result<()> {
    let mut lines = vec![format!("link add name {name} type bridge stp_state 0 forward_delay 0")];
    lines.extend(members.iter().map(|member| format!("link set {member} master {name}")));
    lines.push(format!("link set {name} up"));
    ns.ip_batch(&lines)
}

/// An interface as `ip -json -stats link show` tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkInfo {
    /// Its number.
    pub index: u32,
    /// Its name, without the peer that `ip` appends in text.
    pub name: String,
    /// Hardware address.
    pub mac: String,
    /// Largest packet in bytes.
    pub mtu: u32,
    /// True if it is administratively up.
    pub up: bool,
    /// Operational state: `UP`, `DOWN`, `UNKNOWN`, `LOWERLAYERDOWN` …
    pub operstate: String,
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets received and dropped.
    pub rx_dropped: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets dropped before they were sent.
    pub tx_dropped: u64,
}

pub(crate) fn parse_links(json: &str) -> Result<Vec<LinkInfo>> {
    let links: Vec<Value> = serde_json::from_str(json)
        .with_context(|| format!("ip printed no list of interfaces but {json:?}"))?;
    // Older versions of ip print an empty object for each interface that a filter left out.
    Ok(links.iter().filter(|link| link["ifname"].is_string()).map(link_info).collect())
}

fn link_info(link: &Value) -> LinkInfo {
    let text = |key: &str| link[key].as_str().unwrap_or_default().to_owned();
    let number = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
    let stats = if link["stats64"].is_object() { &link["stats64"] } else { &link["stats"] };
    let count = |side: &str, key: &str| stats[side][key].as_u64().unwrap_or(0);
    LinkInfo {
        index: number(&link["ifindex"]),
        name: text("ifname"),
        mac: text("address"),
        mtu: number(&link["mtu"]),
        up: link["flags"].as_array().is_some_and(|flags| flags.iter().any(|flag| flag == "UP")),
        operstate: text("operstate"),
        rx_packets: count("rx", "packets"),
        rx_bytes: count("rx", "bytes"),
        rx_dropped: count("rx", "dropped"),
        tx_packets: count("tx", "packets"),
        tx_bytes: count("tx", "bytes"),
        tx_dropped: count("tx", "dropped"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use thalweg_testkit::lab_test;

    #[test]
    fn links_are_read_from_json() {
        let json = r#"[{}, {"ifindex":2,"ifname":"eth0","flags":["BROADCAST","UP"],"mtu":1500,
            "operstate":"UP","address":"02:00:00:00:00:01",
            "stats64":{"rx":{"bytes":90,"packets":2,"dropped":1},"tx":{"bytes":7,"packets":1}}}]"#;
        let links = parse_links(json).unwrap();
        assert_eq!(links.len(), 1);
        let link = &links[0];
        assert_eq!((link.index, link.name.as_str(), link.up, link.mtu), (2, "eth0", true, 1500));
        assert_eq!((link.rx_packets, link.rx_bytes, link.rx_dropped), (2, 90, 1));
        assert_eq!((link.tx_packets, link.tx_bytes, link.tx_dropped), (1, 7, 0));
        assert!(parse_links("nonsense").is_err());
    }

    lab_test! {
        fn a_pair_is_set_up_as_told() {
            let (a, b) = (Netns::new("a")?, Netns::new("b")?);
            let options = LinkOptions { mtu: 9000, queues: 2, ..LinkOptions::default() }
                .mac("02:00:00:00:00:0a")
                .address("10.0.0.1/24");
            let other = LinkOptions { up: false, ..LinkOptions::default() };
            veth((&a, "one", &options), (&b, "two", &other))?;
            let link = a.link("one")?;
            assert_eq!((link.mtu, link.mac.as_str(), link.up), (9000, "02:00:00:00:00:0a", true));
            assert!(!b.link("two")?.up);
            assert!(a.ip("address show dev one")?.contains("10.0.0.1/24"));
            let waited = wait_for_link_up(&a, "one", Duration::from_millis(1));
            assert!(waited.unwrap_err().to_string().contains("NoCarrier"));
            b.ip("link set two up")?;
            wait_for_link_up(&a, "one", WAIT_LIMIT)
        }

        fn offloads_go_off_and_on() {
            let (a, b) = (Netns::new("a")?, Netns::new("b")?);
            let (on, off) = (LinkOptions { offloads: Offloads::ON, ..LinkOptions::default() },
                LinkOptions::default());
            veth((&a, "one", &on), (&b, "two", &off))?;
            crate::require_tools(&["ethtool"])?;
            for (ns, dev, state) in [(&a, "one", "on"), (&b, "two", "off")] {
                let features = ns.command("ethtool").args(["-k", dev]).output()?;
                for feature in [
                    "tx-checksum-ip-generic",
                    "tx-tcp-segmentation",
                    "tx-udp-segmentation",
                    "generic-segmentation-offload",
                    "generic-receive-offload",
                    "tx-vlan-offload",
                ] {
                    let line = features.lines().find(|line| line.trim().starts_with(feature));
                    let line = line.unwrap_or_default();
                    assert!(line.contains(&format!(": {state}")), "{dev}: {feature}: {line}");
                }
            }
            let error = set_offloads(&a, "nope", Offloads::OFF).unwrap_err();
            assert!(format!("{error:#}").contains("nope"), "{error:#}");
            Ok(())
        }
    }
}
