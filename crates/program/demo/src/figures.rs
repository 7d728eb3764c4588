//! The router's counters, read through its command line as JSON.

use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thalweg_cli::client::Client;

const PERIOD: Duration = Duration::from_millis(500);

/// Counters of one interface.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interface {
    pub name: String,
    /// All that `show interface` has, under its names.
    pub counters: BTreeMap<String, u64>,
}

impl Interface {
    /// Returns a counter; one that the router does not have is zero.
    pub fn count(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// Returns the packets that were lost before the router saw them.
    pub fn missed(&self) -> u64 {
        self.count("rx_miss") + self.count("rx_no_buf")
    }
}

/// Counters of a node, summed over all workers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    pub name: String,
    pub calls: u64,
    pub vectors: u64,
    pub clocks: u64,
}

/// Samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Samples {
    pub taken: u64,
    pub sent: u64,
    pub dropped: u64,
}

/// Packet accounting.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Accounting {
    pub received: u64,
    pub sent: u64,
    pub dropped: u64,
    /// Received and neither sent, delivered nor dropped.
    pub in_flight: i64,
    pub buffers_used: u64,
}

/// All counters, at one moment.
#[derive(Clone, Debug)]
pub struct Figures {
    pub at: Instant,
    pub interfaces: Vec<Interface>,
    pub nodes: Vec<Node>,
    pub samples: Samples,
    pub accounting: Accounting,
}

