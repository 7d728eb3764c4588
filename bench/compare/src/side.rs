//! Forwarders between two hosts, each in a lab of its own.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use thalweg_bench_common::Processors;
use thalweg_smoke::{Config, CpuClock, Delay, Ovs, OvsOptions, Router, host_pair};
use thalweg_testkit::{Flood, Lab, LabOptions, Middle, Offloads};

/// Payload of the packets of a flood, which have 64 bytes with all their headers.
pub(crate) const PAYLOAD: u16 = 22;
/// Destination of a flood. The host on the right does not have this hardware address, so that its
/// kernel counts the packet and drops it at the first look.
pub(crate) const SINK_MAC: &str = "02:00:00:00:02:99";
/// The port that it goes to.
pub(crate) const SINK_PORT: u16 = 9;

/// Ways to handle the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Passed on as they are, to where they belong.
    Layer2,
    /// Routed.
    Ipv4,
}

impl Path {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Path::Layer2 => "layer 2",
            Path::Ipv4 => "IPv4",
        }
    }

    /// The address that a flood goes to, in the subnet of the host on the right.
    pub(crate) fn sink(self) -> Ipv4Addr {
        match self {
            Path::Layer2 => Ipv4Addr::new(10, 10, 1, 9),
            Path::Ipv4 => Ipv4Addr::new(10, 10, 2, 9),
        }
    }
}

/// Programs that forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarder {
    /// This router, on packet sockets.
    Thalweg,
    /// The kernel's bridge or its routing.
    Kernel,
    /// Open vSwitch's datapath in user space, on packet sockets.
    Ovs,
    /// The same on AF_XDP sockets.
    OvsAfxdp,
}

impl Forwarder {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Forwarder::Thalweg => "Thalweg, AF_PACKET",
            Forwarder::Kernel => "kernel",
            Forwarder::Ovs => "Open vSwitch, netdev, AF_PACKET",
            Forwarder::OvsAfxdp => "Open vSwitch, netdev, AF_XDP",
        }
    }
}

enum Running {
    Thalweg(Router),
    Kernel,
    Ovs(Ovs),
}

/// A lab with its forwarder.
pub struct Side {
    /// The packets' path.
    pub path: Path,
    /// The forwarder.
    pub forwarder: Forwarder,
    /// The namespaces.
    pub lab: Lab,
    running: Running,
}

/// Counts of a flood.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flooded {
    /// Packets per second that were sent.
    pub offered: f64,
    /// Packets per second that came to the other end.
    pub delivered: f64,
    /// Packets delivered per second of the forwarder's processor time.
    pub per_forwarder_second: f64,
    /// Packets delivered per second that any processor was busy, the generator's included.
    pub per_busy_second: f64,
    /// Processors' share that programs of others had in the meantime; 1 is one processor.
    pub others: f64,
}

impl Side {
    /// Sets up a lab. Forwarders with threads of their own get the last processor.
    ///
    /// # Errors
    /// If the lab cannot be made or the forwarder is not there or does not start.
    pub fn start(path: Path, forwarder: Forwarder, offloads: Offloads) -> Result<Side> {
        let middle = match (path, forwarder) {
            (Path::Layer2, Forwarder::Kernel) => Middle::KernelBridge,
            (Path::Ipv4, Forwarder::Kernel) => Middle::KernelRouter,
            (Path::Layer2, _) => Middle::Bridge,
            (Path::Ipv4, _) => Middle::Router,
        };
        let lab = Lab::build(&LabOptions { middle, offloads, ..LabOptions::default() })?;
        let running = match forwarder {
            Forwarder::Kernel => kernel(path, &lab)?,
            Forwarder::Thalweg => Running::Thalweg(thalweg(path, &lab)?),
            Forwarder::Ovs => Running::Ovs(ovs(path, &lab, None, offloads)?),
            Forwarder::OvsAfxdp => Running::Ovs(ovs(path, &lab, Some("afxdp"), offloads)?),
        };
        let side = Side { path, forwarder, lab, running };
        side.introduce()?;
        side.pause()?;
        Ok(side)
    }

