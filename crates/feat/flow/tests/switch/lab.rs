//! A switch made of the real features, with clients and a server at its two ports: frames sent by a
//! port are delivered to them, and their replies are received on the same port, by the worker that
//! sent.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::any::Any;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use thalweg_buffer::{Frame, Packet, PoolConfig};
use thalweg_cli::CommandTree;
use thalweg_conntrack::Tuple;
use thalweg_device::{Caps, Device, DeviceError, InterfaceSpec, SwIfIndex, Transmit, interface};
use thalweg_engine::Feature;
use thalweg_graph::{
    Built, Control, EngineConfig, InputNode, Kind, NodeCx, NodeDecl, Poll, Runner, clock,
};
use thalweg_load::{Client, Counts, MacAddr, Micros, Profile, Server, ServerCounts, Sink};
use thalweg_testkit::{PacketLog, PacketTap};

/// Frames waiting to be received on a port.
type Waiting = Vec<(SwIfIndex, Box<Frame>)>;

/// The hosts at a worker's ports; on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct World {
    client: Option<Client>,
    server: Option<Server>,
    ports: [SwIfIndex; 2],
    waiting: Waiting,
    /// Frames to be received, by port.
    arriving: Vec<(SwIfIndex, Vec<Vec<u8>>)>,
    /// Frames sent, by port, if they are recorded.
    seen: Vec<(SwIfIndex, Vec<u8>)>,
    records: bool,
    /// Maximum number of connections opened between two loops.
    burst: usize,
    /// True if devices distribute packets as trackers do connections: nothing is handed over, and
    /// replies arrive at the worker that sent.
    spread: bool,
    /// The remaining datagrams of pairs of hosts: requests and replies.
    pairs: std::ops::Range<u32>,
    /// True if the replies of the first pairs are next.
    answers: bool,
    /// Log of the ports' packets for a test that fails; benchmarks have none.
    taps: Option<[PacketTap; 2]>,
}

/// Pairs per frame.
const PAIRS: u32 = 256;

/// A datagram between a pair of hosts.
fn pair(n: u32, answer: bool, out: &mut [u8]) {
    let (client, server) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let host = (0x1000_0000 + n / 50_000).to_be_bytes();
    let port = (1024 + (n % 50_000) as u16).to_be_bytes();
    let (peer, service) = ([48, 0, 0, 1], 53u16.to_be_bytes());
    out.fill(0);
    out[12..14].copy_from_slice(&[8, 0]);
    out[14..26].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0]);
    let (from, to) =
        if answer { ((peer, service), (host, port)) } else { ((host, port), (peer, service)) };
    let (src, dst) = if answer { (server, client) } else { (client, server) };
    out[..6].copy_from_slice(&dst);
    out[6..12].copy_from_slice(&src);
    out[26..30].copy_from_slice(&from.0);
    out[30..34].copy_from_slice(&to.0);
    out[34..36].copy_from_slice(&from.1);
    out[36..38].copy_from_slice(&to.1);
    out[39] = 26;
}

/// One per worker; only that worker locks it while it runs.
type Worlds = Arc<Vec<Mutex<World>>>;

static INPUT: NodeDecl = NodeDecl {
    name: "load-input",
    kind: Kind::Input,
    build: |cx| Built::input(Input(cx.shared::<Vec<Mutex<World>>>())),
    ..NodeDecl::DEFAULT
};

static TX: NodeDecl = NodeDecl { name: "load-tx", kind: Kind::Tx, ..NodeDecl::DEFAULT };

static LOAD: Feature = Feature {
    name: "load",
    about: "clients and a server",
    nodes: &[&INPUT],
    init,
    ..Feature::DEFAULT
};

fn init(c: &mut Control) {
    let worlds: Worlds =
        Arc::new((0..c.config().workers.len()).map(|_| Mutex::default()).collect());
    c.share(worlds);
}

fn micros(cx: &NodeCx<'_>) -> Micros {
    (cx.now() as f64 * 1e6 / clock::hz()) as Micros
}

/// Turns the hosts' packets into frames.
struct Frames<'a, 'w> {
    cx: &'a mut NodeCx<'w>,
    /// The packet being written.
    packet: Option<Packet>,
    full: Vec<Box<Frame>>,
    frame: Option<Box<Frame>>,
}

