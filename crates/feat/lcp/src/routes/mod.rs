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
//! kernel alone; [`unresolved`] lists them.

mod labels;
mod objects;

use crate::options;
use crate::sync;
use objects::Objects;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use thalweg_device::SwIfIndex;
use thalweg_device_linux::routes::{
    Change, Hops, Limits, NextHop, RouteState, RouteWalk, Routes, Used, Visited, WAITING_BYTES,
};
use thalweg_device_linux::{Namespace, NamespaceId};
use thalweg_feat_ip::table::set_found_route;
use thalweg_feat_ip::{
    Ip, Path, PathKind, RouteError, Source, TableDeleted, TableId, Version, add_table,
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
/// Routes that [`unresolved`] returns.
pub const MOST_SHOWN: usize = 1000;

/// A namespace whose routes are followed.
struct Followed {
    name: String,
    routes: Routes,
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
    /// Namespaces that are no longer followed, with the walk that removes their routes.
    leaving: VecDeque<(Routes, RouteWalk)>,
    counters: Counters,
}

/// A namespace, for `show lcp verbose`.
#[derive(Clone, Debug)]
pub struct RoutesView {
    /// Name, empty for the router's own.
    pub name: String,
    /// Its state.
    pub state: RouteState,
}

/// A route that stays in the kernel alone.
#[derive(Clone, Debug)]
pub struct Unresolved {
    /// The namespace's name.
    pub namespace: String,
    /// Destinations.
    pub of: Destinations,
    /// The reason.
    pub why: String,
}

/// Packets that a route of the kernel is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destinations {
    /// Packets to addresses, by a routing table of the kernel.
    Prefix {
        /// The table.
        table: u32,
        /// An address.
        ip: IpAddr,
        /// Its bits that count.
        bits: u8,
    },
    /// Packets with a label.
    Label(u32),
}

pub(crate) fn init(c: &mut Control) {
    c.insert(KernelRoutes::default());
    // A table that the kernel has stays.
    c.subscribe(|c, _: &TableDeleted| {
        c.state::<KernelRoutes>().borrow().followed.values().for_each(|of| of.routes.offer(None));
    });
    c.subscribe(|c, gone: &LabelTableDeleted| {
        if gone.0 != labels::TABLE {
            return;
        }
        c.state::<KernelRoutes>().borrow().followed.values().for_each(|of| of.routes.offer(None));
    });
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
        return of.routes.offer(Some(link));
    }
    let buffer = options::get(c).notice_bytes.unwrap_or(WAITING_BYTES);
    let remote = c.remote();
    let announce = move || remote.submit(move |c| take(c, id));
    let name = namespace.map_or_else(String::new, |n| n.name().to_owned());
    match Routes::start(namespace, Limits::default(), buffer, announce) {
        Ok(routes) => {
            let granted = routes.state().buffer;
            if granted < buffer {
                tracing::warn!(
                    "the kernel keeps {granted} bytes of notices of routes in namespace `{name}', \
                     not {buffer}: `sysctl net.core.rmem_max={buffer}' allows more"
                );
            }
            state.borrow_mut().followed.insert(id, Followed { name, routes });
        }
        Err(e) => tracing::error!("routes of namespace `{name}' are not followed: {e}"),
    }
}

/// Withdraws the routes over a twin that is gone; with `last`, those of the whole namespace.
pub(crate) fn twin_gone(c: &mut Control, id: NamespaceId, link: u32, last: bool) {
    let state = c.state::<KernelRoutes>();
    if !last {
        if let Some(of) = state.borrow().followed.get(&id) {
            of.routes.offer(Some(link));
        }
        return;
    }
    let Some(of) = state.borrow_mut().followed.remove(&id) else { return };
    let is_first = {
        let leaving = &mut state.borrow_mut().leaving;
        let walk = of.routes.walk();
        leaving.push_back((of.routes, walk));
        leaving.len() == 1
    };
    if is_first {
        leave(c);
    }
    objects::forget(c, id);
}

