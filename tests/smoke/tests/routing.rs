//! Static routes, several next hops, routes that come and go under traffic.

use std::collections::{BTreeMap, BTreeSet};
use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use thalweg_smoke::{Flow, Router, host_pair};
use thalweg_testkit::{
    Capture, Lab, LinkOptions, Netns, PingOptions, WAIT_LIMIT, enable_ipv4_forwarding, lab_test,
    ping, tshark_fields, veth,
};

/// Address behind both next hops.
const TARGET: &str = "10.99.0.1";
const FLOWS: u16 = 64;
const PACKETS_PER_FLOW: usize = 4;

/// Two kernel routers between the router's right side and a target that both reach:
/// `left — router — (one | two) — target`.
struct Diamond {
    lab: Lab,
    one: Netns,
    two: Netns,
    target: Netns,
}

impl Diamond {
    fn new() -> Result<Diamond> {
        let lab = Lab::new()?;
        let diamond = Diamond {
            lab,
            one: Netns::new("one")?,
            two: Netns::new("two")?,
            target: Netns::new("target")?,
        };
        let Diamond { lab, one, two, target } = &diamond;
        for (n, (hop, dev)) in [(one, "eth2"), (two, "eth3")].into_iter().enumerate() {
            let n = n + 1;
            let near = LinkOptions::default().address(format!("10.20.{n}.2/24"));
            veth((hop, "near", &near), (&lab.router, dev, &LinkOptions::default()))?;
            let far = LinkOptions::default().address(format!("10.30.{n}.1/24"));
            let end = LinkOptions::default().address(format!("10.30.{n}.2/24"));
            veth((hop, "far", &far), (target, &format!("eth{n}"), &end))?;
            hop.capture("near")?;
            enable_ipv4_forwarding(hop)?;
            hop.ip(&format!("route add {TARGET}/32 via 10.30.{n}.2"))?;
            hop.ip(&format!("route add default via 10.20.{n}.1"))?;
        }
        enable_ipv4_forwarding(target)?;
        target.ip(&format!("address add {TARGET}/32 dev lo"))?;
        target.ip("route add default via 10.30.1.1")?;
        Ok(diamond)
    }

    fn start(&self) -> Result<Router> {
        let config = host_pair().commands(
            "create host-interface name eth2
             create host-interface name eth3
             set interface ip address host-eth2 10.20.1.1/24
             set interface ip address host-eth3 10.20.2.1/24
             set interface state host-eth2 up
             set interface state host-eth3 up",
        );
        Router::start(&self.lab.router, &config)
    }

    /// Sends a few packets of many flows from the left, from source ports `first..`, and waits for
    /// the last of them.
    fn send_flows(&self, first: u16) -> Result<()> {
        let received = self.target.run(|| UdpSocket::bind((TARGET, 7000)))??;
        received.set_read_timeout(Some(WAIT_LIMIT))?;
        let address = self.lab.left.addr;
        let sockets = self.lab.left.ns.run(|| -> Result<Vec<UdpSocket>> {
            (first..first + FLOWS).map(|port| Ok(UdpSocket::bind((address, port))?)).collect()
        })??;
        for round in 0..PACKETS_PER_FLOW {
            for (n, socket) in sockets.iter().enumerate() {
                socket.send_to(&[0; 32], (TARGET, 7000))?;
                received
                    .recv(&mut [0; 64])
                    .with_context(|| format!("packet {round} of flow {n} did not arrive"))?;
            }
        }
        Ok(())
    }
}

/// Packets by source port in a capture.
fn flows_in(pcap: &Path) -> Result<BTreeMap<String, usize>> {
    let mut flows = BTreeMap::new();
    for row in tshark_fields(pcap, &["udp.srcport"], "udp.dstport==7000")? {
        *flows.entry(row.concat()).or_default() += 1;
    }
    Ok(flows)
}

