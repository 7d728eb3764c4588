//! Checks that 95 % intervals hold the truth 95 times in 100: a known mix of traffic is sampled,
//! trial by trial with another seed, and the share of intervals that hold the truth is counted.

#![allow(clippy::unwrap_used)]

use thalweg_sflow::DiscardReason;
use thalweg_sflow::decode::{Datagram, Sample};
use thalweg_sflow::encode::{DatagramEncoder, DiscardSampleOut, FlowSampleOut, Push};
use thalweg_sflow::estimate::{Discards, Estimate, Order, TopTalkers};
use thalweg_sflow::header::HeaderProtocol;
use thalweg_sflow::model::{DataSource, Interface, RawHeader};
use thalweg_testkit::sized;

fn trials() -> u64 {
    sized(100, 200)
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws a number from 0 to below 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Draws up to and with the next success, when each one is with this probability.
    fn gap(&mut self, probability: f64) -> u64 {
        1 + ((1.0 - self.share()).ln() / (1.0 - probability).ln()) as u64
    }

    /// Packets up to and with the next one that is sampled, when each one is with probability 1/N.
    fn skip(&mut self, n: u32) -> u64 {
        if n <= 1 { 1 } else { self.gap(1.0 / f64::from(n)) }
    }

    /// The same as Thalweg's sampler draws it: any number from 1 to 2N - 1 alike.
    fn even_skip(&mut self, n: u32) -> u64 {
        1 + self.next() % u64::from(2 * n - 1)
    }

    /// Returns how many of `n` are of a part with this share.
    fn part(&mut self, n: u64, share: f64) -> u64 {
        if share >= 1.0 - 1e-9 {
            return n;
        }
        let mean = n as f64 * share;
        let spread = (mean * (1.0 - share)).sqrt();
        if spread < 5.0 {
            // Draws go from one to the next of what is rarer: few draws, however large `n` is.
            let rare = share.min(1.0 - share);
            let (mut at, mut count) = (self.gap(rare), 0);
            while at <= n {
                count += 1;
                at += self.gap(rare);
            }
            return if share > 0.5 { n - count } else { count };
        }
        // The sum of twelve is normal enough.
        let normal = (0..12).map(|_| self.share()).sum::<f64>() - 6.0;
        (mean + spread * normal).round().clamp(0.0, n as f64) as u64
    }
}

/// A class: its share of the packets, and the lengths that these have.
struct Class {
    share: f64,
    lengths: &'static [(f64, u32)],
}

/// Acknowledgements, bulk transfers, voice, a mix as on the Internet, and something rare.
const MIX: [Class; 6] = [
    Class { share: 0.40, lengths: &[(0.95, 66), (0.05, 1514)] },
    Class { share: 0.30, lengths: &[(0.85, 1514), (0.15, 590)] },
    Class { share: 0.15, lengths: &[(1.0, 214)] },
    Class { share: 0.10, lengths: &[(0.58, 64), (0.33, 594), (0.09, 1518)] },
    Class { share: 0.04, lengths: &[(0.5, 90), (0.5, 1400)] },
    Class { share: 0.01, lengths: &[(0.7, 300), (0.3, 900)] },
];

fn draw(share: f64, weights: impl Iterator<Item = f64>) -> usize {
    let (mut left, mut last) = (share, 0);
    for (i, weight) in weights.enumerate() {
        last = i;
        if left < weight {
            return i;
        }
        left -= weight;
    }
    last
}

/// Packets as a sampler meets them: class and length. The truth is counted as it is made.
struct Traffic {
    random: Random,
    packets: [u64; MIX.len()],
    bytes: [u64; MIX.len()],
}

impl Traffic {
    fn new(seed: u64) -> Self {
        Traffic { random: Random(seed), packets: [0; MIX.len()], bytes: [0; MIX.len()] }
    }

    fn packet(&mut self) -> (usize, u32) {
        let class = draw(self.random.share(), MIX.iter().map(|class| class.share));
        let lengths = MIX[class].lengths;
        let length = lengths[draw(self.random.share(), lengths.iter().map(|l| l.0))].1;
        self.packets[class] += 1;
        self.bytes[class] += u64::from(length);
        (class, length)
    }

    /// `n` packets without a sample: numbers of each class and length by chance, to the precision
    /// of the normal distribution where there are many.
    fn skip(&mut self, n: u64) {
        if n < 64 {
            for _ in 0..n {
                self.packet();
            }
            return;
        }
        let mut left = (n, 1.0);
        for (class, mix) in MIX.iter().enumerate() {
            let of_class = self.random.part(left.0, mix.share / left.1);
            left = (left.0 - of_class, left.1 - mix.share);
            self.packets[class] += of_class;
            let mut rest = (of_class, 1.0);
            for (share, length) in mix.lengths {
                let of_length = self.random.part(rest.0, share / rest.1);
                rest = (rest.0 - of_length, rest.1 - share);
                self.bytes[class] += of_length * u64::from(*length);
            }
        }
    }
}

