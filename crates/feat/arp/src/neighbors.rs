//! The neighbours on the main thread: what workers report and people configure goes into the
//! table, and what the table asks for is done here.

use crate::addrs::{IfAddr, IfAddrs};
use crate::packet::{
    self, NeighborReport, Origin, ReportKind, ResetReports, ResolveReply, ResolveRequest,
};
use crate::table::{Action, Config, Entry, Key, NeighborTable, State, TableStats, Waiter};
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_device::{InterfaceEvent, Interfaces, Mac, SwIfIndex, interface};
use thalweg_fib::{Dpo, FibError, Forwarding};
use thalweg_graph::control::TimerId;
use thalweg_graph::{Control, Event, Inject, NodeId, Topic, clock};
use thalweg_tables::snapshot;

/// Why a neighbour cannot be configured.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ArpError {
    /// The interface does not exist.
    #[error("no interface with index {0}")]
    NoInterface(SwIfIndex),
    /// The interface has no Ethernet below it.
    #[error("interface `{0}` is no Ethernet and has no neighbours to resolve")]
    NotEthernet(String),
    /// A group's address, or none.
    #[error("{0} is no station's MAC address: it must be neither a group's nor zero")]
    Mac(String),
    /// An address that no neighbour can have.
    #[error("{ip} cannot be a neighbour: {why}")]
    Address {
        /// The address.
        ip: Ipv4Addr,
        /// What it is instead.
        why: &'static str,
    },
    /// There is no such neighbour.
    #[error("no neighbour {ip} on `{interface}`; `show ip neighbors` lists them")]
    Unknown {
        /// The address.
        ip: Ipv4Addr,
        /// The interface.
        interface: String,
    },
    /// No room.
    #[error(
        "the neighbour table is full: {0} entries are the limit; \
         raise it by `set ip neighbor-config ip4 limit`"
    )]
    Full(usize),
    /// A setting is out of range.
    #[error("{what} must be between {min} and {max}, not {found}")]
    Range {
        /// Which.
        what: &'static str,
        /// Least legal value.
        min: u64,
        /// Greatest legal value.
        max: u64,
        /// What was given.
        found: u64,
    },
    /// No adjacency to be had.
    #[error(transparent)]
    Fib(#[from] FibError),
}

/// A change that subscribers hear of, see [`Neighbors::on_change`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NeighborChange {
    /// The neighbour's interface.
    pub sw_if: SwIfIndex,
    /// Its address.
    pub ip: Ipv4Addr,
    /// Its MAC address; `None`: it is no longer known.
    pub mac: Option<Mac>,
    /// Somebody configured it to stay.
    pub is_static: bool,
    /// It shall have a route of its own (a /32): it is known, lies in a connected subnet, and
    /// nobody said `no-fib-entry`.
    pub fib_entry: bool,
}

/// A neighbour as `show` commands see it.
#[derive(Clone, Debug)]
pub struct Neighbor {
    /// Its interface.
    pub sw_if: SwIfIndex,
    /// Its address.
    pub ip: Ipv4Addr,
    /// Its MAC address, once known.
    pub mac: Option<Mac>,
    /// What is known of it.
    pub state: State,
    /// Somebody configured it to stay.
    pub is_static: bool,
    /// It gets no route of its own.
    pub no_fib_entry: bool,
    /// How it became known, or why it was asked for.
    pub origin: Origin,
    /// Time since it was last heard of or set.
    pub age: Duration,
    /// Its adjacency, once known: the column of its counters.
    pub dpo: Option<Dpo>,
}

/// What an operator says of a neighbour.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct NeighborFlags {
    /// It stays until deleted, whatever is heard.
    pub is_static: bool,
    /// It gets no route of its own.
    pub no_fib_entry: bool,
}

/// The topics on which workers report.
#[derive(Clone, Copy)]
pub(crate) struct Topics {
    pub(crate) reports: Topic,
    pub(crate) requests: Topic,
}

type Subscriber = Rc<dyn Fn(&mut Control, &NeighborChange)>;

/// The main thread's state.
pub struct Neighbors {
    table: NeighborTable,
    addrs: snapshot::Writer<IfAddrs>,
    subscribers: Vec<Subscriber>,
    timer: Option<(Instant, TimerId)>,
    conflicts: u64,
    /// All are being replaced: since when, and who was configured since.
    replacing: Option<(Instant, HashSet<Key>)>,
}

