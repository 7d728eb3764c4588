//! The agent: numbers samples, packs them into datagrams and sends these to every collector.
//!
//! An [`Agent`] reads no clock of its own and never waits. Its owner hands it samples with the
//! time, and calls [`Agent::tick`] after a round of them and when [`Agent::deadline`] has come.
//! Full datagrams gather in a [`Batch`], so that [`Collectors`] need one system call for many.

mod background;
mod batch;
mod collectors;
mod election;
mod local;
mod transport;

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use thiserror::Error;

pub use background::BackgroundTask;
pub use batch::Batch;
pub use collectors::{CollectorConfig, CollectorStats, Collectors, Host};
pub use election::{AddressPrefix, LocalAddress, elect_agent_address};
pub use local::{AgentChoice, local_addresses};
pub use transport::Transport;

use crate::host::HostCounters;
use thalweg_sflow::encode::{
    DATAGRAM_BYTES, DEFAULT_DATAGRAM_BYTES, DatagramEncoder, DiscardSampleOut, FlowSampleOut, Push,
    SampleTooLong,
};
use thalweg_sflow::header::HeaderProtocol;
use thalweg_sflow::model::{
    CounterRecord, DataSource, DiscardReason, EthernetCounters, FlowRecord, Interface,
    InterfaceCounters, PortName, RawHeader,
};
use thalweg_sflow::value::Text;
use thalweg_sflow::xdr::Writer;

/// Sub-agent number of an agent that samples packets, as in hsflowd.
pub const SUB_AGENT_PACKETS: u32 = 100_000;
/// Sub-agent number of an agent that only sends counters, as in hsflowd.
pub const SUB_AGENT_COUNTERS: u32 = 100_001;
/// Frame check sequence of Ethernet: not in the sampled frame, but in the length on the wire.
pub const FCS_BYTES: u32 = 4;
/// Maximum number of data sources; more are refused.
pub const MAX_SOURCES: usize = 65_536;

/// Settings of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentConfig {
    /// The address that names the agent.
    pub agent_address: IpAddr,
    /// Sub-agent id, which distinguishes agents with the same address.
    pub sub_agent_id: u32,
    /// Most bytes of a datagram, 200 to 65507.
    pub datagram_bytes: usize,
    /// Most bytes of a sampled header.
    pub header_bytes: usize,
    /// Time that a sample may wait for others to share its datagram.
    pub max_delay: Duration,
}

impl AgentConfig {
    fn name(&self) -> Name {
        (self.agent_address, self.sub_agent_id)
    }

    fn encoder(&self) -> DatagramEncoder {
        DatagramEncoder::new(self.agent_address, self.sub_agent_id, self.datagram_bytes)
    }

    /// The usual settings for an agent of that address.
    #[must_use]
    pub fn new(agent_address: IpAddr) -> Self {
        AgentConfig {
            agent_address,
            sub_agent_id: SUB_AGENT_PACKETS,
            datagram_bytes: DEFAULT_DATAGRAM_BYTES,
            header_bytes: 128,
            max_delay: Duration::from_secs(1),
        }
    }
}

/// Headers of datagram, sample and record around the sampled bytes, with an IPv6 agent.
pub const AROUND: usize = 44 + 60 + 24;

/// Most bytes of a sampled packet that fit into datagrams of this size.
#[must_use]
pub const fn header_room(datagram_bytes: usize) -> usize {
    datagram_bytes.saturating_sub(AROUND)
}

/// Reason why an agent cannot work as configured.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AgentError {
    /// The agent address is unusable.
    #[error("agent address {0} is not a valid agent address: give a unicast address of this host")]
    Address(IpAddr),
    /// The size of datagrams is out of range.
    #[error("datagrams of {found} bytes are out of range: {min} to {max} are possible")]
    DatagramBytes {
        /// The configured length.
        found: usize,
        /// The least possible.
        min: usize,
        /// The most possible.
        max: usize,
    },
    /// A sampled header would not fit into a datagram.
    #[error(
        "headers of {header} bytes do not fit into datagrams of {datagram} bytes: these need {} or more",
        header + AROUND
    )]
    HeaderBytes {
        /// Header bytes asked for.
        header: usize,
        /// Datagram bytes asked for.
        datagram: usize,
    },
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
        if self.header_bytes + AROUND > self.datagram_bytes {
            let (header, datagram) = (self.header_bytes, self.datagram_bytes);
            return Err(AgentError::HeaderBytes { header, datagram });
        }
        Ok(())
    }
}

