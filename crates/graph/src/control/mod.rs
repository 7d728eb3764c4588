//! The main thread: the only writer of configuration.
//!
//! The main thread owns the registry of nodes, the arcs and every feature's state; it communicates
//! with workers through bounded rings and publishes snapshots; nothing that it does makes a worker
//! wait.

mod arcs;
mod counters;
mod error;
mod events;
mod hand_off;
mod launch;
mod main_loop;
mod messages;
mod registry;
mod state;

pub(crate) use arcs::ARCS;
pub use counters::since;
pub use error::EngineError;
pub use hand_off::HandOffView;
pub use launch::on_panic;
use launch::{Places, spawn, thread_name};
pub use messages::Asked;
use state::{ByType, State};

use crate::arc::{ArcConfig, ArcTable};
use crate::clock;
use crate::decl::{ArcDecl, ArcId, Built, ErrorDecl, Kind, NodeId};
use crate::loop_times::{LoopCounts, LoopTimes};
use crate::mailbox::{Event, ToMain, ToWorker, Waker};
use crate::part::Part;
use crate::poller::{Poller, SetFd};
use crate::stats::{IfTotals, WorkerStats};
use crate::worker::{HandOff, Pace, Worker};
use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant, SystemTime};
use thalweg_buffer::{Cache, Pool, PoolConfig, SwIfIndex};
use thalweg_tables::SparseMemory;
use thalweg_tables::qsbr::Domain;

/// Capacity of the ring of messages to a worker; further ones queue on the main thread's side.
const INBOX: usize = 4096;
/// Capacity of the ring of events from a worker to the main thread.
const EVENTS: usize = 4096;

/// Configuration of the engine.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// One element per worker: the core it is pinned to, or `None` to leave it to the scheduler.
    pub workers: Vec<Option<usize>>,
    /// Core for the main thread.
    pub main_core: Option<usize>,
    /// The buffer pool.
    pub pool: PoolConfig,
    /// Minimum time that an idle worker keeps polling before it sleeps.
    pub spin: Duration,
    /// Maximum gap between packets that a worker polls through, if such gaps are usual.
    pub spin_most: Duration,
}

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig {
            workers: vec![None],
            main_core: None,
            pool: PoolConfig::default(),
            spin: Duration::from_micros(20),
            spin_most: Duration::from_millis(1),
        }
    }
}

/// A node in the registry.
#[derive(Clone, Debug)]
pub struct NodeEntry {
    /// Its name.
    pub name: Arc<str>,
    /// Its kind.
    pub kind: Kind,
    /// Its next nodes.
    pub nexts: Vec<NodeId>,
    /// Node that receives its drops.
    pub drop: NodeId,
    /// Index of its first counter.
    pub error_base: u32,
    /// Its counters.
    pub errors: &'static [ErrorDecl],
    /// Arc and slot, if it is a feature.
    pub arc: Option<(ArcId, u16)>,
    /// Arcs and bits, if it is a tap.
    pub taps: Vec<(ArcId, u16)>,
    /// False once its interface is deleted.
    pub live: bool,
}

struct WorkerHandle {
    stats: Arc<WorkerStats>,
    inbox: rtrb::Producer<ToWorker>,
    waiting: VecDeque<ToWorker>,
    events: rtrb::Consumer<Event>,
    trash: rtrb::Consumer<Box<dyn Any + Send>>,
    waker: Arc<Waker>,
    core: Option<usize>,
    thread: Option<std::thread::JoinHandle<()>>,
    tid: Arc<std::sync::atomic::AtomicI32>,
    epoll: SetFd,
    /// Memory of the gates to its taps.
    gates: [SparseMemory; 2],
    /// The worker was late with its last answer.
    silent: bool,
}

/// Context of a node's build function.
pub struct BuildCx<'c> {
    /// The main thread's state.
    pub control: &'c Control,
    /// Index of the worker that the instance is for.
    pub worker: usize,
}

