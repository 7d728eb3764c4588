//! Ports, streams and captures on the main thread.

use crate::capture::{CAPTURES, CaptureStats, Plan, Writer};
use crate::error::PgError;
use crate::grammar::{self, Outermost};
use crate::nodes::pg_input::{Entry, Message, Running};
use crate::pcap;
use crate::port::{self, PgDevice, port_id, port_name};
use crate::source::{Ring, Source};
use crate::template::{Layers, Offload, Sizes};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use thalweg_buffer::{FRAME_SIZE, LOCAL_IF};
use thalweg_device::interface::{self, Caps, InterfaceEvent, InterfaceSpec, SwIfIndex, Transmit};
use thalweg_files::client::{self, Reserved};
use thalweg_graph::{Control, Event, NodeId, Topic};
use thalweg_wire::MacAddr;

/// State shared with the nodes.
pub(crate) struct Shared {
    /// Topic: a stream has sent its last packet.
    pub(crate) done: Topic,
}

/// Mode of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Ethernet frames.
    #[default]
    Ethernet,
    /// IPv4 packets.
    Ip4,
    /// IPv6 packets.
    Ip6,
}

impl Mode {
    /// Word used on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Ethernet => "ethernet",
            Mode::Ip4 => "ip4",
            Mode::Ip6 => "ip6",
        }
    }

    fn input(self) -> Option<&'static str> {
        match self {
            Mode::Ethernet => None,
            Mode::Ip4 => Some("ip4-input"),
            Mode::Ip6 => Some("ip6-input"),
        }
    }

    fn outermost(self) -> Outermost {
        match self {
            Mode::Ethernet => Outermost::Ethernet,
            Mode::Ip4 => Outermost::Ip4,
            Mode::Ip6 => Outermost::Ip6,
        }
    }
}

struct Port {
    sw_if: SwIfIndex,
    mode: Mode,
    capture: Option<Capture>,
}

struct Capture {
    id: u64,
    path: PathBuf,
    stats: Arc<CaptureStats>,
    /// The name of its file.
    reserved: Option<Arc<Reserved>>,
}

/// Source of a stream's packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Data {
    /// A description in the grammar of [`grammar`].
    Description(String),
    /// The packets of a pcap file.
    Pcap(PathBuf),
}

/// Definition of a stream.
#[derive(Clone, PartialEq, Debug)]
pub struct StreamSpec {
    /// Name; a stream of the same name is replaced.
    pub name: String,
    /// Interface that receives the packets; `None` for `pg0`, created if needed.
    pub interface: Option<String>,
    /// Interface that packets leave by, for nodes that use it.
    pub tx_interface: Option<String>,
    /// Node (or interface) that the packets go to; `None`: as received.
    pub node: Option<String>,
    /// Packets to send; 0 for endless, or for a pcap file's packets once.
    pub limit: u64,
    /// Packets per second; 0 for as fast as possible.
    pub rate: f64,
    /// Sizes of generated packets; `None` derives them from the description.
    pub sizes: Option<Sizes>,
    /// Worker that sends the packets.
    pub worker: usize,
    /// Maximum number of packets per frame.
    pub max_frame: usize,
    /// Checksums that are computed whatever the description says of them.
    pub offload: Offload,
    /// Packets.
    pub data: Data,
}

impl StreamSpec {
    /// A stream with defaults for all but name and packets.
    pub fn new(name: impl Into<String>, data: Data) -> StreamSpec {
        StreamSpec {
            name: name.into(),
            interface: None,
            tx_interface: None,
            node: None,
            limit: 0,
            rate: 0.0,
            sizes: None,
            worker: 0,
            max_frame: FRAME_SIZE,
            offload: Offload::default(),
            data,
        }
    }
}

/// Packets of a stream, prepared for sending.
#[derive(Clone)]
enum Prepared {
    Layers(Box<Layers>),
    Ring(Arc<Ring>),
}

pub(crate) struct Stream {
    pub(crate) spec: StreamSpec,
    number: usize,
    prepared: Prepared,
    source: Source,
    pub(crate) sizes: Sizes,
    /// Packets to send; 0 for endless.
    pub(crate) limit: u64,
    rx_if: SwIfIndex,
    entry: Entry,
    /// The interface that the node goes with: another one may have the node's number then.
    node_of: Option<SwIfIndex>,
    ip: bool,
    /// Key of the current run.
    run: Option<u64>,
    sent: Arc<AtomicU64>,
}

