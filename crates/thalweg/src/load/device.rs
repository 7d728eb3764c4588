//! The tester's graph: ports with hosts behind them. The device under test is this graph itself, or
//! whatever its interfaces lead to.

use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use thalweg_buffer::PoolConfig;
use thalweg_device::{Interfaces, MacAddr, SwIfIndex, interface};
use thalweg_device_load::{Change, DirectionReport, Progress, Report};
use thalweg_engine::Feature;
use thalweg_graph::{Control, EngineConfig, Severity};
use thalweg_load::stream;
use thalweg_load::talk::{Opening, Plan};

use super::far::Far;
use super::set::Set;
use super::spot::{Drops, Side, Spot};
use crate::features::FEATURES;

/// The names of a pair's ports; clients are behind the first, servers behind the second.
fn names(pair: usize) -> [String; 2] {
    [format!("load{}", 2 * pair), format!("load{}", 2 * pair + 1)]
}

/// A device with clients and servers.
pub(super) struct Device {
    control: Control,
    /// Pairs of ports.
    pairs: Vec<[SwIfIndex; 2]>,
    /// The tester's interfaces to a device outside, and that device.
    outside: Option<([SwIfIndex; 2], Box<dyn Far>)>,
    /// Number of connections that is held, and after which no more are opened.
    hold: Option<u32>,
    total: Option<u64>,
}

/// What both sides have done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Books {
    pub(super) clients: Report,
    pub(super) servers: Report,
}

/// Hosts behind the ports, and the number that decides chance.
#[derive(Clone, Copy)]
pub(super) enum Hosts<'a> {
    /// Clients and servers, behind one pair of ports.
    Talks(&'a Plan, u64),
    /// Both ends of streams, behind a pair of ports for each plan.
    Streams(&'a [stream::Plan], u64),
}

impl Hosts<'_> {
    /// Number of pairs of ports.
    fn pairs(&self) -> usize {
        match self {
            Hosts::Talks(..) => 1,
            Hosts::Streams(plans, _) => plans.len(),
        }
    }
}

/// Buffers of the device: more than one processor has under way.
const BUFFERS: usize = 64 * 1024;

impl Device {
    /// Starts this graph as the device, and configures it.
    pub(super) fn inside(set: Set, commands: &str, hosts: &Hosts<'_>) -> Result<Device> {
        ensure!(
            set != Set::Route || hosts.pairs() == 1,
            "--device route has routes for one pair of ports, and the profile has {}; --device \
             nothing leaves them to --commands",
            hosts.pairs()
        );
        let mut device = Device::start(hosts.pairs())?;
        for pair in 0..hosts.pairs() {
            let [a, b] = names(pair);
            device.run(&set.commands([&a, &b], pair as u32 + 1))?;
        }
        // What the user's commands print is for the user.
        print!("{}", device.run(commands).context("--commands")?);
        device.give(hosts)?;
        Ok(device)
    }

