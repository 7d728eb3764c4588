//! A router of two interfaces of a driver.

use super::{Abilities, Outside};
use crate::interface::{self, IfTable, Interfaces};
use crate::testing::LIMIT;
use crate::{InterfaceView, SwIfIndex};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use thalweg_buffer::{PktMut, PoolConfig};
use thalweg_engine::Feature;
use thalweg_graph::stats::{Counter, IfTotals, Totals};
use thalweg_graph::{
    Built, Control, EngineConfig, Node, NodeCx, NodeDecl, NodeId, RxMode, Severity, Verdict,
};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::MacAddr;

thalweg_graph::errors! {
    DOWN: Error, DEV_READY, "interface is down";
    SHORT: Error, PKT_TOO_SMALL, "frame too short";
}

/// Stands in for Ethernet: passes what an interface receives to the other one.
static CROSSING: Feature = Feature {
    name: "crossing",
    about: "two interfaces, each sends what the other one receives",
    needs: &[&crate::FEATURE],
    nodes: &[&ETHERNET_INPUT],
    init: |c| c.share(Arc::new(Crossing::default())),
    ..Feature::DEFAULT
};

static ETHERNET_INPUT: NodeDecl = NodeDecl {
    name: "ethernet-input",
    errors: ERRORS,
    build: |cx| Built::node(Cross(cx.shared::<Crossing>(), Interfaces::table(cx))),
    ..NodeDecl::DEFAULT
};

/// Number of interface indices that a crossing knows.
const INDICES: usize = 16;

/// The interface that sends what each one receives: its index, and above 16 bits its output node.
#[derive(Default)]
pub struct Crossing([AtomicU32; INDICES]);

struct Cross(Arc<Crossing>, Arc<Snapshot<IfTable>>);

/// Second byte of the source address of frames that the router cuts, to the length in the third.
const CUT: u8 = 0x77;
const HEADER: usize = 14;

impl Node for Cross {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let rx_if = p.rx_if();
        let Some(source) = p.data().get(6..HEADER) else { return Verdict::drop(SHORT) };
        let cut = (source[1] == CUT).then(|| usize::from(source[2]));
        if !self.1.load(cx.guard()).get(rx_if).admin_up {
            return Verdict::drop(DOWN);
        }
        if let Some(len) = cut {
            p.truncate(len, cx.cache());
        }
        let to = self.0.0[rx_if.index()].load(Relaxed);
        p.set_tx_if(SwIfIndex(to & 0xffff));
        Verdict::node(NodeId((to >> 16) as u16))
    }
}

/// A frame that differs from all others by its number and whose data say which place they are
/// from. With 42 bytes and more, a UDP datagram of a flow, of which there are 16.
pub(super) fn frame(number: u32, len: usize, tag: Option<u16>) -> Vec<u8> {
    let to = MacAddr([2, 0, 0, 0, 0, 1]);
    frame_to(to, number, len, tag)
}

/// The same, to an address.
pub(super) fn frame_to(to: MacAddr, number: u32, len: usize, tag: Option<u16>) -> Vec<u8> {
    let mut frame = to.0.to_vec();
    frame.extend([2, 0x99]);
    frame.extend(number.to_be_bytes());
    if let Some(vlan) = tag {
        frame.extend([0x81, 0]);
        frame.extend(vlan.to_be_bytes());
    }
    // Experimental, or IPv4.
    let is_ip = len >= frame.len() + 30;
    frame.extend(if is_ip { [0x08, 0x00] } else { [0x88, 0xb5] });
    if is_ip {
        let length = (len - frame.len()) as u16;
        let [high, low] = length.to_be_bytes();
        let [udp_high, udp_low] = (length - 20).to_be_bytes();
        let flow = (number % FLOWS) as u8;
        frame.extend([0x45, 0, high, low, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0x10, flow, 0, 9, udp_high, udp_low, 0, 0]);
    }
    let from = frame.len();
    frame.resize(len.max(HEADER), 0);
    for (at, byte) in frame.iter_mut().enumerate().skip(from) {
        *byte = (number as usize + at * 7 + at / 256) as u8;
    }
    frame
}

/// Number of flows that frames are of.
pub(super) const FLOWS: u32 = 16;
/// Numbers from this one on are those of the frames that come last.
const FIRST_MARK: u32 = 0xf000_0000;

