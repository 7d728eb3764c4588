//! Parts of a document with their paths, and what tunables put into them.

use thalweg_config::closest;
use thalweg_config::declare::{Node, Problem, Value};

/// A part, or what is wrong.
pub(crate) type Out<T> = Result<T, Problem>;

/// A part of a document, and its path of keys.
#[derive(Clone, Debug)]
pub(crate) struct At<'a> {
    pub(crate) node: &'a Node,
    pub(crate) path: String,
}

impl<'a> At<'a> {
    /// Returns an error about what is wrong here.
    pub(crate) fn wrong<T>(&self, message: impl Into<String>) -> Out<T> {
        Err(Problem::at(self.node, self.path.clone(), message))
    }

    /// Returns an error about what is expected here.
    pub(crate) fn expected<T>(&self, what: &str) -> Out<T> {
        let value = self.node.value.to_string();
        let short: String = value.chars().take(40).collect();
        self.wrong(format!("`{short}' is not {what}"))
    }

    /// The value of a key, unless it is missing or empty.
    pub(crate) fn get(&self, key: &str) -> Option<At<'a>> {
        let node = self.node.get(key)?;
        let path = match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        };
        (node.value != Value::Null).then_some(At { node, path })
    }

    /// A value that must be there.
    pub(crate) fn need(&self, key: &str, what: &str) -> Out<At<'a>> {
        self.get(key).map_or_else(|| self.wrong(format!("`{key}' is missing: {what}")), Ok)
    }

    /// The parts of a list.
    pub(crate) fn list(&self) -> Out<Vec<At<'a>>> {
        match &self.node.value {
            Value::List(list) => {
                let part = |(n, node)| At { node, path: format!("{}[{n}]", self.path) };
                Ok(list.iter().enumerate().map(part).collect())
            }
            _ => self.expected("a list"),
        }
    }

    /// The entries of a map.
    pub(crate) fn entries(&self) -> Out<Vec<(&'a str, At<'a>)>> {
        match &self.node.value {
            Value::Map(_) => {
                let part = |(key, node): (&'a str, &'a Node)| {
                    let path = format!("{}.{key}", self.path);
                    (key, At { node, path: path.trim_start_matches('.').to_owned() })
                };
                Ok(self.node.entries().map(part).collect())
            }
            _ => self.expected("a map of keys and values"),
        }
    }

    /// True if it is a map.
    pub(crate) fn is_map(&self) -> bool {
        matches!(self.node.value, Value::Map(_))
    }

    /// True if it is a list.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self.node.value, Value::List(_))
    }

    /// Checks that a map has no other keys than these.
    pub(crate) fn keys(&self, allowed: &[&str]) -> Out<()> {
        for (key, at) in self.entries()? {
            if allowed.contains(&key) {
                continue;
            }
            let meant = match closest(key, allowed) {
                Some(meant) => format!("did you mean `{meant}'?"),
                None => format!("keys here: {}", allowed.join(", ")),
            };
            return at.wrong(format!("unknown key `{key}'; {meant}"));
        }
        Ok(())
    }

    /// A scalar as text.
    pub(crate) fn word(&self) -> Out<String> {
        match &self.node.value {
            Value::Text(text) => Ok(text.clone()),
            _ => self.expected("a single value"),
        }
    }

    /// A truth value, as YAML 1.1 has them.
    pub(crate) fn bool(&self) -> Out<bool> {
        match self.word()?.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "y" => Ok(true),
            "false" | "no" | "off" | "n" => Ok(false),
            _ => self.expected("true or false"),
        }
    }

    /// A whole number, also with a suffix k, M or G.
    pub(crate) fn whole(&self, least: u64, most: u64) -> Out<u64> {
        let word = self.word()?;
        match crate::words::whole(&word).filter(|n| (least..=most).contains(n)) {
            Some(n) => Ok(n),
            None => self.expected(&format!("a whole number from {least} to {most}")),
        }
    }

    /// One of several words.
    pub(crate) fn one_of<T: Copy>(&self, words: &[(&str, T)]) -> Out<T> {
        let word = self.word()?;
        match words.iter().find(|(known, _)| *known == word) {
            Some((_, value)) => Ok(*value),
            None => {
                let all: Vec<&str> = words.iter().map(|(known, _)| *known).collect();
                self.expected(&format!("one of {}", all.join(", ")))
            }
        }
    }
}

/// Longest text with the values of tunables in it, in bytes.
const MAX_REPLACED: usize = 4096;

/// Puts the values of tunables where a document has `${name}`. Only single values have them.
pub(crate) fn substitute(
    node: &mut Node,
    path: &str,
    tunables: &[(String, Node)],
    problems: &mut Vec<Problem>,
) {
    let place = node.place;
    match &mut node.value {
        Value::Text(text) if text.contains("${") => match replaced(text, tunables) {
            Ok(value) => node.value = value,
            Err(message) => {
                problems.push(Problem { place, ..Problem::new(path, message) });
            }
        },
        Value::List(list) => {
            for (n, part) in list.iter_mut().enumerate() {
                substitute(part, &format!("{path}[{n}]"), tunables, problems);
            }
        }
        Value::Map(map) => {
            for (key, part) in map.iter_mut() {
                let below = format!("{path}.{key}");
                substitute(part, below.trim_start_matches('.'), tunables, problems);
            }
        }
        _ => {}
    }
}

/// A text with the values of tunables; the value itself if the text is nothing but one.
fn replaced(text: &str, tunables: &[(String, Node)]) -> Result<Value, String> {
    let find = |name: &str| {
        tunables.iter().find(|(known, _)| known == name).map(|(_, node)| &node.value).ok_or_else(
            || {
                let known: Vec<&str> = tunables.iter().map(|(known, _)| known.as_str()).collect();
                format!("no tunable `{name}'; tunables: {}", known.join(", "))
            },
        )
    };
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        let Some((name, behind)) = behind.split_once('}') else {
            return Err("`${' without a `}'".into());
        };
        let value = find(name)?;
        if before.is_empty() && behind.is_empty() && out.is_empty() {
            return Ok(value.clone());
        }
        out.push_str(before);
        out.push_str(&value.to_string());
        if out.len() > MAX_REPLACED {
            return Err(format!("longer than {MAX_REPLACED} bytes with the values of tunables"));
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(Value::Text(out))
}
