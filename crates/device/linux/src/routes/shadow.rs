//! The kernel's routes and next-hop objects as they were last seen, and which of them the router
//! has not taken yet.
//!
//! The kernel uses a destination's route with the lowest metric, and the first of several with
//! that. Only that one is passed on, once however often it changes before it is taken.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use thalweg_netlink::fib::{
    Hop, NextHopMessage, PROTOCOL_KERNEL, Placing, RouteKind, RouteMessage,
};
use thalweg_tables::{Address, Prefix, PrefixMap};

/// A next hop.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NextHop {
    /// Index of the link, or 0.
    pub link: u32,
    /// Address of the next router, of any version; `None` if the destination is on the link.
    pub gateway: Option<IpAddr>,
    /// Share among the hops, from 1.
    pub weight: u16,
    /// MPLS labels to impose, as entries of four bytes, the outermost first.
    pub labels: Box<[u8]>,
}

impl NextHop {
    fn of(hop: &Hop<'_>) -> NextHop {
        let (link, gateway, weight) = (hop.link, hop.gateway, hop.weight);
        NextHop { link, gateway, weight, labels: hop.labels.into() }
    }
}

/// Where a route leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Hops {
    /// To these.
    These(Arc<[NextHop]>),
    /// To those of an object.
    Object(u32),
}

/// A route that the kernel uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    /// Its kind.
    pub kind: RouteKind,
    /// Its protocol (`RTPROT_*`).
    pub protocol: u8,
    /// Where it leads.
    pub hops: Hops,
}

/// A change of what the kernel uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Routing table.
    pub table: u32,
    /// Destinations: an address and the number of its bits that count.
    pub destination: (IpAddr, u8),
    /// The route; `None` if there is none any more.
    pub now: Option<Used>,
}

/// Hops of an object: a blackhole has none.
pub type ObjectHops = Vec<NextHop>;

/// Changes since the last time, in the order in which they must be applied.
#[derive(Debug, Default)]
pub struct Taken {
    /// Objects that are new or changed.
    pub objects: Vec<(u32, ObjectHops)>,
    /// Routes.
    pub routes: Vec<Change>,
    /// Objects that are gone. No route that was taken leads to one.
    pub gone: Vec<u32>,
    /// True if there is more to take.
    pub more: bool,
}

/// Limits of a namespace.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Routes of both versions.
    pub routes: usize,
    /// Routing tables of a version.
    pub tables: usize,
    /// Next-hop objects.
    pub objects: usize,
    /// Next hops of a route; others are left out.
    pub hops: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { routes: 4_000_000, tables: 1024, objects: 1_000_000, hops: 64 }
    }
}

/// Routes that the router cannot follow, and others that it has left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Routes for a type of service or a source, or of a kind that the router does not have.
    pub unsupported: u64,
    /// Routes, tables, objects and next hops beyond the limits.
    pub beyond: u64,
}

/// A route of a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    metric: u32,
    hops: u32,
    /// The next one of the destination, or [`NONE`].
    next: u32,
    kind: RouteKind,
    protocol: u8,
    /// Flags, valid in the destination's first entry: [`QUEUED`], [`SEEN`], [`DELETED`].
    flags: u8,
}

const NONE: u32 = u32::MAX;
/// Its destination waits to be taken.
const QUEUED: u8 = 1;
/// One of the two values of the mark of the last list.
const SEEN: u8 = 2;
/// The destination has no route; it waits to be taken.
const DELETED: u8 = 4;

/// Properties that distinguish a route from others of its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Route {
    metric: u32,
    hops: u32,
    kind: RouteKind,
    protocol: u8,
}

impl Route {
    fn is_used_as(self, other: Route) -> bool {
        let place = |r: Route| (r.hops, r.kind, r.protocol);
        place(self) == place(other)
    }
}

/// Lists of next hops, each once.
#[derive(Debug, Default)]
struct Lists {
    all: Vec<Option<(Hops, u32)>>,
    free: Vec<u32>,
    by_hops: HashMap<Hops, u32>,
}

impl Lists {
    /// Returns the number of a list, with a reference.
    fn hold(&mut self, hops: Hops) -> u32 {
        if let Some(&id) = self.by_hops.get(&hops) {
            self.retain(id);
            return id;
        }
        let id = self.free.pop().unwrap_or(self.all.len() as u32);
        if id as usize == self.all.len() {
            self.all.push(None);
        }
        self.all[id as usize] = Some((hops.clone(), 1));
        self.by_hops.insert(hops, id);
        id
    }

