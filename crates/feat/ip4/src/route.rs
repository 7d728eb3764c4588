//! Routes on the main thread: configured paths by source, and what they resolve to.

use crate::Ip4;
use crate::entries::Entries;
use crate::reresolve::PendingReresolve;
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};
use thalweg_device::{DeviceError, SwIfIndex, interface};
use thalweg_fib::forwarding::{DROP, LOCAL, PROHIBIT, UNREACHABLE};
use thalweg_fib::{Dpo, FibError, Forwarding, LinkType, Peer};
use thalweg_graph::Control;
use thalweg_tables::{Ipv4Prefix, Leaf, Lpm4, LpmError, Sweep};

/// Source of a route; the lowest wins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Source {
    /// Interface address.
    Interface,
    /// Configured by CLI or API.
    Static,
    /// Resolved neighbour.
    Adjacency,
    /// Every table has it.
    Default,
}

impl Source {
    /// Word printed by `show ip fib`.
    pub fn word(self) -> &'static str {
        match self {
            Source::Interface => "interface",
            Source::Static => "CLI",
            Source::Adjacency => "adjacency",
            Source::Default => "default-route",
        }
    }
}

/// Kind of path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum PathKind {
    /// A next hop or a connected interface.
    Normal,
    /// Delivered to the router itself.
    Local,
    /// Dropped silently.
    Drop,
    /// Dropped with ICMP "host unreachable".
    Unreachable,
    /// Dropped with ICMP "administratively prohibited".
    Prohibit,
}

/// One path of a route.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Path {
    /// Kind of path.
    pub kind: PathKind,
    /// Next hop; `None` for a connected path.
    pub next_hop: Option<Ipv4Addr>,
    /// Egress interface; `None` if the next hop is resolved recursively.
    pub sw_if: Option<SwIfIndex>,
    /// Weight among the route's paths, at least 1.
    pub weight: u8,
}

impl Path {
    /// A path to a next hop.
    pub fn via(next_hop: Ipv4Addr, sw_if: Option<SwIfIndex>) -> Path {
        Path { kind: PathKind::Normal, next_hop: Some(next_hop), sw_if, weight: 1 }
    }
    /// A special path, without next hop.
    pub fn special(kind: PathKind) -> Path {
        Path { kind, next_hop: None, sw_if: None, weight: 1 }
    }
    /// A connected path.
    pub fn connected(sw_if: SwIfIndex) -> Path {
        Path { kind: PathKind::Normal, next_hop: None, sw_if: Some(sw_if), weight: 1 }
    }
}

/// Why a route or table request failed.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// The table does not exist.
    #[error("no IPv4 table {0}; `ip table add {0}` makes one")]
    NoTable(u32),
    /// Table 0 cannot be deleted.
    #[error("table 0 is the default table of all interfaces and cannot be deleted")]
    MainTable,
    /// The table is used by an interface.
    #[error(
        "table {table} is used by `{interface}`; `set interface ip table {interface} 0` frees it"
    )]
    TableInUse {
        /// Table id.
        table: u32,
        /// One of the interfaces that use it.
        interface: String,
    },
    /// The limit of tables is reached.
    #[error("no room for another IPv4 table: the limit is {}", crate::MAX_TABLES)]
    TooManyTables,
    /// The route does not exist.
    #[error("no route {prefix} in table {table}{hint}")]
    NoRoute {
        /// Prefix.
        prefix: Ipv4Prefix,
        /// Table id.
        table: u32,
        /// What exists instead.
        hint: String,
    },
    /// The next hop is not reachable.
    #[error(
        "next hop {0} is not reachable: no connected subnet and no route covers it; name its \
         interface, or add the address first"
    )]
    Unreachable(Ipv4Addr),
    /// Recursion loop.
    #[error("next hop {0} resolves through itself (recursion loop)")]
    Loop(Ipv4Addr),
    /// The next hop is one of the router's own addresses.
    #[error("next hop {0} is this router's own address")]
    Own(Ipv4Addr),
    /// The interface does not exist.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No forwarding object could be created.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// The table is full.
    #[error(transparent)]
    Lpm(#[from] LpmError),
    /// The prefix belongs to an interface address.
    #[error("{0} belongs to an interface address; delete that instead")]
    Interface(Ipv4Prefix),
}

