//! Top talkers: traffic by conversation.

use std::collections::HashMap;
use std::net::IpAddr;

use super::{Estimate, Population, Sum, Tally};
use crate::decode::{CounterSample, Datagram, FlowSample, Sample};
use crate::header::SampledHeader;
use crate::model::{CounterRecord, DataSource, FlowRecord, InterfaceCounters, supported};

/// A conversation in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowKey {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// IP protocol.
    pub protocol: u8,
}

/// A conversation with its traffic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Talker {
    /// Hosts and protocol.
    pub key: FlowKey,
    /// Packets.
    pub packets: Estimate,
    /// Bytes of the frames, without frame check sequence.
    pub bytes: Estimate,
}

/// Measure of the largest talkers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Bytes.
    Bytes,
    /// Packets.
    Packets,
}

/// Source of the number of packets behind a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaleBasis {
    /// The rate that the samples name.
    Rate,
    /// The sample pool, which knows of samples that were lost.
    Pool,
    /// Interface counters, which know the packets exactly.
    Counters,
}

/// Comparison of a data source's samples with what it counts itself.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceReport {
    /// Agent.
    pub agent: Option<IpAddr>,
    /// Sub-agent.
    pub sub_agent: u32,
    /// Data source.
    pub source: DataSource,
    /// Samples received.
    pub samples: u64,
    /// Samples that were numbered but not received.
    pub lost: u64,
    /// Samples that the agent says it lost.
    pub drops: u64,
    /// Packets that one sample stands for.
    pub scale: f64,
    /// Source of that number.
    pub basis: ScaleBasis,
    /// Packets counted by the interface between its counter samples, if it sends any.
    pub counted_packets: Option<u64>,
    /// Packets estimated for the same time without counters.
    pub sampled_packets: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct SourceKey {
    agent: Option<IpAddr>,
    sub_agent: u32,
    source: DataSource,
}

/// Maximum number of samples with old numbers in a row that count as overtaken. More of them start
/// the count again, though the pool went on: agents may restart numbering under another name, and
/// return.
const MOST_BEHIND: u32 = 64;
/// Maximum number of data sources, as a sender could make them up. Samples of more are skipped.
const MOST_SOURCES: usize = 65_536;
/// Sources per conversation, on average, whose samples of it are distinguished.
const SOURCES_EACH: usize = 4;
/// Standard deviations of the number of samples within which counters and a counted pool agree.
const DEVIATIONS: f64 = 4.0;
/// Fewer samples between counter samples say too little about their number per packet.
const MIN_COUNTED_SAMPLES: u64 = 100;

#[derive(Debug, Default)]
struct Source {
    samples: u64,
    total: Tally,
    non_ip: Tally,
    other: Tally,
    rates: f64,
    pool: u64,
    lost: u64,
    drops: u64,
    /// True if the pool is more exact than rate and number of samples.
    pool_counts: bool,
    /// Sequence number, pool and drops of the latest sample.
    last: Option<(u32, u32, u32)>,
    /// Samples in a row with numbers before its.
    behind: u32,
    ingress: u64,
    /// The latest counters, and the samples that came since.
    counters: Option<(InterfaceCounters, u64)>,
    /// Packets in and out, and samples, between counter samples.
    counted: (u64, u64, u64),
}

fn packets_delta(now: [u32; 3], before: [u32; 3]) -> u64 {
    let both = |(now, before)| supported(now).zip(supported(before));
    let deltas = now.into_iter().zip(before).filter_map(both);
    deltas.map(|(now, before)| u64::from(now.wrapping_sub(before))).sum()
}

impl Source {
    fn flow(&mut self, sample: &FlowSample<'_>) {
        self.samples += 1;
        self.rates += f64::from(sample.rate.max(1));
        self.ingress += u64::from(sample.input.parts() == (0, sample.source.index));
        if let Some((_, since)) = &mut self.counters {
            *since += 1;
        }
        let Some((sequence, pool, drops)) = self.last else {
            self.pool = sample.rate.into();
            self.last = Some((sample.sequence, sample.pool, sample.drops));
            return;
        };
        let step = sample.sequence.wrapping_sub(sequence);
        if step == 0 || step > u32::MAX / 2 {
            // Reordered on the way, or the agent has started again.
            self.pool += u64::from(sample.rate);
            self.behind += 1;
            if sample.pool < pool || self.behind >= MOST_BEHIND {
                self.last = Some((sample.sequence, sample.pool, sample.drops));
                self.behind = 0;
            }
            return;
        }
        self.behind = 0;
        self.lost += u64::from(step - 1);
        let packets = sample.pool.wrapping_sub(pool);
        self.pool += u64::from(packets);
        // Agents that do not count packets add the rate for each sample.
        self.pool_counts |= packets != step.wrapping_mul(sample.rate);
        self.drops += u64::from(sample.drops.wrapping_sub(drops));
        self.last = Some((sample.sequence, sample.pool, sample.drops));
    }