impl Stream {
    /// Returns whether packets may still be in flight.
    pub(crate) fn enabled(&self) -> bool {
        self.run.is_some()
    }
    /// Interface that receives its packets.
    pub(crate) fn rx_if(&self) -> SwIfIndex {
        self.rx_if
    }
    /// Packets sent since it was last enabled.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }
    /// A run of it from the first packet on.
    fn begin(&mut self, key: u64) -> Running {
        self.run = Some(key);
        self.sent = Arc::default();
        Running {
            key,
            number: self.number,
            source: self.source.clone(),
            entry: self.entry,
            rx_if: self.rx_if,
            left: if self.limit == 0 { u64::MAX } else { self.limit },
            rate: self.spec.rate,
            max_frame: self.spec.max_frame.clamp(1, FRAME_SIZE),
            sent: self.sent.clone(),
            tokens: 1.0,
            since: 0,
            ip: self.ip,
        }
    }
}

/// State of the packet generator.
pub(crate) struct Pg {
    ports: BTreeMap<u32, Port>,
    streams: Vec<Stream>,
    writer: Option<Writer>,
    next_key: u64,
    next_number: usize,
}

impl Pg {
    pub(crate) fn init(c: &mut Control) {
        let done = c.topic("pg-done", on_done);
        c.share(Arc::new(Shared { done }));
        c.insert(Pg {
            ports: BTreeMap::new(),
            streams: Vec::new(),
            writer: None,
            next_key: 0,
            next_number: 0,
        });
        c.subscribe(|c, event| {
            if let InterfaceEvent::Deleted(sw_if) = *event {
                forget_interface(c, sw_if);
            }
        });
    }

    pub(crate) fn streams(&self) -> &[Stream] {
        &self.streams
    }

    fn position(&self, name: &str) -> Result<usize, PgError> {
        let found = self.streams.iter().position(|s| s.spec.name == name);
        found.ok_or_else(|| PgError::NoStream(name.into()))
    }

    fn port_of(&self, sw_if: SwIfIndex) -> Option<(u32, &Port)> {
        self.ports.iter().find(|(_, p)| p.sw_if == sw_if).map(|(id, p)| (*id, p))
    }

    /// Names of the streams received on a port.
    pub(crate) fn port_streams(&self, id: u32) -> impl Iterator<Item = &str> {
        let sw_if = self.ports.get(&id).map(|p| p.sw_if);
        self.streams.iter().filter(move |s| Some(s.rx_if) == sw_if).map(|s| s.spec.name.as_str())
    }

    /// Numbers of the ports.
    pub(crate) fn port_ids(&self) -> impl Iterator<Item = u32> {
        self.ports.keys().copied()
    }

    /// Text about a port's capture.
    pub(crate) fn capture_text(&self, id: u32) -> Option<String> {
        let capture = self.ports.get(&id)?.capture.as_ref()?;
        let stats = &capture.stats;
        let failed = if stats.failed.load(Relaxed) { ", file cannot be written" } else { "" };
        Some(format!(
            "capture to {}: {} packets written, {} lost{failed}",
            capture.path.display(),
            stats.written.load(Relaxed),
            stats.lost()
        ))
    }

    /// The same as JSON.
    pub(crate) fn capture_json(&self, id: u32) -> Option<serde_json::Value> {
        let capture = self.ports.get(&id)?.capture.as_ref()?;
        let stats = &capture.stats;
        Some(serde_json::json!({
            "file": capture.path.display().to_string(),
            "written": stats.written.load(Relaxed),
            "lost": stats.lost(),
            "failed": stats.failed.load(Relaxed),
        }))
    }
}

/// Creates port `pg<id>`; an existing one is returned unchanged.
///
/// # Errors
/// If the limit of interfaces is reached, or the node for an IP mode is missing.
pub fn create_port(c: &mut Control, id: u32, mode: Mode) -> Result<SwIfIndex, PgError> {
    if let Some(p) = c.state::<Pg>().borrow().ports.get(&id) {
        return Ok(p.sw_if);
    }
    let input = match mode.input() {
        None => None,
        Some(node) => Some(c.node(node).ok_or(PgError::NoInput { mode: mode.word(), node })?),
    };
    let random = std::hash::RandomState::new().build_hasher().finish().to_be_bytes();
    let mac = match mode {
        Mode::Ethernet => [0x02, 0xfe, random[0], random[1], random[2], random[3]],
        Mode::Ip4 | Mode::Ip6 => [0; 6],
    };
    let spec = InterfaceSpec {
        name: port_name(id),
        mac: MacAddr(mac),
        mtu: 9000,
        speed_kbps: 0,
        link_up: false,
        caps: Caps::default(),
        device: Box::new(PgDevice { id, mode }),
        input,
    };
    let sw_if =
        interface::create(c, spec, Transmit::Own(&port::TX, &mut |_, _| port::build_tx(mode)))?;
    c.state::<Pg>().borrow_mut().ports.insert(id, Port { sw_if, mode, capture: None });
    Ok(sw_if)
}

