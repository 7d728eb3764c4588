//! The sFlow agent: alone, and with collectors and settings that come and go.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddrV4;
use std::os::unix::fs::PermissionsExt;

use anyhow::{Context, Result, ensure};
use thalweg_sflow::{CounterRecord, DataSource, Datagram, Sample};
use thalweg_smoke::{Collector, Router, host_pair, thalweg};
use thalweg_testkit::{Flood, Lab, Netns, Running, Signal, WAIT_LIMIT, lab_test, wait_until_seen};

/// The names of interfaces and the number of host samples in a datagram.
fn counters(bytes: &[u8]) -> Result<(Vec<String>, usize)> {
    let (mut names, mut hosts) = (Vec::new(), 0);
    for sample in Datagram::parse(bytes)?.samples() {
        let Sample::Counters(sample) = sample? else { continue };
        hosts += usize::from(sample.source == DataSource::HOST);
        for record in sample.records {
            if let CounterRecord::PortName(port) = record? {
                names.push(port.name.to_str().into_owned());
            }
        }
    }
    Ok((names, hosts))
}

/// Index and address of the adapters that a datagram's host sample lists, if it has one.
fn adapters(bytes: &[u8]) -> Result<Option<Vec<(u32, String)>>> {
    for sample in Datagram::parse(bytes)?.samples() {
        let Sample::Counters(sample) = sample? else { continue };
        for record in sample.records {
            let CounterRecord::HostAdapters(all) = record? else { continue };
            let text = |mac: [u8; 6]| mac.map(|b| format!("{b:02x}")).join(":");
            return Ok(Some(all.0.iter().map(|a| (a.index, text(a.macs[0].0))).collect()));
        }
    }
    Ok(None)
}

/// The same as its network namespace has them. The files under /sys are those of another one.
fn adapters_of(ns: &Netns) -> Result<Vec<(u32, String)>> {
    let links = ns.links()?.into_iter().filter(|link| link.up && link.name != "lo");
    let mut all: Vec<_> = links.map(|link| (link.index, link.mac)).collect();
    all.sort_unstable();
    Ok(all)
}

fn await_stderr(agent: &mut Running, text: &str) -> Result<()> {
    agent.wait_for_output(WAIT_LIMIT, &format!("{text:?}"), |_, err| {
        err.contains(text).then_some(())
    })
}

