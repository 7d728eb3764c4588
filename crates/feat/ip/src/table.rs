//! Tables and their routes, and why a request for one fails.

use crate::family::{Leaves, Version, family, for_version};
use crate::{Ip, MAX_TABLES, RoutedPeersChanged, TableDeleted};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use thalweg_device::SwIfIndex;
use thalweg_engine::Came;
use thalweg_fib::rib::{self, Labels, NeighborOn, Path, PathKind, RibError, Source};
use thalweg_fib::{Dpo, Forwarding, TableId};
use thalweg_graph::Control;
use thalweg_tables::{Address, LpmError, Prefix};

/// One table.
pub(crate) type Table<A> = rib::Table<A, Leaves<A>>;

/// Reason why a route or table request failed.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// The router does not have this version of IP.
    #[error("{0} is not supported yet")]
    NoFamily(Version),
    /// The table does not exist.
    #[error("no {0} table {1}; `{word} table add {1}` makes one", word = .0.word())]
    NoTable(Version, u32),
    /// Table 0 cannot be deleted.
    #[error("table 0 is the default table of all interfaces and cannot be deleted")]
    MainTable,
    /// The table is used by an interface.
    #[error(
        "table {table} is used by `{interface}`; `set interface {word} table {interface} 0` frees it",
        word = .version.word()
    )]
    TableInUse {
        /// Version of the table.
        version: Version,
        /// Table id.
        table: TableId,
        /// One of the interfaces that use it.
        interface: String,
    },
    /// Next hops of other tables' routes, or tunnels, are resolved in the table.
    #[error("routes of other tables have next hops in table {0}; delete them first")]
    TableTracked(u32),
    /// The limit of tables is reached.
    #[error("no room for another {0} table: the limit is {MAX_TABLES}")]
    TooManyTables(Version),
    /// The route does not exist.
    #[error("no route {prefix} in table {table}{hint}")]
    NoRoute {
        /// Prefix.
        prefix: String,
        /// Table id.
        table: TableId,
        /// The difference from an existing route; empty without one.
        hint: String,
    },
    /// The route is refused.
    #[error(transparent)]
    Rib(#[from] RibError),
    /// The table could not be created.
    #[error(transparent)]
    Lpm(#[from] LpmError),
}

impl<A: Address> Ip<A> {
    /// The table with an id.
    pub(crate) fn table_mut(&mut self, id: TableId) -> Result<&mut Table<A>, RouteError> {
        let missing = self.no_table(id);
        self.tables.get_mut(&id).ok_or(missing)
    }

    /// Returns whether a table has no routes but those of every table, and no interfaces.
    fn is_unused(&self, id: TableId, dropped: &[(A, u8)]) -> bool {
        let Some(table) = self.tables.get(&id) else { return false };
        let is_usual = |(addr, len): &(A, u8)| {
            let view = Prefix::new(*addr, *len).ok().and_then(|prefix| table.view(prefix));
            view.is_none_or(|view| view.sources == [Source::Default])
        };
        table.len() <= dropped.len()
            && dropped.iter().all(is_usual)
            && self.bound.to(id).next().is_none()
    }

    /// Returns whether a table is there for the kernel alone.
    pub(crate) fn is_needed_only(&self, id: TableId) -> bool {
        self.needed.contains(&id) && self.bound.to(id).next().is_none()
    }

    /// Takes note that a user has written something into a table.
    pub(crate) fn adopt(&mut self, id: TableId) {
        self.needed.remove(&id);
    }

    /// Returns the reason why there is no table with an id.
    pub(crate) fn no_table(&self, id: TableId) -> RouteError {
        let version = Version::of::<A>();
        match self.family {
            Some(_) => RouteError::NoTable(version, id.get()),
            None => RouteError::NoFamily(version),
        }
    }
}

/// Adds a routing table, unless it exists.
///
/// # Errors
/// If the limit of tables is reached or memory exhausted.
pub fn add_table<A: Address>(c: &mut Control, id: TableId) -> Result<(), RouteError> {
    let (family, ip) = (family::<A>(c)?, c.state::<Ip<A>>());
    let version = Version::of::<A>();
    if ip.borrow().tables.contains_key(&id) {
        let mut ip = ip.borrow_mut();
        ip.leaving.remove(&id);
        ip.needed.remove(&id);
        return Ok(());
    }
    if ip.borrow().tables.len() >= MAX_TABLES {
        return Err(RouteError::TooManyTables(version));
    }
    let serial = {
        let mut ip = ip.borrow_mut();
        ip.serial += 1;
        ip.serial
    };
    let leaves = family.leaves(c, id, serial)?;
    let mut table = Table::new(id, serial, version.link(), leaves);
    for (addr, len) in family.dropped() {
        if let Ok(prefix) = Prefix::new(*addr, *len) {
            table.set(c, prefix, Source::Default, vec![Path::special(PathKind::Drop)])?;
        }
    }
    ip.borrow_mut().tables.insert(id, table);
    family.publish(c, id);
    c.publish(Came);
    Ok(())
}

/// Adds a routing table for routes or interfaces of the kernel, unless it exists. As long as no
/// user adds it or writes something into it, it is no part of documents, and goes by
/// [`drop_needed`].
///
/// # Errors
/// Returns the errors of [`add_table`].
pub fn need_table<A: Address>(c: &mut Control, id: TableId) -> Result<(), RouteError> {
    let ip = c.state::<Ip<A>>();
    let is_there = ip.borrow().tables.contains_key(&id);
    // One that a user has deleted is no longer the user's.
    let is_left = ip.borrow_mut().leaving.remove(&id);
    if !is_there {
        add_table::<A>(c, id)?;
    }
    if (is_left || !is_there) && id != TableId(0) {
        ip.borrow_mut().needed.insert(id);
    }
    Ok(())
}

/// Deletes tables that [`need_table`] made, once they are unused: without interfaces, and without
/// routes but those that each table has. Tables for which `keep` returns true stay.
pub fn drop_needed<A: Address>(c: &mut Control, keep: impl Fn(TableId) -> bool) {
    let Ok(family) = family::<A>(c) else { return };
    let unused: Vec<TableId> = {
        let ip = c.state::<Ip<A>>();
        let ip = ip.borrow();
        let is_unused = |id: &TableId| !keep(*id) && ip.is_unused(*id, family.dropped());
        ip.needed.iter().copied().filter(is_unused).collect()
    };
    for id in unused {
        // One in which others have next hops stays.
        let _ = del_table::<A>(c, id);
    }
}

/// Deletes a routing table with all its routes.
///
/// # Errors
/// If it is table 0, an interface uses it, or it does not exist.
pub fn del_table<A: Address>(c: &mut Control, id: TableId) -> Result<(), RouteError> {
    let (family, ip) = (family::<A>(c)?, c.state::<Ip<A>>());
    if id == TableId(0) {
        return Err(RouteError::MainTable);
    }
    let user = ip.borrow().bound.to(id).next();
    if let Some(i) = user {
        let (version, interface) = (Version::of::<A>(), c.interface_name(i));
        return Err(RouteError::TableInUse { version, table: id, interface });
    }
    if ip.borrow_mut().tables.get_mut(&id).is_some_and(|t| t.release_tracked(c)) {
        return Err(RouteError::TableTracked(id.get()));
    }
    let gone = {
        let mut ip = ip.borrow_mut();
        ip.replacing.remove(&id);
        ip.names.remove(&id);
        ip.unreachables.remove(&id);
        ip.leaving.remove(&id);
        ip.needed.remove(&id);
        ip.unsettled.remove(&id);
        ip.tables.remove(&id)
    };
    let mut gone = gone.ok_or_else(|| ip.borrow().no_table(id))?;
    family.publish(c, id);
    gone.clear(c);
    ip.borrow_mut().publish_peers_later(c, gone.take_changed_peers());
    // Workers may still be reading it.
    c.domain().retire(move || discard(gone));
    c.publish(TableDeleted { version: Version::of::<A>(), table: id });
    Ok(())
}

/// Deletes a routing table as soon as it can be: its configured routes go at once, the table with
/// the last interface that uses it and the last route with a next hop in it. Adding it again keeps
/// it. Nothing happens to table 0, or if there is no such table.
///
/// # Errors
/// If the router does not have this version of IP.
pub fn retire<A: Address>(c: &mut Control, id: TableId) -> Result<(), RouteError> {
    match del_table::<A>(c, id) {
        Err(RouteError::TableInUse { .. } | RouteError::TableTracked(_)) => {
            c.state::<Ip<A>>().borrow_mut().leaving.insert(id);
            crate::replace::flush::<A>(c, id, Box::new(|| {}))
        }
        Err(RouteError::MainTable | RouteError::NoTable(..)) => Ok(()),
        done => done,
    }
}

/// Deletes the tables that were waiting for their last user.
pub(crate) fn delete_leaving<A: Address>(c: &mut Control) {
    let leaving = c.state::<Ip<A>>().borrow().leaving.clone();
    for id in leaving {
        // One that is still in use waits on.
        let _ = del_table::<A>(c, id);
    }
}

/// Sets whether packets that no route of a table leads on are answered by ICMP errors (RFC 1812
/// section 5.2.7.1); otherwise they are dropped and counted. Routes of kind `unreachable` and
/// `prohibit` always answer.
///
/// # Errors
/// If the table does not exist.
pub fn set_unreachables<A: Address>(
    c: &mut Control,
    id: TableId,
    on: bool,
) -> Result<(), RouteError> {
    let (family, ip) = (family::<A>(c)?, c.state::<Ip<A>>());
    {
        let mut ip = ip.borrow_mut();
        ip.table_mut(id)?;
        ip.adopt(id);
        match on {
            true => ip.unreachables.insert(id),
            false => ip.unreachables.remove(&id),
        };
    }
    family.publish(c, id);
    Ok(())
}

/// Frees a table on a thread of its own: unmapping tens of MiB takes the kernel milliseconds.
fn discard<A: Address>(table: Table<A>) {
    if table.len() < 10_000 {
        return;
    }
    let thread = std::thread::Builder::new().name("discard".into());
    // Without a thread it is dropped here.
    let _ = thread.spawn(move || drop(table));
}

/// Adds paths to a route, or replaces them (`replace`). Routes that resolve their next hop through
/// this one follow at once.
///
/// # Errors
/// [`RouteError`]; the route is unchanged then.
pub fn add_route<A: Address>(
    c: &mut Control,
    table: TableId,
    prefix: Prefix<A>,
    paths: Vec<Path>,
    replace: bool,
) -> Result<(), RouteError> {
    let ip = c.state::<Ip<A>>();
    let mut ip = ip.borrow_mut();
    let paths: Vec<Path> = paths.into_iter().map(|path| path.in_table::<A>(table)).collect();
    let (tracked, done) = ip.track_others(c, &paths);
    let before = match ip.tables.get(&table) {
        Some(t) if replace => t.paths(prefix, Source::Static).unwrap_or_default(),
        _ => Vec::new(),
    };
    let all = [before, paths.clone()].concat();
    let done = done.and_then(|()| ip.put_route(c, table, prefix, paths, replace));
    if done.is_ok() {
        let looked_up = all.iter().filter_map(|path| match path.kind {
            PathKind::Lookup(other) => Some(other),
            _ => None,
        });
        looked_up.chain([table]).for_each(|id| ip.adopt(id));
    }
    follow_attached(c, &mut ip, table, prefix, &all);
    ip.note_peers(c, table);
    let f = c.state::<Forwarding>();
    tracked.into_iter().for_each(|dpo| f.borrow_mut().release(c, dpo));
    done
}

/// Returns the object that follows the route of an address in a table, with a reference: for
/// tunnels to that address.
///
/// # Errors
/// If the table does not exist, or no route leads there now.
pub fn track<A: Address>(c: &mut Control, table: TableId, address: A) -> Result<Dpo, RouteError> {
    let ip = c.state::<Ip<A>>();
    let mut ip = ip.borrow_mut();
    Ok(ip.table_mut(table)?.track(c, address, Labels::NONE)?)
}

/// Does the work of [`track`] with labels before the packets, for a path of the other family.
fn track_labelled<A: Address>(
    c: &Control,
    table: TableId,
    address: IpAddr,
    labels: Labels,
) -> Result<Dpo, RouteError> {
    let own = A::from_ip(address).ok_or(RibError::Family(address))?;
    let ip = c.state::<Ip<A>>();
    let mut ip = ip.borrow_mut();
    Ok(ip.table_mut(table)?.track(c, own, labels)?)
}

/// Paths that are no route's but a label's or a tunnel's, and the object that follows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    list: rib::ListId,
    /// The object, as long as the paths are followed.
    pub dpo: Dpo,
}

