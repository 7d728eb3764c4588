//! New TCP connections of real clients through Thalweg, Open vSwitch and the kernel, bridged and
//! routed, with stateful rules, translated, and without, on virtual Ethernet pairs.
//!
//! `--json FILE` writes a report. Needs root or user namespaces, the program (`cargo build
//! --release --bins`), and for the rows of Open vSwitch and of nft `scripts/setup.sh bench`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use thalweg_bench_common::{Args, Cell, Column, Report, Series, Table};
use thalweg_smoke::{Config, Delay, Ovs, OvsOptions, Peer, Router};
use thalweg_testkit::{
    Lab, LabOptions, Middle, Offloads, Privilege, enter_user_namespace, require_tools,
};

const WARM_UP: Duration = Duration::from_millis(500);
const WINDOW: Duration = Duration::from_millis(1500);
/// Connections at a time: each client has a server's port to itself, so that its own ports last.
const CLIENTS: u16 = 64;
const FIRST_PORT: u16 = 9000;
/// A request and its answer, in bytes: those of the generator that measures without interfaces.
const DATA: usize = 40;
const PATIENCE: Duration = Duration::from_secs(2);
/// Connections that each may track: Open vSwitch's default.
const LIMIT: u32 = 3_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Thalweg,
    Ovs,
    Kernel,
}

/// Path of packets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Setup {
    Bridge,
    /// Bridged by the four rules.
    BridgeRules,
    Routed,
    /// Routed, if a rule that knows connections allows it.
    RoutedRules,
    /// Routed, with addresses translated.
    Nat,
}

/// A forwarder, and what it does.
#[derive(Clone, Copy)]
struct Case {
    who: Who,
    setup: Setup,
}

const fn case(who: Who, setup: Setup) -> Case {
    Case { who, setup }
}

const CASES: [Case; 11] = [
    case(Who::Thalweg, Setup::BridgeRules),
    case(Who::Ovs, Setup::BridgeRules),
    case(Who::Thalweg, Setup::Bridge),
    case(Who::Ovs, Setup::Bridge),
    case(Who::Kernel, Setup::Bridge),
    case(Who::Thalweg, Setup::Routed),
    case(Who::Kernel, Setup::Routed),
    case(Who::Thalweg, Setup::RoutedRules),
    case(Who::Kernel, Setup::RoutedRules),
    case(Who::Thalweg, Setup::Nat),
    case(Who::Kernel, Setup::Nat),
];

impl Case {
    fn name(self) -> &'static str {
        match (self.who, self.setup) {
            (Who::Thalweg, Setup::BridgeRules) => "Thalweg, AF_PACKET, four rules",
            (Who::Thalweg, Setup::Bridge) => "Thalweg, AF_PACKET, bridge domain",
            (Who::Thalweg, Setup::Routed) => "Thalweg, AF_PACKET, IPv4",
            (Who::Thalweg, Setup::RoutedRules) => "Thalweg, AF_PACKET, IPv4, four rules",
            (Who::Thalweg, Setup::Nat) => "Thalweg, AF_PACKET, NAT44",
            (Who::Ovs, Setup::Bridge) => "Open vSwitch, netdev, AF_PACKET, normal",
            (Who::Ovs, _) => "Open vSwitch, netdev, AF_PACKET, four rules",
            (Who::Kernel, Setup::Bridge | Setup::BridgeRules) => "kernel bridge, no rules",
            (Who::Kernel, Setup::Routed) => "kernel routing, no rules",
            (Who::Kernel, Setup::RoutedRules) => "kernel routing, nft `ct state`",
            (Who::Kernel, Setup::Nat) => "kernel routing, nft `masquerade`",
        }
    }

    fn is_routed(self) -> bool {
        !matches!(self.setup, Setup::Bridge | Setup::BridgeRules)
    }

    /// True if a ratio of these two says anything.
    fn compares_with(self, other: Case) -> bool {
        let alike = if self.is_routed() { self.setup == other.setup } else { !other.is_routed() };
        alike && self.who == Who::Thalweg && other.who != Who::Thalweg
    }
}

fn rules(first: &str) -> [String; 5] {
    [
        "priority=2,arp,actions=normal".into(),
        "priority=1,ip,ct_state=-trk,actions=ct(table=0)".into(),
        format!("priority=1,ip,ct_state=+trk+new,in_port={first},actions=ct(commit),normal"),
        "priority=1,ip,ct_state=+trk+est,actions=normal".into(),
        "priority=0,actions=drop".into(),
    ]
}

enum Running {
    Thalweg(Router),
    Ovs(Ovs),
    Kernel,
}

struct Contestant {
    case: Case,
    lab: Lab,
    running: Running,
    rates: Series,
}

fn last_processor() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from) - 1
}

fn pin(thread: i32, processor: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(processor)?;
    sched_setaffinity(Pid::from_raw(thread), &set).context("bind a thread to a processor")
}

