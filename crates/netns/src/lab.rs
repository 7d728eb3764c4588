//! The usual three namespaces: a host, a router, a host.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::Result;

use crate::ethtool::Offloads;
use crate::link::{LinkOptions, bridge, veth};
use crate::netns::Netns;
use crate::ping::{PingOptions, ping};

/// Forwarder between the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Middle {
    /// Nobody yet: the hosts have a subnet each, the middle's interfaces are up without
    /// addresses, and a router under test takes `.1` of both.
    Router,
    /// Nobody yet: both hosts are in one subnet, for a bridge or cross-connect under test.
    Bridge,
    /// The kernel, by routing: the baseline for routers.
    KernelRouter,
    /// The kernel, by bridging: the baseline for bridges.
    KernelBridge,
}

/// Setup of a [`Lab`].
#[derive(Clone, Debug)]
pub struct LabOptions {
    /// The forwarder.
    pub middle: Middle,
    /// Prefix of names: with `p` the namespaces are named `p-left`, `p-router`, `p-right` for `ip
    /// netns exec`; without, they have no names.
    pub name_prefix: Option<String>,
    /// Largest packet in bytes, everywhere.
    pub mtu: u32,
    /// Offloads of all interfaces.
    pub offloads: Offloads,
    /// Transmit and receive queues of all interfaces.
    pub queues: u16,
    /// Captures the hosts' last packets, to be written if the test fails. Captures cost some
    /// processor time; scenarios that measure switch it off.
    pub capture: bool,
}

impl Default for LabOptions {
    fn default() -> Self {
        LabOptions {
            middle: Middle::Router,
            name_prefix: None,
            mtu: 1500,
            offloads: Offloads::OFF,
            queues: 1,
            capture: true,
        }
    }
}

impl LabOptions {
    /// Options for scenarios that measure: nothing is captured.
    pub fn measured() -> LabOptions {
        LabOptions { capture: false, ..LabOptions::default() }
    }
}

/// A host of a [`Lab`] and its link to the middle.
#[derive(Clone, Debug)]
pub struct Side {
    /// The host's namespace.
    pub ns: Netns,
    /// The host's interface, `eth0`.
    pub dev: &'static str,
    /// The host's address; its subnet is a /24.
    pub addr: Ipv4Addr,
    /// The host's hardware address.
    pub mac: &'static str,
    /// The address that the host routes through; its own subnet has no other use for it.
    pub gateway: Ipv4Addr,
    /// The middle's interface on this side: `eth0` on the left, `eth1` on the right.
    pub router_dev: &'static str,
    /// The middle's hardware address on this side.
    pub router_mac: &'static str,
}

impl Side {
    /// The host's subnet, such as `10.10.1.0/24`.
    pub fn subnet(&self) -> String {
        let [a, b, c, _] = self.addr.octets();
        format!("{a}.{b}.{c}.0/24")
    }
}

/// `left — router — right`, each in a namespace, joined by virtual Ethernet.
///
/// | namespace | interface | hardware address | address, routed | address, bridged |
/// |---|---|---|---|---|
/// | left | `eth0` | `02:00:00:00:01:02` | 10.10.1.2/24 | 10.10.1.2/24 |
/// | router | `eth0` | `02:00:00:00:01:01` | 10.10.1.1 | |
/// | router | `eth1` | `02:00:00:00:02:01` | 10.10.2.1 | |
/// | right | `eth0` | `02:00:00:00:02:02` | 10.10.2.2/24 | 10.10.1.3/24 |
///
/// IPv6 is off in all three, so that nothing is sent unasked.
#[derive(Debug)]
pub struct Lab {
    /// The host on the left.
    pub left: Side,
    /// The namespace in the middle.
    pub router: Netns,
    /// The host on the right.
    pub right: Side,
}

impl Lab {
    /// A lab without anyone to forward: `Lab::build(LabOptions::default())`.
    pub fn new() -> Result<Lab> {
        Lab::build(&LabOptions::default())
    }

    /// A lab in which the kernel routes.
    pub fn kernel_router() -> Result<Lab> {
        Lab::build(&LabOptions { middle: Middle::KernelRouter, ..LabOptions::default() })
    }

    /// A lab in which the kernel bridges.
    pub fn kernel_bridge() -> Result<Lab> {
        Lab::build(&LabOptions { middle: Middle::KernelBridge, ..LabOptions::default() })
    }

