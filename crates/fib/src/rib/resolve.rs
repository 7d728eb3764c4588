//! Targets of paths, now and after a change.

use super::lists::member;
use super::path::{Before, Labels, Mode, Path, PathKind, Source};
use super::{Cast, ListId, RibError, RouteView, Table};
use crate::forwarding::{DROP, LOCAL, OWN, PROHIBIT, UNREACHABLE, UNRESOLVED};
use crate::{
    AdjacencyKey, Dpo, FibError, Forwarding, Imposed, Kind, LinkType, MAX_DEPTH, Member, Midchain,
    Peer, ViaLabel,
};
use std::collections::BTreeSet;
use std::net::IpAddr;
use thalweg_device::{SwIfIndex, interface};
use thalweg_graph::Control;
use thalweg_tables::{Address, Lpm, Prefix};
use thalweg_wire::mpls::{Label, label};

/// Returns the adjacency that puts labels before packets of type `carried`, unless the labels name
/// another. In uniform mode this is a midchain, whose node sets the fields that labels take from
/// the packet.
fn imposing(
    c: &Control,
    f: &mut Forwarding,
    (sw_if, peer): (SwIfIndex, Peer),
    carried: LinkType,
    labels: Labels,
) -> Result<Dpo, RibError> {
    let carried = labels.carried().unwrap_or(carried);
    let (bottom, swap) = match labels.before() {
        Before::Packet => (true, None),
        Before::Popped => (true, Some(label::IMPLICIT_NULL)),
        Before::Labels => (false, None),
        Before::Swapped(label) => (false, Some(label)),
    };
    let is_plain = bottom && labels.as_slice().is_empty();
    let link = if is_plain { carried } else { LinkType::Mpls };
    let (mode, all) = (labels.mode(), labels.as_slice());
    // A label to swap has its place behind an adjacency's header.
    let node = f.imposer().filter(|_| mode == Mode::Uniform && swap.is_none() && !all.is_empty());
    let labels = labels.put_before(Before::Packet).in_mode(Mode::Pipe).carrying(None);
    let imposed = Imposed { labels, bottom: bottom && !is_plain, swap };
    let Some(node) = node else {
        return Ok(f.imposing(c, AdjacencyKey { sw_if, link, peer, imposed })?);
    };
    let plain = AdjacencyKey { sw_if, link: LinkType::Mpls, peer, imposed: Imposed::NONE };
    let (stacked, header) = (f.imposing(c, plain)?, imposed.bytes());
    let link = if bottom { carried } else { LinkType::Mpls };
    Ok(f.midchain(c, &Midchain { sw_if, link, header: &header, node, stacked })?)
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

impl<A: Address, L: Lpm<A>> Table<A, L> {
    /// Returns what a path leads to, with a reference.
    pub(super) fn resolve(&self, c: &Control, cast: Cast, p: &Path) -> Result<Dpo, RibError> {
        let state = c.state::<Forwarding>();
        if let (PathKind::Normal, Some(label)) = (p.kind, p.via_label) {
            return self.resolve_label(c, label, p.labels.sent());
        }
        match (p.kind, p.next_hop, p.sw_if) {
            (PathKind::Local, _, None) => Ok(LOCAL),
            (PathKind::Local, _, Some(_)) => Ok(OWN),
            (PathKind::Drop, ..)
            | (PathKind::Normal, None, None)
            | (PathKind::InterfaceRx, _, None) => Ok(DROP),
            (PathKind::Unreachable, ..) => Ok(UNREACHABLE),
            (PathKind::Prohibit, ..) => Ok(PROHIBIT),
            (PathKind::Lookup(table), ..) => {
                Ok(state.borrow_mut().plain(c, Kind::LOOKUP, table.get())?)
            }
            (PathKind::InterfaceRx, _, Some(sw_if)) => {
                interface::view(c, sw_if)?;
                Ok(state.borrow_mut().plain(c, Kind::INTERFACE_RX, sw_if.get())?)
            }
            (PathKind::Group(number), ..) => {
                let mut f = state.borrow_mut();
                let dpo = f.numbered(number).ok_or(RibError::NoGroup(number))?;
                f.retain(dpo);
                Ok(dpo)
            }
            (PathKind::Normal, next_hop, Some(sw_if)) => {
                interface::view(c, sw_if)?;
                let mut f = state.borrow_mut();
                let labels = p.labels.sent();
                if labels != Labels::NONE {
                    let peer = next_hop.map_or(Peer::PointToPoint, Peer::Neighbor);
                    return imposing(c, &mut f, (sw_if, peer), self.link, labels);
                }
                match next_hop {
                    Some(nh) => Ok(f.adjacency(c, sw_if, self.link, Peer::Neighbor(nh))?),
                    None if cast == Cast::Multicast => {
                        Ok(f.adjacency(c, sw_if, self.link, Peer::Multicast)?)
                    }
                    None => Ok(f.glean(c, sw_if, self.link)?),
                }
            }
            (PathKind::Normal, Some(nh), None) if p.table.is_some() => {
                let table = p.table.unwrap_or(self.id);
                let (link, labels) = p.tracked_as(self.link);
                let mut f = state.borrow_mut();
                let dpo = f.tracked.get(&(link, table, nh, labels)).copied();
                let dpo = dpo.ok_or(RibError::NotTracked(nh, table.get()))?;
                f.retain(dpo);
                Ok(dpo)
            }
            (PathKind::Normal, Some(nh), None) if is_link_local(nh) && A::BITS == 128 => {
                Err(RibError::LinkLocal(nh))
            }
            (PathKind::Normal, Some(nh), None) => {
                let own = A::from_ip(nh).ok_or(RibError::Family(nh))?;
                match p.labels.sent() {
                    Labels::NONE => self.resolve_next_hop(c, own),
                    labels => self.resolve_labelled(c, own, labels, MAX_DEPTH),
                }
            }
        }
    }

    /// Returns what leads where a label does, with these labels before packets.
    fn resolve_label(&self, c: &Control, label: Label, labels: Labels) -> Result<Dpo, RibError> {
        let f = c.state::<Forwarding>();
        let key = ViaLabel { label, link: self.link, labels };
        Ok(f.borrow_mut().via_label(c, key)?)
    }

    /// Resolves a next hop without an interface through its covering route, whose object it
    /// follows.
    fn resolve_next_hop(&self, c: &Control, nh: A) -> Result<Dpo, RibError> {
        let (ip, state) = (nh.to_ip(), c.state::<Forwarding>());
        let neighbor = |sw_if| {
            let mut f = state.borrow_mut();
            f.adjacency(c, sw_if, self.link, Peer::Neighbor(ip)).map_err(RibError::from)
        };
        let mut at = self.routes.covering(nh, A::BITS);
        while let Some(prefix) = at {
            at = prefix.len().checked_sub(1).and_then(|len| self.routes.covering(nh, len));
            let Some((source, list)) = self.best(prefix) else { continue };
            match source {
                // A neighbour's host route does not count: its covering route does.
                Source::Adjacency => {}
                Source::Default => break,
                Source::Interface => match list.paths.first() {
                    Some(Path { kind: PathKind::Normal, sw_if: Some(i), .. }) => {
                        return neighbor(*i);
                    }
                    Some(Path { kind: PathKind::Local, .. }) => return Err(RibError::Own(ip)),
                    _ => break,
                },
                Source::KernelStatic
                | Source::KernelDynamic
                | Source::Static
                | Source::ProxyNd
                | Source::Nd => {
                    let paths = &list.paths;
                    if paths.iter().any(|p| p.next_hop == Some(ip))
                        && paths.iter().all(|p| p.sw_if.is_none())
                    {
                        return Err(RibError::Loop(ip));
                    }
                    let leads = |p: &Path| matches!(p.kind, PathKind::Normal | PathKind::Group(_));
                    if !paths.iter().all(leads) {
                        break;
                    }
                    // A connected prefix: the next hop lies on that interface.
                    if let [Path { kind: PathKind::Normal, next_hop: None, sw_if: Some(i), .. }] =
                        paths[..]
                    {
                        return neighbor(i);
                    }
                    let mut f = state.borrow_mut();
                    f.retain(list.dpo);
                    return Ok(list.dpo);
                }
            }
        }
        Err(RibError::Unreachable(ip))
    }

    /// Returns what labels for a next hop without an interface lead to: the labels of the route
    /// that covers it come before them. The object is the caller's only; another one is made when
    /// that route changes.
    fn resolve_labelled(
        &self,
        c: &Control,
        nh: A,
        labels: Labels,
        depth: u32,
    ) -> Result<Dpo, RibError> {
        let (ip, state) = (nh.to_ip(), c.state::<Forwarding>());
        let neighbor = |sw_if| {
            let to = (sw_if, Peer::Neighbor(ip));
            imposing(c, &mut state.borrow_mut(), to, self.link, labels)
        };
        let mut at = self.routes.covering(nh, A::BITS);
        while let Some(prefix) = at {
            at = prefix.len().checked_sub(1).and_then(|len| self.routes.covering(nh, len));
            let Some((source, list)) = self.best(prefix) else { continue };
            match source {
                Source::Adjacency => {}
                Source::Default => break,
                Source::Interface => match list.paths.first() {
                    Some(Path { kind: PathKind::Normal, sw_if: Some(i), .. }) => {
                        return neighbor(*i);
                    }
                    Some(Path { kind: PathKind::Local, .. }) => return Err(RibError::Own(ip)),
                    _ => break,
                },
                Source::KernelStatic
                | Source::KernelDynamic
                | Source::Static
                | Source::ProxyNd
                | Source::Nd => {
                    let mut members = Vec::new();
                    for path in &list.paths {
                        match self.labelled_member(c, path, (nh, labels), depth) {
                            Ok(dpo) => members.push(member(path, dpo)),
                            Err(e) if e.may_pass() => {}
                            Err(e) => {
                                state.borrow_mut().release_all(c, &members);
                                return Err(e);
                            }
                        }
                    }
                    return match members[..] {
                        [] => Err(RibError::Unreachable(ip)),
                        [only] => Ok(only.dpo),
                        _ => Ok(state.borrow_mut().group(c, members)?),
                    };
                }
            }
        }
        Err(RibError::Unreachable(ip))
    }

    /// The object for labels of a next hop, by one path of the route that covers it.
    fn labelled_member(
        &self,
        c: &Control,
        path: &Path,
        (nh, labels): (A, Labels),
        depth: u32,
    ) -> Result<Dpo, RibError> {
        let ip = nh.to_ip();
        let stack = labels.under(&path.labels.sent()).ok_or(RibError::Labels)?;
        if let (PathKind::Normal, Some(label)) = (path.kind, path.via_label) {
            return self.resolve_label(c, label, stack);
        }
        let f = c.state::<Forwarding>();
        match (path.kind, path.next_hop, path.sw_if) {
            (PathKind::Normal, hop, Some(i)) => {
                interface::view(c, i)?;
                let peer = Peer::Neighbor(hop.unwrap_or(ip));
                imposing(c, &mut f.borrow_mut(), (i, peer), self.link, stack)
            }
            (PathKind::Normal, Some(hop), None) if path.table.is_none() => {
                if hop == ip {
                    return Err(RibError::Loop(ip));
                }
                let depth = depth.checked_sub(1).ok_or(FibError::Depth)?;
                let own = A::from_ip(hop).ok_or(RibError::Family(hop))?;
                self.resolve_labelled(c, own, stack, depth)
            }
            _ => Err(RibError::Unreachable(ip)),
        }
    }

    /// Re-resolves lists with next hops that `changed` covers, after it was added or deleted.
    pub(super) fn re_resolve(&mut self, c: &Control, changed: Prefix<A>) {
        let covered = self.recursive.range((changed.addr(), 0)..=(changed.last(), ListId::MAX));
        let covered: BTreeSet<ListId> = covered.map(|(_, id)| *id).collect();
        if !covered.is_empty() {
            self.resolve_again(c, covered);
        }
    }

    /// Re-resolves these lists and those that depend on their routes.
    pub(super) fn resolve_again(&mut self, c: &Control, lists: BTreeSet<ListId>) {
        let mut left: Vec<ListId> = self.stale(lists).into_iter().collect();
        // A list may lead to itself by what another one was before: it waits for that.
        loop {
            let before = left.len();
            left.retain(|id| !self.resolve_list(c, *id, false));
            if left.is_empty() {
                return;
            }
            if left.len() == before {
                break;
            }
        }
        // Lists that wait for each other begin from nothing; a list that leads to itself then is a
        // loop.
        let f = c.state::<Forwarding>();
        for list in left.iter().filter_map(|id| self.list(*id)) {
            // One that leads nowhere is no loop.
            let _ = f.borrow_mut().set_group(c, list.dpo, vec![Member::of(UNRESOLVED)]);
        }
        for id in left {
            self.resolve_list(c, id, true);
        }
    }

    /// Gives a list's group the members that its paths lead to now. Paths that lead nowhere are
    /// left out; without any other, the list is unreachable until its next hops recover. Returns
    /// false, with nothing changed, if a path leads back to the list or has too many levels, or
    /// leaves that out, too (`anyway`).
    fn resolve_list(&self, c: &Control, id: ListId, anyway: bool) -> bool {
        let Some(list) = self.list(id).filter(|l| l.own && !l.paths.is_empty()) else {
            return true;
        };
        let state = c.state::<Forwarding>();
        let mut members = Vec::new();
        for path in &list.paths {
            if let Ok(dpo) = self.resolve(c, list.cast, path) {
                members.push(member(path, dpo));
            }
        }
        let mut f = state.borrow_mut();
        let (back, mut members): (Vec<Member>, Vec<Member>) =
            members.into_iter().partition(|m| f.conflict(list.dpo, m.dpo).is_some());
        f.release_all(c, &back);
        if !back.is_empty() && !anyway {
            f.release_all(c, &members);
            return false;
        }
        if members.is_empty() {
            members.push(Member::of(UNRESOLVED));
        }
        // The group has the size that it was made with, and no member leads back.
        let _ = f.set_group(c, list.dpo, members);
        true
    }

    /// Returns these lists and those that depend on their routes.
    fn stale(&self, mut stale: BTreeSet<ListId>) -> BTreeSet<ListId> {
        let mut grown = !stale.is_empty();
        while grown {
            let through = |nh: A| {
                let mut at = self.routes.covering(nh, A::BITS);
                while let Some(prefix) = at {
                    if self.routes.best(prefix).is_some_and(|e| stale.contains(&e.1)) {
                        return true;
                    }
                    at = prefix.len().checked_sub(1).and_then(|len| self.routes.covering(nh, len));
                }
                false
            };
            let others = self.recursive.iter().filter(|(_, id)| !stale.contains(id));
            let more: Vec<ListId> = others.filter(|e| through(e.0)).map(|e| e.1).collect();
            grown = !more.is_empty();
            stale.extend(more);
        }
        stale
    }

    /// Returns for each path of a route why it leads nowhere now, if it does not.
    #[must_use]
    pub fn unresolved(&self, c: &Control, view: &RouteView<A>) -> Vec<Option<RibError>> {
        view.paths.iter().map(|path| self.why_unresolved(c, path, view.dpo)).collect()
    }

    fn why_unresolved(&self, c: &Control, path: &Path, list: Dpo) -> Option<RibError> {
        if let (PathKind::Normal, Some(label)) = (path.kind, path.via_label) {
            return self.why_label_unresolved(c, path, label);
        }
        let next_hop = path.next_hop.filter(|_| path.kind == PathKind::Normal)?;
        if path.sw_if.is_some() {
            return None;
        }
        let dpo = match self.resolve(c, Cast::Unicast, path) {
            Ok(dpo) => dpo,
            Err(e) => return Some(e),
        };
        let f = c.state::<Forwarding>();
        let mut f = f.borrow_mut();
        let end = f.table().resolve(dpo, || 0);
        let nowhere = end == UNREACHABLE || end == UNRESOLVED;
        // A group that follows a route of another table is not this list's own.
        let is_own = path.table.is_none() && f.is_group(list);
        let conflict = if is_own { f.conflict(list, dpo) } else { None };
        f.release(c, dpo);
        match conflict {
            Some(FibError::Loop) => Some(RibError::Loop(next_hop)),
            Some(e) => Some(e.into()),
            None => nowhere.then(|| match path.table {
                Some(table) => RibError::NowhereIn(next_hop, table.get()),
                None => RibError::Nowhere(next_hop),
            }),
        }
    }

    fn why_label_unresolved(&self, c: &Control, path: &Path, label: Label) -> Option<RibError> {
        let dpo = match self.resolve(c, Cast::Unicast, path) {
            Ok(dpo) => dpo,
            Err(e) => return Some(e),
        };
        let f = c.state::<Forwarding>();
        let mut f = f.borrow_mut();
        let end = f.table().resolve(dpo, || 0);
        f.release(c, dpo);
        (end == UNREACHABLE || end == UNRESOLVED).then_some(RibError::Label(label))
    }
}
