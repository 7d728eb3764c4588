//! Sections: how a feature takes part in the configuration.

use super::item::{Draft, Item};
use super::node::{FEW, MANY, Node};
use super::part::Part;
use super::rules::{Grammar, Rule};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

/// A feature's part of the configuration. The feature that owns a setter owns a section that dumps
/// it.
///
/// `C` is the state of the main thread.
pub trait Section<C>: Sync {
    /// Returns the paths of the schema (`interfaces.*.mtu`) that it supports.
    fn supports(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Returns rules for keys that the schema does not have, below `thalweg`.
    fn rules(&'static self) -> Vec<Rule> {
        Vec::new()
    }

    /// Writes its part of the running configuration.
    fn dump(&self, cx: &C, out: &mut Dump<'_>);

    /// Returns a writer of its part in slices, in place of `dump`, if that may take long. Other
    /// sections write after it.
    fn slices(&'static self, cx: &C) -> Option<Slices<C>> {
        let _ = cx;
        None
    }

    /// Returns a walk over what may be too large to dump at once.
    fn walk(&self, cx: &C) -> Option<Walk<C>> {
        let _ = cx;
        None
    }

    /// Returns what of its part was in force and went away outside the router.
    fn missing(&self, cx: &C) -> Vec<Part> {
        let _ = cx;
        Vec::new()
    }

    /// Reads its part of a document, which has been checked against the rules, into items. Reads
    /// nothing but the document.
    fn items(&self, doc: &Doc<'_>, out: &mut Draft);
}

/// Writes something that was collected; does not need the router any more, and may run on any
/// thread.
pub type Later = Box<dyn FnOnce(&mut Dump<'_>) + Send>;

/// Writes some hundred parts at most per call; returns true when all is written.
pub type Slices<C> = Box<dyn FnMut(&C, &mut Dump<'_>) -> bool + Send>;

/// Collects large tables: some hundred parts at most per call, and returns at the end how to write
/// them.
pub type Walk<C> = Box<dyn FnMut(&C) -> Option<Later> + Send>;

/// The router's own interface.
const LOCAL: &str = "local0";

/// Top-level key of Thalweg's own settings.
pub const OURS: &str = "thalweg";

/// Key of an interface's sub-interfaces.
const SUBS: &str = "sub-interfaces";

/// Key of which frames of its parent a sub-interface receives. An interface that has it below
/// [`OURS`] is a sub-interface, too.
const ENCAPSULATION: &str = "encapsulation";

/// The running configuration as it is written.
pub struct Dump<'a> {
    pub(crate) root: Node,
    pub(crate) grammar: &'a Grammar,
    pub(crate) implicit: Vec<Unsaid>,
    pub(crate) subs: Subs,
    pub(crate) hidden: HashSet<String>,
}

/// Setting that is a default, and its form in a document.
#[derive(Clone, Debug)]
pub(crate) struct Unsaid {
    /// Its item.
    pub(crate) item: Item,
    /// The path of keys to it.
    pub(crate) path: Vec<String>,
    /// Its value.
    pub(crate) value: super::Value,
}

/// Sub-interfaces by name: parent and number.
pub(crate) type Subs = HashMap<String, (String, String)>;

impl Dump<'_> {
    /// Leaves out all that is written of an interface from here on, as the setting of another one
    /// makes it.
    pub fn hide(&mut self, interface: &str) {
        self.hidden.insert(interface.to_owned());
    }

    /// Returns whether a path leads to an interface that is left out.
    fn hides(&self, path: &[&str]) -> bool {
        let name = match path {
            [OURS, "interfaces", name, ..] | ["interfaces" | "taps", name, ..] => name,
            _ => return false,
        };
        !self.hidden.is_empty() && self.hidden.contains(*name)
    }

    /// Adds an interface; interfaces are in the order in which they are added.
    pub fn interface(&mut self, name: &str) {
        if let Some(place) = place(&self.subs, name) {
            self.root.enter(&place, |_| ());
        }
    }

    /// Adds a sub-interface, before any of its attributes.
    pub fn sub_interface(&mut self, name: &str, parent: &str, id: u32) {
        if self.subs.len() == FEW {
            self.subs.reserve(MANY - FEW);
        }
        self.subs.insert(name.to_owned(), (parent.to_owned(), id.to_string()));
        self.interface(name);
    }

    /// Writes an attribute of an interface: under the schema's key if it is valid there, else under
    /// Thalweg's own.
    pub fn set(&mut self, interface: &str, key: &str, value: impl Into<super::Value>) {
        if self.hidden.contains(interface) {
            return;
        }
        let value = value.into();
        if let Some(mut place) = place(&self.subs, interface) {
            place.push(key);
            if self.grammar.takes(&place, &value) {
                return self.root.put(&place, value);
            }
        }
        self.root.put(&[OURS, "interfaces", interface, key], value);
    }

    /// Appends to a list of an interface: under the schema's key as long as there is room, else
    /// under Thalweg's own. `room` is the maximum length of the schema's list.
    pub fn add(&mut self, interface: &str, key: &str, room: usize, value: impl Into<super::Value>) {
        if self.hidden.contains(interface) {
            return;
        }
        if let Some(mut place) = place(&self.subs, interface) {
            place.push(key);
            if self.root.at(&place).map_or(0, |n| n.list().len()) < room {
                return self.root.push(&place, value);
            }
        }
        self.root.push(&[OURS, "interfaces", interface, key], value);
    }

    /// Writes a value at a path of keys.
    pub fn put(&mut self, path: &[&str], value: impl Into<super::Value>) {
        if !self.hides(path) {
            self.root.put(path, value);
        }
    }

    /// Adds an item for what the running configuration has by default, and a document therefore
    /// need not say: a rollback restores it. A document that has more than what is in force says
    /// it, as `value` at a path of keys, if something else would be so by default there.
    pub fn implicit(&mut self, item: Item, path: &[&str], value: impl Into<super::Value>) {
        let path = path.iter().map(|key| (*key).to_owned()).collect();
        if self.implicit.len() == FEW {
            self.implicit.reserve_exact(MANY - FEW);
        }
        self.implicit.push(Unsaid { item: item.implicit(), path, value: value.into() });
    }

    /// Returns true if a value is valid at a path of keys.
    pub fn takes(&self, path: &[&str], value: impl Into<super::Value>) -> bool {
        self.grammar.takes(path, &value.into())
    }

    /// Appends to a list at a path of keys.
    pub fn push(&mut self, path: &[&str], value: impl Into<super::Value>) {
        if !self.hides(path) {
            self.root.push(path, value);
        }
    }
}

/// Returns the place of an interface in the schema, which knows neither the router's own interface
/// nor sub-interfaces of loopbacks.
fn place<'a>(subs: &'a Subs, name: &'a str) -> Option<Vec<&'a str>> {
    match subs.get(name) {
        _ if name == LOCAL => None,
        None => Some(vec![table_of(name), name]),
        Some((parent, _)) if is_loopback(parent) => None,
        Some((parent, id)) => Some(vec!["interfaces", parent, SUBS, id]),
    }
}

/// Returns the key under which interfaces of this name are described.
fn table_of(name: &str) -> &'static str {
    if is_loopback(name) { "loopbacks" } else { "interfaces" }
}

/// Returns true for the name of a loopback.
pub fn is_loopback(name: &str) -> bool {
    let digits = name.strip_prefix("loop").unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// A document to be read.
pub struct Doc<'a> {
    root: &'a Node,
    saved: bool,
    interfaces: OnceCell<Index<'a>>,
}

/// The interfaces of a document.
struct Index<'a> {
    all: Vec<Interface<'a>>,
    by_name: HashMap<Cow<'a, str>, usize>,
}

/// A value of a document, and the path to it.
#[derive(Clone, Debug)]
pub struct Found<'a> {
    /// The value.
    pub node: &'a Node,
    /// The path.
    pub path: String,
}