    /// Starts this graph as the tester of a device that these interfaces lead to.
    pub(super) fn outside(
        interfaces: [&str; 2],
        far: Box<dyn Far>,
        hosts: &Hosts<'_>,
    ) -> Result<Device> {
        ensure!(
            hosts.pairs() == 1,
            "the profile has {} pairs of ports, and this device one: without --lab and --ports, \
             there are as many as it takes",
            hosts.pairs()
        );
        let mut device = Device::start(1)?;
        for (port, interface) in names(0).into_iter().zip(interfaces) {
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
        device.give(hosts)?;
        Ok(device)
    }

    /// Starts the graph, with pairs of ports.
    fn start(pairs: usize) -> Result<Device> {
        let config = EngineConfig {
            pool: PoolConfig { buffers: BUFFERS, ..PoolConfig::default() },
            ..EngineConfig::default()
        };
        let mut control = Control::new(config)?;
        let features: Vec<&Feature> =
            FEATURES.iter().copied().chain([&thalweg_device_load::FEATURE]).collect();
        thalweg_engine::start(&mut control, &features)?;
        let mut device =
            Device { control, pairs: Vec::new(), outside: None, hold: None, total: None };
        for pair in 0..pairs {
            let [a, b] = names(pair);
            let mut create = |name: &str, at: usize| {
                let mac = MacAddr([2, 0, 0, 0, 9, (2 * pair + at) as u8]);
                thalweg_device_load::create(&mut device.control, name, mac)
            };
            let ports = [create(&a, 0)?, create(&b, 1)?];
            device.pairs.push(ports);
        }
        Ok(device)
    }

    /// The ports of connections.
    fn ports(&self) -> [SwIfIndex; 2] {
        // There is at least one pair.
        self.pairs.first().copied().unwrap_or_default()
    }

    /// Puts new hosts behind the ports.
    fn give(&mut self, hosts: &Hosts<'_>) -> Result<()> {
        let [clients, servers] = self.ports();
        let control = &mut self.control;
        match *hosts {
            Hosts::Talks(plan, seed) => {
                thalweg_device_load::set_clients(control, clients, plan, seed)?;
                thalweg_device_load::set_servers(control, servers, plan, seed)?;
            }
            Hosts::Streams(plans, seed) => {
                for (ports, plan) in self.pairs.iter().zip(plans) {
                    thalweg_device_load::set_streams(control, *ports, plan, seed)?;
                }
            }
        }
        Ok(())
    }

    /// Changes all streams.
    pub(super) fn change(&mut self, change: Change) {
        for ports in &self.pairs {
            thalweg_device_load::change_streams(&mut self.control, *ports, change);
        }
    }

    /// Reads what became of the streams: of each pair, from the first port to the second and back.
    pub(super) fn streams(&mut self) -> Result<Vec<[DirectionReport; 2]>> {
        let ask =
            |ports: &[SwIfIndex; 2]| thalweg_device_load::ask_streams(&mut self.control, *ports);
        let answers: Vec<_> = self.pairs.iter().map(ask).collect();
        answers.iter().map(|answer| self.answer(answer)).collect()
    }

    /// Reads how far the streams are, all pairs together.
    pub(super) fn progress(&mut self) -> Result<[Progress; 2]> {
        let ask =
            |ports: &[SwIfIndex; 2]| thalweg_device_load::ask_progress(&mut self.control, *ports);
        let answers: Vec<_> = self.pairs.iter().map(ask).collect();
        let mut sums = [Progress::default(); 2];
        for answer in &answers {
            let pair = self.answer(answer)?;
            sums.iter_mut().zip(pair).for_each(|(sum, of)| sum.add(of));
        }
        Ok(sums)
    }

    fn answer<T>(&mut self, answers: &Receiver<T>) -> Result<T> {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            self.control.run_once(Some(Duration::from_millis(1)));
            match answers.try_recv() {
                Ok(answer) => return Ok(answer),
                Err(_) if Instant::now() < end => {}
                Err(error) => return Err(error).context("the hosts do not answer for 10 s"),
            }
        }
    }

    /// Runs commands, one per line, and returns what they print.
    fn run(&mut self, lines: &str) -> Result<String> {
        let mut said = String::new();
        let tree = thalweg_engine::command_tree(&self.control)
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

    /// Sets the number of connections that is held, and the one after which no more are opened.
    pub(super) fn set_limits(&mut self, hold: Option<u32>, total: Option<u64>) {
        (self.hold, self.total) = (hold, total);
    }

    /// Says how many connections to open.
    pub(super) fn set_rate(&mut self, rate: f64) {
        let opening = Opening { rate, hold: self.hold, total: self.total };
        let [clients, _] = self.ports();
        thalweg_device_load::set_opening(&mut self.control, clients, opening);
    }

    /// Begins or ends the window in which connections are judged.
    pub(super) fn set_judging(&mut self, judging: bool) {
        let [clients, _] = self.ports();
        thalweg_device_load::set_judging(&mut self.control, clients, judging);
    }

    /// Forgets all connections, without a packet, and has the device forget them.
    pub(super) fn abandon(&mut self) -> Result<()> {
        for port in self.pairs.iter().flatten().copied() {
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
        let answers = {
            let ports = self.ports();
            thalweg_device_load::ask(&mut self.control, &ports)
        };
        let reports = self.answer(&answers)?;
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
