//! Linux control plane: routing daemons at the twins of the router's interfaces speak with others
//! on its links.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::net::IpAddr;
use thalweg_smoke::{Bird, Config, Frr, RawLink, Router};
use thalweg_testkit::{
    IperfOptions, LinkOptions, Netns, PingOptions, WAIT_LIMIT, iperf3, lab_test, ping, veth,
    wait_until_seen,
};

/// A router, the namespace of its twins, and a peer on its link.
struct Edge {
    router: Netns,
    plane: Netns,
    peer: Netns,
}

/// The router's address on the link, which its twin has, and the peer's.
const US: [u8; 4] = [10, 1, 0, 1];
const PEER: [u8; 4] = [10, 1, 0, 2];

impl Edge {
    fn new() -> Result<Edge> {
        let [router, plane, peer] = ["lcp-router", "lcp-plane", "lcp-peer"].map(Netns::new);
        let (router, plane, peer) = (router?, plane?, peer?);
        for ns in [&plane, &peer] {
            ns.ip("link set lo up")?;
            for (what, value) in [("accept_dad", "0"), ("disable_ipv6", "0")] {
                for which in ["all", "default"] {
                    ns.set_sysctl(&format!("net/ipv6/conf/{which}/{what}"), value)?;
                }
            }
        }
        let ours = LinkOptions::default();
        let theirs = LinkOptions::default().address("10.1.0.2/24").address("fd01::2/64");
        veth((&router, "e0", &ours), (&peer, "eth0", &theirs))?;
        router.capture("e0")?;
        Ok(Edge { router, plane, peer })
    }

    fn config(&self) -> Config {
        Config::empty().commands(&format!(
            "create host-interface name e0
             set interface ip address host-e0 10.1.0.1/24
             set interface ip address host-e0 fd01::1/64
             set interface state host-e0 up
             lcp lcp-sync on
             lcp default netns {}
             lcp create host-e0 host-if e0",
            self.plane.descriptor_path().display()
        ))
    }

    fn start(&self) -> Result<Router> {
        Router::start(&self.router, &self.config())
    }
}

/// Packets of a class that went to twins.
fn punted(router: &Router, class: &str, of: &str) -> Result<u64> {
    let shown = router.json("show punt")?;
    let rows = shown.as_array().context("a list")?;
    let row = rows.iter().find(|row| row["class"] == class).context("the class")?;
    row[of].as_u64().context("a number")
}

/// Waits until FRRouting has an answer in which a place is as wanted.
fn wait_for(frr: &Frr, command: &str, path: &str, wanted: &Value) -> Result<()> {
    let is = || {
        let text = frr.vtysh(command).map_err(|e| format!("{e:#}"))?;
        let answer: Value = serde_json::from_str(&text).map_err(|e| format!("{e}: {text}"))?;
        match answer.pointer(path) == Some(wanted) {
            true => Ok(()),
            false => Err(format!("{path} of {command}: {answer}")),
        }
    };
    wait_until_seen(WAIT_LIMIT, command, is).with_context(|| frr.said())
}

/// Waits until a protocol of BIRD is as wanted.
fn wait_for_protocol(bird: &Bird, protocol: &str, wanted: &str) -> Result<()> {
    let is = || {
        let text = bird.birdc(&format!("show protocols {protocol}")).map_err(|e| e.to_string())?;
        if text.contains(wanted) { Ok(()) } else { Err(text) }
    };
    wait_until_seen(WAIT_LIMIT, wanted, is).with_context(|| bird.said())
}

const BFD: &str = "bfd\n profile quick\n  transmit-interval 100\n  receive-interval 100\n";

/// BGP over both versions with GTSM (RFC 5082): packets arrive with the hops that they were sent
/// with.
fn bgp(asn: u32, id: &str, peers: [&str; 2], remote: u32) -> String {
    let mut text = format!(
        "router bgp {asn}\n bgp router-id {id}\n no bgp ebgp-requires-policy\n \
         timers bgp 1 5\n"
    );
    for peer in peers {
        text += &format!(
            " neighbor {peer} remote-as {remote}\n neighbor {peer} ttl-security hops 1\n \
             neighbor {peer} timers connect 1\n neighbor {peer} bfd\n"
        );
    }
    text
}

