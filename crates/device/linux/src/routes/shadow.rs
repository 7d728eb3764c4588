//! The kernel's routes and next-hop objects as they were last seen, and which of them the router
//! has not taken yet.
//!
//! The kernel uses a destination's route with the lowest metric, and the first of several with
//! that. Only that one is passed on, once however often it changes before it is taken.

use super::labels::{FIRST_FREE, LabelRoute, Labels, Row};
use super::lists::{Lists, has_all, is_sibling, without};
use super::objects::{Object, Objects};
use super::table::{Route, SEEN, Table};
use super::types::{Change, Hops, Left, Limits, NextHop, Taken, Used, Visited};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use thalweg_netlink::fib::{
    Hop, NextHopMessage, PROTOCOL_KERNEL, Placing, RouteKind, RouteMessage,
};
use thalweg_netlink::label::LabelMessage;
use thalweg_tables::{Address, Prefix, Sweep};

/// `RT_TABLE_DEFAULT`, `RT_TABLE_MAIN` and `RT_TABLE_LOCAL`.
const OF_KERNEL: RangeInclusive<u32> = 253..=255;

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
    pub(super) v4: BTreeMap<u32, Table<u32>>,
    pub(super) v6: BTreeMap<u32, Table<u128>>,
    labels: Labels,
    pub(super) lists: Lists,
    pub(super) objects: Objects,
    /// Objects to be taken.
    changed: BTreeSet<u32>,
    /// Objects that are gone; the kernel removes their routes without a word, so that they are
    /// handed over after the next list.
    gone: BTreeSet<u32>,
    unused: BTreeSet<u32>,
    /// Objects whose routes were there before them, to be offered.
    early: BTreeSet<u32>,
    limits: Limits,
    /// Counts since the last list began.
    left: Left,
    /// Counts before it, until it has ended.
    former: Option<Left>,
    /// Routes and labels since then that had no room.
    missing: [usize; 2],
    /// A route since then had no room as its table had none.
    lacks_table: bool,
    /// A notice did not fit what was seen: something was missed.
    pub(super) is_doubtful: bool,
    /// Routes of all tables.
    total: usize,
    mark: u8,
    listing: Listing,
    /// Work space.
    old: Vec<Route>,
    new: Vec<Route>,
    hops: Vec<NextHop>,
}

/// Runs with the tables of an address's version and the destination; nothing if that is invalid.
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

/// A walk over all destinations, in slices between which the shadow may change.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// Tables that are left, the present one last: true for IPv6.
    tables: Vec<(bool, u32)>,
    at: Sweep,
    /// Label to go on with, ahead of the tables.
    label: Option<u32>,
}

/// Does something with a slice of the present table, which returns whether that has more; the value
/// is false once the walk is over.
macro_rules! step {
    ($self:ident, $walk:ident, $get:ident, |$table:ident, $at:ident| $do:expr) => {{
        let Some(&(is_v6, id)) = $walk.tables.last() else { return false };
        let $at = &mut $walk.at;
        let more = match is_v6 {
            false => $self.v4.$get(&id).is_some_and(|$table| $do(id)),
            true => $self.v6.$get(&id).is_some_and(|$table| $do(id)),
        };
        if !more {
            $walk.tables.pop();
            $walk.at = Sweep::default();
        }
        true
    }};
}

/// Routes and objects that are taken again, as they lead elsewhere now.
#[derive(Debug, Default)]
pub(super) struct Offer {
    links: BTreeSet<Option<u32>>,
    objects: BTreeSet<u32>,
}

impl Offer {
    /// Returns whether it is of no route.
    pub(super) fn is_empty(&self) -> bool {
        self.links.is_empty() && self.objects.is_empty()
    }

    pub(super) fn has(&self, hops: &[NextHop]) -> bool {
        self.links.contains(&None) || hops.iter().any(|hop| self.links.contains(&Some(hop.link)))
    }
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

    /// Routes of labels.
    pub(super) fn labels(&self) -> usize {
        self.labels.len()
    }

    /// Next-hop objects.
    pub(super) fn objects(&self) -> usize {
        self.objects.len()
    }

    /// Counts of the last whole list and of the notices since.
    pub(super) fn left(&self) -> Left {
        self.former.unwrap_or(self.left)
    }

