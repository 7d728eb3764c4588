//! Queues from worker to worker.

use super::{Control, EngineError};
use crate::decl::{Built, NodeId};
use crate::mailbox::ToWorker;
use crate::nodes::error_drop;
use crate::worker::HandOff;
use crate::worker::hand_off::{
    self, Arrivals, Common, HandOffTx, Handed, LocalEnd, Outbound, PairStats,
};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_tables::swap_ring::Gauge;

/// A queue and its target.
pub(super) struct Queue {
    name: &'static str,
    target: NodeId,
    /// The node that hands frames to each worker.
    nodes: Vec<NodeId>,
    pairs: Vec<Pair>,
}

/// Workers at both ends of a queue.
struct Pair {
    from: usize,
    to: usize,
    stats: Arc<PairStats>,
}

/// Existing queues, and those requested before the graph was built.
#[derive(Default)]
pub(super) struct Queues {
    asked: Vec<(&'static str, &'static str)>,
    all: Vec<Queue>,
    /// Gauges of the rings, by sender and receiver; of a worker to itself there is none.
    rings: Vec<Vec<Option<Gauge<Handed>>>>,
}

impl Queues {
    /// Drops all queues and rings.
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.rings.clear();
    }

    fn gauge(&self, from: usize, to: usize) -> Option<&Gauge<Handed>> {
        self.rings.get(from)?.get(to)?.as_ref()
    }
}

/// Counters of a queue between two workers, as `show handoff` prints them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandOffView {
    /// Name of the queue.
    pub queue: &'static str,
    /// Node that receives the packets.
    pub target: Arc<str>,
    /// Sending worker.
    pub from: usize,
    /// Receiving worker.
    pub to: usize,
    /// Frames handed over.
    pub frames: u64,
    /// Packets in them.
    pub packets: u64,
    /// Packets dropped because there was no room.
    pub drops: u64,
    /// Frames in the ring now, of all queues.
    pub depth: usize,
    /// Capacity of the ring in frames.
    pub room: usize,
    /// Addresses of the ring's positions and of the counters.
    pub lines: [usize; 3],
}

/// Time for which [`Control::await_handed_over`] waits.
const PATIENCE: Duration = Duration::from_secs(1);

impl Control {
    /// Waits until what workers are handing to each other has arrived: all packets that each had
    /// passed on when it answered the last time. Gives up after a second, as with a worker that
    /// does not respond; returns whether all has arrived.
    pub fn await_handed_over(&mut self) -> bool {
        let until = Instant::now() + PATIENCE;
        let gathered: Vec<u64> = self.pairs().map(|pair| pair.stats.gathered.get()).collect();
        let is_sent = self.sync_until(until, |c| {
            let mut all = c.pairs().zip(&gathered);
            all.all(|(pair, n)| n % 2 == 0 || *n != pair.stats.gathered.get())
        });
        let workers = self.hand_offs.rings.len();
        let mut sent = vec![vec![0; workers]; workers];
        for pair in self.pairs() {
            sent[pair.from][pair.to] += pair.stats.frames.get();
        }
        let has_arrived = self.sync_until(until, |c| {
            let rings = c.hand_offs.rings.iter().flatten();
            let arrived = |ring: &Option<Gauge<_>>| ring.as_ref().map_or(0, Gauge::received);
            rings.zip(sent.iter().flatten()).all(|(ring, n)| *n <= arrived(ring))
        });
        is_sent && has_arrived
    }

    /// True if packets are on their way from one worker to another. A worker that sleeps may have
    /// been handed some a moment ago.
    pub fn is_handing_over(&self) -> bool {
        let mut rings = self.hand_offs.rings.iter().flatten().flatten();
        rings.any(|ring| ring.depth() > 0)
            || self.pairs().any(|pair| !pair.stats.gathered.get().is_multiple_of(2))
    }

    fn pairs(&self) -> impl Iterator<Item = &Pair> {
        self.hand_offs.all.iter().flat_map(|queue| &queue.pairs)
    }

    fn sync_until(&mut self, until: Instant, done: impl Fn(&Control) -> bool) -> bool {
        while !done(self) {
            if Instant::now() >= until {
                return false;
            }
            self.sync();
        }
        true
    }

    /// Makes a queue by which workers hand packets to node `target` on another worker. A queue made
    /// in a feature's `init` is available to nodes through
    /// [`BuildCx::hand_off`](super::BuildCx::hand_off); the ends of a queue made later can be sent
    /// to nodes in messages ([`hand_off`](Self::hand_off)).
    ///
    /// # Errors
    /// [`EngineError::Graph`] if the target does not exist or there is no room for the queue's
    /// nodes. For a queue requested before the start, [`start`](Self::start) returns the error.
    pub fn add_hand_off(
        &mut self,
        queue: &'static str,
        target: &'static str,
    ) -> Result<(), EngineError> {
        if self.by_name.is_empty() {
            self.hand_offs.asked.push((queue, target));
            return Ok(());
        }
        self.enter_hand_off(queue, target)?;
        self.install_hand_off(self.hand_offs.all.len() - 1);
        Ok(())
    }

    /// Returns a worker's end of a queue.
    pub fn hand_off(&self, queue: &str, worker: usize) -> Option<HandOff> {
        let q = self.hand_offs.all.iter().find(|q| q.name == queue)?;
        let mut nodes = q.nodes.clone();
        if let Some(own) = nodes.get_mut(worker) {
            *own = q.target;
        }
        Some(HandOff { nodes: nodes.into(), target: q.target })
    }

