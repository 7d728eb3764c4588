//! Groups: objects with members, by flow. A path list of a route table is one, and so is a next-hop
//! group that has been given a number.
//!
//! Routes name the group, whatever its members are: a change of members is one word stored in its
//! entry, and no route changes. Members may be groups; they are flattened when they are resolved,
//! so that a packet chooses once. A group whose member changes is flattened again.

use crate::FibError;
use crate::dpo::{Dpo, EntryState, MAX_BUCKETS};
use crate::forwarding::{DROP, UNREACHABLE, UNRESOLVED};
use crate::forwarding::{Forwarding, Object, Slot};
use crate::kind::Kind;
use std::collections::{BTreeMap, BTreeSet};
use thalweg_graph::Control;

/// A member of a group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Member {
    /// Only the usable members of the lowest preference take part.
    pub preference: u8,
    /// The object that packets meet.
    pub dpo: Dpo,
    /// Share of the packets among those that take part.
    pub weight: u32,
}

impl Member {
    /// A member like any other.
    #[must_use]
    pub fn of(dpo: Dpo) -> Member {
        Member { preference: 0, dpo, weight: 1 }
    }
}

/// Members, and the buckets among which packets choose.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) members: Vec<Member>,
    /// Log2 of the number of buckets, and the first one.
    pub(crate) run: Option<(u8, u32)>,
    /// Number of groups in a row from this one on.
    depth: u32,
    /// True if a member is usable.
    usable: bool,
}

/// Maximum number of groups in a row: levels of recursive routes.
pub const MAX_DEPTH: u32 = 8;

/// The whole of the traffic of a next-hop group, of which members have shares.
const WHOLE: u64 = 1 << 40;

impl Forwarding {
    /// Creates a group over members with weights. Takes over the caller's references to them.
    ///
    /// # Errors
    /// If there are no or too many members, or the table is full; the members are released then.
    pub fn group(&mut self, c: &Control, members: Vec<Member>) -> Result<Dpo, FibError> {
        let deep = members.iter().any(|m| self.is_deepest(m.dpo));
        let done = if deep { Err(FibError::Depth) } else { self.check_members(&members) };
        let dpo = match done.and_then(|()| self.alloc(c)) {
            Ok(dpo) => dpo,
            Err(e) => {
                self.release_all(c, &members);
                return Err(e);
            }
        };
        self.table.get(dpo).set_next_hop(None);
        self.insert(dpo, Object::Group(Group::default()));
        self.put_members(c, dpo, members);
        Ok(dpo)
    }

    fn check_members(&self, members: &[Member]) -> Result<(), FibError> {
        match members.len() {
            1..=MAX_BUCKETS => Ok(()),
            n => Err(FibError::Members(n)),
        }
    }

    /// Replaces the members of a group; packets see the old ones or the new ones. Takes over the
    /// caller's references.
    ///
    /// # Errors
    /// If there are no or too many members, the group would lead to itself, or too many would be in
    /// a row; nothing has changed then, but the new members are released.
    pub fn set_group(
        &mut self,
        c: &Control,
        group: Dpo,
        members: Vec<Member>,
    ) -> Result<(), FibError> {
        let conflict = || members.iter().find_map(|m| self.conflict(group, m.dpo));
        let done = self.check_members(&members).and_then(|()| conflict().map_or(Ok(()), Err));
        match done {
            Ok(()) => self.put_members(c, group, members),
            Err(_) => self.release_all(c, &members),
        }
        done
    }

    fn put_members(&mut self, c: &Control, dpo: Dpo, mut members: Vec<Member>) {
        // Equal ones stay in the order of the paths, whichever of their objects was made first.
        members.sort_by_key(|member| member.preference);
        let Some(Slot { object: Object::Group(group), .. }) = self.objects.get_mut(&dpo) else {
            return self.release_all(c, &members);
        };
        let old = std::mem::replace(&mut group.members, members.clone());
        for member in &old {
            self.dependents.remove(&(member.dpo, dpo));
        }
        self.dependents.extend(members.iter().map(|member| (member.dpo, dpo)));
        self.refresh_group(c, dpo);
        self.refresh_dependents(c, &[dpo]);
        // No packet finds them here any more.
        self.release_all(c, &old);
    }