    fn retain(&mut self, id: u32) {
        if let Some((_, uses)) = &mut self.all[id as usize] {
            *uses += 1;
        }
    }

    fn release(&mut self, id: u32) {
        let Some((hops, uses)) = &mut self.all[id as usize] else { return };
        *uses -= 1;
        if *uses == 0 {
            self.by_hops.remove(hops);
            self.all[id as usize] = None;
            self.free.push(id);
        }
    }

    fn get(&self, id: u32) -> Option<&Hops> {
        self.all.get(id as usize)?.as_ref().map(|(hops, _)| hops)
    }
}

/// Routes of a table.
#[derive(Debug)]
struct Table<A> {
    map: PrefixMap<A>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Destinations to be taken.
    queue: VecDeque<Prefix<A>>,
}

impl<A: Address> Default for Table<A> {
    fn default() -> Self {
        let (entries, free, queue) = (Vec::new(), Vec::new(), VecDeque::new());
        Table { map: PrefixMap::new(), entries, free, queue }
    }
}

impl<A: Address> Table<A> {
    fn head(&self, prefix: Prefix<A>) -> Option<u32> {
        self.map.get(prefix).map(|at| at.get() - 1)
    }

    /// Routes of a destination, the one that is used first.
    fn read(&self, prefix: Prefix<A>, out: &mut Vec<Route>) {
        out.clear();
        let mut at = self.head(prefix).unwrap_or(NONE);
        while at != NONE {
            let Entry { metric, hops, next, kind, protocol, flags } = self.entries[at as usize];
            if flags & DELETED == 0 {
                out.push(Route { metric, hops, kind, protocol });
            }
            at = next;
        }
    }

    /// Replaces the routes of a destination, marks it, and queues it if another route is used now.
    /// Returns false if there is no memory.
    fn write(&mut self, prefix: Prefix<A>, old: &[Route], new: &[Route], mark: u8) -> bool {
        let same = match (old.first(), new.first()) {
            (Some(a), Some(b)) => a.is_used_as(*b),
            (a, b) => a.is_none() && b.is_none(),
        };
        let flags = self.head(prefix).map_or(0, |at| self.entries[at as usize].flags);
        let queued = flags & QUEUED != 0;
        let gone = Route { metric: 0, hops: NONE, kind: RouteKind::Unicast, protocol: 0 };
        let is_gone = new.is_empty();
        if is_gone && same && !queued {
            return true;
        }
        let mut next = NONE;
        let all = if is_gone { &[gone] } else { new };
        for (n, route) in all.iter().enumerate().rev() {
            let Route { metric, hops, kind, protocol } = *route;
            let first = if n == 0 { QUEUED | (mark & SEEN) } else { 0 };
            let flags = first | if is_gone { DELETED } else { 0 };
            let entry = Entry { metric, hops, next, kind, protocol, flags };
            next = self.free.pop().unwrap_or(self.entries.len() as u32);
            match self.entries.get_mut(next as usize) {
                Some(place) => *place = entry,
                None => self.entries.push(entry),
            }
        }
        if same && !queued {
            self.entries[next as usize].flags &= !QUEUED;
        }
        let before = self.head(prefix);
        let place = NonZeroU32::MIN.saturating_add(next);
        if self.map.insert(prefix, place).is_err() {
            self.free_from(next);
            return false;
        }
        if let Some(before) = before {
            self.free_from(before);
        }
        if !same && !queued {
            self.queue.push_back(prefix);
        }
        true
    }

    fn free_from(&mut self, mut at: u32) {
        while at != NONE {
            self.free.push(at);
            at = self.entries[at as usize].next;
        }
    }

    fn mark(&mut self, prefix: Prefix<A>, mark: u8) {
        if let Some(at) = self.head(prefix) {
            let flags = &mut self.entries[at as usize].flags;
            *flags = *flags & !SEEN | mark & SEEN;
        }
    }

    fn is_marked(&self, prefix: Prefix<A>, mark: u8) -> bool {
        let flags = self.head(prefix).map(|at| self.entries[at as usize].flags);
        flags.is_some_and(|flags| flags & (SEEN | DELETED) == mark & SEEN)
    }

