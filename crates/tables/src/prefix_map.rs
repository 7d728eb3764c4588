//! A map from prefixes: one extendible hash table per prefix length, eight bytes a slot.
//!
//! The forwarding table does not know which route a word came from, nor which routes are beneath
//! it; this map does. Only the control thread uses it, and must not be delayed: a table is made of
//! small pieces that split and merge one at a time. No single change takes more than some tens of
//! microseconds, for any number of prefixes, and a walk can continue from piece to piece while
//! prefixes come and go ([`PrefixMap::sweep`]).

use std::collections::TryReserveError;
use std::num::NonZeroU32;

use crate::hash::random_seed;
use crate::prefix::{Address, Prefix};

const SMALLEST: usize = 8;
/// Slots of a piece before it splits: 8 KiB, three quarters of which take some 20 µs to move.
const LARGEST: usize = 1024;
/// Depth beyond which a piece grows instead of splitting. Hashes are spread and cannot be chosen by
/// outsiders, so it is never reached.
const DEEPEST: u8 = 24;

#[derive(Clone, Copy)]
struct Slot<A> {
    addr: A,
    /// Zero marks a free slot.
    value: u32,
}

/// Prefixes of one length whose hashes begin with the same bits: linear probing, at most 3/4 full,
/// no tombstones.
struct Piece<A> {
    /// A power of two, or empty.
    slots: Vec<Slot<A>>,
    len: usize,
    /// Number of leading bits that their hashes share.
    depth: u8,
}

impl<A: Address> Piece<A> {
    fn free() -> Slot<A> {
        Slot { addr: A::default(), value: 0 }
    }

    fn empty() -> Piece<A> {
        Piece { slots: Vec::new(), len: 0, depth: 0 }
    }

    fn with_slots(slots: usize, depth: u8) -> Result<Piece<A>, TryReserveError> {
        let mut new = Vec::new();
        new.try_reserve_exact(slots)?;
        new.resize(slots, Self::free());
        Ok(Piece { slots: new, len: 0, depth })
    }

    fn home(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    /// Returns where `addr` is (`Ok`), or the free slot that ends its run (`Err`).
    fn find(&self, addr: A, hash: u64) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut at = self.home(hash);
        loop {
            match self.slots[at] {
                Slot { value: 0, .. } => return Err(at),
                slot if slot.addr == addr => return Ok(at),
                _ => at = (at + 1) & mask,
            }
        }
    }

    fn has_room(&self) -> bool {
        (self.len + 1) * 4 <= self.slots.len() * 3
    }

    /// Adds a slot whose address is not here, and for which there is room.
    fn take(&mut self, slot: Slot<A>, hash: u64) {
        if let Err(at) = self.find(slot.addr, hash) {
            self.slots[at] = slot;
            self.len += 1;
        }
    }

    fn used(&self) -> impl Iterator<Item = Slot<A>> {
        self.slots.iter().filter(|slot| slot.value != 0).copied()
    }

    fn resize(&mut self, slots: usize, seed: u64) -> Result<(), TryReserveError> {
        let mut new = Piece::with_slots(slots, self.depth)?;
        self.used().for_each(|slot| new.take(slot, slot.addr.mixed(seed)));
        *self = new;
        Ok(())
    }

    fn remove(&mut self, addr: A, seed: u64) -> Option<NonZeroU32> {
        let mut hole = self.find(addr, addr.mixed(seed)).ok()?;
        let removed = std::mem::replace(&mut self.slots[hole], Self::free()).value;
        self.len -= 1;
        // Close the gap: entries that would no longer be found from their home move back into the
        // hole.
        let mask = self.slots.len() - 1;
        let mut at = (hole + 1) & mask;
        while self.slots[at].value != 0 {
            let home = self.home(self.slots[at].addr.mixed(seed));
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.slots[hole] = std::mem::replace(&mut self.slots[at], Self::free());
                hole = at;
            }
            at = (at + 1) & mask;
        }
        NonZeroU32::new(removed)
    }
}

/// Returns the first `bits` bits of a hash as a number.
fn lead(hash: u64, bits: u8) -> usize {
    (hash >> 1 >> (63 - bits)) as usize
}

/// The prefixes of one length.
struct Routes<A> {
    pieces: Vec<Piece<A>>,
    /// Indices of unused pieces.
    unused: Vec<u32>,
    /// The piece for each value of a hash's first `bits` bits; empty if there is no piece.
    index: Vec<u32>,
    bits: u8,
    len: usize,
}

