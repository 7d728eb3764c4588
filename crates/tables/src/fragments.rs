//! Reassembly-free fragment tracking: fragments after the first have no ports, so the decision
//! about the first is remembered for them, for a while, and for a limited number of datagrams.
//! Fragments that come before the first wait for it, in limited number, and no longer than that.
//!
//! Owned by one worker. Nothing is allocated once it is made.

use std::collections::VecDeque;

use crate::flow::Millis;
use crate::hash::mix128;

/// The key that identifies a datagram, of `W` words.
pub type Key<const W: usize = 2> = [u64; W];

/// Maximum time that a datagram's fragments may take, in milliseconds.
pub const PATIENCE: Millis = 2_000;
/// Number of datagrams that are remembered.
const SLOTS: usize = 1024;
/// Number of places in which a datagram may be remembered.
const WAYS: usize = 4;

/// Maximum number of fragments that wait.
const WAITING: usize = 256;
/// Maximum number of waiting fragments per datagram: as many as the longest has in frames of 1500
/// bytes.
const OF_ONE: usize = 48;

/// Datagrams with keys of `W` words whose first fragments had the result `F`, and fragments `P`
/// that wait for theirs.
pub struct Fragments<F, P, const W: usize = 2> {
    slots: Box<[Option<(Key<W>, F, Millis)>]>,
    seed: u64,
    /// Waiting fragments, the oldest first, with their datagram and arrival time.
    waiting: VecDeque<(Key<W>, Millis, P)>,
}

impl<F, P, const W: usize> std::fmt::Debug for Fragments<F, P, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fragments").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

impl<F: Copy, P, const W: usize> Fragments<F, P, W> {
    /// Creates an empty table. Outsiders must not be able to predict the seed.
    pub fn new(seed: u64) -> Self {
        Fragments {
            slots: vec![None; SLOTS].into(),
            seed,
            waiting: VecDeque::with_capacity(WAITING),
        }
    }

    fn ways(&self, key: &Key<W>) -> std::ops::Range<usize> {
        let (pairs, rest) = key.as_chunks::<2>();
        let mixed = pairs.iter().fold(self.seed, |hash, [a, b]| mix128(hash, *a, *b));
        let mixed = rest.iter().fold(mixed, |hash, word| mix128(hash, *word, 0));
        let set = mixed as usize % (SLOTS / WAYS) * WAYS;
        set..set + WAYS
    }

    /// Remembers a first fragment, in place of the one that has been remembered for longest.
    pub fn note(&mut self, key: Key<W>, fate: F, now: Millis) {
        let ways = self.ways(&key);
        let age = |slot: &Option<(Key<W>, F, Millis)>| match slot {
            Some((old, ..)) if *old == key => u32::MAX,
            Some((_, _, at)) => now.wrapping_sub(*at),
            None => u32::MAX - 1,
        };
        if let Some(slot) = self.slots[ways].iter_mut().max_by_key(|slot| age(slot)) {
            *slot = Some((key, fate, now));
        }
    }

    /// Returns the result of the first fragment of a datagram.
    pub fn find(&self, key: &Key<W>, now: Millis) -> Option<F> {
        let slots = self.slots[self.ways(key)].iter().flatten();
        let fresh = |at: Millis| now.wrapping_sub(at) < PATIENCE;
        slots.filter(|(k, _, at)| k == key && fresh(*at)).map(|(_, fate, _)| *fate).next()
    }

    /// Returns true if another fragment of a datagram may wait.
    pub fn has_room(&self, key: &Key<W>) -> bool {
        self.waiting.len() < WAITING && self.waiting.iter().filter(|w| w.0 == *key).count() < OF_ONE
    }

    /// Queues a fragment until its first comes; there must be [room](Self::has_room).
    pub fn wait(&mut self, key: Key<W>, now: Millis, fragment: P) {
        self.waiting.push_back((key, now, fragment));
    }

    /// Removes the oldest waiting fragment of a datagram, of those that are `wanted`.
    pub fn next_of(&mut self, key: &Key<W>, wanted: impl Fn(&P) -> bool) -> Option<P> {
        let at = self.waiting.iter().position(|w| w.0 == *key && wanted(&w.2))?;
        self.waiting.remove(at).map(|w| w.2)
    }

    /// Removes a waiting fragment of those that are `unwanted`.
    pub fn next_unwanted(&mut self, unwanted: impl Fn(&P) -> bool) -> Option<P> {
        let at = self.waiting.iter().position(|w| unwanted(&w.2))?;
        self.waiting.remove(at).map(|w| w.2)
    }

    /// Removes a fragment that has waited for too long, or any if `all` is set.
    pub fn next_overdue(&mut self, now: Millis, all: bool) -> Option<P> {
        let since = self.waiting.front()?.1;
        let over = all || now.wrapping_sub(since) >= PATIENCE;
        if over { self.waiting.pop_front().map(|w| w.2) } else { None }
    }

    /// Returns true if a fragment waits.
    pub fn any_waits(&self) -> bool {
        !self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_are_remembered() {
        let mut all: Fragments<u64, ()> = Fragments::new(7);
        for n in 0..5000u64 {
            all.note([n, 1], n, 100);
        }
        let known = (0..5000).filter(|n| all.find(&[*n, 1], 200).is_some()).count();
        assert!((900..=SLOTS).contains(&known), "{known}");
        assert_eq!(all.find(&[4999, 1], 200), Some(4999));
        assert_eq!(all.find(&[4999, 1], 100 + PATIENCE), None);
        assert_eq!(all.find(&[4999, 2], 200), None);
        all.note([4999, 1], 1, 150);
        assert_eq!(all.find(&[4999, 1], 200), Some(1));
    }

    #[test]
    fn some_wait_in_order_and_not_for_ever() {
        let mut all: Fragments<(), u32> = Fragments::new(7);
        let came = (0..1000).filter(|n| {
            let key = [u64::from(n % 3), 0];
            let room = all.has_room(&key);
            if room {
                all.wait(key, *n, *n);
            }
            room
        });
        assert_eq!(came.count(), 3 * OF_ONE);
        let room = (10..1000).take_while(|n| {
            let room = all.has_room(&[*n, 0]);
            if room {
                all.wait([*n, 0], 1000, 0);
            }
            room
        });
        assert_eq!(room.count(), WAITING - 3 * OF_ONE);
        assert_eq!(all.next_of(&[1, 0], |n| *n > 1), Some(4));
        assert_eq!(
            [all.next_of(&[1, 0], |_| true), all.next_of(&[5, 0], |_| true)],
            [Some(1), None]
        );
        assert_eq!(all.next_unwanted(|n| *n == 7), Some(7));
        assert_eq!(all.next_unwanted(|n| *n == 7), None);
        assert_eq!(all.next_overdue(PATIENCE + 3, false), Some(0));
        let mut overdue = 0;
        while all.next_overdue(PATIENCE + 3, false).is_some() {
            overdue += 1;
        }
        assert_eq!((overdue, all.any_waits()), (2, true), "2 and 3 are left of the first four");
        while all.next_overdue(0, true).is_some() {}
        assert!(!all.any_waits());
    }
}
