//! Configuration of punt limits and ports.

use super::{MAX_PORTS, Port};
use thalweg_config::declare::{Doc, Draft, Dump, Item, Kind, Name, Rule, Section, Value, rank};
use thalweg_graph::Control;

/// Section of punt limits and ports.
pub(crate) struct Settings;

pub(crate) static SETTINGS: Settings = Settings;

const KEY: [&str; 2] = ["thalweg", "punt-limits"];
const PORTS: [&str; 2] = ["thalweg", "punt-ports"];

const RULES: &[Rule] = &[
    Rule::new("thalweg.punt-limits", Kind::Named(Name::Any)),
    Rule::new("thalweg.punt-limits.*", Kind::Int(0, u32::MAX as i128)),
    Rule::new("thalweg.punt-ports", Kind::List(0, MAX_PORTS)),
    Rule::new("thalweg.punt-ports.[]", Kind::Other(check)),
];

fn check(value: &Value) -> Result<(), String> {
    match value {
        Value::Text(text) if text.parse::<Port>().is_ok() => Ok(()),
        _ => Err("`ipv4|ipv6 udp <port>|all'".into()),
    }
}

impl Section<Control> for Settings {
    fn rules(&'static self) -> Vec<Rule> {
        RULES.to_vec()
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        for reason in super::reasons(c) {
            if reason.rate != reason.decl.rate {
                out.put(&[KEY[0], KEY[1], reason.decl.name], reason.rate);
            }
        }
        for port in super::ports(c) {
            out.push(&PORTS, port.to_string());
        }
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        for (name, found) in doc.entries(&KEY) {
            let Some(limit) = found.node.u32() else { continue };
            let key = format!("set punt limit {name}");
            let set = format!("{key} {limit}");
            let unset = format!("{key} default");
            out.add(Item::new(rank::SERVICE, key, &found.path, set).unset(unset));
        }
        let list = doc.at(&PORTS);
        let nodes = list.iter().flat_map(|f| f.node.list().iter().map(|n| (n, f.path.clone())));
        for (node, path) in nodes {
            let Some(port) = node.text().and_then(|text| text.parse::<Port>().ok()) else {
                continue;
            };
            let set = format!("set punt {port}");
            let unset = match port.to_string().rsplit_once(' ') {
                Some((front, number)) => format!("set punt {front} del {number}"),
                None => continue,
            };
            out.add(Item::new(rank::SERVICE, set.clone(), path, set).unset(unset));
        }
    }
}
