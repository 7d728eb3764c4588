//! The guest's part: the first process of a machine that has nothing else, and the scenarios.

use crate::kept::kept;
use crate::lsps::lsps;
use crate::twins::twins;
use crate::vlans::vlans;
use crate::{FAILED, MODULES, MODULES_DIR, PASSED};
use anyhow::{Context, Result, ensure};
use rustix::fs::{Mode, OFlags, open};
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, finit_module, reboot};
use serde_json::Value;
use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use thalweg_sflow::{DataSource, Datagram, Interface, Sample};
use thalweg_testkit::{Cmd, Running, wait_for_unix_socket, wait_until_seen};

/// Emulated processors take their time.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);
const SOCKET: &str = "/run/cli.sock";
/// Packets of a stream, fewer than samples that wait have room for, and one of how many is sampled.
const PACKETS: u64 = 20_000;
const RATE: u64 = 10;
/// Bytes that the collector's socket holds.
const ROOM: usize = 8 << 20;
/// The agent's arguments.
const HSFLOWD_CONF: &str = "sflow {
  polling = 5 agentIP = 127.0.0.1 collector { ip = 127.0.0.1 }
  psample { group = 1 egress = on } vpp { osIndex = off }
}
";
/// Flag for the module's loader: the file is compressed.
const COMPRESSED: u32 = 4;

/// The first process must not end: it restarts the machine, which ends it.
pub(crate) fn main() -> ExitCode {
    let outcome = std::panic::catch_unwind(|| {
        prepare()?;
        let begin = Instant::now();
        let mut machine = Machine::start()?;
        machine.without_modules()?;
        machine.router_samples()?;
        machine.counters()?;
        machine.reconfigured()?;
        machine.agent()?;
        machine.router_drops()?;
        machine.kernel_samples()?;
        vlans()?;
        twins()?;
        kept()?;
        lsps()?;
        machine.end()?;
        kernel_drops()?;
        crate::labels::kernel_router()?;
        println!("  all of it in {:.1?}", begin.elapsed());
        anyhow::Ok(())
    });
    match outcome {
        Ok(Ok(())) => println!("{PASSED}"),
        Ok(Err(error)) => println!("{error:#}\n{FAILED}"),
        Err(_) => println!("{FAILED}"),
    }
    rustix::fs::sync();
    // The machine must not start again.
    let _ = reboot(RebootCommand::Restart);
    ExitCode::FAILURE
}

fn prepare() -> Result<()> {
    for (kind, at) in
        [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp")]
    {
        let none: Option<&std::ffi::CStr> = None;
        mount(kind, at, kind, MountFlags::empty(), none).with_context(|| format!("mount {at}"))?;
    }
    run("ip link set lo up")?;
    println!("  kernel {}", fs::read_to_string("/proc/sys/kernel/osrelease")?.trim());
    Ok(())
}

fn load_modules() -> Result<()> {
    for name in MODULES {
        let file = |rest: &str| format!("{MODULES_DIR}/{name}.ko{rest}");
        let Some(rest) = ["", ".xz", ".zst"].into_iter().find(|r| Path::new(&file(r)).exists())
        else {
            continue;
        };
        let fd = open(file(rest), OFlags::RDONLY, Mode::empty())?;
        let flags = if rest.is_empty() { 0 } else { COMPRESSED as _ };
        finit_module(fd, c"", flags).with_context(|| format!("load module {name}"))?;
    }
    Ok(())
}

/// Runs a command line of words without quotes.
pub(crate) fn run(line: &str) -> Result<String> {
    let mut words = line.split_whitespace();
    let program = Path::new("/bin").join(words.next().unwrap_or_default());
    Cmd::new(program).args(words).output()
}

pub(crate) fn cli(line: &str) -> Result<String> {
    Cmd::new("/bin/thalctl").args(["-s", SOCKET, line]).output()
}

/// Returns the messages that a monitor has printed.
fn messages(monitor: &Running) -> Vec<Value> {
    // The last line may be incomplete.
    monitor.stdout().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn of_type<'m>(all: &'m [Value], kind: &str) -> Vec<&'m Value> {
    all.iter().filter(|m| m["type"] == kind).collect()
}

fn notice(monitor: &mut Running, what: &str) -> Result<()> {
    monitor.wait_for_output(LIMIT, what, |_, err| err.contains(what).then_some(()))
}