lab_test! {
    /// `thalweg agent` next to a router without an agent of its own: counters by netlink, the
    /// host's by itself. The agent reads its file again, keeps the old one when there is a mistake,
    /// and ends when asked to.
    fn the_agent_runs_by_itself() {
        let lab = Lab::new()?;
        let collector = Collector::listen(&lab.router)?;
        let dir = tempfile::tempdir()?;
        // The agent reads it again as nobody.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
        let file = dir.path().join("hsflowd.conf");
        let conf = |extra: &str| {
            format!(
                "sflow {{\n  polling = 2 agentIP = 10.10.1.1\n  collector {{ ip = 127.0.0.1 }}\n  \
                 psample {{ group = 1 egress = on }}\n  vpp {{ osIndex = off }}\n  {extra}\n}}\n"
            )
        };
        fs::write(&file, conf("dbus { }"))?;
        let path = file.to_str().context("a path")?;
        let program = thalweg()?;
        let program = program.to_str().context("a path")?;
        let mut agent = lab.router.spawn(program, &["agent", "-f", path])?;
        await_stderr(&mut agent, "agent started")?;
        let said = agent.stderr();
        ensure!(said.contains("hsflowd.conf:6:3: dbus { } is not supported"), "{said}");
        await_stderr(&mut agent, "counters: listening")?;

        let router = Router::start(&lab.router, &host_pair().commands(
            "sflow netlink enable
             sflow polling-interval 1
             sflow enable host-eth0",
        ))?;
        let here = adapters_of(&lab.router)?;
        ensure!(here.len() >= 2, "{here:?}");
        let mut hosts = 0;
        let mut named = 0;
        let mut last: Option<u32> = None;
        collector.receive(WAIT_LIMIT, "counters of interface and host", |bytes| {
            let datagram = Datagram::parse(bytes)?;
            ensure!(datagram.agent == Some("10.10.1.1".parse()?), "{:?}", datagram.agent);
            ensure!(last.is_none_or(|last| datagram.sequence == last + 1), "{last:?}");
            last = Some(datagram.sequence);
            if let Some(listed) = adapters(bytes)? {
                // The router sets its own up as it begins.
                let known = listed.iter().all(|one| here.contains(one));
                ensure!(known && (hosts == 0 || listed == here), "{listed:?} of {here:?}");
            }
            let (names, host) = counters(bytes)?;
            ensure!(names.iter().all(|name| name == "host-eth0"), "{names:?}");
            named += names.len();
            hosts += host;
            Ok((named >= 2 && hosts >= 2).then_some(()))
        })?;

        fs::write(&file, conf("polling = 1000"))?;
        agent.signal(Signal::HUP)?;
        await_stderr(&mut agent, "`1000' is not a number from 0 to 300")?;
        fs::write(&file, conf("polling = 0"))?;
        agent.signal(Signal::HUP)?;
        await_stderr(&mut agent, "configuration reloaded")?;
        // The numbers go on.
        collector.receive(WAIT_LIMIT, "another datagram", |bytes| {
            let sequence = Datagram::parse(bytes)?.sequence;
            ensure!(last.is_none_or(|last| sequence > last), "{last:?}, then {sequence}");
            Ok(Some(()))
        })?;
        router.stop()?;
        let output = agent.stop(WAIT_LIMIT)?.success()?;
        ensure!(output.stderr.contains("agent stopped"), "{}", output.stderr);
        Ok(())
    }

    /// With `osIndex = on` an interface has the number that its twin has in Linux, and one without
    /// a twin its own above `ifOffset`; without any twin all have their own.
    fn interfaces_have_the_numbers_of_their_twins() {
        let lab = Lab::new()?;
        let collector = Collector::listen(&lab.router)?;
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("hsflowd.conf");
        fs::write(&file, "sflow {\n polling = 0 agentIP = 10.10.1.1\n collector { ip = 127.0.0.1 }\n \
                          psample { group = 1 egress = on }\n vpp { osIndex = on }\n}\n")?;
        // Links that take the numbers of the router's interfaces.
        let links = ["link", "add", "one", "type", "veth", "peer", "name", "two"];
        lab.router.command("ip").args(links).run()?.success()?;
        let mut agent = lab.router.command(thalweg()?).args(["agent", "-f"]).arg(&file).spawn()?;
        await_stderr(&mut agent, "counters: listening")?;
        let router = Router::start(&lab.router, &host_pair().commands(
            "lcp create host-eth0 host-if twin0
             sflow netlink enable
             sflow polling-interval 1
             sflow enable host-eth0
             sflow enable host-eth1",
        ))?;
        let own = |name: &str| -> Result<u32> {
            let shown = router.json(&format!("show interface {name}"))?;
            Ok(u32::try_from(shown[0]["index"].as_u64().context("a number")?)?)
        };
        let numbered = |wanted: [(&str, u32); 2]| {
            let mut seen = HashMap::new();
            collector.receive(WAIT_LIMIT, format!("{wanted:?}"), |bytes| {
                for sample in Datagram::parse(bytes)?.samples() {
                    let Sample::Counters(sample) = sample? else { continue };
                    for record in sample.records {
                        if let CounterRecord::PortName(port) = record? {
                            seen.insert(port.name.to_str().into_owned(), sample.source);
                        }
                    }
                }
                let is = |(name, n): &(&str, u32)| seen.get(*name) == Some(&DataSource::interface(*n));
                Ok(wanted.iter().all(is).then_some(()))
            })
        };
        let twin = lab.router.link("twin0")?.index;
        let (first, second) = (own("host-eth0")?, own("host-eth1")?);
        ensure!(![first, second].contains(&twin), "{twin}, {first} and {second} must differ");
        numbered([("host-eth0", twin), ("host-eth1", second + 1_000_000_000)])?;
        router.cli("lcp delete host-eth0")?;
        numbered([("host-eth0", first), ("host-eth1", second)])?;
        router.stop()?;
        agent.stop(WAIT_LIMIT)?.success().map(drop)
    }

    /// A mistake in the file is reported with its place.
    fn the_agent_says_what_is_wrong_with_its_file() {
        let lab = Lab::new()?;
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("hsflowd.conf");
        fs::write(&file, "sflow {\n  colector { ip = 127.0.0.1 }\n}\n")?;
        let program = thalweg()?;
        let output = lab.router.command(&program).args(["agent", "-t", "-f"]).arg(&file).run()?;
        ensure!(output.status.code() == Some(2), "{output:?}");
        let expected = "hsflowd.conf:2:3: unknown keyword `colector'; expected one of polling, sampling";
        ensure!(output.stderr.contains(expected), "{}", output.stderr);
        Ok(())
    }

    /// A collector in a namespace of its own, which goes and comes again, and one that is not
    /// there: the third gets every datagram.
    fn collectors_come_and_go_with_their_namespaces() {
        let lab = Lab::new()?;
        let collector = Collector::listen(&lab.router)?;
        let name = format!("thalweg-c{}", std::process::id());
        let elsewhere = Netns::named(&name)?;
        let far = Collector::listen(&elsewhere)?;
        let router = Router::start(&lab.router, &host_pair().commands(&format!(
            "sflow collector add 127.0.0.1 namespace {name}
             sflow collector add 127.0.0.1 namespace no-such-namespace
             sflow collector add 127.0.0.1 port 9
             sflow collector add 127.0.0.1
             sflow agent-address 10.10.1.1
             sflow polling-interval 1
             sflow enable host-eth0"
        )))?;
        let counted = |far: &Collector| {
            far.receive(WAIT_LIMIT, "counters in the namespace", |bytes| {
                Ok(counters(bytes)?.0.contains(&"host-eth0".to_owned()).then_some(()))
            })
        };
        counted(&far)?;
        drop(far);
        elsewhere.remove();
        wait_until_seen(WAIT_LIMIT, "the namespace to be missed", || {
            let shown = router.cli("show sflow").map_err(|e| format!("{e:#}"))?;
            let gone = shown.lines().any(|l| l.contains(&name) && l.contains("latest:"));
            if gone { Ok(()) } else { Err(shown) }
        })?;
        let elsewhere = Netns::named(&name)?;
        let far = Collector::listen(&elsewhere)?;
        counted(&far)?;
        let shown = router.cli("show sflow")?;
        ensure!(shown.contains("there is no /var/run/netns/no-such-namespace"), "{shown}");
        let mut last = 0;
        collector.receive(WAIT_LIMIT, "every datagram", |bytes| {
            let sequence = Datagram::parse(bytes)?.sequence;
            ensure!(sequence == last + 1, "{last}, then {sequence}");
            last = sequence;
            Ok((last >= 4).then_some(()))
        })?;
        router.stop().map(drop)
    }

    /// Everything is changed again and again while packets pour in, by hand and by hundreds: no
    /// number of a datagram or of a sample is left out or used twice, pools never go back, and what
    /// was sampled is sent.
    fn settings_change_under_load() {
        let lab = Lab::new()?;
        let collector = Collector::listen(&lab.router)?;
        let router = Router::start(&lab.router, &host_pair().commands(
            "sflow collector add 127.0.0.1
             sflow agent-address 10.10.1.1
             sflow polling-interval 1
             sflow sampling-rate 500
             sflow enable host-eth0",
        ))?;
        lab.ping_all()?;
        let to = SocketAddrV4::new(lab.right.addr, 9);
        let flood = Flood::start(&lab.left.ns, to, 64, None)?;
        let mut seen = Seen::default();
        for round in 0..40 {
            // Low enough for hundreds of samples also where the machine is busy with other things.
            let rate = [500, 200, 1000, 300][round % 4];
            for command in [
                format!("sflow sampling-rate {rate}"),
                format!("sflow header-bytes {}", 64 + 32 * (round % 3)),
                format!("sflow collector add 192.0.2.{}", round + 1),
                format!("sflow direction {}", ["both", "rx"][round % 2]),
                format!("sflow enable host-eth0 rate {}", rate * 2),
                "sflow enable host-eth0 disable".to_owned(),
                "sflow enable host-eth0".to_owned(),
                format!("sflow datagram-bytes {}", 1400 - 100 * (round % 2)),
                format!("sflow collector del 192.0.2.{}", round + 1),
            ] {
                router.cli(&command)?;
                seen.take_all(&collector)?;
            }
        }
        let flows = |least: u64| move |seen: &Seen| seen.flows >= least;
        seen.take_until(&collector, "a hundred samples", flows(100))?;
        let file = router.dir().join("changes.vpp");
        fs::write(&file, changes(100))?;
        for _ in 0..5 {
            router.cli(&format!("exec {}", file.display()))?;
            seen.take_all(&collector)?;
        }
        // The last of them leaves it at packets that are sent, of which there are hardly any.
        router.cli("sflow direction both")?;
        let more = seen.flows + 100;
        seen.take_until(&collector, "another hundred samples", flows(more))?;
        seen.take_until(&collector, "three samples of counters", |seen| seen.counters > 2)?;
        flood.stop()?;
        // The router may still have some of the flood to process: all three agree at last.
        wait_until_seen(WAIT_LIMIT, "all that was sampled to be sent and to come", || {
            let shown = router.json("show sflow").map_err(|e| format!("{e:#}"))?;
            seen.take_all(&collector).map_err(|e| format!("{e:#}"))?;
            let [taken, sent] = ["taken", "sent"].map(|name| shown["samples"][name].as_u64());
            let same = taken == sent && sent == Some(seen.flows);
            if same { Ok(()) } else { Err(format!("{} came of {}", seen.flows, shown["samples"])) }
        })?;
        ensure!(seen.counters > 2, "only {} counter samples came", seen.counters);
        router.stop_busy().map(drop)
    }
}