    fn counters(&mut self, now: &InterfaceCounters) {
        if let Some((before, since)) = self.counters {
            let input = |c: &InterfaceCounters| [c.in_unicast, c.in_multicast, c.in_broadcast];
            let output = |c: &InterfaceCounters| [c.out_unicast, c.out_multicast, c.out_broadcast];
            // Octets never wrap: going back means that the counters have started again.
            if now.in_octets >= before.in_octets && now.out_octets >= before.out_octets {
                self.counted.0 += packets_delta(input(now), input(&before));
                self.counted.1 += packets_delta(output(now), output(&before));
                self.counted.2 += since;
            }
        }
        self.counters = Some((*now, 0));
    }

    /// Packets counted in the direction, or directions, that samples are taken of.
    fn counted_packets(&self) -> Option<u64> {
        let (input, output, samples) = self.counted;
        (samples > 0).then_some(match self.ingress {
            0 => output,
            n if n == self.samples => input,
            _ => input + output,
        })
    }

    fn sampled_scale(&self) -> (f64, ScaleBasis) {
        if self.samples == 0 {
            return (1.0, ScaleBasis::Rate);
        }
        let samples = self.samples as f64;
        let (rate, pool) = (self.rates / samples, self.pool as f64 / samples);
        // A pool that is far behind the samples is ignored.
        if pool >= rate / 2.0 { (pool, ScaleBasis::Pool) } else { (rate, ScaleBasis::Rate) }
    }

    fn population(&self) -> Population {
        let (scale, basis) = self.scale();
        let known = match basis {
            ScaleBasis::Rate => false,
            ScaleBasis::Pool => self.pool_counts,
            ScaleBasis::Counters => true,
        };
        let samples = known.then_some(self.samples);
        Population { scale, samples, square: self.total.squares / self.total.count.max(1) as f64 }
    }

    fn scale(&self) -> (f64, ScaleBasis) {
        let (sampled, basis) = self.sampled_scale();
        if let Some(packets) = self.counted_packets() {
            let counted = packets as f64 / self.counted.2 as f64;
            // Far apart, the counters count something else than what is sampled: GSO packets, or
            // packets that hardware forwards. A pool that is counted as well differs by chance
            // only.
            let ratio = counted / sampled;
            let plausible = match basis {
                ScaleBasis::Pool if self.pool_counts => {
                    (ratio - 1.0).abs() <= DEVIATIONS / (self.counted.2 as f64).sqrt()
                }
                _ => (0.5..=2.0).contains(&ratio),
            };
            if self.counted.2 >= MIN_COUNTED_SAMPLES && plausible {
                return (counted, ScaleBasis::Counters);
            }
        }
        (sampled, basis)
    }
}

/// Adds up flow samples by conversation and scales them by data source.
#[derive(Debug)]
pub struct TopTalkers {
    limit: usize,
    sources: Vec<(SourceKey, Source)>,
    source_index: HashMap<SourceKey, usize>,
    flows: HashMap<FlowKey, Vec<(usize, Tally)>>,
    /// Tallies of all conversations.
    tallies: usize,
    passed_over: u64,
}

