//! The loop of a worker.

use super::bound::Bound;
use super::hand_off::Arrivals;
use super::own_time::OwnTime;
use super::pace::Pace;
use super::{Core, DEVICE_INPUT, NodeCx, NodeInfo};
use crate::arc::ArcTable;
use crate::clock;
use crate::decl::{Built, NodeId};
use crate::mailbox::{ToMain, ToWorker, Waker};
use crate::node::{InputNode, Poll, Runner, TapCx};
use crate::poller::{Poller, SetFd, Woken};
use crate::stats::WorkerStats;
use std::sync::Arc;
use thalweg_buffer::{Cache, Flags, Frame};
use thalweg_tables::SparseMemory;
use thalweg_tables::qsbr::{Guard, Reader};

/// Reading the clock takes about 20 clocks, as much as a node needs for a packet. One in `TIMED`
/// of consecutive loops with few packets is therefore timed node by node, with that weight.
const TIMED: u64 = 8;
/// Maximum number of packets, each counted at each node, of a loop that has few.
const FEW: usize = 64;
/// Loops that start in the same span of `1 << SPAN` clocks are all timed, or none: a loop unlike
/// those before takes longer, as its branches are mispredicted.
const SPAN: u32 = 16;

/// Returns the weight of a loop that starts at `start`; 0 if its nodes are not timed.
#[inline]
fn weight(start: u64, after_few: bool) -> u64 {
    // The step is the golden ratio: evenly spread, and out of step with any pattern the traffic may
    // have.
    let spread = (start >> SPAN).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    match after_few {
        false => 1,
        true if spread < u64::MAX / TIMED => TIMED,
        true => 0,
    }
}

/// A worker. Written all the time, and allocated by another thread: thus on cache lines of its own.
#[repr(align(128))]
pub(crate) struct Worker {
    pub(crate) core: Core,
    pub(crate) runners: Vec<Option<Box<dyn Runner>>>,
    inputs: Vec<(NodeId, Box<dyn InputNode>)>,
    /// Receiving ends of the rings from other workers.
    arrivals: Vec<Arrivals>,
    pub(crate) reader: Reader,
    pub(crate) arcs: Arc<ArcTable>,
    pub(crate) inbox: rtrb::Consumer<ToWorker>,
    pub(crate) waker: Arc<Waker>,
    poller: Poller,
    pace: Pace,
    own_time: OwnTime,
    /// Nodes that are being called again.
    asked: Vec<NodeId>,
    stop: bool,
}

impl Worker {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn new(
        index: usize,
        cache: Cache,
        stats: Arc<WorkerStats>,
        to_main: ToMain,
        reader: Reader,
        arcs: Arc<ArcTable>,
        inbox: rtrb::Consumer<ToWorker>,
        waker: Arc<Waker>,
        pace: Pace,
    ) -> Worker {
        let poller = Poller::new(waker.clone());
        Worker {
            core: Core::new(index, cache, stats, to_main),
            runners: Vec::new(),
            inputs: Vec::new(),
            arrivals: Vec::new(),
            reader,
            arcs,
            inbox,
            waker,
            poller,
            pace,
            own_time: OwnTime::new(),
            asked: Vec::with_capacity(16),
            stop: false,
        }
    }

    pub(crate) fn install(&mut self, id: NodeId, info: NodeInfo, built: Built) {
        let error_base = info.error_base;
        let places = info.taps.clone();
        self.core.install(id, info);
        // Traces that were asked for end with the node: another one may have its number next.
        self.core.trace_add(id, 0, None);
        while self.runners.len() <= id.0 as usize {
            self.runners.push(None);
        }
        // A revived or removed input node: the one before it must not be polled any more.
        if let Some(at) = self.inputs.iter().position(|(i, _)| *i == id) {
            let (_, old) = self.inputs.remove(at);
            self.core.to_main.discard(Box::new(old));
            self.rearm();
        }
        match built {
            Built::Node(r) => {
                if let Some(old) = self.runners[id.0 as usize].replace(r) {
                    self.core.to_main.discard(Box::new(old));
                }
            }
            Built::Input(i) => {
                self.inputs.push((id, i));
                self.rearm();
            }
            // The start has failed, and names the reason.
            Built::Refused(_) => {}
            Built::Tap(t) => {
                let cx = TapCx {
                    stats: self.core.stats.clone(),
                    index: self.core.index,
                    now: 0,
                    arc: DEVICE_INPUT,
                    error_base,
                    skip: 0,
                };
                self.core.taps.install(id, cx, t, &places);
            }
        }
    }

