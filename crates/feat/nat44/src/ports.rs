//! Free ports of an address: a bitmap with a summary bit per word.

/// Ports below this are never assigned.
pub const FIRST: u16 = 1024;

/// Number of words searched for a port of the right parity.
const NEAR: usize = 8;

/// Port assignment algorithm: the ports of an address that may be assigned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scheme {
    /// All from [`FIRST`] on.
    #[default]
    All,
    /// Ports from the first to the last.
    Range(u16, u16),
    /// The ports of a MAP-E port set: those with the same PSID after the first `offset` bits, which
    /// are not all zero. Several translators can share an address this way (RFC 7597 section 5.1).
    MapE {
        /// Port set id.
        psid: u16,
        /// Number of bits before the PSID.
        offset: u8,
        /// Length of the PSID in bits.
        length: u8,
    },
}

impl Scheme {
    /// A range of ports.
    ///
    /// # Errors
    /// A description of the error.
    pub fn range(first: u16, last: u16) -> Result<Scheme, String> {
        match () {
            () if first > last => Err(format!("the last port {last} is below the first, {first}")),
            () if first < FIRST => Err(format!("ports below {FIRST} are never assigned")),
            () => Ok(Scheme::Range(first, last)),
        }
    }

    /// A MAP-E port set.
    ///
    /// # Errors
    /// A description of the error.
    pub fn map_e(psid: u16, offset: u8, length: u8) -> Result<Scheme, String> {
        if offset > 6 {
            // With a larger offset, ports would begin below FIRST.
            return Err(format!("psid-offset must be 0 to 6, not {offset}"));
        }
        if length == 0 || length > 15 - offset {
            let text = format!("psid-len must be 1 to {} with psid-offset {offset}", 15 - offset);
            return Err(format!("{text}, not {length}"));
        }
        if u32::from(psid) >> length != 0 {
            return Err(format!("psid {psid} has more than psid-len {length} bits"));
        }
        let scheme = Scheme::MapE { psid, offset, length };
        if scheme.port(0) < FIRST {
            let text = format!("the ports of psid {psid} begin at {}", scheme.port(0));
            return Err(format!("{text}, and ports below {FIRST} are never assigned"));
        }
        Ok(scheme)
    }

    /// Number of ports.
    pub fn count(&self) -> u32 {
        match *self {
            Scheme::All => 65_536 - u32::from(FIRST),
            Scheme::Range(first, last) => u32::from(last - first) + 1,
            Scheme::MapE { offset, length, .. } => {
                let blocks = if offset == 0 { 1 } else { (1 << offset) - 1 };
                blocks << (16 - offset - length)
            }
        }
    }

    /// The port with an index below [`count`](Self::count).
    #[inline]
    pub fn port(&self, at: u32) -> u16 {
        match *self {
            Scheme::All => FIRST + at as u16,
            Scheme::Range(first, _) => first + at as u16,
            Scheme::MapE { psid, offset, length } => {
                let low = 16 - offset - length;
                let block = (at >> low) + u32::from(offset > 0);
                let block = if offset == 0 { 0 } else { block << (16 - offset) };
                (block | u32::from(psid) << low | at & ((1 << low) - 1)) as u16
            }
        }
    }

    /// The index of a port, if it may be assigned.
    #[inline]
    pub fn index(&self, port: u16) -> Option<u32> {
        match *self {
            Scheme::All => port.checked_sub(FIRST).map(u32::from),
            Scheme::Range(first, last) => {
                (port <= last).then_some(u32::from(port.checked_sub(first)?))
            }
            Scheme::MapE { psid, offset, length } => {
                let low = 16 - offset - length;
                let port = u32::from(port);
                let block = if offset == 0 { 0 } else { (port >> (16 - offset)).checked_sub(1)? };
                let mine = port >> low & ((1 << length) - 1) == u32::from(psid);
                mine.then_some(block << low | port & ((1 << low) - 1))
            }
        }
    }

    /// A worker's share of the ports: first index and number.
    pub fn share(&self, worker: usize, workers: usize) -> (u32, u32) {
        let (all, workers) = (self.count(), workers.max(1) as u32);
        let (each, worker) = (all / workers, worker as u32);
        let count = if worker + 1 == workers { all - each * worker } else { each };
        (each * worker, count)
    }

