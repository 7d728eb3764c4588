//! Time that an idle worker keeps polling before it sleeps.
//!
//! Being woken costs a packet some microseconds, and tens of them if the processor has gone to
//! sleep, too. Polling costs processor time. A worker therefore learns the gaps between packets,
//! and polls through them while they are short; if they are long it sleeps soon.

use crate::clock;
use crate::node::RxMode;

/// A gap counts as at most this multiple of the longest that is polled through: two or three long
/// ones are enough to stop polling.
const CLIP: u64 = 4;
/// Inverse of a new gap's weight in the mean.
const WEIGHT: u64 = 8;

/// A worker's statistics of its gaps. All times are in ticks.
#[derive(Debug)]
pub(crate) struct Pace {
    least: u64,
    most: u64,
    /// Mean of the gaps that were longer than `least`.
    gap: u64,
    mode: RxMode,
}

impl Pace {
    /// Creates a pace that polls on for `least` after any packet, and through gaps of up to `most`
    /// if they are usual.
    pub(crate) fn new(least: u64, most: u64) -> Pace {
        let most = most.max(least);
        Pace { least, most, gap: most.saturating_mul(CLIP), mode: RxMode::Adaptive }
    }

    /// Sets the mode that suits all queues of the worker.
    pub(crate) fn set_mode(&mut self, modes: impl Iterator<Item = RxMode>) {
        self.mode = RxMode::for_all(modes);
    }

    /// Records a packet after `idle` without any.
    #[inline]
    pub(crate) fn arrival(&mut self, idle: u64) {
        if idle > self.least {
            let idle = idle.min(self.most.saturating_mul(CLIP));
            self.gap = self.gap - self.gap / WEIGHT + idle / WEIGHT;
        }
    }

    /// Returns how long to poll without success before sleeping.
    #[inline]
    pub(crate) fn patience(&self) -> u64 {
        match self.mode {
            RxMode::Polling => u64::MAX,
            RxMode::Interrupt => 0,
            RxMode::Adaptive if self.gap > self.most => self.least,
            // Half of the gaps are longer than the mean.
            RxMode::Adaptive => (2 * self.gap).clamp(self.least, self.most),
        }
    }

    /// Pauses briefly, after `idle` without a packet.
    #[inline]
    pub(crate) fn pause(&mut self, idle: u64) {
        if idle <= self.least {
            std::hint::spin_loop();
            return;
        }
        let before = clock::cycles();
        rustix::thread::sched_yield();
        self.yielded(clock::cycles().wrapping_sub(before));
    }

    /// Records that other threads were scheduled, and `took` passed. If one did run, polling takes
    /// the processor from a thread that may be about to send the next packet. A thread that sleeps
    /// is also scheduled sooner than one that ran all the time. The kernel's own threads run for
    /// some microseconds now and then, which is no reason to sleep: what counts is how long.
    #[inline]
    fn yielded(&mut self, took: u64) {
        if took > self.least / 2 {
            let most = self.most.saturating_mul(CLIP);
            self.gap = self.gap.saturating_add(took.saturating_mul(CLIP)).min(most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn after(gaps: impl IntoIterator<Item = u64>) -> Pace {
        let mut pace = Pace::new(20, 1000);
        gaps.into_iter().for_each(|g| pace.arrival(g));
        pace
    }

    #[test]
    fn polls_through_gaps_that_are_short() {
        assert_eq!(after([]).patience(), 20);
        assert_eq!(after([10_000; 100]).patience(), 20);
        let busy = after(std::iter::repeat_n(400, 40));
        assert!((700..=900).contains(&busy.patience()), "{busy:?}");
        // Immediate replies, between requests 400 apart, do not hide the gaps.
        let pairs = after([5, 400].into_iter().cycle().take(80));
        assert!((700..=900).contains(&pairs.patience()), "{pairs:?}");
    }

    #[test]
    fn a_few_long_gaps_end_it() {
        let mut pace = after(std::iter::repeat_n(400, 40));
        for _ in 0..3 {
            pace.arrival(1_000_000);
        }
        assert_eq!(pace.patience(), 20);
    }

    #[test]
    fn ends_where_others_want_the_processor() {
        let mut pace = after([400; 40]);
        pace.yielded(3);
        pace.yielded(30);
        assert!(pace.patience() > 20);
        pace.yielded(300);
        assert_eq!(pace.patience(), 20);
        let mut shared = after([400; 40]);
        (0..20).for_each(|_| shared.yielded(30));
        assert_eq!(shared.patience(), 20);
    }

    #[test]
    fn modes_decide() {
        let mut pace = after([400; 40]);
        pace.set_mode([RxMode::Interrupt, RxMode::Interrupt].into_iter());
        assert_eq!(pace.patience(), 0);
        pace.set_mode([RxMode::Interrupt, RxMode::Adaptive].into_iter());
        assert!(pace.patience() > 20);
        pace.set_mode([RxMode::Interrupt, RxMode::Polling, RxMode::Adaptive].into_iter());
        assert_eq!(pace.patience(), u64::MAX);
        pace.set_mode(std::iter::empty());
        assert!(pace.patience() < u64::MAX);
    }

    proptest! {
        /// Adaptive patience stays between its bounds, whatever comes.
        #[test]
        fn stays_in_bounds(
            least in 0u64..1000,
            most in 0u64..100_000,
            gaps in proptest::collection::vec(any::<u64>(), 0..200),
        ) {
            let mut pace = Pace::new(least, most);
            for gap in gaps {
                pace.arrival(gap);
                prop_assert!((least..=most.max(least)).contains(&pace.patience()));
            }
        }
    }
}
