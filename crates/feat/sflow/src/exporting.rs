//! Settings of the agent: where datagrams go, by what name, and what else is in them.

use crate::ring::MAX_HEADER;
use crate::state::{
    DEFAULT_DROP_LIMIT, SFlow, SFlowError, publish, set_drop_monitoring, set_header_bytes,
    set_polling_interval, set_sampling_rate, set_speed_rate,
};
use std::net::Ipv4Addr;
use thalweg_cli::Output;
use thalweg_graph::Control;
use thalweg_sflow::encode::DEFAULT_DATAGRAM_BYTES;
use thalweg_sflow::value::Uuid;
use thalweg_sflow_agent::agent::{
    AgentChoice, AgentConfig, CollectorConfig, SUB_AGENT_PACKETS, header_room,
};
use thalweg_sflow_agent::conf::HsflowdConf;
use thalweg_sflow_agent::host::DEFAULT_INTERVAL;

/// Collectors that can be sent to.
pub const MAX_COLLECTORS: usize = 64;

/// Settings of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportSettings {
    /// Destinations of datagrams.
    pub collectors: Vec<CollectorConfig>,
    /// The address that names the agent.
    pub agent: AgentChoice,
    /// Sub-agent id, which distinguishes agents with the same address.
    pub sub_agent: u32,
    /// Most bytes of a datagram.
    pub datagram_bytes: usize,
    /// Seconds between two samples of the host's counters, 0 none.
    pub host_interval: u32,
    /// UUID of this host; `None` for the machine's own.
    pub uuid: Option<Uuid>,
}

impl Default for ExportSettings {
    fn default() -> Self {
        ExportSettings {
            collectors: Vec::new(),
            agent: AgentChoice::default(),
            sub_agent: SUB_AGENT_PACKETS,
            datagram_bytes: DEFAULT_DATAGRAM_BYTES,
            host_interval: DEFAULT_INTERVAL,
            uuid: None,
        }
    }
}

/// Sends datagrams to another collector, too.
///
/// # Errors
/// If it cannot be sent to, exists already, or exceeds the limit.
pub fn add_collector(c: &mut Control, collector: CollectorConfig) -> Result<(), SFlowError> {
    collector.check().map_err(SFlowError::Collector)?;
    {
        let state = c.state::<SFlow>();
        let mut state = state.borrow_mut();
        let list = &mut state.settings_mut().export.collectors;
        if list.contains(&collector) {
            return Err(SFlowError::CollectorExists(collector.to_string()));
        }
        if list.len() >= MAX_COLLECTORS {
            return Err(SFlowError::CollectorsFull);
        }
        list.push(collector);
    }
    publish(c);
    Ok(())
}

/// Sends no more datagrams to a collector.
///
/// # Errors
/// If it is not there.
pub fn remove_collector(c: &mut Control, collector: &CollectorConfig) -> Result<(), SFlowError> {
    {
        let state = c.state::<SFlow>();
        let mut state = state.borrow_mut();
        let list = &mut state.settings_mut().export.collectors;
        let Some(at) = list.iter().position(|known| known == collector) else {
            let known = list.iter().map(ToString::to_string).collect();
            return Err(SFlowError::CollectorUnknown(collector.to_string(), known));
        };
        list.remove(at);
    }
    publish(c);
    Ok(())
}

/// Sets how the address that names the agent is found.
///
/// # Errors
/// If one is given that names no host.
pub fn set_agent(c: &mut Control, choice: AgentChoice) -> Result<(), SFlowError> {
    if let Some(address) = choice.address.filter(|a| a.is_unspecified() || a.is_multicast()) {
        return Err(SFlowError::AgentAddress(address));
    }
    change(c, |export| export.agent = choice);
    Ok(())
}

/// Sets the sub-agent id.
pub fn set_sub_agent(c: &mut Control, number: u32) {
    change(c, |export| export.sub_agent = number);
}

/// Sets the most bytes of a datagram. Headers of sampled packets that do not fit in are cut.
///
/// # Errors
/// If it is out of range.
pub fn set_datagram_bytes(c: &mut Control, bytes: usize) -> Result<(), SFlowError> {
    check_datagrams(bytes)?;
    change(c, |export| export.datagram_bytes = bytes);
    Ok(())
}

/// Sets an interval in seconds of the host's counters; 0 sends none.
pub fn set_host_interval(c: &mut Control, seconds: u32) {
    change(c, |export| export.host_interval = seconds);
}

/// Sets the UUID of this host; `None` for the machine's own.
pub fn set_uuid(c: &mut Control, uuid: Option<Uuid>) {
    change(c, |export| export.uuid = uuid);
}

/// Takes the settings of hsflowd's configuration. Settings that it leaves out get their defaults,
/// but for the sampling rate.
///
/// # Errors
/// If it is impossible; then nothing has changed.
pub fn take_configuration(c: &mut Control, conf: &HsflowdConf) -> Result<(), SFlowError> {
    let usual = ExportSettings::default();
    check_datagrams(conf.datagram_bytes)?;
    if conf.collectors.len() > MAX_COLLECTORS {
        return Err(SFlowError::CollectorsFull);
    }
    let limit = conf.dropmon.as_ref().map_or(DEFAULT_DROP_LIMIT, |drops| drops.limit);
    set_drop_monitoring(c, conf.dropmon.is_some(), limit)?;
    if conf.polling > 0 {
        set_polling_interval(c, conf.polling)?;
    }
    if let Some(rate) = conf.sampling {
        set_sampling_rate(c, rate);
    }
    let old: Vec<_> = c.state::<SFlow>().borrow().settings().speed_rates.keys().copied().collect();
    for speed in old {
        set_speed_rate(c, speed, None);
    }
    for (speed, rate) in &conf.sampling_of {
        set_speed_rate(c, *speed, Some(*rate));
    }
    if conf.header_bytes > 0 {
        set_header_bytes(c, conf.header_bytes as u32);
    }
    change(c, |export| {
        *export = ExportSettings {
            collectors: conf.collectors.clone(),
            agent: conf.agent.clone(),
            sub_agent: conf.sub_agent.unwrap_or(usual.sub_agent),
            datagram_bytes: conf.datagram_bytes,
            host_interval: conf.polling,
            uuid: conf.uuid,
        };
    });
    Ok(())
}

/// Checks that datagrams may be so long.
fn check_datagrams(bytes: usize) -> Result<(), SFlowError> {
    let usual = AgentConfig::new(Ipv4Addr::LOCALHOST.into());
    let config = AgentConfig { datagram_bytes: bytes, header_bytes: header_bytes(bytes), ..usual };
    config.check().map_err(|e| SFlowError::Datagrams(e.to_string()))
}

/// Most bytes of a sampled packet in datagrams of this size.
pub(crate) fn header_bytes(datagram_bytes: usize) -> usize {
    header_room(datagram_bytes).min(MAX_HEADER)
}

/// Reports what happens to headers that are longer than datagrams have room for.
pub(crate) fn say_if_cut(c: &Control, out: &mut Output) {
    let state = c.state::<SFlow>();
    let state = state.borrow();
    let settings = state.settings();
    let (header, datagram) = (settings.header_bytes, settings.export.datagram_bytes);
    let room = header_bytes(datagram);
    if usize::from(header) > room {
        out.line(format_args!(
            "headers of {header} bytes are cut to {room}, which fit into {datagram}-byte datagrams"
        ));
    }
}

fn change(c: &mut Control, change: impl FnOnce(&mut ExportSettings)) {
    change(&mut c.state::<SFlow>().borrow_mut().settings_mut().export);
    publish(c);
}