/// Follows paths as those of a route in table 0 are: next hops without an interface by the routes
/// that lead there. Equal paths share an object. Ends with [`unfollow`].
///
/// # Errors
/// If a path can never lead anywhere.
pub fn follow<A: Address>(c: &Control, paths: Vec<Path>) -> Result<Followed, RouteError> {
    let ip = c.state::<Ip<A>>();
    let mut ip = ip.borrow_mut();
    let main = TableId(0);
    let paths: Vec<Path> = paths.into_iter().map(|path| path.in_table::<A>(main)).collect();
    let (tracked, done) = ip.track_others(c, &paths);
    let done = done.and_then(|()| Ok(ip.table_mut(main)?.intern(c, paths)?));
    let f = c.state::<Forwarding>();
    tracked.into_iter().for_each(|dpo| f.borrow_mut().release(c, dpo));
    done.map(|(list, dpo)| Followed { list, dpo })
}

/// No longer follows paths.
pub fn unfollow<A: Address>(c: &Control, followed: Followed) {
    let ip = c.state::<Ip<A>>();
    // Table 0 is never deleted.
    if let Some(table) = ip.borrow_mut().tables.get_mut(&TableId(0)) {
        table.release(c, followed.list);
    }
}

/// Starts or stops events of [`WatchedRoutes`](thalweg_fib::WatchedRoutes) about changes of a
/// prefix's route.
///
/// # Errors
/// If the table does not exist.
pub fn watch<A: Address>(
    c: &Control,
    table: TableId,
    prefix: Prefix<A>,
    on: bool,
) -> Result<(), RouteError> {
    c.state::<Ip<A>>().borrow_mut().table_mut(table)?.watch(prefix, on);
    Ok(())
}