    pub(crate) fn reorder(&mut self, by_rank: Vec<NodeId>) {
        self.core.reorder(by_rank);
    }

    pub(crate) fn epoll_set(&self) -> SetFd {
        self.poller.set_fd()
    }

    /// Returns handles to the memory of the gates to its taps.
    pub(crate) fn gate_memory(&self) -> [SparseMemory; 2] {
        self.core.gate_memory()
    }

    fn rearm(&mut self) {
        let fds = self.inputs.iter().flat_map(|(_, i)| i.descriptors());
        self.poller.watch(fds.collect());
        self.pace.set_mode(self.inputs.iter().flat_map(|(_, i)| i.rx_modes()));
    }

    /// Returns the name of the running node, for the report of a panic.
    pub(crate) fn current(&self) -> String {
        self.core.info.get(self.core.current.0 as usize).map_or("?".into(), |i| i.name.to_string())
    }

    /// Runs until it receives [`ToWorker::Stop`].
    pub(crate) fn run(&mut self) {
        self.core.unshare();
        self.asked = Vec::with_capacity(16);
        // Time when the last packets were done, and whether that was in the loop before.
        let (mut last_work, mut busy, mut few) = (clock::cycles(), true, false);
        // A loop starts where one with work ended: reading the clock takes about 20 clocks.
        let mut start = last_work;
        while !self.stop {
            self.core.now = clock::at(start);
            let at = if self.messages() { clock::cycles() } else { start };
            if self.stop {
                // Do not sleep first: nothing would wake it.
                break;
            }
            let (packets, deadline, end) = self.turn(at, weight(start, busy && few));
            let totals = &self.core.stats.totals;
            totals.loops.add(1);
            if packets > 0 {
                if !busy {
                    self.pace.arrival(start.wrapping_sub(last_work));
                }
                (last_work, busy, few) = (end, true, packets <= FEW);
                totals.busy_loops.add(1);
                totals.busy_clocks.add(end - start);
                self.core.stats.loops.add(end - start);
                let looked = self.own_time.after(start, end, &self.core.stats.long_loops);
                self.core.cache.publish();
                self.core.taps_after_work();
                start = if looked { clock::cycles() } else { end };
                continue;
            }
            if busy {
                self.core.settle_taps();
            }
            busy = false;
            let end = clock::cycles();
            let idle = end.wrapping_sub(last_work);
            if idle >= self.pace.patience() {
                self.core.cache.publish();
                self.sleep(deadline);
            } else {
                self.pace.pause(idle);
            }
            start = clock::cycles();
        }
        self.core.cache.publish();
    }

    /// Polls the inputs and runs the graph until nothing is pending, from `at` on, in a loop whose
    /// clocks are weighted by `weight`. Returns the number of packets that came in, the earliest
    /// time at which an input wants to be polled again, and, if there were packets, when they were
    /// done.
    fn turn(&mut self, at: u64, weight: u64) -> (usize, Option<u64>, u64) {
        let mut watch = Watch { at, weight };
        let guard = self.reader.enter();
        let arcs = &*self.arcs;
        self.core.follow_taps();
        let mut packets = 0;
        let mut deadline: Option<u64> = None;
        if !self.core.again.is_empty() {
            // A node that is called may request another call.
            std::mem::swap(&mut self.core.again, &mut self.asked);
        }
        for id in self.asked.drain(..) {
            packets += 1;
            let mut cx = NodeCx { core: &mut self.core, guard: &guard, arcs, node: id };
            if let Some(Some(r)) = self.runners.get_mut(id.0 as usize) {
                r.again(&mut cx);
            }
            watch.read();
        }
        for arrivals in &mut self.arrivals {
            packets += arrivals.poll(&mut self.core, |core, node, got| {
                watch.note(core.stats.node(node), got as u64);
            });
        }
        for (id, input) in &mut self.inputs {
            self.core.current = *id;
            let before = self.core.stats.totals.rx.get();
            let mut cx = NodeCx { core: &mut self.core, guard: &guard, arcs, node: *id };
            let poll = input.poll(&mut cx);
            match poll {
                Poll::Idle => {}
                Poll::At(t) => deadline = Some(deadline.map_or(t, |d| d.min(t))),
                Poll::Busy(n) => packets += n.max(1),
            }
            let got = self.core.stats.totals.rx.get() - before;
            if got > 0 || matches!(poll, Poll::Busy(_)) {
                watch.note(self.core.stats.node(*id), got);
            }
        }
        let bound = Bound::of(packets, self.core.buffers);
        packets += dispatch(&mut self.core, &mut self.runners, &guard, arcs, &mut watch, bound);
        let end = if weight == 0 && packets > 0 { clock::cycles() } else { watch.at };
        (packets, deadline, end)
    }

