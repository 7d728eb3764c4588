//! Reports of mirrors, which are taken in slices: a burst of changes may be about very many links
//! and neighbours.

use super::{Sync, neighbours, phy_at, seen, virtuals, vlans};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use thalweg_device_linux::NamespaceId;
use thalweg_device_linux::mirror::{Report, Seen};
use thalweg_graph::Control;
use thalweg_netlink::{Link, Neighbour};

/// Most time on the main thread per slice.
const SLICE: Duration = Duration::from_millis(1);

/// A report of a namespace, as far as it has not been taken.
#[derive(Debug, Default)]
pub(super) struct Rest {
    report: Report,
    /// Another one waits.
    has_more: bool,
}

/// Part of a report.
enum Part {
    Link(u32, Box<Seen>),
    Above(u32, Option<Box<Link>>),
    /// All neighbours that a link has.
    AllNeighbours(u32, BTreeSet<IpAddr>),
    Neighbour(u32, IpAddr, Option<Neighbour>),
}

impl Rest {
    fn pop(&mut self) -> Option<Part> {
        let Report { links, above, neighbours, all_neighbours } = &mut self.report;
        if let Some((index, now)) = links.pop_first() {
            return Some(Part::Link(index, Box::new(now)));
        }
        if let Some((index, link)) = above.pop_first() {
            return Some(Part::Above(index, link.map(Box::new)));
        }
        if let Some((index, there)) = all_neighbours.pop_first() {
            return Some(Part::AllNeighbours(index, there));
        }
        let ((index, ip), neighbour) = neighbours.pop_first()?;
        Some(Part::Neighbour(index, ip, neighbour))
    }

    /// Leaves out a neighbour, about which the router knows better.
    pub(super) fn forget_neighbour(&mut self, index: u32, ip: IpAddr) {
        self.report.neighbours.remove(&(index, ip));
    }

    /// Leaves out a link that is not followed any more: another one may get its number.
    pub(super) fn forget(&mut self, index: u32) {
        let Report { links, above, neighbours, all_neighbours } = &mut self.report;
        links.remove(&index);
        above.remove(&index);
        all_neighbours.remove(&index);
        neighbours.retain(|(of, _), _| *of != index);
    }
}

/// Takes what a mirror has seen, for about a millisecond, and goes on later.
pub(super) fn take(c: &mut Control, id: NamespaceId) {
    {
        let sync = c.state::<Sync>();
        let mut sync = sync.borrow_mut();
        let Sync { mirrors, reports, .. } = &mut *sync;
        if let Some(rest) = reports.get_mut(&id) {
            rest.has_more = true;
            return;
        }
        let Some((_, mirror)) = mirrors.get(&id) else { return };
        reports.insert(id, Rest { report: mirror.take(), has_more: false });
    }
    go_on(c, id);
}

fn go_on(c: &mut Control, id: NamespaceId) {
    let begin = Instant::now();
    while let Some(part) = next(c, id) {
        apply(c, id, part);
        if begin.elapsed() >= SLICE {
            c.after(Duration::ZERO, move |c| go_on(c, id));
            return;
        }
    }
}

/// Returns the next part, of the next report if one has ended.
fn next(c: &Control, id: NamespaceId) -> Option<Part> {
    let sync = c.state::<Sync>();
    let mut sync = sync.borrow_mut();
    let Sync { mirrors, reports, .. } = &mut *sync;
    let rest = reports.get_mut(&id)?;
    loop {
        if let Some(part) = rest.pop() {
            return Some(part);
        }
        let mirror = mirrors.get(&id).filter(|_| std::mem::take(&mut rest.has_more));
        let Some((_, mirror)) = mirror else { break };
        rest.report = mirror.take();
    }
    reports.remove(&id);
    None
}

fn apply(c: &mut Control, id: NamespaceId, part: Part) {
    match part {
        Part::Link(index, now) => match phy_at(c, id, index) {
            Some(phy) => seen::take(c, phy, *now),
            None => virtuals::take(c, (id, index), &now),
        },
        Part::Above(index, link) => {
            virtuals::find(c, (id, index), link.as_deref());
            vlans::take(c, id, index, link.map(|link| *link));
        }
        Part::AllNeighbours(index, there) => {
            if let Some(phy) = phy_at(c, id, index) {
                neighbours::keep_only(c, phy, &there);
            }
        }
        Part::Neighbour(index, ip, neighbour) => {
            if let Some(phy) = phy_at(c, id, index) {
                neighbours::take(c, phy, ip, neighbour);
            }
        }
    }
}