/// A frame that the router cuts to a length.
pub(super) fn frame_to_cut(len: u8) -> Vec<u8> {
    let mut frame = frame(0, 64, None);
    (frame[7], frame[8]) = (CUT, len);
    frame
}

/// The number of a frame.
pub(super) fn number(frame: &[u8]) -> u32 {
    frame[8..12].try_into().map(u32::from_be_bytes).expect("a frame with addresses")
}

/// Checks that frames have come once each, those of each flow in order.
pub(super) fn check_flows(got: &[Vec<u8>], want: &[Vec<u8>]) {
    let by_flow = |frames: &[Vec<u8>]| {
        let mut flows: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for n in frames.iter().map(|f| number(f)) {
            flows.entry(n % FLOWS).or_default().push(n);
        }
        flows
    };
    assert_eq!(by_flow(got), by_flow(want));
    let whole: BTreeMap<u32, &Vec<u8>> = want.iter().map(|f| (number(f), f)).collect();
    got.iter().for_each(|f| assert!(*f == *whole[&number(f)], "frame {} changed", number(f)));
}

/// Workers that wait in a call, until this is dropped.
struct Hold {
    gate: Arc<Barrier>,
    held: Arc<AtomicUsize>,
    _asked: Box<dyn Any>,
}

impl Hold {
    fn holds(&self, workers: usize) -> bool {
        self.held.load(Relaxed) == workers
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.gate.wait();
    }
}

/// A router of two interfaces, each of which sends what the other one receives.
pub struct Bench {
    /// Main thread.
    pub c: Control,
    /// The driver's test.
    pub outside: Box<dyn Outside>,
    /// Abilities of the driver.
    pub can: Abilities,
    /// The interfaces.
    pub ports: [SwIfIndex; 2],
    /// Frames that came out and were not asked for yet.
    came: [Vec<Vec<u8>>; 2],
}

impl Bench {
    /// Starts a router with both interfaces up.
    pub fn new(outside: Box<dyn Outside>, workers: usize, buffers: usize) -> Bench {
        let pool = PoolConfig { buffers, data_size: 2048, page_size: None };
        let config = EngineConfig { pool, workers: vec![None; workers], ..Default::default() };
        let mut c = Control::new(config).expect("engine");
        let features = thalweg_engine::with_needs(&[&CROSSING, outside.feature()]);
        thalweg_engine::start(&mut c, &features).expect("graph");
        let can = outside.abilities();
        let mut bench =
            Bench { c, outside, can, ports: [SwIfIndex(0); 2], came: Default::default() };
        (0..2).for_each(|n| bench.create(n));
        bench
    }

    /// Creates interface `n`, brings it up, and waits for its link.
    pub fn create(&mut self, n: usize) {
        self.ports[n] = self.outside.create(&mut self.c, n);
        self.came[n].clear();
        self.cross();
        self.up(n, true);
        self.until("the link", |b| b.view(n).link_up);
        let (rows, queues) = (self.queues(n).len() as u32, self.can.rx_queues);
        assert_eq!(rows, queues, "receive queues");
    }

    fn cross(&mut self) {
        let crossing = self.c.shared::<Crossing>();
        for (from, to) in [(0, 1), (1, 0)] {
            let (from, to) = (self.ports[from], self.ports[to]);
            if let (Ok(_), Ok(v)) = (interface::view(&self.c, from), interface::view(&self.c, to)) {
                let word = u32::from(v.output.0) << 16 | to.get();
                crossing.0[from.index()].store(word, Relaxed);
            }
        }
    }

    /// Deletes interface `n`; its device stays.
    pub fn delete(&mut self, n: usize) {
        let name = self.view(n).name;
        self.outside.delete(&mut self.c, n);
        self.until("the interface to go", |b| interface::find(&b.c, &name).is_err());
    }

    /// Returns interface `n` as `show interface` knows it.
    pub fn view(&self, n: usize) -> InterfaceView {
        interface::view(&self.c, self.ports[n]).expect("an interface")
    }

    /// Returns the receive queues of interface `n`, each with its worker and mode.
    pub fn queues(&self, n: usize) -> Vec<(u32, usize, RxMode)> {
        let device = self.c.state::<Interfaces>().borrow().device(self.ports[n]);
        let rows = device.expect("a device").rx_queues();
        rows.into_iter().map(|q| (q.queue, q.worker, q.mode)).collect()
    }

