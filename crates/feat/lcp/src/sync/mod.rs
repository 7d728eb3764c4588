//! Interfaces and their twins have the same state.
//!
//! For each namespace with twins there is a [mirror](thalweg_device_linux::mirror), a thread that
//! reports twins as they are and changes them as ordered. `seen` always takes from its reports to
//! the interface what Linux has changed; `wanted` orders what the interface has and the twin has
//! not, while `lcp lcp-sync` is on. If both change, the last one wins: a report from before the
//! last order is not looked at, as another follows it: what is due is ordered before reports are
//! looked at. Nothing that is equal is set, so that one side's change does not come back.
//!
//! | | interface to twin | twin to interface |
//! | --- | --- | --- |
//! | carrier, speed | always | never |
//! | MAC address | always | always |
//! | state, MTU | with `lcp-sync` | always |
//! | labelled packets taken | with `lcp-sync` | always |
//! | addresses | with `lcp-sync` | always, as ones that were found: no part of the configuration |
//! | IPv6 link-local address | never | always |
//! | VRF | never | always, with the written addresses |
//! | neighbours | another MAC address | those that the interface has not written |
//!
//! Settings and addresses that an interface refuses are tried again when something changes that may
//! have stood in the way.
//!
//! IPv6 addresses that the kernel takes from a twin that goes down are not deleted by a user:
//! written ones stay on the interface, and come back with the twin.

mod addresses;
mod labels;
mod neighbours;
mod reports;
mod seen;
mod unattached;
mod virtuals;
mod vlans;
mod wanted;
mod wishes;

use crate::make;
use crate::options;
use crate::pairs::{Made, Pair, Pairs, Place};
use crate::routes;
use neighbours::Lacking;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;
use thalweg_device::{InterfaceEvent, MacAddr, SwIfIndex, interface};
use thalweg_device_linux::mirror::{Change, Lower, Mirror, MirrorCounters};
use thalweg_device_linux::{Namespace, NamespaceId};
use thalweg_device_tap as tap;
use thalweg_engine::Started;
use thalweg_feat_ip::{
    AddressesChanged, FoundDisplaced, FoundDisplacing, InterfaceTableChanged, TableDeleted,
};
use thalweg_feat_mpls::{EnabledChanged, LabelTableDeleted};
use thalweg_feat_neighbor::NeighborChange;
use thalweg_graph::Control;
use thalweg_netlink::label::LabelInput;
use thalweg_netlink::{Link, LinkAddress, Port};
use unattached::Unattached;
use wishes::Wish;

pub(crate) use wishes::refused;

/// An address and the length of its prefix.
type Prefixed = (IpAddr, u8);

/// Interval at which VLAN links are made that could not be made before.
const AGAIN: Duration = Duration::from_secs(1);
/// Interval at which interfaces are offered again what they refused of their twins, if nothing else
/// has them asked.
const REFUSED_AGAIN: Duration = Duration::from_secs(10);

/// A twin as it was seen last, with what has been ordered since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    up: bool,
    mtu: u32,
    mac: Option<MacAddr>,
    vrf: Option<u32>,
    /// True if it takes labelled packets; `None` if the kernel knows none.
    labels: Option<bool>,
    addresses: BTreeSet<Prefixed>,
    link_local: Option<IpAddr>,
    /// Further link-local addresses, such as a virtual router's.
    more_link_locals: BTreeSet<IpAddr>,
    /// The link that a VLAN link is on.
    lower: Option<Lower>,
}

