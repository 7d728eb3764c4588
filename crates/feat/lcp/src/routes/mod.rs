//! Routes of the kernel are the router's.
//!
//! For each namespace with twins there is a [thread](thalweg_device_linux::routes) that follows the
//! kernel's routes, and a slice of the main thread takes what has changed: for each destination the
//! route that the kernel uses, over the interfaces of the twins. Next-hop objects of the kernel are
//! numbered groups, so that a change of one is a single change here, however many routes name it.
//!
//! Routes of labels are bound in the router's label table.
//!
//! Routes that the kernel makes for its own addresses are left out, as interfaces have the same.
//! Routes by links that are no twins, and of kinds that the router does not have, stay in the
//! kernel alone; [`Look`] finds them.
//!
//! FRRouting's `zebra` may send its routes itself. They rank among those of the kernel as if
//! it had written them there.

mod fpm;
mod labels;
mod objects;
mod refused;
mod tables;
mod unresolved;

pub use fpm::{set_fpm, set_fpm_hold};
pub use unresolved::{Destinations, Look, MOST_SHOWN, Unresolved};

use crate::options;
use crate::sync;
use fpm::Leaving;
use objects::Objects;
use refused::Refused;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_device::SwIfIndex;
use thalweg_device_linux::mirror::MirrorError;
use thalweg_device_linux::routes::{
    Change, Hops, Limits, NextHop, RouteState, Routes, Used, WAITING_BYTES,
};
use thalweg_device_linux::{Backoff, Namespace, NamespaceId};
use thalweg_feat_ip::table::set_found_route;
use thalweg_feat_ip::{
    Ip, Path, PathKind, RouteError, Source, TableDeleted, TableId, Version, need_table,
};
use thalweg_feat_mpls::LabelTableDeleted;
use thalweg_graph::Control;
use thalweg_netlink::fib::{LinkRole, PROTOCOL_STATIC, RouteKind};
use thalweg_tables::{Address, Prefix};

/// Changes that are taken at once.
const BATCH: usize = 256;
/// Most time on the main thread per slice.
const SLICE: Duration = Duration::from_millis(1);
/// `RT_TABLE_LOCAL`, `RT_TABLE_MAIN` and `RT_TABLE_DEFAULT`, which are one here, in the order in
/// which the kernel asks them.
const OF_KERNEL: [u32; 3] = [255, 254, 253];

/// Owner of routes in a namespace: the kernel, or `zebra`, which sends them itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Origin {
    id: NamespaceId,
    /// Number of the listener of `zebra`; `None` for the kernel.
    fpm: Option<u32>,
}

impl Origin {
    fn kernel(id: NamespaceId) -> Origin {
        Origin { id, fpm: None }
    }
}

/// A namespace whose routes are followed.
struct Followed {
    name: String,
    /// The namespace, if it is not the router's own.
    namespace: Option<Namespace>,
    routes: Routes,
    /// Routes that `zebra` sends, with the number of the listener.
    fpm: Option<(u32, Routes)>,
    /// The next attempt to start the listener, if that has failed: the log has the reason.
    no_listener: Backoff,
}

impl Followed {
    /// Returns the routes of an origin, if they are still followed.
    fn of(&self, origin: Origin) -> Option<&Routes> {
        match origin.fpm {
            None => Some(&self.routes),
            Some(number) => {
                self.fpm.as_ref().filter(|(own, _)| *own == number).map(|(_, routes)| routes)
            }
        }
    }

    /// All routes, with their origins: `zebra`'s first, as they are newer than what it has written
    /// to the kernel.
    fn all(&self, id: NamespaceId) -> impl Iterator<Item = (Origin, &Routes)> {
        let fpm = self.fpm.iter().map(move |(n, routes)| (Origin { id, fpm: Some(*n) }, routes));
        fpm.chain([(Origin::kernel(id), &self.routes)])
    }

