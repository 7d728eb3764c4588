//! Times from when packets were due until they arrived.

use hdrhistogram::Histogram;

use super::Nanos;

/// Longest time that is distinguished from longer ones: 10 s.
const MOST: Nanos = 10_000_000_000;
/// Precision in decimal digits: 200 KB each; and if there are many of them, 28 KB.
const DIGITS: u8 = 3;
const FEW_DIGITS: u8 = 2;
const MANY: usize = 128;
/// Samples that a percentile needs above it.
const ABOVE: f64 = 10.0;

/// Times of packets from when they were due until they arrived, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    histogram: Option<Box<Histogram<u64>>>,
    sum: u128,
    last: Nanos,
    /// Jitter times 16.
    jitter: u64,
    few_digits: bool,
}

impl Latency {
    /// One of this number of distributions.
    pub(super) fn of(streams: usize) -> Latency {
        Latency { few_digits: streams > MANY, ..Latency::default() }
    }

    /// Takes in a time.
    #[inline]
    pub(super) fn record(&mut self, time: Nanos) {
        let jitter = match &mut self.histogram {
            Some(histogram) => {
                histogram.saturating_record(time);
                time.abs_diff(self.last)
            }
            None => {
                let digits = if self.few_digits { FEW_DIGITS } else { DIGITS };
                let mut histogram = Histogram::new_with_bounds(1, MOST, digits).ok().map(Box::new);
                histogram.iter_mut().for_each(|histogram| histogram.saturating_record(time));
                self.histogram = histogram;
                0
            }
        };
        self.last = time;
        self.sum += u128::from(time);
        // RFC 3550 §A.8: J += (|D| - J) / 16.
        self.jitter = self.jitter + jitter - ((self.jitter + 8) >> 4);
    }

    /// Number of packets.
    pub fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, |histogram| histogram.len())
    }

    /// Least time, with three digits; of more than 128 streams, times have two.
    pub fn least(&self) -> Option<Nanos> {
        self.any().map(|histogram| histogram.min())
    }

    /// Greatest time, with three digits; longer ones than 10 s count as that.
    pub fn most(&self) -> Option<Nanos> {
        self.any().map(|histogram| histogram.max())
    }

    /// Mean.
    pub fn mean(&self) -> Option<f64> {
        self.any().map(|histogram| self.sum as f64 / histogram.len() as f64)
    }

    /// Mean deviation of the differences between successive times (RFC 3550 §6.4.1).
    pub fn jitter(&self) -> Option<Nanos> {
        self.any().map(|_| self.jitter / 16)
    }

    /// The time that this share of the packets (0 to 1) took at most; `None` if fewer than ten took
    /// longer, or half of them none: then nothing can be said.
    pub fn quantile(&self, share: f64) -> Option<Nanos> {
        let histogram = self.any()?;
        let above = histogram.len() as f64 * (1.0 - share);
        (above + 1e-6 >= ABOVE).then(|| histogram.value_at_quantile(share))
    }

    /// Points of the complementary distribution: times, and the share of packets that took longer.
    pub fn beyond(&self) -> Vec<(Nanos, f64)> {
        let Some(histogram) = self.any() else { return Vec::new() };
        let all = histogram.len() as f64;
        let mut below = 0u64;
        let points = histogram.iter_recorded().map(|value| {
            below += value.count_since_last_iteration();
            (value.value_iterated_to(), 1.0 - below as f64 / all)
        });
        points.collect()
    }

    /// Adds the times of other packets; the jitter becomes the greater one.
    pub fn add(&mut self, other: &Latency) {
        let Some(theirs) = &other.histogram else { return };
        self.jitter = self.jitter.max(other.jitter);
        self.sum += other.sum;
        match &mut self.histogram {
            // Their bounds are equal.
            Some(own) => own.add(&**theirs).unwrap_or_default(),
            None => self.histogram = Some(theirs.clone()),
        }
    }

    fn any(&self) -> Option<&Histogram<u64>> {
        self.histogram.as_deref().filter(|histogram| !histogram.is_empty())
    }
}