/// Memory of a twin.
#[derive(Debug)]
struct Twin {
    place: Place,
    /// Number of the last order.
    order: u64,
    /// The interface has changed since: an order is due.
    is_due: bool,
    /// State as last seen; `None` before that.
    known: Option<Known>,
    /// True if the twin was down since it was known to be so: a report came that was not looked at.
    was_down: bool,
    /// True if the twin was there before the router, whose start is not over: nothing is ordered or
    /// taken yet, as the router does not know all.
    is_held: bool,
    /// Changes that the kernel has refused: none is ordered again before something else changes, or
    /// some time has passed.
    denied: Change,
    /// Intervals for which there have been such, since the interface has changed.
    denied_for: u32,
    /// Refusals that the log has since then.
    said: Change,
    /// The same, since a report was looked at.
    refused_since: Change,
    /// Addresses from it are being taken from the interface, to stay in Linux alone.
    is_displaced: bool,
    /// A report is being taken, after which it gets orders.
    is_taken: bool,
    /// Addresses that both sides have had: one that the interface loses is taken from the twin.
    shared: BTreeSet<Prefixed>,
    /// Addresses that the interface has from the twin.
    found: BTreeSet<Prefixed>,
    /// Addresses of the twin that the interface cannot have, with the reasons.
    refused: BTreeMap<Prefixed, String>,
    /// Other settings of the twin that the interface does not take.
    wishes: BTreeMap<Wish, wishes::Refused>,
    /// Neighbours that the interface has from the twin, as Linux has written them.
    neighbours: BTreeSet<IpAddr>,
    /// MAC addresses of neighbours that the kernel has, as it was heard last.
    macs: BTreeMap<IpAddr, MacAddr>,
    /// Reason why a neighbour that Linux has written was refused last.
    lacking_why: String,
}

impl Twin {
    fn at(place: Place) -> Twin {
        Twin {
            place,
            order: 0,
            is_due: false,
            known: None,
            was_down: false,
            is_held: false,
            denied: Change::default(),
            denied_for: 0,
            said: Change::default(),
            refused_since: Change::default(),
            is_displaced: false,
            is_taken: false,
            shared: BTreeSet::new(),
            found: BTreeSet::new(),
            refused: BTreeMap::new(),
            wishes: BTreeMap::new(),
            neighbours: BTreeSet::new(),
            macs: BTreeMap::new(),
            lacking_why: String::new(),
        }
    }
}

/// All twins, and the namespaces in which they are.
#[derive(Default)]
pub(crate) struct Sync {
    mirrors: BTreeMap<NamespaceId, (String, Mirror)>,
    /// Reports that are being taken.
    reports: BTreeMap<NamespaceId, reports::Rest>,
    twins: BTreeMap<SwIfIndex, Twin>,
    by_place: BTreeMap<Place, SwIfIndex>,
    /// Interfaces whose twins may get an order soon.
    due: VecDeque<SwIfIndex>,
    /// Sub-interfaces that were made for VLAN links of Linux.
    from_linux: BTreeSet<SwIfIndex>,
    /// Links on twins that have MAC and IP addresses of their own.
    virtuals: BTreeMap<Place, virtuals::Virtual>,
    /// Settings that interfaces take for their twins.
    taken: BTreeMap<SwIfIndex, virtuals::Taken>,
    /// Interfaces that have refused something of their twins.
    refusing: BTreeSet<SwIfIndex>,
    /// They are looked at again soon.
    refusing_again: bool,
    /// Written neighbours that interfaces have refused.
    lacking: Lacking,
    /// Interfaces whose twins are there, and not followed.
    unattached: Unattached,
    /// Interfaces whose VLAN links are not there.
    waiting: BTreeMap<SwIfIndex, vlans::Waiting>,
    /// One is being made: its twin is there.
    making: bool,
    /// The router's start is over.
    started: bool,
    counters: Counters,
}

/// Counters of all namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Changes of twins that interfaces have taken.
    pub taken: u64,
    /// Changes of twins that interfaces have refused.
    pub not_taken: u64,
}

/// A namespace, for `show lcp verbose`.
#[derive(Clone, Debug)]
pub struct NamespaceView {
    /// Name, empty for the router's own.
    pub name: String,
    /// Twins in it.
    pub twins: usize,
    /// Counters of its mirror.
    pub counters: MirrorCounters,
}

