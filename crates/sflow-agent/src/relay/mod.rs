//! Relays netlink messages of a router or the kernel as sFlow datagrams: the work of the agent as a
//! program of its own.
//!
//! A [`Relay`] takes messages and the time, and never waits. Interface numbers, data sources and
//! records are hsflowd's; losses are reported as they are: each gap in the numbers of a group, and
//! each growth of a router's count of drops, once.

mod limit;
mod reasons;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use regex_lite::Regex;

use crate::agent::{
    Agent, AgentConfig, AgentError, BackgroundTask, Collectors, DiscardIn, FCS_BYTES, FlowSampleIn,
    InterfaceCountersIn, SUB_AGENT_COUNTERS, SUB_AGENT_PACKETS, Transport,
};
use crate::conf::HsflowdConf;
use crate::host::{HostPoller, linux_interface};
use crate::netlink::psample::{RX_GROUP, TX_GROUP, begins_with};
use crate::netlink::{
    Channel, Gaps, Message, PacketDrop, PacketSample, PortCounters, ReceiverConfig, StartDrops,
    Status,
};
use thalweg_sflow::header::HeaderProtocol;
use thalweg_sflow::model::{
    DataSource, EgressQueue, FlowRecord, Function, HardwareTrap, Interface, InterfaceCounters,
    LinuxReason, QueueDepth, Timestamp, TransitDelay,
};

use limit::{Breaker, Limit};

/// Interval of checks whether the elected address is still the host's.
const ELECTION: Duration = Duration::from_secs(30);
/// The same complaint is logged this often.
const LOG: Duration = Duration::from_secs(60);
/// Maximum number of interfaces.
const MAX_PORTS: usize = 65_536;

/// Counts of a relay's work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RelayStats {
    /// Sampled packets sent on.
    pub samples: u64,
    /// Counters of interfaces sent on.
    pub counters: u64,
    /// Discarded packets sent on.
    pub discards: u64,
    /// Samples of the host's counters.
    pub host_samples: u64,
    /// Samples that were lost before they came here.
    pub lost: u64,
    /// Discards that were too many per second.
    pub suppressed: u64,
    /// Datagrams of netlink that came faster than they were read. Samples in these are in `lost` as
    /// soon as the next one shows the gap.
    pub overruns: u64,
    /// Samples of groups that are not configured.
    pub other_groups: u64,
    /// Samples of interfaces that have no number of the system's.
    pub unmapped: u64,
    /// Discards with hidden or unknown traps.
    pub hidden: u64,
    /// Messages that came while there was no address to send by.
    pub nameless: u64,
}

/// An interface that samples came from.
#[derive(Debug, Default)]
struct Port {
    /// Sample pool, as far as its samples show.
    pool: u64,
    /// Samples of it that were lost.
    drops: u64,
    /// Octets of its latest counters: if these go back, they have started again.
    octets: (u64, u64),
    /// True if its numbers began again, although no counter may show it.
    restarted: bool,
    /// Its counters are the kernel's, to be polled from then on.
    poll: Option<Instant>,
}

/// Group that a sample came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Router,
    Kernel,
}

/// The agent between netlink and collectors.
#[derive(Debug)]
pub struct Relay<T = Collectors> {
    conf: HsflowdConf,
    hide: Option<Regex>,
    agent: Option<Agent<T>>,
    /// Kept until there is an agent.
    transport: Option<T>,
    /// The agent's address; without one, nothing is sent.
    address: Option<IpAddr>,
    election: Instant,
    electing: Option<BackgroundTask<Option<IpAddr>>>,
    host: HostPoller,
    gaps: Gaps,
    /// Ports by the number that is exported.
    ports: BTreeMap<u32, Port>,
    /// Numbers of the system's by those of the router.
    mapped: HashMap<u32, u32>,
    /// A router's count of drops, its uptime, and what of them no sample has reported yet.
    status: Option<Status>,
    /// Number of its latest message.
    sequence: Option<u32>,
    untold: u64,
    limit: Limit,
    breaker: Breaker,
    /// Discards that were lost before they came here.
    unheard: u64,
    started: Instant,
    complained: Option<Instant>,
    stats: RelayStats,
}

