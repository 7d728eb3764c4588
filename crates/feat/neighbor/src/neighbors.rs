//! The neighbour table on the main thread: takes workers' reports and configuration, and performs
//! the table's actions.

mod actions;
mod error;
mod flush;
mod reports;

pub use actions::send;
pub use error::NeighborError;
pub use flush::{flush, flush_then};

use crate::awaited::Awaited;
use crate::hold::Throttle;
use crate::messages::{EndSilences, Origin, Topics};
use crate::table::{
    Action, Config, Entry, Key, MAX_AGE, MAX_LIMIT, NeighborTable, State, TableFull, TableStats,
};
use crate::{HoldNodes, Resolver, Version};
use actions::{drop_held_of, end_silences, perform};
use flush::leave;
pub(crate) use reports::check_reporters;
use reports::{handle_report, handle_request, reset_reports};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_device::{InterfaceEvent, InterfaceView, MacAddr, SwIfIndex, interface};
use thalweg_fib::{Dpo, Forwarding, LinkType, Peer, Unresolved};
use thalweg_graph::control::TimerId;
use thalweg_graph::{Control, clock};
use thalweg_tables::limit::RateLimit;

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
    /// True to add a host route: the neighbour is resolved, lies in a connected subnet, and is not
    /// configured with `no-fib-entry`.
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
    /// Way in which it was learned, or reason why it was requested.
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
    /// Time when workers were last asked to report all senders again, and whether they will be.
    reset: Option<(Instant, bool)>,
    /// Start time of a replacement of all neighbours.
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
    pub(crate) fn resolver(&self, family: Version) -> Result<&'static dyn Resolver, NeighborError> {
        self.resolvers[family.index()].ok_or(NeighborError::NoResolver(family))
    }

    /// Families that have a resolver.
    pub fn families(&self) -> impl Iterator<Item = Version> {
        Version::ALL.into_iter().filter(|f| self.resolvers[f.index()].is_some())
    }

    /// Settings of a family.
    ///
    /// # Errors
    /// [`NeighborError::NoResolver`].
    pub fn config(&self, family: Version) -> Result<Config, NeighborError> {
        self.resolver(family)?;
        Ok(self.table.config(family))
    }

    /// Counters of a family since start.
    pub fn stats(&self, family: Version) -> TableStats {
        self.table.stats(family)
    }

    /// Number of a family's neighbours with a MAC address.
    pub fn count(&self, family: Version) -> usize {
        self.table.resolved(family)
    }

    /// Number of neighbours with a MAC address.
    pub fn len(&self) -> usize {
        Version::ALL.into_iter().map(|f| self.count(f)).sum()
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

    /// Static neighbours, those of the configuration, by interface and address.
    pub(crate) fn configured(&self) -> Vec<Neighbor> {
        self.select(|e| e.is_static)
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
    c.share(Arc::new(Awaited::new()));
    let reports = c.topic("neighbor sender", handle_report);
    let requests = c.topic("neighbor wanted", handle_request);
    c.share(Arc::new(Topics { reports, requests }));
    c.subscribe(interface_changed);
    c.subscribe(|c, new: &Unresolved| {
        let state = c.state::<Neighbors>();
        for (sw_if, ip) in &new.0 {
            // Some need no answer: that of a broadcast address, or of a neighbour that was heard
            // meanwhile.
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

/// Asks for neighbours that new routes lead to at once, before packets come, as VPP does. The
/// router does so; labs that look at single frames do not.
pub fn ask_for_next_hops(c: &mut Control) {
    let limit = RateLimit::steady(AHEAD.0, AHEAD.1, clock::hz() as u64);
    c.state::<Neighbors>().borrow_mut().ahead = Some(limit);
}

pub(crate) fn resolver(c: &Control, ip: IpAddr) -> Result<&'static dyn Resolver, NeighborError> {
    c.state::<Neighbors>().borrow().resolver(Version::of_ip(ip))
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
            c.state::<Neighbors>().borrow_mut().table.forget_early(i);
            remove_which(c, Some(i), None, |_, _| true);
            drop_held_of(c, i);
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
    family: Option<Version>,
    which: impl Fn(Key, &Entry) -> bool,
) -> usize {
    update(c, |t, _| {
        let keys = t.keys(sw_if, family, which);
        t.remove_all(&keys)
    })
}

/// Resolvers call this after each change of an interface's addresses: dynamic neighbours that are
/// no longer peers are deleted.
pub fn addresses_changed(c: &mut Control, family: Version, sw_if: SwIfIndex) {
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
    let view = check(c, sw_if, ip, mac)?;
    // Acquired here, so that a failure changes nothing.
    let (key, family) = ((sw_if, ip), Version::of_ip(ip));
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

/// Checks that an address can be a neighbour's; returns its interface.
fn check(
    c: &Control,
    sw_if: SwIfIndex,
    ip: IpAddr,
    mac: MacAddr,
) -> Result<InterfaceView, NeighborError> {
    let resolver = resolver(c, ip)?;
    let view = interface::view(c, sw_if).map_err(|_| NeighborError::NoInterface(sw_if))?;
    if !view.ethernet {
        return Err(NeighborError::NotEthernet(view.name));
    }
    if !mac.is_unicast() {
        return Err(NeighborError::Mac(mac.to_string()));
    }
    match resolver.refuse(c, sw_if, ip) {
        Some(why) => Err(NeighborError::Address { ip, why }),
        None => Ok(view),
    }
}

/// Learns a neighbour that others have heard, such as a host's network stack behind the interface.
/// Whoever can make that learn can fill the table by it: in a full one such neighbours give way as
/// all do that are only heard. Static ones stay. Returns whether the neighbour is known so.
///
/// # Errors
/// [`NeighborError`] if the address cannot be a neighbour.
pub fn hear(
    c: &mut Control,
    sw_if: SwIfIndex,
    ip: IpAddr,
    mac: MacAddr,
) -> Result<bool, NeighborError> {
    check(c, sw_if, ip, mac)?;
    update(c, |t, now| t.learn((sw_if, ip), mac, Origin::Request, now));
    let known = c.state::<Neighbors>().borrow().find(sw_if, ip);
    Ok(known.is_some_and(|n| n.mac == Some(mac)))
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

/// Starts resolving a neighbour, unless it is resolved or pending.
pub fn resolve(c: &mut Control, sw_if: SwIfIndex, ip: IpAddr) {
    if can_resolve(c, (sw_if, ip)) {
        update(c, |t, now| t.request((sw_if, ip), None, false, now));
    }
}

/// Resolves a neighbour like [`resolve`], by one request: a neighbour that does not answer is
/// forgotten.
pub fn probe(c: &mut Control, sw_if: SwIfIndex, ip: IpAddr) {
    if can_resolve(c, (sw_if, ip)) {
        update(c, |t, now| t.request_once((sw_if, ip), now));
    }
}

/// Asks a neighbour whether it is still there, as when it has not been heard for long: another
/// interface has heard its address.
pub fn confirm(c: &mut Control, sw_if: SwIfIndex, ip: IpAddr) {
    if can_resolve(c, (sw_if, ip)) {
        update(c, |t, now| t.confirm((sw_if, ip), now));
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
pub fn set_config(c: &mut Control, family: Version, config: Config) -> Result<(), NeighborError> {
    c.state::<Neighbors>().borrow().resolver(family)?;
    for (what, limit) in [("limit", config.limit), ("interface limit", config.interface_limit)] {
        if limit == 0 || limit > MAX_LIMIT {
            let (max, found) = (MAX_LIMIT as u64, limit as u64);
            return Err(NeighborError::Range { what, min: 1, max, found });
        }
    }
    let (all, most) = c.state::<Neighbors>().borrow().table.statics(family);
    for (what, limit, statics) in
        [("limit", config.limit, all), ("interface limit", config.interface_limit, most)]
    {
        // Another router could not be configured like this one.
        if limit < statics {
            return Err(NeighborError::Statics { what, limit, statics });
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
