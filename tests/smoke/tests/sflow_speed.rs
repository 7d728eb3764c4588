//! The speed of links, as collectors see it.

use std::time::Duration;

use anyhow::{Result, ensure};
use thalweg_sflow::{CounterRecord, Datagram, Sample};
use thalweg_smoke::{Collector, Config, Router};
use thalweg_testkit::{Lab, Netns, lab_test, require_tools, wait_until_seen};

const LIMIT: Duration = thalweg_testkit::WAIT_LIMIT;

/// Makes the device report this link speed in Mbit/s, and come up again, as links do that found
/// another speed.
fn set_speed(ns: &Netns, mbps: u32) -> Result<()> {
    let speed = mbps.to_string();
    ns.ip("link set tap7 down")?;
    let ethtool = ns.command("ethtool").args(["-s", "tap7", "speed", &speed, "duplex", "full"]);
    ethtool.output()?;
    ns.ip("link set tap7 up").map(drop)
}

/// Waits for counters of an interface with this speed, in bits per second.
fn await_speed(collector: &Collector, index: u32, speed: u64) -> Result<()> {
    collector.receive(LIMIT, format!("interface {index} at {speed} bit/s"), |bytes| {
        for sample in Datagram::parse(bytes)?.samples() {
            let Sample::Counters(sample) = sample? else { continue };
            for record in sample.records {
                let CounterRecord::Interface(c) = record? else { continue };
                if (c.index, c.speed, c.direction) == (index, speed, 1) {
                    return Ok(Some(()));
                }
            }
        }
        Ok(None)
    })
}

lab_test! {
    /// The speed that the driver tells is in the counters, more than 32 bits of it, and follows the
    /// link; the rate by speed follows, too.
    fn counters_tell_the_speed_that_the_link_has() {
        require_tools(&["ethtool"])?;
        let lab = Lab::new()?;
        let collector = Collector::listen(&lab.router)?;
        lab.router.ip("tuntap add dev tap7 mode tap")?;
        set_speed(&lab.router, 2500)?;
        let router = Router::start(&lab.router, &Config::empty().commands(
            "create host-interface name tap7
             create host-interface name eth0
             set interface state host-tap7 up
             set interface state host-eth0 up
             sflow collector add 127.0.0.1
             sflow agent-address 10.10.1.1
             sflow polling-interval 1
             sflow sampling-rate 1000 speed 2500M
             sflow sampling-rate 40000 speed 40G
             sflow enable host-tap7
             sflow enable host-eth0",
        ))?;
        let rate = |wanted: u64| {
            wait_until_seen(LIMIT, "the rate of that speed", || {
                let shown = router.json("show sflow").map_err(|e| format!("{e:#}"))?;
                let port = &shown["interfaces"][0];
                if port["rate"] == wanted { Ok(()) } else { Err(port.to_string()) }
            })
        };
        await_speed(&collector, 1, 2_500_000_000)?;
        // The speed that veth reports.
        await_speed(&collector, 2, 10_000_000_000)?;
        rate(1000)?;
        set_speed(&lab.router, 40_000)?;
        await_speed(&collector, 1, 40_000_000_000)?;
        rate(40_000)?;
        // The rate follows the speed: one in as many as it has megabits per second.
        router.cli("sflow enable host-tap7 rate auto")?;
        rate(40_000)?;
        set_speed(&lab.router, 2500)?;
        rate(2500)?;
        let shown = router.cli("show sflow")?;
        ensure!(shown.contains("rate 2500 (auto; 2500 Mb/s)"), "{shown}");
        set_speed(&lab.router, 40_000)?;
        rate(40_000)?;
        let shown = router.cli("show hardware-interfaces host-tap7")?;
        ensure!(shown.contains("Link speed: 40 Gbps"), "{shown}");
        router.stop().map(drop)
    }
}
