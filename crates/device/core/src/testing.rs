//! A router in the process, between test interfaces that record transmitted frames and receive
//! injected ones; and what tests pass through it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod drivers;
pub mod ip4;
pub mod ip6;
mod setup;

pub use setup::Setup;

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};
use thalweg_wire::MacAddr;
use thalweg_wire::build::Packet;

use crate::interface;
use crate::{Caps, Device, DeviceError, InterfaceSpec, SwIfIndex, Transmit};
use thalweg_buffer::{FRAME_SIZE, Flags, Frame, Offload, PktMut};
use thalweg_cli::{CliJob, CommandTree, Gone, MainCli, Reply, Request};
use thalweg_engine::Feature;
use thalweg_graph::stats::{Counter, IfStats, Totals, WorkerStats};
use thalweg_graph::{
    Built, Control, InputNode, Kind, Node, NodeCx, NodeDecl, NodeId, Poll, Runner, Verdict,
};
use thalweg_testkit::{PacketLog, PacketTap};

/// Time that anything may take, however busy the processors are.
const LIMIT: Duration = Duration::from_secs(60);

/// Transmitted frames: interface, worker, bytes.
type Sent = Arc<Mutex<Vec<(SwIfIndex, usize, Vec<u8>)>>>;

/// Frames accepted into buffers, by worker.
type Accepted = Arc<Mutex<Vec<(usize, Vec<u8>)>>>;

/// Frames to be received by interfaces, the first one last, with the work that each leaves to the
/// sender's device.
struct Receive(Vec<(SwIfIndex, PacketTap, Vec<u8>)>, Accepted, Option<Offload>);

static INPUT: NodeDecl = NodeDecl {
    name: "test-input",
    kind: Kind::Input,
    build: |_| Built::input(Input(VecDeque::new())),
    ..NodeDecl::DEFAULT
};

struct Input(VecDeque<Receive>);

impl InputNode for Input {
    fn poll(&mut self, cx: &mut NodeCx<'_>) -> Poll {
        let Some(Receive(frames, accepted, offload)) = self.0.front_mut() else {
            return Poll::Idle;
        };
        let (worker, mut n) = (cx.worker(), 0);
        while n < FRAME_SIZE
            && let Some(sw_if) = frames.last().map(|(sw_if, ..)| *sw_if)
        {
            let mut frame = cx.new_frame();
            while n + frame.len() < FRAME_SIZE
                && let Some((_, tap, bytes)) = frames.pop_if(|(next, ..)| *next == sw_if)
            {
                // Frames without a buffer are lost, as on a full device queue.
                let Some(mut p) = cx.cache().alloc() else {
                    cx.stats().interface(sw_if).rx_no_buf.add(1);
                    continue;
                };
                if let Some(offload) = offload {
                    p.meta_mut().offload = *offload;
                    p.mark(Flags::OFFLOAD);
                }
                if p.fill(&bytes, cx.cache()) {
                    assert!(frame.push(p).is_ok());
                    tap.received([&bytes[..]]);
                    accepted.lock().unwrap_or_else(PoisonError::into_inner).push((worker, bytes));
                } else {
                    cx.stats().interface(sw_if).rx_no_buf.add(1);
                    cx.cache().free(p);
                }
            }
            n += frame.len();
            cx.device_input(frame, sw_if, |f, i, out| {
                let _ = writeln!(out, "{} bytes", f.total_len(i));
            });
        }
        if frames.is_empty() {
            self.0.pop_front();
        }
        Poll::Busy(n)
    }
    fn message(&mut self, _: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        self.0.push_back(*message.downcast::<Receive>().expect("frames"));
    }
}

static TX: NodeDecl = NodeDecl { name: "test-tx", kind: Kind::Tx, ..NodeDecl::DEFAULT };

struct Record(SwIfIndex, usize, Sent, PacketTap);

