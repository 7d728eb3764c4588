//! Configuration of flow rules and connection tracking.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use thalweg_config::declare::{
    Doc, Draft, Dump, Item, Kind, Name, Problem, Rule as Key, Section, Value, file_path,
    interface_key, rank,
};
use thalweg_conntrack::{Policy, WhenFull};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

use crate::Tracking;
use crate::rule::{AnyName, Names, Rule};
use crate::tracking::{DEFAULT_LIMIT, MAX_LIMIT};

/// The configuration section of flow rules, their interfaces and connection tracking.
pub(crate) struct Settings;

pub(crate) static SETTINGS: Settings = Settings;

const RULES: &[Key] = &[
    Key::new("thalweg.flow", Kind::Keys),
    Key::new("thalweg.flow.rules", Kind::Named(Name::Number(0, u32::MAX as u64))),
    Key::new("thalweg.flow.rules.*", Kind::List(0, crate::tables::MAX_RULES as usize)),
    Key::new("thalweg.flow.rules.*.[]", Kind::Other(one_rule)),
    Key::new("thalweg.conntrack", Kind::Keys),
    Key::new("thalweg.conntrack.limit", Kind::Int(1, MAX_LIMIT as i128)),
    Key::new("thalweg.conntrack.when-full", Kind::Word(&["refuse", "recycle"])),
    Key::new("thalweg.conntrack.tcp-seq-chk", Kind::Bool),
    Key::new("thalweg.conntrack.checksums", Kind::Bool),
    Key::new("thalweg.conntrack.events", Kind::Other(path)),
    Key::new("thalweg.conntrack.zone-limits", Kind::Named(Name::Any)),
    Key::new("thalweg.conntrack.zone-limits.*", Kind::Int(0, u32::MAX as i128)),
    Key::new("thalweg.conntrack.timeouts", Kind::Named(Name::Any)),
    Key::new("thalweg.conntrack.timeouts.*", Kind::Other(policy)),
];

fn one_rule(value: &Value) -> Result<(), String> {
    let right = "a rule such as `priority=1,ip,actions=normal'";
    match value {
        Value::Text(text) if text.contains(['\n', '\'']) => Err(right.into()),
        Value::Text(text) => match Rule::parse(text, &AnyName) {
            Ok(_) => Ok(()),
            Err(wrong) => Err(format!("{right} ({wrong})")),
        },
        _ => Err(right.into()),
    }
}

fn path(value: &Value) -> Result<(), String> {
    match value {
        Value::Text(text) => file_path(text),
        _ => Err("the absolute path of a socket".into()),
    }
}

fn policy(value: &Value) -> Result<(), String> {
    match value {
        Value::Text(text) => Policy::parse(text).map(drop).map_err(|e| e.to_string()),
        _ => Err("timeouts such as `udp_first=1 tcp_established=30'".into()),
    }
}

/// Parses a zone, or `default` for all others.
fn zone(name: &str) -> Option<Option<u16>> {
    if name == "default" { Some(None) } else { name.parse().ok().map(Some) }
}

fn zone_name(zone: Option<u16>) -> String {
    zone.map_or("default".into(), |zone| zone.to_string())
}

impl Section<Control> for Settings {
    fn rules(&'static self) -> Vec<Key> {
        RULES.to_vec()
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        for (set, rules) in crate::rules(c) {
            for view in rules {
                out.push(&["thalweg", "flow", "rules", &set.to_string()], view.rule.to_string());
            }
        }
        let state = c.state::<Tracking>();
        let (settings, default) = (state.borrow(), Tracking::default());
        let path = |key: &'static str| ["thalweg", "conntrack", key];
        if settings.limit != default.limit {
            out.put(&path("limit"), settings.limit);
        }
        if settings.when_full == WhenFull::Recycle {
            out.put(&path("when-full"), "recycle".to_owned());
        }
        if !settings.check_windows {
            out.put(&path("tcp-seq-chk"), false);
        }
        if !settings.checksums {
            out.put(&path("checksums"), false);
        }
        if let Some(path_of) = &settings.events {
            out.put(&path("events"), path_of.clone());
        }
        for (zone, limit) in &settings.zone_limits {
            out.put(&["thalweg", "conntrack", "zone-limits", &zone_name(*zone)], *limit);
        }
        for (zone, policy) in &settings.policies {
            out.put(&["thalweg", "conntrack", "timeouts", &zone_name(*zone)], policy.to_string());
        }
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        rules(doc, out);
        tracking(doc, out);
    }
}

