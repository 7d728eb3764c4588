//! Comparison of two documents.

use super::catalog::Document;
use super::item::Item;
use super::node::{Node, Value};
use std::collections::{HashMap, HashSet};
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
    let mut all = Vec::new();
    Walk { is_second: false, path: String::new(), out: &mut all }.at(old, Some(new));
    Walk { is_second: true, path: String::new(), out: &mut all }.at(new, Some(old));
    all
}

/// Returns the differences between a running configuration and a document. Defaults that the
/// document leaves out, and settings that it expresses differently, are no differences. Settings
/// that stay as they are if a document does not mention them are no differences either, nor what it
/// leaves open, such as the index of an interface that was not there when it was saved.
pub fn differences(other: &Document, running: &Document) -> Vec<Difference> {
    let mut unlike = Unlike::new(other.items(), running.items());
    let all = diff(other.root(), running.root());
    let mut all: Vec<Difference> = all.into_iter().filter(|d| unlike.is_reported(d)).collect();
    all.extend(unlike.unreported());
    all
}

/// An item that differs.
struct Pair<'a> {
    old: Option<&'a Item>,
    new: Option<&'a Item>,
    /// Paths of lines that are about it.
    places: [Option<&'a str>; 2],
}

/// Items that differ.
struct Unlike<'a> {
    pairs: Vec<Pair<'a>>,
    /// Paths of them, each with whether there is a line at it.
    is_reported: HashMap<&'a str, bool>,
}

impl<'a> Unlike<'a> {
    fn new(other: &'a [Item], running: &'a [Item]) -> Unlike<'a> {
        let mut old = Lookup::of(other);
        let mut unlike = Unlike { pairs: Vec::new(), is_reported: HashMap::new() };
        let mut is_there = vec![false; other.len()];
        for item in running {
            let before = old.find(&item.key);
            if let Some((at, _)) = before {
                is_there[at] = true;
            }
            match before {
                Some((_, before)) if before.set == item.set => {}
                Some((_, before)) => unlike.add(Some(before), Some(item)),
                None if item.implicit => {}
                None => {
                    let mut of = item.needs.iter().chain(&item.with);
                    let is_open = item.sticky || item.with.is_some();
                    if !(is_open && of.all(|key| old.has(key))) {
                        unlike.add(None, Some(item));
                    }
                }
            }
        }
        let mut new = Lookup::of(running);
        let rest = other.iter().zip(is_there).filter(|(item, is)| !is && !item.implicit);
        for (item, _) in rest {
            if !new.has(&item.key) {
                unlike.add(Some(item), None);
            }
        }
        unlike
    }

    fn add(&mut self, old: Option<&'a Item>, new: Option<&'a Item>) {
        let (a, b) = (old.map(place), new.map(place));
        // A path above reports settings that a document does not name.
        let leads_to = |x: Option<&str>, y: Option<&str>| {
            x.zip(y).is_some_and(|(x, y)| x != y && is_above(x, y))
        };
        let places = [a.filter(|_| !leads_to(a, b)), b.filter(|_| a != b && !leads_to(b, a))]
            .map(|place| place.filter(|place| !place.is_empty()));
        self.is_reported.extend(places.into_iter().flatten().map(|place| (place, false)));
        self.pairs.push(Pair { old, new, places });
    }

    /// Returns true if a difference is about items that differ, and marks them as reported; or if
    /// it is a description.
    fn is_reported(&mut self, d: &Difference) -> bool {
        let path = d.path.split_once(": - ").map_or(&*d.path, |(list, _)| list);
        let mut is_reported = path.ends_with(".description");
        let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
        for above in ends.map(|end| &path[..end]) {
            if let Some(seen) = self.is_reported.get_mut(above) {
                (*seen, is_reported) = (true, true);
            }
        }
        is_reported
    }

    /// Returns items that no line is about, such as an index that follows from an order: their
    /// commands say how they differ.
    fn unreported(&self) -> impl Iterator<Item = Difference> {
        let seen = |place: &&str| self.is_reported.get(place) == Some(&true);
        let left = self.pairs.iter().filter(move |p| !p.places.iter().flatten().any(seen));
        left.filter_map(|Pair { old, new, .. }| {
            let item = new.or(*old)?;
            let path = if item.path.is_empty() { &item.key } else { &item.path };
            let command = |item: &Item| format!(": `{}'", item.set);
            Some(Difference { path: path.clone(), old: old.map(command), new: new.map(command) })
        })
    }
}

