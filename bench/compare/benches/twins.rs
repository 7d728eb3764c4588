//! Linux control plane: pairs by the thousand, TCP between a host and a twin compared with the
//! kernel's forwarding, sessions of routing daemons while a flood comes in.
//!
//! Prints tables in Markdown; `--json FILE` writes the same as JSON. Needs root or user namespaces,
//! FRRouting, and the program: `cargo build --release --bins`.

use std::io::{BufWriter, Write as _};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use thalweg_bench_common::{Args, Cell, Column, Report, Rounds, Spread, Table};
use thalweg_smoke::{Config, Delay, Frr, Router};
use thalweg_testkit::{
    IperfOptions, Lab, LabOptions, LinkOptions, Middle, Netns, Offloads, Privilege, WAIT_LIMIT,
    enter_user_namespace, iperf3, require_tools, veth, wait_until_seen,
};

const PAIRS: usize = 1000;
/// Routes of the kernel, of each version of IP.
const ROUTES: usize = 1_000_000;
const ROUTES6: usize = 250_000;
/// Packets per second of the flood.
const FLOOD: u32 = 1_000_000;
const QUICK_WINDOW: Duration = Duration::from_secs(10);
const FULL_WINDOW: Duration = Duration::from_secs(60);
/// The router's address on the link, which its twin has.
const US: [u8; 4] = [10, 1, 0, 1];

/// A router with one pair, the namespace of the twin, and a peer on the link.
struct Edge {
    router: Router,
    plane: Netns,
    peer: Netns,
    _own: Netns,
}

impl Edge {
    fn start() -> Result<Edge> {
        let own = Netns::new("twins-router")?;
        let (plane, peer) = (Netns::new("twins-plane")?, Netns::new("twins-peer")?);
        for ns in [&plane, &peer] {
            ns.ip("link set lo up")?;
            for (what, value) in [("accept_dad", "0"), ("disable_ipv6", "0")] {
                for which in ["all", "default"] {
                    ns.set_sysctl(&format!("net/ipv6/conf/{which}/{what}"), value)?;
                }
            }
        }
        let ours = LinkOptions { offloads: Offloads::ON, ..LinkOptions::default() };
        let theirs = ours.clone().address("10.1.0.2/24");
        veth((&own, "e0", &ours), (&peer, "eth0", &theirs))?;
        let last = std::thread::available_parallelism().map_or(1, usize::from) - 1;
        let config = Config::empty()
            .commands(&format!(
                "create host-interface name e0
                 set interface ip address host-e0 10.1.0.1/24
                 set interface ip address host-e0 2001:db8:1::1/64
                 set interface state host-e0 up
                 lcp lcp-sync on
                 lcp create host-e0 host-if e0 netns {}",
                plane.descriptor_path().display()
            ))
            .stanza(&format!("cpu {{ corelist-workers {last} }}"));
        let router = Router::start(&own, &config)?;
        Ok(Edge { router, plane, peer, _own: own })
    }

    /// Packets of a class: those that went to the twin, and those above the limit.
    fn punted(&self, class: &str) -> Result<(u64, u64)> {
        let shown = self.router.json("show punt")?;
        let rows = shown.as_array().context("a list")?;
        let row = rows.iter().find(|row| row["class"] == class).context("the class")?;
        let of = |column: &str| row[column].as_u64().context("a number");
        Ok((of("passed")?, of("limited")?))
    }
}

/// Seconds until all of [`PAIRS`] exist in the kernel, are up, and have their address.
fn pairs() -> Result<f64> {
    let (own, plane) = (Netns::new("twins-router")?, Netns::new("twins-plane")?);
    let mut loopbacks = String::from("lcp lcp-sync on\n");
    for n in 0..PAIRS {
        loopbacks += &format!(
            "create loopback interface instance {n}
             set interface ip address loop{n} 10.{}.{}.1/32
             set interface state loop{n} up\n",
            n >> 8,
            n & 255
        );
    }
    let router = Router::start(&own, &Config::empty().commands(&loopbacks))?;
    let path = plane.descriptor_path();
    let began = Instant::now();
    for n in 0..PAIRS {
        let netns = path.display();
        router.cli(&format!("lcp create loop{n} host-if l{n} netns {netns}"))?;
    }
    let complete = || -> std::result::Result<(), String> {
        let text = plane.ip("-brief -4 address").map_err(|e| e.to_string())?;
        let up = text.lines().filter(|line| line.starts_with('l') && line.contains("/32")).count();
        if up == PAIRS { Ok(()) } else { Err(format!("{up} twins have their address")) }
    };
    wait_until_seen(WAIT_LIMIT, "all twins", complete)?;
    let seconds = began.elapsed().as_secs_f64();
    router.stop()?;
    Ok(seconds)
}

