//! Configuration of MPLS: tables, labels, and interfaces that take labelled packets.

use crate::tunnels::{self, Tunnels};
use crate::{Bound, Key, LabelView, Mpls, Via};
use std::collections::BTreeSet;
use std::iter::Peekable;
use std::net::IpAddr;
use thalweg_config::declare::{
    Doc, Draft, Dump, Item, Kind, Name, Node, Problem, Rule, Section, Value, interface_key, rank,
};
use thalweg_feat_ip::{Path, PathKind, label_of, label_text, labels_of, labels_text, via_label_of};
use thalweg_fib::rib::Labels;
use thalweg_fib::{TableId, Version};
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
    Rule::new("thalweg.mpls-tables.*.prefixes", Kind::Named(Name::Any)),
    Rule::new("thalweg.mpls-tables.*.prefixes.*", Kind::Other(prefix)),
    Rule::new("thalweg.mpls-tables.*.labels", Kind::Named(Name::Any)),
    Rule::new("thalweg.mpls-tables.*.labels.*", Kind::Other(label)),
    Rule::new("thalweg.mpls-tunnels", Kind::Named(Name::Numbered(tunnels::PREFIX))),
    Rule::new("thalweg.mpls-tunnels.*", Kind::Keys),
    Rule::new("thalweg.mpls-tunnels.*.l2-only", Kind::Bool),
    Rule::new("thalweg.mpls-tunnels.*.control-word", Kind::Bool),
    Rule::new("thalweg.mpls-tunnels.*.paths", Kind::Other(tunnel_paths)),
];

/// A path in a document, in the words of `mpls local-label` after `via`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Words {
    /// As it is typed.
    text: String,
    interface: Option<String>,
    /// Other MPLS and IP tables that it names.
    mpls: Option<u32>,
    ip: Option<(Version, u32)>,
}

/// Key of the item that adds a table of IP.
fn ip_table_key(version: Version, table: u32) -> String {
    format!("{}-table {table}", version.word())
}

/// Reads the labels of a path by which packets are looked up.
fn looked_up<'a>(words: &mut Peekable<impl Iterator<Item = &'a str>>) -> Option<String> {
    match words.next_if(|w| *w == "out-labels") {
        Some(_) => labels_of(words).map(|labels| labels_text(&labels)),
        None => Some(String::new()),
    }
}

impl Words {
    fn parse(text: &str) -> Option<Words> {
        let mut words = text.split_whitespace().peekable();
        let first = words.next()?;
        let mut out = Words { text: String::new(), interface: None, mpls: None, ip: None };
        match first {
            "drop" | "local" => out.text = first.into(),
            "mpls-lookup-in-table" => {
                let id: u32 = words.next()?.parse().ok()?;
                out.text = format!("{first} {id}");
                out.mpls = Some(id);
            }
            "ip4-lookup-in-table" | "ip6-lookup-in-table" => {
                let id: u32 = words.next()?.parse().ok()?;
                out.text = format!("{first} {id}{}", looked_up(&mut words)?);
                let of = if first.starts_with("ip4") { Version::V4 } else { Version::V6 };
                out.ip = Some((of, id));
            }
            "l2-input-on" => {
                let name = words.next()?;
                let word = words.next_if(|w| *w == "pop-pw-cw").map_or("", |_| " pop-pw-cw");
                out.text = format!("l2-input-on {name}{word}");
                out.interface = Some(name.to_owned());
            }
            "rx-ip4" | "rx-ip6" => {
                let name = words.next()?;
                out.text = format!("{first} {name}{}", looked_up(&mut words)?);
                out.interface = Some(name.to_owned());
            }
            _ => {
                let hop = first.parse::<IpAddr>().ok();
                let followed = match first {
                    "via-label" => Some(via_label_of(words.next()?.parse().ok()?)?),
                    _ => None,
                };
                // A next hop without an interface is followed by routes.
                let is_name = |w: &str| {
                    w.starts_with(|c: char| c.is_ascii_alphabetic()) && !PATH_WORDS.contains(&w)
                };
                let name = match hop {
                    Some(_) => words.next_if(|w| is_name(w)),
                    None => Some(first).filter(|w| is_name(w) && followed.is_none()),
                };
                if hop.is_none() && name.is_none() && followed.is_none() {
                    return None;
                }
                let mut table = None;
                if hop.is_some()
                    && name.is_none()
                    && words.next_if(|w| *w == "next-hop-table").is_some()
                {
                    table = Some(words.next()?.parse::<u32>().ok()?);
                }
                let (mut weight, mut preference, mut labels) = (1u8, 0u8, Labels::NONE);
                while let Some(word) = words.next() {
                    match word {
                        "weight" => weight = words.next()?.parse().ok().filter(|w| *w > 0)?,
                        "preference" => preference = words.next()?.parse().ok()?,
                        "out-labels" => labels = labels_of(&mut words)?,
                        _ => return None,
                    }
                }
                let place = place_text(hop, followed, name);
                out.text = path_text(place, table, (weight, preference), &labels);
                out.interface = name.map(str::to_owned);
                out.ip = hop.map(Version::of_ip).zip(table);
            }
        }
        words.next().is_none().then_some(out)
    }
}

