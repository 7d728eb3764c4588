//! VLANs with an Open vSwitch on the other side: hosts without tags behind its access ports, the
//! router behind a trunk.

use anyhow::{Result, ensure};
use thalweg_smoke::{Config, Ovs, OvsOptions, RawLink, Router};
use thalweg_testkit::{
    Capture, Cmd, IperfOptions, Lab, LabOptions, LinkOptions, Middle, Netns, Offloads, PingOptions,
    WAIT_LIMIT, iperf3, lab_test, ping, tshark_fields, veth, wait_until_seen,
};
use thalweg_wire::MacAddr;
use thalweg_wire::build::Packet;

/// `left` in VLAN 10 and `right` in VLAN 20 of a switch; the router has both on one link.
struct Stick {
    left: Netns,
    right: Netns,
    router: Netns,
    _switch: Ovs,
}

/// Bytes that a tag adds to a frame.
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

const LEFT: MacAddr = MacAddr::new(2, 0, 0, 0, 0x66, 1);
const RIGHT: MacAddr = MacAddr::new(2, 0, 0, 0, 0x66, 2);

/// A datagram behind tags, each with its TPID; `n` is its length.
fn tagged(tags: &[(u16, u16)], n: usize) -> Vec<u8> {
    let plain = Packet::new().ether(LEFT, RIGHT);
    let ip = plain.ipv4([10, 9, 0, 1].into(), [10, 9, 0, 2].into());
    let frame = ip.udp(40_000, 40_001).payload(&vec![7; 20 + n]).build();
    let tags = tags.iter().flat_map(|(tpid, tci)| [tpid.to_be_bytes(), tci.to_be_bytes()].concat());
    [&frame[..12], &tags.collect::<Vec<u8>>(), &frame[12..]].concat()
}