pub(crate) fn init(c: &mut Control) {
    c.insert(Sync::default());
    c.subscribe(|c, event: &InterfaceEvent| match *event {
        InterfaceEvent::State(i) => {
            follow_link(c, i);
            wanted::push(c, i);
            wanted::push_above(c, i);
        }
        InterfaceEvent::Mtu(i) => {
            wishes::mtu_changed(c, i);
            wanted::push(c, i);
            wanted::push_above(c, i);
        }
        InterfaceEvent::Mac(i) => wanted::push(c, i),
        _ => {}
    });
    c.subscribe(|c, event: &tap::HostChanged| moved(c, event.0));
    c.subscribe(|c, _: &Started| start(c));
    c.subscribe(|c, event: &AddressesChanged| {
        wanted::push(c, event.sw_if);
        wishes::try_again_soon(c);
    });
    c.subscribe(|c, event: &InterfaceTableChanged| {
        wanted::push(c, event.sw_if);
        wishes::table_changed(c, event.sw_if, event.version);
        wishes::try_again_soon(c);
    });
    c.subscribe(|c, event: &EnabledChanged| {
        wishes::end(c, event.0, Wish::Labels);
        wanted::push(c, event.0);
    });
    c.subscribe(|c, _: &TableDeleted| wishes::try_again_soon(c));
    c.subscribe(|c, _: &LabelTableDeleted| wishes::try_again_soon(c));
    c.subscribe(|c, event: &NeighborChange| match event.mac {
        Some(_) => neighbours::moved(c, event),
        None => neighbours::try_again_soon(c),
    });
    c.subscribe(|c, event: &FoundDisplacing| {
        if let Some(twin) = c.state::<Sync>().borrow_mut().twins.get_mut(&event.sw_if) {
            twin.is_displaced = true;
        }
    });
    c.subscribe(|c, event: &FoundDisplaced| displaced(c, event.sw_if));
    c.every(AGAIN, |c| {
        vlans::try_again(c, None);
        unattached::try_again(c, None);
        routes::try_to_follow(c);
        true
    });
    // A route that stood in the way goes without an event.
    c.every(REFUSED_AGAIN, |c| {
        wishes::try_again(c);
        neighbours::try_again(c);
        wanted::try_again(c);
        true
    });
}

/// Addresses that an interface had from its twin have made way: they are looked at again, as the
/// interface may have them in another table.
fn displaced(c: &Control, phy: SwIfIndex) {
    let sync = c.state::<Sync>();
    let mut sync = sync.borrow_mut();
    let Sync { mirrors, twins, .. } = &mut *sync;
    let Some(twin) = twins.get_mut(&phy) else { return };
    twin.is_displaced = false;
    twin.found.retain(|(ip, length)| addresses::is_found(c, phy, *ip, *length));
    twin.shared.retain(|(ip, length)| addresses::has(c, phy, *ip, *length));
    if let Some((_, mirror)) = mirrors.get(&twin.place.0) {
        mirror.look(twin.place.1);
    }
}

/// The router's start is over: twins that were there before get what they lack.
fn start(c: &mut Control) {
    let held: Vec<SwIfIndex> = {
        let sync = c.state::<Sync>();
        let mut sync = sync.borrow_mut();
        let Sync { mirrors, twins, started, .. } = &mut *sync;
        *started = true;
        let mut held = Vec::new();
        for (phy, twin) in twins.iter_mut().filter(|(_, twin)| twin.is_held) {
            twin.is_held = false;
            if let Some((_, mirror)) = mirrors.get(&twin.place.0) {
                mirror.look(twin.place.1);
                mirror.search();
            }
            held.push(*phy);
        }
        held
    };
    for phy in held {
        labels::meet(c, phy);
        wanted::order(c, phy, true);
    }
}

/// Returns the pair of an interface.
fn pair(c: &Control, phy: SwIfIndex) -> Option<Pair> {
    c.state::<Pairs>().borrow().of_phy(phy).cloned()
}

/// Gives the twin of an interface the carrier and the speed that its link has.
fn follow_link(c: &Control, phy: SwIfIndex) {
    // In the kernel the carrier of a VLAN link follows that of the link below.
    let Some(pair) = pair(c, phy).filter(|p| !matches!(p.made, Made::Vlan { .. })) else { return };
    let Ok(view) = interface::view(c, phy) else { return };
    if let Err(e) = tap::set_carrier(c, pair.host, view.link_up) {
        tracing::warn!("{}: {e}", view.name);
    }
    let mbits = view.speed_kbps / 1000;
    if mbits > 0 {
        tap::set_speed(c, pair.host, mbits);
    }
}

/// Begins to follow a new twin.
pub(crate) fn made(c: &mut Control, pair: &Pair) {
    follow_link(c, pair.phy);
    addresses::speak(c, pair.phy, true);
    attach(c, pair);
}

/// Ends following a twin, before its pair goes. The interface loses what it has from the twin.
pub(crate) fn unmade(c: &mut Control, phy: SwIfIndex, phy_is_gone: bool) {
    c.state::<Sync>().borrow_mut().waiting.remove(&phy);
    leave(c, phy, phy_is_gone);
}

