//! Route tables of any family on the main thread: configured paths by source, and what they resolve
//! to.
//!
//! Routes with equal paths share a *path list*, and workers' tables name the list's forwarding
//! object. That object stays: when a next hop moves, the object gets other members, by one word,
//! and no route is written again, however many there are.

mod entries;
mod error;
mod path;
mod peers;
mod removal;
mod watched;

pub use error::RibError;
pub use path::{Before, Labels, MAX_LABELS, Mode, Path, PathKind, Source, TableId};
pub use peers::RoutedPeers;
pub use watched::WatchedRoutes;

use crate::dpo::MAX_BUCKETS;
use crate::forwarding::{DROP, LOCAL, OWN, PROHIBIT, UNREACHABLE, UNRESOLVED};
use crate::{
    AdjacencyKey, Dpo, FibError, Forwarding, Imposed, Kind, LinkType, MAX_DEPTH, Member, Midchain,
    Peer,
};
use entries::Entries;
use peers::Peers;
use removal::Removal;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use thalweg_device::{SwIfIndex, interface};
use thalweg_graph::Control;
use thalweg_tables::{Address, Leaf, Lpm, LpmError, Prefix, Sweep};
use thalweg_wire::mpls::label;
use watched::Watched;

/// Number of an interned path list.
pub type ListId = u32;

struct PathList {
    /// Empty once the last path was over a deleted interface: its routes are removed, in slices.
    paths: Vec<Path>,
    /// Stays as long as the list.
    dpo: Dpo,
    /// The object is a group of this list's, and follows its next hops.
    own: bool,
    uses: u32,
    /// Number of configured routes among its users.
    configured: u32,
}

impl PathList {
    /// The interface, if all that the list says is that hosts are on it.
    fn attached(&self) -> Option<SwIfIndex> {
        match self.paths[..] {
            [Path { kind: PathKind::Normal, next_hop: None, sw_if, .. }] => sw_if,
            _ => None,
        }
    }
}