impl Contestant {
    fn start(case: Case) -> Result<Contestant> {
        let middle = match (case.who, case.is_routed()) {
            (Who::Kernel, true) => Middle::KernelRouter,
            (Who::Kernel, false) => Middle::KernelBridge,
            (_, true) => Middle::Router,
            (_, false) => Middle::Bridge,
        };
        let offloads = Offloads::OFF;
        let lab = Lab::build(&LabOptions { middle, offloads, ..LabOptions::default() })?;
        lab.left.ns.set_sysctl("net/ipv4/ip_local_port_range", "1024 65535")?;
        let running = match case.who {
            Who::Thalweg => Running::Thalweg(thalweg(&lab, case.setup)?),
            Who::Ovs => Running::Ovs(ovs(&lab, case.setup)?),
            Who::Kernel => {
                nft(&lab, case.setup)?;
                Running::Kernel
            }
        };
        let contestant = Contestant { case, lab, running, rates: Series::default() };
        contestant.pause()?;
        Ok(contestant)
    }

    fn pause(&self) -> Result<()> {
        if let Running::Ovs(ovs) = &self.running { ovs.pause() } else { Ok(()) }
    }

    /// Connections per second, once more.
    fn round(&mut self) -> Result<()> {
        if let Running::Ovs(ovs) = &self.running {
            ovs.resume()?;
        }
        let load = Load::start(&self.lab)?;
        Delay::measure_over(WARM_UP);
        let (begin, before) = (Instant::now(), load.done.load(Relaxed));
        Delay::measure_over(WINDOW);
        let done = load.done.load(Relaxed) - before;
        self.rates.push(done as f64 / begin.elapsed().as_secs_f64() / 1e3);
        load.stop(&self.lab)?;
        self.pause()
    }

    fn stop(self) -> Result<()> {
        match self.running {
            Running::Thalweg(router) => router.stop().map(drop),
            Running::Ovs(ovs) => ovs.stop(),
            Running::Kernel => Ok(()),
        }
    }
}

/// Addresses for translation: with the time that sessions last behind their connections, one has
/// too few ports.
const OUTSIDE: &str = "10.10.2.100 - 10.10.2.107";

fn thalweg(lab: &Lab, setup: Setup) -> Result<Router> {
    let ports = match setup {
        Setup::Bridge | Setup::BridgeRules => {
            "set interface l2 bridge host-eth0 10\nset interface l2 bridge host-eth1 10".to_owned()
        }
        Setup::Routed | Setup::RoutedRules | Setup::Nat => format!(
            "set interface ip address host-eth0 {}/24\nset interface ip address host-eth1 {}/24",
            lab.left.gateway, lab.right.gateway
        ),
    };
    let config = Config::empty().commands(&format!(
        "create host-interface name eth0
         create host-interface name eth1
         {ports}
         set interface state host-eth0 up
         set interface state host-eth1 up",
    ));
    let cores = format!("cpu {{ corelist-workers {} }}", last_processor());
    let router = Router::start(&lab.router, &config.stanza(&cores))?;
    let mut commands = Vec::new();
    if matches!(setup, Setup::BridgeRules | Setup::RoutedRules) {
        commands.push(format!("set conntrack limit {LIMIT}"));
        commands.extend(rules("host-eth0").map(|rule| format!("flow add 10 {rule}")));
    }
    if setup == Setup::RoutedRules {
        commands.extend(["host-eth0", "host-eth1"].map(|p| format!("set interface flow {p} 10")));
    }
    if setup == Setup::Nat {
        commands.push("nat44 plugin enable sessions 1000000".into());
        commands.push(format!("nat44 add address {OUTSIDE}"));
        commands.push("set interface nat44 in host-eth0 out host-eth1".into());
    }
    commands.iter().try_for_each(|command| router.cli(command).map(drop))?;
    Ok(router)
}

/// Sets up the kernel's rules for connections.
fn nft(lab: &Lab, setup: Setup) -> Result<()> {
    let (table, chain, rules): (_, _, &[_]) = match setup {
        Setup::RoutedRules => (
            "filter",
            "type filter hook forward priority 0; policy drop;",
            &["ct state established accept", "iifname eth0 ct state new accept"],
        ),
        Setup::Nat => {
            ("nat", "type nat hook postrouting priority 100;", &["oifname eth1 masquerade"])
        }
        Setup::Bridge | Setup::BridgeRules | Setup::Routed => return Ok(()),
    };
    const NFT: &str = "usr/sbin/nft";
    let peer = Peer::find("nftables", &[NFT])?;
    let first =
        [format!("add table ip {table}"), format!("add chain ip {table} setup {{ {chain} }}")];
    let rules = rules.iter().map(|rule| format!("add rule ip {table} setup {rule}"));
    for command in first.into_iter().chain(rules) {
        peer.command(Some(&lab.router), NFT).arg(command).output()?;
    }
    Ok(())
}