impl BuildCx<'_> {
    /// Returns an arc by name. If there is none, the router does not start.
    pub fn arc(&self, name: &str) -> ArcId {
        self.control.arc(name).unwrap_or_else(|| {
            self.control.refuse_start(format_args!("unknown arc `{name}`"));
            ArcId(u8::MAX)
        })
    }

    /// Returns what a feature has shared with its nodes by [`Control::share`].
    ///
    /// # Panics
    /// If nothing of that type was shared, which is a bug in the feature's `init`.
    pub fn shared<T: Any + Send + Sync>(&self) -> Arc<T> {
        self.control.shared::<T>()
    }

    /// Returns this worker's end of a queue that the feature's `init` has made by
    /// [`Control::add_hand_off`].
    ///
    /// # Panics
    /// If there is no queue of that name, which is a bug in the feature's `init`.
    #[expect(clippy::panic, reason = "a fault of the program, seen at its start")]
    pub fn hand_off(&self, queue: &str) -> HandOff {
        let end = self.control.hand_off(queue, self.worker);
        end.unwrap_or_else(|| panic!("unknown hand-off `{queue}`"))
    }
}

type Job = Box<dyn FnOnce(&mut Control) + Send>;
type LocalJob = Box<dyn FnOnce(&mut Control)>;
type Handler = Rc<dyn Fn(&mut Control, &Event)>;
/// Names an interface; of traces, the one that had the index at a time, in ticks.
pub type Namer = fn(&Control, SwIfIndex, Option<u64>) -> String;
/// Finds a node by another name than its own.
pub type NodeNamer = fn(&Control, &str) -> Option<NodeId>;
type FileLister = Rc<dyn Fn(&Control) -> Vec<FileInfo>>;

/// A handle by which other threads submit work to the main thread.
#[derive(Clone)]
pub struct Remote {
    jobs: mpsc::Sender<Job>,
    waker: Arc<Waker>,
}

impl Remote {
    /// Queues `job` for the main thread. Returns false if that has ended.
    pub fn submit(&self, job: impl FnOnce(&mut Control) + Send + 'static) -> bool {
        let ok = self.jobs.send(Box::new(job)).is_ok();
        self.waker.wake();
        ok
    }
}

/// A worker as `show threads` describes it.
#[derive(Clone, Debug)]
pub struct ThreadInfo {
    /// Thread's name.
    pub name: String,
    /// Kernel's thread id.
    pub tid: i32,
    /// Core it is pinned to.
    pub core: Option<usize>,
}

/// A descriptor as `show unix files` describes it.
#[derive(Clone, Debug)]
pub struct FileInfo {
    /// The descriptor.
    pub fd: std::os::fd::RawFd,
    /// Thread that polls it: 0 is main, worker `n` is `n + 1`.
    pub thread: usize,
    /// Its purpose.
    pub description: String,
    /// Reads, writes and errors, if its owner counts them.
    pub counts: Option<[u64; 3]>,
}

/// Counters of the main thread's loop.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct MainStats {
    /// Number of loops.
    pub loops: u64,
    /// Number of sleeps.
    pub sleeps: u64,
    /// Ticks not spent sleeping.
    pub busy: u64,
}

/// Handle of a timer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct TimerId(u64);