    /// Returns the routes of a destination, the one that is used first. Others are of other
    /// origins, and for those that the router does not have.
    fn find(&self, id: NamespaceId, tables: &[u32], to: (IpAddr, u8)) -> Vec<(Origin, Used)> {
        if self.fpm.is_none() {
            let used = self.routes.find(tables, to);
            return used.map(|used| (Origin::kernel(id), used)).into_iter().collect();
        }
        let in_table = |table: &u32| {
            let find = |(origin, routes): (Origin, &Routes)| {
                Some((origin, routes.find(std::slice::from_ref(table), to)?))
            };
            let mut found: Vec<(Origin, Used)> = self.all(id).filter_map(find).collect();
            found.sort_by_key(|(_, used)| used.metric);
            Some(found).filter(|found| !found.is_empty())
        };
        tables.iter().find_map(in_table).unwrap_or_default()
    }

    /// Has routes over a link taken again, or all (`None`).
    fn offer(&self, link: Option<u32>) {
        self.routes.offer(link);
        self.fpm.iter().for_each(|(_, routes)| routes.offer(link));
    }
}

/// Counters of all namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Changes of routes that were taken.
    pub taken: u64,
    /// Routes that the router's table has refused.
    pub refused: u64,
}

/// Routes of the kernel on the main thread.
#[derive(Default)]
pub(crate) struct KernelRoutes {
    followed: BTreeMap<NamespaceId, Followed>,
    objects: Objects,
    /// Routes that are no longer followed, with the walk that removes them.
    leaving: VecDeque<Leaving>,
    /// Namespaces with twins whose routes are not followed, as a thread did not start, with the
    /// next attempt.
    unfollowed: BTreeMap<NamespaceId, Backoff>,
    /// Routes and the like that the router has refused.
    refused: Refused,
    /// Listeners of `zebra` so far.
    listeners: u32,
    counters: Counters,
}

impl KernelRoutes {
    fn of(&self, origin: Origin) -> Option<&Routes> {
        self.followed.get(&origin.id)?.of(origin)
    }

    /// Has all routes taken again.
    fn offer_all(&self) {
        self.followed.values().for_each(|of| of.offer(None));
    }
}

/// The routes of the kernel in a namespace, or those that `zebra` sends there.
#[derive(Clone, Debug)]
pub struct RoutesView {
    /// Name, empty for the router's own.
    pub name: String,
    /// Its state.
    pub state: RouteState,
}

impl RoutesView {
    /// Returns the word for where they come from.
    #[must_use]
    pub fn source(&self) -> &'static str {
        if self.state.fpm.is_some() { "fpm" } else { "kernel" }
    }
}

pub(crate) fn init(c: &mut Control) {
    c.insert(KernelRoutes::default());
    // A table that the kernel has stays.
    c.subscribe(|c, gone: &TableDeleted| {
        if tables::used(c).contains(&gone.table) {
            c.state::<KernelRoutes>().borrow().offer_all();
        }
        refused::try_again(c);
    });
    c.subscribe(|c, gone: &LabelTableDeleted| {
        if gone.0 == labels::TABLE {
            c.state::<KernelRoutes>().borrow().offer_all();
        }
        refused::try_again(c);
    });
    tables::init(c);
    refused::init(c);
}

/// Begins to follow a namespace in which a twin is, or takes the routes over a new twin.
pub(crate) fn twin_made(
    c: &mut Control,
    id: NamespaceId,
    namespace: Option<&Namespace>,
    link: u32,
) {
    let state = c.state::<KernelRoutes>();
    if let Some(of) = state.borrow().followed.get(&id) {
        return of.offer(Some(link));
    }
    // All twins of the namespace wait for the same attempt.
    if state.borrow().unfollowed.get(&id).is_some_and(|again| !again.is_due()) {
        return;
    }
    let buffer = options::get(c).notice_bytes.unwrap_or(WAITING_BYTES);
    let remote = c.remote();
    let announce = move || remote.submit(move |c| take(c, Origin::kernel(id)));
    let name = namespace.map_or_else(String::new, |n| n.name().to_owned());
    let own = namespace.map(Namespace::try_clone).transpose();
    let own = own.map_err(|e| MirrorError::System("keep a namespace", e));
    let started = own
        .and_then(|own| Ok((own, Routes::start(namespace, Limits::default(), buffer, announce)?)));
    let (namespace, routes) = match started {
        Ok(started) => started,
        Err(e) => {
            if state.borrow_mut().unfollowed.entry(id).or_default().fail() {
                tracing::error!("routes of namespace `{name}' are not followed for now: {e}");
            }
            return;
        }
    };
    let granted = routes.state().buffer;
    if granted < buffer {
        tracing::warn!(
            "the kernel keeps {granted} bytes of notices of routes in namespace `{name}', \
             not {buffer}: `sysctl net.core.rmem_max={buffer}' allows more"
        );
    }
    let no_listener = Backoff::default();
    let followed = Followed { name, namespace, routes, fpm: None, no_listener };
    {
        let mut state = state.borrow_mut();
        state.unfollowed.remove(&id);
        state.followed.insert(id, followed);
    }
    fpm::start(c, id);
}

