//! Linux control plane: keepalived at a twin is one of two virtual routers (VRRP, RFC 5798), for
//! IPv4 and for IPv6.

use anyhow::{Context, Result, ensure};
use std::net::IpAddr;
use thalweg_smoke::{Config, Keepalived, Router};
use thalweg_testkit::{
    LinkOptions, Netns, PingOptions, WAIT_LIMIT, bridge, lab_test, ping, veth, wait_until_seen,
};

/// A version of IP.
struct Of {
    /// Name of keepalived's instance.
    name: &'static str,
    /// Address of the virtual router.
    ip: &'static str,
    /// Length of its prefix.
    length: u8,
    /// The link that has it, with `use_vmac`, and its MAC address.
    vmac: (&'static str, &'static str),
    /// A host behind the router.
    behind: &'static str,
}

const VERSIONS: [Of; 2] = [
    Of {
        name: "four",
        ip: "10.1.0.100",
        length: 32,
        vmac: ("vrrp.51", "00:00:5e:00:01:33"),
        behind: "10.2.0.2",
    },
    Of {
        name: "six",
        ip: "fd01::100",
        length: 128,
        vmac: ("vrrp6.51", "00:00:5e:00:02:33"),
        behind: "fd02::2",
    },
];

/// The router, the namespace of its twins, another virtual router on the link, a host on it, and
/// one behind the router.
struct Edge {
    router: Netns,
    plane: Netns,
    other: Netns,
    host: Netns,
    _switch: Netns,
    _behind: Netns,
}

impl Edge {
    fn new() -> Result<Edge> {
        let of = |name: &str| Netns::new(format!("vrrp-{name}"));
        let edge = Edge {
            router: of("router")?,
            plane: of("plane")?,
            other: of("other")?,
            host: of("host")?,
            _switch: of("switch")?,
            _behind: of("behind")?,
        };
        for ns in [&edge.plane, &edge.other, &edge.host, &edge._behind] {
            for (what, value) in [("accept_dad", "0"), ("disable_ipv6", "0")] {
                for which in ["all", "default"] {
                    ns.set_sysctl(&format!("net/ipv6/conf/{which}/{what}"), value)?;
                }
            }
        }
        // Both links of keepalived hear questions for either's address.
        edge.plane.set_sysctl("net/ipv4/conf/all/arp_ignore", "1")?;
        let plain = LinkOptions::default();
        let with = |net: u8, host: u8| {
            let [v4, v6] = [format!("10.{net}.0.{host}/24"), format!("fd0{net}::{host}/64")];
            LinkOptions::default().address(&v4).address(&v6)
        };
        let switch = &edge._switch;
        veth((&edge.router, "e0", &plain), (switch, "p0", &plain))?;
        veth((&edge.other, "eth0", &with(1, 3)), (switch, "p1", &plain))?;
        veth((&edge.host, "eth0", &with(1, 2)), (switch, "p2", &plain))?;
        veth((&edge.router, "e1", &plain), (&edge._behind, "eth0", &with(2, 2)))?;
        bridge(switch, "br0", &["p0", "p1", "p2"])?;
        for of in &VERSIONS {
            let version = if of.ip.contains(':') { "-6" } else { "-4" };
            edge.host.ip(&format!("{version} route add default via {}", of.ip))?;
        }
        edge._behind.ip("route add default via 10.2.0.1")?;
        edge._behind.ip("-6 route add default via fd02::1")?;
        edge.router.capture("e0")?;
        Ok(edge)
    }

    fn start(&self) -> Result<Router> {
        let config = Config::empty().commands(&format!(
            "create host-interface name e0
             create host-interface name e1
             set interface ip address host-e0 10.1.0.1/24
             set interface ip address host-e1 10.2.0.1/24
             set interface ip address host-e0 fd01::1/64
             set interface ip address host-e1 fd02::1/64
             set interface state host-e0 up
             set interface state host-e1 up
             lcp lcp-sync on
             lcp create host-e0 host-if e0 netns {}",
            self.plane.descriptor_path().display()
        ));
        let router = Router::start(&self.router, &config)?;
        wait_until_seen(WAIT_LIMIT, "the twin", || {
            let shown = self.plane.ip("-br address show dev e0")?;
            let addresses = ["10.1.0.1/24", "fd01::1/64"];
            ensure!(
                addresses.iter().all(|ip| shown.contains(ip)) && shown.contains("UP"),
                "{shown}"
            );
            Ok(())
        })?;
        Ok(router)
    }
}

/// An instance for each version.
fn config(link: &str, priority: u8, use_vmac: bool) -> String {
    let instance = |of: &Of| {
        let vmac = if use_vmac { format!("use_vmac {}", of.vmac.0) } else { String::new() };
        format!(
            "vrrp_instance {} {{\n interface {link}\n {vmac}\n state BACKUP\n \
             virtual_router_id 51\n priority {priority}\n advert_int 1\n \
             virtual_ipaddress {{\n  {}/{}\n }}\n}}\n",
            of.name, of.ip, of.length
        )
    };
    VERSIONS.iter().map(instance).collect()
}

/// Waits until a namespace has the virtual addresses, or has not.
fn until_master(ns: &Netns, is: bool, daemon: &Keepalived) -> Result<()> {
    wait_until_seen(WAIT_LIMIT, &format!("{} to be master: {is}", ns.label()), || {
        let shown = ns.ip("-br address")?;
        let has = |of: &Of| shown.contains(&format!("{}/", of.ip));
        ensure!(VERSIONS.iter().all(|of| has(of) == is), "{shown}{}", daemon.said());
        Ok(())
    })
}