/// Words that follow the place where a path leads to.
const PATH_WORDS: [&str; 4] = ["weight", "preference", "out-labels", "next-hop-table"];

/// Where a path leads to.
fn place_text(hop: Option<IpAddr>, followed: Option<Label>, name: Option<&str>) -> String {
    let hop = hop.map(|hop| hop.to_string());
    let hop = hop.or(followed.map(|label| format!("via-label {label}")));
    let place: Vec<String> = hop.into_iter().chain(name.map(str::to_owned)).collect();
    place.join(" ")
}

fn path_text(
    place: String,
    table: Option<u32>,
    (weight, preference): (u8, u8),
    labels: &Labels,
) -> String {
    let table = table.map(|table| format!(" next-hop-table {table}")).unwrap_or_default();
    let weight = if weight == 1 { String::new() } else { format!(" weight {weight}") };
    let preference =
        if preference == 0 { String::new() } else { format!(" preference {preference}") };
    format!("{place}{table}{weight}{preference}{}", labels_text(labels))
}

/// A path as it is typed.
fn via_text(c: &Control, via: &Via) -> String {
    let name = |p: &Path| p.sw_if.map(|i| c.interface_name(i));
    match via {
        Via::Mpls(table) => format!("mpls-lookup-in-table {table}"),
        Via::Layer2 { sw_if, control_word } => {
            let word = if *control_word { " pop-pw-cw" } else { "" };
            format!("l2-input-on {}{word}", c.interface_name(*sw_if))
        }
        Via::Ip6(p) => match p.kind {
            PathKind::Lookup(table) => {
                format!("ip6-lookup-in-table {table}{}", labels_text(&p.labels))
            }
            _ => format!("rx-ip6 {}{}", name(p).unwrap_or_default(), labels_text(&p.labels)),
        },
        Via::Path(p) => match p.kind {
            PathKind::Normal => {
                let (name, table) = (name(p), p.table.map(|table| table.get()));
                let share = (p.weight, p.preference);
                let place = place_text(p.next_hop, p.via_label, name.as_deref());
                path_text(place, table, share, &p.labels)
            }
            PathKind::Lookup(table) => {
                format!("ip4-lookup-in-table {table}{}", labels_text(&p.labels))
            }
            PathKind::InterfaceRx => {
                format!("rx-ip4 {}{}", name(p).unwrap_or_default(), labels_text(&p.labels))
            }
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
    let expected = "a path or a list of paths: `<next hop> [<interface>] [weight <n>] \
                    [preference <n>] [out-labels <label> ... [uniform]]', `via-label <label> ...', \
                    `ip4-lookup-in-table <id>', \
                    `ip6-lookup-in-table <id>', `mpls-lookup-in-table <id>', `rx-ip4 <interface>', \
                    `rx-ip6 <interface>', `l2-input-on <interface>', or drop";
    paths(value).map(|_| ()).ok_or_else(|| expected.into())
}

fn tunnel_paths(value: &Value) -> Result<(), String> {
    let expected = "a path or a list of paths: `<next hop> [<interface>] [weight <n>] \
                    [preference <n>] out-labels <label> ...'";
    let right = |all: Vec<Words>| all.iter().all(|words| words.text.contains("out-labels"));
    if paths(value).is_some_and(right) { Ok(()) } else { Err(expected.into()) }
}

/// Reads what a label is bound to: `192.0.2.0/24', or with ` table 7'.
fn bound(text: &str) -> Option<Bound> {
    let mut words = text.split_whitespace();
    let (address, len) = words.next()?.split_once('/')?;
    let (address, len) = (address.parse::<IpAddr>().ok()?, len.parse().ok()?);
    let table = match words.next() {
        None => 0,
        Some("table") => words.next()?.parse().ok()?,
        Some(_) => return None,
    };
    words.next().is_none().then(|| Bound::new(TableId(table), address, len))?
}

fn bound_text(bound: Bound) -> String {
    let table = match bound.table() {
        TableId(0) => String::new(),
        table => format!(" table {table}"),
    };
    format!("{}{table}", bound.prefix())
}

fn prefix(value: &Value) -> Result<(), String> {
    let expected = "a prefix such as `192.0.2.0/24' or `2001:db8::/32', or `192.0.2.0/24 table 7'";
    let right = matches!(value, Value::Text(text) if bound(text).is_some());
    if right { Ok(()) } else { Err(expected.into()) }
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
            let own = |view: &LabelView| !view.vias.is_empty() && view.bound.is_none();
            for view in mpls.labels(id, Label(0)).filter(own) {
                let key = key_text(view.key, '/');
                let place = [at[0], at[1], at[2], "labels", &key];
                match &view.vias[..] {
                    [one] => out.put(&place, via_text(c, one)),
                    all => all.iter().for_each(|via| out.push(&place, via_text(c, via))),
                }
            }
        }
        for (bound, id, label) in mpls.bound() {
            let (table, label) = (id.to_string(), label_text(label));
            let place = ["thalweg", "mpls-tables", &table, "prefixes", &label];
            out.put(&place, bound_text(bound));
        }
        for tunnel in c.state::<Tunnels>().borrow().iter() {
            let name = c.interface_name(tunnel.sw_if);
            let at = |key| ["thalweg", "mpls-tunnels", &name, key];
            out.put(&at("")[..3], Value::Map(Default::default()));
            if tunnel.layer2 {
                out.put(&at("l2-only"), true);
            }
            if tunnel.control_word {
                out.put(&at("control-word"), true);
            }
            let text = |path: &Path| via_text(c, &Via::Path(*path));
            match &tunnel.paths[..] {
                [] => {}
                [one] => out.put(&at("paths"), text(one)),
                all => all.iter().for_each(|path| out.push(&at("paths"), text(path))),
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
            prefixes(doc, id, &text, out);
        }
        tunnels(doc, out);
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
            if let Some((version, table)) = words.ip.filter(|(_, table)| *table != 0) {
                item = item.needs(ip_table_key(version, table));
            }
        }
        out.add(item);
    }
}

