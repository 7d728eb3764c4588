//! A router in this process, driven by commands, and what it did in a window of time.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::collector::{self, Collector};
use thalweg_buffer::PoolConfig;
use thalweg_cli::CommandTree;
use thalweg_engine::Feature;
use thalweg_feat_sflow::state;
use thalweg_feat_sflow::stats::PortTotals;
use thalweg_graph::{Control, EngineConfig, clock};
use thalweg_tables::hash::fix_seeds;

/// Time for packets on their way to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// A router with all features.
pub struct Router {
    control: Control,
    tree: CommandTree<Control>,
}

/// Counts of a window.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// Packets sent per second.
    pub tx_pps: f64,
    /// The same by worker.
    pub tx_by_worker: Vec<f64>,
    /// Clocks per packet that came in of all loops in which there was something to do, the
    /// generator's input included.
    pub loop_clocks: f64,
    /// Counts of samples.
    pub samples: Samples,
    /// Figures per node: packets, clocks per packet, packets per call.
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

/// sFlow samples, of all interfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// Put into workers' rings.
    pub taken: u64,
    /// Lost because a ring was full.
    pub lost: u64,
    /// Put into datagrams.
    pub sent: u64,
}

impl Window {
    /// Clocks per packet over all nodes but the generator's own input, as the peers' figures are
    /// given: each node's clocks, divided by the packets that went in.
    pub fn clocks_without_input(&self) -> f64 {
        let input = self.nodes.get("pg-input").map_or(0, |n| n.packets).max(1) as f64;
        let all = self.nodes.iter().filter(|(name, _)| *name != "pg-input");
        all.map(|(_, n)| n.clocks * n.packets as f64 / input).sum()
    }

    /// A node's clocks per packet; 0 if it did not run.
    pub fn clocks_of(&self, node: &str) -> f64 {
        self.nodes.get(node).map_or(0.0, |n| n.clocks)
    }
}

/// The counters that a window is the difference of.
#[derive(Default)]
struct Counts {
    tx: Vec<u64>,
    rx: u64,
    busy_clocks: u64,
    samples: Samples,
    nodes: Vec<[u64; 3]>,
}

impl Router {
    /// Starts a router with workers on these cores.
    ///
    /// # Panics
    /// If the engine cannot start: there is nothing to measure then.
    pub fn start(cores: &[Option<usize>]) -> Router {
        Router::start_with(cores, &[])
    }

