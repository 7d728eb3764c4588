//! Settings of the agent: where datagrams go, by what name, and what else is in them.

use crate::state::{SFlow, SFlowError, publish};
use std::net::IpAddr;
use thalweg_graph::Control;
use thalweg_sflow::agent::{AgentChoice, CollectorConfig, SUB_AGENT_PACKETS};
use thalweg_sflow::encode::DEFAULT_DATAGRAM_BYTES;

/// Collectors that can be sent to.
pub const MAX_COLLECTORS: usize = 64;

/// What the agent is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportSettings {
    /// Where datagrams go.
    pub collectors: Vec<CollectorConfig>,
    /// The address that names the agent.
    pub agent: AgentChoice,
    /// Tells agents of one address apart.
    pub sub_agent: u32,
    /// Most bytes of a datagram.
    pub datagram_bytes: usize,
}

impl Default for ExportSettings {
    fn default() -> Self {
        ExportSettings {
            collectors: Vec::new(),
            agent: AgentChoice::default(),
            sub_agent: SUB_AGENT_PACKETS,
            datagram_bytes: DEFAULT_DATAGRAM_BYTES,
        }
    }
}

/// Sends datagrams to another collector, too.
///
/// # Errors
/// If it cannot be sent to, is there already, or is one too many.
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

/// Sets the address that names the agent; `None` elects one of the host's.
///
/// # Errors
/// If it names no host.
pub fn set_agent_address(c: &mut Control, address: Option<IpAddr>) -> Result<(), SFlowError> {
    if let Some(address) = address.filter(|a| a.is_unspecified() || a.is_multicast()) {
        return Err(SFlowError::AgentAddress(address));
    }
    c.state::<SFlow>().borrow_mut().settings_mut().export.agent =
        AgentChoice { address, ..AgentChoice::default() };
    publish(c);
    Ok(())
}
