//! The neighbour table on the main thread: takes workers' reports and configuration, and performs
//! the table's actions.

use crate::addrs::{IfAddr, IfAddrs};
use crate::packet::{
    self, NeighborReport, Origin, ReportKind, ResetReports, ResolveReply, ResolveRequest,
};
use crate::table::{Action, Config, Entry, Key, NeighborTable, State, TableStats, Waiter};
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_device::{InterfaceEvent, Mac, SwIfIndex, interface};
use thalweg_fib::{Dpo, FibError, Forwarding, Kind, LinkType, Peer};
use thalweg_graph::control::TimerId;
use thalweg_graph::{Control, Event, Inject, NodeId, Topic, clock};
use thalweg_tables::snapshot;

/// Why a neighbour cannot be configured.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ArpError {
    /// The interface does not exist.
    #[error("no interface with index {0}")]
    NoInterface(SwIfIndex),
    /// The interface is not Ethernet.
    #[error("interface `{0}` is not an Ethernet interface: it has no neighbours")]
    NotEthernet(String),
    /// The MAC address is not unicast.
    #[error("{0} is not a unicast MAC address")]
    Mac(String),
    /// No neighbour can have this address.
    #[error("{ip} cannot be a neighbour: {why}")]
    Address {
        /// IP address.
        ip: Ipv4Addr,
        /// Reason.
        why: &'static str,
    },
    /// The neighbour does not exist.
    #[error("no neighbour {ip} on `{interface}`; `show ip neighbors` lists them")]
    Unknown {
        /// IP address.
        ip: Ipv4Addr,
        /// Name of the interface.
        interface: String,
    },
    /// The table is full.
    #[error(
        "the neighbour table is full: the limit is {0} entries; \
         raise it by `set ip neighbor-config ip4 limit`"
    )]
    Full(usize),
    /// A setting is out of range.
    #[error("{what} must be between {min} and {max}, not {found}")]
    Range {
        /// Name of the setting.
        what: &'static str,
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
        /// Value given.
        found: u64,
    },
    /// No adjacency could be created.
    #[error(transparent)]
    Fib(#[from] FibError),
}

/// The event that a neighbour which has or had a MAC address has changed. The adjacency is complete
/// before others learn of a neighbour, and incomplete again before they learn of its removal; the
/// same change may be reported twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NeighborChange {
    /// Interface.
    pub sw_if: SwIfIndex,
    /// IP address.
    pub ip: Ipv4Addr,
    /// MAC address; `None` once the neighbour is unresolved.
    pub mac: Option<Mac>,
    /// Static: stays until deleted.
    pub is_static: bool,
    /// Whether to add a /32 route: the neighbour is resolved, lies in a connected subnet, and is
    /// not configured with `no-fib-entry`.
    pub fib_entry: bool,
}

/// A neighbour, for display.
#[derive(Clone, Debug)]
pub struct Neighbor {
    /// Interface.
    pub sw_if: SwIfIndex,
    /// IP address.
    pub ip: Ipv4Addr,
    /// MAC address, once resolved.
    pub mac: Option<Mac>,
    /// State of resolution.
    pub state: State,
    /// Static: stays until deleted.
    pub is_static: bool,
    /// No /32 route for the neighbour.
    pub no_fib_entry: bool,
    /// How it was learned, or why it was requested.
    pub origin: Origin,
    /// Time since it was last heard or configured.
    pub age: Duration,
    /// Its adjacency, once resolved: the index of its counters.
    pub dpo: Option<Dpo>,
}

/// Flags of a configured neighbour.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct NeighborFlags {
    /// Static: stays until deleted, whatever is received.
    pub is_static: bool,
    /// No /32 route for the neighbour.
    pub no_fib_entry: bool,
}

/// Topics of workers' events.
#[derive(Clone, Copy)]
pub(crate) struct Topics {
    pub(crate) reports: Topic,
    pub(crate) requests: Topic,
}