    /// Queues a destination, as if it had changed.
    fn queue(&mut self, prefix: Prefix<A>) {
        let Some(at) = self.head(prefix) else { return };
        let flags = &mut self.entries[at as usize].flags;
        if *flags & QUEUED == 0 {
            *flags |= QUEUED;
            self.queue.push_back(prefix);
        }
    }

    fn queue_where(&mut self, wanted: impl Fn(u32) -> bool) {
        let all: Vec<Prefix<A>> = self.map.iter().map(|(prefix, _)| prefix).collect();
        let mut routes = Vec::new();
        for prefix in all {
            self.read(prefix, &mut routes);
            if routes.first().is_some_and(|route| wanted(route.hops)) {
                self.queue(prefix);
            }
        }
    }

    /// Takes a destination that has changed, with the route that is used now.
    fn take(&mut self) -> Option<(Prefix<A>, Option<Route>)> {
        let prefix = self.queue.pop_front()?;
        let Some(at) = self.head(prefix) else { return Some((prefix, None)) };
        let entry = &mut self.entries[at as usize];
        entry.flags &= !QUEUED;
        if entry.flags & DELETED != 0 {
            self.map.remove(prefix);
            self.free_from(at);
            return Some((prefix, None));
        }
        let Entry { metric, hops, kind, protocol, .. } = *entry;
        Some((prefix, Some(Route { metric, hops, kind, protocol })))
    }

    fn memory(&self) -> usize {
        self.map.memory()
            + self.entries.capacity() * size_of::<Entry>()
            + self.queue.capacity() * size_of::<Prefix<A>>()
    }
}

/// An object as the kernel has it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Object {
    Hop(NextHop),
    Blackhole,
    Group(Vec<(u32, u16)>),
}

/// Routes of a destination that a list of the kernel has named so far.
#[derive(Debug, Default)]
struct Listing {
    at: Option<(u32, IpAddr, u8)>,
    routes: Vec<Route>,
    objects: BTreeSet<u32>,
}

/// All routes and objects of a namespace.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    v4: BTreeMap<u32, Table<u32>>,
    v6: BTreeMap<u32, Table<u128>>,
    lists: Lists,
    objects: BTreeMap<u32, Object>,
    /// Objects to be taken.
    changed: BTreeSet<u32>,
    /// Objects that are gone; the kernel removes their routes without a word, so that they are
    /// handed over after the next list.
    gone: BTreeSet<u32>,
    unused: BTreeSet<u32>,
    limits: Limits,
    pub(super) left: Left,
    /// A notice did not fit what was seen: something was missed.
    pub(super) is_doubtful: bool,
    /// Routes of all tables.
    total: usize,
    mark: u8,
    listing: Listing,
    /// Work space.
    old: Vec<Route>,
    new: Vec<Route>,
}

/// Runs with the tables of an address's version and the destination; nothing if that is none.
macro_rules! in_tables {
    ($self:ident, $to:expr, |$tables:ident, $prefix:ident| $do:expr) => {
        match $to.0 {
            IpAddr::V4(ip) => {
                let $tables = &mut $self.v4;
                Prefix::new(u32::from(ip), $to.1).map(|$prefix| $do).unwrap_or_default()
            }
            IpAddr::V6(ip) => {
                let $tables = &mut $self.v6;
                Prefix::new(u128::from(ip), $to.1).map(|$prefix| $do).unwrap_or_default()
            }
        }
    };
}

impl Shadow {
    /// An empty one.
    pub(super) fn new(limits: Limits) -> Shadow {
        Shadow { limits, ..Shadow::default() }
    }

    /// Routes of both versions.
    pub(super) fn len(&self) -> usize {
        self.total
    }

    /// Next-hop objects.
    pub(super) fn objects(&self) -> usize {
        self.objects.len()
    }

    /// Bytes.
    pub(super) fn memory(&self) -> usize {
        let v4: usize = self.v4.values().map(Table::memory).sum();
        v4 + self.v6.values().map(Table::memory).sum::<usize>()
    }

    /// Destinations that wait to be taken.
    pub(super) fn waiting(&self) -> usize {
        let v4: usize = self.v4.values().map(|t| t.queue.len()).sum();
        let v6: usize = self.v6.values().map(|t| t.queue.len()).sum();
        v4 + v6 + self.changed.len() + self.unused.len()
    }

