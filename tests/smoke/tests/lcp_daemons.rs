//! Linux control plane: the router, routing daemons, interfaces and the namespace of the twins
//! restart in each order. Afterwards the router forwards by the kernel's routes.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use thalweg_smoke::{Bird, Config, Flow, Frr, Keeper, Router, wait_for_same_routes};
use thalweg_testkit::{
    Guard, LinkOptions, Netns, PingOptions, Signal, WAIT_LIMIT, lab_test, ping, veth,
    wait_until_seen,
};

/// An address of the world, which only the provider's routes lead to.
const WORLD: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const WORLD6: &str = "2001:db8:77::1";
const PROVIDER: &str = "02:00:00:00:01:02";
/// Routes of the provider, of each version.
const ROUTES: u32 = 200;

/// A router that restarts is away for less.
const AWAY: Duration = Duration::from_secs(3);
/// Time between two pings.
const INTERVAL: Duration = Duration::from_millis(5);

/// Routes of a large table.
const MANY: u32 = 100_000;

/// Things that restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The router, killed. A service manager keeps its twins.
    Router,
    /// The routing daemon, killed.
    Daemon,
    /// The device of the interface to the provider: deleted, and made again.
    Interface,
    /// The namespace of the twins, with the daemon in it.
    Namespace,
}

/// Each part after each other one.
const ORDERS: [Part; 13] = {
    use Part::{Daemon as D, Interface as I, Namespace as N, Router as R};
    [R, D, R, I, R, N, D, I, D, N, I, N, R]
};

/// The daemon at the twins.
enum Daemon {
    Bird(Bird),
    Frr(Frr),
}

impl Daemon {
    fn kill(&mut self) -> Result<()> {
        match self {
            Daemon::Bird(bird) => bird.end(Signal::KILL),
            Daemon::Frr(frr) => {
                frr.end("bgpd", Signal::KILL)?;
                frr.end("zebra", Signal::KILL)
            }
        }
    }

    fn start(&mut self, plane: &Netns) -> Result<()> {
        match self {
            Daemon::Bird(bird) => bird.start_again(Some(plane), &["-R"]),
            Daemon::Frr(frr) => {
                frr.start_again("zebra", Some(plane), &["-K", "20"])?;
                frr.start_again("bgpd", None, &[])
            }
        }
    }

    fn said(&self) -> String {
        match self {
            Daemon::Bird(bird) => bird.said(),
            Daemon::Frr(frr) => frr.said(),
        }
    }
}

/// A customer, the router with its control plane, and a provider behind which the world is.
struct Edge {
    router: Router,
    config: Config,
    keeper: Keeper,
    own: Netns,
    plane: Netns,
    provider: Netns,
    customer: Netns,
    daemon: Daemon,
    /// Sessions that a restart has ended, or will.
    old: [Option<String>; 2],
    theirs: Bird,
    _files: TempDir,
    _guard: Guard,
}

/// Name of the namespace of the twins.
fn name() -> String {
    format!("daemons-{}", std::process::id())
}

/// Makes that namespace. Whoever has a handle of it does not keep it from going.
fn twins() -> Result<Netns> {
    let plane = Netns::named(&name())?;
    plane.keep();
    plane.ip("link set lo up")?;
    with_ipv6(&plane)?;
    Ok(plane)
}

fn with_ipv6(ns: &Netns) -> Result<()> {
    for (what, value) in [("accept_dad", "0"), ("disable_ipv6", "0")] {
        for which in ["all", "default"] {
            ns.set_sysctl(&format!("net/ipv6/conf/{which}/{what}"), value)?;
        }
    }
    Ok(())
}

/// The link to the provider, who has the same MAC address again: these tests are about routes, and
/// those of `sync` in feat/lcp about neighbours that come back with another one.
fn uplink(own: &Netns, provider: &Netns) -> Result<()> {
    let there = LinkOptions::default().mac(PROVIDER).address("10.1.0.2/24").address("fd01::2/64");
    veth((own, "e0", &LinkOptions::default()), (provider, "eth0", &there))?;
    provider.ip("route add 10.2.0.0/24 via 10.1.0.1")?;
    provider.ip("-6 route add fd02::/64 via fd01::1").map(drop)
}

