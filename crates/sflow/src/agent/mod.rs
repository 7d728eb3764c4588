//! The agent: numbers samples, packs them into datagrams and sends these to every collector.
//!
//! It reads no clock of its own and never waits. Its owner hands it samples with the time, and
//! calls [`Agent::tick`] when [`Agent::deadline`] has come.

mod election;
mod transport;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use thiserror::Error;

pub use election::{AddressPrefix, LocalAddress, elect_agent_address};
pub use transport::{SendError, Transport, UdpTransport};

use crate::encode::{
    DATAGRAM_BYTES, DEFAULT_DATAGRAM_BYTES, DatagramEncoder, DiscardSampleOut, FlowSampleOut, Push,
    SampleTooLong,
};
use crate::header::HeaderProtocol;
use crate::model::{
    CounterRecord, DataSource, DiscardReason, EthernetCounters, FlowRecord, Interface,
    InterfaceCounters, PortName, RawHeader,
};
use crate::value::Text;

/// The sub-agent number of an agent that samples packets, as hsflowd has it.
pub const SUB_AGENT_PACKETS: u32 = 100_000;
/// The sub-agent number of an agent that only sends counters, as hsflowd has it.
pub const SUB_AGENT_COUNTERS: u32 = 100_001;
/// Frame check sequence of Ethernet: not in the sampled frame, but in the length on the wire.
pub const FCS_BYTES: u32 = 4;
/// Data sources that are told apart; more are refused.
pub const MAX_SOURCES: usize = 65_536;

/// Where datagrams go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectorConfig {
    /// The collector.
    pub addr: SocketAddr,
    /// The local address to send from; `None` leaves it to routing.
    pub bind: Option<IpAddr>,
}

impl From<SocketAddr> for CollectorConfig {
    fn from(addr: SocketAddr) -> Self {
        CollectorConfig { addr, bind: None }
    }
}

/// Settings of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentConfig {
    /// The address that names the agent.
    pub agent_address: IpAddr,
    /// Tells agents of one address apart.
    pub sub_agent_id: u32,
    /// Where datagrams go.
    pub collectors: Vec<CollectorConfig>,
    /// Most bytes of a datagram, 200 to 65507.
    pub datagram_bytes: usize,
    /// Most bytes of a sampled header.
    pub header_bytes: usize,
    /// How long a sample may wait for others to share its datagram.
    pub max_delay: Duration,
}

impl AgentConfig {
    /// The usual settings for an agent of that address, without collectors.
    #[must_use]
    pub fn new(agent_address: IpAddr) -> Self {
        AgentConfig {
            agent_address,
            sub_agent_id: SUB_AGENT_PACKETS,
            collectors: Vec::new(),
            datagram_bytes: DEFAULT_DATAGRAM_BYTES,
            header_bytes: 128,
            max_delay: Duration::from_secs(1),
        }
    }
}

/// Why an agent cannot work as configured.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AgentError {
    /// The address names nobody.
    #[error("agent address {0} names no host: give an address of this one")]
    Address(IpAddr),
    /// Too short or too long.
    #[error("datagrams of {found} bytes are out of range: {min} to {max} are possible")]
    DatagramBytes {
        /// What was asked for.
        found: usize,
        /// The least possible.
        min: usize,
        /// The most possible.
        max: usize,
    },
    /// A sampled header would not fit into a datagram.
    #[error("headers of {header} bytes do not fit into datagrams of {datagram} bytes")]
    HeaderBytes {
        /// Header bytes asked for.
        header: usize,
        /// Datagram bytes asked for.
        datagram: usize,
    },
    /// A collector that nothing can be sent to.
    #[error("collector {0} cannot be sent to: give an address and a port other than 0")]
    Collector(SocketAddr),
}

impl AgentConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// When the agent could not work.
    pub fn check(&self) -> Result<(), AgentError> {
        if self.agent_address.is_unspecified() {
            return Err(AgentError::Address(self.agent_address));
        }
        if !DATAGRAM_BYTES.contains(&self.datagram_bytes) {
            return Err(AgentError::DatagramBytes {
                found: self.datagram_bytes,
                min: *DATAGRAM_BYTES.start(),
                max: *DATAGRAM_BYTES.end(),
            });
        }
        // Headers of datagram, sample and record around the sampled bytes, with an IPv6 agent.
        let around = 44 + 60 + 24;
        if self.header_bytes + around > self.datagram_bytes {
            let (header, datagram) = (self.header_bytes, self.datagram_bytes);
            return Err(AgentError::HeaderBytes { header, datagram });
        }
        let bad = |c: &&CollectorConfig| c.addr.port() == 0 || c.addr.ip().is_unspecified();
        match self.collectors.iter().find(bad) {
            Some(collector) => Err(AgentError::Collector(collector.addr)),
            None => Ok(()),
        }
    }
}

