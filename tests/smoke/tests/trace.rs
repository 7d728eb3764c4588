//! `trace add` and `show trace`: every step of a packet, with the time of day.

use anyhow::{Context, ensure};
use thalweg_smoke::{Router, host_pair};
use thalweg_testkit::{Lab, PingOptions, WAIT_LIMIT, lab_test, ping, wait_until_seen};

lab_test! {
    fn a_trace_names_every_node_of_the_path() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        lab.ping_all()?;
        router.cli("clear trace")?;
        router.cli("trace add af-packet-input 10")?;
        let once = PingOptions { count: 1, size: 100, ..PingOptions::default() };
        ping(&lab.left.ns, lab.right.addr, &once)?.all_answered()?;
        let text = router.cli("show trace")?;
        let request = text
            .split("Packet ")
            .find(|packet| packet.contains("10.10.1.2 -> 10.10.2.2"))
            .with_context(|| format!("no request in:\n{text}"))?;
        let mut rest = request;
        for node in [
            "af-packet-input",
            "ethernet-input",
            "ip4-input",
            "ip4-lookup",
            "ip4-rewrite",
            "host-eth1-output",
            "host-eth1-tx",
        ] {
            let at = rest.find(&format!(": {node}\n"));
            let at = at.with_context(|| format!("no step at {node} in its place:\n{request}"))?;
            rest = &rest[at..];
        }
        // 02:00:… are the hosts' addresses before and after; the packet's heading has the date.
        for part in [lab.left.mac, lab.right.mac, "ICMP", "ttl 64", " UTC"] {
            ensure!(request.contains(part), "no {part:?} in:\n{request}");
        }
        let year = request.lines().next().unwrap_or_default();
        ensure!(year.contains("20") && year.matches(':').count() >= 2, "no time of day: {year}");

        ensure!(router.cli("show trace max 1")?.matches("Packet ").count() == 1);
        router.cli("clear trace")?;
        ensure!(router.cli("show trace")?.contains("No packets in trace buffer"));
        router.stop().map(drop)
    }

    /// A user who pings sees the request on its way, and the reply.
    fn requests_of_ping_are_traced() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        lab.ping_all()?;
        router.cli("trace add ip4-lookup 10\ntrace add af-packet-input 10")?;
        router.cli("ping 10.10.2.2 repeat 1")?;
        let text = router.cli("show trace")?;
        let request = text
            .split("Packet ")
            .find(|packet| packet.contains(": ip4-lookup\n  made by the router\n"))
            .with_context(|| format!("no request in:\n{text}"))?;
        for node in [": ip4-rewrite\n", ": host-eth1-output\n", ": host-eth1-tx\n"] {
            ensure!(request.contains(node), "no {node:?} in:\n{request}");
        }
        let paths = router.cli("show trace paths")?;
        ensure!(paths.contains("Path: ip4-lookup -> ") && paths.contains("af-packet-input -> "), "{paths}");
        router.stop().map(drop)
    }

    /// A dropped packet's last steps say why.
    fn a_drop_is_traced_with_its_reason() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        lab.ping_all()?;
        router.cli("ip route add 192.0.2.0/24 via drop")?;
        router.cli("trace add af-packet-input 10")?;
        let once = PingOptions::unanswered(1);
        ping(&lab.left.ns, std::net::Ipv4Addr::new(192, 0, 2, 1), &once)?;
        wait_until_seen(WAIT_LIMIT, "the drop in the trace", || {
            let text = router.cli("show trace").map_err(|e| format!("{e:#}"))?;
            let parts = ["192.0.2.1", "ip4-drop", "error-drop", ": drop\n"];
            if parts.iter().all(|part| text.contains(part)) { Ok(()) } else { Err(text) }
        })?;
        router.stop().map(drop)
    }

    fn tracing_an_unknown_node_is_refused() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        let text = router.refused("trace add no-such-node 10")?;
        ensure!(text.contains("no-such-node") && text.contains("af-packet-input"), "{text}");
        router.stop().map(drop)
    }
}
