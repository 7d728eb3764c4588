//! Configuration of MPLS: tables, labels, and interfaces that take labelled packets.

use crate::{Key, Mpls, Via};
use std::collections::BTreeSet;
use std::net::IpAddr;
use thalweg_config::declare::{
    Doc, Draft, Dump, Item, Kind, Name, Node, Problem, Rule, Section, Value, interface_key, rank,
};
use thalweg_feat_ip::{Path, PathKind, label_of, label_text, labels_text};
use thalweg_fib::rib::Labels;
use thalweg_graph::Control;
use thalweg_wire::mpls::Label;

/// The section.
pub(crate) struct Settings;

pub(crate) static SETTINGS: Settings = Settings;

const RULES: &[Rule] = &[
    Rule::new("thalweg.interfaces.*.mpls", Kind::Bool),
    Rule::new("thalweg.mpls-tables", Kind::Named(Name::Number(0, u32::MAX as u64))),
    Rule::new("thalweg.mpls-tables.*", Kind::Keys),
    Rule::new("thalweg.mpls-tables.*.name", Kind::Name(Name::Any)),
    Rule::new("thalweg.mpls-tables.*.labels", Kind::Named(Name::Any)),
    Rule::new("thalweg.mpls-tables.*.labels.*", Kind::Other(label)),
];

/// A path in a document, in the words of `mpls local-label` after `via`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Words {
    /// As it is typed.
    text: String,
    interface: Option<String>,
    /// Other MPLS and IP tables that it names.
    mpls: Option<u32>,
    ip4: Option<u32>,
}

impl Words {
    fn parse(text: &str) -> Option<Words> {
        let mut words = text.split_whitespace().peekable();
        let first = words.next()?;
        let mut out = Words { text: String::new(), interface: None, mpls: None, ip4: None };
        match first {
            "drop" | "local" => out.text = first.into(),
            "mpls-lookup-in-table" | "ip4-lookup-in-table" => {
                let id: u32 = words.next()?.parse().ok()?;
                out.text = format!("{first} {id}");
                let table = if first.starts_with("mpls") { &mut out.mpls } else { &mut out.ip4 };
                *table = Some(id);
            }
            "rx-ip4" => {
                let name = words.next()?;
                out.text = format!("rx-ip4 {name}");
                out.interface = Some(name.to_owned());
            }
            _ => {
                let hop = first.parse::<IpAddr>().ok();
                let name = if hop.is_some() { words.next()? } else { first };
                if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
                    return None;
                }
                let (mut weight, mut preference, mut labels) = (1u8, 0u8, Labels::NONE);
                while let Some(word) = words.next() {
                    match word {
                        "weight" => weight = words.next()?.parse().ok().filter(|w| *w > 0)?,
                        "preference" => preference = words.next()?.parse().ok()?,
                        "out-labels" => {
                            let mut all: Vec<Label> = vec![label_of(words.next()?)?];
                            while let Some(label) = words.peek().and_then(|w| label_of(w)) {
                                all.push(label);
                                words.next();
                            }
                            labels = Labels::new(&all)?;
                        }
                        _ => return None,
                    }
                }
                out.text = path_text(hop, name, (weight, preference), &labels);
                out.interface = Some(name.to_owned());
            }
        }
        words.next().is_none().then_some(out)
    }
}

fn path_text(
    hop: Option<IpAddr>,
    name: &str,
    (weight, preference): (u8, u8),
    labels: &Labels,
) -> String {
    let hop = hop.map(|hop| format!("{hop} ")).unwrap_or_default();
    let weight = if weight == 1 { String::new() } else { format!(" weight {weight}") };
    let preference =
        if preference == 0 { String::new() } else { format!(" preference {preference}") };
    format!("{hop}{name}{weight}{preference}{}", labels_text(labels))
}

/// A path as it is typed.
fn via_text(c: &Control, via: &Via) -> String {
    let name = |p: &Path| p.sw_if.map(|i| c.interface_name(i)).unwrap_or_default();
    match via {
        Via::Mpls(table) => format!("mpls-lookup-in-table {table}"),
        Via::Path(p) => match p.kind {
            PathKind::Normal => {
                path_text(p.next_hop, &name(p), (p.weight, p.preference), &p.labels)
            }
            PathKind::Lookup(table) => format!("ip4-lookup-in-table {table}"),
            PathKind::InterfaceRx => format!("rx-ip4 {}", name(p)),
            PathKind::Local => "local".into(),
            _ => "drop".into(),
        },
    }
}

/// Reads the name of a label, such as `16/eos` or `17/non-eos`.
fn key(text: &str) -> Option<Key> {
    let (label, bottom) = text.split_once('/')?;
    let eos = match bottom {
        "eos" => true,
        "non-eos" => false,
        _ => return None,
    };
    Some(Key { label: label_of(label)?, eos })
}

/// A label and its bottom, as names of a document or words of a command.
fn key_text(key: Key, between: char) -> String {
    format!("{}{between}{}", label_text(key.label), if key.eos { "eos" } else { "non-eos" })
}

fn paths(value: &Value) -> Option<Vec<Words>> {
    match value {
        Value::Text(text) => Some(vec![Words::parse(text)?]),
        Value::List(list) => {
            let all: Option<Vec<Words>> = list.iter().map(|n| Words::parse(n.text()?)).collect();
            all.filter(|all| !all.is_empty())
        }
        _ => None,
    }
}

