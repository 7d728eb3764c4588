//! Routes of a routing table: 16 bytes for each, behind a map of destinations.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use thalweg_netlink::fib::RouteKind;
use thalweg_tables::{Address, Prefix, PrefixMap, Sweep};

/// A route of a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) metric: u32,
    pub(super) hops: u32,
    /// The next one of the destination, or [`NONE`].
    pub(super) next: u32,
    pub(super) kind: RouteKind,
    pub(super) protocol: u8,
    /// Flags, valid in the destination's first entry: [`QUEUED`], [`SEEN`], [`DELETED`].
    pub(super) flags: u8,
}

pub(super) const NONE: u32 = u32::MAX;
/// Its destination waits to be taken.
pub(super) const QUEUED: u8 = 1;
/// One of the two values of the mark of the last list.
pub(super) const SEEN: u8 = 2;
/// The destination has no route; it waits to be taken.
pub(super) const DELETED: u8 = 4;

/// Properties that distinguish a route from others of its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) metric: u32,
    pub(super) hops: u32,
    pub(super) kind: RouteKind,
    pub(super) protocol: u8,
}

impl Route {
    pub(super) fn is_used_as(self, other: Route) -> bool {
        // The metric ranks it among routes from elsewhere.
        let place = |r: Route| (r.metric, r.hops, r.kind, r.protocol);
        place(self) == place(other)
    }
}

/// Routes of a table.
#[derive(Debug)]
pub(super) struct Table<A> {
    pub(super) map: PrefixMap<A>,
    pub(super) entries: Vec<Entry>,
    pub(super) free: Vec<u32>,
    /// Destinations to be taken.
    pub(super) queue: VecDeque<Prefix<A>>,
}

impl<A: Address> Default for Table<A> {
    fn default() -> Self {
        let (entries, free, queue) = (Vec::new(), Vec::new(), VecDeque::new());
        Table { map: PrefixMap::new(), entries, free, queue }
    }
}

impl<A: Address> Table<A> {
    pub(super) fn head(&self, prefix: Prefix<A>) -> Option<u32> {
        self.map.get(prefix).map(|at| at.get() - 1)
    }

    /// Routes of a destination, the one that is used first.
    pub(super) fn read(&self, prefix: Prefix<A>, out: &mut Vec<Route>) {
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
    pub(super) fn write(
        &mut self,
        prefix: Prefix<A>,
        old: &[Route],
        new: &[Route],
        mark: u8,
    ) -> bool {
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

    pub(super) fn free_from(&mut self, mut at: u32) {
        while at != NONE {
            self.free.push(at);
            at = self.entries[at as usize].next;
        }
    }

    pub(super) fn mark(&mut self, prefix: Prefix<A>, mark: u8) {
        if let Some(at) = self.head(prefix) {
            let flags = &mut self.entries[at as usize].flags;
            *flags = *flags & !SEEN | mark & SEEN;
        }
    }

    pub(super) fn is_marked(&self, prefix: Prefix<A>, mark: u8) -> bool {
        let flags = self.head(prefix).map(|at| self.entries[at as usize].flags);
        flags.is_some_and(|flags| flags & (SEEN | DELETED) == mark & SEEN)
    }

    /// Queues a destination, as if it had changed.
    pub(super) fn queue(&mut self, prefix: Prefix<A>) {
        let Some(at) = self.head(prefix) else { return };
        let flags = &mut self.entries[at as usize].flags;
        if *flags & QUEUED == 0 {
            *flags |= QUEUED;
            self.queue.push_back(prefix);
        }
    }

    /// Queues some destinations whose route that is used leads to a list; returns false at the end.
    pub(super) fn queue_some(&mut self, at: &mut Sweep, wanted: impl Fn(u32) -> bool) -> bool {
        let mut some = Vec::new();
        let more = self.map.sweep(at, |(prefix, _)| some.push(prefix));
        let mut routes = Vec::new();
        for prefix in some {
            self.read(prefix, &mut routes);
            if routes.first().is_some_and(|route| wanted(route.hops)) {
                self.queue(prefix);
            }
        }
        more
    }

    /// Removes some destinations that a list has not named, and adds their lists of hops to
    /// `released`; returns false at the end.
    pub(super) fn sweep_some(&mut self, at: &mut Sweep, mark: u8, released: &mut Vec<u32>) -> bool {
        let mut some = Vec::new();
        let more = self.map.sweep(at, |(prefix, _)| some.push(prefix));
        let mut old = Vec::new();
        for prefix in some {
            if !self.is_marked(prefix, mark) {
                self.read(prefix, &mut old);
                if !old.is_empty() && self.write(prefix, &old, &[], mark) {
                    released.extend(old.iter().map(|route| route.hops));
                }
            }
        }
        more
    }

    /// Marks some destinations; returns false at the end.
    pub(super) fn mark_some(&mut self, at: &mut Sweep, mark: u8) -> bool {
        let mut some = Vec::new();
        let more = self.map.sweep(at, |(prefix, _)| some.push(prefix));
        some.into_iter().for_each(|prefix| self.mark(prefix, mark));
        more
    }

    /// Hands out some destinations; returns false at the end.
    pub(super) fn some(&self, at: &mut Sweep, mut each: impl FnMut(Prefix<A>)) -> bool {
        self.map.sweep(at, |(prefix, _)| each(prefix))
    }

    /// Takes a destination that has changed, with the route that is used now.
    pub(super) fn take(&mut self) -> Option<(Prefix<A>, Option<Route>)> {
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

    pub(super) fn memory(&self) -> usize {
        self.map.memory()
            + self.entries.capacity() * size_of::<Entry>()
            + self.queue.capacity() * size_of::<Prefix<A>>()
    }
}
