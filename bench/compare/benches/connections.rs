//! New TCP connections of real clients through Thalweg, Open vSwitch and the kernel's bridge, with and
//! without stateful rules, on virtual Ethernet pairs.
//!
//! `--json FILE` writes a report. Needs root or user namespaces, the program (`cargo build
//! --release --bins`), and for the rows of Open vSwitch `scripts/setup.sh bench`.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use thalweg_bench_common::{Args, Cell, Column, Report, Series, Table};
use thalweg_smoke::{Config, Delay, Ovs, OvsOptions, Router};
use thalweg_testkit::{
    Lab, LabOptions, Middle, Offloads, Privilege, enter_user_namespace, require_tools,
};

const WARM_UP: Duration = Duration::from_millis(500);
const WINDOW: Duration = Duration::from_millis(1500);
/// Connections at a time.
const CLIENTS: usize = 64;
/// Ports of the server, so that a client's ports last.
const PORTS: u16 = 16;
const FIRST_PORT: u16 = 9000;
/// Connections that each may remember, which is what Open vSwitch may unless told otherwise.
const LIMIT: u32 = 3_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Thalweg,
    Ovs,
    Kernel,
}

/// A forwarder, and whether it follows the four rules.
#[derive(Clone, Copy)]
struct Case {
    who: Who,
    tracked: bool,
}

const CASES: [Case; 5] = [
    Case { who: Who::Thalweg, tracked: true },
    Case { who: Who::Ovs, tracked: true },
    Case { who: Who::Thalweg, tracked: false },
    Case { who: Who::Ovs, tracked: false },
    Case { who: Who::Kernel, tracked: false },
];

impl Case {
    fn name(self) -> &'static str {
        match (self.who, self.tracked) {
            (Who::Thalweg, true) => "Thalweg, AF_PACKET, four rules",
            (Who::Thalweg, false) => "Thalweg, AF_PACKET, bridge domain",
            (Who::Ovs, true) => "Open vSwitch, netdev, AF_PACKET, four rules",
            (Who::Ovs, false) => "Open vSwitch, netdev, AF_PACKET, normal",
            (Who::Kernel, _) => "kernel bridge, no rules",
        }
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
        let middle = if case.who == Who::Kernel { Middle::KernelBridge } else { Middle::Bridge };
        let offloads = Offloads::OFF;
        let lab = Lab::build(&LabOptions { middle, offloads, ..LabOptions::default() })?;
        lab.left.ns.set_sysctl("net/ipv4/ip_local_port_range", "1024 65535")?;
        let running = match case.who {
            Who::Thalweg => Running::Thalweg(thalweg(&lab, case.tracked)?),
            Who::Ovs => Running::Ovs(ovs(&lab, case.tracked)?),
            Who::Kernel => Running::Kernel,
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

fn thalweg(lab: &Lab, tracked: bool) -> Result<Router> {
    let config = Config::empty().commands(
        "create host-interface name eth0
         create host-interface name eth1
         set interface l2 bridge host-eth0 10
         set interface l2 bridge host-eth1 10
         set interface state host-eth0 up
         set interface state host-eth1 up",
    );
    let cores = format!("cpu {{ corelist-workers {} }}", last_processor());
    let router = Router::start(&lab.router, &config.stanza(&cores))?;
    if tracked {
        router.cli(&format!("set conntrack limit {LIMIT}"))?;
        for rule in rules("host-eth0") {
            router.cli(&format!("flow add 10 {rule}"))?;
        }
    }
    Ok(router)
}

fn ovs(lab: &Lab, tracked: bool) -> Result<Ovs> {
    let settings = vec![format!("pmd-cpu-mask={:#x}", 1u64 << last_processor())];
    let options = OvsOptions { settings, port_type: None };
    let ovs = Ovs::start(&lab.router, &["eth0", "eth1"], &options)?;
    let rules = if tracked { rules("1").to_vec() } else { vec!["actions=normal".into()] };
    ovs.add_flows(&rules.iter().map(String::as_str).collect::<Vec<_>>())?;
    for thread in std::fs::read_dir(format!("/proc/{}/task", ovs.pid()))? {
        let number = thread?.file_name().to_string_lossy().parse()?;
        // Some end by themselves.
        let _ = pin(number, last_processor());
    }
    Ok(ovs)
}

/// Clients on the left and a server on the right, all on the first processor.
struct Load {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    fn start(lab: &Lab) -> Result<Load> {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut threads = Vec::new();
        for n in 0..PORTS {
            let at = SocketAddr::from((lab.right.addr, FIRST_PORT + n));
            let listener = lab.right.ns.run(|| TcpListener::bind(at))??;
            listener.set_nonblocking(false)?;
            let stop = Arc::clone(&stop);
            threads.push(std::thread::spawn(move || {
                let _ = pin(0, 0);
                // Whoever stops connects once more, to say so.
                while let Ok((stream, _)) = listener.accept() {
                    drop(stream);
                    if stop.load(Relaxed) {
                        return;
                    }
                }
            }));
        }
        let more = lab.left.ns.run(|| -> Vec<JoinHandle<()>> {
            let client = |n: usize| {
                let port = FIRST_PORT + (n % usize::from(PORTS)) as u16;
                let to = SocketAddr::from((lab.right.addr, port));
                let (stop, done) = (Arc::clone(&stop), Arc::clone(&done));
                std::thread::spawn(move || {
                    let _ = pin(0, 0);
                    while !stop.load(Relaxed) {
                        if connect(to).is_ok() {
                            done.fetch_add(1, Relaxed);
                        }
                    }
                })
            };
            (0..CLIENTS).map(client).collect()
        })?;
        threads.extend(more);
        Ok(Load { stop, done, threads })
    }

    /// Clients end after the connection at hand, and servers with one more.
    fn stop(self, lab: &Lab) -> Result<()> {
        self.stop.store(true, Relaxed);
        let (servers, clients): (Vec<_>, Vec<_>) =
            self.threads.into_iter().enumerate().partition(|(n, _)| *n < usize::from(PORTS));
        for (_, thread) in clients {
            thread.join().map_err(|_| anyhow::anyhow!("a client failed"))?;
        }
        // Those that have ended refuse.
        lab.left.ns.run(|| {
            for n in 0..PORTS {
                let _ = connect(SocketAddr::from((lab.right.addr, FIRST_PORT + n)));
            }
        })?;
        for (_, thread) in servers {
            thread.join().map_err(|_| anyhow::anyhow!("a server failed"))?;
        }
        Ok(())
    }
}

/// Opens a connection and waits for the server to close it; then closes it as well.
fn connect(to: SocketAddr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(2))?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    stream.read(&mut [0]).map(drop)
}

fn main() -> Result<()> {
    let Some(args) = Args::from_env()? else { return Ok(()) };
    if Privilege::check() == Privilege::UserNamespaces {
        enter_user_namespace()?;
    }
    require_tools(&["ip", "bridge", "setpriv"])?;
    thalweg_smoke::thalweg()?;
    let mut report = Report::start("tcp_connections", "Real TCP connections through a switch");
    report.about(format!(
        "{CLIENTS} clients open connections to a server that closes them, in namespaces: seven frames \
         each. Clients and server have the first processor, the forwarder the last one. All take \
         turns in each of {} rounds; ratios are taken within rounds.",
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
        "New TCP connections: Thalweg beside the others",
        vec![Column::text("Thalweg"), Column::text("over"), Column::values("rate", "")],
    );
    for ours in all.iter().filter(|c| c.case.who == Who::Thalweg) {
        for other in all.iter().filter(|c| c.case.who != Who::Thalweg) {
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
