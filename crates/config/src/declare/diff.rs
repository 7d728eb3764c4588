//! Comparison of two documents.

use super::catalog::Document;
use super::item::Item;
use super::node::{Node, Value};
use std::collections::HashMap;
use std::fmt;

/// A setting in which two documents differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path of keys to it.
    pub path: String,
    /// Value in the first document.
    pub old: Option<String>,
    /// Value in the second document.
    pub new: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(old) = &self.old {
            write!(f, "- {}{old}", self.path)?;
        }
        if self.old.is_some() && self.new.is_some() {
            writeln!(f)?;
        }
        if let Some(new) = &self.new {
            write!(f, "+ {}{new}", self.path)?;
        }
        Ok(())
    }
}

/// Returns the differences, in the order of the first document, then of the second. The order of
/// lists does not matter.
pub fn diff(old: &Node, new: &Node) -> Vec<Difference> {
    let (before, after) = (flat(old), flat(new));
    let mut all = Vec::new();
    for (path, value) in &before {
        match after.get(path) {
            Some(other) if other == value => {}
            other => all.push(Difference {
                path: path.clone(),
                old: Some(value.clone()),
                new: other.cloned(),
            }),
        }
    }
    for (path, value) in &after {
        if !before.contains_key(path) {
            all.push(Difference { path: path.clone(), old: None, new: Some(value.clone()) });
        }
    }
    all
}

/// Returns the differences between a running configuration and a document. Defaults that the
/// document leaves out, and settings that it expresses differently, are no differences. Neither
/// are settings that stay as they are if a document does not mention them: a document that the
/// router has written does. With `stays`, that goes for properties such as indices as well, which
/// it mentions only where they are not the default.
pub fn differences(other: &Document, running: &Document, stays: bool) -> Vec<Difference> {
    let all = diff(other.root(), running.root());
    let mut unlike = unlike(other.items(), running.items(), stays);
    let reported: Vec<bool> = all.iter().map(|d| is_reported(d, &mut unlike)).collect();
    // An item that none of the lines is about: rather report too much than too little.
    if unlike.values().any(|seen| !seen) {
        return all;
    }
    all.into_iter().zip(reported).filter_map(|(d, reported)| reported.then_some(d)).collect()
}

/// Returns the paths of items that differ, each with false: not reported yet.
fn unlike(other: &[Item], running: &[Item], stays: bool) -> HashMap<String, bool> {
    let (old, new) = (by_key(other), by_key(running));
    let mut paths = HashMap::new();
    let mut add = |item: &Item| _ = paths.insert(place(item).to_owned(), false);
    for item in running.iter().filter(|i| !i.implicit) {
        match old.get(&*item.key) {
            Some(before) if before.set == item.set => {}
            Some(before) => {
                // What a document does not name is reported at a path above.
                let (a, b) = (place(before), place(item));
                if !is_above(a, b) {
                    add(before);
                }
                if !is_above(b, a) || a == b {
                    add(item);
                }
            }
            None => {
                let with = item.needs.iter().chain(&item.with).all(|key| old.contains_key(&**key));
                if !(with && (item.sticky || stays && item.with.is_some())) {
                    add(item);
                }
            }
        }
    }
    let stated = other.iter().filter(|i| !i.implicit);
    stated.filter(|item| !new.contains_key(&*item.key)).for_each(add);
    paths
}

fn by_key(items: &[Item]) -> HashMap<&str, &Item> {
    items.iter().map(|item| (&*item.key, item)).collect()
}

/// Returns the path to an item, or to the list that it is in.
fn place(item: &Item) -> &str {
    let list = item.path.strip_suffix(']').and_then(|path| path.rsplit_once('['));
    list.map_or(&item.path, |(list, _)| list)
}