    /// Brings interface `n` up or down, and waits until workers know it.
    pub fn up(&mut self, n: usize, up: bool) {
        interface::set_admin(&mut self.c, self.ports[n], up).expect("state");
        self.c.finish_late();
    }

    /// Makes worker `worker` poll all queues of interface `n`.
    pub fn place(&mut self, n: usize, worker: usize) {
        for queue in 0..self.can.rx_queues {
            let placed =
                interface::set_rx_placement(&mut self.c, self.ports[n], queue, Some(worker));
            placed.expect("placement");
        }
    }

    /// Sends frames to interface `n` from outside.
    pub fn send(&mut self, n: usize, frames: &[Vec<u8>]) {
        self.send_by(n, 0, frames);
    }

    /// Sends frames to interface `n` from outside, to a worker if the outside has a say in that.
    pub fn send_by(&mut self, n: usize, worker: usize, frames: &[Vec<u8>]) {
        self.outside.send(&mut self.c, n, worker, frames).expect("frames");
    }

    /// Waits for frames that come out of interface `n`.
    pub fn receive(&mut self, n: usize, count: usize) -> Vec<Vec<u8>> {
        let start = Instant::now();
        while self.came[n].len() < count {
            let got = self.outside.take(&mut self.c, n);
            let (came, state) = (self.came[n].len(), got.is_empty());
            assert!(start.elapsed() < LIMIT, "{came} of {count} frames\n{}", self.state());
            self.came[n].extend(got);
            if state {
                self.c.run_once(Some(Duration::from_micros(100)));
            }
        }
        self.came[n].drain(..count).collect()
    }

    /// Takes what has come out of both interfaces, of which nobody asks.
    pub fn ignore(&mut self) {
        for n in 0..2 {
            drop(self.outside.take(&mut self.c, n));
            self.came[n].clear();
        }
    }

    /// Returns the number of frames that [`last`](Self::last) sends.
    pub fn marks(&self) -> u64 {
        u64::from(FLOWS) * self.c.workers() as u64
    }

    /// Returns the frames that have come out of interface `n` and were not waited for: those before
    /// frames that are sent now, one of each flow and worker.
    pub fn last(&mut self, n: usize) -> Vec<Vec<u8>> {
        for worker in 0..self.c.workers() {
            let first = FIRST_MARK + worker as u32 * FLOWS;
            let marks: Vec<_> = (first..first + FLOWS).map(|i| frame(i, 64, None)).collect();
            self.send_by(1 - n, worker, &marks);
        }
        let (mut left, mut others) = (self.marks(), Vec::new());
        while left > 0 {
            let one = self.receive(n, 1).remove(0);
            if number(&one) >= FIRST_MARK {
                left -= 1;
            } else {
                others.push(one);
            }
        }
        others
    }

    /// Checks that nothing else has come out of interface `n` than was waited for.
    pub fn nothing_more(&mut self, n: usize) {
        let more: Vec<u32> = self.last(n).iter().map(|f| number(f)).collect();
        assert!(more.is_empty(), "frames {more:?} came, too");
    }

    /// Checks that frames pass both ways.
    pub fn passes(&mut self) {
        for n in 0..2 {
            let frames: Vec<_> = (0..32).map(|i| frame(i, 100, None)).collect();
            self.send(n, &frames);
            check_flows(&self.receive(1 - n, frames.len()), &frames);
            self.nothing_more(1 - n);
        }
    }

    /// Takes the device of interface `n` away, and waits until the router knows.
    pub fn unplug(&mut self, n: usize) {
        self.outside.unplug(n);
        self.until("the link to go down", |b| !b.view(n).link_up);
        self.c.finish_late();
    }

    /// Brings a device back for interface `n`, and waits until workers use it.
    pub fn plug(&mut self, n: usize, mtu: u32) {
        self.outside.plug(n, mtu);
        self.until("the link to come up", |b| b.view(n).link_up);
        self.c.finish_late();
    }

