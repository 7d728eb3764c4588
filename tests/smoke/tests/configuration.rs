//! The configuration as one document: applied, saved, come back after a kill.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use thalweg_smoke::{Config, RawLink, Router, host_pair, thalweg};
use thalweg_testkit::{Cmd, Lab, Netns, WAIT_LIMIT, lab_test, wait_until_seen};
use thalweg_wire::build::Packet;

/// Everything that says what a router is, without counters and times.
const SHOWS: &[&str] = &[
    "show configuration",
    "show interface address",
    "show ip fib",
    "show ip neighbors | grep static",
    "show interface rx-placement",
    "show sflow | grep sampling-rate",
    "show interface | grep -i mtu",
];

fn shown(router: &Router) -> Result<String> {
    let mut text = String::new();
    for command in SHOWS {
        text += &format!("> {command}\n");
        // Entries are numbered as they come and go.
        for line in router.cli(command)?.lines() {
            let words = line.split(' ').filter(|w| !w.starts_with("index:"));
            text += &(words.collect::<Vec<_>>().join(" ") + "\n");
        }
    }
    Ok(text)
}

fn document(name: &str, router: &Router, text: &str) -> Result<String> {
    let file = router.dir().join(name);
    fs::write(&file, text)?;
    Ok(file.display().to_string())
}

/// UDP datagrams that a host was sent, to whatever port.
fn datagrams(ns: &Netns) -> Result<u64> {
    let text = ns.command("cat").arg("/proc/net/snmp").run()?.stdout;
    let mut lines = text.lines().filter_map(|l| l.strip_prefix("Udp: "));
    let (names, values) = (lines.next().context("names")?, lines.next().context("values")?);
    let all = names.split(' ').zip(values.split(' '));
    let counted = all.filter(|(name, _)| matches!(*name, "InDatagrams" | "NoPorts"));
    counted.map(|(_, value)| Ok(value.parse::<u64>()?)).sum()
}

/// Datagrams from left to right, some ten thousand per second.
struct Stream {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<Result<u64>>,
}

impl Stream {
    fn start(lab: &Lab, router: &Router) -> Result<Stream> {
        let link = RawLink::open(&lab.left.ns, "eth0")?;
        let (from, to) = (lab.left.mac.parse()?, router.mac("host-eth0")?);
        let frame = Packet::new().ether(from, to).ipv4(lab.left.addr, lab.right.addr);
        let frame = frame.udp(4000, 4000).payload(&[7; 64]).build();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let (began, mut sent) = (Instant::now(), 0_u64);
            while !stopped.load(Ordering::Relaxed) {
                // Send as many as are due: a pause of the scheduler is followed by small bursts.
                let due = began.elapsed().as_micros() as u64 / 100;
                for _ in 0..due.saturating_sub(sent).min(32) {
                    link.send(&frame)?;
                    sent += 1;
                }
                // Paced: 10,000 packets per second.
                thread::sleep(Duration::from_micros(200));
            }
            Ok(sent)
        });
        Ok(Stream { stop, thread })
    }

    fn stop(self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow::anyhow!("the sender panicked"))?
    }
}

const PAIR: &str = "
interfaces:
  host-eth0: {mtu: 1500, addresses: [10.10.1.1/24]}
  host-eth1: {mtu: 1500, addresses: [10.10.2.1/24]}
";

