//! TAP and TUN interfaces: hosts in namespaces of their own, at the kernel's ends.

use std::net::{Ipv4Addr, Ipv6Addr};

use anyhow::{Context, Result, ensure};
use thalweg_smoke::{Config, Router, host_pair};
use thalweg_testkit::{
    IperfOptions, Lab, Netns, PingOptions, WAIT_LIMIT, iperf3, lab_test, ping, wait_until_seen,
};

use crate::throughput::WORKING_BITS_PER_S;

/// A router with a host at each of two TAPs.
struct Taps {
    router: Netns,
    hosts: [Netns; 2],
}

fn ip4(n: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 40, n as u8, 2)
}

fn ip6(n: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfd40, n as u16, 0, 0, 0, 0, 0, 2)
}

/// The commands for the host of a number, with further words for `create tap`; of a TUN, if these
/// say so.
fn tap(n: usize, host: &Netns, words: &str) -> String {
    let kind = if words.split(' ').any(|word| word == "tun") { "tun" } else { "tap" };
    format!(
        "create tap id {n} host-if-name eth0 host-ns {ns} host-ip4-addr 10.40.{n}.2/24 \
         host-ip4-gw 10.40.{n}.1 host-ip6-addr fd40:{n}::2/64 host-ip6-gw fd40:{n}::1 {words}
         set interface ip address {kind}{n} 10.40.{n}.1/24
         set interface ip address {kind}{n} fd40:{n}::1/64
         set interface state {kind}{n} up\n",
        ns = host.descriptor_path().display()
    )
}

/// Lets a host use IPv6, with addresses that count at once.
fn prepare(host: &Netns) -> Result<()> {
    host.ip("link set lo up")?;
    for (what, value) in [("accept_dad", "0"), ("disable_ipv6", "0")] {
        for which in ["all", "default"] {
            host.set_sysctl(&format!("net/ipv6/conf/{which}/{what}"), value)?;
        }
    }
    Ok(())
}

impl Taps {
    fn new() -> Result<Taps> {
        let hosts = [Netns::new("tap-a")?, Netns::new("tap-b")?];
        hosts.iter().try_for_each(prepare)?;
        Ok(Taps { router: Netns::new("tap-router")?, hosts })
    }

    fn config(&self, words: [&str; 2]) -> Config {
        Config::empty()
            .commands(&(tap(0, &self.hosts[0], words[0]) + &tap(1, &self.hosts[1], words[1])))
    }

    fn start(&self, words: [&str; 2]) -> Result<Router> {
        Router::start(&self.router, &self.config(words))
    }

    /// Pings both ways, in both versions, until all are answered: `ping` waits for twice the
    /// longest time seen only, and a busy processor takes longer.
    fn pings(&self) -> Result<()> {
        wait_until_seen(WAIT_LIMIT, "answers to all pings", || self.pings_once())
    }

    fn pings_once(&self) -> Result<()> {
        for n in 0..2 {
            let from = &self.hosts[n];
            ping(from, ip4(1 - n), &PingOptions::default())?.all_answered().context("IPv4")?;
            let to = ip6(1 - n);
            ping(from, to, &PingOptions::default())?.all_answered().context("IPv6")?;
            // Fragments, of which each is a frame.
            let big = PingOptions { size: 4000, may_fragment: true, ..PingOptions::default() };
            ping(from, ip4(1 - n), &big)?.all_answered().context("fragments")?;
        }
        Ok(())
    }

    /// TCP one way in IPv4 and the other in IPv6, at a rate of a path that works, without any bad
    /// checksum.
    fn tcp(&self, options: &IperfOptions) -> Result<()> {
        for (reverse, v6) in [(false, false), (true, true)] {
            let options = IperfOptions { reverse, ..options.clone() };
            let [client, server] = &self.hosts;
            let result = match v6 {
                false => iperf3(client, server, ip4(1), &options)?,
                true => iperf3(client, server, ip6(1), &options)?,
            };
            let rate = result.bits_per_s;
            ensure!(rate > WORKING_BITS_PER_S, "reverse {reverse}, IPv6 {v6}: {rate}");
        }
        for host in &self.hosts {
            ensure!(host.snmp()?["Tcp.InErrs"] == 0, "{}: TCP input errors", host.label());
        }
        Ok(())
    }
}