    /// Counts what a list leaves out at once, not when it is complete: it goes on for long.
    pub(super) fn count_at_once(&mut self) {
        self.former = None;
    }

    /// Takes note of a route or an object that there is no room for.
    pub(super) fn leave_out(&mut self) {
        self.left.beyond += 1;
    }

    /// Reads a message about what is gone: it is no longer left out.
    fn read_gone<T>(&mut self, read: impl FnOnce(&mut Shadow) -> T) -> T {
        let before = self.left;
        let read = read(self);
        let less = |before: u64, now: u64| before.saturating_sub(now - before);
        self.left = Left {
            unsupported: less(before.unsupported, self.left.unsupported),
            beyond: less(before.beyond, self.left.beyond),
        };
        read
    }

    /// Tables of the version that has more.
    fn tables(&self) -> usize {
        self.v4.len().max(self.v6.len())
    }

    /// Returns whether there is room for all that had none: only a list names it.
    fn has_room(&self) -> bool {
        let [routes, labels] = self.missing;
        let fits = |n: usize, there: usize, limit: usize| n > 0 && there + n <= limit;
        self.lacks_table && self.tables() < self.limits.tables
            || fits(routes, self.total, self.limits.routes)
            || fits(labels, self.labels.len(), self.limits.labels)
    }

    /// Bytes.
    pub(super) fn memory(&self) -> usize {
        let v4: usize = self.v4.values().map(Table::memory).sum();
        v4 + self.v6.values().map(Table::memory).sum::<usize>() + self.labels.memory()
    }