impl<T: Transport> Relay<T> {
    /// A relay that gives its datagrams to `transport`.
    ///
    /// # Errors
    /// If the configuration is impossible.
    pub fn new(conf: HsflowdConf, transport: T, now: Instant) -> Result<Self, AgentError> {
        let mut relay = Relay {
            conf: HsflowdConf::default(),
            hide: None,
            agent: None,
            transport: Some(transport),
            address: None,
            election: now,
            electing: None,
            host: HostPoller::default(),
            gaps: Gaps::default(),
            ports: BTreeMap::new(),
            mapped: HashMap::new(),
            status: None,
            sequence: None,
            untold: 0,
            limit: Limit::new(0, now),
            breaker: Breaker::default(),
            unheard: 0,
            started: now,
            complained: None,
            stats: RelayStats::default(),
        };
        relay.configure(conf, now)?;
        Ok(relay)
    }

    /// Takes another configuration. Sequence numbers go on unless the agent's name changes.
    ///
    /// # Errors
    /// If it is impossible; then the old one stays.
    pub fn configure(&mut self, conf: HsflowdConf, now: Instant) -> Result<(), AgentError> {
        let address = conf.agent.elect(self.address);
        if let Some(address) = address {
            config(&conf, address).check()?;
        }
        self.hide =
            conf.dropmon.as_ref().and_then(|d| d.hide.as_ref()).and_then(|h| Regex::new(h).ok());
        self.limit.set(conf.dropmon.as_ref().map_or(0, |d| d.limit));
        self.breaker = conf
            .dropmon
            .as_ref()
            .map_or_else(Breaker::default, |d| Breaker::new(d.max, d.max_trip));
        let interval = (conf.polling > 0).then(|| Duration::from_secs(conf.polling.into()));
        self.host.configure(interval, conf.uuid, now);
        self.conf = conf;
        (self.election, self.electing) = (now + ELECTION, None);
        self.rename(address, now)
    }

