//! The router as a process of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use thalweg_cli::client::{Client, Ended};
use thalweg_netns::{Netns, Running, wait_for_unix_socket};

use thalweg_device_load::What;
use thalweg_load::stream::{self, Tag};
use thalweg_load::talk::{Flow, Protocol};

use super::{DEVICE, Far, Size, lines, sent_by, ways};
use crate::blame::Seen;
use crate::set::Set;
use crate::spot::{Drops, Hop, Side, Spot};

/// Time for its start, and for its end.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time for a command: some configure a lot.
const COMMAND: Duration = Duration::from_secs(60);

/// A router between two interfaces.
pub(super) struct Router {
    running: Running,
    socket: PathBuf,
}

impl Router {
    /// Starts and configures it, with its files in `dir`.
    pub(super) fn start(
        ns: &Netns,
        set: Set,
        commands: &str,
        size: Size,
        dir: &Path,
    ) -> Result<Router> {
        let processors = size.processors()?;
        let socket = dir.join("cli.sock");
        let stanza = format!(
            "unix {{ nodaemon runtime-dir {} cli-listen {} }}",
            dir.display(),
            socket.display()
        );
        let list: Vec<String> = processors.iter().map(usize::to_string).collect();
        let cpu = match processors.first() {
            // The machine's only one is shared by all.
            Some(0) => String::new(),
            _ => format!("cpu {{ corelist-workers {} }}", list.join(",")),
        };
        let program = std::env::current_exe().context("find this program's file")?;
        let running =
            ns.command(program).args(["run", "--load-probe"]).args([stanza, cpu]).spawn()?;
        wait_for_unix_socket(&socket, PATIENCE)
            .with_context(|| format!("the router said\n{}", running.stderr()))?;
        let router = Router { running, socket };
        let names = DEVICE.map(|name| format!("host-{name}"));
        let create: String = DEVICE
            .iter()
            .zip(&names)
            .map(|(dev, name)| {
                let queues = size.queues;
                format!(
                    "create host-interface name {dev} num-rx-queues {queues}\n\
                     set interface state {name} up\n"
                )
            })
            .collect();
        for text in [create, set.commands([&names[0], &names[1]], 1)] {
            router.run_all(&text, "")?;
        }
        router.run_all(commands, "--commands, ")?;
        Ok(router)
    }

    /// Checks that it still runs.
    fn check(&mut self) -> Result<()> {
        if let Some(status) = self.running.try_status()? {
            bail!("the device has ended, with {status}:\n{}", self.running.stderr());
        }
        Ok(())
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
        let (text, end) = self.run(&format!("{command} | json"))?;
        ensure!(end == Ended::Ok, "the device: {}", text.trim());
        serde_json::from_str(&text).with_context(|| format!("{command}: {}", text.trim()))
    }
}

impl Far for Router {
    fn name(&self) -> String {
        format!("Thalweg {}", env!("CARGO_PKG_VERSION"))
    }

    fn drops(&mut self, drops: &mut Drops) -> Result<()> {
        self.check()?;
        node_drops(&self.json("show errors")?, drops);
        ring_drops(&self.json("show interface")?, drops);
        Ok(())
    }

    fn witness(&mut self, trial: u8, seed: u64) -> Result<()> {
        self.check()?;
        self.run_all(&format!("load witness trial {trial} seed {seed}"), "")
    }

    fn window(&mut self) -> Result<()> {
        self.check()?;
        self.run_all("load witness window", "")
    }

    fn dropped(&mut self) -> Result<Vec<Seen>> {
        self.check()?;
        Ok(rows(&self.json("show load witness")?).filter_map(seen).collect())
    }

    fn forget(&mut self) -> Result<()> {
        self.check()?;
        // A device that tracks no connections has none.
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
        drops.add(node(word("node"), word("reason")), packets);
    }
}

/// A node of the router. Its drops are noted.
fn node(name: &str, reason: &str) -> Spot {
    let spot = Spot::new(Side::Device, name, reason).watched();
    let port = name.strip_prefix("host-").and_then(|rest| rest.strip_suffix("-tx"));
    match port.and_then(|port| ways(port)[0]) {
        Some(way) => sent_by((0, Hop::Out), spot.going(way)),
        None => spot,
    }
}

/// Reads a row of `show load witness`; `None` if it has another form.
fn seen(row: &Value) -> Option<Seen> {
    let word = |key: &str| row[key].as_str();
    let what = match row["stream"].as_u64() {
        Some(stream) => What::Stream(Tag {
            stream: stream.try_into().ok()?,
            side: match word("side")? {
                "a" => stream::Side::A,
                _ => stream::Side::B,
            },
            sequence: row["sequence"].as_u64()?.try_into().ok()?,
            bits: (row["bits"].as_u64()?.try_into().ok()?, 0),
            trial: 0,
            judged: true,
            due: 0,
        }),
        None => {
            let end = |key: &str| {
                let part = |at: usize| row[key][at].as_str();
                Some((part(0)?.parse().ok()?, part(1)?.parse().ok()?))
            };
            What::Talk(Flow {
                protocol: if word("protocol")? == "udp" { Protocol::Udp } else { Protocol::Tcp },
                source: end("source")?,
                destination: end("destination")?,
                flags: row["flags"].as_u64()?.try_into().ok()?,
                seq: row["seq"].as_u64()?.try_into().ok()?,
            })
        }
    };
    Some(Seen {
        what,
        at: row["at"].as_u64()?,
        pair: 0,
        spot: node(word("node")?, word("reason")?),
        interface: word("interface")?.to_owned(),
    })
}

/// Adds what the rings of interfaces had no room for.
fn ring_drops(table: &Value, drops: &mut Drops) {
    for row in rows(table) {
        let packets = row["counters"]["rx_miss"].as_u64().unwrap_or_default();
        let name = row["name"].as_str().unwrap_or_default();
        let way = name.strip_prefix("host-").and_then(|port| ways(port)[1]);
        let spot = Spot::new(Side::Device, name, "receive ring full").going(way);
        drops.add(spot, packets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn packets_noted_are_read_and_other_rows_are_not() {
        let stream = json!({
            "at": 5, "stream": 3, "side": "b", "sequence": 77, "bits": 24,
            "node": "ip4-lookup", "reason": "no route", "interface": "host-load1",
        });
        let found = seen(&stream).unwrap();
        let What::Stream(tag) = found.what else { panic!("{found:?}") };
        assert_eq!((tag.stream, tag.sequence, tag.bits.0), (3, 77, 24));
        assert_eq!(tag.side, stream::Side::B);
        assert_eq!(found.spot.to_string(), "device: ip4-lookup, no route");
        let talk = json!({
            "at": 5, "protocol": "tcp", "source": ["16.0.0.1", "1024"],
            "destination": ["48.0.0.1", "80"], "flags": 2, "seq": 9,
            "node": "host-load1-tx", "reason": "tx ring full", "interface": "host-load0",
        });
        let found = seen(&talk).unwrap();
        let What::Talk(flow) = found.what else { panic!("{found:?}") };
        assert_eq!(flow.to_string(), "TCP 16.0.0.1:1024 > 48.0.0.1:80 SYN");
        assert_eq!(found.spot.way, Some(crate::spot::Way::There));
        for key in ["at", "source", "node", "flags"] {
            let mut without = talk.clone();
            without.as_object_mut().unwrap().remove(key);
            assert!(seen(&without).is_none(), "{key}");
        }
        let mut odd = stream;
        odd["stream"] = json!(70_000);
        assert!(seen(&odd).is_none() && seen(&json!("nonsense")).is_none());
    }

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
