//! Reassembly-free fragment tracking: fragments after the first have no ports, so the decision
//! about the first is remembered for them, for a while, and for a limited number of datagrams.
//! Fragments that come before the first wait for it, in limited number, and no longer than that.
//!
//! Outsiders make datagrams as they like: where places are taken, whoever has most of them gives
//! way. `of` says whose a datagram is, by the number of its interface.
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
/// Shares of the places to wait at. Some have one in common: those whose numbers differ by a
/// multiple of it.
const SHARES: usize = 64;

/// A first fragment.
#[derive(Clone, Copy)]
struct First<F, const W: usize> {
    key: Key<W>,
    of: u32,
    fate: F,
    at: Millis,
}

/// A fragment that waits.
struct Waiting<P, const W: usize> {
    key: Key<W>,
    share: usize,
    at: Millis,
    fragment: P,
}

/// No room for another fragment to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom;

/// Datagrams with keys of `W` words whose first fragments had the result `F`, and fragments `P`
/// that wait for theirs.
pub struct Fragments<F, P, const W: usize = 2> {
    slots: Box<[Option<First<F, W>>]>,
    seed: u64,
    /// Waiting fragments, the oldest first.
    waiting: VecDeque<Waiting<P, W>>,
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

    /// Remembers a first fragment: of those in its places, in place of one that is too old, else of
    /// the oldest of whoever has most.
    pub fn note(&mut self, key: Key<W>, of: u32, fate: F, now: Millis) {
        let ways = self.ways(&key);
        let slots = &self.slots[ways.clone()];
        let share = |whose: u32| {
            let all = slots.iter().flatten().filter(|first| first.of == whose).count();
            all + usize::from(whose == of)
        };
        let rank = |slot: &Option<First<F, W>>| match slot {
            Some(first) if first.key == key => (3, 0, 0),
            None => (2, 0, 0),
            Some(first) => {
                let age = now.wrapping_sub(first.at);
                (u8::from(age >= PATIENCE), share(first.of), age)
            }
        };
        if let Some(at) = ways.max_by_key(|at| rank(&self.slots[*at])) {
            self.slots[at] = Some(First { key, of, fate, at: now });
        }
    }

    /// Returns the result of the first fragment of a datagram.
    pub fn find(&self, key: &Key<W>, now: Millis) -> Option<F> {
        let slots = self.slots[self.ways(key)].iter().flatten();
        let is_fresh = |at: Millis| now.wrapping_sub(at) < PATIENCE;
        let mut found = slots.filter(|first| first.key == *key && is_fresh(first.at));
        found.next().map(|first| first.fate)
    }

    /// Makes room for another fragment of a datagram to wait. Returns the fragment that gives way
    /// for it, if all places are taken: the oldest of those who have most.
    ///
    /// # Errors
    /// [`NoRoom`] if as many of the datagram wait as may, or nobody has more places.
    pub fn make_room(&mut self, key: &Key<W>, of: u32) -> Result<Option<P>, NoRoom> {
        if self.waiting.iter().filter(|w| w.key == *key).count() >= OF_ONE {
            return Err(NoRoom);
        }
        if self.waiting.len() < WAITING {
            return Ok(None);
        }
        let mut shares = [0_u16; SHARES];
        self.waiting.iter().for_each(|w| shares[w.share] += 1);
        let own = shares[of as usize % SHARES];
        let most = shares.into_iter().max().unwrap_or_default();
        if most <= own + 1 {
            return Err(NoRoom);
        }
        let at = self.waiting.iter().position(|w| shares[w.share] == most).ok_or(NoRoom)?;
        Ok(self.waiting.remove(at).map(|w| w.fragment))
    }

    /// Queues a fragment until its first comes; there must be [room](Self::make_room).
    pub fn wait(&mut self, key: Key<W>, of: u32, now: Millis, fragment: P) {
        let share = of as usize % SHARES;
        self.waiting.push_back(Waiting { key, share, at: now, fragment });
    }

