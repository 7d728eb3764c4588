//! Route tables of any family on the main thread: configured paths by source, and what they resolve
//! to.
//!
//! Routes with equal paths share a *path list*, and workers' tables name the list's forwarding
//! object. The object stays: when a next hop moves, it gets other members, by one word, and no
//! route is written again, however many there are.

mod entries;
mod error;
mod lists;
mod neighbors;
mod path;
mod peers;
mod removal;
mod resolve;
mod watched;

pub use error::RibError;
pub use neighbors::NeighborOn;
pub use path::{Before, Labels, MAX_LABELS, Mark, Mode, Path, PathKind, Source, TableId};
pub use peers::RoutedPeers;
pub use watched::WatchedRoutes;

use crate::{Dpo, Forwarding, LinkType};
use entries::Entries;
use neighbors::Claims;
use peers::Peers;
use removal::Removal;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;
use thalweg_tables::{Address, Leaf, Lpm, LpmError, Prefix, Sweep};
use watched::Watched;

/// Number of an interned path list.
pub type ListId = u32;

/// Receivers of packets that match a prefix.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Cast {
    /// One host.
    Unicast,
    /// The members of a group: on an interface, no one is asked for their MAC address.
    Multicast,
}

impl Cast {
    fn of<A: Address>(prefix: Prefix<A>) -> Cast {
        let least = if A::BITS == 32 { 4 } else { 8 };
        match prefix.len() >= least && prefix.addr().to_ip().is_multicast() {
            true => Cast::Multicast,
            false => Cast::Unicast,
        }
    }
}

