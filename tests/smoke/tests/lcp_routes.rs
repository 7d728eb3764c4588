//! Routes that daemons put into the kernel forward in the router.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use thalweg_smoke::{Bird, Config, Flow, Frr, Router, wait_for_same_routes};
use thalweg_testkit::{
    LinkOptions, Netns, PingOptions, Signal, WAIT_LIMIT, lab_test, ping, veth, wait_until_seen,
};

/// A customer, the router with its control plane, and a provider behind which the world is.
struct Provider {
    router: Router,
    plane: Netns,
    provider: Netns,
    customer: Netns,
    _own: Netns,
}

/// An address of the world, which only the provider's routes lead to.
const WORLD: [u8; 4] = [203, 0, 113, 1];
const WORLD6: &str = "2001:db8:77::1";

impl Provider {
    fn start() -> Result<Provider> {
        let own = Netns::new("routes-router")?;
        let [plane, provider, customer] =
            ["routes-plane", "routes-provider", "routes-customer"].map(Netns::new);
        let (plane, provider, customer) = (plane?, provider?, customer?);
        for ns in [&plane, &provider, &customer] {
            ns.ip("link set lo up")?;
            for (what, value) in [("accept_dad", "0"), ("disable_ipv6", "0")] {
                for which in ["all", "default"] {
                    ns.set_sysctl(&format!("net/ipv6/conf/{which}/{what}"), value)?;
                }
            }
        }
        for address in ["203.0.113.1/32", "2001:db8:77::1/128"] {
            provider.ip(&format!("address add {address} dev lo"))?;
        }
        let there = LinkOptions::default().address("10.1.0.2/24").address("fd01::2/64");
        veth((&own, "e0", &LinkOptions::default()), (&provider, "eth0", &there))?;
        let there = LinkOptions::default().address("10.2.0.2/24").address("fd02::2/64");
        veth((&own, "e1", &LinkOptions::default()), (&customer, "eth0", &there))?;
        customer.ip("route add default via 10.2.0.1")?;
        customer.ip("-6 route add default via fd02::1")?;
        own.capture("e0")?;
        let config = Config::empty().commands(&format!(
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
             lcp create host-e1 host-if e1",
            plane.descriptor_path().display()
        ));
        let router = Router::start(&own, &config)?;
        Ok(Provider { router, plane, provider, customer, _own: own })
    }

    /// Waits until routes of both versions are the router's.
    fn await_routes(&self) -> Result<()> {
        for (word, prefix) in [("ip", "203.0.113.0/24"), ("ip6", "2001:db8:77::/48")] {
            wait_until_seen(WAIT_LIMIT, prefix, || {
                let shown = self.router.cli(&format!("show {word} fib {prefix}"));
                let shown = shown.map_err(|e| format!("{e:#}"))?;
                let there = shown.contains(prefix) && shown.contains("lcp-rt-dynamic");
                if there { Ok(()) } else { Err(shown) }
            })?;
        }
        Ok(())
    }

    fn reach(&self) -> Result<()> {
        let options = PingOptions { count: 20, ..PingOptions::default() };
        ping(&self.customer, WORLD, &options)?.all_answered().context("IPv4")?;
        let world: std::net::Ipv6Addr = WORLD6.parse()?;
        ping(&self.customer, world, &options)?.all_answered().context("IPv6")?;
        Ok(())
    }

    /// Waits until what `zebra` sends itself is as wanted.
    fn await_fpm(&self, what: &str, is: impl Fn(&Value) -> bool) -> Result<()> {
        wait_until_seen(WAIT_LIMIT, what, || {
            let shown = self.router.json("show lcp routes").map_err(|e| format!("{e:#}"))?;
            let all = shown["namespaces"].as_array().map(Vec::as_slice).unwrap_or_default();
            match all.iter().find(|of| of["source"] == "fpm") {
                Some(fpm) if is(fpm) => Ok(()),
                _ => Err(shown.to_string()),
            }
        })
    }

    /// Routes of the kernel that lead elsewhere than those of the router; none.
    fn compare(&self) -> Result<()> {
        wait_for_same_routes(&self.plane, &self.router)?;
        let shown = self.router.json("show lcp routes unresolved")?;
        ensure!(shown["count"] == 0, "{shown}");
        let differs = || {
            self.router.cli("lcp resync").map_err(|e| format!("{e:#}"))?;
            let shown = self.router.json("show lcp routes").map_err(|e| format!("{e:#}"))?;
            let last = &shown["namespaces"][0]["last"];
            let is_asked = last["cause"] == "a user asked" && last["differences"] == 0;
            if is_asked { Ok(()) } else { Err(shown.to_string()) }
        };
        wait_until_seen(WAIT_LIMIT, "a list without differences", differs)
    }
}

