//! `show bridge-domain`.

use crate::arp_term;
use crate::cli::show_interface_vtr::vpps_words;
use crate::cli_support::{bridge_arg, bridge_ids, failed, on};
use crate::{Domain, L2, L2Error};
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output, pieces};
use thalweg_device::Interfaces;
use thalweg_graph::Control;

/// The command.
pub static COMMAND: ShowBridgeDomain = ShowBridgeDomain;

/// The command's type.
pub struct ShowBridgeDomain;

const HEADING: &str = "  BD-ID   Index   BSN  Age(min)  Learning  U-Forwrd   UU-Flood   Flooding  \
                       ARP-Term  arp-ufwd Learn-co Learn-li   BVI-Intf";

/// Nodes that its frames may pass.
fn nodes(d: &Domain) -> String {
    let all = [
        (true, "l2-input"),
        (d.learn, "l2-learn"),
        (d.forward, "l2-fwd"),
        (d.unknown_forward().is_some(), "l2-uu-fwd"),
        (d.arp_term || d.arp_ufwd, "arp-term-l2bd"),
        (d.flood || d.flood_unknown, "l2-flood"),
    ];
    all.into_iter().filter(|(on, _)| *on).map(|(_, name)| name).collect::<Vec<_>>().join(" ")
}

impl Command<Control> for ShowBridgeDomain {
    fn path(&self) -> &'static str {
        "show bridge-domain"
    }
    fn usage(&self) -> &'static str {
        "[<id> [detail|int|arp|bd-tag]]"
    }
    fn help(&self) -> &'static str {
        "Show bridge domains\n\
         With an id and a keyword: its ports (int), the hosts that it answers for (arp), its tag\n\
         (bd-tag), or all of these and the nodes of its frames (detail)."
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let id = (!args.is_empty()).then(|| bridge_arg(args)).transpose()?;
        let more = match id {
            Some(_) => args.one_of(&["detail", "int", "arp", "bd-tag"])?,
            None => None,
        };
        args.end()?;
        let state = c.state::<L2>();
        let l2 = state.borrow();
        if let Some(id) = id.filter(|id| l2.bridges().get(*id).is_none()) {
            return Err(failed(L2Error::NoBridge(id)));
        }
        let chosen = l2.bridges().list().map(|(i, _)| i).filter(|i| id.is_none_or(|id| *i == id));
        let chosen: Vec<u32> = chosen.collect();
        drop(l2);
        let arp = json!({
            "arp_entries": arp_term::count(c),
            "arp_entry_limit": crate::MAX_ARP_ENTRIES,
            "arp_hosts_not_reported": arp_term::lost(c),
        });
        out.begin_elements(arp.as_object().unwrap_or(&serde_json::Map::new()), "bridge_domains");
        out.line(if chosen.is_empty() { "no bridge-domains in use" } else { HEADING });
        let mut rows = chosen.clone().into_iter();
        // After the summary of all, details follow for a single bridge domain only.
        let mut rest = chosen.into_iter().filter(move |_| more.is_some());
        Ok(pieces(c, out, move |c, out| {
            let state = c.state::<L2>();
            let l2 = state.borrow();
            if let Some(id) = rows.next() {
                if let Some(d) = l2.bridges().get(id) {
                    summary(c, id, d, out);
                }
                return true;
            }
            let Some(id) = rest.next() else {
                out.end_elements();
                return false;
            };
            if let Some(d) = l2.bridges().get(id) {
                details(c, d, more.unwrap_or_default(), out);
            }
            true
        }))
    }
    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => bridge_ids(c),
            [_] => ["detail", "int", "arp", "bd-tag"].map(str::to_owned).into(),
            _ => Vec::new(),
        }
    }
}

fn summary(c: &Control, id: u32, d: &Domain, out: &mut Output) {
    match out.wants_json() {
        true => out.element(as_json(c, id, d)),
        false => out.line(row(c, id, d)),
    }
}

