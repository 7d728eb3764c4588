//! Samples of packets that another worker has gone on with, until that says what became of them.
//!
//! Sample and answer come by two rings, in any order. Both are kept for a moment, so that they
//! meet; a sample whose answer does not come goes out without.

use crate::record::{Disposition, SampleRecord};
use crate::ring::MAX_HEADER;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Time for which a sample waits for its answer, or an answer for its sample.
pub(super) const PATIENCE: Duration = Duration::from_millis(250);
/// Samples that wait, at most, and answers: as many as come in a ring. Should there be more, the
/// oldest go.
const LIMIT: usize = 1 << 15;

/// A sample that waits.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Held {
    pub(super) worker: usize,
    pub(super) record: SampleRecord,
    length: usize,
    header: Box<[u8; MAX_HEADER]>,
}

impl Held {
    pub(super) fn header(&self) -> &[u8] {
        &self.header[..self.length]
    }
}

/// Samples that wait for an answer.
#[derive(Debug, Default)]
pub(super) struct Handed {
    /// Samples by number: a packet has several if segments of it were sampled.
    samples: HashMap<u32, Vec<Held>>,
    /// Numbers of samples in the order in which they came.
    order: VecDeque<(Instant, u32)>,
    answers: HashMap<u32, Disposition>,
    answer_order: VecDeque<(Instant, u32)>,
    /// Numbers that were answered since samples were last let go.
    fresh: Vec<u32>,
}

impl Handed {
    /// Keeps a sample whose packet has that number, if no answer is here: else says what it is.
    pub(super) fn sample(
        &mut self,
        now: Instant,
        number: u32,
        (worker, record, header): (usize, &SampleRecord, &[u8]),
    ) -> Option<Disposition> {
        if let Some(disposition) = self.answers.get(&number) {
            return Some(*disposition);
        }
        let length = header.len().min(MAX_HEADER);
        let mut copy = Box::new([0; MAX_HEADER]);
        copy[..length].copy_from_slice(&header[..length]);
        let held = Held { worker, record: *record, length, header: copy };
        self.samples.entry(number).or_default().push(held);
        self.order.push_back((now, number));
        None
    }

    /// Takes an answer. A later one for the same number is the better one.
    pub(super) fn answer(&mut self, now: Instant, number: u32, disposition: Disposition) {
        if self.answers.insert(number, disposition).is_none() {
            self.answer_order.push_back((now, number));
        }
        if self.samples.contains_key(&number) {
            self.fresh.push(number);
        }
    }

    /// Lets samples go that have their answers, or have waited long enough: calls `what` with each.
    pub(super) fn release(&mut self, now: Instant, mut what: impl FnMut(&Held, Disposition)) {
        let Handed { samples, order, answers, answer_order, fresh } = self;
        for number in fresh.drain(..) {
            let disposition = answers.get(&number).copied().unwrap_or_default();
            samples.remove(&number).iter().flatten().for_each(|held| what(held, disposition));
        }
        while order.front().is_some_and(|(since, _)| *since + PATIENCE <= now)
            || order.len() > LIMIT
        {
            let Some((_, number)) = order.pop_front() else { break };
            // Answered samples have left already.
            samples
                .remove(&number)
                .iter()
                .flatten()
                .for_each(|held| what(held, Disposition::Unknown));
        }
        while answer_order.front().is_some_and(|(since, _)| *since + PATIENCE <= now)
            || answer_order.len() > LIMIT
        {
            let Some((_, number)) = answer_order.pop_front() else { break };
            answers.remove(&number);
        }
    }

    /// True if nothing waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty() && self.answer_order.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use thalweg_device::SwIfIndex;

    fn record(n: u32) -> SampleRecord {
        SampleRecord {
            pool: n.into(),
            disposition: Disposition::Elsewhere(n),
            ..SampleRecord::default()
        }
    }

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Sample(u32),
        Answer(u32),
        Pass(u64),
    }

    proptest! {
        /// Each sample leaves once, whatever comes when, with its own answer or none, and with it
        /// if both came within the time.
        #[test]
        fn samples_meet_their_answers(
            steps in prop::collection::vec(
                prop_oneof![
                    (0u32..30).prop_map(Step::Sample),
                    (0u32..30).prop_map(Step::Answer),
                    (0u64..200).prop_map(Step::Pass),
                ],
                1..200,
            ),
        ) {
            let (mut handed, start) = (Handed::default(), Instant::now());
            let mut now = start;
            let (mut came, mut left) = (Vec::new(), Vec::new());
            for step in steps {
                match step {
                    Step::Sample(n) => {
                        came.push(n);
                        if let Some(disposition) = handed.sample(now, n, (1, &record(n), &[n as u8; 5])) {
                            prop_assert_eq!(disposition, Disposition::Dropped(n));
                            left.push(n);
                        }
                    }
                    Step::Answer(n) => handed.answer(now, n, Disposition::Dropped(n)),
                    Step::Pass(ms) => now += Duration::from_millis(ms),
                }
                handed.release(now, |held, disposition| {
                    let n = held.record.pool as u32;
                    assert!(disposition == Disposition::Dropped(n) || disposition == Disposition::Unknown);
                    assert_eq!(held.header(), [n as u8; 5]);
                    left.push(n);
                });
            }
            handed.release(now + PATIENCE, |held, _| left.push(held.record.pool as u32));
            came.sort_unstable();
            left.sort_unstable();
            prop_assert_eq!(came, left);
            prop_assert!(handed.is_empty());
            prop_assert!(handed.samples.is_empty() && handed.answers.is_empty());
        }
    }

    #[test]
    fn the_last_answer_of_a_round_counts_and_waiting_has_an_end() {
        let (mut handed, now) = (Handed::default(), Instant::now());
        let out = Disposition::Out { tx_if: SwIfIndex(3), entry: 0, headers: None };
        assert_eq!(handed.sample(now, 7, (0, &record(7), &[1; 300])), None);
        handed.answer(now, 7, out);
        handed.answer(now, 7, Disposition::Dropped(5));
        let mut seen = Vec::new();
        handed.release(now, |held, disposition| seen.push((held.header().len(), disposition)));
        assert_eq!(seen, [(MAX_HEADER, Disposition::Dropped(5))]);
        assert_eq!(handed.sample(now, 8, (0, &record(8), &[])), None);
        handed.release(now + PATIENCE / 2, |_, _| panic!("too early"));
        let mut late = 0;
        handed.release(now + PATIENCE, |_, disposition| {
            late += u32::from(disposition == Disposition::Unknown)
        });
        assert_eq!(late, 1);
        // Floods push the oldest out.
        let mut left = 0;
        for n in 0..3 * LIMIT as u32 {
            assert_eq!(handed.sample(now, n, (0, &record(n), &[])), None);
            handed.release(now, |_, _| left += 1);
        }
        assert_eq!(left, 2 * LIMIT);
    }
}