    /// Starts a router with workers on these cores, and more features than it has.
    ///
    /// # Panics
    /// If the engine cannot start.
    pub fn start_with(cores: &[Option<usize>], more: &[&'static Feature]) -> Router {
        self::cores();
        // The seed of hash tables is the same in each run: it decides which keys meet.
        fix_seeds();
        let config = EngineConfig {
            workers: cores.to_vec(),
            pool: PoolConfig { buffers: 16_384, ..PoolConfig::default() },
            ..EngineConfig::default()
        };
        let mut control = Control::new(config).unwrap_or_else(|e| panic!("{e}"));
        let features = [thalweg_program_router::features::FEATURES, more].concat();
        thalweg_engine::start(&mut control, &features).unwrap_or_else(|e| panic!("{e}"));
        let tree = thalweg_engine::command_tree(&control).unwrap_or_else(|e| panic!("{e:?}"));
        Router { control, tree }
    }

    /// Starts a router with one worker, on the last core.
    pub fn on_last_core() -> Router {
        Router::start(&[Some(cores() - 1)])
    }

    /// The main thread's state.
    pub fn control(&mut self) -> &mut Control {
        &mut self.control
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

    /// Runs one command, and does not wait until the workers have seen the change.
    ///
    /// # Panics
    /// If it fails.
    pub fn command(&mut self, line: &str) {
        let (text, end) = self.tree.run_line(&mut self.control, line);
        if let Err(e) = end {
            panic!("{line}: {e}\n{text}");
        }
    }

    /// Sends samples to a socket of ours, which does not read them.
    ///
    /// # Panics
    /// If there is no such socket.
    pub fn collect(&mut self) -> UdpSocket {
        let socket = collector::socket();
        let at = socket.local_addr().unwrap_or_else(|e| panic!("its address: {e}"));
        self.cli(&format!("sflow collector add 127.0.0.1 port {}", at.port()));
        socket
    }

    /// Sends samples to a collector that reads and counts them.
    ///
    /// # Panics
    /// If there can be none.
    pub fn collect_and_count(&mut self) -> Collector {
        Collector::start(self.collect())
    }

    /// Lets it run.
    pub fn wait(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            self.control.run_once(Some(left.min(Duration::from_millis(20))));
        }
    }

    fn counts(&self) -> Counts {
        let nodes = vec![[0u64; 3]; self.control.nodes().len()];
        let mut all = Counts { samples: self.samples(), nodes, ..Counts::default() };
        for w in 0..self.control.workers() {
            let s = self.control.worker_stats(w);
            all.tx.push(s.totals.tx.get());
            all.rx += s.totals.rx.get();
            all.busy_clocks += s.totals.busy_clocks.get();
            for (i, row) in all.nodes.iter_mut().enumerate() {
                let n = s.node(thalweg_graph::NodeId(i as u16));
                for (sum, c) in row.iter_mut().zip([&n.vectors, &n.clocks, &n.calls]) {
                    *sum += c.get();
                }
            }
        }
        all
    }

    /// Counts of samples so far, on interfaces that have sFlow.
    pub fn samples(&self) -> Samples {
        let report = state::report(&self.control);
        let mut all = Samples::default();
        for port in &report.ports {
            all.taken += port.totals.taken;
            all.lost += port.totals.dropped;
        }
        all.sent = report.service.map_or(0, |status| status.samples_sent);
        all
    }

    /// Clocks per packet of worker 0 for about `time`, in which it must not lack packets.
    pub fn clocks_per_packet(&mut self, time: Duration) -> f64 {
        let stats = self.control.worker_stats(0).clone();
        let look = || (stats.totals.rx.get(), clock::ticks());
        let (packets, start) = look();
        self.wait(time);
        let (after, end) = look();
        (end - start) as f64 / (after - packets).max(1) as f64
    }

    /// Samples taken and lost so far, by interface that has sFlow.
    pub fn samples_by_port(&self) -> Vec<(String, Samples)> {
        let ports = state::report(&self.control).ports.into_iter();
        let one =
            |totals: PortTotals| Samples { taken: totals.taken, lost: totals.dropped, sent: 0 };
        ports.map(|port| (port.name, one(port.totals))).collect()
    }

    /// Measures for `time`.
    pub fn measure(&mut self, time: Duration) -> Window {
        let before = self.counts();
        let start = clock::ticks();
        self.wait(time);
        let seconds = (clock::ticks() - start) as f64 / clock::hz();
        let after = self.counts();
        let (s, t) = (after.samples, before.samples);
        let pairs = after.tx.iter().zip(&before.tx);
        let tx: Vec<f64> = pairs.map(|(a, b)| (a - b) as f64 / seconds).collect();
        let mut w = Window {
            tx_pps: tx.iter().sum(),
            tx_by_worker: tx,
            loop_clocks: (after.busy_clocks - before.busy_clocks) as f64
                / (after.rx - before.rx).max(1) as f64,
            samples: Samples {
                taken: s.taken.saturating_sub(t.taken),
                lost: s.lost.saturating_sub(t.lost),
                sent: s.sent.saturating_sub(t.sent),
            },
            nodes: BTreeMap::new(),
        };
        for (i, (a, b)) in after.nodes.iter().zip(&before.nodes).enumerate() {
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
        let end = Instant::now() + PATIENCE;
        // Thousands of the router's own packets may still wait for their worker.
        let mut books = self.books();
        while books.0 != books.1 + books.2 && Instant::now() < end {
            self.wait(Duration::from_millis(20));
            books = self.books();
        }
        let (came, went, here) = books;
        assert_eq!(came, went + here, "packets came, went, are here: {came} {went} {here}");
    }

    /// Packets that came, that went, and that are here.
    fn books(&mut self) -> (u64, u64, u64) {
        self.control.sync();
        let (mut came, mut went) = (0, 0);
        for w in 0..self.control.workers() {
            let t = &self.control.worker_stats(w).totals;
            came += t.rx.get() + t.originated.get();
            went += t.tx.get() + t.delivered.get() + t.dropped.get() + t.consumed.get();
        }
        (came, went, self.control.pool().audit().in_use as u64)
    }

    /// Packets dropped so far. A benchmark's packets are all to be forwarded.
    pub fn dropped(&self) -> u64 {
        let all = 0..self.control.workers();
        all.map(|w| self.control.worker_stats(w).totals.dropped.get()).sum()
    }

    /// Ends it.
    ///
    /// # Panics
    /// If a packet was dropped, or a buffer is missing.
    pub fn stop(mut self) {
        self.settle();
        assert_eq!(self.dropped(), 0, "packets dropped:\n{}", self.cli("show errors"));
        let audit = self.control.shut_down();
        assert_eq!(audit.in_use, 0, "buffers leaked: {audit:?}");
    }
}

/// Processors that this process may use, as it was before the first router: one that runs keeps the
/// thread that started it off its workers' processors.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}
