//! A device under test in this process: the router's own graph between two ports.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use thalweg_buffer::PoolConfig;
use thalweg_cli::CommandTree;
use thalweg_device::{MacAddr, SwIfIndex};
use thalweg_device_load::Report;
use thalweg_engine::Feature;
use thalweg_graph::{Control, EngineConfig, Severity};
use thalweg_load::talk::{Opening, Plan};

use crate::features::FEATURES;

/// What connects the two ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Set {
    /// Nothing: the commands do it
    Nothing,
    /// A layer 2 cross connect
    CrossConnect,
    /// Four rules that track connections and let the client's side open them
    Tracker,
}

impl Set {
    fn commands(self) -> &'static str {
        match self {
            Set::Nothing => "",
            Set::CrossConnect => CROSS_CONNECT,
            Set::Tracker => TRACKER,
        }
    }
}

/// The ports' names; clients are behind the first, servers behind the second.
const PORTS: [&str; 2] = ["load0", "load1"];

const CROSS_CONNECT: &str = "set interface l2 xconnect load0 load1
set interface l2 xconnect load1 load0";

const TRACKER: &str = "set interface l2 xconnect load0 load1
set interface l2 xconnect load1 load0
flow add 1 priority=1,ip,ct_state=-trk,actions=ct(table=0)
flow add 1 priority=1,ip,ct_state=+trk+new,in_port=load0,actions=ct(commit),normal
flow add 1 priority=1,ip,ct_state=+trk+est,actions=normal
flow add 1 priority=0,actions=drop
set interface flow load0 1
set interface flow load1 1";

/// A device with clients and servers.
pub(super) struct Device {
    control: Control,
    ports: [SwIfIndex; 2],
}

/// What both sides have done, and what the device dropped.
#[derive(Clone, Debug, Default)]
pub(super) struct Books {
    pub(super) clients: Report,
    pub(super) servers: Report,
    /// Packets dropped, by the number of the reason.
    drops: Vec<u64>,
}

/// Buffers of the device: more than one processor has under way.
const BUFFERS: usize = 64 * 1024;

impl Device {
    /// Starts a device, and configures it.
    pub(super) fn start(set: Set, commands: &str, plan: &Plan, seed: u64) -> Result<Device> {
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
        let mut device = Device { control, ports };
        for lines in [set.commands(), commands] {
            device.run(lines)?;
        }
        device.give(plan, seed)?;
        Ok(device)
    }

    /// Puts new hosts behind the ports.
    fn give(&mut self, plan: &Plan, seed: u64) -> Result<()> {
        thalweg_device_load::set_clients(&mut self.control, self.ports[0], plan, seed)?;
        thalweg_device_load::set_servers(&mut self.control, self.ports[1], plan, seed)?;
        Ok(())
    }

    /// Runs commands, one per line.
    pub(super) fn run(&mut self, lines: &str) -> Result<()> {
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
            if !text.is_empty() {
                print!("{text}");
            }
        }
        self.control.sync();
        Ok(())
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

    /// Forgets all connections, without a packet.
    pub(super) fn abandon(&mut self) {
        for port in self.ports {
            thalweg_device_load::abandon(&mut self.control, port);
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
        let drops = (0..self.control.errors().len())
            .map(|index| {
                let workers = 0..self.control.workers();
                workers.map(|worker| self.control.error_count(worker, index as u32)).sum()
            })
            .collect();
        Ok(Books {
            clients: clients.unwrap_or_default(),
            servers: servers.unwrap_or_default(),
            drops,
        })
    }

    /// Returns where most packets were dropped between two readings: node, reason, packets.
    pub(super) fn dropped(
        &self,
        before: &Books,
        after: &Books,
    ) -> Option<(String, &'static str, u64)> {
        let all = self.control.errors().iter().enumerate();
        let drops = all.filter(|(_, (_, decl))| decl.severity == Severity::Error);
        let counted = drops.filter_map(|(index, (node, decl))| {
            let of = |books: &Books| books.drops.get(index).copied().unwrap_or_default();
            let packets = of(after).saturating_sub(of(before));
            (packets > 0).then_some((node, decl.text, packets))
        });
        let (node, reason, packets) = counted.max_by_key(|(_, _, packets)| *packets)?;
        let name = self.control.nodes().get(usize::from(node.0))?.name.to_string();
        Some((name, reason, packets))
    }

    /// Ends the device.
    pub(super) fn close(mut self) {
        self.control.shut_down();
    }
}
