//! This router, as a process of its own.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;
use thalweg_cli::client::{Client, Ended};
use thalweg_netns::{Netns, Running, wait_for_unix_socket};

use super::{DEVICE, Far, lines};
use crate::load::set::Set;
use crate::load::spot::{Drops, Side, Spot};

/// Time for its start, and for its end.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time for a command: some configure a lot.
const COMMAND: Duration = Duration::from_secs(60);

/// A router between two interfaces.
pub(super) struct Router {
    running: Running,
    socket: PathBuf,
    // Removed with it.
    _dir: TempDir,
}

impl Router {
    /// Starts and configures it.
    pub(super) fn start(ns: &Netns, set: Set, commands: &str) -> Result<Router> {
        let dir = TempDir::with_prefix("thalweg-load-").context("make a directory")?;
        let socket = dir.path().join("cli.sock");
        let stanza = format!(
            "unix {{ nodaemon runtime-dir {} cli-listen {} }}",
            dir.path().display(),
            socket.display()
        );
        // The tester polls one processor, and the device another.
        let last = std::thread::available_parallelism().map_or(1, usize::from) - 1;
        let cpu = match last {
            0 => String::new(),
            last => format!("cpu {{ corelist-workers {last} }}"),
        };
        let program = std::env::current_exe().context("find this program's file")?;
        let running = ns.command(program).arg("run").args([stanza, cpu]).spawn()?;
        wait_for_unix_socket(&socket, PATIENCE)
            .with_context(|| format!("the router said\n{}", running.stderr()))?;
        let router = Router { running, socket, _dir: dir };
        let names = DEVICE.map(|name| format!("host-{name}"));
        let create: String = DEVICE
            .iter()
            .zip(&names)
            .map(|(dev, name)| {
                format!("create host-interface name {dev}\nset interface state {name} up\n")
            })
            .collect();
        for text in [create, set.commands([&names[0], &names[1]], 1)] {
            router.run_all(&text, "")?;
        }
        router.run_all(commands, "--commands, ")?;
        Ok(router)
    }

    fn run_all(&self, commands: &str, of: &str) -> Result<()> {
        for (number, line) in lines(commands) {
            let (text, end) = self.run(line)?;
            ensure!(end == Ended::Ok, "{of}line {number}: {line}: {}", text.trim());
        }
        Ok(())
    }

    fn run(&self, command: &str) -> Result<(String, Ended)> {
        let mut client = Client::connect(&self.socket)?;
        client.set_patience(COMMAND)?;
        let mut text = Vec::new();
        let end = client.stream(command, &mut text)?;
        Ok((String::from_utf8_lossy(&text).into_owned(), end))
    }

    fn json(&self, command: &str) -> Result<Value> {
        let (text, _) = self.run(&format!("{command} | json"))?;
        serde_json::from_str(&text).with_context(|| format!("{command}: {}", text.trim()))
    }
}

impl Far for Router {
    fn name(&self) -> String {
        format!("Thalweg {}", env!("CARGO_PKG_VERSION"))
    }

    fn drops(&mut self, drops: &mut Drops) -> Result<()> {
        if let Some(status) = self.running.try_status()? {
            bail!("the device has ended, with {status}:\n{}", self.running.stderr());
        }
        node_drops(&self.json("show errors")?, drops);
        ring_drops(&self.json("show interface")?, drops);
        Ok(())
    }

    fn forget(&mut self) -> Result<()> {
        // It has no connections if it tracks none.
        self.run("clear conntrack").map(drop)
    }

    fn stop(self: Box<Self>) -> Result<()> {
        let output = self.running.stop(PATIENCE)?;
        ensure!(output.status.success(), "the device ended with {}", output.status);
        Ok(())
    }
}

fn rows(table: &Value) -> impl Iterator<Item = &Value> {
    table.as_array().into_iter().flatten()
}

/// Adds the rows of `show errors` that are losses.
fn node_drops(table: &Value, drops: &mut Drops) {
    for row in rows(table).filter(|row| row["severity"] == "error") {
        let word = |key: &str| row[key].as_str().unwrap_or_default();
        let packets = row["count"].as_u64().unwrap_or_default();
        drops.add(Spot::new(Side::Device, word("node"), word("reason")), packets);
    }
}

/// Adds what the rings of interfaces had no room for.
fn ring_drops(table: &Value, drops: &mut Drops) {
    for row in rows(table) {
        let packets = row["counters"]["rx_miss"].as_u64().unwrap_or_default();
        let name = row["name"].as_str().unwrap_or_default();
        drops.add(Spot::new(Side::Device, name, "receive ring full"), packets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn losses_are_read_and_events_are_not() {
        let mut drops = Drops::default();
        let errors = json!([
            { "count": 3, "node": "ip4-lookup", "reason": "no route", "severity": "error" },
            { "count": 9, "node": "arp-reply", "reason": "sent", "severity": "info" },
        ]);
        node_drops(&errors, &mut drops);
        let interfaces = json!([{ "name": "host-load0", "counters": { "rx_miss": 2 } }]);
        ring_drops(&interfaces, &mut drops);
        ring_drops(&json!("nonsense"), &mut drops);
        assert_eq!(drops.of(Side::Device), 5);
        let (spot, packets) = drops.most().unwrap();
        assert_eq!((spot.node.as_str(), packets), ("ip4-lookup", 3));
    }
}