impl<'a, 'w> Frames<'a, 'w> {
    fn new(cx: &'a mut NodeCx<'w>) -> Self {
        Frames { cx, packet: None, full: Vec::new(), frame: None }
    }

    fn flush(&mut self) {
        let Some(packet) = self.packet.take() else { return };
        let frame = match self.frame.take() {
            Some(frame) if frame.room() > 0 => self.frame.insert(frame),
            full => {
                self.full.extend(full);
                let new = self.cx.new_frame();
                self.frame.insert(new)
            }
        };
        assert!(frame.push(packet).is_ok());
    }

    fn finish(mut self, port: SwIfIndex, waiting: &mut Waiting) {
        self.flush();
        let frames = self.full.drain(..).chain(self.frame.take());
        waiting.extend(frames.map(|frame| (port, frame)));
    }
}

impl Sink for Frames<'_, '_> {
    fn frame(&mut self, length: usize) -> Option<&mut [u8]> {
        self.flush();
        let mut packet = self.cx.cache().alloc()?;
        // Short packets are written in place.
        if packet.push(length).is_none() && !packet.fill(&[0; 1600][..length], self.cx.cache()) {
            self.cx.consume(packet);
            return None;
        }
        Some(self.packet.insert(packet).data_mut())
    }
}

struct Input(Worlds);

impl InputNode for Input {
    fn poll(&mut self, cx: &mut NodeCx<'_>) -> Poll {
        let now = micros(cx);
        let mut world = self.0[cx.worker()].lock().unwrap();
        let World { client, ports, waiting, burst, arriving, pairs, answers, .. } = &mut *world;
        let ports = *ports;
        if pairs.start < pairs.end {
            let some = pairs.start..pairs.end.min(pairs.start + PAIRS);
            let mut out = Frames::new(cx);
            for n in some.clone() {
                pair(n, *answers, out.frame(60).expect("room"));
            }
            out.finish(ports[usize::from(*answers)], waiting);
            if std::mem::replace(answers, !*answers) {
                pairs.start = some.end;
            }
        }
        for (port, frames) in arriving.drain(..) {
            let mut out = Frames::new(cx);
            for bytes in frames {
                let room = out.frame(bytes.len()).expect("room");
                room.copy_from_slice(&bytes);
            }
            out.finish(port, waiting);
        }
        if let Some(client) = client {
            let mut out = Frames::new(cx);
            client.poll(now, *burst, &mut out);
            out.finish(ports[0], waiting);
        }
        let frames = std::mem::take(waiting);
        let idle = client.as_ref().is_none_or(|client| client.open() == 0);
        let taps = world.taps.clone();
        drop(world);
        let mut packets = 0;
        for (port, frame) in frames {
            if let Some(tap) = taps.as_ref().map(|taps| &taps[usize::from(port == ports[1])]) {
                (0..frame.len()).for_each(|i| tap.received(frame.segments(i as u8)));
            }
            packets += frame.len();
            cx.device_input(frame, port, |f, i, out| {
                let _ = writeln!(out, "{} bytes", f.total_len(i));
            });
        }
        match packets {
            0 if idle => Poll::At(cx.now() + clock::ticks_in(Duration::from_millis(1))),
            n => Poll::Busy(n),
        }
    }
}

/// The worker whose client has this connection: each worker has its own clients, by the fourth byte
/// of the address that is not the server's.
fn owner(frame: &[u8], workers: usize) -> Option<usize> {
    let ip = frame.get(26..34)?;
    let client = if ip[0] == 48 { &ip[4..] } else { &ip[..4] };
    Some(usize::from(client[1]) % workers)
}

/// Delivers what a port sends to the hosts at it.
struct Hear(SwIfIndex, Worlds);