lab_test! {
    /// The kernel takes the first tag of a frame away and says which it was; with it, frames are
    /// those of a sub-interface, or pass as they came, with up to eight tags.
    fn tags_that_the_kernel_has_taken_away_are_there() {
        const Q: u16 = 0x8100;
        const AD: u16 = 0x88a8;
        let options = LabOptions {
            middle: Middle::Bridge, offloads: Offloads::OFF, ..LabOptions::default()
        };
        let lab = Lab::build(&options)?;
        let config = Config::empty().commands(
            "create host-interface name eth0
             create host-interface name eth1
             create sub-interfaces host-eth0 5 dot1ad 30 inner-dot1q 7 exact-match
             set interface l2 tag-rewrite host-eth0.5 pop 2
             set interface l2 xconnect host-eth0.5 host-eth1
             set interface l2 xconnect host-eth0 host-eth1
             set interface state host-eth0 up
             set interface state host-eth1 up
             set interface state host-eth0.5 up",
        );
        let router = Router::start(&lab.router, &config)?;
        let pcap = router.dir().join("right.pcap");
        let capture = Capture::start(&lab.right.ns, "eth0", &pcap, &format!("ether src {LEFT}"))?;
        let right = RawLink::open(&lab.right.ns, "eth0")?;
        let left = RawLink::open(&lab.left.ns, "eth0")?;
        let rx = |name: &str, what: &str| router.interface_counter(name, what);
        let before = (rx("host-eth0", "rx_bytes")?, rx("host-eth0.5", "rx_bytes")?);
        let mut tags: Vec<Vec<(u16, u16)>> = vec![vec![(AD, 30), (Q, 7)]];
        for n in 0..=8u16 {
            // Tags have priorities; the first is of either kind.
            let kinds = if n % 2 == 0 { [Q, AD] } else { [AD, Q] };
            tags.push((0..n).map(|i| (kinds[usize::from(i % 2)], (i << 13) | (100 + i))).collect());
        }
        let frames: Vec<_> = tags.iter().enumerate().map(|(n, tags)| tagged(tags, n)).collect();
        // Frames as they leave: those of the sub-interface without their tags.
        let plain = tagged(&[], 0);
        let expected: Vec<_> = [plain].iter().chain(&frames[1..]).cloned().collect();
        for (sent, expected) in frames.iter().zip(&expected) {
            left.send(sent)?;
            // A packet socket shows them without the first tag.
            let is_tagged = matches!(expected[12..14], [0x81, 0] | [0x88, 0xa8]);
            let seen = [&expected[..12], &expected[if is_tagged { 16 } else { 12 }..]].concat();
            right.receive(WAIT_LIMIT, "the frame", |frame| (frame == seen).then_some(()))?;
        }
        router.await_rest()?;
        let bytes = |frames: &[Vec<u8>]| frames.iter().map(|f| f.len() as u64).sum::<u64>();
        // Neighbour discovery of the host's kernel may add some to the port's.
        let port = rx("host-eth0", "rx_bytes")? - before.0;
        let sub = rx("host-eth0.5", "rx_bytes")? - before.1;
        ensure!(port >= bytes(&frames) && sub == bytes(&frames[..1]), "{port}, {sub}");
        capture.stop()?;
        let seen = tshark_fields(&pcap, &["frame.len", "vlan.id", "ieee8021ad.id"], "")?;
        let lengths: Vec<_> = seen.iter().map(|fields| fields[0].clone()).collect();
        let wanted: Vec<_> = expected.iter().map(|frame| frame.len().to_string()).collect();
        ensure!(lengths == wanted, "{seen:?}");
        ensure!(seen[2][2] == "100" && seen[3][1..] == ["100", "101"], "{seen:?}");
        let odd = Cmd::new("tshark")
            .args(["-n", "-r"])
            .arg(&pcap)
            .args(["-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"])
            .args(["-d", "udp.port==1024-65535,data"])
            .args(["-Y", "_ws.malformed || _ws.expert.severity >= \"Warning\""])
            .output()?;
        ensure!(odd.trim().is_empty(), "tshark objects:\n{odd}");
        router.stop().map(drop)
    }

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
        // Packets of a VLAN that goes are counted; the other goes on.
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

    /// Segments of TCP that the kernel leaves to the device, behind tags of which it has taken the
    /// first away: two routers push and pop them between hosts without any.
    fn large_segments_behind_tags_that_the_kernel_has_taken_away() {
        let [left, first, second, right] = ["left", "first", "second", "right"].map(Netns::new);
        let (left, first, second, right) = (left?, first?, second?, right?);
        let link = |mtu| LinkOptions { mtu, offloads: Offloads::ON, ..LinkOptions::default() };
        let end = |address: &str| link(9000).address(address);
        let (side, trunk) = (link(9000), link(9000 + 2 * TAG));
        veth((&left, "eth0", &end("10.9.0.1/24")), (&first, "eth0", &side))?;
        veth((&first, "eth1", &trunk), (&second, "eth0", &trunk))?;
        veth((&second, "eth1", &side), (&right, "eth0", &end("10.9.0.2/24")))?;
        let ports = "create host-interface name eth0
             create host-interface name eth1
             set interface state host-eth0 up
             set interface state host-eth1 up";
        let pushing = Router::start(&first, &Config::empty().commands(&format!(
            "{ports}
             set interface l2 xconnect host-eth0 host-eth1
             set interface l2 xconnect host-eth1 host-eth0",
        )))?;
        let popping = Router::start(&second, &Config::empty().commands(&format!(
            "{ports}
             create sub-interfaces host-eth0 10
             create sub-interfaces host-eth0 30 dot1ad 30 exact-match
             create sub-interfaces host-eth0 31 dot1ad 30 inner-dot1q 7 exact-match
             set interface state host-eth0.10 up
             set interface state host-eth0.30 up
             set interface state host-eth0.31 up",
        )))?;
        let ways = [("dot1q 10", 10, 1), ("dot1ad 30", 30, 1), ("dot1ad 30 7", 31, 2)];
        let large_ones = |router: &Router| {
            let of = |counter| router.interface_counter("host-eth0", counter);
            anyhow::Ok([of("rx_gso_packets")?, of("tx_gso_packets")?])
        };
        let mut before = large_ones(&popping)?;
        for (tags, sub, pop) in ways {
            pushing.cli(&format!("set interface l2 tag-rewrite host-eth0 push {tags}"))?;
            popping.cli(&format!("set interface l2 tag-rewrite host-eth0.{sub} pop {pop}"))?;
            popping.cli(&format!("set interface l2 xconnect host-eth0.{sub} host-eth1"))?;
            popping.cli(&format!("set interface l2 xconnect host-eth1 host-eth0.{sub}"))?;
            let large = PingOptions { size: 8900, ..PingOptions::default() };
            ping(&left, [10, 9, 0, 2], &large)?.all_answered()?;
            for reverse in [false, true] {
                let options = IperfOptions { reverse, ..IperfOptions::default() };
                let result = iperf3(&left, &right, [10, 9, 0, 2], &options)?;
                ensure!(result.bits_per_s > 1e6, "{tags}: {} bit/s", result.bits_per_s);
            }
            // The port counts them, not its sub-interfaces.
            let now = large_ones(&popping)?;
            let grew = now.iter().zip(&before).all(|(now, before)| now > before);
            ensure!(grew, "{tags}: {now:?} large segments received and sent, {before:?} before");
            before = now;
        }
        for (node, reason) in [
            ("l2-input-vtr", "L2 input tag rewrite drops"),
            ("l2-output", "L2 output tag rewrite drops"),
            ("ethernet-input", "unknown vlan"),
        ] {
            ensure!(popping.error_count(node, reason)? == 0, "{reason}");
        }
        pushing.stop()?;
        popping.stop().map(drop)
    }
}