impl Edge {
    fn start(daemon: impl FnOnce(&Netns) -> Result<Daemon>) -> Result<Edge> {
        let [own, provider, customer] =
            ["daemons-router", "daemons-provider", "daemons-customer"].map(Netns::new);
        let (own, provider, customer) = (own?, provider?, customer?);
        for ns in [&provider, &customer] {
            ns.ip("link set lo up")?;
            with_ipv6(ns)?;
        }
        let guard = Guard::of_command(["ip", "netns", "delete", &name()])?;
        let plane = twins()?;
        for address in ["203.0.113.1/32", "2001:db8:77::1/128"] {
            provider.ip(&format!("address add {address} dev lo"))?;
        }
        uplink(&own, &provider)?;
        let there = LinkOptions::default().address("10.2.0.2/24").address("fd02::2/64");
        veth((&own, "e1", &LinkOptions::default()), (&customer, "eth0", &there))?;
        customer.ip("route add default via 10.2.0.1")?;
        customer.ip("-6 route add default via fd02::1")?;
        let keeper = Keeper::new()?;
        let files = tempfile::tempdir()?;
        let config = Config::empty().kept_by(&keeper).keeps(&files.path().join("thalweg.yaml"));
        let first = config.clone().commands(&format!(
            "create host-interface name e0
             create host-interface name e1
             set interface ip address host-e0 10.1.0.1/24
             set interface ip address host-e0 fd01::1/64
             set interface ip address host-e1 10.2.0.1/24
             set interface ip address host-e1 fd02::1/64
             set interface state host-e0 up
             set interface state host-e1 up
             lcp lcp-sync on
             lcp default netns {}
             lcp create host-e0 host-if e0
             lcp create host-e1 host-if e1
             config commit",
            plane.name().context("a name")?
        ));
        let router = Router::start(&own, &first)?;
        let theirs = Bird::start(&provider, &provider_config())?;
        let daemon = daemon(&plane)?;
        let mut edge = Edge {
            router,
            config,
            keeper,
            own,
            plane,
            provider,
            customer,
            daemon,
            old: Default::default(),
            theirs,
            _files: files,
            _guard: guard,
        };
        edge.settle()?;
        Ok(edge)
    }

    fn restart(&mut self, part: Part) -> Result<()> {
        // A restart of the router leaves the sessions alone.
        if part != Part::Router {
            self.old = self.sessions().unwrap_or_default();
        }
        match part {
            Part::Router => self.router.kill_and_start(&self.config.clone()),
            Part::Daemon => {
                self.daemon.kill()?;
                self.daemon.start(&self.plane)
            }
            Part::Interface => {
                self.own.ip("link delete e0")?;
                uplink(&self.own, &self.provider)
            }
            Part::Namespace => {
                self.end_namespace()?;
                self.return_namespace()
            }
        }
    }

    /// Makes the namespace again, and starts the daemon when the twins are there: `zebra` misses
    /// addresses that a device gets while it starts.
    fn return_namespace(&mut self) -> Result<()> {
        self.plane = twins()?;
        wait_until_seen(WAIT_LIMIT, "the twins", || {
            let shown = self.plane.ip("-br address")?;
            let is_up = |line: &&str| line.contains(" UP ") && line.contains("fe80:");
            ensure!(shown.lines().filter(is_up).count() == 2, "{shown}");
            Ok(())
        })?;
        self.daemon.start(&self.plane)
    }

    fn end_namespace(&mut self) -> Result<()> {
        self.daemon.kill()?;
        self.plane.clone().remove();
        self.own.ip(&format!("netns delete {}", name())).map(drop)
    }

    /// Marks of both sessions, if they are established. Each new one has another mark.
    fn sessions(&self) -> Result<[Option<String>; 2]> {
        match &self.daemon {
            Daemon::Bird(bird) => {
                let shown = bird.birdc("show protocols")?;
                // The rest of the line says since when.
                let mark = |name: &str| {
                    let line = shown.lines().find(|line| line.starts_with(name));
                    line.filter(|line| line.contains("Established")).map(str::to_owned)
                };
                Ok(["b4", "b6"].map(mark))
            }
            Daemon::Frr(frr) => {
                let shown: Value = serde_json::from_str(&frr.vtysh("show bgp summary json")?)?;
                let daemon = frr.pid("bgpd").unwrap_or(0);
                let mark = |(of, peer): (&str, &str)| {
                    let peer = &shown[of]["peers"][peer];
                    let is_up = peer["state"] == "Established";
                    is_up.then(|| format!("{} of {daemon}", peer["connectionsEstablished"]))
                };
                Ok([("ipv4Unicast", "10.1.0.2"), ("ipv6Unicast", "fd01::2")].map(mark))
            }
        }
    }