/// Adds the labels of a table that are bound to prefixes.
fn prefixes(doc: &Doc<'_>, id: u32, text: &str, out: &mut Draft) {
    for (name, found) in doc.entries(&["thalweg", "mpls-tables", text, "prefixes"]) {
        let Some(label) = label_of(name) else {
            let text = format!("a label such as `16' expected, not `{name}'");
            out.problem(Problem::at(found.node, found.path, text));
            continue;
        };
        // The schema has checked it.
        let Some(bound) = found.node.text().and_then(bound) else { continue };
        let in_table = if id == 0 { String::new() } else { format!(" mpls-table {id}") };
        let label = label_text(label);
        let words = format!("{label} {}{in_table}", bound_text(bound));
        let set = format!("mpls local-label add {words}");
        let item = Item::new(rank::ROUTE, format!("prefix of label {id} {label}"), found.path, set);
        let item = item.unset(format!("mpls local-label del {words}")).recreate();
        let mut item = item.order(1 << 20).needs(table_key(id));
        if bound.table() != TableId(0) {
            item = item.needs(ip_table_key(bound.version(), bound.table().get()));
        }
        out.add(item);
    }
}

/// Adds tunnels: they are made with a path, which is set again once all that it leads by exists.
fn tunnels(doc: &Doc<'_>, out: &mut Draft) {
    for (name, found) in doc.entries(&["thalweg", "mpls-tunnels"]) {
        out.claim(name);
        let on = |key| found.node.get(key).and_then(Node::bool) == Some(true);
        let kind = match (on("l2-only"), on("control-word")) {
            (true, true) => " l2-only control-word",
            (true, false) => " l2-only",
            (false, true) => {
                let text = "a `control-word' needs `l2-only: true'";
                out.problem(Problem::at(found.node, found.path, text));
                continue;
            }
            (false, false) => "",
        };
        let Some(mut all) = found.node.get("paths").and_then(|n| paths(&n.value)) else {
            let text = "a tunnel needs `paths', such as `10.0.0.2 out-labels 16'";
            out.problem(Problem::at(found.node, found.path, text));
            continue;
        };
        all.sort_unstable();
        let vias: String = all.iter().map(|words| format!(" via {}", words.text)).collect();
        let set = format!("mpls tunnel add {name}{kind}{vias}");
        let item = Item::new(rank::CREATE, interface_key(name), found.path, set);
        let mut item = item.unset(format!("mpls tunnel del {name}")).order(1 << 20).recreate();
        for words in &all {
            if let Some(by) = &words.interface {
                item = item.needs(interface_key(by));
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
            "10.0.0.2 pg0 out-labels 18 17 uniform",
            "10.0.0.2 pg0 out-labels 18 ttl 9 exp 5 17 exp 1 uniform",
            "10.0.0.2 pg0 weight 2 preference 1 out-labels 18 17",
            "pg0",
            "ip4-lookup-in-table 7",
            "mpls-lookup-in-table 0",
            "rx-ip4 pg0",
            "rx-ip6 pg0 out-labels implicit-null uniform",
            "ip6-lookup-in-table 7",
            "ip4-lookup-in-table 7 out-labels implicit-null uniform",
            "2001:db8::2 next-hop-table 7",
            "10.0.0.2",
            "via-label 33",
            "via-label 33 weight 2 out-labels 44 45",
            "10.0.0.2 next-hop-table 7 weight 2 out-labels 17",
            "l2-input-on mpls-tunnel0",
            "l2-input-on mpls-tunnel0 pop-pw-cw",
            "drop",
        ] {
            assert_eq!(Words::parse(text).map(|words| words.text).as_deref(), Some(text));
        }
        for bad in [
            "",
            "10.0.0.2 pg0 out-labels",
            "10.0.0.2 pg0 next-hop-table 7",
            "drop it",
            "rx-ip4",
            "rx-ip6 pg0 out-labels",
            "via-label",
            "via-label 15",
            "via-label 33 pg0",
            "via-label 33 next-hop-table 7",
            "ip6-lookup-in-table x",
            "17",
        ] {
            assert_eq!(Words::parse(bad), None, "{bad}");
        }
        let eos = Key { label: Label(16), eos: true };
        assert_eq!((key("16/eos"), key("16"), key("x/eos")), (Some(eos), None, None));
        assert_eq!(key_text(eos, '/'), "16/eos");
    }
}
