//! Configuration of MPLS: tables, labels, and interfaces that take labelled packets.

use crate::tunnels::{self, Tunnels};
use crate::{Bound, Key, LabelView, Mpls, Via};
use std::collections::BTreeSet;
use std::net::IpAddr;
use thalweg_config::declare::{
    Doc, Draft, Dump, Item, Kind, Name, Node, Problem, Rule, Section, Value, interface_key, rank,
};
use thalweg_feat_ip::{Path, PathKind};
use thalweg_fib::path_words::path_of;
use thalweg_fib::rib::{Labels, Source};
use thalweg_fib::{LookIn, PathText, Place, TableId, Version, label_of, label_text};
use thalweg_graph::Control;
use thalweg_wire::mpls::Label;

/// The section.
pub(crate) struct Settings;

pub(crate) static SETTINGS: Settings = Settings;

const RULES: &[Rule] = &[
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
type Words<'a> = PathText<&'a str>;

/// Key of the item that adds a table of IP.
fn ip_table_key(version: Version, table: u32) -> String {
    format!("{}-table {table}", version.word())
}

/// Key of the item that adds a table which a path names.
fn named_table(path: &Words<'_>) -> Option<String> {
    match path.place {
        Place::Lookup(LookIn::Mpls, table) => Some(table_key(table.get())),
        Place::Lookup(LookIn::Ip(of), table) if table != TableId(0) => {
            Some(ip_table_key(of, table.get()))
        }
        Place::NextHop { address, table, .. } => {
            let table = table.filter(|id| *id != TableId(0))?;
            Some(ip_table_key(Version::of_ip(address), table.get()))
        }
        _ => None,
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

fn path<'a>(text: Option<&'a str>, expected: &str) -> Result<Words<'a>, String> {
    let path = path_of(text.ok_or(expected)?)?.of_label();
    match path.place.kind() {
        Some(PathKind::Unreachable | PathKind::Prohibit) => {
            Err(format!("a path of labels (`{}' is for IP routes only)", path.place))
        }
        _ => Ok(path),
    }
}

/// Reads one path or several; the error says what is expected.
fn paths<'a>(value: &'a Value, expected: &str) -> Result<Vec<Words<'a>>, String> {
    match value {
        Value::Text(text) => Ok(vec![path(Some(text), expected)?]),
        Value::List(list) if !list.is_empty() => {
            list.iter().map(|n| path(n.text(), expected)).collect()
        }
        _ => Err(expected.into()),
    }
}