    /// Handles messages from the main thread; returns true if there were any.
    fn messages(&mut self) -> bool {
        if self.inbox.is_empty() {
            return false;
        }
        // A call sees everything counted before it.
        self.core.settle_taps();
        // Take only those that are there now: when a message that is sent after the reply to this
        // is processed, packets that came with these have moved on.
        for _ in 0..self.inbox.slots() {
            if let Ok(m) = self.inbox.pop() {
                self.message(m);
            }
        }
        true
    }

    fn message(&mut self, m: ToWorker) {
        match m {
            ToWorker::Install { id, info, built } => self.install(id, info, built),
            ToWorker::Gate { arc, sw_if, mask } => self.core.set_gate(arc, sw_if, mask),
            ToWorker::Order(by_rank) => self.core.reorder(by_rank),
            ToWorker::Node { node, message } => self.node_message(node, message),
            ToWorker::Inject(i) => {
                let Some(mut p) = self.core.cache.alloc() else {
                    self.core.stats.interface(i.rx_if).rx_no_buf.add(1);
                    return;
                };
                p.mark(Flags::LOCAL);
                if !p.fill(&i.bytes, &mut self.core.cache) {
                    self.core.stats.interface(i.rx_if).rx_no_buf.add(1);
                    self.core.cache.free(p);
                    return;
                }
                p.set_rx_if(i.rx_if);
                p.set_tx_if(i.tx_if);
                p.set_aux(i.aux);
                self.core.stats.totals.originated.add(1);
                if !self.core.trace.wanted.is_empty() {
                    self.core.mark_made(i.node, &mut p);
                }
                self.core.push_packet(p, i.node);
            }
            ToWorker::Ways { to, from } => {
                self.core.outbound = to;
                self.arrivals = from;
            }
            ToWorker::Call(f) => f(&mut self.core),
            ToWorker::Stop => self.stop = true,
        }
    }

    fn node_message(&mut self, node: NodeId, message: Box<dyn std::any::Any + Send>) {
        let guard = self.reader.enter();
        let arcs = &*self.arcs;
        let mut cx = NodeCx { core: &mut self.core, guard: &guard, arcs, node };
        if let Some((_, input)) = self.inputs.iter_mut().find(|(id, _)| *id == node) {
            input.message(&mut cx, message);
        } else if let Some(Some(r)) = self.runners.get_mut(node.0 as usize) {
            r.message(&mut cx, message);
        } else {
            self.core.tap_message(node, message);
            return;
        }
        self.rearm();
    }

    /// Sleeps until a descriptor, the main thread or the deadline wakes it.
    fn sleep(&mut self, deadline: Option<u64>) {
        let timeout = match deadline {
            Some(t) => {
                let left = t.saturating_sub(clock::ticks());
                if left == 0 {
                    return;
                }
                Some(std::time::Duration::from_secs_f64(left as f64 / clock::hz()))
            }
            None => None,
        };
        let mut woken = Woken::default();
        self.waker.begin_sleep();
        if self.inbox.is_empty() && self.arrivals.iter_mut().all(|a| a.ring.is_empty()) {
            self.core.stats.totals.sleeps.add(1);
            for (id, _) in &self.inputs {
                self.core.stats.node(*id).suspends.add(1);
            }
            self.reader.offline();
            woken = self.poller.wait(timeout);
            self.own_time.slept();
        }
        self.waker.end_sleep(woken.by_waker);
        if woken.by_error {
            self.inputs.iter_mut().for_each(|(_, i)| i.trouble());
        }
    }

    /// Frees pending frames and returns all buffers: the pool must be complete afterwards.
    pub(crate) fn shut_down(&mut self) {
        self.core.settle_taps();
        self.core.queue_lone();
        for p in &mut self.core.pending {
            for mut f in p.full.drain(..).chain(p.open.take()) {
                self.core.cache.free_frame(&mut f);
            }
        }
        self.arrivals.iter_mut().for_each(|a| a.shut_down(&mut self.core));
        self.inputs.clear();
        self.runners.clear();
        self.core.taps.clear();
    }
}

