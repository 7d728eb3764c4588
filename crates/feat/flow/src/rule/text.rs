//! Rules as text: `priority=1,ip,ct_state=+trk+new,in_port=port0,actions=ct(commit),normal`, with
//! commas or blanks between the parts.

use std::fmt;

use super::action::Action;
use super::matching::{Match, number};
use super::unsupported;

/// Numbers of interfaces.
pub trait Names {
    /// The number of the interface of this name, or that the text is.
    fn number(&self, name: &str) -> Option<u32>;
}

/// What is wrong about a rule, and where.
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

/// The priority of rules that say none.
pub const DEFAULT_PRIORITY: u16 = 32768;

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The table that it is in.
    pub table: u8,
    /// Of those that take a packet, the one of the highest priority is followed.
    pub priority: u16,
    /// A number that says whose it is.
    pub cookie: u64,
    /// Which packets.
    pub matches: Match,
    /// What happens to them.
    pub actions: Vec<Action>,
    /// The fields as they were written.
    fields: Vec<String>,
}

/// The parts of a list, which commas and blanks outside of brackets separate.
pub(crate) fn split(text: &str) -> Result<Vec<&str>, RuleError> {
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0usize);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => {
                let wrong = || RuleError::new(text, "a bracket is closed that was not opened");
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
        return Err(RuleError::new(text, "a bracket is not closed"));
    }
    parts.push(&text[from..]);
    parts.retain(|part| !part.is_empty());
    Ok(parts)
}

/// Where `actions=` or `action=` begins, and the list behind it.
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

/// Without quotes around it.
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
    /// Reads a rule.
    ///
    /// # Errors
    /// [`RuleError`] of the first part that is wrong.
    pub fn parse(text: &str, names: &dyn Names) -> Result<Rule, RuleError> {
        let (left, right) = halves(unquoted(text));
        let mut rule = Rule::left(left, names)?;
        let right = right.ok_or_else(|| RuleError::new(text, "actions= is missing"))?;
        rule.actions = Action::list(right, &rule.matches, names)?;
        Ok(rule)
    }

    /// Reads what packets a rule takes, which may be followed by nothing.
    ///
    /// # Errors
    /// [`RuleError`] of the first part that is wrong.
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
        // A protocol may stand behind the fields that need it.
        let (mut fields, mut protocols) = (Vec::new(), Vec::new());
        for word in split(text)? {
            match word.split_once('=') {
                None => protocols.push(word),
                Some(("dl_type" | "eth_type" | "nw_proto" | "ip_proto", _)) => protocols.push(word),
                Some((name, value)) => {
                    if !rule.option(name, value, word)? {
                        fields.push(word);
                    }
                }
            }
        }
        // EtherTypes before transports.
        protocols.sort_by_key(|word| word.starts_with("nw_") || word.starts_with("ip_"));
        for word in protocols.into_iter().chain(fields) {
            if !rule.matches.read(word, names)? {
                let name = word.split_once('=').map_or(word, |(name, _)| name);
                let why = unsupported::field(name);
                return Err(RuleError::new(word, why.unwrap_or("rules have no such field".into())));
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
                return Err(RuleError::new(word, "rules stay until they are deleted"));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The fields and the rest of the left side.
    pub fn left_text(&self) -> String {
        let mut parts = vec![format!("priority={}", self.priority)];
        parts.extend(self.fields.iter().cloned());
        parts.join(",")
    }

    /// The packets that it takes; nothing if it takes all.
    pub fn match_text(&self) -> String {
        self.fields.join(",")
    }

    /// The actions.
    pub fn actions_text(&self) -> String {
        let parts: Vec<String> = self.actions.iter().map(Action::to_string).collect();
        parts.join(",")
    }

    /// Whether it takes the place of another one: the same table, priority and packets.
    pub fn replaces(&self, other: &Rule) -> bool {
        let same = |r: &Rule| (r.table, r.priority, r.matches.clone());
        same(self) == same(other)
    }
}

/// As it can be read again.
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