/// The left side of a rule: all that identifies it.
fn left(text: &str) -> &str {
    let at = [",actions=", " actions=", ",action=", " action="].iter().filter_map(|a| text.find(a));
    &text[..at.min().unwrap_or(text.len())]
}

/// Names of interfaces that a rule has, whatever they are.
#[derive(Default)]
struct Asked(RefCell<BTreeSet<String>>);

impl Names for Asked {
    fn number(&self, name: &str) -> Option<SwIfIndex> {
        self.0.borrow_mut().insert(name.to_owned());
        AnyName.number(name)
    }
}

fn rules(doc: &Doc<'_>, out: &mut Draft) {
    // `in_port=NAME`, `output:NAME`, `resubmit(NAME,1)`: by name, device or tag.
    let mut named: HashMap<&str, Vec<&str>> = HashMap::new();
    for i in doc.interfaces() {
        let tag = i.get("tag").and_then(|f| f.node.text());
        for word in [Some(&*i.name), i.name.strip_prefix("host-"), tag].into_iter().flatten() {
            named.entry(word).or_default().push(&i.name);
        }
    }
    for (set, found) in doc.entries(&["thalweg", "flow", "rules"]) {
        for (n, part) in found.node.list().iter().enumerate() {
            let Some(text) = part.text() else { continue };
            // However it is written, it is the same rule.
            let asked = Asked::default();
            let text = Rule::parse(text, &asked).map_or(text.to_owned(), |rule| rule.to_string());
            let left = left(&text);
            let command = format!("flow add {set} {text}");
            let path = format!("{}[{n}]", found.path);
            let item = Item::new(rank::SERVICE, format!("flow {set} {left}"), path, command);
            let item = item.unset(format!("flow del {set} strict {left}")).order(n as u32);
            let mut item = item.may_wait();
            for word in asked.0.into_inner() {
                match named.get(&*word) {
                    Some(names) => {
                        item =
                            names.iter().fold(item, |item, name| item.needs(interface_key(name)));
                    }
                    // One that may come later. Numbers need none.
                    None if word.parse::<u32>().is_err() => item = item.needs(interface_key(&word)),
                    None => {}
                }
            }
            out.add(item);
        }
    }
}

fn tracking(doc: &Doc<'_>, out: &mut Draft) {
    let at = |key: &str| doc.at(&["thalweg", "conntrack", key]);
    let mut simple = |key: &str, value: Option<String>, back: &str| {
        let (Some(found), Some(value)) = (at(key), value) else { return };
        if value != back {
            let set = format!("set conntrack {key} {value}");
            let item = Item::new(rank::SERVICE, format!("conntrack {key}"), found.path, set);
            out.add(item.unset(format!("set conntrack {key} {back}")));
        }
    };
    let number = at("limit").and_then(|f| f.node.u32()).map(|n| n.to_string());
    simple("limit", number, &DEFAULT_LIMIT.to_string());
    let word = at("when-full").and_then(|f| f.node.text().map(str::to_owned));
    simple("when-full", word, "refuse");
    let path = at("events").and_then(|f| f.node.text().map(str::to_owned));
    simple("events", path, "disable");
    for key in ["tcp-seq-chk", "checksums"] {
        let on = at(key).and_then(|f| f.node.bool());
        simple(key, on.map(|on| if on { "enable" } else { "disable" }.to_owned()), "enable");
    }
    for (list, key) in [("zone-limits", "zone-limit"), ("timeouts", "timeouts")] {
        for (name, found) in doc.entries(&["thalweg", "conntrack", list]) {
            let Some(zone) = zone(name) else {
                let text = format!("`default' or a zone from 0 to 65535 expected, not `{name}'");
                out.problem(Problem::at(found.node, &found.path, text));
                continue;
            };
            // Write the number as the router does: 05 is 5.
            let name = zone_name(zone);
            let value = match found.node.text() {
                // Return it in the router's order, without what is so anyway.
                Some(text) => Policy::parse(text).map_or(text.to_owned(), |p| p.to_string()),
                None => found.node.u32().unwrap_or_default().to_string(),
            };
            let set = format!("set conntrack {key} {name} {value}");
            let item =
                Item::new(rank::SERVICE, format!("conntrack {key} {name}"), &found.path, set);
            out.add(item.unset(format!("set conntrack {key} {name} none")));
        }
    }
}