/// Words of a command for paths. Their order means nothing.
fn command(paths: &[Words<'_>]) -> String {
    let mut all: Vec<String> = paths.iter().map(|path| format!(" via {path}")).collect();
    all.sort_unstable();
    all.concat()
}

const LABEL_PATHS: &str = "a path or a list of paths: `<next hop> [<interface> | next-hop-table \
                           <id>] [weight <n>] [preference <n>] [out-labels <label> ... \
                           [uniform]]', `via-label <label> ...', `ip4-lookup-in-table <id>', \
                           `ip6-lookup-in-table <id>', `mpls-lookup-in-table <id>', \
                           `rx-ip4 <interface>', `rx-ip6 <interface>', \
                           `l2-input-on <interface>', or drop";

fn label(value: &Value) -> Result<(), String> {
    paths(value, LABEL_PATHS).map(|_| ())
}

const TUNNEL_PATHS: &str = "a path or a list of paths: `<next hop> [<interface>] [weight <n>] \
                            [preference <n>] out-labels <label> ...'";

fn tunnel_paths(value: &Value) -> Result<(), String> {
    let right = |path: &Words<'_>| {
        path.place.kind() == Some(PathKind::Normal) && path.labels != Labels::NONE
    };
    let all = paths(value, TUNNEL_PATHS)?;
    if all.iter().all(right) { Ok(()) } else { Err(TUNNEL_PATHS.into()) }
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

/// Key of the item that adds table 0.
pub(crate) const DEFAULT_TABLE: &str = "mpls table 0";

fn table_key(id: u32) -> String {
    format!("mpls table {id}")
}

impl Section<Control> for Settings {
    fn supports(&self) -> Vec<&'static str> {
        vec!["interfaces.*.mpls", "interfaces.*.sub-interfaces.*.mpls", "loopbacks.*.mpls"]
    }

    fn rules(&'static self) -> Vec<Rule> {
        RULES.to_vec()
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        let mpls = c.state::<Mpls>();
        let mpls = mpls.borrow();
        for (id, name) in mpls.tables() {
            let table = id.to_string();
            let at = ["thalweg", "mpls-tables", &table];
            // One that was made for the labels of others goes without saying. A router that loads a
            // document adds the one that interfaces need.
            let is_needed = id == TableId(0) && mpls.enabled().next().is_some();
            if mpls.is_written(id) || is_needed {
                out.put(&at, Value::Map(Default::default()));
            }
            if !name.is_empty() {
                out.put(&[at[0], at[1], at[2], "name"], name);
            }
            let own = |view: &LabelView| {
                !view.vias.is_empty() && view.bound.is_none() && view.source == Source::Static
            };
            for view in mpls.labels(id, Label(0)).filter(own) {
                let key = key_text(view.key, '/');
                let place = [at[0], at[1], at[2], "labels", &key];
                match &view.vias[..] {
                    [one] => out.put(&place, one.named(c).to_string()),
                    all => all.iter().for_each(|via| out.push(&place, via.named(c).to_string())),
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
            let text = |path: &Path| Via::Path(*path).named(c).to_string();
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
            if let Some(found) = i.get("mpls").filter(|f| f.node.bool() == Some(true)) {
                add(0, found.path, out);
            }
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
        let Ok(all) = paths(&found.node.value, LABEL_PATHS) else { continue };
        let vias = command(&all);
        let in_table = if id == 0 { String::new() } else { format!(" table {id}") };
        let label = key_text(key, ' ');
        let set = format!("mpls local-label replace {label}{in_table}{vias}");
        let item = Item::new(rank::ROUTE, format!("label {id} {label}"), found.path, set);
        let item = item.unset(format!("mpls local-label del {label}{in_table}"));
        let mut item = item.order(1 << 20).needs(table_key(id));
        for words in &all {
            if let Some(name) = words.place.interface() {
                item = item.needs(interface_key(name));
            }
            if let Some(table) = named_table(words) {
                item = item.needs(table);
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
        let all = found.node.get("paths").map(|n| paths(&n.value, TUNNEL_PATHS));
        let Some(Ok(all)) = all else {
            let text = "a tunnel needs `paths', such as `10.0.0.2 out-labels 16'";
            out.problem(Problem::at(found.node, found.path, text));
            continue;
        };
        let vias = command(&all);
        let set = format!("mpls tunnel add {name}{kind}{vias}");
        let item = Item::new(rank::CREATE, interface_key(name), found.path, set);
        let mut item = item.unset(format!("mpls tunnel del {name}")).order(1 << 20).recreate();
        for words in &all {
            if let Some(by) = words.place.interface() {
                item = item.needs(interface_key(by));
            }
        }
        out.add(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_config::declare::Catalog;
    use thalweg_device::testing::Lab;

    /// A router that has loaded what another one has saved saves the same.
    #[test]
    fn a_table_of_others_is_written_when_interfaces_need_it() {
        let mut lab = Lab::of(&crate::FEATURE).start();
        let catalog: Catalog<Control> = Catalog::new(vec![&SETTINGS]).unwrap();
        let is_written = |lab: &Lab| {
            let document = catalog.dump(&lab.c);
            document.root().at(&["thalweg", "mpls-tables", "0"]).is_some()
        };
        crate::need_table(&mut lab.c, TableId(0)).unwrap();
        assert!(!is_written(&lab));
        lab.ok("set interface mpls test0 enable");
        assert!(is_written(&lab));
        lab.ok("set interface mpls test0 disable");
        assert!(!is_written(&lab));
        lab.ok("mpls table add 0");
        assert!(is_written(&lab));
        lab.close();
    }

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
            let value = Value::Text(text.into());
            let written = paths(&value, LABEL_PATHS).map(|all| command(&all));
            assert_eq!(written, Ok(format!(" via {text}")));
        }
        let value = Value::Text("lookup in table 7".into());
        let written = paths(&value, LABEL_PATHS).map(|all| command(&all));
        assert_eq!(written.as_deref(), Ok(" via ip4-lookup-in-table 7"));
        for (bad, why) in [
            ("10.0.0.2 pg0 out-labels", "as label at the end"),
            ("unreachable", "`unreachable' is for IP routes only"),
            ("via-label 15", "in the place of `15'"),
        ] {
            let said = label(&Value::Text(bad.into())).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
        for bad in ["10.0.0.2 pg0", "drop", "ip4-lookup-in-table 7 out-labels pop"] {
            assert!(tunnel_paths(&Value::Text(bad.into())).is_err(), "{bad}");
        }
        let eos = Key { label: Label(16), eos: true };
        assert_eq!((key("16/eos"), key("16"), key("x/eos")), (Some(eos), None, None));
        assert_eq!(key_text(eos, '/'), "16/eos");
    }
}
