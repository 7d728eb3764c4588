//! Two interfaces joined at layer 2.

use anyhow::ensure;
use thalweg_smoke::{Config, RawLink, Router};
use thalweg_testkit::{Lab, LabOptions, Middle, Offloads, PingOptions, WAIT_LIMIT, lab_test, ping};
use thalweg_wire::build::Packet;

fn joined() -> Config {
    Config::empty().commands(
        "create host-interface name eth0
         create host-interface name eth1
         set interface l2 xconnect host-eth0 host-eth1
         set interface l2 xconnect host-eth1 host-eth0
         set interface state host-eth0 up
         set interface state host-eth1 up",
    )
}

fn lab(offloads: Offloads) -> thalweg_testkit::Result<Lab> {
    Lab::build(&LabOptions { middle: Middle::Bridge, offloads, ..LabOptions::default() })
}

lab_test! {
    /// The hosts are in one subnet and resolve each other themselves.
    fn hosts_meet_through_a_cross_connect() {
        let lab = lab(Offloads::OFF)?;
        let router = Router::start(&lab.router, &joined())?;
        lab.ping_all()?;
        let neighbours = lab.left.ns.ip("neighbor show dev eth0")?;
        ensure!(neighbours.contains(lab.right.mac), "{neighbours}");
        let largest = PingOptions { size: 1472, dont_fragment: true, ..PingOptions::default() };
        let result = ping(&lab.left.ns, lab.right.addr, &largest)?;
        result.all_answered()?;
        ensure!(result.ttls.iter().all(|ttl| *ttl == 64), "ttl {:?}", result.ttls);
        let text = router.cli("show interface address")?;
        ensure!(text.to_lowercase().contains("xconnect"), "{text}");
        router.stop().map(drop)
    }

    fn tcp_through_a_cross_connect() {
        for offloads in [Offloads::OFF, Offloads::ON] {
            let lab = lab(offloads)?;
            let router = Router::start(&lab.router, &joined())?;
            crate::throughput::tcp_both_ways(&lab)?;
            router.stop()?;
        }
        Ok(())
    }

    /// Frames of any type, with tags too, arrive as they were sent.
    fn frames_pass_unchanged() {
        let lab = lab(Offloads::OFF)?;
        let router = Router::start(&lab.router, &joined())?;
        let left = RawLink::open(&lab.left.ns, "eth0")?;
        let right = RawLink::open(&lab.right.ns, "eth0")?;
        let (a, b) = (lab.left.mac.parse()?, lab.right.mac.parse()?);
        let plain = || Packet::new().ether(a, b);
        let frames = [
            plain().ethertype(0x88b5).payload(&[7; 50]).build(),
            plain().ethertype(0x88cc).payload_len(1500).build(),
            plain().vlan(100).ethertype(0x88b5).payload(b"tagged once").padded().build(),
            plain().dot1ad(7).vlan(9).ethertype(0x88b5).payload(b"tagged twice").padded().build(),
            plain().mpls(16).ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).udp(1, 2).build(),
            plain().build(),
        ];
        for frame in &frames {
            left.send(frame)?;
            right.receive(WAIT_LIMIT, "the frame", |seen| {
                // A tag may be kept aside by the packet socket of this test.
                (seen == frame || seen.len() + 4 == frame.len() && seen.ends_with(&frame[18..]))
                    .then_some(())
            })?;
        }
        router.stop().map(drop)
    }

    /// `set interface l3` gives the interface back to routing.
    fn back_to_layer_3() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &joined())?;
        for (interface, address) in [("host-eth0", "10.10.1.1/24"), ("host-eth1", "10.10.2.1/24")] {
            router.cli(&format!("set interface l3 {interface}"))?;
            router.cli(&format!("set interface ip address {interface} {address}"))?;
        }
        lab.ping_all()?;
        router.stop().map(drop)
    }
}
