//! Two documents side by side.

use super::node::{Node, Value};
use std::fmt;

/// One setting that two documents do not share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path of keys to it.
    pub path: String,
    /// What the first document says.
    pub old: Option<String>,
    /// What the second says.
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

/// What differs, in the order of the first document, then of the second. The order of lists does
/// not matter.
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
    use super::*;

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
