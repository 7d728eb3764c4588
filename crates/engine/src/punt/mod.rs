//! Punted packets: the router's protocols have no use for them, but a feature may take them.
//!
//! A *reason* says why packets are punted. A protocol adds its reasons in its `init` ([`add`]); a
//! feature has a node take the packets of a reason ([`take`]). A reason that nobody takes costs
//! nothing: the protocol refuses or drops these packets as usual ([`Punt::is_wanted`]). The
//! others go to the protocol's punt arc and then to [`dispatch`], which applies the reason's limit
//! and counts.

pub mod dispatch;
mod ports;
pub(crate) mod settings;

pub use ports::{MAX_PORTS, Port, ports, set_port};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thalweg_buffer::{LOCAL_IF, PktMut, SwIfIndex};
use thalweg_graph::stats::Counter;
use thalweg_graph::{BuildCx, Control, NodeId};
use thalweg_tables::qsbr::Guard;
use thalweg_tables::snapshot::{self, Snapshot};

/// Maximum number of reasons.
pub const MAX_REASONS: usize = 64;

/// Kind of packets that a reason is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Packets to the router itself that none of its protocols takes.
    Host,
    /// Packets in transit that forwarding cannot deal with.
    Exception,
}

impl Class {
    /// Its name in `show punt reasons`.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Host => "host",
            Class::Exception => "exception",
        }
    }
}

/// A reason, as its owner declares it.
#[derive(Debug)]
pub struct ReasonDecl {
    /// Unique name: `ip4-unknown-protocol`.
    pub name: &'static str,
    /// The feature that punts.
    pub from: &'static str,
    /// Its class.
    pub class: Class,
    /// Packets per second and worker.
    pub rate: u32,
    /// Packets at once, on each worker.
    pub burst: u32,
}

/// Number of a reason.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Reason(u16);

impl Reason {
    /// Returns the number in the binary API.
    pub const fn number(self) -> u32 {
        self.0 as u32
    }

    /// Marks a packet on its way to the protocol's punt node.
    #[inline]
    pub fn mark(self, p: &mut PktMut<'_>) {
        p.set_aux(self.0.into());
    }

    /// The reason that a packet was [marked](Self::mark) with.
    #[inline]
    fn of(p: &PktMut<'_>) -> Reason {
        Reason(p.aux() as u16)
    }
}

/// Reason why a punt reason is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PuntError {
    /// No feature has added it.
    #[error("no punt reason `{0}'; `show punt reasons' lists them")]
    Unknown(String),
    /// Another node takes its packets.
    #[error("packets of punt reason `{reason}' go to `{node}'")]
    Taken {
        /// The reason.
        reason: String,
        /// Node that has the reason.
        node: &'static str,
    },
    /// The table of punted ports is full.
    #[error("{MAX_PORTS} ports are punted, the most; `all' is for those without a listener")]
    Ports,
}

/// The nodes that take punted packets, by reason, as workers read them.
#[derive(Debug, Default)]
pub struct Receivers {
    nodes: Vec<Option<NodeId>>,
    /// Interfaces by reason: those whose packets leave by a feature of the protocol's punt arc.
    redirected: Vec<Arc<Redirected>>,
    /// UDP ports that are always punted.
    ports: Arc<BTreeSet<Port>>,
    /// Interfaces with a host behind them.
    hosts: Arc<BTreeSet<SwIfIndex>>,
}

impl Receivers {
    /// Returns whether any node takes the packets of a reason.
    #[inline]
    pub fn is_taken(&self, reason: Reason) -> bool {
        self.node(reason).is_some()
    }

    #[inline]
    fn node(&self, reason: Reason) -> Option<NodeId> {
        self.nodes.get(usize::from(reason.0)).copied().flatten()
    }
}

/// Interfaces whose punted packets are [redirected](redirect).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Redirected {
    /// All that receive packets, also those to come.
    All,
    /// Interfaces of the set.
    Of(BTreeSet<SwIfIndex>),
}

impl Default for Redirected {
    fn default() -> Redirected {
        Redirected::Of(BTreeSet::new())
    }
}

impl Redirected {
    fn contains(&self, rx_if: SwIfIndex) -> bool {
        match self {
            Redirected::All => rx_if != LOCAL_IF,
            Redirected::Of(these) => these.contains(&rx_if),
        }
    }
}

/// Receivers of packets that a protocol's node punts.
pub struct Punt(Arc<Snapshot<Receivers>>);

impl Punt {
    /// Returns it for a node that is being built.
    pub fn new(cx: &BuildCx<'_>) -> Punt {
        Punt(cx.shared())
    }

    /// Returns whether any node takes the packets of a reason.
    #[inline]
    pub fn is_taken(&self, guard: &Guard<'_>, reason: Reason) -> bool {
        self.0.load(guard).is_taken(reason)
    }

