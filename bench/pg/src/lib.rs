//! A router in this process, driven by commands, and what it did in a window of time.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use thalweg_buffer::PoolConfig;
use thalweg_cli::CommandTree;
use thalweg_graph::{Control, EngineConfig, clock};

/// A router with all features.
pub struct Router {
    control: Control,
    tree: CommandTree<Control>,
}

/// What happened in a window.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// Packets sent per second.
    pub tx_pps: f64,
    /// Per node: packets, clocks per packet, packets per call.
    pub nodes: BTreeMap<String, NodeRow>,
}

/// One node in a window.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeRow {
    /// Packets handled.
    pub packets: u64,
    /// Clocks per packet.
    pub clocks: f64,
    /// Packets per call.
    pub per_call: f64,
}

impl Window {
    /// Clocks per packet over all nodes but the generator's own input, as the peers' figures are
    /// given: each node's clocks, divided by the packets that went in.
    pub fn clocks_without_input(&self) -> f64 {
        let input = self.nodes.get("pg-input").map_or(0, |n| n.packets).max(1) as f64;
        let all = self.nodes.iter().filter(|(name, _)| *name != "pg-input");
        all.map(|(_, n)| n.clocks * n.packets as f64 / input).sum()
    }
}

impl Router {
    /// Starts a router with workers on these cores.
    ///
    /// # Panics
    /// If the engine cannot start: there is nothing to measure then.
    pub fn start(cores: &[Option<usize>]) -> Router {
        let config = EngineConfig {
            workers: cores.to_vec(),
            pool: PoolConfig { buffers: 16_384, ..PoolConfig::default() },
            ..EngineConfig::default()
        };
        let mut control = Control::new(config).unwrap_or_else(|e| panic!("{e}"));
        control.start(thalweg::features::FEATURES).unwrap_or_else(|e| panic!("{e}"));
        let commands = thalweg::run::commands(&control);
        let tree = CommandTree::new(commands).unwrap_or_else(|e| panic!("{e:?}"));
        Router { control, tree }
    }

    /// Runs commands, one per line.
    ///
    /// # Panics
    /// If one fails.
    pub fn cli(&mut self, lines: &str) -> String {
        let mut all = String::new();
        for line in lines.lines().map(str::trim).filter(|l| !l.is_empty()) {
            let (text, end) = self.tree.run_line(&mut self.control, line);
            if let Err(e) = end {
                panic!("{line}: {e}\n{text}");
            }
            all.push_str(&text);
        }
        self.control.sync();
        all
    }

    /// Runs one command, and does not wait for the workers to have seen what it told them.
    ///
    /// # Panics
    /// If it fails.
    pub fn command(&mut self, line: &str) {
        let (text, end) = self.tree.run_line(&mut self.control, line);
        if let Err(e) = end {
            panic!("{line}: {e}\n{text}");
        }
    }

    /// The main thread's state.
    pub fn control(&mut self) -> &mut Control {
        &mut self.control
    }