impl Pg {
    /// All ports with their modes.
    pub(crate) fn modes(&self) -> impl Iterator<Item = (SwIfIndex, Mode)> + '_ {
        self.ports.values().map(|p| (p.sw_if, p.mode))
    }
}

/// Deletes a port with its streams and its capture.
///
/// # Errors
/// If the interface is not a port.
pub fn delete_port(c: &mut Control, sw_if: SwIfIndex) -> Result<(), PgError> {
    check_port(c, sw_if)?;
    Ok(interface::delete(c, sw_if)?)
}

/// Returns the port number of an interface.
fn check_port(c: &Control, sw_if: SwIfIndex) -> Result<u32, PgError> {
    let found = c.state::<Pg>().borrow().port_of(sw_if).map(|(id, _)| id);
    found.ok_or_else(|| PgError::NoPort(c.interface_name(sw_if)))
}

/// Deletes the streams of an interface that is about to be deleted: those that it receives, that
/// leave by it, or that enter at its nodes.
fn forget_interface(c: &mut Control, sw_if: SwIfIndex) {
    let pg = c.state::<Pg>();
    let port = pg.borrow().port_of(sw_if).map(|(id, _)| id);
    let uses = |s: &Stream| {
        s.rx_if == sw_if
            || s.node_of == Some(sw_if)
            || matches!(s.entry, Entry::Node(_, tx_if) if tx_if == sw_if && tx_if != LOCAL_IF)
    };
    let names: Vec<String> =
        pg.borrow().streams.iter().filter(|s| uses(s)).map(|s| s.spec.name.clone()).collect();
    for name in names {
        let _ = delete_stream(c, &name);
    }
    if let Some(id) = port {
        let _ = set_capture(c, sw_if, None);
        pg.borrow_mut().ports.remove(&id);
    }
}

/// Resolved names of a stream.
struct Places {
    rx_if: SwIfIndex,
    entry: Entry,
    node_of: Option<SwIfIndex>,
    outermost: Outermost,
    /// Packets certainly begin with `outermost`.
    is_known: bool,
}

/// Resolves a stream's interfaces and node; creates its port if that is a missing `pg<N>`.
fn places(c: &mut Control, spec: &StreamSpec) -> Result<Places, PgError> {
    let source = spec.interface.clone().unwrap_or_else(|| port_name(0));
    let mode_of = |c: &Control, sw_if| {
        let pg = c.state::<Pg>();
        let mode = pg.borrow().port_of(sw_if).map(|(_, p)| p.mode);
        mode.unwrap_or_default()
    };
    let known = interface::find(c, &source);
    let node = spec.node.as_deref();
    let mode = known.as_ref().map_or(Mode::Ethernet, |sw_if| mode_of(c, *sw_if));
    let tx_if = match &spec.tx_interface {
        Some(name) => interface::find(c, name)?,
        None => LOCAL_IF,
    };
    let (mut entry, mut outermost, mut is_known) = (Entry::Device, mode.outermost(), true);
    let mut node_of = None;
    if let Some(name) = node.filter(|n| *n != "ethernet-input" && Some(*n) != mode.input()) {
        let sent_by = name.strip_suffix(interface::OUTPUT_END).unwrap_or(name);
        if let Ok(sw_if) = interface::find(c, name).or_else(|_| interface::find(c, sent_by)) {
            entry = Entry::Node(interface::view(c, sw_if)?.output, sw_if);
            outermost = mode_of(c, sw_if).outermost();
            // Tunnels of other drivers take packets of either version.
            is_known = outermost != Outermost::Ethernet || check_mode(c, sw_if);
        } else {
            let id = live_node(c, name)?;
            node_of = interface::owner_of_node(c, name);
            // Nodes that several interfaces share find theirs in the packet.
            let tx_if = node_of.filter(|_| spec.tx_interface.is_none()).unwrap_or(tx_if);
            entry = Entry::Node(id, tx_if);
            outermost = match name {
                n if n.starts_with("ip4-") => Outermost::Ip4,
                n if n.starts_with("ip6-") => Outermost::Ip6,
                _ => {
                    is_known = false;
                    Outermost::Ethernet
                }
            };
        }
    }
    let rx_if = match (known, port_id(&source)) {
        (Ok(sw_if), _) => sw_if,
        (Err(_), Some(id)) => create_port(c, id, Mode::Ethernet)?,
        (Err(e), None) => return Err(e.into()),
    };
    Ok(Places { rx_if, entry, node_of, outermost, is_known })
}

