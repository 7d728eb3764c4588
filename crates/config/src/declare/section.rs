//! How a feature takes part in the configuration.

use super::item::Draft;
use super::node::Node;
use super::rules::{Grammar, Rule};

/// A feature's part of the configuration. Who owns a setter owns a section that dumps it.
///
/// `C` is the state of the main thread.
pub trait Section<C>: Sync {
    /// Paths of the schema (`interfaces.*.mtu`) that it understands.
    fn supports(&self) -> &'static [&'static str] {
        &[]
    }

    /// Keys that the schema has not, below `thalweg`.
    fn rules(&self) -> &'static [Rule] {
        &[]
    }

    /// Writes its part of the running configuration.
    fn dump(&self, cx: &C, out: &mut Dump<'_>);

    /// A walk over what it may have too much of to dump at once.
    fn walk(&self, cx: &C) -> Option<Walk<C>> {
        let _ = cx;
        None
    }

    /// Reads its part of a document, which has been checked against the rules, and says which
    /// items that makes. Does not look at anything but the document.
    fn items(&self, doc: &Doc<'_>, out: &mut Draft);
}

/// How to write something that was collected; needs the router no more, and may run on any thread.
pub type Later = Box<dyn FnOnce(&mut Dump<'_>) + Send>;

/// Collects what is many: at each call some hundred parts at most, and at the end how to write them.
pub type Walk<C> = Box<dyn FnMut(&C) -> Option<Later> + Send>;

/// The router's own interface.
const LOCAL: &str = "local0";

/// Where keys of ours are.
pub const OURS: &str = "thalweg";

/// The running configuration as it is written.
pub struct Dump<'a> {
    pub(crate) root: Node,
    pub(crate) grammar: &'a Grammar,
}

impl Dump<'_> {
    /// Says that there is an interface; the order in which this is said is that of the document.
    pub fn interface(&mut self, name: &str) {
        self.root.enter(&[table_of(name), name], |_| ());
    }

    /// Writes a quality of an interface: in the schema's place if it may stand there, else in
    /// ours.
    pub fn set(&mut self, interface: &str, key: &str, value: impl Into<super::Value>) {
        let value = value.into();
        let place = [table_of(interface), interface, key];
        // The schema knows nothing of the router's own interface.
        match interface != LOCAL && self.grammar.takes(&place, &value) {
            true => self.root.put(&place, value),
            false => self.root.put(&[OURS, "interfaces", interface, key], value),
        }
    }

    /// Adds to a list of an interface: in the schema's place for as long as there is room, else in
    /// ours. `room` is how many parts the schema's list may have.
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

    /// Whether a value may stand at a path of keys.
    pub fn takes(&self, path: &[&str], value: impl Into<super::Value>) -> bool {
        self.grammar.takes(path, &value.into())
    }

    /// Adds to a list at a path of keys.
    pub fn push(&mut self, path: &[&str], value: impl Into<super::Value>) {
        self.root.push(path, value);
    }
}

/// Where interfaces of such a name are described.
fn table_of(name: &str) -> &'static str {
    if is_loopback(name) { "loopbacks" } else { "interfaces" }
}

/// Whether it is a loopback, by its name.
pub fn is_loopback(name: &str) -> bool {
    let digits = name.strip_prefix("loop").unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// A document that is read.
#[derive(Clone, Copy)]
pub struct Doc<'a> {
    root: &'a Node,
}

/// A value of a document, and the path to it.
#[derive(Clone, Debug)]
pub struct Found<'a> {
    /// The value.
    pub node: &'a Node,
    /// The path.
    pub path: String,
}

/// An interface of a document.
#[derive(Clone, Copy)]
pub struct Interface<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its place in the document, counted over all interfaces.
    pub number: u32,
    described: Option<&'a Node>,
    ours: Option<&'a Node>,
}

impl<'a> Doc<'a> {
    /// A document to read.
    pub fn new(root: &'a Node) -> Doc<'a> {
        Doc { root }
    }

    /// What is at a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<Found<'a>> {
        let node = self.root.at(path)?;
        Some(Found { node, path: path.join(".") })
    }

    /// What is below a path of keys, with their names.
    pub fn entries(&self, path: &[&str]) -> Vec<(&'a str, Found<'a>)> {
        let below = self.root.at(path).into_iter().flat_map(Node::entries);
        let found = |(key, node): (&'a str, &'a Node)| {
            (key, Found { node, path: format!("{}.{key}", path.join(".")) })
        };
        below.map(found).collect()
    }

    /// All interfaces, in the order in which they are created: others, then loopbacks.
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

    /// An interface by name.
    pub fn interface(&self, name: &str) -> Option<Interface<'a>> {
        self.interfaces().into_iter().find(|i| i.name == name)
    }
}

impl<'a> Interface<'a> {
    /// A quality of it, from our place or else the schema's.
    pub fn get(&self, key: &str) -> Option<Found<'a>> {
        if let Some(node) = self.ours.and_then(|o| o.get(key)) {
            return Some(Found { node, path: self.ours_path(key) });
        }
        let node = self.described?.get(key)?;
        Some(Found { node, path: self.path(key) })
    }

    /// All parts of a list, the schema's first.
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

    /// Whether it is a loopback.
    pub fn is_loopback(&self) -> bool {
        is_loopback(self.name)
    }

    /// The path to a quality in the schema's place.
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

    /// The part of the document that names it.
    pub fn node(&self) -> Option<&'a Node> {
        self.described.or(self.ours)
    }
}
