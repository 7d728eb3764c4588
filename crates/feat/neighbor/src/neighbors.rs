//! The neighbour table on the main thread: takes workers' reports and configuration, and performs
//! the table's actions.

use crate::hold::Throttle;
use crate::messages::{
    Asked, EndSilences, NeighborReport, Origin, ReportKind, ResetReports, ResolveReply,
    ResolveRequest, Topics,
};
use crate::table::{
    Action, Config, Entry, Key, MAX_AGE, MAX_LIMIT, NeighborTable, State, TableFull, TableStats,
    Waiter,
};
use crate::{Family, HoldNodes, Resolver};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_device::{InterfaceEvent, InterfaceView, MacAddr, SwIfIndex, interface};
use thalweg_fib::{Dpo, FibError, Forwarding, LinkType, Peer, Unresolved};
use thalweg_graph::control::TimerId;
use thalweg_graph::{Control, Event, Inject, NodeId, clock};
use thalweg_tables::limit::RateLimit;

/// Why a neighbour cannot be configured.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NeighborError {
    /// No feature resolves addresses of the family.
    #[error("no resolver is registered for {0} neighbours")]
    NoResolver(Family),
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
        ip: IpAddr,
        /// Reason.
        why: &'static str,
    },
    /// The neighbour does not exist.
    #[error("no neighbour {ip} on `{interface}`; `show ip neighbors` lists them")]
    Unknown {
        /// IP address.
        ip: IpAddr,
        /// Name of the interface.
        interface: String,
    },
    /// The family has as many neighbours as it may have.
    #[error(
        "the neighbour table is full: the limit is {limit} entries; \
         raise it by `set ip neighbor-config {} limit`",
        family.word()
    )]
    Full {
        /// Family.
        family: Family,
        /// The limit.
        limit: usize,
    },
    /// The interface has as many neighbours as it may have.
    #[error(
        "`{interface}` has {limit} {family} neighbours, which is the limit; \
         raise it by `set ip neighbor-config {} interface-limit`",
        family.word()
    )]
    InterfaceFull {
        /// Name of the interface.
        interface: String,
        /// Family.
        family: Family,
        /// The limit.
        limit: usize,
    },
    /// All families together have as many neighbours as the router can have.
    #[error("the neighbour table is full: it holds {MAX_LIMIT} entries of all families")]
    AllFull,
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
    pub ip: IpAddr,
    /// MAC address; `None` once the neighbour is unresolved.
    pub mac: Option<MacAddr>,
    /// Static: stays until deleted.
    pub is_static: bool,
    /// Whether to add a host route: the neighbour is resolved, lies in a connected subnet, and is
    /// not configured with `no-fib-entry`.
    pub fib_entry: bool,
}

/// A neighbour, for display.
#[derive(Clone, Debug)]
pub struct Neighbor {
    /// Interface.
    pub sw_if: SwIfIndex,
    /// IP address.
    pub ip: IpAddr,
    /// MAC address, once resolved.
    pub mac: Option<MacAddr>,
    /// State of resolution.
    pub state: State,
    /// Static: stays until deleted.
    pub is_static: bool,
    /// No host route for the neighbour.
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
    /// No host route for the neighbour.
    pub no_fib_entry: bool,
}

/// The neighbour table and its resolvers.
pub struct Neighbors {
    table: NeighborTable,
    resolvers: [Option<&'static dyn Resolver>; 2],
    holders: Vec<(LinkType, HoldNodes)>,
    timer: Option<(Instant, TimerId)>,
    /// When workers were last asked to report all senders again, and whether they will be.
    reset: Option<(Instant, bool)>,
    /// While all neighbours are being replaced: start time.
    replacing: Option<Instant>,
    /// Number of the current or next replacement.
    replacement: u64,
    /// Limits the requests for neighbours that new routes lead to; `None` if there are none.
    ahead: Option<RateLimit>,
}

impl Neighbors {
    pub(crate) fn add_resolver(&mut self, resolver: &'static dyn Resolver) {
        self.resolvers[resolver.family().index()] = Some(resolver);
    }