/// Number of an interned path list.
pub(crate) type ListId = u32;

struct PathList {
    /// Empty once the last path was over a deleted interface: its routes are removed, in slices.
    paths: Vec<Path>,
    dpo: Dpo,
    uses: u32,
}

/// A route, for display.
#[derive(Clone, Debug)]
pub struct RouteView {
    /// Prefix.
    pub prefix: Ipv4Prefix,
    /// Source.
    pub source: Source,
    /// Configured paths.
    pub paths: Vec<Path>,
    /// Forwarding object that it resolves to.
    pub dpo: Dpo,
    /// All sources.
    pub sources: Vec<Source>,
}

/// One routing table.
pub(crate) struct Table {
    pub(crate) id: u32,
    /// Distinguishes it from an earlier table with the same id.
    pub(crate) serial: u32,
    pub(crate) lpm: Lpm4,
    routes: Entries,
    lists: Vec<Option<PathList>>,
    by_paths: HashMap<Vec<Path>, ListId>,
    free: Vec<ListId>,
    /// Next hops resolved recursively, with the lists that use them.
    recursive: BTreeSet<(u32, ListId)>,
    /// Lists whose routes are still to be rewritten or removed.
    pending: PendingReresolve,
}

const MAX_DEPTH: u32 = 8;
/// Routes visited at once; more are visited in slices.
const AT_ONCE: usize = 16_384;
/// Routes visited in the time that rewriting one takes.
const FOLLOWING: usize = 7;
/// Maximum time per slice; two of them may fall into one loop of the main thread.
const SLICE: Duration = Duration::from_millis(1);
/// Minimum number of routes visited per slice, however long it takes.
const AT_LEAST: usize = 1024;

/// Runs a slice of pending re-resolution; returns true once nothing is pending.
pub(crate) fn reresolve_slice(c: &Control) -> bool {
    let ip4 = c.state::<Ip4>();
    let mut ip4 = ip4.borrow_mut();
    let pending = ip4.tables.values_mut().find(|t| !t.is_resolved());
    pending.is_none_or(|t| t.reresolve_slice(c, usize::MAX, SLICE))
        && ip4.tables.values().all(Table::is_resolved)
}

/// As [`reresolve_slice`], rearming itself while routes are pending.
fn reresolve_later(c: &mut Control) {
    if !reresolve_slice(c) {
        c.after(Duration::ZERO, reresolve_later);
    }
}

/// Next hops of paths that are resolved recursively.
fn recursive(paths: &[Path]) -> impl Iterator<Item = u32> {
    let unknown = paths.iter().filter(|p| p.kind == PathKind::Normal && p.sw_if.is_none());
    unknown.filter_map(|p| p.next_hop).map(Ipv4Addr::to_bits)
}

fn peer(next_hop: Ipv4Addr) -> Peer {
    Peer::Neighbor(IpAddr::V4(next_hop))
}

impl Table {
    pub(crate) fn new(id: u32, serial: u32, lpm: Lpm4) -> Table {
        Table {
            id,
            serial,
            lpm,
            routes: Entries::default(),
            lists: Vec::new(),
            by_paths: HashMap::new(),
            free: Vec::new(),
            recursive: BTreeSet::new(),
            pending: PendingReresolve::default(),
        }
    }

    fn list(&self, id: ListId) -> Option<&PathList> {
        self.lists.get(id as usize)?.as_ref()
    }