lab_test! {
    /// Both next hops are used, and each flow keeps to one of them.
    fn equal_cost_paths() {
        let diamond = Diamond::new()?;
        let router = diamond.start()?;
        router.cli(&format!("ip route add {TARGET}/32 via 10.20.1.2 via 10.20.2.2"))?;
        let shown = router.cli(&format!("show ip fib {TARGET}"))?;
        ensure!(shown.contains("10.20.1.2") && shown.contains("10.20.2.2"), "{shown}");
        let captures = [(&diamond.one, "one"), (&diamond.two, "two")].map(|(hop, name)| {
            Capture::start(hop, "near", &router.dir().join(name), "udp port 7000")
        });
        let [one, two] = captures;
        let (one, two) = (one?, two?);
        diamond.send_flows(10_000)?;
        let paths = [one.path().to_owned(), two.path().to_owned()];
        one.stop()?;
        two.stop()?;
        let (one, two) = (flows_in(&paths[0])?, flows_in(&paths[1])?);
        let ports = |flows: &BTreeMap<String, usize>| flows.keys().cloned().collect::<BTreeSet<_>>();
        ensure!(ports(&one).is_disjoint(&ports(&two)), "a flow took both ways: {one:?}, {two:?}");
        ensure!(one.len() + two.len() == usize::from(FLOWS), "{one:?}, {two:?}");
        // Fewer than 12 of 64 flows at even odds take one side about once in ten million runs.
        ensure!(one.len() >= 12 && two.len() >= 12, "{} and {} flows", one.len(), two.len());
        ensure!(one.values().chain(two.values()).all(|n| *n == PACKETS_PER_FLOW), "{one:?} {two:?}");
        router.stop().map(drop)
    }

    /// One of two next hops is taken away and given back, and no ping is lost.
    fn a_path_leaves_and_returns_under_traffic() {
        let diamond = Diamond::new()?;
        let router = diamond.start()?;
        router.cli(&format!("ip route add {TARGET}/32 via 10.20.1.2 via 10.20.2.2"))?;
        let target: std::net::Ipv4Addr = TARGET.parse()?;
        ping(&diamond.lab.left.ns, target, &Default::default())?.all_answered()?;
        let mut flow = Flow::start(&diamond.lab.left.ns, target, Duration::from_millis(3))?;
        flow.await_answers(20)?;
        for hop in ["10.20.1.2", "10.20.2.2"] {
            router.cli(&format!("ip route del {TARGET}/32 via {hop}"))?;
            diamond.send_flows(20_000)?;
            flow.await_answers(20)?;
            router.cli(&format!("ip route add {TARGET}/32 via {hop}"))?;
            flow.await_answers(20)?;
        }
        flow.stop()?.without_loss()?;
        router.stop().map(drop)
    }

    /// Routes of other prefixes come and go by the thousand; the ping does not notice.
    fn route_changes_do_not_disturb() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        lab.ping_all()?;
        let mut flow = Flow::start(&lab.left.ns, lab.right.addr, Duration::from_millis(2))?;
        flow.await_answers(10)?;
        for _ in 0..3 {
            router.cli("ip route add 100.64.0.0/32 count 50000 via 10.10.2.2")?;
            let shown = router.cli("show ip fib 100.64.195.79")?;
            ensure!(shown.contains("100.64.195.79/32") && shown.contains("10.10.2.2"), "{shown}");
            router.cli("ip route del 100.64.0.0/32 count 50000 via 10.10.2.2")?;
        }
        flow.await_answers(10)?;
        flow.stop()?.without_loss()?;
        router.stop().map(drop)
    }

    /// The longest prefix wins, and drop, unreachable and prohibit do what they say.
    fn longest_prefix_and_special_routes() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        for address in ["172.16.0.1/32", "172.16.1.1/32"] {
            lab.right.ns.ip(&format!("address add {address} dev lo"))?;
        }
        let with = |address: [u8; 4], options: &PingOptions| {
            ping(&lab.left.ns, std::net::Ipv4Addr::from(address), options)
        };
        let options = PingOptions { count: 2, ..Default::default() };
        let try_it = |address| with(address, &options);
        router.cli("ip route add 172.16.0.0/16 via 10.10.2.2")?;
        try_it([172, 16, 0, 1])?.all_answered()?;
        router.cli("ip route add 172.16.0.0/24 via drop")?;
        ensure!(with([172, 16, 0, 1], &PingOptions::unanswered(2))?.received == 0);
        try_it([172, 16, 1, 1])?.all_answered()?;
        router.cli("ip route add 172.16.0.1/32 via 10.10.2.2 host-eth1")?;
        try_it([172, 16, 0, 1])?.all_answered()?;
        router.cli("ip route del 172.16.0.1/32")?;
        router.cli("ip route del 172.16.0.0/24")?;
        try_it([172, 16, 0, 1])?.all_answered()?;
        router.cli("ip route del 172.16.0.0/16 via 10.10.2.2")?;
        // Senders are notified of a missing route only on request.
        ensure!(with([172, 16, 1, 1], &PingOptions::unanswered(2))?.errors.is_empty());
        router.cli("ip table unreachables 0 on")?;
        let gone = try_it([172, 16, 1, 1])?;
        ensure!(gone.errors.iter().any(|e| e.contains("Destination Net Unreachable")), "{gone:?}");
        router.stop().map(drop)
    }
}
