//! Maps that copies share, for snapshots of which one entry changes.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

/// Bits of a hash that choose among the branches of a node.
const BITS: u32 = 4;
const BRANCHES: usize = 1 << BITS;
/// Entries of a leaf before it becomes a branch, unless its hashes are used up.
const LEAF: usize = 8;

/// A hash map. A copy shares all entries, and a change copies only what leads to its entry:
/// publishing a change takes about the same time however many entries there are.
#[derive(Clone, Debug)]
pub struct CowMap<K, V, S> {
    root: Option<Arc<Node<K, V>>>,
    len: usize,
    hasher: S,
}

#[derive(Clone, Debug)]
enum Node<K, V> {
    Branch([Option<Arc<Node<K, V>>>; BRANCHES]),
    /// Entries with their hashes.
    Leaf(Vec<(u64, K, V)>),
}

/// The branch for a hash at a depth. Upper bits come first: in weak hashes they vary most.
#[inline(always)]
fn branch(hash: u64, depth: u32) -> usize {
    (hash >> (u64::BITS - BITS * (depth + 1))) as usize % BRANCHES
}

/// Depth at which hashes are used up.
const DEEPEST: u32 = u64::BITS / BITS;

impl<K, V, S: Default> Default for CowMap<K, V, S> {
    fn default() -> Self {
        CowMap { root: None, len: 0, hasher: S::default() }
    }
}

impl<K, V, S> CowMap<K, V, S> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no entries.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let mut left: Vec<&Node<K, V>> = self.root.as_deref().into_iter().collect();
        let leaves = std::iter::from_fn(move || {
            loop {
                match left.pop()? {
                    Node::Leaf(all) => return Some(all),
                    Node::Branch(all) => left.extend(all.iter().flatten().map(|n| &**n)),
                }
            }
        });
        leaves.flatten().map(|(_, key, value)| (key, value))
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> CowMap<K, V, S> {
    /// Returns the value of a key.
    #[inline]
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let mut node = self.root.as_deref()?;
        let hash = self.hasher.hash_one(key);
        let mut depth = 0;
        loop {
            match node {
                Node::Branch(all) => node = all[branch(hash, depth)].as_deref()?,
                Node::Leaf(all) => {
                    let found = all.iter().find(|(h, k, _)| *h == hash && k.borrow() == key);
                    return found.map(|(.., value)| value);
                }
            }
            depth += 1;
        }
    }

    /// Returns whether there is a key.
    #[inline]
    pub fn contains_key<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// Sets the value of a key; returns the old one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let hash = self.hasher.hash_one(&key);
        let root = self.root.get_or_insert_with(|| Arc::new(Node::Leaf(Vec::new())));
        let old = insert(root, (hash, key, value), 0);
        self.len += usize::from(old.is_none());
        old
    }

    /// Removes a key; returns its value.
    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        // A copy of the way there is only worth making if there is an entry.
        self.get(key)?;
        let hash = self.hasher.hash_one(key);
        let (old, is_empty) = remove(self.root.as_mut()?, hash, key, 0);
        if is_empty {
            self.root = None;
        }
        self.len -= usize::from(old.is_some());
        old
    }

    /// Changes the value of a key, which is set to the default first if there is none.
    pub fn change(&mut self, key: K, change: impl FnOnce(&mut V))
    where
        V: Default,
    {
        let mut value = self.get(&key).cloned().unwrap_or_default();
        change(&mut value);
        self.insert(key, value);
    }
}

fn insert<K: Eq + Clone, V: Clone>(
    node: &mut Arc<Node<K, V>>,
    (hash, key, value): (u64, K, V),
    depth: u32,
) -> Option<V> {
    let node = Arc::make_mut(node);
    if let Node::Leaf(all) = node {
        if let Some((.., old)) = all.iter_mut().find(|(h, k, _)| *h == hash && *k == key) {
            return Some(std::mem::replace(old, value));
        }
        if all.len() < LEAF || depth >= DEEPEST {
            all.push((hash, key, value));
            return None;
        }
        let mut below: [Vec<(u64, K, V)>; BRANCHES] = Default::default();
        for entry in std::mem::take(all) {
            below[branch(entry.0, depth)].push(entry);
        }
        let leaf = |all: Vec<_>| (!all.is_empty()).then(|| Arc::new(Node::Leaf(all)));
        *node = Node::Branch(below.map(leaf));
    }
    let Node::Branch(all) = node else { return None };
    let next = all[branch(hash, depth)].get_or_insert_with(|| Arc::new(Node::Leaf(Vec::new())));
    insert(next, (hash, key, value), depth + 1)
}