/// Items by key. Two documents often have theirs in the same order: few keys are hashed then.
struct Lookup<'a> {
    items: &'a [Item],
    /// The one that is looked for next, if it is so.
    next: usize,
    by_key: Option<HashMap<&'a str, usize>>,
}

impl<'a> Lookup<'a> {
    fn of(items: &'a [Item]) -> Lookup<'a> {
        Lookup { items, next: 0, by_key: None }
    }

    fn place(&mut self, key: &str) -> Option<usize> {
        let items = self.items;
        let all = || items.iter().enumerate().map(|(at, item)| (&*item.key, at)).collect();
        self.by_key.get_or_insert_with(all).get(key).copied()
    }

    /// Returns an item, and where it is.
    fn find(&mut self, key: &str) -> Option<(usize, &'a Item)> {
        let is_next = self.items.get(self.next).is_some_and(|next| next.key == key);
        let at = if is_next { self.next } else { self.place(key)? };
        self.next = at + 1;
        Some((at, &self.items[at]))
    }

    /// Returns whether there is an item.
    fn has(&mut self, key: &str) -> bool {
        self.place(key).is_some()
    }
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

/// A walk over one of two documents, next to the other one: very many equal settings cost no text.
struct Walk<'o> {
    /// The walk over the second document, which finds what the first one lacks.
    is_second: bool,
    path: String,
    out: &'o mut Vec<Difference>,
}

impl Walk<'_> {
    fn at(&mut self, node: &Node, other: Option<&Node>) {
        match &node.value {
            Value::Map(map) if !map.is_empty() => {
                let others = match other.map(|other| &other.value) {
                    Some(Value::Map(map)) => Some(map),
                    _ => None,
                };
                let end = self.path.len();
                for (n, (key, below)) in map.iter().enumerate() {
                    if end > 0 {
                        self.path.push('.');
                    }
                    self.path.push_str(key);
                    // Documents often have the same order.
                    let same = others.and_then(|map| map.get_index(n)).filter(|(k, _)| *k == key);
                    let other = same.map(|(_, node)| node).or_else(|| others?.get(key));
                    self.at(below, other);
                    self.path.truncate(end);
                }
            }
            Value::List(list) => self.list(list, other),
            _ if self.path.is_empty() => {}
            value => self.leaf(value, other.map(|other| &other.value).filter(|v| is_leaf(v))),
        }
    }

    /// Parts of a list are their own names: lists are sets here.
    fn list(&mut self, list: &[Node], other: Option<&Node>) {
        let others = other.map_or(&[][..], Node::list);
        if list == others {
            return;
        }
        let text = |node: &Node| node.value.to_string();
        let mut known: HashSet<String> = others.iter().map(text).collect();
        for part in list.iter().map(text) {
            if !known.contains(&part) {
                let path = format!("{}: - {part}", self.path);
                let there = Some(String::new());
                let (old, new) = if self.is_second { (None, there) } else { (there, None) };
                self.out.push(Difference { path, old, new });
                known.insert(part);
            }
        }
    }

    fn leaf(&mut self, value: &Value, other: Option<&Value>) {
        let (old, new) = match (self.is_second, other) {
            (true, None) => (None, Some(shown(value))),
            (false, Some(other)) if value == other => return,
            (false, Some(other)) => (Some(shown(value)), Some(shown(other))),
            (false, None) => (Some(shown(value)), None),
            (true, Some(_)) => return,
        };
        if old != new {
            self.out.push(Difference { path: self.path.clone(), old, new });
        }
    }
}

/// Returns whether a value stands for itself: others are looked into.
fn is_leaf(value: &Value) -> bool {
    match value {
        Value::List(_) => false,
        Value::Map(map) => map.is_empty(),
        _ => true,
    }
}

