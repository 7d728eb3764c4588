//! The kernel's next-hop objects as they were last seen.

use super::types::{NextHop, ObjectHops};
use std::collections::{BTreeMap, BTreeSet};

/// Object as in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Object {
    Hop(NextHop),
    Blackhole,
    /// Other objects, with their weights.
    Group(Vec<(u32, u16)>),
}

/// All objects of a namespace.
#[derive(Debug, Default)]
pub(super) struct Objects {
    all: BTreeMap<u32, Object>,
    /// Members of groups, each with its group.
    members: BTreeSet<(u32, u32)>,
}

impl Objects {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, id: u32) -> Option<&Object> {
        self.all.get(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Object)> {
        self.all.iter().map(|(id, object)| (*id, object))
    }

    /// Sets an object; returns whether it is new.
    pub(super) fn set(&mut self, id: u32, object: Object) -> bool {
        let is_new = !self.remove(id);
        if let Object::Group(members) = &object {
            self.members.extend(members.iter().map(|(member, _)| (*member, id)));
        }
        self.all.insert(id, object);
        is_new
    }

    /// Removes an object; returns whether it was there.
    pub(super) fn remove(&mut self, id: u32) -> bool {
        let Some(object) = self.all.remove(&id) else { return false };
        if let Object::Group(members) = object {
            members.iter().for_each(|(member, _)| _ = self.members.remove(&(*member, id)));
        }
        true
    }

    /// Groups that have an object as a member, whether that is there or not.
    pub(super) fn groups_of(&self, id: u32) -> impl Iterator<Item = u32> {
        self.members.range((id, 0)..=(id, u32::MAX)).map(|(_, group)| *group)
    }

    /// Returns the hops of an object; those of a group share its weights.
    pub(super) fn hops(&self, id: u32) -> ObjectHops {
        match self.get(id) {
            Some(Object::Hop(hop)) => vec![hop.clone()],
            Some(Object::Group(members)) => {
                let member = |(id, weight): &(u32, u16)| match self.get(*id)? {
                    Object::Hop(hop) => Some(NextHop { weight: *weight, ..hop.clone() }),
                    _ => None,
                };
                let mut hops: ObjectHops = members.iter().filter_map(member).collect();
                if let [only] = &mut hops[..] {
                    only.weight = 1;
                }
                let is_blackhole = |(id, _): &(u32, u16)| self.get(*id) == Some(&Object::Blackhole);
                if hops.is_empty() && !members.iter().any(is_blackhole) {
                    // No member is known yet.
                    hops.push(NextHop::nowhere());
                }
                hops
            }
            Some(Object::Blackhole) | None => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn groups_have_their_members(
            steps in prop::collection::vec(
                (0u32..6, prop::option::of(prop::collection::vec((0u32..6, 1u16..3), 0..4))), 0..40,
            )
        ) {
            let (mut objects, mut plain) = (Objects::default(), BTreeMap::new());
            for (id, members) in steps {
                match members {
                    Some(members) => {
                        let object = match members.is_empty() {
                            true => Object::Blackhole,
                            false => Object::Group(members.clone()),
                        };
                        prop_assert_eq!(objects.set(id, object), !plain.contains_key(&id));
                        plain.insert(id, members);
                    }
                    None => {
                        prop_assert_eq!(objects.remove(id), plain.contains_key(&id));
                        plain.remove(&id);
                    }
                }
                for member in 0..6 {
                    let has = |of: &&u32| plain[*of].iter().any(|(m, _)| *m == member);
                    prop_assert!(objects.groups_of(member).eq(plain.keys().filter(has).copied()));
                }
                prop_assert_eq!(objects.len(), plain.len());
            }
        }
    }
}