impl Neighbors {
    /// Calls `f` on each change of a neighbour that has or had a MAC address, on the main thread.
    /// The adjacency is complete before `f` hears of a neighbour, and incomplete again before it
    /// hears that it is gone; the same change may be told twice.
    pub fn on_change(&mut self, f: impl Fn(&mut Control, &NeighborChange) + 'static) {
        self.subscribers.push(Rc::new(f));
    }

    /// The settings.
    pub fn config(&self) -> Config {
        self.table.config
    }

    /// Events since start.
    pub fn stats(&self) -> TableStats {
        self.table.stats
    }

    /// Packets that claimed one of our addresses, as far as workers reported them.
    pub fn conflicts(&self) -> u64 {
        self.conflicts
    }

    /// Neighbours with a MAC address.
    pub fn len(&self) -> usize {
        self.table.resolved()
    }

    /// True if no neighbour is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An interface's addresses, as ARP was told.
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

    /// All neighbours by interface and address, incomplete and failed ones too.
    pub fn list(&self) -> Vec<Neighbor> {
        self.select(|_| true)
    }

    /// Those that were configured, by interface and address.
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

    /// Interface and address of each of them, in no order.
    pub(crate) fn keys(&self) -> Vec<(SwIfIndex, Ipv4Addr)> {
        self.table.iter().map(|(key, _)| key).collect()
    }

    /// One neighbour.
    pub fn find(&self, sw_if: SwIfIndex, ip: Ipv4Addr) -> Option<Neighbor> {
        self.table.get((sw_if, ip)).map(|e| self.view((sw_if, ip), e, Instant::now()))
    }
}

pub(crate) fn init(c: &mut Control) {
    let (addrs, snapshot) = snapshot::channel(IfAddrs::default());
    c.share(snapshot);
    c.insert(Neighbors {
        table: NeighborTable::new(Config::default()),
        addrs,
        subscribers: Vec::new(),
        timer: None,
        conflicts: 0,
        replacing: None,
    });
    let reports = c.topic("arp sender", handle_report);
    let requests = c.topic("arp wanted", handle_request);
    c.share(Arc::new(Topics { reports, requests }));
    c.state::<Interfaces>().borrow_mut().subscribe(interface_changed);
}

/// Changes the table, then does what follows from that.
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

/// Sees to it that the main thread wakes when the table next has something to do.
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
                // A later action of the same round has removed it.
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

/// Completes a neighbour's adjacency, which it holds for as long as it is known, and tells
/// subscribers.
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
            e.dpo = Some(f.adjacency(c, sw_if, IpAddr::V4(ip))?);
        }
        f.set_neighbor(c, sw_if, IpAddr::V4(ip), e.mac);
        e.in_fib = connected && !e.no_fib;
        NeighborChange { sw_if, ip, mac: e.mac, is_static: e.is_static, fib_entry: e.in_fib }
    };
    notify(c, &change);
    let dpo = state.borrow().table.get(key).and_then(|e| e.dpo);
    Ok(dpo)
}

fn withdraw(c: &mut Control, (sw_if, ip): Key, dpo: Option<Dpo>, is_static: bool) {
    let forwarding = c.state::<Forwarding>();
    forwarding.borrow_mut().set_neighbor(c, sw_if, IpAddr::V4(ip), None);
    notify(c, &NeighborChange { sw_if, ip, mac: None, is_static, fib_entry: false });
    if let Some(dpo) = dpo {
        forwarding.borrow_mut().release(c, dpo);
    }
}

fn notify(c: &mut Control, change: &NeighborChange) {
    let subscribers = c.state::<Neighbors>().borrow().subscribers.clone();
    for s in subscribers {
        s(c, change);
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
        // An adjacency's number may by now be another neighbour's: its packets must not follow.
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
        // Any worker may still believe that nobody answers.
        for request in [ResolveRequest::Host(key.0, key.1), ResolveRequest::Adjacency(dpo)] {
            for worker in 0..c.workers() {
                send_reply(c, worker, request, ResolveReply::Release { key: request.key(), dpo });
            }
        }
    }
}

/// The end of a silence that does not begin. Not "now": a worker compares with the time at which its
/// loop began, which may lie before.
const AT_ONCE: u64 = 0;

fn fail(c: &mut Control, waiters: &[Waiter], hold: Duration) {
    let until = if hold.is_zero() { AT_ONCE } else { clock::ticks() + clock::ticks_in(hold) };
    for w in waiters {
        let key = w.request.key();
        send_reply(c, usize::from(w.worker), w.request, ResolveReply::Fail { key, until });
    }
}