pub(crate) fn passed(what: &str) {
    println!("  ok: {what}");
}

/// Flow samples of pg0 in a datagram.
fn flow_samples(datagram: &[u8]) -> Result<u64> {
    let mut count = 0;
    for sample in Datagram::parse(datagram)?.samples() {
        if let Sample::Flow(sample) = sample? {
            let as_sent = sample.source == DataSource::interface(1)
                && u64::from(sample.rate) == RATE
                && sample.input == Interface::Index(1);
            ensure!(as_sent, "source {:?}, rate {}", sample.source, sample.rate);
            count += 1;
        }
    }
    Ok(count)
}

/// A router, and a monitor that listens to it.
struct Machine {
    router: Running,
    monitor: Running,
}

impl Machine {
    fn start() -> Result<Machine> {
        let monitor = Cmd::new("/bin/thalweg").args(["sflow", "monitor", "--json"]).spawn()?;
        let stanzas = format!("unix {{ nodaemon runtime-dir /run cli-listen {SOCKET} }}");
        let router = Cmd::new("/bin/thalweg")
            .args(["run", &stanzas, "cpu { workers 1 }", "buffers { buffers-per-numa 4096 }"])
            .spawn()?;
        wait_for_unix_socket(Path::new(SOCKET), LIMIT)?;
        Ok(Machine { router, monitor })
    }

    fn messages(&self) -> Vec<Value> {
        messages(&self.monitor)
    }

    /// Returns the router's view of one channel.
    fn channel(&self, name: &str) -> Result<Value> {
        let shown: Value = serde_json::from_str(&cli("show sflow | json")?)?;
        Ok(shown["netlink"][name].clone())
    }

    /// Both ends say what is missing, and begin when it comes.
    fn without_modules(&mut self) -> Result<()> {
        for module in ["modprobe psample", "modprobe drop_monitor"] {
            notice(&mut self.monitor, module)?;
        }
        for line in [
            "create packet-generator interface pg0",
            "create packet-generator interface pg1",
            "set interface state pg0 up",
            "set interface state pg1 up",
            "set interface l2 xconnect pg0 pg1",
            "set interface l2 xconnect pg1 pg0",
            "sflow polling-interval 1",
            &format!("sflow sampling-rate {RATE}"),
            "sflow netlink enable",
            "sflow enable pg0",
        ] {
            cli(line)?;
        }
        wait_until_seen(LIMIT, "the router's word on modules", || {
            let shown = self.channel("psample").map_err(|e| format!("{e:#}"))?;
            let error = shown["error"].as_str().unwrap_or_default().to_owned();
            if error.contains("modprobe psample") { Ok(()) } else { Err(shown.to_string()) }
        })?;
        load_modules()?;
        for channel in ["psample: listening", "drops: listening"] {
            notice(&mut self.monitor, channel)?;
        }
        wait_until_seen(LIMIT, "the router to begin", || {
            let shown = self.channel("psample").map_err(|e| format!("{e:#}"))?;
            if shown["error"].is_null() && shown["listeners"] == 1 { Ok(()) } else { Err(shown) }
        })?;
        passed("missing modules are named, and used once they are loaded");
        Ok(())
    }

    fn stream(&self, name: &str) -> Result<()> {
        self.stream_of(name, PACKETS)
    }

    fn stream_of(&self, name: &str, packets: u64) -> Result<()> {
        cli(&format!(
            "packet-generator new {{ name {name} limit {packets} size 64-64 interface pg0 \
             node ethernet-input data {{ IP4: 0200.0000.0001 -> 0200.0000.0002 \
             UDP: 10.0.0.1 -> 10.0.0.2 UDP: 1111 -> 2222 incrementing 22 }} }}"
        ))?;
        cli(&format!("packet-generator enable-stream {name}"))?;
        Ok(())
    }

    /// Waits until all `PACKETS` were seen and what was taken was sent; returns that many samples.
    fn taken(&self, seen: u64) -> Result<u64> {
        wait_until_seen(LIMIT, "samples to be sent", || {
            let shown = cli("show sflow | json").map_err(|e| format!("{e:#}"))?;
            let shown: Value = serde_json::from_str(&shown).map_err(|e| e.to_string())?;
            let port = &shown["interfaces"][0];
            let all =
                port["pool"] == seen && port["samples"] == shown["netlink"]["psample"]["sent"];
            if all { Ok(port["samples"].as_u64().unwrap_or(0)) } else { Err(shown.to_string()) }
        })
    }