impl<A> Default for Routes<A> {
    fn default() -> Self {
        let (pieces, unused, index) = (Vec::new(), Vec::new(), Vec::new());
        Self { pieces, unused, index, bits: 0, len: 0 }
    }
}

impl<A: Address> Routes<A> {
    fn number(&self, hash: u64) -> Option<usize> {
        self.index.get(lead(hash, self.bits)).map(|n| *n as usize)
    }

    fn get(&self, addr: A, seed: u64) -> Option<NonZeroU32> {
        let hash = addr.mixed(seed);
        let piece = &self.pieces[self.number(hash)?];
        piece.find(addr, hash).ok().and_then(|at| NonZeroU32::new(piece.slots[at].value))
    }

    /// Makes room for one more: this address.
    fn reserve(&mut self, addr: A, seed: u64) -> Result<(), TryReserveError> {
        let hash = addr.mixed(seed);
        if self.index.is_empty() {
            self.index.try_reserve_exact(1)?;
            self.pieces.try_reserve_exact(1)?;
            self.pieces.push(Piece::with_slots(SMALLEST, 0)?);
            self.index.push(0);
        }
        while let Some(n) = self.number(hash)
            && !self.pieces[n].has_room()
        {
            let (slots, depth) = (self.pieces[n].slots.len(), self.pieces[n].depth);
            if slots < LARGEST || depth >= DEEPEST {
                self.pieces[n].resize(slots * 2, seed)?;
            } else {
                self.split(n, lead(hash, depth), seed)?;
            }
        }
        Ok(())
    }

    /// Splits piece `n`, whose hashes begin with `prefix`, by the next bit.
    fn split(&mut self, n: usize, prefix: usize, seed: u64) -> Result<(), TryReserveError> {
        let depth = self.pieces[n].depth + 1;
        let mut halves = [Piece::with_slots(LARGEST, depth)?, Piece::with_slots(LARGEST, depth)?];
        self.pieces.try_reserve(1)?;
        if depth > self.bits {
            let mut index = Vec::new();
            index.try_reserve_exact(self.index.len() * 2)?;
            index.extend(self.index.iter().flat_map(|n| [*n, *n]));
            (self.index, self.bits) = (index, self.bits + 1);
        }
        for slot in self.pieces[n].used() {
            let hash = slot.addr.mixed(seed);
            halves[lead(hash, depth) & 1].take(slot, hash);
        }
        let [low, high] = halves;
        self.pieces[n] = low;
        let new = match self.unused.pop() {
            Some(new) => {
                self.pieces[new as usize] = high;
                new
            }
            None => {
                self.pieces.push(high);
                self.pieces.len() as u32 - 1
            }
        };
        self.name(prefix * 2 + 1, depth, new);
        Ok(())
    }

    /// Points all hashes that begin with the `depth` bits of `prefix` at piece `n`.
    fn name(&mut self, prefix: usize, depth: u8, n: u32) {
        let width = self.bits - depth;
        self.index[prefix << width..(prefix + 1) << width].fill(n);
    }

    /// Inserts a prefix for which room was reserved.
    fn insert(&mut self, addr: A, value: NonZeroU32, seed: u64) -> Option<NonZeroU32> {
        let hash = addr.mixed(seed);
        let new = Slot { addr, value: value.get() };
        let n = self.number(hash)?;
        let piece = &mut self.pieces[n];
        match piece.find(addr, hash) {
            Ok(at) => NonZeroU32::new(std::mem::replace(&mut piece.slots[at], new).value),
            Err(at) => {
                piece.slots[at] = new;
                piece.len += 1;
                self.len += 1;
                None
            }
        }
    }

    fn remove(&mut self, addr: A, seed: u64) -> Option<NonZeroU32> {
        let hash = addr.mixed(seed);
        let n = self.number(hash)?;
        let removed = self.pieces[n].remove(addr, seed)?;
        self.len -= 1;
        let piece = &self.pieces[n];
        if piece.len * 8 < piece.slots.len() && piece.slots.len() > SMALLEST {
            // Without memory for a smaller one, the large one still serves.
            let _ = self.shrink(n, hash, seed);
        }
        Some(removed)
    }

