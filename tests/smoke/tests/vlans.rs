//! VLANs with an Open vSwitch on the other side: hosts without tags behind its access ports, the
//! router behind a trunk.

use anyhow::{Result, ensure};
use thalweg_smoke::{Config, Ovs, OvsOptions, Router};
use thalweg_testkit::{
    IperfOptions, LinkOptions, Netns, PingOptions, WAIT_LIMIT, iperf3, lab_test, ping, veth,
    wait_until_seen,
};

/// `left` in VLAN 10 and `right` in VLAN 20 of a switch; the router has both on one link.
struct Stick {
    left: Netns,
    right: Netns,
    router: Netns,
    _switch: Ovs,
}

/// What a tagged frame adds.
const TAG: u32 = 4;

impl Stick {
    fn new(left_address: &str, right_address: &str) -> Result<Stick> {
        let [left, right, router, switch] = ["left", "right", "router", "switch"].map(Netns::new);
        let (left, right, router, switch) = (left?, right?, router?, switch?);
        let side = LinkOptions::default();
        let host = |address: &str| LinkOptions::default().address(address);
        veth((&left, "eth0", &host(left_address)), (&switch, "p1", &side))?;
        veth((&right, "eth0", &host(right_address)), (&switch, "p2", &side))?;
        let trunk = LinkOptions { mtu: 1500 + TAG, ..LinkOptions::default() };
        veth((&router, "eth0", &trunk), (&switch, "p3", &trunk))?;
        router.capture("eth0")?;
        let ovs = Ovs::start(&switch, &["p1", "p2", "p3"], &OvsOptions::default())?;
        ovs.vsctl(&["set", "port", "p1", "tag=10"])?;
        ovs.vsctl(&["set", "port", "p2", "tag=20"])?;
        ovs.vsctl(&["set", "port", "p3", "trunks=10,20"])?;
        ovs.add_flows(&["actions=NORMAL"])?;
        Ok(Stick { left, right, router, _switch: ovs })
    }

    /// Pings and TCP between the hosts, in both directions.
    fn hosts_talk(&self, right: [u8; 4]) -> Result<()> {
        ping(&self.left, right, &PingOptions::default())?.all_answered()?;
        for reverse in [false, true] {
            let options = IperfOptions { reverse, ..IperfOptions::default() };
            let result = iperf3(&self.left, &self.right, right, &options)?;
            ensure!(result.bits_per_s > 1e6, "{} bit/s, reverse: {reverse}", result.bits_per_s);
        }
        Ok(())
    }
}

lab_test! {
    /// Both networks are routed on one link, and the router counts by VLAN.
    fn a_router_on_a_stick() {
        let stick = Stick::new("10.10.0.2/24", "10.20.0.2/24")?;
        stick.left.ip("route add default via 10.10.0.1")?;
        stick.right.ip("route add default via 10.20.0.1")?;
        let config = Config::empty().commands(
            "create host-interface name eth0
             create sub-interfaces host-eth0 10
             create sub-interfaces host-eth0 20
             set interface ip address host-eth0.10 10.10.0.1/24
             set interface ip address host-eth0.20 10.20.0.1/24
             set interface state host-eth0 up
             set interface state host-eth0.10 up
             set interface state host-eth0.20 up",
        );
        let router = Router::start(&stick.router, &config)?;
        stick.hosts_talk([10, 20, 0, 2])?;
        router.await_rest()?;
        let rx = |name: &str| router.interface_counter(name, "rx_packets");
        // The port last, as packets may still come.
        let (ten, twenty, port) = (rx("host-eth0.10")?, rx("host-eth0.20")?, rx("host-eth0")?);
        ensure!(ten > 10 && twenty > 10 && port >= ten + twenty, "{port}, {ten}, {twenty}");
        // Of a VLAN that goes, packets are counted; the other goes on.
        router.cli("delete sub-interface host-eth0.20")?;
        ping(&stick.left, [10, 10, 0, 1], &PingOptions::default())?.all_answered()?;
        ensure!(router.cli("ping 10.10.0.2 repeat 2")?.contains("0% packet loss"));
        router.stop().map(drop)
    }

    /// Two VLANs are one network: tags are rewritten between them, and a BVI has an address there.
    fn two_vlans_are_bridged() {
        let stick = Stick::new("10.10.0.2/24", "10.10.0.3/24")?;
        let config = Config::empty().commands(
            "create host-interface name eth0
             create sub-interfaces host-eth0 10
             create sub-interfaces host-eth0 20
             create loopback interface
             set interface l2 bridge host-eth0.10 1
             set interface l2 bridge host-eth0.20 1
             set interface l2 tag-rewrite host-eth0.10 pop 1
             set interface l2 tag-rewrite host-eth0.20 pop 1
             set interface l2 bridge loop0 1 bvi
             set interface ip address loop0 10.10.0.1/24
             set interface state loop0 up
             set interface state host-eth0 up
             set interface state host-eth0.10 up
             set interface state host-eth0.20 up",
        );
        let router = Router::start(&stick.router, &config)?;
        stick.hosts_talk([10, 10, 0, 3])?;
        for host in [&stick.left, &stick.right] {
            ping(host, [10, 10, 0, 1], &PingOptions::default())?.all_answered()?;
        }
        wait_until_seen(WAIT_LIMIT, "both hosts in the table", || {
            let text = router.cli("show l2fib all").map_err(|e| e.to_string())?;
            let there = text.contains("host-eth0.10") && text.contains("host-eth0.20");
            if there { Ok(()) } else { Err(text) }
        })?;
        router.stop().map(drop)
    }
}
