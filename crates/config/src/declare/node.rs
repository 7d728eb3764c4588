//! A document as a tree of YAML values, each with its place.

use super::part::PathStep;
use indexmap::IndexMap;
use std::fmt;

/// Entries of a table that is filled in slices, up to which it grows as others do, and then gets
/// room for [`MANY`]: growing moves all entries at once, which takes milliseconds if there are very
/// many, while memory that is not used yet costs nothing.
pub(super) const FEW: usize = 4096;

/// Entries that few tables have more of: interfaces, of which there may be as many.
pub(super) const MANY: usize = 1 << 16;

/// A place in a text, line and column counted from 1; columns are characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A part of a document. Equality ignores places.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Place in the text; `None` if it was not read from a text.
    pub place: Option<Place>,
}

/// A value of a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// `~`, `null` or empty.
    #[default]
    Null,
    /// `true`, `no` …
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// Another number.
    Float(f64),
    /// A text.
    Text(String),
    /// `- a`
    List(Vec<Node>),
    /// `key: value`, in the order of the text. The order of keys does not matter for equality.
    Map(IndexMap<String, Node>),
}

impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        self.value == other.value
    }
}

impl Value {
    /// Returns its type for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Int(_) | Value::Float(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Map(_) => "keys and values",
        }
    }

    /// Returns true for null, and for an empty list or map.
    pub fn is_empty(&self) -> bool {
        match self {
            Value::Null => true,
            Value::List(list) => list.is_empty(),
            Value::Map(map) => map.is_empty(),
            _ => false,
        }
    }
}

/// Formats a scalar as it would be written, without quotes; lists and maps in brackets.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("~"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Int(n) => write!(f, "{n}"),
            Value::Float(n) => write!(f, "{n}"),
            Value::Text(text) => f.write_str(text),
            Value::List(list) => {
                let parts: Vec<String> = list.iter().map(|n| n.value.to_string()).collect();
                write!(f, "[{}]", parts.join(", "))
            }
            Value::Map(map) => {
                let part = |(key, n): (&String, &Node)| format!("{key}: {}", n.value);
                let parts: Vec<String> = map.iter().map(part).collect();
                write!(f, "{{{}}}", parts.join(", "))
            }
        }
    }
}

impl<V: Into<Value>> From<V> for Node {
    fn from(value: V) -> Node {
        Node { value: value.into(), place: None }
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Value {
        Value::Bool(b)
    }
}
impl From<u32> for Value {
    fn from(n: u32) -> Value {
        Value::Int(n.into())
    }
}
impl From<u64> for Value {
    fn from(n: u64) -> Value {
        Value::Int(n.into())
    }
}
impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}
impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}
impl From<Vec<Node>> for Value {
    fn from(list: Vec<Node>) -> Value {
        Value::List(list)
    }
}

impl Node {
    /// Returns the string, if it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the boolean, if it is one.
    pub fn bool(&self) -> Option<bool> {
        match self.value {
            Value::Bool(b) => Some(b),
            _ => None,
        }
    }

    /// Returns the number, if it is one in range.
    pub fn u32(&self) -> Option<u32> {
        match self.value {
            Value::Int(n) => n.try_into().ok(),
            _ => None,
        }
    }

    /// Returns the parts of a list; empty if it is none.
    pub fn list(&self) -> &[Node] {
        match &self.value {
            Value::List(list) => list,
            _ => &[],
        }
    }

