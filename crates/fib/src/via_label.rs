//! Objects that lead where a label of MPLS table 0 does, for paths whose next hop is a label.
//!
//! A path of that kind resolves to an object that stays. The feature with the label table is
//! notified of new objects ([`ViaLabelsDue`]), and lets them follow the label's paths. They follow
//! again when the label gets other paths.

use crate::forwarding::UNRESOLVED;
use crate::rib::Labels;
use crate::{Dpo, FibError, Forwarding, LinkType, Member};
use std::collections::{BTreeMap, BTreeSet};
use thalweg_graph::Control;
use thalweg_wire::mpls::Label;

/// Parts that distinguish such an object from others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ViaLabel {
    /// The label whose paths are followed: those of packets with more labels behind it.
    pub label: Label,
    /// Family of the route table that resolves the path: IPv4 or IPv6.
    pub link: LinkType,
    /// Labels put before packets, before those of the label's paths.
    pub labels: Labels,
}

impl ViaLabel {
    /// The first one of a label.
    const fn first(label: Label) -> ViaLabel {
        ViaLabel { label, link: LinkType::Ip4, labels: Labels::NONE }
    }
}

/// The event that objects are to follow their labels: [`Forwarding::take_due`] tells which.
#[derive(Clone, Copy, Debug)]
pub struct ViaLabelsDue;

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct ViaLabels {
    /// Each with a reference of its own.
    all: BTreeMap<ViaLabel, Dpo>,
    due: BTreeSet<ViaLabel>,
    /// Next place to search for unused ones.
    next: Option<ViaLabel>,
}

/// Objects looked at once for users.
const AT_ONCE: usize = 4096;

impl Forwarding {
    /// Returns the object that leads where a label does, with a reference; a new one leads nowhere
    /// until the main thread's next turn.
    ///
    /// # Errors
    /// If the table is full.
    pub(crate) fn via_label(&mut self, c: &Control, key: ViaLabel) -> Result<Dpo, FibError> {
        let dpo = match self.via_labels.all.get(&key) {
            Some(dpo) => *dpo,
            None => {
                let dpo = self.group(c, vec![Member::of(UNRESOLVED)])?;
                self.via_labels.all.insert(key, dpo);
                self.note_due(c, [key]);
                dpo
            }
        };
        self.retain(dpo);
        Ok(dpo)
    }

    fn note_due(&mut self, c: &Control, keys: impl IntoIterator<Item = ViaLabel>) {
        let idle = self.via_labels.due.is_empty();
        self.via_labels.due.extend(keys);
        if idle && !self.via_labels.due.is_empty() {
            c.remote().submit(|c| c.publish(ViaLabelsDue));
        }
    }

    /// Makes the objects of a label follow it again: it has other paths now, or none.
    pub fn label_changed(&mut self, c: &Control, label: Label) {
        let of = self.via_labels.all.range(ViaLabel::first(label)..);
        let all: Vec<ViaLabel> =
            of.map(|(key, _)| *key).take_while(|key| key.label == label).collect();
        self.note_due(c, all);
    }

    /// Like [`label_changed`](Self::label_changed), for all labels: their table has come or gone.
    pub fn all_labels_changed(&mut self, c: &Control) {
        let all: Vec<ViaLabel> = self.via_labels.all.keys().copied().collect();
        self.note_due(c, all);
    }

    /// Takes an object that is to follow its label; `None` once all do.
    pub fn take_due(&mut self) -> Option<ViaLabel> {
        self.via_labels.due.pop_first()
    }

    /// Makes an object lead to its label's target, which the caller keeps a reference to, or
    /// nowhere. Returns whether it does: not if it is gone, or would lead to itself.
    pub fn set_via_label(&mut self, c: &Control, key: &ViaLabel, to: Option<Dpo>) -> bool {
        let Some(&dpo) = self.via_labels.all.get(key) else { return false };
        let to = to.filter(|to| self.conflict(dpo, *to).is_none());
        to.into_iter().for_each(|to| self.retain(to));
        let member = Member::of(to.unwrap_or(UNRESOLVED));
        // One member always fits: it leads to no group, or to one that does not lead back.
        self.set_group(c, dpo, vec![member]).is_ok() && to.is_some()
    }

    /// Looks at some thousands of the objects, goes on there next time, and forgets those that
    /// nothing else refers to. Returns these.
    pub fn release_via_labels(&mut self, c: &Control) -> Vec<ViaLabel> {
        let from = self.via_labels.next.unwrap_or(ViaLabel::first(Label(0)));
        let mut some = self.via_labels.all.range(from..);
        let seen: Vec<(ViaLabel, Dpo)> =
            some.by_ref().take(AT_ONCE).map(|(key, dpo)| (*key, *dpo)).collect();
        self.via_labels.next = some.next().map(|(key, _)| *key);
        let all: Vec<_> = seen.into_iter().filter(|(_, dpo)| self.refs(*dpo) <= 1).collect();
        for (key, dpo) in &all {
            self.via_labels.all.remove(key);
            self.via_labels.due.remove(key);
            self.release(c, *dpo);
        }
        all.into_iter().map(|(key, _)| key).collect()
    }
}