fn tcp(count: usize) -> Result<Vec<(&'static str, Rounds)>> {
    let edge = Edge::start()?;
    let kernel = Lab::build(&LabOptions {
        middle: Middle::KernelRouter,
        offloads: Offloads::ON,
        ..LabOptions::default()
    })?;
    kernel.ping_all()?;
    let mut lines = Vec::new();
    for (name, reverse) in [("TCP to a twin", false), ("TCP from a twin", true)] {
        let duration = Duration::from_secs(2);
        let options = IperfOptions { duration, reverse, ..IperfOptions::default() };
        let mut rounds = Rounds::default();
        for _ in 0..count {
            let theirs = iperf3(&kernel.left.ns, &kernel.right.ns, kernel.right.addr, &options)?;
            let ours = iperf3(&edge.peer, &edge.plane, US, &options)?;
            rounds.push(ours.bits_per_s / 1e9, theirs.bits_per_s / 1e9);
        }
        lines.push((name, rounds));
    }
    edge.router.stop()?;
    Ok(lines)
}

/// Routes of the kernel in the router: the rows of a table.
struct Scale {
    /// Seconds that the kernel took for all of them, by `ip -batch`.
    inserted: f64,
    /// Seconds after the last one until all forward.
    after: f64,
    /// Seconds until a group of two next hops that all of them name has one.
    changed: f64,
    /// Seconds until 100,000 of them that went are gone here.
    gone: f64,
    state: Value,
}

/// Routes of both versions, by a group of next hops each.
fn scale(routes: usize, routes6: usize) -> Result<Scale> {
    let edge = Edge::start()?;
    edge.plane.set_sysctl("net/ipv4/nexthop_compat_mode", "0")?;
    for command in [
        "nexthop add id 1 via 10.1.0.2 dev e0",
        "nexthop add id 2 via 10.1.0.3 dev e0",
        "nexthop add id 3 group 1/2",
        "nexthop add id 4 via 2001:db8:1::2 dev e0",
        "nexthop add id 5 via 2001:db8:1::3 dev e0",
        "nexthop add id 6 group 4/5",
    ] {
        edge.plane.ip(command)?;
    }
    let prefix = |n: usize| format!("{}.{}.{}.0/24", 20 + (n >> 16), n >> 8 & 255, n & 255);
    let prefix6 = |n: usize| format!("2a00:{:x}:{:x}::/48", n >> 16, n & 0xffff);
    let run = |lines: &mut dyn Iterator<Item = String>| -> Result<f64> {
        let file = tempfile::NamedTempFile::new()?;
        let mut out = BufWriter::new(file.as_file());
        for line in lines {
            writeln!(out, "route {line}")?;
        }
        out.flush()?;
        drop(out);
        let began = Instant::now();
        edge.plane.ip(&format!("-batch {}", file.path().display()))?;
        Ok(began.elapsed().as_secs_f64())
    };
    let await_count = |wanted: usize| -> Result<f64> {
        let began = Instant::now();
        wait_until_seen(WAIT_LIMIT, "the routes", || {
            let shown = edge.router.json("show lcp routes").map_err(|e| format!("{e:#}"))?;
            let of = &shown["namespaces"][0];
            let there = of["routes"] == wanted && of["waiting"] == 0;
            if there { Ok(()) } else { Err(shown.to_string()) }
        })?;
        Ok(began.elapsed().as_secs_f64())
    };
    let add4 = (0..routes).map(|n| format!("add {} nhid 3", prefix(n)));
    let add6 = (0..routes6).map(|n| format!("add {} nhid 6", prefix6(n)));
    let inserted = run(&mut add4.chain(add6))?;
    let after = await_count(routes + routes6)?;
    let state = edge.router.json("show lcp routes")?["namespaces"][0].clone();
    let last = prefix(routes - 1);
    let began = Instant::now();
    edge.plane.ip("nexthop replace id 3 group 1")?;
    wait_until_seen(WAIT_LIMIT, "one next hop", || {
        let shown =
            edge.router.cli(&format!("show ip fib {last}")).map_err(|e| format!("{e:#}"))?;
        let there = shown.contains("10.1.0.2") && !shown.contains("10.1.0.3");
        if there { Ok(()) } else { Err(shown) }
    })?;
    let changed = began.elapsed().as_secs_f64();
    run(&mut (0..routes / 10).map(|n| format!("del {}", prefix(n))))?;
    let gone = await_count(routes - routes / 10 + routes6)?;
    edge.router.stop()?;
    Ok(Scale { inserted, after, changed, gone, state })
}