    /// Sets up a lab; all its links are up when this returns.
    pub fn build(options: &LabOptions) -> Result<Lab> {
        let routed = matches!(options.middle, Middle::Router | Middle::KernelRouter);
        let make = |part: &str| match &options.name_prefix {
            Some(prefix) => Netns::named(&format!("{prefix}-{part}")),
            None => Netns::new(part),
        };
        let right_addr = if routed { [10, 10, 2, 2] } else { [10, 10, 1, 3] };
        let right_gateway = if routed { [10, 10, 2, 1] } else { [10, 10, 1, 1] };
        let lab = Lab {
            left: Side {
                ns: make("left")?,
                dev: "eth0",
                addr: Ipv4Addr::new(10, 10, 1, 2),
                mac: "02:00:00:00:01:02",
                gateway: Ipv4Addr::new(10, 10, 1, 1),
                router_dev: "eth0",
                router_mac: "02:00:00:00:01:01",
            },
            router: make("router")?,
            right: Side {
                ns: make("right")?,
                dev: "eth0",
                addr: right_addr.into(),
                mac: "02:00:00:00:02:02",
                gateway: right_gateway.into(),
                router_dev: "eth1",
                router_mac: "02:00:00:00:02:01",
            },
        };
        for side in [&lab.left, &lab.right] {
            lab.join(side, options, routed)?;
        }
        match options.middle {
            Middle::KernelRouter => enable_ipv4_forwarding(&lab.router)?,
            Middle::KernelBridge => bridge(&lab.router, "br0", &["eth0", "eth1"])?,
            Middle::Router | Middle::Bridge => {}
        }
        Ok(lab)
    }

    fn join(&self, side: &Side, options: &LabOptions, routed: bool) -> Result<()> {
        let common = LinkOptions {
            mtu: options.mtu,
            offloads: options.offloads,
            queues: options.queues,
            ..LinkOptions::default()
        };
        let host = common.clone().mac(side.mac).address(format!("{}/24", side.addr));
        let mut middle = common.mac(side.router_mac);
        if options.middle == Middle::KernelRouter {
            middle = middle.address(format!("{}/24", side.gateway));
        }
        veth((&side.ns, side.dev, &host), (&self.router, side.router_dev, &middle))?;
        if options.capture {
            side.ns.capture(side.dev)?;
        }
        if routed {
            side.ns.ip(&format!("route add default via {}", side.gateway))?;
        }
        Ok(())
    }

    /// Leaves named namespaces in place when the lab is dropped.
    pub fn keep(&self) {
        for ns in [&self.left.ns, &self.router, &self.right.ns] {
            ns.keep();
        }
    }

    /// Pings each host from the other.
    ///
    /// # Errors
    /// If an answer is missing.
    pub fn ping_all(&self) -> Result<()> {
        let options =
            PingOptions { count: 3, interval: Duration::from_millis(5), ..PingOptions::default() };
        ping(&self.left.ns, self.right.addr, &options)?.all_answered()?;
        ping(&self.right.ns, self.left.addr, &options)?.all_answered()
    }
}

/// Makes the kernel route IPv4 in `ns`, whatever the ways back.
pub fn enable_ipv4_forwarding(ns: &Netns) -> Result<()> {
    for (key, value) in [
        ("net/ipv4/ip_forward", "1"),
        ("net/ipv4/conf/all/rp_filter", "0"),
        ("net/ipv4/conf/all/send_redirects", "0"),
    ] {
        ns.set_sysctl(key, value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_testkit::lab_test;

    lab_test! {
        fn hosts_ping_through_a_kernel_router() {
            let lab = Lab::kernel_router()?;
            lab.ping_all()?;
            assert!(lab.router.snmp()?["Ip.ForwDatagrams"] >= 12);
            assert!(lab.router.link("eth1")?.tx_packets >= 6);
            Ok(())
        }

        fn hosts_ping_through_a_kernel_bridge() {
            Lab::kernel_bridge()?.ping_all()
        }

        fn without_a_router_nothing_passes() {
            let lab = Lab::new()?;
            let options = PingOptions {
                count: 2,
                interval: Duration::from_millis(5),
                patience: Duration::from_millis(50),
                ..PingOptions::default()
            };
            let result = ping(&lab.left.ns, lab.right.addr, &options)?;
            assert_eq!((result.sent, result.received), (2, 0));
            assert_eq!(lab.left.subnet(), "10.10.1.0/24");
            Ok(())
        }

        fn a_named_lab_is_found_by_ip() {
            let prefix = format!("lab{}", std::process::id());
            let lab = Lab::build(&LabOptions {
                middle: Middle::KernelRouter,
                name_prefix: Some(prefix.clone()),
                ..LabOptions::default()
            })?;
            crate::Cmd::new("ip")
                .args(["netns", "exec", &format!("{prefix}-left"), "ping", "-c", "1"])
                .arg(lab.right.addr.to_string())
                .output()
                .map(drop)
        }
    }
}
