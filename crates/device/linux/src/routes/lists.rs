//! Lists of next hops, which many routes share.

use super::table::Route;
use super::types::{Hops, NextHop};
use std::collections::HashMap;

/// Lists of next hops, each once.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// The list that was asked for last: routes of one next hop come one after the other.
    last: u32,
    pub(super) all: Vec<Option<(Hops, u32)>>,
    pub(super) free: Vec<u32>,
    pub(super) by_hops: HashMap<Hops, u32>,
}

impl Lists {
    /// Returns the number of a list of next hops, with a reference, as [`hold`](Lists::hold) does;
    /// it takes neither memory nor a hash while that is the list of the last time.
    pub(super) fn hold_these(&mut self, hops: &[NextHop]) -> u32 {
        if let Some(Some((Hops::These(known), uses))) = self.all.get_mut(self.last as usize)
            && known[..] == *hops
        {
            *uses += 1;
            return self.last;
        }
        self.last = self.hold(Hops::These(hops.into()));
        self.last
    }

    /// Returns the number of a list, with a reference.
    pub(super) fn hold(&mut self, hops: Hops) -> u32 {
        if let Some(&id) = self.by_hops.get(&hops) {
            self.retain(id);
            return id;
        }
        let id = self.free.pop().unwrap_or(self.all.len() as u32);
        if id as usize == self.all.len() {
            self.all.push(None);
        }
        self.all[id as usize] = Some((hops.clone(), 1));
        self.by_hops.insert(hops, id);
        id
    }

    pub(super) fn retain(&mut self, id: u32) {
        if let Some((_, uses)) = &mut self.all[id as usize] {
            *uses += 1;
        }
    }

    pub(super) fn release(&mut self, id: u32) {
        let Some((hops, uses)) = &mut self.all[id as usize] else { return };
        *uses -= 1;
        if *uses == 0 {
            self.by_hops.remove(hops);
            self.all[id as usize] = None;
            self.free.push(id);
        }
    }

    pub(super) fn get(&self, id: u32) -> Option<&Hops> {
        self.all.get(id as usize)?.as_ref().map(|(hops, _)| hops)
    }
}

/// Returns whether a route of IPv6 takes the place of another of its metric: those without a
/// gateway are one for each link.
pub(super) fn is_sibling(lists: &Lists, old: u32, new: u32) -> bool {
    let link = |id| match lists.get(id) {
        Some(Hops::These(hops)) => match &hops[..] {
            [NextHop { gateway: None, link, .. }] => Some(*link),
            _ => None,
        },
        _ => None,
    };
    link(old) == link(new)
}

fn these<'l>(lists: &'l Lists, route: &Route) -> &'l [NextHop] {
    match lists.get(route.hops) {
        Some(Hops::These(hops)) => hops,
        _ => &[],
    }
}

fn is_same_hop(a: &NextHop, b: &NextHop) -> bool {
    // Hops to the same router may have other labels.
    (a.link, a.gateway, &a.labels, a.ttl) == (b.link, b.gateway, &b.labels, b.ttl)
}

pub(super) fn has_all(lists: &Lists, route: &Route, some: &Route) -> bool {
    let some = these(lists, some);
    let has = |hop| these(lists, route).iter().any(|own| is_same_hop(own, hop));
    !some.is_empty() && some.iter().all(has)
}

pub(super) fn without(lists: &Lists, route: &Route, some: &Route) -> Vec<NextHop> {
    let some = these(lists, some);
    let stays = |own: &&NextHop| !some.iter().any(|hop| is_same_hop(own, hop));
    these(lists, route).iter().filter(stays).cloned().collect()
}
