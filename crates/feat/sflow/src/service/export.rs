//! The agent and its collectors, which come and go without it.
//!
//! Sequence numbers belong to the agent: it is made once per agent address. To it there is one
//! transport, which hands each datagram to every collector there is.

use super::{Status, host};
use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::{Duration, Instant};
use thalweg_sflow::agent::{
    Agent, AgentConfig, CollectorConfig, CollectorStats, SendError, Transport, UdpTransport,
};
use thalweg_sflow::{DataSource, SFLOW_PORT};

/// How long a sample may wait for others to share its datagram.
const MAX_DELAY: Duration = Duration::from_millis(100);
/// How often to look whether the elected address is still the host's.
const ELECTION: Duration = Duration::from_secs(30);

/// One collector.
struct Target {
    addr: SocketAddr,
    transport: UdpTransport,
    stats: CollectorStats,
}

impl Target {
    fn new(addr: SocketAddr) -> Target {
        let transport = UdpTransport::new(addr, None);
        Target { addr, transport, stats: CollectorStats::default() }
    }

    /// Sends, and counts what came of it; nobody waits for it.
    fn send(&mut self, datagram: &[u8], now: Instant) {
        let mut result = self.transport.send(datagram, now);
        if matches!(result, Err(SendError::Refused)) {
            // That is the answer to an earlier one, which is lost; this one has not left yet.
            self.failed(&SendError::Refused);
            result = self.transport.send(datagram, now);
        }
        match result {
            Ok(()) => {
                self.stats.datagrams += 1;
                self.stats.bytes += datagram.len() as u64;
            }
            Err(error) => self.failed(&error),
        }
    }

    fn failed(&mut self, error: &SendError) {
        self.stats.send_errors += 1;
        self.stats.would_block += u64::from(matches!(error, SendError::WouldBlock));
        self.stats.refused += u64::from(matches!(error, SendError::Refused));
        self.stats.last_error = Some(error.to_string());
    }
}

type Targets = Rc<RefCell<Vec<Target>>>;

/// What the agent takes for its collector.
pub(super) struct FanOut(Targets);

impl Transport for FanOut {
    fn send(&mut self, datagram: &[u8], now: Instant) -> Result<(), SendError> {
        self.0.borrow_mut().iter_mut().for_each(|target| target.send(datagram, now));
        Ok(())
    }
}

/// Sends samples.
pub(super) struct Exporter {
    targets: Targets,
    agent: Option<Agent<FanOut>>,
    address: Option<IpAddr>,
    /// The address is elected, not configured; when to look again.
    election: Option<Instant>,
    started: Instant,
}

impl Exporter {
    /// Without collectors. The agent's uptime counts from `started`.
    pub(super) fn new(started: Instant) -> Exporter {
        Exporter {
            targets: Targets::default(),
            agent: None,
            address: None,
            election: None,
            started,
        }
    }

    /// Takes collectors and the agent's address (`None`: to be elected). A collector that stays
    /// keeps its socket and its counts, the agent its sequence numbers unless it is renamed.
    pub(super) fn configure(&mut self, collectors: &[SocketAddr], address: Option<IpAddr>) {
        let now = Instant::now();
        let same = {
            let targets = self.targets.borrow();
            targets.iter().map(|t| &t.addr).eq(collectors)
        };
        if !same {
            // What waits was meant for those that there were.
            self.flush(now);
            let mut old = std::mem::take(&mut *self.targets.borrow_mut());
            let target = |addr: &SocketAddr| match old.iter().position(|t| t.addr == *addr) {
                Some(at) => old.swap_remove(at),
                None => Target::new(*addr),
            };
            *self.targets.borrow_mut() = collectors.iter().map(target).collect();
        }
        match address {
            Some(address) => {
                self.election = None;
                self.rename(Some(address), now);
            }
            None if self.election.is_none() => {
                self.election = Some(now);
                self.rename(None, now);
            }
            None => {}
        }
        self.elect(now);
    }

    /// Looks for an address if it is time, and there is somebody to tell it to.
    fn elect(&mut self, now: Instant) {
        if self.election.is_some_and(|at| now >= at) && !self.targets.borrow().is_empty() {
            self.election = Some(now + ELECTION);
            let elected = host::elect(self.address);
            self.rename(elected, now);
        }
    }

    fn rename(&mut self, address: Option<IpAddr>, now: Instant) {
        if address != self.address {
            self.flush(now);
            (self.address, self.agent) = (address, None);
        }
    }

    /// The agent, if there is somebody to send to and a name to send by.
    pub(super) fn agent(&mut self, now: Instant) -> Option<&mut Agent<FanOut>> {
        if self.targets.borrow().is_empty() {
            return None;
        }
        self.elect(now);
        if self.agent.is_none() {
            let stand_in = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), SFLOW_PORT);
            let config = AgentConfig {
                collectors: vec![CollectorConfig::from(stand_in)],
                header_bytes: crate::ring::MAX_HEADER,
                max_delay: MAX_DELAY,
                ..AgentConfig::new(self.address?)
            };
            let fan_out = |_: &CollectorConfig| FanOut(self.targets.clone());
            match Agent::with_transport(&config, self.started, fan_out) {
                Ok(agent) => self.agent = Some(agent),
                Err(error) => {
                    tracing::error!("sflow: no agent: {error}");
                    self.address = None;
                }
            }
        }
        self.agent.as_mut()
    }

    /// An interface is gone, and its number free for another.
    pub(super) fn forget(&mut self, sw_if: u32) {
        if let Some(agent) = &mut self.agent {
            agent.remove_source(DataSource::interface(sw_if));
        }
    }

    /// When [`tick`](Self::tick) should be called at the latest.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.agent.as_ref().and_then(Agent::deadline)
    }

    /// Sends what has waited long enough.
    pub(super) fn tick(&mut self, now: Instant) {
        if let Some(agent) = &mut self.agent {
            agent.tick(now);
        }
    }

    /// Sends what there is.
    pub(super) fn flush(&mut self, now: Instant) {
        if let Some(agent) = &mut self.agent {
            agent.flush(now);
        }
    }

    /// Says what became of the datagrams.
    pub(super) fn describe(&self, status: &mut Status) {
        status.agent_address = self.address;
        let targets = self.targets.borrow();
        let same = status.collectors.iter().map(|(addr, _)| addr);
        if !same.eq(targets.iter().map(|t| &t.addr)) {
            status.collectors = targets.iter().map(|t| (t.addr, t.stats.clone())).collect();
            return;
        }
        for ((_, shown), target) in status.collectors.iter_mut().zip(targets.iter()) {
            shown.clone_from(&target.stats);
        }
    }
}