impl Runner for Hear {
    fn run(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        let now = micros(cx);
        let here = cx.worker();
        let (mut waiting, mut seen) = (Vec::new(), Vec::new());
        let mut out = Frames::new(cx);
        let mut locked: Option<(usize, std::sync::MutexGuard<'_, World>)> = None;
        let (spread, tap) = {
            let world = self.1[here].lock().unwrap();
            let tap = world.taps.as_ref().map(|t| t[usize::from(self.0 == world.ports[1])].clone());
            (world.spread, tap)
        };
        if let Some(tap) = tap {
            (0..frame.len()).for_each(|i| tap.sent(frame.segments(i as u8)));
        }
        let workers = if spread { 1 } else { self.1.len() };
        for i in 0..frame.len() {
            frame.prefetch_data(i + 8);
            let data = frame.data(i as u8);
            // A client belongs to the worker that opened its connections.
            let owner = if workers == 1 { None } else { owner(data, workers) }.unwrap_or(here);
            if locked.as_ref().is_none_or(|(at, _)| *at != owner) {
                drop(locked.take());
                locked = Some((owner, self.1[owner].lock().unwrap()));
            }
            let Some((_, world)) = &mut locked else { continue };
            let World { client, server, ports, records, .. } = &mut **world;
            if *records {
                seen.push((self.0, data.to_vec()));
            }
            if self.0 == ports[0] {
                if let Some(client) = client {
                    client.receive(now, data, &mut out);
                }
            } else if let Some(server) = server {
                server.receive(data, &mut out);
            }
        }
        drop(locked);
        out.finish(self.0, &mut waiting);
        let mut world = self.1[here].lock().unwrap();
        world.waiting.append(&mut waiting);
        world.seen.append(&mut seen);
        drop(world);
        cx.sent_frame(frame);
    }
    fn message(&mut self, _: &mut NodeCx<'_>, _: Box<dyn Any + Send>) {}
}

struct NoDevice;

impl Device for NoDevice {
    fn dev_type(&self) -> &'static str {
        "load"
    }
    fn set_mac(&self, _: &mut Control, _: MacAddr) -> Result<bool, DeviceError> {
        Ok(true)
    }
}

/// A switch with ports `port0` and `port1`, connected to each other.
pub struct Lab {
    pub c: Control,
    tree: CommandTree<Control>,
    worlds: Worlds,
    pub ports: [SwIfIndex; 2],
    /// Written when a panic drops the lab, after the engine.
    _packets: Option<PacketLog>,
}

impl Lab {
    /// One with at least `workers` workers that keeps its ports' last packets, for a file if the
    /// test fails.
    #[allow(dead_code, reason = "benchmarks do without packets")]
    pub fn new(workers: usize, buffers: usize) -> Lab {
        Lab::with(workers.max(thalweg_testkit::workers()), buffers)
    }

    /// The same with exactly `workers` workers.
    #[allow(dead_code, reason = "benchmarks do without packets")]
    pub fn with(workers: usize, buffers: usize) -> Lab {
        let mut lab = Lab::without_log(workers, buffers);
        let log = PacketLog::new();
        for world in lab.worlds.iter() {
            let taps = ["port0", "port1"].map(|name| log.interface(name));
            world.lock().unwrap().taps = Some(taps);
        }
        lab._packets = Some(log);
        lab
    }

    #[allow(dead_code, reason = "a benchmark names its processors")]
    pub fn without_log(workers: usize, buffers: usize) -> Lab {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let cores = (0..workers).map(|w| (workers <= cpus && cpus > 1).then(|| cpus - 1 - w));
        Lab::on(cores.collect(), buffers)
    }

    /// Creates a lab with a worker on each of these processors; `None` is any processor.
    pub fn on(workers: Vec<Option<usize>>, buffers: usize) -> Lab {
        let pool = PoolConfig { buffers, data_size: 2048, page_size: None };
        let config = EngineConfig { pool, workers, ..EngineConfig::default() };
        let mut c = Control::new(config).expect("engine");
        let (ip4, ip6) = (&thalweg_feat_ip4::FEATURE, &thalweg_feat_ip6::FEATURE);
        let features = thalweg_engine::with_needs(&[ip4, ip6, &thalweg_feat_flow::FEATURE, &LOAD]);
        thalweg_engine::start(&mut c, &features).expect("graph");
        let tree = thalweg_engine::command_tree(&c).expect("commands");
        let worlds = c.shared::<Vec<Mutex<World>>>();
        let mut lab = Lab { c, tree, worlds, ports: [SwIfIndex(0); 2], _packets: None };
        lab.ports = [0, 1].map(|n| lab.port(n));
        for world in lab.worlds.iter() {
            world.lock().unwrap().ports = lab.ports;
        }
        lab.ok("set interface l2 xconnect port0 port1\nset interface l2 xconnect port1 port0");
        lab
    }

