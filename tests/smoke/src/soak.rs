//! A soak: connections of both families come and go through address translation, through rules and
//! by routes, and are sampled. Meanwhile addresses, rules, rates and links change, and a host
//! floods the router with neighbour discovery. At the end all that the router remembers and holds
//! is back at zero.

mod flood;

use std::io::{Read, Write};
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::net::sockopt::set_socket_linger;
use serde_json::Value;
use thalweg_testkit::{
    Lab, LabOptions, LinkOptions, Netns, Offloads, join, veth, wait_for_readable, wait_until_seen,
};

use crate::{Config, Router};

/// Time for which a client waits for its peer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time that everything may take to be forgotten; timeouts are set to a few seconds.
const REST: Duration = Duration::from_secs(60);
/// Time that all clients of a path may wait for their peers after a change: some times their
/// patience, where processors are busy with something else.
const FURTHER: Duration = Duration::from_secs(10);
/// Port of servers that give back what they get.
const TCP_PORT: u16 = 8000;
const UDP_PORT: u16 = 5300;
/// Clients of a path side by side.
const CLIENTS: usize = 3;
/// A client's pause between connections, so that its host does not run out of ports.
const PAUSE: Duration = Duration::from_millis(3);
/// Time between changes of addresses and rules.
const CHANGE: Duration = Duration::from_millis(400);
/// Memory that a router may hold more than after the first report, KiB.
const GROWTH_KIB: u64 = 64 << 10;

/// Neighbours of IPv6 that the router keeps, whatever number shows up.
const NEIGHBORS: u64 = 300;

/// Length of the run, and interval of its progress lines.
#[derive(Clone, Copy, Debug)]
pub struct SoakOptions {
    /// Time that connections come.
    pub duration: Duration,
    /// Time between reports, in each of which something must have got through: longer than clients
    /// wait for their peers (2 s), all of which may do so after a change.
    pub report: Duration,
}

/// Results of a path's clients.
#[derive(Debug, Default)]
struct Tally {
    /// Connections and datagrams that went as they should.
    good: AtomicU64,
    /// Failures, which may happen where an address is taken away from under a connection.
    broken: AtomicU64,
}

/// A path: clients, a server, what happened.
struct Path {
    name: &'static str,
    clients: Netns,
    from: IpAddr,
    to: IpAddr,
    tally: Arc<Tally>,
}

/// Rules of the bridge: the near side opens, behind another address.
const RULES: &str = "\
priority=2,arp,actions=normal
priority=2,icmp6,icmp_type=135,actions=normal
priority=2,icmp6,icmp_type=136,actions=normal
priority=1,ip,actions=ct(table=1,nat)
priority=1,ipv6,actions=ct(table=1,nat)
priority=0,actions=drop
table=1,priority=1,ip,ct_state=+trk+new,in_port=host-eth2,actions=ct(commit,nat(src=10.10.3.100)),normal
table=1,priority=1,ip,ct_state=+trk+est,actions=normal
table=1,priority=1,ip,ct_state=+trk+rel,actions=normal
table=1,priority=1,ipv6,ct_state=+trk+new,in_port=host-eth2,\
actions=ct(commit,nat(src=2001:db8:3::100)),normal
table=1,priority=1,ipv6,ct_state=+trk+est,actions=normal
table=1,priority=1,ipv6,ct_state=+trk+rel,actions=normal
";

const SETUP: &str = "\
create host-interface name eth0
create host-interface name eth1
create host-interface name eth2
create host-interface name eth3
set interface ip address host-eth0 10.10.1.1/24
set interface ip address host-eth1 10.10.2.1/24
set interface ip address host-eth0 2001:db8:1::1/64
set interface ip address host-eth1 2001:db8:2::1/64
set ip neighbor-config ip6 limit 300 age 10 recycle
nat44 plugin enable sessions 20000
nat44 add address 10.10.2.100 - 10.10.2.103
set interface nat44 in host-eth0 out host-eth1
set nat timeout udp 2 tcp-established 4 tcp-transitory 2 icmp 2
set interface l2 bridge host-eth2 20
set interface l2 bridge host-eth3 20
set conntrack timeouts default udp_first=2 udp_single=2 udp_multiple=2 icmp_first=2 icmp_reply=2 \
tcp_syn_sent=2 tcp_syn_recv=2 tcp_established=4 tcp_fin_wait=2 tcp_time_wait=2 tcp_close=2
set interface state host-eth0 up
set interface state host-eth1 up
set interface state host-eth2 up
set interface state host-eth3 up
sflow collector add 127.0.0.1 port 16343
sflow agent-address 10.10.1.1
sflow direction both
sflow sampling-rate 3
sflow drop-monitoring enable limit 1000
sflow enable host-eth0
sflow enable host-eth1
sflow enable host-eth2
sflow enable host-eth3
";

