//! Hosts on a link by configured routes, whatever the addresses of its interface are: those behind
//! a route to the interface, and next hops named together with it.

use super::path::{Path, PathKind};
use std::collections::{BTreeMap, BTreeSet};
use thalweg_device::SwIfIndex;
use thalweg_tables::{Address, Prefix};

/// Hosts on an interface by configured routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutedPeers<A> {
    /// Prefixes of routes to the interface, in order.
    pub attached: Vec<Prefix<A>>,
    /// Next hops named together with the interface, in order.
    pub next_hops: Vec<A>,
}

pub(super) struct Peers<A> {
    attached: BTreeSet<(SwIfIndex, Prefix<A>)>,
    /// Next hops, each with the number of path lists of configured routes that name it.
    hosts: BTreeMap<(SwIfIndex, A), u32>,
    /// Interfaces of which something has changed.
    changed: BTreeSet<SwIfIndex>,
}

impl<A> Default for Peers<A> {
    fn default() -> Self {
        Peers { attached: BTreeSet::new(), hosts: BTreeMap::new(), changed: BTreeSet::new() }
    }
}

/// The next hop of a path, if it is named together with its interface.
pub(super) fn host<A: Address>(path: &Path) -> Option<(SwIfIndex, A)> {
    let is_normal = path.kind == PathKind::Normal;
    path.sw_if.filter(|_| is_normal).zip(path.next_hop.and_then(A::from_ip))
}

impl<A: Address> Peers<A> {
    pub(super) fn set_attached(&mut self, sw_if: SwIfIndex, prefix: Prefix<A>, is_there: bool) {
        let changed = match is_there {
            true => self.attached.insert((sw_if, prefix)),
            false => self.attached.remove(&(sw_if, prefix)),
        };
        if changed {
            self.changed.insert(sw_if);
        }
    }

    /// Counts a path list that names a next hop, or no longer does.
    pub(super) fn count_host(&mut self, sw_if: SwIfIndex, host: A, is_new: bool) {
        let count = self.hosts.entry((sw_if, host)).or_default();
        *count = if is_new { *count + 1 } else { count.saturating_sub(1) };
        let count = *count;
        if count == 0 {
            self.hosts.remove(&(sw_if, host));
        }
        if count == u32::from(is_new) {
            self.changed.insert(sw_if);
        }
    }

    /// Forgets all of an interface that goes.
    pub(super) fn forget(&mut self, sw_if: SwIfIndex) {
        let RoutedPeers { attached, next_hops } = self.of(sw_if);
        attached.into_iter().for_each(|prefix| _ = self.attached.remove(&(sw_if, prefix)));
        next_hops.into_iter().for_each(|host| _ = self.hosts.remove(&(sw_if, host)));
        self.changed.insert(sw_if);
    }

    pub(super) fn clear(&mut self) {
        let all = self.attached.iter().map(|a| a.0).chain(self.hosts.keys().map(|h| h.0));
        self.changed.extend(all.collect::<BTreeSet<_>>());
        self.attached.clear();
        self.hosts.clear();
    }

    pub(super) fn take_changed(&mut self) -> BTreeSet<SwIfIndex> {
        std::mem::take(&mut self.changed)
    }

    /// Returns whether any route leads to hosts on an interface.
    pub(super) fn has_attached(&self, sw_if: SwIfIndex) -> bool {
        let first = Prefix::new(A::default(), 0).unwrap_or(Prefix::host(A::default()));
        self.attached.range((sw_if, first)..).next().is_some_and(|a| a.0 == sw_if)
    }

    /// Returns whether a route says that an address is on an interface.
    pub(super) fn attaches(&self, sw_if: SwIfIndex, addr: A) -> bool {
        let covers = (0..=A::BITS).filter_map(|len| Prefix::new(addr, len).ok());
        self.has_attached(sw_if) && covers.into_iter().any(|p| self.attached.contains(&(sw_if, p)))
    }

    pub(super) fn of(&self, sw_if: SwIfIndex) -> RoutedPeers<A> {
        let first = Prefix::new(A::default(), 0).unwrap_or(Prefix::host(A::default()));
        let attached = self.attached.range((sw_if, first)..);
        let hosts = self.hosts.range((sw_if, A::default())..);
        RoutedPeers {
            attached: attached.take_while(|a| a.0 == sw_if).map(|a| a.1).collect(),
            next_hops: hosts.take_while(|(h, _)| h.0 == sw_if).map(|(h, _)| h.1).collect(),
        }
    }
}
