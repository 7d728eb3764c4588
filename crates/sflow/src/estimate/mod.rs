//! Traffic from samples, with 95 % confidence intervals (Phaal and Panchen, "Packet Sampling
//! Basics").
//!
//! The number of samples of a class decides the accuracy, not the share of packets sampled: with
//! `c` samples the error is at most `196 * sqrt(1 / c)` percent.

mod discards;
mod poisson;
mod share;
mod talkers;

use std::fmt;

pub use discards::Discards;
pub use poisson::poisson_limits;
pub use talkers::{FlowKey, Order, ScaleBasis, SourceReport, Talker, TopTalkers};

/// 97.5 % of a normal distribution lie below this number of standard deviations above the mean.
pub const Z95: f64 = 1.96;

/// Number of samples below which the normal distribution is too far off: exact Poisson limits are
/// used.
pub const EXACT_BELOW: u64 = 30;

/// Number of samples below which the error may exceed 20 %: show such numbers as rough.
pub const ROUGH_BELOW: u64 = 96;

/// A share of the packets below this counts as none: intervals are not drawn closer for what was
/// sampled of it.
const MATTERS: f64 = 0.01;

/// A number with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    /// The most likely number.
    pub value: f64,
    /// Lower limit.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
    /// Samples that it was made from.
    pub samples: u64,
}

impl Estimate {
    /// A number that is known.
    #[must_use]
    pub fn exact(value: f64, samples: u64) -> Self {
        Estimate { value, low: value, high: value, samples }
    }

    /// Packets of a class: `class` of `all` samples belong to it, and `all` were taken out of
    /// `total` packets. Use it when the total is known, from interface counters or the sample pool.
    #[must_use]
    pub fn packets_of(class: u64, all: u64, total: u64) -> Self {
        if all == 0 {
            return Estimate { value: 0.0, low: 0.0, high: total as f64, samples: 0 };
        }
        let class = class.min(all);
        let rest = all - class;
        let (c, n, t) = (class as f64, all as f64, total as f64);
        if all >= total {
            return Self::exact(c, class);
        }
        let value = c * t / n;
        let (low, high) = if class < EXACT_BELOW {
            share::share_limits(class, all, total)
        } else if rest < EXACT_BELOW {
            // Few samples are of other classes: the error is theirs.
            let (low, high) = share::share_limits(rest, all, total);
            (t - high, t - low)
        } else {
            // Sampled packets are known, and the error is that of the others. The paper leaves this
            // out, as it hardly matters at usual rates.
            let unseen = if n / t > MATTERS { 1.0 - n / t } else { 1.0 };
            let error = Z95 * t * (c * (n - c) / (n * n * n) * unseen).sqrt();
            (value - error, value + error)
        };
        // Sampled packets existed.
        let (least, most) = (c, t - rest as f64);
        Estimate {
            value,
            low: low.clamp(least, value),
            high: high.clamp(value, most),
            samples: class,
        }
    }

    /// Packets that one sample stands for, when `samples` have arrived and the sample pool has
    /// grown by `pool`. The result makes up for samples that were lost: in the agent for lack of
    /// room, or on the way.
    #[must_use]
    pub fn effective_rate(pool: u64, samples: u64) -> f64 {
        if samples == 0 { 1.0 } else { (pool as f64 / samples as f64).max(1.0) }
    }

    /// Packets of a class with `class` samples, one packet in `rate` being sampled, when the number
    /// of all packets is not known.
    #[must_use]
    pub fn packets(class: u64, rate: f64) -> Self {
        let mut sum = Sum::default();
        sum.add(&Tally { count: class, ..Tally::default() }, &Population::of_rate(rate));
        sum.packets()
    }

    /// Bytes of a class, from the lengths of its sampled packets.
    #[must_use]
    pub fn bytes(lengths: impl IntoIterator<Item = u32>, rate: f64) -> Self {
        let mut tally = Tally::default();
        for length in lengths {
            tally.add(length);
        }
        let mut sum = Sum::default();
        sum.add(&tally, &Population::of_rate(rate));
        sum.bytes()
    }