/// Tries again to follow the routes of namespaces, and to listen there, where the system has
/// refused a thread or a socket.
pub(crate) fn try_to_follow(c: &mut Control) {
    let due: Vec<NamespaceId> = {
        let state = c.state::<KernelRoutes>();
        let state = state.borrow();
        let due = state.unfollowed.iter().filter(|(_, again)| again.is_due());
        due.map(|(id, _)| *id).collect()
    };
    for id in due {
        if let Some((link, namespace)) = sync::any_twin_in(c, id) {
            twin_made(c, id, namespace.as_ref(), link);
        }
    }
    fpm::listen_again(c);
}

/// Withdraws the routes over a twin that is gone; with `last`, those of the whole namespace.
pub(crate) fn twin_gone(c: &mut Control, id: NamespaceId, link: u32, last: bool) {
    let state = c.state::<KernelRoutes>();
    if !last {
        if let Some(of) = state.borrow().followed.get(&id) {
            of.offer(Some(link));
        }
        return;
    }
    let of = {
        let mut state = state.borrow_mut();
        state.unfollowed.remove(&id);
        state.followed.remove(&id)
    };
    let Some(of) = of else { return };
    if let Some((number, routes)) = of.fpm {
        fpm::leave(c, routes, Some(Origin { id, fpm: Some(number) }));
    }
    fpm::leave(c, of.routes, None);
    objects::forget(c, Origin::kernel(id));
}

/// Applies routes over the links of next hops again; all, if `hops` is empty.
fn offer(c: &Control, origin: Origin, hops: &[NextHop]) {
    let state = c.state::<KernelRoutes>();
    let state = state.borrow();
    let Some(routes) = state.of(origin) else { return };
    match hops {
        [] => routes.offer(None),
        hops => hops.iter().for_each(|hop| routes.offer(Some(hop.link))),
    }
}

/// Lists all routes of the kernel in a namespace, or in all, again and compares them; with `fpm`,
/// those that `zebra` sends: its connection is closed, as it announces all only over a new one.
///
/// Routes that the router has refused are taken again in any case.
///
/// Returns the number of namespaces, and of connections that are closed.
pub fn resync(c: &mut Control, name: Option<&str>, fpm: bool) -> (usize, usize) {
    refused::try_again(c);
    let state = c.state::<KernelRoutes>();
    let state = state.borrow();
    let wanted = |of: &&Followed| name.is_none_or(|name| of.name == name);
    let (mut namespaces, mut closed) = (0, 0);
    for of in state.followed.values().filter(wanted) {
        namespaces += 1;
        if !fpm {
            of.routes.resync();
        } else if let Some((_, routes)) = &of.fpm
            && routes.state().fpm.is_some_and(|fpm| fpm.client.is_some())
        {
            routes.resync();
            closed += 1;
        }
    }
    (namespaces, closed)
}

/// Returns the namespaces whose routes are followed; one in which the router listens to `zebra`
/// comes twice, the kernel's routes first.
pub fn namespaces(c: &Control) -> Vec<RoutesView> {
    let state = c.state::<KernelRoutes>();
    let state = state.borrow();
    let views = |of: &Followed| {
        let all = [&of.routes].into_iter().chain(of.fpm.iter().map(|(_, routes)| routes));
        let view = |routes: &Routes| RoutesView { name: of.name.clone(), state: routes.state() };
        all.map(view).collect::<Vec<_>>()
    };
    state.followed.values().flat_map(views).collect()
}

/// Returns the counters of all namespaces.
pub fn counters(c: &Control) -> Counters {
    c.state::<KernelRoutes>().borrow().counters
}

