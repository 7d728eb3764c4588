//! Open vSwitch with its datapath in user space.

use anyhow::{Result, bail};
use thalweg_netns::Netns;
use thalweg_peers::{Ovs, OvsOptions};

use super::{DEVICE, Far, lines};
use crate::load::set::{Set, rules};
use crate::load::spot::{Drops, Side, Spot};

/// Connections that it may track, as in article 4.
const LIMIT: &str = "5000000";

/// A switch with two ports, numbered 1 (clients) and 2.
pub(super) struct Switch {
    ovs: Ovs,
    version: String,
}

impl Switch {
    /// Starts it; commands are flows in the words of ovs-ofctl(8).
    pub(super) fn start(ns: &Netns, set: Set, commands: &str) -> Result<Switch> {
        let last = std::thread::available_parallelism().map_or(1, usize::from) - 1;
        let settings = vec![format!("pmd-cpu-mask={:#x}", 1u64 << last.min(63))];
        if set == Set::Route {
            bail!(
                "--device route: Open vSwitch does not route; --commands could give flows that do"
            );
        }
        let ovs = Ovs::start(ns, &DEVICE, &OvsOptions { settings, port_type: None })?;
        match set {
            Set::Nothing | Set::Route => {}
            Set::CrossConnect => {
                ovs.add_flows(&["in_port=1,actions=output:2", "in_port=2,actions=output:1"])?;
            }
            Set::Tracker => {
                ovs.appctl(&["dpctl/ct-set-maxconns", LIMIT])?;
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
