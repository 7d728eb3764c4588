//! Problems of a document.

use super::node::{Node, Place};
use super::summary::WHOLE;
use std::fmt;

/// A problem in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Place, if it was read from a text.
    pub place: Option<Place>,
    /// Path of keys to it, `interfaces.host-eth0.mtu`; empty if there is none.
    pub path: String,
    /// The fault, and what would be valid.
    pub message: String,
    /// True if the setting is valid but not supported yet.
    pub unsupported: bool,
    /// Missing thing that it names, if nothing else is wrong: `interface pg7`. The setting waits
    /// for it then.
    pub absent: Option<String>,
}

impl Problem {
    /// Creates a problem at or below a path.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Problem {
        let (path, message) = (path.into(), message.into());
        Problem { place: None, path, message, unsupported: false, absent: None }
    }

    /// Creates a problem in a part of a document.
    pub fn at(node: &Node, path: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { place: node.place, ..Problem::new(path, message) }
    }

    /// The same, as something that it names is not there.
    #[must_use]
    pub fn absent(self, what: impl Into<String>) -> Problem {
        Problem { absent: Some(what.into()), ..self }
    }

    /// Creates a problem of a valid setting that is not supported yet.
    pub fn unsupported(node: &Node, path: impl Into<String>, what: &str) -> Problem {
        let path = path.into();
        let what = if what.is_empty() { String::new() } else { format!(" ({what})") };
        Problem {
            place: node.place,
            message: format!("not supported yet: {path}{what}"),
            path,
            unsupported: true,
            absent: None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.is_empty() || self.unsupported {
            true => f.write_str(&self.message),
            false => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

/// All problems of a document, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Problems {
    /// The document's name.
    pub name: String,
    /// Problems; at least one.
    pub list: Vec<Problem>,
}

impl Problems {
    /// Sorts problems; `Ok` if there are none.
    ///
    /// # Errors
    /// If there are any.
    pub fn check(name: &str, mut list: Vec<Problem>) -> Result<(), Problems> {
        list.sort_by_key(|p| p.place);
        list.dedup();
        match list.is_empty() {
            true => Ok(()),
            false => Err(Problems { name: name.to_owned(), list }),
        }
    }

    /// The same without anything that quotes the document: only places, and `instead` at each.
    #[must_use]
    pub fn without_text(mut self, instead: &str) -> Problems {
        for problem in &mut self.list {
            *problem = Problem { place: problem.place, ..Problem::new("", instead) };
        }
        self.list.dedup();
        self
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.list.iter().take(WHOLE).enumerate() {
            let end = if i + 1 < self.list.len() { "\n" } else { "" };
            match problem.place {
                Some(place) => write!(f, "{}:{place}: {problem}{end}", self.name)?,
                None => write!(f, "{}: {problem}{end}", self.name)?,
            }
        }
        match self.list.len().saturating_sub(WHOLE) {
            0 => Ok(()),
            more => write!(f, "{}: ... and {more} more", self.name),
        }
    }
}
