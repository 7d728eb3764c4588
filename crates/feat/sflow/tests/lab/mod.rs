//! A router of one input and one end, with sFlow between them, and a collector on the loopback.

// Each test binary uses a part of it.
#![allow(dead_code)]

use std::any::Any;
use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use thalweg_buffer::{Flags, Frame, GsoKind, PoolConfig};
use thalweg_cli::{CliError, CommandTree};
use thalweg_device::loopback::create_loopback;
use thalweg_device::{SwIfIndex, interface};
use thalweg_engine::Feature;
use thalweg_graph::{
    Built, Control, EngineConfig, HandOff, InputNode, Kind, NodeCx, NodeDecl, NodeId, Poll, Runner,
};
use thalweg_sflow::model::InterfaceCounters;
use thalweg_sflow::{CounterRecord, DataSource, Datagram, FlowRecord, Interface, Sample};
use thalweg_testkit::PacketLog;
use thalweg_wire::ethernet::MacAddr;

/// Bytes that a buffer holds.
const BUFFER: usize = 256;

/// Packets seen at the end of the graph.
#[derive(Default)]
pub struct Seen {
    pub packets: AtomicU64,
    pub marked: AtomicU64,
    /// Delivers or drops packets, or sends them: see [`Lab::out_by`].
    pub way: AtomicU64,
    /// The end of another worker does so, if this is its number and one more.
    pub owner: AtomicUsize,
}

/// Packet that is delivered, or dropped; other numbers are an output node, with these added, above
/// 32 bits with an interface.
pub const DELIVER: u64 = 0;
pub const DROP: u64 = 1;
const NODES: u64 = 2;

thalweg_graph::errors! {
    BLACKHOLE: Error, BLACKHOLE_ROUTE, "the Test drops it";
}

/// Makes the input create packets: a frame per element.
pub struct Make {
    pub sw_if: SwIfIndex,
    pub frames: Vec<Vec<Vec<u8>>>,
    /// Bytes that the first segment has at most; it could have as many as a buffer.
    pub first: usize,
    /// Segment size of TCP GSO packets in bytes; 0 for ordinary packets.
    pub gso: u16,
}

static INPUT: NodeDecl = NodeDecl {
    name: "test-input",
    kind: Kind::Input,
    build: |_| Built::input(Input::default()),
    ..NodeDecl::DEFAULT
};

/// Interface, length of the first segment, GSO size, and packets.
type Incoming = (SwIfIndex, usize, u16, Vec<Vec<u8>>);

#[derive(Default)]
struct Input {
    frames: VecDeque<Incoming>,
}

impl InputNode for Input {
    fn poll(&mut self, cx: &mut NodeCx<'_>) -> Poll {
        let Some((sw_if, first, gso, packets)) = self.frames.pop_front() else {
            return Poll::Idle;
        };
        let mut frame = cx.new_frame();
        for bytes in &packets {
            let mut p = cx.cache().alloc().expect("a buffer");
            if bytes.len() <= first {
                assert!(p.fill(bytes, cx.cache()), "a buffer for {} bytes", bytes.len());
            } else {
                // Bytes stepped over make the first segment shorter.
                let spare = BUFFER - first;
                let padded = [&vec![0; spare], &bytes[..]].concat();
                assert!(p.fill(&padded, cx.cache()), "buffers for {} bytes", bytes.len());
                assert!(p.pull(spare));
            }
            if gso > 0 {
                (p.meta_mut().offload.gso_size, p.meta_mut().offload.gso) = (gso, GsoKind::Tcp4);
                p.mark(Flags::OFFLOAD);
            }
            assert!(frame.push(p).is_ok(), "a frame holds 256");
        }
        cx.device_input(frame, sw_if, |_, _, _| {});
        Poll::Busy(packets.len())
    }

    fn message(&mut self, _: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        let make = message.downcast::<Make>().expect("input takes Make");
        let frames = make.frames.into_iter();
        let (first, gso) = (make.first, make.gso);
        self.frames.extend(frames.map(|f| (make.sw_if, first, gso, f)));
    }
}

/// Stands in for the real one, where the arc ends.
static END: NodeDecl = NodeDecl {
    name: "ethernet-input",
    errors: ERRORS,
    build: |cx| Built::Node(Box::new(End(cx.shared(), Some(cx.hand_off(QUEUE)), cx.worker))),
    ..NodeDecl::DEFAULT
};

/// The queue by which packets go to another worker, and where they arrive.
const QUEUE: &str = "test-queue";
static OWNER: NodeDecl = NodeDecl {
    name: "test-owner",
    errors: ERRORS,
    build: |cx| Built::Node(Box::new(End(cx.shared(), None, cx.worker))),
    ..NodeDecl::DEFAULT
};