/// Nine changes, each N times, that leave one collector and interface as they were.
fn changes(times: u32) -> String {
    (0..times)
        .map(|n| {
            format!(
                "sflow sampling-rate {rate}\nsflow enable host-eth0 rate {own}\n\
                 sflow header-bytes {bytes}\nsflow direction {direction}\n\
                 sflow enable host-eth1 rate {own}\nsflow polling-interval {poll}\n\
                 sflow enable host-eth0 disable\nsflow enable host-eth1 disable\n\
                 sflow enable host-eth0\n",
                rate = 300 + n,
                own = 400 + n,
                bytes = 64 + 32 * (n % 6),
                direction = ["tx", "both", "rx"][n as usize % 3],
                poll = 1 + n % 3,
            )
        })
        .collect()
}

/// Numbers as they should go on.
#[derive(Default)]
pub(crate) struct Seen {
    datagram: Option<u32>,
    /// Samples by kind and source.
    pub(crate) samples: HashMap<(u8, DataSource), u32>,
    pub(crate) pools: HashMap<DataSource, u32>,
    pub(crate) flows: u64,
    pub(crate) counters: u64,
    /// The agent's clock when it sent the latest datagram.
    pub(crate) uptime_ms: u64,
    /// All datagrams, if they are wanted.
    pub(crate) kept: Option<Vec<Vec<u8>>>,
}