fn details(c: &Control, d: &Domain, what: &str, out: &mut Output) {
    if what == "detail" {
        out.line(nodes(d));
    }
    if matches!(what, "detail" | "int") {
        ports(c, d, out);
    }
    if matches!(what, "detail" | "arp") && (d.arp_term || d.arp_entries().next().is_some()) {
        out.line("\n  IP4/IP6 to MAC table for ARP Termination");
        for (ip, mac) in d.arp_entries() {
            out.line(
                format_args!("{:^40} => {:^20}", ip.to_string(), mac.to_string())
                    .to_string()
                    .trim_end(),
            );
        }
    }
    if matches!(what, "detail" | "bd-tag") && !d.tag.is_empty() {
        out.line(format_args!("  BD-Tag: {}", d.tag));
    }
}

fn row(c: &Control, id: u32, d: &Domain) -> String {
    let age = if d.mac_age == 0 { "off".into() } else { d.mac_age.to_string() };
    let unknown = match d.unknown_forward() {
        Some(port) => c.interface_name(port),
        None if d.flood_unknown => "flood".into(),
        None => "drop".into(),
    };
    let bvi = d.bvi().map_or_else(|| "N/A".into(), |port| c.interface_name(port));
    format!(
        "{id:^8} {:^7} {:^4} {age:^9} {:^9} {:^9} {unknown:^11} {:^9} {:^9} {:^9} {:^8} {:^8} {bvi:^11}",
        d.number,
        0,
        on(d.learn),
        on(d.forward),
        on(d.flood),
        on(d.arp_term),
        on(d.arp_ufwd),
        d.learned(),
        d.learn_limit,
    )
}

fn ports(c: &Control, d: &Domain, out: &mut Output) {
    if d.ports().next().is_none() && d.unknown_forward().is_none() {
        return;
    }
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    out.line("");
    let names = ["Interface", "If-idx", "ISN", "SHG", "BVI", "TxFlood", "VLAN-Tag-Rewrite"];
    let line = |cells: [&str; 7]| {
        let [name, index, isn, shg, bvi, flood, rewrite] = cells;
        format!("{name:^30}{index:^8}{isn:^5}{shg:^5}{bvi:^5}{flood:^9}{rewrite:^30}")
    };
    out.line(line(names).trim_end());
    for (sw_if, group) in d.ports() {
        let (name, index) = (c.interface_name(sw_if), sw_if.to_string());
        let group = group.to_string();
        let bvi = if d.bvi() == Some(sw_if) { "*" } else { "-" };
        let rewrite = all.get(sw_if).map_or_else(|| "none".into(), |v| vpps_words(&v.rewrite));
        out.line(line([&name, &index, "1", &group, bvi, "*", &rewrite]).trim_end());
    }
    if let Some(port) = d.unknown_forward() {
        let (name, index) = (c.interface_name(port), port.to_string());
        out.line(line([&name, &index, "1", "0", "uu", "-", "None"]).trim_end());
    }
}

fn as_json(c: &Control, id: u32, d: &Domain) -> serde_json::Value {
    let ports: Vec<_> = d
        .ports()
        .map(|(p, group)| {
            json!({ "interface": c.interface_name(p), "sw_if_index": p.get(), "split_horizon_group": group })
        })
        .collect();
    json!({
        "id": id,
        "index": d.number,
        "learn": d.learn,
        "forward": d.forward,
        "flood": d.flood,
        "unknown_unicast_flood": d.flood_unknown,
        "arp_termination": d.arp_term,
        "arp_unicast_forward": d.arp_ufwd,
        "arp_entries": d.arp_entries().map(|(ip, mac)| json!({ "ip": ip, "mac": mac.to_string() })).collect::<Vec<_>>(),
        "mac_age_minutes": d.mac_age,
        "learned": d.learned(),
        "learn_limit": d.learn_limit,
        "bvi": d.bvi().map(|p| c.interface_name(p)),
        "unknown_unicast_port": d.unknown_forward().map(|p| c.interface_name(p)),
        "tag": d.tag,
        "ports": ports,
    })
}
