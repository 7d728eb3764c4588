//! Fragments behind the first have no ports: what became of the first is remembered for them, for a
//! while, and for so many datagrams at a time. Those that come before the first wait for it, so many
//! of them, and no longer than that.

use crate::tuple::Key;
use std::collections::VecDeque;
use thalweg_buffer::Packet;
use thalweg_tables::flow::Millis;
use thalweg_tables::hash::mix128;

/// How long a datagram's fragments may take.
const PATIENCE: Millis = 2_000;
/// Datagrams that are remembered at a time.
const SLOTS: usize = 1024;
/// Places in which a datagram may be remembered.
const WAYS: usize = 4;

/// Fragments that wait at a time.
const WAITING: usize = 256;
/// Fragments of a datagram that wait: as many as the longest has in frames of 1500 bytes.
const OF_ONE: usize = 48;

/// What became of the first fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It went to another worker.
    Worker(u16),
    /// It got other addresses, which the header's sum follows by so much; and went to out2in, if so.
    Translated {
        /// The addresses.
        addresses: u64,
        /// What is to be added to the sum.
        l3: u16,
        /// Whether both ends are inside.
        hairpin: bool,
        /// The table that it is looked up in, if not its interface's.
        across: Option<u32>,
    },
}

impl Fate {
    /// The table that packets are looked up in, if not their interface's.
    pub fn across(&self) -> Option<u32> {
        match self {
            Fate::Translated { across, .. } => *across,
            Fate::Worker(_) => None,
        }
    }
}

/// First fragments that were seen.
pub struct Fragments {
    slots: Box<[Option<(Key, Fate, Millis)>]>,
    seed: u64,
    /// Those that wait, the oldest first: of which datagram, at which node, since when.
    waiting: VecDeque<(Key, u8, Millis, Packet)>,
}

impl std::fmt::Debug for Fragments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fragments").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

impl Fragments {
    /// None.
    pub fn new(seed: u64) -> Fragments {
        Fragments {
            slots: vec![None; SLOTS].into(),
            seed,
            waiting: VecDeque::with_capacity(WAITING),
        }
    }

    fn ways(&self, key: &Key) -> std::ops::Range<usize> {
        let set = mix128(self.seed, key[0], key[1]) as usize % (SLOTS / WAYS) * WAYS;
        set..set + WAYS
    }

    /// Remembers a first fragment, in the place of the one that has been remembered for longest.
    pub fn note(&mut self, key: Key, fate: Fate, now: Millis) {
        let ways = self.ways(&key);
        let age = |slot: &Option<(Key, Fate, Millis)>| match slot {
            Some((old, ..)) if *old == key => u32::MAX,
            Some((_, _, at)) => now.wrapping_sub(*at),
            None => u32::MAX - 1,
        };
        if let Some(slot) = self.slots[ways].iter_mut().max_by_key(|slot| age(slot)) {
            *slot = Some((key, fate, now));
        }
    }

    /// What became of the first fragment of a datagram.
    pub fn find(&self, key: &Key, now: Millis) -> Option<Fate> {
        let slots = self.slots[self.ways(key)].iter().flatten();
        let fresh = |at: Millis| now.wrapping_sub(at) < PATIENCE;
        slots.filter(|(k, _, at)| k == key && fresh(*at)).map(|(_, fate, _)| *fate).next()
    }

    /// Whether another fragment of a datagram may wait.
    pub fn has_room(&self, key: &Key) -> bool {
        self.waiting.len() < WAITING && self.waiting.iter().filter(|w| w.0 == *key).count() < OF_ONE
    }

    /// Has a fragment wait for its first at a node.
    pub fn wait(&mut self, key: Key, node: u8, now: Millis, packet: Packet) {
        self.waiting.push_back((key, node, now, packet));
    }

    /// A fragment of a datagram that waited at a node.
    pub fn next_of(&mut self, key: &Key, node: u8) -> Option<Packet> {
        let at = self.waiting.iter().position(|w| w.0 == *key && w.1 == node)?;
        self.waiting.remove(at).map(|w| w.3)
    }

    /// A fragment that has waited for long enough, or any, if all are to go.
    pub fn next_overdue(&mut self, now: Millis, all: bool) -> Option<Packet> {
        let since = self.waiting.front()?.2;
        let over = all || now.wrapping_sub(since) >= PATIENCE;
        if over { self.waiting.pop_front().map(|w| w.3) } else { None }
    }

    /// Whether one waits.
    pub fn any_waits(&self) -> bool {
        !self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_are_remembered() {
        let mut all = Fragments::new(7);
        for n in 0..5000u64 {
            all.note([n, 1], Fate::Worker(n as u16), 100);
        }
        let known = (0..5000).filter(|n| all.find(&[*n, 1], 200).is_some()).count();
        assert!((900..=SLOTS).contains(&known), "{known}");
        assert_eq!(all.find(&[4999, 1], 200), Some(Fate::Worker(4999)));
        assert_eq!(all.find(&[4999, 1], 100 + PATIENCE), None);
        assert_eq!(all.find(&[4999, 2], 200), None);
        all.note([4999, 1], Fate::Worker(1), 150);
        assert_eq!(all.find(&[4999, 1], 200), Some(Fate::Worker(1)));
    }
}
