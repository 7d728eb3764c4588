//! Rules as text: `priority=1,ip,ct_state=+trk+new,in_port=port0,actions=ct(commit),normal`,
//! separated by commas or blanks.

use std::fmt;
use thalweg_config::declare::Name;
use thalweg_device::SwIfIndex;

use super::action::Action;
use super::matching::{Match, number};
use super::unsupported;

/// Accepts any name that an interface may have, whether there is one or not.
pub(crate) struct AnyName;

impl Names for AnyName {
    fn number(&self, name: &str) -> Option<SwIfIndex> {
        // A name, a device of the kernel, or a tag.
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic()) && Name::Any.takes(name);
        name.parse().ok().or(is_name.then_some(SwIfIndex(1)))
    }
}

/// Resolves interface names.
pub trait Names {
    /// The number of the interface with this name or number.
    fn number(&self, name: &str) -> Option<SwIfIndex>;
}

/// An error, and the part of the rule that it is in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{part}`: {what}")]
pub struct RuleError {
    part: String,
    what: String,
}

impl RuleError {
    pub(crate) fn new(part: &str, what: impl Into<String>) -> RuleError {
        RuleError { part: part.into(), what: what.into() }
    }
}

/// Default priority.
pub const DEFAULT_PRIORITY: u16 = 32768;

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Table number.
    pub table: u8,
    /// The matching rule with the highest priority applies.
    pub priority: u16,
    /// An opaque number chosen by the user.
    pub cookie: u64,
    /// The match.
    pub matches: Match,
    /// The actions.
    pub actions: Vec<Action>,
    /// The fields as written.
    fields: Vec<String>,
}

/// Splits a list at commas and blanks outside of brackets.
pub(crate) fn split(text: &str) -> Result<Vec<&str>, RuleError> {
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0usize);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => {
                let wrong = || RuleError::new(text, "unmatched closing bracket");
                depth = depth.checked_sub(1).ok_or_else(wrong)?;
            }
            c if depth == 0 && (c == ',' || c.is_whitespace()) => {
                parts.push(&text[from..at]);
                from = at + c.len_utf8();
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err(RuleError::new(text, "missing closing bracket"));
    }
    parts.push(&text[from..]);
    parts.retain(|part| !part.is_empty());
    Ok(parts)
}

/// Splits a rule at `actions=` or `action=`.
fn halves(text: &str) -> (&str, Option<&str>) {
    for name in ["actions=", "action="] {
        for (at, _) in text.match_indices(name) {
            let before = text[..at].chars().next_back();
            if before.is_none_or(|c| c == ',' || c.is_whitespace()) {
                return (&text[..at], Some(&text[at + name.len()..]));
            }
        }
    }
    (text, None)
}

/// Returns whether a field is one of a connection's original direction.
fn is_original(name: &str) -> bool {
    ["ct_nw_", "ct_tp_", "ct_ipv6_"].iter().any(|prefix| name.starts_with(prefix))
}

/// Removes surrounding quotes.
pub(crate) fn unquoted(text: &str) -> &str {
    let text = text.trim();
    for quote in ['\'', '"'] {
        let inner = text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote));
        if let Some(inner) = inner {
            return inner.trim();
        }
    }
    text
}

impl Rule {
    /// Parses a rule.
    ///
    /// # Errors
    /// [`RuleError`] for the first invalid part.
    pub fn parse(text: &str, names: &dyn Names) -> Result<Rule, RuleError> {
        let (left, right) = halves(unquoted(text));
        let mut rule = Rule::left(left, names)?;
        let right = right.ok_or_else(|| RuleError::new(text, "actions= is missing"))?;
        rule.actions = Action::list(right, &rule.matches, names)?;
        Ok(rule)
    }

    /// The names or numbers of interfaces in it.
    pub(crate) fn interfaces(&self) -> impl Iterator<Item = &str> {
        let actions = self.actions.iter().filter_map(|action| match action {
            Action::Output(name) | Action::Resubmit(Some(name), _) => Some(name.as_str()),
            _ => None,
        });
        self.matches.in_port.as_deref().into_iter().chain(actions)
    }

