//! Address translation between real kernels: the left host is inside, the right one outside.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use thalweg_smoke::{Router, host_pair};
use thalweg_testkit::{
    IperfOptions, Lab, LabOptions, Offloads, PingOptions, accept, connect as tcp_connect, iperf3,
    join, lab_test, ping, wait_until_seen,
};

use crate::throughput::{tcp_both_ways, udp_arrives, working_rate};

/// The address that hosts inside share.
const SHARED: Ipv4Addr = Ipv4Addr::new(10, 10, 2, 100);
const LIMIT: Duration = thalweg_testkit::WAIT_LIMIT;

fn lab(offloads: Offloads) -> Result<Lab> {
    let lab = Lab::build(&LabOptions { offloads, ..LabOptions::default() })?;
    // The outside knows no way to the inside.
    let route = lab.right.ns.ip("route show default")?;
    if !route.is_empty() {
        lab.right.ns.ip("route del default")?;
    }
    let _ = lab.right.ns.ip("route del 10.10.1.0/24");
    Ok(lab)
}

fn start(lab: &Lab, more: &str) -> Result<Router> {
    let config = host_pair().commands(
        "nat44 plugin enable sessions 20000
         nat44 add address 10.10.2.100
         set interface nat44 in host-eth0 out host-eth1",
    );
    Router::start(&lab.router, &config.commands(more))
}

/// Connects from the inside; says who the outside saw, having exchanged some bytes.
fn connect(lab: &Lab, port: u16) -> Result<SocketAddr> {
    let listener = lab.right.ns.run(|| TcpListener::bind((lab.right.addr, port)))??;
    let server = thread::spawn(move || -> Result<SocketAddr> {
        let (mut stream, peer) = accept(&listener)?;
        let mut got = Vec::new();
        stream.read_to_end(&mut got)?;
        ensure!(got.len() == 100_000, "{} bytes", got.len());
        stream.write_all(b"thanks")?;
        Ok(peer)
    });
    lab.left.ns.run(|| -> Result<()> {
        let mut stream = tcp_connect((lab.right.addr, port))?;
        stream.write_all(&vec![7; 100_000])?;
        stream.shutdown(std::net::Shutdown::Write)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        ensure!(answer == "thanks", "{answer}");
        Ok(())
    })??;
    join(server, LIMIT, "the server")?
}

/// A number of `show nat44 summary`.
fn counted(router: &Router, name: &str) -> Result<u64> {
    router.json("show nat44 summary")?[name].as_u64().context(name.to_owned())
}

