//! Discarded packets by reason, from the samples that an agent sends within its rate limit.

use std::collections::BTreeMap;

use super::Estimate;
use crate::decode::DiscardSample;
use crate::model::{DataSource, DiscardReason};

/// Data sources whose losses are followed: a sender could make them up.
const MOST_SOURCES: usize = 65_536;

/// Discards of one agent. The agent counts discards that its rate limit held back, though not by
/// reason: their reasons are taken to be like those of the others.
#[derive(Debug, Clone, Default)]
pub struct Discards {
    reasons: BTreeMap<DiscardReason, u64>,
    reported: u64,
    suppressed: u64,
    lost: u64,
    last: BTreeMap<DataSource, (u32, u32)>,
}

impl Discards {
    /// Takes a sample.
    pub fn feed(&mut self, sample: &DiscardSample<'_>) {
        self.reported += 1;
        // Codes without a name could be any number of them.
        let named = sample.reason.name().map(|_| sample.reason);
        *self.reasons.entry(named.unwrap_or(DiscardReason::UNKNOWN)).or_default() += 1;
        if self.last.len() >= MOST_SOURCES && !self.last.contains_key(&sample.source) {
            return;
        }
        let now = (sample.sequence, sample.drops);
        let Some((sequence, drops)) = self.last.insert(sample.source, now) else { return };
        let step = sample.sequence.wrapping_sub(sequence);
        if step == 0 || step > u32::MAX / 2 {
            // Reordered on the way, or the agent has started again.
            return;
        }
        self.lost += u64::from(step - 1);
        let more = sample.drops.wrapping_sub(drops);
        // A count that goes back has started again.
        if more <= u32::MAX / 2 {
            self.suppressed += u64::from(more);
        }
    }

    /// Packets that were reported.
    #[must_use]
    pub fn reported(&self) -> u64 {
        self.reported
    }

    /// Packets discarded since the first sample: those reported, those held back by the rate limit,
    /// and those whose samples were lost on the way. Exact.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.reported + self.suppressed + self.lost
    }

    /// Packets discarded for a reason.
    #[must_use]
    pub fn of(&self, reason: DiscardReason) -> Estimate {
        let reported = self.reasons.get(&reason).copied().unwrap_or(0);
        Estimate::packets_of(reported, self.reported, self.total())
    }

    /// All reported reasons, the most frequent first.
    #[must_use]
    pub fn by_reason(&self) -> Vec<(DiscardReason, Estimate)> {
        let mut all: Vec<_> = self.reasons.keys().map(|r| (*r, self.of(*r))).collect();
        all.sort_by(|a, b| b.1.value.total_cmp(&a.1.value).then(a.0.cmp(&b.0)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Datagram, Sample};
    use crate::encode::{DatagramEncoder, DiscardSampleOut, Push};

    fn feed(discards: &mut Discards, sequence: u32, drops: u32, reason: DiscardReason) {
        let mut encoder = DatagramEncoder::new("192.0.2.1".parse().unwrap(), 0, 1400);
        let sample = DiscardSampleOut {
            sequence,
            source: DataSource::NONE,
            drops,
            input: 1,
            output: 0,
            reason,
        };
        assert_eq!(encoder.discard_sample(&sample, None, &[]).unwrap(), Push::Added);
        let datagram = Datagram::parse(encoder.finish(0).unwrap()).unwrap();
        for sample in datagram.samples() {
            let Ok(Sample::Discard(sample)) = sample else { panic!("{sample:?}") };
            discards.feed(&sample);
        }
    }

    #[test]
    fn what_was_held_back_and_lost_counts() {
        let mut discards = Discards::default();
        for n in 0..100 {
            let reason = match n % 4 {
                0 => DiscardReason::ACL,
                _ => DiscardReason::TTL_EXCEEDED,
            };
            // Nine are held back for each that is reported, and one sample is lost.
            feed(&mut discards, if n < 50 { n } else { n + 1 }, 9 * n, reason);
        }
        assert_eq!((discards.reported(), discards.total()), (100, 100 + 9 * 99 + 1));
        let reasons = discards.by_reason();
        assert_eq!(reasons[0].0, DiscardReason::TTL_EXCEEDED);
        let acl = reasons[1].1;
        assert_eq!((acl.value, acl.samples), (248.0, 25));
        assert!((150.0..180.0).contains(&acl.low) && (330.0..380.0).contains(&acl.high), "{acl:?}");
    }

    #[test]
    fn without_a_limit_the_count_is_exact() {
        let mut discards = Discards::default();
        for n in 0..10 {
            feed(&mut discards, n, 0, DiscardReason::ACL);
        }
        assert_eq!(discards.of(DiscardReason::ACL), Estimate::exact(10.0, 10));
        assert_eq!(discards.of(DiscardReason::RED), Estimate::exact(0.0, 0));
        // The agent starts again.
        feed(&mut discards, 0, 0, DiscardReason::ACL);
        assert_eq!(discards.total(), 11);
    }
}
