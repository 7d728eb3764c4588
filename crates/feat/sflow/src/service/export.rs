//! The agent and its collectors, which come and go without it.
//!
//! Sequence numbers belong to the agent's name: where it has had a name before, they go on.

use super::Status;
use crate::exporting::{ExportSettings, header_bytes};
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use thalweg_device::SwIfIndex;
use thalweg_graph::clock;
use thalweg_sflow::DataSource;
use thalweg_sflow::model::HostAdapters;
use thalweg_sflow_agent::agent::{Agent, AgentConfig, BackgroundTask, Collectors};
use thalweg_sflow_agent::host::HostPoller;

/// Time that a sample may wait for others to share its datagram.
const MAX_DELAY: Duration = Duration::from_millis(100);
/// Interval of checks whether the elected address is still the host's.
const ELECTION: Duration = Duration::from_secs(30);

type Shared = Rc<RefCell<Collectors>>;

/// Sends samples.
pub(super) struct Exporter {
    collectors: Shared,
    agent: Option<Agent<Shared>>,
    settings: ExportSettings,
    /// True if a collector is set.
    wanted: bool,
    address: Option<IpAddr>,
    /// Time to look at the host's addresses, and who is looking.
    election: Option<Instant>,
    electing: Option<BackgroundTask<Option<IpAddr>>>,
    host: HostPoller,
    /// Host samples packed.
    host_samples: u64,
    started: Instant,
}

impl Exporter {
    /// Creates an exporter without collectors. The agent's uptime counts from `started`.
    pub(super) fn new(started: Instant) -> Exporter {
        Exporter {
            collectors: Shared::default(),
            agent: None,
            settings: ExportSettings::default(),
            wanted: false,
            address: None,
            election: None,
            electing: None,
            host: HostPoller::default(),
            host_samples: 0,
            started,
        }
    }

    /// Takes other settings. A collector that stays keeps its socket and its counts, the agent its
    /// sequence numbers unless it gets a name that it has not had before. The host's counters are
    /// only sent while sFlow is `enabled` on some interface.
    pub(super) fn configure(&mut self, settings: &ExportSettings, enabled: bool) {
        let now = clock::now();
        let polled = enabled && !settings.collectors.is_empty() && settings.host_interval > 0;
        let interval = polled.then(|| Duration::from_secs(settings.host_interval.into()));
        self.host.configure(interval, settings.uuid, now);
        if !self.collectors.borrow().are(&settings.collectors) {
            // Waiting samples were meant for the previous collectors.
            self.flush(now);
            self.collectors.borrow_mut().configure(&settings.collectors, now);
        }
        let old = std::mem::replace(&mut self.settings, settings.clone());
        if (old.sub_agent, old.datagram_bytes) != (settings.sub_agent, settings.datagram_bytes) {
            self.flush(now);
            self.reconfigure(now);
        }
        let chosen_anew = old.agent != settings.agent || self.address.is_none();
        self.wanted = !settings.collectors.is_empty();
        match settings.agent.address {
            Some(address) => {
                (self.election, self.electing) = (None, None);
                self.rename(Some(address), now);
            }
            None if self.wanted && chosen_anew => {
                // The first time it is waited for, so that no sample is lost.
                self.electing = None;
                self.election = Some(now + ELECTION);
                let elected = settings.agent.elect(self.address);
                self.rename(elected, now);
            }
            None => {
                self.election.get_or_insert(now + ELECTION);
            }
        }
    }

    /// Looks for an address if it is time.
    fn elect(&mut self, now: Instant) {
        if let Some(result) = self.electing.as_ref().and_then(BackgroundTask::poll) {
            self.electing = None;
            if let Ok(elected) = result {
                self.rename(elected, now);
            }
        }
        if self.wanted && self.election.is_some_and(|at| now >= at) {
            self.election = Some(now + ELECTION);
            let (choice, current) = (self.settings.agent.clone(), self.address);
            self.electing =
                BackgroundTask::start("sflow-elect", move || choice.elect(current)).ok();
        }
    }

    fn rename(&mut self, address: Option<IpAddr>, now: Instant) {
        if address != self.address {
            self.flush(now);
            self.address = address;
            self.reconfigure(now);
        }
    }

    /// Configures the agent's address and lengths, if it has an address.
    fn reconfigure(&mut self, now: Instant) {
        let config = self.address.map(|address| self.config(address));
        if let (Some(agent), Some(config)) = (&mut self.agent, config)
            && let Err(error) = agent.reconfigure(&config, now)
        {
            tracing::error!("sflow: {error}");
        }
    }

    /// True if there is a collector.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Returns the agent if there are a collector and an agent address.
    #[inline]
    pub(super) fn agent(&mut self) -> Option<&mut Agent<Shared>> {
        if !self.wanted || self.address.is_none() {
            return None;
        }
        if self.agent.is_none() {
            self.make_agent()?;
        }
        self.agent.as_mut()
    }

    fn config(&self, address: IpAddr) -> AgentConfig {
        AgentConfig {
            header_bytes: header_bytes(self.settings.datagram_bytes),
            datagram_bytes: self.settings.datagram_bytes,
            sub_agent_id: self.settings.sub_agent,
            max_delay: MAX_DELAY,
            ..AgentConfig::new(address)
        }
    }

    #[cold]
    fn make_agent(&mut self) -> Option<()> {
        let config = self.config(self.address?);
        match Agent::new(&config, self.started, self.collectors.clone()) {
            Ok(agent) => self.agent = Some(agent),
            Err(error) => {
                tracing::error!("sflow: no agent: {error}");
                self.address = None;
            }
        }
        Some(())
    }

    /// An interface is gone, and its number free for another.
    pub(super) fn forget(&mut self, sw_if: SwIfIndex) {
        if let Some(agent) = &mut self.agent {
            agent.remove_source(DataSource::interface(sw_if.get()));
        }
    }

    /// Returns the time when [`tick`](Self::tick) should be called at the latest.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        let samples = self.agent.as_ref().and_then(Agent::deadline);
        samples.into_iter().chain(self.host.deadline(now)).min()
    }

    /// Sends what has waited long enough, and does what is due. Among the host's counters,
    /// `adapters` are the router's: the system's have numbers that samples give to the router's.
    pub(super) fn tick(&mut self, now: Instant, adapters: impl FnOnce() -> HostAdapters) {
        self.elect(now);
        if let Some(mut host) = self.host.poll(now)
            && let Some(agent) = self.agent()
        {
            host.adapters = adapters();
            let good = agent.host_counters(now, &host);
            self.host_samples += u64::from(good);
        }
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

    /// Describes what happened to the datagrams.
    pub(super) fn describe(&self, status: &mut Status) {
        status.agent_address = self.address;
        status.host_samples = self.host_samples;
        let collectors = self.collectors.borrow();
        let shown = status.collectors.iter().map(|(config, _)| config);
        if !shown.eq(collectors.stats().map(|(config, _)| config)) {
            status.collectors = collectors.stats().map(|(c, s)| (c.clone(), s.clone())).collect();
            return;
        }
        for ((_, shown), (_, stats)) in status.collectors.iter_mut().zip(collectors.stats()) {
            shown.clone_from(stats);
        }
    }
}