/// Hosts, links and the router between them.
struct Scene {
    lab: Lab,
    router: Router,
    paths: Vec<Path>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<()>>>,
}

/// Runs a soak; `say` gets a line for each report.
///
/// # Errors
/// If connections stop getting through, the router ends, or something does not come back to zero.
pub fn soak(options: SoakOptions, mut say: impl FnMut(&str)) -> Result<()> {
    let mut scene = Scene::build()?;
    let mut last = scene.begun()?;
    let start = Instant::now();
    let (mut next, mut first_kib, mut turn) = (options.report, None, 0);
    while start.elapsed() < options.duration {
        scene.disturb(turn)?;
        turn += 1;
        // Paced: a change every `CHANGE`.
        thread::sleep(CHANGE);
        if start.elapsed() >= next {
            next += options.report;
            let (line, kib) = scene.report(start.elapsed())?;
            say(&line);
            // Soon, if not yet: all clients may have just run into their timeouts.
            last = scene.further(&last).context("nothing got through since the last report")?;
            let first = *first_kib.get_or_insert(kib);
            ensure!(kib < first + GROWTH_KIB, "the router grew from {first} to {kib} KiB");
        }
    }
    say("connections end");
    scene.end(&mut say)
}

impl Scene {
    fn build() -> Result<Scene> {
        let lab = Lab::build(&LabOptions::default())?;
        let (near, far) = (Netns::new("near")?, Netns::new("far")?);
        let host = |mac: &str, addr: &str| {
            LinkOptions { offloads: Offloads::OFF, ..LinkOptions::default() }.mac(mac).address(addr)
        };
        let port = LinkOptions { offloads: Offloads::OFF, ..LinkOptions::default() };
        let (near_mac, far_mac) = ("02:00:00:00:03:02", "02:00:00:00:03:03");
        veth((&near, "eth0", &host(near_mac, "10.10.3.2/24")), (&lab.router, "eth2", &port))?;
        veth((&far, "eth0", &host(far_mac, "10.10.3.3/24")), (&lab.router, "eth3", &port))?;
        // The address behind which rules hide the near host; nobody would answer for it.
        far.ip(&format!("neighbour replace 10.10.3.100 lladdr {near_mac} dev eth0"))?;
        let hosts = [(&lab.left.ns, 1, 2), (&lab.right.ns, 2, 2), (&near, 3, 2), (&far, 3, 3)];
        for (ns, net, host) in hosts {
            speak(ns, net, host)?;
        }
        let hidden = ip6(3, 0x100);
        far.ip(&format!("-6 neighbour replace {hidden} lladdr {near_mac} dev eth0"))?;
        let config = Config::empty()
            .stanza("cpu { workers 2 }\nbuffers { buffers-per-numa 16384 }")
            .commands(SETUP);
        let router = Router::start(&lab.router, &config)?;
        let file = router.dir().join("flows.txt");
        std::fs::write(&file, RULES).context("write the rules")?;
        router.cli(&format!("flow add 20 file {}", file.display()))?;
        let path = |name, clients: &Netns, from, to| {
            let (clients, tally) = (clients.clone(), Arc::default());
            Path { name, clients, from, to, tally }
        };
        let far_addr = IpAddr::from(Ipv4Addr::new(10, 10, 3, 3));
        let right = lab.right.ns.clone();
        let right_addr = IpAddr::from(lab.right.addr);
        let paths = vec![
            path("nat44", &lab.left.ns, lab.left.addr.into(), right_addr),
            path("rules", &near, [10, 10, 3, 2].into(), far_addr),
            path("IPv6", &lab.left.ns, ip6(1, 2), ip6(2, 2)),
            path("rules of IPv6", &near, ip6(3, 2), ip6(3, 3)),
        ];
        let mut scene = Scene { lab, router, paths, stop: Arc::default(), threads: Vec::new() };
        let servers =
            [(&right, right_addr), (&right, ip6(2, 2)), (&far, far_addr), (&far, ip6(3, 3))];
        for (ns, addr) in servers {
            scene.threads.extend(serve(ns, addr, &scene.stop)?);
        }
        scene.threads.push(flood::start(&scene.lab.left.ns, &scene.stop)?);
        for path in &scene.paths {
            path.clients.set_sysctl("net/ipv4/tcp_tw_reuse", "1")?;
            scene.threads.extend(path.start(&scene.stop)?);
        }
        Ok(scene)
    }