/// A packet that was sampled.
#[derive(Debug, Clone, Copy)]
pub struct FlowSampleIn<'a> {
    /// Who sampled it.
    pub source: DataSource,
    /// One packet in so many is sampled.
    pub rate: u32,
    /// Packets that the source has seen since it started: the true number.
    pub pool: u64,
    /// Samples that the source has lost since it started.
    pub drops: u64,
    /// ifIndex that the packet came in by, 0 unknown.
    pub input: u32,
    /// Where it went.
    pub output: Interface,
    /// What the header begins with.
    pub protocol: HeaderProtocol,
    /// Bytes of the packet as the dataplane has it.
    pub frame_length: u32,
    /// Bytes that are on the wire but not in the packet, [`FCS_BYTES`] for Ethernet. The length
    /// that is sent counts them.
    pub stripped: u32,
    /// The first bytes of the packet; what is longer than configured is cut.
    pub header: &'a [u8],
    /// What else is known; sent in reverse order, before the header.
    pub records: &'a [FlowRecord<'a>],
}

/// A packet that was discarded.
#[derive(Debug, Clone, Copy)]
pub struct DiscardIn<'a> {
    /// Who discarded it; [`DataSource::NONE`] as hsflowd has it.
    pub source: DataSource,
    /// Notifications that were suppressed since the source started.
    pub drops: u64,
    /// ifIndex that the packet came in by, 0 unknown.
    pub input: u32,
    /// ifIndex that it would have left by, 0 unknown.
    pub output: u32,
    /// Why.
    pub reason: DiscardReason,
    /// What the header begins with.
    pub protocol: HeaderProtocol,
    /// The length that is sent. hsflowd does not count the stripped bytes for discarded packets.
    pub frame_length: u32,
    /// Bytes said to be stripped.
    pub stripped: u32,
    /// The first bytes of the packet; what is longer than configured is cut.
    pub header: &'a [u8],
    /// What else is known; sent in reverse order, before the header.
    pub records: &'a [FlowRecord<'a>],
}

/// Counters of an interface.
#[derive(Debug, Clone, Copy)]
pub struct InterfaceCountersIn<'a> {
    /// The interface; its index is also the data source.
    pub counters: InterfaceCounters,
    /// Its name.
    pub name: Option<&'a str>,
    /// Ethernet errors.
    pub ethernet: Option<EthernetCounters>,
}

/// What became of samples and datagrams.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentStats {
    /// Flow samples packed.
    pub flow_samples: u64,
    /// Counter samples packed.
    pub counter_samples: u64,
    /// Discarded packets packed.
    pub discard_samples: u64,
    /// Samples that fit into no datagram, or whose source is one too many.
    pub refused_samples: u64,
    /// Datagrams packed.
    pub datagrams: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Data sources known.
    pub sources: u64,
}

/// What became of the datagrams for one collector.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CollectorStats {
    /// Datagrams sent.
    pub datagrams: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Datagrams not sent, whatever the reason.
    pub send_errors: u64,
    /// Of these, for lack of room in the send buffer.
    pub would_block: u64,
    /// Answers that nobody listens there.
    pub refused: u64,
    /// The latest reason.
    pub last_error: Option<String>,
}

struct Collector<T> {
    config: CollectorConfig,
    transport: T,
    stats: CollectorStats,
}

/// A counter that only ever grows on the wire, even when its source starts again.
#[derive(Debug, Default, Clone, Copy)]
struct Cumulative {
    last: u64,
    wire: u32,
}

impl Cumulative {
    fn update(&mut self, now: u64) -> u32 {
        // Less than before: the source has started again, and counted so much since.
        let delta = now.checked_sub(self.last).unwrap_or(now);
        self.last = now;
        self.wire = self.wire.wrapping_add(delta as u32);
        self.wire
    }
}

