//! Sections: how a feature takes part in the configuration.

use super::item::{Draft, Item};
use super::node::Node;
use super::rules::{Grammar, Rule};

/// A feature's part of the configuration. The feature that owns a setter owns a section that dumps
/// it.
///
/// `C` is the state of the main thread.
pub trait Section<C>: Sync {
    /// Returns the paths of the schema (`interfaces.*.mtu`) that it supports.
    fn supports(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns rules for keys that the schema does not have, below `thalweg`.
    fn rules(&self) -> &'static [Rule] {
        &[]
    }

    /// Writes its part of the running configuration.
    fn dump(&self, cx: &C, out: &mut Dump<'_>);

    /// Returns a walk over what may be too large to dump at once.
    fn walk(&self, cx: &C) -> Option<Walk<C>> {
        let _ = cx;
        None
    }

    /// Reads its part of a document, which has been checked against the rules, into items. Reads
    /// nothing but the document.
    fn items(&self, doc: &Doc<'_>, out: &mut Draft);
}

/// Writes something that was collected; does not need the router any more, and may run on any
/// thread.
pub type Later = Box<dyn FnOnce(&mut Dump<'_>) + Send>;

/// Collects large tables: some hundred parts at most per call, and returns at the end how to write
/// them.
pub type Walk<C> = Box<dyn FnMut(&C) -> Option<Later> + Send>;

/// The router's own interface.
const LOCAL: &str = "local0";

/// Top-level key of Thalweg's own settings.
pub const OURS: &str = "thalweg";

/// The running configuration as it is written.
pub struct Dump<'a> {
    pub(crate) root: Node,
    pub(crate) grammar: &'a Grammar,
    pub(crate) implicit: Vec<Item>,
}

impl Dump<'_> {
    /// Adds an interface; interfaces are in the order in which they are added.
    pub fn interface(&mut self, name: &str) {
        self.root.enter(&[table_of(name), name], |_| ());
    }

    /// Writes an attribute of an interface: under the schema's key if it is valid there, else under
    /// Thalweg's own.
    pub fn set(&mut self, interface: &str, key: &str, value: impl Into<super::Value>) {
        let value = value.into();
        let place = [table_of(interface), interface, key];
        // The schema does not have the router's own interface.
        match interface != LOCAL && self.grammar.takes(&place, &value) {
            true => self.root.put(&place, value),
            false => self.root.put(&[OURS, "interfaces", interface, key], value),
        }
    }

    /// Appends to a list of an interface: under the schema's key as long as there is room, else
    /// under Thalweg's own. `room` is the maximum length of the schema's list.
    pub fn add(&mut self, interface: &str, key: &str, room: usize, value: impl Into<super::Value>) {
        let place = [table_of(interface), interface, key];
        let there = self.root.at(&place).map_or(0, |n| n.list().len());
        match interface != LOCAL && there < room {
            true => self.root.push(&place, value),
            false => self.root.push(&[OURS, "interfaces", interface, key], value),
        }
    }

    /// Writes a value at a path of keys.
    pub fn put(&mut self, path: &[&str], value: impl Into<super::Value>) {
        self.root.put(path, value);
    }

    /// Adds an item for what the running configuration has by default, and a document therefore
    /// need not say: a rollback restores it.
    pub fn implicit(&mut self, item: Item) {
        self.implicit.push(item.implicit());
    }

    /// Returns true if a value is valid at a path of keys.
    pub fn takes(&self, path: &[&str], value: impl Into<super::Value>) -> bool {
        self.grammar.takes(path, &value.into())
    }

    /// Appends to a list at a path of keys.
    pub fn push(&mut self, path: &[&str], value: impl Into<super::Value>) {
        self.root.push(path, value);
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
#[derive(Clone, Copy)]
pub struct Doc<'a> {
    root: &'a Node,
    saved: bool,
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
#[derive(Clone, Copy)]
pub struct Interface<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its position in the document, counted over all interfaces.
    pub number: u32,
    described: Option<&'a Node>,
    ours: Option<&'a Node>,
}

impl<'a> Doc<'a> {
    /// Wraps a document.
    pub fn new(root: &'a Node) -> Doc<'a> {
        Doc { root, saved: false }
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
        let found = |(key, node): (&'a str, &'a Node)| {
            (key, Found { node, path: format!("{}.{key}", path.join(".")) })
        };
        below.map(found).collect()
    }

    /// Returns all interfaces, in the order in which they are created: others, then loopbacks.
    pub fn interfaces(&self) -> Vec<Interface<'a>> {
        let ours = self.root.at(&[OURS, "interfaces"]);
        let mut all: Vec<Interface<'a>> = Vec::new();
        for table in ["interfaces", "loopbacks"] {
            for (name, node) in self.root.get(table).into_iter().flat_map(Node::entries) {
                let ours = ours.and_then(|o| o.get(name));
                all.push(Interface { name, number: 0, described: Some(node), ours });
            }
        }
        for (name, node) in ours.into_iter().flat_map(Node::entries) {
            let there = [table_of(name), name];
            if self.root.at(&there).is_none() {
                all.push(Interface { name, number: 0, described: None, ours: Some(node) });
            }
        }
        for (number, interface) in all.iter_mut().enumerate() {
            interface.number = number as u32;
        }
        all
    }

    /// Returns an interface by name.
    pub fn interface(&self, name: &str) -> Option<Interface<'a>> {
        self.interfaces().into_iter().find(|i| i.name == name)
    }
}

impl<'a> Interface<'a> {
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

    /// Returns true if it is a loopback.
    pub fn is_loopback(&self) -> bool {
        is_loopback(self.name)
    }

    /// Returns the path of an attribute under the schema's key.
    pub fn path(&self, key: &str) -> String {
        let table = table_of(self.name);
        if key.is_empty() {
            format!("{table}.{}", self.name)
        } else {
            format!("{table}.{}.{key}", self.name)
        }
    }

    fn ours_path(&self, key: &str) -> String {
        format!("{OURS}.interfaces.{}.{key}", self.name)
    }

    /// Returns the node that names it.
    pub fn node(&self) -> Option<&'a Node> {
        self.described.or(self.ours)
    }
}
