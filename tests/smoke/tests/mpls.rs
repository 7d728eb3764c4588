//! A provider's network of five routers: two VPNs by labels, a pseudowire, and a core of two links.
//!
//! ```text
//! alpha — ce1 — pe1 ═ p — pe2 — ce2 — omega     VPN 10
//!         left ─┤         ├─ right              VPN 20, with the addresses of VPN 10
//!         here ─┘         └─ there              pseudowire
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use thalweg_smoke::{Config, Router};
use thalweg_testkit::{
    Capture, IperfOptions, LinkOptions, Netns, PingOptions, WAIT_LIMIT, iperf3, lab_test, ping,
    tshark_fields, veth, wait_until,
};

/// Addresses of customers, the same in both VPNs.
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 1, 1, 2);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 2, 1, 2);
/// The far end of the pseudowire.
const THERE: Ipv4Addr = Ipv4Addr::new(10, 9, 9, 2);
/// The same of IPv6: VPN 10, and customers in the core's own table.
const NEAR6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 1, 0, 0, 0, 2);
const FAR6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 1, 0, 0, 0, 2);
const PLAIN6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x102, 0, 0, 0, 0, 2);
/// A rate that is reached whatever the machine is busy with, and hardly if each packet is lost
/// once.
const SOME_BITS_PER_S: f64 = 1e6;
/// MTU of the core, and of the ends of the pseudowire: larger by Ethernet, tag and labels.
const CORE_MTU: u32 = 9100;
const JUMBO_MTU: u32 = 9000;

