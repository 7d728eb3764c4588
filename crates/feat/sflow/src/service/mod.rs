//! The thread `sflow-service`: drains the workers' rings, polls interface counters, and sends both.
//!
//! The thread sleeps a millisecond while samples flow, up to 32 when they do not, and without limit
//! while no interface has sFlow; a worker wakes it when many samples wait. The thread reads
//! workers' counters directly and never talks to a worker.

mod counters;
mod export;
mod handed;
mod labels;
mod netlink;
mod samples;
mod shares;

use crate::drops::Limiter;
use crate::exporting::ExportSettings;
use crate::netlink::NetlinkSettings;
use crate::reasons::Reasons;
use crate::record::{Cause, SampleRecord};
use crate::ring::{Bell, MAX_HEADER, SampleReader};
use crate::stats::TapStats;
use export::Exporter;
use handed::Handed;
pub use netlink::LineStatus;
use netlink::Netlink;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use samples::Guide;
use shares::Shares;
use std::net::IpAddr;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use thalweg_device::{InterfaceView, SwIfIndex};
use thalweg_graph::stats::{IfTotals, MAX_INTERFACES, WorkerStats};
use thalweg_graph::{Control, clock};
use thalweg_sflow::FlowRecord;
use thalweg_sflow_agent::agent::{CollectorConfig, CollectorStats};
use thalweg_tables::qsbr::Reader;

/// Sleep between two rounds while samples flow.
const SHORTEST: Duration = Duration::from_millis(1);
/// Sleep between two rounds when there have been none for a while.
const LONGEST: Duration = Duration::from_millis(32);
/// Samples taken from one ring before the next one's turn, on average.
const BATCH: usize = 64;
/// Samples taken before orders and counters are looked after.
const ROUND: usize = 16_384;
/// Time to look for samples after the last interface was disabled.
const LINGER: Duration = Duration::from_secs(2);

/// An interface as the service knows it.
#[derive(Clone, Debug)]
pub struct PortSetup {
    /// Name, number, state.
    pub view: InterfaceView,
    /// sFlow is enabled.
    pub enabled: bool,
    /// Generation of the interface of that number.
    pub generation: u32,
    /// Totals under its number before it came.
    pub born: IfTotals,
    /// Its number among the system's devices, if it has one.
    pub os_index: Option<u32>,
}

/// Configuration of the service, set by the main thread.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Seconds between two polls, 1 or more.
    pub polling_interval: u32,
    /// Settings of the agent.
    pub export: ExportSettings,
    /// Settings of the netlink export.
    pub netlink: NetlinkSettings,
    /// Interfaces that exist.
    pub ports: Vec<PortSetup>,
    /// Reasons why packets are dropped, by number.
    pub reasons: Arc<Reasons>,
    /// Maximum drop samples per second.
    pub drop_limit: u32,
    /// Samples name sub-interfaces, in place of their ports.
    pub sub_interfaces: bool,
}

/// Results of the service.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Packet samples sent in datagrams or over netlink.
    pub samples_sent: u64,
    /// Packet samples that did not fit into a datagram.
    pub samples_refused: u64,
    /// Packet samples that came while there was neither collector nor netlink.
    pub samples_unwanted: u64,
    /// Packet samples of interfaces that were gone.
    pub samples_stale: u64,
    /// Counter samples sent in datagrams or over netlink.
    pub counters_sent: u64,
    /// Counter samples that did not fit into a datagram.
    pub counters_refused: u64,
    /// Dropped packets put into datagrams.
    pub drops_sent: u64,
    /// Dropped packets that did not fit into a datagram.
    pub drops_refused: u64,
    /// Drop samples of workers that exceeded the limit together.
    pub drops_limited: u64,
    /// Samples of the host's counters sent.
    pub host_samples: u64,
    /// Packet samples sent by interface.
    pub sent_by_port: Vec<u64>,
    /// The agent's address, once it is known.
    pub agent_address: Option<IpAddr>,
    /// Datagrams by collector.
    pub collectors: Vec<(CollectorConfig, CollectorStats)>,
    /// The netlink export is active.
    pub netlink_wanted: bool,
    /// State of its channels: samples, counters and status, drops.
    pub netlink: [LineStatus; 3],
    /// Longest time for which samples that came were not looked at: rings must hold what comes in
    /// it.
    pub longest_pause: Duration,
    /// Times that the thread woke up.
    pub wakeups: u64,
}