impl Runner for Record {
    fn run(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        (0..frame.len()).for_each(|i| self.3.sent(frame.segments(i as u8)));
        let bytes = |i| frame.segments(i).collect::<Vec<_>>().concat();
        let all = (0..frame.len()).map(|i| (self.0, self.1, bytes(i as u8)));
        self.2.lock().unwrap_or_else(PoisonError::into_inner).extend(all);
        cx.sent_frame(frame);
    }
    fn message(&mut self, _: &mut NodeCx<'_>, _: Box<dyn Any + Send>) {}
}

struct TestDevice;

impl Device for TestDevice {
    fn dev_type(&self) -> &'static str {
        "test"
    }
    fn set_mac(&self, _: &mut Control, _: MacAddr) -> Result<bool, DeviceError> {
        Ok(true)
    }
}

static TEST: Feature =
    Feature { name: "test", about: "test interfaces", nodes: &[&INPUT], ..Feature::DEFAULT };

/// Stands in for Ethernet: the end of the arc of received frames.
pub static NO_ETHERNET: Feature =
    Feature { name: "no-ethernet", about: "no protocol", nodes: &[&END], ..Feature::DEFAULT };

static END: NodeDecl =
    NodeDecl { name: "ethernet-input", build: |_| Built::node(End), ..NodeDecl::DEFAULT };

struct End;

impl Node for End {
    fn packet(&mut self, _: &mut NodeCx<'_>, _: PktMut<'_>) -> Verdict {
        Verdict::CONTINUE
    }
}

/// The MAC address of interface `testN`.
pub fn our_mac(n: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, 0x10 + n])
}

/// The MAC address of host `host` behind interface `testN`.
pub fn host_mac(n: u8, host: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0x99, n, host])
}

/// An Ethernet frame.
pub fn framed(to: MacAddr, from: MacAddr, ethertype: u16, packet: &[u8]) -> Vec<u8> {
    [&to.0[..], &from.0, &ethertype.to_be_bytes(), packet].concat()
}

/// Data of a packet, in which each place has another byte than its neighbours.
fn data(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 256) as u8).collect()
}

/// The bytes behind the Ethernet header of a frame from `testN` to a host.
fn packet(n: u8, host: u8, ethertype: u16, frame: &[u8]) -> &[u8] {
    let (header, packet) = frame.split_at(14);
    assert_eq!(header, framed(host_mac(n, host), our_mac(n), ethertype, &[]), "header");
    packet
}

/// A router of real features between test interfaces: `test0`, `test1` and so on.
pub struct Lab {
    /// Main thread.
    pub c: Control,
    tree: CommandTree<Control>,
    sent: Sent,
    accepted: Accepted,
    received: u64,
    /// Written when a panic drops the lab; after the engine, whose workers have ended by then.
    packets: PacketLog,
    /// Taken by a lab that moves the clock; let go last.
    clock: Option<MutexGuard<'static, ()>>,
}

impl Lab {
    /// A router with a feature, and those that it needs.
    pub fn of(feature: &'static Feature) -> Setup {
        Lab::of_all(&[feature])
    }