    /// Interns a path list and adds a reference to it.
    fn intern(&mut self, c: &Control, mut paths: Vec<Path>) -> Result<ListId, RouteError> {
        paths.sort_unstable();
        if let Some(&id) = self.by_paths.get(&paths) {
            if let Some(Some(l)) = self.lists.get_mut(id as usize) {
                l.uses += 1;
            }
            return Ok(id);
        }
        let dpo = self.resolve(c, &paths, 0)?;
        let list = PathList { paths: paths.clone(), dpo, uses: 1 };
        let id = match self.free.pop() {
            Some(id) => {
                self.lists[id as usize] = Some(list);
                id
            }
            None => {
                self.lists.push(Some(list));
                self.lists.len() as ListId - 1
            }
        };
        self.recursive.extend(recursive(&paths).map(|nh| (nh, id)));
        self.by_paths.insert(paths, id);
        Ok(id)
    }

    fn release(&mut self, c: &Control, id: ListId) {
        let Some(Some(l)) = self.lists.get_mut(id as usize) else { return };
        l.uses -= 1;
        if l.uses == 0
            && let Some(l) = self.lists[id as usize].take()
        {
            self.forget_paths(&l.paths, id);
            self.free.push(id);
            c.state::<Forwarding>().borrow_mut().release(c, l.dpo);
        }
    }

    /// Removes a list from the index of recursive next hops.
    fn forget_paths(&mut self, paths: &[Path], id: ListId) {
        if self.by_paths.get(paths) == Some(&id) {
            self.by_paths.remove(paths);
        }
        for nh in recursive(paths) {
            self.recursive.remove(&(nh, id));
        }
    }

    /// The winning source of a prefix, and its paths.
    fn best(&self, prefix: Ipv4Prefix) -> Option<(Source, &PathList)> {
        let live = |(source, id)| Some((source, self.list(id).filter(|l| !l.paths.is_empty())?));
        live(self.routes.best(prefix)?)
            .or_else(|| self.routes.all(prefix).into_iter().find_map(live))
    }

    /// Creates the forwarding object of a path list, which the caller holds.
    fn resolve(&self, c: &Control, paths: &[Path], depth: u32) -> Result<Dpo, RouteError> {
        let mut members: Vec<(Dpo, u32)> = Vec::new();
        for p in paths {
            match self.resolve_path(c, p, depth) {
                Ok(found) => {
                    for dpo in found {
                        members.push((dpo, u32::from(p.weight.max(1))));
                    }
                }
                Err(e) => {
                    let f = c.state::<Forwarding>();
                    for (dpo, _) in members {
                        f.borrow_mut().release(c, dpo);
                    }
                    return Err(e);
                }
            }
        }
        if let [(dpo, _)] = members[..] {
            return Ok(dpo);
        }
        Ok(c.state::<Forwarding>().borrow_mut().group(c, members)?)
    }

    fn resolve_path(&self, c: &Control, p: &Path, depth: u32) -> Result<Vec<Dpo>, RouteError> {
        let f = c.state::<Forwarding>();
        match (p.kind, p.next_hop, p.sw_if) {
            (PathKind::Local, ..) => Ok(vec![LOCAL]),
            (PathKind::Drop, ..) | (PathKind::Normal, None, None) => Ok(vec![DROP]),
            (PathKind::Unreachable, ..) => Ok(vec![UNREACHABLE]),
            (PathKind::Prohibit, ..) => Ok(vec![PROHIBIT]),
            (PathKind::Normal, None, Some(sw_if)) => {
                Ok(vec![f.borrow_mut().glean(c, sw_if, LinkType::Ip4)?])
            }
            (PathKind::Normal, Some(nh), Some(sw_if)) => {
                interface::view(c, sw_if)?;
                Ok(vec![f.borrow_mut().adjacency(c, sw_if, LinkType::Ip4, peer(nh))?])
            }
            (PathKind::Normal, Some(nh), None) => self.resolve_next_hop(c, nh, depth),
        }
    }

