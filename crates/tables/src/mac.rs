//! MAC address tables of bridges: the port of each MAC address.
//!
//! Workers look up two addresses of every bridged packet; the control thread writes what they
//! learn. A lookup reads one cache line, rarely two. An entry is two words: the writer stores the
//! value before the key, and a place is reused only after a grace period, so that a worker that has
//! found a key reads a value of that key.
//!
//! Workers do not write here. They record that an address was seen in a byte of their own
//! ([`Seen`]), once for each time that the control thread has looked.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::hash::{fold, random_seed};
use crate::index::IndexPool;
use crate::paged::MapError;
#[cfg(not(loom))]
use crate::paged::{HUGE_PAGE, PagedTable, Pages};
use crate::prefetch;
use crate::qsbr::{Domain, Tag};
use crate::snapshot::{self, Snapshot};
use crate::sync::{AtomicU64, Ordering};

/// Places in a bucket, which is a cache line.
const WAYS: usize = 4;
/// Buckets of a fresh table: 16 KiB.
const FIRST_BUCKETS: usize = if cfg!(loom) { 1 } else { 256 };
/// Minimum size in bytes of a table in huge pages.
#[cfg(not(loom))]
const LARGE: usize = 1 << 18;
const INDEX_BITS: u32 = 24;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;
/// Set in the value of every entry, so that none is zero.
const USED: u64 = 1 << 31;
const FILTER: u64 = 1 << 30;
const STAYS: u64 = 1 << 29;

/// Treatment of frames to an address, and of those from it that come by another port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MacKind {
    /// The address moves to the port where it is seen.
    Moves,
    /// The address stays on its port.
    Stays,
    /// Frames from it and to it are dropped.
    Filter,
}

impl MacKind {
    fn bits(self) -> u64 {
        match self {
            MacKind::Moves => 0,
            MacKind::Stays => STAYS,
            MacKind::Filter => STAYS | FILTER,
        }
    }
}

/// A MAC address in a bridge domain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MacKey(u64);

/// Bits of a [`MacKey`] that the address takes.
const MAC_BITS: u64 = (1 << 48) - 1;

impl MacKey {
    /// Creates the key of an address in domain `bridge`, a number from 1 on.
    #[inline(always)]
    pub fn new(bridge: u16, mac: [u8; 6]) -> MacKey {
        let [a, b, c, d, e, f] = mac;
        MacKey(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]) | u64::from(bridge) << 48)
    }
    /// Returns the keys of destination and source of a frame that begins with these bytes.
    #[inline(always)]
    pub fn pair(bridge: u16, header: &[u8; 12]) -> (MacKey, MacKey) {
        // Eight bytes at once: byte by byte, the compiler gathers them by vectors, which takes
        // longer.
        let (&[to @ .., _, _, _, _], &[_, _, _, _, from @ ..]) = (header, header);
        let bridge = u64::from(bridge) << 48;
        let to = u64::from_le_bytes(to) & MAC_BITS;
        let from = u64::from_le_bytes(from) >> 16;
        (MacKey(to | bridge), MacKey(from | bridge))
    }
    /// Returns the domain's number.
    pub fn bridge(self) -> u16 {
        (self.0 >> 48) as u16
    }
    /// Returns the MAC address.
    pub fn mac(self) -> [u8; 6] {
        let [a, b, c, d, e, f, ..] = self.0.to_le_bytes();
        [a, b, c, d, e, f]
    }
    /// Returns true for a multicast (or broadcast) address.
    #[inline(always)]
    pub fn is_multicast(self) -> bool {
        self.0 & 1 != 0
    }
}

/// The entry of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MacValue(u64);

