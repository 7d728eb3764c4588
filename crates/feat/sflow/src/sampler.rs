//! Choice of sampled packets: one in N, by random skips.
//!
//! A skip of `k` takes the `k`-th packet from here. Skips are uniform in `1..=2N-1`, so that their
//! mean is exactly N and no pattern in the traffic can hide from them.

use thalweg_tables::random::Random;
use thalweg_tables::zeroable;

/// More packets than there will ever be, and few enough to be added to others.
const NEVER: u64 = 1 << 62;

/// A skip for rate `n`: 0 takes no packet, 1 takes all.
#[inline]
pub fn skip(random: &mut Random, n: u32) -> u64 {
    if n == 0 { NEVER } else { skip_of(random, n) }
}

/// The same for a rate that takes packets.
#[inline]
fn skip_of(random: &mut Random, n: u32) -> u64 {
    1 + random.below(2 * u64::from(n) - 1)
}

zeroable! {
    /// The countdown of one interface on one worker. All zero, it takes nothing.
    #[derive(Debug, Clone, Default)]
    pub struct Countdown {
        /// Packets up to and including the next sample, XOR [`NEVER`].
        not_left: u64,
        rate: u32,
    }
}

impl Countdown {
    /// Sampling rate N, for one packet in N; 0 for none.
    #[must_use]
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// Sets the rate. If it is unchanged, the current skip continues.
    pub fn set_rate(&mut self, rate: u32, random: &mut Random) {
        if rate != self.rate {
            self.rate = rate;
            self.set_left(skip(random, rate));
        }
    }

    /// Packets up to and including the next sample.
    #[inline]
    #[must_use]
    pub(crate) fn left(&self) -> u64 {
        self.not_left ^ NEVER
    }

    #[inline(always)]
    fn set_left(&mut self, packets: u64) {
        self.not_left = packets ^ NEVER;
    }

    /// Returns the number of packets that may pass before the one that is due.
    #[inline]
    #[must_use]
    pub fn free(&self) -> u64 {
        self.left() - 1
    }

    /// Lets `n` packets pass; false (and nothing done) if a sample is among them.
    #[inline]
    pub fn pass(&mut self, n: u64) -> bool {
        let free = n < self.left();
        if free {
            self.set_left(self.left() - n);
        }
        free
    }

    /// Lets those of the next `n` packets pass that are before the next sample, and takes that.
    /// Returns how many passed; `None` if all have passed.
    #[inline]
    pub fn next(&mut self, n: u64, random: &mut Random) -> Option<u64> {
        if self.pass(n) {
            return None;
        }
        let passed = self.left() - 1;
        // A sample was due: the rate is not 0.
        self.set_left(skip_of(random, self.rate));
        Some(passed)
    }

    /// The same for `n` packets behind `passed` others that were not due: one comparison says
    /// whether a sample is among them, and that it is none of those.
    #[inline(always)]
    pub(crate) fn next_behind(&mut self, passed: u64, n: u64, random: &mut Random) -> Option<u64> {
        let at = (self.left() - 1).wrapping_sub(passed);
        if at >= n {
            self.none_behind(passed + n);
            return None;
        }
        // A sample was due: the rate is not 0.
        self.set_left(skip_of(random, self.rate));
        Some(at)
    }

