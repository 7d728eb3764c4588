//! Configuration of host interfaces.

use crate::device::Hosts;
use crate::ring::Options;
use thalweg_config::declare::{
    Doc, Draft, Dump, Interface, Item, Kind, Part, Problem, Rule, Section, interface_key, rank,
};
use thalweg_device::SwIfIndex;
use thalweg_device_linux::{Framing, follow};
use thalweg_graph::Control;

/// Section of host interfaces.
pub(crate) struct Settings;

pub(crate) static SETTINGS: Settings = Settings;

const SIZE: Kind = Kind::Int(1, u32::MAX as i128);
const QUEUES: Kind = Kind::Int(1, 64);

const RULES: &[Rule] = &[
    Rule::new("thalweg.interfaces.*.version", Kind::Word(&["v2", "v3"])),
    Rule::new("thalweg.interfaces.*.mode", Kind::Word(&["ethernet", "ip", "ip4", "ip6"])),
    Rule::new("thalweg.interfaces.*.rx-queues", QUEUES),
    Rule::new("thalweg.interfaces.*.tx-queues", QUEUES),
    Rule::new("thalweg.interfaces.*.rx-size", SIZE),
    Rule::new("thalweg.interfaces.*.tx-size", SIZE),
    Rule::new("thalweg.interfaces.*.rx-per-block", SIZE),
    Rule::new("thalweg.interfaces.*.tx-per-block", SIZE),
    Rule::new("thalweg.interfaces.*.checksum-offload", Kind::Bool),
    Rule::new("thalweg.interfaces.*.qdisc-bypass", Kind::Bool),
];

/// Prefix of interface names.
const PREFIX: &str = "host-";

impl Section<Control> for Settings {
    fn supports(&self) -> Vec<&'static str> {
        vec!["interfaces.*.device-type"]
    }

    fn rules(&'static self) -> Vec<Rule> {
        RULES.to_vec()
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        let hosts = c.state::<Hosts>();
        let hosts = hosts.borrow();
        for (sw_if, options) in &hosts.options {
            let name = c.interface_name(*sw_if);
            out.set(&name, "device-type", "af-packet");
            dump(&name, options, out);
        }
    }

    fn missing(&self, c: &Control) -> Vec<Part> {
        let hosts = c.state::<Hosts>();
        let hosts = hosts.borrow();
        let away = follow::away(c).into_iter().filter(|(on, _)| hosts.options.contains_key(on));
        let part = |(sw_if, device): (SwIfIndex, String)| {
            let why = format!(
                "device {device} went away; the interface is attached to the next one of this name"
            );
            Part::missing(format!("interfaces.{}", c.interface_name(sw_if)), why)
        };
        away.map(part).collect()
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        for i in doc.interfaces() {
            match i.name.strip_prefix(PREFIX).filter(|_| i.sub().is_none()) {
                Some(device) => host(i, device, out),
                None => foreign(i, out),
            }
        }
    }
}

fn dump(name: &str, o: &Options, out: &mut Dump<'_>) {
    let default = Options::default();
    if o.version != default.version {
        out.set(name, "version", o.version.to_string());
    }
    if o.framing == Framing::Ip {
        out.set(name, "mode", "ip");
    }
    if o.rx_queues != default.rx_queues {
        out.set(name, "rx-queues", u32::from(o.rx_queues));
    }
    if o.tx_queues != default.tx_queues {
        out.set(name, "tx-queues", u32::from(o.tx_queues));
    }
    let sizes = [
        ("rx-size", o.rx_size),
        ("tx-size", o.tx_size),
        ("rx-per-block", o.rx_per_block),
        ("tx-per-block", o.tx_per_block),
    ];
    for (key, value) in sizes {
        if let Some(value) = value {
            out.set(name, key, value);
        }
    }
    if !o.offload {
        out.set(name, "checksum-offload", false);
    }
    if !o.qdisc_bypass {
        out.set(name, "qdisc-bypass", false);
    }
}