    /// Shrinks a piece that is nearly empty: merges it with its other half, or reduces its own
    /// slots.
    fn shrink(&mut self, n: usize, hash: u64, seed: u64) -> Result<(), TryReserveError> {
        let depth = self.pieces[n].depth;
        let prefix = lead(hash, depth);
        let other = depth.checked_sub(1).map(|_| {
            let first = (prefix ^ 1) << (self.bits - depth);
            self.index[first] as usize
        });
        let Some(other) = other.filter(|other| {
            let other = &self.pieces[*other];
            other.depth == depth && (self.pieces[n].len + other.len) * 4 <= LARGEST
        }) else {
            let slots = self.pieces[n].slots.len() / 2;
            return self.pieces[n].resize(slots, seed);
        };
        let mut merged = Piece::with_slots(LARGEST / 2, depth - 1)?;
        for slot in self.pieces[n].used().chain(self.pieces[other].used()) {
            merged.take(slot, slot.addr.mixed(seed));
        }
        self.pieces[n] = merged;
        self.pieces[other] = Piece::empty();
        self.unused.push(other as u32);
        self.name(prefix / 2, depth - 1, n as u32);
        while self.bits > 0 && self.pieces.iter().all(|p| p.depth < self.bits) {
            self.index = self.index.iter().step_by(2).copied().collect();
            self.bits -= 1;
        }
        if self.bits == 0 {
            self.pieces = vec![std::mem::replace(&mut self.pieces[n], Piece::empty())];
            (self.index, self.unused) = (vec![0], Vec::new());
        }
        Ok(())
    }

    fn memory(&self) -> usize {
        let slots: usize = self.pieces.iter().map(|p| p.slots.capacity()).sum();
        let numbers = self.index.capacity() + self.unused.capacity();
        slots * size_of::<Slot<A>>()
            + self.pieces.capacity() * size_of::<Piece<A>>()
            + numbers * size_of::<u32>()
    }
}

/// A set of prefix lengths.
#[derive(Clone, Copy, Debug, Default)]
struct Lengths([u64; 3]);

impl Lengths {
    fn insert(&mut self, len: u8) {
        self.0[usize::from(len / 64)] |= 1 << (len % 64);
    }
    fn remove(&mut self, len: u8) {
        self.0[usize::from(len / 64)] &= !(1 << (len % 64));
    }
    /// Returns the largest one up to `longest`.
    #[inline]
    fn up_to(&self, longest: u8) -> Option<u8> {
        let mut mask = u64::MAX >> (63 - longest % 64);
        for word in (0..=longest / 64).rev() {
            let bits = self.0[usize::from(word)] & mask;
            if bits != 0 {
                return Some(word * 64 + bits.ilog2() as u8);
            }
            mask = u64::MAX;
        }
        None
    }
}

/// Position of a walk over a [`PrefixMap`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Prefix length; beyond the longest the walk has ended.
    length: u8,
    /// First hash that has not been visited.
    hash: u64,
}

/// A map from prefixes to numbers that also finds the longest prefix that contains an address. 8
/// bytes a slot for IPv4, of which at most three quarters are used.
pub struct PrefixMap<A> {
    /// Routes of each length.
    lengths: Vec<Routes<A>>,
    /// The lengths that have routes, one bit each.
    present: Lengths,
    len: usize,
    /// Random: routes come from the network, and their author must not choose where they collide.
    seed: u64,
}

