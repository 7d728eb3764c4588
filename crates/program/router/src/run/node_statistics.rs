//! Nodes and their drop reasons in the statistics segment.
//!
//! Ids of nodes and of their counters go to other nodes once theirs have ended: a column stays, and
//! the names that lead to it follow.

use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_graph::{Control, NodeId};
use thalweg_stats::{Change, Segment, SegmentError, Slot};

use super::statistics::slots;

/// Reasons that VPP's clients know by another name.
const OTHER_NAMES: [(&str, &str, &str); 13] = [
    ("ip4-rewrite", "ip4 MTU exceeded and DF set", "/err/ip4-input/mtu_exceeded"),
    ("nat44-ed-in2out", "out of ports", "/err/nat44-ed-in2out-slowpath/out of ports"),
    (
        "nat44-ed-in2out",
        "maximum sessions exceeded",
        "/err/nat44-ed-in2out-slowpath/maximum sessions exceeded",
    ),
    ("nat44-ed-in2out-output", "out of ports", "/err/nat44-ed-in2out-output-slowpath/out of ports"),
    (
        "nat44-ed-in2out-output",
        "maximum sessions exceeded",
        "/err/nat44-ed-in2out-output-slowpath/maximum sessions exceeded",
    ),
    (
        "nat44-ed-out2in",
        "maximum sessions exceeded",
        "/err/nat44-ed-out2in-slowpath/maximum sessions exceeded",
    ),
    ("ip6-rewrite", "ip6 MTU exceeded", "/err/ip6-input/mtu_exceeded"),
    ("mpls-input", "mpls ttl expired", "/err/mpls-input/ttl_expired"),
    ("mpls-not-enabled", "mpls is not enabled on the interface", "/err/mpls-input/not_enabled"),
    ("mpls-lookup", "mpls label is bound to a drop", "/err/mpls-input/drop"),
    ("mpls-lookup", "mpls packet to the router itself", "/err/mpls-input/punt"),
    ("mpls-lookup", "mpls label is not bound", "/err/mpls-lookup/no_label"),
    ("mpls-frag", "mpls MTU exceeded and DF set", "/err/mpls-frag/dont_fragment_set"),
];

/// Counters of each node, as [`Control::node_counts`] gives them.
const NODE: [&str; 4] = ["calls", "vectors", "clocks", "suspends"];

/// A column's owner, with the links that lead to the column.
struct Owner {
    node: Arc<str>,
    /// The drop reason, if the column is one's.
    reason: &'static str,
    links: Vec<Slot>,
}

impl Owner {
    fn is(&self, node: &Arc<str>, reason: &'static str) -> bool {
        (Arc::ptr_eq(&self.node, node) || self.node == *node) && self.reason == reason
    }
}

/// The owners of all columns, and the graph's number of changes when they were read.
#[derive(Default)]
struct Owners {
    all: Vec<Option<Owner>>,
    changes: Option<u64>,
}

