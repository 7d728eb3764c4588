//! What leaves the router, as Wireshark judges it: lengths, checksums, nothing malformed.

use std::path::Path;

use anyhow::{Result, ensure};
use thalweg_smoke::{Router, host_pair};
use thalweg_testkit::{
    Capture, Cmd, IperfOptions, Lab, PingOptions, iperf3, lab_test, ping, tshark_fields,
};

/// Checks every checksum and every length in a capture.
fn judge(pcap: &Path) -> Result<()> {
    let bad = Cmd::new("tshark")
        .args(["-n", "-r"])
        .arg(pcap)
        .args(["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"])
        .args(["-o", "udp.check_checksum:TRUE"])
        // Ports of ours that some protocol owns mean nothing.
        .args(["-d", "tcp.port==1024-65535,data", "-d", "udp.port==1024-65535,data"])
        .arg("-Y")
        .arg(
            // A sum of zero that Linux completes for a sender without offloads is 0xffff, for TCP
            // too (CSUM_MANGLED_0): one packet in 65,536, which Wireshark finds odd.
            "_ws.malformed || ip.checksum.status == 0 \
             || (tcp.checksum.status == 0 && tcp.checksum != 0xffff) \
             || udp.checksum.status == 0 || icmp.checksum.status == 0 \
             || ip.bogus_ip_length || eth.len && eth.invalid_lentype",
        )
        .output()?;
    ensure!(bad.trim().is_empty(), "tshark objects to what the router sent:\n{bad}");
    Ok(())
}

fn count(pcap: &Path, filter: &str) -> Result<usize> {
    Ok(tshark_fields(pcap, &["frame.number"], filter)?.len())
}

lab_test! {
    /// ARP, echo, TCP and UDP on the right; ARP, replies and ICMP errors on the left.
    fn wireshark_finds_nothing_wrong() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        let (left, right) = (router.dir().join("left.pcap"), router.dir().join("right.pcap"));
        // Only what the router sends.
        let [to_left, to_right] = ["host-eth0", "host-eth1"].map(|name| router.mac(name));
        let filters = [format!("ether src {}", to_left?), format!("ether src {}", to_right?)];
        let captures = [
            Capture::start(&lab.left.ns, "eth0", &left, &filters[0])?,
            Capture::start(&lab.right.ns, "eth0", &right, &filters[1])?,
        ];
        lab.ping_all()?;
        for bytes in [0, 1, 17, 18, 19, 1000] {
            let options = PingOptions { size: bytes, count: 2, ..PingOptions::default() };
            ping(&lab.left.ns, lab.right.addr, &options)?.all_answered()?;
            ping(&lab.left.ns, lab.left.gateway, &options)?.all_answered()?;
        }
        let rate = IperfOptions {
            extra: vec!["--bitrate".into(), "5M".into()],
            ..IperfOptions::default()
        };
        iperf3(&lab.left.ns, &lab.right.ns, lab.right.addr, &rate)?;
        let udp = IperfOptions {
            udp_bits_per_s: Some(1_000_000),
            length: Some(333),
            ..IperfOptions::default()
        };
        iperf3(&lab.left.ns, &lab.right.ns, lab.right.addr, &udp)?;
        router.cli("ping 10.10.2.2 repeat 2 interval 0.01")?;
        // Time exceeded, net unreachable, port unreachable, fragmentation needed.
        router.cli("set interface mtu packet 1200 host-eth1")?;
        router.cli("ip table unreachables 0 on")?;
        for (address, ttl, size) in [
            ([10, 10, 2, 2], Some(1), 56),
            ([192, 0, 2, 1], None, 56),
            ([10, 10, 2, 2], None, 1400),
        ] {
            let options = PingOptions {
                count: 1,
                ttl,
                size,
                dont_fragment: true,
                ..PingOptions::default()
            };
            let result = ping(&lab.left.ns, std::net::Ipv4Addr::from(address), &options)?;
            ensure!(!result.errors.is_empty(), "no error for {address:?}: {}", result.text);
        }
        // Cut up by the router.
        let text = lab
            .left
            .ns
            .command("ping")
            .args(["-n", "-M", "dont", "-c", "2", "-i", "0.01", "-s", "1472", "10.10.2.2"])
            .output()?;
        ensure!(text.contains(" 0% packet loss"), "{text}");
        for capture in captures {
            capture.stop()?;
        }
        for (pcap, filter, least) in [
            (&right, "arp.opcode == 1", 1),
            (&right, "icmp.type == 8", 15),
            (&right, "icmp.type == 0", 3),
            (&right, "tcp.len > 1000", 100),
            (&right, "udp.length == 341", 100),
            (&right, "ip.frag_offset > 0 || ip.flags.mf == 1", 4),
            (&left, "icmp.type == 11", 1),
            (&left, "icmp.type == 3 && icmp.code == 0", 1),
            (&left, "icmp.type == 3 && icmp.code == 4 && icmp.mtu == 1200", 1),
            (&left, "arp.opcode == 2", 1),
        ] {
            let found = count(pcap, filter)?;
            ensure!(found >= least, "{found} packets of `{filter}', {least} expected");
        }
        judge(&left)?;
        judge(&right)?;
        router.stop().map(drop)
    }

    /// What the router makes of the kernel's GSO packets when the far link takes none: segments
    /// with their own checksums.
    fn segments_of_super_packets_are_right() {
        let lab = Lab::new()?;
        thalweg_testkit::set_offloads(&lab.left.ns, "eth0", thalweg_testkit::Offloads::ON)?;
        let config = thalweg_smoke::Config::empty().commands(
            "create host-interface name eth0
             create host-interface name eth1 cksum-gso-disable
             set interface ip address host-eth0 10.10.1.1/24
             set interface ip address host-eth1 10.10.2.1/24
             set interface state host-eth0 up
             set interface state host-eth1 up",
        );
        let router = Router::start(&lab.router, &config)?;
        let pcap = router.dir().join("right.pcap");
        let filter = format!("ether src {}", router.mac("host-eth1")?);
        let capture = Capture::start(&lab.right.ns, "eth0", &pcap, &filter)?;
        let rate = IperfOptions {
            extra: vec!["--bitrate".into(), "50M".into()],
            ..IperfOptions::default()
        };
        iperf3(&lab.left.ns, &lab.right.ns, lab.right.addr, &rate)?;
        capture.stop()?;
        ensure!(count(&pcap, "tcp.len > 1000")? > 1000, "few segments");
        ensure!(count(&pcap, "frame.len > 1514")? == 0, "frames beyond the MTU");
        judge(&pcap)?;
        router.stop().map(drop)
    }
}