/// An interface in a document.
pub struct Interface<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its position in the order in which interfaces are created.
    pub number: u32,
    /// Name of its parent and number among its sub-interfaces.
    sub: Option<(&'a str, &'a str)>,
    described: Option<&'a Node>,
    ours: Option<&'a Node>,
}

impl<'a> Doc<'a> {
    /// Wraps a document.
    pub fn new(root: &'a Node) -> Doc<'a> {
        Doc { root, saved: false, interfaces: OnceCell::new() }
    }

    /// The same document as one that the router has written: what it leaves out is as it was by
    /// default then.
    pub(crate) fn saved(self, saved: bool) -> Doc<'a> {
        Doc { saved, ..self }
    }

    /// Returns whether the router has written it.
    pub fn is_saved(&self) -> bool {
        self.saved
    }

    /// Returns the value at a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<Found<'a>> {
        let node = self.root.at(path)?;
        Some(Found { node, path: path.join(".") })
    }

    /// Returns the named values below a path of keys.
    pub fn entries(&self, path: &[&str]) -> Vec<(&'a str, Found<'a>)> {
        let below = self.root.at(path).into_iter().flat_map(Node::entries);
        let above = path.join(".");
        let found = |(key, node): (&'a str, &'a Node)| {
            (key, Found { node, path: [above.as_str(), ".", key].concat() })
        };
        below.map(found).collect()
    }

    /// Returns all interfaces, in the order in which they are created: others, then loopbacks, then
    /// sub-interfaces.
    pub fn interfaces(&self) -> &[Interface<'a>] {
        &self.index().all
    }

    /// Returns an interface by name.
    pub fn interface(&self, name: &str) -> Option<&Interface<'a>> {
        let index = self.index();
        index.all.get(*index.by_name.get(name)?)
    }

    fn index(&self) -> &Index<'a> {
        self.interfaces.get_or_init(|| Index::of(self.root))
    }
}