    /// Returns the route of a message, with a reference to its hops; `None` if the router does not
    /// follow it.
    fn route(&mut self, m: &RouteMessage<'_>) -> Option<Route> {
        // Routes of addresses are the router's own business.
        if m.kind == RouteKind::Own || m.protocol == PROTOCOL_KERNEL {
            return None;
        }
        let fits = !matches!(m.kind, RouteKind::Throw | RouteKind::Other(_));
        if !fits || m.tos != 0 || m.has_source {
            self.left.unsupported += 1;
            return None;
        }
        let hops = match m.object {
            Some(id) => Hops::Object(id),
            None => Hops::These(self.hops(m)),
        };
        let hops = self.lists.hold(hops);
        Some(Route { metric: m.metric, hops, kind: m.kind, protocol: m.protocol })
    }

    fn hops(&mut self, m: &RouteMessage<'_>) -> Arc<[NextHop]> {
        if m.kind != RouteKind::Unicast {
            return Arc::new([]);
        }
        let (mut hops, mut beyond) = (Vec::new(), 0);
        for hop in m.hops().filter(|hop| !hop.is_dead) {
            match hops.len() < self.limits.hops {
                true => hops.push(NextHop::of(&hop)),
                false => beyond = 1,
            }
        }
        self.left.beyond += beyond;
        hops.sort_unstable();
        hops.into()
    }

    /// Changes the routes of a destination.
    fn change(&mut self, m: &RouteMessage<'_>, change: impl FnOnce(&mut Vec<Route>, &Lists)) {
        let mark = self.mark;
        let (mut old, mut new) = (std::mem::take(&mut self.old), std::mem::take(&mut self.new));
        old.clear();
        in_tables!(self, m.destination, |tables, prefix| {
            if let Some(table) = tables.get(&m.table) {
                table.read(prefix, &mut old);
            }
        });
        new.clone_from(&old);
        change(&mut new, &self.lists);
        self.put(m.table, m.destination, &old, &new, mark);
        (self.old, self.new) = (old, new);
    }

    fn put(&mut self, id: u32, to: (IpAddr, u8), old: &[Route], new: &[Route], mark: u8) {
        let grows = new.len() > old.len();
        let exists: bool = in_tables!(self, to, |tables, _prefix| tables.contains_key(&id));
        let tables = self.v4.len().max(self.v6.len());
        let full = self.total >= self.limits.routes || !exists && tables >= self.limits.tables;
        if grows && full {
            self.left.beyond += 1;
            return;
        }
        new.iter().for_each(|route| self.lists.retain(route.hops));
        let done: bool = in_tables!(self, to, |tables, prefix| {
            tables.entry(id).or_default().write(prefix, old, new, mark)
        });
        if done {
            self.total = self.total + new.len() - old.len();
        } else {
            self.left.beyond += 1;
        }
        let released = if done { old } else { new };
        released.iter().for_each(|route| self.lists.release(route.hops));
    }

    /// Takes a notice of a route that is new or changed.
    pub(super) fn add(&mut self, placing: Placing, m: &RouteMessage<'_>) {
        let Some(route) = self.route(m) else { return };
        let is_v4 = m.destination.0.is_ipv4();
        let mut is_doubtful = false;
        self.change(m, |all, lists| {
            if all.contains(&route) {
                return;
            }
            let same = |r: &Route| {
                r.metric == route.metric && (is_v4 || is_sibling(lists, r.hops, route.hops))
            };
            let first = all.iter().position(same);
            let begin = all.iter().position(|r| r.metric >= route.metric).unwrap_or(all.len());
            let end = all.iter().position(|r| r.metric > route.metric).unwrap_or(all.len());
            match (placing, first) {
                (Placing::Append, _) if is_v4 => all.insert(end, route),
                (Placing::Prepend, _) if is_v4 => all.insert(begin, route),
                (_, Some(at)) => {
                    // The kernel would have refused a second one.
                    is_doubtful = placing == Placing::Only && is_v4;
                    all[at] = route;
                }
                (_, None) => all.insert(end, route),
            }
        });
        self.is_doubtful |= is_doubtful;
        self.lists.release(route.hops);
    }