    /// The forwarder's own version text, if it is another program.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn version(&self) -> Result<Option<String>> {
        match &self.running {
            Running::Ovs(ovs) => ovs.version().map(Some),
            _ => Ok(None),
        }
    }

    /// Stops what polls though there is nothing to do.
    ///
    /// # Errors
    /// If it has ended.
    pub fn pause(&self) -> Result<()> {
        if let Running::Ovs(ovs) = &self.running { ovs.pause() } else { Ok(()) }
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// If it has ended.
    pub fn resume(&self) -> Result<()> {
        if let Running::Ovs(ovs) = &self.running { ovs.resume() } else { Ok(()) }
    }

    fn pid(&self) -> Option<u32> {
        match &self.running {
            Running::Thalweg(router) => Some(router.pid()),
            Running::Ovs(ovs) => Some(ovs.pid()),
            Running::Kernel => None,
        }
    }

    /// Tells the host on the left the hardware address that its flood goes to, as none answers.
    fn introduce(&self) -> Result<()> {
        let (address, mac) = match (self.path, &self.running) {
            (Path::Layer2, _) => (self.path.sink(), SINK_MAC.to_owned()),
            (Path::Ipv4, Running::Thalweg(router)) => {
                (self.lab.left.gateway, router.mac("host-eth0")?.to_string())
            }
            (Path::Ipv4, _) => (self.lab.left.gateway, self.lab.left.router_mac.to_owned()),
        };
        let dev = self.lab.left.dev;
        self.lab
            .left
            .ns
            .ip(&format!("neighbour replace {address} lladdr {mac} dev {dev}"))
            .map(drop)
    }

    /// Packets that have come to the host on the right.
    fn delivered(&self) -> Result<u64> {
        let text = self.lab.right.ns.run(|| fs::read_to_string("/proc/thread-self/net/dev"))?;
        let text = text.context("read /proc/net/dev")?;
        received(&text, self.lab.right.dev).with_context(|| format!("no eth0 in:\n{text}"))
    }

    /// Floods it, and measures for `window` after `warm_up`.
    ///
    /// # Errors
    /// If there is something wrong with the lab.
    pub fn flood(&self, warm_up: Duration, window: Duration) -> Result<Flooded> {
        self.resume()?;
        let to = SocketAddrV4::new(self.path.sink(), SINK_PORT);
        let flood = Flood::start(&self.lab.left.ns, to, PAYLOAD, Some(0))?;
        Delay::measure_over(warm_up);
        let got = self.watch(&flood, window)?;
        flood.stop()?;
        if let Running::Thalweg(router) = &self.running {
            router.await_rest()?;
        }
        self.pause()?;
        Ok(got)
    }

    fn watch(&self, flood: &Flood, window: Duration) -> Result<Flooded> {
        let clock = self.pid().map(CpuClock::start).transpose()?;
        let here = CpuClock::start(std::process::id())?;
        let processors = Processors::start();
        let (began, sent, came) = (Instant::now(), flood.sent(), self.delivered()?);
        Delay::measure_over(window);
        let seconds = began.elapsed().as_secs_f64();
        let (sent, came) = (flood.sent() - sent, self.delivered()? - came);
        let (usage, here) = (processors.usage(), here.used()?);
        let forwarder = clock.map(|clock| clock.used()).transpose()?;
        let own = forwarder.map_or(usage.softirq, |times| times.sum().as_secs_f64());
        let known = here.user + forwarder.unwrap_or_default().user;
        Ok(Flooded {
            offered: sent as f64 / seconds,
            delivered: came as f64 / seconds,
            per_forwarder_second: came as f64 / own,
            per_busy_second: came as f64 / usage.busy,
            others: (usage.user - known.as_secs_f64()).max(0.0) / seconds,
        })
    }

    /// Ends it. A router's books have to balance.
    ///
    /// # Errors
    /// If the forwarder does not end well.
    pub fn stop(self) -> Result<()> {
        match self.running {
            Running::Thalweg(router) => router.stop().map(drop),
            Running::Ovs(ovs) => ovs.stop(),
            Running::Kernel => Ok(()),
        }
    }
}