impl MacValue {
    /// Returns the port.
    #[inline(always)]
    pub fn port(self) -> u32 {
        (self.0 >> 32) as u32
    }
    /// Returns true if frames to the address are dropped.
    #[inline(always)]
    pub fn is_filter(self) -> bool {
        self.0 & FILTER != 0
    }
    /// Returns true if the address does not move to another port.
    #[inline(always)]
    pub fn stays(self) -> bool {
        self.0 & STAYS != 0
    }
    /// Returns port and filter: equal for all addresses whose frames are forwarded alike.
    #[inline(always)]
    pub fn output(self) -> u64 {
        self.0 >> FILTER.trailing_zeros()
    }
    /// Returns the entry's number, for [`Seen`].
    #[inline(always)]
    pub fn entry(self) -> u32 {
        (self.0 & INDEX_MASK) as u32
    }
    /// Returns the word that the table holds.
    pub fn word(self) -> u64 {
        self.0
    }
}

/// The hash of a key.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct MacHash(u64);

impl MacHash {
    /// Returns the hash as a number.
    #[inline]
    pub fn number(self) -> u64 {
        self.0
    }
}

/// Four keys with their values: key, value, key, value …
#[repr(align(64))]
#[derive(Debug)]
pub struct Bucket([AtomicU64; 2 * WAYS]);

// SAFETY: plain atomics, for which zero is a value.
#[cfg(not(loom))]
unsafe impl crate::paged::AllZeroValid for Bucket {}

/// The table as workers see it, valid as long as a guard.
#[derive(Debug)]
pub struct MacBuckets {
    #[cfg(not(loom))]
    buckets: PagedTable<Bucket>,
    #[cfg(loom)]
    buckets: Vec<Bucket>,
    mask: u64,
    seeds: [u64; 2],
}

impl MacBuckets {
    #[cfg(not(loom))]
    fn new(buckets: usize, seeds: [u64; 2]) -> Result<Self, MapError> {
        let mask = buckets as u64 - 1;
        // A larger one has at least a huge page: it takes more small ones than the TLB holds.
        let (room, pages) = match buckets * size_of::<Bucket>() {
            LARGE.. => (buckets.max(HUGE_PAGE / size_of::<Bucket>()), Pages::Huge),
            _ => (buckets, Pages::Normal),
        };
        let table = PagedTable::with_pages(room, pages)?;
        // Keys may come anywhere, and workers look everywhere.
        table.make_ready(0..buckets);
        Ok(MacBuckets { buckets: table, mask, seeds })
    }
    #[cfg(loom)]
    fn new(buckets: usize, seeds: [u64; 2]) -> Result<Self, MapError> {
        let of = |_| Bucket(std::array::from_fn(|_| AtomicU64::new(0)));
        let mask = buckets as u64 - 1;
        Ok(MacBuckets { buckets: (0..buckets).map(of).collect(), mask, seeds })
    }

    #[inline(always)]
    fn bucket(&self, number: u64) -> &[AtomicU64; 2 * WAYS] {
        // The mask keeps the index below their number, a power of two.
        #[cfg(not(loom))]
        // SAFETY: there are `mask + 1` buckets.
        unsafe {
            &self.buckets.get_unchecked((number & self.mask) as usize).0
        }
        #[cfg(loom)]
        &self.buckets[(number & self.mask) as usize].0
    }
    #[inline(always)]
    fn places(hash: MacHash) -> [u64; 2] {
        [hash.0, hash.0 >> 32]
    }

