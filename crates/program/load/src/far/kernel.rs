//! The kernel as a bridge or a router.

use anyhow::{Result, bail};
use serde_json::Value;
use thalweg_netns::{Cmd, Netns, bridge, enable_ipv4_forwarding};
use thalweg_peers::Peer;

use super::{DEVICE, Far};
use crate::set::Set;
use crate::spot::{Drops, Side, Spot};

const NFT: &str = "usr/sbin/nft";

/// The kernel's side of a lab.
pub(super) struct Kernel {
    ns: Netns,
    release: String,
    /// nftables, if it has the four rules.
    rules: Option<Peer>,
}

impl Kernel {
    /// Sets it up; commands are a shell's.
    pub(super) fn start(ns: &Netns, set: Set, commands: &str) -> Result<Kernel> {
        let mut rules = None;
        match set {
            Set::Nothing => {}
            Set::CrossConnect => bridge(ns, "br0", &DEVICE)?,
            Set::Route => {
                enable_ipv4_forwarding(ns)?;
                ns.ip_batch(&set.routes(DEVICE))?;
            }
            Set::Labels => bail!(
                "--device labels: a shell's --commands could give the kernel routes of labels"
            ),
            Set::Tracker => {
                bridge(ns, "br0", &DEVICE)?;
                rules = Some(track(ns)?);
            }
        }
        if !commands.trim().is_empty() {
            ns.command("sh").args(["-e", "-c", commands]).output()?;
        }
        let release = Cmd::new("uname").arg("-r").output()?.trim().to_owned();
        Ok(Kernel { ns: ns.clone(), release, rules })
    }
}

/// The four rules, as nftables has them for a bridge.
fn track(ns: &Netns) -> Result<Peer> {
    let peer = Peer::find("nftables", &[NFT])?;
    let [client, _] = DEVICE;
    for command in [
        "add table bridge load".to_owned(),
        "add chain bridge load pass { type filter hook forward priority 0; policy drop; }".into(),
        "add rule bridge load pass ct state established accept".into(),
        format!("add rule bridge load pass iifname {client} ct state new accept"),
        "add rule bridge load pass counter drop".into(),
    ] {
        peer.command(Some(ns), NFT).arg(command).output()?;
    }
    Ok(peer)
}

/// The kernel's counters of packets that it did not forward, with what they mean.
const COUNTERS: [(&str, &str); 16] = [
    ("Ip.InHdrErrors", "wrong IPv4 header, or TTL exceeded"),
    ("Ip.InAddrErrors", "wrong address"),
    ("Ip.InDiscards", "discarded on receipt"),
    ("Ip.OutDiscards", "discarded on output"),
    ("Ip.OutNoRoutes", "no route"),
    ("IpExt.InNoRoutes", "no route"),
    ("IpExt.InTruncatedPkts", "truncated"),
    ("Ip.FragFails", "could not be fragmented"),
    ("Ip6InHdrErrors", "wrong IPv6 header, or hop limit exceeded"),
    ("Ip6InAddrErrors", "wrong address"),
    ("Ip6InDiscards", "discarded on receipt"),
    ("Ip6OutDiscards", "discarded on output"),
    ("Ip6InNoRoutes", "no route"),
    ("Ip6OutNoRoutes", "no route"),
    ("Ip6InTruncatedPkts", "truncated"),
    ("Ip6InTooBigErrors", "too big"),
];

/// Packets that rules with a counter dropped: `counter packets N bytes N drop`.
fn dropped_by_rules(text: &str) -> u64 {
    let drops = text.lines().filter(|line| line.trim_end().ends_with(" drop"));
    let packets = drops.filter_map(|line| line.split_once("counter packets "));
    packets.filter_map(|(_, rest)| rest.split(' ').next()?.parse::<u64>().ok()).sum()
}

/// Packets that queueing disciplines of the ports dropped, by their kind, as `tc -s -j qdisc` lists
/// them. Classful ones count what the ones in their classes drop as well: the first is the root.
fn dropped_by_queues(json: &str) -> Vec<(String, u64)> {
    let Ok(Value::Array(all)) = serde_json::from_str(json) else { return Vec::new() };
    let roots = all.iter().filter(|qdisc| qdisc["root"] == Value::Bool(true));
    let of = |qdisc: &Value| Some((qdisc["kind"].as_str()?.to_owned(), qdisc["drops"].as_u64()?));
    roots.filter_map(of).collect()
}

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
        for port in DEVICE {
            let list = ["-s", "-j", "qdisc", "show", "dev", port];
            // Without it, these drops remain unexplained.
            let text = self.ns.command("tc").args(list).output().unwrap_or_default();
            for (kind, packets) in dropped_by_queues(&text) {
                let reason = format!("queueing discipline {kind} of {port}");
                drops.add(Spot::new(Side::Device, "kernel", &reason), packets);
            }
        }
        if let Some(peer) = &self.rules {
            let list = ["list", "chain", "bridge", "load", "pass"];
            let text = peer.command(Some(&self.ns), NFT).args(list).output()?;
            let spot = Spot::new(Side::Device, "nftables", "no rule accepts it");
            drops.add(spot, dropped_by_rules(&text));
        }
        Ok(())
    }

    fn stop(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_queues_drop_is_read() {
        let text = r#"[{"kind":"tbf","handle":"8001:","root":true,"options":{"rate":5000000},
            "bytes":5080,"packets":10,"drops":7,"overlimits":9,"requeues":0},
            {"kind":"pfifo","parent":"8001:1","drops":7}, {"kind":"noqueue","root":true}]"#;
        assert_eq!(dropped_by_queues(text), [("tbf".to_owned(), 7)]);
        assert!(dropped_by_queues("").is_empty() && dropped_by_queues("{}").is_empty());
    }

    #[test]
    fn what_rules_drop_is_read() {
        let text = "table bridge load {\n\tchain pass {\n\t\ttype filter hook forward priority \
                    filter; policy drop;\n\t\tct state established accept\n\t\tcounter packets \
                    17 bytes 1020 drop\n\t}\n}\n";
        assert_eq!(dropped_by_rules(text), 17);
        assert_eq!(dropped_by_rules("counter packets x bytes 1 drop\nnonsense"), 0);
    }
}