    /// Takes a notice of a route that was deleted.
    pub(super) fn delete(&mut self, m: &RouteMessage<'_>) {
        let Some(route) = self.route(m) else { return };
        let is_v4 = m.destination.0.is_ipv4();
        let mut rest = None;
        let mut is_doubtful = false;
        self.change(m, |all, lists| {
            let same = |r: &Route| r.metric == route.metric && r.kind == route.kind;
            let exact = all.iter().position(|r| same(r) && r.hops == route.hops);
            match exact.or_else(|| all.iter().position(same).filter(|_| is_v4)) {
                Some(at) => {
                    all.remove(at);
                }
                // Hops of IPv6 may go one by one.
                None if !is_v4 => {
                    let some = all.iter().position(|r| same(r) && has_all(lists, r, &route));
                    match some {
                        Some(at) => rest = Some((at, without(lists, &all[at], &route))),
                        None => is_doubtful = true,
                    }
                }
                None => is_doubtful = true,
            }
        });
        if let Some((at, hops)) = rest {
            let is_last = hops.is_empty();
            let hops = self.lists.hold(Hops::These(hops.into()));
            self.change(m, |all, _| match is_last {
                true => _ = all.remove(at),
                false => all[at].hops = hops,
            });
            self.lists.release(hops);
        }
        // One that went with its link was not announced, and is missed by the list that follows.
        self.is_doubtful |= is_doubtful;
        self.lists.release(route.hops);
    }

    /// Takes a notice of an object, or a row of the list of all.
    pub(super) fn set_object(&mut self, m: &NextHopMessage<'_>) {
        self.listing.objects.insert(m.id);
        if m.is_fdb {
            return;
        }
        let members: Vec<(u32, u16)> = m.members().take(self.limits.hops).collect();
        let object = match () {
            () if !members.is_empty() => Object::Group(members),
            () if m.is_blackhole => Object::Blackhole,
            () => Object::Hop(NextHop::of(&m.hop)),
        };
        if self.objects.len() >= self.limits.objects && !self.objects.contains_key(&m.id) {
            self.left.beyond += 1;
            return;
        }
        self.gone.remove(&m.id);
        self.unused.remove(&m.id);
        if self.objects.get(&m.id) == Some(&object) {
            return;
        }
        let is_group = matches!(object, Object::Group(_));
        self.objects.insert(m.id, object);
        self.changed.insert(m.id);
        if !is_group {
            self.changed.extend(self.groups_of(m.id));
        }
    }

    fn groups_of(&self, id: u32) -> Vec<u32> {
        let has = |object: &Object| match object {
            Object::Group(members) => members.iter().any(|(member, _)| *member == id),
            _ => false,
        };
        self.objects.iter().filter(|(_, object)| has(object)).map(|(id, _)| *id).collect()
    }

    /// Takes a notice that an object was deleted.
    pub(super) fn delete_object(&mut self, id: u32) {
        if self.objects.remove(&id).is_some() {
            self.changed.remove(&id);
            self.changed.extend(self.groups_of(id));
            let in_use = self.lists.by_hops.contains_key(&Hops::Object(id));
            self.is_doubtful |= in_use;
            let place = if in_use { &mut self.gone } else { &mut self.unused };
            place.insert(id);
        }
    }

    /// Begins a list of all objects and routes.
    pub(super) fn begin(&mut self) {
        self.mark ^= SEEN;
        self.listing = Listing::default();
    }

    /// Takes a row of the list. Rows of a destination follow each other in the kernel's order.
    pub(super) fn list(&mut self, m: &RouteMessage<'_>) {
        let Some(route) = self.route(m) else { return };
        let at = (m.table, m.destination.0, m.destination.1);
        if self.listing.at != Some(at) {
            self.flush_listed();
            self.listing.at = Some(at);
        }
        self.listing.routes.push(route);
    }

    fn flush_listed(&mut self) {
        let Some((id, ip, bits)) = self.listing.at.take() else { return };
        let mut routes = std::mem::take(&mut self.listing.routes);
        let (mut old, mark) = (std::mem::take(&mut self.old), self.mark);
        old.clear();
        let to = (ip, bits);
        let again: bool = in_tables!(self, to, |tables, prefix| match tables.get(&id) {
            Some(table) => {
                table.read(prefix, &mut old);
                table.is_marked(prefix, mark)
            }
            None => false,
        });
        // A destination that comes again has more routes.
        if again {
            routes.splice(0..0, old.iter().copied());
            old.iter().for_each(|route| self.lists.retain(route.hops));
        }
        // The list has them by the kernel's order within a metric.
        routes.sort_by_key(|route| route.metric);
        if old == routes {
            in_tables!(self, to, |tables, prefix| {
                if let Some(table) = tables.get_mut(&id) {
                    table.mark(prefix, mark);
                }
            });
        } else {
            self.put(id, to, &old, &routes, mark);
        }
        routes.iter().for_each(|route| self.lists.release(route.hops));
        routes.clear();
        (self.old, self.listing.routes) = (old, routes);
    }