    /// Releases members.
    pub fn release_all(&mut self, c: &Control, members: &[Member]) {
        for member in members {
            self.release(c, member.dpo);
        }
    }

    pub(crate) fn drop_group(&mut self, c: &Control, dpo: Dpo, group: Group) {
        for member in &group.members {
            self.dependents.remove(&(member.dpo, dpo));
        }
        if let Some((log2, base)) = group.run {
            self.runs.free(log2, base, c.domain().tag());
        }
        self.release_all(c, &group.members);
    }

    /// Gives a group a number, by which others name it; the number's holder keeps a reference. An
    /// earlier group of this number gets the members.
    ///
    /// # Errors
    /// See [`group`](Self::group) and [`set_group`](Self::set_group).
    pub fn set_numbered(
        &mut self,
        c: &Control,
        number: u32,
        members: Vec<Member>,
    ) -> Result<Dpo, FibError> {
        if let Some(&dpo) = self.numbered.get(&number) {
            self.set_group(c, dpo, members)?;
            return Ok(dpo);
        }
        let dpo = self.group(c, members)?;
        self.numbered.insert(number, dpo);
        Ok(dpo)
    }

    /// Takes a number away. Users of the group keep it, but it leads nowhere from now on.
    pub fn remove_numbered(&mut self, c: &Control, number: u32) -> bool {
        let Some(dpo) = self.numbered.remove(&number) else { return false };
        self.put_members(c, dpo, vec![Member::of(DROP)]);
        self.release(c, dpo);
        true
    }

    /// Returns the group with a number.
    #[must_use]
    pub fn numbered(&self, number: u32) -> Option<Dpo> {
        self.numbered.get(&number).copied()
    }

    /// Objects that packets meet after this one.
    fn below(&self, dpo: Dpo) -> Vec<Dpo> {
        match self.objects.get(&dpo).map(|slot| &slot.object) {
            Some(Object::Group(group)) => group.members.iter().map(|m| m.dpo).collect(),
            Some(Object::Midchain { stacked, .. }) => vec![*stacked],
            _ => Vec::new(),
        }
    }

    /// Returns whether packets that meet `from` may meet `to`.
    #[must_use]
    pub fn leads_to(&self, from: Dpo, to: Dpo) -> bool {
        let (mut seen, mut next) = (BTreeSet::from([from]), vec![from]);
        while let Some(dpo) = next.pop() {
            if dpo == to {
                return true;
            }
            next.extend(self.below(dpo).into_iter().filter(|below| seen.insert(*below)));
        }
        false
    }

    /// Returns why a group may not have a member, if it may not: the member leads back to it, or
    /// too many groups would be in a row.
    #[must_use]
    pub fn conflict(&self, group: Dpo, member: Dpo) -> Option<FibError> {
        if self.leads_to(member, group) {
            return Some(FibError::Loop);
        }
        let rows = self.depth(member) + 1 + self.height(group);
        (rows > MAX_DEPTH).then_some(FibError::Depth)
    }

    /// Number of groups in a row from an object on.
    fn depth(&self, dpo: Dpo) -> u32 {
        match self.objects.get(&dpo).map(|slot| &slot.object) {
            Some(Object::Group(group)) => group.depth,
            _ => 0,
        }
    }

    /// Returns whether no other group can have an object as a member: too many would be in a row.
    pub(crate) fn is_deepest(&self, dpo: Dpo) -> bool {
        self.depth(dpo) >= MAX_DEPTH
    }

