//! Packets that are long, and packets that are too long.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use thalweg_smoke::{Config, Router, host_pair};
use thalweg_testkit::{
    IperfOptions, Lab, LabOptions, Offloads, PingOptions, WAIT_LIMIT, lab_test, ping,
};

use crate::throughput::{WORKING_BITS_PER_S, tcp_reaches, udp_arrives};

/// Largest packet on jumbo links.
const JUMBO: u32 = 9000;

/// A lab with jumbo frames on the left and 1500 bytes on the right.
fn narrow_right(offloads: Offloads) -> Result<Lab> {
    let lab = Lab::build(&LabOptions { mtu: JUMBO, offloads, ..LabOptions::default() })?;
    lab.right.ns.ip("link set eth0 mtu 1500")?;
    lab.router.ip("link set eth1 mtu 1500")?;
    Ok(lab)
}

lab_test! {
    fn jumbo_frames() {
        let lab = Lab::build(&LabOptions { mtu: JUMBO, ..LabOptions::default() })?;
        let router = Router::start(&lab.router, &host_pair())?;
        let before = router.interface_counter("host-eth0", "rx_bytes")?;
        let options = PingOptions {
            size: JUMBO - 28,
            dont_fragment: true,
            interval: Duration::from_millis(2),
            ..PingOptions::default()
        };
        ping(&lab.left.ns, lab.right.addr, &options)?.all_answered()?;
        let bytes = router.interface_counter("host-eth0", "rx_bytes")? - before;
        // Five pings; and ARP, whose frames the host does not pad.
        ensure!((5 * 9014..5 * 9014 + 300).contains(&bytes), "{bytes} bytes received");
        crate::throughput::tcp_both_ways(&lab)?;
        let rx_bytes = router.interface_counter("host-eth0", "rx_bytes")?;
        let rx_packets = router.interface_counter("host-eth0", "rx_packets")?;
        ensure!(rx_bytes / rx_packets > 2000, "{rx_bytes} bytes in {rx_packets} packets");
        router.stop().map(drop)
    }

    /// Without DF the router cuts packets up, and the kernel puts them together again.
    fn fragments() {
        let lab = narrow_right(Offloads::OFF)?;
        let router = Router::start(&lab.router, &host_pair())?;
        for size in [1473, 2000, 4000, 8972] {
            let options = PingOptions {
                size,
                may_fragment: true,
                interval: Duration::from_millis(2),
                ..PingOptions::default()
            };
            let answers = ping(&lab.left.ns, lab.right.addr, &options)?;
            answers.all_answered().with_context(|| format!("{size} bytes"))?;
        }
        let snmp = lab.right.ns.snmp()?;
        ensure!(snmp["Ip.ReasmOKs"] == 20, "{} packets put together", snmp["Ip.ReasmOKs"]);
        ensure!(snmp["Ip.ReasmFails"] == 0, "{} were not", snmp["Ip.ReasmFails"]);

        lab.left.ns.set_sysctl("net/ipv4/ip_no_pmtu_disc", "1")?;
        let udp = IperfOptions {
            udp_bits_per_s: Some(32_000_000),
            length: Some(4000),
            ..IperfOptions::default()
        };
        let packets = udp_arrives(None, (&lab.left.ns, &lab.right), &udp)?;
        ensure!(packets > 500, "{packets} datagrams sent");
        let assembled = lab.right.ns.snmp()?["Ip.ReasmOKs"];
        ensure!(assembled >= 20 + packets as i64, "{assembled} packets put together");
        router.stop().map(drop)
    }

    /// A sender that neither forbids fragments nor segments itself: its packets are cut into
    /// segments, and these into fragments.
    fn segments_without_df() {
        let lab = Lab::build(&LabOptions { offloads: Offloads::ON, ..LabOptions::default() })?;
        lab.left.ns.set_sysctl("net/ipv4/ip_no_pmtu_disc", "1")?;
        lab.right.ns.set_sysctl("net/ipv4/ip_no_pmtu_disc", "1")?;
        let router = Router::start(&lab.router, &host_pair())?;
        router.cli("set interface mtu packet 1280 host-eth1")?;
        let options = IperfOptions::default();
        tcp_reaches(WORKING_BITS_PER_S / 4.0, (&lab.left.ns, &lab.right), &options)?;
        let assembled = lab.right.ns.snmp()?["Ip.ReasmOKs"];
        ensure!(assembled > 100, "{assembled} packets put together");
        router.stop().map(drop)
    }

    /// The router answers packets with DF with the size that fits, and hosts follow.
    fn path_mtu_discovery() {
        let lab = narrow_right(Offloads::OFF)?;
        let router = Router::start(&lab.router, &host_pair())?;
        let options = PingOptions {
            size: 4000,
            dont_fragment: true,
            ..PingOptions::default()
        };
        let result = ping(&lab.left.ns, lab.right.addr, &options)?;
        ensure!(result.received == 0, "{}", result.text);
        ensure!(
            result.errors.iter().any(|line| line.contains("10.10.1.1")
                && line.contains("Frag needed")
                && line.contains("mtu = 1500")),
            "{:?}",
            result.errors
        );
        let route = lab.left.ns.ip("route get 10.10.2.2")?;
        ensure!(route.contains("mtu 1500"), "{route}");
        router.stop().map(drop)
    }

    /// The right host offers segments of nearly 9000 bytes, which its own link could not take: only
    /// the router's ICMP messages let the connection get anywhere.
    fn tcp_discovers_the_path_mtu() {
        for offloads in [Offloads::OFF, Offloads::ON] {
            let lab = narrow_right(offloads)?;
            lab.right.ns.ip("route replace default via 10.10.2.1 advmss 8960")?;
            let router = Router::start(&lab.router, &host_pair())?;
            let options = IperfOptions::default();
            let result = tcp_reaches(WORKING_BITS_PER_S / 2.0, (&lab.left.ns, &lab.right), &options);
            result.with_context(|| format!("with {offloads:?}"))?;
            let route = lab.left.ns.ip("route get 10.10.2.2")?;
            ensure!(route.contains("mtu 1500"), "{offloads:?}: {route}");
            router.stop()?;
        }
        Ok(())
    }

    /// `set interface mtu` narrows the way as a narrow link would.
    fn a_configured_mtu() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        router.cli("set interface mtu packet 1000 host-eth1")?;
        let shown = router.json("show interface host-eth1")?;
        ensure!(shown[0]["mtu"]["l3"] == 1000, "{shown}");
        let options = PingOptions { size: 1200, dont_fragment: true, ..PingOptions::default() };
        let result = ping(&lab.left.ns, lab.right.addr, &options)?;
        ensure!(result.errors.iter().any(|line| line.contains("mtu = 1000")), "{}", result.text);
        let fits = PingOptions { size: 972, dont_fragment: true, ..PingOptions::default() };
        ping(&lab.left.ns, lab.right.addr, &fits)?.all_answered()?;
        router.stop().map(drop)
    }

    fn traceroute_sees_the_router() {
        thalweg_testkit::require_tools(&["traceroute"])?;
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        for method in ["-I", "-U"] {
            let text = lab
                .left
                .ns
                .command("traceroute")
                .args(["-n", method, "-w", "2", "-m", "5", "10.10.2.2"])
                .output()?;
            let hops: Vec<Vec<&str>> =
                text.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
            ensure!(hops.len() == 2, "{method}: {text}");
            for (hop, address) in hops.iter().zip(["10.10.1.1", "10.10.2.2"]) {
                ensure!(hop.get(1) == Some(&address), "{method}: {text}");
                ensure!(!hop.contains(&"*"), "{method}: an answer is missing: {text}");
            }
        }
        router.stop().map(drop)
    }

    /// Packets without a way get an answer that says so.
    fn unreachable_destinations() {
        let lab = Lab::new()?;
        let config = Config { commands: host_pair().commands, ..Config::empty() };
        let router = Router::start(&lab.router, &config)?;
        let options = PingOptions {
            count: 1,
            ..PingOptions::default()
        };
        router.cli("ip table unreachables 0 on")?;
        for (address, answer) in [
            ([192, 0, 2, 1], "Destination Net Unreachable"),
            ([10, 10, 2, 99], "Destination Host Unreachable"),
        ] {
            let patience = WAIT_LIMIT;
            let result = ping(
                &lab.left.ns,
                std::net::Ipv4Addr::from(address),
                &PingOptions { patience, ..options.clone() },
            )?;
            ensure!(
                result.errors.iter().any(|e| e.contains("From 10.10.1.1") && e.contains(answer)),
                "{}",
                result.text
            );
        }
        let closed = lab.left.ns.run(|| -> Result<std::io::ErrorKind> {
            let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
            socket.set_read_timeout(Some(WAIT_LIMIT))?;
            socket.connect("10.10.1.1:9")?;
            socket.send(b"anybody?")?;
            match socket.recv(&mut [0; 8]) {
                Ok(_) => anyhow::bail!("the router answered on a closed port"),
                Err(error) => Ok(error.kind()),
            }
        })??;
        ensure!(closed == std::io::ErrorKind::ConnectionRefused, "{closed:?}");
        router.stop().map(drop)
    }
}
