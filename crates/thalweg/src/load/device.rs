//! The tester's graph: two ports with hosts behind them. The device under test is this graph itself,
//! or whatever its interfaces lead to.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use thalweg_buffer::PoolConfig;
use thalweg_cli::CommandTree;
use thalweg_device::{Interfaces, MacAddr, SwIfIndex, interface};
use thalweg_device_load::Report;
use thalweg_engine::Feature;
use thalweg_graph::{Control, EngineConfig, Severity};
use thalweg_load::talk::{Opening, Plan};

use super::far::Far;
use super::set::Set;
use super::spot::{Drops, Side, Spot};
use crate::features::FEATURES;

/// The ports' names; clients are behind the first, servers behind the second.
const PORTS: [&str; 2] = ["load0", "load1"];

/// A device with clients and servers.
pub(super) struct Device {
    control: Control,
    ports: [SwIfIndex; 2],
    /// The tester's interfaces to a device outside, and that device.
    outside: Option<([SwIfIndex; 2], Box<dyn Far>)>,
}

/// What both sides have done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Books {
    pub(super) clients: Report,
    pub(super) servers: Report,
}

/// Buffers of the device: more than one processor has under way.
const BUFFERS: usize = 64 * 1024;

impl Device {
    /// Starts this graph as the device, and configures it.
    pub(super) fn inside(set: Set, commands: &str, plan: &Plan, seed: u64) -> Result<Device> {
        let mut device = Device::start()?;
        device.run(&set.commands(PORTS))?;
        // What the user's commands print is for the user.
        print!("{}", device.run(commands).context("--commands")?);
        device.give(plan, seed)?;
        Ok(device)
    }

    /// Starts this graph as the tester of a device that these interfaces lead to.
    pub(super) fn outside(
        interfaces: [&str; 2],
        far: Box<dyn Far>,
        plan: &Plan,
        seed: u64,
    ) -> Result<Device> {
        let mut device = Device::start()?;
        for (port, interface) in PORTS.into_iter().zip(interfaces) {
            device.run(&format!(
                "create host-interface name {interface}
                 set interface state host-{interface} up
                 set interface l2 xconnect {port} host-{interface}
                 set interface l2 xconnect host-{interface} {port}"
            ))?;
        }
        let [a, b] = interfaces.map(|name| format!("host-{name}"));
        let ours = [interface::find(&device.control, &a)?, interface::find(&device.control, &b)?];
        device.outside = Some((ours, far));
        device.give(plan, seed)?;
        Ok(device)
    }

    /// Starts the graph, with a port for clients and one for servers.
    fn start() -> Result<Device> {
        let config = EngineConfig {
            pool: PoolConfig { buffers: BUFFERS, ..PoolConfig::default() },
            ..EngineConfig::default()
        };
        let mut control = Control::new(config)?;
        let features: Vec<&Feature> =
            FEATURES.iter().copied().chain([&thalweg_device_load::FEATURE]).collect();
        thalweg_engine::start(&mut control, &features)?;
        let mut ports = [SwIfIndex(0); 2];
        for (at, name) in PORTS.into_iter().enumerate() {
            let mac = MacAddr([2, 0, 0, 0, 9, at as u8]);
            ports[at] = thalweg_device_load::create(&mut control, name, mac)?;
        }
        Ok(Device { control, ports, outside: None })
    }

    /// Puts new hosts behind the ports.
    fn give(&mut self, plan: &Plan, seed: u64) -> Result<()> {
        thalweg_device_load::set_clients(&mut self.control, self.ports[0], plan, seed)?;
        thalweg_device_load::set_servers(&mut self.control, self.ports[1], plan, seed)?;
        Ok(())
    }