impl Seen {
    /// Takes what has come so far.
    pub(crate) fn take_all(&mut self, collector: &Collector) -> Result<()> {
        collector.take_all(|datagram| self.take(&datagram))
    }

    /// Takes what comes until `done`.
    pub(crate) fn take_until(
        &mut self,
        collector: &Collector,
        what: &str,
        done: impl Fn(&Seen) -> bool,
    ) -> Result<()> {
        if done(self) {
            return Ok(());
        }
        let taken = collector.receive(WAIT_LIMIT, what, |datagram| {
            self.take(datagram)?;
            Ok(done(self).then_some(()))
        });
        taken.with_context(|| format!("{} samples, {} of counters", self.flows, self.counters))
    }

    /// Takes one datagram.
    fn take(&mut self, bytes: &[u8]) -> Result<()> {
        let datagram = Datagram::parse(bytes)?;
        if let Some(kept) = &mut self.kept {
            kept.push(bytes.to_vec());
        }
        let number = datagram.sequence;
        ensure!(self.datagram.is_none_or(|n| number == n + 1), "{:?}, {number}", self.datagram);
        self.datagram = Some(number);
        self.uptime_ms = datagram.uptime_ms.into();
        for sample in datagram.samples() {
            let (kind, source, number) = match sample? {
                Sample::Flow(s) => {
                    self.flows += 1;
                    let pool = self.pools.insert(s.source, s.pool).unwrap_or(s.pool);
                    ensure!(s.pool.wrapping_sub(pool) < 1 << 31, "{pool}, then {}", s.pool);
                    (0, s.source, s.sequence)
                }
                Sample::Counters(s) => {
                    self.counters += 1;
                    (1, s.source, s.sequence)
                }
                _ => continue,
            };
            let last = self.samples.insert((kind, source), number);
            ensure!(last.is_none_or(|n| number == n + 1), "{kind} {source}: {last:?}, {number}");
        }
        datagram.check_end()?;
        Ok(())
    }
}
