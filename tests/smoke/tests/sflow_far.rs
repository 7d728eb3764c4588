//! Outputs of sampled packets that are tagged or dropped, and collectors that are reached by IPv6,
//! on one link only, through a device, or from another namespace.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use anyhow::{Context, Result, ensure};
use thalweg_sflow::{Datagram, FlowRecord, Interface, Sample};
use thalweg_smoke::{Collector, Config, RawLink, Router, host_pair};
use thalweg_testkit::{
    Lab, LabOptions, LinkOptions, Middle, Netns, WAIT_LIMIT, lab_test, veth, wait_until_seen,
};
use thalweg_wire::build::Packet;

use crate::sflow::{capture_sflow, dissected, index_of, no_complaints};

/// Listens on a port of a namespace, on all addresses.
fn listen(ns: &Netns, port: u16) -> Result<UdpSocket> {
    let socket = ns.run(|| UdpSocket::bind(("::", port)))??;
    socket.set_read_timeout(Some(WAIT_LIMIT))?;
    Ok(socket)
}

/// Returns the sender of the next good datagram.
fn next_sender(socket: &UdpSocket, what: &str) -> Result<IpAddr> {
    let mut buf = [0; 65_536];
    let (length, from) =
        socket.recv_from(&mut buf).with_context(|| format!("waited for {what}"))?;
    Datagram::parse(&buf[..length])?.check_end()?;
    Ok(match from {
        SocketAddr::V6(v6) => v6.ip().to_ipv4_mapped().map_or(IpAddr::V6(*v6.ip()), IpAddr::V4),
        SocketAddr::V4(v4) => IpAddr::V4(*v4.ip()),
    })
}

