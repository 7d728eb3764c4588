//! Flow rules and connection tracking between real kernels: the left host may open connections to
//! the right one, which may only answer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use thalweg_smoke::{Config, RawLink, Router, host_pair};
use thalweg_testkit::{
    IperfOptions, Lab, LabOptions, Middle, Offloads, PingOptions, accept, connect, iperf3, join,
    lab_test, ping, require_tools, wait_until, wait_until_seen,
};
use thalweg_wire::build::Packet;
use thalweg_wire::tcp::flag::{ACK, PSH, SYN};

use crate::throughput::{WORKING_BITS_PER_S, tcp_both_ways, tcp_reaches};

const LIMIT: Duration = thalweg_testkit::WAIT_LIMIT;
/// Limit for thousands of connections.
const BUSY_LIMIT: Duration = Duration::from_secs(180);

/// The bridge domain, and so its rules.
const DOMAIN: &str = "10";

/// Rules with blanks between the parts, as people write them, and no word about ARP.
const FOUR_RULES: &str = "\
priority=1 ip ct_state=-trk actions=ct(table=0)
priority=1 ip ct_state=+trk+new in_port=host-eth0 actions=ct(commit),normal
priority=1 ip ct_state=+trk+est actions=normal
priority=0 actions=drop
";

fn lab(offloads: Offloads) -> Result<Lab> {
    let lab =
        Lab::build(&LabOptions { middle: Middle::Bridge, offloads, ..LabOptions::default() })?;
    Ok(lab)
}

/// Hosts that need no ARP.
fn introduce(lab: &Lab) -> Result<()> {
    for (side, other) in [(&lab.left, &lab.right), (&lab.right, &lab.left)] {
        let (addr, mac, dev) = (other.addr, other.mac, side.dev);
        side.ns.ip(&format!("neighbour replace {addr} lladdr {mac} dev {dev}"))?;
    }
    Ok(())
}

fn bridged() -> Config {
    Config::empty().commands(
        "create host-interface name eth0
         create host-interface name eth1
         set interface l2 bridge host-eth0 10
         set interface l2 bridge host-eth1 10
         set interface state host-eth0 up
         set interface state host-eth1 up",
    )
}

fn rules_file(router: &Router, text: &str) -> Result<PathBuf> {
    let path = router.dir().join("ct-flows.txt");
    std::fs::write(&path, text).context("write the rules")?;
    Ok(path)
}

fn add_file(router: &Router, path: &Path) -> Result<()> {
    router.cli(&format!("flow add {DOMAIN} file {}", path.display())).map(drop)
}

/// A router whose bridge domain follows the four rules and one about ARP.
fn guarded(lab: &Lab, config: Config) -> Result<Router> {
    let router = Router::start(&lab.router, &config)?;
    let text = format!("priority=2,arp,actions=normal\n{FOUR_RULES}");
    add_file(&router, &rules_file(&router, &text)?)?;
    Ok(router)
}

/// A number of `show conntrack summary`.
fn counted(router: &Router, path: &[&str]) -> Result<u64> {
    let all = router.json("show conntrack summary")?;
    let found = path.iter().fold(&all, |at, name| &at[*name]);
    found.as_u64().with_context(|| format!("no {path:?} in {all}"))
}

/// Answers this number of connections, each with as much as it was asked.
fn serve(lab: &Lab, port: u16, connections: usize) -> Result<thread::JoinHandle<Result<()>>> {
    let listener = lab.right.ns.run(|| TcpListener::bind((lab.right.addr, port)))??;
    Ok(thread::spawn(move || {
        for _ in 0..connections {
            let (mut stream, _) = accept(&listener)?;
            let mut got = [0; 40];
            stream.read_exact(&mut got)?;
            stream.write_all(&got)?;
        }
        Ok(())
    }))
}

fn ask(to: SocketAddr) -> Result<()> {
    let mut stream = connect(to)?;
    stream.write_all(&[7; 40])?;
    let mut got = [0; 40];
    stream.read_exact(&mut got)?;
    ensure!(got == [7; 40], "{got:?}");
    Ok(())
}