    fn good(&self) -> Vec<u64> {
        self.paths.iter().map(|path| path.tally.good.load(Relaxed)).collect()
    }

    /// Waits until something has got through everywhere: a change that breaks the very first
    /// connections of all clients would have all of them wait. Returns how many did.
    fn begun(&self) -> Result<Vec<u64>> {
        wait_until_seen(REST, "first connections", || match self.good() {
            good if good.iter().all(|n| *n > 0) => Ok(good),
            good => Err(good),
        })
    }

    /// Waits until more has got through on each path than before. Returns how many did.
    fn further(&self, before: &[u64]) -> Result<Vec<u64>> {
        wait_until_seen(FURTHER, "more connections on each path", || match self.good() {
            good if good.iter().zip(before).all(|(n, before)| n > before) => Ok(good),
            good => Err(self.paths.iter().map(|path| path.name).zip(good).collect::<Vec<_>>()),
        })
    }

    /// Changes something; each change is undone by a later one.
    fn disturb(&self, turn: u64) -> Result<()> {
        let spare = 100 + turn / 14 % 4;
        let rule = "table=1,priority=5,udp,ct_state=+trk+new,tp_dst=5300,in_port=host-eth2";
        let lines = match turn % 14 {
            0 => format!("nat44 add address 10.10.2.{spare} del"),
            1 => format!(
                "flow add 20 {rule},actions=ct(commit,nat(src=10.10.3.100:3000-3999)),normal"
            ),
            2 => format!("nat44 add address 10.10.2.{spare}"),
            3 => format!("flow del 20 strict {rule}\nsflow sampling-rate {}", 1 + turn % 5),
            4 => "set nat44 table-full refuse\nset nat44 session limit 500 per-host".to_owned(),
            5 => "set conntrack limit 600\nsflow direction rx\nsflow enable host-eth3 disable"
                .to_owned(),
            6 => "set nat44 table-full recycle\nset nat44 session limit 0 per-host".to_owned(),
            7 => "set conntrack limit 1048576\nsflow direction both\nsflow enable host-eth3"
                .to_owned(),
            8 => "nat addr-port-assignment-alg port-range 20000 - 20999".to_owned(),
            9 => format!("flow add 20 file {}", self.router.dir().join("flows.txt").display()),
            10 => "nat addr-port-assignment-alg default".to_owned(),
            11 => "clear conntrack ct_nw_proto=17".to_owned(),
            12 => "clear nat44 sessions".to_owned(),
            _ if turn % 56 == 13 => {
                let flap = |port| {
                    format!("set interface state {port} down\nset interface state {port} up")
                };
                flap(["host-eth1", "host-eth3"][(turn / 56 % 2) as usize])
            }
            _ => format!("nat44 save {}", self.router.dir().join("sessions").display()),
        };
        self.router.cli(&format!("{lines}\n{}", disturb6(turn))).map(drop)
    }

    fn report(&mut self, since: Duration) -> Result<(String, u64)> {
        self.router.alive()?;
        let held = self.held()?;
        let neighbors = self.neighbors()?;
        let kib = resident_kib(self.router.pid())?;
        let done = self.paths.iter().map(|Path { name, tally, .. }| {
            let (good, broken) = (tally.good.load(Relaxed), tally.broken.load(Relaxed));
            format!("{name} {good} done, {broken} broken; ")
        });
        let (since, done) = (since.as_secs(), done.collect::<String>());
        Ok((format!("{since:>4} s: {done}now {held}, {neighbors} neighbours; {kib} KiB"), kib))
    }

    /// Neighbours of IPv6: at most as many as the limit.
    fn neighbors(&self) -> Result<u64> {
        let shown = self.router.json("show ip neighbor-config")?;
        let neighbors = shown["ip6"]["neighbors"].as_u64().context("neighbors")?;
        ensure!(neighbors <= NEIGHBORS, "{neighbors} neighbours, above the limit of {NEIGHBORS}");
        Ok(neighbors)
    }