    /// Ends a list that was whole: what it has not named is gone.
    pub(super) fn end(&mut self) {
        self.flush_listed();
        let listed = std::mem::take(&mut self.listing.objects);
        let gone: Vec<u32> =
            self.objects.keys().filter(|id| !listed.contains(id)).copied().collect();
        gone.into_iter().for_each(|id| self.delete_object(id));
        let mark = self.mark;
        let released: Vec<u32> = {
            let v4 = self.v4.values_mut().flat_map(|table| sweep(table, mark));
            let mut all: Vec<u32> = v4.collect();
            all.extend(self.v6.values_mut().flat_map(|table| sweep(table, mark)));
            all
        };
        self.unused.append(&mut self.gone);
        self.total -= released.len();
        released.into_iter().for_each(|hops| self.lists.release(hops));
    }

    /// Gives up a list that was not whole.
    pub(super) fn abandon(&mut self) {
        self.flush_listed();
        self.listing = Listing::default();
    }

    /// Has routes and objects over links taken again, or all (`None`): the router leads them
    /// elsewhere now.
    pub(super) fn offer(&mut self, links: &BTreeSet<Option<u32>>) {
        let every = links.contains(&None);
        let over =
            |hops: &[NextHop]| every || hops.iter().any(|hop| links.contains(&Some(hop.link)));
        let objects: BTreeSet<u32> = {
            let is_over = |object: &Object| match object {
                Object::Hop(hop) => over(std::slice::from_ref(hop)),
                Object::Blackhole | Object::Group(_) => every,
            };
            self.objects.iter().filter(|(_, o)| is_over(o)).map(|(id, _)| *id).collect()
        };
        let mut all = objects.clone();
        objects.iter().for_each(|id| all.extend(self.groups_of(*id)));
        let lists = &self.lists;
        let wanted = |id: u32| match lists.get(id) {
            Some(Hops::These(hops)) => over(hops),
            Some(Hops::Object(id)) => all.contains(id),
            None => false,
        };
        self.v4.values_mut().for_each(|table| table.queue_where(wanted));
        self.v6.values_mut().for_each(|table| table.queue_where(wanted));
        self.changed.extend(all);
    }

    /// Returns the route of a destination that is used, in the first of some tables that has one.
    pub(super) fn find(&self, ids: &[u32], to: (IpAddr, u8)) -> Option<Used> {
        let mut routes = Vec::new();
        let mut find = |id: u32| match to.0 {
            IpAddr::V4(ip) => {
                let prefix = Prefix::new(u32::from(ip), to.1).ok()?;
                used_of(self.v4.get(&id)?, prefix, &self.lists, &mut routes)
            }
            IpAddr::V6(ip) => {
                let prefix = Prefix::new(u128::from(ip), to.1).ok()?;
                used_of(self.v6.get(&id)?, prefix, &self.lists, &mut routes)
            }
        };
        ids.iter().find_map(|id| find(*id))
    }

    /// The hops of an object; those of a group share its weights.
    fn object_hops(&self, id: u32) -> ObjectHops {
        match self.objects.get(&id) {
            Some(Object::Hop(hop)) => vec![hop.clone()],
            Some(Object::Group(members)) => {
                let member = |(id, weight): &(u32, u16)| match self.objects.get(id)? {
                    Object::Hop(hop) => Some(NextHop { weight: *weight, ..hop.clone() }),
                    _ => None,
                };
                let mut hops: ObjectHops = members.iter().filter_map(member).collect();
                if let [only] = &mut hops[..] {
                    only.weight = 1;
                }
                hops
            }
            Some(Object::Blackhole) | None => Vec::new(),
        }
    }

    /// Takes up to `most` changes.
    pub(super) fn take(&mut self, most: usize) -> Taken {
        let mut taken = Taken::default();
        while taken.objects.len() < most
            && let Some(id) = self.changed.pop_first()
        {
            taken.objects.push((id, self.object_hops(id)));
        }
        let lists = &self.lists;
        let mut room = most.saturating_sub(taken.objects.len());
        for (id, table) in &mut self.v4 {
            take_from(*id, table, lists, &mut room, &mut taken.routes);
        }
        for (id, table) in &mut self.v6 {
            take_from(*id, table, lists, &mut room, &mut taken.routes);
        }
        let routes_left = self.v4.values().any(|t| !t.queue.is_empty())
            || self.v6.values().any(|t| !t.queue.is_empty());
        if !routes_left && self.changed.is_empty() {
            taken.gone = std::mem::take(&mut self.unused).into_iter().collect();
        }
        taken.more = routes_left || !self.changed.is_empty();
        taken
    }

