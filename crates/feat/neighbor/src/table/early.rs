//! Answers that are read before the request that they answer: one worker has asked, and another one
//! has received the answer, and reported it first. Nobody knows yet who asked, so any host can fill
//! these places: each interface has its own, and the latest answers stay.

use super::Key;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use thalweg_device::{MacAddr, SwIfIndex};

/// Time for which an answer is kept.
const KEPT: Duration = Duration::from_millis(100);
/// Maximum number of answers of an interface.
const EACH: usize = 64;
/// Maximum number of answers of all interfaces together.
const ALL: usize = 1024;

/// An answer: when it came, by whose address, and where that is.
type Answer = (Instant, IpAddr, MacAddr);

fn is_kept(answer: &Answer, now: Instant) -> bool {
    now < answer.0 + KEPT
}

/// The answers of an interface, oldest first.
type Answers = VecDeque<Answer>;

/// Early answers.
#[derive(Default)]
pub(super) struct Early {
    by_interface: BTreeMap<SwIfIndex, Answers>,
    count: usize,
    /// Time when all answers were last looked at.
    swept: Option<Instant>,
}

impl Early {
    /// Keeps an answer for a moment; it takes the place of the interface's oldest if that has many,
    /// else of the oldest of the interface that has most.
    pub(super) fn note(&mut self, (sw_if, ip): Key, mac: MacAddr, now: Instant) {
        self.keep(sw_if, |answer| answer.1 != ip && is_kept(answer, now));
        let own = self.by_interface.get(&sw_if).map_or(0, VecDeque::len);
        if own >= EACH {
            self.drop_oldest(sw_if);
        } else if self.count >= ALL {
            self.make_room(now);
        }
        self.by_interface.entry(sw_if).or_default().push_back((now, ip, mac));
        self.count += 1;
    }

    /// Takes the answer to a request that a worker has sent, if that was read before.
    pub(super) fn take(&mut self, (sw_if, ip): Key, now: Instant) -> Option<MacAddr> {
        let own = self.by_interface.get(&sw_if)?;
        let found = own.iter().find(|answer| answer.1 == ip && is_kept(answer, now))?.2;
        self.keep(sw_if, |answer| answer.1 != ip);
        Some(found)
    }

    /// Forgets the answers of an interface.
    pub(super) fn forget(&mut self, sw_if: SwIfIndex) {
        self.keep(sw_if, |_| false);
    }

    fn keep(&mut self, sw_if: SwIfIndex, which: impl Fn(&Answer) -> bool) {
        let Some(own) = self.by_interface.get_mut(&sw_if) else { return };
        let before = own.len();
        own.retain(which);
        self.count -= before - own.len();
        if own.is_empty() {
            self.by_interface.remove(&sw_if);
        }
    }

    fn drop_oldest(&mut self, sw_if: SwIfIndex) {
        let dropped = self.by_interface.get_mut(&sw_if).and_then(VecDeque::pop_front);
        self.count -= usize::from(dropped.is_some());
    }

    fn make_room(&mut self, now: Instant) {
        // A flood does not sweep for each of its answers.
        if self.swept.is_none_or(|swept| now >= swept + KEPT) {
            self.swept = Some(now);
            let all: Vec<SwIfIndex> = self.by_interface.keys().copied().collect();
            all.into_iter().for_each(|sw_if| self.keep(sw_if, |answer| is_kept(answer, now)));
        }
        let most = self.by_interface.iter().max_by_key(|(_, answers)| answers.len());
        if let Some((sw_if, _)) = most.filter(|_| self.count >= ALL) {
            self.drop_oldest(*sw_if);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 7]);

    fn key(sw_if: u32, host: u32) -> Key {
        (SwIfIndex(sw_if), IpAddr::from(host.to_be_bytes()))
    }

    #[test]
    fn one_interface_does_not_fill_the_places_of_others() {
        let (mut early, now) = (Early::default(), Instant::now());
        early.note(key(1, 7), MAC, now);
        (0..10_000).for_each(|host| early.note(key(2, host), MAC, now));
        assert_eq!(early.count, 1 + EACH);
        early.note(key(3, 7), MAC, now);
        assert_eq!(early.take(key(1, 7), now), Some(MAC));
        assert_eq!(early.take(key(1, 7), now), None, "it is taken once");
        assert_eq!(early.take(key(3, 7), now), Some(MAC));
        // The latest of an interface's own stay.
        assert_eq!(early.take(key(2, 9_999), now), Some(MAC));
        assert_eq!(early.take(key(2, 0), now), None);
    }

    #[test]
    fn many_interfaces_leave_each_other_room() {
        let (mut early, now) = (Early::default(), Instant::now());
        for sw_if in 0..100 {
            (0..1000).for_each(|host| early.note(key(sw_if, host), MAC, now));
        }
        assert_eq!(early.count, ALL);
        early.note(key(200, 1), MAC, now);
        assert_eq!((early.count, early.take(key(200, 1), now)), (ALL, Some(MAC)));
        let most = early.by_interface.values().map(VecDeque::len).max();
        assert!(most.is_some_and(|most| most <= EACH), "{most:?}");
        // Old entries make room first.
        early.note(key(201, 1), MAC, now + KEPT);
        early.note(key(201, 2), MAC, now + KEPT);
        assert_eq!(early.count, 2);
        assert_eq!(early.by_interface.len(), 1);
    }

    #[test]
    fn an_answer_is_kept_for_a_moment_and_with_its_interface() {
        let (mut early, now) = (Early::default(), Instant::now());
        early.note(key(1, 7), MAC, now);
        assert_eq!(early.take(key(1, 7), now + KEPT), None);
        early.note(key(1, 7), MacAddr([2, 0, 0, 0, 0, 8]), now);
        early.note(key(1, 7), MAC, now);
        assert_eq!((early.count, early.take(key(1, 7), now)), (1, Some(MAC)));
        early.note(key(1, 7), MAC, now);
        early.forget(SwIfIndex(1));
        assert_eq!((early.count, early.take(key(1, 7), now)), (0, None));
    }
}