impl Owners {
    /// Makes the columns' links those of `now`, the owners that columns have: first removes those
    /// of other owners, as a name may have moved, then calls `add` for each new owner.
    fn update(
        &mut self,
        c: &Control,
        segment: &mut Segment,
        now: &[Option<(&Arc<str>, &'static str)>],
        mut add: impl FnMut(&mut Change<'_>, usize, &str, &mut Vec<Slot>) -> Result<(), SegmentError>,
    ) -> Result<(), SegmentError> {
        self.all.resize_with(now.len(), || None);
        let columns = || self.all.iter().zip(now);
        let is_same =
            |(owner, now): (&Option<Owner>, &Option<(&Arc<str>, &'static str)>)| match (owner, now)
            {
                (Some(owner), Some((node, reason))) => owner.is(node, reason),
                (owner, now) => owner.is_none() && now.is_none(),
            };
        let changed: Vec<usize> =
            columns().enumerate().filter(|(_, both)| !is_same(*both)).map(|(i, _)| i).collect();
        if !changed.is_empty() {
            segment.change(|s| {
                for i in &changed {
                    let gone = self.all[*i].take();
                    gone.into_iter().flat_map(|owner| owner.links).for_each(|link| s.remove(link));
                }
                for i in &changed {
                    let Some((node, reason)) = now[*i] else { continue };
                    let mut links = Vec::new();
                    if let Err(full) = add(s, *i, &node.replace('/', "_"), &mut links) {
                        // The next time tries again.
                        links.into_iter().for_each(|link| s.remove(link));
                        return Err(full);
                    }
                    self.all[*i] = Some(Owner { node: node.clone(), reason, links });
                }
                Ok(())
            })?;
        }
        self.changes = Some(c.node_changes());
        Ok(())
    }

    /// Returns whether nodes and counters are the same as before.
    fn are_current(&self, c: &Control) -> bool {
        self.changes == Some(c.node_changes())
    }
}

/// Nodes that have their names; another with the same name has ended.
fn named(c: &Control) -> Vec<bool> {
    let nodes = c.nodes().iter().enumerate();
    nodes.map(|(i, node)| c.node(&node.name) == Some(NodeId(i as u16))).collect()
}

/// Counters of drop reasons and others, by number.
pub(super) struct Errors {
    slot: Slot,
    owners: Owners,
}

impl Errors {
    pub(super) fn new(s: &mut Change<'_>, rows: usize) -> Result<Errors, SegmentError> {
        Ok(Errors { slot: s.simple("/node/errors", rows)?, owners: Owners::default() })
    }

    /// Enters counters that came, and renames those that went to other nodes.
    pub(super) fn describe(
        &mut self,
        c: &Control,
        segment: &mut Segment,
    ) -> Result<(), SegmentError> {
        if self.owners.are_current(c) {
            return Ok(());
        }
        let named = named(c);
        let owner = |(i, (node, error)): (usize, &(NodeId, &'static thalweg_graph::ErrorDecl))| {
            let place = usize::from(node.0);
            let node = &c.nodes()[place];
            // Counters that wait for another node have the id of their last one.
            let own = node.error_base as usize..node.error_base as usize + node.errors.len();
            (named[place] && own.contains(&i)).then_some((&node.name, error.text))
        };
        let now: Vec<_> = c.errors().iter().enumerate().map(owner).collect();
        let slot = self.slot;
        if now.len() > self.owners.all.len() {
            segment.change(|s| s.widen(slot, now.len()))?;
        }
        self.owners.update(c, segment, &now, |s, i, node, links| {
            let text = now[i].map_or("", |(_, text)| text);
            let link = format!("/err/{node}/{}", text.replace('/', "_"));
            link_once(s, &link, slot, i, links)?;
            let is_it = |(of, reason, _): &&(&str, &str, &str)| (*of, *reason) == (node, text);
            match OTHER_NAMES.iter().find(is_it) {
                Some((_, _, other)) => link_once(s, other, slot, i, links),
                None => Ok(()),
            }
        })
    }

    pub(super) fn count(&self, c: &Control, segment: &Segment) {
        for worker in 0..c.workers() {
            for error in 0..self.owners.all.len() {
                let count = c.error_count(worker, error as u32);
                segment.count(self.slot, worker + 1, error, [count]);
            }
        }
    }
}

/// Counters of nodes, by id.
pub(super) struct Nodes {
    names: Slot,
    counts: [Slot; 4],
    owners: Owners,
    /// Nodes that have links.
    linked: usize,
    period: Duration,
    due: Instant,
}

impl Nodes {
    pub(super) fn new(
        s: &mut Change<'_>,
        rows: usize,
        (linked, period): (usize, Duration),
    ) -> Result<Nodes, SegmentError> {
        let names = s.names("/sys/node/names")?;
        let counts = slots(NODE, |name| s.simple(&format!("/sys/node/{name}"), rows))?;
        let owners = Owners::default();
        Ok(Nodes { names, counts, owners, linked, period, due: Instant::now() })
    }

    /// Enters nodes that came, and renames those whose id another has.
    pub(super) fn describe(
        &mut self,
        c: &Control,
        segment: &mut Segment,
    ) -> Result<(), SegmentError> {
        if self.owners.are_current(c) {
            return Ok(());
        }
        let named = named(c);
        let nodes = c.nodes().iter().zip(named);
        let now: Vec<_> = nodes.map(|(node, named)| named.then_some((&node.name, ""))).collect();
        let (names, counts, linked) = (self.names, self.counts, self.linked);
        self.owners.update(c, segment, &now, |s, i, node, links| {
            s.name(names, i, now[i].map(|(name, _)| &**name))?;
            for (slot, counter) in counts.iter().zip(NODE) {
                s.widen(*slot, i + 1)?;
                if i < linked {
                    link_once(s, &format!("/nodes/{node}/{counter}"), *slot, i, links)?;
                }
            }
            Ok(())
        })
    }

    /// Copies the counters once a period.
    pub(super) fn count_if_due(&mut self, c: &Control, segment: &Segment, now: Instant) {
        if self.due > now {
            return;
        }
        self.due = now + self.period;
        for worker in 0..c.workers() {
            for node in 0..self.owners.all.len() {
                let counts = c.node_counts(worker, NodeId(node as u16));
                for (slot, count) in self.counts.iter().zip(counts) {
                    segment.count(*slot, worker + 1, node, [count]);
                }
            }
        }
    }
}

/// Adds a link, unless its name is too long, or there is one.
fn link_once(
    s: &mut Change<'_>,
    name: &str,
    to: Slot,
    column: usize,
    links: &mut Vec<Slot>,
) -> Result<(), SegmentError> {
    match s.link(name, to, column as u32) {
        Ok(link) => links.push(link),
        Err(error @ (SegmentError::Full(_) | SegmentError::Memory { .. })) => return Err(error),
        Err(SegmentError::Exists(_) | SegmentError::Name(_)) => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_device::testing::Lab;

    /// Nodes with a device come and go: each name leads to the counters of its own node.
    #[test]
    fn names_follow_ids_that_other_nodes_get() {
        let mut lab = Lab::of_all(crate::features::FEATURES).start();
        let mut segment = Segment::new(32 << 20).unwrap();
        let (mut errors, mut nodes) = segment
            .change(|s| {
                let each = (usize::MAX, Duration::ZERO);
                Ok::<_, SegmentError>((Errors::new(s, 2)?, Nodes::new(s, 2, each)?))
            })
            .unwrap();
        let mut most = 0;
        for n in 0..200 {
            let made = lab.cli(&format!("create packet-generator interface pg{n}"));
            assert_eq!(made.trim(), format!("pg{n}"));
            errors.describe(&lab.c, &mut segment).unwrap();
            nodes.describe(&lab.c, &mut segment).unwrap();
            for name in [format!("pg{n}-output"), format!("pg{n}-tx")] {
                let id = lab.c.node(&name).unwrap();
                assert_eq!(&*nodes.owners.all[usize::from(id.0)].as_ref().unwrap().node, name);
                for counter in NODE {
                    assert!(segment.find(&format!("/nodes/{name}/{counter}")).is_some(), "{name}");
                }
                let entry = &lab.c.nodes()[usize::from(id.0)];
                for error in entry.errors {
                    let link = format!("/err/{name}/{}", error.text.replace('/', "_"));
                    assert!(segment.find(&link).is_some(), "{link}");
                }
            }
            lab.ok(&format!("delete packet-generator interface pg{n}"));
            most = most.max(lab.c.nodes().len());
        }
        // Ids were used again, and the names of those before are gone.
        assert!(most < 300, "{most}");
        assert_eq!(segment.find("/nodes/pg0-output/calls"), None);
        assert_eq!(segment.find("/err/pg0-output/interface is down"), None);
        assert_eq!(lab.c.shut_down().in_use, 0);
    }
}