/// Looks up a node that has not ended with its interface.
fn live_node(c: &Control, name: &str) -> Result<NodeId, PgError> {
    let found = c.node(name).filter(|id| c.nodes()[usize::from(id.0)].live);
    found.ok_or_else(|| PgError::NoNode(name.into()))
}

/// Defines a stream, replacing one of the same name.
///
/// # Errors
/// If a name, a size or the packets are invalid; nothing has changed then, except that a port may
/// have been created.
pub fn define_stream(c: &mut Control, spec: StreamSpec) -> Result<(), PgError> {
    let file = match &spec.data {
        Data::Pcap(path) => Some(pcap::read(path)?),
        Data::Description(_) => None,
    };
    define_with(c, spec, file)
}

/// Checks that the worker for the packets exists.
pub(crate) fn check_worker(c: &Control, spec: &StreamSpec) -> Result<(), PgError> {
    match c.workers() {
        workers if spec.worker >= workers => Err(PgError::NoWorker { found: spec.worker, workers }),
        _ => Ok(()),
    }
}

/// Does the same, with the packets of its file, which may be large, read elsewhere.
pub(crate) fn define_with(
    c: &mut Control,
    spec: StreamSpec,
    file: Option<pcap::Capture>,
) -> Result<(), PgError> {
    check_worker(c, &spec)?;
    let places = places(c, &spec)?;
    let (prepared, sizes) = prepare(&spec, &places, file)?;
    let source = source(&prepared, sizes)?;
    let _ = delete_stream(c, &spec.name);
    let pg = c.state::<Pg>();
    let mut pg = pg.borrow_mut();
    let number = pg.next_number;
    pg.next_number += 1;
    pg.streams.push(Stream {
        number,
        limit: limit(&spec, &prepared),
        prepared,
        source,
        sizes,
        rx_if: places.rx_if,
        entry: places.entry,
        node_of: places.node_of,
        ip: places.outermost != Outermost::Ethernet,
        run: None,
        sent: Arc::default(),
        spec,
    });
    Ok(())
}

fn prepare(
    spec: &StreamSpec,
    places: &Places,
    file: Option<pcap::Capture>,
) -> Result<(Prepared, Sizes), PgError> {
    let outermost = places.outermost;
    match &spec.data {
        Data::Description(text) => {
            let mut layers = grammar::parse(text, outermost)?;
            layers.compute(spec.offload);
            let sizes = spec.sizes.unwrap_or_else(|| layers.default_sizes());
            Ok((Prepared::Layers(Box::new(layers)), sizes))
        }
        Data::Pcap(_) => {
            let packets = match file {
                Some(file) => {
                    if places.is_known {
                        file.check(outermost)?;
                    }
                    file.packets
                }
                None => Vec::new(),
            };
            let lengths = || packets.iter().map(Vec::len);
            let sizes = Sizes {
                min: lengths().min().unwrap_or(0),
                max: lengths().max().unwrap_or(0),
                vary: crate::template::Vary::Increment,
            };
            Ok((Prepared::Ring(Arc::new(Ring::new(&packets))), sizes))
        }
    }
}

fn limit(spec: &StreamSpec, prepared: &Prepared) -> u64 {
    match prepared {
        Prepared::Ring(r) if spec.limit == 0 => r.len() as u64,
        _ => spec.limit,
    }
}

fn source(prepared: &Prepared, sizes: Sizes) -> Result<Source, PgError> {
    match prepared {
        Prepared::Ring(r) => Ok(Source::Ring(r.clone(), 0)),
        Prepared::Layers(layers) => {
            let g = layers.compile(sizes)?;
            Ok(match g.ring() {
                Some(packets) => Source::Ring(Arc::new(Ring::new(&packets)), 0),
                None => {
                    let whole = vec![0; g.max_len()].into();
                    Source::Generator(Box::new(g), whole)
                }
            })
        }
    }
}