lab_test! {
    /// One file makes a router that forwards; another makes it a cross connect and back.
    fn a_document_makes_a_router() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &Config::empty())?;
        let pair = document("pair.yaml", &router, PAIR)?;
        let plan = router.cli(&format!("config plan {pair}"))?;
        let commands: Vec<&str> = plan.lines().filter(|l| !l.starts_with("comment")).collect();
        ensure!(
            commands == [
                "create host-interface name eth0",
                "create host-interface name eth1",
                "set interface mtu 1500 host-eth0",
                "set interface mtu 1500 host-eth1",
                "set interface ip address host-eth0 10.10.1.1/24",
                "set interface ip address host-eth1 10.10.2.1/24",
                "set interface state host-eth0 up",
                "set interface state host-eth1 up",
            ],
            "{plan}"
        );
        router.cli(&format!("config apply {pair}"))?;
        lab.ping_all()?;
        let again = router.cli(&format!("config plan {pair}"))?;
        ensure!(again.trim().is_empty(), "{again}");
        // Settings of a device's commands are dumped, and come back.
        lab.router.set_sysctl("net/ipv6/conf/default/disable_ipv6", "0")?;
        router.cli(
            "set interface rx-mode host-eth0 polling
             set host-interface qdisc-bypass host-eth1 disable
             set interface mtu packet 1400 host-eth1
             delete host-interface name eth0
             create host-interface v3 name eth0 num-rx-queues 2 rx-size 4096 checksum-offload-disable
             set interface rx-mode host-eth0 queue 1 interrupt
             set interface rx-placement host-eth0 queue 1 worker 0
             create tap id 1
             delete tap tap1
             create tap id 7 num-rx-queues 2 rx-ring-size 512 tx-ring-size 1024 \
             host-if-name lan7 host-mac-addr 02:00:00:00:00:77 host-mtu-size 1400 \
             host-ip4-addr 10.77.0.2/24 host-ip6-addr fd77::2/64 gso gro-coalesce csum-offload \
             packed in-order consistent-qp
             create tap id 8 if-name ppp8 tun host-if-name ppp8
             lcp create host-eth1 host-if e1
             lcp create host-eth0 host-if e0
             lcp delete host-eth0"
        )?;
        let text = router.cli("show configuration")?;
        for line in ["qdisc-bypass: false", "version: v3", "rx-queues: 2", "rx-size: 4096",
                     "checksum-offload: false", "link-mtu: 1500", "mtu: 1400",
                     "rx-placement:", "name: lan7", "02:00:00:00:00:77", "gro-coalesce: true",
                     "host-ip6-address: fd77::2/64", "consistent-qp: true", "ppp8:", "tun: true", "lcp: e1"] {
            ensure!(text.contains(line), "{line} is missing in {text}");
        }
        let dumped = document("dumped.yaml", &router, &text)?;
        router.cli(&format!("config apply {pair}"))?;
        lab.ping_all()?;
        router.cli(&format!("config apply {dumped}"))?;
        ensure!(router.cli("show configuration")? == text);
        router.stop().map(drop)
    }

    /// Typed, saved, killed, started: the same router.
    fn what_was_saved_outlives_a_kill() {
        let lab = Lab::new()?;
        let keep = tempfile::tempdir()?;
        let file = keep.path().join("thalweg.yaml");
        let config = Config::empty().keeps(&file);
        let mut router = Router::start(&lab.router, &config)?;
        for command in &host_pair().commands {
            router.cli(command)?;
        }
        router.cli(
            "create loopback interface instance 5
             set interface ip address loop5 10.255.0.1/32
             set interface state loop5 up
             ip route add 10.20.0.0/16 via 10.10.2.2
             ip route add 10.30.0.0/16 via 10.10.1.2 host-eth0 weight 2 via 10.10.2.2 host-eth1
             set ip neighbor host-eth1 10.10.2.77 02:00:00:00:00:77 static
             sflow sampling-rate 200
             sflow enable-disable host-eth0
             sflow collector add 127.0.0.1 port 16343
             delete loopback interface intfc loop5
             create packet-generator interface pg3
             create loopback interface instance 6
             config save"
        )?;
        router.cli("set interface state host-eth1 down")?;
        let differs = router.cli("config diff")?;
        ensure!(differs.contains("+ interfaces.host-eth1.state: down"), "{differs}");
        router.cli("config rollback 0")?;
        ensure!(router.cli("config diff")?.is_empty());
        // The router asks for next hops by itself, if their link is up by then.
        let hops = |router: &Router| {
            router.cli("ping 10.10.1.2 repeat 1\nping 10.10.2.2 repeat 1")?;
            wait_until_seen(WAIT_LIMIT, "both next hops", || {
                let seen = router.cli("show ip neighbors").map_err(|error| error.to_string())?;
                let known = ["10.10.1.2", "10.10.2.2"].iter().all(|hop| seen.contains(*hop));
                if known { Ok(()) } else { Err(seen) }
            })
        };
        hops(&router)?;
        let before = shown(&router)?;
        router.kill_and_start(&config)?;
        hops(&router)?;
        let after = shown(&router)?;
        ensure!(before == after, "before:\n{before}\nafter:\n{after}");
        lab.ping_all()?;
        router.stop().map(drop)
    }

    /// A mistake in the document costs itself alone, and is reported with its place; with
    /// `--strict` nothing starts.
    fn a_mistake_in_the_document_is_told_at_the_start() {
        let lab = Lab::new()?;
        let keep = tempfile::tempdir()?;
        let file = keep.path().join("thalweg.yaml");
        let wrong = PAIR.replacen("mtu:", "mut:", 1);
        ensure!(wrong != PAIR, "{PAIR}");
        fs::write(&file, &wrong)?;
        let router = Router::start(&lab.router, &Config::empty().keeps(&file))?;
        lab.ping_all()?;
        router.await_log(".mut: unknown key; did you mean `mtu'? (line ")?;
        let kept = router.cli("show configuration unresolved")?;
        ensure!(kept.contains(".mut: failed: unknown key"), "{kept}");
        router.stop()?;
        let strict = Cmd::new(thalweg()?).args(["run", "--strict", "--config"]).arg(&file).run()?;
        ensure!(strict.status.code() == Some(2), "{}: {}", strict.status, strict.stderr);
        ensure!(strict.stderr.contains("thalweg.yaml:"), "{}", strict.stderr);
        ensure!(strict.stderr.contains(".mut: unknown key; did you mean `mtu'?"), "{}", strict.stderr);
        Ok(())
    }

    /// The router starts with what was saved last in place of a file that is no document, and says
    /// so; the file stays to be edited.
    fn a_file_that_is_no_document_gives_way_to_what_was_saved() {
        let lab = Lab::new()?;
        let keep = tempfile::tempdir()?;
        let file = keep.path().join("thalweg.yaml");
        fs::write(&file, "interfaces: [")?;
        let refused = Cmd::new(thalweg()?).args(["run", "--config"]).arg(&file).run()?;
        ensure!(refused.status.code() == Some(2), "nothing was saved: {refused:?}");
        fs::write(&file, PAIR)?;
        let router = Router::start(&lab.router, &Config::empty().keeps(&file))?;
        router.cli("config commit")?;
        router.stop()?;
        let wrong = format!("{PAIR}interfaces: [");
        fs::write(&file, &wrong)?;
        let router = Router::start(&lab.router, &Config::empty().keeps(&file))?;
        lab.ping_all()?;
        router.await_log("The router starts with")?;
        router.await_log(".revisions/")?;
        ensure!(fs::read_to_string(&file)? == wrong, "the file has changed");
        router.stop().map(drop)
    }

    /// A device that is not there when the router starts costs itself alone. Its part of the
    /// document is saved with the rest, and applied when the device comes.
    fn a_lost_device_does_not_keep_the_router_from_starting() {
        let lab = Lab::new()?;
        let keep = tempfile::tempdir()?;
        let file = keep.path().join("thalweg.yaml");
        let lost = "  host-gone: {mtu: 1500, addresses: [10.10.3.1/24]}\n";
        fs::write(&file, format!("{PAIR}{lost}"))?;
        let router = Router::start(&lab.router, &Config::empty().keeps(&file))?;
        lab.ping_all()?;
        router.await_log("interfaces.host-gone: `create host-interface name gone' failed")?;
        let log = router.log();
        ensure!(!log.contains("10.10.3.1/24' failed"), "{log}");
        router.cli("config commit")?;
        let saved = fs::read_to_string(&file)?;
        ensure!(saved.contains("host-gone") && saved.contains("10.10.3.1/24"), "{saved}");
        lab.router.ip("link add gone type veth peer name gone1")?;
        wait_until_seen(WAIT_LIMIT, "the address of the device that came", || {
            let text = router.cli("show interface address").map_err(|e| format!("{e:#}"))?;
            if text.contains("10.10.3.1/24") { Ok(()) } else { Err(text) }
        })?;
        wait_until_seen(WAIT_LIMIT, "nothing to be left", || {
            let text = router.cli("show configuration unresolved").map_err(|e| format!("{e:#}"))?;
            if text.contains("all of the configuration") { Ok(()) } else { Err(text) }
        })?;
        // Its index is another one than it would have had, and nothing that was saved.
        let differs = router.cli("config diff")?;
        ensure!(differs.is_empty(), "{differs}");
        let planned = router.cli("config plan")?;
        ensure!(planned.trim().is_empty(), "{planned}");
        router.stop().map(drop)
    }

    /// A namespace that comes later completes the TAP that waits for it, and what needs that, by
    /// event.
    fn a_namespace_that_comes_completes_what_waits_for_it() {
        let lab = Lab::new()?;
        let keep = tempfile::tempdir()?;
        let file = keep.path().join("thalweg.yaml");
        let name = format!("late-{}", std::process::id());
        let taps = format!(
            "taps: {{tap3: {{host: {{name: far, namespace: {name}}}}}}}\n\
             thalweg: {{interfaces: {{tap3: {{addresses: [10.10.3.1/24]}}}}}}\n"
        );
        fs::write(&file, taps)?;
        let router = Router::start(&lab.router, &Config::empty().keeps(&file))?;
        let waits = router.json("show configuration unresolved")?;
        ensure!(waits[0]["state"] == "unresolved", "{waits}");
        ensure!(waits[0]["waits-for"] == format!("network namespace {name}"), "{waits}");
        let late = Netns::named(&name)?;
        router.await_log(&format!("network namespace {name} is there"))?;
        wait_until_seen(WAIT_LIMIT, "nothing to be left", || {
            let text = router.cli("show configuration unresolved").map_err(|e| format!("{e:#}"))?;
            if text.contains("all of the configuration") { Ok(()) } else { Err(text) }
        })?;
        ensure!(router.cli("show interface address")?.contains("10.10.3.1/24"));
        late.ip("link show dev far")?;
        router.stop().map(drop)
    }

    /// `thalweg config` applies all of a document or, if asked, what is possible; it compares with
    /// what was saved before.
    fn the_program_applies_what_it_can_and_compares_revisions() {
        let lab = Lab::new()?;
        let keep = tempfile::tempdir()?;
        let file = keep.path().join("thalweg.yaml");
        let router = Router::start(&lab.router, &Config::empty().keeps(&file))?;
        let config = |words: &[&str]| {
            Cmd::new(thalweg()?).arg("config").args(words).arg("-s").arg(router.socket()).run()
        };
        let lost = format!("{PAIR}  host-gone: {{mtu: 1500}}\n");
        let lost = document("lost.yaml", &router, &lost)?;
        let all = config(&["apply", &lost])?;
        ensure!(!all.status.success() && all.stdout.contains("gone"), "{all:?}");
        let left = router.cli("show interface")?;
        ensure!(!left.contains("host-eth0"), "{left}");
        let some = config(&["apply", "--best-effort", &lost])?;
        ensure!(some.status.success(), "{some:?}");
        lab.ping_all()?;
        let kept = router.cli("show configuration unresolved")?;
        ensure!(kept.contains("host-gone"), "{kept}");

        router.cli("config commit\nset interface state host-eth1 down\nconfig commit")?;
        let same = config(&["diff"])?;
        ensure!(same.status.success() && same.stdout.is_empty(), "{same:?}");
        let differs = config(&["diff", "--rollback", "1"])?;
        let down = "+ interfaces.host-eth1.state: down";
        ensure!(differs.status.success() && differs.stdout.contains(down), "{differs:?}");
        router.stop().map(drop)
    }

    /// A configuration that cuts off its user is taken back automatically.
    fn what_nobody_confirms_is_taken_back() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &Config::empty())?;
        let pair = document("pair.yaml", &router, PAIR)?;
        router.cli(&format!("config apply {pair}"))?;
        lab.ping_all()?;
        let cut = document("cut.yaml", &router, "interfaces: {host-eth0: {mtu: 1500}}\n")?;
        router.cli(&format!("config apply {cut} confirm 1"))?;
        ensure!(!router.cli("show interface")?.contains("host-eth1"));
        wait_until_seen(WAIT_LIMIT, "the configuration to return", || {
            let text = router.cli("show configuration").map_err(|e| format!("{e:#}"))?;
            if text.contains("10.10.2.1/24") { Ok(()) } else { Err(text) }
        })?;
        lab.ping_all()?;
        router.stop().map(drop)
    }

    /// A change during a flow costs the flow nothing: what is sent arrives, all of it.
    fn applying_loses_nothing_of_others() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        lab.ping_all()?;
        let base = router.cli("show configuration")?;
        let more = format!(
            "{base}
loopbacks:
  loop1: {{addresses: [10.77.1.1/24], mtu: 1500}}
  loop2: {{addresses: [10.77.2.1/24], mtu: 1500}}
"
        );
        let routes: String =
            (0..200).map(|i| format!("        10.88.{i}.0/24: 10.77.1.9 loop1\n")).collect();
        let more = format!("{more}thalweg:\n  ip-tables:\n    0:\n      routes:\n{routes}");
        ensure!(!base.contains("thalweg:"), "{base}");
        let (base, more) =
            (document("base.yaml", &router, &base)?, document("more.yaml", &router, &more)?);
        let before = datagrams(&lab.right.ns)?;
        let flow = Stream::start(&lab, &router)?;
        let end = Instant::now() + Duration::from_secs(4);
        let mut applied = 0;
        while Instant::now() < end {
            for file in [&more, &base] {
                router.cli(&format!("config apply {file}"))?;
                applied += 1;
            }
        }
        let sent = flow.stop()?;
        ensure!(sent > 5_000, "only {sent} packets were sent");
        router.await_rest()?;
        let received = datagrams(&lab.right.ns)? - before;
        ensure!(sent == received, "{received} of {sent} packets arrived in {applied} changes");
        eprintln!("{sent} packets, {applied} changes of 200 routes, no loss");
        router.stop().map(drop)
    }
}