/// The processor for what forwards; floods come from the first.
fn last_processor() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from) - 1
}

fn kernel(path: Path, lab: &Lab) -> Result<Running> {
    let sink = path.sink();
    match path {
        // Learned, as it would be of a host that has ever spoken.
        Path::Layer2 => {
            let words = ["fdb", "add", SINK_MAC, "dev", lab.right.router_dev, "master", "static"];
            lab.router.command("bridge").args(words).output()?;
        }
        Path::Ipv4 => {
            let dev = lab.right.router_dev;
            lab.router.ip(&format!("neighbour add {sink} lladdr {SINK_MAC} dev {dev}"))?;
        }
    }
    Ok(Running::Kernel)
}

fn thalweg(path: Path, lab: &Lab) -> Result<Router> {
    let sink = path.sink();
    let config = match path {
        Path::Ipv4 => {
            host_pair().commands(&format!("set ip neighbor host-eth1 {sink} {SINK_MAC} static"))
        }
        Path::Layer2 => Config::empty().commands(
            "create host-interface name eth0
             create host-interface name eth1
             set interface state host-eth0 up
             set interface state host-eth1 up
             set interface l2 xconnect host-eth0 host-eth1
             set interface l2 xconnect host-eth1 host-eth0",
        ),
    };
    let cores = format!("cpu {{ corelist-workers {} }}", last_processor());
    Router::start(&lab.router, &config.stanza(&cores))
}

fn ovs(path: Path, lab: &Lab, port: Option<&'static str>, offloads: Offloads) -> Result<Ovs> {
    let mut settings = vec![format!("pmd-cpu-mask={:#x}", 1u64 << last_processor())];
    if offloads.segmentation {
        settings.push("userspace-tso-enable=true".into());
    }
    let options = OvsOptions { settings, port_type: port, ..OvsOptions::default() };
    let ovs = Ovs::start(&lab.router, &["eth0", "eth1"], &options)?;
    match path {
        Path::Layer2 => {
            ovs.add_flows(&["in_port=1,actions=output:2", "in_port=2,actions=output:1"])?;
        }
        Path::Ipv4 => {
            let route = |side: &thalweg_testkit::Side, next: &str, port: u32| {
                let own = side.router_mac;
                let to = side.subnet();
                format!(
                    "ip,nw_dst={to},actions=dec_ttl,mod_dl_src:{own},mod_dl_dst:{next},output:{port}"
                )
            };
            let (right, left) = (route(&lab.right, SINK_MAC, 2), route(&lab.left, lab.left.mac, 1));
            ovs.add_flows(&[&right, &left])?;
        }
    }
    Ok(ovs)
}

/// Packets received by an interface, of proc_net_dev(5).
fn received(text: &str, dev: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(dev)?.strip_prefix(':'))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_testkit::lab_test;

    #[test]
    fn counters_are_found() {
        let text = "Inter-| Receive\n face |bytes packets\n  eth0: 100 7 0 0\n eth01: 5 5 5";
        assert_eq!(received(text, "eth0"), Some(7));
        assert_eq!(received(text, "eth1"), None);
    }

    lab_test! {
        fn the_kernel_delivers_a_flood() {
            for path in [Path::Layer2, Path::Ipv4] {
                let side = Side::start(path, Forwarder::Kernel, Offloads::OFF)?;
                let got = side.flood(Duration::from_millis(20), Duration::from_millis(100))?;
                assert!(got.delivered > 1000.0, "{path:?}: {got:?}");
                side.stop()?;
            }
            Ok(())
        }
    }
}