    /// Runs the main loop until `done`.
    pub fn until(&mut self, what: &str, mut done: impl FnMut(&mut Bench) -> bool) {
        let start = Instant::now();
        while !done(self) {
            assert!(start.elapsed() < LIMIT, "waited {LIMIT:?} for {what}\n{}", self.state());
            self.c.run_once(Some(Duration::from_millis(1)));
        }
    }

    /// Returns the counters of interface `n`, once workers are done with what they have received,
    /// and the device was asked for what it lost.
    pub fn totals(&mut self, n: usize) -> IfTotals {
        let device = self.c.state::<Interfaces>().borrow().device(self.ports[n]);
        if let Some(device) = device {
            device.poll_missed(&mut self.c, self.ports[n]);
        }
        self.c.finish_late();
        self.c.interface_totals(self.ports[n])
    }

    /// Returns the number of packets that each worker has received on interface `n`.
    pub fn received_by(&mut self, n: usize) -> Vec<u64> {
        self.c.finish_late();
        let by = |w| self.c.worker_stats(w).interface(self.ports[n]).rx_packets.get();
        (0..self.c.workers()).map(by).collect()
    }

    /// Returns counters of the interfaces and reasons of drops, for messages.
    fn state(&self) -> String {
        let rows = |sw_if: &SwIfIndex| {
            let totals = self.c.interface_totals(*sw_if).rows();
            let rows = totals.into_iter().filter(|(_, n)| *n > 0);
            format!("{}: {:?}\n", self.c.interface_name(*sw_if), rows.collect::<Vec<_>>())
        };
        let rows: String = self.ports.iter().map(rows).collect();
        format!("{rows}{:?}", self.reasons())
    }

    /// Returns counts of all reasons to drop packets, and of other errors.
    pub fn reasons(&self) -> BTreeMap<&'static str, u64> {
        let mut all = BTreeMap::new();
        for (i, (_, decl)) in self.c.errors().iter().enumerate() {
            let count: u64 = (0..self.c.workers()).map(|w| self.c.error_count(w, i as u32)).sum();
            if decl.severity != Severity::Info && count > 0 {
                *all.entry(decl.text).or_default() += count;
            }
        }
        all
    }

    fn total(&self, which: impl Fn(&Totals) -> &Counter) -> u64 {
        (0..self.c.workers()).map(|w| which(&self.c.worker_stats(w).totals).get()).sum()
    }

    /// Returns the number of packets dropped, each of which a reason has counted.
    pub fn dropped(&mut self) -> u64 {
        self.c.finish_late();
        let dropped = self.total(|t| &t.dropped);
        let by_reason: u64 = self.reasons().values().sum();
        assert!(by_reason >= dropped, "{dropped} drops, but {:?}", self.reasons());
        dropped
    }

    /// Keeps all workers from work while `f` runs, which must not wait for them.
    pub fn held(&mut self, f: impl FnOnce(&mut Bench)) {
        self.held_before(|_| (), f);
    }

    /// The same, with messages to workers that `first` sends: they are what workers do next, before
    /// they poll anything.
    pub fn held_before(&mut self, first: impl FnOnce(&mut Bench), f: impl FnOnce(&mut Bench)) {
        // A worker reads at one time what is in its mailbox by then.
        let outer = self.hold();
        self.until("workers to stand still", |b| outer.holds(b.c.workers()));
        let inner = self.hold();
        first(self);
        drop(outer);
        self.until("workers to stand still again", |b| inner.holds(b.c.workers()));
        f(self);
        drop(inner);
        self.c.finish_late();
    }

    fn hold(&mut self) -> Hold {
        let gate = Arc::new(Barrier::new(self.c.workers() + 1));
        let held = Arc::new(AtomicUsize::new(0));
        let (of_worker, count) = (gate.clone(), held.clone());
        let asked = self.c.begin_asking(move |_| {
            count.fetch_add(1, Relaxed);
            of_worker.wait();
        });
        Hold { gate, held, _asked: Box::new(asked) }
    }

    /// Ends the router: all packets have ended, and all buffers are at home.
    pub fn close(mut self) {
        self.until("packets to end", |b| {
            b.c.finish_late();
            let out = [b.total(|t| &t.tx), b.dropped(), b.total(|t| &t.consumed)];
            b.total(|t| &t.rx) == out.iter().sum::<u64>()
        });
        let audit = self.c.shut_down();
        assert_eq!(audit.in_use, 0, "{audit:?}");
    }
}