#[derive(Debug, Default)]
struct SourceState {
    flow_sequence: u32,
    counter_sequence: u32,
    discard_sequence: u32,
    pool: Cumulative,
    drops: Cumulative,
    discard_drops: Cumulative,
}

/// An sFlow agent.
pub struct Agent<T = UdpTransport> {
    encoder: DatagramEncoder,
    header_bytes: usize,
    max_delay: Duration,
    started: Instant,
    /// When the oldest sample of the datagram came.
    pending_since: Option<Instant>,
    sources: HashMap<DataSource, SourceState>,
    collectors: Vec<Collector<T>>,
    stats: AgentStats,
}

impl Agent<UdpTransport> {
    /// An agent that sends over UDP. Its uptime counts from `now`. A collector that cannot be
    /// reached yet is not an error.
    ///
    /// # Errors
    /// When the configuration is impossible.
    pub fn new(config: &AgentConfig, now: Instant) -> Result<Self, AgentError> {
        Self::with_transport(config, now, |collector| {
            UdpTransport::new(collector.addr, collector.bind)
        })
    }
}

impl<T: Transport> Agent<T> {
    /// An agent whose collectors are reached by what `connect` makes.
    ///
    /// # Errors
    /// When the configuration is impossible.
    pub fn with_transport(
        config: &AgentConfig,
        now: Instant,
        mut connect: impl FnMut(&CollectorConfig) -> T,
    ) -> Result<Self, AgentError> {
        config.check()?;
        let collectors = config.collectors.iter().map(|collector| Collector {
            config: *collector,
            transport: connect(collector),
            stats: CollectorStats::default(),
        });
        Ok(Agent {
            encoder: DatagramEncoder::new(
                config.agent_address,
                config.sub_agent_id,
                config.datagram_bytes,
            ),
            header_bytes: config.header_bytes,
            max_delay: config.max_delay,
            started: now,
            pending_since: None,
            sources: HashMap::new(),
            collectors: collectors.collect(),
            stats: AgentStats::default(),
        })
    }

    /// What was packed.
    #[must_use]
    pub fn stats(&self) -> &AgentStats {
        &self.stats
    }

    /// What was sent, per collector.
    pub fn collectors(&self) -> impl Iterator<Item = (&CollectorConfig, &CollectorStats)> {
        self.collectors.iter().map(|c| (&c.config, &c.stats))
    }

    /// Takes a sampled packet.
    pub fn flow_sample(&mut self, now: Instant, sample: &FlowSampleIn<'_>) {
        let header = RawHeader {
            protocol: sample.protocol,
            frame_length: sample.frame_length.saturating_add(sample.stripped),
            stripped: sample.stripped,
            header: cut(sample.header, self.header_bytes),
        };
        let Some(state) = self.source(sample.source) else { return };
        state.flow_sequence = state.flow_sequence.wrapping_add(1);
        let out = FlowSampleOut {
            sequence: state.flow_sequence,
            source: sample.source,
            rate: sample.rate,
            pool: state.pool.update(sample.pool),
            drops: state.drops.update(sample.drops),
            input: Interface::Index(sample.input),
            output: sample.output,
        };
        let packed =
            self.pack(now, |encoder| encoder.flow_sample(&out, Some(header), sample.records));
        self.stats.flow_samples += u64::from(packed);
    }

    /// Takes a discarded packet.
    pub fn discard(&mut self, now: Instant, sample: &DiscardIn<'_>) {
        let header = RawHeader {
            protocol: sample.protocol,
            frame_length: sample.frame_length,
            stripped: sample.stripped,
            header: cut(sample.header, self.header_bytes),
        };
        let Some(state) = self.source(sample.source) else { return };
        state.discard_sequence = state.discard_sequence.wrapping_add(1);
        let out = DiscardSampleOut {
            sequence: state.discard_sequence,
            source: sample.source,
            drops: state.discard_drops.update(sample.drops),
            input: sample.input,
            output: sample.output,
            reason: sample.reason,
        };
        let packed =
            self.pack(now, |encoder| encoder.discard_sample(&out, Some(header), sample.records));
        self.stats.discard_samples += u64::from(packed);
    }