    /// The worker, of `workers`, that assigns a port.
    #[inline]
    pub fn owner(&self, port: u16, workers: usize) -> Option<usize> {
        let at = self.index(port)? as usize;
        let each = self.count() as usize / workers.max(1);
        // With fewer ports than workers, the last one has them all.
        let owner = at.checked_div(each).unwrap_or(usize::MAX);
        Some(owner.min(workers.saturating_sub(1)))
    }
}

/// A worker's share of the ports of one address and protocol.
#[derive(Debug)]
pub struct Ports {
    scheme: Scheme,
    first: u32,
    free: Box<[u64]>,
    /// A bit for each word of `free` that has a free port.
    words: Box<[u64]>,
    left: u32,
    count: u32,
    /// Reserved ports in ascending order, and whether an earlier session still uses them.
    kept: Vec<(u16, bool)>,
}

impl Ports {
    /// A share of the ports, all free.
    pub fn new(scheme: Scheme, (first, count): (u32, u32)) -> Ports {
        let full = |bits: u32| {
            let whole = (0..bits / 64).map(|_| u64::MAX);
            let rest = (!bits.is_multiple_of(64)).then(|| (1 << (bits % 64)) - 1);
            whole.chain(rest).collect::<Box<[u64]>>()
        };
        let free = full(count);
        let words = full(free.len() as u32);
        Ports { scheme, first, free, words, left: count, count, kept: Vec::new() }
    }

    /// Number of free ports.
    pub fn left(&self) -> u32 {
        self.left
    }

    /// Number of ports.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Number of reserved ports that no session uses.
    pub fn kept(&self) -> u32 {
        self.kept.iter().filter(|k| !k.1).count() as u32
    }

    /// Takes a port at random (RFC 6056), where `random` is the random number. If possible nearby,
    /// the port has the parity of `like` (RFC 4787 REQ-4).
    pub fn take(&mut self, random: u64, like: Option<u16>) -> Option<u16> {
        if self.left == 0 {
            return None;
        }
        let start = ((random >> 32) * u64::from(self.count)) >> 32;
        let mut word = self.word_from((start / 64) as usize)?;
        let mut bits = self.free[word];
        if let Some(like) = like {
            let odd = (like ^ self.scheme.port(self.first)) & 1;
            let alike = 0x5555_5555_5555_5555 << odd;
            let (first, mut at) = (word, word);
            for _ in 0..NEAR {
                if self.free[at] & alike != 0 {
                    (word, bits) = (at, self.free[at] & alike);
                    break;
                }
                at = self.word_from((at + 1) % self.free.len())?;
                if at == first {
                    break;
                }
            }
        }
        // Search from a random bit on, wrapping around.
        let turn = (random & 63) as u32;
        let bit = (bits.rotate_right(turn).trailing_zeros() + turn) % 64;
        let at = word as u32 * 64 + bit;
        self.mark(at);
        Some(self.scheme.port(self.first + at))
    }

    /// A word with a free port, from `start` on, wrapping around.
    fn word_from(&self, start: usize) -> Option<usize> {
        let n = self.words.len();
        let from = start / 64;
        let beyond = self.words[from] & (u64::MAX << (start % 64));
        if beyond != 0 {
            return Some(from * 64 + beyond.trailing_zeros() as usize);
        }
        let others = (1..=n).map(|i| (from + i) % n);
        others
            .filter(|w| self.words[*w] != 0)
            .map(|w| w * 64 + self.words[w].trailing_zeros() as usize)
            .next()
    }

    fn mark(&mut self, at: u32) {
        let (word, bit) = (at as usize / 64, at % 64);
        self.free[word] &= !(1 << bit);
        if self.free[word] == 0 {
            self.words[word / 64] &= !(1 << (word % 64));
        }
        self.left -= 1;
    }

    fn at(&self, port: u16) -> Option<u32> {
        let at = self.scheme.index(port)?.checked_sub(self.first)?;
        (at < self.count).then_some(at)
    }

    /// Takes this port. Returns false if it is not free, or not in this share.
    pub fn take_this(&mut self, port: u16) -> bool {
        let Some(at) = self.at(port) else { return false };
        let is_free = self.free[at as usize / 64] >> (at % 64) & 1 == 1;
        if is_free {
            self.mark(at);
        }
        is_free
    }