/// The namespaces, and what runs in them.
struct Provider {
    ns: Vec<(&'static str, Netns)>,
    routers: Vec<(&'static str, Router)>,
}

impl Provider {
    fn new() -> Result<Provider> {
        let names =
            ["alpha", "ce1", "pe1", "p", "pe2", "ce2", "omega", "left", "right", "here", "there"];
        let ns = names.into_iter().map(|name| Ok((name, Netns::new(name)?)));
        let mut provider = Provider { ns: ns.collect::<Result<_>>()?, routers: Vec::new() };
        provider.wire()?;
        provider.start()?;
        Ok(provider)
    }

    fn ns(&self, name: &str) -> Result<&Netns> {
        let found = self.ns.iter().find(|(known, _)| *known == name);
        found.map(|(_, ns)| ns).with_context(|| format!("no namespace {name}"))
    }

    fn router(&self, name: &str) -> Result<&Router> {
        let found = self.routers.iter().find(|(known, _)| *known == name);
        found.map(|(_, router)| router).with_context(|| format!("no router {name}"))
    }

    /// Joins two ends, `<namespace> <device> [<address>]` each.
    fn join(&self, a: &str, b: &str, mtu: u32) -> Result<()> {
        let end = |text: &str| {
            let words: Vec<&str> = text.split(' ').collect();
            let mut options = LinkOptions { mtu, ..LinkOptions::default() };
            if let Some(address) = words.get(2) {
                options = options.address(*address);
            }
            (words[0].to_owned(), words[1].to_owned(), options)
        };
        let (a, b) = (end(a), end(b));
        veth((self.ns(&a.0)?, &a.1, &a.2), (self.ns(&b.0)?, &b.1, &b.2))
    }

    fn wire(&self) -> Result<()> {
        self.join("alpha eth0 10.1.1.2/24", "ce1 eth0", 1500)?;
        self.join("ce1 eth1", "pe1 eth0", 1500)?;
        self.join("pe1 eth1", "p eth0", CORE_MTU)?;
        self.join("pe1 eth2", "p eth1", CORE_MTU)?;
        self.join("p eth2", "pe2 eth1", CORE_MTU)?;
        self.join("pe2 eth0", "ce2 eth1", 1500)?;
        self.join("ce2 eth0", "omega eth0 10.2.1.2/24", 1500)?;
        self.join("left eth0 10.1.1.2/24", "pe1 eth3", 1500)?;
        self.join("pe2 eth3", "right eth0 10.2.1.2/24", 1500)?;
        self.join("here eth0 10.9.9.1/24", "pe1 eth4", JUMBO_MTU)?;
        self.join("pe2 eth4", "there eth0 10.9.9.2/24", JUMBO_MTU)?;
        for (host, gateway) in [
            ("alpha", "10.1.1.1"),
            ("left", "10.1.1.1"),
            ("omega", "10.2.1.1"),
            ("right", "10.2.1.1"),
        ] {
            self.ns(host)?.ip(&format!("route add default via {gateway}"))?;
        }
        Ok(())
    }

    fn start(&mut self) -> Result<()> {
        let customer = |n: u8, other: u8| {
            ports(&[0, 1]).commands(&format!(
                "set interface ip address host-eth0 10.{n}.1.1/24
                 set interface ip address host-eth1 10.{n}.0.2/24
                 ip route add 10.{other}.0.0/16 via 10.{n}.0.1"
            ))
        };
        // Labels 100 and 200 lead through the core; 10n, 20n and 30n are those of the far end.
        let edge = |n: u8, other: u8, core: &str| {
            ports(if n == 1 { &[0, 1, 2, 3, 4] } else { &[0, 1, 3, 4] }).commands(&format!(
                "mpls table add 0
                 ip table add 10
                 ip table add 20
                 set interface ip table host-eth0 10
                 set interface ip table host-eth3 20
                 set interface ip address host-eth0 10.{n}.0.1/24
                 set interface ip address host-eth3 10.{n}.1.1/24
                 {core}
                 ip route add 10.{n}.1.0/24 table 10 via 10.{n}.0.2 host-eth0
                 ip route add 10.{other}.0.0/16 table 10 via 192.0.2.{other} next-hop-table 0 out-labels 10{other} uniform
                 ip route add 10.{other}.0.0/16 table 20 via 192.0.2.{other} next-hop-table 0 out-labels 20{other}
                 mpls local-label add 10{n} eos via ip4-lookup-in-table 10
                 mpls local-label add 20{n} eos via rx-ip4 host-eth3
                 mpls tunnel add mpls-tunnel0 l2-only control-word via 192.0.2.{other} out-labels 30{other}
                 mpls local-label add 30{n} eos via l2-input-on mpls-tunnel0 pop-pw-cw
                 set interface state mpls-tunnel0 up
                 set interface l2 xconnect host-eth4 mpls-tunnel0
                 set interface l2 xconnect mpls-tunnel0 host-eth4"
            ))
        };
        let pe1 = edge(
            1,
            2,
            "set interface ip address host-eth1 10.0.1.1/24
             set interface ip address host-eth2 10.0.2.1/24
             set interface mpls host-eth1 enable
             set interface mpls host-eth2 enable
             ip route add 192.0.2.2/32 via 10.0.1.2 host-eth1 out-labels 200
             ip route add 192.0.2.2/32 via 10.0.2.2 host-eth2 out-labels 200",
        );
        let pe2 = edge(
            2,
            1,
            "set interface ip address host-eth1 10.0.3.1/24
             set interface mpls host-eth1 enable
             mpls local-label add 201 non-eos via mpls-lookup-in-table 0
             ip route add 192.0.2.1/32 via 10.0.3.2 host-eth1 out-labels 100",
        );
        // One hop before its end, towards pe1, a label is popped; towards pe2 it is swapped.
        let p = ports(&[0, 1, 2]).commands(
            "set interface ip address host-eth0 10.0.1.2/24
             set interface ip address host-eth1 10.0.2.2/24
             set interface ip address host-eth2 10.0.3.2/24
             mpls table add 0
             set interface mpls host-eth0 enable
             set interface mpls host-eth1 enable
             set interface mpls host-eth2 enable
             mpls local-label add 200 non-eos via 10.0.3.1 host-eth2 out-labels 201
             mpls local-label add 100 non-eos via 10.0.1.1 host-eth0 out-labels implicit-null
             mpls local-label add 100 non-eos via 10.0.2.1 host-eth1 out-labels implicit-null",
        );
        for (name, config) in
            [("ce1", customer(1, 2)), ("pe1", pe1), ("p", p), ("pe2", pe2), ("ce2", customer(2, 1))]
        {
            let router = Router::start(self.ns(name)?, &config)?;
            self.routers.push((name, router));
        }
        Ok(())
    }

    /// Lets customers speak IPv6 across the core, which has routes of IPv4 only: `alpha` and
    /// `omega` in a VPN (6VPE), `left` and `right` without one (6PE).
    fn speak_ip6(&self) -> Result<()> {
        for (host, address) in [
            ("alpha", NEAR6.to_string()),
            ("omega", FAR6.to_string()),
            ("left", "2001:db8:101::2".to_owned()),
            ("right", PLAIN6.to_string()),
        ] {
            let ns = self.ns(host)?;
            for (what, value) in [("accept_dad", "0"), ("disable_ipv6", "0")] {
                for dev in ["all", "eth0"] {
                    ns.set_sysctl(&format!("net/ipv6/conf/{dev}/{what}"), value)?;
                }
            }
            ns.ip(&format!("-6 address add {address}/64 dev eth0 nodad"))?;
            let gateway = address.strip_suffix('2').context("an address")?;
            ns.ip(&format!("-6 route add default via {gateway}1"))?;
        }
        for (n, other) in [(1, 2), (2, 1)] {
            let customer = Config::empty().commands(&format!(
                "set interface ip address host-eth0 2001:db8:{n}:1::1/64
                 set interface ip address host-eth1 2001:db8:{n}::2/64
                 ip route add 2001:db8:{other}::/48 via 2001:db8:{n}::1"
            ));
            // The end of the path pops label 2 before a packet of its own table.
            let edge = Config::empty().commands(&format!(
                "ip6 table add 10
                 set interface ip6 table host-eth0 10
                 set interface ip address host-eth0 2001:db8:{n}::1/64
                 set interface ip address host-eth3 2001:db8:10{n}::1/64
                 ip route add 2001:db8:{n}:1::/64 table 10 via 2001:db8:{n}::2 host-eth0
                 ip route add 2001:db8:{other}::/48 table 10 via 192.0.2.{other} next-hop-table 0 out-labels 11{other} uniform
                 ip route add 2001:db8:10{other}::/64 via 192.0.2.{other} out-labels ipv6-explicit-null
                 mpls local-label add 11{n} eos via ip6-lookup-in-table 10"
            ));
            for (name, config) in [(format!("ce{n}"), customer), (format!("pe{n}"), edge)] {
                for command in &config.commands {
                    self.router(&name)?.cli(command)?;
                }
            }
        }
        // The core answers from this address.
        self.router("p")?.cli("set interface ip address host-eth2 2001:db8:ffff::1/64")?;
        let once = PingOptions { count: 1, ..PingOptions::default() };
        for (host, far) in [("alpha", FAR6), ("left", PLAIN6)] {
            let ns = self.ns(host)?;
            wait_until(WAIT_LIMIT, "an answer of IPv6 across the core", || {
                ping(ns, far, &once).ok().filter(|result| result.received > 0)
            })?;
        }
        Ok(())
    }

    /// TCP between two hosts, whose kernels leave checksums and segmentation to devices.
    fn tcp_works(&self, from: &str, to: &str, address: impl Into<IpAddr>) -> Result<()> {
        let options = IperfOptions { duration: Duration::from_secs(1), ..IperfOptions::default() };
        let result = iperf3(self.ns(from)?, self.ns(to)?, address.into(), &options)?;
        ensure!(result.bits_per_s > SOME_BITS_PER_S, "{from} to {to}: {result:?}");
        Ok(())
    }

    fn stop(self) -> Result<()> {
        self.routers.into_iter().try_for_each(|(_, router)| router.stop().map(drop))
    }

    /// All neighbours know each other from here on.
    fn reach(&self) -> Result<()> {
        for host in ["alpha", "left"] {
            let ns = self.ns(host)?;
            let once = PingOptions { count: 1, ..PingOptions::default() };
            wait_until(WAIT_LIMIT, "an answer across the core", || {
                ping(ns, FAR, &once).ok().filter(|result| result.received > 0)
            })?;
        }
        Ok(())
    }
}

/// A router with these ports, up, with the MTUs of their devices.
fn ports(all: &[u8]) -> Config {
    all.iter().fold(Config::empty(), |config, n| {
        config.commands(&format!(
            "create host-interface name eth{n}
             set interface state host-eth{n} up"
        ))
    })
}

lab_test! {
    /// Customers with the same addresses do not see each other.
    fn two_vpns_share_a_core() {
        let provider = Provider::new()?;
        provider.reach()?;
        for (host, far, near) in [("alpha", "omega", "left"), ("left", "right", "alpha")] {
            for size in [56, 1000, 1472] {
                let options = PingOptions { size, ..PingOptions::default() };
                ping(provider.ns(host)?, FAR, &options)?.all_answered()?;
                ping(provider.ns(far)?, NEAR, &options)?.all_answered()?;
            }
            let counted = |name: &str| -> Result<i64> {
                Ok(provider.ns(name)?.snmp()?.get("Icmp.InEchos").copied().unwrap_or(0))
            };
            let (before, others) = (counted(far)?, counted(near)?);
            ping(provider.ns(host)?, FAR, &PingOptions::default())?.all_answered()?;
            ensure!(counted(far)? == before + 5 && counted(near)? == others);
            provider.tcp_works(host, far, FAR)?;
        }
        provider.stop()
    }

    /// Packets of 9,000 bytes go through the core in their frames, neither cut nor answered.
    fn a_pseudowire_carries_jumbo_frames() {
        let provider = Provider::new()?;
        let ns = provider.ns("here")?;
        let once = PingOptions { count: 1, ..PingOptions::default() };
        wait_until(WAIT_LIMIT, "an answer over the pseudowire", || {
            ping(ns, THERE, &once).ok().filter(|result| result.received > 0)
        })?;
        for size in [56, 1472, 8972] {
            let options = PingOptions { size, dont_fragment: true, ..PingOptions::default() };
            ping(ns, THERE, &options)?.all_answered()?;
        }
        provider.tcp_works("here", "there", THERE)?;
        let text = provider.router("pe1")?.cli("show mpls tunnel")?;
        ensure!(text.contains("flags:L2,control-word,"), "{text}");
        provider.stop()
    }

    /// A link of the core fails: the other one has all of the traffic at once.
    fn traffic_leaves_a_link_that_fails() {
        let provider = Provider::new()?;
        provider.reach()?;
        let (alpha, p) = (provider.ns("alpha")?, provider.router("p")?);
        let came = |port: &str| p.interface_counter(port, "rx_packets");
        // Each flow takes one of both links: ping keeps to one, as it has no ports.
        let flows: Vec<_> = (0..32u16).map(|n| 20_000 + n).collect();
        let send = || alpha.run(|| -> Result<()> {
            for port in &flows {
                let socket = std::net::UdpSocket::bind((NEAR, *port))?;
                socket.send_to(&[0; 64], (FAR, 9))?;
            }
            Ok(())
        })?;
        let before = (came("host-eth0")?, came("host-eth1")?);
        send()?;
        p.await_rest()?;
        wait_until(WAIT_LIMIT, "flows on both links", || {
            let now = (came("host-eth0").ok()?, came("host-eth1").ok()?);
            (now.0 > before.0 && now.1 > before.1).then_some(())
        })?;
        // Both directions, as the kernel's carrier goes with the other end.
        provider.ns("p")?.ip("link set eth1 down")?;
        let pe1 = provider.router("pe1")?;
        wait_until(WAIT_LIMIT, "the link is seen down", || {
            let text = pe1.cli("show hardware-interfaces host-eth2").ok()?;
            text.contains("down").then_some(())
        })?;
        let before = came("host-eth0")?;
        for _ in 0..3 {
            send()?;
        }
        ping(alpha, FAR, &PingOptions { count: 20, ..PingOptions::default() })?.all_answered()?;
        let flowed = 3 * flows.len() as u64 + 20;
        wait_until(WAIT_LIMIT, "all flows on the link that is left", || {
            (came("host-eth0").ok()? >= before + flowed).then_some(())
        })?;
        provider.stop()
    }

    /// However many prefixes and labels lead by a link that fails, they leave it at once.
    fn a_hundred_thousand_prefixes_and_labels_move_together() {
        const MANY: u32 = 100_000;
        let provider = Provider::new()?;
        provider.reach()?;
        let (alpha, p, pe1) = (provider.ns("alpha")?, provider.router("p")?, provider.router("pe1")?);
        pe1.cli(&format!(
            "ip route add 48.0.0.0/32 count {MANY} table 10 via 192.0.2.2 next-hop-table 0 out-labels 102"
        ))?;
        let file = pe1.dir().join("labels.vpp");
        let line = |n| format!("mpls local-label add {n} eos via 192.0.2.2 out-labels {n}\n");
        std::fs::write(&file, (1000..1000 + MANY).map(line).collect::<String>())?;
        pe1.cli(&format!("exec {}", file.display()))?;
        provider.router("ce1")?.cli("ip route add 48.0.0.0/8 via 10.1.0.1")?;
        // Flows to prefixes from the first to the last.
        let flows: Vec<u32> = (0..64).map(|n| 0x3000_0000 + n * (MANY - 1) / 63).collect();
        let send = || alpha.run(|| -> Result<()> {
            for to in &flows {
                let socket = std::net::UdpSocket::bind((NEAR, 0))?;
                socket.send_to(&[0; 64], (Ipv4Addr::from_bits(*to), 9))?;
            }
            Ok(())
        })?;
        let came = |port: &str| p.interface_counter(port, "rx_packets");
        let before = (came("host-eth0")?, came("host-eth1")?);
        send()?;
        wait_until(WAIT_LIMIT, "flows on both links", || {
            let now = (came("host-eth0").ok()?, came("host-eth1").ok()?);
            (now.0 > before.0 && now.1 > before.1).then_some(())
        })?;
        provider.ns("p")?.ip("link set eth1 down")?;
        wait_until(WAIT_LIMIT, "the link is seen down", || {
            let text = pe1.cli("show hardware-interfaces host-eth2").ok()?;
            text.contains("down").then_some(())
        })?;
        let before = came("host-eth0")?;
        send()?;
        ping(alpha, FAR, &PingOptions { count: 20, ..PingOptions::default() })?.all_answered()?;
        let flowed = flows.len() as u64 + 20;
        wait_until(WAIT_LIMIT, "all flows on the link that is left", || {
            (came("host-eth0").ok()? >= before + flowed).then_some(())
        })?;
        // Labels go while packets come.
        let text = file.with_extension("del");
        let line = |n| format!("mpls local-label del {n} eos\n");
        std::fs::write(&text, (1000..1000 + MANY).map(line).collect::<String>())?;
        pe1.cli(&format!("exec {}", text.display()))?;
        ping(alpha, FAR, &PingOptions::default())?.all_answered()?;
        provider.stop()
    }

    /// Routers of the core say where a TTL has ended, and quote the labels (RFC 4950).
    fn traceroute_shows_labels() {
        let provider = Provider::new()?;
        provider.reach()?;
        let dir = TempDir::new()?;
        let (file, alpha) = (dir.path().join("hops.pcap"), provider.ns("alpha")?);
        let capture = Capture::start(alpha, "eth0", &file, "icmp")?;
        let mut hops = Vec::new();
        for ttl in 1..=3 {
            let options = PingOptions { ttl: Some(ttl), count: 1, ..PingOptions::default() };
            let result = ping(alpha, FAR, &options)?;
            let who = result.errors.first().context(result.text)?;
            hops.push(who.split_whitespace().nth(1).unwrap_or_default().to_owned());
        }
        capture.stop()?;
        ensure!(hops[0] == "10.1.1.1" && hops[1] == "10.1.0.1", "{hops:?}");
        ensure!(hops[2].starts_with("10.0."), "the core answers: {hops:?}");
        let fields = ["icmp.type", "icmp.mpls.label"];
        let seen = tshark_fields(&file, &fields, "icmp.mpls.label")?;
        ensure!(seen.len() == 1, "{seen:?}");
        let labels: Vec<&str> = seen[0][1].split(',').collect();
        ensure!(labels == ["200", "102"], "{seen:?}");
        // An end of a path whose labels have a TTL of their own does not see the core.
        let options = PingOptions { ttl: Some(2), count: 1, ..PingOptions::default() };
        let result = ping(provider.ns("left")?, FAR, &options)?;
        let who = result.errors.first().context(result.text)?;
        ensure!(who.contains("10.2.1.1") || who.contains("10.2.0.1"), "{who}");
        provider.stop()
    }

    /// The core's MTU counts the labels: a packet too long is answered with what is left.
    fn the_mtu_of_the_core_is_found() {
        let provider = Provider::new()?;
        provider.reach()?;
        for port in ["host-eth1", "host-eth2"] {
            provider.router("pe1")?.cli(&format!("set interface mtu mpls 1500 {port}"))?;
        }
        let left = provider.ns("left")?;
        let long = PingOptions { size: 1472, dont_fragment: true, count: 1, ..PingOptions::default() };
        ping(left, FAR, &long)?;
        let route = left.ip(&format!("route get {FAR}"))?;
        ensure!(route.contains("mtu 1492"), "{route}");
        let pieces = PingOptions { size: 1472, may_fragment: true, ..PingOptions::default() };
        ping(left, FAR, &pieces)?.all_answered()?;
        provider.stop()
    }

    /// Routers of the core know only how to answer in IPv6 (RFC 4798, RFC 4659).
    fn ipv6_crosses_a_core_of_ipv4() {
        let provider = Provider::new()?;
        provider.reach()?;
        provider.speak_ip6()?;
        let dir = TempDir::new()?;
        let file = dir.path().join("core.pcap");
        let capture = Capture::start(provider.ns("pe2")?, "eth1", &file, "mpls")?;
        for size in [56, 1000, 1452] {
            let options = PingOptions { size, ..PingOptions::default() };
            ping(provider.ns("alpha")?, FAR6, &options)?.all_answered()?;
            ping(provider.ns("omega")?, NEAR6, &options)?.all_answered()?;
            ping(provider.ns("left")?, PLAIN6, &options)?.all_answered()?;
        }
        capture.stop()?;
        let fields = ["mpls.label", "ipv6.dst"];
        let seen = tshark_fields(&file, &fields, "ipv6")?;
        for stack in ["201,112", "201,2"] {
            ensure!(seen.iter().any(|packet| packet[0] == stack), "{stack}: {seen:?}");
        }
        let warned = tshark_fields(&file, &["frame.number"], "_ws.expert.severity >= warning")?;
        ensure!(warned.is_empty(), "tshark warns of {warned:?}");
        provider.tcp_works("alpha", "omega", FAR6)?;
        provider.tcp_works("left", "right", PLAIN6)?;
        // The core's answer goes on to the end of the path, and comes back from there.
        let (alpha, file) = (provider.ns("alpha")?, dir.path().join("hops.pcap"));
        let capture = Capture::start(alpha, "eth0", &file, "icmp6")?;
        for (hops, who) in [(1, "2001:db8:1:1::1"), (2, "2001:db8:1::1"), (3, "2001:db8:ffff::1")] {
            let (hops, to) = (hops.to_string(), FAR6.to_string());
            let args = ["-c", "1", "-t", &hops, "-W", "5", &to];
            let text = alpha.command("ping").args(args).run()?.stdout;
            ensure!(text.contains(&format!("From {who}")) && text.contains("Hop limit"), "{text}");
        }
        capture.stop()?;
        let seen = tshark_fields(&file, &["ipv6.src", "icmp.mpls.label"], "icmp.mpls.label")?;
        ensure!(seen.len() == 1 && seen[0][1] == "200,112", "{seen:?}");
        for port in ["host-eth1", "host-eth2"] {
            provider.router("pe1")?.cli(&format!("set interface mtu mpls 1500 {port}"))?;
        }
        let long = PingOptions { size: 1452, dont_fragment: true, count: 1, ..PingOptions::default() };
        ping(alpha, FAR6, &long)?;
        let route = alpha.ip(&format!("-6 route get {FAR6}"))?;
        ensure!(route.contains("mtu 1492"), "{route}");
        provider.stop()
    }

    /// tshark has nothing to say against what is in the core.
    fn the_core_is_sound() {
        let provider = Provider::new()?;
        provider.reach()?;
        let dir = TempDir::new()?;
        // Packets are captured where they are received: the kernel's captures do not see what a
        // router sends.
        let [there, back] = ["there.pcap", "back.pcap"].map(|name| dir.path().join(name));
        let captures = [
            Capture::start(provider.ns("pe2")?, "eth1", &there, "mpls")?,
            Capture::start(provider.ns("p")?, "eth2", &back, "mpls")?,
        ];
        for host in ["alpha", "left"] {
            ping(provider.ns(host)?, FAR, &PingOptions::default())?.all_answered()?;
        }
        ping(provider.ns("here")?, THERE, &PingOptions::default())?.all_answered()?;
        captures.into_iter().try_for_each(|capture| capture.stop().map(drop))?;
        let fields = ["mpls.label", "_ws.malformed"];
        let mut seen = tshark_fields(&there, &fields, "")?;
        seen.extend(tshark_fields(&back, &fields, "")?);
        ensure!(seen.len() >= 30, "{} packets", seen.len());
        let warned = tshark_fields(&there, &["frame.number"], "_ws.expert.severity >= warning")?;
        ensure!(warned.is_empty(), "tshark warns of {warned:?}");
        for packet in &seen {
            ensure!(packet.get(1).is_none_or(String::is_empty), "{packet:?}");
        }
        for stack in ["201,102", "201,202", "201,302", "100,101", "100,201", "100,301"] {
            ensure!(seen.iter().any(|packet| packet[0] == stack), "{stack}: {seen:?}");
        }
        provider.stop()
    }
}
