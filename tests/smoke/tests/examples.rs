//! The set-ups in `examples`, run as they are, and held to what their READMEs say.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, thread};

use anyhow::{Context, Result, ensure};
use thalweg_sflow::{CounterRecord, Datagram, Sample};
use thalweg_smoke::{Bird, Collector, Config, Router, thalweg};
use thalweg_testkit::{
    Lab, LabOptions, Middle, Netns, PingOptions, accept, connect, lab_test, ping, wait_until_seen,
};

const LIMIT: Duration = thalweg_testkit::WAIT_LIMIT;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Gives a device of the router another name.
fn rename(ns: &Netns, from: &str, to: &str) -> Result<()> {
    ns.ip(&format!("link set {from} down"))?;
    ns.ip(&format!("link set {from} name {to}"))?;
    ns.ip(&format!("link set {to} up")).map(drop)
}

/// Gives a host another address, and a way to everywhere if there is one.
fn address(ns: &Netns, address: &str, gateway: Option<&str>) -> Result<()> {
    ns.ip("address flush dev eth0")?;
    ns.ip(&format!("address add {address} dev eth0"))?;
    match gateway {
        Some(gateway) => ns.ip(&format!("route replace default via {gateway}")).map(drop),
        None => Ok(()),
    }
}

/// Starts the router with a copy of an example's document.
fn start(ns: &Netns, example: &str, dir: &Path) -> Result<Router> {
    start_with(ns, example, dir, |text| text)
}

/// The same with words of the document changed, such as a name that all tests would share.
fn start_with(
    ns: &Netns,
    example: &str,
    dir: &Path,
    change: impl FnOnce(String) -> String,
) -> Result<Router> {
    let file = dir.join("thalweg.yaml");
    let text = fs::read_to_string(examples().join(example).join("thalweg.yaml"));
    fs::write(&file, change(text.context(example.to_owned())?))?;
    let router = Router::start(ns, &Config::empty().keeps(&file))?;
    // All of it is in force, and nothing else.
    let left = router.json("show configuration unresolved")?;
    ensure!(left == serde_json::json!([]), "{left}");
    let diff = router.cli("config diff")?;
    // A hardware address that the document does not name is the device's.
    ensure!(diff.lines().all(|line| line.is_empty() || line.contains(".mac: ")), "{diff}");
    Ok(router)
}

/// Connects to a server that says who it sees.
fn seen_by(client: &Netns, to: (Ipv4Addr, u16), server: &Netns, port: u16) -> Result<SocketAddr> {
    let listener = server.run(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))??;
    let answers = thread::spawn(move || -> Result<SocketAddr> {
        let (mut stream, peer) = accept(&listener)?;
        stream.write_all(b"hello")?;
        Ok(peer)
    });
    client.run(|| -> Result<()> {
        let mut text = String::new();
        connect(to)?.read_to_string(&mut text)?;
        ensure!(text == "hello", "{text}");
        Ok(())
    })??;
    answers.join().map_err(|_| anyhow::anyhow!("the server panicked"))?
}