    /// Takes the counters of an interface.
    pub fn interface_counters(&mut self, now: Instant, interface: &InterfaceCountersIn<'_>) {
        let source = DataSource::interface(interface.counters.index);
        let generic = CounterRecord::Interface(interface.counters);
        let name = Text::from(interface.name.unwrap_or_default());
        let name = CounterRecord::PortName(PortName { name });
        match (interface.name, interface.ethernet) {
            (None, None) => self.counters(now, source, &[generic]),
            (Some(_), None) => self.counters(now, source, &[generic, name]),
            (None, Some(ethernet)) => {
                self.counters(now, source, &[generic, CounterRecord::Ethernet(ethernet)]);
            }
            (Some(_), Some(ethernet)) => {
                self.counters(now, source, &[generic, name, CounterRecord::Ethernet(ethernet)]);
            }
        }
    }

    /// Takes any counters. They are sent in reverse order.
    pub fn counters(&mut self, now: Instant, source: DataSource, records: &[CounterRecord<'_>]) {
        let Some(state) = self.source(source) else { return };
        state.counter_sequence = state.counter_sequence.wrapping_add(1);
        let sequence = state.counter_sequence;
        let packed = self.pack(now, |encoder| encoder.counter_sample(sequence, source, records));
        self.stats.counter_samples += u64::from(packed);
    }

    /// The counters of a source have started again: so does their numbering, which tells collectors
    /// not to take a delta.
    pub fn reset_counters(&mut self, source: DataSource) {
        if let Some(state) = self.sources.get_mut(&source) {
            state.counter_sequence = 0;
        }
    }

    /// Forgets a source that is no more.
    pub fn remove_source(&mut self, source: DataSource) {
        self.sources.remove(&source);
        self.stats.sources = self.sources.len() as u64;
    }

    /// When [`Agent::tick`] should be called at the latest; `None` while nothing waits.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.pending_since.map(|since| since + self.max_delay)
    }

    /// Sends what has waited long enough.
    pub fn tick(&mut self, now: Instant) {
        if self.deadline().is_some_and(|deadline| now >= deadline) {
            self.flush(now);
        }
    }

    /// Sends what there is.
    pub fn flush(&mut self, now: Instant) {
        self.pending_since = None;
        let uptime = now.saturating_duration_since(self.started).as_millis() as u32;
        let Some(datagram) = self.encoder.finish(uptime) else { return };
        self.stats.datagrams += 1;
        self.stats.bytes += datagram.len() as u64;
        for collector in &mut self.collectors {
            collector.send(datagram, now);
        }
    }

    fn source(&mut self, source: DataSource) -> Option<&mut SourceState> {
        if self.sources.len() >= MAX_SOURCES && !self.sources.contains_key(&source) {
            self.stats.refused_samples += 1;
            return None;
        }
        let count = &mut self.stats.sources;
        Some(self.sources.entry(source).or_insert_with(|| {
            *count += 1;
            SourceState::default()
        }))
    }

    fn pack(
        &mut self,
        now: Instant,
        mut push: impl FnMut(&mut DatagramEncoder) -> Result<Push, SampleTooLong>,
    ) -> bool {
        let mut result = push(&mut self.encoder);
        if result == Ok(Push::Full) {
            self.flush(now);
            result = push(&mut self.encoder);
        }
        match result {
            Ok(Push::Added) => {
                self.pending_since.get_or_insert(now);
                true
            }
            Ok(Push::Full) | Err(SampleTooLong { .. }) => {
                self.stats.refused_samples += 1;
                false
            }
        }
    }
}

impl<T: Transport> Collector<T> {
    fn send(&mut self, datagram: &[u8], now: Instant) {
        let refused = |e: &SendError| matches!(e, SendError::Refused);
        let mut result = self.transport.send(datagram, now);
        if result.as_ref().is_err_and(refused) {
            // The answer is to an earlier datagram, and this one was not sent: the collector may be
            // back by now.
            self.stats.refused += 1;
            result = self.transport.send(datagram, now);
        }
        match result {
            Ok(()) => {
                self.stats.datagrams += 1;
                self.stats.bytes += datagram.len() as u64;
            }
            Err(error) => {
                self.stats.send_errors += 1;
                self.stats.would_block += u64::from(matches!(error, SendError::WouldBlock));
                self.stats.last_error = Some(error.to_string());
            }
        }
    }
}

fn cut(header: &[u8], limit: usize) -> &[u8] {
    &header[..header.len().min(limit)]
}

#[cfg(test)]
mod tests;