    /// Returns whether any node takes the packets of a reason that an interface has received, or
    /// they are [redirected](redirect), or there is a [host](set_hosts) for them.
    #[inline]
    pub fn is_wanted(&self, guard: &Guard<'_>, reason: Reason, rx_if: SwIfIndex) -> bool {
        let receivers = self.0.load(guard);
        let redirected = receivers.redirected.get(usize::from(reason.0));
        receivers.is_taken(reason)
            || redirected.is_some_and(|of| of.contains(rx_if))
            || receivers.hosts.contains(&rx_if)
    }

    /// Returns whether a [host](set_hosts) takes the packets of an interface that the router does
    /// not handle.
    #[inline]
    pub fn has_host(&self, guard: &Guard<'_>, rx_if: SwIfIndex) -> bool {
        self.0.load(guard).hosts.contains(&rx_if)
    }
}

impl Punt {
    /// Returns whether datagrams to a UDP port that nothing here listens on are punted whether any
    /// node takes them or not; `v6` for those of IPv6.
    pub fn is_port_punted(&self, guard: &Guard<'_>, v6: bool, port: u16) -> bool {
        let ports = &self.0.load(guard).ports;
        let has = |number| ports.contains(&Port { v6, number });
        !ports.is_empty() && (has(None) || has(Some(port)))
    }
}

/// Counters of a reason on one worker.
#[derive(Default, Debug)]
struct Counts {
    packets: Counter,
    bytes: Counter,
    limited: Counter,
}

/// Counters of a worker, on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct OfWorker([Counts; MAX_REASONS]);

struct Entry {
    decl: &'static ReasonDecl,
    receiver: Option<&'static str>,
    /// Packets per second and worker, if not those of its declaration.
    limit: Option<u32>,
}

/// A limit, as workers have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limit {
    reason: Reason,
    /// Packets per second and worker.
    rate: u32,
    /// Packets at once, on each worker.
    burst: u32,
}

impl Entry {
    /// The limit that holds: the burst is as long as that of the declaration.
    fn limit(&self, reason: Reason) -> Limit {
        let (usual, burst) = (self.decl.rate, self.decl.burst);
        let rate = self.limit.unwrap_or(usual);
        let burst = match rate {
            _ if rate == usual => burst,
            0 => 0,
            _ => {
                let burst = u64::from(burst) * u64::from(rate) / u64::from(usual.max(1));
                burst.clamp(1, u32::MAX.into()) as u32
            }
        };
        Limit { reason, rate, burst }
    }
}

/// Reasons and receivers on the main thread.
struct Registry {
    reasons: Vec<Entry>,
    writer: snapshot::Writer<Receivers>,
    counts: Arc<[OfWorker]>,
    /// Interfaces whose packets are redirected, by owner of reasons.
    redirected: BTreeMap<&'static str, Arc<Redirected>>,
    ports: Arc<BTreeSet<Port>>,
    hosts: Arc<BTreeSet<SwIfIndex>>,
}

/// A reason as `show` commands see it.
#[derive(Clone, Debug)]
pub struct ReasonView {
    /// Its number.
    pub reason: Reason,
    /// Its declaration.
    pub decl: &'static ReasonDecl,
    /// The node that takes its packets.
    pub receiver: Option<&'static str>,
    /// Packets per second and worker.
    pub rate: u32,
    /// Packets at once, on each worker.
    pub burst: u32,
    /// Packets passed to a receiver.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets dropped by the limit.
    pub limited: u64,
}

pub(crate) fn init(c: &mut Control) {
    let (writer, snapshot) = snapshot::channel(Receivers::default());
    let snapshot: Arc<Snapshot<Receivers>> = snapshot;
    c.share(snapshot);
    let of_worker = |_| OfWorker(std::array::from_fn(|_| Counts::default()));
    let counts = c.config().workers.iter().map(of_worker).collect();
    let (redirected, ports, hosts) = (BTreeMap::new(), Arc::default(), Arc::default());
    c.insert(Registry { reasons: Vec::new(), writer, counts, redirected, ports, hosts });
}

/// Publishes the receivers whose nodes exist: before the graph is built, none does.
pub(crate) fn publish(c: &mut Control) {
    let registry = c.state::<Registry>();
    let mut registry = registry.borrow_mut();
    let node = |e: &Entry| {
        let by = format_args!("punt reason `{}`", e.decl.name);
        e.receiver.and_then(|name| c.named_node(name, by))
    };
    let nodes = registry.reasons.iter().map(node).collect();
    let of = |e: &Entry| registry.redirected.get(e.decl.from).cloned().unwrap_or_default();
    let redirected = registry.reasons.iter().map(of).collect();
    let (ports, hosts) = (registry.ports.clone(), registry.hosts.clone());
    registry.writer.publish(c.domain(), Receivers { nodes, redirected, ports, hosts });
}