    /// A router with some features, and those that they need.
    pub fn of_all(features: &[&'static Feature]) -> Setup {
        Setup::new(features)
    }

    /// Creates interface `testN` and brings it up.
    pub fn interface(&mut self, n: u8) -> SwIfIndex {
        self.make(n, our_mac(n), None)
    }

    /// Creates interface `testN`, which carries IP packets without an Ethernet header, and brings
    /// it up.
    pub fn tunnel(&mut self, n: u8) -> SwIfIndex {
        let input = self.c.node("ip4-input").expect("IPv4");
        self.make(n, MacAddr([0; 6]), Some(input))
    }

    fn make(&mut self, n: u8, mac: MacAddr, input: Option<NodeId>) -> SwIfIndex {
        let spec = InterfaceSpec {
            name: format!("test{n}"),
            mac,
            mtu: 9000,
            speed_kbps: 0,
            link_up: true,
            caps: Caps::default(),
            device: Box::new(TestDevice),
            input,
        };
        let (sent, tap) = (self.sent.clone(), self.packets.interface(&format!("test{n}")));
        let mut build =
            |sw_if, worker| Built::Node(Box::new(Record(sw_if, worker, sent.clone(), tap.clone())));
        let sw_if = interface::create(&mut self.c, spec, Transmit::Own(&TX, &mut build))
            .expect("interface");
        interface::set_admin(&mut self.c, sw_if, true).expect("up");
        sw_if
    }

    /// The index of `testN`.
    pub fn sw_if(&self, n: u8) -> SwIfIndex {
        interface::find(&self.c, &format!("test{n}")).expect("interface")
    }

    /// The number of `testN`.
    pub fn number(&self, sw_if: SwIfIndex) -> u8 {
        let name = self.c.interface_name(sw_if);
        name.strip_prefix("test").and_then(|n| n.parse().ok()).expect("a test interface")
    }

    /// Makes `ip` a static neighbour on `testN`.
    pub fn neighbor(&mut self, n: u8, ip: impl Into<IpAddr>, mac: MacAddr) {
        self.ok(&format!("set ip neighbor test{n} {} {mac} static", ip.into()));
    }

    /// Brings `testN` up or down.
    pub fn up(&mut self, n: u8, up: bool) {
        let sw_if = self.sw_if(n);
        interface::set_admin(&mut self.c, sw_if, up).expect("interface");
    }

    /// Runs a command that ends at once; its output, errors included.
    pub fn cli(&mut self, line: &str) -> String {
        let (mut text, end) = self.tree.run_line(&mut self.c, line);
        self.c.finish_late();
        if let Err(e) = end {
            text += &format!("{e}\n");
        }
        text
    }

    /// Runs commands that must succeed without output.
    pub fn ok(&mut self, lines: &str) {
        assert_eq!(self.cli(lines), "", "{lines}");
    }

    /// Completions at the end of a line.
    pub fn complete(&self, line: &str) -> Vec<String> {
        let all = self.tree.complete(&self.c, line, line.len());
        all.into_iter().map(|c| c.word).collect()
    }

    /// Runs a command in the main loop; calls `each` every round and cancels after `cancel_after`.
    pub fn run(
        &mut self,
        line: &str,
        cancel_after: Option<Duration>,
        mut each: impl FnMut(&mut Lab),
    ) -> String {
        let tree = thalweg_engine::command_tree(&self.c).expect("commands");
        let mut main = MainCli::new(tree);
        let (tx, rx) = mpsc::channel();
        let sink = move |reply| tx.send(reply).map_err(|_| Gone);
        let job = CliJob::new(Request::Run { line: line.to_owned() }, sink);
        let (cancel, start) = (job.cancel.clone(), Instant::now());
        main.handle(&mut self.c, job);
        let mut text = String::new();
        loop {
            let next = main.poll_tasks(&mut self.c, Instant::now());
            for reply in rx.try_iter() {
                match reply {
                    Reply::Text(t) => text += &t,
                    Reply::Done { text: t, .. } => return text + &t,
                    Reply::Completions(_) => {}
                }
            }
            assert!(start.elapsed() < LIMIT, "no end of {line}: {text}");
            if cancel_after.is_some_and(|t| start.elapsed() >= t) {
                cancel.cancel();
            }
            each(self);
            let wait = next.map(|t| t.saturating_duration_since(Instant::now()));
            self.c.run_once(Some(wait.unwrap_or_default().min(Duration::from_millis(1))));
        }
    }

    /// Receives frames on `testN`, and waits until all are processed.
    pub fn receive(&mut self, n: u8, frames: Vec<Vec<u8>>) {
        self.deliver(n, frames);
        self.settle();
    }

    /// Receives frames on `testN`; returns those that are sent, each with its interface's number.
    pub fn exchange(&mut self, n: u8, frames: Vec<Vec<u8>>) -> Vec<(u8, Vec<u8>)> {
        self.receive(n, frames);
        let sent = self.sent().into_iter();
        sent.map(|(sw_if, frame)| (self.number(sw_if), frame)).collect()
    }

    /// Receives an IPv4 packet from a host behind `testN`.
    pub fn receive_packet(&mut self, n: u8, host: u8, packet: Packet) {
        self.receive(n, vec![ip4::framed(n, host, &packet.build())]);
    }

    /// Receives frames on `testN`.
    pub fn deliver(&mut self, n: u8, frames: Vec<Vec<u8>>) {
        self.deliver_to(0, n, frames);
    }

    /// Receives a frame with offload work on `testN`, and waits until it is processed.
    pub fn receive_offload(&mut self, n: u8, frame: Vec<u8>, offload: Offload) {
        self.enter(0, vec![(n, frame)], Some(offload));
        self.settle();
    }

    /// Receives frames on `testN` by a worker.
    pub fn deliver_to(&mut self, worker: usize, n: u8, frames: Vec<Vec<u8>>) {
        let on = |frame| (n, frame);
        self.enter(worker, frames.into_iter().map(on).collect(), None);
    }

    /// Receives frames, each on the `testN` that it comes with, by a worker. Up to 256 come in one
    /// loop, so that nodes run on frames of several interfaces.
    pub fn deliver_mixed(&mut self, worker: usize, frames: Vec<(u8, Vec<u8>)>) {
        self.enter(worker, frames, None);
    }

    fn enter(&mut self, worker: usize, frames: Vec<(u8, Vec<u8>)>, offload: Option<Offload>) {
        if frames.is_empty() {
            return;
        }
        self.received += frames.len() as u64;
        let input = self.c.node("test-input").expect("input");
        let mut ports: HashMap<u8, (SwIfIndex, PacketTap)> = HashMap::new();
        let on_port = |(n, frame): (u8, Vec<u8>)| {
            let new = || (self.sw_if(n), self.packets.interface(&format!("test{n}")));
            let (sw_if, tap) = ports.entry(n).or_insert_with(new);
            (*sw_if, tap.clone(), frame)
        };
        // The input node takes them from the end.
        let frames = frames.into_iter().map(on_port).rev().collect();
        let message = Receive(frames, self.accepted.clone(), offload);
        self.c.message(worker, input, Box::new(message));
    }

    fn total(&self, which: impl Fn(&Totals) -> u64) -> u64 {
        self.over_workers(|s| which(&s.totals))
    }

    /// Packets received or originated, less those that ended.
    fn in_flight(&self) -> i64 {
        let into = self.total(|t| t.rx.get() + t.originated.get());
        let out = |t: &Totals| t.tx.get() + t.delivered.get() + t.dropped.get() + t.consumed.get();
        into as i64 - self.total(out) as i64
    }

    /// Waits until workers are done with all received packets, while the main thread does not read
    /// their reports.
    pub fn pass(&mut self) {
        let start = Instant::now();
        while !self.has_ended() {
            assert!(start.elapsed() < LIMIT, "{} packets do not end", self.in_flight());
            self.c.sync();
        }
    }

    fn has_ended(&self) -> bool {
        let seen = self.total(|t| t.rx.get()) + self.refused();
        seen == self.received && self.in_flight() == 0
    }

    /// Waits until all received packets have ended.
    pub fn settle(&mut self) {
        let start = Instant::now();
        loop {
            self.c.sync();
            self.c.run_once(Some(Duration::ZERO));
            self.c.sync();
            if self.has_ended() {
                return;
            }
            let left = self.in_flight();
            assert!(start.elapsed() < LIMIT, "{left} packets do not end");
            self.c.run_once(Some(Duration::from_micros(200)));
        }
    }

    /// Number of frames refused for lack of buffers, on deleted interfaces too.
    pub fn refused(&self) -> u64 {
        self.over_workers(|s| {
            (0..16).map(|sw_if| s.interface(SwIfIndex(sw_if)).rx_no_buf.get()).sum()
        })
    }

    fn over_workers(&self, which: impl Fn(&WorkerStats) -> u64) -> u64 {
        (0..self.c.workers()).map(|w| which(self.c.worker_stats(w))).sum()
    }

    /// Runs the main loop until `done`.
    pub fn until(&mut self, what: &str, mut done: impl FnMut(&mut Lab) -> bool) {
        let start = Instant::now();
        while !done(self) {
            assert!(start.elapsed() < LIMIT, "waited {LIMIT:?} for {what}");
            self.c.run_once(Some(Duration::from_millis(1)));
        }
    }

    /// Lets workers and the main thread do what is pending, once all received frames are seen.
    pub fn turn(&mut self) {
        self.seen();
        for _ in 0..6 {
            self.c.sync();
            self.c.run_once(Some(Duration::ZERO));
        }
        self.c.sync();
    }

    /// Lets time pass, and all that is due then; the lab is [alone](Setup::alone).
    pub fn wait(&mut self, ms: u64) {
        assert!(self.clock.is_some(), "the clock is shared");
        // Timers may arm others.
        for begun in (0..ms).step_by(500) {
            self.c.adjust_clock(Duration::from_millis(500.min(ms - begun)));
            self.turn();
        }
    }

    /// Waits until everything received has been looked at; some may be held for a neighbour.
    pub fn seen(&mut self) {
        let start = Instant::now();
        while self.total(|t| t.rx.get()) + self.refused() < self.received {
            assert!(start.elapsed() < LIMIT, "input stands still");
            self.c.run_once(Some(Duration::from_micros(200)));
        }
        // The last ones are counted as received before the graph runs.
        self.c.sync();
    }

    /// Number of frames that `sent` would return.
    pub fn sent_frames(&self) -> usize {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Takes the frames sent since the last call.
    pub fn sent(&mut self) -> Vec<(SwIfIndex, Vec<u8>)> {
        self.sent_by_workers().into_iter().map(|(sw_if, _, frame)| (sw_if, frame)).collect()
    }

    /// Takes the only frame sent since the last call, which is on `testN`.
    pub fn sent_one(&mut self, n: u8) -> Vec<u8> {
        let mut sent = self.sent();
        assert_eq!(sent.len(), 1, "{sent:02x?}\n{}", self.cli("show errors"));
        assert_eq!(sent[0].0, self.sw_if(n));
        sent.remove(0).1
    }

    /// Takes the frames sent since the last call, with the sending worker.
    pub fn sent_by_workers(&mut self) -> Vec<(SwIfIndex, usize, Vec<u8>)> {
        std::mem::take(&mut self.sent.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the frames accepted since the last call, with the receiving worker.
    pub fn accepted(&mut self) -> Vec<(usize, Vec<u8>)> {
        std::mem::take(&mut self.accepted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Value of a counter by node and text.
    pub fn count(&self, node: &str, text: &str) -> u64 {
        let id = self.c.node(node).expect(node);
        let mut all = self.c.errors().iter();
        let number = all.position(|(n, e)| *n == id && e.text == text);
        let number = number.unwrap_or_else(|| panic!("{node} has no counter `{text}`"));
        self.over_workers(|s| s.error(number as u32).get())
    }

    /// All node counters but those that depend on the clock, and those of interfaces.
    pub fn counters(&self, by_clock: &[&str]) -> Vec<(String, u64)> {
        let by_clock: Vec<_> = by_clock.iter().map(|name| self.c.node(name).expect(name)).collect();
        let errors: Vec<_> = self.c.errors().iter().collect();
        let counted = errors.iter().enumerate().filter(|(_, (node, _))| !by_clock.contains(node));
        let error = |i| self.over_workers(|s| s.error(i as u32).get());
        let mut all: Vec<_> = counted.map(|(i, (_, e))| (e.text.to_owned(), error(i))).collect();
        for n in 0..self.ports() {
            let sw_if = self.sw_if(n);
            let mut add = |what, which: fn(&IfStats) -> &Counter| {
                let sum = self.over_workers(|s| which(s.interface(sw_if)).get());
                all.push((format!("{what} of test{n}"), sum));
            };
            add("packets", |s| &s.rx_packets);
            add("bytes", |s| &s.rx_bytes);
            add("ip4", |s| &s.ip4);
            add("broadcast", |s| &s.rx_broadcast);
            add("multicast", |s| &s.rx_multicast);
        }
        all
    }

    fn ports(&self) -> u8 {
        let there = |n: &u8| interface::find(&self.c, &format!("test{n}")).is_ok();
        (0..u8::MAX).take_while(there).count() as u8
    }

    /// Number of packets dropped.
    pub fn dropped(&self) -> u64 {
        self.total(|t| t.dropped.get())
    }

    /// Checks that all buffers are back in the pool.
    pub fn all_home(&mut self) {
        self.c.sync();
        let audit = self.c.pool().audit();
        assert_eq!(audit.in_use, 0, "{audit:?}");
    }

    /// Stops the router: all packets are accounted for, all buffers returned.
    pub fn close(mut self) {
        self.settle();
        let audit = self.c.shut_down();
        assert_eq!(audit.in_use, 0, "{audit:?}");
    }
}