/// Takes the watched prefixes of a table whose routes have changed; `None` if the table has gone.
pub fn take_touched<A: Address>(c: &Control, table: TableId) -> Option<BTreeSet<Prefix<A>>> {
    let ip = c.state::<Ip<A>>();
    let mut ip = ip.borrow_mut();
    ip.tables.get_mut(&table).map(Table::take_touched)
}

impl<A: Address> Ip<A> {
    /// Follows next hops in other tables there; returns what has to be released.
    pub(crate) fn track_others(
        &mut self,
        c: &Control,
        paths: &[Path],
    ) -> (Vec<Dpo>, Result<(), RouteError>) {
        let others = paths.iter().filter_map(|p| Some((p, p.table?, p.next_hop?)));
        let (mut tracked, mut done) = (Vec::new(), Ok(()));
        for (path, id, next_hop) in others {
            let (_, labels) = path.tracked_as(Version::of::<A>().link());
            let dpo = match A::from_ip(next_hop) {
                Some(own) => self.table_mut(id).and_then(|t| Ok(t.track(c, own, labels)?)),
                None => {
                    for_version!(Version::of_ip(next_hop), track_labelled(c, id, next_hop, labels))
                }
            };
            match dpo {
                Ok(dpo) => tracked.push(dpo),
                Err(e) => done = Err(e),
            }
        }
        (tracked, done)
    }