/// Returns true if `path` equals `of` or is a parent of it.
fn is_above(path: &str, of: &str) -> bool {
    of.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns true if a difference is about items that differ, and marks them as reported; or if it is
/// a description.
fn is_reported(d: &Difference, unlike: &mut HashMap<String, bool>) -> bool {
    let path = d.path.split_once(": - ").map_or(&*d.path, |(list, _)| list);
    let mut reported = path.ends_with(".description");
    let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
    for above in ends.map(|end| &path[..end]) {
        if let Some(seen) = unlike.get_mut(above) {
            (*seen, reported) = (true, true);
        }
    }
    reported
}

type Flat = indexmap::IndexMap<String, String>;

fn flat(root: &Node) -> Flat {
    let mut out = Flat::new();
    leaves(root, "", &mut out);
    out
}

fn leaves(node: &Node, path: &str, out: &mut Flat) {
    match &node.value {
        Value::Map(map) if !map.is_empty() => {
            for (key, below) in map {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                leaves(below, &path, out);
            }
        }
        Value::List(list) => {
            for part in list {
                // The part is its own name: lists are sets here.
                out.insert(format!("{path}: - {}", part.value), String::new());
            }
        }
        _ if path.is_empty() => {}
        Value::Map(_) | Value::Null => drop(out.insert(path.to_owned(), String::new())),
        value => drop(out.insert(path.to_owned(), format!(": {value}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::yaml::parse;
    use super::super::{Catalog, Doc, Draft, Dump, Section, interface_key, rank};
    use super::*;

    /// Ports with an MTU, 1500 by default; they may have addresses, and a sticky MAC address.
    struct Ports;

    impl Section<()> for Ports {
        fn supports(&self) -> Vec<&'static str> {
            vec![
                "interfaces.*.mtu",
                "interfaces.*.mac",
                "interfaces.*.state",
                "interfaces.*.addresses.[]",
                "loopbacks.*.mtu",
            ]
        }
        fn dump(&self, (): &(), _: &mut Dump<'_>) {}
        fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
            for i in doc.interfaces() {
                out.claim(&i.name);
                let port = interface_key(&i.name);
                out.add(Item::new(rank::CREATE, port.clone(), i.path(""), port.clone()));
                let mtu = i.get("mtu").map(|f| (f.node.u32(), f.path));
                let (mtu, path) = mtu.unwrap_or_else(|| (Some(1500), i.path("")));
                let key = format!("mtu {}", i.name);
                out.add(Item::new(rank::MTU, key, path, format!("mtu {mtu:?}")).needs(&port));
                if let Some(mac) = i.get("mac") {
                    let set = format!("mac {}", mac.node.value);
                    let item = Item::new(rank::MAC, format!("mac {}", i.name), mac.path, set);
                    out.add(item.needs(&port).sticky());
                }
                for a in i.list("addresses") {
                    let key = format!("address {} {}", i.name, a.node.value);
                    out.add(Item::new(rank::ADDRESS, key.clone(), a.path, key));
                }
            }
        }
    }

    fn lines_of(other: &str, running: &str, stays: bool) -> Vec<String> {
        let catalog = Catalog::new(vec![&Ports as &dyn Section<()>]).unwrap();
        let read = |text: &str| catalog.read("f.yaml", text).unwrap();
        let all = differences(&read(other), &read(running), stays);
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn defaults_are_no_difference() {
        let file = "interfaces:\n  host-a: {addresses: [10.0.0.1/8]}\n  host-b: {}\nacls: {}\n";
        let running = |b: &str| {
            format!(
                "interfaces:\n  host-a: {{addresses: [10.0.0.1/8], mtu: 1500, state: up}}\n  \
                 host-b: {{mtu: 1500{b}}}\n"
            )
        };
        assert!(lines_of(file, &running(""), true).is_empty());
        assert!(lines_of(&running(""), file, true).is_empty());
        // Only non-defaults are reported.
        let lines = lines_of(file, &running(", addresses: [10.0.0.2/8]"), true);
        assert_eq!(lines, ["+ interfaces.host-b.addresses: - 10.0.0.2/8"]);
        let lines = lines_of(&running(", addresses: [10.0.0.2/8]"), file, true);
        assert_eq!(lines, ["- interfaces.host-b.addresses: - 10.0.0.2/8"]);
        let more = running("").replace("1500, state", "9000, state");
        assert_eq!(lines_of(file, &more, true), ["+ interfaces.host-a.mtu: 9000"]);
        assert_eq!(lines_of(&more, file, true), ["- interfaces.host-a.mtu: 9000"]);
        let other = more.replace("9000", "8000");
        assert_eq!(
            lines_of(&other, &more, true),
            ["- interfaces.host-a.mtu: 8000\n+ interfaces.host-a.mtu: 9000"]
        );
        // Of a new port, everything is reported.
        let lines = lines_of("interfaces:\n  host-a: {}\n", &running(""), true);
        assert_eq!(
            lines,
            ["+ interfaces.host-a.addresses: - 10.0.0.1/8", "+ interfaces.host-b.mtu: 1500"]
        );
        assert_eq!(lines_of("", "interfaces:\n  host-b: {}\n", true), ["+ interfaces.host-b"]);
    }

    #[test]
    fn sticky_items_are_reported_where_they_are_named() {
        let port = "interfaces:\n  host-a: {}\n";
        let with = "interfaces:\n  host-a: {mac: '02:00:00:00:00:01'}\n";
        // Neither for a file nor for a revision, which may have been written by hand.
        assert!(lines_of(port, with, true).is_empty());
        assert!(lines_of(port, with, false).is_empty());
        let other = with.replace(":01", ":02");
        let lines = lines_of(with, &other, false).join("\n");
        let both = [
            "- interfaces.host-a.mac: 02:00:00:00:00:01",
            "+ interfaces.host-a.mac: 02:00:00:00:00:02",
        ];
        assert_eq!(lines, both.join("\n"));
        assert_eq!(lines_of(with, port, true), ["- interfaces.host-a.mac: 02:00:00:00:00:01"]);
        assert_eq!(lines_of("", with, true).len(), 1);
    }

    #[test]
    fn descriptions_are_reported() {
        let port =
            |note: &str| format!("interfaces:\n  host-a: {{description: {note}, mtu: 1500}}\n");
        let lines = lines_of(&port("north"), &port("south"), true);
        assert_eq!(
            lines,
            ["- interfaces.host-a.description: north\n+ interfaces.host-a.description: south"]
        );
    }

    #[test]
    fn settings_are_compared_by_path() {
        let old = parse("a: {x: 1, y: [p, q], z: ~}\nb: up\n").unwrap();
        let new = parse("a: {x: 2, y: [q, r]}\nc: down\n").unwrap();
        let lines: Vec<String> = diff(&old, &new).iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            ["- a.x: 1\n+ a.x: 2", "- a.y: - p", "- a.z", "- b: up", "+ a.y: - r", "+ c: down"]
        );
        assert!(diff(&old, &old).is_empty());
    }
}