struct End(Arc<Seen>, Option<HandOff>, usize);

impl Runner for End {
    fn run(&mut self, cx: &mut NodeCx<'_>, mut frame: Box<Frame>) {
        let owner = self.0.owner.load(Relaxed).checked_sub(1);
        if let (Some(queue), Some(owner)) = (&self.1, owner.filter(|w| *w != self.2)) {
            return cx.hand_off_frame(frame, queue, owner);
        }
        let marks = frame.sampled().len() as u64;
        assert!(marks == 0 || frame.flags().contains(Flags::SAMPLED));
        self.0.marked.fetch_add(marks, Relaxed);
        self.0.packets.fetch_add(frame.len() as u64, Relaxed);
        match self.0.way.load(Relaxed) {
            DELIVER => cx.deliver_frame(frame),
            DROP => cx.drop_frame(frame, BLACKHOLE),
            out => {
                frame.set_tx(SwIfIndex(out as u32));
                cx.enqueue(frame, NodeId(((out >> 32) - NODES) as u16));
            }
        }
    }
    fn message(&mut self, _: &mut NodeCx<'_>, _: Box<dyn Any + Send>) {}
}

static TEST: Feature = Feature {
    name: "test",
    about: "an input and an end",
    nodes: &[&INPUT, &END, &OWNER],
    init: |c| c.add_hand_off(QUEUE, OWNER.name).expect("a queue"),
    ..Feature::DEFAULT
};

/// A sample as the collector got it.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    pub sequence: u32,
    pub source: (u32, u32),
    pub rate: u32,
    pub pool: u32,
    pub drops: u32,
    pub input: Interface,
    pub output: Interface,
    pub frame_length: u32,
    pub header: Vec<u8>,
    /// VLANs in and out.
    pub vlans: Option<(u32, u32)>,
}

/// A dropped packet as the collector got it.
#[derive(Debug, Clone, PartialEq)]
pub struct Discard {
    pub sequence: u32,
    pub drops: u32,
    pub input: u32,
    pub reason: u32,
    pub trap: (String, String),
    pub frame_length: u32,
    pub header: Vec<u8>,
}

/// Counters as the collector got them.
#[derive(Debug, Clone)]
pub struct Counters {
    pub sequence: u32,
    pub source: (u32, u32),
    pub interface: InterfaceCounters,
    pub name: String,
}

/// A collector on the loopback.
pub struct Collector {
    socket: UdpSocket,
    pub addr: SocketAddr,
    pub flows: Vec<Flow>,
    pub discards: Vec<Discard>,
    pub counters: Vec<Counters>,
    pub datagrams: Vec<u32>,
    pub agents: Vec<String>,
    /// Index and addresses of the host's adapters, as they came last.
    pub adapters: Vec<(u32, Vec<MacAddr>)>,
}

impl Collector {
    pub fn new() -> Collector {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.set_read_timeout(Some(Duration::from_millis(5))).expect("a timeout");
        let addr = socket.local_addr().expect("an address");
        Collector {
            socket,
            addr,
            flows: Vec::new(),
            discards: Vec::new(),
            counters: Vec::new(),
            datagrams: Vec::new(),
            agents: Vec::new(),
            adapters: Vec::new(),
        }
    }

