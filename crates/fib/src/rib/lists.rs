//! Path lists: interned, counted by their users, each with its forwarding object.

use super::path::{Labels, Path, PathKind};
use super::{Cast, ListId, PathList, RibError, Table};
use crate::dpo::MAX_BUCKETS;
use crate::forwarding::UNRESOLVED;
use crate::{Dpo, FibError, Forwarding, Member};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;
use thalweg_tables::{Address, Lpm};

/// Returns whether the target of a path is fixed: a special path, an adjacency, which changes in
/// place, or what another table or a label follows.
fn is_fixed(path: &Path) -> bool {
    path.kind != PathKind::Normal
        || path.sw_if.is_some()
        || path.next_hop.is_none()
        || path.table.is_some()
}

/// Next hops of paths that are resolved recursively.
pub(super) fn recursive<A: Address>(paths: &[Path]) -> impl Iterator<Item = A> {
    paths.iter().filter(|p| !is_fixed(p)).filter_map(|p| p.next_hop).filter_map(A::from_ip)
}

pub(super) fn member(path: &Path, dpo: Dpo) -> Member {
    Member { dpo, weight: u32::from(path.weight.max(1)), preference: path.preference }
}

impl<A: Address, L: Lpm<A>> Table<A, L> {
    /// Interns a path list and adds a reference to it. Labels, tunnels and whatever else has paths
    /// but no prefix use this as well: the object is the list's as long as it is held, and follows
    /// the routes of its next hops.
    ///
    /// # Errors
    /// If a path cannot be resolved.
    pub fn intern(&mut self, c: &Control, paths: Vec<Path>) -> Result<(ListId, Dpo), RibError> {
        self.intern_as(c, Cast::Unicast, paths)
    }

    /// Like [`intern`](Self::intern), for the paths of a route.
    pub(super) fn intern_as(
        &mut self,
        c: &Control,
        cast: Cast,
        mut paths: Vec<Path>,
    ) -> Result<(ListId, Dpo), RibError> {
        for path in &mut paths {
            *path = path.in_table::<A>(self.id);
        }
        paths.sort_unstable();
        if let Some(Some(l)) = self.lists.get_mut(self.last as usize)
            && !paths.is_empty()
            && l.cast == cast
            && l.paths == paths
        {
            l.uses += 1;
            return Ok((self.last, l.dpo));
        }
        let key = (cast, paths);
        if let Some(&id) = self.by_paths.get(&key)
            && let Some(Some(l)) = self.lists.get_mut(id as usize)
        {
            l.uses += 1;
            self.last = id;
            return Ok((id, l.dpo));
        }
        let (dpo, own) = self.object(c, cast, &key.1)?;
        let paths = key.1.clone();
        let list = PathList { cast, paths, dpo, own, uses: 1, configured: 0 };
        let id = match self.free.pop() {
            Some(id) => {
                self.lists[id as usize] = Some(list);
                id
            }
            None => {
                self.lists.push(Some(list));
                self.lists.len() as ListId - 1
            }
        };
        self.remember_paths(c, &key.1, id);
        self.by_paths.insert(key, id);
        self.last = id;
        Ok((id, dpo))
    }

    /// Releases a reference to a path list.
    pub fn release(&mut self, c: &Control, id: ListId) {
        let Some(Some(l)) = self.lists.get_mut(id as usize) else { return };
        l.uses -= 1;
        if l.uses == 0
            && let Some(l) = self.lists[id as usize].take()
        {
            self.forget_paths(c, l.cast, &l.paths, id);
            self.free.push(id);
            c.state::<Forwarding>().borrow_mut().release(c, l.dpo);
        }
    }