    fn port(&mut self, n: u8) -> SwIfIndex {
        let spec = InterfaceSpec {
            name: format!("port{n}"),
            mac: MacAddr([2, 0, 0, 0, 9, n]),
            mtu: 9000,
            speed_kbps: 0,
            link_up: true,
            caps: Caps::default(),
            device: Box::new(NoDevice),
            input: None,
        };
        let worlds = self.worlds.clone();
        let mut build = |sw_if, _| Built::Node(Box::new(Hear(sw_if, worlds.clone())));
        let sw_if = interface::create(&mut self.c, spec, Transmit::Own(&TX, &mut build))
            .expect("interface");
        interface::set_admin(&mut self.c, sw_if, true).expect("up");
        sw_if
    }

    /// Runs a command and returns its output or error.
    pub fn cli(&mut self, line: &str) -> String {
        let (mut text, end) = self.tree.run_line(&mut self.c, line);
        self.c.finish_late();
        if let Err(e) = end {
            text += &format!("{e}\n");
        }
        text
    }

    /// Runs commands that must not print anything.
    pub fn ok(&mut self, lines: &str) {
        assert_eq!(self.cli(lines), "", "{lines}");
    }

    /// Lets clients at one port open connections to the server at the other; each worker has its
    /// own clients.
    pub fn load(&mut self, profile: &Profile, burst: usize) {
        self.start(profile, burst, None);
    }

    /// Does the same as [`load`](Lab::load), with devices that deliver each packet to the worker
    /// that owns it. Clients open the connections that trackers assign to the workers here when
    /// distributing over `shares` workers.
    pub fn load_spread(&mut self, profile: &Profile, burst: usize, shares: usize) {
        assert!(shares >= self.worlds.len());
        self.start(profile, burst, Some(shares as u64));
    }

    fn start(&mut self, profile: &Profile, burst: usize, shares: Option<u64>) {
        let (server, port) = profile.server;
        for (n, world) in self.worlds.iter().enumerate() {
            let mut profile = profile.clone();
            // Clients of workers differ in bits that `owner` reads.
            let first = profile.client.to_bits() + ((n as u32) << 16);
            profile.client = Ipv4Addr::from_bits(first);
            let (a, b) = profile.client_mac;
            let answers = Server::new((b, a), port, profile.answer);
            let now = (clock::ticks() as f64 * 1e6 / clock::hz()) as Micros;
            let mut client = Client::new(profile, now).expect("a profile");
            if let Some(shares) = shares.filter(|shares| *shares > 1) {
                client.allow_only(|address, sport| {
                    let (src, dst) = (address.into(), server.into());
                    let tuple = Tuple { src, dst, protocol: 6, sport, dport: port };
                    let hash = tuple.owner_hash().unwrap_or_default();
                    (u64::from(hash) * shares) >> 32 == n as u64
                });
            }
            let mut world = world.lock().unwrap();
            let old = world.client.replace(client);
            (world.server, world.burst, world.spread) = (Some(answers), burst, shares.is_some());
            // Returning its memory takes time, which the test need not wait for.
            drop(world);
            drop(old);
        }
    }

    /// Lets clients open connections again after [`finish`](Lab::finish).
    #[allow(dead_code, reason = "a benchmark uses it")]
    pub fn go_on(&mut self, profile: &Profile) {
        let now = (clock::ticks() as f64 * 1e6 / clock::hz()) as Micros;
        for world in self.worlds.iter() {
            if let Some(client) = &mut world.lock().unwrap().client {
                client.set_rate(profile.rate, now);
                client.set_concurrent(profile.concurrent);
            }
        }
    }

    /// Lets `count` pairs of hosts exchange a request and a reply, without checksums.
    pub fn pairs(&mut self, count: u32) {
        self.worlds[0].lock().unwrap().pairs = 0..count;
        let left = |lab: &Lab| {
            let world = lab.worlds[0].lock().unwrap();
            world.pairs.start < world.pairs.end
        };
        let end = Instant::now() + thalweg_testkit::WAIT_LIMIT;
        while left(self) {
            assert!(Instant::now() < end, "pairs do not end; {:?}", self.counts());
            self.c.run_once(Some(Duration::from_millis(5)));
        }
        self.settle();
    }

