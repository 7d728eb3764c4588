//! Prefixes whose routes something else follows, such as a label that is bound to one.

use super::path::TableId;
use crate::LinkType;
use std::collections::BTreeSet;
use thalweg_graph::Control;
use thalweg_tables::{Address, Prefix};

/// The event that routes of watched prefixes have changed in a table, or the table has gone. The
/// table says which ([`take_touched`](super::Table::take_touched)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedRoutes {
    /// Protocol of its packets.
    pub link: LinkType,
    /// The table.
    pub table: TableId,
}

/// Watched prefixes of a table.
pub(super) struct Watched<A> {
    all: BTreeSet<Prefix<A>>,
    /// Prefixes that have changed, until subscribers ask.
    touched: BTreeSet<Prefix<A>>,
}

impl<A> Default for Watched<A> {
    fn default() -> Self {
        Watched { all: BTreeSet::new(), touched: BTreeSet::new() }
    }
}

/// Notifies subscribers of it, with other changes of the same turn.
fn publish(c: &Control, (link, table): (LinkType, TableId)) {
    c.remote().submit(move |c| c.publish(WatchedRoutes { link, table }));
}

impl<A: Address> Watched<A> {
    pub(super) fn set(&mut self, prefix: Prefix<A>, on: bool) {
        match on {
            true => self.all.insert(prefix),
            false => self.all.remove(&prefix),
        };
    }

    /// Notes that the route of a prefix has changed.
    pub(super) fn touch(&mut self, c: &Control, table: (LinkType, TableId), prefix: Prefix<A>) {
        if self.all.is_empty() || !self.all.contains(&prefix) {
            return;
        }
        if self.touched.is_empty() {
            publish(c, table);
        }
        self.touched.insert(prefix);
    }

    /// Notes that the table has gone.
    pub(super) fn touch_all(&mut self, c: &Control, table: (LinkType, TableId)) {
        if !self.all.is_empty() {
            publish(c, table);
        }
        self.all.clear();
    }

    pub(super) fn take(&mut self) -> BTreeSet<Prefix<A>> {
        std::mem::take(&mut self.touched)
    }
}