    /// Returns the object that follows the route of an address and puts labels before packets, with
    /// a reference: for tunnels, and for routes of other tables with next hops in this one. The
    /// object follows the route while anyone has a reference, even if no route leads there.
    ///
    /// # Errors
    /// If the object cannot be created.
    pub fn track(&mut self, c: &Control, address: A, labels: Labels) -> Result<Dpo, RibError> {
        let ip = address.to_ip();
        let (id, dpo) = self.intern(c, vec![Path { labels, ..Path::via(ip, None) }])?;
        if self.tracked.insert(id, (address, labels)).is_some() {
            self.release(c, id);
        }
        let f = c.state::<Forwarding>();
        let mut f = f.borrow_mut();
        f.tracked.insert((self.link, self.id, ip, labels), dpo);
        f.retain(dpo);
        Ok(dpo)
    }

    /// Stops following routes for those that have released what they followed; returns whether
    /// there are others.
    pub fn release_tracked(&mut self, c: &Control) -> bool {
        let f = c.state::<Forwarding>();
        let used = |id| self.list(id).is_some_and(|list| f.borrow().refs(list.dpo) > 1);
        let unused: Vec<(ListId, (A, Labels))> =
            self.tracked.iter().map(|(id, a)| (*id, *a)).filter(|(id, _)| !used(*id)).collect();
        for (id, (address, labels)) in unused {
            self.tracked.remove(&id);
            f.borrow_mut().tracked.remove(&(self.link, self.id, address.to_ip(), labels));
            self.release(c, id);
        }
        !self.tracked.is_empty()
    }

    /// Enters a list into the indices of recursive next hops and of interfaces.
    pub(super) fn remember_paths(&mut self, c: &Control, paths: &[Path], id: ListId) {
        self.recursive.extend(recursive(paths).map(|nh| (nh, id)));
        for sw_if in paths.iter().filter_map(|p| p.sw_if) {
            if self.lists_over(sw_if).next().is_none() {
                let f = c.state::<Forwarding>();
                f.borrow_mut().tables_over.insert((sw_if, self.link, self.id));
            }
            self.by_interface.insert((sw_if, id));
        }
    }

    /// Path lists with paths over an interface.
    pub(super) fn lists_over(&self, sw_if: SwIfIndex) -> impl Iterator<Item = ListId> + '_ {
        let all = self.by_interface.range((sw_if, 0)..=(sw_if, ListId::MAX));
        all.map(|(_, id)| *id)
    }

    /// Removes a list from the indices.
    pub(super) fn forget_paths(&mut self, c: &Control, cast: Cast, paths: &[Path], id: ListId) {
        let key = (cast, paths.to_vec());
        if self.by_paths.get(&key) == Some(&id) {
            self.by_paths.remove(&key);
        }
        for nh in recursive(paths) {
            self.recursive.remove(&(nh, id));
        }
        for sw_if in paths.iter().filter_map(|p| p.sw_if) {
            self.by_interface.remove(&(sw_if, id));
            if self.lists_over(sw_if).next().is_none() {
                let f = c.state::<Forwarding>();
                f.borrow_mut().tables_over.remove(&(sw_if, self.link, self.id));
            }
        }
    }

    /// Creates the forwarding object of a path list: the target of its only path, if that is fixed,
    /// else a group of its own (true).
    fn object(&self, c: &Control, cast: Cast, paths: &[Path]) -> Result<(Dpo, bool), RibError> {
        if paths.len() > MAX_BUCKETS {
            return Err(FibError::Members(paths.len()).into());
        }
        let mut members = Vec::new();
        let f = c.state::<Forwarding>();
        for path in paths {
            match self.resolve(c, cast, path) {
                Ok(dpo) => members.push(member(path, dpo)),
                // Leaves the path out until it leads somewhere.
                Err(e) if e.may_pass() => {}
                Err(e) => {
                    f.borrow_mut().release_all(c, &members);
                    return Err(e);
                }
            }
        }
        if let ([path], [member]) = (paths, &members[..])
            && is_fixed(path)
        {
            return Ok((member.dpo, false));
        }
        let mut f = f.borrow_mut();
        let (deep, mut members): (Vec<Member>, Vec<Member>) =
            members.into_iter().partition(|m| f.is_deepest(m.dpo));
        f.release_all(c, &deep);
        if members.is_empty() && !paths.is_empty() {
            members.push(Member::of(UNRESOLVED));
        }
        Ok((f.group(c, members)?, true))
    }
}