/// Ends following a twin that is away, or goes.
fn leave(c: &mut Control, phy: SwIfIndex, phy_is_gone: bool) {
    let twin = detach(c, phy);
    virtuals::forget(c, phy);
    if phy_is_gone {
        return;
    }
    if let Some(twin) = twin {
        seen::forget(c, phy, twin);
    }
    addresses::speak(c, phy, false);
}

/// Passes the router's state to twins from now on, or no more: what interfaces have is passed at
/// once. Changes until now follow the former switch.
pub fn set(c: &mut Control, on: bool) {
    wanted::order_all_due(c);
    options::change(c, |options| options.sync = on);
    push_all(c);
}

/// Passes addresses that interfaces borrow, or no more.
pub fn set_unnumbered(c: &mut Control, on: bool) {
    wanted::order_all_due(c);
    options::change(c, |options| options.sync_unnumbered = on);
    push_all(c);
}

fn push_all(c: &mut Control) {
    let all: Vec<SwIfIndex> = c.state::<Sync>().borrow().twins.keys().copied().collect();
    for phy in all {
        wanted::push(c, phy);
    }
}

/// Returns the router's end of the TAP by which a twin is reached.
fn end(pair: &Pair) -> SwIfIndex {
    match pair.made {
        Made::Vlan { tap, .. } => tap,
        Made::Tap | Made::Tun => pair.host,
    }
}

/// Returns the number of a namespace, or of the router's own.
pub(crate) fn id_of(namespace: Option<&Namespace>) -> NamespaceId {
    namespace.map_or(NamespaceId::default(), Namespace::id)
}

/// Returns the place of a twin, if it is there, and the namespace.
fn place(c: &Control, pair: &Pair) -> Option<(Place, Option<Namespace>)> {
    let (namespace, device) = tap::place(c, end(pair))?;
    let id = id_of(namespace.as_ref());
    let index = match pair.made {
        Made::Vlan { link, .. } => link.filter(|link| link.on.0 == id)?.ifindex,
        Made::Tap | Made::Tun => device,
    };
    Some(((id, index), namespace))
}

/// Starts to report a twin.
fn attach(c: &mut Control, pair: &Pair) {
    let Some((at, namespace)) = place(c, pair) else { return };
    let lower = match pair.made {
        Made::Vlan { link, .. } => link.map(|link| link.on.1),
        Made::Tap | Made::Tun => None,
    };
    if !unattached::is_mirrored(c, pair, at.0, namespace.as_ref()) {
        return;
    }
    let sync = c.state::<Sync>();
    let known = look(c, pair, at.1);
    let was_there = tap::host(c, end(pair)).is_some_and(|host| host.was_there);
    let mut sync = sync.borrow_mut();
    let Sync { mirrors, twins, by_place, started, unattached, .. } = &mut *sync;
    unattached.remove(pair.phy);
    if let Some((_, mirror)) = mirrors.get(&at.0) {
        mirror.watch(at.1, lower);
        if was_there && *started {
            mirror.search();
        }
    }
    by_place.insert(at, pair.phy);
    let is_held = was_there && !*started;
    twins.insert(pair.phy, Twin { known, is_held, ..Twin::at(at) });
    drop(sync);
    if !is_held {
        labels::meet(c, pair.phy);
    }
    wanted::order(c, pair.phy, true);
    routes::twin_made(c, at.0, namespace.as_ref(), at.1);
}

/// Returns a twin in a namespace: its index there, and the namespace if it is not the router's own.
pub(crate) fn any_twin_in(c: &Control, id: NamespaceId) -> Option<(u32, Option<Namespace>)> {
    let sync = c.state::<Sync>();
    let phy = *sync.borrow().by_place.range((id, 0)..=(id, u32::MAX)).next()?.1;
    let (now, namespace) = place(c, &pair(c, phy)?)?;
    (now.0 == id).then_some((now.1, namespace))
}

/// Returns the interface of which a link of a namespace is the twin.
pub(crate) fn phy_at(c: &Control, id: NamespaceId, index: u32) -> Option<SwIfIndex> {
    c.state::<Sync>().borrow().by_place.get(&(id, index)).copied()
}