    /// Returns the hash of a key.
    #[inline(always)]
    pub fn hash(&self, key: MacKey) -> MacHash {
        MacHash(fold(key.0 ^ self.seeds[0], self.seeds[1]))
    }
    /// Prefetches the cache line where the key most likely is.
    #[inline(always)]
    pub fn prefetch(&self, hash: MacHash) {
        prefetch::for_read(self.bucket(Self::places(hash)[0]));
    }
    /// Returns the entry of an address. `hash` is the key's own.
    #[inline(always)]
    pub fn find(&self, key: MacKey, hash: MacHash) -> Option<MacValue> {
        let [first, second] = Self::places(hash);
        let mut found = Self::find_in(self.bucket(first), key);
        if found == 0 {
            found = Self::find_in(self.bucket(second), key);
        }
        (found != 0).then_some(MacValue(found))
    }
    /// Looks up many keys, prefetching each one's cache line some keys ahead: no more than needed
    /// to hide its latency, as the nearest cache has other things to keep.
    #[inline(always)]
    pub fn find_each(
        &self,
        keys: &[MacKey],
        mut each: impl FnMut(usize, MacKey, Option<MacValue>),
    ) {
        const AHEAD: usize = 16;
        let mut hashes = [MacHash::default(); 2 * AHEAD];
        let ask = |hashes: &mut [MacHash; 2 * AHEAD], i: usize| {
            if let Some(key) = keys.get(i) {
                let hash = self.hash(*key);
                self.prefetch(hash);
                hashes[i % (2 * AHEAD)] = hash;
            }
        };
        (0..AHEAD).for_each(|i| ask(&mut hashes, i));
        for (i, key) in keys.iter().enumerate() {
            ask(&mut hashes, i + AHEAD);
            each(i, *key, self.find(*key, hashes[i % (2 * AHEAD)]));
        }
    }
    /// Returns the key's value, or 0. All keys are compared: in which place it is cannot be
    /// predicted, and a mispredicted branch costs more than the line's other words. A key that
    /// moves from one place to another meanwhile is found in both, with two values: either will do.
    #[inline(always)]
    fn find_in(bucket: &[AtomicU64; 2 * WAYS], key: MacKey) -> u64 {
        let mut places = 0u32;
        for way in 0..WAYS {
            let is = bucket[2 * way].load(Ordering::Acquire) == key.0;
            places |= u32::from(is) << (2 * way);
        }
        if places == 0 {
            return 0;
        }
        bucket[(places.trailing_zeros() as usize | 1) % (2 * WAYS)].load(Ordering::Acquire)
    }
}

/// Addresses that one worker has seen since the control thread looked last: a byte for each entry.
#[cfg(not(loom))]
#[derive(Debug)]
pub struct Seen {
    bytes: PagedTable<std::sync::atomic::AtomicU8>,
    /// Bytes of entries below this have memory. Used by the control thread.
    ready: std::sync::atomic::AtomicU32,
}

/// Number of entries whose bytes are prepared together.
#[cfg(not(loom))]
const READY: u32 = 1 << 15;

#[cfg(not(loom))]
impl Seen {
    /// Creates an empty record for entries numbered below `limit`.
    ///
    /// # Errors
    /// [`MapError`] if the kernel refuses.
    pub fn new(limit: u32) -> Result<Seen, MapError> {
        let bytes = PagedTable::new(limit as usize)?;
        Ok(Seen { bytes, ready: std::sync::atomic::AtomicU32::new(0) })
    }
    /// Prepares memory for entries below `upto` and some more, so that the worker does not wait for
    /// it. To be called by the control thread.
    pub fn make_ready(&self, upto: u32) {
        use std::sync::atomic::Ordering::Relaxed;
        let ready = self.ready.load(Relaxed);
        if upto > 0 && upto.saturating_add(READY / 2) > ready {
            let more = upto.saturating_add(READY);
            self.bytes.make_ready(ready as usize..more as usize);
            self.ready.store(more, Relaxed);
        }
    }
    /// Records that an entry was seen. To be called by the one worker.
    #[inline(always)]
    pub fn note(&self, entry: u32) {
        use std::sync::atomic::Ordering::Relaxed;
        if let Some(byte) = self.bytes.get(entry)
            && byte.load(Relaxed) == 0
        {
            byte.store(1, Relaxed);
        }
    }
    /// Returns true if an entry was seen since the last call, and clears it. To be called by the
    /// control thread.
    pub fn take(&self, entry: u32) -> bool {
        use std::sync::atomic::Ordering::Relaxed;
        match self.bytes.get(entry) {
            Some(byte) if byte.load(Relaxed) != 0 => {
                byte.store(0, Relaxed);
                true
            }
            _ => false,
        }
    }
}

/// Error of adding an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MacError {
    /// The table holds its maximum number of addresses.
    #[error("MAC address table full: the limit is {limit} entries")]
    Full {
        /// Maximum number of entries.
        limit: u32,
    },
    /// The kernel refused memory.
    #[error(transparent)]
    Map(#[from] MapError),
}