    /// Notifies subscribers of hosts on interfaces by a table's routes, if these have changed.
    fn note_peers(&mut self, c: &Control, table: TableId) {
        let changed = self.tables.get_mut(&table).map(Table::take_changed_peers);
        self.publish_peers_later(c, changed.unwrap_or_default());
    }

    /// Does the work of [`note_peers`](Self::note_peers) once for all routes that change in one
    /// loop.
    pub(crate) fn publish_peers_later(&mut self, c: &Control, changed: BTreeSet<SwIfIndex>) {
        let is_first = self.peers_changed.is_empty() && !changed.is_empty();
        self.peers_changed.extend(changed);
        if is_first {
            c.remote().submit(publish_peers_in_time::<A>);
        }
    }

    fn put_route(
        &mut self,
        c: &Control,
        table: TableId,
        prefix: Prefix<A>,
        mut paths: Vec<Path>,
        replace: bool,
    ) -> Result<(), RouteError> {
        let t = self.table_mut(table)?;
        // A special path cannot share load.
        let ends = paths.iter().any(|p| p.kind != PathKind::Normal);
        if !replace
            && !ends
            && let Some(old) = t.paths(prefix, Source::Static)
        {
            let keep = old.into_iter().filter(|o| !paths.iter().any(|p| p.is_same(o)));
            let keep: Vec<Path> = keep.filter(|o| o.kind == PathKind::Normal).collect();
            paths.extend(keep);
        }
        t.set(c, prefix, Source::Static, paths)?;
        let sweeps = self.sweeping.iter().filter(|s| s.0 == table).map(|s| &s.1);
        for added in self.replacing.get(&table).into_iter().chain(sweeps) {
            added.borrow_mut().insert(prefix);
        }
        Ok(())
    }
}

/// Least time between reports of changed peers: there may be many, and all are reported each time.
const PEERS_INTERVAL: Duration = Duration::from_millis(100);