impl Figures {
    /// Asks the router.
    ///
    /// # Errors
    /// If it does not answer, or answers something else.
    pub fn read(client: &mut Client) -> Result<Figures> {
        let mut ask = |command: &str| -> Result<Value> {
            let text = client.run(&format!("{command} | json"))?;
            serde_json::from_str(&text).with_context(|| format!("`{command} | json' gave {text:?}"))
        };
        let interfaces = interfaces(&ask("show interface")?);
        let nodes = nodes(&ask("show runtime")?);
        let samples = samples(&ask("show sflow")?);
        let accounting = accounting(&ask("show packet accounting")?);
        Ok(Figures { at: Instant::now(), interfaces, nodes, samples, accounting })
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn count(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or(0)
}

fn name(value: &Value) -> String {
    value["name"].as_str().unwrap_or_default().to_owned()
}

fn interfaces(all: &Value) -> Vec<Interface> {
    let one = |i: &Value| {
        let counters = i["counters"].as_object().into_iter().flatten();
        let counters = counters.filter_map(|(name, n)| Some((name.clone(), n.as_u64()?)));
        Interface { name: name(i), counters: counters.collect() }
    };
    items(all).map(one).filter(|i| i.name != "local0").collect()
}

/// Workers' nodes; the main thread forwards nothing.
fn nodes(threads: &Value) -> Vec<Node> {
    let mut all: Vec<Node> = Vec::new();
    for thread in items(threads).filter(|t| count(t, "thread") > 0) {
        for n in items(&thread["nodes"]) {
            let name = name(n);
            let at = all.iter().position(|other| other.name == name).unwrap_or_else(|| {
                all.push(Node { name, ..Node::default() });
                all.len() - 1
            });
            all[at].calls += count(n, "calls");
            all[at].vectors += count(n, "vectors");
            all[at].clocks += count(n, "clocks");
        }
    }
    all
}

fn samples(sflow: &Value) -> Samples {
    let s = &sflow["samples"];
    Samples { taken: count(s, "taken"), sent: count(s, "sent"), dropped: count(s, "dropped") }
}

fn accounting(value: &Value) -> Accounting {
    let none = Value::Null;
    let sum = items(&value["threads"]).find(|t| t["name"] == "sum").unwrap_or(&none);
    Accounting {
        received: count(sum, "rx"),
        sent: count(sum, "tx"),
        dropped: count(sum, "dropped"),
        in_flight: sum["in_flight"].as_i64().unwrap_or(-1),
        buffers_used: count(&value["buffers"], "used"),
    }
}

/// The last two readings, and why there is no newer one.
#[derive(Default)]
struct Latest {
    before: Option<Figures>,
    now: Option<Figures>,
    error: Option<String>,
}

/// A thread that asks twice a second, so that the screen never waits for the router.
pub struct Poller {
    latest: Arc<Mutex<Latest>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Poller {
    pub fn start(socket: &Path) -> Result<Poller> {
        let latest = Arc::new(Mutex::new(Latest::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let (into, until, socket) = (latest.clone(), stop.clone(), socket.to_owned());
        let thread = std::thread::Builder::new()
            .name("poller".into())
            .spawn(move || poll(&socket, &into, &until))
            .context("start the poller")?;
        Ok(Poller { latest, stop, thread: Some(thread) })
    }

    /// The last two readings, older first.
    pub fn latest(&self) -> Option<(Figures, Figures)> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        Some((latest.before.clone()?, latest.now.clone()?))
    }

    /// Returns the reason why the router does not answer, if so.
    pub fn error(&self) -> Option<String> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).error.clone()
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // If the router hangs, so does the thread: leave it.
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            drop(thread);
        }
    }
}

fn poll(socket: &PathBuf, into: &Mutex<Latest>, until: &AtomicBool) {
    let mut client = None;
    while !until.load(Ordering::Acquire) {
        let read = read(socket, &mut client);
        {
            let mut latest = into.lock().unwrap_or_else(PoisonError::into_inner);
            match read {
                Ok(figures) => {
                    latest.before = latest.now.replace(figures);
                    latest.error = None;
                }
                Err(error) => {
                    client = None;
                    latest.error = Some(format!("{error:#}"));
                }
            }
        }
        std::thread::park_timeout(PERIOD);
    }
}

fn read(socket: &PathBuf, client: &mut Option<Client>) -> Result<Figures> {
    let connected = match client.take() {
        Some(connected) => connected,
        None => Client::connect(socket)?,
    };
    Figures::read(client.insert(connected))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_are_read() {
        let answer = json!([
            { "name": "local0", "counters": {} },
            { "name": "host-eth0", "counters": { "rx_packets": 5, "tx_bytes": 7, "rx_miss": 1 } },
        ]);
        let read = interfaces(&answer);
        assert_eq!(read.len(), 1);
        assert_eq!((read[0].count("rx_packets"), read[0].count("tx_bytes")), (5, 7));
        assert_eq!((read[0].missed(), read[0].count("nothing")), (1, 0));

        let node = |name, n| json!({ "name": name, "calls": n, "vectors": 2 * n, "clocks": 3 * n });
        let answer = json!([
            { "thread": 0, "nodes": [node("main-loop", 1)] },
            { "thread": 1, "nodes": [node("ip4-input", 10)] },
            { "thread": 2, "nodes": [node("ip4-input", 1), node("drop", 1)] },
        ]);
        let read = nodes(&answer);
        assert_eq!(read[0], Node { name: "ip4-input".into(), calls: 11, vectors: 22, clocks: 33 });
        assert_eq!(read.len(), 2);

        let answer = json!({ "samples": { "taken": 3, "sent": 2, "dropped": 1 } });
        assert_eq!(samples(&answer), Samples { taken: 3, sent: 2, dropped: 1 });
        let sum = json!({ "name": "sum", "in_flight": 4, "rx": 10, "tx": 5, "dropped": 1 });
        let answer = json!({ "threads": [sum], "buffers": { "used": 4 } });
        let read = accounting(&answer);
        assert_eq!((read.in_flight, read.buffers_used, read.received), (4, 4, 10));
    }

    #[test]
    fn nonsense_is_read_as_nothing() {
        for nonsense in [json!(null), json!({ "a": [1] }), json!([1, "x", {}])] {
            assert!(nodes(&nonsense).is_empty());
            interfaces(&nonsense);
            assert_eq!(samples(&nonsense), Samples::default());
            assert_eq!(accounting(&nonsense).in_flight, -1);
        }
    }
}