    /// Routes of the kernel as it has them, with the numbers of next-hop objects.
    fn kernel(&self) -> Result<String> {
        Ok(self.plane.ip("-4 route")? + &self.plane.ip("-6 route")?)
    }

    /// Restarts something while a customer reaches the world; returns the number of requests that
    /// were not answered.
    fn loses(&mut self, restart: impl FnOnce(&mut Edge) -> Result<()>) -> Result<usize> {
        let mut flow = Flow::start(&self.customer, WORLD, INTERVAL)?;
        flow.await_answers(100)?;
        restart(self)?;
        self.settle()?;
        flow.await_answers(100)?;
        Ok(flow.stop()?.missing().len())
    }

    /// Waits until all routes of the provider are in the kernel, and the router forwards by the
    /// kernel's routes, and no others.
    fn settle(&mut self) -> Result<()> {
        self.await_sessions().and_then(|()| self.await_routes()).with_context(|| self.seen())?;
        // Routes that were there before may go once more, and return.
        wait_until_seen(WAIT_LIMIT, "all routes", || -> Result<()> {
            let count = wait_for_same_routes(&self.plane, &self.router)?;
            ensure!(count as u32 >= 2 * ROUTES, "{count} routes");
            Ok(())
        })?;
        let shown = self.router.json("show lcp routes unresolved")?;
        ensure!(shown["count"] == 0, "{shown}");
        let world: std::net::Ipv6Addr = WORLD6.parse()?;
        let options = |count| PingOptions { count, ..PingOptions::default() };
        // The provider needs a moment for its routes back.
        wait_until_seen(WAIT_LIMIT, "an answer", || -> Result<()> {
            ping(&self.customer, WORLD, &options(1))?.all_answered()?;
            ping(&self.customer, world, &options(1))?.all_answered()
        })?;
        ping(&self.customer, WORLD, &options(3))?.all_answered().context("IPv4")?;
        ping(&self.customer, world, &options(3))?.all_answered().context("IPv6")?;
        self.old = Default::default();
        Ok(())
    }

    /// State of everything, for the report of a failure.
    fn seen(&self) -> String {
        let mut text = format!("{}\n{}\n", self.daemon.said(), self.theirs.said());
        if let Daemon::Bird(bird) = &self.daemon {
            text += &bird.birdc("show protocols all").unwrap_or_default();
        }
        for words in ["-br address", "neighbour"] {
            for ns in [&self.plane, &self.provider] {
                let _ = writeln!(text, "--- {}: ip {words}", ns.label());
                text += &ns.ip(words).unwrap_or_else(|e| format!("{e:#}"));
            }
        }
        for command in ["show lcp verbose", "show ip neighbors", "show interface address"] {
            let _ = writeln!(text, "--- {command}");
            text += &self.router.cli(command).unwrap_or_else(|e| format!("{e:#}"));
        }
        text
    }

    /// Waits until both sessions are established, others than before the last restart, and no
    /// graceful restart goes on.
    fn await_sessions(&self) -> Result<()> {
        wait_until_seen(WAIT_LIMIT, "the sessions", || {
            let now = self.sessions()?;
            let is_new =
                |(now, old): (&Option<String>, &Option<String>)| now.is_some() && now != old;
            ensure!(now.iter().zip(&self.old).all(is_new), "{now:?}, before {:?}", self.old);
            if let Daemon::Bird(bird) = &self.daemon {
                let shown = bird.birdc("show status")?;
                ensure!(!shown.contains("Graceful restart recovery in progress"), "{shown}");
            }
            Ok(())
        })
    }

    fn await_routes(&self) -> Result<()> {
        let plane = &self.plane;
        wait_until_seen(WAIT_LIMIT, "the provider's routes in the kernel", || {
            for version in ["-4", "-6"] {
                let routes = plane.ip(&format!("{version} route")).map_err(|e| e.to_string())?;
                let there = routes
                    .lines()
                    .filter(|l| l.starts_with("198.18.") || l.starts_with("2001:db8:"));
                let count = there.count() as u32;
                // The world's own prefix has IPv6 begin alike.
                if count < ROUTES {
                    return Err(format!("{count} of {ROUTES} ({version})"));
                }
            }
            Ok(())
        })
    }
}