const OSPF: &str = "interface ETH\n ip ospf area 0\n ip ospf hello-interval 1\n \
                    ip ospf dead-interval 4\nrouter ospf\n ospf router-id ID\n";
const OSPF6: &str = "interface ETH\n ipv6 ospf6 area 0\n ipv6 ospf6 hello-interval 1\n \
                     ipv6 ospf6 dead-interval 4\nrouter ospf6\n ospf6 router-id ID\n";
const ISIS: &str = "interface ETH\n ip router isis one\n isis hello-interval 1\n\
                    router isis one\n net 49.0001.0000.0000.000ID.00\n is-type level-2-only\n";

fn of(text: &str, dev: &str, id: &str) -> String {
    text.replace("ETH", dev).replace("ID", id)
}

lab_test! {
    /// A twin is a device with the interface's MAC address, MTU and addresses.
    fn a_twin_is_like_its_interface() {
        let edge = Edge::new()?;
        let router = edge.start()?;
        let link = edge.plane.link("e0")?;
        let mac = router.mac("host-e0")?;
        ensure!(link.mac == mac.to_string(), "{link:?}");
        let shown = edge.plane.ip("-br addr show dev e0")?;
        ensure!(shown.contains("10.1.0.1/24") && shown.contains("fd01::1/64"), "{shown}");
        let shown = router.cli("show lcp")?;
        ensure!(shown.contains("itf-pair: [0] host-e0 tap4096 e0"), "{shown}");
        // Its carrier is that of the link.
        edge.peer.ip("link set eth0 down")?;
        wait_until_seen(WAIT_LIMIT, "the carrier to go", || {
            let shown = edge.plane.ip("link show dev e0")?;
            ensure!(shown.contains("NO-CARRIER"), "{shown}");
            Ok(())
        })?;
        edge.peer.ip("link set eth0 up")?;
        wait_until_seen(WAIT_LIMIT, "the carrier to come back", || {
            let shown = edge.plane.ip("link show dev e0")?;
            ensure!(!shown.contains("NO-CARRIER"), "{shown}");
            Ok(())
        })?;
        router.cli("lcp delete host-e0")?;
        let shown = edge.plane.ip("-br link")?;
        ensure!(!shown.contains("e0"), "{shown}");
        router.stop().map(drop)
    }

    /// Both sides of a pair reach hosts, which get one answer to each packet.
    fn hosts_get_one_answer() {
        let edge = Edge::new()?;
        let router = edge.start()?;
        ping(&edge.peer, US, &PingOptions::default())?.all_answered().context("the router")?;
        ping(&edge.plane, PEER, &PingOptions::default())?.all_answered().context("the twin")?;
        let v6 = "fd01::2".parse::<std::net::Ipv6Addr>()?;
        ping(&edge.plane, v6, &PingOptions::default())?.all_answered().context("IPv6")?;
        // The router's own.
        let shown = router.cli("ping 10.1.0.2 repeat 2 interval 0.1")?;
        ensure!(shown.contains("2 received"), "{shown}");
        let words = "-c 3 -i 0.2 10.1.0.1";
        let seen = edge.peer.command("ping").args(words.split(' ')).output()?;
        ensure!(!seen.contains("DUP"), "{seen}");
        let options = PingOptions { size: 4000, may_fragment: true, ..PingOptions::default() };
        ping(&edge.peer, US, &options)?.all_answered().context("fragments, by the twin")?;
        router.stop().map(drop)
    }

    /// TCP with the twin, in big segments on its side.
    fn tcp_with_a_twin() {
        let edge = Edge::new()?;
        let router = edge.start()?;
        for reverse in [false, true] {
            let options = IperfOptions { reverse, ..IperfOptions::default() };
            let result = iperf3(&edge.peer, &edge.plane, US, &options)?;
            ensure!(result.bits_per_s > 1e6, "reverse {reverse}: {result:?}");
        }
        for ns in [&edge.peer, &edge.plane] {
            ensure!(ns.snmp()?["Tcp.InErrs"] == 0, "{}: TCP input errors", ns.label());
        }
        ensure!(punted(&router, "tcp", "passed")? > 0);
        router.stop().map(drop)
    }

    /// An interface without Ethernet frames has a TUN device: pings, and TCP both ways, of both
    /// versions; what is saved makes the same pair.
    fn a_tun_device_has_a_twin() {
        let edge = Edge::new()?;
        let mut router = edge.start()?;
        let (peer, plane) = (edge.peer.descriptor_path(), edge.plane.descriptor_path());
        for line in [
            format!("create tap id 3 tun host-if-name ppp0 host-ns {}", peer.display()),
            "set interface ip address tun3 10.4.0.1/24".into(),
            "set interface ip address tun3 fd04::1/64".into(),
            "set interface state tun3 up".into(),
            format!("lcp create tun3 host-if t3 netns {} tun", plane.display()),
        ] {
            router.cli(&line).with_context(|| line)?;
        }
        let files = tempfile::tempdir()?;
        let saved = |router: &Router, name: &str| -> Result<String> {
            let file = files.path().join(name);
            router.cli(&format!("config save {}", file.display()))?;
            Ok(std::fs::read_to_string(&file)?)
        };
        let first = saved(&router, "first.yaml")?;
        ensure!(first.contains("lcp-tun: true"), "{first}");
        for round in 0..2 {
            wait_until_seen(WAIT_LIMIT, "the TUN device", || {
                let shown = edge.plane.ip("-br address show dev t3")?;
                let addresses = ["10.4.0.1/24", "fd04::1/64"];
                ensure!(addresses.iter().all(|ip| shown.contains(ip)), "{shown}");
                edge.peer.ip("link show dev ppp0").map(drop)
            })?;
            let shown = router.cli("show lcp")?;
            ensure!(shown.contains(" t3 ") && shown.contains("type tun"), "{shown}");
            edge.peer.ip("link set ppp0 up")?;
            for address in ["10.4.0.2/24", "fd04::2/64"] {
                edge.peer.ip(&format!("address replace {address} dev ppp0"))?;
            }
            for (us, them) in [("10.4.0.1", "10.4.0.2"), ("fd04::1", "fd04::2")] {
                let (us, them): (IpAddr, IpAddr) = (us.parse()?, them.parse()?);
                let pings = PingOptions::default();
                ping(&edge.peer, us, &pings)?.all_answered().context("the router")?;
                ping(&edge.plane, them, &pings)?.all_answered().context("the twin")?;
                for reverse in [false, true] {
                    let options = IperfOptions { reverse, ..IperfOptions::default() };
                    let result = iperf3(&edge.peer, &edge.plane, us, &options)?;
                    ensure!(result.bits_per_s > 1e6, "{us}, reverse {reverse}: {result:?}");
                }
            }
            for ns in [&edge.peer, &edge.plane] {
                ensure!(ns.snmp()?["Tcp.InErrs"] == 0, "{}: TCP input errors", ns.label());
            }
            if round == 0 {
                // A new router makes it from what is saved.
                router.stop()?;
                let config = Config::empty().keeps(&files.path().join("first.yaml"));
                router = Router::start(&edge.router, &config)?;
            }
        }
        ensure!(saved(&router, "second.yaml")? == first);
        router.cli("lcp delete tun3")?;
        ensure!(!edge.plane.ip("-br link")?.contains("t3"));
        router.stop().map(drop)
    }

    /// FRRouting establishes BGP with GTSM, OSPF of both versions, IS-IS and BFD through the
    /// router.
    fn frr_through_a_twin() {
        let edge = Edge::new()?;
        let router = edge.start()?;
        router.cli("lcp osi-proto enable 0x83")?;
        let ours = Frr::start(&edge.plane, &[
            ("bfdd", BFD),
            ("bgpd", &bgp(65_001, "10.1.0.1", ["10.1.0.2", "fd01::2"], 65_002)),
            ("ospfd", &of(OSPF, "e0", "10.1.0.1")),
            ("ospf6d", &of(OSPF6, "e0", "10.1.0.1")),
            ("isisd", &of(ISIS, "e0", "1")),
        ])?;
        let theirs = Frr::start(&edge.peer, &[
            ("bfdd", BFD),
            ("bgpd", &bgp(65_002, "10.1.0.2", ["10.1.0.1", "fd01::1"], 65_001)),
            ("ospfd", &of(OSPF, "eth0", "10.1.0.2")),
            ("ospf6d", &of(OSPF6, "eth0", "10.1.0.2")),
            ("isisd", &of(ISIS, "eth0", "2")),
        ])?;
        for (version, peer) in [("ipv4Unicast", "10.1.0.2"), ("ipv4Unicast", "fd01::2")] {
            let path = format!("/{version}/peers/{peer}/state");
            wait_for(&ours, "show bgp summary json", &path, &"Established".into())
                .with_context(|| theirs.said())?;
        }
        wait_for(&ours, "show ip ospf neighbor 10.1.0.2 detail json", "/10.1.0.2/0/nbrState",
            &"Full/DR".into()).or_else(|_| {
            let shown = ours.vtysh("show ip ospf neighbor")?;
            ensure!(shown.contains("Full"), "{shown}");
            Ok(())
        })?;
        let full6 = || {
            let shown = ours.vtysh("show ipv6 ospf6 neighbor").map_err(|e| e.to_string())?;
            if shown.contains("Full") { Ok(()) } else { Err(shown) }
        };
        wait_until_seen(WAIT_LIMIT, "OSPFv3", full6)?;
        let up = || {
            let shown = ours.vtysh("show isis neighbor").map_err(|e| e.to_string())?;
            if shown.contains("Up") { Ok(()) } else { Err(shown) }
        };
        wait_until_seen(WAIT_LIMIT, "IS-IS", up)?;
        let bfd = || {
            let shown = ours.vtysh("show bfd peers brief").map_err(|e| e.to_string())?;
            if shown.matches(" up").count() >= 2 { Ok(()) } else { Err(shown) }
        };
        wait_until_seen(WAIT_LIMIT, "BFD", bfd)?;
        for class in ["bgp", "ospf", "bfd", "isis", "arp"] {
            ensure!(punted(&router, class, "passed")? > 0, "{class}: {}", router.cli("show punt")?);
            ensure!(punted(&router, class, "limited")? == 0, "{}", router.cli("show punt")?);
        }
        router.stop().map(drop)
    }

    /// BIRD works through a twin, too.
    fn bird_through_a_twin() {
        let edge = Edge::new()?;
        let router = edge.start()?;
        let config = |id: &str, dev: &str, local: u32, peers: [&str; 2], remote: u32| {
            let bgp = |name: &str, peer: &str| format!(
                "protocol bgp {name} {{ local as {local}; neighbor {peer} as {remote}; \
                 ttl security on; connect delay time 1; connect retry time 1; \
                 error wait time 1, 2; ipv4 {{ import all; export none; }}; \
                 ipv6 {{ import all; export none; }}; }}\n"
            );
            format!(
                "router id {id};\nprotocol device {{ scan time 1; }}\n\
                 protocol bfd {{ interface \"{dev}\" {{ interval 100 ms; }}; }}\n\
                 protocol ospf v2 o4 {{ ipv4 {{ import none; }}; \
                 area 0 {{ interface \"{dev}\" {{ hello 1; dead 4; }}; }}; }}\n{}{}",
                bgp("b4", peers[0]), bgp("b6", peers[1])
            )
        };
        let us = config("10.1.0.1", "e0", 65_001, ["10.1.0.2", "fd01::2"], 65_002);
        let ours = Bird::start(&edge.plane, &us)?;
        let them = config("10.1.0.2", "eth0", 65_002, ["10.1.0.1", "fd01::1"], 65_001);
        let theirs = Bird::start(&edge.peer, &them)?;
        for protocol in ["b4", "b6"] {
            wait_for_protocol(&ours, protocol, "Established").with_context(|| theirs.said())?;
        }
        let full = || {
            let text = ours.birdc("show ospf neighbors").map_err(|e| e.to_string())?;
            if text.contains("Full/") { Ok(()) } else { Err(text) }
        };
        wait_until_seen(WAIT_LIMIT, "OSPF", full)?;
        router.stop().map(drop)
    }

    /// Frames through a pair are the same on both sides, byte for byte.
    fn frames_pass_as_they_were_written() {
        let edge = Edge::new()?;
        let router = edge.start()?;
        router.cli("lcp ethertype enable lldp\nlcp osi-proto enable 0x83")?;
        let (wire, twin) = (RawLink::open(&edge.peer, "eth0")?, RawLink::open(&edge.plane, "e0")?);
        let us = router.mac("host-e0")?;
        let passes = |from: &RawLink, to: &RawLink, frame: &[u8]| {
            from.send(frame)?;
            to.receive(WAIT_LIMIT, "the frame", |seen| (seen == frame).then_some(()))
                .with_context(|| format!("{frame:02x?}"))
        };
        let mut n = 0;
        let mut ip4 = |to: [u8; 4], ttl: u8, protocol: u8| {
            n += 1;
            let mut packet = vec![0x45, 0xc0, 0, 60, 0, n, 0, 0, ttl, protocol, 0, 0, 10, 1, 0, 2];
            packet.extend(to);
            let sum = thalweg_wire::checksum::checksum(&packet);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            packet.extend([7; 40]);
            packet
        };
        let group = [1, 0, 0x5e, 0, 0, 5];
        // Packets to the router: OSPF and VRRP to groups, TCP, ESP, a fragment; TTL 1 and 255.
        for (to, mac, ttl, protocol) in [
            ([224, 0, 0, 5], group, 1, 89),
            ([224, 0, 0, 18], group, 255, 112),
            (US, us.0, 1, 6),
            (US, us.0, 255, 50),
            (US, us.0, 1, 89),
        ] {
            let frame = [&mac[..], &[2, 0, 0, 0, 0, 0x77, 8, 0], &ip4(to, ttl, protocol)].concat();
            passes(&wire, &twin, &frame)?;
        }
        // The frame has a priority tag, which the kernel shows apart from it.
        let (to, ospf) = ([&us.0[..], &[2, 0, 0, 0, 0, 0x77]].concat(), ip4(US, 1, 89));
        wire.send(&[&to[..], &[0x81, 0, 0xe0, 0, 8, 0], &ospf].concat())?;
        let plain = [&to[..], &[8, 0], &ospf].concat();
        twin.receive(WAIT_LIMIT, "the tagged frame", |seen| (seen == plain).then_some(()))?;
        // Frames leave the twin, to whatever address.
        for (to, mac) in [([224, 0, 0, 5], group), (PEER, [2, 0, 0, 0, 9, 9]), ([8, 8, 8, 8], us.0)] {
            let frame = [&mac[..], &us.0, &[8, 0], &ip4(to, 1, 89)].concat();
            passes(&twin, &wire, &frame)?;
        }
        // Both ways: LLDP, IS-IS.
        let lldp = [&[1, 0x80, 0xc2, 0, 0, 0xe][..], &[2, 0, 0, 0, 0, 9, 0x88, 0xcc], &[9; 50]];
        let isis = [&[1, 0x80, 0xc2, 0, 0, 0x14][..], &[2, 0, 0, 0, 0, 9, 0, 50, 0xfe, 0xfe, 3, 0x83],
            &[9; 46]];
        for mut frame in [lldp.concat(), isis.concat()] {
            passes(&wire, &twin, &frame)?;
            // Each end sees what it sends itself, too.
            frame[11] = 8;
            passes(&twin, &wire, &frame)?;
        }
        // A host without an address asks for one.
        let mut ask = vec![0x45, 0, 0, 40, 0, 1, 0, 0, 16, 17, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255];
        let sum = thalweg_wire::checksum::checksum(&ask);
        ask[10..12].copy_from_slice(&sum.to_be_bytes());
        ask.extend([0, 68, 0, 67, 0, 20, 0, 0]);
        ask.extend([5; 12]);
        let padding = [0; 6];
        let frame = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 9, 8, 0], &ask].concat();
        passes(&twin, &wire, &frame)?;
        // The router cuts padding off.
        wire.send(&[&frame[..], &padding].concat())?;
        twin.receive(WAIT_LIMIT, "the request", |seen| (seen == frame).then_some(()))?;
        ensure!(punted(&router, "dhcp", "passed")? == 1, "{}", router.cli("show punt")?);
        ensure!(punted(&router, "lldp", "passed")? == 1 && punted(&router, "isis", "passed")? == 1);
        router.stop().map(drop)
    }

    /// A flood to a closed port takes up the limit of its own class, and no other's.
    fn a_flood_leaves_other_classes_their_share() {
        let edge = Edge::new()?;
        let router = edge.start()?;
        router.cli("set punt class other 10")?;
        let socket = edge.peer.run(|| std::net::UdpSocket::bind("10.1.0.2:0"))??;
        wait_until_seen(WAIT_LIMIT, "the limit to be reached", || {
            for _ in 0..1000 {
                let _ = socket.send_to(&[0; 32], "10.1.0.1:9999");
            }
            ensure!(punted(&router, "other", "limited")? > 0);
            Ok(())
        })?;
        let result = iperf3(&edge.peer, &edge.plane, US, &IperfOptions::default())?;
        ensure!(result.bits_per_s > 1e6, "{result:?}");
        ensure!(router.error_count("linux-cp-punt", "punt-rate: class of packets above its limit")? > 0);
        router.stop().map(drop)
    }

    /// A pair that cannot be made is explained, and leaves nothing.
    fn mistakes_are_explained() {
        let edge = Edge::new()?;
        let router = edge.start()?;
        let said = router.refused("lcp create host-e0 host-if e1")?;
        ensure!(said.contains("has the twin e0"), "{said}");
        let said = router.refused("delete tap tap4096")?;
        ensure!(said.contains("lcp delete host-e0"), "{said}");
        let said = router.refused("lcp create tap4096 host-if e1")?;
        ensure!(said.contains("router's end"), "{said}");
        router.cli("create loopback interface")?;
        let said = router.refused("lcp create loop0 host-if e0")?;
        ensure!(said.contains("already"), "{said}");
        let said = router.refused("lcp create loop0 host-if lo1 netns no-such-namespace")?;
        ensure!(said.contains("ip netns add"), "{said}");
        let said = router.refused("lcp create loop0 host-if lo1 tun")?;
        ensure!(said.contains("TUN"), "{said}");
        router.cli("lcp create loop0 host-if lo1")?;
        ensure!(router.cli("show lcp")?.contains("[1] loop0 tap4097 lo1"));
        let said = router.refused("lcp ethertype enable 0800")?;
        ensure!(said.contains("ip4-input"), "{said}");
        // A sub-interface's twin is a VLAN link, which not every kernel has.
        router.cli("create sub-interfaces host-e0 7")?;
        let made = router.cli("lcp create host-e0.7 host-if e0.7");
        match made {
            Ok(_) => ensure!(edge.plane.ip("-d link show e0.7")?.contains("vlan"), "no VLAN link"),
            Err(e) => ensure!(format!("{e:#}").contains("8021q"), "{e:#}"),
        }
        router.cli("delete loopback interface intfc loop0")?;
        ensure!(!router.cli("show lcp")?.contains("lo1"));
        router.cli("delete host-interface name e0")?;
        ensure!(!router.cli("show lcp")?.contains("itf-pair"));
        ensure!(!router.cli("show interface")?.contains("tap4096"));
        router.stop().map(drop)
    }
}