/// The neighbour table and its subscribers.
pub struct Neighbors {
    table: NeighborTable,
    addrs: snapshot::Writer<IfAddrs>,
    timer: Option<(Instant, TimerId)>,
    conflicts: u64,
    /// While all neighbours are being replaced: start time, and the neighbours configured since.
    replacing: Option<(Instant, HashSet<Key>)>,
}

impl Neighbors {
    /// Settings of the table.
    pub fn config(&self) -> Config {
        self.table.config
    }

    /// Counters since start.
    pub fn stats(&self) -> TableStats {
        self.table.stats
    }

    /// Number of packets that claimed one of our addresses, as reported by workers (rate limited).
    pub fn conflicts(&self) -> u64 {
        self.conflicts
    }

    /// Number of neighbours with a MAC address.
    pub fn len(&self) -> usize {
        self.table.resolved()
    }

    /// Returns whether no neighbour is resolved.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Addresses of an interface, as passed to ARP.
    pub fn addresses(&self, sw_if: SwIfIndex) -> &[IfAddr] {
        self.addrs.get().get(sw_if)
    }

    fn view(&self, key: Key, e: &Entry, now: Instant) -> Neighbor {
        Neighbor {
            sw_if: key.0,
            ip: key.1,
            mac: e.mac,
            state: self.table.state(e, now),
            is_static: e.is_static,
            no_fib_entry: e.no_fib,
            origin: e.origin,
            age: self.table.age(e, now),
            dpo: e.dpo,
        }
    }

    /// All neighbours by interface and address, incomplete and failed ones included.
    pub fn list(&self) -> Vec<Neighbor> {
        self.select(|_| true)
    }

    /// Configured neighbours by interface and address.
    pub(crate) fn configured(&self) -> Vec<Neighbor> {
        self.select(|e| e.is_static || e.origin == Origin::Config)
    }