    /// Resolves a next hop without an interface through its covering route.
    fn resolve_next_hop(
        &self,
        c: &Control,
        nh: Ipv4Addr,
        depth: u32,
    ) -> Result<Vec<Dpo>, RouteError> {
        if depth >= MAX_DEPTH {
            return Err(RouteError::Loop(nh));
        }
        let f = c.state::<Forwarding>();
        let mut found = self.lpm.lookup(nh.to_bits());
        while let Some((prefix, _)) = found {
            let Some((source, list)) = self.best(prefix) else {
                found = self.lpm.parent(prefix);
                continue;
            };
            match source {
                // A neighbour's /32 route does not count: its covering route does.
                Source::Adjacency => {}
                Source::Default => break,
                Source::Interface => match list.paths.first() {
                    Some(Path { kind: PathKind::Normal, sw_if: Some(i), .. }) => {
                        return Ok(vec![f.borrow_mut().adjacency(
                            c,
                            *i,
                            LinkType::Ip4,
                            peer(nh),
                        )?]);
                    }
                    Some(Path { kind: PathKind::Local, .. }) => return Err(RouteError::Own(nh)),
                    _ => break,
                },
                Source::Static => {
                    let paths = list.paths.clone();
                    if paths.iter().any(|p| p.next_hop == Some(nh))
                        && paths.iter().all(|p| p.sw_if.is_none())
                    {
                        return Err(RouteError::Loop(nh));
                    }
                    if paths.iter().all(|p| p.kind == PathKind::Normal) {
                        // A connected prefix: the next hop lies on that interface.
                        if let [Path { next_hop: None, sw_if: Some(i), .. }] = paths[..] {
                            return Ok(vec![f.borrow_mut().adjacency(
                                c,
                                i,
                                LinkType::Ip4,
                                peer(nh),
                            )?]);
                        }
                        return Ok(vec![self.resolve(c, &paths, depth + 1)?]);
                    }
                    break;
                }
            }
            found = self.lpm.parent(prefix);
        }
        Err(RouteError::Unreachable(nh))
    }

    fn write(&mut self, c: &Control, prefix: Ipv4Prefix) -> Result<(), RouteError> {
        let dpo = self.best(prefix).map(|(_, list)| list.dpo);
        match dpo.and_then(Leaf::new) {
            Some(leaf) => {
                if let Err(LpmError::GroupsFull { .. }) = self.lpm.insert(prefix, leaf) {
                    // Groups of deleted routes may only wait for their grace period.
                    self.lpm.reclaim(c.domain());
                    self.lpm.insert(prefix, leaf)?;
                }
            }
            None => {
                self.lpm.remove(prefix);
            }
        }
        Ok(())
    }

    /// Adds or replaces a source's route. On an error nothing has changed.
    pub(crate) fn set(
        &mut self,
        c: &Control,
        prefix: Ipv4Prefix,
        source: Source,
        paths: Vec<Path>,
    ) -> Result<(), RouteError> {
        let list = self.intern(c, paths)?;
        let replaced = match self.routes.set(prefix, source, list) {
            Ok(replaced) => replaced,
            Err(_) => {
                self.release(c, list);
                return Err(LpmError::OutOfMemory { routes: self.len() }.into());
            }
        };
        if let Err(e) = self.write(c, prefix) {
            // The previous state fits, as it did before.
            let _ = match replaced {
                Some(old) => self.routes.set(prefix, source, old),
                None => Ok(self.routes.unset(prefix, source)),
            };
            self.release(c, list);
            return Err(e);
        }
        if let Some(l) = replaced {
            self.release(c, l);
        }
        self.re_resolve(c, prefix);
        Ok(())
    }

    /// Removes a source's route; returns false if there is none.
    pub(crate) fn unset(&mut self, c: &Control, prefix: Ipv4Prefix, source: Source) -> bool {
        let Some(list) = self.routes.unset(prefix, source) else { return false };
        // Removing or falling back to another source needs no memory.
        let _ = self.write(c, prefix);
        self.release(c, list);
        self.re_resolve(c, prefix);
        true
    }