    /// Removes the oldest waiting fragment of a datagram, of those that are `wanted`.
    pub fn next_of(&mut self, key: &Key<W>, wanted: impl Fn(&P) -> bool) -> Option<P> {
        let at = self.waiting.iter().position(|w| w.key == *key && wanted(&w.fragment))?;
        self.waiting.remove(at).map(|w| w.fragment)
    }

    /// Removes a waiting fragment of those that are `unwanted`.
    pub fn next_unwanted(&mut self, unwanted: impl Fn(&P) -> bool) -> Option<P> {
        let at = self.waiting.iter().position(|w| unwanted(&w.fragment))?;
        self.waiting.remove(at).map(|w| w.fragment)
    }

    /// Removes a fragment that has waited for too long, or any if `all` is set.
    pub fn next_overdue(&mut self, now: Millis, all: bool) -> Option<P> {
        let since = self.waiting.front()?.at;
        let over = all || now.wrapping_sub(since) >= PATIENCE;
        if over { self.waiting.pop_front().map(|w| w.fragment) } else { None }
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
            all.note([n, 1], 1, n, 100);
        }
        let known = (0..5000).filter(|n| all.find(&[*n, 1], 200).is_some()).count();
        assert!((900..=SLOTS).contains(&known), "{known}");
        assert_eq!(all.find(&[4999, 1], 200), Some(4999));
        assert_eq!(all.find(&[4999, 1], 100 + PATIENCE), None);
        assert_eq!(all.find(&[4999, 2], 200), None);
        all.note([4999, 1], 1, 1, 150);
        assert_eq!(all.find(&[4999, 1], 200), Some(1));
    }

    /// Interface 1 floods, interface 2 has some datagrams.
    #[test]
    fn a_flood_by_one_leaves_the_places_of_another() {
        let mut all: Fragments<u64, u64> = Fragments::new(7);
        for n in 0..100u64 {
            all.note([n, 2], 2, n, 100);
            for flood in 0..100 {
                all.note([n * 100 + flood, 1], 1, 0, 101);
            }
        }
        let known = (0..100).filter(|n| all.find(&[*n, 2], 200).is_some()).count();
        // A few have their places in common with two others of the interface.
        assert!(known > 90, "{known}");
        let mut came = |n: u64, of: u32| {
            let key = [n, u64::from(of)];
            let Ok(instead) = all.make_room(&key, of) else { return Err(NoRoom) };
            all.wait(key, of, 100, u64::from(of));
            Ok(instead)
        };
        let took = (0..1000).filter(|n| came(*n, 1).is_ok()).count();
        assert_eq!(took, WAITING, "one alone has all places");
        for n in 0..10 {
            assert_eq!(came(n, 2), Ok(Some(1)));
        }
        assert_eq!(came(2000, 1), Err(NoRoom));
        // Its share is half of the places; behind that, nobody gives way to it.
        let took = (10..1000).filter(|n| came(*n, 2).is_ok()).count();
        assert_eq!(10 + took, WAITING / 2);
        assert_eq!(all.next_of(&[0, 2], |_| true), Some(2));
    }

    /// Datagrams that nobody will ask for any more have no share.
    #[test]
    fn the_old_give_way_before_anybody_else() {
        let mut all: Fragments<u64, ()> = Fragments::new(7);
        all.note([1, 2], 2, 5, 100);
        for n in 0..10_000u64 {
            all.note([n, 1], 1, 0, 100 + PATIENCE);
        }
        let slots = all.slots.iter().flatten();
        assert_eq!(slots.filter(|first| first.of == 2).count(), 0);
    }

    #[test]
    fn some_wait_in_order_and_not_for_ever() {
        let mut all: Fragments<(), u32> = Fragments::new(7);
        let came = (0..1000).filter(|n| {
            let key = [u64::from(n % 3), 0];
            let room = all.make_room(&key, 1).is_ok();
            if room {
                all.wait(key, 1, *n, *n);
            }
            room
        });
        assert_eq!(came.count(), 3 * OF_ONE);
        let room = (10..1000).take_while(|n| {
            let room = all.make_room(&[*n, 0], 1) == Ok(None);
            if room {
                all.wait([*n, 0], 1, 1000, 0);
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