/// Takes what has changed, for about a millisecond, and goes on later.
fn take(c: &mut Control, origin: Origin) {
    let begin = Instant::now();
    let state = c.state::<KernelRoutes>();
    loop {
        let Some(taken) = state.borrow().of(origin).map(|routes| routes.take(BATCH)) else {
            return;
        };
        for (object, hops) in taken.objects {
            objects::set(c, origin, object, hops);
        }
        let count = taken.routes.len() as u64;
        let is_alone = is_alone(c);
        let mut last = None;
        for change in taken.routes {
            // The change has all that is known of its destination: no look-up is needed.
            if is_alone && (taken.is_single || table_of(change.table) != TableId(0)) {
                apply(c, origin, change, &mut last);
            } else {
                settle(c, change.table, change.destination);
            }
        }
        let labels = taken.labels.len() as u64;
        for change in taken.labels {
            labels::apply(c, origin.id, change);
        }
        state.borrow_mut().counters.taken += count + labels;
        for object in taken.gone {
            objects::remove(c, origin, object);
        }
        if taken.roles {
            fpm::offer(c, origin.id);
        }
        if !taken.more {
            return;
        }
        if begin.elapsed() >= SLICE {
            c.after(Duration::ZERO, move |c| take(c, origin));
            return;
        }
    }
}

/// The router's table of a kernel's.
pub(crate) fn table_of(id: u32) -> TableId {
    TableId(if OF_KERNEL.contains(&id) { 0 } else { id })
}

/// The kernel's tables of a router's.
fn tables_of(id: TableId) -> Vec<u32> {
    if id == TableId(0) { OF_KERNEL.to_vec() } else { vec![id.get()] }
}

/// Returns whether no destination can have routes of two origins.
fn is_alone(c: &Control) -> bool {
    let state = c.state::<KernelRoutes>();
    let state = state.borrow();
    state.followed.len() == 1 && state.followed.values().all(|of| of.fpm.is_none())
}

/// Next hops of a route, and the paths that they are.
type Ways = (Arc<[NextHop]>, Vec<Path>);

/// Applies the only route of a destination. `last` has the next hops of the one before, which has
/// mostly the same.
fn apply(c: &mut Control, origin: Origin, change: Change, last: &mut Option<Ways>) {
    let Change { table, destination, now } = change;
    let paths = now.as_ref().map(|used| match (&used.hops, &*last) {
        (Hops::These(hops), Some((known, paths)))
            if used.kind == RouteKind::Unicast && Arc::ptr_eq(hops, known) =>
        {
            paths.clone()
        }
        (Hops::These(hops), _) if used.kind == RouteKind::Unicast => {
            let paths = paths_of(c, origin.id, hops);
            *last = Some((Arc::clone(hops), paths.clone()));
            paths
        }
        _ => paths(c, origin, destination.0, used),
    });
    put(c, table_of(table), destination, now.as_ref().zip(paths));
}

/// Gives a destination the route of the first namespace that has one over a twin, in the first of
/// its tables.
fn settle(c: &mut Control, table: u32, to: (IpAddr, u8)) {
    let table = table_of(table);
    let tables = tables_of(table);
    let found: Vec<(Origin, Used)> = {
        let state = c.state::<KernelRoutes>();
        let state = state.borrow();
        state.followed.iter().flat_map(|(id, of)| of.find(*id, &tables, to)).collect()
    };
    for (origin, used) in found {
        let paths = paths(c, origin, to.0, &used);
        if !paths.is_empty() {
            return put(c, table, to, Some((&used, paths)));
        }
    }
    put(c, table, to, None);
}

/// Gives a destination a route with paths, or none.
fn put(c: &mut Control, table: TableId, to: (IpAddr, u8), route: Option<(&Used, Vec<Path>)>) {
    let of_kernel = [Source::KernelStatic, Source::KernelDynamic];
    let Some((used, paths)) = route.filter(|(_, paths)| !paths.is_empty()) else {
        refused::route_done(c, table, to);
        return of_kernel.into_iter().for_each(|source| unset(c, table, to, source));
    };
    let is_static = used.protocol <= PROTOCOL_STATIC;
    let [source, other] = if is_static { of_kernel } else { [of_kernel[1], of_kernel[0]] };
    let done = match to.0 {
        IpAddr::V4(ip) => set(c, table, u32::from(ip), to.1, source, paths),
        IpAddr::V6(ip) => set(c, table, u128::from(ip), to.1, source, paths),
    };
    match done {
        Ok(()) => refused::route_done(c, table, to),
        Err(e) => {
            refused::route(c, table, to, &e);
            unset(c, table, to, source);
        }
    }
    unset(c, table, to, other);
}