fn scale_table(routes: usize, routes6: usize, scale: &Scale) -> Table {
    let columns = vec![
        Column::text("routes of the kernel"),
        Column::text("unit"),
        Column::values("thalweg", ""),
        Column::values("guide", ""),
    ];
    let mut table = Table::new("Routes of the kernel", columns);
    let mut row = |what: String, unit: &str, value: f64, guide: Option<(&str, f64)>| {
        let guide =
            guide.map_or(Cell::None, |(text, most)| Cell::Guide(text.into(), value <= most));
        table.row(vec![what.into(), unit.into(), Cell::Number(value, 2), guide]);
    };
    let added = format!("{routes} of IPv4 and {routes6} of IPv6 added to the kernel");
    row(added, "s", scale.inserted, None);
    row("all forward, after the last message".into(), "s", scale.after, Some(("≤ 3", 3.0)));
    row(
        "a group of next hops changed under those of IPv4".into(),
        "s",
        scale.changed,
        Some(("≤ 0.2", 0.2)),
    );
    row(
        format!("{} gone, after the last message", routes / 10),
        "s",
        scale.gone,
        Some(("≤ 0.2", 0.2)),
    );
    let number = |key: &str| scale.state[key].as_f64().unwrap_or(f64::NAN);
    let mebibytes = number("memory") / f64::from(1 << 20);
    let most = 64.0 * (routes + routes6) as f64 / 1e6;
    row("memory of the shadow".into(), "MiB", mebibytes, Some((&format!("≤ {most:.0}"), most)));
    row("times that notices were lost".into(), "", number("overruns"), None);
    table
}

/// BFD with 50 ms times 3, BGP with 1 s times 3 and OSPF with 1 s times 4.
fn daemons(ns: &Netns, dev: &str, own: u8, peer: u8) -> Result<Frr> {
    let bfd = "bfd\n profile quick\n  detect-multiplier 3\n  transmit-interval 50\n  \
               receive-interval 50\n";
    let bgp = format!(
        "router bgp 6500{own}\n bgp router-id 10.1.0.{own}\n no bgp ebgp-requires-policy\n \
         timers bgp 1 3\n neighbor 10.1.0.{peer} remote-as 6500{peer}\n \
         neighbor 10.1.0.{peer} ttl-security hops 1\n neighbor 10.1.0.{peer} timers connect 1\n \
         neighbor 10.1.0.{peer} bfd profile quick\n"
    );
    let ospf = format!(
        "interface {dev}\n ip ospf area 0\n ip ospf hello-interval 1\n ip ospf dead-interval 4\n\
         router ospf\n ospf router-id 10.1.0.{own}\n"
    );
    Frr::start(ns, &[("bfdd", bfd), ("bgpd", &bgp), ("ospfd", &ospf)])
}

/// Returns how often sessions of BFD and BGP were lost since the start, seen from one side.
fn losses(frr: &Frr) -> Result<u64> {
    let answer = |command: &str| -> Result<Value> {
        serde_json::from_str(&frr.vtysh(command)?).with_context(|| command.to_owned())
    };
    let bfd = answer("show bfd peers counters json")?;
    let sessions = bfd.as_array().context("a list of sessions")?;
    ensure!(!sessions.is_empty(), "no session of BFD");
    let down: u64 = sessions.iter().filter_map(|one| one["session-down"].as_u64()).sum();
    let bgp = answer("show bgp summary json")?;
    let peers = bgp["ipv4Unicast"]["peers"].as_object().context("peers of BGP")?;
    let dropped: u64 = peers.values().filter_map(|one| one["connectionsDropped"].as_u64()).sum();
    Ok(down + dropped)
}

/// Waits until sessions of all three protocols are up.
fn established(frr: &Frr) -> Result<()> {
    let is = || {
        for (command, sign) in [
            ("show bfd peers brief", " up"),
            ("show bgp summary json", "Established"),
            ("show ip ospf neighbor", "Full"),
        ] {
            let text = frr.vtysh(command).map_err(|e| e.to_string())?;
            if !text.contains(sign) {
                return Err(text);
            }
        }
        Ok(())
    };
    wait_until_seen(WAIT_LIMIT, "the sessions", is).with_context(|| frr.said())
}

/// Sessions that daemons lost in a time.
struct Held {
    what: &'static str,
    offered: f64,
    to_twin: f64,
    lost: u64,
}