/// Sends a request by any worker.
fn send_request(c: &mut Control, (sw_if, ip): Key, to: Option<Mac>) {
    let source = c.state::<Neighbors>().borrow().addrs.get().source_for(sw_if, ip);
    let (Some(source), Ok(view)) = (source, interface::view(c, sw_if)) else { return };
    send(c, sw_if, view.output, packet::request(view.mac, source, ip, to).to_vec());
}

fn send(c: &mut Control, sw_if: SwIfIndex, node: NodeId, bytes: Vec<u8>) {
    if c.workers() > 0 {
        // Spread over workers by neighbour would gain nothing: these are few.
        c.inject(0, Inject { node, bytes, tx_if: sw_if, ..Inject::default() });
    }
}

// ---- what workers report -------------------------------------------------------------------

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

/// True if there is an Ethernet to ask on and an address to ask with.
fn can_resolve(c: &Control, (sw_if, ip): Key) -> bool {
    let state = c.state::<Neighbors>();
    let addrs = &state.borrow().addrs;
    let source = addrs.get().source_for(sw_if, ip);
    let view = interface::view(c, sw_if);
    source.is_some_and(|s| s != ip) && view.is_ok_and(|v| v.is_up() && v.ethernet)
}

fn interface_changed(c: &mut Control, event: InterfaceEvent) {
    match event {
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

// ---- what others ask for -------------------------------------------------------------------

/// Tells ARP which addresses an interface has now: all of them, with the lengths of their subnets'
/// prefixes. To be called on each change; for an interface that borrows another's addresses, with
/// those. Dynamic neighbours outside of what is left are forgotten.
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
    // Those that stay may gain or lose the subnet that makes them worth a route.
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

/// Has the router answer for these addresses as for its own, on interfaces with a subnet around them.
/// To be called with all of them on each change.
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

/// Configures a neighbour, new or known.
///
/// # Errors
/// [`ArpError`] if it cannot be one or there is no room; nothing has changed then.
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
        () if ip.is_multicast() => Some("it is a group's address"),
        () if ip.is_loopback() || ip.is_unspecified() || ip.is_broadcast() => {
            Some("no station on a link has it")
        }
        () => None,
    };
    if let Some(why) = why {
        return Err(ArpError::Address { ip, why });
    }
    // Taken here, so that failing to get one changes nothing.
    let key = (sw_if, ip);
    let dpo = c.state::<Forwarding>().borrow_mut().adjacency(c, sw_if, IpAddr::V4(ip))?;
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

/// From now on, the neighbours that are known go with [`finish_replacing`], unless they are configured
/// again or heard of.
pub fn begin_replacing(c: &mut Control) {
    c.state::<Neighbors>().borrow_mut().replacing = Some((Instant::now(), HashSet::new()));
}

/// Forgets the neighbours of which nothing was heard since [`begin_replacing`]; returns how many.
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

/// Forgets a neighbour.
///
/// # Errors
/// If the interface or the neighbour is unknown.
pub fn remove(c: &mut Control, sw_if: SwIfIndex, ip: Ipv4Addr) -> Result<(), ArpError> {
    let view = interface::view(c, sw_if).map_err(|_| ArpError::NoInterface(sw_if))?;
    if !update(c, |t, _| t.remove((sw_if, ip))) {
        return Err(ArpError::Unknown { ip, interface: view.name });
    }
    reset_reports(c);
    Ok(())
}

/// Forgets all neighbours but the static ones, of one interface or all; returns how many.
pub fn flush(c: &mut Control, sw_if: Option<SwIfIndex>) -> usize {
    let n = update(c, |t, _| t.flush(|k, e| !e.is_static && sw_if.is_none_or(|i| k.0 == i)));
    reset_reports(c);
    n
}

/// Asks for a neighbour, unless it is known or being asked for.
pub fn resolve(c: &mut Control, sw_if: SwIfIndex, ip: Ipv4Addr) {
    if can_resolve(c, (sw_if, ip)) {
        update(c, |t, now| t.request((sw_if, ip), None, false, now));
    }
}

/// Greatest limit of the table.
pub const MAX_LIMIT: usize = 1_000_000;

/// Changes the settings. A lower limit removes nobody, but lets nobody in.
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

/// Announces an interface's addresses to its link (RFC 5227 section 2.3). Never done unasked.
///
/// # Errors
/// If the interface does not exist or is no Ethernet.
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