impl<A: Address> Default for PrefixMap<A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A> std::fmt::Debug for PrefixMap<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PrefixMap").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<A: Address> PrefixMap<A> {
    /// Creates an empty map.
    pub fn new() -> Self {
        let lengths = (0..=A::BITS).map(|_| Routes::default()).collect();
        Self { lengths, present: Lengths::default(), len: 0, seed: random_seed() }
    }

    /// Returns the number of prefixes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the value of exactly this prefix.
    pub fn get(&self, prefix: Prefix<A>) -> Option<NonZeroU32> {
        self.lengths[usize::from(prefix.len())].get(prefix.addr(), self.seed)
    }

    /// Makes room for this prefix, so that the next `put` of it cannot fail.
    pub(crate) fn reserve(&mut self, prefix: Prefix<A>) -> Result<(), TryReserveError> {
        self.lengths[usize::from(prefix.len())].reserve(prefix.addr(), self.seed)
    }

    /// Sets a prefix's value; returns the one it had.
    ///
    /// # Errors
    ///
    /// [`TryReserveError`] if there is no memory; nothing has changed then. Replacing never fails.
    pub fn insert(
        &mut self,
        prefix: Prefix<A>,
        value: NonZeroU32,
    ) -> Result<Option<NonZeroU32>, TryReserveError> {
        if self.get(prefix).is_none() {
            self.reserve(prefix)?;
        }
        Ok(self.put(prefix, value))
    }

    /// Like [`PrefixMap::insert`], after [`PrefixMap::reserve`] or for a prefix that is there.
    pub(crate) fn put(&mut self, prefix: Prefix<A>, value: NonZeroU32) -> Option<NonZeroU32> {
        let routes = &mut self.lengths[usize::from(prefix.len())];
        let old = routes.insert(prefix.addr(), value, self.seed);
        self.present.insert(prefix.len());
        self.len += usize::from(old.is_none());
        old
    }

    /// Removes a prefix; returns its value.
    pub fn remove(&mut self, prefix: Prefix<A>) -> Option<NonZeroU32> {
        let routes = &mut self.lengths[usize::from(prefix.len())];
        let old = routes.remove(prefix.addr(), self.seed)?;
        if routes.len == 0 {
            self.present.remove(prefix.len());
        }
        self.len -= 1;
        Some(old)
    }

    /// Returns the longest prefix of at most `longest` bits that contains `addr`.
    pub fn covering(&self, addr: A, longest: u8) -> Option<(Prefix<A>, NonZeroU32)> {
        let mut next = self.present.up_to(longest);
        while let Some(len) = next {
            let prefix = Prefix::of(addr, len);
            next = len.checked_sub(1).and_then(|len| self.present.up_to(len));
            if let Some(value) = self.get(prefix) {
                return Some((prefix, value));
            }
        }
        None
    }

    /// Returns all prefixes, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix<A>, NonZeroU32)> {
        self.lengths.iter().zip(0u8..).flat_map(|(routes, len)| {
            routes.pieces.iter().flat_map(move |piece| entries(piece, len))
        })
    }

    /// Continues a walk: calls `each` for some hundred prefixes at most. Returns false at its end.
    /// A prefix that is there from beginning to end is visited at least once; one that comes or
    /// goes meanwhile may be visited or not.
    pub fn sweep(&self, at: &mut Sweep, each: impl FnMut((Prefix<A>, NonZeroU32))) -> bool {
        while let Some(routes) = self.lengths.get(usize::from(at.length)) {
            let number = routes.number(at.hash).filter(|_| routes.len > 0);
            let Some(piece) = number.map(|n| &routes.pieces[n]) else {
                *at = Sweep { length: at.length + 1, hash: 0 };
                continue;
            };
            let length = at.length;
            // Pieces split and merge, but where a hash belongs does not change.
            let next =
                (lead(at.hash, piece.depth) as u64 + 1).checked_shl(64 - u32::from(piece.depth));
            *at = match next.filter(|next| *next > 0) {
                Some(hash) => Sweep { length, hash },
                None => Sweep { length: length + 1, hash: 0 },
            };
            entries(piece, length).for_each(each);
            return true;
        }
        false
    }

    /// Returns the number of prefixes of each length.
    pub fn lengths(&self) -> Vec<usize> {
        self.lengths.iter().map(|routes| routes.len).collect()
    }

    /// Returns the bytes of heap in use.
    pub fn memory(&self) -> usize {
        self.lengths.iter().map(Routes::memory).sum()
    }
}

