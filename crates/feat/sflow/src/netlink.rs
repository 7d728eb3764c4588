//! Settings of the export over netlink to an agent on this host, instead of or alongside datagrams.

use crate::state::{SFlow, SFlowError, publish};
use thalweg_engine::setting::Worded;
use thalweg_graph::Control;
use thalweg_sflow_agent::netlink::psample::{RX_GROUP, TX_GROUP};

/// Cases in which samples go out over netlink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetlinkMode {
    /// No collector for datagrams is set.
    #[default]
    Auto,
    /// Always.
    Enable,
    /// Never.
    Disable,
}

/// Settings for netlink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetlinkSettings {
    /// Cases in which to send.
    pub mode: NetlinkMode,
    /// PSAMPLE's `SAMPLE_GROUP` of packets that were received, not 0.
    pub rx_group: u32,
    /// The same of packets that are sent, another one.
    pub tx_group: u32,
}

impl Default for NetlinkSettings {
    fn default() -> Self {
        NetlinkSettings { mode: NetlinkMode::Auto, rx_group: RX_GROUP, tx_group: TX_GROUP }
    }
}

impl NetlinkSettings {
    /// True to send, if there are collectors or not.
    #[must_use]
    pub fn wanted(&self, collectors: bool) -> bool {
        match self.mode {
            NetlinkMode::Auto => !collectors,
            NetlinkMode::Enable => true,
            NetlinkMode::Disable => false,
        }
    }

    /// The command that makes these settings; `None` for those that hold anyway.
    pub(crate) fn command(&self) -> Option<String> {
        if *self == Self::default() {
            return None;
        }
        let mut line = format!("sflow netlink {}", self.mode.word());
        if (self.rx_group, self.tx_group) != (RX_GROUP, TX_GROUP) {
            line += &format!(" group {} {}", self.rx_group, self.tx_group);
        }
        Some(line)
    }
}

/// Sets when samples, counters and drops are sent over netlink, and under which group numbers.
///
/// # Errors
/// If the two groups are the same, or one is 0.
pub fn set_netlink(c: &mut Control, settings: NetlinkSettings) -> Result<(), SFlowError> {
    let NetlinkSettings { rx_group, tx_group, .. } = settings;
    if rx_group == 0 || tx_group == 0 || rx_group == tx_group {
        return Err(SFlowError::Groups(rx_group, tx_group));
    }
    c.state::<SFlow>().borrow_mut().settings_mut().netlink = settings;
    publish(c);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_wanted_and_shown_as_they_should() {
        let mut s = NetlinkSettings::default();
        assert!(s.wanted(false) && !s.wanted(true));
        assert_eq!(s.command(), None);
        s.mode = NetlinkMode::Enable;
        assert!(s.wanted(false) && s.wanted(true));
        assert_eq!(s.command().as_deref(), Some("sflow netlink enable"));
        s = NetlinkSettings { mode: NetlinkMode::Disable, rx_group: 1, tx_group: 2 };
        assert!(!s.wanted(false) && !s.wanted(true));
        assert_eq!(s.command().as_deref(), Some("sflow netlink disable group 1 2"));
    }
}
