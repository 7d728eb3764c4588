//! Configuration of neighbours.

use crate::{Config, MAX_AGE, MAX_LIMIT, Neighbors, Version};
use std::net::IpAddr;
use thalweg_config::declare::{
    Doc, Draft, Dump, Found, Item, Kind, Name, Problem, Rule, Section, Value, interface_key, mac,
    rank,
};
use thalweg_graph::Control;
use thalweg_wire::MacAddr;

/// Section of neighbours.
pub(crate) struct Settings;

pub(crate) static SETTINGS: Settings = Settings;

const AGE: Kind = Kind::Int(0, MAX_AGE.as_secs() as i128);

const RULES: &[Rule] = &[
    Rule::new("thalweg.ip-neighbors", Kind::Keys),
    Rule::new("thalweg.ip-neighbors.limit", Kind::Int(1, MAX_LIMIT as i128)),
    Rule::new("thalweg.ip-neighbors.interface-limit", Kind::Int(1, MAX_LIMIT as i128)),
    Rule::new("thalweg.ip-neighbors.age", AGE),
    Rule::new("thalweg.ip-neighbors.recycle", Kind::Bool),
    Rule::new("thalweg.ip-neighbors.ip6", Kind::Keys),
    Rule::new("thalweg.ip-neighbors.ip6.limit", Kind::Int(1, MAX_LIMIT as i128)),
    Rule::new("thalweg.ip-neighbors.ip6.interface-limit", Kind::Int(1, MAX_LIMIT as i128)),
    Rule::new("thalweg.ip-neighbors.ip6.age", AGE),
    Rule::new("thalweg.ip-neighbors.ip6.recycle", Kind::Bool),
    Rule::new("thalweg.interfaces.*.neighbors", Kind::Named(Name::Any)),
    Rule::new("thalweg.interfaces.*.neighbors.*", Kind::Other(neighbor)),
];

/// Returns the place of a family's settings: IPv4's are directly below the others.
fn path(family: Version) -> &'static [&'static str] {
    match family {
        Version::V4 => &["thalweg", "ip-neighbors"],
        Version::V6 => &["thalweg", "ip-neighbors", "ip6"],
    }
}

/// Parses a neighbour's value: MAC address, `static`, which may be left out, and `no-fib-entry`.
///
/// Only static neighbours are configuration: the router probes and forgets another one like a
/// neighbour that it learned.
fn parse_entry(text: &str) -> Option<(MacAddr, bool)> {
    let mut words = text.split_whitespace();
    let mac = mac(words.next()?)?;
    let mut no_route = false;
    for word in words {
        match word {
            "static" => {}
            "no-fib-entry" => no_route = true,
            _ => return None,
        }
    }
    Some((mac, no_route))
}

fn neighbor(value: &Value) -> Result<(), String> {
    match value {
        Value::Text(text) if parse_entry(text).is_some() => Ok(()),
        _ => Err("`<mac> [static] [no-fib-entry]'".into()),
    }
}

impl Section<Control> for Settings {
    fn rules(&'static self) -> Vec<Rule> {
        RULES.to_vec()
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        let state = c.state::<Neighbors>();
        let state = state.borrow();
        let default = Config::default();
        for family in state.families() {
            let Ok(now) = state.config(family) else { continue };
            let key = |key| [path(family), &[key]].concat();
            if now.limit != default.limit {
                out.put(&key("limit"), now.limit as u64);
            }
            if now.interface_limit != default.interface_limit {
                out.put(&key("interface-limit"), now.interface_limit as u64);
            }
            if now.age != default.age {
                out.put(&key("age"), now.age.as_secs());
            }
            if now.recycle != default.recycle {
                out.put(&key("recycle"), now.recycle);
            }
        }
        for n in state.configured() {
            let Some(mac) = n.mac else { continue };
            let mut text = format!("{mac} static");
            if n.no_fib_entry {
                text += " no-fib-entry";
            }
            let name = c.interface_name(n.sw_if);
            out.put(&["thalweg", "interfaces", &name, "neighbors", &n.ip.to_string()], text);
        }
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        Version::ALL.into_iter().for_each(|family| settings(family, doc, out));
        for i in doc.interfaces() {
            for (ip, found) in doc.entries(&["thalweg", "interfaces", &i.name, "neighbors"]) {
                one(&i.name, ip, &found, out);
            }
        }
    }
}

fn settings(family: Version, doc: &Doc<'_>, out: &mut Draft) {
    let default = Config::default();
    let set = |what: String| format!("set ip neighbor-config {} {what}", family.protocol());
    let mut add = |key: &str, found: Option<Found<'_>>, word: String, back: String| {
        let Some(found) = found.filter(|_| word != back) else { return };
        let key = match family {
            Version::V4 => format!("neighbor-config {key}"),
            Version::V6 => format!("neighbor-config ip6 {key}"),
        };
        out.add(Item::new(rank::NEIGHBORS, key, found.path, set(word)).unset(set(back)));
    };
    let at = |key| doc.at(&[path(family), &[key]].concat());
    for (key, back) in [
        ("limit", default.limit as u64),
        ("interface-limit", default.interface_limit as u64),
        ("age", default.age.as_secs()),
    ] {
        let found = at(key);
        let n = found.as_ref().map(|f| f.node.value.to_string()).unwrap_or_default();
        add(key, found, format!("{key} {n}"), format!("{key} {back}"));
    }
    let found = at("recycle");
    let word = |on: bool| if on { "recycle" } else { "norecycle" }.to_owned();
    let on = found.as_ref().and_then(|f| f.node.bool()).unwrap_or(default.recycle);
    add("recycle", found, word(on), word(default.recycle));
}

fn one(interface: &str, ip: &str, found: &Found<'_>, out: &mut Draft) {
    let Ok(ip) = ip.parse::<IpAddr>() else {
        let text = format!("an IP address expected, not `{ip}'");
        return out.problem(Problem::at(found.node, &found.path, text));
    };
    let Some((mac, no_route)) = found.node.text().and_then(parse_entry) else { return };
    if !mac.is_unicast() {
        let text = "a unicast MAC address expected, not a multicast or zero address";
        return out.problem(Problem::at(found.node, &found.path, text));
    }
    let mut set = format!("set ip neighbor {interface} {ip} {mac} static");
    if no_route {
        set += " no-fib-entry";
    }
    let item = Item::new(rank::NEIGHBOR, format!("neighbor {interface} {ip}"), &found.path, set)
        .unset(format!("set ip neighbor del {interface} {ip}"));
    out.add(item.needs(interface_key(interface)).recreate());
}