impl<'a> Index<'a> {
    fn of(root: &'a Node) -> Index<'a> {
        let ours = root.at(&[OURS, "interfaces"]);
        let (mut all, mut subs): (Vec<Interface<'a>>, Vec<Interface<'a>>) = Default::default();
        for table in ["interfaces", "loopbacks"] {
            for (name, node) in root.get(table).into_iter().flat_map(Node::entries) {
                all.push(Interface::new(Cow::from(name), None, Some(node), ours));
                for (id, node) in node.get(SUBS).into_iter().flat_map(Node::entries) {
                    let full = Cow::from(format!("{name}.{id}"));
                    subs.push(Interface::new(full, Some((name, id)), Some(node), ours));
                }
            }
        }
        let known: HashMap<Cow<'a, str>, usize> =
            all.iter().chain(&subs).map(|i| (i.name.clone(), 0)).collect();
        // TAPs and tunnels are interfaces, whether one of that name is described or not.
        let made = ["taps", "mpls-tunnels"].map(|table| root.at(&[OURS, table]));
        let made = root.get("taps").into_iter().chain(made.into_iter().flatten());
        let mut known = known;
        for (name, _) in made.flat_map(Node::entries) {
            if known.insert(Cow::from(name), 0).is_none() {
                all.push(Interface::new(Cow::from(name), None, None, ours));
            }
        }
        for (name, node) in ours.into_iter().flat_map(Node::entries) {
            if known.contains_key(name) {
                continue;
            }
            let sub = node.get(ENCAPSULATION).and_then(|_| name.rsplit_once('.'));
            let list = if sub.is_some() { &mut subs } else { &mut all };
            list.push(Interface::new(Cow::from(name), sub, None, ours));
        }
        all.append(&mut subs);
        for (number, interface) in all.iter_mut().enumerate() {
            interface.number = number as u32;
        }
        let by_name = all.iter().enumerate().map(|(at, i)| (i.name.clone(), at)).collect();
        Index { all, by_name }
    }
}

impl<'a> Interface<'a> {
    fn new(
        name: Cow<'a, str>,
        sub: Option<(&'a str, &'a str)>,
        described: Option<&'a Node>,
        ours: Option<&'a Node>,
    ) -> Interface<'a> {
        let ours = ours.and_then(|o| o.get(&name));
        Interface { name, number: 0, sub, described, ours }
    }

    /// Returns the name of its parent, and its number among the parent's sub-interfaces.
    pub fn sub(&self) -> Option<(&'a str, &'a str)> {
        self.sub
    }

    /// Returns an attribute, from Thalweg's own keys or else the schema's.
    pub fn get(&self, key: &str) -> Option<Found<'a>> {
        if let Some(node) = self.ours.and_then(|o| o.get(key)) {
            return Some(Found { node, path: self.ours_path(key) });
        }
        let node = self.described?.get(key)?;
        Some(Found { node, path: self.path(key) })
    }

    /// Returns all parts of a list, the schema's first.
    pub fn list(&self, key: &str) -> Vec<Found<'a>> {
        let mut all = Vec::new();
        let lists = [
            (self.described.and_then(|d| d.get(key)), self.path(key)),
            (self.ours.and_then(|o| o.get(key)), self.ours_path(key)),
        ];
        for (list, path) in lists {
            for (i, node) in list.into_iter().flat_map(Node::list).enumerate() {
                all.push(Found { node, path: format!("{path}[{i}]") });
            }
        }
        all
    }

    /// Returns the number of VLAN tags that a sub-interface is known by: 0 to 2.
    pub fn known_tags(&self) -> usize {
        if self.sub.is_none() {
            return 0;
        }
        let Some(of) = self.get(ENCAPSULATION) else { return 1 };
        match of.node.text() {
            // The words are those of the command line.
            Some(words) => words.split_whitespace().filter(|w| w.parse::<u16>().is_ok()).count(),
            None => 1 + usize::from(of.node.get("inner-dot1q").is_some()),
        }
    }

    /// Returns whether it may have addresses: a sub-interface whose frames may have further tags
    /// may not, as nobody knows which ones to send.
    pub fn takes_addresses(&self) -> bool {
        let of = self.sub.and_then(|_| self.get(ENCAPSULATION));
        of.is_none_or(|of| match of.node.text() {
            Some(words) => words.ends_with("exact-match") || words.trim() == "untagged",
            None => {
                let exact = of.node.get("exact-match").and_then(Node::bool);
                of.node.entries().next().is_none() || exact == Some(true)
            }
        })
    }

    /// Returns true if it is a loopback.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.name)
    }

    /// Returns the path of an attribute under the schema's key.
    pub fn path(&self, key: &str) -> String {
        let here = match self.sub {
            Some((parent, id)) => format!("{}.{parent}.{SUBS}.{id}", table_of(parent)),
            None => format!("{}.{}", table_of(&self.name), self.name),
        };
        if key.is_empty() { here } else { format!("{here}.{key}") }
    }

    fn ours_path(&self, key: &str) -> String {
        format!("{OURS}.interfaces.{}.{key}", self.name)
    }

    /// Returns the node that describes it; a TAP may have none.
    pub fn node(&self) -> Option<&'a Node> {
        self.described.or(self.ours)
    }
}