/// A provider that announces the world, and some more.
fn provider_config() -> String {
    let mut text = "log stderr all;\nrouter id 10.1.0.2;\nprotocol device { scan time 1; }\n\
         protocol static s4 { ipv4; route 203.0.113.0/24 blackhole;\n"
        .to_owned();
    for i in 0..ROUTES {
        let _ = writeln!(text, "route 198.18.{}.0/24 blackhole;", i % 256);
    }
    text += "}\nprotocol static s6 { ipv6; route 2001:db8:77::/48 blackhole;\n";
    for i in 0..ROUTES {
        let _ = writeln!(text, "route 2001:db8:{:x}::/48 blackhole;", 0x1000 + i);
    }
    text += "}\n";
    text + &bird_bgp(65_002, ["10.1.0.1", "fd01::1"], 65_001)
}

fn bird_bgp(local: u32, peers: [&str; 2], remote: u32) -> String {
    let mut text = String::new();
    for (name, version, peer) in [("b4", "ipv4", peers[0]), ("b6", "ipv6", peers[1])] {
        let _ = writeln!(
            text,
            "protocol bgp {name} {{ local as {local}; neighbor {peer} as {remote}; \
             graceful restart on; connect delay time 1; connect retry time 1; \
             error wait time 1, 2; hold time 9; \
             {version} {{ import all; export where source = RTS_STATIC; next hop self; }}; }}"
        );
    }
    text
}

fn bird(plane: &Netns) -> Result<Daemon> {
    let text = "log stderr all;\nrouter id 10.1.0.1;\ngraceful restart wait 20;\n\
         protocol device { scan time 1; }\n\
         protocol kernel { graceful restart; scan time 2; ipv4 { export where source = RTS_BGP; }; }\n\
         protocol kernel { graceful restart; scan time 2; ipv6 { export where source = RTS_BGP; }; }\n";
    let text = text.to_owned() + &bird_bgp(65_001, ["10.1.0.2", "fd01::2"], 65_002);
    Bird::start(plane, &text).map(Daemon::Bird)
}

fn frr(plane: &Netns) -> Result<Daemon> {
    let text = "router bgp 65001\n bgp router-id 10.1.0.1\n no bgp ebgp-requires-policy\n \
         timers bgp 3 9\n bgp graceful-restart\n bgp graceful-restart preserve-fw-state\n \
         bgp graceful-restart restart-time 20\n \
         neighbor 10.1.0.2 remote-as 65002\n neighbor 10.1.0.2 timers connect 1\n \
         neighbor fd01::2 remote-as 65002\n neighbor fd01::2 timers connect 1\n \
         address-family ipv4 unicast\n  no neighbor fd01::2 activate\n exit-address-family\n \
         address-family ipv6 unicast\n  neighbor fd01::2 activate\n exit-address-family\n";
    Frr::start(plane, &[("bgpd", text)]).map(Daemon::Frr)
}

/// The router restarts, killed and stopped: sessions and the kernel's routes stay, and nothing is
/// lost but what came while it was away.
fn the_router_alone(mut edge: Edge) -> Result<()> {
    let (sessions, kernel) = (edge.sessions()?, edge.kernel()?);
    for stop in [false, true] {
        let lost = edge.loses(|edge| match stop {
            false => edge.restart(Part::Router),
            true => edge.router.stop_and_start(&edge.config.clone()),
        })?;
        eprintln!("stopped: {stop}; {} ms without forwarding", lost as u128 * INTERVAL.as_millis());
        ensure!(lost as u128 * INTERVAL.as_millis() < AWAY.as_millis(), "{lost} pings were lost");
        assert_eq!(edge.sessions()?, sessions);
        assert_eq!(edge.kernel()?, kernel);
    }
    edge.router.stop().map(drop)
}

/// The daemon restarts gracefully: nothing is lost.
fn the_daemon_alone(mut edge: Edge) -> Result<()> {
    let lost = edge.loses(|edge| edge.restart(Part::Daemon))?;
    ensure!(lost == 0, "{lost} pings were lost; {}", edge.daemon.said());
    edge.router.stop().map(drop)
}