fn set<A: Address>(
    c: &mut Control,
    table: TableId,
    addr: A,
    len: u8,
    source: Source,
    paths: Vec<Path>,
) -> Result<(), RouteError> {
    let Ok(prefix) = Prefix::new(addr, len) else { return Ok(()) };
    if c.state::<Ip<A>>().borrow().serial(table).is_none() {
        need_table::<A>(c, table)?;
    }
    set_found_route(c, table, prefix, source, paths)
}

fn unset(c: &mut Control, table: TableId, (ip, len): (IpAddr, u8), source: Source) {
    fn of<A: Address>(c: &mut Control, table: TableId, addr: A, len: u8, source: Source) {
        if let Ok(prefix) = Prefix::new(addr, len) {
            // A table that was deleted has no routes.
            let _ = set_found_route(c, table, prefix, source, Vec::new());
        }
    }
    match ip {
        IpAddr::V4(ip) => of(c, table, u32::from(ip), len, source),
        IpAddr::V6(ip) => of(c, table, u128::from(ip), len, source),
    }
}

/// Returns the paths of a route; none if it does not lead over a twin.
fn paths(c: &mut Control, origin: Origin, to: IpAddr, used: &Used) -> Vec<Path> {
    let special = |kind| vec![Path::special(kind)];
    match (used.kind, &used.hops) {
        (RouteKind::Blackhole, _) => special(PathKind::Drop),
        (RouteKind::Unreachable, _) => special(PathKind::Unreachable),
        (RouteKind::Prohibit, _) => special(PathKind::Prohibit),
        (RouteKind::Unicast, Hops::These(hops)) => paths_of(c, origin.id, hops),
        (RouteKind::Unicast, Hops::Object(object)) => {
            objects::paths(c, origin, *object, Version::of_ip(to))
        }
        _ => Vec::new(),
    }
}

/// Returns the paths of next hops; those that the router does not have are left out.
fn paths_of(c: &Control, id: NamespaceId, hops: &[NextHop]) -> Vec<Path> {
    let state = c.state::<KernelRoutes>();
    let state = state.borrow();
    let most = hops.iter().map(|hop| hop.weight).max().unwrap_or(1);
    let path = |hop: &NextHop| {
        let path = path(c, id, &state, hop).ok()?;
        let weight = match u8::try_from(most) {
            Ok(_) => hop.weight.max(1) as u8,
            // Paths have weights of up to 255.
            Err(_) => (u32::from(hop.weight) * 255 / u32::from(most)).max(1) as u8,
        };
        Some(Path { weight, ..path })
    };
    hops.iter().filter_map(path).collect()
}

/// Returns the path of a next hop, or why it has none: without an address by a VRF, packets are
/// looked up in its table.
fn path(c: &Control, id: NamespaceId, state: &KernelRoutes, hop: &NextHop) -> Result<Path, String> {
    if hop.is_odd {
        return Err(labels::ODD.into());
    }
    let of = state.followed.get(&id);
    let Some(phy) = sync::phy_at(c, id, hop.link) else {
        let is_bare = hop.gateway.is_none() && hop.labels.is_empty();
        return match of.filter(|_| is_bare).map(|of| of.routes.role(hop.link)) {
            Some(LinkRole::Vrf(table)) => Ok(Path::special(PathKind::Lookup(table_of(table)))),
            _ => Err(format!("no twin is link {}", hop.link)),
        };
    };
    let ttl = || of.map_or_else(Default::default, |of| of.routes.label_ttl());
    Ok(Path { labels: labels::imposed(hop, ttl)?, ..path_by(phy, hop.gateway) })
}

fn path_by(phy: SwIfIndex, gateway: Option<IpAddr>) -> Path {
    match gateway {
        Some(gateway) => Path::via(gateway, Some(phy)),
        None => Path::connected(phy),
    }
}