fn ovs(lab: &Lab, setup: Setup) -> Result<Ovs> {
    let settings = vec![format!("pmd-cpu-mask={:#x}", 1u64 << last_processor())];
    let options = OvsOptions { settings, ..OvsOptions::default() };
    let ovs = Ovs::start(&lab.router, &["eth0", "eth1"], &options)?;
    let rules = match setup {
        Setup::BridgeRules => rules("1").to_vec(),
        _ => vec!["actions=normal".into()],
    };
    ovs.add_flows(&rules.iter().map(String::as_str).collect::<Vec<_>>())?;
    for thread in std::fs::read_dir(format!("/proc/{}/task", ovs.pid()))? {
        let number = thread?.file_name().to_string_lossy().parse()?;
        // Some end by themselves.
        let _ = pin(number, last_processor());
    }
    Ok(ovs)
}

/// Clients on the left and servers on the right, all on the first processor.
struct Load {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    clients: Vec<JoinHandle<()>>,
    servers: Vec<JoinHandle<()>>,
}

impl Load {
    fn start(lab: &Lab) -> Result<Load> {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (mut clients, mut servers) = (Vec::new(), Vec::new());
        for server in servers_of(lab) {
            let listener = lab.right.ns.run(|| TcpListener::bind(server))??;
            let ended = Arc::clone(&stop);
            servers.push(std::thread::spawn(move || {
                let _ = pin(0, 0);
                // The stopping thread connects once more, to say so.
                while let Ok((stream, _)) = listener.accept() {
                    let _ = serve(stream);
                    if ended.load(Relaxed) {
                        return;
                    }
                }
            }));
            let (stop, done) = (Arc::clone(&stop), Arc::clone(&done));
            let client = move || {
                let _ = pin(0, 0);
                while !stop.load(Relaxed) {
                    if connect(server).is_ok() {
                        done.fetch_add(1, Relaxed);
                    }
                }
            };
            clients.push(lab.left.ns.run(|| std::thread::spawn(client))?);
        }
        Ok(Load { stop, done, clients, servers })
    }

    /// Clients end after the connection at hand, and servers with one more.
    fn stop(self, lab: &Lab) -> Result<()> {
        self.stop.store(true, Relaxed);
        for client in self.clients {
            client.join().map_err(|_| anyhow::anyhow!("a client failed"))?;
        }
        // A server that has ended refuses.
        lab.left.ns.run(|| servers_of(lab).for_each(|server| drop(connect(server))))?;
        for server in self.servers {
            server.join().map_err(|_| anyhow::anyhow!("a server failed"))?;
        }
        Ok(())
    }
}

fn servers_of(lab: &Lab) -> impl Iterator<Item = SocketAddr> {
    let addr = lab.right.addr;
    (0..CLIENTS).map(move |n| SocketAddr::from((addr, FIRST_PORT + n)))
}

/// Opens a connection, asks, and waits for the answer and for the server to close; then closes as
/// well.
fn connect(to: SocketAddr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&[0; DATA])?;
    stream.read_exact(&mut [0; DATA])?;
    stream.read(&mut [0]).map(drop)
}

/// The other side of [`connect`].
fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.read_exact(&mut [0; DATA])?;
    stream.write_all(&[0; DATA])
}

fn main() -> Result<()> {
    let Some(args) = Args::from_env()? else { return Ok(()) };
    if Privilege::check() == Privilege::UserNamespaces {
        enter_user_namespace()?;
    }
    require_tools(&["ip", "bridge", "setpriv"])?;
    thalweg_smoke::thalweg()?;
    let mut report =
        Report::start("tcp_connections", "Real TCP connections through a switch and a router");
    report.about(format!(
        "{CLIENTS} clients open connections, each to a server of its own, ask with {DATA} bytes and are \
         answered with as many by the server, which then closes; in namespaces. Clients and servers have \
         the first processor, the forwarder the last one. All take turns in each of {} rounds; ratios \
         are taken within rounds.",
        args.rounds()
    ));
    let mut all = Vec::new();
    let mut table = Table::new(
        "New TCP connections",
        vec![Column::text("forwarder"), Column::values("rate", "thousand/s")],
    );
    for case in CASES.into_iter().filter(|case| args.wants(case.name())) {
        match Contestant::start(case) {
            Ok(contestant) => all.push(contestant),
            Err(e) => {
                let why = format!("not available: {e:#}").replace('\n', " ");
                table.row(vec![case.name().into(), Cell::Missing(why)]);
            }
        }
    }
    for round in 0..args.rounds() {
        eprintln!("connections: round {} of {}", round + 1, args.rounds());
        for contestant in &mut all {
            contestant.round().with_context(|| contestant.case.name())?;
        }
    }
    for contestant in &all {
        table.row(vec![contestant.case.name().into(), Cell::series(&contestant.rates, 1)]);
    }
    report.table(table);
    let mut ratios = Table::new(
        "New TCP connections: Thalweg and the others",
        vec![Column::text("Thalweg"), Column::text("over"), Column::values("rate", "")],
    );
    for ours in &all {
        for other in all.iter().filter(|other| ours.case.compares_with(other.case)) {
            ratios.row(vec![
                ours.case.name().into(),
                other.case.name().into(),
                Cell::ratio(ours.rates.over(&other.rates)),
            ]);
        }
    }
    ratios.note("With the four rules, at least 1.3 times Open vSwitch's rate is the target.");
    report.table(ratios);
    all.into_iter().try_for_each(Contestant::stop)?;
    report.finish(&args)
}
