//! Wireshark's view of packets that leave the router: lengths, checksums, nothing malformed.

use std::path::Path;

use anyhow::{Result, ensure};
use thalweg_smoke::{RawLink, Router, host_pair};
use thalweg_testkit::{
    Capture, Cmd, IperfOptions, Lab, PingOptions, WAIT_LIMIT, iperf3, lab_test, ping,
    tshark_fields, wait_until_seen,
};
use thalweg_wire::icmpv6;
use thalweg_wire::ipv6::{self as ipv6_wire, Ipv6Repr};

use crate::ipv6::{self, gateway, host};

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
             || icmpv6.checksum.status == 0 || icmpv6 && _ws.expert.severity >= warning \
             || ip.bogus_ip_length || eth.len && eth.invalid_lentype",
        )
        .output()?;
    ensure!(bad.trim().is_empty(), "tshark objects to what the router sent:\n{bad}");
    Ok(())
}

fn count(pcap: &Path, filter: &str) -> Result<usize> {
    Ok(tshark_fields(pcap, &["frame.number"], filter)?.len())
}

/// Waits until a capture has as many packets of a kind.
fn await_count(pcap: &Path, filter: &str, least: usize) -> Result<()> {
    wait_until_seen(WAIT_LIMIT, &format!("{least} packets of `{filter}'"), || {
        // The last packet may be half written.
        let found = count(pcap, filter).unwrap_or_default();
        if found >= least { Ok(()) } else { Err(found) }
    })
}

/// An IPv6 packet in a frame of the far host.
fn framed(to: [u8; 6], header: Ipv6Repr, payload: &[u8]) -> Result<Vec<u8>> {
    let mut packet = [0; ipv6_wire::HEADER_LEN];
    header.emit(&mut packet)?;
    Ok([&to[..], &[2, 0, 0, 0, 0x99, 9, 0x86, 0xdd], &packet, payload].concat())
}

/// Another router's query for all listeners of a link.
fn mld_query(old: bool) -> Result<Vec<u8>> {
    let (src, dst) = ("fe80::9".parse()?, "ff02::1".parse()?);
    let mut message = vec![130, 0, 0, 0, 0, 100, 0, 0];
    message.extend([0; 16]);
    if !old {
        message.extend([2, 125, 0, 0]);
    }
    icmpv6::fill_checksum(&src, &dst, &mut message)?;
    let payload = [&[58, 0, 5, 2, 0, 0, 1, 0][..], &message].concat();
    let header = Ipv6Repr { hop_limit: 1, ..Ipv6Repr::new(src, dst, 0, payload.len() as u16) };
    framed([0x33, 0x33, 0, 0, 0, 1], header, &payload)
}

/// A packet of a protocol that nobody knows, to the router on the left.
fn unknown_header(to: [u8; 6]) -> Result<Vec<u8>> {
    framed(to, Ipv6Repr::new(host(1), gateway(1), 253, 8), &[0; 8])
}