    pub(crate) fn add_holders(&mut self, link: LinkType, nodes: HoldNodes) {
        self.holders.push((link, nodes));
    }

    /// Returns the resolver of a family.
    ///
    /// # Errors
    /// [`NeighborError::NoResolver`].
    pub(crate) fn resolver(&self, family: Family) -> Result<&'static dyn Resolver, NeighborError> {
        self.resolvers[family.index()].ok_or(NeighborError::NoResolver(family))
    }

    /// Families that have a resolver.
    pub fn families(&self) -> impl Iterator<Item = Family> {
        Family::ALL.into_iter().filter(|f| self.resolvers[f.index()].is_some())
    }

    /// Settings of a family.
    ///
    /// # Errors
    /// [`NeighborError::NoResolver`].
    pub fn config(&self, family: Family) -> Result<Config, NeighborError> {
        self.resolver(family)?;
        Ok(self.table.config(family))
    }

    /// Counters of a family since start.
    pub fn stats(&self, family: Family) -> TableStats {
        self.table.stats(family)
    }

    /// Number of a family's neighbours with a MAC address.
    pub fn count(&self, family: Family) -> usize {
        self.table.resolved(family)
    }

    /// Number of neighbours with a MAC address.
    pub fn len(&self) -> usize {
        Family::ALL.into_iter().map(|f| self.count(f)).sum()
    }

    /// Returns whether no neighbour is resolved.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn view(&self, key: Key, e: &Entry, now: Instant) -> Neighbor {
        Neighbor {
            sw_if: key.0,
            ip: key.1,
            mac: e.mac,
            state: self.table.state(key, e, now),
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
        let now = clock::now();
        let some = self.table.iter().filter(|(_, e)| wanted(e));
        some.map(|(k, e)| self.view(k, e, now)).collect()
    }

    /// The first neighbour behind a key.
    pub(crate) fn after(&self, last: Bound<Key>) -> Option<Neighbor> {
        self.table.after(last).map(|(k, e)| self.view(k, e, clock::now()))
    }

    /// The neighbours on an interface with addresses from `first` to `last`, in order.
    pub fn between(
        &self,
        sw_if: SwIfIndex,
        first: IpAddr,
        last: IpAddr,
    ) -> impl Iterator<Item = Neighbor> {
        let now = Instant::now();
        let rows = self.table.range((sw_if, first), (sw_if, last));
        rows.map(move |(key, e)| self.view(key, e, now))
    }

    /// Looks up a neighbour.
    pub fn find(&self, sw_if: SwIfIndex, ip: IpAddr) -> Option<Neighbor> {
        self.table.get((sw_if, ip)).map(|e| self.view((sw_if, ip), e, clock::now()))
    }
}

pub(crate) fn init(c: &mut Control) {
    c.insert(Neighbors {
        table: NeighborTable::default(),
        resolvers: [None; 2],
        holders: Vec::new(),
        timer: None,
        reset: None,
        replacing: None,
        replacement: 1,
        ahead: None,
    });
    c.share(Arc::new(Throttle::new()));
    let reports = c.topic("neighbor sender", handle_report);
    let requests = c.topic("neighbor wanted", handle_request);
    c.share(Arc::new(Topics { reports, requests }));
    c.subscribe(interface_changed);
    c.subscribe(|c, new: &Unresolved| {
        let state = c.state::<Neighbors>();
        for (sw_if, ip) in &new.0 {
            // Some need no answer: that of a broadcast address, or of who was heard meanwhile.
            let forwarding = c.state::<Forwarding>();
            let has_mac = |link: LinkType| {
                forwarding.borrow().find(*sw_if, link, *ip).is_none_or(|a| a.mac.is_some())
            };
            if LinkType::ALL.into_iter().all(has_mac) {
                continue;
            }
            let allowed =
                state.borrow_mut().ahead.as_mut().is_some_and(|l| l.allow(clock::ticks()));
            if !allowed {
                return;
            }
            probe(c, *sw_if, *ip);
        }
    });
    interface::before_delete(c, leave);
}