/// Clients on the left open this number of connections, several at a time.
fn connections(lab: &Lab, port: u16, count: usize) -> Result<()> {
    const CLIENTS: usize = 8;
    let server = serve(lab, port, count)?;
    let to = SocketAddr::from((lab.right.addr, port));
    lab.left.ns.run(|| -> Result<()> {
        // Threads are in the namespace of the one that starts them.
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| thread::spawn(move || (0..count / CLIENTS).try_for_each(|_| ask(to))))
            .collect();
        for client in clients {
            join(client, BUSY_LIMIT, "a client")??;
        }
        Ok(())
    })??;
    join(server, LIMIT, "the server")?
}

/// The other way round, of which nothing may come: rules drop it all.
fn is_shut(lab: &Lab, router: &Router) -> Result<()> {
    let dropped = || router.error_count("flow-rules", "dropped by a rule");
    let before = dropped()?;
    let listener = lab.left.ns.run(|| TcpListener::bind((lab.left.addr, 9000)))??;
    let to = SocketAddr::from((lab.left.addr, 9000));
    let tried = lab.right.ns.run(|| TcpStream::connect_timeout(&to, Duration::from_millis(300)))?;
    drop(listener);
    ensure!(tried.is_err(), "the right host got in");
    let lost = ping(&lab.right.ns, lab.left.addr, &PingOptions::unanswered(2))?;
    ensure!(lost.received == 0, "the right host got in: {lost:?}");
    wait_until_seen(LIMIT, "an opening and two pings to be dropped", || match dropped() {
        Ok(now) if now >= before + 3 => Ok(()),
        other => Err(format!("{other:?}, {before} before")),
    })
}

/// Thousands of connections, pings and datagrams from the left, on one or two workers.
fn one_side_opens(workers: usize, offloads: Offloads) -> Result<()> {
    let lab = lab(offloads)?;
    let config = bridged().stanza(&format!("cpu {{ workers {workers} }}"));
    let router = guarded(&lab, config)?;
    ping(&lab.left.ns, lab.right.addr, &PingOptions::default())?.all_answered()?;
    connections(&lab, 8000, 4000)?;
    is_shut(&lab, &router)?;
    tcp_both_ways(&lab)?;
    let parallel = IperfOptions { parallel: 8, ..IperfOptions::default() };
    tcp_reaches(WORKING_BITS_PER_S, (&lab.left.ns, &lab.right), &parallel)?;
    for side in [&lab.left, &lab.right] {
        let snmp = side.ns.snmp()?;
        ensure!(snmp["Tcp.InCsumErrors"] == 0, "{}: bad checksums", side.ns.label());
    }
    ensure!(counted(&router, &["counts", "created"])? >= 4000);
    let invalid = counted(&router, &["counts", "invalid"])?;
    ensure!(
        invalid < 100,
        "{invalid} packets are invalid: {}",
        router.cli("show conntrack summary")?
    );
    let listed = router.cli("show conntrack -s")?;
    let line = format!("tcp,orig=(src={},dst={},", lab.left.addr, lab.right.addr);
    ensure!(listed.lines().filter(|l| l.starts_with(&line)).count() > 3000, "{listed}");
    ensure!(listed.contains("icmp,orig=(") && listed.contains("dport=8000"), "{listed}");
    router.stop().map(drop)
}

/// Finds a connection's numbers: what its two sides say next, from a frame that one of them sent.
fn numbers(frame: &[u8]) -> Option<(u16, u16, u32, u32)> {
    let word = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
    let long = |at: usize| Some(u32::from_be_bytes(*frame.get(at..)?.first_chunk()?));
    let tcp = word(12)? == 0x800 && *frame.get(23)? == 6;
    tcp.then_some(())?;
    Some((word(34)?, word(36)?, long(38)?, long(42)?))
}

