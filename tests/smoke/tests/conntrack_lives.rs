//! Connection tracking where ways are not straight: translation by rules between real hosts,
//! answers that go another way, links that come and go, packets that overtake each other.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use thalweg_smoke::{Config, RawLink, Router, host_pair};
use thalweg_testkit::{
    Lab, LabOptions, LinkOptions, Middle, Netns, Offloads, PingOptions, accept, connect, join,
    lab_test, ping, veth, wait_until_seen,
};

use crate::throughput::tcp_both_ways;

const LIMIT: Duration = thalweg_testkit::WAIT_LIMIT;
/// Limit for a transfer through links that come and go, or whose packets overtake each other.
const BUSY_LIMIT: Duration = Duration::from_secs(180);
/// Time that nothing may come where nothing is expected.
const SILENCE: Duration = Duration::from_millis(500);
/// Bytes that a client sends at once.
const CHUNK: usize = 1 << 16;

/// The left host's address at the right one.
const SHARED: Ipv4Addr = Ipv4Addr::new(10, 10, 1, 100);
/// The right host's address at the left one.
const SERVICE: Ipv4Addr = Ipv4Addr::new(10, 10, 1, 200);

/// The left side opens connections, and is hidden; a port of an address that nobody has is the
/// right host's. Errors about connections get through.
const TRANSLATING: &str = "\
priority=2,arp,actions=normal
priority=1,ip,actions=ct(table=1,nat)
priority=0,actions=drop
table=1,priority=2,tcp,ct_state=+trk+new,in_port=host-eth0,nw_dst=10.10.1.200,tp_dst=80,\
actions=ct(commit,nat(dst=10.10.1.3:8080)),normal
table=1,priority=1,ip,ct_state=+trk+new,in_port=host-eth0,actions=ct(commit,nat(src=10.10.1.100)),normal
table=1,priority=1,ip,ct_state=+trk+est,actions=normal
table=1,priority=1,ip,ct_state=+trk+rel,actions=normal
";

/// The same rules without translation, ARP aside.
const TRACKING: &str = "\
priority=2,arp,actions=normal
priority=1,ip,ct_state=-trk,actions=ct(table=0)
priority=1,ip,ct_state=+trk+new,in_port=host-eth0,actions=ct(commit),normal
priority=1,ip,ct_state=+trk+est,actions=normal
priority=0,actions=drop
";

/// The interfaces of a router let the left side open connections.
const FILTER: &str = "\
flow add 7 priority=2,arp,actions=normal
flow add 7 priority=1,ip,ct_state=-trk,actions=ct(table=0)
flow add 7 priority=1,ip,ct_state=+trk+new,in_port=host-eth0,actions=ct(commit),normal
flow add 7 priority=1,ip,ct_state=+trk+est,actions=normal
flow add 7 priority=0,actions=drop
set interface flow host-eth0 7
set interface flow host-eth1 7";

/// Hosts in one subnet, which know each other's and the other names' hardware addresses.
fn lab(offloads: Offloads) -> Result<Lab> {
    let lab =
        Lab::build(&LabOptions { middle: Middle::Bridge, offloads, ..LabOptions::default() })?;
    let known = [(&lab.left, lab.right.addr), (&lab.left, SERVICE)];
    for (side, addr) in known.into_iter().chain([(&lab.right, lab.left.addr), (&lab.right, SHARED)])
    {
        let mac = if side.mac == lab.left.mac { lab.right.mac } else { lab.left.mac };
        side.ns.ip(&format!("neighbour replace {addr} lladdr {mac} dev {}", side.dev))?;
    }
    Ok(lab)
}

/// A bridge domain of two interfaces that follows rules.
fn start(lab: &Lab, right: &str, workers: usize, rules: &str) -> Result<Router> {
    let config =
        Config::empty().stanza(&format!("cpu {{ workers {workers} }}")).commands(&format!(
            "create host-interface name eth0
         create host-interface name {right}
         set interface l2 bridge host-eth0 10
         set interface l2 bridge host-{right} 10
         set interface state host-eth0 up
         set interface state host-{right} up",
        ));
    let router = Router::start(&lab.router, &config)?;
    let path = router.dir().join("flows.txt");
    std::fs::write(&path, rules).context("write the rules")?;
    router.cli(&format!("flow add 10 file {}", path.display()))?;
    Ok(router)
}

/// A number of `show conntrack summary`.
fn counted(router: &Router, name: &str) -> Result<u64> {
    router.json("show conntrack summary")?["counts"][name].as_u64().context(name.to_owned())
}

