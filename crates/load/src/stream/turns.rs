//! Turns of streams, by the time when their next packet is due.

use super::Nanos;

/// Bits of a stream's number.
const NUMBER: u32 = 12;
/// The greatest time that is distinguished, from the base: 52 days.
const FAR: u64 = u64::MAX >> NUMBER;

/// A tournament of streams: each inner place has the lesser of the two below it, and the first one
/// the least of all. Entering another time for a stream takes no branch that depends on times.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    /// Times from the base, and the streams' numbers; all bits set for a stream without a time.
    tree: Vec<u64>,
    leaves: usize,
    base: Nanos,
}

impl Turns {
    /// Removes all, and makes room for this number of streams. No time is before `base`, or it
    /// counts as that.
    pub(super) fn clear(&mut self, streams: usize, base: Nanos) {
        self.leaves = streams.next_power_of_two();
        self.base = base;
        self.tree.clear();
        self.tree.resize(2 * self.leaves, u64::MAX);
    }

    /// Enters when a stream is due next; `None`: not at all.
    #[inline]
    pub(super) fn set(&mut self, stream: usize, due: Option<Nanos>) {
        let mut at = self.leaves + stream;
        let Some(place) = self.tree.get_mut(at) else { return };
        *place = due.map_or(u64::MAX, |due| {
            due.saturating_sub(self.base).min(FAR - 1) << NUMBER | stream as u64
        });
        while at > 1 {
            at /= 2;
            let below = |at: usize| self.tree.get(at).copied().unwrap_or(u64::MAX);
            let least = below(2 * at).min(below(2 * at + 1));
            if let Some(place) = self.tree.get_mut(at) {
                *place = least;
            }
        }
    }

    /// The stream whose packet is due first.
    #[inline]
    pub(super) fn first(&self) -> Option<usize> {
        let first = *self.tree.get(1)?;
        (first != u64::MAX).then_some((first & ((1 << NUMBER) - 1)) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_least(
            streams in 1..100usize, base in 0..1000u64,
            times in prop::collection::vec((any::<prop::sample::Index>(), any::<Option<u16>>()), 0..200),
        ) {
            let mut turns = Turns::default();
            turns.clear(streams, base);
            let mut all = vec![None; streams];
            prop_assert_eq!(turns.first(), None);
            for (at, due) in times {
                let (at, due) = (at.index(streams), due.map(u64::from));
                all[at] = due;
                turns.set(at, due);
                let least = (0..streams).filter(|n| all[*n].is_some());
                let least = least.min_by_key(|n| (all[*n].map(|due| due.max(base)), *n));
                prop_assert_eq!(turns.first(), least);
            }
        }
    }

    #[test]
    fn the_greatest_number_and_time_have_room() {
        let mut turns = Turns::default();
        turns.clear(crate::stream::MAX_STREAMS, 0);
        turns.set(4095, Some(Nanos::MAX));
        assert_eq!(turns.first(), Some(4095));
    }
}
