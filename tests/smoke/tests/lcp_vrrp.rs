//! Linux control plane: keepalived at a twin is one of two virtual routers (VRRP, RFC 5798).

use anyhow::{Context, Result, ensure};
use thalweg_smoke::{Config, Keepalived, Router};
use thalweg_testkit::{
    LinkOptions, Netns, PingOptions, WAIT_LIMIT, bridge, lab_test, ping, veth, wait_until_seen,
};

/// Address of the virtual router.
const VIRTUAL: [u8; 4] = [10, 1, 0, 100];
/// A host behind the router.
const BEHIND: [u8; 4] = [10, 2, 0, 2];

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
        let plain = LinkOptions::default();
        let with = |address: &str| LinkOptions::default().address(address);
        let switch = &edge._switch;
        veth((&edge.router, "e0", &plain), (switch, "p0", &plain))?;
        veth((&edge.other, "eth0", &with("10.1.0.3/24")), (switch, "p1", &plain))?;
        veth((&edge.host, "eth0", &with("10.1.0.2/24")), (switch, "p2", &plain))?;
        veth((&edge.router, "e1", &plain), (&edge._behind, "eth0", &with("10.2.0.2/24")))?;
        bridge(switch, "br0", &["p0", "p1", "p2"])?;
        edge.host.ip("route add default via 10.1.0.100")?;
        edge._behind.ip("route add default via 10.2.0.1")?;
        edge.router.capture("e0")?;
        Ok(edge)
    }

    fn start(&self) -> Result<Router> {
        let config = Config::empty().commands(&format!(
            "create host-interface name e0
             create host-interface name e1
             set interface ip address host-e0 10.1.0.1/24
             set interface ip address host-e1 10.2.0.1/24
             set interface state host-e0 up
             set interface state host-e1 up
             lcp lcp-sync on
             lcp create host-e0 host-if e0 netns {}",
            self.plane.descriptor_path().display()
        ));
        let router = Router::start(&self.router, &config)?;
        wait_until_seen(WAIT_LIMIT, "the twin", || {
            let shown = self.plane.ip("-br address show dev e0")?;
            ensure!(shown.contains("10.1.0.1/24") && shown.contains("UP"), "{shown}");
            Ok(())
        })?;
        Ok(router)
    }
}

fn config(link: &str, priority: u8, use_vmac: bool) -> String {
    let vmac = if use_vmac { "use_vmac vrrp.51" } else { "" };
    format!(
        "vrrp_instance one {{\n interface {link}\n {vmac}\n state BACKUP\n virtual_router_id 51\n \
         priority {priority}\n advert_int 1\n virtual_ipaddress {{\n  10.1.0.100/32\n }}\n}}\n"
    )
}

/// Waits until a namespace has the virtual address, or has not.
fn until_master(ns: &Netns, is: bool, daemon: &Keepalived) -> Result<()> {
    wait_until_seen(WAIT_LIMIT, &format!("{} to be master: {is}", ns.label()), || {
        let shown = ns.ip("-br address")?;
        ensure!(shown.contains("10.1.0.100") == is, "{shown}{}", daemon.said());
        Ok(())
    })
}

/// Waits until a host is answered through the virtual router, which it knows by a MAC address, and
/// by it.
fn until_answered(edge: &Edge, router: &Router, mac: Option<&str>) -> Result<()> {
    let one = PingOptions { count: 1, ..PingOptions::default() };
    let own = router.mac("host-e0")?.to_string();
    let answered = |to: [u8; 4], mac: &str| {
        wait_until_seen(WAIT_LIMIT, &format!("an answer from {to:?}"), || {
            let got = ping(&edge.host, to, &one)?;
            let known = edge.host.ip("neighbour show 10.1.0.100 dev eth0")?;
            ensure!(got.received == 1 && known.contains(mac), "{}{known}", got.text);
            Ok(())
        })
    };
    answered(BEHIND, mac.unwrap_or(&own))?;
    // The kernel asks for the host by the twin, from the virtual address.
    answered(VIRTUAL, "lladdr")?;
    // The next to ask gets the right one.
    edge.host.ip("neighbour flush dev eth0")?;
    answered(BEHIND, mac.unwrap_or(&own))
}

lab_test! {
    /// The virtual router has the MAC address of its group, on a link of its own on the twin.
    fn a_virtual_router_with_a_mac_address_of_its_own() {
        let edge = Edge::new()?;
        let router = edge.start()?;
        let ours = Keepalived::start(&edge.plane, &config("e0", 200, true))?;
        until_master(&edge.plane, true, &ours)?;
        let virtual_mac = "00:00:5e:00:01:33";
        wait_until_seen(WAIT_LIMIT, "the MAC address", || {
            let shown = router.cli("show interface secondary-mac-address host-e0")?;
            ensure!(shown.contains(virtual_mac), "{shown}");
            Ok(())
        })?;
        until_answered(&edge, &router, Some(virtual_mac)).with_context(|| ours.said())?;
        // MAC and IP addresses from Linux are not saved.
        let files = tempfile::tempdir()?;
        let file = files.path().join("saved.yaml");
        router.cli(&format!("config save {}", file.display()))?;
        let saved = std::fs::read_to_string(&file)?;
        ensure!(!saved.contains(virtual_mac) && !saved.contains("10.1.0.100"), "{saved}");
        // The other one hears the master, and takes over when it is gone.
        let theirs = Keepalived::start(&edge.other, &config("eth0", 100, true))?;
        until_master(&edge.other, false, &theirs)?;
        ensure!(router.json("show punt")?.as_array().context("a list")?.iter().all(|row| {
            row["class"] != "vrrp" || row["limited"] == 0
        }));
        drop(ours);
        // The daemon may have deleted its link itself.
        let _ = edge.plane.ip("link delete vrrp.51");
        until_master(&edge.other, true, &theirs)?;
        wait_until_seen(WAIT_LIMIT, "the MAC address to go", || {
            let shown = router.cli("show interface secondary-mac-address host-e0")?;
            ensure!(!shown.contains(virtual_mac), "{shown}");
            Ok(())
        })?;
        // A greater priority takes it back, as advertisements reach it.
        let ours = Keepalived::start(&edge.plane, &config("e0", 200, true))?;
        until_master(&edge.plane, true, &ours)?;
        until_master(&edge.other, false, &theirs).with_context(|| ours.said())?;
        until_answered(&edge, &router, Some(virtual_mac)).with_context(|| ours.said())?;
        router.stop().map(drop)
    }

    /// Without one, the address is one of the twin's.
    fn a_virtual_router_with_the_mac_address_of_the_interface() {
        let edge = Edge::new()?;
        let router = edge.start()?;
        let theirs = Keepalived::start(&edge.other, &config("eth0", 100, false))?;
        until_master(&edge.other, true, &theirs)?;
        let ours = Keepalived::start(&edge.plane, &config("e0", 200, false))?;
        until_master(&edge.plane, true, &ours)?;
        until_master(&edge.other, false, &theirs).with_context(|| ours.said())?;
        until_answered(&edge, &router, None).with_context(|| ours.said())?;
        router.stop().map(drop)
    }
}