    /// Returns the entries of a map, in order; empty if it is none.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Node)> {
        let map = match &self.value {
            Value::Map(map) => Some(map),
            _ => None,
        };
        map.into_iter().flatten().map(|(key, node)| (key.as_str(), node))
    }

    /// Returns the value of a key of a map.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Map(map) => map.get(key),
            _ => None,
        }
    }

    /// Returns the value at a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// Finds a path as items and problems write it: `interfaces.host-eth0.100.addresses[1]`. Keys
    /// may have dots in them.
    pub fn steps_to(&self, path: &str) -> Option<Vec<PathStep>> {
        let mut steps = Vec::new();
        self.find(path, &mut steps).then_some(steps)
    }

    fn find(&self, path: &str, steps: &mut Vec<PathStep>) -> bool {
        let mut go = |step: PathStep, below: &Node, rest: &str| {
            steps.push(step);
            let found = below.find(rest.strip_prefix('.').unwrap_or(rest), steps);
            if !found {
                steps.pop();
            }
            found
        };
        match &self.value {
            _ if path.is_empty() => true,
            Value::List(list) => {
                let split = path.strip_prefix('[').and_then(|p| p.split_once(']'));
                let part = split.and_then(|(n, rest)| Some((n.parse::<usize>().ok()?, rest)));
                part.is_some_and(|(n, rest)| {
                    list.get(n).is_some_and(|below| go(PathStep::At(n), below, rest))
                })
            }
            Value::Map(map) => {
                let ends = path.match_indices(['.', '[']).map(|(at, _)| at).chain([path.len()]);
                let ends: Vec<usize> = ends.collect();
                // The longest key first.
                ends.into_iter().rev().any(|end| {
                    let (key, rest) = path.split_at(end);
                    map.get(key).is_some_and(|below| go(PathStep::Key(key.into()), below, rest))
                })
            }
            _ => false,
        }
    }

    /// Returns what is at the end of some steps.
    pub fn below(&self, steps: &[PathStep]) -> Option<&Node> {
        steps.iter().try_fold(self, |node, step| match step {
            PathStep::Key(key) => node.get(key),
            PathStep::At(n) => node.list().get(*n),
        })
    }

    /// Creates the value at a path of keys, with maps as needed, and passes it to `f`.
    pub fn enter(&mut self, path: &[&str], f: impl FnOnce(&mut Node)) {
        let Some((key, rest)) = path.split_first() else { return f(self) };
        if !matches!(self.value, Value::Map(_)) {
            self.value = Value::Map(IndexMap::new());
        }
        if let Value::Map(map) = &mut self.value {
            if map.len() == FEW && map.capacity() < MANY {
                map.reserve_exact(MANY - FEW);
            }
            map.entry((*key).to_owned()).or_default().enter(rest, f);
        }
    }

    /// Sets the value at a path of keys.
    pub fn put(&mut self, path: &[&str], value: impl Into<Value>) {
        self.enter(path, |node| node.value = value.into());
    }

    /// Appends to a list at a path of keys.
    pub fn push(&mut self, path: &[&str], value: impl Into<Value>) {
        self.enter(path, |node| {
            if !matches!(node.value, Value::List(_)) {
                node.value = Value::List(Vec::new());
            }
            if let Value::List(list) = &mut node.value {
                list.push(value.into().into());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_grow_as_they_are_filled() {
        let mut root = Node::default();
        root.put(&["a", "b"], 7u32);
        root.push(&["a", "c"], "x");
        root.push(&["a", "c"], "y");
        assert_eq!(root.at(&["a", "b"]).and_then(Node::u32), Some(7));
        assert_eq!(root.at(&["a", "c"]).map(|n| n.list().len()), Some(2));
        assert_eq!(root.value.to_string(), "{a: {b: 7, c: [x, y]}}");
        assert!(root.at(&["a", "b", "c"]).is_none());
    }

    #[test]
    fn a_large_table_has_room_for_very_many() {
        let mut root = Node::default();
        let room = |root: &Node| match &root.value {
            Value::Map(map) => map.capacity(),
            _ => 0,
        };
        for n in 0..FEW {
            root.put(&[&n.to_string()], true);
        }
        assert!(room(&root) < MANY);
        root.put(&["one more"], true);
        assert!(room(&root) >= MANY);
    }

    #[test]
    fn places_do_not_count() {
        let here = Node { value: Value::Int(1), place: Some(Place { line: 3, column: 4 }) };
        assert_eq!(here, Node::from(1u32));
        assert_ne!(here, Node::from(2u32));
    }
}