/// Requests per second, and at once, for neighbours that routes lead to.
const AHEAD: (u32, u32) = (1000, 256);

/// Has neighbours that new routes lead to asked for at once, before there are packets for them, as
/// VPP does. The router does so; labs that look at single frames do not.
pub fn ask_for_next_hops(c: &mut Control) {
    let limit = RateLimit::steady(AHEAD.0, AHEAD.1, clock::hz() as u64);
    c.state::<Neighbors>().borrow_mut().ahead = Some(limit);
}

pub(crate) fn resolver(c: &Control, ip: IpAddr) -> Result<&'static dyn Resolver, NeighborError> {
    c.state::<Neighbors>().borrow().resolver(Family::of(ip))
}

/// Changes the table, then performs the resulting actions.
fn update<R>(c: &mut Control, f: impl FnOnce(&mut NeighborTable, Instant) -> R) -> R {
    let state = c.state::<Neighbors>();
    let (result, actions) = {
        let table = &mut state.borrow_mut().table;
        let result = f(table, clock::now());
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
    let now = clock::now();
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
    let connected = resolver(c, ip).is_ok_and(|r| r.is_connected(c, sw_if, ip));
    let state = c.state::<Neighbors>();
    let forwarding = c.state::<Forwarding>();
    let change = {
        let mut s = state.borrow_mut();
        let Some(e) = s.table.get_mut(key) else { return Ok(None) };
        let mut f = forwarding.borrow_mut();
        if e.dpo.is_none() {
            e.dpo = Some(f.adjacency(c, sw_if, Family::of(ip).link(), Peer::Neighbor(ip))?);
        }
        f.set_neighbor(c, sw_if, ip, e.mac);
        e.in_fib = connected && !e.no_fib;
        NeighborChange { sw_if, ip, mac: e.mac, is_static: e.is_static, fib_entry: e.in_fib }
    };
    c.publish(change);
    let dpo = state.borrow().table.get(key).and_then(|e| e.dpo);
    Ok(dpo)
}

fn withdraw(c: &mut Control, (sw_if, ip): Key, dpo: Option<Dpo>, is_static: bool) {
    let forwarding = c.state::<Forwarding>();
    forwarding.borrow_mut().set_neighbor(c, sw_if, ip, None);
    c.publish(NeighborChange { sw_if, ip, mac: None, is_static, fib_entry: false });
    if let Some(dpo) = dpo {
        forwarding.borrow_mut().release(c, dpo);
    }
}

fn send_reply(c: &mut Control, worker: usize, node: NodeId, reply: ResolveReply) {
    if worker < c.workers() {
        c.message(worker, node, Box::new(reply));
    }
}

fn release(c: &mut Control, key: Key, dpo: Dpo, waiters: &[Waiter], revived: bool) {
    let forwarding = c.state::<Forwarding>();
    for w in waiters {
        let request = w.request;
        // One of the neighbour's adjacencies, by link type. The index may by now belong to another
        // neighbour: these packets must not follow.
        let is_own = |own| forwarding.borrow().owner(own) == Some((key.0, Some(key.1)));
        let reply = match request.dpo {
            None => ResolveReply::Release { request, dpo },
            Some(own) if is_own(own) => ResolveReply::Release { request, dpo: own },
            Some(_) => ResolveReply::Fail { request, until: AT_ONCE },
        };
        send_reply(c, usize::from(w.worker), w.node, reply);
    }
    if revived {
        revive(c, key, dpo);
    }
}

/// Ends the silence of a neighbour on all workers.
fn revive(c: &mut Control, (sw_if, ip): Key, dpo: Dpo) {
    let holders = c.state::<Neighbors>().borrow().holders.clone();
    for (link, nodes) in holders {
        let glean = nodes.glean.filter(|_| link == Family::of(ip).link());
        let host = glean.map(|node| (node, None, dpo));
        let own = c.state::<Forwarding>().borrow().find(sw_if, link, ip).map(|a| a.dpo);
        let own = own.map(|own| (nodes.incomplete, Some(own), own));
        for (name, by, dpo) in [host, own].into_iter().flatten() {
            let Some(node) = c.node(name) else { continue };
            let request = ResolveRequest { sw_if, ip, dpo: by };
            for worker in 0..c.workers() {
                send_reply(c, worker, node, ResolveReply::Release { request, dpo });
            }
        }
    }
}

/// Makes workers ask again for neighbours that have not answered, and are no longer remembered.
fn end_silences(c: &mut Control, which: EndSilences) {
    let holders = c.state::<Neighbors>().borrow().holders.clone();
    for (_, nodes) in holders {
        for name in [Some(nodes.incomplete), nodes.glean].into_iter().flatten() {
            if let Some(node) = c.node(name) {
                c.message_all(node, |_| Box::new(which));
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
        let reply = ResolveReply::Fail { request: w.request, until };
        send_reply(c, usize::from(w.worker), w.node, reply);
    }
}

fn send_request(c: &mut Control, (sw_if, ip): Key, to: Option<MacAddr>) {
    let (Ok(resolver), Ok(view)) = (resolver(c, ip), interface::view(c, sw_if)) else { return };
    if resolver.can_ask(c, sw_if, ip) {
        resolver.ask(c, &view, ip, to);
    }
}

/// Sends an untagged frame by an interface, which adds its tags.
pub fn send(c: &mut Control, view: &InterfaceView, frame: &[u8]) {
    if c.workers() > 0 {
        let bytes = view.tags.insert(frame);
        // Requests are few: spreading them over workers gains nothing.
        c.inject(0, Inject { node: view.output, bytes, tx_if: view.sw_if, ..Inject::default() });
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
            // The report may be older than the last change of addresses, or of the link.
            let peer = resolver(c, ip).is_ok_and(|r| r.is_peer(c, sw_if, ip));
            if peer && interface::is_current(c, sw_if, event.at) {
                update(c, |t, now| t.learn((sw_if, ip), mac, origin, now));
            } else if peer {
                // It may be heard again right after this.
                reset_reports(c);
            }
        }
        ReportKind::Conflict => {
            c.state::<Neighbors>().borrow_mut().table.count_conflict(Family::of(ip));
            let (name, mac) = (c.interface_name(sw_if), mac);
            tracing::warn!("{name}: our address {ip} is also used by {mac}");
        }
    }
}

fn handle_request(c: &mut Control, event: &Event) {
    let Some(Asked { request, node }) = Asked::decode(event.bytes()) else { return };
    let waiter = Waiter { worker: event.worker, node, request };
    let key @ (sw_if, ip) = (request.sw_if, request.ip);
    let owner = request.dpo.and_then(|dpo| c.state::<Forwarding>().borrow().owner(dpo));
    if request.dpo.is_some() && owner != Some((sw_if, Some(ip))) {
        // The adjacency was deleted meanwhile.
        fail(c, &[waiter], Duration::ZERO);
    } else if can_resolve(c, key) {
        let sent = request.dpo.is_none();
        update(c, |t, now| t.request(key, Some(waiter), sent, now));
    } else {
        fail(c, &[waiter], Duration::from_secs(1));
    }
}

/// Returns whether the interface is Ethernet, is up and has a source address for requests.
fn can_resolve(c: &Control, (sw_if, ip): Key) -> bool {
    let ready = interface::view(c, sw_if).is_ok_and(|v| v.is_up() && v.ethernet);
    ready && resolver(c, ip).is_ok_and(|r| r.can_ask(c, sw_if, ip))
}

fn interface_changed(c: &mut Control, event: &InterfaceEvent) {
    match *event {
        InterfaceEvent::State(i) if interface::view(c, i).is_ok_and(|v| !v.is_up()) => {
            flush(c, Some(i), None);
        }
        // Nobody could be asked before.
        InterfaceEvent::State(i) => end_silences(c, EndSilences { sw_if: Some(i), ip: None }),
        InterfaceEvent::Deleted(i) => {
            remove_which(c, Some(i), None, |_, _| true);
            reset_reports(c);
        }
        _ => {}
    }
}

/// Removes the neighbours of an interface (or of all) and a family (or of all) that `which`
/// matches; returns their number.
fn remove_which(
    c: &mut Control,
    sw_if: Option<SwIfIndex>,
    family: Option<Family>,
    which: impl Fn(Key, &Entry) -> bool,
) -> usize {
    update(c, |t, _| {
        let keys = t.keys(sw_if, family, which);
        t.remove_all(&keys)
    })
}

/// Least time between messages to all workers, however many interfaces change.
const RESET_INTERVAL: Duration = Duration::from_millis(10);

/// Makes workers report all senders again: what they reported was not learned, or forgotten.
fn reset_reports(c: &mut Control) {
    let state = c.state::<Neighbors>();
    let now = clock::now();
    let last = state.borrow().reset;
    match last {
        Some((_, true)) => {}
        Some((at, false)) if now < at + RESET_INTERVAL => {
            state.borrow_mut().reset = Some((at, true));
            c.after(RESET_INTERVAL, reset_reports_now);
        }
        _ => reset_reports_now(c),
    }
}

fn reset_reports_now(c: &mut Control) {
    let state = c.state::<Neighbors>();
    state.borrow_mut().reset = Some((clock::now(), false));
    let resolvers = state.borrow().resolvers;
    for resolver in resolvers.into_iter().flatten() {
        if let Some(node) = c.node(resolver.reporter()) {
            c.message_all(node, |_| Box::new(ResetReports));
        }
    }
}

// ---- configuration -------------------------------------------------------------------------

/// To be called by a resolver after each change of an interface's addresses: dynamic neighbours
/// that are no longer peers are deleted.
pub fn addresses_changed(c: &mut Control, family: Family, sw_if: SwIfIndex) {
    let state = c.state::<Neighbors>();
    let Ok(resolver) = state.borrow().resolver(family) else { return };
    let keys = |static_ones: bool| {
        let of = |_, e: &Entry| e.mac.is_some() && e.is_static == static_ones;
        state.borrow().table.keys(Some(sw_if), Some(family), of)
    };
    let is_peer = |key: &Key| resolver.is_peer(c, sw_if, key.1);
    let (stay, go): (Vec<Key>, Vec<Key>) = keys(false).into_iter().partition(is_peer);
    if update(c, |t, _| t.remove_all(&go)) > 0 {
        reset_reports(c);
    }
    // Neighbours that stay may gain or lose the subnet that entitles them to a host route.
    for key in stay.into_iter().chain(keys(true)) {
        let connected = resolver.is_connected(c, sw_if, key.1);
        let wants = |e: &Entry| (connected && !e.no_fib) != e.in_fib;
        if state.borrow().table.get(key).is_some_and(wants) {
            perform(c, Action::Resolved { key, waiters: Vec::new(), revived: false });
        }
    }
}

/// Configures a neighbour.
///
/// # Errors
/// [`NeighborError`] if the address cannot be a neighbour or the table is full; nothing has changed
/// then.
pub fn set(
    c: &mut Control,
    sw_if: SwIfIndex,
    ip: IpAddr,
    mac: MacAddr,
    flags: NeighborFlags,
) -> Result<(), NeighborError> {
    let resolver = resolver(c, ip)?;
    let view = interface::view(c, sw_if).map_err(|_| NeighborError::NoInterface(sw_if))?;
    if !view.ethernet {
        return Err(NeighborError::NotEthernet(view.name));
    }
    if !mac.is_unicast() {
        return Err(NeighborError::Mac(mac.to_string()));
    }
    if let Some(why) = resolver.refuse(c, sw_if, ip) {
        return Err(NeighborError::Address { ip, why });
    }
    // Acquired here, so that a failure changes nothing.
    let (key, family) = ((sw_if, ip), Family::of(ip));
    let forwarding = c.state::<Forwarding>();
    let peer = Peer::Neighbor(ip);
    let dpo = forwarding.borrow_mut().adjacency(c, sw_if, family.link(), peer)?;
    let NeighborFlags { is_static, no_fib_entry } = flags;
    let done = update(c, |t, now| t.set(key, mac, is_static, no_fib_entry, now));
    forwarding.borrow_mut().release(c, dpo);
    done.map_err(|full| match full {
        TableFull::Family(limit) => NeighborError::Full { family, limit },
        TableFull::Interface(limit) => {
            NeighborError::InterfaceFull { interface: view.name, family, limit }
        }
        TableFull::All => NeighborError::AllFull,
    })?;
    let state = c.state::<Neighbors>();
    let mut s = state.borrow_mut();
    let number = s.replacement;
    if let Some(e) = s.table.get_mut(key) {
        e.replacement = number;
    }
    Ok(())
}

/// Marks all neighbours. [`finish_replacing`] deletes those that were neither configured nor heard
/// since.
pub fn begin_replacing(c: &mut Control) {
    let state = c.state::<Neighbors>();
    let mut s = state.borrow_mut();
    s.replacing = Some(clock::now());
    s.replacement += 1;
}

/// Deletes the neighbours that were neither configured nor heard since [`begin_replacing`]; returns
/// their number.
pub fn finish_replacing(c: &mut Control) -> usize {
    let state = c.state::<Neighbors>();
    let (replacing, number) = {
        let mut s = state.borrow_mut();
        (s.replacing.take(), s.replacement)
    };
    let Some(since) = replacing else { return 0 };
    let n = update(c, |t, now| {
        let passed = now.saturating_duration_since(since);
        let stale = |e: &Entry| e.is_static || t.age(e, now) > passed;
        let keys = t.keys(None, None, |_, e| e.replacement != number && stale(e));
        t.remove_all(&keys)
    });
    reset_reports(c);
    n
}

/// Deletes a neighbour.
///
/// # Errors
/// If the interface or the neighbour does not exist.
pub fn remove(c: &mut Control, sw_if: SwIfIndex, ip: IpAddr) -> Result<(), NeighborError> {
    resolver(c, ip)?;
    let view = interface::view(c, sw_if).map_err(|_| NeighborError::NoInterface(sw_if))?;
    if !update(c, |t, _| t.remove((sw_if, ip))) {
        return Err(NeighborError::Unknown { ip, interface: view.name });
    }
    end_silences(c, EndSilences { sw_if: Some(sw_if), ip: Some(ip) });
    reset_reports(c);
    Ok(())
}

/// Flushes the dynamic neighbours of one interface or of all, of one family or of all; returns the
/// number of those that are gone already. If they are many, the others follow in slices.
pub fn flush(c: &mut Control, sw_if: Option<SwIfIndex>, family: Option<Family>) -> usize {
    flush_then(c, sw_if, family, |_| {})
}

/// As [`flush`]; then calls `done` with the number of all.
pub fn flush_then(
    c: &mut Control,
    sw_if: Option<SwIfIndex>,
    family: Option<Family>,
    done: impl FnOnce(usize) + 'static,
) -> usize {
    end_silences(c, EndSilences { sw_if, ip: None });
    let (began, done) = (clock::now(), Box::new(done));
    let of = (sw_if, family);
    flush_slice(c, FlushJob { of, began, last: Bound::Unbounded, gone: 0, done })
}

/// Maximum time of a flush per slice, and entries visited between reads of the clock.
const FLUSH_SLICE: Duration = Duration::from_millis(1);
const FLUSHED_AT_ONCE: usize = 256;

/// A flush in progress.
struct FlushJob {
    of: (Option<SwIfIndex>, Option<Family>),
    /// What was heard or configured since stays.
    began: Instant,
    last: Bound<Key>,
    gone: usize,
    done: Box<dyn FnOnce(usize)>,
}

/// Returns the number of neighbours that are gone.
fn flush_slice(c: &mut Control, mut job: FlushJob) -> usize {
    let start = Instant::now();
    loop {
        let (last, began) = (job.last, job.began);
        let (n, next) = update(c, |t, _| {
            let meant = |e: &Entry| !e.is_static && NeighborTable::is_older(e, began);
            let (keys, next) = t.some_keys(last, FLUSHED_AT_ONCE, job.of, meant);
            (t.remove_all(&keys), next)
        });
        job.gone += n;
        let Some(next) = next else { break };
        job.last = next;
        if start.elapsed() >= FLUSH_SLICE {
            let gone = job.gone;
            c.after(Duration::ZERO, |c| _ = flush_slice(c, job));
            return gone;
        }
    }
    // Those that were removed may be heard again.
    reset_reports(c);
    (job.done)(job.gone);
    job.gone
}

/// Removes the next neighbours of an interface that is being deleted, in a slice. Returns whether
/// some are left.
fn leave(c: &mut Control, sw_if: SwIfIndex) -> bool {
    let start = Instant::now();
    loop {
        let all = (Some(sw_if), None);
        let n = update(c, |t, _| {
            let (keys, _) = t.some_keys(Bound::Unbounded, FLUSHED_AT_ONCE, all, |_| true);
            t.remove_all(&keys)
        });
        if n < FLUSHED_AT_ONCE {
            return false;
        }
        if start.elapsed() >= FLUSH_SLICE {
            return true;
        }
    }
}

/// Starts resolving a neighbour, unless it is resolved or pending.
pub fn resolve(c: &mut Control, sw_if: SwIfIndex, ip: IpAddr) {
    if can_resolve(c, (sw_if, ip)) {
        update(c, |t, now| t.request((sw_if, ip), None, false, now));
    }
}

/// As [`resolve`], by one request: nothing is remembered of a neighbour that does not answer.
pub fn probe(c: &mut Control, sw_if: SwIfIndex, ip: IpAddr) {
    if can_resolve(c, (sw_if, ip)) {
        update(c, |t, now| t.request_once((sw_if, ip), now));
    }
}

/// Sets the least time between requests for one neighbour that packets make workers repeat. For
/// tests, which must not depend on how fast they run.
pub fn set_throttle(c: &Control, least: Duration) {
    let ticks = clock::ticks_in(least);
    c.shared::<Throttle>().0.store(ticks, std::sync::atomic::Ordering::Relaxed);
}

/// Changes the settings of a family. A lower limit deletes nothing, but refuses new neighbours.
///
/// # Errors
/// [`NeighborError::Range`] for a limit of zero or beyond [`MAX_LIMIT`], or an age beyond
/// [`MAX_AGE`].
pub fn set_config(c: &mut Control, family: Family, config: Config) -> Result<(), NeighborError> {
    c.state::<Neighbors>().borrow().resolver(family)?;
    for (what, limit) in [("limit", config.limit), ("interface limit", config.interface_limit)] {
        if limit == 0 || limit > MAX_LIMIT {
            let (max, found) = (MAX_LIMIT as u64, limit as u64);
            return Err(NeighborError::Range { what, min: 1, max, found });
        }
    }
    let (max, found) = (MAX_AGE.as_secs(), config.age.as_secs());
    if config.age > MAX_AGE {
        return Err(NeighborError::Range { what: "age", min: 0, max, found });
    }
    update(c, |t, _| t.set_config(family, config));
    Ok(())
}

/// Announces an interface's addresses to its link; returns their number. Only done on request.
///
/// # Errors
/// If the interface does not exist or is not Ethernet.
pub fn announce(c: &mut Control, sw_if: SwIfIndex) -> Result<usize, NeighborError> {
    let view = interface::view(c, sw_if).map_err(|_| NeighborError::NoInterface(sw_if))?;
    if !view.ethernet {
        return Err(NeighborError::NotEthernet(view.name));
    }
    let resolvers = c.state::<Neighbors>().borrow().resolvers;
    Ok(resolvers.into_iter().flatten().map(|r| r.announce(c, &view)).sum())
}
