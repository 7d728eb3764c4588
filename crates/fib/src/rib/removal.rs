//! Routes whose path list has lost its last path, and that are removed in time slices: a walk over
//! all routes, while routes and lists keep changing.

use super::ListId;
use super::entries::Entries;
use super::path::Source;
use std::collections::BTreeSet;
use thalweg_tables::{Address, Prefix, Sweep};

/// Empty path lists, and the progress of the walk that removes their routes.
pub(super) struct Removal<A> {
    /// Lists of the current walk.
    lists: BTreeSet<ListId>,
    at: Sweep,
    /// Routes found and not yet removed.
    found: Vec<(Prefix<A>, Source)>,
    /// Lists emptied since the walk began, for the next one.
    next: BTreeSet<ListId>,
}

impl<A> Default for Removal<A> {
    fn default() -> Self {
        let (lists, next) = (BTreeSet::new(), BTreeSet::new());
        Removal { lists, at: Sweep::default(), found: Vec::new(), next }
    }
}

impl<A: Address> Removal<A> {
    /// Returns whether no removal is pending.
    pub(super) fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.next.is_empty()
    }

    /// Adds empty lists.
    pub(super) fn add(&mut self, lists: BTreeSet<ListId>) {
        self.next.extend(lists);
    }

    /// Takes a route to remove.
    pub(super) fn pop(&mut self) -> Option<(Prefix<A>, Source)> {
        self.found.pop()
    }

    /// Visits some more routes; returns their number, or `None` at the end of the walk.
    pub(super) fn scan(&mut self, routes: &Entries<A>) -> Option<usize> {
        if self.lists.is_empty() {
            self.lists = std::mem::take(&mut self.next);
            self.at = Sweep::default();
        }
        routes.sweep(&mut self.at, &self.lists, &mut self.found)
    }

    /// Ends the walk.
    pub(super) fn finish(&mut self) {
        self.lists.clear();
    }
}