    /// Lets it run.
    pub fn wait(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            self.control.run_once(Some(left.min(Duration::from_millis(20))));
        }
    }

    fn snapshot(&self) -> (u64, Vec<[u64; 3]>) {
        let (mut tx, mut nodes) = (0, vec![[0u64; 3]; self.control.nodes().len()]);
        for w in 0..self.control.workers() {
            let s = self.control.worker_stats(w);
            tx += s.totals.tx.get();
            for (i, row) in nodes.iter_mut().enumerate() {
                let n = s.node(thalweg_graph::NodeId(i as u16));
                for (sum, c) in row.iter_mut().zip([&n.vectors, &n.clocks, &n.calls]) {
                    *sum += c.get();
                }
            }
        }
        (tx, nodes)
    }

    /// Measures for `time`.
    pub fn measure(&mut self, time: Duration) -> Window {
        let (tx0, before) = self.snapshot();
        let start = clock::ticks();
        self.wait(time);
        let seconds = (clock::ticks() - start) as f64 / clock::hz();
        let (tx1, after) = self.snapshot();
        let mut w = Window { tx_pps: (tx1 - tx0) as f64 / seconds, nodes: BTreeMap::new() };
        for (i, (a, b)) in after.iter().zip(&before).enumerate() {
            let [packets, clocks, calls] = [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
            if packets > 0 {
                let row = NodeRow {
                    packets,
                    clocks: clocks as f64 / packets as f64,
                    per_call: packets as f64 / calls.max(1) as f64,
                };
                w.nodes.insert(self.control.nodes()[i].name.to_string(), row);
            }
        }
        w
    }

    /// Stops the generator and checks that every packet is accounted for.
    ///
    /// # Panics
    /// If the books do not balance: the figures would be worth nothing.
    pub fn settle(&mut self) {
        self.cli("packet-generator disable-stream");
        self.wait(Duration::from_millis(20));
        self.control.sync();
        let (mut came, mut went) = (0, 0);
        for w in 0..self.control.workers() {
            let t = &self.control.worker_stats(w).totals;
            came += t.rx.get() + t.originated.get();
            went += t.tx.get() + t.delivered.get() + t.dropped.get() + t.consumed.get();
        }
        let here = self.control.pool().audit().in_use as u64;
        assert_eq!(came, went + here, "packets came, went, are here: {came} {went} {here}");
    }

    /// Ends it.
    ///
    /// # Panics
    /// If a buffer is missing.
    pub fn stop(mut self) {
        self.settle();
        let audit = self.control.shut_down();
        assert_eq!(audit.in_use, 0, "buffers leaked: {audit:?}");
    }
}

/// A path to measure.
pub struct Case {
    /// What tables call it.
    pub name: &'static str,
    /// Commands, one per line.
    pub setup: String,
    /// The command that makes the stream of packets.
    pub stream: &'static str,
}

const PORTS: &str = "create packet-generator interface pg0
    create packet-generator interface pg1
    set interface state pg0 up
    set interface state pg1 up";

const ADDRESSES: &str = "set interface mac address pg0 02:fe:00:00:00:01
    set interface mac address pg1 02:fe:00:00:00:02
    set interface ip address pg0 10.0.0.254/24
    set interface ip address pg1 10.1.0.254/24
    set ip neighbor pg1 10.1.0.1 02:00:00:00:00:99 static
    set ip neighbor pg1 10.1.0.2 02:00:00:00:00:98 static";

/// The paths that benchmarks measure: cross connect and IPv4, with one flow and with many.
pub fn cases() -> Vec<Case> {
    let one = "packet-generator new { name s0 limit -1 size 64-64 interface pg0 worker 0 \
               data { IP4: 0200.0000.00aa -> 02fe.0000.0001 UDP: 10.0.0.1 -> 48.0.0.1 \
               UDP: 1234 -> 4321 incrementing 22 } }";
    let many = "packet-generator new { name s0 limit -1 size 64-64 interface pg0 worker 0 \
                data { IP4: 0200.0000.00aa -> 02fe.0000.0001 UDP: 10.0.0.1 -> \
                48.0.0.0 - 48.0.39.15 UDP: 1234 -> 4321 incrementing 22 } }";
    vec![
        Case {
            name: "L2 cross connect",
            setup: format!("{PORTS}\nset interface l2 xconnect pg0 pg1"),
            stream: one,
        },
        Case {
            name: "IPv4, 1 flow",
            setup: format!("{PORTS}\n{ADDRESSES}\nip route add 48.0.0.0/8 via 10.1.0.1 pg1"),
            stream: one,
        },
        Case {
            name: "IPv4, 10,000 flows over 10,000 /32 routes",
            setup: format!(
                "{PORTS}\n{ADDRESSES}\nip route add 48.0.0.0/32 count 10000 via 10.1.0.1 pg1"
            ),
            stream: many,
        },
    ]
}