    /// Takes a datagram if one comes.
    pub fn receive(&mut self) -> bool {
        let mut buf = [0; 65_536];
        let Ok(n) = self.socket.recv(&mut buf) else { return false };
        let datagram = Datagram::parse(&buf[..n]).expect("a datagram");
        datagram.check_end().expect("no trailing bytes");
        self.datagrams.push(datagram.sequence);
        self.agents.push(datagram.agent.expect("an agent").to_string());
        for sample in datagram.samples() {
            match sample.expect("a sample") {
                Sample::Flow(f) => {
                    let records: Vec<_> = f.records.clone().map(|r| r.expect("record")).collect();
                    let (raw, vlans) = match &records[..] {
                        [FlowRecord::RawHeader(raw)] => (raw, None),
                        [FlowRecord::Switch(s), FlowRecord::RawHeader(raw)] => {
                            (raw, Some((s.source_vlan, s.destination_vlan)))
                        }
                        other => panic!("{other:?}"),
                    };
                    assert_eq!(raw.stripped, 4);
                    self.flows.push(Flow {
                        sequence: f.sequence,
                        source: (f.source.class, f.source.index),
                        rate: f.rate,
                        pool: f.pool,
                        drops: f.drops,
                        input: f.input,
                        output: f.output,
                        frame_length: raw.frame_length,
                        header: raw.header.to_vec(),
                        vlans,
                    });
                }
                Sample::Discard(d) => {
                    let records: Vec<_> = d.records.clone().map(|r| r.expect("record")).collect();
                    let [FlowRecord::HardwareTrap(trap), FlowRecord::RawHeader(raw)] = &records[..]
                    else {
                        panic!("{records:?}")
                    };
                    let text = |t: &[u8]| String::from_utf8_lossy(t).into_owned();
                    self.discards.push(Discard {
                        sequence: d.sequence,
                        drops: d.drops,
                        input: d.input,
                        reason: d.reason.0,
                        trap: (text(trap.group.0), text(trap.name.0)),
                        frame_length: raw.frame_length,
                        header: raw.header.to_vec(),
                    });
                }
                // The host's come at random.
                Sample::Counters(c) if c.source == DataSource::HOST => {
                    for record in c.records.clone() {
                        if let CounterRecord::HostAdapters(all) = record.expect("a record") {
                            self.adapters = all.0.into_iter().map(|a| (a.index, a.macs)).collect();
                        }
                    }
                }
                Sample::Counters(c) => {
                    let mut counters = Counters {
                        sequence: c.sequence,
                        source: (c.source.class, c.source.index),
                        interface: InterfaceCounters::default(),
                        name: String::new(),
                    };
                    for record in c.records.clone() {
                        match record.expect("a record") {
                            CounterRecord::Interface(i) => counters.interface = i,
                            CounterRecord::PortName(n) => {
                                counters.name = String::from_utf8_lossy(n.name.0).into()
                            }
                            other => panic!("{other:?}"),
                        }
                    }
                    self.counters.push(counters);
                }
                other => panic!("{other:?}"),
            }
        }
        true
    }
}

/// A running router.
pub struct Lab {
    pub c: Control,
    pub seen: Arc<Seen>,
    tree: CommandTree<Control>,
    sent: u64,
    /// Bytes that the first segment of a packet has at most.
    pub first: usize,
    /// Segment size of GSO packets in bytes; 0 for ordinary packets.
    pub gso: u16,
    packets: PacketLog,
}

impl Lab {
    pub fn new(workers: usize) -> Lab {
        Lab::with_buffers(workers, 4096)
    }

    pub fn with_buffers(workers: usize, buffers: usize) -> Lab {
        let pool = PoolConfig { buffers, data_size: BUFFER, page_size: None };
        let config = EngineConfig { workers: vec![None; workers], pool, ..EngineConfig::default() };
        let mut c = Control::new(config).expect("engine");
        let seen = Arc::new(Seen::default());
        c.share(seen.clone());
        let features = thalweg_engine::with_needs(&[&thalweg_feat_sflow::FEATURE, &TEST]);
        thalweg_engine::start(&mut c, &features).expect("graph");
        let commands = thalweg_feat_sflow::FEATURE.all_commands().collect();
        let tree = CommandTree::new(commands).expect("commands");
        Lab { c, seen, tree, sent: 0, first: BUFFER, gso: 0, packets: PacketLog::new() }
    }

    /// Creates `loop<n>` and returns its index.
    pub fn interface(&mut self) -> SwIfIndex {
        SwIfIndex(create_loopback(&mut self.c, None, None).expect("an interface").get())
    }

    /// Runs a command that must succeed.
    pub fn cli(&mut self, line: &str) -> String {
        let (text, result) = self.tree.run_line(&mut self.c, line);
        if let Err(e) = result {
            panic!("{line}: {e}");
        }
        text
    }

    /// Runs a command that must fail.
    pub fn cli_error(&mut self, line: &str) -> CliError {
        let (_, result) = self.tree.run_line(&mut self.c, line);
        result.err().unwrap_or_else(|| panic!("{line} succeeded"))
    }

    /// `show sflow` as JSON.
    pub fn json(&mut self) -> serde_json::Value {
        serde_json::from_str(&self.cli("show sflow | json")).expect("JSON")
    }

    /// Sends datagrams to a new collector.
    pub fn collector(&mut self) -> Collector {
        let collector = Collector::new();
        self.cli(&format!("sflow collector add 127.0.0.1 port {}", collector.addr.port()));
        collector
    }