    /// Makes the agent of this address, or lets it go on with other settings.
    fn rename(&mut self, address: Option<IpAddr>, now: Instant) -> Result<(), AgentError> {
        let before = std::mem::replace(&mut self.address, address);
        let Some(address) = address else {
            self.flush(now);
            tracing::warn!("sflow: not sending: this host has no address for the agent");
            return Ok(());
        };
        let config = config(&self.conf, address);
        if before != Some(address) {
            tracing::info!("sflow: agent {address}, sub-agent {}", config.sub_agent_id);
        }
        match (&mut self.agent, self.transport.take()) {
            (Some(agent), _) => agent.reconfigure(&config, now)?,
            (none, Some(transport)) => {
                *none = Some(Agent::new(&config, self.started, transport)?);
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// The agent, if it has a name.
    fn named(&mut self) -> Option<&mut Agent<T>> {
        self.agent.as_mut().filter(|_| self.address.is_some())
    }

    /// Returns the counts.
    #[must_use]
    pub fn stats(&self) -> &RelayStats {
        &self.stats
    }

    /// True if discards were too many for too long: stop listening to them, until there is
    /// another configuration.
    #[must_use]
    pub fn drops_too_many(&self) -> bool {
        self.breaker.is_open()
    }

    /// Returns the transport of the datagrams.
    pub fn transport_mut(&mut self) -> Option<&mut T> {
        self.agent.as_mut().map(Agent::transport_mut).or(self.transport.as_mut())
    }

    /// Takes a message.
    pub fn handle(&mut self, message: &Message<'_>, now: Instant) {
        if self.named().is_none() {
            self.stats.nameless += 1;
            return;
        }
        match message {
            Message::Sample(sample) => self.sample(sample, now),
            Message::Status(status) => self.status(*status),
            Message::Counters(counters) => self.counters(counters, now),
            Message::Drop(drop) => self.discard(drop, now),
        }
    }

    /// Records that a channel has lost datagrams for lack of room. Samples have numbers that
    /// show how many were lost; discards have none, so that each datagram is one at least.
    pub fn overrun(&mut self, channel: Channel, datagrams: u64) {
        self.stats.overruns += datagrams;
        if channel == Channel::Dropmon {
            self.unheard += datagrams;
        }
    }

    /// Returns the time when [`tick`](Self::tick) should be called at the latest.
    #[must_use]
    pub fn deadline(&self, now: Instant) -> Instant {
        let polls = self.ports.values().filter_map(|port| port.poll);
        let agent = self.agent.as_ref().and_then(Agent::deadline);
        let all = polls.chain(agent).chain(self.host.deadline(now));
        all.fold(self.election, Instant::min)
    }

    /// Does what is due: counters, elections, samples that have waited long enough.
    pub fn tick(&mut self, now: Instant) {
        if let Some(elected) = self.electing.as_ref().and_then(BackgroundTask::poll) {
            self.electing = None;
            if let Ok(elected) = elected
                && elected != self.address
                && let Err(error) = self.rename(elected, now)
            {
                tracing::error!("sflow: no agent: {error}");
            }
        }
        if now >= self.election {
            self.election = now + ELECTION;
            let (choice, current) = (self.conf.agent.clone(), self.address);
            self.electing =
                BackgroundTask::start("sflow-elect", move || choice.elect(current)).ok();
        }
        let host = self.host.poll(now);
        if let Some(host) = host
            && let Some(agent) = self.named()
        {
            let good = agent.host_counters(now, &host);
            self.stats.host_samples += u64::from(good);
        }
        if self.named().is_some() {
            self.poll_linux(now);
        }
        if let Some(agent) = &mut self.agent {
            agent.tick(now);
        }
    }

    /// Sends what there is.
    pub fn flush(&mut self, now: Instant) {
        if let Some(agent) = &mut self.agent {
            agent.flush(now);
        }
    }

    /// Logs a recurring complaint, rarely.
    fn complain(&mut self, now: Instant, what: impl FnOnce() -> String) {
        if self.complained.is_none_or(|at| now >= at + LOG) {
            self.complained = Some(now);
            tracing::warn!("sflow: {}", what());
        }
    }

    /// Direction and owner of a group; `None` if it is not wanted.
    fn origin(&self, group: u32) -> Option<(Origin, bool)> {
        if self.conf.vpp.is_some() && (group == RX_GROUP || group == TX_GROUP) {
            return Some((Origin::Router, group == TX_GROUP));
        }
        let psample = self.conf.psample.as_ref()?;
        match group.checked_sub(psample.group)? {
            0 if psample.ingress => Some((Origin::Kernel, false)),
            1 if psample.egress => Some((Origin::Kernel, true)),
            _ => None,
        }
    }

    /// The number by which an interface of the router's is exported; `None` if it is not known.
    fn number(&self, index: u32) -> Option<u32> {
        let vpp = self.conf.vpp.as_ref()?;
        if index == 0 || !vpp.os_index || vpp.if_offset == 0 {
            return Some(self.mapped.get(&index).copied().unwrap_or(index));
        }
        self.mapped.get(&index).copied()
    }

    fn sample(&mut self, s: &PacketSample<'_>, now: Instant) {
        let Some((origin, egress)) = self.origin(s.group) else {
            self.stats.other_groups += 1;
            return;
        };
        let lost = u64::from(self.gaps.lost(s.group, s.group_sequence));
        self.stats.lost += lost;
        self.untold += lost;
        let numbers = match origin {
            Origin::Kernel => Some((s.input, s.output)),
            Origin::Router => self.number(s.input).zip(self.number(s.output)),
        };
        let Some((input, output)) = numbers else {
            self.stats.unmapped += 1;
            let (input, output) = (s.input, s.output);
            return self.complain(now, || {
                format!(
                    "samples of interfaces {input} and {output} are not sent because the router \
                     does not report their OS interface indexes: vpp {{ osIndex = off }} sends \
                     its own"
                )
            });
        };
        let source = if egress { output } else { input };
        let drops = std::mem::take(&mut self.untold);
        let rate = s.one_in();
        let Some(port) = self.port(source, origin, now) else { return };
        port.drops += drops;
        port.pool += u64::from(rate) * (1 + lost);
        let (pool, drops) = (port.pool, port.drops);
        let low = |n: u64| n as u32;
        let records = [
            s.timestamp_ns.map(|nanoseconds| FlowRecord::Timestamp(Timestamp { nanoseconds })),
            s.queue.map(|id| FlowRecord::EgressQueue(EgressQueue { id: id.into() })),
            s.queue_bytes.map(|n| FlowRecord::QueueDepth(QueueDepth { depth: low(n) })),
            s.latency_ns.map(|n| FlowRecord::TransitDelay(TransitDelay { delay: low(n) })),
        ];
        let records: Vec<_> = records.into_iter().flatten().collect();
        let protocol = s.header_protocol();
        let Some(agent) = &mut self.agent else { return };
        let packed = agent.flow_sample(
            now,
            &FlowSampleIn {
                source: DataSource::interface(source),
                rate,
                pool,
                drops,
                input,
                output: Interface::Index(output),
                protocol,
                frame_length: s.original_length,
                stripped: stripped(protocol),
                header: s.data,
                records: &records,
            },
        );
        self.stats.samples += u64::from(packed);
    }

    /// Returns the interface that samples come from. Interfaces of the kernel are polled from now
    /// on.
    fn port(&mut self, index: u32, origin: Origin, now: Instant) -> Option<&mut Port> {
        if self.ports.len() >= MAX_PORTS && !self.ports.contains_key(&index) {
            return None;
        }
        let polling = u64::from(self.conf.polling);
        let port = self.ports.entry(index).or_default();
        if origin == Origin::Kernel && port.poll.is_none() && polling > 0 && index != 0 {
            // Spread over the interval.
            port.poll = Some(now + Duration::from_secs(u64::from(index) % polling));
        }
        Some(port)
    }

    /// Counters of the kernel's interfaces whose turn has come.
    fn poll_linux(&mut self, now: Instant) {
        let Some(agent) = &mut self.agent else { return };
        let interval = Duration::from_secs(self.conf.polling.max(1).into());
        let mut gone = Vec::new();
        for (index, port) in &mut self.ports {
            let Some(due) = port.poll.filter(|due| now >= *due) else { continue };
            port.poll = Some(if now < due + interval { due } else { now } + interval);
            let Some(linux) = linux_interface(*index) else {
                gone.push(*index);
                continue;
            };
            let name = Some(linux.name.as_str());
            let counters = InterfaceCountersIn { counters: linux.counters, name, ethernet: None };
            self.stats.counters += u64::from(agent.interface_counters(now, &counters));
        }
        for index in gone {
            self.ports.remove(&index);
            agent.remove_source(DataSource::interface(index));
        }
    }

    /// A router's count of its drops: only its increase is reported.
    fn status(&mut self, status: Status) {
        self.note_sequence(status.sequence);
        let before = self.status.replace(status);
        let again = before.is_none_or(|b| status.uptime_s < b.uptime_s || status.drops < b.drops);
        if before.is_some_and(|b| status.uptime_s < b.uptime_s) {
            self.note_restart();
        }
        let grown = match before {
            Some(before) if !again => status.drops - before.drops,
            // Losses before anything listened do not count.
            None => 0,
            Some(_) => status.drops,
        };
        self.stats.lost += u64::from(grown);
        self.untold += u64::from(grown);
    }

    /// Takes the number of a router's message. If numbers begin again, so have all its counters,
    /// though they may have passed what they were before.
    fn note_sequence(&mut self, sequence: Option<u32>) {
        let Some(sequence) = sequence else { return };
        let last = self.sequence.replace(sequence);
        if last.is_some_and(|last| sequence.wrapping_sub(last).cast_signed() < 0) {
            self.note_restart();
        }
    }

    fn note_restart(&mut self) {
        for port in self.ports.values_mut().filter(|port| port.poll.is_none()) {
            port.restarted = true;
        }
    }

    fn counters(&mut self, c: &PortCounters<'_>, now: Instant) {
        if self.conf.vpp.is_some() {
            self.note_sequence(c.sequence);
        }
        let Some(vpp) = &self.conf.vpp else { return };
        if c.index == 0 {
            return;
        }
        let index = match c.os_index.filter(|_| vpp.os_index) {
            Some(os) if os != 0 => {
                if self.mapped.len() < MAX_PORTS || self.mapped.contains_key(&c.index) {
                    self.mapped.insert(c.index, os);
                }
                os
            }
            _ => {
                self.mapped.remove(&c.index);
                let offset = if vpp.os_index { vpp.if_offset } else { 0 };
                c.index.saturating_add(offset)
            }
        };
        let Some(port) = self.port(index, Origin::Router, now) else { return };
        let octets = (c.rx_octets, c.tx_octets);
        let again = std::mem::take(&mut port.restarted)
            || octets.0 < port.octets.0
            || octets.1 < port.octets.1;
        port.octets = octets;
        port.poll = None;
        let Some(agent) = &mut self.agent else { return };
        if again {
            agent.reset_counters(DataSource::interface(index));
        }
        let name = c.name.to_str();
        let name = (!name.is_empty()).then_some(&*name);
        let counters = InterfaceCountersIn { counters: generic(index, c), name, ethernet: None };
        self.stats.counters += u64::from(agent.interface_counters(now, &counters));
    }

    fn discard(&mut self, d: &PacketDrop<'_>, now: Instant) {
        let Some(conf) = &self.conf.dropmon else { return };
        if !self.breaker.is_open() && !self.breaker.pass(now) {
            tracing::error!(
                "sflow: more than {} discards per second for {} seconds: ignoring discards until \
                 the configuration is reloaded",
                conf.max,
                conf.max_trip
            );
        }
        if self.breaker.is_open() {
            self.stats.suppressed += 1;
            return;
        }
        let hidden = self.hide.as_ref().is_some_and(|hide| {
            [d.symbol, d.trap, d.reason].into_iter().flatten().any(|t| hide.is_match(&t.to_str()))
        });
        let known = reasons::reason(d);
        if hidden || (known.is_none() && !conf.unknown) {
            self.stats.hidden += 1;
            return;
        }
        if !self.limit.pass(now) {
            self.stats.suppressed += 1;
            return;
        }
        let group = d.trap_group.unwrap_or_default();
        let router = d.trap.is_some_and(|trap| trap.0.starts_with(b"vpp_"));
        let records = [
            d.symbol.map(|symbol| FlowRecord::Function(Function { symbol })),
            d.trap.map(|name| FlowRecord::HardwareTrap(HardwareTrap { group, name })),
            d.reason
                .filter(|_| conf.reason_names)
                .map(|reason| FlowRecord::LinuxReason(LinuxReason { reason })),
            d.timestamp_ns.map(|nanoseconds| FlowRecord::Timestamp(Timestamp { nanoseconds })),
        ];
        let records: Vec<_> = records.into_iter().flatten().collect();
        let input = if router { self.number(d.input).unwrap_or(0) } else { d.input };
        let protocol = begins_with(d.protocol, d.data, d.length());
        let discard = DiscardIn {
            source: DataSource::NONE,
            drops: self.limit.suppressed + self.unheard,
            input,
            output: 0,
            reason: known.unwrap_or(thalweg_sflow::DiscardReason::UNKNOWN),
            protocol,
            frame_length: d.length(),
            stripped: stripped(protocol),
            header: d.data,
            records: &records,
        };
        if let Some(agent) = &mut self.agent {
            self.stats.discards += u64::from(agent.discard(now, &discard));
        }
    }
}

/// Bytes that were stripped from the end of a packet.
fn stripped(protocol: HeaderProtocol) -> u32 {
    if protocol == HeaderProtocol::ETHERNET { FCS_BYTES } else { 0 }
}

/// Returns the channels to listen to. A router's samples are heard even if `psample` was forgotten.
#[must_use]
pub fn listen_to(conf: &HsflowdConf) -> ReceiverConfig {
    let drops = conf.dropmon.as_ref();
    let channels = [
        (Channel::Psample, conf.psample.is_some() || conf.vpp.is_some()),
        (Channel::Usersock, conf.vpp.is_some()),
        (Channel::Dropmon, drops.is_some()),
    ];
    let start = drops.filter(|d| d.start).map(|d| StartDrops {
        software: d.software && !d.software_passive,
        hardware: d.hardware && !d.hardware_passive,
        force: d.force,
        ..StartDrops::default()
    });
    ReceiverConfig {
        channels: channels.iter().filter(|(_, wanted)| *wanted).map(|(c, _)| *c).collect(),
        start_drops: start.filter(|s| s.software || s.hardware),
        ..ReceiverConfig::default()
    }
}

/// The agent's settings.
fn config(conf: &HsflowdConf, address: IpAddr) -> AgentConfig {
    let packets = conf.psample.is_some() || conf.vpp.is_some() || conf.dropmon.is_some();
    let usual = if packets { SUB_AGENT_PACKETS } else { SUB_AGENT_COUNTERS };
    AgentConfig {
        sub_agent_id: conf.sub_agent.unwrap_or(usual),
        header_bytes: conf.header_bytes,
        datagram_bytes: conf.datagram_bytes,
        max_delay: Duration::from_millis(100),
        ..AgentConfig::new(address)
    }
}

/// The generic record of an interface of the router's.
fn generic(index: u32, c: &PortCounters<'_>) -> InterfaceCounters {
    let unicast = |all: u64, multicast: u64, broadcast: u64| {
        all.saturating_sub(multicast).saturating_sub(broadcast) as u32
    };
    InterfaceCounters {
        index,
        network_type: c.if_type,
        speed: c.speed,
        direction: c.direction,
        status: u32::from(c.admin_up) | u32::from(c.oper_up) << 1,
        in_octets: c.rx_octets,
        in_unicast: unicast(c.rx_packets, c.rx_multicasts, c.rx_broadcasts),
        in_multicast: c.rx_multicasts as u32,
        in_broadcast: c.rx_broadcasts as u32,
        in_discards: c.rx_discards as u32,
        in_errors: c.rx_errors as u32,
        in_unknown_protocols: 0,
        out_octets: c.tx_octets,
        out_unicast: unicast(c.tx_packets, c.tx_multicasts, c.tx_broadcasts),
        out_multicast: c.tx_multicasts as u32,
        out_broadcast: c.tx_broadcasts as u32,
        out_discards: c.tx_discards as u32,
        out_errors: c.tx_errors as u32,
        promiscuous: 0,
    }
}

#[cfg(test)]
mod tests;