/// Removes routes of namespaces that are no longer followed, for about a millisecond.
fn leave(c: &mut Control) {
    let (begin, state) = (Instant::now(), c.state::<KernelRoutes>());
    while begin.elapsed() < SLICE {
        let mut some = Visited::default();
        {
            let leaving = &mut state.borrow_mut().leaving;
            let Some((routes, walk)) = leaving.front_mut() else { return };
            if !routes.some(walk, &mut some) {
                leaving.pop_front();
            }
        }
        for Change { table, destination, .. } in some.routes {
            settle(c, table, destination);
        }
        for change in some.labels {
            labels::settle(c, change.label);
        }
    }
    c.after(Duration::ZERO, leave);
}

/// Applies routes over the links of next hops again; all, if `hops` is empty.
fn offer(c: &Control, id: NamespaceId, hops: &[NextHop]) {
    let state = c.state::<KernelRoutes>();
    let state = state.borrow();
    let Some(of) = state.followed.get(&id) else { return };
    match hops {
        [] => of.routes.offer(None),
        hops => hops.iter().for_each(|hop| of.routes.offer(Some(hop.link))),
    }
}

/// Lists all routes of a namespace, or of all, again and compares them.
///
/// Returns the number of namespaces.
pub fn resync(c: &Control, name: Option<&str>) -> usize {
    let state = c.state::<KernelRoutes>();
    let state = state.borrow();
    let wanted = |of: &&Followed| name.is_none_or(|name| of.name == name);
    let all = state.followed.values().filter(wanted);
    all.map(|of| of.routes.resync()).count()
}

/// Returns the namespaces whose routes are followed.
pub fn namespaces(c: &Control) -> Vec<RoutesView> {
    let state = c.state::<KernelRoutes>();
    let state = state.borrow();
    let view = |of: &Followed| RoutesView { name: of.name.clone(), state: of.routes.state() };
    state.followed.values().map(view).collect()
}

/// Returns the counters of all namespaces.
pub fn counters(c: &Control) -> Counters {
    c.state::<KernelRoutes>().borrow().counters
}

/// Returns the routes that stay in the kernel alone, [`MOST_SHOWN`] at most, and the number of all.
pub fn unresolved(c: &Control) -> (Vec<Unresolved>, usize) {
    let state = c.state::<KernelRoutes>();
    let state = state.borrow();
    let (mut some, mut count) = (Vec::new(), 0);
    for (id, of) in &state.followed {
        let mut add = |destinations, why: Option<String>| {
            let Some(why) = why else { return };
            count += 1;
            if some.len() < MOST_SHOWN {
                some.push(Unresolved { namespace: of.name.clone(), of: destinations, why });
            }
        };
        let (mut walk, mut all) = (of.routes.walk(), Visited::default());
        while of.routes.some(&mut walk, &mut all) {
            for change in all.routes.drain(..) {
                let (table, (ip, bits)) = (change.table, change.destination);
                let why = change.now.and_then(|used| why_not(c, &state, *id, &used));
                add(Destinations::Prefix { table, ip, bits }, why);
            }
            for change in all.labels.drain(..) {
                let role = |link| of.routes.role(link);
                let why = change.now.and_then(|now| labels::why_not(c, *id, &now, role));
                add(Destinations::Label(change.label), why);
            }
        }
    }
    (some, count)
}

fn why_not(c: &Control, state: &KernelRoutes, id: NamespaceId, used: &Used) -> Option<String> {
    if used.kind != RouteKind::Unicast {
        return None;
    }
    let hops = match &used.hops {
        Hops::These(hops) => &hops[..],
        Hops::Object(object) => match state.objects.hops(id, *object) {
            Some(hops) => hops,
            None => return Some(format!("next-hop object {object} is not known")),
        },
    };
    let ways: Vec<Result<Path, String>> = hops.iter().map(|hop| path(c, id, state, hop)).collect();
    if ways.is_empty() || ways.iter().any(Result::is_ok) {
        return None;
    }
    let mut why: Vec<String> = ways.into_iter().filter_map(Result::err).collect();
    why.sort();
    why.dedup();
    Some(why.join(", "))
}