lab_test! {
    /// The kernel's ends are set up so that hosts reach each other.
    fn hosts_reach_each_other() {
        let taps = Taps::new()?;
        let router = taps.start(["", ""])?;
        taps.pings()?;
        let shown = router.json("show tap")?;
        ensure!(shown[0]["device"] == "eth0" && shown[0]["carrier"] == true, "{shown}");
        ensure!(router.cli("show tap tap1")?.contains("host-carrier-up: 1"));
        router.cli("set interface state tap0 down")?;
        wait_until_seen(WAIT_LIMIT, "the carrier to go", || {
            let shown = taps.hosts[0].ip("link show dev eth0")?;
            ensure!(shown.contains("NO-CARRIER"), "{shown}");
            Ok(())
        })?;
        router.cli("set interface state tap0 up")?;
        // The kernel has forgotten no route.
        taps.pings()?;
        router.cli("delete tap tap0\ndelete tap sw_if_index 2")?;
        wait_until_seen(WAIT_LIMIT, "the devices to go", || {
            for host in &taps.hosts {
                let shown = host.ip("-o link show")?;
                ensure!(!shown.contains("eth0"), "{shown}");
            }
            Ok(())
        })?;
        router.stop().map(drop)
    }

    /// Big segments pass whole, and are counted as such.
    fn tcp_with_offloads() {
        let taps = Taps::new()?;
        let router = taps.start(["gso gro-coalesce", "gso gro-coalesce"])?;
        taps.tcp(&IperfOptions::default())?;
        ensure!(router.interface_counter("tap0", "rx_gso_packets")? > 0);
        taps.pings()?;
        router.stop().map(drop)
    }

    /// Packets are cut, and checksums completed, for a TAP that takes none of that.
    fn tcp_between_taps_of_different_offloads() {
        let taps = Taps::new()?;
        for words in [["", ""], ["gso", ""], ["", "csum-offload"], ["csum-offload", "gso"]] {
            let router = taps.start(words)?;
            taps.tcp(&IperfOptions::default()).with_context(|| format!("{words:?}"))?;
            taps.pings()?;
            router.stop()?;
        }
        Ok(())
    }

    /// A TAP and a host interface work with each other's offloads.
    fn tcp_between_a_tap_and_a_host_interface() {
        let lab = Lab::new()?;
        let host = Netns::new("tap-host")?;
        prepare(&host)?;
        for words in ["gso gro-coalesce", "no-gso"] {
            let config = host_pair().commands(&tap(0, &host, words));
            let router = Router::start(&lab.router, &config)?;
            lab.left.ns.ip("route replace 10.40.0.0/24 via 10.10.1.1")?;
            for reverse in [false, true] {
                let options = IperfOptions { reverse, ..IperfOptions::default() };
                let result = iperf3(&lab.left.ns, &host, ip4(0), &options)?;
                ensure!(result.bits_per_s > WORKING_BITS_PER_S, "{words}: {result:?}");
            }
            ensure!(host.snmp()?["Tcp.InErrs"] == 0 && lab.left.ns.snmp()?["Tcp.InErrs"] == 0);
            router.stop()?;
        }
        Ok(())
    }

    /// IP packets without an Ethernet header.
    fn tun() {
        let taps = Taps::new()?;
        let router = taps.start(["tun gso", "tun"])?;
        router.cli("trace add tap-input 8")?;
        taps.pings()?;
        let trace = router.cli("show trace")?;
        ensure!(trace.contains("tun-input") && trace.contains("ip4-input"), "{trace}");
        taps.tcp(&IperfOptions::default())?;
        router.stop().map(drop)
    }

    /// Each worker has a queue of each TAP, and flows are spread over them.
    fn several_queues_and_workers() {
        let taps = Taps::new()?;
        let words = "num-rx-queues 2 num-tx-queues 2 gso";
        let config = taps.config([words, words]).stanza("cpu { workers 2 }");
        let router = Router::start(&taps.router, &config)?;
        taps.tcp(&IperfOptions { parallel: 8, ..IperfOptions::default() })?;
        taps.pings()?;
        let placement = router.cli("show interface rx-placement")?;
        ensure!(placement.matches("tap-input").count() >= 2, "{placement}");
        let runtime = router.json("show runtime")?.to_string();
        ensure!(runtime.matches("\"tap-input\"").count() >= 2, "{runtime}");
        router.cli("set interface rx-placement tap0 queue 1 worker 0")?;
        taps.tcp(&IperfOptions { parallel: 4, ..IperfOptions::default() })?;
        router.stop().map(drop)
    }

    /// A saved configuration comes back with its devices, which are set up as they were.
    fn a_saved_configuration_makes_them_again() {
        let taps = Taps::new()?;
        let keep = tempfile::tempdir()?;
        let file = keep.path().join("thalweg.yaml");
        let config = Config::empty().keeps(&file);
        let mut router = Router::start(&taps.router, &config)?;
        for command in &taps.config(["gso rx-ring-size 512", "tun persist"]).commands {
            router.cli(command)?;
        }
        taps.pings()?;
        router.cli("config save")?;
        let before = router.cli("show configuration")?;
        for want in ["host-ip4-address: 10.40.0.2/24", "rx-ring-size: 512", "tun: true"] {
            ensure!(before.contains(want), "{want} is missing in {before}");
        }
        for _ in 0..2 {
            router.kill_and_start(&config)?;
            taps.pings()?;
            let after = router.cli("show configuration")?;
            ensure!(before == after, "before:\n{before}\nafter:\n{after}");
            let plan = router.cli(&format!("config plan {}", file.display()))?;
            ensure!(plan.trim().is_empty(), "{plan}");
        }
        router.stop().map(drop)
    }
}