struct PathList {
    cast: Cast,
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
            _ if self.cast == Cast::Multicast => None,
            [path] => path.attached(),
            _ => None,
        }
    }

    /// Returns whether hosts are on an interface by the list.
    fn attaches(&self, sw_if: SwIfIndex) -> bool {
        self.cast == Cast::Unicast && self.paths.iter().any(|p| p.attached() == Some(sw_if))
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
    by_paths: HashMap<(Cast, Vec<Path>), ListId>,
    free: Vec<ListId>,
    /// The list that was asked for last: routes of one next hop come one after the other, and
    /// comparing paths is faster than hashing them.
    last: ListId,
    /// Next hops resolved recursively, with the lists that use them.
    recursive: BTreeSet<(A, ListId)>,
    /// Path lists by the interfaces of their paths.
    by_interface: BTreeSet<(SwIfIndex, ListId)>,
    /// Addresses whose routes others follow, by the list that does so.
    tracked: BTreeMap<ListId, (A, Labels)>,
    /// Lists whose routes are still to be removed.
    removal: Removal<A>,
    peers: Peers<A>,
    claims: Claims<A>,
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
            last: 0,
            recursive: BTreeSet::new(),
            by_interface: BTreeSet::new(),
            tracked: BTreeMap::new(),
            removal: Removal::default(),
            peers: Peers::default(),
            claims: Claims::default(),
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

    /// Like [`lpm`](Self::lpm), for changes.
    pub fn lpm_mut(&mut self) -> &mut L {
        &mut self.lpm
    }

    fn list(&self, id: ListId) -> Option<&PathList> {
        self.lists.get(id as usize)?.as_ref()
    }

    /// The winning source of a prefix, and its paths.
    fn best(&self, prefix: Prefix<A>) -> Option<(Source, &PathList)> {
        let live = |(source, id)| Some((source, self.list(id).filter(|l| !l.paths.is_empty())?));
        live(self.routes.best(prefix)?)
            .or_else(|| self.routes.all(prefix).into_iter().find_map(live))
    }

    /// The list that packets to a prefix follow: the winner's, but a neighbour's own in the place
    /// of a configured one that only says on which interface that host is.
    fn followed(&self, prefix: Prefix<A>) -> Option<&PathList> {
        let (source, list) = self.best(prefix)?;
        let Some(on) = list.attached().filter(|_| prefix.len() == A::BITS && source.is_written())
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
        let (list, _) = self.intern_as(c, Cast::of(prefix), paths)?;
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
        if source.is_written() {
            if let Some(l) = replaced {
                self.note_peers(prefix, l, false);
            }
            self.note_peers(prefix, list, true);
        }
        if let Some(l) = replaced {
            self.release(c, l);
        }
        self.follow(c, prefix, source);
        Ok(())
    }

    /// Removes a source's route; returns false if there is none.
    pub fn unset(&mut self, c: &Control, prefix: Prefix<A>, source: Source) -> bool {
        let Some(list) = self.routes.unset(prefix, source) else { return false };
        // Removing or falling back to another source needs no memory.
        let _ = self.write(c, prefix);
        if source.is_written() {
            self.note_peers(prefix, list, false);
        }
        self.release(c, list);
        self.follow(c, prefix, source);
        true
    }

    /// Makes all that depends on the route of a prefix follow its change.
    fn follow(&mut self, c: &Control, prefix: Prefix<A>, source: Source) {
        self.re_resolve(c, prefix);
        if source != Source::Adjacency {
            self.judge_in(c, prefix);
        }
    }

    /// Releases all forwarding objects; no worker looks up here any more. Only memory is left.
    pub fn clear(&mut self, c: &Control) {
        self.by_paths.clear();
        self.recursive.clear();
        let f = c.state::<Forwarding>();
        for (sw_if, _) in std::mem::take(&mut self.by_interface) {
            f.borrow_mut().tables_over.remove(&(sw_if, self.link, self.id));
        }
        for (address, labels) in std::mem::take(&mut self.tracked).into_values() {
            f.borrow_mut().tracked.remove(&(self.link, self.id, address.to_ip(), labels));
        }
        for list in self.lists.drain(..).flatten() {
            f.borrow_mut().release(c, list.dpo);
        }
        self.free.clear();
        self.removal = Removal::default();
        self.peers.clear();
        self.claims.clear();
        self.watched.touch_all(c, (self.link, self.id));
    }

    /// Starts or stops events of [`WatchedRoutes`] about changes of a prefix's route.
    pub fn watch(&mut self, prefix: Prefix<A>, on: bool) {
        self.watched.set(prefix, on);
    }

    /// Takes the watched prefixes whose routes have changed.
    pub fn take_touched(&mut self) -> BTreeSet<Prefix<A>> {
        self.watched.take()
    }

    /// Notes that a configured route begins or stops using a list.
    fn note_peers(&mut self, prefix: Prefix<A>, id: ListId, is_new: bool) {
        let attached = self.list(id).and_then(PathList::attached);
        // Another source of the prefix may say the same.
        let others = attached.filter(|_| !is_new).map(|sw_if| {
            let same = |(source, list): (Source, ListId)| {
                source.is_written() && self.list(list).and_then(PathList::attached) == Some(sw_if)
            };
            self.routes.all(prefix).into_iter().any(same)
        });
        let Some(Some(list)) = self.lists.get_mut(id as usize) else { return };
        let before = list.configured;
        list.configured = if is_new { before + 1 } else { before.saturating_sub(1) };
        if let Some(sw_if) = attached
            && others != Some(true)
        {
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

    /// Paths of a source's route, if one of them says that hosts are on an interface.
    pub fn attached_paths(&self, prefix: Prefix<A>, source: Source) -> Option<Vec<Path>> {
        let list = self.list(self.routes.find(prefix, source)?)?;
        list.paths.iter().any(|path| path.attached().is_some()).then(|| list.paths.clone())
    }

    /// Returns whether a source has a route of a prefix.
    pub fn has(&self, prefix: Prefix<A>, source: Source) -> bool {
        self.routes.find(prefix, source).is_some()
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
                // The route may have another list by now.
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

    /// Removes every path over a deleted interface, and routes without paths. Returns false if
    /// [`settle`](Self::settle) has to remove the last of them; they are hidden at once.
    pub fn interface_gone(&mut self, c: &Control, sw_if: SwIfIndex) -> bool {
        let lists: BTreeSet<ListId> = self.lists_over(sw_if).collect();
        self.peers.forget(sw_if);
        let mut without = BTreeSet::new();
        for &id in &lists {
            let Some(Some(list)) = self.lists.get_mut(id as usize) else { continue };
            let old = std::mem::take(&mut list.paths);
            let keep: Vec<Path> = old.iter().filter(|p| p.sw_if != Some(sw_if)).copied().collect();
            list.paths.clone_from(&keep);
            let cast = list.cast;
            self.forget_paths(c, cast, &old, id);
            if keep.is_empty() {
                without.insert(id);
                continue;
            }
            self.remember_paths(c, &keep, id);
            // If other routes share these paths, two such lists exist until one has no routes.
            self.by_paths.entry((cast, keep)).or_insert(id);
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