fn entries<A: Address>(piece: &Piece<A>, len: u8) -> impl Iterator<Item = (Prefix<A>, NonZeroU32)> {
    piece.used().filter_map(move |s| Some((Prefix::of(s.addr, len), NonZeroU32::new(s.value)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prefix::Ipv4Prefix;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn check<A: Address>(map: &PrefixMap<A>) {
        for routes in &map.lengths {
            assert_eq!(routes.len, routes.pieces.iter().map(|p| p.len).sum::<usize>());
            assert_eq!(
                routes.index.len(),
                if routes.pieces.is_empty() { 0 } else { 1 << routes.bits }
            );
            for (i, n) in routes.index.iter().enumerate() {
                let piece = &routes.pieces[*n as usize];
                let width = routes.bits - piece.depth;
                let first = i >> width << width;
                assert!(routes.index[first..first + (1 << width)].iter().all(|m| m == n));
                for slot in piece.used() {
                    let lead = lead(slot.addr.mixed(map.seed), piece.depth);
                    assert_eq!(lead, i >> width);
                }
            }
        }
    }

    /// Few lengths and addresses, so that runs collide, wrap and shrink.
    fn like_a_map<A: Address>(
        ops: &[(u8, u32, u32)],
        prefix: impl Fn(u32) -> Prefix<A>,
    ) -> Result<(), TestCaseError> {
        let mut map = PrefixMap::new();
        let mut model = BTreeMap::new();
        for &(op, n, value) in ops {
            let (prefix, value) = (prefix(n), NonZeroU32::new(value).unwrap());
            if op < 3 {
                let old = map.insert(prefix, value).unwrap();
                prop_assert_eq!(old, model.insert(prefix, value));
            } else {
                prop_assert_eq!(map.remove(prefix), model.remove(&prefix));
            }
            prop_assert_eq!(map.len(), model.len());
            for longest in 0..=A::BITS {
                let covers = |(p, _): &(&Prefix<A>, &NonZeroU32)| {
                    p.len() <= longest && p.contains(prefix.addr())
                };
                let want = model.iter().filter(covers).max_by_key(|(p, _)| p.len());
                let found = map.covering(prefix.addr(), longest);
                prop_assert_eq!(found, want.map(|(p, v)| (*p, *v)));
            }
        }
        check(&map);
        prop_assert_eq!(map.iter().collect::<BTreeMap<_, _>>(), model.clone());
        prop_assert!(model.iter().all(|(&p, &value)| map.get(p) == Some(value)));
        Ok(())
    }

    /// Runs of many addresses come and go, so that pieces split and merge in any order, while a
    /// walk continues: it visits all that stay.
    fn sweeps<A: Address>(
        runs: &[(bool, u32, u32, u8)],
        host: impl Fn(u32) -> Prefix<A>,
    ) -> Result<(), TestCaseError> {
        let mut map = PrefixMap::new();
        let mut model = BTreeMap::new();
        let one = NonZeroU32::MIN;
        (0..3000).for_each(|n| _ = map.insert(host(1 << 31 | n), one).unwrap());
        let mut stay: BTreeSet<_> = map.iter().map(|e| e.0).collect();
        let (mut at, mut seen, mut more) = (Sweep::default(), BTreeSet::new(), true);
        for &(add, from, count, pieces) in runs {
            for n in 0..count {
                let prefix = host(from << 12 | n);
                if add {
                    let value = NonZeroU32::new(n + 1).unwrap();
                    let old = map.insert(prefix, value).unwrap();
                    prop_assert_eq!(old, model.insert(prefix, value));
                } else {
                    prop_assert_eq!(map.remove(prefix), model.remove(&prefix));
                }
            }
            check(&map);
            for _ in 0..pieces {
                more = more && map.sweep(&mut at, |(p, _)| _ = seen.insert(p));
            }
        }
        while more {
            more = map.sweep(&mut at, |(p, _)| _ = seen.insert(p));
        }
        prop_assert!(!map.sweep(&mut at, |_| ()));
        prop_assert_eq!(map.len(), model.len() + stay.len());
        prop_assert!(model.iter().all(|(&p, &value)| map.get(p) == Some(value)));
        stay.retain(|p| !seen.contains(p));
        prop_assert!(stay.is_empty(), "{} not seen", stay.len());
        Ok(())
    }

    proptest! {
        #[test]
        fn behaves_like_a_map(ops in prop::collection::vec((0u8..5, 0u32..64, 1u32..9), 1..200)) {
            like_a_map(&ops, |n| Prefix::of(n << 26 | n, if n % 2 == 0 { 6 } else { 32 }))?;
            let len = |n: u32| [6, 64, 65, 128][n as usize % 4];
            like_a_map(&ops, |n| Prefix::of(u128::from(n) << 122 | u128::from(n), len(n)))?;
        }

        #[test]
        fn splits_merges_and_sweeps(
            runs in prop::collection::vec((any::<bool>(), 0u32..16, 1u32..4000, 0u8..6), 1..8),
        ) {
            sweeps(&runs, Prefix::<u32>::host)?;
            sweeps(&runs, |n| Prefix::<u128>::host(0x2001_0db8 << 96 | u128::from(n)))?;
        }
    }

    #[test]
    fn gives_memory_back() {
        let mut map = PrefixMap::new();
        for n in 0..10_000 {
            map.insert(Ipv4Prefix::host(n), NonZeroU32::new(1).unwrap()).unwrap();
        }
        // Pieces are at most three quarters full, and split in halves no smaller than three
        // eighths.
        let slots = map.lengths[32].pieces.iter().map(|p| p.slots.len()).sum::<usize>();
        assert!((13_334..=28_000).contains(&slots), "{slots}");
        assert!(map.memory() - slots * 8 < 4096, "{}", map.memory());
        (0..10_000).for_each(|n| assert!(map.remove(Ipv4Prefix::host(n)).is_some()));
        assert_eq!(map.len(), 0);
        assert!(map.memory() < 256, "{}", map.memory());
    }
}