/// Removes a key; returns its value, and whether the node is empty now.
fn remove<K: Eq + Clone + Borrow<Q>, V: Clone, Q: Eq + ?Sized>(
    node: &mut Arc<Node<K, V>>,
    hash: u64,
    key: &Q,
    depth: u32,
) -> (Option<V>, bool) {
    match Arc::make_mut(node) {
        Node::Leaf(all) => {
            let at = all.iter().position(|(h, k, _)| *h == hash && k.borrow() == key);
            let old = at.map(|at| all.swap_remove(at).2);
            (old, all.is_empty())
        }
        Node::Branch(all) => {
            let place = &mut all[branch(hash, depth)];
            let Some(next) = place else { return (None, false) };
            let (old, is_empty) = remove(next, hash, key, depth + 1);
            if is_empty {
                *place = None;
            }
            (old, all.iter().all(Option::is_none))
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use std::hash::{BuildHasherDefault, Hasher};

    /// A hash of few bits, so that keys collide.
    #[derive(Default)]
    struct Weak(u64);

    impl Hasher for Weak {
        fn finish(&self) -> u64 {
            self.0
        }
        fn write(&mut self, bytes: &[u8]) {
            self.0 = bytes.iter().fold(self.0, |sum, byte| sum << 8 | u64::from(byte & 3));
        }
    }

    type Map = CowMap<u16, u32, BuildHasherDefault<Weak>>;

    /// Nodes that two maps do not share.
    fn differ(a: &Option<Arc<Node<u16, u32>>>, b: &Option<Arc<Node<u16, u32>>>) -> usize {
        match (a, b) {
            (Some(a), Some(b)) if Arc::ptr_eq(a, b) => 0,
            (Some(a), Some(b)) => match (&**a, &**b) {
                (Node::Branch(a), Node::Branch(b)) => {
                    1 + a.iter().zip(b).map(|(a, b)| differ(a, b)).sum::<usize>()
                }
                _ => 1,
            },
            _ => usize::from(a.is_some() || b.is_some()),
        }
    }

    #[test]
    fn a_change_copies_only_the_way_to_its_entry() {
        let mut map: CowMap<u16, u32, std::hash::RandomState> = CowMap::default();
        for key in 0..60_000 {
            map.insert(key, 0);
        }
        let old = map.clone();
        map.insert(7, 1);
        let changed = differ(&old.root, &map.root);
        assert!((1..=8).contains(&changed), "{changed}");
        assert_eq!((old.get(&7), map.get(&7), map.len()), (Some(&0), Some(&1), 60_000));
    }

    proptest! {
        #[test]
        fn entries_are_those_of_a_map(
            changes in prop::collection::vec((any::<u16>(), 0u32..3), 1..400),
        ) {
            let (mut map, mut model, mut old) = (Map::default(), HashMap::new(), None);
            for (i, (key, value)) in changes.into_iter().enumerate() {
                let key = key % 64 * 257;
                match value {
                    0 => prop_assert_eq!(map.remove(&key), model.remove(&key)),
                    _ => prop_assert_eq!(map.insert(key, value), model.insert(key, value)),
                }
                prop_assert_eq!(map.len(), model.len());
                prop_assert_eq!(map.is_empty(), model.is_empty());
                let all: HashMap<u16, u32> = map.iter().map(|(k, v)| (*k, *v)).collect();
                prop_assert_eq!(&all, &model);
                prop_assert!(model.iter().all(|(k, v)| map.get(k) == Some(v)));
                if i == 20 {
                    old = Some((map.clone(), model.clone()));
                }
            }
            if let Some((map, model)) = old {
                let all: HashMap<u16, u32> = map.iter().map(|(k, v)| (*k, *v)).collect();
                prop_assert_eq!(all, model);
            }
        }
    }
}