/// Without a service manager twins go with the router, and daemons begin again.
fn nobody_keeps(mut edge: Edge) -> Result<()> {
    edge.config.keeper = None;
    edge.keeper.forget();
    for _ in 0..2 {
        edge.old = edge.sessions()?;
        edge.restart(Part::Router)?;
        edge.settle()?;
    }
    edge.router.stop().map(drop)
}

/// Puts many routes into the kernel, as a daemon with a full table does, and waits for the router.
fn put_many(edge: &Edge) -> Result<()> {
    let begin = Instant::now();
    let route = |i: u32| {
        let to = Ipv4Addr::from(u32::from_be_bytes([16, 0, 0, 0]) + (i << 8));
        format!("route add {to}/24 via 10.1.0.2 proto bird")
    };
    let lines: Vec<String> = (0..MANY).map(route).collect();
    edge.plane.ip_batch(&lines)?;
    let put = begin.elapsed();
    await_count(&edge.router, |count| count >= MANY)?;
    let seen = begin.elapsed() - put;
    eprintln!(
        "{MANY} routes: {} ms into the kernel, all {} ms later",
        put.as_millis(),
        seen.as_millis()
    );
    wait_for_same_routes(&edge.plane, &edge.router).map(drop)
}

/// Waits for the number of routes in the router's table.
fn await_count(router: &Router, is: impl Fn(u32) -> bool) -> Result<()> {
    wait_until_seen(WAIT_LIMIT, "the number of routes", || {
        let shown = router.json("show ip fib table 0 summary").map_err(|e| format!("{e:#}"))?;
        let count = shown[0]["routes"].as_u64().and_then(|n| u32::try_from(n).ok());
        if count.is_some_and(&is) { Ok(()) } else { Err(shown.to_string()) }
    })
}

/// Each part restarts alone, after each other one.
fn one_after_the_other(mut edge: Edge) -> Result<()> {
    for (number, part) in ORDERS.into_iter().enumerate() {
        let begin = Instant::now();
        edge.restart(part).with_context(|| format!("{part:?}, step {number}"))?;
        edge.settle().with_context(|| format!("after {part:?}, step {number}"))?;
        eprintln!("{part:?}: {} ms", begin.elapsed().as_millis());
    }
    edge.router.stop().map(drop)
}

/// Two parts restart, the second before all is well after the first.
fn one_within_the_other(mut edge: Edge) -> Result<()> {
    for pair in ORDERS.windows(2) {
        for part in pair {
            edge.restart(*part).with_context(|| format!("{part:?} of {pair:?}"))?;
        }
        edge.settle().with_context(|| format!("after {pair:?}"))?;
    }
    edge.router.stop().map(drop)
}

lab_test! {
    fn parts_restart_in_each_order_with_bird() {
        one_after_the_other(Edge::start(bird)?)
    }

    fn parts_restart_in_each_order_with_frr() {
        one_after_the_other(Edge::start(frr)?)
    }

    fn a_restart_of_the_router_goes_unnoticed_by_bird() {
        the_router_alone(Edge::start(bird)?)
    }

    fn a_restart_of_the_router_goes_unnoticed_by_frr() {
        the_router_alone(Edge::start(frr)?)
    }

    fn bird_restarts_gracefully() {
        the_daemon_alone(Edge::start(bird)?)
    }

    fn frr_restarts_gracefully() {
        the_daemon_alone(Edge::start(frr)?)
    }

    fn twins_that_nobody_keeps_come_back_with_bird() {
        nobody_keeps(Edge::start(bird)?)
    }

    fn twins_that_nobody_keeps_come_back_with_frr() {
        nobody_keeps(Edge::start(frr)?)
    }

    /// A namespace goes with a large table, and comes back with it. The router forgets all, and
    /// takes all.
    fn a_namespace_with_many_routes_goes_and_returns() {
        let mut edge = Edge::start(bird)?;
        put_many(&edge)?;
        for _ in 0..2 {
            edge.end_namespace()?;
            await_count(&edge.router, |count| count < ROUTES)?;
            edge.return_namespace()?;
            edge.settle()?;
            put_many(&edge)?;
        }
        // With the router away, too.
        edge.restart(Part::Router)?;
        await_count(&edge.router, |count| count >= MANY)?;
        edge.settle()?;
        edge.router.stop().map(drop)
    }

    fn parts_restart_together_with_bird() {
        one_within_the_other(Edge::start(bird)?)
    }

    fn parts_restart_together_with_frr() {
        one_within_the_other(Edge::start(frr)?)
    }
}