/// Changes to a stream; `None` keeps a value.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamChange {
    /// Packets to send, as in [`StreamSpec::limit`].
    pub limit: Option<u64>,
    /// Packets per second.
    pub rate: Option<f64>,
    /// Sizes of generated packets.
    pub sizes: Option<Sizes>,
    /// Maximum number of packets per frame.
    pub max_frame: Option<usize>,
}

/// Changes a stream that is not running.
///
/// # Errors
/// If the stream does not exist or is running, or the size does not fit its headers.
pub fn change_stream(c: &mut Control, name: &str, change: StreamChange) -> Result<(), PgError> {
    let pg = c.state::<Pg>();
    let mut pg = pg.borrow_mut();
    let at = pg.position(name)?;
    let s = &mut pg.streams[at];
    if s.enabled() {
        return Err(PgError::Running(name.into()));
    }
    if let (Some(sizes), Prepared::Layers(_)) = (change.sizes, &s.prepared) {
        s.source = source(&s.prepared, sizes)?;
        (s.sizes, s.spec.sizes) = (sizes, Some(sizes));
    }
    if let Some(rate) = change.rate {
        s.spec.rate = rate;
    }
    if let Some(n) = change.max_frame {
        s.spec.max_frame = n;
    }
    if let Some(n) = change.limit {
        s.spec.limit = n;
        s.limit = limit(&s.spec, &s.prepared);
    }
    Ok(())
}

/// Starts or stops one stream, or all. Starting brings the source port and its link up. Streams of
/// a worker that are started by one call begin in the same loop. Stopped streams may send packets
/// until they are [settled](settling).
///
/// # Errors
/// If the stream does not exist, or a port cannot be brought up.
pub fn enable_streams(c: &mut Control, name: Option<&str>, on: bool) -> Result<(), PgError> {
    let pg = c.state::<Pg>();
    let chosen: Vec<usize> = match name {
        Some(name) => vec![pg.borrow().position(name)?],
        None => (0..pg.borrow().streams.len()).collect(),
    };
    if on {
        return start(c, &chosen);
    }
    for at in chosen {
        stop(c, at);
    }
    Ok(())
}

fn start(c: &mut Control, chosen: &[usize]) -> Result<(), PgError> {
    let pg = c.state::<Pg>();
    let node = c.node("pg-input").ok_or_else(|| PgError::NoNode("pg-input".into()))?;
    let (idle, ports): (Vec<usize>, Vec<_>) = {
        let p = pg.borrow();
        let idle: Vec<_> = chosen.iter().copied().filter(|at| !p.streams[*at].enabled()).collect();
        let from = idle.iter().map(|at| p.streams[*at].rx_if);
        let ports = from.filter(|rx_if| p.port_of(*rx_if).is_some()).collect();
        (idle, ports)
    };
    for port in ports {
        interface::set_admin(c, port, true)?;
    }
    let mut by_worker: BTreeMap<usize, Vec<Running>> = BTreeMap::new();
    {
        let mut p = pg.borrow_mut();
        for at in idle {
            p.next_key += 1;
            let key = p.next_key;
            let s = &mut p.streams[at];
            by_worker.entry(s.spec.worker).or_default().push(s.begin(key));
        }
    }
    for (worker, streams) in by_worker {
        c.message(worker, node, Box::new(Message::Start(streams)));
    }
    Ok(())
}

/// Stops a stream on its worker.
fn stop(c: &mut Control, at: usize) {
    let pg = c.state::<Pg>();
    let (worker, key) = {
        let mut p = pg.borrow_mut();
        let s = &mut p.streams[at];
        let Some(key) = s.run.take() else { return };
        (s.spec.worker, key)
    };
    if let Some(node) = c.node("pg-input") {
        c.message(worker, node, Box::new(Message::Stop(key)));
    }
}

/// Something that was stopped: nothing comes any more once a thread has waited for it.
#[must_use]
pub struct Settling(mpsc::Receiver<()>);

/// Time after which workers, and the writer of captures, are taken not to respond.
const ANSWER_TIME: Duration = Duration::from_secs(5);

impl Settling {
    /// Waits, some seconds at most. The main thread must not call it.
    pub fn wait(self) {
        let _ = self.0.recv_timeout(ANSWER_TIME);
    }
}

/// Returns what to wait for until workers have handled their messages, and captures are in their
/// files.
pub fn settling(c: &mut Control) -> Settling {
    let (give, given) = mpsc::sync_channel(1);
    c.when_synced(|c| when_written(c, move || _ = give.send(())));
    Settling(given)
}