    /// Waits for this number of samples. On a busy host the monitor takes its time to print them,
    /// which is well as long as more and more come.
    fn await_samples(&self, count: u64) -> Result<()> {
        let printed = || {
            let text = self.monitor.stdout();
            text.lines().filter(|line| line.contains(r#""type":"sample""#)).count() as u64
        };
        let mut before = 0;
        while before < count {
            before = wait_until_seen(LIMIT, "more samples to be heard", || match printed() {
                more if more > before => Ok(more),
                heard => Err(format!("{heard} of {count}")),
            })?;
        }
        Ok(())
    }

    /// Waits for this number of the router's samples; checks that they say what they should.
    fn samples(&self, count: u64, rate: u64) -> Result<()> {
        self.await_samples(count)?;
        let heard = self.messages();
        let samples = of_type(&heard, "sample");
        ensure!(samples.len() as u64 == count, "{} samples, {count} were sent", samples.len());
        for (i, s) in samples.iter().enumerate() {
            let as_sent = s["group"] == 3
                && s["direction"] == "rx"
                && s["group_sequence"] == i + 1
                && s["lost"] == 0
                && s["input"] == 1
                && s["original_length"] == 64
                && s["packet"] == "10.0.0.1 port 1111 > 10.0.0.2 port 2222 udp ttl 64";
            ensure!(as_sent, "sample {}: {s}", i + 1);
        }
        let last = samples.last().context("no sample")?;
        ensure!(last["rate"] == rate, "the rate is {rate}: {last}");
        Ok(())
    }

    /// Checks that as many samples as were taken come in, whole, and about as many as the rate
    /// says.
    fn router_samples(&mut self) -> Result<()> {
        self.stream("first")?;
        let taken = self.taken(PACKETS)?;
        let usual = PACKETS / RATE;
        // Ten standard deviations of a uniform skip.
        ensure!(taken.abs_diff(usual) < usual / 5, "{taken} samples of {PACKETS} at 1:{RATE}");
        self.samples(taken, RATE)?;
        passed(&format!("{taken} samples of {PACKETS} packets, none lost on the way"));
        Ok(())
    }

    /// Counters and status arrive each second, with the same number of the interface.
    fn counters(&mut self) -> Result<()> {
        let port = wait_until_seen(LIMIT, "the counters of the stream", || {
            let all = self.messages();
            let done = of_type(&all, "counters").into_iter().find(|c| c["rx_packets"] == PACKETS);
            done.cloned().ok_or_else(|| of_type(&all, "counters").last().map(|c| c.to_string()))
        })?;
        let as_sent = port["name"] == "pg0"
            && port["index"] == 1
            && port["rx_octets"] == 64 * PACKETS
            && port["admin_up"] == true
            && port["oper_up"] == true
            && !port["os_index"].is_null()
            && !port["mac"].is_null();
        ensure!(as_sent, "counters: {port}");
        let all = wait_until_seen(LIMIT, "three words of life", || {
            let all = self.messages();
            let alive = of_type(&all, "status").len();
            if alive >= 3 { Ok(all) } else { Err(alive) }
        })?;
        let sequence = |m: &&Value| m["sequence"].as_u64();
        let own = all.iter().filter(|m| m["type"] == "status" || m["type"] == "counters");
        let numbers: Vec<u64> = own.filter_map(|m| sequence(&m)).collect();
        ensure!(numbers.windows(2).all(|w| w[1] == w[0] + 1), "numbers: {numbers:?}");
        let status = of_type(&all, "status");
        ensure!(status.iter().all(|s| s["drops"] == 0), "gaps count drops: {status:?}");
        passed("counters and status, numbered without a gap");
        Ok(())
    }

    /// Another rate while it runs: every packet, in samples that go on counting.
    fn reconfigured(&mut self) -> Result<()> {
        cli("packet-generator delete first")?;
        let before = self.taken(PACKETS)?;
        cli("sflow sampling-rate 1")?;
        self.stream("second")?;
        let taken = self.taken(2 * PACKETS)?;
        let lost = self.lost()?;
        ensure!(
            taken == before + PACKETS && lost == 0,
            "{taken} taken, {before} before: of {PACKETS} packets {lost} were lost on the way from worker \
             to service"
        );
        self.await_samples(taken)?;
        let all = self.messages();
        let samples = of_type(&all, "sample");
        let lost: u64 = samples.iter().filter_map(|s| s["lost"].as_u64()).sum();
        let heard = samples.len() as u64;
        self.nothing_lost("psample")?;
        ensure!((heard, lost) == (taken, 0), "{heard} heard of {taken}, {lost} reported as lost");
        passed(&format!("at 1:1, {PACKETS} samples of {PACKETS} packets, none lost anywhere"));
        Ok(())
    }

    /// Checks that no send of the router failed, and that listeners had room.
    fn nothing_lost(&self, channel: &str) -> Result<()> {
        let shown = self.channel(channel)?;
        let all_well = shown["failed"] == 0 && shown["lost_by_listeners"] == 0;
        ensure!(all_well, "{channel}: {shown}");
        Ok(())
    }

    /// The agent alone hears the same samples, and sends them as datagrams.
    fn agent(&mut self) -> Result<()> {
        // All datagrams come at once, and are read when there is time.
        fs::write("/proc/sys/net/core/rmem_max", ROOM.to_string())?;
        let collector = UdpSocket::bind("127.0.0.1:6343")?;
        collector.set_nonblocking(true)?;
        rustix::net::sockopt::set_socket_recv_buffer_size(&collector, ROOM)?;
        fs::write("/tmp/hsflowd.conf", HSFLOWD_CONF)?;
        // The machine has no other user.
        let mut agent =
            Cmd::new("/bin/thalweg").args(["agent", "-P", "-f", "/tmp/hsflowd.conf"]).spawn()?;
        agent.wait_for_output(LIMIT, "to listen", |out, err| {
            let said = |text: &str| out.contains(text) || err.contains(text);
            (said("psample: listening") && said("counters: listening")).then_some(())
        })?;
        cli("packet-generator delete second")?;
        cli(&format!("sflow sampling-rate {RATE}"))?;
        let before = self.taken(2 * PACKETS)?;
        self.stream("third")?;
        let taken = self.taken(3 * PACKETS)? - before;
        let (mut samples, mut buffer) = (0, [0; 65_536]);
        wait_until_seen(LIMIT, "the samples in datagrams", || {
            while let Ok(length) = collector.recv(&mut buffer) {
                samples += flow_samples(&buffer[..length]).map_err(|e| format!("{e:#}"))?;
            }
            if samples >= taken { Ok(()) } else { Err(format!("{samples} of {taken}")) }
        })?;
        ensure!(samples == taken, "{samples} samples in datagrams, {taken} were taken");
        agent.stop(LIMIT)?.success()?;
        passed(&format!("{samples} samples in datagrams of the agent by itself"));
        Ok(())
    }

    /// Packets that nobody takes, with the node that dropped them and its reason.
    fn router_drops(&mut self) -> Result<()> {
        const DROPPED: usize = 20;
        cli("packet-generator delete third")?;
        cli("sflow drop-monitoring enable limit 1000")?;
        // Frames at layer 3 must be for the interface's own address; these are not.
        cli("set interface l3 pg0")?;
        self.stream_of("fourth", DROPPED as u64)?;
        let drops = wait_until_seen(LIMIT, "the router's drops", || {
            let all = self.messages();
            let drops: Vec<Value> = of_type(&all, "drop").into_iter().cloned().collect();
            if drops.len() >= DROPPED { Ok(drops) } else { Err(drops.len()) }
        })?;
        ensure!(drops.len() == DROPPED, "{} drops, {DROPPED} were dropped", drops.len());
        for d in &drops {
            let trap = d["trap"].as_str().unwrap_or_default();
            let as_sent = d["input"] == 1
                && d["input_name"] == "pg0"
                && d["original_length"] == 64
                && d["trap_group"] == "vpp_ethernet-input"
                && trap.starts_with("vpp_")
                && trap.len() > 8
                && d["packet"] == "10.0.0.1 port 1111 > 10.0.0.2 port 2222 udp ttl 64";
            ensure!(as_sent, "a drop: {d}");
        }
        passed(&format!("{DROPPED} drops with their node and reason, {}", drops[0]["trap"]));
        cli("sflow drop-monitoring disable")?;
        cli("sflow enable-disable pg0 disable")?;
        Ok(())
    }

    fn lost(&self) -> Result<u64> {
        let shown: Value = serde_json::from_str(&cli("show sflow | json")?)?;
        Ok(shown["interfaces"][0]["drops"].as_u64().unwrap_or(0))
    }

    /// The kernel's own samples, of a known number of datagrams, in both directions.
    fn kernel_samples(&mut self) -> Result<()> {
        const DATAGRAMS: usize = 50;
        run("tc qdisc add dev lo clsact")?;
        run("tc filter add dev lo ingress matchall action sample rate 1 group 11")?;
        run("tc filter add dev lo egress matchall action sample rate 1 group 12")?;
        let receiver = UdpSocket::bind("127.0.0.1:7001")?;
        let sender = UdpSocket::bind("127.0.0.1:7002")?;
        for _ in 0..DATAGRAMS {
            sender.send_to(&[0; 100], receiver.local_addr()?)?;
        }
        let ours = |m: &Value| m["group"] == 11 || m["group"] == 12;
        let all = wait_until_seen(LIMIT, "the kernel's samples", || {
            let all = self.messages();
            let heard = all.iter().filter(|m| ours(m)).count();
            if heard >= 2 * DATAGRAMS { Ok(all) } else { Err(heard) }
        })?;
        for (group, name) in [(11, "input"), (12, "output")] {
            let of_group: Vec<&Value> = all.iter().filter(|m| m["group"] == group).collect();
            ensure!(of_group.len() == DATAGRAMS, "{} samples of group {group}", of_group.len());
            for s in of_group {
                let as_sent = s["rate"] == 1
                    && s[name] == 1
                    && s["original_length"] == 14 + 20 + 8 + 100
                    && s["packet"] == "127.0.0.1 port 7002 > 127.0.0.1 port 7001 udp ttl 64"
                    && s["lost"] == 0;
                ensure!(as_sent, "{s}");
            }
        }
        run("tc qdisc del dev lo clsact")?;
        passed(&format!("{} samples of the kernel's own", 2 * DATAGRAMS));
        Ok(())
    }

    fn end(self) -> Result<()> {
        let monitor = self.monitor.stop(LIMIT)?.success()?;
        ensure!(!monitor.stderr.contains("lost, since"), "{}", monitor.stderr);
        self.router.stop(LIMIT)?.success()?;
        passed("both ended without complaint");
        Ok(())
    }
}

/// The kernel's drop monitor, started and stopped by ours: datagrams that nobody takes.
fn kernel_drops() -> Result<()> {
    const DATAGRAMS: usize = 20;
    let mut monitor = Cmd::new("/bin/thalweg")
        .args(["sflow", "monitor", "--drops", "--kernel-drops", "--json"])
        .spawn()?;
    notice(&mut monitor, "drop monitor started")?;
    let sender = UdpSocket::bind("127.0.0.1:7002")?;
    let wanted = "127.0.0.1 port 7002 > 127.0.0.1 port 7999 udp ttl 64";
    for _ in 0..DATAGRAMS {
        // Answers to earlier ones are errors of later ones.
        let _ = sender.send_to(&[0; 100], "127.0.0.1:7999");
    }
    let drops = wait_until_seen(LIMIT, "drops of datagrams to nobody", || {
        let all = messages(&monitor);
        let ours: Vec<Value> = all.into_iter().filter(|m| m["packet"] == wanted).collect();
        if ours.len() >= DATAGRAMS / 2 { Ok(ours) } else { Err(ours.len()) }
    })?;
    let first = &drops[0];
    ensure!(first["reason"] == "NO_SOCKET" && first["input"] == 1, "a drop: {first}");
    ensure!(first["original_length"] == 142 && !first["symbol"].is_null(), "a drop: {first}");
    monitor.stop(LIMIT)?.success()?;
    // The monitor was stopped: another may start it.
    let mut again =
        Cmd::new("/bin/thalweg").args(["sflow", "monitor", "--drops", "--kernel-drops"]).spawn()?;
    notice(&mut again, "drop monitor started")?;
    again.stop(LIMIT)?.success()?;
    passed("the kernel's drops with their reason");
    Ok(())
}
