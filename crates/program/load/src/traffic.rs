//! Connections: options that all searches for their rate have.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use thalweg_load::talk::{Exchange, Plan, Protocol, Talk};

use super::number::{bounded, share};
use super::under::Under;
use super::work::Work;

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
    #[command(flatten)]
    pub(super) under: Under,
    /// Time by which the tester may open connections late, in milliseconds, 1 to 10000; later ones
    /// make it the limit
    #[arg(long, value_name = "MS", default_value = "10", value_parser = bounded(1, 10_000))]
    pub(super) late: u64,
}

/// The TCP and UDP ports of the servers.
const PORTS: (u16, u16) = (8080, 5353);

impl Traffic {
    /// Returns the conversations.
    pub(super) fn plan(&self) -> Plan {
        let exchange = Exchange {
            messages: self.num_messages as u16,
            request: self.message_size as u32,
            answer: self.message_size as u32,
            wait: self.server_wait * 1000,
            ..Exchange::default()
        };
        // Shares are in tenths of a percent, and no kind is left out that was asked for.
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
        plan.late = self.late * 1000;
        if let Some([of_clients, of_servers]) = self.under.next_hops {
            plan.client_macs.1 = of_clients;
            plan.server_macs.1 = of_servers;
        }
        plan
    }

    /// Its options in the form of a report.
    pub(super) fn canonical(&self) -> Value {
        json!({
            "udp_percent": self.udp_percent,
            "num_messages": self.num_messages,
            "message_size": self.message_size,
            "server_wait": self.server_wait,
            "max_flows": self.max_flows,
        })
    }

    /// Time that a connection takes at least.
    pub(super) fn life(&self) -> Duration {
        Duration::from_millis(self.server_wait) * self.num_messages as u32
    }

    /// Returns the work, with room for `most` connections per second.
    pub(super) fn work(&self, most: f64) -> Result<Work> {
        Work::talks(self.plan(), self.life()).sized(most)
    }
}
