//! Rules: the keys that a document may have, and their values.

use super::node::{Node, Value};
use super::report::Problem;
use crate::suggest::closest;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use thalweg_wire::MacAddr;

/// Kind of value of a key.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Keys that other rules list.
    Keys,
    /// Names of this kind, each with values that match the rules for `*`.
    Named(Name),
    /// A list of values that match the rules for `[]`, with minimum and maximum length.
    List(usize, usize),
    /// A boolean.
    Bool,
    /// A whole number, minimum and maximum.
    Int(i128, i128),
    /// One of these words.
    Word(&'static [&'static str]),
    /// A string of at most this number of characters, without quotes.
    Text(usize),
    /// A MAC address.
    Mac,
    /// An IP address.
    Ip,
    /// An IP address with a prefix length.
    Address,
    /// A name.
    Name(Name),
    /// Any value that the function accepts; its error describes valid ones.
    Other(fn(&Value) -> Result<(), String>),
    /// Any value that a setting reads.
    Read(&'static dyn Reads),
}

/// Something that reads values of a document.
pub trait Reads: Sync {
    /// Checks a value.
    ///
    /// # Errors
    /// A description of right values.
    fn check(&self, value: &Value) -> Result<(), String>;
}

impl fmt::Debug for dyn Reads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a setting")
    }
}

/// Syntax of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// Any single word.
    Any,
    /// A fixed prefix followed by a number: `loop0`.
    Numbered(&'static str),
    /// A number, minimum and maximum.
    Number(u64, u64),
    /// A kernel device: a lower-case letter first, and this number of characters at most.
    Device(usize),
    /// A label: a lower-case letter first, and this number of characters at most.
    Label(usize),
}

/// The rule for a path. A step is a key, `*` for any name, or `[]` for parts of a list.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The path, its steps separated by dots.
    pub path: &'static str,
    /// Kind of value.
    pub kind: Kind,
    /// True if the key must be present in its parent.
    pub required: bool,
}

impl Rule {
    /// Creates a rule for an optional key.
    pub const fn new(path: &'static str, kind: Kind) -> Rule {
        Rule { path, kind, required: false }
    }
    /// Creates a rule for a required key.
    pub const fn required(path: &'static str, kind: Kind) -> Rule {
        Rule { path, kind, required: true }
    }
}

impl Name {
    /// Returns whether a document may have this name.
    pub fn takes(self, text: &str) -> bool {
        self.check(text).is_ok()
    }

    fn check(self, text: &str) -> Result<(), String> {
        let word =
            !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control());
        // At the end of a line a question mark asks for help.
        let word = word && text.len() <= 63 && !text.contains(ODD) && text != "?";
        // vppcfg looks at the beginning only (`ice0.1234`).
        let label = word && text.starts_with(|c: char| c.is_ascii_lowercase());
        let good = match self {
            Name::Any => word,
            Name::Numbered(prefix) => text.strip_prefix(prefix).is_some_and(is_number),
            Name::Number(least, most) => {
                is_number(text) && text.parse().is_ok_and(|n: u64| (least..=most).contains(&n))
            }
            Name::Device(most) => label && text.len() <= most && !text.contains('/'),
            Name::Label(most) => label && text.len() <= most,
        };
        if good { Ok(()) } else { Err(self.expected()) }
    }

    fn expected(self) -> String {
        match self {
            Name::Any => "a name without blanks, quotes and braces".into(),
            Name::Numbered(prefix) => format!("{prefix} and a number, such as {prefix}0"),
            Name::Number(least, most) => format!("a number from {least} to {most}"),
            Name::Device(most) => {
                format!("a device's name: a small letter first, at most {most} characters")
            }
            Name::Label(most) => {
                format!("a label: a small letter first, at most {most} characters")
            }
        }
    }
}