    /// Bytes of a class, from the lengths of its sampled packets, when `all` samples of all classes
    /// were taken out of `total` packets.
    #[must_use]
    pub fn bytes_of(lengths: impl IntoIterator<Item = u32>, all: u64, total: u64) -> Self {
        let mut tally = Tally::default();
        for length in lengths {
            tally.add(length);
        }
        let mut sum = Sum::default();
        let scale = Self::effective_rate(total, all);
        sum.add(&tally, &Population { scale, samples: Some(all), square: 0.0 });
        sum.bytes()
    }

    /// The larger half of the interval relative to the number; infinite when the number is 0.
    #[must_use]
    pub fn relative_error(&self) -> f64 {
        let error = (self.high - self.value).max(self.value - self.low);
        if self.value > 0.0 {
            error / self.value
        } else if error > 0.0 {
            f64::INFINITY
        } else {
            0.0
        }
    }

    /// True if the error may exceed 20 %.
    #[must_use]
    pub fn is_rough(&self) -> bool {
        self.relative_error() > 0.2
    }

    /// The same with another unit, such as bits per second out of bytes.
    #[must_use]
    pub fn scale(self, factor: f64) -> Self {
        Estimate {
            value: self.value * factor,
            low: self.low * factor,
            high: self.high * factor,
            samples: self.samples,
        }
    }
}

/// Omits digits that mean nothing: `412000 +-5 %`, or `< 3000` when nothing was sampled.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = self.relative_error();
        if self.value <= 0.0 {
            return write!(f, "< {:.0}", self.high);
        }
        if error <= 0.0 {
            return write!(f, "{:.0}", self.value);
        }
        // The last digit shown is worth at most a tenth of the error.
        let unit = 10_f64.powf((self.value * error / 10.0).log10().floor()).max(1.0);
        write!(f, "{:.0} +-{:.0} %", (self.value / unit).round() * unit, (error * 100.0).ceil())
    }
}

/// Samples needed for an error of at most `percent`.
#[must_use]
pub fn samples_for_error(percent: f64) -> u64 {
    (100.0 * Z95 / percent).powi(2).round() as u64
}

/// Samples of a class from one data source.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    count: u64,
    bytes: f64,
    /// Sum of the squared lengths.
    squares: f64,
}

impl Tally {
    fn add(&mut self, length: u32) {
        let length = f64::from(length);
        self.count += 1;
        self.bytes += length;
        self.squares += length * length;
    }
}

/// Packets that a data source samples.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Population {
    /// Packets that one sample stands for.
    scale: f64,
    /// The number of samples of all classes, if the number of all packets is known: what is
    /// uncertain then is the class's share.
    samples: Option<u64>,
    /// The mean squared length of all samples; 0 if unknown.
    square: f64,
}

impl Population {
    fn of_rate(rate: f64) -> Self {
        Population { scale: rate, ..Population::default() }
    }
}

/// Tallies of several data sources, each with its own scale.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sum {
    samples: u64,
    packets: f64,
    packets_variance: f64,
    bytes: f64,
    bytes_variance: f64,
    /// The variance that one packet more, of a length that is usual at the source, would add.
    unmet: f64,
    seen_bytes: f64,
    /// The largest scale met.
    scale: f64,
    /// All packets of the sources, infinite if one's are not known.
    most: f64,
}

/// Excess of the variance of a class that nearly all samples belong to over what its samples say:
/// others may exist though hardly any of them was sampled.
fn unseen_others(class: u64, all: u64) -> f64 {
    let rest = all.saturating_sub(class);
    if class == 0 || rest >= EXACT_BELOW {
        return 0.0;
    }
    let (_, high) = poisson_limits(rest);
    let error = (high - rest as f64) / Z95;
    (error * error - rest as f64).max(0.0)
}