/// The control thread's side of the table. The table grows as addresses come, and never shrinks.
pub struct MacTable {
    writer: snapshot::Writer<MacBuckets>,
    shared: Arc<Snapshot<MacBuckets>>,
    /// The key of each entry, by number; 0: none.
    keys: Vec<u64>,
    numbers: IndexPool,
    limit: u32,
    live: u32,
    /// Places whose keys were removed, to be reused after a grace period: bucket, place.
    waiting: VecDeque<(Tag, u64, usize)>,
}

impl MacTable {
    /// Creates an empty table for up to `limit` addresses (at most 2²⁴).
    ///
    /// # Errors
    /// [`MapError`] if the kernel refuses.
    pub fn new(limit: u32) -> Result<MacTable, MapError> {
        let limit = limit.min(1 << INDEX_BITS);
        let first = MacBuckets::new(FIRST_BUCKETS, [random_seed(), random_seed() | 1])?;
        let (writer, shared) = snapshot::channel(first);
        let (keys, waiting) = (Vec::new(), VecDeque::new());
        Ok(MacTable {
            writer,
            shared,
            keys,
            numbers: IndexPool::new(limit),
            limit,
            live: 0,
            waiting,
        })
    }

    /// Returns the workers' side.
    pub fn shared(&self) -> Arc<Snapshot<MacBuckets>> {
        Arc::clone(&self.shared)
    }
    /// Returns the number of addresses.
    pub fn len(&self) -> u32 {
        self.live
    }
    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }
    /// Returns the maximum number of addresses.
    pub fn limit(&self) -> u32 {
        self.limit
    }
    /// Returns the limit of the numbers of entries.
    pub fn numbers(&self) -> u32 {
        self.keys.len() as u32
    }
    /// Returns the key of an entry, if the number is in use.
    pub fn key(&self, entry: u32) -> Option<MacKey> {
        self.keys.get(entry as usize).filter(|k| **k != 0).map(|k| MacKey(*k))
    }
    /// Returns the entry of an address.
    pub fn get(&self, key: MacKey) -> Option<MacValue> {
        let table = self.writer.get();
        table.find(key, table.hash(key))
    }

    /// Adds an address, or moves it to another port. Returns its entry's number.
    ///
    /// # Errors
    /// [`MacError`], and nothing is changed.
    pub fn set(
        &mut self,
        domain: &Domain,
        key: MacKey,
        port: u32,
        kind: MacKind,
    ) -> Result<u32, MacError> {
        let word = |number: u32| u64::from(port) << 32 | USED | kind.bits() | u64::from(number);
        if let Some((at, way)) = self.place_of(key) {
            let slot = &self.writer.get().bucket(at)[2 * way + 1];
            let number = MacValue(slot.load(Ordering::Relaxed)).entry();
            slot.store(word(number), Ordering::Release);
            return Ok(number);
        }
        self.reclaim(domain);
        let full = MacError::Full { limit: self.limit };
        let number = self.numbers.alloc(domain).map_err(|_| full)?;
        while !Self::put(self.writer.get(), key, word(number)) {
            if let Err(e) = self.grow(domain) {
                let _ = self.numbers.free_unused(number);
                return Err(e.into());
            }
        }
        if self.keys.len() <= number as usize {
            self.keys.resize(number as usize + 1, 0);
        }
        self.keys[number as usize] = key.0;
        self.live += 1;
        Ok(number)
    }

    /// Removes an address; returns false if it was not known.
    pub fn remove(&mut self, domain: &Domain, key: MacKey) -> bool {
        let Some((at, way)) = self.place_of(key) else { return false };
        let bucket = self.writer.get().bucket(at);
        let number = MacValue(bucket[2 * way + 1].load(Ordering::Relaxed)).entry();
        bucket[2 * way].store(0, Ordering::Release);
        let tag = domain.tag();
        self.waiting.push_back((tag, at, way));
        self.keys[number as usize] = 0;
        let _ = self.numbers.free_after(number, tag);
        self.live -= 1;
        true
    }

    fn place_of(&self, key: MacKey) -> Option<(u64, usize)> {
        let table = self.writer.get();
        let places = MacBuckets::places(table.hash(key));
        places.into_iter().find_map(|at| {
            let bucket = table.bucket(at);
            let way = (0..WAYS).find(|w| bucket[2 * w].load(Ordering::Relaxed) == key.0)?;
            Some((at, way))
        })
    }

    /// Returns a free place. A place is free once its value is zero: the key is cleared first, the
    /// value after a grace period.
    fn free_way(bucket: &[AtomicU64; 2 * WAYS]) -> Option<usize> {
        (0..WAYS).find(|w| bucket[2 * w + 1].load(Ordering::Relaxed) == 0)
    }

    fn store(bucket: &[AtomicU64; 2 * WAYS], way: usize, key: u64, value: u64) {
        bucket[2 * way + 1].store(value, Ordering::Release);
        bucket[2 * way].store(key, Ordering::Release);
    }

    /// Puts a new key into a place. If both of its buckets are full the table grows, which happens
    /// when a third of it is in use: short searches are worth more than memory here.
    fn put(table: &MacBuckets, key: MacKey, value: u64) -> bool {
        MacBuckets::places(table.hash(key)).into_iter().any(|at| {
            let bucket = table.bucket(at);
            let way = Self::free_way(bucket);
            way.map(|way| Self::store(bucket, way, key.0, value)).is_some()
        })
    }

    /// Doubles the number of buckets.
    fn grow(&mut self, domain: &Domain) -> Result<(), MapError> {
        let old = self.writer.get();
        let mut buckets = (old.mask as usize + 1) * 2;
        let new = loop {
            let new = MacBuckets::new(buckets, old.seeds)?;
            if self.copy_to(&new) {
                break new;
            }
            buckets *= 2;
        };
        // The old table's places are gone.
        self.waiting.clear();
        self.writer.publish(domain, new);
        Ok(())
    }

    fn copy_to(&self, new: &MacBuckets) -> bool {
        self.keys.iter().filter(|k| **k != 0).all(|key| {
            let key = MacKey(*key);
            self.get(key).is_none_or(|value| Self::put(new, key, value.0))
        })
    }

    fn reclaim(&mut self, domain: &Domain) {
        while let Some((tag, at, way)) = self.waiting.front().copied()
            && domain.passed(tag)
        {
            self.waiting.pop_front();
            self.writer.get().bucket(at)[2 * way + 1].store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::qsbr::Reader;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn key(n: u32) -> MacKey {
        let [a, b, c, d] = n.to_be_bytes();
        MacKey::new(1 + (n % 3) as u16, [2, 0, a, b, c, d])
    }

    fn find(
        table: &Arc<Snapshot<MacBuckets>>,
        reader: &mut Reader,
        key: MacKey,
    ) -> Option<MacValue> {
        let guard = reader.enter();
        let table = table.load(&guard);
        table.find(key, table.hash(key))
    }

    #[test]
    fn many_are_found_as_one_by_one() {
        let domain = Domain::new();
        let mut macs = MacTable::new(100_000).unwrap();
        let mut reader = domain.register().unwrap();
        // Small, and in a huge page.
        for upto in [500, 20_000] {
            for n in (0..upto).step_by(2) {
                let kind = if n % 7 == 0 { MacKind::Filter } else { MacKind::Moves };
                macs.set(&domain, key(n), n, kind).unwrap();
            }
            let guard = reader.enter();
            let shared = macs.shared();
            let table = shared.load(&guard);
            for count in [0, 1, 15, 16, 17, 33, 256] {
                let keys: Vec<MacKey> = (0..count).map(|n| key(n * 61 % upto)).collect();
                let mut found = Vec::new();
                table.find_each(&keys, |i, key, value| found.push((i, key, value)));
                let expected: Vec<_> = keys
                    .iter()
                    .enumerate()
                    .map(|(i, key)| (i, *key, table.find(*key, table.hash(*key))))
                    .collect();
                assert_eq!(found, expected);
                assert!(count < 2 || found.iter().any(|(.., value)| value.is_some()));
            }
        }
    }

    #[test]
    fn a_key_is_made_from_a_frames_first_bytes() {
        let header = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        let (to, from) = MacKey::pair(9, &header);
        assert_eq!(
            (to, from),
            (MacKey::new(9, [1, 2, 3, 4, 5, 6]), MacKey::new(9, [7, 8, 9, 10, 11, 12]))
        );
        assert_eq!((to.mac(), to.bridge(), to.is_multicast()), ([1, 2, 3, 4, 5, 6], 9, true));
        assert_eq!(from.mac(), [7, 8, 9, 10, 11, 12]);
        assert_eq!(size_of::<Bucket>(), 64);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// A worker finds what the model has, whatever is set, moved and removed.
        #[test]
        fn agrees_with_a_map(ops in prop::collection::vec((0u32..400, 0u32..5, 0usize..3, 0u8..4), 1..1500)) {
            let domain = Domain::new();
            let mut reader = domain.register().unwrap();
            let mut table = MacTable::new(300).unwrap();
            let shared = table.shared();
            let kinds = [MacKind::Moves, MacKind::Stays, MacKind::Filter];
            let seen = |v: MacValue| (v.port(), v.stays(), v.is_filter());
            let mut model: BTreeMap<u32, (u32, bool, bool)> = BTreeMap::new();
            for (n, port, kind, what) in ops {
                let (stays, filter) = (kind > 0, kind > 1);
                let kind = kinds[kind];
                if what == 0 {
                    prop_assert_eq!(table.remove(&domain, key(n)), model.remove(&n).is_some());
                } else {
                    match table.set(&domain, key(n), port, kind) {
                        Ok(entry) => {
                            prop_assert_eq!(table.key(entry), Some(key(n)));
                            model.insert(n, (port, stays, filter));
                        }
                        // Numbers wait for their grace period, which the next call brings about.
                        Err(MacError::Full { limit }) => prop_assert!(!model.contains_key(&n) && limit == 300),
                        Err(e) => prop_assert!(false, "{}", e),
                    }
                }
                let found = find(&shared, &mut reader, key(n)).map(seen);
                prop_assert_eq!(found, model.get(&n).copied());
            }
            prop_assert_eq!(table.len() as usize, model.len());
            for n in 0..400 {
                let found = find(&shared, &mut reader, key(n)).map(seen);
                prop_assert_eq!(found, model.get(&n).copied());
            }
            prop_assert!((0..table.numbers()).filter_map(|e| table.key(e)).count() == model.len());
        }
    }

    #[test]
    fn grows_to_its_limit_and_says_no() {
        let domain = Domain::new();
        let mut reader = domain.register().unwrap();
        let mut table = MacTable::new(20_000).unwrap();
        let shared = table.shared();
        for n in 0..20_000 {
            table.set(&domain, key(n), n, MacKind::Moves).unwrap();
        }
        let refused = table.set(&domain, key(20_000), 1, MacKind::Moves);
        assert_eq!(refused, Err(MacError::Full { limit: 20_000 }));
        assert!(
            table.set(&domain, key(7), 9, MacKind::Filter).is_ok(),
            "an existing one may change"
        );
        for n in (0..20_000).filter(|n| *n != 7) {
            assert_eq!(find(&shared, &mut reader, key(n)).map(MacValue::port), Some(n));
        }
        assert!(find(&shared, &mut reader, key(7)).unwrap().is_filter());
    }

    #[test]
    fn a_worker_sees_once_for_each_look() {
        let seen = Seen::new(10).unwrap();
        assert!(!seen.take(3));
        seen.note(3);
        seen.note(3);
        seen.note(10_000);
        assert!(seen.take(3) && !seen.take(3) && !seen.take(10_000));
    }

    /// A key that was removed and added again in another place during a lookup.
    #[test]
    fn two_values_of_a_key_do_not_mix() {
        let bucket = [7, 1, 0, 5, 7, 2, 9, 4].map(AtomicU64::new);
        assert!([1, 2].contains(&MacBuckets::find_in(&bucket, MacKey(7))));
        assert_eq!(MacBuckets::find_in(&bucket, MacKey(9)), 4);
        assert_eq!(MacBuckets::find_in(&bucket, MacKey(8)), 0);
    }

    /// A reader never finds another key's value for a key.
    #[test]
    fn values_belong_to_their_keys_under_churn() {
        use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
        use std::time::{Duration, Instant};
        let domain = Domain::new();
        let mut table = MacTable::new(4096).unwrap();
        let shared = table.shared();
        let stop = Arc::new(AtomicBool::new(false));
        let has_looked = Arc::new(AtomicBool::new(false));
        let mut reader = domain.register().unwrap();
        let worker = {
            let (stop, looked) = (Arc::clone(&stop), Arc::clone(&has_looked));
            std::thread::spawn(move || {
                let mut found = 0u64;
                while !stop.load(Relaxed) {
                    let guard = reader.enter();
                    let table = shared.load(&guard);
                    for n in 0..600 {
                        if let Some(v) = table.find(key(n), table.hash(key(n))) {
                            assert_eq!(v.port() % 600, n);
                            found += 1;
                        }
                    }
                    looked.store(found > 0, Relaxed);
                }
                found
            })
        };
        const LIMIT: Duration = Duration::from_secs(60);
        let until = Instant::now() + Duration::from_millis(300);
        let mut n = 0u32;
        // On a busy machine the worker may not have run yet.
        while Instant::now() < until || !has_looked.load(Relaxed) {
            assert!(Instant::now() < until + LIMIT, "the worker finds nothing");
            n += 1;
            let which = n.wrapping_mul(0x9e37_79b9) >> 8;
            let _ =
                table.set(&domain, key(which % 600), which % 600 + 600 * (n % 3), MacKind::Moves);
            table.remove(&domain, key((which >> 3) % 600));
        }
        stop.store(true, Relaxed);
        assert!(worker.join().unwrap() > 0);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;

    /// A key that is removed and added again with another port, in another place.
    #[test]
    fn a_key_that_moves_has_one_of_its_values() {
        loom::model(|| {
            let domain = Domain::new();
            let mut table = MacTable::new(2).unwrap();
            let key = MacKey::new(1, [2; 6]);
            table.set(&domain, key, 1, MacKind::Moves).unwrap();
            let (shared, mut reader) = (table.shared(), domain.register().unwrap());
            let worker = loom::thread::spawn(move || {
                let guard = reader.enter();
                let table = shared.load(&guard);
                let found = table.find(key, table.hash(key)).map(MacValue::port);
                assert!(matches!(found, None | Some(1 | 2)), "{found:?}");
            });
            table.remove(&domain, key);
            table.set(&domain, key, 2, MacKind::Moves).unwrap();
            worker.join().unwrap();
        });
    }

    /// Two keys that take the same place in turn.
    #[test]
    fn a_value_is_of_the_key_before_it() {
        loom::model(|| {
            let domain = Domain::new();
            let mut table = MacTable::new(2).unwrap();
            let (one, two) = (MacKey::new(1, [2; 6]), MacKey::new(1, [4; 6]));
            table.set(&domain, one, 1, MacKind::Moves).unwrap();
            let (shared, mut reader) = (table.shared(), domain.register().unwrap());
            let worker = loom::thread::spawn(move || {
                for _ in 0..2 {
                    let guard = reader.enter();
                    let table = shared.load(&guard);
                    let port = |key| table.find(key, table.hash(key)).map(MacValue::port);
                    assert!(matches!(port(one), None | Some(1)));
                    assert!(matches!(port(two), None | Some(2)));
                }
            });
            table.remove(&domain, one);
            table.set(&domain, two, 2, MacKind::Moves).unwrap();
            worker.join().unwrap();
        });
    }
}