/// Reports our keys on an interface that neither we nor another section owns.
fn foreign(i: &Interface<'_>, out: &mut Draft) {
    for rule in RULES {
        let Some((_, key)) = rule.path.rsplit_once('.') else { continue };
        // Packet generators have modes, too, and TAPs queues.
        let others = ["mode", "rx-queues", "tx-queues"];
        if let Some(found) = i.get(key).filter(|_| !others.contains(&key)) {
            out.problem(Problem::at(
                found.node,
                found.path,
                "only a host interface has this setting",
            ));
        }
    }
    if let Some(found) = i.get("device-type") {
        out.problem(Problem::at(found.node, found.path, "only a host interface has this setting"));
    }
}

fn host(i: &Interface<'_>, device: &str, out: &mut Draft) {
    let name = &*i.name;
    out.claim(name);
    if let Some(found) = i.get("device-type").filter(|f| f.node.text() != Some("af-packet")) {
        out.problem(Problem::unsupported(found.node, found.path, "host interfaces are af-packet"));
    }
    let mut command = String::from("create host-interface ");
    if let Some(version) = i.get("version").filter(|f| f.node.text() != Some("v2")) {
        command += &format!("{} ", version.node.value);
    }
    command += &format!("name {device}");
    match i.get("mode") {
        Some(f) if f.node.text() == Some("ip") => command += " mode ip",
        Some(f) if f.node.text() != Some("ethernet") => {
            out.problem(Problem::at(f.node, f.path, "a host interface's mode is ethernet or ip"));
        }
        _ => {}
    }
    for (key, word, default) in [
        ("rx-queues", "num-rx-queues", Some(1)),
        ("tx-queues", "num-tx-queues", Some(1)),
        ("rx-size", "rx-size", None),
        ("tx-size", "tx-size", None),
        ("rx-per-block", "rx-per-block", None),
        ("tx-per-block", "tx-per-block", None),
    ] {
        let value = i.get(key).and_then(|f| f.node.u32());
        if let Some(value) = value.filter(|v| Some(*v) != default) {
            command += &format!(" {word} {value}");
        }
    }
    let is_off = |key: &str| i.get(key).filter(|f| f.node.bool() == Some(false));
    if is_off("checksum-offload").is_some() {
        command += " checksum-offload-disable";
    }
    let item = Item::new(rank::CREATE, interface_key(name), i.path(""), command)
        .unset(format!("delete host-interface name {device}"));
    out.add(item.order(i.number).recreate());
    if let Some(found) = is_off("qdisc-bypass") {
        let set = |word: &str| format!("set host-interface qdisc-bypass {name} {word}");
        let item =
            Item::new(rank::DRIVER, format!("qdisc-bypass {name}"), found.path, set("disable"))
                .unset(set("enable"));
        out.add(item.needs(interface_key(name)).attribute());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_config::declare::{Catalog, Document};

    fn commands(text: &str) -> String {
        let catalog: Catalog<Control> = Catalog::new(vec![&SETTINGS]).unwrap();
        match catalog.read("f", text) {
            Ok(document) => {
                let plan = Document::default().plan_to(&document);
                plan.commands().collect::<Vec<_>>().join("\n")
            }
            Err(problems) => problems.to_string(),
        }
    }

    #[test]
    fn options_become_one_command() {
        let ours = "thalweg:\n  interfaces:\n    host-eth0: ";
        let with = |options: &str| commands(&format!("{ours}{{{options}}}\n"));
        assert_eq!(commands("interfaces:\n  host-eth0:\n"), "create host-interface name eth0");
        assert_eq!(
            with("version: v3, rx-queues: 2, tx-queues: 1, rx-size: 4096, checksum-offload: false"),
            "create host-interface v3 name eth0 num-rx-queues 2 rx-size 4096 checksum-offload-disable"
        );
        assert_eq!(
            with("mode: ip, qdisc-bypass: false"),
            "create host-interface name eth0 mode ip\n\
             set host-interface qdisc-bypass host-eth0 disable"
        );
        assert!(with("mode: ip4").contains("mode is ethernet or ip"));
        assert!(with("version: v1").contains("one of v2, v3"));
    }

    #[test]
    fn device_types_are_checked() {
        let of = |name: &str, kind: &str| {
            commands(&format!("interfaces:\n  {name}: {{device-type: {kind}}}\n"))
        };
        assert_eq!(of("host-eth0", "af-packet"), "create host-interface name eth0");
        assert!(
            of("host-eth0", "dpdk").contains("not supported yet: interfaces.host-eth0.device-type")
        );
        assert!(of("pg0", "af-packet").contains("only a host interface"));
    }
}