/// The main thread's state.
pub struct Control {
    config: EngineConfig,
    domain: Arc<Domain>,
    pool: Pool,
    nodes: Vec<NodeEntry>,
    /// Nodes in the order of dispatch.
    order: Vec<NodeId>,
    by_name: HashMap<Arc<str>, NodeId>,
    errors: Vec<(NodeId, &'static ErrorDecl)>,
    retired: registry::Retired,
    /// Number of times that a node or its counters were entered.
    changes: u64,
    arc_decls: Vec<&'static ArcDecl>,
    arcs: Vec<ArcConfig>,
    arc_table: Arc<ArcTable>,
    workers: Vec<WorkerHandle>,
    states: ByType<State>,
    /// Events between features, by type.
    channels: ByType<Rc<dyn Any>>,
    shared: ByType<Arc<dyn Any + Send + Sync>>,
    /// Types of the values that each worker has one of; their position is their index.
    per_worker: RefCell<Vec<TypeId>>,
    topics: Vec<(&'static str, Handler)>,
    timers: BinaryHeap<std::cmp::Reverse<(Instant, TimerId)>>,
    timer_jobs: HashMap<TimerId, LocalJob>,
    next_timer: u64,
    jobs: mpsc::Receiver<Job>,
    remote: Remote,
    waker: Arc<Waker>,
    poller: Poller,
    started: Instant,
    stopping: bool,
    namer: Namer,
    node_namer: NodeNamer,
    files: Vec<FileLister>,
    hand_offs: hand_off::Queues,
    main: MainStats,
    main_loops: LoopTimes,
    places: Option<Places>,
    late: messages::Late,
    /// Values set aside by `clear` commands, subtracted from the workers' counters.
    pub baseline: Baseline,
    /// The start has succeeded.
    running: bool,
    /// Reason why a feature cannot start.
    refused: RefCell<Option<String>>,
}

/// Values at the last `clear …`.
#[derive(Default)]
pub struct Baseline {
    /// Errors, per worker and number.
    pub errors: Vec<Vec<u64>>,
    /// Interfaces, per index.
    pub interfaces: BTreeMap<SwIfIndex, IfTotals>,
    /// Nodes: calls, vectors, clocks, suspends, per worker and node.
    pub nodes: Vec<Vec<[u64; 4]>>,
    /// The main thread's loop.
    pub main: MainStats,
    /// Packets received, sent, dropped and delivered, and loops, per worker.
    pub totals: Vec<[u64; 5]>,
    /// Durations of loops, per thread, main first.
    pub loops: Vec<LoopCounts>,
    /// Long loops by the thread's own time, per worker.
    pub long_loops: Vec<LoopCounts>,
    /// Time when counters of interfaces or errors were last cleared.
    pub cleared: Option<SystemTime>,
    /// Time when runtime statistics were last cleared.
    pub runtime_since: Option<Instant>,
}

fn system(what: &str) -> impl FnOnce(std::io::Error) -> EngineError + '_ {
    move |source| EngineError::System { what: what.into(), source }
}

impl Control {
    /// Creates the engine: pool and registry, no workers yet.
    ///
    /// # Errors
    /// [`EngineError`] if memory or descriptors cannot be allocated.
    pub fn new(config: EngineConfig) -> Result<Control, EngineError> {
        crate::heap::disable_fastbins();
        clock::init();
        let pool = Pool::new(&config.pool)?;
        let waker = Arc::new(Waker::new().map_err(system("main thread's eventfd"))?);
        let poller = Poller::new(waker.clone());
        let (tx, jobs) = mpsc::channel();
        Ok(Control {
            config,
            domain: Domain::new(),
            pool,
            nodes: Vec::new(),
            order: Vec::new(),
            by_name: HashMap::new(),
            errors: Vec::new(),
            retired: registry::Retired::default(),
            changes: 0,
            arc_decls: Vec::new(),
            arcs: Vec::new(),
            arc_table: Arc::default(),
            workers: Vec::new(),
            states: ByType::default(),
            channels: ByType::default(),
            shared: ByType::default(),
            per_worker: RefCell::default(),
            topics: Vec::new(),
            timers: BinaryHeap::new(),
            timer_jobs: HashMap::new(),
            next_timer: 0,
            jobs,
            remote: Remote { jobs: tx, waker: waker.clone() },
            waker,
            poller,
            started: Instant::now(),
            stopping: false,
            namer: |_, i, _| format!("if{i}"),
            node_namer: |_, _| None,
            files: Vec::new(),
            hand_offs: hand_off::Queues::default(),
            main: MainStats::default(),
            main_loops: LoopTimes::default(),
            places: None,
            late: messages::Late::default(),
            baseline: Baseline::default(),
            running: false,
            refused: RefCell::default(),
        })
    }

    /// Ends the start with an error, once the `init`, `build` or `ready` function that calls this
    /// has returned. Later on, it goes to the log.
    pub fn refuse_start(&self, why: impl std::fmt::Display) {
        if self.running {
            tracing::error!("{why}");
            return;
        }
        self.refused.borrow_mut().get_or_insert_with(|| why.to_string());
    }