/// Number of intervals that held the truth.
#[derive(Default)]
struct Covered {
    held: u64,
    of: u64,
}

impl Covered {
    fn count(&mut self, estimate: &Estimate, truth: u64) {
        let truth = truth as f64;
        // Half a packet: limits are not whole numbers.
        self.held += u64::from(estimate.low - 0.5 <= truth && truth <= estimate.high + 0.5);
        self.of += 1;
    }

    fn percent(&self) -> f64 {
        100.0 * self.held as f64 / self.of as f64
    }

    #[track_caller]
    fn is_right(&self, what: &str) {
        let percent = self.percent();
        println!("{what}: {percent:.2} % of {}", self.of);
        assert!(self.of >= 200, "{what}: only {} intervals", self.of);
        // Two percent are three standard deviations of 1,200 intervals.
        let most = 2.0 * (1200.0 / self.of as f64).max(1.0).sqrt();
        assert!((percent - 95.0).abs() <= most, "{what}: {percent:.2} % hold the truth");
    }
}

/// Encodes samples as an agent does, so that the whole way is tested.
struct Agent {
    encoder: DatagramEncoder,
    sequence: u32,
    drops: u32,
}

impl Agent {
    fn new() -> Self {
        let encoder = DatagramEncoder::new("192.0.2.1".parse().unwrap(), 0, 1400);
        Agent { encoder, sequence: 0, drops: 0 }
    }

    fn sample(&mut self, talkers: &mut TopTalkers, rate: u32, pool: u32, packet: (usize, u32)) {
        self.sequence += 1;
        let mut header = [0; 34];
        header[12..14].copy_from_slice(&[8, 0]);
        header[14] = 0x45;
        header[23] = 17;
        header[26..30].copy_from_slice(&[10, 0, 0, packet.0 as u8]);
        let raw = RawHeader {
            protocol: HeaderProtocol::ETHERNET,
            frame_length: packet.1 + 4,
            stripped: 4,
            header: &header,
        };
        let sample = FlowSampleOut {
            sequence: self.sequence,
            source: DataSource::interface(3),
            rate,
            pool,
            drops: self.drops,
            input: Interface::Index(3),
            output: Interface::UNKNOWN,
        };
        assert_eq!(self.encoder.flow_sample(&sample, Some(raw), &[]).unwrap(), Push::Added);
        talkers.feed(&Datagram::parse(self.encoder.finish(0).unwrap()).unwrap());
    }
}

struct Case {
    rate: u32,
    samples: u64,
    /// Samples are lost for lack of room when more than this number of 16 come.
    clipped: Option<u64>,
    /// True if the agent counts packets, false if it adds the rate for each sample.
    counts: bool,
    /// Function that finds the next sampled packet.
    skip: fn(&mut Random, u32) -> u64,
}

/// Packets and bytes of each class over all trials.
fn run(case: &Case) -> (Covered, Covered) {
    let (mut packets, mut bytes) = (Covered::default(), Covered::default());
    for seed in 0..trials() {
        let mut traffic = Traffic::new(seed << 32 | u64::from(case.rate));
        let mut skips = Random(!seed);
        let (mut agent, mut talkers) = (Agent::new(), TopTalkers::new(100));
        let mut pool = 0_u64;
        // The same number of packets in each trial; of samples there are more or less.
        let total = case.samples * u64::from(case.rate);
        let mut at = 0;
        for taken in 0.. {
            let skip = (case.skip)(&mut skips, case.rate);
            if at + skip > total {
                traffic.skip(total - at);
                break;
            }
            at += skip;
            traffic.skip(skip - 1);
            let packet = traffic.packet();
            pool = if case.counts { at } else { pool + u64::from(case.rate) };
            match case.clipped {
                Some(most) if taken % 16 >= most => agent.drops += 1,
                _ => agent.sample(&mut talkers, case.rate, pool as u32, packet),
            }
        }
        let found = talkers.top(100, Order::Packets);
        for class in 0..MIX.len() {
            let key = std::net::IpAddr::from([10, 0, 0, class as u8]);
            match found.iter().find(|talker| talker.key.source == key) {
                Some(talker) => {
                    packets.count(&talker.packets, traffic.packets[class]);
                    bytes.count(&talker.bytes, traffic.bytes[class]);
                }
                None => {
                    let none = Estimate::packets(0, f64::from(case.rate));
                    packets.count(&none, traffic.packets[class]);
                }
            }
        }
    }
    (packets, bytes)
}