    /// Destinations that wait to be taken.
    pub(super) fn waiting(&self) -> usize {
        let v4: usize = self.v4.values().map(|t| t.queue.len()).sum();
        let v6: usize = self.v6.values().map(|t| t.queue.len()).sum();
        v4 + v6 + self.labels.waiting() + self.changed.len() + self.unused.len()
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
            Some(id) => self.lists.hold(Hops::Object(id)),
            None if m.kind == RouteKind::Unicast => self.hold_hops(m.hops())?,
            None => self.lists.hold_these(&[]),
        };
        Some(Route { metric: m.metric, hops, kind: m.kind, protocol: m.protocol })
    }

    /// Returns a reference to the hops of a route that the kernel uses; `None` if all are dead: the
    /// kernel goes on to the next route then.
    fn hold_hops<'m>(&mut self, all: impl Iterator<Item = Hop<'m>>) -> Option<u32> {
        let mut hops = std::mem::take(&mut self.hops);
        hops.clear();
        let mut beyond = 0;
        for hop in all.filter(|hop| !hop.is_dead) {
            self.left.unsupported += u64::from(hop.is_odd);
            match hops.len() < self.limits.hops {
                true => hops.push(NextHop::of(&hop)),
                false => beyond = 1,
            }
        }
        self.left.beyond += beyond;
        hops.sort_unstable();
        let held = (!hops.is_empty()).then(|| self.lists.hold_these(&hops));
        self.hops = hops;
        held
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
        if old.is_empty() && new.is_empty() {
            return;
        }
        let exists: bool = in_tables!(self, to, |tables, _prefix| tables.contains_key(&id));
        let full = self.total >= self.limits.routes;
        let lacks_table = !exists && self.tables() >= self.limits.tables;
        if grows && (full || lacks_table) {
            self.left.beyond += 1;
            self.lacks_table |= lacks_table;
            self.missing[0] += if full { new.len() - old.len() } else { 0 };
            // The routes that are there stay.
            self.mark(id, to, mark);
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
            self.mark(id, to, mark);
        }
        let released = if done { old } else { new };
        released.iter().for_each(|route| self.lists.release(route.hops));
    }

    fn mark(&mut self, id: u32, to: (IpAddr, u8), mark: u8) {
        in_tables!(self, to, |tables, prefix| {
            if let Some(table) = tables.get_mut(&id) {
                table.mark(prefix, mark);
            }
        });
    }

    /// Takes a notice of a route that is new or changed.
    pub(super) fn add(&mut self, placing: Placing, m: &RouteMessage<'_>) {
        let Some(route) = self.route(m) else {
            // One that the router follows may have made way.
            self.is_doubtful |= placing == Placing::Replace && m.tos == 0 && !m.has_source;
            return;
        };
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
        let Some(route) = self.read_gone(|shadow| shadow.route(m)) else { return };
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
        self.is_doubtful |= is_doubtful || self.has_room();
        self.lists.release(route.hops);
    }

    /// Takes the only route of a destination, from a program that hands over one for each.
    pub(super) fn replace(&mut self, m: &RouteMessage<'_>) {
        let Some(route) = self.route(m) else { return self.remove(m) };
        self.change(m, |all, _| {
            all.clear();
            all.push(route);
        });
        self.lists.release(route.hops);
    }

    /// Takes note that such a program has no route of a destination any more.
    pub(super) fn remove(&mut self, m: &RouteMessage<'_>) {
        // Routes for a type of service or a source are not among the others.
        if m.tos == 0 && !m.has_source {
            self.change(m, |all, _| all.clear());
        }
    }

    /// Takes a notice of a label's route, or a row of the list of all.
    pub(super) fn set_label(&mut self, m: &LabelMessage<'_>) {
        let Some(row) = self.row(m) else {
            self.labels.remove(m.label, &mut self.lists);
            return;
        };
        if self.labels.len() >= self.limits.labels && !self.labels.has(m.label) {
            self.left.beyond += 1;
            self.missing[1] += 1;
            return self.lists.release(row.hops);
        }
        self.labels.set(m.label, row, self.mark, &mut self.lists);
    }

    /// Takes a notice of a label's route that was deleted.
    pub(super) fn delete_label(&mut self, m: &LabelMessage<'_>) {
        if self.labels.remove(m.label, &mut self.lists) {
            self.is_doubtful |= self.has_room();
            return;
        }
        if let Some(row) = self.read_gone(|shadow| shadow.row(m)) {
            self.is_doubtful = true;
            self.lists.release(row.hops);
        }
    }

    /// Returns the route of a label, with a reference to its hops; `None` if the kernel does not
    /// use it, or the router does not follow it.
    fn row(&mut self, m: &LabelMessage<'_>) -> Option<Row> {
        if m.kind != RouteKind::Unicast || m.label < FIRST_FREE {
            self.left.unsupported += 1;
            return None;
        }
        let hops = self.hold_hops(m.hops())?;
        Some(Row { hops, protocol: m.protocol, propagates_ttl: m.propagates_ttl })
    }

    /// Returns the route of a label.
    pub(super) fn find_label(&self, label: u32) -> Option<LabelRoute> {
        self.labels.find(label, &self.lists)
    }

    /// Takes a row of the list of all objects.
    pub(super) fn list_object(&mut self, m: &NextHopMessage<'_>) {
        self.listing.objects.insert(m.id);
        self.set_object(m);
    }

    /// Takes a notice of an object.
    pub(super) fn set_object(&mut self, m: &NextHopMessage<'_>) {
        self.set_object_as(m.id, m, Some);
    }

    /// Takes note that an object was named since the list began.
    pub(super) fn name_object(&mut self, id: u32) {
        self.listing.objects.insert(id);
    }

    /// Returns whether routes lead to an object.
    pub(super) fn is_in_use(&self, id: u32) -> bool {
        self.lists.by_hops.contains_key(&Hops::Object(id))
    }

    /// Takes an object under another number; `number` returns those of members of a group.
    pub(super) fn set_object_as(
        &mut self,
        id: u32,
        m: &NextHopMessage<'_>,
        mut number: impl FnMut(u32) -> Option<u32>,
    ) {
        if m.is_fdb {
            return;
        }
        let members = m.members().take(self.limits.hops);
        let members: Vec<(u32, u16)> =
            members.filter_map(|(member, weight)| Some((number(member)?, weight))).collect();
        let object = match () {
            () if !members.is_empty() => Object::Group(members),
            () if m.is_blackhole => Object::Blackhole,
            () => Object::Hop(NextHop::of(&m.hop)),
        };
        if self.objects.len() >= self.limits.objects && self.objects.get(id).is_none() {
            self.left.beyond += 1;
            return;
        }
        self.gone.remove(&id);
        self.unused.remove(&id);
        if self.objects.get(id) == Some(&object) {
            return;
        }
        let is_group = matches!(object, Object::Group(_));
        let is_new = self.objects.set(id, object);
        if is_new && self.lists.by_hops.contains_key(&Hops::Object(id)) {
            // Its notice was lost, or comes late: its routes have led nowhere.
            self.early.insert(id);
        }
        self.changed.insert(id);
        if !is_group {
            self.changed.extend(self.objects.groups_of(id));
        }
    }

    /// Takes a notice that an object was deleted.
    pub(super) fn delete_object(&mut self, id: u32) {
        // The kernel removes its routes without a word.
        let in_use = self.is_in_use(id);
        self.is_doubtful |= in_use;
        if self.objects.remove(id) {
            self.changed.remove(&id);
            self.changed.extend(self.objects.groups_of(id));
            let place = if in_use { &mut self.gone } else { &mut self.unused };
            place.insert(id);
        }
    }

    /// Begins a list of all objects and routes.
    pub(super) fn begin(&mut self) {
        self.mark ^= SEEN;
        self.listing = Listing::default();
        self.former = Some(std::mem::take(&mut self.left));
        (self.missing, self.lacks_table) = ([0; 2], false);
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
            let (known, new): (Vec<Route>, Vec<Route>) =
                routes.iter().partition(|route| old.contains(route));
            known.iter().for_each(|route| self.lists.release(route.hops));
            old.iter().for_each(|route| self.lists.retain(route.hops));
            routes = old.iter().copied().chain(new).collect();
        }
        // The list has them by the kernel's order within a metric.
        routes.sort_by_key(|route| route.metric);
        if old == routes {
            self.mark(id, to, mark);
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
        self.former = None;
        let listed = std::mem::take(&mut self.listing.objects);
        let gone: Vec<u32> =
            self.objects.iter().map(|(id, _)| id).filter(|id| !listed.contains(id)).collect();
        gone.into_iter().for_each(|id| self.delete_object(id));
    }

    /// Begins a walk.
    pub(super) fn walk(&self) -> Walk {
        let v4 = self.v4.keys().map(|id| (false, *id));
        let tables = v4.chain(self.v6.keys().map(|id| (true, *id))).collect();
        Walk { tables, at: Sweep::default(), label: Some(0) }
    }

    /// Removes some routes that the list has not named; returns false at the end.
    pub(super) fn sweep_some(&mut self, walk: &mut Walk) -> bool {
        if let Some(from) = walk.label {
            walk.label = self.labels.sweep(from, self.mark, &mut self.lists);
            return true;
        }
        let mut released = Vec::new();
        let more = self.sweep_slice(walk, &mut released);
        self.total -= released.len();
        released.into_iter().for_each(|hops| self.lists.release(hops));
        if !more {
            // No route leads to an object that is gone.
            self.unused.append(&mut self.gone);
            self.is_doubtful |= self.has_room();
        }
        more
    }

    fn sweep_slice(&mut self, walk: &mut Walk, released: &mut Vec<u32>) -> bool {
        let mark = self.mark;
        step!(self, walk, get_mut, |table, at| |_| table.sweep_some(at, mark, released))
    }

    /// Gives up a list that was not whole; then all is marked, so that the next list begins with
    /// nothing seen.
    pub(super) fn abandon(&mut self) {
        self.flush_listed();
        self.listing = Listing::default();
        self.left = self.former.take().unwrap_or(self.left);
    }

    /// Marks some destinations; returns false at the end.
    pub(super) fn mark_some(&mut self, walk: &mut Walk) -> bool {
        let mark = self.mark;
        if let Some(from) = walk.label {
            walk.label = self.labels.mark_some(from, mark);
            return true;
        }
        step!(self, walk, get_mut, |table, at| |_| table.mark_some(at, mark))
    }

    /// Offers objects over links again, or all (`None`), and returns which routes are offered, too.
    pub(super) fn offer(&mut self, links: BTreeSet<Option<u32>>) -> Offer {
        let mut offer = Offer { links, objects: BTreeSet::new() };
        let is_over = |object: &Object| match object {
            Object::Hop(hop) => offer.has(std::slice::from_ref(hop)),
            Object::Blackhole | Object::Group(_) => offer.has(&[]),
        };
        let of_links: BTreeSet<u32> =
            self.objects.iter().filter(|(_, o)| is_over(o)).map(|(id, _)| id).collect();
        let groups: Vec<u32> = of_links.iter().flat_map(|id| self.objects.groups_of(*id)).collect();
        offer.objects = of_links.into_iter().chain(groups).collect();
        self.changed.extend(&offer.objects);
        offer
    }

    /// Returns the routes of objects that were there before these; `None` if there are none.
    pub(super) fn take_early(&mut self) -> Option<Offer> {
        let objects = std::mem::take(&mut self.early);
        let offer = Offer { objects, ..Offer::default() };
        Some(offer).filter(|offer| !offer.objects.is_empty())
    }

    /// Takes some of the routes again; returns false at the end.
    pub(super) fn offer_some(&mut self, walk: &mut Walk, offer: &Offer) -> bool {
        let lists = &self.lists;
        if let Some(from) = walk.label {
            walk.label = self.labels.offer(from, offer, lists);
            return true;
        }
        let wanted = |id: u32| match lists.get(id) {
            Some(Hops::These(hops)) => offer.has(hops),
            Some(Hops::Object(id)) => offer.objects.contains(id),
            None => false,
        };
        step!(self, walk, get_mut, |table, at| |_| table.queue_some(at, wanted))
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

    /// Returns whether at most one of the tables that are one to the router has routes of each
    /// version, or had some that wait to be taken.
    fn is_single(&self) -> bool {
        self.v4.range(OF_KERNEL).count() <= 1 && self.v6.range(OF_KERNEL).count() <= 1
    }

    /// Takes up to `most` changes.
    pub(super) fn take(&mut self, most: usize) -> Taken {
        let mut taken = Taken { is_single: self.is_single(), ..Taken::default() };
        while taken.objects.len() < most
            && let Some(id) = self.changed.pop_first()
        {
            taken.objects.push((id, self.objects.hops(id)));
        }
        let lists = &self.lists;
        let mut room = most.saturating_sub(taken.objects.len());
        for (id, table) in &mut self.v4 {
            take_from(*id, table, lists, &mut room, &mut taken.routes);
        }
        for (id, table) in &mut self.v6 {
            take_from(*id, table, lists, &mut room, &mut taken.routes);
        }
        self.v4.retain(|_, table| !table.map.is_empty() || !table.queue.is_empty());
        self.v6.retain(|_, table| !table.map.is_empty() || !table.queue.is_empty());
        self.is_doubtful |= self.lacks_table && self.has_room();
        while room > 0
            && let Some(change) = self.labels.take(lists)
        {
            taken.labels.push(change);
            room -= 1;
        }
        let routes_left = self.v4.values().any(|t| !t.queue.is_empty())
            || self.v6.values().any(|t| !t.queue.is_empty())
            || self.labels.waiting() > 0;
        if !routes_left && self.changed.is_empty() {
            taken.gone = std::mem::take(&mut self.unused).into_iter().collect();
        }
        taken.more = routes_left || !self.changed.is_empty();
        taken
    }

    /// Adds some destinations with the routes that are used, or that are gone and wait to be taken,
    /// or some labels; returns false at the end.
    pub(super) fn some(&self, walk: &mut Walk, out: &mut Visited) -> bool {
        let lists = &self.lists;
        if let Some(from) = walk.label {
            walk.label = self.labels.some(from, lists, &mut out.labels);
            return true;
        }
        let out = &mut out.routes;
        step!(self, walk, get, |table, at| |id| some_of(id, table, at, lists, out))
    }
}

fn change<A: Address>(
    table: u32,
    prefix: Prefix<A>,
    route: Option<Route>,
    lists: &Lists,
) -> Change {
    let used = |route: Route| {
        let hops = lists.get(route.hops)?.clone();
        let Route { metric, kind, protocol, .. } = route;
        Some(Used { metric, kind, protocol, hops })
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

fn some_of<A: Address>(
    id: u32,
    table: &Table<A>,
    at: &mut Sweep,
    lists: &Lists,
    out: &mut Vec<Change>,
) -> bool {
    let mut some = Vec::new();
    let more = table.some(at, |prefix| some.push(prefix));
    let mut routes = Vec::new();
    out.extend(some.into_iter().map(|prefix| {
        table.read(prefix, &mut routes);
        change(id, prefix, routes.first().copied(), lists)
    }));
    more
}