    fn above(&self, dpo: Dpo) -> impl Iterator<Item = Dpo> {
        self.dependents.range((dpo, Dpo::MIN)..=(dpo, Dpo::MAX)).map(|(_, above)| *above)
    }

    /// Number of groups in a row that lead to an object.
    fn height(&self, dpo: Dpo) -> u32 {
        let groups = |dpo| self.above(dpo).filter(|above| self.is_group(*above));
        let (mut height, mut wave) = (0, groups(dpo).collect::<BTreeSet<Dpo>>());
        while !wave.is_empty() {
            height += 1;
            wave = wave.into_iter().flat_map(groups).collect();
        }
        height
    }

    /// Returns whether packets that meet an object can be sent.
    fn is_usable(&self, dpo: Dpo) -> bool {
        match self.objects.get(&dpo).map(|slot| &slot.object) {
            Some(Object::Group(group)) => group.usable,
            _ => ![UNREACHABLE, UNRESOLVED].contains(&dpo) && !self.table.get(dpo).is(Kind::DOWN),
        }
    }

    /// Returns the members of the lowest preference that has a usable one, or of the lowest.
    fn taking_part<'g>(&self, group: &'g Group) -> &'g [Member] {
        let mut all = group.members.chunk_by(|a, b| a.preference == b.preference);
        let first = all.clone().next().unwrap_or_default();
        all.find(|some| some.iter().any(|m| self.is_usable(m.dpo))).unwrap_or(first)
    }

    /// Returns the objects at the end of packets, with shares.
    fn flatten(&self, dpo: Dpo) -> BTreeMap<Dpo, u64> {
        let (mut ends, mut left) =
            (BTreeMap::new(), BTreeMap::from([((self.depth(dpo), dpo), WHOLE)]));
        // The deepest first: all that leads to a group comes before it.
        while let Some(((_, dpo), share)) = left.pop_last() {
            let Some(Slot { object: Object::Group(group), .. }) = self.objects.get(&dpo) else {
                ends.insert(dpo, share);
                continue;
            };
            let members = self.taking_part(group);
            let total: u64 = members.iter().map(|m| u64::from(m.weight.max(1))).sum();
            for m in members {
                let part = u128::from(share) * u128::from(m.weight.max(1));
                *left.entry((self.depth(m.dpo), m.dpo)).or_default() +=
                    (part / u128::from(total.max(1))) as u64;
            }
        }
        ends
    }

    /// Chooses what packets meet, with shares: what is usable, or all.
    fn live(&self, dpo: Dpo) -> Vec<(Dpo, u64)> {
        let all = self.flatten(dpo);
        let usable = |m: &(Dpo, u64)| self.is_usable(m.0);
        let live: Vec<(Dpo, u64)> = all.iter().map(|(d, s)| (*d, *s)).filter(usable).collect();
        if live.is_empty() { all.into_iter().collect() } else { live }
    }

    /// Log2 of the number of buckets for a group with these shares: more than there are members, as
    /// weights such as 1:2 do not fill a power of two evenly.
    fn log2(&self, dpo: Dpo) -> u8 {
        let most = MAX_BUCKETS.ilog2();
        let Some(Slot { object: Object::Group(group), .. }) = self.objects.get(&dpo) else {
            return most as u8;
        };
        if group.members.iter().any(|m| !self.below(m.dpo).is_empty()) {
            return most as u8;
        }
        let weights = self.taking_part(group).iter().map(|m| u64::from(m.weight.max(1)));
        let total: u64 = weights.sum();
        (total.next_power_of_two().trailing_zeros().max(1) + 2).min(most) as u8
    }

    /// Flattens a group again, and stores its state if that has changed.
    fn refresh_group(&mut self, c: &Control, dpo: Dpo) {
        let members = self.members(dpo);
        let depth = 1 + members.iter().map(|m| self.depth(m.dpo)).max().unwrap_or(0);
        let usable = members.iter().any(|m| self.is_usable(m.dpo));
        if let Some(Slot { object: Object::Group(group), .. }) = self.objects.get_mut(&dpo) {
            (group.depth, group.usable) = (depth, usable);
        }
        let live = self.live(dpo);
        let log2 = self.log2(dpo);
        let Some(Slot { object: Object::Group(group), .. }) = self.objects.get(&dpo) else {
            return;
        };
        let old = group.run;
        let run = match &live[..] {
            [] | [_] => None,
            _ => {
                let slots = distribute(&live, 1 << log2);
                let same = |(l, base): &(u8, u32)| {
                    *l == log2 && self.table.buckets(*base, 1 << log2).eq(slots.iter().copied())
                };
                match old.filter(same) {
                    Some(run) => Some(run),
                    // Without room, the first member takes all.
                    None => self.runs.alloc(log2, c.domain()).map(|base| {
                        for (at, member) in (base..).zip(slots) {
                            self.table.set_bucket(at, member);
                        }
                        (log2, base)
                    }),
                }
            }
        };
        let state = match (run, live.first()) {
            (Some((log2, base)), _) => {
                let complete = |m: &(Dpo, u64)| self.table.get(m.0).state().kind.is_complete();
                let all = live.iter().all(complete);
                let kind = if all { Kind::LOAD_BALANCE_COMPLETE } else { Kind::LOAD_BALANCE };
                EntryState { mtu: (1 << log2) - 1, value: base, ..EntryState::of(kind) }
            }
            (None, Some((member, _))) => {
                let complete = self.table.get(*member).state().kind.is_complete();
                let kind = if complete { Kind::REDIRECT_COMPLETE } else { Kind::REDIRECT };
                EntryState { value: member.get(), ..EntryState::of(kind) }
            }
            (None, None) => EntryState::of(Kind::DROP),
        };
        self.set_state(dpo, state);
        if let Some(Slot { object: Object::Group(group), .. }) = self.objects.get_mut(&dpo) {
            group.run = run;
        }
        if let Some((log2, base)) = old.filter(|_| run != old) {
            self.runs.free(log2, base, c.domain().tag());
        }
    }

    /// Refreshes the groups and midchains that depend on objects whose state has changed.
    pub(crate) fn refresh_dependents(&mut self, c: &Control, changed: &[Dpo]) {
        // The order is that of dependence: a midchain's state matters to what contains it.
        let mut wave: BTreeSet<Dpo> = changed.iter().flat_map(|dpo| self.above(*dpo)).collect();
        while !wave.is_empty() {
            let mut next = BTreeSet::new();
            for dpo in wave {
                self.visits += 1;
                match self.objects.get(&dpo).map(|slot| &slot.object) {
                    Some(Object::Group(_)) => self.refresh_group(c, dpo),
                    _ => self.refresh_midchain(dpo),
                }
                next.extend(self.above(dpo));
            }
            wave = next;
        }
    }

    /// Returns the members of a group; the entry itself for anything else.
    pub fn members(&self, dpo: Dpo) -> Vec<Member> {
        match self.objects.get(&dpo).map(|slot| &slot.object) {
            Some(Object::Group(group)) => group.members.clone(),
            _ => vec![Member::of(dpo)],
        }
    }

    /// Returns whether an entry is a group.
    #[must_use]
    pub fn is_group(&self, dpo: Dpo) -> bool {
        matches!(self.objects.get(&dpo), Some(Slot { object: Object::Group(_), .. }))
    }
}

/// Distributes buckets by shares.
fn distribute(live: &[(Dpo, u64)], count: u64) -> Vec<Dpo> {
    let total: u64 = live.iter().map(|m| m.1).sum();
    let mut out = Vec::with_capacity(count as usize);
    let mut edge = 0u64;
    for (member, share) in live {
        edge += share;
        let end = (u128::from(edge) * u128::from(count) + u128::from(total) / 2)
            / u128::from(total.max(1));
        out.resize((end as usize).max(out.len()), *member);
    }
    out
}