    /// Releases all forwarding objects; no worker looks up here any more. What is left is memory.
    pub(crate) fn clear(&mut self, c: &Control) {
        self.by_paths.clear();
        self.recursive.clear();
        let f = c.state::<Forwarding>();
        for list in self.lists.drain(..).flatten() {
            f.borrow_mut().release(c, list.dpo);
        }
        self.free.clear();
        for dpo in std::mem::take(&mut self.pending).into_held() {
            f.borrow_mut().release(c, dpo);
        }
    }

    /// Paths of a source's route.
    pub(crate) fn paths(&self, prefix: Ipv4Prefix, source: Source) -> Option<Vec<Path>> {
        let id = self.routes.find(prefix, source)?;
        self.list(id).map(|l| l.paths.clone()).filter(|paths| !paths.is_empty())
    }

    /// Continues a walk over configured routes, a few hundred at most, unordered; returns false at
    /// the end. A prefix may be visited twice.
    pub(crate) fn sweep_configured(
        &self,
        at: &mut Sweep,
        out: &mut Vec<(Ipv4Prefix, Vec<Path>)>,
    ) -> bool {
        self.routes.sweep_of(at, Source::Static, |prefix, id| {
            let paths = self.list(id).map(|l| l.paths.clone());
            out.extend(paths.filter(|p| !p.is_empty()).map(|paths| (prefix, paths)));
        })
    }

    /// Re-resolves lists with next hops that `changed` covers, after it was added or deleted.
    fn re_resolve(&mut self, c: &Control, changed: Ipv4Prefix) {
        let covered = self.recursive.range((changed.addr(), 0)..=(changed.last(), ListId::MAX));
        let covered: BTreeSet<ListId> = covered.map(|(_, id)| *id).collect();
        if !covered.is_empty() {
            self.resolve_again(c, covered, BTreeSet::new());
        }
    }

    /// Re-resolves these lists and those that depend on their routes. Routes of the lists that
    /// changed, and of `others`, are rewritten: many of them later.
    fn resolve_again(&mut self, c: &Control, lists: BTreeSet<ListId>, others: BTreeSet<ListId>) {
        let f = c.state::<Forwarding>();
        let (mut moved, mut held) = (others, Vec::new());
        for id in self.stale(lists) {
            let Some(list) = self.list(id).filter(|l| !l.paths.is_empty()) else { continue };
            let (paths, old) = (list.paths.clone(), list.dpo);
            // Unreachable for now: it recovers with its next hop.
            let new = self.resolve(c, &paths, 0).unwrap_or(UNREACHABLE);
            if new == old {
                f.borrow_mut().release(c, new);
            } else if let Some(Some(l)) = self.lists.get_mut(id as usize) {
                l.dpo = new;
                moved.insert(id);
                held.push(old);
            }
        }
        if moved.is_empty() {
            return;
        }
        let idle = self.pending.is_empty();
        self.pending.add(moved, held);
        if idle && !self.reresolve_slice(c, AT_ONCE, SLICE) {
            c.remote().submit(reresolve_later);
        }
    }

    /// Returns whether no re-resolution is pending.
    pub(crate) fn is_resolved(&self) -> bool {
        self.pending.is_empty()
    }

    /// Visits about `max` routes (fewer if many are rewritten) for about `time`, rewrites those
    /// whose list was re-resolved, and removes those whose list is empty. Returns true once nothing
    /// is pending; until then, other routes forward as before. Rewriting a short prefix takes as
    /// long as hundreds of long ones.
    fn reresolve_slice(&mut self, c: &Control, max: usize, time: Duration) -> bool {
        let (begin, mut seen, mut n) = (Instant::now(), 0, 0);
        loop {
            while let Some((prefix, source)) = self.pending.pop() {
                self.follow(c, prefix, source);
                n += 1;
                seen += FOLLOWING;
                if n % 16 == 0 && seen >= AT_LEAST && begin.elapsed() >= time {
                    return false;
                }
            }
            if seen >= max || (seen >= AT_LEAST && begin.elapsed() >= time) {
                return false;
            }
            match self.pending.scan(&self.routes) {
                Some(n) => seen += n,
                None => {
                    let f = c.state::<Forwarding>();
                    for old in self.pending.finish() {
                        f.borrow_mut().release(c, old);
                    }
                    if self.pending.is_empty() {
                        return true;
                    }
                }
            }
        }
    }