    /// Counters of all clients and servers together.
    pub fn counts(&self) -> (Counts, ServerCounts) {
        let mut sum = (Counts::default(), ServerCounts::default());
        for world in self.worlds.iter() {
            let world = world.lock().unwrap();
            if let Some(c) = world.client.as_ref().map(Client::counts) {
                sum.0.opened += c.opened;
                sum.0.completed += c.completed;
                sum.0.lost += c.lost;
                sum.0.unexpected += c.unexpected;
                sum.0.foreign += c.foreign;
                sum.0.sent += c.sent;
                sum.0.received += c.received;
            }
            if let Some(s) = world.server.as_ref().map(Server::counts) {
                sum.1.received += s.received;
                sum.1.sent += s.sent;
                sum.1.foreign += s.foreign;
            }
        }
        sum
    }

    /// Lets connections finish, and opens no new ones. Their last packets have arrived then.
    pub fn finish(&mut self) {
        for world in self.worlds.iter() {
            if let Some(client) = &mut world.lock().unwrap().client {
                client.set_concurrent(0);
            }
        }
        let any = |lab: &Lab, holds: fn(&World) -> bool| {
            lab.worlds.iter().any(|world| holds(&world.lock().unwrap()))
        };
        self.wait(|lab| !any(lab, |world| world.client.as_ref().is_some_and(|c| c.open() > 0)));
        // A client has closed a connection before its last acknowledgement is on its way.
        loop {
            self.settle();
            if !any(self, |world| !world.waiting.is_empty()) {
                return;
            }
        }
    }

    /// Runs the main loop until a condition holds.
    pub fn wait(&mut self, holds: impl Fn(&Lab) -> bool) {
        let end = Instant::now() + thalweg_testkit::WAIT_LIMIT;
        while !holds(self) {
            assert!(Instant::now() < end, "timed out; {:?}", self.counts());
            self.c.run_once(Some(Duration::from_millis(1)));
        }
    }

    /// Receives frames on a port by the first worker; returns the frames sent as a result.
    pub fn pass(&mut self, port: usize, frames: &[Vec<u8>]) -> Vec<(SwIfIndex, Vec<u8>)> {
        self.pass_until(port, frames, frames.len())
    }

    /// Does the same as [`pass`](Lab::pass), but returns once `count` more packets were sent or
    /// dropped.
    pub fn pass_until(
        &mut self,
        port: usize,
        frames: &[Vec<u8>],
        count: usize,
    ) -> Vec<(SwIfIndex, Vec<u8>)> {
        let port = self.ports[port];
        let worlds = self.worlds.clone();
        let bytes = frames.to_vec();
        worlds.iter().for_each(|world| world.lock().unwrap().records = true);
        let before = self.ended();
        worlds[0].lock().unwrap().arriving.push((port, bytes));
        self.wait(|lab| {
            let taken = worlds[0].lock().unwrap().arriving.is_empty();
            taken && lab.ended() >= before + count as u64
        });
        self.settle();
        let seen = worlds.iter().flat_map(|w| std::mem::take(&mut w.lock().unwrap().seen));
        seen.collect()
    }

    /// Waits until workers have done all that was handed to them: rules that copy packets send as
    /// many as arrived before the last one was looked at.
    fn settle(&mut self) {
        let mut before = None;
        loop {
            self.c.sync();
            let handed = self.handed();
            if handed.0 == handed.1 && before.replace(handed) == Some(handed) {
                return;
            }
        }
    }

    /// Numbers of packets handed to other workers, and received from them.
    fn handed(&self) -> (u64, u64) {
        let totals = (0..self.c.workers()).map(|w| &self.c.worker_stats(w).totals);
        totals.fold((0, 0), |(out, into), t| (out + t.handed_out.get(), into + t.handed_in.get()))
    }

    /// Number of packets sent or dropped.
    fn ended(&self) -> u64 {
        let one = |w: usize| {
            let totals = &self.c.worker_stats(w).totals;
            totals.tx.get() + totals.dropped.get()
        };
        (0..self.c.workers()).map(one).sum()
    }

    /// Stops; asserts that all buffers have been returned.
    pub fn close(mut self) {
        assert_eq!(self.c.shut_down().in_use, 0);
    }
}

pub const CLIENT_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
pub const SERVER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
