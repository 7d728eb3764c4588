//! Ports of an address that are free: a bit each, and a bit for each word of them.

/// Ports below this are not given away.
pub const FIRST: u16 = 1024;

/// Those ports of one address and protocol that one worker may give away.
#[derive(Debug)]
pub struct Ports {
    first: u16,
    free: Box<[u64]>,
    /// A bit for each word of `free` that has one.
    words: Box<[u64]>,
    left: u32,
    count: u32,
    /// Ports that are not given away, and whether somebody still has them from before.
    kept: Vec<(u16, bool)>,
}

/// The ports that a worker of so many gives away: the first, and how many.
pub fn share(worker: usize, workers: usize) -> (u16, u32) {
    let (all, workers) = (65_536 - usize::from(FIRST), workers.max(1));
    let each = all / workers;
    let count = if worker + 1 == workers { all - each * worker } else { each };
    ((usize::from(FIRST) + each * worker) as u16, count as u32)
}

/// The worker of so many that gives a port away.
#[inline]
pub fn owner(port: u16, workers: usize) -> Option<usize> {
    let each = (65_536 - usize::from(FIRST)) / workers.max(1);
    let at = usize::from(port.checked_sub(FIRST)?);
    Some((at / each.max(1)).min(workers.saturating_sub(1)))
}

impl Ports {
    /// `count` ports from `first` on, all free.
    pub fn new(first: u16, count: u32) -> Ports {
        let count = count.min(65_536 - u32::from(first));
        let full = |bits: u32| {
            let whole = (0..bits / 64).map(|_| u64::MAX);
            let rest = (!bits.is_multiple_of(64)).then(|| (1 << (bits % 64)) - 1);
            whole.chain(rest).collect::<Box<[u64]>>()
        };
        let free = full(count);
        let words = full(free.len() as u32);
        Ports { first, free, words, left: count, count, kept: Vec::new() }
    }

    /// How many are free.
    pub fn left(&self) -> u32 {
        self.left
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Takes a port, any of them as chance has it (RFC 6056): `random` is the chance.
    pub fn take(&mut self, random: u64) -> Option<u16> {
        if self.left == 0 {
            return None;
        }
        let start = ((random >> 32) * u64::from(self.count)) >> 32;
        let word = self.word_from((start / 64) as usize)?;
        let bits = self.free[word];
        // From a bit on that chance has chosen, around the end.
        let turn = (random & 63) as u32;
        let bit = (bits.rotate_right(turn).trailing_zeros() + turn) % 64;
        let at = word as u32 * 64 + bit;
        self.mark(at);
        Some(self.first + at as u16)
    }

    /// A word with a free port, from `start` on and around the end.
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
        let at = u32::from(port.checked_sub(self.first)?);
        (at < self.count).then_some(at)
    }

    /// Takes this port. False if it is not free, or not one of these.
    pub fn take_this(&mut self, port: u16) -> bool {
        let Some(at) = self.at(port) else { return false };
        let is_free = self.free[at as usize / 64] >> (at % 64) & 1 == 1;
        if is_free {
            self.mark(at);
        }
        is_free
    }

    /// Gives this port to nobody any more. Who has it may give it back once.
    pub fn keep(&mut self, port: u16) {
        if self.at(port).is_some() && self.kept.iter().all(|k| k.0 != port) {
            let in_use = !self.take_this(port);
            self.kept.push((port, in_use));
        }
    }

    /// Ends [`keep`](Self::keep).
    pub fn release(&mut self, port: u16) {
        if let Some(i) = self.kept.iter().position(|k| k.0 == port)
            && !self.kept.swap_remove(i).1
        {
            self.give_back(port);
        }
    }

    /// Gives a port back. Nothing happens if it is free, or not one of these.
    pub fn give_back(&mut self, port: u16) {
        if let Some(kept) = self.kept.iter_mut().find(|k| k.0 == port) {
            kept.1 = false;
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
    use std::collections::BTreeSet;
    use thalweg_tables::hash::mix64;

    #[test]
    fn every_port_has_one_owner() {
        for workers in 1..=9 {
            let mut next = u32::from(FIRST);
            for worker in 0..workers {
                let (first, count) = share(worker, workers);
                assert_eq!(u32::from(first), next, "{worker} of {workers}");
                for port in next..next + count {
                    assert_eq!(owner(port as u16, workers), Some(worker), "{port} of {workers}");
                }
                next += count;
            }
            assert_eq!(next, 65_536);
            assert_eq!(owner(1023, workers), None);
        }
    }

    #[test]
    fn all_are_given_away_once() {
        let (first, count) = share(0, 1);
        let mut ports = Ports::new(first, count);
        let taken: BTreeSet<u16> =
            (0..u64::from(count)).map_while(|n| ports.take(mix64(n))).collect();
        assert_eq!(taken.len(), count as usize);
        assert_eq!((taken.first(), taken.last()), (Some(&1024), Some(&65_535)));
        assert_eq!((ports.left(), ports.take(7)), (0, None));
        taken.iter().for_each(|p| ports.give_back(*p));
        assert_eq!(ports.left(), count);
    }

    #[test]
    fn chance_is_spread() {
        let mut ports = Ports::new(1024, 64_512);
        let taken: Vec<u16> = (0..4000).filter_map(|n| ports.take(mix64(n))).collect();
        let low = taken.iter().filter(|p| **p < 33_280).count();
        assert!((1800..2200).contains(&low), "{low}");
        let in_order = taken.windows(2).filter(|w| w[1] == w[0] + 1).count();
        assert!(in_order < 20, "{in_order}");
    }

    #[test]
    fn kept_ports_are_not_given_away() {
        let mut ports = Ports::new(2000, 3);
        assert!(ports.take_this(2001));
        ports.keep(2000);
        ports.keep(2001);
        assert_eq!((ports.take(1), ports.take(2)), (Some(2002), None));
        ports.give_back(2001);
        assert_eq!(ports.take(3), None);
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
        /// As a plain set does it.
        #[test]
        fn agrees_with_a_set(
            first in 1024u16..2000,
            count in 1u32..300,
            steps in prop::collection::vec((0u8..3, any::<u64>()), 0..600),
        ) {
            let mut ports = Ports::new(first, count);
            let mut free: BTreeSet<u16> = (first..first + count as u16).collect();
            for (what, random) in steps {
                let port = first.wrapping_add((random % 310) as u16).wrapping_sub(5);
                match what {
                    0 => {
                        let taken = ports.take(random);
                        prop_assert_eq!(taken.is_some(), !free.is_empty());
                        if let Some(p) = taken { prop_assert!(free.remove(&p)); }
                    }
                    1 => prop_assert_eq!(ports.take_this(port), free.remove(&port)),
                    _ => {
                        ports.give_back(port);
                        if (first..first + count as u16).contains(&port) { free.insert(port); }
                    }
                }
                prop_assert_eq!(ports.left() as usize, free.len());
            }
        }
    }
}