    fn held(&self) -> Result<Held> {
        let number = |value: &Value, what: &str| value.as_u64().with_context(|| what.to_owned());
        let nat = self.router.json("show nat44 summary")?;
        let addresses = self.router.json("show nat44 addresses")?;
        let busy = |a: &Value| {
            ["tcp", "udp", "icmp"].map(|k| a["busy"][k].as_u64()).into_iter().flatten().sum::<u64>()
        };
        let ports = addresses.as_array().context("addresses")?.iter().map(busy).sum();
        let tracked = self.router.json("show conntrack summary")?;
        let buffers = self.router.json("show buffers")?;
        Ok(Held {
            sessions: number(&nat["total-sessions"], "total-sessions")?,
            ports,
            connections: number(&tracked["total"], "connections")?,
            buffers: number(&buffers[0]["used"], "buffers")?,
        })
    }

    /// Ends clients and servers; what the router still holds has to go.
    fn end(mut self, say: &mut impl FnMut(&str)) -> Result<()> {
        self.stop.store(true, Relaxed);
        for one in self.threads.drain(..) {
            join(one, REST, "a client or server")??;
        }
        for path in &self.paths {
            let (good, broken) = (path.tally.good.load(Relaxed), path.tally.broken.load(Relaxed));
            ensure!(good > 2 * broken, "{}: {good} done, {broken} broken", path.name);
        }
        let before = Instant::now();
        let held = wait_until_seen(REST, "everything to be forgotten", || match self.held() {
            Ok(held) if held.is_nothing() => Ok(held),
            Ok(held) => Err(held.to_string()),
            Err(e) => Err(format!("{e:#}")),
        })?;
        let sampled = wait_until_seen(REST, "all samples to be sent", || {
            let shown = self.router.json("show sflow").map_err(|e| format!("{e:#}"))?;
            let [taken, sent] = ["taken", "sent"].map(|n| shown["samples"][n].as_u64());
            match (taken, sent) {
                (Some(taken @ 1..), Some(sent)) if taken == sent => Ok(taken),
                _ => Err(shown["samples"].to_string()),
            }
        })?;
        say(&format!("{sampled} samples sent"));
        self.neighbors()?;
        flood::seen(&self.router.cli("show errors")?)?;
        say(&format!("behind {:.1} s of silence: {held}", before.elapsed().as_secs_f64()));
        self.router.stop().map(drop)
    }
}

/// A host's address of IPv6, of those with this number.
fn ip6(net: u16, host: u16) -> IpAddr {
    Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, 0, host).into()
}

/// Lets a host speak IPv6, by an address that is not tested before it is used. Hosts of the third
/// network have no router.
fn speak(ns: &Netns, net: u16, host: u16) -> Result<()> {
    for (what, value) in [("accept_dad", "0"), ("disable_ipv6", "0")] {
        for dev in ["all", "eth0"] {
            ns.set_sysctl(&format!("net/ipv6/conf/{dev}/{what}"), value)?;
        }
    }
    ns.ip(&format!("-6 address add {}/64 dev eth0 nodad", ip6(net, host)))?;
    if net < 3 {
        ns.ip(&format!("-6 route add default via {}", ip6(net, 1)))?;
    }
    Ok(())
}

/// Changes something of IPv6; each change is undone by a later one.
fn disturb6(turn: u64) -> String {
    let rule = "table=1,priority=5,udp6,ct_state=+trk+new,tp_dst=5300,in_port=host-eth2";
    match turn % 6 {
        0 => "set interface ip address host-eth1 2001:db8:22::1/64".to_owned(),
        1 => format!(
            "flow add 20 {rule},actions=ct(commit,nat(src=[2001:db8:3::100]:3000-3999)),normal"
        ),
        2 => "ip route add 2001:db8:2::2/128 via 2001:db8:2::2 host-eth1".to_owned(),
        3 => "set interface ip address del host-eth1 2001:db8:22::1/64".to_owned(),
        4 => format!("flow del 20 strict {rule}"),
        _ => "ip route del 2001:db8:2::2/128 via 2001:db8:2::2 host-eth1".to_owned(),
    }
}

/// Resources that a router holds.
struct Held {
    sessions: u64,
    ports: u64,
    connections: u64,
    buffers: u64,
}

impl Held {
    fn is_nothing(&self) -> bool {
        self.sessions + self.ports + self.connections + self.buffers == 0
    }
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Held { sessions, ports, connections, buffers } = self;
        write!(
            f,
            "{sessions} sessions, {ports} ports, {connections} connections, {buffers} buffers"
        )
    }
}