/// A datagram, which the server sends back as it is.
fn there_and_back(lab: &Lab, server: &UdpSocket, sent: &[u8]) -> Result<()> {
    let client = lab.left.ns.run(|| UdpSocket::bind((lab.left.addr, 0)))??;
    client.set_read_timeout(Some(Duration::from_millis(300)))?;
    client.send_to(sent, server.local_addr()?)?;
    let mut room = vec![0; 1 << 16];
    let (n, from) = loop {
        let (n, from) = server.recv_from(&mut room)?;
        if from == client.local_addr()? {
            break (n, from);
        }
    };
    ensure!(room[..n] == *sent, "{n} of {} bytes", sent.len());
    server.send_to(sent, from)?;
    let n = client.recv(&mut room)?;
    ensure!(room[..n] == *sent, "{n} of {} bytes back", sent.len());
    Ok(())
}

/// Checks that large pings and datagrams, which the hosts send in parts, get through where the left
/// may ask.
fn parts_pass(lab: &Lab, router: &Router) -> Result<()> {
    let large = PingOptions { size: 3000, ..PingOptions::default() };
    ping(&lab.left.ns, lab.right.addr, &large)?.all_answered()?;
    let few = PingOptions { size: 3000, ..PingOptions::unanswered(2) };
    let lost = ping(&lab.right.ns, lab.left.addr, &few)?;
    ensure!(lost.received == 0, "the right host got in: {lost:?}");
    let server = lab.right.ns.run(|| UdpSocket::bind((lab.right.addr, 5300)))??;
    server.set_read_timeout(Some(Duration::from_millis(300)))?;
    for size in [2000, 9000, 40_000, 65_000] {
        let sent: Vec<u8> = (0..size).map(|n: u32| n.to_le_bytes()[(n % 3) as usize]).collect();
        for _ in 0..5 {
            // A part may be lost where processors are busy with something else: hosts ask again.
            wait_until(LIMIT, &format!("{size} bytes, there and back"), || {
                there_and_back(lab, &server, &sent).ok()
            })?;
        }
    }
    let shown = router.cli("show conntrack")?;
    ensure!(shown.contains("dport=5300") && !shown.contains("sport=0"), "{shown}");
    Ok(())
}