    /// Parses a match without actions.
    ///
    /// # Errors
    /// [`RuleError`] for the first invalid part.
    pub fn parse_match(text: &str, names: &dyn Names) -> Result<Rule, RuleError> {
        match halves(unquoted(text)) {
            (left, None) => Rule::left(left, names),
            (_, Some(right)) => Err(RuleError::new(right, "no actions expected here")),
        }
    }

    fn left(text: &str, names: &dyn Names) -> Result<Rule, RuleError> {
        let mut rule = Rule {
            table: 0,
            priority: DEFAULT_PRIORITY,
            cookie: 0,
            matches: Match::default(),
            actions: Vec::new(),
            fields: Vec::new(),
        };
        // A protocol may follow the fields that require it.
        let (mut fields, mut protocols) = (Vec::new(), Vec::new());
        for word in split(text)? {
            match word.split_once('=') {
                None => protocols.push(word),
                Some((
                    "dl_type" | "eth_type" | "nw_proto" | "ip_proto" | "icmp_type" | "icmpv6_type",
                    _,
                )) => protocols.push(word),
                Some((name, value)) => {
                    if !rule.option(name, value, word)? {
                        fields.push(word);
                    }
                }
            }
        }
        // EtherTypes come before transports, and those before their messages.
        protocols.sort_by_key(|word| match word.split('_').next() {
            Some("nw" | "ip") => 1,
            Some("icmp" | "icmpv6") if word.contains('=') => 2,
            _ => 0,
        });
        // A tracking state may follow the fields of the original direction.
        fields.sort_by_key(|word: &&str| match word.split_once('=') {
            Some(("ct_nw_proto", _)) => 1,
            Some((name, _)) if is_original(name) => 2,
            _ => 0,
        });
        for word in protocols.into_iter().chain(fields) {
            if !rule.matches.read(word, names)? {
                let name = word.split_once('=').map_or(word, |(name, _)| name);
                let why = unsupported::field(name);
                return Err(RuleError::new(word, why.unwrap_or("unknown field".into())));
            }
            rule.fields.push(word.to_owned());
        }
        Ok(rule)
    }

    fn option(&mut self, name: &str, value: &str, word: &str) -> Result<bool, RuleError> {
        let wrong = |what: &str| RuleError::new(word, format!("{what} expected"));
        let n = number(value);
        match name {
            "priority" => {
                let priority = n.and_then(|n| u16::try_from(n).ok());
                self.priority = priority.ok_or_else(|| wrong("a number up to 65535"))?;
            }
            "table" => {
                let table = n.and_then(|n| u8::try_from(n).ok()).filter(|n| *n < 255);
                self.table = table.ok_or_else(|| wrong("a number up to 254"))?;
            }
            "cookie" => {
                let cookie = n.and_then(|n| u64::try_from(n).ok());
                self.cookie = cookie.ok_or_else(|| wrong("a number of 64 bits"))?;
            }
            "idle_timeout" | "hard_timeout" if n == Some(0) => {}
            "idle_timeout" | "hard_timeout" => {
                return Err(RuleError::new(
                    word,
                    "not supported: rules do not time out; `flow del` deletes them",
                ));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Priority and match as text.
    pub fn left_text(&self) -> String {
        let mut parts = vec![format!("priority={}", self.priority)];
        parts.extend(self.fields.iter().cloned());
        parts.join(",")
    }

    /// The match as text; empty if it matches all packets.
    pub fn match_text(&self) -> String {
        self.fields.join(",")
    }

    /// The actions as text.
    pub fn actions_text(&self) -> String {
        let parts: Vec<String> = self.actions.iter().map(Action::to_string).collect();
        parts.join(",")
    }
}

/// Prints a rule in a form that can be parsed again.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.table != 0 {
            write!(f, "table={},", self.table)?;
        }
        if self.cookie != 0 {
            write!(f, "cookie={:#x},", self.cookie)?;
        }
        write!(f, "{},actions={}", self.left_text(), self.actions_text())
    }
}