    fn select(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<Neighbor> {
        let now = Instant::now();
        let some = self.table.iter().filter(|(_, e)| wanted(e));
        let mut some: Vec<Neighbor> = some.map(|(k, e)| self.view(k, e, now)).collect();
        some.sort_by_key(|n| (n.sw_if, n.ip));
        some
    }

    /// Keys of all neighbours, unsorted.
    pub(crate) fn keys(&self) -> Vec<(SwIfIndex, Ipv4Addr)> {
        self.table.iter().map(|(key, _)| key).collect()
    }

    /// Looks up a neighbour.
    pub fn find(&self, sw_if: SwIfIndex, ip: Ipv4Addr) -> Option<Neighbor> {
        self.table.get((sw_if, ip)).map(|e| self.view((sw_if, ip), e, Instant::now()))
    }
}

pub(crate) fn init(c: &mut Control) {
    {
        let forwarding = c.state::<Forwarding>();
        let mut f = forwarding.borrow_mut();
        f.set_exit(LinkType::Ip4, Kind::INCOMPLETE, "ip4-arp");
        f.set_exit(LinkType::Ip4, Kind::GLEAN, "ip4-glean");
    }
    let (addrs, snapshot) = snapshot::channel(IfAddrs::default());
    c.share(snapshot);
    c.insert(Neighbors {
        table: NeighborTable::new(Config::default()),
        addrs,
        timer: None,
        conflicts: 0,
        replacing: None,
    });
    let reports = c.topic("arp sender", handle_report);
    let requests = c.topic("arp wanted", handle_request);
    c.share(Arc::new(Topics { reports, requests }));
    c.subscribe(interface_changed);
}

/// Changes the table, then performs the resulting actions.
fn update<R>(c: &mut Control, f: impl FnOnce(&mut NeighborTable, Instant) -> R) -> R {
    let state = c.state::<Neighbors>();
    let (result, actions) = {
        let table = &mut state.borrow_mut().table;
        let result = f(table, Instant::now());
        (result, table.take_actions())
    };
    for action in actions {
        perform(c, action);
    }
    arm(c);
    result
}

/// Arms the timer for the table's next deadline.
fn arm(c: &mut Control) {
    let state = c.state::<Neighbors>();
    let now = Instant::now();
    let (due, armed) = {
        let s = state.borrow();
        (s.table.next_due(now), s.timer)
    };
    let Some(due) = due else { return };
    if armed.is_some_and(|(at, _)| at <= due) {
        return;
    }
    if let Some((_, id)) = armed {
        c.cancel(id);
    }
    let id = c.after(due.saturating_duration_since(now), |c| {
        c.state::<Neighbors>().borrow_mut().timer = None;
        update(c, |t, now| t.tick(now));
    });
    state.borrow_mut().timer = Some((due, id));
}

fn perform(c: &mut Control, action: Action) {
    match action {
        Action::Resolved { key, waiters, revived } => {
            match publish(c, key) {
                Ok(Some(dpo)) => release(c, key, dpo, &waiters, revived),
                // A later action of the same round has removed the neighbour.
                Ok(None) => fail(c, &waiters, Duration::ZERO),
                Err(e) => {
                    tracing::warn!("neighbour {} dropped: {e}", key.1);
                    fail(c, &waiters, Duration::from_secs(1));
                    update(c, |t, _| t.remove(key));
                }
            }
        }
        Action::Gone { key, dpo, is_static } => withdraw(c, key, dpo, is_static),
        Action::Request { key, to } => send_request(c, key, to),
        Action::Fail { waiters, hold } => fail(c, &waiters, hold),
    }
}

/// Completes a neighbour's adjacency, which it holds while resolved, and notifies subscribers.
fn publish(c: &mut Control, key: Key) -> Result<Option<Dpo>, FibError> {
    let (sw_if, ip) = key;
    let state = c.state::<Neighbors>();
    let forwarding = c.state::<Forwarding>();
    let change = {
        let mut s = state.borrow_mut();
        let connected = s.addresses(sw_if).iter().any(|a| a.covers(ip));
        let Some(e) = s.table.get_mut(key) else { return Ok(None) };
        let mut f = forwarding.borrow_mut();
        if e.dpo.is_none() {
            e.dpo = Some(f.adjacency(c, sw_if, LinkType::Ip4, peer(ip))?);
        }
        f.set_neighbor(c, sw_if, IpAddr::V4(ip), e.mac);
        e.in_fib = connected && !e.no_fib;
        NeighborChange { sw_if, ip, mac: e.mac, is_static: e.is_static, fib_entry: e.in_fib }
    };
    c.publish(change);
    let dpo = state.borrow().table.get(key).and_then(|e| e.dpo);
    Ok(dpo)
}

fn peer(ip: Ipv4Addr) -> Peer {
    Peer::Neighbor(IpAddr::V4(ip))
}

fn withdraw(c: &mut Control, (sw_if, ip): Key, dpo: Option<Dpo>, is_static: bool) {
    let forwarding = c.state::<Forwarding>();
    forwarding.borrow_mut().set_neighbor(c, sw_if, IpAddr::V4(ip), None);
    c.publish(NeighborChange { sw_if, ip, mac: None, is_static, fib_entry: false });
    if let Some(dpo) = dpo {
        forwarding.borrow_mut().release(c, dpo);
    }
}

fn send_reply(c: &mut Control, worker: usize, request: ResolveRequest, reply: ResolveReply) {
    let name = match request {
        ResolveRequest::Host(..) => "ip4-glean",
        ResolveRequest::Adjacency(_) => "ip4-arp",
    };
    if let Some(node) = c.node(name)
        && worker < c.workers()
    {
        c.message(worker, node, Box::new(reply));
    }
}

fn release(c: &mut Control, key: Key, dpo: Dpo, waiters: &[Waiter], revived: bool) {
    for w in waiters {
        // The index may by now belong to another neighbour's adjacency: these packets must not
        // follow.
        let key = w.request.key();
        let fits = matches!(w.request, ResolveRequest::Host(..))
            || w.request == ResolveRequest::Adjacency(dpo);
        let reply = if fits {
            ResolveReply::Release { key, dpo }
        } else {
            ResolveReply::Fail { key, until: AT_ONCE }
        };
        send_reply(c, usize::from(w.worker), w.request, reply);
    }
    if revived {
        // Any worker may still treat the neighbour as silent.
        for request in [ResolveRequest::Host(key.0, key.1), ResolveRequest::Adjacency(dpo)] {
            for worker in 0..c.workers() {
                send_reply(c, worker, request, ResolveReply::Release { key: request.key(), dpo });
            }
        }
    }
}

/// Ends a silence at once. Not "now": a worker compares with the start of its loop, which may be
/// earlier.
const AT_ONCE: u64 = 0;

fn fail(c: &mut Control, waiters: &[Waiter], hold: Duration) {
    let until = if hold.is_zero() { AT_ONCE } else { clock::ticks() + clock::ticks_in(hold) };
    for w in waiters {
        let key = w.request.key();
        send_reply(c, usize::from(w.worker), w.request, ResolveReply::Fail { key, until });
    }
}

/// Sends a request from a worker.
fn send_request(c: &mut Control, (sw_if, ip): Key, to: Option<Mac>) {
    let source = c.state::<Neighbors>().borrow().addrs.get().source_for(sw_if, ip);
    let (Some(source), Ok(view)) = (source, interface::view(c, sw_if)) else { return };
    send(c, sw_if, view.output, packet::request(view.mac, source, ip, to).to_vec());
}

fn send(c: &mut Control, sw_if: SwIfIndex, node: NodeId, bytes: Vec<u8>) {
    if c.workers() > 0 {
        // Requests are few: spreading them over workers gains nothing.
        c.inject(0, Inject { node, bytes, tx_if: sw_if, ..Inject::default() });
    }
}

// ---- reports from workers ------------------------------------------------------------------

fn handle_report(c: &mut Control, event: &Event) {
    let Some(NeighborReport { kind, mac, ip }) = NeighborReport::decode(event.bytes()) else {
        return;
    };
    let sw_if = event.sw_if;
    match kind {
        ReportKind::Sender(origin) => {
            let Ok(view) = interface::view(c, sw_if) else { return };
            // The report may be older than the last change of addresses.
            let peer = c.state::<Neighbors>().borrow().addrs.get().is_peer(sw_if, ip);
            if peer && view.is_up() {
                update(c, |t, now| t.learn((sw_if, ip), mac, origin, now));
            }
        }
        ReportKind::Conflict => {
            c.state::<Neighbors>().borrow_mut().conflicts += 1;
            let (name, mac) = (c.interface_name(sw_if), thalweg_wire::MacAddr(mac));
            tracing::warn!("{name}: our address {ip} is also used by {mac}");
        }
    }
}

fn handle_request(c: &mut Control, event: &Event) {
    let Some(request) = ResolveRequest::decode(event.bytes()) else { return };
    let waiter = Waiter { worker: event.worker, request };
    let key = match request {
        ResolveRequest::Host(sw_if, ip) => Some((sw_if, ip)),
        ResolveRequest::Adjacency(dpo) => match c.state::<Forwarding>().borrow().owner(dpo) {
            Some((sw_if, Some(IpAddr::V4(ip)))) => Some((sw_if, ip)),
            _ => None,
        },
    };
    match key {
        Some(key) if can_resolve(c, key) => {
            let sent = matches!(request, ResolveRequest::Host(..));
            update(c, |t, now| t.request(key, Some(waiter), sent, now));
        }
        _ => fail(c, &[waiter], Duration::from_secs(1)),
    }
}

/// Returns whether the interface is Ethernet, is up and has a source address for requests.
fn can_resolve(c: &Control, (sw_if, ip): Key) -> bool {
    let state = c.state::<Neighbors>();
    let addrs = &state.borrow().addrs;
    let source = addrs.get().source_for(sw_if, ip);
    let view = interface::view(c, sw_if);
    source.is_some_and(|s| s != ip) && view.is_ok_and(|v| v.is_up() && v.ethernet)
}

fn interface_changed(c: &mut Control, event: &InterfaceEvent) {
    match *event {
        InterfaceEvent::State(i) if interface::view(c, i).is_ok_and(|v| !v.is_up()) => {
            flush(c, Some(i));
        }
        InterfaceEvent::Deleted(i) => {
            update(c, |t, _| t.flush(|k, _| k.0 == i));
            store_addresses(c, i, &[]);
            reset_reports(c);
        }
        _ => {}
    }
}

fn reset_reports(c: &mut Control) {
    if let Some(node) = c.node("arp-input") {
        c.message_all(node, |_| Box::new(ResetReports));
    }
}

// ---- configuration -------------------------------------------------------------------------

/// Sets all addresses of an interface, with their prefix lengths. To be called on each change; for
/// an unnumbered interface, with the addresses that it borrows. Dynamic neighbours outside of these
/// subnets are deleted.
pub fn set_addresses(c: &mut Control, sw_if: SwIfIndex, addrs: &[(Ipv4Addr, u8)]) {
    let addrs: Vec<IfAddr> =
        addrs.iter().map(|(ip, len)| IfAddr { ip: *ip, len: (*len).min(32) }).collect();
    store_addresses(c, sw_if, &addrs);
    let covered = |ip| addrs.iter().any(|a| a.covers(ip) && !a.is_edge(ip) && a.ip != ip);
    let n = update(c, |t, _| {
        t.flush(|k, e| k.0 == sw_if && !e.is_static && e.mac.is_some() && !covered(k.1))
    });
    if n > 0 {
        reset_reports(c);
    }
    // Neighbours that stay may gain or lose the subnet that entitles them to a /32 route.
    let changed: Vec<Key> = {
        let state = c.state::<Neighbors>();
        let s = state.borrow();
        let wants = |k: Key, e: &Entry| !e.no_fib && addrs.iter().any(|a| a.covers(k.1));
        let rows = s.table.iter().filter(|(k, e)| k.0 == sw_if && e.mac.is_some());
        rows.filter(|(k, e)| wants(*k, e) != e.in_fib).map(|(k, _)| k).collect()
    };
    for key in changed {
        perform(c, Action::Resolved { key, waiters: Vec::new(), revived: false });
    }
}

/// Makes the router answer ARP for these addresses as for its own, on interfaces with a subnet
/// around them. To be called with all of them on each change.
pub fn answer_for(c: &mut Control, mut addresses: Vec<Ipv4Addr>) {
    addresses.sort_unstable();
    addresses.dedup();
    let state = c.state::<Neighbors>();
    state.borrow_mut().addrs.update(c.domain(), |old| old.answering_for(&addresses));
}

fn store_addresses(c: &mut Control, sw_if: SwIfIndex, addrs: &[IfAddr]) {
    let state = c.state::<Neighbors>();
    let writer = &mut state.borrow_mut().addrs;
    if writer.get().get(sw_if) != addrs {
        writer.update(c.domain(), |old| old.with(sw_if, addrs));
    }
}

/// Configures a neighbour.
///
/// # Errors
/// [`ArpError`] if the address cannot be a neighbour or the table is full; nothing has changed
/// then.
pub fn set(
    c: &mut Control,
    sw_if: SwIfIndex,
    ip: Ipv4Addr,
    mac: Mac,
    flags: NeighborFlags,
) -> Result<(), ArpError> {
    let view = interface::view(c, sw_if).map_err(|_| ArpError::NoInterface(sw_if))?;
    if !view.ethernet {
        return Err(ArpError::NotEthernet(view.name));
    }
    if !thalweg_wire::MacAddr(mac).is_unicast() {
        return Err(ArpError::Mac(thalweg_wire::MacAddr(mac).to_string()));
    }
    let own = c.state::<Neighbors>().borrow().addrs.get().is_own(sw_if, ip);
    let why = match () {
        () if own => Some("it is the interface's own address"),
        () if ip.is_multicast() => Some("it is a multicast address"),
        () if ip.is_loopback() || ip.is_unspecified() || ip.is_broadcast() => {
            Some("it is not a host address")
        }
        () => None,
    };
    if let Some(why) = why {
        return Err(ArpError::Address { ip, why });
    }
    // Acquired here, so that a failure changes nothing.
    let key = (sw_if, ip);
    let dpo = c.state::<Forwarding>().borrow_mut().adjacency(c, sw_if, LinkType::Ip4, peer(ip))?;
    let NeighborFlags { is_static, no_fib_entry } = flags;
    let done = update(c, |t, now| {
        let limit = t.config.limit;
        let done = t.set(key, mac, is_static, no_fib_entry, now);
        done.map_err(|_| ArpError::Full(limit))
    });
    c.state::<Forwarding>().borrow_mut().release(c, dpo);
    if let (Ok(()), Some((_, set))) = (&done, &mut c.state::<Neighbors>().borrow_mut().replacing) {
        set.insert(key);
    }
    done
}

/// Marks all neighbours. [`finish_replacing`] deletes those that were neither configured nor heard
/// since.
pub fn begin_replacing(c: &mut Control) {
    c.state::<Neighbors>().borrow_mut().replacing = Some((Instant::now(), HashSet::new()));
}

/// Deletes the neighbours that were neither configured nor heard since [`begin_replacing`]; returns
/// their number.
pub fn finish_replacing(c: &mut Control) -> usize {
    let replacing = c.state::<Neighbors>().borrow_mut().replacing.take();
    let Some((since, set)) = replacing else { return 0 };
    let n = update(c, |t, now| {
        let long_ago = |age: Duration| age > now.saturating_duration_since(since);
        let ages = t.iter().map(|(key, e)| (key, e.is_static || long_ago(t.age(e, now))));
        let stale: HashSet<Key> =
            ages.filter(|(key, old)| *old && !set.contains(key)).map(|x| x.0).collect();
        t.flush(|key, _| stale.contains(&key))
    });
    reset_reports(c);
    n
}

/// Deletes a neighbour.
///
/// # Errors
/// If the interface or the neighbour does not exist.
pub fn remove(c: &mut Control, sw_if: SwIfIndex, ip: Ipv4Addr) -> Result<(), ArpError> {
    let view = interface::view(c, sw_if).map_err(|_| ArpError::NoInterface(sw_if))?;
    if !update(c, |t, _| t.remove((sw_if, ip))) {
        return Err(ArpError::Unknown { ip, interface: view.name });
    }
    reset_reports(c);
    Ok(())
}

/// Flushes the dynamic neighbours of one interface or of all; returns their number.
pub fn flush(c: &mut Control, sw_if: Option<SwIfIndex>) -> usize {
    let n = update(c, |t, _| t.flush(|k, e| !e.is_static && sw_if.is_none_or(|i| k.0 == i)));
    reset_reports(c);
    n
}

/// Starts resolving a neighbour, unless it is resolved or pending.
pub fn resolve(c: &mut Control, sw_if: SwIfIndex, ip: Ipv4Addr) {
    if can_resolve(c, (sw_if, ip)) {
        update(c, |t, now| t.request((sw_if, ip), None, false, now));
    }
}

/// Maximum limit of the table.
pub const MAX_LIMIT: usize = 1_000_000;

/// Changes the settings. A lower limit deletes nothing, but refuses new neighbours.
///
/// # Errors
/// [`ArpError::Range`] for a limit of zero or beyond [`MAX_LIMIT`].
pub fn set_config(c: &mut Control, config: Config) -> Result<(), ArpError> {
    if config.limit == 0 || config.limit > MAX_LIMIT {
        let (max, found) = (MAX_LIMIT as u64, config.limit as u64);
        return Err(ArpError::Range { what: "limit", min: 1, max, found });
    }
    update(c, |t, _| t.config = config);
    Ok(())
}

/// Announces an interface's addresses to its link (RFC 5227 section 2.3). Only done on request.
///
/// # Errors
/// If the interface does not exist or is not Ethernet.
pub fn announce(c: &mut Control, sw_if: SwIfIndex) -> Result<usize, ArpError> {
    let view = interface::view(c, sw_if).map_err(|_| ArpError::NoInterface(sw_if))?;
    if !view.ethernet {
        return Err(ArpError::NotEthernet(view.name));
    }
    let addrs = c.state::<Neighbors>().borrow().addresses(sw_if).to_vec();
    for a in &addrs {
        send(c, sw_if, view.output, packet::announcement(view.mac, a.ip).to_vec());
    }
    Ok(addrs.len())
}