    /// Returns the counters of all queues.
    pub fn hand_off_views(&self) -> Vec<HandOffView> {
        let view = |q: &Queue, p: &Pair| {
            let gauge = self.hand_offs.gauge(p.from, p.to);
            let [sent, received] = gauge.map_or([0; 2], Gauge::positions);
            HandOffView {
                queue: q.name,
                target: self.nodes[q.target.0 as usize].name.clone(),
                from: p.from,
                to: p.to,
                frames: p.stats.frames.get(),
                packets: p.stats.packets.get(),
                drops: p.stats.drops.get(),
                depth: gauge.map_or(0, Gauge::depth),
                room: gauge.map_or(0, Gauge::room),
                lines: [sent, received, Arc::as_ptr(&p.stats).addr()],
            }
        };
        self.hand_offs.all.iter().flat_map(|q| q.pairs.iter().map(move |p| view(q, p))).collect()
    }

    /// Enters the queues that features have requested.
    pub(super) fn enter_hand_offs(&mut self) -> Result<(), EngineError> {
        for (queue, target) in std::mem::take(&mut self.hand_offs.asked) {
            self.enter_hand_off(queue, target)?;
        }
        Ok(())
    }

    /// Returns the nodes of all queues as they are before all workers run: packets stay on their
    /// worker.
    pub(super) fn hand_off_nodes(&self) -> Vec<(NodeId, Built)> {
        let here = |target| Built::runner(LocalEnd { target });
        let nodes = |q: &Queue| q.nodes.iter().map(|w| (*w, q.target)).collect::<Vec<_>>();
        let all = self.hand_offs.all.iter().flat_map(nodes);
        all.filter(|(node, target)| node != target)
            .map(|(node, target)| (node, here(target)))
            .collect()
    }

    /// Installs the nodes of all queues, once workers run.
    pub(super) fn install_hand_offs(&mut self) {
        (0..self.hand_offs.all.len()).for_each(|q| self.install_hand_off(q));
    }

    fn enter_hand_off(&mut self, name: &'static str, target: &str) -> Result<(), EngineError> {
        let Some(&target) = self.by_name.get(target) else {
            let text = format!("hand-off `{name}` leads to unknown node `{target}`");
            return Err(EngineError::Graph(text));
        };
        if self.hand_offs.all.iter().any(|q| q.name == name) {
            return Err(EngineError::Graph(format!("duplicate hand-off name `{name}`")));
        }
        let workers = self.config.workers.len();
        let mut nodes = vec![target; workers];
        for (worker, node) in nodes.iter_mut().enumerate().filter(|_| workers > 1) {
            *node = self.enter(format!("{name}-wk{worker}").into(), &hand_off::NODE)?;
            let entry = &mut self.nodes[node.0 as usize];
            (entry.nexts, entry.drop) = (vec![target], self.by_name["error-drop"]);
        }
        self.hand_offs.all.push(Queue { name, target, nodes, pairs: Vec::new() });
        Ok(())
    }

    fn install_hand_off(&mut self, queue: usize) {
        let Queue { target, ref nodes, .. } = self.hand_offs.all[queue];
        let nodes = nodes.clone();
        if nodes.len() < 2 {
            return;
        }
        if self.hand_offs.rings.is_empty() {
            self.install_rings(nodes.len());
        }
        let drop = self.by_name["error-drop"];
        let congested = u32::from(error_drop::CONGESTED.0);
        let full = (drop, self.nodes[drop.0 as usize].error_base + congested);
        let mut pairs = Vec::new();
        for (to, node) in nodes.iter().enumerate() {
            let info = self.info(*node);
            for from in 0..nodes.len() {
                if from == to {
                    let built = Built::runner(LocalEnd { target });
                    self.send(to, ToWorker::Install { id: *node, info: info.clone(), built });
                    continue;
                }
                let stats = Arc::new(PairStats::default());
                pairs.push(Pair { from, to, stats: stats.clone() });
                let built = Built::runner(HandOffTx { to, target, stats, held: None, full });
                self.send(from, ToWorker::Install { id: *node, info: info.clone(), built });
            }
        }
        let order = self.order();
        (0..nodes.len()).for_each(|w| self.send(w, ToWorker::Order(order.clone())));
        self.hand_offs.all[queue].pairs = pairs;
    }

    /// Makes the rings between workers, which all queues share.
    fn install_rings(&mut self, workers: usize) {
        let mut arrivals: Vec<Vec<Arrivals>> = (0..workers).map(|_| Vec::new()).collect();
        let mut outbound: Vec<Vec<Option<Outbound>>> = Vec::new();
        for from in 0..workers {
            let mut way = |to: usize| {
                let (way, ring) = Outbound::new(workers, self.workers[to].waker.clone());
                arrivals[to].push(Arrivals { from, ring });
                way
            };
            outbound.push((0..workers).map(|to| (to != from).then(|| way(to))).collect());
        }
        for to in 0..workers {
            let ways = || outbound.iter().filter_map(|ways| ways[to].as_ref());
            let common = Common::new(ways().map(Outbound::gauge).collect()).map(Arc::new);
            let ways = outbound.iter_mut().filter_map(|ways| ways[to].as_mut());
            for (sender, way) in ways.enumerate() {
                way.common = common.clone().map(|common| (common, sender));
            }
        }
        let gauges = |ways: &Vec<Option<Outbound>>| {
            ways.iter().map(|way| way.as_ref().map(Outbound::gauge)).collect()
        };
        self.hand_offs.rings = outbound.iter().map(gauges).collect();
        for (worker, (to, from)) in outbound.into_iter().zip(arrivals).enumerate() {
            self.send(worker, ToWorker::Ways { to, from });
        }
    }
}