enum Order {
    Setup(Box<Setup>),
    /// One interface as it is now; `None` if it is gone.
    Port(SwIfIndex, Option<Box<PortSetup>>),
    Reasons(Arc<Reasons>),
    Stop,
}

/// The main thread's end. Dropping it sends what there is and ends the thread.
#[derive(Debug)]
pub struct Handle {
    orders: Sender<Order>,
    status: Arc<Mutex<Status>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Handle {
    /// Replaces the setup.
    pub fn configure(&self, setup: Setup) {
        self.order(Order::Setup(Box::new(setup)));
    }

    /// Replaces what the service knows of one interface, with `None` once it is gone. The time does
    /// not depend on the number of interfaces.
    pub fn follow(&self, sw_if: SwIfIndex, port: Option<PortSetup>) {
        self.order(Order::Port(sw_if, port.map(Box::new)));
    }

    /// Replaces why packets are dropped.
    pub fn explain(&self, reasons: Arc<Reasons>) {
        self.order(Order::Reasons(reasons));
    }

    fn order(&self, order: Order) {
        // The thread ends only with this handle.
        let _ = self.orders.send(order);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// Returns the results up to the latest round.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.order(Order::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts the thread, which the bell wakes then. Each worker has one ring, and what its tap counts.
///
/// # Errors
/// If the system refuses a thread.
pub fn start(
    c: &Control,
    rings: Vec<(SampleReader, Arc<TapStats>)>,
    bell: &Bell,
    setup: Setup,
) -> std::io::Result<Handle> {
    // Cores that workers are pinned to.
    let busy: Vec<usize> = c.threads().iter().skip(1).filter_map(|worker| worker.core).collect();
    let workers = (0..c.workers()).map(|w| c.worker_stats(w).clone()).collect();
    let (guide, reader) = (Guide::new(c), Service::reader(c));
    let (rings, taps) = rings.into_iter().unzip();
    let (orders, inbox) = mpsc::channel();
    let status = Arc::new(Mutex::new(Status::default()));
    let shared = status.clone();
    let thread = std::thread::Builder::new().name("sflow-service".into()).spawn(move || {
        keep_off(&busy);
        let mut service = Service::new(rings, taps, workers, guide, reader, shared);
        service.apply(setup);
        service.run(&inbox);
    })?;
    bell.wakes(thread.thread().clone());
    Ok(Handle { orders, status, thread: Some(thread) })
}

/// Keeps this thread off workers' cores if it may use others: the scheduler would put it there now
/// and then, and with many samples it would take half of the core from the worker.
fn keep_off(busy: &[usize]) {
    let this = Pid::from_raw(0);
    let Ok(mut allowed) = sched_getaffinity(this) else { return };
    for core in busy {
        // A core beyond what a set can hold is not allowed.
        let _ = allowed.unset(*core);
    }
    if (0..CpuSet::count()).any(|core| allowed.is_set(core).unwrap_or(false)) {
        // The service is merely a worse neighbour if this fails.
        let _ = sched_setaffinity(this, &allowed);
    }
}

/// Interface, with the events about it.
struct Port {
    setup: PortSetup,
    /// Latest pool by worker.
    pools: Vec<u64>,
    /// Its counters were sent at least once since it was enabled.
    polled: bool,
    /// Samples lost by worker.
    lost: Vec<u64>,
}

struct Service {
    rings: Vec<SampleReader>,
    shares: Shares,
    workers: Vec<Arc<WorkerStats>>,
    guide: Guide,
    reader: Option<Reader>,
    /// Samples whose packets other workers have.
    handed: Handed,
    /// Rate limit of drop samples.
    limiter: Limiter,
    /// Drops suppressed by workers.
    suppressed: Vec<u64>,
    /// Setup, apart from the interfaces.
    setup: Setup,
    /// Ports by index.
    ports: Vec<Option<Port>>,
    /// Number of those with sFlow.
    sampled: usize,
    exporter: Exporter,
    netlink: Netlink,
    status: Status,
    shared: Arc<Mutex<Status>>,
    started: Instant,
    /// Seconds since start up to which counters were polled.
    polled_until: u64,
    /// Some interface has sFlow.
    enabled: bool,
    /// Time until which to look for samples although none comes.
    linger_until: Option<Instant>,
    /// Room for the records of the sample in hand.
    records: Vec<FlowRecord<'static>>,
    /// Time when rings were last left, if something was in them.
    looked: Option<Instant>,
}

impl Service {
    fn new(
        rings: Vec<SampleReader>,
        taps: Vec<Arc<TapStats>>,
        workers: Vec<Arc<WorkerStats>>,
        guide: Guide,
        reader: Option<Reader>,
        shared: Arc<Mutex<Status>>,
    ) -> Service {
        let started = clock::now();
        Service {
            suppressed: vec![0; rings.len()],
            shares: Shares::new(taps),
            rings,
            workers,
            guide,
            reader,
            handed: Handed::default(),
            limiter: Limiter::new(crate::state::DEFAULT_DROP_LIMIT),
            setup: Setup { polling_interval: 1, ..Setup::default() },
            ports: Vec::new(),
            sampled: 0,
            exporter: Exporter::new(started),
            netlink: Netlink::new(),
            status: Status::default(),
            shared,
            started,
            polled_until: 0,
            enabled: false,
            linger_until: None,
            records: Vec::with_capacity(4),
            looked: None,
        }
    }

    /// Runs until it is asked to stop. A round must not park this thread, as a channel's `recv`
    /// would: that would take the call that comes with an order, and sleep on.
    fn run(&mut self, orders: &Receiver<Order>) {
        let mut nap = SHORTEST;
        loop {
            match self.timeout(nap) {
                Some(timeout) => std::thread::park_timeout(timeout),
                None => std::thread::park(),
            }
            self.status.wakeups += 1;
            // All that was asked for before samples are looked at: these may have come after it.
            let Some(changed) = self.obey(orders) else { break };
            let drained = self.round();
            nap = match drained {
                // Interfaces enabled just now will have some soon.
                0 if changed => SHORTEST,
                0 => (nap * 2).clamp(SHORTEST, LONGEST),
                ROUND.. => Duration::ZERO,
                _ => SHORTEST,
            };
        }
        while self.drain() > 0 {}
        // The thread has ended.
        self.let_go(clock::now() + handed::PATIENCE, None);
        self.exporter.flush(clock::now());
        self.netlink.flush();
        self.publish();
    }

    /// Handles all messages; returns whether there were any, `None` on stop.
    fn obey(&mut self, orders: &Receiver<Order>) -> Option<bool> {
        let mut changed = false;
        loop {
            match orders.try_recv() {
                Ok(Order::Setup(setup)) => self.apply(*setup),
                Ok(Order::Port(sw_if, port)) => self.follow(sw_if, port.map(|port| *port)),
                Ok(Order::Reasons(reasons)) => self.setup.reasons = reasons,
                Err(TryRecvError::Empty) => return Some(changed),
                Ok(Order::Stop) | Err(TryRecvError::Disconnected) => return None,
            }
            changed = true;
        }
    }

    /// One round: samples, counters, what has waited long enough. Returns the samples taken.
    fn round(&mut self) -> usize {
        let drained = self.drain();
        let now = clock::now();
        self.poll_counters(now);
        self.exporter
            .tick(now, || counters::adapters(self.ports.iter().flatten().map(|port| &port.setup)));
        if self.netlink.tick(now) {
            self.poll_all();
        }
        self.publish();
        drained
    }

    /// Returns the time to sleep; `None` until there is an order.
    fn timeout(&self, nap: Duration) -> Option<Duration> {
        let now = clock::now();
        let until = |at: Instant| at.saturating_duration_since(now);
        let deadline = self.exporter.deadline(now).map(until);
        if !self.enabled && self.linger_until.is_none_or(|at| now >= at) {
            return deadline;
        }
        let second = self.started + Duration::from_secs(self.seconds(now) + 1);
        Some(deadline.unwrap_or(nap).min(nap).min(until(second)))
    }

    fn seconds(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.started).as_secs()
    }

    /// Takes a new setup. State of the same interface and the same collector goes on.
    fn apply(&mut self, mut setup: Setup) {
        let ports = std::mem::take(&mut setup.ports);
        let mut stays = vec![false; self.ports.len()];
        for port in &ports {
            stays.get_mut(port.view.sw_if.index()).into_iter().for_each(|stays| *stays = true);
        }
        for at in (0..stays.len()).filter(|at| !stays[*at]) {
            self.set_port(SwIfIndex(at as u32), None);
        }
        ports.into_iter().for_each(|port| self.set_port(port.view.sw_if, Some(port)));
        if setup.drop_limit != self.setup.drop_limit {
            self.limiter.set(setup.drop_limit);
        }
        self.setup = setup;
        self.settle();
    }

    /// Takes a change of one interface.
    fn follow(&mut self, sw_if: SwIfIndex, port: Option<PortSetup>) {
        self.set_port(sw_if, port);
        if self.enabled != (self.sampled > 0) {
            self.settle();
        }
    }

    /// Sets what is known of an interface; `None` if it is gone.
    fn set_port(&mut self, sw_if: SwIfIndex, new: Option<PortSetup>) {
        let at = sw_if.index();
        if new.is_some() && at >= self.ports.len() && at < MAX_INTERFACES {
            self.ports.resize_with(at + 1, || None);
            self.status.sent_by_port.resize(self.ports.len(), 0);
            self.netlink.set_ports(self.ports.len());
        }
        let Some(slot) = self.ports.get_mut(at) else { return };
        let before = slot.take();
        self.sampled -= usize::from(before.as_ref().is_some_and(|b| b.setup.enabled));
        self.sampled += usize::from(new.as_ref().is_some_and(|port| port.enabled));
        let generation = new.as_ref().map(|port| port.generation);
        let is_same = before.as_ref().map(|b| b.setup.generation) == generation;
        if !is_same {
            self.exporter.forget(sw_if);
            self.status.sent_by_port[at] = 0;
        }
        *slot = new.map(|setup| match before.filter(|_| is_same) {
            Some(same) => {
                let polled = same.polled && same.setup.enabled;
                Port { setup, polled, ..same }
            }
            None => {
                let (pools, lost) = (vec![0; self.rings.len()], vec![0; self.rings.len()]);
                Port { setup, pools, polled: false, lost }
            }
        });
    }

    /// Applies whether an interface has sFlow, and the settings.
    fn settle(&mut self) {
        let (now, enabled) = (clock::now(), self.sampled > 0);
        if self.enabled && !enabled {
            self.linger_until = Some(now + LINGER);
        }
        self.enabled = enabled;
        self.exporter.configure(&self.setup.export, enabled);
        let busy = enabled || self.linger_until.is_some_and(|at| now < at);
        let wanted = busy && self.setup.netlink.wanted(!self.setup.export.collectors.is_empty());
        self.status.netlink_wanted = wanted;
        if self.netlink.configure(self.setup.netlink, wanted, now) {
            self.poll_all();
        }
    }

    /// Takes samples from all rings, if anybody wants them.
    fn drain(&mut self) -> usize {
        match self.status.netlink_wanted || self.exporter.is_wanted() {
            true => self.drain_rings(ROUND),
            false => self.discard(),
        }
    }

    /// Drops all pending samples.
    fn discard(&mut self) -> usize {
        let mut total = 0;
        for ring in &mut self.rings {
            while total < ROUND
                && let Some(cause) = ring.skip()
            {
                total += 1;
                let packet = matches!(cause, Cause::Received | Cause::Sent);
                self.status.samples_unwanted += u64::from(packet);
            }
            ring.release();
        }
        total
    }

    /// Takes samples from all rings in turn, until these are empty or, after `most`, it is time for
    /// other things.
    fn drain_rings(&mut self, most: usize) -> usize {
        let mut reader = self.reader.take();
        let guard = reader.as_mut().map(Reader::enter);
        let now = clock::now();
        let pause = self.looked.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.status.longest_pause = self.status.longest_pause.max(pause);
        let mut header = [0; MAX_HEADER];
        let mut total = 0;
        loop {
            let before = total;
            for worker in 0..self.rings.len() {
                for _ in 0..self.shares.turn(worker) {
                    let Some(words) = self.rings[worker].pop_words(&mut header) else { break };
                    let (record, length) = SampleRecord::from_words(&words);
                    total += 1;
                    self.take(now, guard.as_ref(), worker, &record, &header[..length]);
                }
                self.rings[worker].release();
            }
            if total == before || total >= most {
                break;
            }
        }
        self.shares.settle();
        self.let_go(now, guard.as_ref());
        self.looked = (total > 0).then(clock::now);
        // No guard may be held while this thread sleeps.
        if let Some(reader) = &mut reader {
            reader.offline();
        }
        self.reader = reader;
        total
    }

    /// Sends the counters of all interfaces at the next opportunity.
    fn poll_all(&mut self) {
        self.ports.iter_mut().flatten().for_each(|port| port.polled = false);
    }

    /// Lets the main thread see what was done.
    fn publish(&mut self) {
        self.exporter.describe(&mut self.status);
        self.netlink.describe(&mut self.status.netlink);
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.clone_from(&self.status);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring;
    use thalweg_buffer::PoolConfig;
    use thalweg_graph::EngineConfig;

    /// Workers whose rings are full lose what they cannot put in: they get room alike.
    #[test]
    fn full_rings_are_drained_alike() {
        let pool = PoolConfig { buffers: 512, ..PoolConfig::default() };
        let c = Control::new(EngineConfig { pool, ..EngineConfig::default() }).unwrap();
        let (mut writers, rings): (Vec<_>, Vec<_>) =
            (0..3).map(|_| ring::channel(Bell::default()).unwrap()).unzip();
        let taps = (0..3).map(|_| Arc::default()).collect();
        let mut service =
            Service::new(rings, taps, Vec::new(), Guide::new(&c), None, Arc::default());
        let mut fill = || -> Vec<usize> {
            let one = |w: &mut ring::SampleWriter| {
                w.publish();
                let put =
                    (0..).take_while(|_| w.push(&SampleRecord::default(), &[1; 128]).is_some());
                let n = put.count();
                w.publish();
                n
            };
            writers.iter_mut().map(one).collect()
        };
        let first = fill();
        assert!(first.iter().all(|n| *n == first[0]), "{first:?}");
        for _ in 0..5 {
            let drained = service.drain_rings(ROUND);
            assert!(drained >= ROUND && drained < 3 * first[0], "{drained}");
            let room = fill();
            let (least, most) = (room.iter().min().unwrap(), room.iter().max().unwrap());
            assert!(most - least <= BATCH, "{room:?}");
            assert_eq!(room.iter().sum::<usize>(), drained);
        }
    }

    /// The service sleeps, as no interface has sFlow: samples that still come are dropped.
    #[test]
    fn many_samples_wake_the_service() {
        let pool = PoolConfig { buffers: 512, ..PoolConfig::default() };
        let c = Control::new(EngineConfig { pool, ..EngineConfig::default() }).unwrap();
        let bell = Bell::default();
        let (mut writer, reader) = ring::channel(bell.clone()).unwrap();
        let rings = vec![(reader, Arc::default())];
        let service = start(&c, rings, &bell, Setup::default()).unwrap();
        let unwanted = || service.status().samples_unwanted;
        let end = Instant::now() + Duration::from_secs(60);
        let mut pushed = 0;
        while unwanted() == 0 {
            assert!(Instant::now() < end, "{pushed} samples wait");
            while writer.push(&SampleRecord::default(), &[1; 64]).is_some() {
                pushed += 1;
                if pushed % 64 == 0 {
                    writer.publish();
                }
            }
            writer.publish();
            std::thread::yield_now();
        }
        assert!(pushed >= ring::RING_SAMPLES);
    }

    #[test]
    fn the_service_leaves_cores_to_workers() {
        let of_this = || sched_getaffinity(Pid::from_raw(0)).unwrap();
        let cores = |set: CpuSet| -> Vec<usize> {
            (0..CpuSet::count()).filter(|core| set.is_set(*core).unwrap()).collect()
        };
        // The test has a thread of its own, since other tests run on this one.
        let test = std::thread::spawn(move || {
            let all = cores(of_this());
            keep_off(&all);
            assert_eq!(cores(of_this()), all, "there is no other core");
            keep_off(&[all[0], usize::MAX]);
            let rest = if all.len() > 1 { &all[1..] } else { &all[..] };
            assert_eq!(cores(of_this()), rest);
        });
        test.join().unwrap();
    }
}
