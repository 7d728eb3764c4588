//! The kernel's routes of labels as they were last seen: one for each label.

use super::lists::Lists;
use super::shadow::Offer;
use super::table::SEEN;
use super::types::{Hops, NextHop};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Labels below have a meaning of their own (RFC 7274); the kernel has no routes of them.
pub(super) const FIRST_FREE: u32 = 16;
/// Labels that are visited at once.
const AT_ONCE: usize = 512;

/// A route of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelRoute {
    /// Its protocol (`RTPROT_*`).
    pub protocol: u8,
    /// True if the packet behind a label that is popped takes over its TTL; `None` if the
    /// namespace's settings say.
    pub propagates_ttl: Option<bool>,
    /// Next hops. Their labels take the place of the label.
    pub hops: Arc<[NextHop]>,
}

/// A change of a label's route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelChange {
    /// The label.
    pub label: u32,
    /// The route; `None` if there is none any more.
    pub now: Option<LabelRoute>,
}

/// A route with the number of its list of hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) hops: u32,
    pub(super) protocol: u8,
    pub(super) propagates_ttl: Option<bool>,
}

/// All labels of a namespace.
#[derive(Debug, Default)]
pub(super) struct Labels {
    /// Each with one of the two values of the mark of the last list.
    rows: BTreeMap<u32, (Row, u8)>,
    /// Labels to be taken; those without a route are gone.
    changed: BTreeSet<u32>,
}

impl Labels {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn waiting(&self) -> usize {
        self.changed.len()
    }

    pub(super) fn has(&self, label: u32) -> bool {
        self.rows.contains_key(&label)
    }

    pub(super) fn memory(&self) -> usize {
        self.rows.len() * size_of::<(u32, (Row, u8))>() + self.changed.len() * size_of::<u32>()
    }

    /// Sets the route of a label, whose reference to its hops it takes, and marks it.
    pub(super) fn set(&mut self, label: u32, row: Row, mark: u8, lists: &mut Lists) {
        let old = self.rows.insert(label, (row, mark));
        if old.map(|(old, _)| old) != Some(row) {
            self.changed.insert(label);
        }
        old.into_iter().for_each(|(old, _)| lists.release(old.hops));
    }

    /// Removes the route of a label; returns false if there is none.
    pub(super) fn remove(&mut self, label: u32, lists: &mut Lists) -> bool {
        let Some((old, _)) = self.rows.remove(&label) else { return false };
        self.changed.insert(label);
        lists.release(old.hops);
        true
    }

    /// Does something with some labels from one on; returns the one to go on with.
    fn visit(&mut self, from: u32, mut each: impl FnMut(u32, &mut (Row, u8))) -> Option<u32> {
        let mut left = AT_ONCE;
        for (label, row) in self.rows.range_mut(from..) {
            if left == 0 {
                return Some(*label);
            }
            left -= 1;
            each(*label, row);
        }
        None
    }

    /// Removes some labels that a list has not named.
    pub(super) fn sweep(&mut self, from: u32, mark: u8, lists: &mut Lists) -> Option<u32> {
        let mut gone = Vec::new();
        let next = self.visit(from, |label, (_, own)| {
            if (*own ^ mark) & SEEN != 0 {
                gone.push(label);
            }
        });
        gone.into_iter().for_each(|label| _ = self.remove(label, lists));
        next
    }

    /// Marks some labels.
    pub(super) fn mark_some(&mut self, from: u32, mark: u8) -> Option<u32> {
        self.visit(from, |_, (_, own)| *own = mark)
    }

    /// Has some labels taken again.
    pub(super) fn offer(&mut self, from: u32, offer: &Offer, lists: &Lists) -> Option<u32> {
        let mut offered = Vec::new();
        let next = self.visit(from, |label, (row, _)| {
            if offer.has(hops(lists, *row)) {
                offered.push(label);
            }
        });
        self.changed.extend(offered);
        next
    }

    /// Adds some labels to `out`, with their routes, and those among them that are gone and wait to
    /// be taken: labels that go ahead of a walk are in it.
    pub(super) fn some(&self, from: u32, lists: &Lists, out: &mut Vec<LabelChange>) -> Option<u32> {
        let row = self.rows.range(from..).nth(AT_ONCE).map(|(label, _)| *label);
        let waiting = self.changed.range(from..).nth(AT_ONCE).copied();
        let next = row.into_iter().chain(waiting).min();
        let until = next.unwrap_or(u32::MAX);
        let gone = self.changed.range(from..until).filter(|label| !self.has(**label));
        out.extend(gone.map(|label| LabelChange { label: *label, now: None }));
        let some = self.rows.range(from..until);
        out.extend(some.map(|(label, (row, _))| change(*label, *row, lists)));
        next
    }

    pub(super) fn find(&self, label: u32, lists: &Lists) -> Option<LabelRoute> {
        self.rows.get(&label).and_then(|(row, _)| change(label, *row, lists).now)
    }

    /// Takes a label that has changed.
    pub(super) fn take(&mut self, lists: &Lists) -> Option<LabelChange> {
        let label = self.changed.pop_first()?;
        Some(LabelChange { label, now: self.find(label, lists) })
    }
}

fn hops(lists: &Lists, row: Row) -> &[NextHop] {
    match lists.get(row.hops) {
        Some(Hops::These(hops)) => hops,
        _ => &[],
    }
}

fn change(label: u32, row: Row, lists: &Lists) -> LabelChange {
    let Row { protocol, propagates_ttl, .. } = row;
    let now = match lists.get(row.hops) {
        Some(Hops::These(hops)) => {
            Some(LabelRoute { protocol, propagates_ttl, hops: Arc::clone(hops) })
        }
        _ => None,
    };
    LabelChange { label, now }
}
