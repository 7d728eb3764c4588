//! Interfaces, hosts and the router itself go away under load, and come back.

use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use thalweg_smoke::{Flow, Router, host_pair};
use thalweg_testkit::{
    IperfOptions, Lab, LinkOptions, Netns, iperf3, lab_test, veth, wait_until_seen,
};

const LIMIT: Duration = thalweg_testkit::WAIT_LIMIT;

lab_test! {
    /// Packets of a port that is down are dropped and counted; they flow again once it is up.
    fn an_interface_goes_down_and_up_under_load() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        lab.ping_all()?;
        let mut flow = Flow::start(&lab.left.ns, lab.right.addr, Duration::from_millis(2))?;
        for interface in ["host-eth1", "host-eth0"] {
            flow.await_answers(10)?;
            let before = router.interface_counter("host-eth0", "rx_packets")?;
            router.cli(&format!("set interface state {interface} down"))?;
            let kernel = lab.router.link("eth0")?.rx_packets;
            // The host goes on sending; the router may look at it or not.
            wait_until_seen(LIMIT, "requests while the interface is down", || {
                let now = lab.router.link("eth0").map_or(0, |link| link.rx_packets);
                if now >= kernel + 20 { Ok(()) } else { Err(now - kernel) }
            })?;
            router.cli(&format!("set interface state {interface} up"))?;
            flow.await_answers(10)?;
            ensure!(router.interface_counter("host-eth0", "rx_packets")? > before);
        }
        let result = flow.stop()?;
        ensure!(!result.missing().is_empty() && result.duplicates == 0, "{result:?}");
        lab.ping_all()?;
        router.stop().map(drop)
    }

    /// A TCP connection outlives a short interruption.
    fn tcp_survives_an_interruption() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        lab.ping_all()?;
        let result = thread::scope(|scope| {
            // The transfer is long enough for both waits below on busy processors.
            let options = IperfOptions { duration: Duration::from_secs(6), ..Default::default() };
            let running =
                scope.spawn(move || iperf3(&lab.left.ns, &lab.right.ns, lab.right.addr, &options));
            let busy = |at_least: u64| {
                wait_until_seen(LIMIT, "traffic", || {
                    match router.interface_counter("host-eth1", "tx_packets") {
                        Ok(sent) if sent >= at_least => Ok(sent),
                        other => Err(format!("{other:?}")),
                    }
                })
            };
            let sent = busy(1000)?;
            router.cli("set interface state host-eth1 down")?;
            router.cli("set interface state host-eth1 up")?;
            busy(sent + 1000)?;
            running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        ensure!(result.bits_per_s > 1e6, "{result:?}");
        router.stop().map(drop)
    }

    /// The host's whole namespace is removed while packets flow to it, and with it the router's end
    /// of the link. The router goes on; a link of the same name is attached with all that was
    /// configured, as often as that happens.
    fn the_far_end_is_removed_under_load() {
        let lab = Lab::new()?;
        let mut router = Router::start(&lab.router, &host_pair())?;
        lab.ping_all()?;
        let mac = router.mac("host-eth1")?;
        let Lab { left, router: middle, right } = lab;
        let mut own = Flow::start(&left.ns, left.gateway, Duration::from_millis(5))?;
        let flow = Flow::start(&left.ns, right.addr, Duration::from_millis(1))?;
        own.await_answers(5)?;
        let addr = right.addr;
        right.ns.remove();
        wait_until_seen(LIMIT, "the link to go", || match middle.link("eth1") {
            Err(_) => Ok(()),
            Ok(link) => Err(link.operstate),
        })?;
        own.await_answers(20)?;
        router.alive()?;
        wait_until_seen(LIMIT, "the link to be down", || {
            let shown = router.json("show interface host-eth1").map_err(|e| format!("{e:#}"))?;
            if shown[0]["link_up"] == false { Ok(()) } else { Err(shown.to_string()) }
        })?;
        let hardware = router.cli("show hardware-interfaces host-eth1")?;
        ensure!(hardware.contains("eth1 went away"), "{hardware}");
        let missing = router.cli("show configuration unresolved")?;
        let line = "interfaces.host-eth1: missing: device eth1 went away; ";
        ensure!(missing.starts_with(line) && missing.lines().count() == 1, "{missing}");
        flow.stop()?;

        let host = LinkOptions::default().address(format!("{addr}/24"));
        for round in 0..3 {
            let again = Netns::new("right again")?;
            veth((&again, "eth0", &host), (&middle, "eth1", &LinkOptions::default()))?;
            again.ip("route add default via 10.10.2.1")?;
            router.await_log("host-eth1 is attached to it")?;
            wait_until_seen(LIMIT, "the link to be up", || {
                let shown = router.json("show interface host-eth1").map_err(|e| e.to_string())?;
                if shown[0]["link_up"] == true { Ok(()) } else { Err(shown.to_string()) }
            })?;
            let answered = thalweg_testkit::ping(&left.ns, addr, &Default::default())?;
            answered.all_answered().with_context(|| format!("round {round}"))?;
            ensure!(router.mac("host-eth1")? == mac, "another MAC address");
            let missing = router.cli("show configuration unresolved")?;
            ensure!(missing.contains("all of the configuration is in force"), "{missing}");
            again.remove();
            wait_until_seen(LIMIT, "the device to go", || {
                let shown = router.json("show hardware-interfaces host-eth1");
                let shown = shown.map_err(|e| e.to_string())?;
                if shown.to_string().contains("\"away\":true") {
                    Ok(())
                } else {
                    Err(shown.to_string())
                }
            })?;
        }
        // Settings and queues of an interface whose device is away.
        router.cli("set interface state host-eth1 down")?;
        router.cli("set interface state host-eth1 up")?;
        router.cli("set interface rx-placement host-eth1 worker 0")?;
        router.cli("delete host-interface name eth1")?;
        let shown = router.cli("show interface")?;
        ensure!(!shown.contains("host-eth1"), "{shown}");
        own.stop()?.without_loss()?;
        router.stop().map(drop)
    }

    /// Deleted and created again under traffic, a dozen times.
    fn interfaces_come_and_go_under_load() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        let mut own = Flow::start(&lab.left.ns, lab.left.gateway, Duration::from_millis(2))?;
        let mut flow = Flow::start(&lab.left.ns, lab.right.addr, Duration::from_millis(1))?;
        for _ in 0..12 {
            flow.await_answers(5)?;
            router.cli("delete host-interface name eth1")?;
            for command in &host_pair().commands {
                if command.contains("eth1") {
                    router.cli(command)?;
                }
            }
        }
        flow.await_answers(5)?;
        flow.stop()?;
        own.await_answers(1)?;
        own.stop()?.without_loss()?;
        router.stop().map(drop)
    }

    /// Killed as by a fault, and started again with the same sockets and files.
    fn a_killed_router_starts_again() {
        let lab = Lab::new()?;
        let mut router = Router::start(&lab.router, &host_pair())?;
        let mut flow = Flow::start(&lab.left.ns, lab.right.addr, Duration::from_millis(2))?;
        for _ in 0..2 {
            flow.await_answers(10)?;
            router.kill_and_start(&host_pair())?;
            flow.await_answers(10)?;
        }
        let result = flow.stop()?;
        ensure!(result.duplicates == 0, "{result:?}");
        router.stop().map(drop)
    }

    /// Asked to end under full load, it ends in order, with every buffer home.
    fn a_busy_router_ends_in_order() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        lab.ping_all()?;
        let flood = |ns: &Netns, to: std::net::Ipv4Addr| {
            ns.command("ping").args(["-q", "-f", "-s", "400", &to.to_string()]).spawn()
        };
        let _right = flood(&lab.left.ns, lab.right.addr)?;
        let _left = flood(&lab.right.ns, lab.left.addr)?;
        wait_until_seen(LIMIT, "load", || {
            match router.interface_counter("host-eth1", "tx_packets") {
                Ok(sent) if sent > 5000 => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })?;
        router.stop_busy().map(drop).context("end under load")
    }
}