    /// Reserves a port. A session that uses it can still return it once.
    pub fn keep(&mut self, port: u16) {
        if self.at(port).is_some()
            && let Err(at) = self.find_kept(port)
        {
            let in_use = !self.take_this(port);
            self.kept.insert(at, (port, in_use));
        }
    }

    /// Index of a reserved port, or where it would be inserted.
    fn find_kept(&self, port: u16) -> Result<usize, usize> {
        self.kept.binary_search_by_key(&port, |k| k.0)
    }

    /// Releases a port reserved by [`keep`](Self::keep).
    pub fn release(&mut self, port: u16) {
        if let Ok(i) = self.find_kept(port)
            && !self.kept.remove(i).1
        {
            self.give_back(port);
        }
    }

    /// Returns a port. Has no effect if it is free already, or not in this share.
    pub fn give_back(&mut self, port: u16) {
        if let Ok(i) = self.find_kept(port) {
            self.kept[i].1 = false;
            return;
        }
        let Some(at) = self.at(port) else { return };
        let (word, bit) = (at as usize / 64, at % 64);
        if self.free[word] >> bit & 1 == 0 {
            self.free[word] |= 1 << bit;
            self.words[word / 64] |= 1 << (word % 64);
            self.left += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};
    use thalweg_tables::hash::mix64;

    const SCHEMES: [Scheme; 6] = [
        Scheme::All,
        Scheme::Range(2000, 2999),
        Scheme::Range(65_533, 65_535),
        Scheme::MapE { psid: 10, offset: 6, length: 6 },
        Scheme::MapE { psid: 3, offset: 0, length: 3 },
        Scheme::MapE { psid: 0, offset: 4, length: 8 },
    ];

    #[test]
    fn every_port_has_one_owner() {
        for scheme in SCHEMES {
            let all: Vec<u16> = (0..scheme.count()).map(|at| scheme.port(at)).collect();
            assert!(all.is_sorted() && all[0] >= FIRST, "{scheme:?}");
            for workers in 1..=9 {
                let mut next = 0;
                for worker in 0..workers {
                    let (first, count) = scheme.share(worker, workers);
                    assert_eq!(first, next, "{worker} of {workers}");
                    for at in next..next + count {
                        let port = scheme.port(at);
                        assert_eq!(scheme.index(port), Some(at), "{scheme:?} {port}");
                        let owner = scheme.owner(port, workers);
                        assert_eq!(owner, Some(worker), "{scheme:?} {port} of {workers}");
                    }
                    next += count;
                }
                assert_eq!(next, scheme.count());
                assert_eq!(scheme.owner(1023, workers), None);
            }
            let others = (0..=u16::MAX).filter(|port| all.binary_search(port).is_err());
            others.for_each(|port| assert_eq!(scheme.index(port), None, "{scheme:?} {port}"));
        }
    }

    /// The example of RFC 7597 section 5.1, with a sharing ratio of 256.
    #[test]
    fn port_sets_are_those_of_map_e() {
        let scheme = Scheme::map_e(0x34, 6, 8).unwrap();
        assert_eq!((scheme.count(), scheme.port(0), scheme.port(3)), (252, 0x04d0, 0x04d3));
        assert_eq!((scheme.port(4), scheme.port(251)), (0x08d0, 0xfcd3));
        assert_eq!(Scheme::map_e(10, 6, 6).map(|s| s.count()), Ok(63 * 16));
        for (psid, offset, length) in [(0, 7, 4), (0, 6, 10), (0, 4, 0), (16, 4, 4), (0, 0, 3)] {
            let refused = Scheme::map_e(psid, offset, length);
            assert!(refused.is_err(), "{psid} {offset} {length}: {refused:?}");
        }
        assert!(Scheme::range(2000, 1999).is_err() && Scheme::range(1023, 1999).is_err());
        assert_eq!(Scheme::range(1024, 1024).map(|s| s.count()), Ok(1));
    }

    #[test]
    fn all_ports_are_assigned_once() {
        let count = Scheme::All.count();
        let mut ports = Ports::new(Scheme::All, (0, count));
        let taken: BTreeSet<u16> =
            (0..u64::from(count)).map_while(|n| ports.take(mix64(n), None)).collect();
        assert_eq!(taken.len(), count as usize);
        assert_eq!((taken.first(), taken.last()), (Some(&1024), Some(&65_535)));
        assert_eq!((ports.left(), ports.take(7, None)), (0, None));
        taken.iter().for_each(|p| ports.give_back(*p));
        assert_eq!(ports.left(), count);
    }

    /// Parity holds as long as such ports are left.
    #[test]
    fn parity_is_kept() {
        for scheme in SCHEMES.into_iter().filter(|s| s.count() > 300) {
            let half = scheme.count() / 2;
            for (worker, like) in [(0, 7), (1, 8)] {
                let mut ports = Ports::new(scheme, scheme.share(worker, 3));
                for n in 0..half.min(100) {
                    let port = ports.take(mix64(n.into()), Some(like)).unwrap();
                    assert_eq!((port ^ like) & 1, 0, "{scheme:?}: {port} for {like}");
                }
                let left = ports.left();
                let rest =
                    (0..left).filter(|n| ports.take(mix64((*n).into()), Some(like)).is_some());
                assert_eq!(
                    rest.count() as u32,
                    left,
                    "ports of the other parity are used when no more are left"
                );
            }
        }
    }

    #[test]
    fn chance_is_spread() {
        let mut ports = Ports::new(Scheme::All, (0, 64_512));
        let taken: Vec<u16> = (0..4000).filter_map(|n| ports.take(mix64(n), None)).collect();
        let low = taken.iter().filter(|p| **p < 33_280).count();
        assert!((1800..2200).contains(&low), "{low}");
        let in_order = taken.windows(2).filter(|w| w[1] == w[0] + 1).count();
        assert!(in_order < 20, "{in_order}");
    }

    #[test]
    fn reserved_ports_are_not_assigned() {
        let mut ports = Ports::new(Scheme::Range(2000, 2002), (0, 3));
        assert!(ports.take_this(2001));
        ports.keep(2000);
        ports.keep(2001);
        assert_eq!((ports.take(1, None), ports.take(2, None)), (Some(2002), None));
        ports.give_back(2001);
        assert_eq!(ports.take(3, None), None);
        ports.release(2001);
        ports.release(2000);
        assert_eq!(ports.left(), 2);
        assert!(ports.take_this(2000));
        ports.keep(2000);
        ports.release(2000);
        assert_eq!((ports.left(), ports.take_this(2000)), (1, false));
        ports.give_back(2000);
        assert_eq!(ports.left(), 2);
    }

    proptest! {
        /// The same as a plain set.
        #[test]
        fn agrees_with_a_set(
            first in 1024u16..2000,
            count in 1u32..300,
            steps in prop::collection::vec((0u8..5, any::<u64>()), 0..600),
        ) {
            let mut ports = Ports::new(Scheme::All, (u32::from(first - FIRST), count));
            let mut free: BTreeSet<u16> = (first..first + count as u16).collect();
            // Ports in use; true if a session uses a reserved one.
            let mut kept: BTreeMap<u16, bool> = BTreeMap::new();
            let mine = first..first + count as u16;
            for (what, random) in steps {
                let port = first.wrapping_add((random % 310) as u16).wrapping_sub(5);
                match what {
                    0 => {
                        let taken = ports.take(random, None);
                        prop_assert_eq!(taken.is_some(), !free.is_empty());
                        if let Some(p) = taken { prop_assert!(free.remove(&p)); }
                    }
                    1 => prop_assert_eq!(ports.take_this(port), free.remove(&port)),
                    2 => {
                        ports.give_back(port);
                        match kept.get_mut(&port) {
                            Some(had) => *had = false,
                            None if mine.contains(&port) => drop(free.insert(port)),
                            None => {}
                        }
                    }
                    3 => {
                        ports.keep(port);
                        if mine.contains(&port) && !kept.contains_key(&port) {
                            kept.insert(port, !free.remove(&port));
                        }
                    }
                    _ => {
                        ports.release(port);
                        if kept.remove(&port) == Some(false) { free.insert(port); }
                    }
                }
                prop_assert_eq!(ports.kept() as usize, kept.values().filter(|had| !**had).count());
                prop_assert_eq!(ports.left() as usize, free.len());
            }
        }
    }
}