    /// Fails if what `name` belongs to has refused the start.
    fn check_refused(&self, name: &str) -> Result<(), EngineError> {
        let why = self.refused.borrow_mut().take();
        why.map_or(Ok(()), |why| Err(EngineError::Feature(format!("{name}: {why}"))))
    }

    /// Returns a node that `by` (an ethertype, a punt reason, …) names. The start fails if there
    /// is none once the graph is built.
    pub fn named_node(&self, name: &str, by: impl std::fmt::Display) -> Option<NodeId> {
        let node = self.node(name);
        if node.is_none() && !self.nodes.is_empty() {
            self.refuse_start(format_args!("{by} names unknown node `{name}`"));
        }
        node
    }

    /// Builds the graph of the engine's own nodes and all parts, and starts the workers.
    ///
    /// # Errors
    /// [`EngineError::Graph`] describes the inconsistency; nothing runs then.
    pub fn start(&mut self, parts: &[Part]) -> Result<(), EngineError> {
        let own = Part { name: "engine", nodes: crate::nodes::NODES, arcs: ARCS, ..Part::DEFAULT };
        let parts = &[&[own], parts].concat()[..];
        let workers = self.config.workers.clone();
        // First, since features make threads, too.
        let main_core = self.config.main_core;
        let what = main_core.map_or("main thread".into(), |n| format!("cpu {{ main-core {n} }}"));
        let places = Places::take(main_core, &workers).map_err(system(&what))?;
        self.places = Some(places);
        for part in parts {
            (part.init)(self);
            self.check_refused(part.name)?;
        }
        self.register(parts)?;
        for (index, core) in workers.into_iter().enumerate() {
            self.start_worker(index, core, places, parts)?;
        }
        self.install_hand_offs();
        for part in parts {
            (part.ready)(self);
            self.check_refused(part.name)?;
        }
        self.running = true;
        Ok(())
    }

    fn start_worker(
        &mut self,
        index: usize,
        core: Option<usize>,
        places: Places,
        parts: &[Part],
    ) -> Result<(), EngineError> {
        let stats = Arc::new(WorkerStats::default());
        let (inbox, from_main) = rtrb::RingBuffer::new(INBOX);
        let (to_events, events) = rtrb::RingBuffer::new(EVENTS);
        let (to_trash, trash) = rtrb::RingBuffer::new(256);
        let waker = Arc::new(Waker::new().map_err(system("worker's eventfd"))?);
        let to_main = ToMain {
            worker: index as u16,
            events: to_events,
            trash: to_trash,
            waker: self.waker.clone(),
        };
        let reader = self
            .domain
            .register()
            .map_err(|e| EngineError::Graph(format!("worker {index}: {e}")))?;
        let spin = [self.config.spin, self.config.spin_most].map(clock::ticks_in);
        let mut worker = Worker::new(
            index,
            Cache::one_of(self.pool, self.config.workers.len()),
            stats.clone(),
            to_main,
            reader,
            self.arc_table.clone(),
            from_main,
            waker.clone(),
            Pace::new(spin[0], spin[1]),
        );
        let cx = BuildCx { control: self, worker: index };
        for d in parts.iter().flat_map(|p| p.nodes.iter().copied()) {
            let id = self.by_name[d.name];
            let built = (d.build)(&cx);
            if let Built::Refused(why) = &built {
                self.refuse_start(why);
            }
            self.check_refused(d.name)?;
            worker.install(id, self.info(id), built);
        }
        for (id, here) in self.hand_off_nodes() {
            worker.install(id, self.info(id), here);
        }
        worker.reorder(self.order());
        let (epoll, gates) = (worker.epoll_set(), worker.gate_memory());
        let tid = Arc::new(std::sync::atomic::AtomicI32::new(0));
        let thread = spawn(index, core, places, worker, tid.clone())
            .map_err(system(&format!("worker {index} on core {core:?}")))?;
        self.workers.push(WorkerHandle {
            silent: false,
            stats,
            inbox,
            waiting: VecDeque::new(),
            events,
            trash,
            waker,
            core,
            thread: Some(thread),
            tid,
            epoll,
            gates,
        });
        Ok(())
    }