    /// Receives frames on a worker and waits until they are through.
    pub fn receive(&mut self, worker: usize, sw_if: SwIfIndex, frames: Vec<Vec<Vec<u8>>>) {
        self.sent += frames.iter().map(Vec::len).sum::<usize>() as u64;
        let input = self.c.node("test-input").expect("the input");
        self.log(sw_if, &frames);
        let make = Make { sw_if, frames, first: self.first, gso: self.gso };
        self.c.message(worker, input, Box::new(make));
        self.through();
    }

    /// Receives frames on a worker, each on all of these interfaces one after the other, and waits
    /// until they are through.
    pub fn receive_in_turns(
        &mut self,
        worker: usize,
        ports: &[SwIfIndex],
        frames: &[Vec<Vec<u8>>],
    ) {
        let input = self.c.node("test-input").expect("the input");
        ports.iter().for_each(|sw_if| self.log(*sw_if, frames));
        for frame in frames {
            for sw_if in ports {
                self.sent += frame.len() as u64;
                let frames = vec![frame.clone()];
                let make = Make { sw_if: *sw_if, frames, first: self.first, gso: self.gso };
                self.c.message(worker, input, Box::new(make));
            }
        }
        self.through();
    }

    /// Enters packets into the log for a test that fails. On this thread and beforehand: in the
    /// worker it would take longer than sampling, and no ring would ever be full.
    fn log(&self, sw_if: SwIfIndex, frames: &[Vec<Vec<u8>>]) {
        let tap = self.packets.interface(&format!("sw_if_index {sw_if}"));
        frames.iter().flatten().for_each(|bytes| tap.received([&bytes[..]]));
    }

    /// Waits until all packets are through and workers have counted them.
    fn through(&mut self) {
        let sent = self.sent;
        self.until("packets are through", |lab| lab.seen.packets.load(Relaxed) == sent);
        // Taps publish when they are asked, when there is nothing to do, and now and then.
        self.c.sync();
    }

    /// Runs the main loop until `done`.
    pub fn until(&mut self, what: &str, mut done: impl FnMut(&mut Lab) -> bool) {
        let start = Instant::now();
        while !done(self) {
            assert!(start.elapsed() < thalweg_testkit::WAIT_LIMIT, "waited too long until {what}");
            self.c.run_once(Some(Duration::from_millis(1)));
        }
    }

    /// Sends packets out by an interface, delivers or drops them from here on.
    pub fn packets_go(&mut self, way: u64) {
        self.seen.way.store(way, Relaxed);
    }

    /// Hands packets to a worker first.
    pub fn owned_by(&self, worker: Option<usize>) {
        self.seen.owner.store(worker.map_or(0, |w| w + 1), Relaxed);
    }

    /// The way out by an interface.
    pub fn out_by(&self, name: &str) -> u64 {
        let sw_if = interface::find(&self.c, name).expect("an interface");
        let node = interface::view(&self.c, sw_if).expect("its view").output;
        (u64::from(node.0) + NODES) << 32 | u64::from(sw_if.get())
    }

    /// Waits until the collector has `n` flow samples, and no more of them come.
    pub fn flows(&mut self, collector: &mut Collector, n: usize) {
        self.until(&format!("there are {n} samples"), |_| {
            collector.receive();
            collector.flows.len() >= n
        });
        assert_eq!(collector.flows.len(), n, "samples too many");
    }

    /// A counter of the tap.
    pub fn count(&self, text: &str) -> u64 {
        let id = self.c.node("sflow").expect("the tap");
        let at = self.c.errors().iter().position(|(n, e)| *n == id && e.text == text).expect(text);
        (0..self.c.workers()).map(|w| self.c.worker_stats(w).error(at as u32).get()).sum()
    }

    pub fn marked(&self) -> u64 {
        self.seen.marked.load(Relaxed)
    }

    /// Ends it: every buffer must be home.
    pub fn close(mut self) {
        assert_eq!(self.c.shut_down().in_use, 0);
    }
}

/// A packet of `length` bytes that differs from others by `number`.
pub fn packet(number: u32, length: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..length).map(|i| (i as u8).wrapping_add(number as u8)).collect();
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Frames of these sizes, of packets numbered from `first` with 60 bytes each.
pub fn frames(first: u32, sizes: impl IntoIterator<Item = usize>) -> Vec<Vec<Vec<u8>>> {
    frames_of(60, first, sizes)
}

/// The same, of packets of another length.
pub fn frames_of(
    length: usize,
    first: u32,
    sizes: impl IntoIterator<Item = usize>,
) -> Vec<Vec<Vec<u8>>> {
    let mut number = first;
    let mut frame = |n: usize| {
        let from = number;
        number += n as u32;
        (from..number).map(|i| packet(i, length)).collect()
    };
    sizes.into_iter().map(&mut frame).collect()
}
