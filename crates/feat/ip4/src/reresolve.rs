//! Routes that follow a change of their lists of paths by and by: a walk over all routes that goes
//! on in slices, while routes and lists go on changing.

use crate::entries::Entries;
use crate::route::{ListId, Source};
use std::collections::BTreeSet;
use thalweg_fib::Dpo;
use thalweg_tables::{Ipv4Prefix, Sweep};

/// Lists that have changed, and how far their routes have followed.
#[derive(Default)]
pub(crate) struct PendingReresolve {
    /// Those that the walk under way looks for.
    lists: BTreeSet<ListId>,
    at: Sweep,
    /// Routes that it has found.
    found: Vec<(Ipv4Prefix, Source)>,
    /// What some routes lead to still.
    held: Vec<Dpo>,
    /// Those that have changed since it began: for the next one.
    next: BTreeSet<ListId>,
    held_next: Vec<Dpo>,
}

impl PendingReresolve {
    /// Whether all routes have followed.
    pub(crate) fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.next.is_empty()
    }

    /// Lists have changed; their routes lead to `held` until they follow, or are about to.
    pub(crate) fn add(&mut self, lists: BTreeSet<ListId>, held: Vec<Dpo>) {
        self.next.extend(lists);
        self.held_next.extend(held);
    }

    /// A route that is to follow.
    pub(crate) fn pop(&mut self) -> Option<(Ipv4Prefix, Source)> {
        self.found.pop()
    }

    /// Looks at some more routes; returns how many, `None` if the walk has ended.
    pub(crate) fn scan(&mut self, routes: &Entries) -> Option<usize> {
        if self.lists.is_empty() {
            self.lists = std::mem::take(&mut self.next);
            self.held = std::mem::take(&mut self.held_next);
            self.at = Sweep::default();
        }
        routes.sweep(&mut self.at, &self.lists, &mut self.found)
    }

    /// Ends the walk; returns what no route leads to any more.
    pub(crate) fn finish(&mut self) -> Vec<Dpo> {
        self.lists.clear();
        std::mem::take(&mut self.held)
    }

    /// What it holds.
    pub(crate) fn into_held(self) -> impl Iterator<Item = Dpo> {
        self.held.into_iter().chain(self.held_next)
    }
}