fn publish_peers_in_time<A: Address>(c: &mut Control) {
    let last = c.state::<Ip<A>>().borrow().peers_published;
    let due = last.map(|at| at + PEERS_INTERVAL);
    match due.and_then(|due| due.checked_duration_since(Instant::now())) {
        Some(left) => _ = c.after(left, publish_peers::<A>),
        None => publish_peers::<A>(c),
    }
}

fn publish_peers<A: Address>(c: &mut Control) {
    let changed = {
        let ip = c.state::<Ip<A>>();
        let mut ip = ip.borrow_mut();
        ip.peers_published = Some(Instant::now());
        std::mem::take(&mut ip.peers_changed)
    };
    for sw_if in changed {
        c.publish(RoutedPeersChanged { version: Version::of::<A>(), sw_if });
    }
}

/// Removes paths from a route, or the whole route if `paths` is empty.
///
/// # Errors
/// [`RouteError::NoRoute`] if the route or path does not exist.
pub fn del_route<A: Address>(
    c: &mut Control,
    table: TableId,
    prefix: Prefix<A>,
    paths: &[Path],
) -> Result<(), RouteError> {
    let ip = c.state::<Ip<A>>();
    let mut ip = ip.borrow_mut();
    let t = ip.table_mut(table)?;
    let no_route = |hint: String| RouteError::NoRoute { prefix: prefix.to_string(), table, hint };
    let Some(mut left) = t.paths(prefix, Source::Static) else {
        return Err(no_route(match t.view(prefix) {
            Some(v) => format!(" that was configured (this one is from: {})", v.source.word()),
            None => String::new(),
        }));
    };
    let before = left.clone();
    for p in paths {
        let n = left.len();
        let same = |o: &Path| {
            (o.kind, o.next_hop, o.via_label) == (p.kind, p.next_hop, p.via_label)
                && (p.sw_if.is_none() || o.sw_if == p.sw_if)
                && (p.labels == Labels::NONE || o.labels == p.labels)
                && (p.table.is_none() || o.table == p.in_table::<A>(table).table)
        };
        left.retain(|o| !same(o));
        if left.len() == n {
            return Err(no_route(" with that path".into()));
        }
    }
    if paths.is_empty() || left.is_empty() {
        t.unset(c, prefix, Source::Static);
    } else {
        t.set(c, prefix, Source::Static, left)?;
    }
    follow_attached(c, &mut ip, table, prefix, &before);
    ip.note_peers(c, table);
    Ok(())
}

/// Sets the paths of a route that a protocol has found, not a user; without paths, removes it.
/// Paths of other sources stay.
///
/// # Errors
/// [`RouteError`]; the route is unchanged then.
pub fn set_found_route<A: Address>(
    c: &mut Control,
    table: TableId,
    prefix: Prefix<A>,
    source: Source,
    paths: Vec<Path>,
) -> Result<(), RouteError> {
    let ip = c.state::<Ip<A>>();
    let mut ip = ip.borrow_mut();
    let t = ip.table_mut(table)?;
    if paths.is_empty() && !t.has(prefix, source) {
        return Ok(());
    }
    // Only written routes give a table its neighbours.
    let attached = |paths: &[Path]| paths.iter().any(|path| path.attached().is_some());
    let before = match source.is_written() {
        true => t.attached_paths(prefix, source),
        false => None,
    };
    let mut all = before.unwrap_or_default();
    if source.is_written() && attached(&paths) {
        all.extend(&paths);
    }
    if paths.is_empty() {
        t.unset(c, prefix, source);
    } else {
        t.set(c, prefix, source, paths)?;
    }
    follow_attached(c, &mut ip, table, prefix, &all);
    ip.note_peers(c, table);
    Ok(())
}

/// Sets whether a resolved neighbour, written (static) or heard, needs a host route, so that
/// packets to it bypass the subnet's glean entry; [`Table::set_neighbor`](rib::Table::set_neighbor)
/// says when it has one. Returns the interface whose neighbour keeps the address from this one, in
/// the interface's table.
pub fn set_neighbor_route<A: Address>(
    c: &mut Control,
    sw_if: SwIfIndex,
    addr: A,
    is_written: bool,
    wanted: bool,
) -> Option<SwIfIndex> {
    let ip = c.state::<Ip<A>>();
    let mut ip = ip.borrow_mut();
    let own = ip.table_of(sw_if);
    let on = NeighborOn { sw_if, lender: ip.lender(sw_if), is_written };
    let rival = ip.tables.get_mut(&own).and_then(|t| t.set_neighbor(c, addr, on, wanted));
    for id in tables_over::<A>(c, sw_if).into_iter().filter(|id| *id != own) {
        if let Some(t) = ip.tables.get_mut(&id).filter(|t| t.has_attached(sw_if)) {
            let is_there = wanted && t.attaches(sw_if, addr);
            t.set_neighbor(c, addr, on, is_there);
        }
    }
    rival
}