/// A packet that was sampled.
#[derive(Debug, Clone, Copy)]
pub struct FlowSampleIn<'a> {
    /// The source that sampled it.
    pub source: DataSource,
    /// Sampling rate N: one packet in N is sampled.
    pub rate: u32,
    /// Packets that the source has seen since it started: the true number.
    pub pool: u64,
    /// Samples that the source has lost since it started.
    pub drops: u64,
    /// ifIndex that the packet came in by, 0 unknown.
    pub input: u32,
    /// Output of the packet.
    pub output: Interface,
    /// Protocol that the header begins with.
    pub protocol: HeaderProtocol,
    /// Bytes of the packet in the dataplane.
    pub frame_length: u32,
    /// Bytes that are on the wire but not in the packet, [`FCS_BYTES`] for Ethernet. The length
    /// that is sent counts them.
    pub stripped: u32,
    /// The first bytes of the packet; what is longer than configured is cut.
    pub header: &'a [u8],
    /// More records; sent in reverse order, before the header.
    pub records: &'a [FlowRecord<'a>],
}

/// A packet that was discarded.
#[derive(Debug, Clone, Copy)]
pub struct DiscardIn<'a> {
    /// The source that discarded it; [`DataSource::NONE`] as in hsflowd.
    pub source: DataSource,
    /// Notifications that were suppressed since the source started.
    pub drops: u64,
    /// ifIndex that the packet came in by, 0 unknown.
    pub input: u32,
    /// ifIndex that it would have left by, 0 unknown.
    pub output: u32,
    /// Reason.
    pub reason: DiscardReason,
    /// Protocol that the header begins with.
    pub protocol: HeaderProtocol,
    /// The length that is sent. hsflowd does not count the stripped bytes for discarded packets.
    pub frame_length: u32,
    /// Bytes that were stripped, by the sender.
    pub stripped: u32,
    /// The first bytes of the packet; what is longer than configured is cut.
    pub header: &'a [u8],
    /// More records; sent in reverse order, before the header.
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

/// Counts of samples and datagrams.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentStats {
    /// Flow samples packed.
    pub flow_samples: u64,
    /// Counter samples packed.
    pub counter_samples: u64,
    /// Discarded packets packed.
    pub discard_samples: u64,
    /// Samples that fit into no datagram, or whose source exceeds the limit.
    pub refused_samples: u64,
    /// Datagrams packed.
    pub datagrams: u64,
    /// Bytes of these.
    pub bytes: u64,
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

/// State of data sources. Interfaces are found by index, without hashing.
#[derive(Debug, Default)]
struct Sources {
    interfaces: Vec<Option<SourceState>>,
    others: HashMap<DataSource, SourceState>,
    count: usize,
}

impl Sources {
    /// Returns the state of a source, made if need be; `None` above the limit.
    #[inline]
    fn get(&mut self, source: DataSource) -> Option<&mut SourceState> {
        let at = source.index as usize;
        if source.class == 0 && matches!(self.interfaces.get(at), Some(Some(_))) {
            return self.interfaces[at].as_mut();
        }
        self.find_or_make(source)
    }

    #[cold]
    fn find_or_make(&mut self, source: DataSource) -> Option<&mut SourceState> {
        let at = source.index as usize;
        if source.class == 0 && at < MAX_SOURCES {
            if self.count >= MAX_SOURCES {
                return None;
            }
            if at >= self.interfaces.len() {
                self.interfaces.resize_with(at + 1, || None);
            }
            self.count += 1;
            return Some(self.interfaces[at].insert(SourceState::default()));
        }
        if !self.others.contains_key(&source) {
            if self.count >= MAX_SOURCES {
                return None;
            }
            self.count += 1;
        }
        Some(self.others.entry(source).or_default())
    }

    fn known(&mut self, source: DataSource) -> Option<&mut SourceState> {
        match self.interfaces.get_mut(source.index as usize) {
            Some(slot) if source.class == 0 => slot.as_mut(),
            _ => self.others.get_mut(&source),
        }
    }

    fn remove(&mut self, source: DataSource) {
        let gone = match self.interfaces.get_mut(source.index as usize) {
            Some(slot) if source.class == 0 => slot.take(),
            _ => self.others.remove(&source),
        };
        self.count -= usize::from(gone.is_some());
    }
}

/// Names that an agent had before, and whose numbering it keeps.
const FORMER_NAMES: usize = 16;

/// An address and a sub-agent: what collectors know an agent by.
type Name = (IpAddr, u32);

/// Numbers under a name: of datagrams, and of samples by source.
#[derive(Debug)]
struct Numbering {
    encoder: DatagramEncoder,
    sources: Sources,
}

/// An sFlow agent that gives its datagrams to a transport.
#[derive(Debug)]
pub struct Agent<T> {
    name: Name,
    encoder: DatagramEncoder,
    header_bytes: usize,
    datagram_bytes: usize,
    max_delay: Duration,
    started: Instant,
    /// Time when the oldest sample that has not been sent came.
    pending_since: Option<Instant>,
    sources: Sources,
    /// Numbering under former names, the latest last.
    former: Vec<(Name, Numbering)>,
    batch: Batch,
    transport: T,
    stats: AgentStats,
}