    /// Rewrites one route from its list.
    fn follow(&mut self, c: &Control, prefix: Ipv4Prefix, source: Source) {
        // It may have another list by now.
        let list = self.routes.find(prefix, source).and_then(|id| self.list(id));
        match list {
            Some(list) if list.paths.is_empty() => _ = self.unset(c, prefix, source),
            // Replacing a leaf needs no memory.
            _ => _ = self.write(c, prefix),
        }
    }

    /// Returns these lists and those that depend on their routes.
    fn stale(&self, mut stale: BTreeSet<ListId>) -> BTreeSet<ListId> {
        let mut grown = !stale.is_empty();
        while grown {
            let through = |nh: u32| {
                let mut at = self.lpm.lookup(nh);
                while let Some((prefix, _)) = at {
                    if self.routes.best(prefix).is_some_and(|e| stale.contains(&e.1)) {
                        return true;
                    }
                    at = self.lpm.parent(prefix);
                }
                false
            };
            let others = self.recursive.iter().filter(|(_, id)| !stale.contains(id));
            let more: Vec<ListId> = others.filter(|e| through(e.0)).map(|e| e.1).collect();
            grown = !more.is_empty();
            stale.extend(more);
        }
        stale
    }

    /// Removes every path over a deleted interface, and routes without paths; the last of many are
    /// removed in later slices, but are hidden at once.
    pub(crate) fn interface_gone(&mut self, c: &Control, sw_if: SwIfIndex) {
        let on = |l: &PathList| l.paths.iter().any(|p| p.sw_if == Some(sw_if));
        let lists = self.lists.iter().zip(0..);
        let lists: BTreeSet<ListId> =
            lists.filter(|(l, _)| l.as_ref().is_some_and(on)).map(|(_, id)| id).collect();
        let mut without = BTreeSet::new();
        for &id in &lists {
            let Some(Some(list)) = self.lists.get_mut(id as usize) else { continue };
            let old = std::mem::take(&mut list.paths);
            let keep: Vec<Path> = old.iter().filter(|p| p.sw_if != Some(sw_if)).copied().collect();
            list.paths.clone_from(&keep);
            self.forget_paths(&old, id);
            if keep.is_empty() {
                without.insert(id);
                continue;
            }
            self.recursive.extend(recursive(&keep).map(|nh| (nh, id)));
            // If other routes share these paths, two such lists exist until one has no routes.
            self.by_paths.entry(keep).or_insert(id);
        }
        if !lists.is_empty() {
            self.resolve_again(c, lists, without);
        }
    }

    /// Looks up a route by exact prefix.
    pub(crate) fn view(&self, prefix: Ipv4Prefix) -> Option<RouteView> {
        let (source, l) = self.best(prefix)?;
        let live = |id| self.list(id).is_some_and(|l| !l.paths.is_empty());
        let all = self.routes.all(prefix);
        let sources = all.into_iter().filter(|e| live(e.1)).map(|e| e.0).collect();
        Some(RouteView { prefix, source, paths: l.paths.clone(), dpo: l.dpo, sources })
    }

    /// Looks up the longest match of a destination.
    pub(crate) fn lookup(&self, addr: Ipv4Addr) -> Option<RouteView> {
        let mut at = self.lpm.lookup(addr.to_bits());
        while let Some((prefix, _)) = at {
            if let Some(view) = self.view(prefix) {
                return Some(view);
            }
            at = self.lpm.parent(prefix);
        }
        None
    }

    /// All routes in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = RouteView> + '_ {
        self.lpm.iter().filter_map(|(p, _)| self.view(p))
    }

    pub(crate) fn len(&self) -> usize {
        self.routes.len()
    }

    /// Memory of the routes in bytes, without the first level of the forwarding table.
    pub(crate) fn memory(&self) -> usize {
        self.lpm.memory() + self.routes.memory()
    }
}