lab_test! {
    /// Pings, connections and datagrams of hosts inside; and the outside gets no further.
    fn the_inside_shares_an_address() {
        let lab = lab(Offloads::OFF)?;
        let router = start(&lab, "")?;
        ping(&lab.left.ns, lab.right.addr, &PingOptions::default())?.all_answered()?;
        for port in 8000..8010 {
            let peer = connect(&lab, port)?;
            ensure!(peer.ip() == SHARED, "the outside saw {peer}");
        }
        let server = lab.right.ns.run(|| UdpSocket::bind((lab.right.addr, 5300)))??;
        server.set_read_timeout(Some(LIMIT))?;
        let client = lab.left.ns.run(|| UdpSocket::bind((lab.left.addr, 0)))??;
        client.set_read_timeout(Some(LIMIT))?;
        for length in [0usize, 1, 9, 100, 1400] {
            client.send_to(&vec![1; length], (lab.right.addr, 5300))?;
            let (n, peer) = server.recv_from(&mut [0; 2000])?;
            ensure!(n == length && peer.ip() == SHARED, "{n} bytes of {peer}");
            server.send_to(&vec![2; length], peer)?;
            let (n, peer) = client.recv_from(&mut [0; 2000])?;
            ensure!(n == length && peer.ip() == lab.right.addr, "{n} bytes of {peer}");
        }
        let sessions = router.cli("show nat44 sessions")?;
        ensure!(sessions.contains("proto TCP") && sessions.contains("proto ICMP"), "{sessions}");
        lab.right.ns.ip("route add 10.10.1.0/24 via 10.10.2.1")?;
        let lost = ping(&lab.right.ns, lab.left.addr, &PingOptions::unanswered(2))?;
        ensure!(lost.received == 0, "the outside came in: {lost:?}");
        let reason = "no translation";
        wait_until_seen(LIMIT, reason, || match router.error_count("nat44-ed-out2in", reason) {
            Ok(n) if n >= 2 => Ok(()),
            other => Err(format!("{other:?}")),
        })?;
        router.stop().map(drop)
    }

    /// Hops on the way report it: the router itself, and hosts behind it.
    fn errors_on_the_way_are_heard() {
        let lab = lab(Offloads::OFF)?;
        let router = start(&lab, "")?;
        let probe = |ttl: u32, port: u16| -> Result<std::io::Error> {
            lab.left.ns.run(|| -> Result<std::io::Error> {
                let socket = UdpSocket::bind((lab.left.addr, 0))?;
                socket.set_ttl(ttl)?;
                socket.set_read_timeout(Some(LIMIT))?;
                socket.connect((lab.right.addr, port))?;
                socket.send(b"who is there")?;
                let answer = socket.recv(&mut [0; 10]);
                answer.err().context("nobody answers on that port")
            })?
        };
        // A connected socket gets errors about what it sent, and no others.
        let refused = probe(64, 33_434)?;
        ensure!(refused.kind() == std::io::ErrorKind::ConnectionRefused, "{refused}");
        let ping_with = |ttl: &str| lab.left.ns.command("ping")
            .args(["-c", "1", "-W", "3", "-t", ttl, &lab.right.addr.to_string()]).run();
        let text = ping_with("1")?.stdout;
        ensure!(text.contains("10.10.1.1") && text.contains("exceeded"), "{text}");
        ensure!(ping_with("2")?.stdout.contains("1 received"), "the second hop");
        router.stop().map(drop)
    }

    /// Checksums left to devices, and segments of up to 64 KiB.
    fn tcp_with_offloads_on() {
        let lab = lab(Offloads::ON)?;
        let router = start(&lab, "")?;
        tcp_both_ways(&lab)?;
        for side in [&lab.left, &lab.right] {
            let snmp = side.ns.snmp()?;
            ensure!(snmp["Tcp.InCsumErrors"] == 0, "{}: bad TCP checksums", side.ns.label());
            ensure!(snmp["Ip.InHdrErrors"] == 0, "{}: bad IP headers", side.ns.label());
        }
        router.stop().map(drop)
    }

    fn tcp_with_offloads_off() {
        let lab = lab(Offloads::OFF)?;
        let router = start(&lab, "")?;
        tcp_both_ways(&lab)?;
        router.stop().map(drop)
    }

    /// TCP is translated on the way out of the interface outside.
    fn tcp_with_output_feature() {
        for offloads in [Offloads::OFF, Offloads::ON] {
            let lab = lab(offloads)?;
            let config = host_pair().commands(
                "nat44 add interface address host-eth1
                 set interface nat44 out host-eth1 output-feature",
            );
            let router = Router::start(&lab.router, &config)?;
            tcp_both_ways(&lab)?;
            let peer = connect(&lab, 8000)?;
            ensure!(peer.ip() == Ipv4Addr::new(10, 10, 2, 1), "the outside saw {peer}");
            ping(&lab.left.ns, lab.right.addr, &PingOptions::default())?.all_answered()?;
            router.stop()?;
        }
        Ok(())
    }

    /// Errors come before translation on the way out: hosts learn the hops and the MTU.
    fn errors_with_output_feature() {
        let lab = lab(Offloads::ON)?;
        let config = host_pair().commands(
            "nat44 add interface address host-eth1
             set interface nat44 out host-eth1 output-feature
             set interface mtu packet 1000 host-eth1",
        );
        let router = Router::start(&lab.router, &config)?;
        for kind in ["-I", "-U"] {
            let out = lab.left.ns.command("traceroute")
                .args(["-n", "-q", "1", "-w", "3", "-m", "4", kind, &lab.right.addr.to_string()])
                .run()?;
            let hops: Vec<&str> =
                out.stdout.lines().skip(1).filter_map(|l| l.split_whitespace().nth(1)).collect();
            ensure!(hops == ["10.10.1.1", "10.10.2.2"], "{kind}: {}", out.stdout);
        }
        let peer = connect(&lab, 8000)?;
        ensure!(peer.ip() == Ipv4Addr::new(10, 10, 2, 1), "the outside saw {peer}");
        let route = lab.left.ns.ip("route get 10.10.2.2")?;
        ensure!(route.contains("mtu 1000"), "{route}");
        router.stop().map(drop)
    }

    fn udp_without_loss() {
        let lab = lab(Offloads::OFF)?;
        let router = start(&lab, "")?;
        for reverse in [false, true] {
            let options = IperfOptions {
                udp_bits_per_s: Some(40_000_000),
                length: Some(1000),
                reverse,
                ..IperfOptions::default()
            };
            let sent = udp_arrives(Some(1000), (&lab.left.ns, &lab.right), &options)?;
            ensure!(sent > 1000, "{sent} datagrams sent");
        }
        router.stop().map(drop)
    }

    /// Addresses come and interfaces go while a connection transfers.
    fn changes_do_not_disturb() {
        let lab = lab(Offloads::ON)?;
        let router = start(&lab, "")?;
        let working = working_rate(&lab)?;
        let sent = || -> Result<u64> {
            let shown = router.json("show interface host-eth1")?;
            shown[0]["counters"]["tx_bytes"].as_u64().context("tx bytes")
        };
        let before = sent()?;
        let options = IperfOptions { duration: Duration::from_secs(4), ..IperfOptions::default() };
        let result = thread::scope(|s| -> Result<_> {
            let transfer =
                s.spawn(|| iperf3(&lab.left.ns, &lab.right.ns, lab.right.addr, &options));
            wait_until_seen(LIMIT, "sessions", || match counted(&router, "total-tcp-sessions") {
                Ok(n) if n >= 2 => Ok(()),
                other => Err(format!("{other:?}")),
            })?;
            // Data flows: an interface that is down would refuse a connection that just begins.
            wait_until_seen(LIMIT, "data", || {
                let more = sent().map_err(|e| e.to_string())? - before;
                if more > 1_000_000 { Ok(()) } else { Err(format!("{more} bytes")) }
            })?;
            for n in 0..60 {
                router.cli(&format!("nat44 add address 10.10.2.{}", 101 + n))?;
                if n % 3 == 0 {
                    router.cli(&format!("nat44 add address 10.10.2.{} del", 101 + n))?;
                }
                if n % 20 == 0 {
                    router.cli("set interface state host-eth1 down")?;
                    router.cli("set interface state host-eth1 up")?;
                }
            }
            transfer.join().map_err(|_| anyhow::anyhow!("iperf3 panicked"))?
        })?;
        let (got, least) = (result.bits_per_s / 1e6, working / 1e6);
        ensure!(got > least, "{got:.1} Mbit/s, not {least:.1}");
        router.stop().map(drop)
    }

    /// More connections than there is room for: those that stand are not disturbed.
    fn a_table_that_is_full() {
        let lab = lab(Offloads::OFF)?;
        let config = host_pair().commands(
            "nat44 plugin enable sessions 40
             nat44 add address 10.10.2.100
             set interface nat44 in host-eth0 out host-eth1",
        );
        let router = Router::start(&lab.router, &config)?;
        let listener = lab.right.ns.run(|| TcpListener::bind((lab.right.addr, 8000)))??;
        let mut kept = Vec::new();
        for _ in 0..20 {
            let stream = lab.left.ns.run(|| tcp_connect((lab.right.addr, 8000)))??;
            kept.push((stream, accept(&listener)?.0));
        }
        // Datagrams nobody answers: they replace each other, not what stands.
        let socket = lab.left.ns.run(|| UdpSocket::bind((lab.left.addr, 0)))??;
        for port in 10_000..10_500u16 {
            let _ = socket.send_to(b"anybody?", (lab.right.addr, port));
        }
        wait_until_seen(LIMIT, "datagrams", || {
            match counted(&router, "half-open-sessions-recycled") {
                Ok(n) if n > 400 => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })?;
        for (near, far) in &mut kept {
            near.write_all(b"still")?;
            let mut got = [0; 5];
            far.read_exact(&mut got)?;
            far.write_all(b"there")?;
            near.read_exact(&mut got)?;
            ensure!(&got == b"there");
        }
        ensure!(counted(&router, "total-sessions")? <= 40);
        router.stop().map(drop)
    }

    /// A host inside serves the outside by a port of the shared address.
    fn a_server_inside() {
        let lab = lab(Offloads::ON)?;
        let router = start(
            &lab,
            "nat44 add static mapping tcp local 10.10.1.2 8080 external 10.10.2.100 80",
        )?;
        let listener = lab.left.ns.run(|| TcpListener::bind((lab.left.addr, 8080)))??;
        for _ in 0..20 {
            let mut far = lab.right.ns.run(|| tcp_connect((SHARED, 80)))??;
            let (mut near, peer) = accept(&listener)?;
            ensure!(peer.ip() == lab.right.addr, "{peer}");
            far.write_all(b"hello")?;
            let mut got = [0; 5];
            near.read_exact(&mut got)?;
            ensure!(&got == b"hello");
        }
        router.stop().map(drop)
    }
}