/// Waits until rules have dropped this number of packets.
fn await_drops(router: &Router, count: u64) -> Result<()> {
    wait_until_seen(LIMIT, &format!("{count} drops"), || {
        match router.error_count("flow-rules", "dropped by a rule") {
            Ok(n) if n >= count => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
}

/// A server that gives back what it gets; says who came.
fn echo(ns: &Netns, at: SocketAddr, connections: usize) -> Result<JoinHandle<Result<Vec<IpAddr>>>> {
    let listener = ns.run(|| TcpListener::bind(at))??;
    Ok(thread::spawn(move || {
        let serve = |(stream, peer): (TcpStream, SocketAddr)| {
            thread::spawn(move || -> Result<IpAddr> {
                std::io::copy(&mut &stream, &mut &stream)?;
                stream.shutdown(Shutdown::Write)?;
                Ok(peer.ip())
            })
        };
        let all: Vec<_> =
            (0..connections).map(|_| accept(&listener).map(serve)).collect::<Result<_>>()?;
        all.into_iter().map(joined).collect()
    }))
}

fn joined<T>(thread: JoinHandle<Result<T>>) -> Result<T> {
    join(thread, BUSY_LIMIT, "a transfer")?
}

/// Starts connections that send this number of bytes each and want them back.
fn clients(
    lab: &Lab,
    to: SocketAddr,
    count: usize,
    bytes: usize,
) -> Result<Vec<JoinHandle<Result<()>>>> {
    clients_while(&Arc::default(), lab, to, count, bytes)
}

/// The same, and on until it is no longer wanted.
fn clients_while(
    wanted: &Arc<AtomicBool>,
    lab: &Lab,
    to: SocketAddr,
    count: usize,
    bytes: usize,
) -> Result<Vec<JoinHandle<Result<()>>>> {
    let client = move |wanted: Arc<AtomicBool>| -> Result<()> {
        let mut stream = connect(to)?;
        let mut writer = stream.try_clone()?;
        let byte = |n: usize| (n.wrapping_mul(0x9e37_79b9) >> 24) as u8;
        let sender = thread::spawn(move || -> Result<usize> {
            let mut sent = 0;
            while sent < bytes || wanted.load(Ordering::Relaxed) {
                let end = if sent < bytes { bytes.min(sent + CHUNK) } else { sent + CHUNK };
                writer.write_all(&(sent..end).map(byte).collect::<Vec<u8>>())?;
                sent = end;
            }
            writer.shutdown(Shutdown::Write)?;
            Ok(sent)
        });
        let (mut n, mut chunk) = (0, [0; 16_384]);
        loop {
            let got = stream.read(&mut chunk).with_context(|| format!("behind {n} bytes"))?;
            if got == 0 {
                break;
            }
            let same = (n..).zip(&chunk[..got]).all(|(at, b)| byte(at) == *b);
            ensure!(same, "other bytes behind {n}");
            n += got;
        }
        let sent = joined(sender)?;
        ensure!(n == sent, "{n} of {sent} bytes came back");
        Ok(())
    };
    // Threads are in the namespace of the one that starts them.
    let start = || {
        let wanted = wanted.clone();
        thread::spawn(move || client(wanted))
    };
    lab.left.ns.run(|| (0..count).map(|_| start()).collect())
}

/// Sends a datagram to a port without a listener and returns the outcome, waiting for `patience`.
fn ask_nobody(lab: &Lab, patience: Duration) -> Result<std::io::Result<usize>> {
    lab.left.ns.run(|| {
        let socket = UdpSocket::bind((lab.left.addr, 0))?;
        socket.set_read_timeout(Some(patience))?;
        socket.connect((lab.right.addr, 33_434))?;
        socket.send(b"who is there")?;
        Ok(socket.recv(&mut [0; 10]))
    })?
}

fn translated(workers: usize, offloads: Offloads) -> Result<()> {
    let lab = lab(offloads)?;
    let router = start(&lab, "eth1", workers, TRANSLATING)?;
    ping(&lab.left.ns, lab.right.addr, &PingOptions::default())?.all_answered()?;
    let server = echo(&lab.right.ns, (lab.right.addr, 8000).into(), 16)?;
    for client in clients(&lab, (lab.right.addr, 8000).into(), 16, 200_000)? {
        joined(client)?;
    }
    ensure!(joined(server)?.iter().all(|peer| *peer == SHARED), "the left host is not hidden");
    // The other name, for the same host: the left host is seen as it is.
    let server = echo(&lab.right.ns, (lab.right.addr, 8080).into(), 16)?;
    for client in clients(&lab, (SERVICE, 80).into(), 16, 200_000)? {
        joined(client)?;
    }
    ensure!(joined(server)?.iter().all(|peer| *peer == lab.left.addr), "the source has changed");
    tcp_both_ways(&lab)?;
    // An error about a datagram comes back to its sender, with what it quotes.
    let refused = ask_nobody(&lab, LIMIT)?.err().context("nobody answers on that port")?;
    ensure!(refused.kind() == ErrorKind::ConnectionRefused, "{refused}");
    let shown = router.cli("show conntrack")?;
    let reply = format!("reply=(src={},dst={SHARED},", lab.right.addr);
    ensure!(shown.contains(&reply), "{shown}");
    ensure!(shown.contains(&format!("dst={SERVICE}")), "{shown}");
    for side in [&lab.left, &lab.right] {
        let snmp = side.ns.snmp()?;
        ensure!(snmp["Tcp.InCsumErrors"] == 0, "{}: bad checksums", side.ns.label());
    }
    router.stop().map(drop)
}

/// A link of its own between the hosts, which only what goes to `to` takes.
fn bypass(from: &Netns, to: (&Netns, Ipv4Addr)) -> Result<()> {
    let end =
        |mac: &str| LinkOptions { offloads: Offloads::OFF, ..LinkOptions::default() }.mac(mac);
    let (near, far) = (end("02:00:00:00:09:01"), end("02:00:00:00:09:02"));
    veth((from, "bypass", &near), (to.0, "bypass", &far))?;
    for ns in [from, to.0] {
        for dev in ["all", "bypass", "eth0"] {
            ns.set_sysctl(&format!("net/ipv4/conf/{dev}/rp_filter"), "0")?;
        }
    }
    from.ip(&format!("neighbour replace {} lladdr 02:00:00:00:09:02 dev bypass", to.1))?;
    from.ip(&format!("route add {}/32 dev bypass", to.1)).map(drop)
}

/// Passes frames on between two links of the router's namespace, now and then one behind those that
/// came after it, until it must stop. Returns how many were late.
fn relay(
    from: &RawLink,
    to: &RawLink,
    takes: impl Fn(&[u8]) -> bool,
    stop: &AtomicBool,
) -> Result<u64> {
    let (mut late, mut random): (Vec<(u32, Vec<u8>)>, u32) = (Vec::new(), 1);
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        let next = |frame: &[u8]| takes(frame).then(|| frame.to_vec());
        match from.receive(Duration::from_millis(2), "a frame", next) {
            Ok(frame) => {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                late.iter_mut().for_each(|(left, _)| *left -= 1);
                if random >> 28 == 0 {
                    late.push((random >> 20 & 3 | 1, frame));
                    count += 1;
                } else {
                    to.send(&frame)?;
                }
            }
            Err(_) => late.iter_mut().for_each(|(left, _)| *left = 0),
        }
        for (_, frame) in late.extract_if(.., |(left, _)| *left == 0) {
            to.send(&frame)?;
        }
    }
    Ok(count)
}

/// Puts a relay between the router and the right host, and does something meanwhile.
fn out_of_order<T: Send>(lab: &Lab, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let ends = (RawLink::open(&lab.router, "wire1")?, RawLink::open(&lab.router, "eth1")?);
    let right: thalweg_wire::MacAddr = lab.right.mac.parse()?;
    let from_right = move |frame: &[u8]| frame.get(6..12) == Some(&right.0);
    let stop = AtomicBool::new(false);
    thread::scope(|s| {
        // The loop ends even if the work panics.
        let stopping = StopWhenDropped(&stop);
        let there = s.spawn(|| relay(&ends.0, &ends.1, |f| !from_right(f), &stop));
        let back = s.spawn(|| relay(&ends.1, &ends.0, from_right, &stop));
        let done = work();
        drop(stopping);
        for way in [there, back] {
            let late = way.join().map_err(|_| anyhow!("a relay panicked"))??;
            ensure!(done.is_err() || late > 100, "only {late} frames were late");
        }
        done
    })
}

struct StopWhenDropped<'a>(&'a AtomicBool);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn wire(lab: &Lab) -> Result<()> {
    let end = LinkOptions { offloads: Offloads::OFF, ..LinkOptions::default() };
    veth((&lab.router, "wire0", &end), (&lab.router, "wire1", &end))
}

/// Returns packets that workers handed to each other, and those that they could not.
fn handed(router: &Router) -> Result<(u64, u64)> {
    let shown = router.json("show handoff")?;
    let rows = shown.as_array().context("show handoff gives a list")?;
    let sum = |name: &str| rows.iter().filter_map(|row| row[name].as_u64()).sum();
    Ok((sum("packets"), sum("drops")))
}

lab_test! {
    /// Sources and destinations become others by `ct(nat)`: pings, connections, errors.
    fn rules_translate() {
        for offloads in [Offloads::OFF, Offloads::ON] {
            translated(1, offloads)?;
        }
        Ok(())
    }

    /// Answers come to the worker that has chosen their ports.
    fn rules_translate_on_two_workers() {
        translated(2, Offloads::OFF)
    }

    /// A connection where nobody listens: the error about it belongs to it, and gets in if a rule
    /// says so.
    fn errors_are_related() {
        let lab = lab(Offloads::OFF)?;
        let router = start(&lab, "eth1", 1, TRACKING)?;
        let silence = ask_nobody(&lab, SILENCE)?.err().context("nobody answers on that port")?;
        ensure!(silence.kind() != ErrorKind::ConnectionRefused, "an error came in: {silence}");
        await_drops(&router, 1)?;
        router.cli("flow add 10 priority=1,icmp,ct_state=+trk+rel,actions=normal")?;
        let refused = ask_nobody(&lab, LIMIT)?.err().context("nobody answers on that port")?;
        ensure!(refused.kind() == ErrorKind::ConnectionRefused, "{refused}");
        // An error about nothing that was sent does not.
        let snmp = lab.left.ns.snmp()?["Icmp.InMsgs"];
        lab.right.ns.run(|| -> Result<()> {
            let socket = UdpSocket::bind((lab.right.addr, 0))?;
            socket.send_to(b"nobody asked", (lab.left.addr, 9))?;
            Ok(())
        })??;
        ensure!(lab.left.ns.snmp()?["Icmp.InMsgs"] == snmp);
        let dump = router.cli("flow dump 10")?;
        let rule = dump.lines().find(|line| line.contains("+rel")).context("the rule")?;
        ensure!(rule.contains("n_packets=1,"), "{rule}");
        router.stop().map(drop)
    }

    /// A router's interfaces as a filter: errors about what the left side opens get in by a rule,
    /// and those of the router itself are heard.
    fn a_routers_filter_lets_errors_in() {
        let lab = Lab::build(&LabOptions { offloads: Offloads::OFF, ..LabOptions::default() })?;
        let router = Router::start(&lab.router, &host_pair())?;
        router.cli(FILTER)?;
        let silence = ask_nobody(&lab, SILENCE)?.err().context("nobody answers on that port")?;
        ensure!(silence.kind() != ErrorKind::ConnectionRefused, "an error came in: {silence}");
        router.cli("flow add 7 priority=1,icmp,ct_state=+trk+rel,actions=normal")?;
        let refused = ask_nobody(&lab, LIMIT)?.err().context("nobody answers on that port")?;
        ensure!(refused.kind() == ErrorKind::ConnectionRefused, "{refused}");
        let out = lab.left.ns.command("traceroute")
            .args(["-n", "-q", "1", "-w", "3", "-m", "4", "-U", &lab.right.addr.to_string()]).run()?;
        let hops: Vec<&str> =
            out.stdout.lines().skip(1).filter_map(|l| l.split_whitespace().nth(1)).collect();
        ensure!(hops == ["10.10.1.1", "10.10.2.2"], "{}", out.stdout);
        router.stop().map(drop)
    }

    /// The right host's answers take another way: the router sees half of each connection.
    fn answers_go_another_way() {
        let lab = lab(Offloads::OFF)?;
        bypass(&lab.right.ns, (&lab.left.ns, lab.left.addr))?;
        let router = start(&lab, "eth1", 2, TRACKING)?;
        ping(&lab.left.ns, lab.right.addr, &PingOptions::default())?.all_answered()?;
        let shown = router.cli("show conntrack -s")?;
        ensure!(shown.lines().count() == 1 && shown.starts_with("icmp,"), "{shown}");
        // Nobody says how much may be on its way: without windows to hold it against, any number.
        for (check, bytes) in [("enable", 10_000), ("disable", 300_000)] {
            router.cli(&format!("set conntrack tcp-seq-chk {check}"))?;
            let server = echo(&lab.right.ns, (lab.right.addr, 8000).into(), 4)?;
            for client in clients(&lab, (lab.right.addr, 8000).into(), 4, bytes)? {
                joined(client)?;
            }
            joined(server)?;
        }
        let (made, invalid) = (counted(&router, "created")?, counted(&router, "invalid")?);
        ensure!((made, invalid) == (9, 0), "{made} connections, {invalid} invalid packets");
        ensure!(counted(&router, "out_of_window")? == 0);
        ensure!(router.cli("clear conntrack")?.starts_with('9'));
        router.stop().map(drop)
    }

    /// The router sees answers only, of connections that it has not seen begin: nothing gets in.
    fn questions_go_another_way() {
        let lab = lab(Offloads::OFF)?;
        bypass(&lab.left.ns, (&lab.right.ns, lab.right.addr))?;
        let router = start(&lab, "eth1", 2, TRACKING)?;
        let server = echo(&lab.right.ns, (lab.right.addr, 8000).into(), 1)?;
        drop(server);
        let to = SocketAddr::from((lab.right.addr, 8000));
        let tried = lab.left.ns.run(|| TcpStream::connect_timeout(&to, SILENCE))?;
        ensure!(tried.is_err(), "an answer to what was not asked came in");
        let options = PingOptions::unanswered(2);
        ensure!(ping(&lab.left.ns, lab.right.addr, &options)?.received == 0);
        ensure!(counted(&router, "created")? == 0);
        await_drops(&router, 3)?;
        router.stop().map(drop)
    }

    /// Interfaces and links go down and come up under connections that transfer.
    fn links_come_and_go() {
        let lab = lab(Offloads::OFF)?;
        let router = start(&lab, "eth1", 2, TRANSLATING)?;
        let server = echo(&lab.right.ns, (lab.right.addr, 8000).into(), 4)?;
        // The transfers go on until the last flap is over, however fast they are.
        let wanted = Arc::new(AtomicBool::new(true));
        let to = (lab.right.addr, 8000).into();
        let transfers = clients_while(&wanted, &lab, to, 4, 12_000_000)?;
        let received = || Ok::<_, anyhow::Error>(lab.left.ns.link(lab.left.dev)?.rx_packets);
        for flap in 0..6 {
            let before = received()?;
            wait_until_seen(LIMIT, "packets behind the last flap", || match received() {
                Ok(n) if n > before + 50 => Ok(()),
                other => Err(format!("{other:?}")),
            })?;
            if flap % 2 == 0 {
                router.cli("set interface state host-eth1 down")?;
                router.cli("set interface state host-eth1 up")?;
            } else {
                lab.router.ip("link set eth0 down")?;
                lab.router.ip("link set eth0 up")?;
            }
        }
        wanted.store(false, Ordering::Relaxed);
        for transfer in transfers {
            joined(transfer)?;
        }
        ensure!(joined(server)?.iter().all(|peer| *peer == SHARED), "the left host is not hidden");
        let made = counted(&router, "created")?;
        ensure!(made == 4, "{made} connections were made of 4");
        router.stop().map(drop)
    }

    /// Packets overtake each other before they are handed to the worker that owns their connection.
    fn packets_overtake_each_other() {
        let lab = lab(Offloads::OFF)?;
        wire(&lab)?;
        let router = start(&lab, "wire0", 2, TRANSLATING)?;
        out_of_order(&lab, || {
            let server = echo(&lab.right.ns, (lab.right.addr, 8000).into(), 8)?;
            for client in clients(&lab, (lab.right.addr, 8000).into(), 8, 2_000_000)? {
                joined(client)?;
            }
            ensure!(joined(server)?.iter().all(|peer| *peer == SHARED), "not hidden");
            Ok(())
        })?;
        let (packets, drops) = handed(&router)?;
        ensure!(packets > 1000 && drops * 4 < packets, "{packets} handed over, {drops} not");
        ensure!(counted(&router, "created")? == 8);
        wait_until_seen(LIMIT, "all to be over", || {
            let shown = router.cli("show conntrack").map_err(|e| format!("{e:#}"))?;
            let over = |line: &str| line.contains("TIME_WAIT") || line.contains("CLOSED");
            if shown.lines().all(over) { Ok(()) } else { Err(shown) }
        })?;
        router.stop().map(drop)
    }
}
