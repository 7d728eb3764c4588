//! Routes whose path list changed and that are rewritten in time slices: a walk over all routes,
//! while routes and lists keep changing.

use crate::entries::Entries;
use crate::route::{ListId, Source};
use std::collections::BTreeSet;
use thalweg_fib::Dpo;
use thalweg_tables::{Ipv4Prefix, Sweep};

/// Changed path lists, and the progress of the walk that rewrites their routes.
#[derive(Default)]
pub(crate) struct PendingReresolve {
    /// Lists of the current walk.
    lists: BTreeSet<ListId>,
    at: Sweep,
    /// Routes found and not yet rewritten.
    found: Vec<(Ipv4Prefix, Source)>,
    /// Forwarding objects that routes may still use.
    held: Vec<Dpo>,
    /// Lists changed since the walk began, for the next one.
    next: BTreeSet<ListId>,
    held_next: Vec<Dpo>,
}

impl PendingReresolve {
    /// Returns whether no re-resolution is pending.
    pub(crate) fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.next.is_empty()
    }

    /// Adds changed lists. `held` keeps the forwarding objects that their routes still use.
    pub(crate) fn add(&mut self, lists: BTreeSet<ListId>, held: Vec<Dpo>) {
        self.next.extend(lists);
        self.held_next.extend(held);
    }

    /// Takes a route to rewrite.
    pub(crate) fn pop(&mut self) -> Option<(Ipv4Prefix, Source)> {
        self.found.pop()
    }

    /// Visits some more routes; returns their number, or `None` at the end of the walk.
    pub(crate) fn scan(&mut self, routes: &Entries) -> Option<usize> {
        if self.lists.is_empty() {
            self.lists = std::mem::take(&mut self.next);
            self.held = std::mem::take(&mut self.held_next);
            self.at = Sweep::default();
        }
        routes.sweep(&mut self.at, &self.lists, &mut self.found)
    }

    /// Ends the walk; returns the forwarding objects that no route uses any more.
    pub(crate) fn finish(&mut self) -> Vec<Dpo> {
        self.lists.clear();
        std::mem::take(&mut self.held)
    }

    /// All forwarding objects held.
    pub(crate) fn into_held(self) -> impl Iterator<Item = Dpo> {
        self.held.into_iter().chain(self.held_next)
    }
}