lab_test! {
    fn nat_gateway() {
        let (lab, dir) = (Lab::new()?, tempfile::tempdir()?);
        rename(&lab.router, "eth0", "lan")?;
        rename(&lab.router, "eth1", "wan")?;
        address(&lab.left.ns, "192.168.1.10/24", Some("192.168.1.1"))?;
        address(&lab.right.ns, "203.0.113.1/24", None)?;
        let (web, internet) = (Ipv4Addr::new(192, 168, 1, 10), Ipv4Addr::new(203, 0, 113, 1));
        let shared = Ipv4Addr::new(203, 0, 113, 2);
        let router = start(&lab.router, "nat-gateway", dir.path())?;
        // Hosts inside share the address.
        let peer = seen_by(&lab.left.ns, (internet, 7000), &lab.right.ns, 7000)?;
        ensure!(peer.ip() == shared, "{peer}");
        ping(&lab.left.ns, internet, &PingOptions::default())?.all_answered()?;
        // Port 8080 leads to the web server, also from inside.
        let peer = seen_by(&lab.right.ns, (shared, 8080), &lab.left.ns, 80)?;
        ensure!(peer.ip() == internet, "{peer}");
        let peer = seen_by(&lab.left.ns, (shared, 8080), &lab.left.ns, 80)?;
        ensure!(peer.ip() == shared, "{peer}");
        // Nothing else gets in.
        lab.right.ns.ip(&format!("route add 192.168.1.0/24 via {shared}"))?;
        let dropped = router.error_count("nat44-ed-out2in", "no translation")?;
        let refused = ping(&lab.right.ns, web, &PingOptions::unanswered(3))?;
        ensure!(refused.received == 0, "{refused:?}");
        ensure!(router.error_count("nat44-ed-out2in", "no translation")? == dropped + 3);
        let shown = router.cli("show nat44 session limits")?;
        ensure!(shown.contains("5000"), "{shown}");
        router.stop().map(drop)
    }

    fn edge_with_sflow() {
        let (lab, dir) = (Lab::new()?, tempfile::tempdir()?);
        rename(&lab.router, "eth0", "ix")?;
        rename(&lab.router, "eth1", "core")?;
        address(&lab.left.ns, "198.51.100.10/24", Some("198.51.100.1"))?;
        lab.left.ns.ip("address add 192.0.2.1/32 dev lo")?;
        address(&lab.right.ns, "10.0.0.2/24", Some("10.0.0.1"))?;
        lab.right.ns.ip("address add 203.0.113.1/32 dev lo")?;
        let collector = Collector::listen(&lab.router)?;
        let router = start(&lab.router, "edge-sflow", dir.path())?;
        ping(&lab.left.ns, Ipv4Addr::new(203, 0, 113, 1), &PingOptions::default())?.all_answered()?;
        ping(&lab.right.ns, Ipv4Addr::new(192, 0, 2, 1), &PingOptions::default())?.all_answered()?;
        // The speed of a veth device is 10 Gbit/s.
        let shown = router.json("show sflow")?;
        for port in [&shown["interfaces"][0], &shown["interfaces"][1]] {
            ensure!(port["own_rate"] == "auto" && port["rate"] == 10_000, "{shown}");
        }
        // Unused addresses are dropped, and the collector learns of it.
        let unused = Ipv4Addr::new(203, 0, 113, 200);
        ensure!(ping(&lab.left.ns, unused, &PingOptions::unanswered(2))?.received == 0);
        collector.receive(LIMIT, "a dropped packet", |bytes| {
            for sample in Datagram::parse(bytes)?.samples() {
                if let Sample::Discard(_) = sample? {
                    return Ok(Some(()));
                }
            }
            Ok(None)
        })?;
        // The document sends the counters every 20 seconds.
        router.cli("sflow polling-interval 1")?;
        let mut wanted = vec![10_000_000_000u64; 2];
        collector.receive(LIMIT, "counters of both interfaces", |bytes| {
            for sample in Datagram::parse(bytes)?.samples() {
                let Sample::Counters(sample) = sample? else { continue };
                for record in sample.records {
                    if let CounterRecord::Interface(c) = record?
                        && wanted.last() == Some(&c.speed)
                    {
                        wanted.pop();
                    }
                }
            }
            Ok(wanted.is_empty().then_some(()))
        })?;
        // More of them than one in 10,000, to see one.
        router.cli("sflow enable host-ix rate 2")?;
        ping(&lab.left.ns, Ipv4Addr::new(203, 0, 113, 1), &PingOptions { count: 50, ..PingOptions::default() })?;
        collector.receive(LIMIT, "a sampled packet", |bytes| {
            for sample in Datagram::parse(bytes)?.samples() {
                if let Sample::Flow(_) = sample? {
                    return Ok(Some(()));
                }
            }
            Ok(None)
        })?;
        router.stop().map(drop)
    }

    fn switch_with_stateful_rules() {
        let lab = Lab::build(&LabOptions { middle: Middle::Bridge, ..LabOptions::default() })?;
        let dir = tempfile::tempdir()?;
        rename(&lab.router, "eth0", "office")?;
        rename(&lab.router, "eth1", "machines")?;
        let router = start(&lab.router, "l2-firewall", dir.path())?;
        let (office, machine) = (&lab.left, &lab.right);
        let peer = seen_by(&office.ns, (machine.addr, 22), &machine.ns, 22)?;
        ensure!(peer.ip() == office.addr, "{peer}");
        ping(&office.ns, machine.addr, &PingOptions::default())?.all_answered()?;
        // Machines open nothing.
        ensure!(ping(&machine.ns, office.addr, &PingOptions::unanswered(3))?.received == 0);
        // Only syslog is allowed.
        let log = office.ns.run(|| UdpSocket::bind((office.addr, 514)))??;
        log.set_read_timeout(Some(LIMIT))?;
        machine.ns.run(|| -> Result<()> {
            UdpSocket::bind("0.0.0.0:0")?.send_to(b"<13>all is well", (office.addr, 514))?;
            Ok(())
        })??;
        let mut line = [0; 100];
        let (n, from) = log.recv_from(&mut line)?;
        ensure!(&line[..n] == b"<13>all is well" && from.ip() == machine.addr, "{from}");
        // All else is counted.
        let rules = router.cli("flow dump 10")?;
        let last = rules.lines().find(|l| l.contains("actions=drop")).context("the last rule")?;
        ensure!(last.contains("n_packets=3"), "{rules}");
        router.stop().map(drop)
    }

    /// Runs it in namespaces of its own for what it makes: its directory, and the names of its
    /// namespaces.
    fn lab_between_namespaces() {
        let lab = Lab::new()?;
        let program = thalweg()?;
        let programs = program.parent().context("a directory")?.display().to_string();
        let script = examples().join("namespace-lab/lab.sh").display().to_string();
        let text = format!(
            "mount -t tmpfs tmpfs /run && export PATH={programs}:$PATH LAB_DIR=/run/lab && {{ \
             {script} up && ip netns exec lab-left ping -c 3 -i 0.2 -W 5 10.10.2.2 && \
             thalctl -s /run/lab/cli.sock show interface && {script} down && \
             test -z \"$(ip netns list)\" && test ! -e /run/lab && echo gone; }}"
        );
        let words = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"];
        let output = lab.router.command("unshare").args(words).arg(text).deadline(LIMIT).run()?;
        let (stdout, stderr) = (&output.stdout, &output.stderr);
        ensure!(output.status.success(), "{}: {stdout}{stderr}", output.status);
        for part in ["3 received", "host-left", "gone"] {
            ensure!(stdout.contains(part), "{part}: {stdout}{stderr}");
        }
        Ok(())
    }

    fn benchmark_with_the_packet_generator() {
        let lab = Lab::new()?;
        let text = fs::read_to_string(examples().join("pg-benchmark/benchmark.cli"))?;
        let router = Router::start(&lab.router, &Config::empty().commands(&text))?;
        let sent = || {
            let sent = router.interface_counter("pg1", "tx_packets").map_err(|e| format!("{e:#}"))?;
            if sent == 1_000_000 { Ok(()) } else { Err(format!("{sent} packets")) }
        };
        wait_until_seen(LIMIT, "a million packets", sent)?;
        let shown = router.cli("show runtime")?;
        for node in ["pg-input", "ip4-lookup", "ip4-rewrite", "pg1-tx"] {
            ensure!(shown.contains(node), "{node}: {shown}");
        }
        // None was lost on the way.
        ensure!(router.interface_counter("pg0", "drops")? == 0);
        router.stop().map(drop)
    }

    fn bgp_edge() {
        let lab = Lab::new()?;
        let dir = tempfile::tempdir()?;
        rename(&lab.router, "eth0", "ix")?;
        rename(&lab.router, "eth1", "core")?;
        let peer = &lab.left.ns;
        address(peer, "198.51.100.10/24", None)?;
        let plane = Netns::new("dataplane")?;
        plane.ip("link set lo up")?;
        let name = plane.descriptor_path().display().to_string();
        let router = start_with(&lab.router, "bgp-edge", dir.path(), |text| {
            text.replace("netns: dataplane", &format!("netns: {name}"))
        })?;
        let ours = Bird::start(&plane, &fs::read_to_string(examples().join("bgp-edge/bird.conf"))?)?;
        let theirs = Bird::start(peer, "log stderr all;
            router id 198.51.100.10;
            protocol device { }
            protocol bgp edge {
              local 198.51.100.10 as 65010;
              neighbor 198.51.100.1 as 65001;
              ttl security on;
              ipv4 { import all; export none; };
            }")?;
        wait_until_seen(LIMIT, "the session", || {
            let shown = ours.birdc("show protocols peer1")?;
            ensure!(shown.contains("Established"), "{shown}{}", ours.said());
            Ok(())
        })?;
        wait_until_seen(LIMIT, "the prefix", || {
            let shown = theirs.birdc("show route")?;
            ensure!(shown.contains("203.0.113.0/24"), "{shown}");
            Ok(())
        })?;
        let punted = router.cli("show punt")?;
        ensure!(punted.contains("bgp"), "{punted}");
        router.stop().map(drop)
    }
}