impl<T: Transport> Agent<T> {
    /// An agent whose uptime counts from `now`.
    ///
    /// # Errors
    /// When the configuration is impossible.
    pub fn new(config: &AgentConfig, now: Instant, transport: T) -> Result<Self, AgentError> {
        config.check()?;
        let datagram_bytes = config.datagram_bytes;
        Ok(Agent {
            name: config.name(),
            encoder: config.encoder(),
            header_bytes: config.header_bytes,
            datagram_bytes,
            max_delay: config.max_delay,
            started: now,
            pending_since: None,
            sources: Sources::default(),
            former: Vec::new(),
            batch: Batch::new(),
            transport,
            stats: AgentStats::default(),
        })
    }

    /// Takes other lengths, another delay, or another name. Under a name that it had before, its
    /// numbers go on from where they were: a collector that knows it would take those that begin
    /// again for old ones.
    ///
    /// # Errors
    /// When the configuration is impossible; then nothing changes.
    pub fn reconfigure(&mut self, config: &AgentConfig, now: Instant) -> Result<(), AgentError> {
        config.check()?;
        if config.name() != self.name {
            self.flush(now);
            self.rename(config);
        }
        self.encoder.set_limit(config.datagram_bytes);
        self.header_bytes = config.header_bytes;
        self.datagram_bytes = config.datagram_bytes;
        self.max_delay = config.max_delay;
        Ok(())
    }

    fn rename(&mut self, config: &AgentConfig) {
        let name = config.name();
        let known = self.former.iter().position(|(former, _)| *former == name);
        let Numbering { encoder, sources } = match known {
            Some(at) => self.former.remove(at).1,
            None => Numbering { encoder: config.encoder(), sources: Sources::default() },
        };
        if self.former.len() == FORMER_NAMES {
            self.former.remove(0);
        }
        let encoder = std::mem::replace(&mut self.encoder, encoder);
        let sources = std::mem::replace(&mut self.sources, sources);
        let before = std::mem::replace(&mut self.name, name);
        self.former.push((before, Numbering { encoder, sources }));
    }

    /// Returns the state of sources under any name.
    fn all_sources(&mut self) -> impl Iterator<Item = &mut Sources> {
        let former = self.former.iter_mut().map(|(_, numbering)| &mut numbering.sources);
        std::iter::once(&mut self.sources).chain(former)
    }

    /// Returns the counts of samples and datagrams.
    #[must_use]
    pub fn stats(&self) -> &AgentStats {
        &self.stats
    }

    /// Returns the transport of the datagrams.
    #[must_use]
    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// Returns the transport of the datagrams.
    pub fn transport_mut(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Takes a sampled packet. False if it was refused, and counted as that.
    #[inline]
    pub fn flow_sample(&mut self, now: Instant, sample: &FlowSampleIn<'_>) -> bool {
        let header = RawHeader {
            protocol: sample.protocol,
            frame_length: sample.frame_length.saturating_add(sample.stripped),
            stripped: sample.stripped,
            header: cut(sample.header, self.header_bytes),
        };
        let Some(state) = self.sources.get(sample.source) else { return self.refuse() };
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
        packed
    }

    /// Takes a discarded packet. False if it was refused, and counted as that.
    pub fn discard(&mut self, now: Instant, sample: &DiscardIn<'_>) -> bool {
        let header = RawHeader {
            protocol: sample.protocol,
            frame_length: sample.frame_length,
            stripped: sample.stripped,
            header: cut(sample.header, self.header_bytes),
        };
        let Some(state) = self.sources.get(sample.source) else { return self.refuse() };
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
        packed
    }

    /// Takes the counters of an interface. False if they were refused, and counted as that.
    pub fn interface_counters(
        &mut self,
        now: Instant,
        interface: &InterfaceCountersIn<'_>,
    ) -> bool {
        let source = DataSource::interface(interface.counters.index);
        let generic = CounterRecord::Interface(interface.counters);
        let name = Text::from(interface.name.unwrap_or_default());
        let name = CounterRecord::PortName(PortName { name });
        match (interface.name, interface.ethernet) {
            (None, None) => self.counters(now, source, &[generic]),
            (Some(_), None) => self.counters(now, source, &[generic, name]),
            (None, Some(ethernet)) => {
                self.counters(now, source, &[generic, CounterRecord::Ethernet(ethernet)])
            }
            (Some(_), Some(ethernet)) => {
                self.counters(now, source, &[generic, name, CounterRecord::Ethernet(ethernet)])
            }
        }
    }

    /// Takes any counters. They are sent in reverse order. False if they were refused, and counted
    /// as that.
    pub fn counters(
        &mut self,
        now: Instant,
        source: DataSource,
        records: &[CounterRecord<'_>],
    ) -> bool {
        let Some(state) = self.sources.get(source) else { return self.refuse() };
        state.counter_sequence = state.counter_sequence.wrapping_add(1);
        let sequence = state.counter_sequence;
        let packed = self.pack(now, |encoder| encoder.counter_sample(sequence, source, records));
        self.stats.counter_samples += u64::from(packed);
        packed
    }

    /// Takes the host's counters, in as many samples as it takes where datagrams are short.
    /// Adapters that do not fit into one are left out. False if some were refused.
    pub fn host_counters(&mut self, now: Instant, host: &HostCounters) -> bool {
        let mut records = host.records();
        let room = self.encoder.room();
        let length = |record: &CounterRecord<'_>| {
            let mut bytes = Vec::new();
            record.encode(&mut Writer::new(&mut bytes));
            bytes.len()
        };
        if let Some(CounterRecord::HostAdapters(adapters)) = records.last_mut() {
            // Tag, length and number; index, number of addresses and the address of each.
            adapters.0.truncate(room.saturating_sub(12) / 16);
        }
        let mut good = true;
        let mut rest = &records[..];
        while !rest.is_empty() {
            let mut left = room;
            let fits = |record: &&CounterRecord<'_>| match left.checked_sub(length(record)) {
                Some(less) => {
                    left = less;
                    true
                }
                None => false,
            };
            let count = rest.iter().rev().take_while(fits).count().max(1);
            let (later, these) = rest.split_at(rest.len() - count);
            good &= self.counters(now, DataSource::HOST, these);
            rest = later;
        }
        good
    }

