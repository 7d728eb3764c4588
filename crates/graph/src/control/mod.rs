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

pub(crate) use arcs::ARCS;
pub use counters::since;
pub use error::EngineError;
pub use hand_off::HandOffView;
pub use launch::on_panic;
use launch::{Places, spawn, thread_name};
pub use messages::Asked;

use crate::arc::{ArcConfig, ArcTable};
use crate::clock;
use crate::decl::{ArcDecl, ArcId, Built, ErrorDecl, Kind, NodeDecl, NodeId};
use crate::loop_times::{LoopCounts, LoopTimes};
use crate::mailbox::{Event, ToMain, ToWorker, Waker};
use crate::part::Part;
use crate::poller::{Poller, SetFd};
use crate::stats::{IfTotals, MAX_ERRORS, MAX_NODES, WorkerStats};
use crate::worker::{HandOff, NodeInfo, Pace, PerWorker, Worker};
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
    /// It was late with its last answer.
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

/// A feature's state on the main thread.
struct State {
    /// A `RefCell` of its type.
    cell: Rc<dyn Any>,
    type_name: &'static str,
    is_borrowed: fn(&dyn Any) -> bool,
}

/// The main thread's state.
pub struct Control {
    config: EngineConfig,
    domain: Arc<Domain>,
    pool: Pool,
    nodes: Vec<NodeEntry>,
    by_name: HashMap<Arc<str>, NodeId>,
    errors: Vec<(NodeId, &'static ErrorDecl)>,
    arc_decls: Vec<&'static ArcDecl>,
    arcs: Vec<ArcConfig>,
    arc_table: Arc<ArcTable>,
    workers: Vec<WorkerHandle>,
    states: HashMap<TypeId, State>,
    /// Events between features, by type.
    channels: HashMap<TypeId, Rc<dyn Any>>,
    shared: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
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
    namer: fn(&Control, SwIfIndex) -> String,
    files: Vec<FileLister>,
    hand_offs: hand_off::Queues,
    main: MainStats,
    main_loops: LoopTimes,
    places: Option<Places>,
    /// Values set aside by `clear` commands, subtracted from the workers' counters.
    pub baseline: Baseline,
    /// Why a feature cannot start.
    refused: Option<String>,
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
    /// When counters of interfaces or errors were last cleared.
    pub cleared: Option<SystemTime>,
    /// When runtime statistics were last cleared.
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
            by_name: HashMap::new(),
            errors: Vec::new(),
            arc_decls: Vec::new(),
            arcs: Vec::new(),
            arc_table: Arc::default(),
            workers: Vec::new(),
            states: HashMap::new(),
            channels: HashMap::new(),
            shared: HashMap::new(),
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
            namer: |_, i| format!("if{i}"),
            files: Vec::new(),
            hand_offs: hand_off::Queues::default(),
            main: MainStats::default(),
            main_loops: LoopTimes::default(),
            places: None,
            baseline: Baseline::default(),
            refused: None,
        })
    }

    /// Ends the start with an error, once the `init` function of a feature that calls this has
    /// returned.
    pub fn refuse_start(&mut self, why: impl std::fmt::Display) {
        self.refused.get_or_insert_with(|| why.to_string());
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
            if let Some(why) = self.refused.take() {
                return Err(EngineError::Feature(format!("{}: {why}", part.name)));
            }
        }
        self.register(parts)?;
        for (index, core) in workers.into_iter().enumerate() {
            self.start_worker(index, core, places, parts)?;
        }
        self.install_hand_offs();
        for part in parts {
            (part.ready)(self);
        }
        Ok(())
    }

    /// Enters all nodes and arcs into the registry and checks that all names resolve.
    fn register(&mut self, parts: &[Part]) -> Result<(), EngineError> {
        let decls: Vec<&'static NodeDecl> =
            parts.iter().flat_map(|p| p.nodes.iter().copied()).collect();
        self.arc_decls = parts.iter().flat_map(|p| p.arcs.iter().copied()).collect();
        for d in &decls {
            if self.by_name.contains_key(d.name) {
                return Err(EngineError::Graph(format!("duplicate node name `{}`", d.name)));
            }
            self.enter(d.name.into(), d)?;
        }
        for d in &decls {
            self.connect(d.name, d)?;
        }
        for (i, arc) in self.arc_decls.clone().into_iter().enumerate() {
            let on = |tap: bool| {
                decls.iter().copied().filter(move |d| {
                    (d.kind == Kind::Tap) == tap && d.arcs().any(|name| name == arc.name)
                })
            };
            let with_id = |d: &'static NodeDecl| (d, self.by_name[d.name]);
            let nodes = on(false).map(with_id).collect();
            let taps: Vec<_> = on(true).map(|d| (d.name, self.by_name[d.name])).collect();
            let Some(&end) = self.by_name.get(arc.end) else {
                let text = format!("arc `{}` ends in unknown node `{}`", arc.name, arc.end);
                return Err(EngineError::Graph(text));
            };
            let config = ArcConfig::new(arc, end, nodes, taps)?;
            for (slot, (_, id)) in config.features.iter().enumerate() {
                self.nodes[id.0 as usize].arc = Some((ArcId(i as u8), slot as u16));
            }
            for (slot, (_, id)) in config.taps.iter().enumerate() {
                let entry = &mut self.nodes[id.0 as usize];
                entry.taps.push((ArcId(i as u8), slot as u16));
                entry.arc = entry.taps.first().copied();
            }
            self.arcs.push(config);
        }
        for d in &decls {
            let opened = |name: &&str| self.arc_decls.iter().any(|a| a.name == *name);
            if let Some(arc) = d.arcs().find(|name| !opened(name)) {
                let text = format!("node `{}` is on unknown arc `{arc}`", d.name);
                return Err(EngineError::Graph(text));
            }
        }
        let arcs = self.arcs.iter().map(ArcConfig::row).collect();
        self.arc_table = Arc::new(ArcTable { arcs });
        self.enter_hand_offs()
    }

    fn enter(&mut self, name: Arc<str>, d: &'static NodeDecl) -> Result<NodeId, EngineError> {
        if self.nodes.len() >= MAX_NODES || self.errors.len() + d.errors.len() > MAX_ERRORS {
            let text = format!("too many nodes: no room for `{name}`, the limit is {MAX_NODES}");
            return Err(EngineError::Graph(text));
        }
        let id = NodeId(self.nodes.len() as u16);
        let error_base = self.errors.len() as u32;
        self.errors.extend(d.errors.iter().map(|e| (id, e)));
        self.by_name.insert(name.clone(), id);
        self.nodes.push(NodeEntry {
            name,
            kind: d.kind,
            nexts: Vec::new(),
            drop: NodeId(0),
            error_base,
            errors: d.errors,
            arc: None,
            taps: Vec::new(),
            live: true,
        });
        Ok(id)
    }

    fn connect(&mut self, name: &str, d: &'static NodeDecl) -> Result<(), EngineError> {
        let find = |next: &str| {
            self.by_name.get(next).copied().ok_or_else(|| {
                EngineError::Graph(format!("node `{name}` has unknown next node `{next}`"))
            })
        };
        let nexts = d.next.iter().map(|n| find(n)).collect::<Result<Vec<_>, _>>()?;
        let drop = find(d.drop)?;
        let id = self.by_name[name];
        let entry = &mut self.nodes[id.0 as usize];
        (entry.nexts, entry.drop) = (nexts, drop);
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
            if let Built::Refused(why) = built {
                return Err(EngineError::Feature(format!("{}: {why}", d.name)));
            }
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

    fn info(&self, id: NodeId) -> NodeInfo {
        let e = &self.nodes[id.0 as usize];
        NodeInfo {
            name: e.name.clone(),
            nexts: e.nexts.clone(),
            drop: e.drop,
            error_base: e.error_base,
            arc: e.arc,
            taps: e.taps.clone(),
        }
    }

    /// Returns the order of dispatch: along the graph, so that a node runs after those that feed
    /// it; devices' nodes after all protocols, drops last.
    fn order(&self) -> Vec<NodeId> {
        fn visit(c: &Control, id: NodeId, seen: &mut Vec<bool>, out: &mut Vec<NodeId>) {
            if std::mem::replace(&mut seen[id.0 as usize], true) {
                return;
            }
            for next in c.successors(id) {
                visit(c, next, seen, out);
            }
            out.push(id);
        }
        let (mut seen, mut out) = (vec![false; self.nodes.len()], Vec::new());
        let class = |id: &NodeId| match self.nodes[id.0 as usize].kind {
            Kind::Input | Kind::Tap => 0,
            Kind::Internal => 1,
            Kind::Tx => 2,
            Kind::Drop => 3,
        };
        let mut roots: Vec<NodeId> = (0..self.nodes.len() as u16).map(NodeId).collect();
        roots.sort_by_key(class);
        // Depth first puts a node after all that it feeds: reversed, before them.
        for id in roots.into_iter().rev() {
            visit(self, id, &mut seen, &mut out);
        }
        out.reverse();
        out.sort_by_key(class);
        out
    }

    /// Returns the nodes that `id` may pass packets to, arcs included.
    fn successors(&self, id: NodeId) -> Vec<NodeId> {
        let e = &self.nodes[id.0 as usize];
        let mut all = e.nexts.clone();
        all.push(e.drop);
        for arc in &self.arcs {
            let end = self.by_name[arc.decl.end];
            let starts = e.nexts.contains(&end)
                || (e.kind == Kind::Input && arc.decl.name == "device-input");
            let from = match e.arc {
                Some((a, slot)) if std::ptr::eq(&self.arcs[a.0 as usize], arc) => slot as usize + 1,
                _ if starts => 0,
                _ => continue,
            };
            if e.kind != Kind::Tap {
                all.extend(arc.features.iter().skip(from).map(|(_, id)| *id));
                all.push(end);
            }
        }
        all.retain(|n| *n != id);
        all
    }

    /// Adds a node at run time (an interface's output), or revives the one of that name. `build`
    /// makes the instance for each worker.
    ///
    /// # Errors
    /// [`EngineError::Graph`] if there is no room or a next node does not exist.
    pub fn add_node(
        &mut self,
        name: &str,
        decl: &'static NodeDecl,
        mut build: impl FnMut(usize) -> Built,
    ) -> Result<NodeId, EngineError> {
        let name: Arc<str> = name.into();
        let id = match self.by_name.get(&name) {
            Some(id) => *id,
            None => self.enter(name.clone(), decl)?,
        };
        self.connect(&name, decl)?;
        self.nodes[id.0 as usize].live = true;
        let (info, order) = (self.info(id), self.order());
        for w in 0..self.workers.len() {
            let m = ToWorker::Install { id, info: info.clone(), built: build(w) };
            self.send(w, m);
            self.send(w, ToWorker::Order(order.clone()));
        }
        Ok(id)
    }

    /// Retires a run-time node: packets that still reach it are dropped and counted.
    pub fn remove_node(&mut self, id: NodeId) {
        self.nodes[id.0 as usize].live = false;
        let info = self.info(id);
        let to = self.by_name["error-drop"];
        let error =
            self.nodes[to.0 as usize].error_base + u32::from(crate::nodes::error_drop::GONE.0);
        for w in 0..self.workers.len() {
            let built = Built::Node(Box::new(crate::deleted_node::DeletedNode { to, error }));
            self.send(w, ToWorker::Install { id, info: info.clone(), built });
        }
    }

    /// Stores a feature's state on the main thread.
    pub fn insert<T: Any>(&mut self, state: T) {
        self.insert_as(state, |cell| {
            cell.downcast_ref::<RefCell<T>>().is_some_and(|c| c.try_borrow_mut().is_err())
        });
    }

    /// Stores the state of what runs commands or requests, and is borrowed meanwhile. Subscribers
    /// of events must not use it.
    pub fn insert_runner<T: Any>(&mut self, state: T) {
        self.insert_as(state, |_| false);
    }

    fn insert_as<T: Any>(&mut self, state: T, is_borrowed: fn(&dyn Any) -> bool) {
        let type_name = std::any::type_name::<T>();
        let state = State { cell: Rc::new(RefCell::new(state)), type_name, is_borrowed };
        self.states.insert(TypeId::of::<T>(), state);
    }

    /// Returns a feature's state.
    ///
    /// # Panics
    /// If no state of that type was inserted, which is a bug in the feature's `init`.
    #[expect(clippy::panic, reason = "features are listed in the wrong order")]
    pub fn state<T: Any>(&self) -> Rc<RefCell<T>> {
        let any = self.states.get(&TypeId::of::<T>()).map(|s| s.cell.clone());
        any.and_then(|a| a.downcast::<RefCell<T>>().ok())
            .unwrap_or_else(|| panic!("no state of type {}", std::any::type_name::<T>()))
    }

    /// Shares a value with workers' nodes.
    pub fn share<T: Any + Send + Sync>(&mut self, thing: Arc<T>) {
        self.shared.insert(TypeId::of::<T>(), thing);
    }

    /// Returns a shared value.
    ///
    /// # Panics
    /// If nothing of that type was shared.
    #[expect(clippy::panic, reason = "features are listed in the wrong order")]
    pub fn shared<T: Any + Send + Sync>(&self) -> Arc<T> {
        self.find_shared()
            .unwrap_or_else(|| panic!("nothing shared of type {}", std::any::type_name::<T>()))
    }

    /// Returns a shared value, if a feature has shared one of that type.
    pub fn find_shared<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let any = self.shared.get(&TypeId::of::<T>()).cloned();
        any.and_then(|a| a.downcast::<T>().ok())
    }

    /// Returns the handle of a value that each worker has one of, and that its nodes share. A
    /// worker has none until a node or a call puts one there.
    pub fn per_worker<T: Any + Send>(&self) -> PerWorker<T> {
        let mut all = self.per_worker.borrow_mut();
        let id = TypeId::of::<T>();
        let index = all.iter().position(|t| *t == id).unwrap_or_else(|| {
            all.push(id);
            all.len() - 1
        });
        PerWorker::new(index as u16)
    }

    /// Sets the function that names interfaces.
    pub fn set_namer(&mut self, namer: fn(&Control, SwIfIndex) -> String) {
        self.namer = namer;
    }

    /// Returns an interface's name.
    pub fn interface_name(&self, sw_if: SwIfIndex) -> String {
        (self.namer)(self, sw_if)
    }

    /// Returns a node by name.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }
    /// Returns all nodes; their position is their id.
    pub fn nodes(&self) -> &[NodeEntry] {
        &self.nodes
    }
    /// Returns all counters, by index: the node and the declaration.
    pub fn errors(&self) -> &[(NodeId, &'static ErrorDecl)] {
        &self.errors
    }
    /// Returns the possible successors of a node, for `show vlib graph`.
    pub fn node_successors(&self, id: NodeId) -> Vec<NodeId> {
        let mut all = self.successors(id);
        all.sort();
        all.dedup();
        all
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