/// Takes what has changed in a namespace, for about a millisecond, and goes on later.
fn take(c: &mut Control, id: NamespaceId) {
    let begin = Instant::now();
    let state = c.state::<KernelRoutes>();
    loop {
        let Some(taken) = state.borrow().followed.get(&id).map(|of| of.routes.take(BATCH)) else {
            return;
        };
        for (object, hops) in taken.objects {
            objects::set(c, id, object, hops);
        }
        let count = taken.routes.len() as u64;
        for change in taken.routes {
            apply(c, id, change);
        }
        let labels = taken.labels.len() as u64;
        for change in taken.labels {
            labels::apply(c, id, change);
        }
        state.borrow_mut().counters.taken += count + labels;
        for object in taken.gone {
            objects::remove(c, id, object);
        }
        if !taken.more {
            return;
        }
        if begin.elapsed() >= SLICE {
            c.after(Duration::ZERO, move |c| take(c, id));
            return;
        }
    }
}

/// The router's table of a kernel's.
fn table_of(id: u32) -> TableId {
    TableId(if OF_KERNEL.contains(&id) { 0 } else { id })
}

/// The kernel's tables of a router's.
fn tables_of(id: TableId) -> Vec<u32> {
    if id == TableId(0) { OF_KERNEL.to_vec() } else { vec![id.get()] }
}

/// Applies a route of the kernel.
fn apply(c: &mut Control, id: NamespaceId, change: Change) {
    let is_alone = c.state::<KernelRoutes>().borrow().followed.len() == 1;
    if !is_alone || table_of(change.table) == TableId(0) {
        return settle(c, change.table, change.destination);
    }
    let paths = change.now.as_ref().map(|used| paths(c, id, change.destination.0, used));
    put(c, table_of(change.table), change.destination, change.now.as_ref().zip(paths));
}

/// Gives a destination the route of the first namespace that has one over a twin, in the first of
/// its tables.
fn settle(c: &mut Control, table: u32, to: (IpAddr, u8)) {
    let table = table_of(table);
    let tables = tables_of(table);
    let found: Vec<(NamespaceId, Used)> = {
        let state = c.state::<KernelRoutes>();
        let state = state.borrow();
        let find = |(id, of): (&NamespaceId, &Followed)| Some((*id, of.routes.find(&tables, to)?));
        state.followed.iter().filter_map(find).collect()
    };
    for (id, used) in found {
        let paths = paths(c, id, to.0, &used);
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
        return of_kernel.into_iter().for_each(|source| unset(c, table, to, source));
    };
    let is_static = used.protocol <= PROTOCOL_STATIC;
    let [source, other] = if is_static { of_kernel } else { [of_kernel[1], of_kernel[0]] };
    let done = match to.0 {
        IpAddr::V4(ip) => set(c, table, u32::from(ip), to.1, source, paths),
        IpAddr::V6(ip) => set(c, table, u128::from(ip), to.1, source, paths),
    };
    if let Err(e) = done {
        refused(c, format_args!("{}/{}", to.0, to.1), &e);
        unset(c, table, to, source);
    }
    unset(c, table, to, other);
}

fn refused(c: &Control, of: impl std::fmt::Display, e: &dyn std::error::Error) {
    let state = c.state::<KernelRoutes>();
    let counters = &mut state.borrow_mut().counters;
    counters.refused += 1;
    // A million may have the same reason.
    if counters.refused.is_power_of_two() {
        let so_far = counters.refused;
        tracing::warn!("the kernel's route of {of} is not taken: {e} ({so_far} so far)");
    }
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
        add_table::<A>(c, table)?;
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
fn paths(c: &mut Control, id: NamespaceId, to: IpAddr, used: &Used) -> Vec<Path> {
    let special = |kind| vec![Path::special(kind)];
    match (used.kind, &used.hops) {
        (RouteKind::Blackhole, _) => special(PathKind::Drop),
        (RouteKind::Unreachable, _) => special(PathKind::Unreachable),
        (RouteKind::Prohibit, _) => special(PathKind::Prohibit),
        (RouteKind::Unicast, Hops::These(hops)) => paths_of(c, id, hops),
        (RouteKind::Unicast, Hops::Object(object)) => {
            objects::paths(c, id, *object, Version::of_ip(to))
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