fn label(value: &Value) -> Result<(), String> {
    let expected = "a path or a list of paths: `<next hop> <interface> [weight <n>] \
                    [preference <n>] [out-labels <label> ...]', `ip4-lookup-in-table <id>', \
                    `mpls-lookup-in-table <id>', `rx-ip4 <interface>', or drop";
    paths(value).map(|_| ()).ok_or_else(|| expected.into())
}

fn table_key(id: u32) -> String {
    format!("mpls table {id}")
}

impl Section<Control> for Settings {
    fn supports(&self) -> &'static [&'static str] {
        &["interfaces.*.mpls", "interfaces.*.sub-interfaces.*.mpls", "loopbacks.*.mpls"]
    }

    fn rules(&self) -> &'static [Rule] {
        RULES
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        let mpls = c.state::<Mpls>();
        let mpls = mpls.borrow();
        for i in mpls.enabled() {
            out.set(&c.interface_name(i), "mpls", true);
        }
        for (id, name) in mpls.tables() {
            let table = id.to_string();
            let at = ["thalweg", "mpls-tables", &table];
            out.put(&at, Value::Map(Default::default()));
            if !name.is_empty() {
                out.put(&[at[0], at[1], at[2], "name"], name);
            }
            for view in mpls.labels(id, Label(0)).filter(|view| !view.vias.is_empty()) {
                let key = key_text(view.key, '/');
                let place = [at[0], at[1], at[2], "labels", &key];
                match &view.vias[..] {
                    [one] => out.put(&place, via_text(c, one)),
                    all => all.iter().for_each(|via| out.push(&place, via_text(c, via))),
                }
            }
        }
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        let mut tables = BTreeSet::new();
        let mut add = |id: u32, path: String, out: &mut Draft| {
            if tables.insert(id) {
                let set = format!("mpls table add {id}");
                let item = Item::new(rank::TABLE, table_key(id), path, set);
                out.add(item.unset(format!("mpls table del {id}")));
            }
        };
        for (id, found) in doc.entries(&["thalweg", "mpls-tables"]) {
            if let Ok(id) = id.parse() {
                add(id, found.path.clone(), out);
                if let Some(name) = found.node.get("name").and_then(Node::text) {
                    let set = |name: &str| format!("mpls table add {id} name '{name}'");
                    let path = format!("{}.name", found.path);
                    let item =
                        Item::new(rank::TABLE, format!("name of mpls table {id}"), path, set(name));
                    let item = item.unset(set("")).attribute().order(1);
                    out.add(item.needs(table_key(id)));
                }
            }
        }
        for i in doc.interfaces() {
            let Some(found) = i.get("mpls").filter(|f| f.node.bool() == Some(true)) else {
                continue;
            };
            // Without it, no interface can.
            add(0, found.path.clone(), out);
            let set = format!("set interface mpls {} enable", i.name);
            let item = Item::new(rank::BIND, format!("mpls on {}", i.name), found.path, set);
            let item = item.unset(format!("set interface mpls {} disable", i.name));
            out.add(item.needs(interface_key(&i.name)).needs(table_key(0)));
        }
        let tables: Vec<(u32, String)> = doc
            .entries(&["thalweg", "mpls-tables"])
            .into_iter()
            .filter_map(|(id, _)| Some((id.parse().ok()?, id.to_owned())))
            .collect();
        for (id, text) in tables {
            labels(doc, id, &text, out);
        }
    }
}

/// Adds the labels of a table.
fn labels(doc: &Doc<'_>, id: u32, text: &str, out: &mut Draft) {
    for (name, found) in doc.entries(&["thalweg", "mpls-tables", text, "labels"]) {
        let Some(key) = key(name) else {
            let text = format!("a label such as `16/eos' or `17/non-eos' expected, not `{name}'");
            out.problem(Problem::at(found.node, found.path, text));
            continue;
        };
        // The schema has checked it.
        let Some(mut all) = paths(&found.node.value) else { continue };
        all.sort_unstable();
        let vias: String = all.iter().map(|words| format!(" via {}", words.text)).collect();
        let in_table = if id == 0 { String::new() } else { format!(" table {id}") };
        let label = key_text(key, ' ');
        let set = format!("mpls local-label replace {label}{in_table}{vias}");
        let item = Item::new(rank::ROUTE, format!("label {id} {label}"), found.path, set);
        let item = item.unset(format!("mpls local-label del {label}{in_table}"));
        let mut item = item.order(1 << 20).needs(table_key(id));
        for words in &all {
            if let Some(name) = &words.interface {
                item = item.needs(interface_key(name));
            }
            if let Some(table) = words.mpls {
                item = item.needs(table_key(table));
            }
            if let Some(table) = words.ip4.filter(|table| *table != 0) {
                item = item.needs(format!("ip-table {table}"));
            }
        }
        out.add(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_written_as_commands_are() {
        for text in [
            "10.0.0.2 pg0 out-labels 17",
            "10.0.0.2 pg0 weight 2 preference 1 out-labels 18 17",
            "pg0",
            "ip4-lookup-in-table 7",
            "mpls-lookup-in-table 0",
            "rx-ip4 pg0",
            "drop",
        ] {
            assert_eq!(Words::parse(text).map(|words| words.text).as_deref(), Some(text));
        }
        for bad in ["", "10.0.0.2", "10.0.0.2 pg0 out-labels", "drop it", "rx-ip4", "17"] {
            assert_eq!(Words::parse(bad), None, "{bad}");
        }
        let eos = Key { label: Label(16), eos: true };
        assert_eq!((key("16/eos"), key("16"), key("x/eos")), (Some(eos), None, None));
        assert_eq!(key_text(eos, '/'), "16/eos");
    }
}