    /// The counters of a source have started again: so does their numbering, which shows collectors
    /// not to take a delta.
    pub fn reset_counters(&mut self, source: DataSource) {
        for state in self.all_sources().filter_map(|sources| sources.known(source)) {
            state.counter_sequence = 0;
        }
    }

    /// Removes a deleted source.
    pub fn remove_source(&mut self, source: DataSource) {
        self.all_sources().for_each(|sources| sources.remove(source));
    }

    /// Data sources known.
    #[must_use]
    pub fn sources(&self) -> usize {
        self.sources.count
    }

    /// Returns the time when [`Agent::tick`] should be called at the latest; `None` while nothing
    /// waits.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let delay = if self.batch.is_empty() { self.max_delay } else { Duration::ZERO };
        self.pending_since.map(|since| since + delay)
    }

    /// Sends the datagrams that are full, and the one that is not if its samples have waited long
    /// enough.
    pub fn tick(&mut self, now: Instant) {
        if self.pending_since.is_some_and(|since| now >= since + self.max_delay) {
            self.flush(now);
        } else if !self.batch.is_empty() {
            self.send(now);
        }
    }

    /// Sends what there is.
    pub fn flush(&mut self, now: Instant) {
        self.finish(now);
        self.send(now);
    }

    /// Ends the datagram that is being packed.
    #[inline(never)]
    fn finish(&mut self, now: Instant) {
        let uptime = now.saturating_duration_since(self.started).as_millis() as u32;
        let Some(datagram) = self.encoder.finish(uptime) else { return };
        self.stats.datagrams += 1;
        self.stats.bytes += datagram.len() as u64;
        self.batch.push(datagram);
        if self.batch.is_full(self.datagram_bytes) {
            self.send(now);
        }
    }

    /// Sends the datagrams that are ready.
    fn send(&mut self, now: Instant) {
        self.pending_since = (self.encoder.samples() > 0).then_some(now);
        if !self.batch.is_empty() {
            self.transport.send(&self.batch, now);
            self.batch.clear();
        }
    }

    #[cold]
    fn refuse(&mut self) -> bool {
        self.stats.refused_samples += 1;
        false
    }

    #[inline]
    fn pack(
        &mut self,
        now: Instant,
        mut push: impl FnMut(&mut DatagramEncoder) -> Result<Push, SampleTooLong>,
    ) -> bool {
        // One place that calls it, so that it becomes part of this and words stay in registers.
        let mut full = false;
        loop {
            match push(&mut self.encoder) {
                Ok(Push::Added) => {
                    self.pending_since.get_or_insert(now);
                    return true;
                }
                Ok(Push::Full) if !full => {
                    full = true;
                    self.finish(now);
                }
                Ok(Push::Full) | Err(SampleTooLong { .. }) => return self.refuse(),
            }
        }
    }
}

fn cut(header: &[u8], limit: usize) -> &[u8] {
    &header[..header.len().min(limit)]
}

#[cfg(test)]
mod tests;
