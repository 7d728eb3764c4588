//! The kernel as a bridge or a router.

use anyhow::Result;
use thalweg_netns::{Cmd, Netns, bridge, enable_ipv4_forwarding};
use thalweg_peers::Peer;

use super::{DEVICE, Far};
use crate::load::set::Set;
use crate::load::spot::{Drops, Side, Spot};

const NFT: &str = "usr/sbin/nft";

/// The kernel's side of a lab.
pub(super) struct Kernel {
    ns: Netns,
    release: String,
}

impl Kernel {
    /// Sets it up; commands are a shell's.
    pub(super) fn start(ns: &Netns, set: Set, commands: &str) -> Result<Kernel> {
        match set {
            Set::Nothing => {}
            Set::CrossConnect => bridge(ns, "br0", &DEVICE)?,
            Set::Route => {
                enable_ipv4_forwarding(ns)?;
                ns.ip_batch(&set.routes(DEVICE))?;
            }
            Set::Tracker => {
                bridge(ns, "br0", &DEVICE)?;
                track(ns)?;
            }
        }
        if !commands.trim().is_empty() {
            ns.command("sh").args(["-e", "-c", commands]).output()?;
        }
        let release = Cmd::new("uname").arg("-r").output()?.trim().to_owned();
        Ok(Kernel { ns: ns.clone(), release })
    }
}

/// The four rules, as nftables has them for a bridge.
fn track(ns: &Netns) -> Result<()> {
    let peer = Peer::find("nftables", &[NFT])?;
    let [client, _] = DEVICE;
    for command in [
        "add table bridge load".to_owned(),
        "add chain bridge load pass { type filter hook forward priority 0; policy drop; }".into(),
        "add rule bridge load pass ct state established accept".into(),
        format!("add rule bridge load pass iifname {client} ct state new accept"),
    ] {
        peer.command(Some(ns), NFT).arg(command).output()?;
    }
    Ok(())
}

/// The kernel's counters of packets that it did not forward, with what they mean.
const COUNTERS: [(&str, &str); 6] = [
    ("Ip.InHdrErrors", "wrong IPv4 header, or TTL exceeded"),
    ("Ip.InAddrErrors", "wrong address"),
    ("Ip.InDiscards", "discarded on receipt"),
    ("Ip.OutDiscards", "discarded on output"),
    ("Ip.OutNoRoutes", "no route"),
    ("Ip.FragFails", "could not be fragmented"),
];

impl Far for Kernel {
    fn name(&self) -> String {
        format!("Linux {}", self.release)
    }

    fn drops(&mut self, drops: &mut Drops) -> Result<()> {
        let counters = self.ns.snmp()?;
        for (name, reason) in COUNTERS {
            let packets = counters.get(name).copied().unwrap_or_default();
            drops.add(Spot::new(Side::Device, "kernel", reason), packets.max(0) as u64);
        }
        Ok(())
    }

    fn stop(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