lab_test! {
    /// ARP, echo, TCP and UDP on the right; ARP, replies and ICMP errors on the left.
    fn wireshark_finds_nothing_wrong() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        let (left, right) = (router.dir().join("left.pcap"), router.dir().join("right.pcap"));
        // The capture has only what the router sends.
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
        let pieces =
            PingOptions { size: 1472, count: 2, may_fragment: true, ..PingOptions::default() };
        ping(&lab.left.ns, lab.right.addr, &pieces)?.all_answered()?;
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

    /// Neighbour discovery, router and listener messages, echo and all ICMPv6 errors.
    fn wireshark_finds_nothing_wrong_with_ipv6() {
        let lab = Lab::new()?;
        let router = ipv6::start(&lab)?;
        let (left, right) = (router.dir().join("left.pcap"), router.dir().join("right.pcap"));
        let [to_left, to_right] = ["host-eth0", "host-eth1"].map(|name| router.mac(name));
        let filters = [format!("ether src {}", to_left?), format!("ether src {}", to_right?)];
        let captures = [
            Capture::start(&lab.left.ns, "eth0", &left, &filters[0])?,
            Capture::start(&lab.right.ns, "eth0", &right, &filters[1])?,
        ];
        // Below 16 bytes ping has no room for times, and hardly waits for the last reply.
        for bytes in [16, 17, 1000] {
            let options = PingOptions { size: bytes, count: 2, ..PingOptions::default() };
            ping(&lab.left.ns, host(2), &options)?.all_answered()?;
            ping(&lab.left.ns, gateway(1), &options)?.all_answered()?;
        }
        let rate = IperfOptions {
            extra: vec!["--bitrate".into(), "5M".into()],
            ..IperfOptions::default()
        };
        iperf3(&lab.left.ns, &lab.right.ns, host(2), &rate)?;
        router.cli("ping 2001:db8:2::2 repeat 2 interval 0.01")?;
        router.cli("set ip neighbor-advertise host-eth1")?;
        // Advertisements, and questions for others'.
        router.cli("ip6 nd host-eth0 prefix 2001:db8:1::/64")?;
        router.cli(
            "ip6 nd host-eth0 rdnss 2001:db8:1::53 dnssl lab.example dnssl example \
             route 2001:db8:9::/48 lifetime 600 route ::/0 lifetime 600 no ra-suppress",
        )?;
        router.cli("ip6 nd address autoconfig host-eth1 default-route")?;
        // A test of an address, and listeners' reports of all kinds.
        router.cli("set ip6 dad enable")?;
        router.cli("set interface ip address host-eth1 2001:db8:2::cc:1/64")?;
        await_count(&right, "icmpv6.type == 135 && ipv6.src == ::", 1)?;
        let link = RawLink::open(&lab.right.ns, "eth0")?;
        link.send(&mld_query(false)?)?;
        await_count(&right, "icmpv6.mldr.mar.record_type == 2", 1)?;
        link.send(&mld_query(true)?)?;
        await_count(&right, "icmpv6.type == 131", 4)?;
        router.cli("set interface ip address del host-eth1 2001:db8:2::cc:1/64")?;
        await_count(&right, "icmpv6.type == 132", 1)?;
        // Hop limit exceeded, no route, address and port unreachable, too big, unknown header.
        router.cli("ip6 table unreachables 0 on")?;
        router.cli("set interface mtu packet 1300 host-eth1")?;
        for (address, ttl, size) in [
            (host(2), Some(1), 56),
            (std::net::Ipv6Addr::new(0x2001, 0xdb8, 77, 0, 0, 0, 0, 1), None, 56),
            (std::net::Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 99), None, 56),
            (host(2), None, 1400),
        ] {
            let options =
                PingOptions { count: 1, ttl, size, dont_fragment: true, ..PingOptions::default() };
            let result = ping(&lab.left.ns, address, &options)?;
            ensure!(!result.errors.is_empty(), "no error for {address:?}: {}", result.text);
        }
        let socket = lab.left.ns.run(|| std::net::UdpSocket::bind((host(1), 0)))??;
        socket.send_to(b"nobody listens", (gateway(1), 9))?;
        let link = RawLink::open(&lab.left.ns, "eth0")?;
        link.send(&unknown_header(router.mac("host-eth0")?.0)?)?;
        await_count(&left, "icmpv6.type == 4", 1)?;
        await_count(&left, "icmpv6.type == 134", 1)?;
        for capture in captures {
            capture.stop()?;
        }
        for (pcap, filter, least) in [
            (&right, "icmpv6.type == 128", 8),
            (&right, "icmpv6.type == 133", 1),
            (&right, "icmpv6.type == 135 && ipv6.dst == ff02::/16", 2),
            (&right, "icmpv6.type == 136 && ipv6.dst == ff02::1", 1),
            (&right, "icmpv6.mldr.mar.record_type == 4", 1),
            (&right, "tcp.len > 1000", 100),
            (&left, "icmpv6.type == 136", 1),
            (&left, "icmpv6.type == 3", 1),
            (&left, "icmpv6.type == 1 && icmpv6.code == 0", 1),
            (&left, "icmpv6.type == 1 && icmpv6.code == 3", 1),
            (&left, "icmpv6.type == 1 && icmpv6.code == 4", 1),
            (&left, "icmpv6.type == 2 && icmpv6.mtu == 1300", 1),
        ] {
            let found = count(pcap, filter)?;
            ensure!(found >= least, "{found} packets of `{filter}', {least} expected");
        }
        judge(&left)?;
        judge(&right)?;
        router.stop().map(drop)
    }

    /// The router cuts the kernel's GSO packets when the far link takes none: segments have their
    /// own checksums.
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