/// Looks at a new twin. Linux's changes count from now on.
fn look(c: &Control, pair: &Pair, index: u32) -> Option<Known> {
    let job = |port: &Port, _| -> std::io::Result<Option<Known>> {
        let Some(link) = Link::find_by(port, index)? else { return Ok(None) };
        let addresses = LinkAddress::all(port, Some(index))?;
        let labels = LabelInput::find_by(port, index)?.and_then(|input| input.on);
        // Membership of a VRF is seen first in a report.
        Ok(Some(Known { labels, ..seen::known(&link, &addresses, None, None) }))
    };
    tap::ask_host(c, end(pair), job)?.ok().flatten()
}

/// Ends the reports of a twin.
fn detach(c: &mut Control, phy: SwIfIndex) -> Option<Twin> {
    let sync = c.state::<Sync>();
    let mut sync = sync.borrow_mut();
    let Sync { mirrors, reports, twins, by_place, refusing, lacking, unattached, .. } = &mut *sync;
    unattached.remove(phy);
    lacking.forget(phy, |_| true);
    let twin = twins.remove(&phy)?;
    refusing.remove(&phy);
    by_place.remove(&twin.place);
    let (id, index) = twin.place;
    if let Some((_, mirror)) = mirrors.get(&id) {
        mirror.forget(index);
    }
    if let Some(rest) = reports.get_mut(&id) {
        rest.forget(index);
    }
    // A mirror keeps its namespace from going.
    let used = by_place.range((id, 0)..=(id, u32::MAX)).next().is_some();
    if !used {
        mirrors.remove(&id);
        reports.remove(&id);
    }
    drop(sync);
    routes::twin_gone(c, id, index, !used);
    Some(twin)
}

/// Follows the device of a TAP that came, went, or is another one.
fn moved(c: &mut Control, host: SwIfIndex) {
    let phy = c.state::<Pairs>().borrow().of_host(host).map(|pair| pair.phy);
    if let Some(phy) = phy {
        settle(c, phy);
    }
}

/// Follows a twin that is another device now, as its namespace came back or it was made again, and
/// none that is away: a watcher would keep its namespace from going. Twins on it do the same.
fn settle(c: &mut Control, phy: SwIfIndex) {
    vlans::settle(c, phy);
    let Some(pair) = pair(c, phy) else { return };
    // Its index is another one, too.
    make::name_twin(c, phy);
    let now = place(c, &pair).map(|(at, _)| at);
    let before = c.state::<Sync>().borrow().twins.get(&phy).map(|twin| twin.place);
    if before != now {
        leave(c, phy, false);
        if now.is_some() {
            made(c, &pair);
        }
    }
    let above = c.state::<Pairs>().borrow().above(phy);
    for sub in above {
        settle(c, sub);
    }
}

/// Counts a change of a twin that the interface has taken, or says why it has not.
fn note<E: std::fmt::Display>(c: &Control, phy: SwIfIndex, what: &str, done: Result<(), E>) {
    let sync = c.state::<Sync>();
    match done {
        Ok(()) => sync.borrow_mut().counters.taken += 1,
        Err(e) => {
            sync.borrow_mut().counters.not_taken += 1;
            tracing::warn!("{} does not take {what} of its twin: {e}", c.interface_name(phy));
        }
    }
}

/// Returns whether a sub-interface is being made for a VLAN link that Linux has.
pub(crate) fn is_making(c: &Control) -> bool {
    c.state::<Sync>().borrow().making
}

/// Returns whether the router's start is over.
pub(crate) fn has_started(c: &Control) -> bool {
    c.state::<Sync>().borrow().started
}

/// Returns how many settings and addresses of its twin an interface does not take now.
pub fn not_taken(c: &Control, phy: SwIfIndex) -> usize {
    refused(c, phy).len()
}

/// Returns the namespaces with twins.
pub fn namespaces(c: &Control) -> Vec<NamespaceView> {
    let sync = c.state::<Sync>();
    let sync = sync.borrow();
    let view = |(id, (name, mirror)): (&NamespaceId, &(String, Mirror))| NamespaceView {
        name: name.clone(),
        twins: sync.by_place.range((*id, 0)..=(*id, u32::MAX)).count(),
        counters: mirror.counters(),
    };
    sync.mirrors.iter().map(view).collect()
}

/// Returns the counters of all namespaces.
pub fn counters(c: &Control) -> Counters {
    c.state::<Sync>().borrow().counters
}
