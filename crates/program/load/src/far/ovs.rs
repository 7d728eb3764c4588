//! Open vSwitch with its datapath in user space.

use std::path::Path;

use anyhow::{Result, bail};
use thalweg_netns::Netns;
use thalweg_peers::{Ovs, OvsOptions};

use super::{DEVICE, Far, Size, lines};
use crate::set::{CONNECTIONS, Set, TIMEOUTS, rules};
use crate::spot::{Drops, Side, Spot};

/// A switch with two ports, numbered 1 (clients) and 2.
pub(super) struct Switch {
    ovs: Ovs,
    version: String,
}

impl Switch {
    /// Starts it, with its files in `dir`; commands are flows in the words of ovs-ofctl(8).
    pub(super) fn start(
        ns: &Netns,
        set: Set,
        commands: &str,
        size: Size,
        dir: &Path,
    ) -> Result<Switch> {
        if size.queues > 1 {
            bail!("--queues: Open vSwitch has one queue on a packet socket");
        }
        let bit = |mask: u64, processor: &usize| mask | 1 << (*processor).min(63);
        let mask = size.processors()?.iter().fold(0u64, bit);
        let settings = vec![format!("pmd-cpu-mask={mask:#x}")];
        if matches!(set, Set::Route | Set::Labels) {
            bail!(
                "--device route and labels: Open vSwitch does not route; --commands could give \
                 flows that do"
            );
        }
        let options = OvsOptions { settings, port_type: None, directory: Some(dir.to_owned()) };
        let ovs = Ovs::start(ns, &DEVICE, &options)?;
        match set {
            Set::Nothing | Set::Route | Set::Labels => {}
            Set::CrossConnect => {
                ovs.add_flows(&["in_port=1,actions=output:2", "in_port=2,actions=output:1"])?;
            }
            Set::Tracker => {
                ovs.appctl(&["dpctl/ct-set-maxconns", &CONNECTIONS.to_string()])?;
                let record = "--id=@it create Datapath datapath_version=0 -- \
                              set Open_vSwitch . datapaths:netdev=@it";
                ovs.vsctl(&record.split_whitespace().collect::<Vec<_>>())?;
                ovs.vsctl(&[&["add-zone-tp", "netdev", "zone=0"][..], &TIMEOUTS].concat())?;
                ovs.add_flows(&rules("1").each_ref().map(String::as_str))?;
            }
        }
        let flows: Vec<&str> = lines(commands).map(|(_, line)| line).collect();
        ovs.add_flows(&flows)?;
        let version = ovs.version()?;
        Ok(Switch { ovs, version })
    }
}

impl Far for Switch {
    fn name(&self) -> String {
        format!("Open vSwitch {}", self.version)
    }

    fn drops(&mut self, drops: &mut Drops) -> Result<()> {
        coverage_drops(&self.ovs.appctl(&["coverage/show"])?, drops);
        Ok(())
    }

    fn forget(&mut self) -> Result<()> {
        self.ovs.appctl(&["dpctl/flush-conntrack"]).map(drop)
    }

    fn stop(self: Box<Self>) -> Result<()> {
        self.ovs.stop()
    }
}

/// Adds the counters of `coverage/show` that are losses. Lines are a name, rates, and `total: N`.
fn coverage_drops(text: &str, drops: &mut Drops) {
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(' ') else { continue };
        let Some((_, total)) = rest.rsplit_once("total:") else { continue };
        let is_loss = name.contains("drop") || name == "conntrack_full";
        if let (true, Ok(packets)) = (is_loss, total.trim().parse()) {
            drops.add(Spot::new(Side::Device, "ovs", name), packets);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_losses_are_read() {
        let text = "Event coverage, avg rate over last: 5 seconds, hash=0a1b2c3d:\n\
            drop_action_of_pipeline    0.0/sec     0.000/sec        1.2000/sec   total: 77\n\
            conntrack_full             0.0/sec     0.000/sec        0.0000/sec   total: 5\n\
            netlink_sent               0.0/sec     0.000/sec        0.0000/sec   total: 9\n\
            123 events never hit\n";
        let mut drops = Drops::default();
        coverage_drops(text, &mut drops);
        assert_eq!(drops.of(Side::Device), 82);
    }
}