    /// Hands `each` the route that is used of every destination.
    pub(super) fn each(&self, mut each: impl FnMut(Change)) {
        let lists = &self.lists;
        for (id, table) in &self.v4 {
            each_of(*id, table, lists, &mut each);
        }
        for (id, table) in &self.v6 {
            each_of(*id, table, lists, &mut each);
        }
    }
}

/// Returns whether a route of IPv6 takes the place of another of its metric: those without a
/// gateway are one for each link.
fn is_sibling(lists: &Lists, old: u32, new: u32) -> bool {
    let link = |id| match lists.get(id) {
        Some(Hops::These(hops)) => match &hops[..] {
            [NextHop { gateway: None, link, .. }] => Some(*link),
            _ => None,
        },
        _ => None,
    };
    link(old) == link(new)
}

fn these<'l>(lists: &'l Lists, route: &Route) -> &'l [NextHop] {
    match lists.get(route.hops) {
        Some(Hops::These(hops)) => hops,
        _ => &[],
    }
}

fn is_same_hop(a: &NextHop, b: &NextHop) -> bool {
    (a.link, a.gateway) == (b.link, b.gateway)
}

fn has_all(lists: &Lists, route: &Route, some: &Route) -> bool {
    let some = these(lists, some);
    let has = |hop| these(lists, route).iter().any(|own| is_same_hop(own, hop));
    !some.is_empty() && some.iter().all(has)
}

fn without(lists: &Lists, route: &Route, some: &Route) -> Vec<NextHop> {
    let some = these(lists, some);
    let stays = |own: &&NextHop| !some.iter().any(|hop| is_same_hop(own, hop));
    these(lists, route).iter().filter(stays).cloned().collect()
}

/// Removes what a list has not named; returns the lists of hops to be released.
fn sweep<A: Address>(table: &mut Table<A>, mark: u8) -> Vec<u32> {
    let all: Vec<Prefix<A>> = table.map.iter().map(|(prefix, _)| prefix).collect();
    let (mut released, mut old) = (Vec::new(), Vec::new());
    for prefix in all {
        if !table.is_marked(prefix, mark) {
            table.read(prefix, &mut old);
            if !old.is_empty() && table.write(prefix, &old, &[], mark) {
                released.extend(old.iter().map(|route| route.hops));
            }
        }
    }
    released
}

fn change<A: Address>(
    table: u32,
    prefix: Prefix<A>,
    route: Option<Route>,
    lists: &Lists,
) -> Change {
    let used = |route: Route| {
        let hops = lists.get(route.hops)?.clone();
        let is_dead = matches!(&hops, Hops::These(hops) if hops.is_empty());
        // The kernel does not use a route of which all hops are dead.
        let live = route.kind != RouteKind::Unicast || !is_dead;
        live.then_some(Used { kind: route.kind, protocol: route.protocol, hops })
    };
    let destination = (prefix.addr().to_ip(), prefix.len());
    Change { table, destination, now: route.and_then(used) }
}

fn used_of<A: Address>(
    table: &Table<A>,
    prefix: Prefix<A>,
    lists: &Lists,
    routes: &mut Vec<Route>,
) -> Option<Used> {
    table.read(prefix, routes);
    change(0, prefix, routes.first().copied(), lists).now
}

fn take_from<A: Address>(
    id: u32,
    table: &mut Table<A>,
    lists: &Lists,
    room: &mut usize,
    out: &mut Vec<Change>,
) {
    while *room > 0
        && let Some((prefix, route)) = table.take()
    {
        out.push(change(id, prefix, route, lists));
        *room -= 1;
    }
}

fn each_of<A: Address>(id: u32, table: &Table<A>, lists: &Lists, each: &mut impl FnMut(Change)) {
    let mut routes = Vec::new();
    for (prefix, _) in table.map.iter() {
        table.read(prefix, &mut routes);
        if let Some(first) = routes.first() {
            each(change(id, prefix, Some(*first), lists));
        }
    }
}