lab_test! {
    /// Tagged frames through a cross connect: the sample names the VLAN and its priority, in and
    /// out, and Wireshark reads it so.
    fn tagged_packets_have_their_vlans() {
        let lab = Lab::build(&LabOptions { middle: Middle::Bridge, ..LabOptions::default() })?;
        let collector = Collector::listen(&lab.router)?;
        let router = Router::start(&lab.router, &Config::empty().commands(
            "create host-interface name eth0
             create host-interface name eth1
             set interface l2 xconnect host-eth0 host-eth1
             set interface l2 xconnect host-eth1 host-eth0
             set interface state host-eth0 up
             set interface state host-eth1 up
             sflow collector add 127.0.0.1
             sflow agent-address 10.10.1.1
             sflow sampling-rate 1
             sflow direction both
             sflow enable host-eth0
             sflow enable host-eth1",
        ))?;
        let out = index_of(&router, "host-eth1")?;
        let pcap = router.dir().join("vlans.pcap");
        let capture = capture_sflow(&lab.router, &pcap)?;
        let left = RawLink::open(&lab.left.ns, "eth0")?;
        let (a, b) = (lab.left.mac.parse()?, lab.right.mac.parse()?);
        // Each with a length of its own.
        let frames: [(&[u16], u16, u32, u32); 3] =
            [(&[10], 300, 10, 0), (&[0x6000 | 20], 310, 20, 3), (&[0xe000 | 30, 40], 320, 30, 7)];
        for (tags, length, ..) in frames {
            let frame = tags.iter().fold(Packet::new().ether(a, b), |p, tag| p.vlan(tag & 0xfff));
            let mut frame = frame.ethertype(0x88b5).payload(&vec![7; length.into()]).build();
            // The priority is in front of the VLAN.
            for (i, tag) in tags.iter().enumerate() {
                frame[14 + 4 * i] |= (tag >> 8) as u8 & 0xe0;
            }
            left.send(&frame)?;
        }
        let mut seen = Vec::new();
        collector.receive(WAIT_LIMIT, "samples of tagged frames, received and sent", |bytes| {
            for sample in Datagram::parse(bytes)?.samples() {
                let Sample::Flow(flow) = sample? else { continue };
                let records = flow.records.collect::<Result<Vec<_>, _>>()?;
                let [FlowRecord::Switch(s), FlowRecord::RawHeader(raw)] = &records[..] else {
                    continue;
                };
                ensure!(flow.output == Interface::Index(out), "{:?}", flow.output);
                let vlans = (s.source_vlan, s.source_priority);
                seen.push((raw.frame_length, flow.source.index == out, vlans));
                ensure!((s.destination_vlan, s.destination_priority) == vlans, "{s:?}");
            }
            Ok((seen.len() >= 6).then_some(()))
        })?;
        for (tags, length, vlan, priority) in frames {
            let length = u32::from(length) + 14 + 4 * tags.len() as u32 + 4;
            let received = (length, false, (vlan, priority));
            ensure!(seen.contains(&received), "{received:?} is not among {seen:?}");
            ensure!(seen.iter().any(|s| s.0 == length && s.1), "{length} not sent: {seen:?}");
        }
        capture.stop()?;
        no_complaints(&pcap)?;
        for field in ["sflow_245.vlan.in", "sflow_245.vlan.out"] {
            let found = dissected(&pcap, field)?;
            for (_, _, vlan, _) in frames {
                let times = found.iter().filter(|v| **v == vlan.to_string()).count();
                ensure!(times == 2, "{field}: {vlan} in {found:?}");
            }
        }
        router.stop().map(drop)
    }

    /// A dropped packet's sample has the reason for its output, which Wireshark reads.
    fn dropped_packets_have_the_reason_for_output() {
        let lab = Lab::new()?;
        let collector = Collector::listen(&lab.router)?;
        let router = Router::start(&lab.router, &host_pair().commands(
            "sflow collector add 127.0.0.1
             sflow agent-address 10.10.1.1
             sflow sampling-rate 1
             sflow enable host-eth0",
        ))?;
        lab.ping_all()?;
        let pcap = router.dir().join("drops.pcap");
        let capture = capture_sflow(&lab.router, &pcap)?;
        // No answer comes, as is right: the first has no route, the second no life left.
        for arguments in [["-t", "64", "203.0.113.1"], ["-t", "1", "10.10.2.2"]] {
            let ping = lab.left.ns.command("ping").args(["-c", "2", "-i", "0.2", "-W", "1"]);
            let _ = ping.args(arguments).run()?;
        }
        let mut codes = Vec::new();
        collector.receive(WAIT_LIMIT, "both kinds of drops", |bytes| {
            for sample in Datagram::parse(bytes)?.samples() {
                let Sample::Flow(flow) = sample? else { continue };
                if let Interface::Discarded(code) = flow.output {
                    codes.push(code);
                }
            }
            Ok((codes.len() >= 4).then_some(()))
        })?;
        // Time to live exceeded; and no route.
        for code in [257, 0] {
            ensure!(codes.iter().filter(|c| **c == code).count() == 2, "{codes:?}");
        }
        capture.stop()?;
        no_complaints(&pcap)?;
        // Wireshark shows the value only: no interface here has one of those above 255.
        let values = dissected(&pcap, "sflow.flow_sample.output_interface_value")?;
        let values = values.iter().map(|v| v.parse()).collect::<Result<Vec<u32>, _>>()?;
        let mut read: Vec<u32> = values.into_iter().filter(|v| (256..512).contains(v)).collect();
        read.sort_unstable();
        codes.retain(|code| *code > 255);
        ensure!(read == codes, "Wireshark reads {read:?}, we {codes:?}");
        router.stop().map(drop)
    }

    /// A firewall on the way refuses now and then by ICMP: that costs a datagram, and not all those
    /// of a second.
    fn a_refusal_on_the_way_costs_one_datagram() {
        let lab = Lab::new()?;
        let far = Netns::new("far")?;
        let side = |last: u8| LinkOptions::default().address(format!("10.99.1.{last}/24"));
        veth((&lab.router, "mgmt0", &side(1)), (&far, "to-mgmt0", &side(2)))?;
        lab.router.ip("route add 10.98.0.1/32 via 10.99.1.2")?;
        far.set_sysctl("net/ipv4/ip_forward", "1")?;
        far.ip("route add prohibit 10.98.0.1/32")?;
        let router = Router::start(&lab.router, &host_pair().commands(
            "sflow collector add 10.98.0.1
             sflow agent-address 10.10.1.1
             sflow sampling-rate 1
             sflow enable host-eth0",
        ))?;
        lab.ping_all()?;
        // Datagrams leave after a tenth of a second, ten in a second.
        let ping = lab.left.ns.command("ping").args(["-q", "-i", "0.02", "10.10.2.2"]).spawn()?;
        let mut last = (0, 0);
        wait_until_seen(WAIT_LIMIT, "a refusal among a hundred datagrams", || {
            let shown = router.json("show sflow").map_err(|e| format!("{e:#}"))?;
            let count = |name: &str| shown["collectors"][0][name].as_u64().unwrap_or(0);
            last = (count("datagrams"), count("errors"));
            if last.0 >= 100 && last.1 > 0 { Ok(()) } else { Err(format!("{last:?}")) }
        })?;
        drop(ping);
        let (sent, errors) = last;
        // The kernel refuses less and less often.
        ensure!(errors <= 8, "{sent} datagrams sent, {errors} not");
        router.stop().map(drop)
    }

    /// Each collector gets every datagram: by IPv6, by an address that holds on one link, through a
    /// device whatever routing says, and from another namespace.
    fn collectors_on_other_links() {
        let lab = Lab::new()?;
        let far = Netns::new("far")?;
        let name = format!("thalweg-f{}", std::process::id());
        let elsewhere = Netns::named(&name)?;
        for ns in [&lab.router, &elsewhere, &far] {
            // Labs are without it.
            for which in ["all", "default"] {
                ns.set_sysctl(&format!("net/ipv6/conf/{which}/disable_ipv6"), "0")?;
            }
        }
        for (ns, dev, mine, theirs) in
            [(&lab.router, "mgmt0", "1", "2"), (&elsewhere, "mgmt1", "3", "4")]
        {
            let side = |last: &str| {
                LinkOptions::default()
                    .address(format!("10.99.{mine}.{last}/24"))
                    .address(format!("fd00:{mine}::{last}/64 nodad"))
                    .address(format!("fe80::{last}/64 nodad"))
            };
            veth((ns, dev, &side(mine)), (&far, &format!("to-{dev}"), &side(theirs)))?;
        }
        // Routing would lead astray.
        lab.router.ip("route add 10.99.1.2/32 dev lo")?;
        let cases = [
            ("fd00:1::2 port 7001", 7001, "fd00:1::1"),
            ("fe80::2%mgmt0 port 7002", 7002, "fe80::1"),
            ("fe80::2 dev mgmt0 port 7003", 7003, "fe80::1"),
            ("10.99.1.2 dev mgmt0 port 7004", 7004, "10.99.1.1"),
            (&format!("fd00:3::4 port 7005 namespace {name}"), 7005, "fd00:3::3"),
            (&format!("fe80::4%mgmt1 port 7006 namespace {name}"), 7006, "fe80::3"),
            (&format!("10.99.3.4 port 7007 namespace {name} dev mgmt1"), 7007, "10.99.3.3"),
        ];
        let sockets = cases.iter().map(|case| listen(&far, case.1)).collect::<Result<Vec<_>>>()?;
        let added: String =
            cases.iter().map(|case| format!("sflow collector add {}\n", case.0)).collect();
        let router = Router::start(&lab.router, &host_pair().commands(&added).commands(
            "sflow agent-address 10.10.1.1
             sflow polling-interval 1
             sflow enable host-eth0",
        ))?;
        for (socket, (collector, _, expected)) in sockets.iter().zip(&cases) {
            let from = next_sender(socket, collector)?;
            // The kernel takes any of its addresses on a link.
            let link = |ip: IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
            let expected: IpAddr = expected.parse()?;
            let good = from == expected || (link(from) && link(expected));
            ensure!(good, "{collector}: from {from}");
        }
        let shown = router.cli("show sflow")?;
        ensure!(shown.contains("sflow collector add fe80::2%mgmt0 port 7002"), "{shown}");
        // One link fails: the others go on, and the failure is logged; it works again by itself.
        far.ip("link set to-mgmt0 down")?;
        lab.router.ip("link del mgmt0")?;
        wait_until_seen(WAIT_LIMIT, "the missing device to be reported", || {
            let shown = router.cli("show sflow").map_err(|e| format!("{e:#}"))?;
            let failing = shown.lines().filter(|l| l.contains("latest:")).count();
            if failing >= 3 { Ok(()) } else { Err(shown) }
        })?;
        sockets[6].set_nonblocking(true)?;
        while sockets[6].recv(&mut [0; 2000]).is_ok() {}
        sockets[6].set_nonblocking(false)?;
        next_sender(&sockets[6], "the collector of the other namespace")?;
        router.stop().map(drop)
    }
}