/// Waits until a host is answered through the virtual router, which it knows by a MAC address, and
/// by it.
fn until_answered(edge: &Edge, router: &Router, with_vmac: bool) -> Result<()> {
    let one = PingOptions { count: 1, ..PingOptions::default() };
    let own = router.mac("host-e0")?.to_string();
    let answered = |of: &Of, to: &str, mac: &str| {
        let ip: IpAddr = to.parse()?;
        wait_until_seen(WAIT_LIMIT, &format!("an answer from {to}"), || {
            let got = ping(&edge.host, ip, &one)?;
            let known = edge.host.ip(&format!("neighbour show {} dev eth0", of.ip))?;
            ensure!(got.received == 1 && known.contains(mac), "{}{known}", got.text);
            Ok(())
        })
    };
    for of in &VERSIONS {
        let mac = if with_vmac { of.vmac.1 } else { &own };
        answered(of, of.behind, mac)?;
        // The kernel asks for the host by the twin, from the virtual address.
        answered(of, of.ip, "lladdr")?;
        // The next to ask gets the right one.
        edge.host.ip("neighbour flush dev eth0")?;
        answered(of, of.behind, mac)?;
    }
    Ok(())
}

lab_test! {
    /// The virtual router has the MAC address of its group, on a link of its own on the twin.
    fn a_virtual_router_with_a_mac_address_of_its_own() {
        let edge = Edge::new()?;
        let router = edge.start()?;
        let ours = Keepalived::start(&edge.plane, &config("e0", 200, true))?;
        until_master(&edge.plane, true, &ours)?;
        let until_taken = |is: bool| {
            wait_until_seen(WAIT_LIMIT, &format!("the MAC addresses: {is}"), || {
                let shown = router.cli("show interface secondary-mac-address host-e0")?;
                ensure!(VERSIONS.iter().all(|of| shown.contains(of.vmac.1) == is), "{shown}");
                Ok(())
            })
        };
        until_taken(true)?;
        until_answered(&edge, &router, true).with_context(|| ours.said())?;
        // MAC and IP addresses from Linux are not saved.
        let files = tempfile::tempdir()?;
        let file = files.path().join("saved.yaml");
        router.cli(&format!("config save {}", file.display()))?;
        let saved = std::fs::read_to_string(&file)?;
        let has = |of: &Of| saved.contains(of.vmac.1) || saved.contains(of.ip);
        ensure!(!VERSIONS.iter().any(has), "{saved}");
        // The other one hears the master, and takes over when it is gone.
        let theirs = Keepalived::start(&edge.other, &config("eth0", 100, true))?;
        until_master(&edge.other, false, &theirs)?;
        ensure!(router.json("show punt")?.as_array().context("a list")?.iter().all(|row| {
            row["class"] != "vrrp" || row["limited"] == 0
        }));
        drop(ours);
        // The daemon may have deleted its links itself.
        for of in &VERSIONS {
            let _ = edge.plane.ip(&format!("link delete {}", of.vmac.0));
        }
        until_master(&edge.other, true, &theirs)?;
        until_taken(false)?;
        // A greater priority takes it back, as advertisements reach it.
        let ours = Keepalived::start(&edge.plane, &config("e0", 200, true))?;
        until_master(&edge.plane, true, &ours)?;
        until_master(&edge.other, false, &theirs).with_context(|| ours.said())?;
        until_answered(&edge, &router, true).with_context(|| ours.said())?;
        router.stop().map(drop)
    }

    /// Without one, the addresses are the twin's.
    fn a_virtual_router_with_the_mac_address_of_the_interface() {
        let edge = Edge::new()?;
        let router = edge.start()?;
        let theirs = Keepalived::start(&edge.other, &config("eth0", 100, false))?;
        until_master(&edge.other, true, &theirs)?;
        let ours = Keepalived::start(&edge.plane, &config("e0", 200, false))?;
        until_master(&edge.plane, true, &ours)?;
        until_master(&edge.other, false, &theirs).with_context(|| ours.said())?;
        until_answered(&edge, &router, false).with_context(|| ours.said())?;
        router.stop().map(drop)
    }

    /// A client of DHCPv6 has an address without a subnet (RFC 8415 section 18.2.10.1) within that
    /// of its link, which the interface cannot have: the twin is asked, and answers.
    fn an_address_of_dhcpv6_is_the_twins() {
        let edge = Edge::new()?;
        let router = edge.start()?;
        edge.plane.ip("address add fd01::77/128 dev e0")?;
        let one = PingOptions { count: 1, ..PingOptions::default() };
        let ip: IpAddr = "fd01::77".parse()?;
        wait_until_seen(WAIT_LIMIT, "an answer", || {
            let got = ping(&edge.host, ip, &one)?;
            ensure!(got.received == 1, "{}{}", got.text, router.cli("show lcp")?);
            Ok(())
        })?;
        let shown = router.cli("show lcp")?;
        ensure!(shown.contains("does not take address fd01::77/128 of its twin"), "{shown}");
        edge.plane.ip("address delete fd01::77/128 dev e0")?;
        wait_until_seen(WAIT_LIMIT, "no answer", || {
            edge.host.ip("neighbour flush dev eth0")?;
            ensure!(ping(&edge.host, ip, &one)?.received == 0);
            Ok(())
        })?;
        // The router's own address is its own.
        let own: IpAddr = "fd01::1".parse()?;
        ping(&edge.host, own, &PingOptions::default())?.all_answered()?;
        router.stop().map(drop)
    }
}