impl Path {
    fn start(&self, stop: &Arc<AtomicBool>) -> Result<Vec<JoinHandle<Result<()>>>> {
        let (from, to) = (self.from, self.to);
        // Threads are in the namespace of the one that starts them.
        self.clients.run(|| {
            let tcp = (0..CLIENTS).map(|n| {
                let (stop, tally) = (stop.clone(), self.tally.clone());
                thread::spawn(move || client(&stop, &tally, n, |n| connection(to, n)))
            });
            let (stop, tally) = (stop.clone(), self.tally.clone());
            let udp = thread::spawn(move || client(&stop, &tally, 0, |n| datagrams(from, to, n)));
            tcp.chain([udp]).collect()
        })
    }
}

fn client(
    stop: &AtomicBool,
    tally: &Tally,
    mut n: usize,
    work: impl Fn(usize) -> Result<()>,
) -> Result<()> {
    while !stop.load(Relaxed) {
        n += CLIENTS;
        let count = if work(n).is_ok() { &tally.good } else { &tally.broken };
        count.fetch_add(1, Relaxed);
        // Paced: the load has a rate.
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// A connection of a few bytes or many, which ends in one of several ways.
fn connection(to: IpAddr, n: usize) -> Result<()> {
    let mut stream = TcpStream::connect_timeout(&(to, TCP_PORT).into(), PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let sent = vec![n as u8; [1, 100, 3000, 40_000][n % 4]];
    stream.write_all(&sent)?;
    let mut got = vec![0; sent.len()];
    stream.read_exact(&mut got)?;
    ensure!(got == sent, "other bytes came back");
    match n / 4 % 3 {
        0 => stream.shutdown(Shutdown::Write)?,
        // Close with a reset.
        1 => set_socket_linger(&stream, Some(Duration::ZERO))?,
        _ => {}
    }
    Ok(())
}

/// Datagrams to a port that answers, to one that nobody listens on, and nowhere.
fn datagrams(from: IpAddr, to: IpAddr, n: usize) -> Result<()> {
    let socket = UdpSocket::bind((from, 0))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.connect((to, UDP_PORT))?;
    socket.send(&[n as u8; 100])?;
    let mut got = [0; 200];
    let answered = socket.recv(&mut got)? == 100;
    socket.connect((to, 9))?;
    socket.send(b"nobody is here")?;
    let other = UdpSocket::bind((from, 0))?;
    other.send_to(b"nor here", (to, 20_000 + (n % 20_000) as u16))?;
    if answered { Ok(()) } else { bail!("another answer") }
}

/// A server of each kind.
fn serve(ns: &Netns, at: IpAddr, stop: &Arc<AtomicBool>) -> Result<[JoinHandle<Result<()>>; 2]> {
    let (tcp, udp) = ns.run(|| -> Result<_> {
        Ok((TcpListener::bind((at, TCP_PORT))?, UdpSocket::bind((at, UDP_PORT))?))
    })??;
    udp.set_read_timeout(Some(Duration::from_millis(100)))?;
    let (stop_tcp, stop_udp) = (stop.clone(), stop.clone());
    let tcp = thread::spawn(move || {
        while !stop_tcp.load(Relaxed) {
            // Wait in steps, to see the stop.
            if wait_for_readable(&tcp, Duration::from_millis(100), "a client").is_ok() {
                let (stream, _) = tcp.accept()?;
                thread::spawn(move || echo(stream));
            }
        }
        Ok(())
    });
    let udp = thread::spawn(move || {
        let mut datagram = [0; 2000];
        while !stop_udp.load(Relaxed) {
            if let Ok((length, peer)) = udp.recv_from(&mut datagram) {
                let _: Result<usize, _> = udp.send_to(&datagram[..length], peer as SocketAddr);
            }
        }
        Ok(())
    });
    Ok([tcp, udp])
}

/// Sends back what comes, until it ends or nothing does.
fn echo(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(2 * PATIENCE))?;
    stream.set_write_timeout(Some(2 * PATIENCE))?;
    let mut chunk = [0; 8192];
    loop {
        match stream.read(&mut chunk)? {
            0 => return Ok(()),
            n => stream.write_all(&chunk[..n])?,
        }
    }
}

/// Memory of a process that is in RAM, KiB.
fn resident_kib(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("its status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    line.trim().trim_end_matches(" kB").parse().context("VmRSS")
}