/// A value behind its path.
fn shown(value: &Value) -> String {
    match value {
        Value::Map(_) | Value::Null => String::new(),
        value => format!(": {value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::yaml::parse;
    use super::super::{Catalog, Doc, Document, Draft, Dump, Section, interface_key, rank};
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

    fn lines_of(other: &str, running: &str) -> Vec<String> {
        let catalog = Catalog::new(vec![&Ports as &dyn Section<()>]).unwrap();
        let read = |text: &str| catalog.read("f.yaml", text).unwrap();
        let all = differences(&read(other), &read(running));
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
        assert!(lines_of(file, &running("")).is_empty());
        assert!(lines_of(&running(""), file).is_empty());
        // Only non-defaults are reported.
        let lines = lines_of(file, &running(", addresses: [10.0.0.2/8]"));
        assert_eq!(lines, ["+ interfaces.host-b.addresses: - 10.0.0.2/8"]);
        let lines = lines_of(&running(", addresses: [10.0.0.2/8]"), file);
        assert_eq!(lines, ["- interfaces.host-b.addresses: - 10.0.0.2/8"]);
        let more = running("").replace("1500, state", "9000, state");
        assert_eq!(lines_of(file, &more), ["+ interfaces.host-a.mtu: 9000"]);
        assert_eq!(lines_of(&more, file), ["- interfaces.host-a.mtu: 9000"]);
        let other = more.replace("9000", "8000");
        assert_eq!(
            lines_of(&other, &more),
            ["- interfaces.host-a.mtu: 8000\n+ interfaces.host-a.mtu: 9000"]
        );
        // Everything about a new port is reported.
        let lines = lines_of("interfaces:\n  host-a: {}\n", &running(""));
        assert_eq!(
            lines,
            ["+ interfaces.host-a.addresses: - 10.0.0.1/8", "+ interfaces.host-b.mtu: 1500"]
        );
        assert_eq!(lines_of("", "interfaces:\n  host-b: {}\n"), ["+ interfaces.host-b"]);
    }

    #[test]
    fn sticky_items_are_reported_where_they_are_named() {
        let port = "interfaces:\n  host-a: {}\n";
        let with = "interfaces:\n  host-a: {mac: '02:00:00:00:00:01'}\n";
        assert!(lines_of(port, with).is_empty());
        let other = with.replace(":01", ":02");
        let lines = lines_of(with, &other).join("\n");
        let both = [
            "- interfaces.host-a.mac: 02:00:00:00:00:01",
            "+ interfaces.host-a.mac: 02:00:00:00:00:02",
        ];
        assert_eq!(lines, both.join("\n"));
        assert_eq!(lines_of(with, port), ["- interfaces.host-a.mac: 02:00:00:00:00:01"]);
        assert_eq!(lines_of("", with).len(), 1);
    }

    /// Indices are such items: by default they follow from an order, which no line is about.
    #[test]
    fn an_item_without_a_line_is_shown_by_its_commands_alone() {
        let document = |indices: &[(&str, u32, &str)], mtu: u32| {
            let text = format!("interfaces: {{a: {{mtu: {mtu}}}, b: {{}}}}");
            let of = |(name, n, path): &(&str, u32, &str)| {
                let set = format!("set index {name} {n}");
                let key = format!("index {name}");
                let item =
                    Item::new(rank::BEFORE_CREATE, key, *path, set).with(interface_key(name));
                if path.is_empty() { item.implicit() } else { item }
            };
            let ports = ["a", "b"].map(|name| {
                Item::new(rank::CREATE, interface_key(name), "", format!("make {name}"))
            });
            let link = Item::new(rank::MTU, "mtu a", "interfaces.a.mtu", format!("mtu {mtu}"));
            let items = ports.into_iter().chain([link]).chain(indices.iter().map(of)).collect();
            Document::of(parse(&text).unwrap(), items)
        };
        let lines = |other: &Document, running: &Document| -> Vec<String> {
            differences(other, running).iter().map(ToString::to_string).collect()
        };
        let path = "thalweg.interfaces.b.index";
        let saved = document(&[("a", 1, ""), ("b", 2, "")], 1500);
        let now = document(&[("a", 1, ""), ("b", 3, path)], 9000);
        let lines_of_both = [
            "- interfaces.a.mtu: 1500\n+ interfaces.a.mtu: 9000",
            "- thalweg.interfaces.b.index: `set index b 2'\n\
             + thalweg.interfaces.b.index: `set index b 3'",
        ];
        assert_eq!(lines(&saved, &now), lines_of_both);
        // A document that says nothing of indices leaves them open.
        let open = document(&[], 9000);
        assert!(lines(&open, &now).is_empty());
    }

    #[test]
    fn descriptions_are_reported() {
        let port =
            |note: &str| format!("interfaces:\n  host-a: {{description: {note}, mtu: 1500}}\n");
        let lines = lines_of(&port("north"), &port("south"));
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