fn sessions(window: Duration) -> Result<Vec<Held>> {
    let edge = Edge::start()?;
    let ours = daemons(&edge.plane, "e0", 1, 2)?;
    let theirs = daemons(&edge.peer, "eth0", 2, 1)?;
    established(&ours)?;
    established(&theirs)?;
    let mac = edge.router.mac("host-e0")?;
    edge.router.cli(&format!(
        "packet-generator new {{ name flood limit 0 rate {FLOOD} worker 0 size 60-60 \
         interface host-e0 node ethernet-input data {{ IP4: 0200.0000.0055 -> {mac} \
         UDP: 10.1.0.2 -> 10.1.0.1 UDP: 2000 -> 9 incrementing 18 }} }}"
    ))?;
    let mut lines = Vec::new();
    for (what, flooded) in [("without a flood", false), ("with one of 1 Mpps", true)] {
        let enable = if flooded { "enable-stream" } else { "disable-stream" };
        edge.router.cli(&format!("packet-generator {enable} flood"))?;
        let (began, before) = (Instant::now(), edge.punted("other")?);
        let lost = losses(&ours)? + losses(&theirs)?;
        Delay::measure_over(window);
        let (seconds, after) = (began.elapsed().as_secs_f64(), edge.punted("other")?);
        let lost = losses(&ours)? + losses(&theirs)? - lost;
        established(&ours)?;
        let (passed, limited) = (after.0 - before.0, after.1 - before.1);
        lines.push(Held {
            what,
            offered: (passed + limited) as f64 / seconds,
            to_twin: passed as f64 / seconds,
            lost,
        });
    }
    edge.router.cli("packet-generator disable-stream flood")?;
    drop((ours, theirs));
    edge.router.stop()?;
    Ok(lines)
}

fn main() -> Result<()> {
    let Some(args) = Args::from_env()? else { return Ok(()) };
    if Privilege::check() == Privilege::UserNamespaces {
        enter_user_namespace()?;
    }
    require_tools(&["ip", "iperf3", "setpriv"])?;
    thalweg_smoke::thalweg()?;
    let mut report = Report::start("twins", "Linux control plane");
    report.about(
        "Twins are TAP devices in a namespace of their own; the port is a packet socket on a veth.",
    );

    let columns = vec![
        Column::text("what"),
        Column::text("unit"),
        Column::values("thalweg", ""),
        Column::values("kernel", ""),
        Column::values("ratio", ""),
        Column::values("guide", ""),
    ];
    let mut table = Table::new("Pairs, and TCP through one", columns);
    let made: Vec<f64> = (0..args.rounds().min(3)).map(|_| pairs()).collect::<Result<_>>()?;
    let made = Spread::of(&made);
    table.row(vec![
        format!("{PAIRS} pairs with addresses, made").into(),
        "s".into(),
        Cell::Spread(made, 2),
        Cell::None,
        Cell::None,
        Cell::Guide("≤ 5".into(), made.median <= 5.0),
    ]);
    for (name, rounds) in tcp(args.rounds())? {
        let holds = rounds.ratio().is_ok_and(|ratio| ratio.median >= 0.8);
        table.row(vec![
            name.into(),
            "Gbit/s".into(),
            Cell::Spread(rounds.ours.spread(), 2),
            Cell::Spread(rounds.kernel.spread(), 2),
            Cell::ratio(rounds.ratio()),
            Cell::Guide("≥ 0.8 ×".into(), holds),
        ]);
    }
    table.note("The kernel forwards between two veths with all offloads.");
    report.table(table);

    let window = if args.full { FULL_WINDOW } else { QUICK_WINDOW };
    let columns = vec![
        Column::text("sessions of BFD (3 × 50 ms), BGP and OSPF"),
        Column::values("flood", "packets/s"),
        Column::values("of it to the twin", "packets/s"),
        Column::values("lost", ""),
        Column::values("guide", ""),
    ];
    let mut table = Table::new("Sessions while a flood comes to a closed port", columns);
    let held = sessions(window)?;
    let alone = held.first().map_or(0, |line| line.lost);
    for line in held {
        table.row(vec![
            line.what.into(),
            Cell::Number(line.offered, 0),
            Cell::Number(line.to_twin, 0),
            Cell::Number(line.lost as f64, 0),
            Cell::Guide(format!("≤ {alone}"), line.lost <= alone),
        ]);
    }
    table.note(format!("Losses of BFD and BGP on both sides in {} s.", window.as_secs()));
    report.table(table);
    report.table(scale_table(ROUTES, ROUTES6, &scale(ROUTES, ROUTES6)?));
    report.finish(&args)
}