/// A route, for display.
#[derive(Clone, Debug)]
pub struct RouteView<A> {
    /// Prefix.
    pub prefix: Prefix<A>,
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
pub struct Table<A: Address, L> {
    id: TableId,
    serial: u32,
    link: LinkType,
    lpm: L,
    routes: Entries<A>,
    lists: Vec<Option<PathList>>,
    by_paths: HashMap<Vec<Path>, ListId>,
    free: Vec<ListId>,
    /// Next hops resolved recursively, with the lists that use them.
    recursive: BTreeSet<(A, ListId)>,
    /// Addresses whose routes others follow, by the list that does so.
    tracked: BTreeMap<ListId, (A, Labels)>,
    /// Lists whose routes are still to be removed.
    removal: Removal<A>,
    peers: Peers<A>,
    watched: Watched<A>,
}

/// Routes visited at once; more are visited in slices.
const AT_ONCE: usize = 16_384;
/// Routes visited in the time that removing one takes.
const FOLLOWING: usize = 7;
/// Maximum time per slice; two of them may fall into one loop of the main thread.
const SLICE: Duration = Duration::from_millis(1);
/// Minimum number of routes visited per slice, however long it takes.
const AT_LEAST: usize = 1024;

/// Returns whether what a path leads to is known for good: a special path, an adjacency, which
/// changes in place, or what another table follows.
fn is_fixed(path: &Path) -> bool {
    path.kind != PathKind::Normal
        || path.sw_if.is_some()
        || path.next_hop.is_none()
        || path.table.is_some()
}

/// Next hops of paths that are resolved recursively.
fn recursive<A: Address>(paths: &[Path]) -> impl Iterator<Item = A> {
    paths.iter().filter(|p| !is_fixed(p)).filter_map(|p| p.next_hop).filter_map(A::from_ip)
}

fn member(path: &Path, dpo: Dpo) -> Member {
    Member { dpo, weight: u32::from(path.weight.max(1)), preference: path.preference }
}

/// Returns the adjacency that puts labels before packets, which without them are of type `carried`;
/// in uniform mode a midchain, whose node sets what the labels have of the packet.
fn imposing(
    c: &Control,
    f: &mut Forwarding,
    (sw_if, peer): (SwIfIndex, Peer),
    carried: LinkType,
    labels: Labels,
) -> Result<Dpo, RibError> {
    let (bottom, swap) = match labels.before() {
        Before::Packet => (true, None),
        Before::Popped => (true, Some(label::IMPLICIT_NULL)),
        Before::Labels => (false, None),
        Before::Swapped(label) => (false, Some(label)),
    };
    let is_plain = bottom && labels.as_slice().is_empty();
    let link = if is_plain { carried } else { LinkType::Mpls };
    let (mode, all) = (labels.mode(), labels.as_slice());
    // A label to swap has its place behind an adjacency's header.
    let node = f.imposer().filter(|_| mode == Mode::Uniform && swap.is_none() && !all.is_empty());
    let labels = labels.put_before(Before::Packet).in_mode(Mode::Pipe);
    let imposed = Imposed { labels, bottom: bottom && !is_plain, swap };
    let Some(node) = node else {
        return Ok(f.imposing(c, AdjacencyKey { sw_if, link, peer, imposed })?);
    };
    let plain = AdjacencyKey { sw_if, link: LinkType::Mpls, peer, imposed: Imposed::NONE };
    let (stacked, header) = (f.imposing(c, plain)?, imposed.bytes());
    let link = if bottom { carried } else { LinkType::Mpls };
    Ok(f.midchain(c, &Midchain { sw_if, link, header: &header, node, stacked })?)
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

impl<A: Address, L: Lpm<A>> Table<A, L> {
    /// Creates an empty table. `serial` distinguishes it from an earlier table with the same id,
    /// `link` is what its packets are.
    pub fn new(id: TableId, serial: u32, link: LinkType, lpm: L) -> Self {
        Table {
            id,
            serial,
            link,
            lpm,
            routes: Entries::default(),
            lists: Vec::new(),
            by_paths: HashMap::new(),
            free: Vec::new(),
            recursive: BTreeSet::new(),
            tracked: BTreeMap::new(),
            removal: Removal::default(),
            peers: Peers::default(),
            watched: Watched::default(),
        }
    }

    /// Returns its id.
    pub fn id(&self) -> TableId {
        self.id
    }

    /// Returns what distinguishes it from an earlier table with the same id.
    pub fn serial(&self) -> u32 {
        self.serial
    }

    /// Returns the table of the packet path.
    pub fn lpm(&self) -> &L {
        &self.lpm
    }

    /// As [`lpm`](Self::lpm), to be maintained.
    pub fn lpm_mut(&mut self) -> &mut L {
        &mut self.lpm
    }

    fn list(&self, id: ListId) -> Option<&PathList> {
        self.lists.get(id as usize)?.as_ref()
    }

    /// Interns a path list and adds a reference to it. Labels, tunnels and whatever else has paths
    /// but no prefix use this as well: the object is the list's as long as it is held, and follows
    /// the routes of its next hops.
    ///
    /// # Errors
    /// If a path cannot be resolved.
    pub fn intern(&mut self, c: &Control, mut paths: Vec<Path>) -> Result<(ListId, Dpo), RibError> {
        for path in &mut paths {
            path.table = path.table.filter(|table| *table != self.id);
        }
        paths.sort_unstable();
        if let Some(&id) = self.by_paths.get(&paths)
            && let Some(Some(l)) = self.lists.get_mut(id as usize)
        {
            l.uses += 1;
            return Ok((id, l.dpo));
        }
        let (dpo, own) = self.object(c, &paths)?;
        let list = PathList { paths: paths.clone(), dpo, own, uses: 1, configured: 0 };
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
        Ok((id, dpo))
    }

    /// Releases a reference to a path list.
    pub fn release(&mut self, c: &Control, id: ListId) {
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

    /// Returns the object that follows the route of an address and puts labels before packets,
    /// with a reference: for tunnels, and for routes of other tables with next hops in this one. It
    /// follows as long as anyone has a reference, also while no route leads there.
    ///
    /// # Errors
    /// If the object cannot be created.
    pub fn track(&mut self, c: &Control, address: A, labels: Labels) -> Result<Dpo, RibError> {
        let ip = address.to_ip();
        let (id, dpo) = self.intern(c, vec![Path { labels, ..Path::via(ip, None) }])?;
        if self.tracked.insert(id, (address, labels)).is_some() {
            self.release(c, id);
        }
        let f = c.state::<Forwarding>();
        let mut f = f.borrow_mut();
        f.tracked.insert((self.link, self.id, ip, labels), dpo);
        f.retain(dpo);
        Ok(dpo)
    }

    /// Stops following routes for those that have released what they followed; returns whether
    /// there are others.
    pub fn release_tracked(&mut self, c: &Control) -> bool {
        let f = c.state::<Forwarding>();
        let used = |id| self.list(id).is_some_and(|list| f.borrow().refs(list.dpo) > 1);
        let unused: Vec<(ListId, (A, Labels))> =
            self.tracked.iter().map(|(id, a)| (*id, *a)).filter(|(id, _)| !used(*id)).collect();
        for (id, (address, labels)) in unused {
            self.tracked.remove(&id);
            f.borrow_mut().tracked.remove(&(self.link, self.id, address.to_ip(), labels));
            self.release(c, id);
        }
        !self.tracked.is_empty()
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
    fn best(&self, prefix: Prefix<A>) -> Option<(Source, &PathList)> {
        let live = |(source, id)| Some((source, self.list(id).filter(|l| !l.paths.is_empty())?));
        live(self.routes.best(prefix)?)
            .or_else(|| self.routes.all(prefix).into_iter().find_map(live))
    }

    /// Creates the forwarding object of a path list: what its only path leads to, if that is known
    /// for good, else a group of its own (true).
    fn object(&self, c: &Control, paths: &[Path]) -> Result<(Dpo, bool), RibError> {
        if paths.len() > MAX_BUCKETS {
            return Err(FibError::Members(paths.len()).into());
        }
        let mut members = Vec::new();
        let f = c.state::<Forwarding>();
        for path in paths {
            match self.resolve(c, path) {
                Ok(dpo) => members.push(member(path, dpo)),
                // It is left out until it leads somewhere.
                Err(e) if e.may_pass() => {}
                Err(e) => {
                    f.borrow_mut().release_all(c, &members);
                    return Err(e);
                }
            }
        }
        if let ([path], [member]) = (paths, &members[..])
            && is_fixed(path)
        {
            return Ok((member.dpo, false));
        }
        let mut f = f.borrow_mut();
        let (deep, mut members): (Vec<Member>, Vec<Member>) =
            members.into_iter().partition(|m| f.is_deepest(m.dpo));
        f.release_all(c, &deep);
        if members.is_empty() && !paths.is_empty() {
            members.push(Member::of(UNRESOLVED));
        }
        Ok((f.group(c, members)?, true))
    }

    /// Returns what a path leads to, with a reference.
    fn resolve(&self, c: &Control, p: &Path) -> Result<Dpo, RibError> {
        let state = c.state::<Forwarding>();
        match (p.kind, p.next_hop, p.sw_if) {
            (PathKind::Local, _, None) => Ok(LOCAL),
            (PathKind::Local, _, Some(_)) => Ok(OWN),
            (PathKind::Drop, ..)
            | (PathKind::Normal, None, None)
            | (PathKind::InterfaceRx, _, None) => Ok(DROP),
            (PathKind::Unreachable, ..) => Ok(UNREACHABLE),
            (PathKind::Prohibit, ..) => Ok(PROHIBIT),
            (PathKind::Lookup(table), ..) => {
                Ok(state.borrow_mut().plain(c, Kind::LOOKUP, table.get())?)
            }
            (PathKind::InterfaceRx, _, Some(sw_if)) => {
                interface::view(c, sw_if)?;
                Ok(state.borrow_mut().plain(c, Kind::INTERFACE_RX, sw_if.get())?)
            }
            (PathKind::Group(number), ..) => {
                let mut f = state.borrow_mut();
                let dpo = f.numbered(number).ok_or(RibError::NoGroup(number))?;
                f.retain(dpo);
                Ok(dpo)
            }
            (PathKind::Normal, next_hop, Some(sw_if)) => {
                interface::view(c, sw_if)?;
                let mut f = state.borrow_mut();
                let labels = p.labels.sent();
                if labels != Labels::NONE {
                    let peer = next_hop.map_or(Peer::PointToPoint, Peer::Neighbor);
                    return imposing(c, &mut f, (sw_if, peer), self.link, labels);
                }
                match next_hop {
                    Some(nh) => Ok(f.adjacency(c, sw_if, self.link, Peer::Neighbor(nh))?),
                    None => Ok(f.glean(c, sw_if, self.link)?),
                }
            }
            (PathKind::Normal, Some(nh), None) if p.table.is_some() => {
                let table = p.table.unwrap_or(self.id);
                let mut f = state.borrow_mut();
                let dpo = f.tracked.get(&(self.link, table, nh, p.labels)).copied();
                let dpo = dpo.ok_or(RibError::NotTracked(nh, table.get()))?;
                f.retain(dpo);
                Ok(dpo)
            }
            (PathKind::Normal, Some(nh), None) if is_link_local(nh) && A::BITS == 128 => {
                Err(RibError::LinkLocal(nh))
            }
            (PathKind::Normal, Some(nh), None) => {
                let own = A::from_ip(nh).ok_or(RibError::Family(nh))?;
                match p.labels.sent() {
                    Labels::NONE => self.resolve_next_hop(c, own),
                    labels => self.resolve_labelled(c, own, labels, MAX_DEPTH),
                }
            }
        }
    }

    /// Resolves a next hop without an interface through its covering route, whose object it
    /// follows.
    fn resolve_next_hop(&self, c: &Control, nh: A) -> Result<Dpo, RibError> {
        let (ip, state) = (nh.to_ip(), c.state::<Forwarding>());
        let neighbor = |sw_if| {
            let mut f = state.borrow_mut();
            f.adjacency(c, sw_if, self.link, Peer::Neighbor(ip)).map_err(RibError::from)
        };
        let mut at = self.routes.covering(nh, A::BITS);
        while let Some(prefix) = at {
            at = prefix.len().checked_sub(1).and_then(|len| self.routes.covering(nh, len));
            let Some((source, list)) = self.best(prefix) else { continue };
            match source {
                // A neighbour's host route does not count: its covering route does.
                Source::Adjacency => {}
                Source::Default => break,
                Source::Interface => match list.paths.first() {
                    Some(Path { kind: PathKind::Normal, sw_if: Some(i), .. }) => {
                        return neighbor(*i);
                    }
                    Some(Path { kind: PathKind::Local, .. }) => return Err(RibError::Own(ip)),
                    _ => break,
                },
                Source::Static => {
                    let paths = &list.paths;
                    if paths.iter().any(|p| p.next_hop == Some(ip))
                        && paths.iter().all(|p| p.sw_if.is_none())
                    {
                        return Err(RibError::Loop(ip));
                    }
                    let leads = |p: &Path| matches!(p.kind, PathKind::Normal | PathKind::Group(_));
                    if !paths.iter().all(leads) {
                        break;
                    }
                    // A connected prefix: the next hop lies on that interface.
                    if let [Path { kind: PathKind::Normal, next_hop: None, sw_if: Some(i), .. }] =
                        paths[..]
                    {
                        return neighbor(i);
                    }
                    let mut f = state.borrow_mut();
                    f.retain(list.dpo);
                    return Ok(list.dpo);
                }
            }
        }
        Err(RibError::Unreachable(ip))
    }

    /// Returns what labels for a next hop without an interface lead to: the labels of the route
    /// that covers it come before them. The object is the caller's only; another one is made when
    /// that route changes.
    fn resolve_labelled(
        &self,
        c: &Control,
        nh: A,
        labels: Labels,
        depth: u32,
    ) -> Result<Dpo, RibError> {
        let (ip, state) = (nh.to_ip(), c.state::<Forwarding>());
        let neighbor = |sw_if| {
            let to = (sw_if, Peer::Neighbor(ip));
            imposing(c, &mut state.borrow_mut(), to, self.link, labels)
        };
        let mut at = self.routes.covering(nh, A::BITS);
        while let Some(prefix) = at {
            at = prefix.len().checked_sub(1).and_then(|len| self.routes.covering(nh, len));
            let Some((source, list)) = self.best(prefix) else { continue };
            match source {
                Source::Adjacency => {}
                Source::Default => break,
                Source::Interface => match list.paths.first() {
                    Some(Path { kind: PathKind::Normal, sw_if: Some(i), .. }) => {
                        return neighbor(*i);
                    }
                    Some(Path { kind: PathKind::Local, .. }) => return Err(RibError::Own(ip)),
                    _ => break,
                },
                Source::Static => {
                    let mut members = Vec::new();
                    for path in &list.paths {
                        match self.labelled_member(c, path, (nh, labels), depth) {
                            Ok(dpo) => members.push(member(path, dpo)),
                            Err(e) if e.may_pass() => {}
                            Err(e) => {
                                state.borrow_mut().release_all(c, &members);
                                return Err(e);
                            }
                        }
                    }
                    return match members[..] {
                        [] => Err(RibError::Unreachable(ip)),
                        [only] => Ok(only.dpo),
                        _ => Ok(state.borrow_mut().group(c, members)?),
                    };
                }
            }
        }
        Err(RibError::Unreachable(ip))
    }

    /// What labels for a next hop lead to by one path of the route that covers it.
    fn labelled_member(
        &self,
        c: &Control,
        path: &Path,
        (nh, labels): (A, Labels),
        depth: u32,
    ) -> Result<Dpo, RibError> {
        let ip = nh.to_ip();
        let stack = labels.under(&path.labels.sent()).ok_or(RibError::Labels)?;
        let f = c.state::<Forwarding>();
        match (path.kind, path.next_hop, path.sw_if) {
            (PathKind::Normal, hop, Some(i)) => {
                interface::view(c, i)?;
                let peer = Peer::Neighbor(hop.unwrap_or(ip));
                imposing(c, &mut f.borrow_mut(), (i, peer), self.link, stack)
            }
            (PathKind::Normal, Some(hop), None) if path.table.is_none() => {
                if hop == ip {
                    return Err(RibError::Loop(ip));
                }
                let depth = depth.checked_sub(1).ok_or(FibError::Depth)?;
                let own = A::from_ip(hop).ok_or(RibError::Family(hop))?;
                self.resolve_labelled(c, own, stack, depth)
            }
            _ => Err(RibError::Unreachable(ip)),
        }
    }

    /// The list that packets to a prefix follow: the winner's, but a neighbour's own in the place
    /// of a configured one that only says on which interface that host is.
    fn followed(&self, prefix: Prefix<A>) -> Option<&PathList> {
        let (source, list) = self.best(prefix)?;
        let Some(on) =
            list.attached().filter(|_| prefix.len() == A::BITS && source == Source::Static)
        else {
            return Some(list);
        };
        let neighbor = self.routes.find(prefix, Source::Adjacency).and_then(|id| self.list(id));
        let same = |list: &&PathList| matches!(list.paths[..], [p] if p.sw_if == Some(on));
        neighbor.filter(same).or(Some(list))
    }

    fn write(&mut self, c: &Control, prefix: Prefix<A>) -> Result<(), RibError> {
        self.watched.touch(c, (self.link, self.id), prefix);
        let dpo = self.followed(prefix).map(|list| list.dpo);
        match dpo.and_then(|dpo| Leaf::new(dpo.0)) {
            Some(leaf) => self.lpm.set(prefix, leaf, c.domain())?,
            None => self.lpm.unset(prefix),
        }
        Ok(())
    }

    /// Adds or replaces a source's route. Paths whose next hop leads nowhere yet are kept: they
    /// take part once it does, and [`unresolved`](Self::unresolved) says why they do not.
    ///
    /// # Errors
    /// [`RibError`], if a path can never lead anywhere; nothing has changed then.
    pub fn set(
        &mut self,
        c: &Control,
        prefix: Prefix<A>,
        source: Source,
        paths: Vec<Path>,
    ) -> Result<(), RibError> {
        let (list, _) = self.intern(c, paths)?;
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
        if source == Source::Static {
            if let Some(l) = replaced {
                self.note_peers(prefix, l, false);
            }
            self.note_peers(prefix, list, true);
        }
        if let Some(l) = replaced {
            self.release(c, l);
        }
        self.re_resolve(c, prefix);
        Ok(())
    }

    /// Removes a source's route; returns false if there is none.
    pub fn unset(&mut self, c: &Control, prefix: Prefix<A>, source: Source) -> bool {
        let Some(list) = self.routes.unset(prefix, source) else { return false };
        // Removing or falling back to another source needs no memory.
        let _ = self.write(c, prefix);
        if source == Source::Static {
            self.note_peers(prefix, list, false);
        }
        self.release(c, list);
        self.re_resolve(c, prefix);
        true
    }

    /// Releases all forwarding objects; no worker looks up here any more. What is left is memory.
    pub fn clear(&mut self, c: &Control) {
        self.by_paths.clear();
        self.recursive.clear();
        let f = c.state::<Forwarding>();
        for (address, labels) in std::mem::take(&mut self.tracked).into_values() {
            f.borrow_mut().tracked.remove(&(self.link, self.id, address.to_ip(), labels));
        }
        for list in self.lists.drain(..).flatten() {
            f.borrow_mut().release(c, list.dpo);
        }
        self.free.clear();
        self.removal = Removal::default();
        self.peers.clear();
        self.watched.touch_all(c, (self.link, self.id));
    }

    /// Has subscribers of [`WatchedRoutes`] hear of changes of a prefix's route, or no longer.
    pub fn watch(&mut self, prefix: Prefix<A>, on: bool) {
        self.watched.set(prefix, on);
    }

    /// Takes the watched prefixes whose routes have changed.
    pub fn take_touched(&mut self) -> BTreeSet<Prefix<A>> {
        self.watched.take()
    }

    /// Notes that a configured route has begun or ceased to use a list.
    fn note_peers(&mut self, prefix: Prefix<A>, id: ListId, is_new: bool) {
        let Some(Some(list)) = self.lists.get_mut(id as usize) else { return };
        let before = list.configured;
        list.configured = if is_new { before + 1 } else { before.saturating_sub(1) };
        if let Some(sw_if) = list.attached() {
            self.peers.set_attached(sw_if, prefix, is_new);
        }
        if before.max(list.configured) == 1 {
            for (sw_if, host) in list.paths.iter().filter_map(peers::host) {
                self.peers.count_host(sw_if, host, is_new);
            }
        }
    }

    /// Takes the interfaces whose [`routed_peers`](Self::routed_peers) may have changed.
    pub fn take_changed_peers(&mut self) -> BTreeSet<SwIfIndex> {
        self.peers.take_changed()
    }

    /// Returns which hosts are on an interface by configured routes.
    #[must_use]
    pub fn routed_peers(&self, sw_if: SwIfIndex) -> RoutedPeers<A> {
        self.peers.of(sw_if)
    }

    /// Returns whether any configured route leads to hosts on an interface.
    #[must_use]
    pub fn has_attached(&self, sw_if: SwIfIndex) -> bool {
        self.peers.has_attached(sw_if)
    }

    /// Returns whether a configured route says that an address is on an interface.
    #[must_use]
    pub fn attaches(&self, sw_if: SwIfIndex, addr: A) -> bool {
        self.peers.attaches(sw_if, addr)
    }

    /// Paths of a source's route.
    pub fn paths(&self, prefix: Prefix<A>, source: Source) -> Option<Vec<Path>> {
        let id = self.routes.find(prefix, source)?;
        self.list(id).map(|l| l.paths.clone()).filter(|paths| !paths.is_empty())
    }

    /// Continues a walk over configured routes, a few hundred at most, unordered; returns false at
    /// the end. A prefix may be visited twice.
    pub fn sweep_configured(&self, at: &mut Sweep, out: &mut Vec<(Prefix<A>, Vec<Path>)>) -> bool {
        self.routes.sweep_of(at, Source::Static, |prefix, id| {
            let paths = self.list(id).map(|l| l.paths.clone());
            out.extend(paths.filter(|p| !p.is_empty()).map(|paths| (prefix, paths)));
        })
    }

    /// Continues a walk over all prefixes, as
    /// [`PrefixMap::sweep`](thalweg_tables::PrefixMap::sweep) does.
    pub fn sweep(&self, at: &mut Sweep, each: impl FnMut(Prefix<A>)) -> bool {
        self.routes.sweep_all(at, each)
    }

    /// Re-resolves lists with next hops that `changed` covers, after it was added or deleted.
    fn re_resolve(&mut self, c: &Control, changed: Prefix<A>) {
        let covered = self.recursive.range((changed.addr(), 0)..=(changed.last(), ListId::MAX));
        let covered: BTreeSet<ListId> = covered.map(|(_, id)| *id).collect();
        if !covered.is_empty() {
            self.resolve_again(c, covered);
        }
    }

    /// Re-resolves these lists and those that depend on their routes.
    fn resolve_again(&mut self, c: &Control, lists: BTreeSet<ListId>) {
        let mut left: Vec<ListId> = self.stale(lists).into_iter().collect();
        // A list may lead to itself by what another one was before: it waits for that.
        loop {
            let before = left.len();
            left.retain(|id| !self.resolve_list(c, *id, false));
            if left.is_empty() {
                return;
            }
            if left.len() == before {
                break;
            }
        }
        // Those that wait for each other begin from nothing; what leads to itself then is a loop.
        let f = c.state::<Forwarding>();
        for list in left.iter().filter_map(|id| self.list(*id)) {
            // One that leads nowhere is no loop.
            let _ = f.borrow_mut().set_group(c, list.dpo, vec![Member::of(UNRESOLVED)]);
        }
        for id in left {
            self.resolve_list(c, id, true);
        }
    }

    /// Gives a list's group the members that its paths lead to now. Paths that lead nowhere are
    /// left out; without any other, the list is unreachable until its next hops recover. Returns
    /// false, with nothing changed, if a path leads back to the list or has too many levels, or
    /// leaves that out, too (`anyway`).
    fn resolve_list(&self, c: &Control, id: ListId, anyway: bool) -> bool {
        let Some(list) = self.list(id).filter(|l| l.own && !l.paths.is_empty()) else {
            return true;
        };
        let state = c.state::<Forwarding>();
        let mut members = Vec::new();
        for path in &list.paths {
            if let Ok(dpo) = self.resolve(c, path) {
                members.push(member(path, dpo));
            }
        }
        let mut f = state.borrow_mut();
        let (back, mut members): (Vec<Member>, Vec<Member>) =
            members.into_iter().partition(|m| f.conflict(list.dpo, m.dpo).is_some());
        f.release_all(c, &back);
        if !back.is_empty() && !anyway {
            f.release_all(c, &members);
            return false;
        }
        if members.is_empty() {
            members.push(Member::of(UNRESOLVED));
        }
        // There are as many as when it was made, and none leads back.
        let _ = f.set_group(c, list.dpo, members);
        true
    }

    /// Returns whether no removal is pending.
    pub fn is_settled(&self) -> bool {
        self.removal.is_empty()
    }

    /// Continues the removal of routes for about a millisecond; returns true once nothing is
    /// pending. Until then, other routes forward as before.
    pub fn settle(&mut self, c: &Control) -> bool {
        self.remove_slice(c, usize::MAX, SLICE)
    }

    /// Visits about `max` routes (fewer if many are removed) for about `time`. Removing a short
    /// prefix takes as long as hundreds of long ones.
    fn remove_slice(&mut self, c: &Control, max: usize, time: Duration) -> bool {
        let (begin, mut seen, mut n) = (Instant::now(), 0, 0);
        loop {
            while let Some((prefix, source)) = self.removal.pop() {
                // It may have another list by now.
                let list = self.routes.find(prefix, source).and_then(|id| self.list(id));
                if list.is_some_and(|list| list.paths.is_empty()) {
                    self.unset(c, prefix, source);
                }
                n += 1;
                seen += FOLLOWING;
                if n % 16 == 0 && seen >= AT_LEAST && begin.elapsed() >= time {
                    return false;
                }
            }
            if seen >= max || (seen >= AT_LEAST && begin.elapsed() >= time) {
                return false;
            }
            match self.removal.scan(&self.routes) {
                Some(n) => seen += n,
                None => {
                    self.removal.finish();
                    if self.removal.is_empty() {
                        return true;
                    }
                }
            }
        }
    }

    /// Returns these lists and those that depend on their routes.
    fn stale(&self, mut stale: BTreeSet<ListId>) -> BTreeSet<ListId> {
        let mut grown = !stale.is_empty();
        while grown {
            let through = |nh: A| {
                let mut at = self.routes.covering(nh, A::BITS);
                while let Some(prefix) = at {
                    if self.routes.best(prefix).is_some_and(|e| stale.contains(&e.1)) {
                        return true;
                    }
                    at = prefix.len().checked_sub(1).and_then(|len| self.routes.covering(nh, len));
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

    /// Removes every path over a deleted interface, and routes without paths. Returns false if
    /// [`settle`](Self::settle) has to remove the last of them; they are hidden at once.
    pub fn interface_gone(&mut self, c: &Control, sw_if: SwIfIndex) -> bool {
        let on = |l: &PathList| l.paths.iter().any(|p| p.sw_if == Some(sw_if));
        let lists = self.lists.iter().zip(0..);
        let lists: BTreeSet<ListId> =
            lists.filter(|(l, _)| l.as_ref().is_some_and(on)).map(|(_, id)| id).collect();
        self.peers.forget(sw_if);
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
            self.resolve_again(c, lists);
        }
        if without.is_empty() {
            return self.removal.is_empty();
        }
        self.removal.add(without);
        self.remove_slice(c, AT_ONCE, SLICE)
    }

    /// Looks up a route by exact prefix.
    pub fn view(&self, prefix: Prefix<A>) -> Option<RouteView<A>> {
        let (source, l) = self.best(prefix)?;
        let live = |id| self.list(id).is_some_and(|l| !l.paths.is_empty());
        let all = self.routes.all(prefix);
        let sources = all.into_iter().filter(|e| live(e.1)).map(|e| e.0).collect();
        let dpo = self.followed(prefix).map_or(l.dpo, |list| list.dpo);
        Some(RouteView { prefix, source, paths: l.paths.clone(), dpo, sources })
    }

    /// Returns for each path of a route why it leads nowhere now, if it does not.
    #[must_use]
    pub fn unresolved(&self, c: &Control, view: &RouteView<A>) -> Vec<Option<RibError>> {
        view.paths.iter().map(|path| self.why_unresolved(c, path, view.dpo)).collect()
    }

    fn why_unresolved(&self, c: &Control, path: &Path, list: Dpo) -> Option<RibError> {
        let next_hop = path.next_hop.filter(|_| path.kind == PathKind::Normal)?;
        if path.sw_if.is_some() {
            return None;
        }
        let dpo = match self.resolve(c, path) {
            Ok(dpo) => dpo,
            Err(e) => return Some(e),
        };
        let f = c.state::<Forwarding>();
        let mut f = f.borrow_mut();
        let end = f.table().resolve(dpo, || 0);
        let nowhere = end == UNREACHABLE || end == UNRESOLVED;
        // A group that follows a route of another table is not this list's own.
        let is_own = path.table.is_none() && f.is_group(list);
        let conflict = if is_own { f.conflict(list, dpo) } else { None };
        f.release(c, dpo);
        match conflict {
            Some(FibError::Loop) => Some(RibError::Loop(next_hop)),
            Some(e) => Some(e.into()),
            None => nowhere.then(|| match path.table {
                Some(table) => RibError::NowhereIn(next_hop, table.get()),
                None => RibError::Nowhere(next_hop),
            }),
        }
    }

    /// Looks up the longest match of a destination.
    pub fn lookup(&self, addr: A) -> Option<RouteView<A>> {
        let mut at = self.routes.covering(addr, A::BITS);
        while let Some(prefix) = at {
            if let Some(view) = self.view(prefix) {
                return Some(view);
            }
            at = prefix.len().checked_sub(1).and_then(|len| self.routes.covering(addr, len));
        }
        None
    }

    /// All routes in order.
    pub fn iter(&self) -> impl Iterator<Item = RouteView<A>> + '_ {
        let mut all: Vec<Prefix<A>> = self.routes.iter().collect();
        all.sort_unstable();
        all.into_iter().filter_map(|prefix| self.view(prefix))
    }

    /// Number of routes, hidden ones included.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Returns whether there is no route.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of path lists.
    pub fn lists(&self) -> usize {
        self.lists.len() - self.free.len()
    }

    /// Memory of the routes in bytes.
    pub fn memory(&self) -> usize {
        self.lpm.memory() + self.routes.memory()
    }
}