/// Tables with paths over an interface.
pub(crate) fn tables_over<A: Address>(c: &Control, sw_if: SwIfIndex) -> Vec<TableId> {
    c.state::<Forwarding>().borrow().tables_over(sw_if, Version::of::<A>().link())
}

/// Calls a function for each neighbour of an interface that needs host routes.
fn for_neighbors<A: Address>(
    c: &Control,
    ip: &mut Ip<A>,
    sw_if: SwIfIndex,
    mut each: impl FnMut(&mut Ip<A>, A, NeighborOn),
) {
    let (Some(family), Ok(all)) = (ip.family, Prefix::new(A::default(), 0)) else { return };
    let lender = ip.lender(sw_if);
    for (addr, is_written) in family.neighbors(c, sw_if, all) {
        each(ip, addr, NeighborOn { sw_if, lender, is_written });
    }
}

/// Moves the host routes of an interface's neighbours to its table from the one in which it was.
pub(crate) fn move_neighbor_routes<A: Address>(c: &Control, sw_if: SwIfIndex, before: TableId) {
    let ip = c.state::<Ip<A>>();
    let mut ip = ip.borrow_mut();
    let own = ip.table_of(sw_if);
    for_neighbors(c, &mut ip, sw_if, |ip, addr, on| {
        let Some(t) = ip.tables.get_mut(&before).filter(|t| t.claims(addr, sw_if)) else { return };
        let stays = t.attaches(sw_if, addr);
        t.set_neighbor(c, addr, on, stays);
        if let Some(t) = ip.tables.get_mut(&own) {
            t.set_neighbor(c, addr, on, true);
        }
    });
}

/// Makes the host routes of an interface's neighbours follow another lender of subnets.
pub(crate) fn follow_lender<A: Address>(c: &Control, sw_if: SwIfIndex) {
    let ip = c.state::<Ip<A>>();
    let mut ip = ip.borrow_mut();
    for_neighbors(c, &mut ip, sw_if, |ip, addr, on| {
        for t in ip.tables.values_mut().filter(|t| t.claims(addr, sw_if)) {
            t.set_neighbor(c, addr, on, true);
        }
    });
}

/// Gives a table the neighbours that its routes to interfaces cover, or takes those away that none
/// covers any more, after one of these routes has come or gone. In the interface's own table, the
/// neighbours look after that.
fn follow_attached<A: Address>(
    c: &Control,
    ip: &mut Ip<A>,
    table: TableId,
    prefix: Prefix<A>,
    paths: &[Path],
) {
    let Some(family) = ip.family else { return };
    for sw_if in paths.iter().filter_map(Path::attached) {
        let (is_own, lender) = (ip.table_of(sw_if) == table, ip.lender(sw_if));
        let Some(t) = ip.tables.get_mut(&table) else { return };
        for (addr, is_written) in family.neighbors(c, sw_if, prefix) {
            let wanted = t.attaches(sw_if, addr);
            if wanted || !is_own {
                t.set_neighbor(c, addr, NeighborOn { sw_if, lender, is_written }, wanted);
            }
        }
    }
}

/// Removes some of the routes of a version that are still to be removed; returns true once nothing
/// is pending.
fn settle_one<A: Address>(c: &Control) -> bool {
    let ip = c.state::<Ip<A>>();
    let mut ip = ip.borrow_mut();
    let ip = &mut *ip;
    let Some(id) = ip.unsettled.first().copied() else { return true };
    if ip.tables.get_mut(&id).is_none_or(|t| t.settle(c)) {
        ip.unsettled.remove(&id);
    }
    ip.is_resolved()
}

/// Removes some of the routes that are still to be removed; returns true once nothing is pending.
pub(crate) fn settle_slice(c: &Control) -> bool {
    settle_one::<u32>(c) && settle_one::<u128>(c)
}

/// Calls [`settle_slice`], and rearms itself while routes are pending.
pub(crate) fn settle_later(c: &mut Control) {
    if !settle_slice(c) {
        c.after(Duration::ZERO, settle_later);
    }
}
