//! Messages over netlink to an agent of the same machine. Samples and drops need a kernel with
//! PSAMPLE: `make test ONLY=psample` has one.

use std::time::Duration;

use anyhow::ensure;
use serde_json::Value;
use thalweg_smoke::{Router, host_pair, thalweg};
use thalweg_testkit::{Lab, PingOptions, lab_test, ping, wait_until_seen};

const LIMIT: Duration = thalweg_testkit::WAIT_LIMIT;

lab_test! {
    /// Counters of an interface, by the number that it has everywhere, and a sign of life.
    fn counters_are_heard() {
        let lab = Lab::new()?;
        let mut monitor = lab
            .router
            .command(thalweg()?)
            .args(["sflow", "monitor", "--counters", "--json"])
            .spawn()?;
        monitor.wait_for_output(LIMIT, "to listen", |_, err| {
            err.contains("counters: listening").then_some(())
        })?;
        let config = host_pair().commands(
            "sflow polling-interval 1
             sflow netlink enable
             sflow enable-disable host-eth0",
        );
        let router = Router::start(&lab.router, &config)?;
        let options = PingOptions { count: 5, ..PingOptions::default() };
        ping(&lab.left.ns, lab.right.addr, &options)?.all_answered()?;

        let shown = router.json("show interface host-eth0")?;
        let port = wait_until_seen(LIMIT, "the counters of host-eth0", || {
            let heard = monitor.stdout();
            let messages = heard.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok());
            let last = messages.rev().find(|m| m["type"] == "counters");
            let rx = router.interface_counter("host-eth0", "rx_packets").unwrap_or(0);
            last.filter(|m| rx >= 5 && m["rx_packets"] == rx).ok_or(heard)
        })?;
        ensure!(port["name"] == "host-eth0" && port["index"] == shown[0]["index"], "{port}");
        ensure!(port["speed"].as_u64() > Some(0) && port["oper_up"] == true, "{port}");

        let channels = router.json("show sflow")?["netlink"].clone();
        let counters = &channels["counters"];
        ensure!(counters["failed"] == 0 && counters["listeners"] == 1, "{channels}");
        let psample = channels["psample"]["error"].as_str().unwrap_or("modprobe psample");
        ensure!(psample.contains("modprobe psample"), "{channels}");

        // `auto` sends nothing over netlink with a collector.
        for line in ["sflow collector add 127.0.0.1", "sflow netlink auto"] {
            router.cli(line)?;
        }
        wait_until_seen(LIMIT, "netlink to be left alone", || {
            let shown = router.json("show sflow").map_err(|error| format!("{error:#}"))?;
            if shown["netlink"]["sending"] == false { Ok(()) } else { Err(shown.to_string()) }
        })?;
        let heard = monitor.stop(LIMIT)?.success()?;
        ensure!(heard.stdout.contains(r#""type":"status""#), "{}", heard.stdout);
        router.stop().map(drop)
    }
}