impl TopTalkers {
    /// Distinguishes at most `limit` conversations; samples of more are counted together.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        TopTalkers {
            limit,
            sources: Vec::new(),
            source_index: HashMap::new(),
            flows: HashMap::new(),
            tallies: 0,
            passed_over: 0,
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        (self.tallies, self.passed_over) = (0, 0);
        self.sources.clear();
        self.source_index.clear();
        self.flows.clear();
    }

    /// Number of distinguished conversations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// True if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Takes the flow and counter samples of a datagram. Malformed ones are passed over.
    pub fn feed(&mut self, datagram: &Datagram<'_>) {
        for sample in datagram.samples() {
            match sample {
                Ok(Sample::Flow(sample)) => self.feed_flow(datagram, &sample),
                Ok(Sample::Counters(sample)) => self.feed_counters(datagram, &sample),
                _ => {}
            }
        }
    }

    /// Returns the place of a source, made if need be; `None` above the limit.
    fn source(&mut self, datagram: &Datagram<'_>, source: DataSource) -> Option<usize> {
        let Datagram { agent, sub_agent, .. } = *datagram;
        let key = SourceKey { agent, sub_agent, source };
        if let Some(at) = self.source_index.get(&key) {
            return Some(*at);
        }
        if self.sources.len() >= MOST_SOURCES {
            self.passed_over += 1;
            return None;
        }
        self.sources.push((key, Source::default()));
        self.source_index.insert(key, self.sources.len() - 1);
        Some(self.sources.len() - 1)
    }

    /// Samples of sources beyond the limit.
    #[must_use]
    pub fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// Takes one flow sample; only the header of `datagram` is looked at.
    pub fn feed_flow(&mut self, datagram: &Datagram<'_>, sample: &FlowSample<'_>) {
        let Some((key, length)) = sample.records.clone().flatten().find_map(|r| describe(&r))
        else {
            return;
        };
        let Some(index) = self.source(datagram, sample.source) else { return };
        let source = &mut self.sources[index].1;
        source.flow(sample);
        source.total.add(length);
        let Some(key) = key else {
            source.non_ip.add(length);
            return;
        };
        if self.flows.len() >= self.limit && !self.flows.contains_key(&key) {
            source.other.add(length);
            return;
        }
        let tallies = self.flows.entry(key).or_default();
        if let Some((_, tally)) = tallies.iter_mut().find(|(i, _)| *i == index) {
            tally.add(length);
        } else if !tallies.is_empty() && self.tallies >= SOURCES_EACH * self.limit {
            source.other.add(length);
        } else {
            let mut tally = Tally::default();
            tally.add(length);
            tallies.push((index, tally));
            self.tallies += 1;
        }
    }

    /// Takes the counters of an interface; only the header of `datagram` is looked at.
    pub fn feed_counters(&mut self, datagram: &Datagram<'_>, sample: &CounterSample<'_>) {
        for record in sample.records.clone().flatten() {
            if let CounterRecord::Interface(counters) = record {
                let Some(index) = self.source(datagram, sample.source) else { return };
                self.sources[index].1.counters(&counters);
            }
        }
    }

    fn populations(&self) -> Vec<Population> {
        self.sources.iter().map(|(_, source)| source.population()).collect()
    }

    fn sum_sources(&self, tally: impl Fn(&Source) -> Tally) -> (Estimate, Estimate) {
        let mut sum = Sum::default();
        for (_, source) in &self.sources {
            sum.add(&tally(source), &source.population());
        }
        (sum.packets(), sum.bytes())
    }

    /// Packets and bytes of everything.
    #[must_use]
    pub fn total(&self) -> (Estimate, Estimate) {
        self.sum_sources(|source| source.total)
    }

    /// Packets and bytes of what is not IP.
    #[must_use]
    pub fn non_ip(&self) -> (Estimate, Estimate) {
        self.sum_sources(|source| source.non_ip)
    }

    /// Packets and bytes of conversations beyond the limit.
    #[must_use]
    pub fn other(&self) -> (Estimate, Estimate) {
        self.sum_sources(|source| source.other)
    }

    /// The `n` largest conversations, largest first.
    #[must_use]
    pub fn top(&self, n: usize, order: Order) -> Vec<Talker> {
        let populations = self.populations();
        let mut ranked: Vec<(f64, FlowKey, Sum)> = Vec::with_capacity(self.flows.len());
        for (key, tallies) in &self.flows {
            let mut sum = Sum::default();
            for (index, tally) in tallies {
                sum.add(tally, &populations[*index]);
            }
            let size = match order {
                Order::Bytes => sum.bytes,
                Order::Packets => sum.packets,
            };
            ranked.push((size, *key, sum));
        }
        let descending = |a: &(f64, FlowKey, Sum), b: &(f64, FlowKey, Sum)| {
            b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1))
        };
        if n < ranked.len() {
            ranked.select_nth_unstable_by(n, descending);
            ranked.truncate(n);
        }
        ranked.sort_unstable_by(descending);
        let talker = |(_, key, sum): (f64, FlowKey, Sum)| Talker {
            key,
            packets: sum.packets(),
            bytes: sum.bytes(),
        };
        ranked.into_iter().map(talker).collect()
    }

    /// Returns how each data source was scaled.
    pub fn sources(&self) -> impl Iterator<Item = SourceReport> + '_ {
        self.sources.iter().map(|(key, source)| {
            let (scale, basis) = source.scale();
            let counted_packets = source.counted_packets();
            let (sampled, _) = source.sampled_scale();
            SourceReport {
                agent: key.agent,
                sub_agent: key.sub_agent,
                source: key.source,
                samples: source.samples,
                lost: source.lost,
                drops: source.drops,
                scale,
                basis,
                counted_packets,
                sampled_packets: counted_packets.map(|_| sampled * source.counted.2 as f64),
            }
        })
    }
}

/// Returns the hosts and protocol of a packet, when it is IP, and its length; `None` for records
/// that do not describe a packet.
fn describe(record: &FlowRecord<'_>) -> Option<(Option<FlowKey>, u32)> {
    match record {
        FlowRecord::RawHeader(raw) => {
            let header = SampledHeader::parse_through_mpls(raw.protocol, raw.header);
            let key = header.addresses().map(|(source, destination, protocol)| FlowKey {
                source,
                destination,
                protocol,
            });
            Some((key, raw.frame_length.saturating_sub(raw.stripped)))
        }
        FlowRecord::Ipv4(ip) => {
            let (source, destination) = (ip.source.into(), ip.destination.into());
            let key = FlowKey { source, destination, protocol: ip.protocol as u8 };
            Some((Some(key), ip.length))
        }
        FlowRecord::Ipv6(ip) => {
            let (source, destination) = (ip.source.into(), ip.destination.into());
            let key = FlowKey { source, destination, protocol: ip.protocol as u8 };
            Some((Some(key), ip.length))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