impl Sum {
    /// Adds the samples of a class at one data source.
    fn add(&mut self, tally: &Tally, population: &Population) {
        let scale = population.scale.max(1.0);
        // Each of a class's packets is sampled with probability 1/scale, independently.
        let spread = scale * scale * (1.0 - 1.0 / scale);
        let count = tally.count as f64;
        // The mean of a known number of draws does not vary.
        let (packets, bytes) = match population.samples {
            Some(all) if all > 0 => {
                let all = all as f64;
                (count * count / all, tally.bytes * tally.bytes / all)
            }
            _ => (0.0, 0.0),
        };
        let mut unseen = 0.0;
        self.most += match population.samples {
            Some(all) => {
                unseen = unseen_others(tally.count, all);
                all as f64 * scale
            }
            None => f64::INFINITY,
        };
        self.samples += tally.count;
        self.packets += count * scale;
        self.packets_variance += ((count - packets).max(0.0) + unseen) * spread;
        self.bytes += tally.bytes * scale;
        let length = tally.bytes / count.max(1.0);
        self.bytes_variance +=
            ((tally.squares - bytes).max(0.0) + unseen * length * length) * spread;
        if tally.count > 0 {
            self.unmet += population.square * spread;
        }
        self.seen_bytes += tally.bytes;
        self.scale = self.scale.max(scale);
    }

    fn packets(&self) -> Estimate {
        if self.samples == 0 {
            let (_, high) = poisson_limits(0);
            let high = if self.scale > 1.0 { high * self.scale } else { 0.0 };
            return Estimate { high, ..Estimate::default() };
        }
        let error = Z95 * self.packets_variance.sqrt();
        let mut limits = (self.packets - error, self.packets + error);
        if self.samples < EXACT_BELOW && self.packets_variance > 0.0 {
            let (low, high) = poisson_limits(self.samples);
            // Poisson's limits, drawn closer by as much as the variance is less than Poisson's.
            let poisson = self.packets * self.packets / self.samples as f64;
            let narrow = match self.packets_variance / poisson {
                ratio if ratio < 1.0 - MATTERS => ratio.sqrt(),
                _ => 1.0,
            };
            let relative = |limit: f64| 1.0 + narrow * (limit / self.samples as f64 - 1.0);
            limits = (self.packets * relative(low), self.packets * relative(high));
        }
        limits.1 = limits.1.min(self.most.max(self.packets));
        self.interval(self.packets, limits, self.samples as f64)
    }

    fn bytes(&self) -> Estimate {
        let error = Z95 * self.bytes_variance.sqrt();
        let mut limits = (self.bytes - error, self.bytes + error);
        // The number of packets of one length that would be as uncertain.
        let alike = self.bytes * self.bytes / self.bytes_variance;
        if self.bytes > 0.0 && alike < poisson::SKEWED_BELOW {
            let (low, high) = poisson::sum_limits(alike);
            limits = (self.bytes * low / alike, self.bytes * high / alike);
        }
        if self.samples < EXACT_BELOW && self.bytes_variance > 0.0 {
            // Few lengths say little about those that were not met.
            let error = Z95 * (self.bytes_variance + self.unmet).sqrt();
            limits.0 = limits.0.min(self.bytes - error);
            limits.1 = limits.1.max(self.bytes + error);
        }
        self.interval(self.bytes, limits, self.seen_bytes)
    }