lab_test! {
    /// Routes of BIRD, which has no next-hop objects.
    fn routes_of_bird() {
        let lab = Provider::start()?;
        let config = |id: &str, local: u32, peers: [&str; 2], remote: u32, more: &str| {
            let bgp = |name: &str, version: &str, peer: &str| format!(
                "protocol bgp {name} {{ local as {local}; neighbor {peer} as {remote}; \
                 connect delay time 1; connect retry time 1; error wait time 1, 2; \
                 {version} {{ import all; export all; next hop self; }}; }}\n"
            );
            format!(
                "log stderr all;\nrouter id {id};\nprotocol device {{ scan time 1; }}\n\
                 protocol direct {{ ipv4; ipv6; }}\n\
                 protocol kernel {{ ipv4 {{ export all; }}; }}\n\
                 protocol kernel {{ ipv6 {{ export all; }}; }}\n{more}\n{}{}",
                bgp("b4", "ipv4", peers[0]), bgp("b6", "ipv6", peers[1])
            )
        };
        let ours = Bird::start(
            &lab.plane,
            &config("10.1.0.1", 65_001, ["10.1.0.2", "fd01::2"], 65_002, ""),
        )?;
        let world = "protocol static s4 { ipv4; route 203.0.113.0/24 blackhole; }\n\
                     protocol static s6 { ipv6; route 2001:db8:77::/48 blackhole; }";
        let theirs = Bird::start(
            &lab.provider,
            &config("10.1.0.2", 65_002, ["10.1.0.1", "fd01::1"], 65_001, world),
        )?;
        lab.await_routes().with_context(|| format!("{}\n{}", ours.said(), theirs.said()))?;
        lab.reach()?;
        lab.compare()?;
        theirs.birdc("disable s4")?;
        wait_until_seen(WAIT_LIMIT, "the route to be withdrawn", || {
            match lab.router.cli("show ip fib 203.0.113.0/24") {
                Ok(shown) if shown.contains("lcp-rt") => Err(shown),
                // The route is gone.
                _ => Ok(()),
            }
        })?;
        lab.compare()?;
        lab.router.stop().map(drop)
    }

    /// FRRouting and BIRD in one namespace want the same prefix to lead elsewhere, with the same
    /// metric. The router has what the kernel has, and other routes forward meanwhile.
    fn two_daemons_fight_for_a_prefix() {
        let lab = Provider::start()?;
        lab.plane.ip("route add 203.0.113.0/24 via 10.1.0.2")?;
        lab.provider.ip("route add 10.2.0.0/24 via 10.1.0.1")?;
        let config = "log stderr all;\nrouter id 10.1.0.1;\nprotocol device { scan time 1; }\n\
             protocol kernel { scan time 1; metric 20; ipv4 { export all; }; }\n\
             protocol static fight { ipv4; route 198.18.0.0/24 via 10.1.0.2; }\n";
        let bird = Bird::start(&lab.plane, config)?;
        let frr = Frr::start(&lab.plane, &[("staticd", "ip route 198.18.0.0/24 10.2.0.2\n")])?;
        wait_until_seen(WAIT_LIMIT, "the prefix", || {
            let shown = lab.plane.ip("route show 198.18.0.0/24")?;
            ensure!(shown.contains("10."), "{shown}{}{}", bird.said(), frr.said());
            Ok(())
        })?;
        wait_for_same_routes(&lab.plane, &lab.router)?;
        let mut flow = Flow::start(&lab.customer, WORLD, Duration::from_millis(5))?;
        flow.await_answers(10)?;
        for turn in 0..10 {
            let no = if turn % 2 == 0 { "no " } else { "" };
            frr.configure(&[&format!("{no}ip route 198.18.0.0/24 10.2.0.2")])?;
            bird.birdc(if turn % 3 == 0 { "disable fight" } else { "enable fight" })?;
            // Others join in.
            let by = if turn % 2 == 0 { "10.2.0.2" } else { "10.1.0.2" };
            lab.plane.ip(&format!("route replace 198.18.0.0/24 metric 20 via {by}"))?;
            wait_for_same_routes(&lab.plane, &lab.router)?;
        }
        flow.await_answers(10)?;
        flow.stop()?.without_loss()?;
        lab.compare()?;
        lab.router.stop().map(drop)
    }

    /// Routes that `zebra` sends itself: they forward while it restarts, though it deletes its
    /// routes from the kernel when it starts. One that it does not announce again goes in time.
    fn routes_of_frr_by_fpm() {
        const MODULE: [&str; 2] = ["-M", "dplane_fpm_nl"];
        let lab = Provider::start()?;
        lab.provider.ip("route add 10.2.0.0/24 via 10.1.0.1")?;
        lab.provider.ip("-6 route add fd02::/64 via fd01::1")?;
        lab.router.cli("lcp fpm enable")?;
        lab.router.cli("lcp fpm-hold 10")?;
        let one = "ip route 203.0.113.0/24 10.1.0.2\n";
        let both = format!("{one}ipv6 route 2001:db8:77::/48 fd01::2\n");
        let daemons = [("zebra", "fpm address 127.0.0.1\n"), ("staticd", &both)];
        let mut frr = Frr::start_with(&lab.plane, &MODULE, &daemons)?;
        lab.await_routes().with_context(|| frr.said())?;
        lab.await_fpm("both routes", |fpm| fpm["routes"] == 2 && fpm["fpm"]["client"].is_string())
            .with_context(|| frr.said())?;
        lab.reach()?;
        wait_for_same_routes(&lab.plane, &lab.router)?;
        // A better one of the kernel wins, and a worse one does not.
        lab.plane.ip("route add 203.0.113.0/24 via 10.2.0.2 metric 5")?;
        wait_for_same_routes(&lab.plane, &lab.router)?;
        lab.plane.ip("route del 203.0.113.0/24 metric 5")?;
        lab.plane.ip("route add 203.0.113.0/24 via 10.2.0.2 metric 500")?;
        wait_for_same_routes(&lab.plane, &lab.router)?;
        lab.plane.ip("route del 203.0.113.0/24 metric 500")?;
        wait_for_same_routes(&lab.plane, &lab.router)?;
        let mut flow = Flow::start(&lab.customer, WORLD, Duration::from_millis(5))?;
        flow.await_answers(50)?;
        // The other way round `zebra` would withdraw the routes.
        frr.end("zebra", Signal::KILL)?;
        frr.end("staticd", Signal::KILL)?;
        lab.await_fpm("the end", |fpm| fpm["fpm"]["client"].is_null() && fpm["routes"] == 2)?;
        frr.configure_file("staticd", one)?;
        frr.start_again("zebra", None, &MODULE)?;
        frr.start_again("staticd", None, &[])?;
        let again = |fpm: &Value| {
            fpm["routes"] == 1 && fpm["fpm"]["connections"] == 2 && fpm["fpm"]["client"].is_string()
        };
        lab.await_fpm("one route", again).with_context(|| frr.said())?;
        flow.await_answers(50)?;
        flow.stop()?.without_loss()?;
        lab.compare()?;
        // Without it, the kernel's forward.
        let mut flow = Flow::start(&lab.customer, WORLD, Duration::from_millis(5))?;
        flow.await_answers(50)?;
        lab.router.cli("lcp fpm disable")?;
        flow.await_answers(50)?;
        flow.stop()?.without_loss()?;
        lab.compare()?;
        lab.router.stop().map(drop)
    }

    /// Tables of the kernel's routes are no part of the configuration: a document neither has them
    /// nor takes them away.
    fn tables_of_the_kernel_are_not_configured() {
        let lab = Provider::start()?;
        let file = lab.router.dir().join("before.yaml");
        std::fs::write(&file, lab.router.cli("show configuration")?)?;
        let route = "route add 198.51.100.0/24 via 10.1.0.2 table 77";
        lab.plane.ip(route)?;
        let await_route = || wait_until_seen(WAIT_LIMIT, "the route of table 77", || {
            let shown = lab.router.cli("show ip fib table 77 198.51.100.0/24");
            let shown = shown.map_err(|e| format!("{e:#}"))?;
            if shown.contains("10.1.0.2") { Ok(()) } else { Err(shown) }
        });
        for written in [false, true] {
            await_route()?;
            if written {
                lab.router.cli("ip table add 77")?;
            }
            let shown = lab.router.cli("show configuration")?;
            ensure!(shown.contains("ip-tables") == written, "{shown}");
            let plan = lab.router.cli(&format!("config plan {}", file.display()))?;
            ensure!(plan.trim().is_empty() != written, "{plan}");
            lab.router.cli(&format!("config apply {}", file.display()))?;
        }
        await_route()?;
        let plan = lab.router.cli(&format!("config plan {}", file.display()))?;
        ensure!(plan.trim().is_empty(), "{plan}");
        lab.router.stop().map(drop)
    }

    /// Routes of FRRouting, by next-hop objects.
    fn routes_of_frr() {
        let lab = Provider::start()?;
        let bgp = |own: u32, peer: u32, more: [&str; 2]| format!(
            "router bgp 6500{own}\n bgp router-id 10.1.0.{own}\n no bgp ebgp-requires-policy\n \
             no bgp network import-check\n timers bgp 1 5\n \
             neighbor 10.1.0.{peer} remote-as 6500{peer}\n \
             neighbor 10.1.0.{peer} timers connect 1\n \
             neighbor fd01::{peer} remote-as 6500{peer}\n \
             neighbor fd01::{peer} timers connect 1\n \
             address-family ipv4 unicast\n  no neighbor fd01::{peer} activate\n  {}\n \
             exit-address-family\n \
             address-family ipv6 unicast\n  neighbor fd01::{peer} activate\n  {}\n \
             exit-address-family\n",
            more[0], more[1]
        );
        let ours = bgp(1, 2, ["redistribute connected", "redistribute connected"]);
        let ours = Frr::start(&lab.plane, &[("bgpd", &ours)])?;
        let theirs = bgp(2, 1, ["network 203.0.113.0/24", "network 2001:db8:77::/48"]);
        let theirs = Frr::start(&lab.provider, &[("bgpd", &theirs)])?;
        lab.await_routes().with_context(|| format!("{}\n{}", ours.said(), theirs.said()))?;
        lab.reach()?;
        let shown = lab.router.json("show lcp routes")?;
        ensure!(shown["namespaces"][0]["objects"].as_u64() > Some(0), "{shown}");
        lab.compare()?;
        lab.router.stop().map(drop)
    }
}
