//! What is sent, and through what: options that all searches have.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use thalweg_load::talk::{Exchange, Plan, Protocol, Talk};

use super::device::{Device, Set};
use super::number::{bounded, share};

/// Connections and device.
#[derive(clap::Args)]
pub(super) struct Traffic {
    /// Share of UDP connections in percent
    #[arg(short = 'u', long, value_name = "PERCENT", default_value = "0", value_parser = share(1))]
    pub(super) udp_percent: f64,
    /// Requests of a connection, each with its response, 1 to 10000
    #[arg(short = 'n', long, value_name = "N", default_value = "1", value_parser = bounded(1, 10_000))]
    pub(super) num_messages: u64,
    /// Bytes of each message, 20 to 1456
    #[arg(short = 's', long, value_name = "BYTES", default_value = "20", value_parser = bounded(20, 1456))]
    pub(super) message_size: u64,
    /// Time that a server takes for a response in milliseconds, 0 to 500
    #[arg(short = 'w', long, value_name = "MS", default_value = "0", value_parser = bounded(0, 500))]
    pub(super) server_wait: u64,
    /// Maximum number of concurrent flows, 100 to 4M
    #[arg(short = 'f', long, value_name = "N", value_parser = bounded(100, 4_000_000))]
    pub(super) max_flows: Option<u64>,
    /// What the device under test is: this router, in this process, with its ports connected so
    #[arg(long, value_enum, default_value = "tracker")]
    pub(super) device: Set,
    /// More commands for the device, one per line; its ports are load0 (clients) and load1
    #[arg(long, value_name = "FILE")]
    pub(super) commands: Option<PathBuf>,
    /// Time by which the tester may open connections late, in milliseconds, 1 to 10000; later ones
    /// make it the limit
    #[arg(long, value_name = "MS", default_value = "10", value_parser = bounded(1, 10_000))]
    pub(super) late: u64,
    /// A number that decides sequence numbers; the same one repeats a run
    #[arg(long, value_name = "N", default_value = "1")]
    pub(super) seed: u64,
}

/// The TCP and UDP ports of the servers.
const PORTS: (u16, u16) = (8080, 5353);

impl Traffic {
    /// Returns the conversations, with room for `most` per second.
    pub(super) fn plan(&self, most: f64) -> Plan {
        let exchange = Exchange {
            messages: self.num_messages as u16,
            request: self.message_size as u32,
            answer: self.message_size as u32,
            wait: self.server_wait * 1000,
            ..Exchange::default()
        };
        // In tenths of a percent, and no kind is left out that was asked for.
        let udp = (self.udp_percent * 10.0).round() as u32;
        let kinds =
            [("udp", Protocol::Udp, PORTS.1, udp), ("tcp", Protocol::Tcp, PORTS.0, 1000 - udp)];
        let talks = kinds.into_iter().filter(|(.., share)| *share > 0).map(
            |(name, protocol, port, share)| {
                let limit = self
                    .max_flows
                    .map(|flows| (flows as f64 * f64::from(share) / 1000.0).max(1.0) as u32);
                Talk { share, limit, ..Talk::exchange(name, protocol, port, &exchange) }
            },
        );
        let mut plan = Plan::of(
            talks
                .clone()
                .next()
                .unwrap_or_else(|| Talk::exchange("tcp", Protocol::Tcp, PORTS.0, &exchange)),
        );
        plan.talks = talks.collect();
        // Connections last as long as their program and TIME_WAIT; twice that leaves room for bad
        // trials.
        let life = self.life().as_secs_f64() + 1.0;
        let room = most * life * 2.0;
        plan.room = room.clamp(65_536.0, 16e6) as u32;
        plan.late = self.late * 1000;
        plan
    }

    /// Time that a connection takes at least.
    pub(super) fn life(&self) -> Duration {
        Duration::from_millis(self.server_wait) * self.num_messages as u32
    }

    /// Starts the device with its clients and servers.
    pub(super) fn start(&self, most: f64) -> Result<Device> {
        let commands = match &self.commands {
            Some(file) => {
                std::fs::read_to_string(file).with_context(|| file.display().to_string())?
            }
            None => String::new(),
        };
        Device::start(self.device, &commands, &self.plan(most), self.seed)
    }
}