/// Returns true for a decimal number without sign or leading zeros.
fn is_number(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 10
        && text.bytes().all(|b| b.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'))
}

/// Characters that mean something in a command line.
const ODD: &[char] = &['{', '}', '|', '"', '\'', '#', '\\'];

/// Longest path of a file in a document.
const MAX_PATH: usize = 1024;

/// Checks the path of a file that a command and a document name.
///
/// # Errors
/// If the path is not absolute (the router runs in another directory than its users), or is not one
/// word of a command line.
pub fn file_path(text: &str) -> Result<(), String> {
    let odd = |c: char| c.is_whitespace() || c.is_control() || ODD.contains(&c);
    if text.starts_with('/') && text.len() <= MAX_PATH && !text.contains(odd) {
        return Ok(());
    }
    Err("an absolute path without blanks, quotes, braces, `|', `#' and backslashes".into())
}

/// Parses a MAC address: six bytes in hex with colons or dashes, or three groups of four digits.
pub fn mac(text: &str) -> Option<MacAddr> {
    text.parse().ok()
}

/// Parses an address with prefix length.
pub fn address(text: &str) -> Option<(IpAddr, u8)> {
    let (ip, len) = text.split_once('/')?;
    let ip: IpAddr = ip.parse().ok()?;
    let most = if ip.is_ipv4() { 32 } else { 128 };
    is_number(len).then(|| len.parse().ok()).flatten().filter(|l| *l <= most).map(|l| (ip, l))
}

impl Kind {
    /// Checks a scalar (or an empty list or map); `Err` describes valid values.
    fn check(self, value: &Value) -> Result<(), String> {
        let good = match (self, value) {
            (Kind::Keys | Kind::Named(_), Value::Map(_) | Value::Null) => true,
            (Kind::List(least, most), Value::List(list)) => {
                if !(least..=most).contains(&list.len()) {
                    return Err(format!("a list of {least} to {most}, not of {}", list.len()));
                }
                true
            }
            (Kind::Bool, Value::Bool(_)) => true,
            (Kind::Int(least, most), Value::Int(n)) => (least..=most).contains(n),
            (Kind::Word(words), Value::Text(text)) => words.contains(&text.as_str()),
            (Kind::Text(most), Value::Text(text)) => {
                text.chars().count() <= most && !text.contains(['\'', '"']) && !text.contains('\n')
            }
            (Kind::Mac, Value::Text(text)) => mac(text).is_some(),
            (Kind::Ip, Value::Text(text)) => text.parse::<IpAddr>().is_ok(),
            (Kind::Address, Value::Text(text)) => address(text).is_some(),
            (Kind::Name(name), Value::Text(text)) => return name.check(text),
            (Kind::Other(takes), value) => return takes(value),
            (Kind::Read(setting), value) => return setting.check(value),
            _ => false,
        };
        if good { Ok(()) } else { Err(self.expected(value)) }
    }

    fn expected(self, found: &Value) -> String {
        let quote = matches!(found, Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Null);
        let quote = if quote { " (in quotes, if a string is meant)" } else { "" };
        // `mtu: "1500"` is a string.
        let bare = match found {
            Value::Text(text) if text.parse::<i128>().is_ok() => " without quotes",
            Value::Text(text) if ["true", "false", "yes", "no"].contains(&text.as_str()) => {
                " without quotes"
            }
            _ => "",
        };
        match self {
            Kind::Keys => "keys and values".into(),
            Kind::Named(Name::Any) => "names, each with a colon and its keys below it".into(),
            Kind::Named(name) => {
                format!(
                    "names, each with a colon and its keys below it, a name being {},",
                    name.expected()
                )
            }
            Kind::List(..) => match found {
                Value::Text(one) => format!("a list, such as [{one}],"),
                _ => "a list".into(),
            },
            Kind::Bool => format!("true or false{bare}"),
            Kind::Int(least, most) => format!("a whole number from {least} to {most}{bare}"),
            Kind::Word(words) => format!("one of {}{quote}", words.join(", ")),
            Kind::Text(most) => {
                format!("a string of at most {most} characters, without quotes in it{quote}")
            }
            Kind::Mac => format!("a MAC address such as 02:00:5e:10:00:01{quote}"),
            Kind::Ip => "an IP address such as 192.0.2.1".into(),
            Kind::Address => "an address with its length, such as 192.0.2.1/24".into(),
            Kind::Name(name) => name.expected() + quote,
            Kind::Other(_) | Kind::Read(_) => "something else".into(),
        }
    }
}

/// Rules as a tree of their steps.
#[derive(Debug, Default)]
pub(crate) struct Grammar {
    steps: BTreeMap<&'static str, Grammar>,
    rule: Option<Rule>,
    /// True if the router supports something here or below.
    supported: bool,
}

/// The context in which a part of a document is checked.
#[derive(Clone, Copy)]
struct Scope {
    /// True if the parent is supported; else that has been reported.
    supported: bool,
    /// True if the name itself is significant.
    named: bool,
}

/// Key of a description, which configures nothing.
const NOTE: &str = "description";

impl Grammar {
    /// Creates a grammar from rules that need [`Grammar::support`], and rules that are supported.
    pub(crate) fn new(known: &[Rule]) -> Grammar {
        let mut root = Grammar { supported: true, ..Grammar::default() };
        known.iter().for_each(|rule| root.add(*rule));
        root
    }

    /// Adds a rule; a later one for the same path replaces it.
    pub(crate) fn add(&mut self, rule: Rule) {
        let mut at = self;
        for step in rule.path.split('.') {
            at = at.steps.entry(step).or_default();
        }
        at.rule = Some(rule);
    }

    /// Marks a path, which must have a rule, as supported.
    pub(crate) fn support(&mut self, path: &'static str) -> Result<(), &'static str> {
        self.mark(path).ok_or(path)
    }

    /// Marks a path as supported, if it has a rule.
    pub(crate) fn support_if_known(&mut self, path: &str) {
        let _ = self.mark(path);
    }

    fn mark(&mut self, path: &str) -> Option<()> {
        let mut at = self;
        for step in path.split('.') {
            at = at.steps.get_mut(step)?;
            at.supported = true;
        }
        at.rule.map(|_| ())
    }

    /// Returns true if a value is valid at a path, and the router supports it.
    pub(crate) fn takes(&self, path: &[&str], value: &Value) -> bool {
        let mut at = self;
        for step in path {
            let Some(next) = at.steps.get(step).or_else(|| at.steps.get("*")) else { return false };
            at = next;
        }
        at.supported && at.rule.is_some_and(|rule| rule.kind.check(value).is_ok())
    }

    /// Returns the kind of setting at a path, with `*` for names: as far as there are rules for it,
    /// and `others` if there are none.
    pub(crate) fn kind_of(&self, path: &str) -> String {
        let (mut at, mut rest, mut kind) = (self, path, String::new());
        while !rest.is_empty() {
            let known =
                at.steps.iter().find_map(|(key, next)| Some((*key, next, after(rest, key)?)));
            let (step, next, left) = match (known, at.steps.get("*")) {
                (Some(known), _) => known,
                // A name may have dots in it: it ends before a key that may follow.
                (None, Some(next)) => {
                    let ends = rest.match_indices('.').map(|(at, _)| &rest[at + 1..]);
                    let is_key = |left: &&str| next.steps.keys().any(|k| after(left, k).is_some());
                    ("*", next, ends.into_iter().find(is_key).unwrap_or(""))
                }
                (None, None) => break,
            };
            if !kind.is_empty() {
                kind.push('.');
            }
            kind += step;
            (at, rest) = (next, left);
        }
        if kind.is_empty() { "others".into() } else { kind }
    }

    /// Returns all problems of a document.
    pub(crate) fn check(&self, root: &Node) -> Vec<Problem> {
        let mut problems = Vec::new();
        match &root.value {
            Value::Null | Value::Map(_) => {
                self.keys(root, &mut String::new(), true, &mut problems);
            }
            other => {
                let text = format!("keys such as `interfaces' expected, not {}", other.kind());
                problems.push(Problem::at(root, "", text));
            }
        }
        problems
    }

    /// Checks the keys of a map; `path` is the one to it, and is as it was afterwards.
    fn keys(&self, node: &Node, path: &mut String, supported: bool, problems: &mut Vec<Problem>) {
        let end = path.len();
        for (key, below) in node.entries() {
            if end > 0 {
                path.push('.');
            }
            path.push_str(key);
            let known = self.steps.get(key);
            match known.or_else(|| self.steps.get("*")) {
                None => problems.push(Problem::at(below, path.as_str(), self.unknown(key))),
                Some(next) => {
                    let scope = Scope { supported, named: known.is_none() };
                    next.node(below, path, scope, problems);
                }
            }
            path.truncate(end);
        }
        for (key, next) in &self.steps {
            if next.rule.is_some_and(|r| r.required) && node.get(key).is_none() {
                let text = format!("`{key}' is missing");
                problems.push(Problem::at(node, path.as_str(), text));
            }
        }
    }

    fn node(&self, node: &Node, path: &mut String, scope: Scope, problems: &mut Vec<Problem>) {
        let Some(rule) = &self.rule else { return };
        if let Err(expected) = rule.kind.check(&node.value) {
            let shown = shown(&node.value);
            problems.push(Problem::at(
                node,
                path.as_str(),
                format!("{expected} expected, not {shown}"),
            ));
            return;
        }
        // An empty value configures nothing, unless its name alone does.
        let asks = scope.named || !node.value.is_empty() && node.value != Value::Bool(false);
        let note = rule.path.ends_with(NOTE);
        // Names are reported one by one.
        let names = matches!(rule.kind, Kind::Named(_));
        if scope.supported && !self.supported && asks && !note && !names {
            problems.push(Problem::unsupported(node, path.as_str(), ""));
        }
        let supported = scope.supported && (self.supported || names);
        match rule.kind {
            Kind::Named(name) => {
                for (key, below) in node.entries() {
                    if let Err(expected) = name.check(key) {
                        let text = format!("{expected} expected, not `{key}'");
                        problems.push(Problem::at(below, path.as_str(), text));
                    }
                }
                self.keys(node, path, supported, problems);
            }
            Kind::Keys => self.keys(node, path, supported, problems),
            Kind::List(..) => {
                let Some(part) = self.steps.get("[]") else { return };
                let end = path.len();
                for (i, below) in node.list().iter().enumerate() {
                    let scope = Scope { supported, named: true };
                    path.push_str(&format!("[{i}]"));
                    part.node(below, path, scope, problems);
                    path.truncate(end);
                }
            }
            _ => {}
        }
    }

    fn unknown(&self, key: &str) -> String {
        let known: Vec<&str> =
            self.steps.keys().copied().filter(|k| !k.starts_with(['*', '['])).collect();
        match closest(key, &known) {
            Some(near) => format!("unknown key; did you mean `{near}'?"),
            None if known.is_empty() => "no keys are allowed here".into(),
            None => format!("unknown key; known keys are {}", known.join(", ")),
        }
    }
}

/// Returns the rest of a path behind its first key, if that is `key`.
fn after<'a>(path: &'a str, key: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(key)?;
    match rest.strip_prefix('.') {
        Some(rest) => Some(rest),
        // Parts of lists have no names below them.
        None => (rest.is_empty() || rest.starts_with('[')).then_some(""),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null | Value::List(_) | Value::Map(_) => value.kind().into(),
        other => {
            let text = other.to_string();
            let cut = text.char_indices().nth(60).map_or(text.len(), |(i, _)| i);
            format!("`{}'", text.get(..cut).unwrap_or(&text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        assert!(Name::Numbered("loop").check("loop12").is_ok());
        for bad in ["loop", "loop01", "loopa", "Loop1", "loop-1", "loop99999999999"] {
            assert!(Name::Numbered("loop").check(bad).is_err(), "{bad}");
        }
        assert!(
            Name::Device(15).check("ice12-0-0").is_ok() && Name::Device(15).check("0a").is_err()
        );
        assert!(
            Name::Device(15).check("ice0.1234").is_ok() && Name::Device(15).check("a/b").is_err()
        );
        assert!(Name::Any.check("host-eth0.100").is_ok() && Name::Any.check("a b").is_err());
        assert!(
            Name::Number(1, 10).check("10").is_ok() && Name::Number(1, 10).check("11").is_err()
        );
    }

    #[test]
    fn addresses() {
        assert!(mac("02:0:5e:10:00:01").is_some());
        for bad in
            ["", "02:00:5e:10:00", "02:00:5e:10:00:01:02", "02:00:5e:10:00:1g", "+2:0:0:0:0:0"]
        {
            assert!(mac(bad).is_none(), "{bad}");
        }
        assert!(address("192.0.2.1/24").is_some() && address("2001:db8::1/64").is_some());
        for bad in ["192.0.2.1", "192.0.2.1/33", "192.0.2.1/", "192.0.2/24", "::/129", "1.2.3.4/+8"]
        {
            assert!(address(bad).is_none(), "{bad}");
        }
    }
}