#[test]
fn intervals_hold_the_truth_at_every_rate() {
    let cases =
        [(10, true), (100, true), (1000, true), (10_000, true), (10, false), (10_000, false)];
    for (rate, counts) in cases {
        let skip = Random::skip;
        let (packets, bytes) = run(&Case { rate, samples: 1000, clipped: None, counts, skip });
        let pool = if counts { "counted" } else { "made up" };
        packets.is_right(&format!("packets at 1:{rate}, pool {pool}"));
        bytes.is_right(&format!("bytes at 1:{rate}, pool {pool}"));
    }
}

/// The dataplane samples by even skips, which leave less to chance.
#[test]
fn intervals_hold_the_truth_with_even_skips() {
    for (rate, clipped) in [(10, None), (100, None), (1000, Some(8)), (10_000, None)] {
        let skip = Random::even_skip;
        let (packets, bytes) = run(&Case { rate, samples: 1000, clipped, counts: true, skip });
        packets.is_right(&format!("packets at 1:{rate}, even skips"));
        bytes.is_right(&format!("bytes at 1:{rate}, even skips"));
    }
}

#[test]
fn intervals_hold_the_truth_when_samples_are_clipped() {
    for (rate, clipped) in [(10, 12), (1000, 4), (10_000, 8)] {
        let (clipped_at, skip) = (Some(clipped), Random::skip);
        let case = Case { rate, samples: 2000, clipped: clipped_at, counts: true, skip };
        let (packets, bytes) = run(&case);
        packets.is_right(&format!("packets at 1:{rate}, {clipped} of 16 samples kept"));
        bytes.is_right(&format!("bytes at 1:{rate}, {clipped} of 16 samples kept"));
    }
}

/// Few samples have exact limits, which hold at least as often as they say.
#[test]
fn few_samples_are_on_the_safe_side() {
    for rate in [10, 10_000] {
        let skip = Random::skip;
        let (packets, bytes) = run(&Case { rate, samples: 60, clipped: None, counts: true, skip });
        println!("few at 1:{rate}: {:.2} %, {:.2} %", packets.percent(), bytes.percent());
        assert!(packets.percent() >= 94.5, "packets at 1:{rate}: {:.2} %", packets.percent());
        // Lengths that were not met cannot be known.
        assert!(bytes.percent() >= 92.0, "bytes at 1:{rate}: {:.2} %", bytes.percent());
    }
}

/// Discards by reason, of which one in N is reported.
#[test]
fn intervals_hold_the_discards() {
    const REASONS: [(f64, DiscardReason); 4] = [
        (0.5, DiscardReason::TTL_EXCEEDED),
        (0.3, DiscardReason::ACL),
        (0.15, DiscardReason::UNRESOLVED_NEIGH),
        (0.05, DiscardReason::BLACKHOLE_ROUTE),
    ];
    for one_in in [1_u32, 10, 100, 1000, 10_000] {
        let mut covered = Covered::default();
        for seed in 0..2 * trials() {
            let mut random = Random(seed << 20 | u64::from(one_in));
            let mut truth = [0_u64; REASONS.len()];
            let mut encoder = DatagramEncoder::new("192.0.2.1".parse().unwrap(), 0, 1400);
            let (mut discards, mut held_back) = (Discards::default(), 0);
            for sequence in 1..=500 {
                // The first is reported, as losses before it are unknown.
                let before = if sequence == 1 { 0 } else { random.skip(one_in) - 1 };
                held_back += before as u32;
                let mut left = (before, 1.0);
                for ((share, _), truth) in REASONS.iter().zip(&mut truth) {
                    let of_reason = random.part(left.0, share / left.1);
                    left = (left.0 - of_reason, left.1 - share);
                    *truth += of_reason;
                }
                let reason = draw(random.share(), REASONS.iter().map(|reason| reason.0));
                truth[reason] += 1;
                let sample = DiscardSampleOut {
                    sequence,
                    source: DataSource::NONE,
                    drops: held_back,
                    input: 1,
                    output: 0,
                    reason: REASONS[reason].1,
                };
                let pushed = encoder.discard_sample(&sample, None, &[]);
                assert_eq!(pushed.unwrap(), Push::Added);
                let datagram = Datagram::parse(encoder.finish(0).unwrap()).unwrap();
                for sample in datagram.samples() {
                    if let Ok(Sample::Discard(sample)) = sample {
                        discards.feed(&sample);
                    }
                }
            }
            for (reason, truth) in REASONS.iter().zip(truth) {
                covered.count(&discards.of(reason.1), truth);
            }
        }
        match one_in {
            // Nothing was held back: what is known is known.
            1 => assert_eq!(covered.held, covered.of),
            _ => covered.is_right(&format!("discards, one in {one_in} reported")),
        }
    }
}