    /// Sets the function that names interfaces.
    pub fn set_namer(&mut self, namer: Namer) {
        self.namer = namer;
    }

    /// Returns an interface's name.
    pub fn interface_name(&self, sw_if: SwIfIndex) -> String {
        (self.namer)(self, sw_if, None)
    }

    /// Returns the name of the interface that had an index at a time, in ticks.
    pub fn interface_name_at(&self, sw_if: SwIfIndex, at: u64) -> String {
        (self.namer)(self, sw_if, Some(at))
    }

    /// Sets the function that finds nodes by other names than their own.
    pub fn set_node_namer(&mut self, namer: NodeNamer) {
        self.node_namer = namer;
    }

    /// Returns a node by name: its own, or one that it goes by.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied().or_else(|| (self.node_namer)(self, name))
    }
    /// Returns all nodes; their position is their id. Nodes that are not live have ended.
    pub fn nodes(&self) -> &[NodeEntry] {
        &self.nodes
    }
    /// Returns all counters, by index: the node and the declaration.
    pub fn errors(&self) -> &[(NodeId, &'static ErrorDecl)] {
        &self.errors
    }
    /// Returns how often nodes and counters have changed: as long as it stays the same, numbers
    /// mean what they meant.
    pub fn node_changes(&self) -> u64 {
        self.changes
    }
    /// Returns the domain of grace periods.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }
    /// Returns the buffer pool.
    pub fn pool(&self) -> Pool {
        self.pool
    }
    /// Returns the engine's configuration.
    pub fn config(&self) -> &EngineConfig {
        &self.config
    }
    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }
    /// Returns a worker's counters.
    pub fn worker_stats(&self, worker: usize) -> &Arc<WorkerStats> {
        &self.workers[worker].stats
    }
    /// Returns the time since start.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }
    /// Returns all threads, main first.
    pub fn threads(&self) -> Vec<ThreadInfo> {
        let main = ThreadInfo {
            name: "main".into(),
            tid: rustix::process::getpid().as_raw_nonzero().get(),
            core: self.config.main_core,
        };
        let workers = self.workers.iter().enumerate().map(|(i, w)| ThreadInfo {
            name: thread_name(i),
            tid: w.tid.load(std::sync::atomic::Ordering::Relaxed),
            core: w.core,
        });
        std::iter::once(main).chain(workers).collect()
    }

    /// Returns true if a worker is sleeping.
    pub fn worker_sleeps(&self, worker: usize) -> bool {
        self.workers[worker].waker.sleeps()
    }
    /// Returns the counters of the main thread's loop.
    pub fn main_stats(&self) -> MainStats {
        self.main
    }

    /// Returns the durations of a thread's non-idle loops; thread 0 is main.
    pub fn loop_times(&self, thread: usize) -> &LoopTimes {
        match thread.checked_sub(1) {
            None => &self.main_loops,
            Some(worker) => &self.workers[worker].stats.loops,
        }
    }

    /// Registers descriptors for `show unix files`: `list` is called when that runs.
    pub fn describe_files(&mut self, list: impl Fn(&Control) -> Vec<FileInfo> + 'static) {
        self.files.push(Rc::new(list));
    }

    /// Returns all registered descriptors, the engine's own first.
    pub fn files(&self) -> Vec<FileInfo> {
        use std::os::fd::AsRawFd;
        let file = |fd, thread, description: &str| FileInfo {
            fd,
            thread,
            description: description.into(),
            counts: None,
        };
        let mut all = vec![file(self.waker.fd().as_raw_fd(), 0, "wakes the main thread")];
        for (i, w) in self.workers.iter().enumerate() {
            all.push(file(w.waker.fd().as_raw_fd(), i + 1, "wakes the worker"));
            all.extend(w.epoll.get().map(|fd| file(fd, i + 1, "worker's epoll set")));
        }
        all.extend(self.files.iter().flat_map(|list| list(self)));
        all
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if self.workers.iter().any(|w| w.thread.is_some()) {
            self.shut_down();
        }
    }
}