    fn interval(&self, value: f64, (low, high): (f64, f64), least: f64) -> Estimate {
        Estimate { value, low: low.max(least).min(value), high, samples: self.samples }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} is not {b}");
    }

    #[test]
    fn the_worked_example_of_the_paper() {
        let e = Estimate::packets_of(1000, 2500, 1_000_000);
        close(e.value, 400_000.0, 0.0);
        close(e.high - e.value, 19_200.0, 10.0);
        close(e.relative_error(), 0.048, 0.0001);
        // The bound that holds without knowing the total.
        let e = Estimate::packets(1000, 400.0);
        close(e.relative_error(), 0.062, 0.0002);
    }

    #[test]
    fn samples_for_an_error() {
        let table = [(10.0, 384), (5.0, 1537), (3.0, 4268), (1.0, 38416)];
        for (percent, samples) in table {
            assert!(samples_for_error(percent).abs_diff(samples) <= 1);
        }
        assert!(Estimate::packets(ROUGH_BELOW - 1, 1e6).is_rough());
        assert!(!Estimate::packets(ROUGH_BELOW + 1, 1e6).is_rough());
    }

    #[test]
    fn nothing_sampled_is_not_nothing() {
        let e = Estimate::packets(0, 1000.0);
        assert_eq!((e.value, e.low), (0.0, 0.0));
        close(e.high, 3000.0, 5.0);
        assert_eq!(e.to_string(), "< 2996");
        // 500 samples say a little more than none of very many.
        let e = Estimate::packets_of(0, 500, 500_000);
        close(e.high, 2985.5, 0.5);
    }

    /// All samples of a source are of one class: others may have been too few to be met.
    #[test]
    fn all_of_one_class_is_not_certain() {
        let mut sum = Sum::default();
        let tally = Tally { count: 10_000, bytes: 1e6, squares: 1e8 };
        sum.add(&tally, &Population { scale: 100.0, samples: Some(10_000), square: 1e4 });
        let packets = sum.packets();
        assert!(packets.high == 1e6, "{packets:?}");
        close(packets.low, 1e6 - 300.0, 5.0);
        let bytes = sum.bytes();
        close(bytes.low, 1e8 - 30_000.0, 500.0);
    }

    #[test]
    fn few_samples_have_exact_limits() {
        let e = Estimate::packets(10, 1000.0);
        close(e.low, 4795.0, 1.0);
        close(e.high, 18_390.0, 1.0);
    }

    #[test]
    fn sampling_everything_is_exact() {
        assert_eq!(Estimate::packets(7, 1.0), Estimate::exact(7.0, 7));
        assert_eq!(Estimate::packets_of(7, 20, 20), Estimate::exact(7.0, 7));
        assert_eq!(Estimate::bytes([100, 200], 1.0), Estimate::exact(300.0, 2));
    }

    #[test]
    fn bytes_follow_the_lengths() {
        let e = Estimate::bytes(std::iter::repeat_n(1000, 400), 100.0);
        close(e.value, 4e7, 0.0);
        // All packets alike: 196 * sqrt(1 / 400) percent, less the share that was seen.
        close(e.relative_error(), 0.098 * 0.99_f64.sqrt(), 1e-6);
        let mixed = Estimate::bytes((0..400).map(|i| if i % 2 == 0 { 100 } else { 1900 }), 100.0);
        assert!(mixed.relative_error() > e.relative_error());
    }

    #[test]
    fn digits_shown_are_worth_showing() {
        assert_eq!(Estimate::packets_of(1000, 2500, 1_000_000).to_string(), "400000 +-5 %");
        assert_eq!(Estimate::packets(1537, 268.3).to_string(), "412000 +-5 %");
        assert_eq!(Estimate::exact(12.0, 12).to_string(), "12");
    }

    proptest! {
        #[test]
        fn intervals_hold_their_value(c in 0_u64..5000, more in 0_u64..5000, scale in 1_u64..5000) {
            let n = c + more;
            for e in [
                Estimate::packets(c, scale as f64),
                Estimate::packets_of(c, n, n * scale),
                Estimate::bytes((0..c).map(|i| 64 + (i % 1400) as u32), scale as f64),
            ] {
                prop_assert!(e.low <= e.value && e.value <= e.high, "{:?}", e);
                prop_assert!(e.low >= 0.0);
            }
        }
    }

    /// A small generator with a fixed start, so that the test always sees the same draws.
    fn draws() -> impl FnMut() -> f64 {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    #[test]
    fn intervals_cover_the_truth_about_95_times_in_100() {
        let mut draw = draws();
        for (class, rate) in [(400, 20.0), (20_000, 50.0)] {
            let rounds = 400;
            let mut covered = 0;
            for _ in 0..rounds {
                let sampled = (0..class).filter(|_| draw() < 1.0 / rate).count() as u64;
                let e = Estimate::packets(sampled, rate);
                covered += usize::from(e.low <= f64::from(class) && f64::from(class) <= e.high);
            }
            let share = covered as f64 / f64::from(rounds);
            assert!((0.92..=1.0).contains(&share), "{share} of the intervals hold {class}");
        }
    }
}
