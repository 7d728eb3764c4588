//! Interfaces joined by a bridge domain.

use anyhow::ensure;
use thalweg_smoke::{Config, RawLink, Router};
use thalweg_testkit::{Lab, LabOptions, Middle, Offloads, WAIT_LIMIT, lab_test, wait_until_seen};
use thalweg_wire::build::Packet;

fn bridged() -> Config {
    Config::empty().commands(
        "create host-interface name eth0
         create host-interface name eth1
         create bridge-domain 10 bd-tag lab
         set interface l2 bridge host-eth0 10
         set interface l2 bridge host-eth1 10
         set interface state host-eth0 up
         set interface state host-eth1 up",
    )
}

fn lab(offloads: Offloads) -> thalweg_testkit::Result<Lab> {
    Lab::build(&LabOptions { middle: Middle::Bridge, offloads, ..LabOptions::default() })
}

/// The text of `show l2fib all`, once it names both hosts.
fn both_known(router: &Router, lab: &Lab) -> anyhow::Result<()> {
    wait_until_seen(WAIT_LIMIT, "both hosts' addresses in the table", || {
        let text = router.cli("show l2fib all").map_err(|e| e.to_string())?;
        let there = text.contains(lab.left.mac) && text.contains(lab.right.mac);
        if there { Ok(()) } else { Err(text) }
    })
}

lab_test! {
    /// ARP is flooded, replies are not, and both hosts are learned where they are.
    fn hosts_meet_through_a_bridge_domain() {
        let lab = lab(Offloads::OFF)?;
        let router = Router::start(&lab.router, &bridged())?;
        lab.ping_all()?;
        both_known(&router, &lab)?;
        let table = router.json("show l2fib all")?;
        for (host, port) in [(lab.left.mac, "host-eth0"), (lab.right.mac, "host-eth1")] {
            let all = table["addresses"].as_array().cloned().unwrap_or_default();
            let found = all.iter().find(|a| a["mac"] == *host);
            ensure!(found.is_some_and(|a| a["interface"] == port), "{host}: {table}");
        }
        let text = router.cli("show bridge-domain 10 detail")?;
        for word in ["Learn-co", "host-eth0", "host-eth1", "BD-Tag: lab", "l2-flood"] {
            ensure!(text.contains(word), "`{word}' is missing: {text}");
        }
        ensure!(router.cli("show mode")?.contains("l2 bridge host-eth0 bd_id 10 shg 0"));
        // Known or not, they reach each other.
        router.cli("clear l2fib")?;
        lab.ping_all()?;
        router.cli("set bridge-domain learn 10 disable\nclear l2fib")?;
        lab.ping_all()?;
        ensure!(router.json("show l2fib")?["total"] == 0);
        router.stop().map(drop)
    }

    fn tcp_through_a_bridge_domain() {
        for offloads in [Offloads::OFF, Offloads::ON] {
            let lab = lab(offloads)?;
            let router = Router::start(&lab.router, &bridged())?;
            crate::throughput::tcp_both_ways(&lab)?;
            router.stop()?;
        }
        Ok(())
    }

    /// GSO packets and long frames are flooded whole.
    fn flooding_keeps_frames_whole() {
        let lab = lab(Offloads::ON)?;
        let router = Router::start(&lab.router, &bridged())?;
        router.cli("set bridge-domain learn 10 disable")?;
        crate::throughput::tcp_both_ways(&lab)?;
        router.stop().map(drop)
    }

    /// A host that moves is found at its new port with its next frames.
    fn a_station_moves() {
        let lab = lab(Offloads::OFF)?;
        let router = Router::start(&lab.router, &bridged())?;
        let left = RawLink::open(&lab.left.ns, "eth0")?;
        let right = RawLink::open(&lab.right.ns, "eth0")?;
        let mac: thalweg_wire::MacAddr = "02:00:00:00:00:77".parse()?;
        let hello = |to| Packet::new().ether(mac, to).ethertype(0x88b5).payload(&[1; 50]).build();
        let at = |port: &str| {
            let what = format!("the host at {port}");
            wait_until_seen(WAIT_LIMIT, &what, || {
                let table = router.json("show l2fib all").map_err(|e| e.to_string())?;
                let all = table["addresses"].as_array().cloned().unwrap_or_default();
                let there = |a: &serde_json::Value| {
                    a["mac"] == mac.to_string() && a["interface"] == port
                };
                if all.iter().any(there) { Ok(()) } else { Err(table.to_string()) }
            })
        };
        left.send(&hello(lab.right.mac.parse()?))?;
        at("host-eth0")?;
        right.send(&hello(lab.left.mac.parse()?))?;
        at("host-eth1")?;
        ensure!(router.json("show l2fib")?["events"]["moved"] == 1);
        router.stop().map(drop)
    }
}