/// Calls `then` once what was captured so far is in its file.
fn when_written(c: &Control, then: impl FnOnce() + Send + 'static) {
    let pg = c.state::<Pg>();
    let pg = pg.borrow();
    let capturing = pg.ports.values().any(|p| p.capture.is_some());
    match pg.writer.as_ref().filter(|_| capturing) {
        Some(writer) => writer.then(then),
        None => then(),
    }
}

/// A stream has sent its last packet, and that has left the worker's graph. The stream counts as
/// disabled once other workers have completed a loop, too, and all captures are in their files.
fn on_done(c: &mut Control, event: &Event) {
    let Some(key) = event.bytes().try_into().ok().map(u64::from_ne_bytes) else { return };
    let remote = c.remote();
    let finish = move || {
        remote.submit(move |c| c.state::<Pg>().borrow_mut().finish(key));
    };
    if c.workers() > 1 {
        c.when_synced(|c| when_written(c, finish));
    } else {
        when_written(c, finish);
    }
}

impl Pg {
    fn finish(&mut self, key: u64) {
        if let Some(s) = self.streams.iter_mut().find(|s| s.run == Some(key)) {
            s.run = None;
        }
    }
}

/// Deletes a stream, stopping it first. The stream may send packets until it is
/// [settled](settling).
///
/// # Errors
/// [`PgError::NoStream`].
pub fn delete_stream(c: &mut Control, name: &str) -> Result<(), PgError> {
    let pg = c.state::<Pg>();
    let at = pg.borrow().position(name)?;
    stop(c, at);
    pg.borrow_mut().streams.remove(at);
    Ok(())
}

/// Starts capturing a port's transmitted packets in a new pcap file, at most `count` packets, or
/// ends that: the file is complete once that has settled.
///
/// # Errors
/// If the interface is not a port, the file exists, or the writer thread cannot be started.
pub fn set_capture(
    c: &mut Control,
    sw_if: SwIfIndex,
    to: Option<(&Path, u64)>,
) -> Result<Settling, PgError> {
    let id = check_port(c, sw_if)?;
    let fail = |path: &Path, why: String| PgError::Pcap { path: path.display().to_string(), why };
    let pg = c.state::<Pg>();
    let mut reserved = None;
    if let Some((path, _)) = to {
        // A capture without packets may begin again.
        let of_port = pg.borrow().ports.get(&id).and_then(|port| {
            port.capture.as_ref().filter(|now| now.path == path).map(|now| now.reserved.clone())
        });
        reserved = match of_port {
            Some(own) => own,
            None => {
                let new = client::reserve_alone(path, &CAPTURES);
                Some(Arc::new(new.map_err(|e| fail(path, e.source.to_string()))?))
            }
        };
        if path.symlink_metadata().is_ok() {
            return Err(fail(path, "already exists".into()));
        }
    }
    let settling = stop_capture(c, id, sw_if);
    let Some((path, count)) = to else { return Ok(settling) };
    let probes = {
        let mut p = pg.borrow_mut();
        let writer = match &mut p.writer {
            Some(w) => w,
            none => none.insert(Writer::start().map_err(|e| fail(path, e.to_string()))?),
        };
        let link = match check_mode(c, sw_if) {
            true => pcap::LINK_ETHERNET,
            false => pcap::LINK_RAW,
        };
        let plan = Plan { path: path.to_owned(), link, count, _reserved: reserved.clone() };
        let (capture, stats, probes) = writer.open(plan, c.workers());
        if let Some(port) = p.ports.get_mut(&id) {
            port.capture = Some(Capture { id: capture, path: path.to_owned(), stats, reserved });
        }
        probes
    };
    port::set_probes(c, sw_if, Some(probes));
    Ok(settling)
}

/// Returns whether an interface carries Ethernet frames.
fn check_mode(c: &Control, sw_if: SwIfIndex) -> bool {
    interface::view(c, sw_if).is_ok_and(|v| v.ethernet)
}

fn stop_capture(c: &mut Control, id: u32, sw_if: SwIfIndex) -> Settling {
    let (give, given) = mpsc::sync_channel(1);
    let pg = c.state::<Pg>();
    let old = pg.borrow_mut().ports.get_mut(&id).and_then(|p| p.capture.take());
    if let Some(old) = old {
        port::set_probes(c, sw_if, None);
        // Workers have put their last packets into its rings by then.
        c.when_synced(move |c| {
            if let Some(writer) = &c.state::<Pg>().borrow().writer {
                writer.close(old.id);
                writer.then(move || _ = give.send(()));
            }
        });
    }
    Settling(given)
}