/// Punts packets that these interfaces have received, for any reason of the feature `from`: a node
/// on the punt arc of the feature's protocol sends them elsewhere. To be called with all such
/// interfaces on each change.
pub fn redirect(c: &mut Control, from: &'static str, interfaces: Redirected) {
    c.state::<Registry>().borrow_mut().redirected.insert(from, Arc::new(interfaces));
    publish(c);
}

/// Punts packets that these interfaces have received, for any reason, with fragments and packets
/// that the router reads itself, as a host's network stack is behind each of them: a node on the
/// protocols' punt arcs passes them to it. To be called with all such interfaces on each change.
pub fn set_hosts(c: &mut Control, interfaces: BTreeSet<SwIfIndex>) {
    c.state::<Registry>().borrow_mut().hosts = Arc::new(interfaces);
    publish(c);
}

/// Adds a reason, for the `init` of the protocol that punts; returns its number. Protocols share a
/// reason by its name. One beyond [`MAX_REASONS`] is reported, and cannot be taken.
pub fn add(c: &mut Control, decl: &'static ReasonDecl) -> Reason {
    let registry = c.state::<Registry>();
    let reasons = &mut registry.borrow_mut().reasons;
    if let Some(i) = reasons.iter().position(|e| e.decl.name == decl.name) {
        return Reason(i as u16);
    }
    if reasons.len() == MAX_REASONS {
        tracing::error!("no room for punt reason `{}': the limit is {MAX_REASONS}", decl.name);
        return Reason(u16::MAX);
    }
    reasons.push(Entry { decl, receiver: None, limit: None });
    Reason(reasons.len() as u16 - 1)
}

/// Changes the receiver of a reason.
fn change(
    c: &mut Control,
    reason: &str,
    change: impl FnOnce(&mut Entry) -> Result<(), PuntError>,
) -> Result<(), PuntError> {
    {
        let registry = c.state::<Registry>();
        let reasons = &mut registry.borrow_mut().reasons;
        let entry = reasons.iter_mut().find(|e| e.decl.name == reason);
        change(entry.ok_or_else(|| PuntError::Unknown(reason.into()))?)?;
    }
    publish(c);
    Ok(())
}

/// Makes a node take the packets of a reason, from the workers' next loop on. They begin at the
/// header of the protocol that punts.
///
/// # Errors
/// [`PuntError::Unknown`], [`PuntError::Taken`].
pub fn take(c: &mut Control, reason: &str, node: &'static str) -> Result<(), PuntError> {
    change(c, reason, |entry| match entry.receiver.filter(|has| *has != node) {
        Some(node) => Err(PuntError::Taken { reason: reason.into(), node }),
        None => {
            entry.receiver = Some(node);
            Ok(())
        }
    })
}

/// Gives the packets of a reason back to the protocol, which refuses or drops them.
///
/// # Errors
/// [`PuntError::Unknown`].
pub fn release(c: &mut Control, reason: &str) -> Result<(), PuntError> {
    change(c, reason, |entry| {
        entry.receiver = None;
        Ok(())
    })
}

/// Sets how many packets of a reason are passed on per second and worker; `None` for as many as its
/// declaration says. The burst follows in proportion.
///
/// # Errors
/// [`PuntError::Unknown`].
pub fn set_limit(c: &mut Control, reason: &str, limit: Option<u32>) -> Result<(), PuntError> {
    let registry = c.state::<Registry>();
    let limit = {
        let reasons = &mut registry.borrow_mut().reasons;
        let at = reasons.iter().position(|e| e.decl.name == reason);
        let at = at.ok_or_else(|| PuntError::Unknown(reason.into()))?;
        reasons[at].limit = limit;
        reasons[at].limit(Reason(at as u16))
    };
    // Before the graph is built, its node reads them here.
    if let Some(node) = c.node(dispatch::NODE.name) {
        c.message_all(node, |_| Box::new(limit));
    }
    Ok(())
}

/// Returns all reasons in the order of their numbers, with counters summed over workers.
pub fn reasons(c: &Control) -> Vec<ReasonView> {
    let registry = c.state::<Registry>();
    let registry = registry.borrow();
    let view = |(i, e): (usize, &Entry)| {
        let sum = |of: fn(&Counts) -> &Counter| {
            registry.counts.iter().map(|w| of(&w.0[i]).get()).sum::<u64>()
        };
        let Limit { reason, rate, burst } = e.limit(Reason(i as u16));
        ReasonView {
            reason,
            decl: e.decl,
            receiver: e.receiver,
            rate,
            burst,
            packets: sum(|c| &c.packets),
            bytes: sum(|c| &c.bytes),
            limited: sum(|c| &c.limited),
        }
    };
    registry.reasons.iter().enumerate().map(view).collect()
}