    #[cold]
    #[inline(never)]
    fn none_behind(&mut self, packets: u64) {
        debug_assert!(packets < self.left(), "a sample was missed");
        self.set_left(self.left().saturating_sub(packets).max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One packet at a time, as the rule reads.
    struct Model {
        random: Random,
        rate: u32,
        skip: u64,
    }

    impl Model {
        fn packet(&mut self) -> bool {
            self.skip -= 1;
            let hit = self.skip == 0;
            if hit {
                self.skip = skip(&mut self.random, self.rate);
            }
            hit
        }
    }

    fn run(
        countdown: &mut Countdown,
        random: &mut Random,
        frames: impl Iterator<Item = u64>,
    ) -> (u64, Vec<u64>) {
        let (mut seen, mut taken) = (0, Vec::new());
        for n in frames {
            let end = seen + n;
            while let Some(passed) = countdown.next(end - seen, random) {
                taken.push(seen + passed);
                seen += passed + 1;
            }
            seen = end;
        }
        (seen, taken)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn frames_are_sampled_as_single_packets_would_be(
            seed: u64,
            rate in prop_oneof![Just(0u32), Just(1), 2u32..40, 100u32..2000, Just(u32::MAX)],
            frames in prop::collection::vec(1u64..=256, 1..60),
        ) {
            let mut random = Random::with_seed(seed);
            let mut countdown = Countdown::default();
            countdown.set_rate(rate, &mut random);
            let mut model = Model { random: Random::with_seed(seed), rate, skip: u64::MAX };
            if rate > 0 {
                model.skip = skip(&mut model.random, rate);
            }
            let (seen, taken) = run(&mut countdown, &mut random, frames.into_iter());
            let expected: Vec<u64> = (0..seen).filter(|_| model.packet()).collect();
            prop_assert_eq!(&taken, &expected);
        }

        #[test]
        fn what_is_behind_others_is_sampled_as_one_by_one(
            seed: u64,
            rate in prop_oneof![Just(0u32), Just(1), 2u32..40, 100u32..2000],
            frames in prop::collection::vec((0u64..300, 1u64..=256), 1..60),
        ) {
            let mut countdown = Countdown::default();
            let mut random = Random::with_seed(seed);
            countdown.set_rate(rate, &mut random);
            let (mut model, mut model_random) = (countdown.clone(), random.clone());
            for (passed, n) in frames {
                // No more than may pass.
                let passed = passed.min(model.free());
                prop_assert!(model.pass(passed));
                let expected = model.next(n, &mut model_random);
                prop_assert_eq!(countdown.next_behind(passed, n, &mut random), expected);
                prop_assert_eq!((countdown.left(), random.bits()), (model.left(), model_random.bits()));
            }
        }

        #[test]
        fn skips_are_in_range(seed: u64, rate in 1u32..) {
            let mut random = Random::with_seed(seed);
            for _ in 0..100 {
                let skip = skip(&mut random, rate);
                prop_assert!((1..2 * u64::from(rate)).contains(&skip));
            }
        }
    }

    /// Ten million packets in frames of one size: the mean skip lies within six standard errors of
    /// N, and each tenth of the range is as full as the others.
    #[test]
    fn the_mean_is_n_and_skips_are_uniform() {
        const PACKETS: u64 = 10_000_000;
        for (frame, rate) in [(1u64, 10u32), (7, 100), (32, 100), (256, 10), (256, 1000)] {
            let mut random = Random::from_system();
            let mut countdown = Countdown::default();
            countdown.set_rate(rate, &mut random);
            let frames = std::iter::repeat_n(frame, (PACKETS / frame) as usize);
            let (seen, taken) = run(&mut countdown, &mut random, frames);
            let n = f64::from(rate);
            let samples = taken.len() as f64;
            let mean = *taken.last().unwrap() as f64 / samples;
            let error = (((n * n - n) / 3.0) / samples).sqrt();
            assert!((mean - n).abs() < 6.0 * error, "1:{rate} by {frame}: {mean} of {seen}");
            let mut tenths = [0u32; 10];
            let range = 2 * u64::from(rate) - 1;
            for pair in taken.windows(2) {
                tenths[((pair[1] - pair[0] - 1) * 10 / range) as usize] += 1;
            }
            // Numbers of values of the range in each tenth: they differ by one at most.
            let mut width = [0u32; 10];
            (0..range).for_each(|skip| width[(skip * 10 / range) as usize] += 1);
            for (found, width) in tenths.iter().zip(width) {
                let expected = (samples - 1.0) * f64::from(width) / range as f64;
                let off = (f64::from(*found) - expected).abs();
                assert!(off < 6.0 * expected.sqrt(), "1:{rate} by {frame}: {tenths:?}");
            }
        }
    }

    #[test]
    fn extremes() {
        let mut random = Random::from_system();
        let mut countdown = Countdown::default();
        let frames = || (0..100).map(|_| 256);
        assert_eq!(run(&mut countdown, &mut random, frames()).1, Vec::<u64>::new());
        countdown.set_rate(1, &mut random);
        assert_eq!(run(&mut countdown, &mut random, frames()).1, (0..25_600).collect::<Vec<_>>());
        countdown.set_rate(0, &mut random);
        assert!(run(&mut countdown, &mut random, frames()).1.is_empty());
    }

    #[test]
    fn the_same_rate_keeps_the_skip_and_another_draws_anew() {
        let mut random = Random::with_seed(7);
        let mut countdown = Countdown::default();
        countdown.set_rate(1_000_000, &mut random);
        let left = countdown.left();
        countdown.set_rate(1_000_000, &mut random);
        assert_eq!((countdown.left(), countdown.rate()), (left, 1_000_000));
        countdown.set_rate(2, &mut random);
        assert!(countdown.left() <= 3);
    }

    #[test]
    fn generators_differ() {
        let first: Vec<u64> = (0..100).map(|_| Random::from_system().bits()).collect();
        let mut unique = first.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), first.len());
        let near: Vec<u64> = (0..100).map(|s| skip(&mut Random::with_seed(s), 1000)).collect();
        assert!(near.windows(2).filter(|w| w[0] == w[1]).count() < 5, "{near:?}");
    }
}