/// Times the nodes of a loop, one after the other.
struct Watch {
    /// Time when the previous one was done.
    at: u64,
    /// Weight of this loop. 0: it is not timed.
    weight: u64,
}

impl Watch {
    /// Returns the clocks since the last reading.
    #[inline]
    fn read(&mut self) -> u64 {
        if self.weight == 0 {
            return 0;
        }
        let now = clock::cycles();
        now - std::mem::replace(&mut self.at, now)
    }

    /// Records that a node was called for `n` packets.
    #[inline]
    fn note(&mut self, stats: &crate::stats::NodeStats, n: u64) {
        stats.calls.add(1);
        stats.vectors.add(n);
        let clocks = self.read();
        if self.weight > 0 {
            stats.clocks.add(clocks * self.weight);
            if clocks > stats.max_clocks.get() {
                stats.max_clocks.set(clocks);
                stats.max_vectors.set(n);
            }
        }
    }
}

/// Runs nodes in the graph's order until no frame is pending; returns the packets processed, each
/// counted at each node, so that injected packets count as work.
fn dispatch(
    core: &mut Core,
    runners: &mut [Option<Box<dyn Runner>>],
    guard: &Guard<'_>,
    arcs: &ArcTable,
    watch: &mut Watch,
    bound: Bound,
) -> usize {
    let mut handled = 0;
    loop {
        while let Some((id, mut frame)) = core.lone.take() {
            handled += frame.len();
            if handled > bound.suspicious {
                match bound.step(core, id, frame, handled) {
                    Some(left) => frame = left,
                    None => continue,
                }
            }
            visit(core, runners, (guard, arcs), watch, id, frame);
        }
        let Some((rank, id)) = core.first_ready() else { break };
        // Take only those that are there now: a node upstream may add more meanwhile.
        let waiting = {
            let p = &core.pending[id.0 as usize];
            p.full.len() + usize::from(p.open.is_some())
        };
        core.clear_ready(rank);
        for _ in 0..waiting {
            let Some(mut frame) = core.next_frame(id) else { break };
            handled += frame.len();
            if handled > bound.suspicious {
                match bound.step(core, id, frame, handled) {
                    Some(left) => frame = left,
                    None => continue,
                }
            }
            visit(core, runners, (guard, arcs), watch, id, frame);
        }
    }
    handled
}

/// Runs a node on a frame.
#[inline(always)]
fn visit(
    core: &mut Core,
    runners: &mut [Option<Box<dyn Runner>>],
    (guard, arcs): (&Guard<'_>, &ArcTable),
    watch: &mut Watch,
    id: NodeId,
    frame: Box<Frame>,
) {
    let n = frame.len() as u64;
    core.current = id;
    let mut cx = NodeCx { core, guard, arcs, node: id };
    match runners.get_mut(id.0 as usize) {
        Some(Some(r)) => r.run(&mut cx, frame),
        // An arc or adjacency still named a deleted node: nothing is lost silently.
        _ => cx.dropped_frame(frame),
    }
    watch.note(core.stats.node(id), n);
}

#[cfg(test)]
mod tests {
    use crate::mailbox::Waker;
    use crate::node::{Adapter, OwnLines};

    /// The weights of loops add up to their number, whatever time they take.
    #[test]
    fn weights_add_up() {
        for step in [200u64, 600, 2596, 1 << 16, 1_000_000, 1 << 20, 1 << 40] {
            // A thousand spans, or steps, if these are longer.
            let turns = 1000 * (1 << super::SPAN) / step.min(1 << super::SPAN);
            let all: u64 = (0..turns).map(|n| super::weight(77 + n * step, true)).sum();
            assert!(all.abs_diff(turns) < turns / 20, "{all} of {turns} in steps of {step}");
        }
        assert_eq!(super::weight(77, false), 1);
    }

    /// Allocations of the main thread for one worker after the other.
    #[test]
    fn workers_and_nodes_have_lines_of_their_own() {
        const PAIR: usize = 128;
        struct Small(#[allow(dead_code)] u8);
        assert_eq!((align_of::<super::Worker>(), align_of::<Waker>()), (PAIR, PAIR));
        assert_eq!((align_of::<Adapter<Small>>(), size_of::<Adapter<Small>>()), (PAIR, PAIR));
        assert_eq!((align_of::<OwnLines<Small>>(), size_of::<OwnLines<Small>>()), (PAIR, PAIR));
    }
}