lab_test! {
    /// Only the first part of a datagram tells whose it is; the others follow it, also to another
    /// worker.
    fn datagrams_in_parts_pass() {
        for workers in [1, 2] {
            let cpu = format!("cpu {{ workers {workers} }}");
            let lab = lab(Offloads::OFF)?;
            let router = guarded(&lab, bridged().stanza(&cpu))?;
            parts_pass(&lab, &router).with_context(|| format!("bridged, {workers} workers"))?;
            router.stop()?;
            let lab = Lab::build(&LabOptions::default())?;
            let router = Router::start(&lab.router, &host_pair().stanza(&cpu))?;
            let text = format!("priority=2,arp,actions=normal\n{FOUR_RULES}");
            let path = rules_file(&router, &text)?;
            router.cli(&format!(
                "flow add 7 file {}\nset interface flow host-eth0 7\nset interface flow host-eth1 7",
                path.display()
            ))?;
            parts_pass(&lab, &router).with_context(|| format!("routed, {workers} workers"))?;
            router.stop()?;
        }
        Ok(())
    }

    /// Netcat is how people try it by hand.
    fn netcat_gets_through() {
        require_tools(&["nc"])?;
        let lab = lab(Offloads::OFF)?;
        let router = guarded(&lab, bridged())?;
        let (left, right) = (lab.left.addr.to_string(), lab.right.addr.to_string());
        for n in 0..20 {
            let port = (9000 + n).to_string();
            let text = format!("line {n}\n").repeat(1000);
            let server = lab.right.ns.command("nc").args(["-l", "-N", &right, &port]);
            let server = server.stdin(format!("answer {n}\n")).spawn()?;
            wait_until(LIMIT, "a listener", || {
                let listening = lab.right.ns.command("ss").args(["-Hltn", &format!("sport = {port}")]);
                listening.output().is_ok_and(|text| !text.trim().is_empty()).then_some(())
            })?;
            let client = lab.left.ns.command("nc").args(["-N", &right, &port]).stdin(text.clone());
            ensure!(client.output()? == format!("answer {n}\n"));
            let got = server.finish(LIMIT)?.success()?.stdout;
            ensure!(got == text, "{} of {} bytes of connection {n}", got.len(), text.len());
        }
        // The other way round nobody gets in.
        let mut server = lab.left.ns.spawn("nc", &["-l", &left, "9100"])?;
        let tried = lab.right.ns.command("nc").args(["-z", "-w", "1", &left, "9100"]).run()?;
        ensure!(tried.success().is_err(), "the right host got in");
        ensure!(server.try_status()?.is_none(), "the right host got in");
        server.stop(LIMIT)?;
        ensure!(counted(&router, &["counts", "created"])? >= 20);
        router.stop().map(drop)
    }

    fn the_left_side_opens_thousands_of_connections() {
        for offloads in [Offloads::OFF, Offloads::ON] {
            one_side_opens(1, offloads)?;
        }
        Ok(())
    }

    /// Connections belong to either worker, whichever queue their packets come by.
    fn the_left_side_opens_thousands_of_connections_on_two_workers() {
        one_side_opens(2, Offloads::OFF)
    }

    /// A rule file with blanks and without ARP; then the baseline, one rule that lets all pass;
    /// then none, and the bridge is a bridge.
    fn a_file_of_rules_is_taken_as_it_is() {
        let lab = lab(Offloads::OFF)?;
        introduce(&lab)?;
        let router = Router::start(&lab.router, &bridged())?;
        add_file(&router, &rules_file(&router, FOUR_RULES)?)?;
        connections(&lab, 8000, 80)?;
        is_shut(&lab, &router)?;
        ensure!(router.cli("flow dump")?.contains("set 10 on host-eth0 host-eth1"));
        // Ports that come later follow as well, those that leave do not.
        router.cli("create packet-generator interface pg0\nset interface l2 bridge pg0 10")?;
        ensure!(router.cli("flow dump")?.contains("set 10 on host-eth0 host-eth1 pg0"));
        router.cli("set interface l3 pg0")?;
        ensure!(router.cli("flow dump")?.contains("set 10 on host-eth0 host-eth1\n"));
        router.cli("flow del 10\nflow add 10 action=normal")?;
        ping(&lab.right.ns, lab.left.addr, &PingOptions::default())?.all_answered()?;
        tcp_both_ways(&lab)?;
        router.cli("flow del 10")?;
        ensure!(router.cli("flow dump")?.is_empty());
        ping(&lab.right.ns, lab.left.addr, &PingOptions::default())?.all_answered()?;
        router.stop().map(drop)
    }

    /// A router's interfaces follow rules as well: a filter that lets answers in.
    fn a_router_lets_one_side_open() {
        let lab = Lab::build(&LabOptions::default())?;
        let router = Router::start(&lab.router, &host_pair())?;
        let text = format!("priority=2,arp,actions=normal\n{FOUR_RULES}");
        let path = rules_file(&router, &text)?;
        router.cli(&format!(
            "flow add 7 file {}\nset interface flow host-eth0 7\nset interface flow host-eth1 7",
            path.display()
        ))?;
        ping(&lab.left.ns, lab.right.addr, &PingOptions::default())?.all_answered()?;
        connections(&lab, 8000, 800)?;
        tcp_both_ways(&lab)?;
        is_shut(&lab, &router)?;
        router.stop().map(drop)
    }

    /// Listeners are notified of each connection.
    fn events_are_told_on_a_socket() {
        let lab = lab(Offloads::OFF)?;
        introduce(&lab)?;
        let router = guarded(&lab, bridged())?;
        let path = router.dir().join("events.sock");
        router.cli(&format!("set conntrack events {}", path.display()))?;
        let mut listener = UnixStream::connect(&path)?;
        listener.set_read_timeout(Some(LIMIT))?;
        let mut text = String::new();
        let mut events = Vec::new();
        // Events are kept once it is known that a client listens.
        while events.len() < 20 {
            let client = lab.left.ns.run(|| UdpSocket::bind((lab.left.addr, 0)))??;
            client.send_to(b"ask", (lab.right.addr, 5300))?;
            let mut some = [0; 4096];
            listener.set_read_timeout(Some(Duration::from_millis(50)))?;
            if let Ok(n) = listener.read(&mut some) {
                text += std::str::from_utf8(&some[..n])?;
            }
            let whole = text.rfind('\n').map_or(0, |at| at + 1);
            for line in text.drain(..whole).collect::<String>().lines() {
                events.push(serde_json::from_str::<Value>(line)?);
            }
            ensure!(counted(&router, &["counts", "created"])? < 2000, "{events:?}");
        }
        let first = &events[0];
        ensure!(first["event"] == "new" && first["protocol"] == 17, "{first}");
        ensure!(first["orig"]["src"] == lab.left.addr.to_string(), "{first}");
        ensure!(first["orig"]["dport"] == 5300 && first["reply"]["sport"] == 5300, "{first}");
        router.cli("set conntrack events disable")?;
        ensure!(!path.exists(), "the socket stays");
        router.stop().map(drop)
    }

    /// A host on the right guesses the ports of a connection, but not its numbers.
    fn segments_out_of_the_window_do_not_get_through() {
        let lab = lab(Offloads::OFF)?;
        let router = guarded(&lab, bridged())?;
        let listener = lab.right.ns.run(|| TcpListener::bind((lab.right.addr, 8000)))??;
        let right = RawLink::open(&lab.right.ns, lab.right.dev)?;
        let left = RawLink::open(&lab.left.ns, lab.left.dev)?;
        let to = SocketAddr::from((lab.right.addr, 8000));
        let mut client = lab.left.ns.run(|| connect(to))??;
        let (mut server, _) = accept(&listener)?;
        client.write_all(b"hello")?;
        let mut got = [0; 5];
        server.read_exact(&mut got)?;
        server.write_all(&got)?;
        let (sport, dport, seq, ack) = left
            .receive(LIMIT, "the answer", |frame| {
                numbers(frame).filter(|n| n.0 == 8000 && frame.ends_with(b"hello"))
            })?;
        client.read_exact(&mut got)?;
        let (right_mac, left_mac) = (lab.right.mac.parse()?, lab.left.mac.parse()?);
        let forged = |seq: u32, payload: &[u8]| {
            Packet::new()
                .ether(right_mac, left_mac)
                .ipv4(lab.right.addr, lab.left.addr)
                .tcp(sport, dport)
                .flags(ACK | PSH)
                .seq(seq)
                .ack(ack)
                .window(500)
                .payload(payload)
                .build()
        };
        right.send(&forged(seq.wrapping_add(500_000_000), b"out of the window"))?;
        let what = "a segment out of the window";
        wait_until(LIMIT, what, || {
            counted(&router, &["counts", "out_of_window"]).is_ok_and(|n| n == 1).then_some(())
        })?;
        let before = lab.left.ns.snmp()?["Tcp.InSegs"];
        // A segment that fits gets through: the connection goes on.
        server.write_all(b"there")?;
        client.read_exact(&mut got)?;
        ensure!(&got == b"there");
        ensure!(lab.left.ns.snmp()?["Tcp.InSegs"] <= before + 1, "the forged segment got through");
        router.cli("set conntrack tcp-seq-chk disable")?;
        right.send(&forged(seq.wrapping_add(500_000_000), b"nobody minds"))?;
        left.receive(LIMIT, "what is not checked", |frame| {
            frame.ends_with(b"nobody minds").then_some(())
        })?;
        router.stop().map(drop)
    }

    /// Datagrams in a zone whose connections end soon.
    fn timeouts_are_those_of_the_zone() {
        let lab = lab(Offloads::OFF)?;
        introduce(&lab)?;
        let router = Router::start(&lab.router, &bridged())?;
        router.cli(
            "flow add 10 priority=1,ip,ct_state=-trk,actions=ct(table=0,zone=5)
             flow add 10 priority=1,ip,ct_state=+trk+new,in_port=host-eth0,actions=ct(commit,zone=5),normal
             flow add 10 priority=1,ip,ct_state=+trk+est,actions=normal",
        )?;
        let server = lab.right.ns.run(|| UdpSocket::bind((lab.right.addr, 5300)))??;
        let client = lab.left.ns.run(|| UdpSocket::bind((lab.left.addr, 0)))??;
        for socket in [&server, &client] {
            socket.set_read_timeout(Some(LIMIT))?;
        }
        let exchange = || -> Result<SocketAddr> {
            client.send_to(b"ask", (lab.right.addr, 5300))?;
            let (_, peer) = server.recv_from(&mut [0; 10])?;
            server.send_to(b"answer", peer)?;
            client.recv_from(&mut [0; 10])?;
            Ok(peer)
        };
        exchange()?;
        let listed = router.cli("show conntrack zone=5")?;
        ensure!(listed.starts_with("udp,orig=(") && listed.contains(",zone=5"), "{listed}");
        // Others hold from the next packet on.
        router.cli("set conntrack timeouts 5 udp_first=40 udp_single=40 udp_multiple=40")?;
        let peer = exchange()?;
        router.cli("set clock adjust 30")?;
        ensure!(!router.cli("show conntrack")?.is_empty(), "it ended too early");
        router.cli("set clock adjust 11")?;
        let gone = || match router.cli("show conntrack") {
            Ok(text) if text.is_empty() => Ok(()),
            other => Err(format!("{other:?}")),
        };
        wait_until_seen(LIMIT, "the connection to end", gone)?;
        // Its answers come too late now.
        server.send_to(b"late", peer)?;
        client.set_read_timeout(Some(Duration::from_millis(300)))?;
        ensure!(client.recv_from(&mut [0; 10]).is_err(), "an answer after the end");
        ensure!(counted(&router, &["counts", "expired"])? >= 1);
        router.stop().map(drop)
    }

    /// No room: what has no entry passes, and its answers do not; recycling gives it room.
    fn a_full_table() {
        let lab = lab(Offloads::OFF)?;
        let router = guarded(&lab, bridged())?;
        router.cli("set conntrack limit 50")?;
        let server = lab.right.ns.run(|| UdpSocket::bind((lab.right.addr, 5300)))??;
        server.set_read_timeout(Some(LIMIT))?;
        let ask = |count: usize| -> Result<Vec<UdpSocket>> {
            (0..count).map(|_| {
                let client = lab.left.ns.run(|| UdpSocket::bind((lab.left.addr, 0)))??;
                client.send_to(b"ask", (lab.right.addr, 5300))?;
                server.recv_from(&mut [0; 10])?;
                Ok(client)
            }).collect()
        };
        let clients = ask(200)?;
        ensure!(counted(&router, &["total"])? == 50);
        ensure!(counted(&router, &["counts", "full"])? >= 150);
        let last = clients.last().context("a client")?;
        server.send_to(b"answer", last.local_addr()?)?;
        last.set_read_timeout(Some(Duration::from_millis(300)))?;
        ensure!(last.recv_from(&mut [0; 10]).is_err(), "an answer to what is not known");
        router.cli("set conntrack when-full recycle")?;
        let clients = ask(200)?;
        ensure!(counted(&router, &["total"])? == 50);
        ensure!(counted(&router, &["counts", "recycled"])? >= 200);
        let last = clients.last().context("a client")?;
        server.send_to(b"answer", last.local_addr()?)?;
        last.set_read_timeout(Some(LIMIT))?;
        last.recv_from(&mut [0; 10])?;
        router.stop().map(drop)
    }

    /// A million half-open connections come while one that is established goes on. Another worker
    /// makes them; the hosts' worker tracks its half of them.
    fn a_flood_of_openings() {
        const FLOODS: u32 = 4;
        let lab = Lab::build(&LabOptions {
            middle: Middle::Bridge,
            offloads: Offloads::OFF,
            ..LabOptions::measured()
        })?;
        let config = bridged().stanza("cpu { workers 2 }").commands(
            "create packet-generator interface pg0
             set interface state pg0 up
             set interface l2 bridge pg0 10
             set interface rx-placement host-eth0 worker 0
             set interface rx-placement host-eth1 worker 0
             l2fib add 02:00:00:00:00:99 10 filter
             set conntrack limit 1200000
             set conntrack timeouts default tcp_syn_sent=600",
        );
        let router = guarded(&lab, config)?;
        router.cli(&format!("flow add {DOMAIN} priority=1,ip,ct_state=+trk+new,in_port=pg0,actions=ct(commit),normal"))?;
        for n in 0..FLOODS {
            let net = 16 + n;
            router.cli(&format!(
                "packet-generator new {{ name flood{n} limit 255250 rate 250000 worker 1 size 60-60 interface pg0 \
                 node ethernet-input data {{ IP4: 0200.0000.0055 -> 0200.0000.0099 \
                 TCP: 172.{net}.0.1 - 172.{net}.3.253 -> 192.168.0.1 \
                 TCP: 2000 - 3008 -> 80 SYN window 1000 incrementing 6 }} }}"
            ))?;
        }
        let rate = |pace: Option<f64>| -> Result<f64> {
            let extra = pace.map_or(Vec::new(), |pace| vec!["-b".into(), format!("{pace:.0}")]);
            let duration = Duration::from_secs(1);
            let options = IperfOptions { duration, extra, ..IperfOptions::default() };
            Ok(iperf3(&lab.left.ns, &lab.right.ns, lab.right.addr, &options)?.bits_per_s)
        };
        // Hosts, workers and the flood share few processors. At a quarter of what they are able to
        // alone there is time for all: what is lost then is lost in the router.
        let alone = rate(None)?;
        ensure!(alone > WORKING_BITS_PER_S, "{alone} bit/s");
        let pace = Some(alone / 4.0);
        // Runs take turns, as the machine has bad moments of its own; the best of several shows
        // what the flood costs.
        let mut best = 0.0f64;
        for n in 0..FLOODS {
            let before = rate(pace)?;
            router.cli(&format!("packet-generator enable-stream flood{n}"))?;
            let during = rate(pace)?;
            println!("flood {n}: {before:.3e} bit/s before, {during:.3e} during it, {alone:.3e} without a pace");
            best = best.max(during / before);
        }
        ensure!(best >= 0.9, "{best:.2} of what it is without a flood");
        // Some get lost on their way to the other worker where processors are busy with something
        // else.
        let total = wait_until_seen(LIMIT, "a million half-open connections", || {
            match counted(&router, &["total"]) {
                Ok(n) if n >= 750_000 => Ok(n),
                other => Err(format!("{other:?}")),
            }
        })?;
        // Half-open connections slow no other down.
        let full = (0..3).map(|_| rate(pace)).collect::<Result<Vec<f64>>>()?;
        let full = full.into_iter().fold(0.0, f64::max) * 4.0 / alone;
        ensure!(full >= 0.9, "{full:.2} of the pace among a million");
        tcp_both_ways(&lab)?;
        // The table is full of them, and new connections still come through.
        router.cli(&format!("set conntrack limit {}\nset conntrack when-full recycle", total / 2))?;
        connections(&lab, 8000, 800)?;
        let shown: Value = router.json("show conntrack summary")?;
        ensure!(shown["counts"]["recycled"].as_u64() >= Some(800), "{shown}");
        ensure!(router.cli("clear conntrack")?.contains(" flushed"));
        ensure!(counted(&router, &["total"])? == 0);
        router.stop().map(drop)
    }

    /// An opening from the wrong side is dropped by a rule, which counts and says so.
    fn what_rules_drop_has_a_reason() {
        let lab = lab(Offloads::OFF)?;
        introduce(&lab)?;
        let router = guarded(&lab, bridged())?;
        let right = RawLink::open(&lab.right.ns, lab.right.dev)?;
        let syn = Packet::new()
            .ether(lab.right.mac.parse()?, lab.left.mac.parse()?)
            .ipv4(lab.right.addr, lab.left.addr)
            .tcp(7000, 80)
            .flags(SYN)
            .window(500)
            .build();
        right.send(&syn)?;
        wait_until_seen(LIMIT, "the drop", || {
            let count = router.error_count("flow-rules", "dropped by a rule");
            if matches!(count, Ok(n) if n >= 1) { Ok(()) } else { Err(format!("{count:?}")) }
        })?;
        router.stop().map(drop)
    }
}