    /// Runs commands, one per line, and returns what they print.
    fn run(&mut self, lines: &str) -> Result<String> {
        let mut said = String::new();
        let tree = CommandTree::new(thalweg_engine::commands(&self.control))
            .map_err(|error| anyhow::anyhow!("{error:?}"))?;
        for (at, line) in lines.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (text, end) = tree.run_line(&mut self.control, line);
            if let Err(error) = end {
                bail!("line {}: {line}: {error}", at + 1);
            }
            said += &text;
        }
        self.control.sync();
        Ok(said)
    }

    /// Says how many connections to open.
    pub(super) fn set_rate(&mut self, rate: f64) {
        let opening = Opening { rate, hold: None };
        thalweg_device_load::set_opening(&mut self.control, self.ports[0], opening);
    }

    /// Begins or ends the window in which connections are judged.
    pub(super) fn set_judging(&mut self, judging: bool) {
        thalweg_device_load::set_judging(&mut self.control, self.ports[0], judging);
    }

    /// Forgets all connections, without a packet, and has the device forget them.
    pub(super) fn abandon(&mut self) -> Result<()> {
        for port in self.ports {
            thalweg_device_load::abandon(&mut self.control, port);
        }
        match &mut self.outside {
            Some((_, far)) => far.forget(),
            None => self.run("clear conntrack").map(drop),
        }
    }

    /// Lets it run; false if `stop` ended that.
    pub(super) fn wait(&mut self, time: Duration, stop: &dyn Fn() -> bool) -> bool {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            if stop() {
                return false;
            }
            self.control.run_once(Some(left.min(Duration::from_millis(20))));
        }
        !stop()
    }

    /// Reads all counters.
    pub(super) fn books(&mut self) -> Result<Books> {
        let answers = thalweg_device_load::ask(&mut self.control, &self.ports);
        let end = Instant::now() + Duration::from_secs(10);
        let reports = loop {
            self.control.run_once(Some(Duration::from_millis(1)));
            match answers.try_recv() {
                Ok(reports) => break reports,
                Err(_) if Instant::now() < end => {}
                Err(error) => return Err(error).context("the hosts do not answer for 10 s"),
            }
        };
        let [clients, servers] = [0, 1].map(|at| reports.get(at).copied().flatten());
        Ok(Books { clients: clients.unwrap_or_default(), servers: servers.unwrap_or_default() })
    }

    /// Reads what has been dropped so far, and where.
    pub(super) fn drops(&mut self) -> Result<Drops> {
        let mut drops = Drops::default();
        let side = if self.outside.is_some() { Side::Tester } else { Side::Device };
        self.missed();
        for (index, (node, decl)) in self.control.errors().iter().enumerate() {
            if decl.severity != Severity::Error {
                continue;
            }
            let workers = 0..self.control.workers();
            let of = |worker| self.control.error_count(worker, index as u32);
            let packets = workers.map(of).sum();
            let name = self
                .control
                .nodes()
                .get(usize::from(node.0))
                .map_or("unknown node", |node| &*node.name);
            drops.add(Spot::new(side, name, decl.text), packets);
        }
        if let Some((interfaces, far)) = &mut self.outside {
            for sw_if in interfaces {
                let missed = self.control.interface_totals_raw(*sw_if).rx_miss;
                drops.add(Spot::new(side, "host interface", "receive ring full"), missed);
            }
            far.drops(&mut drops)?;
        }
        Ok(drops)
    }

    /// Has the interfaces count what the kernel had no room for: they ask once a second otherwise.
    fn missed(&mut self) {
        let Some((interfaces, _)) = &self.outside else { return };
        for sw_if in *interfaces {
            let device = self.control.state::<Interfaces>().borrow().device(sw_if);
            if let Some(device) = device {
                device.borrow_mut().poll_missed(&mut self.control, sw_if);
            }
        }
        self.control.sync();
    }

    /// What the device calls itself.
    pub(super) fn name(&self) -> String {
        match &self.outside {
            Some((_, far)) => far.name(),
            None => format!("Thalweg {}, in this process", env!("CARGO_PKG_VERSION")),
        }
    }

    /// Ends the device.
    ///
    /// # Errors
    /// If a device outside does not end well.
    pub(super) fn close(mut self) -> Result<()> {
        self.control.shut_down();
        let outside = self.outside.take();
        // The rings hold interfaces that go with the device.
        drop(self);
        outside.map_or(Ok(()), |(_, far)| far.stop())
    }
}
