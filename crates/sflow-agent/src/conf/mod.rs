//! `hsflowd.conf`: the configuration of hsflowd, as far as it concerns what is done here.
//!
//! ```text
//! sflow {
//!   polling = 20
//!   collector { ip = 192.0.2.50 udpport = 6343 }
//!   psample { group = 1 egress = on }
//!   vpp { }
//! }
//! ```
//!
//! Blanks, `=` and `;` separate words, `#` begins a comment, values may stand in quotes, and words
//! may be written in any case. A word that is unknown, or known and out of range, is an error. A
//! word that makes hsflowd measure what is not measured here is an error, too: the collector would
//! not miss the figures. Other words that have no effect are warnings with their place, so that a
//! configuration that is in use need not be taken apart; but without a collector by address or name
//! there is an error.

mod keywords;
mod lexer;

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use crate::agent::{AgentChoice, AgentConfig, CollectorConfig, Host};
use crate::host::DEFAULT_INTERVAL;
use thalweg_sflow::encode::DEFAULT_DATAGRAM_BYTES;
use thalweg_sflow::value::Uuid;

use keywords::{Keyword, SFLOW, Value};
use lexer::{Kind, Token, tokens};

/// The reader of the file: not every word means something to each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// The agent as a program of its own.
    Agent,
    /// A router with its own.
    Router,
}

/// Speed of a link: `10G`, `2500M`, in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkSpeed(pub u64);

impl FromStr for LinkSpeed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let speed = number(text).filter(|speed| *speed > 0).map(LinkSpeed);
        speed.ok_or_else(|| format!("`{text}' is not a speed such as 10G, in bits per second"))
    }
}

impl fmt::Display for LinkSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "K")];
        match units.iter().find(|(unit, _)| self.0.is_multiple_of(*unit)) {
            Some((unit, letter)) => write!(f, "{}{letter}", self.0 / unit),
            None => write!(f, "{}", self.0),
        }
    }
}

/// `psample { }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PsampleConf {
    /// Group of received packets; that of sent ones is the next.
    pub group: u32,
    /// Listen for received packets.
    pub ingress: bool,
    /// Listen for sent packets.
    pub egress: bool,
}

impl Default for PsampleConf {
    fn default() -> Self {
        PsampleConf { group: 1, ingress: true, egress: false }
    }
}

/// `vpp { }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VppConf {
    /// Show interfaces by the number of their Linux pair.
    pub os_index: bool,
    /// Added to numbers of interfaces without a pair, when others have one; 0 lets their samples
    /// through unchanged.
    pub if_offset: u32,
}

impl Default for VppConf {
    fn default() -> Self {
        VppConf { os_index: true, if_offset: 1_000_000_000 }
    }
}

/// `dropmon { }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropmonConf {
    /// Most discards per second that are sent.
    pub limit: u32,
    /// If there are more than this in each of `max_trip` seconds, no more are listened to; 0 never.
    pub max: u32,
    /// Number of consecutive seconds.
    pub max_trip: u32,
    /// Start the kernel's monitor.
    pub start: bool,
    /// Start it even if it runs already.
    pub force: bool,
    /// The kernel's own drops.
    pub software: bool,
    /// Drops of devices.
    pub hardware: bool,
    /// Report the kernel's reason by name.
    pub reason_names: bool,
    /// Listen to the kernel's own drops, and leave starting to others.
    pub software_passive: bool,
    /// Listen to drops of devices only.
    pub hardware_passive: bool,
    /// Send unknown traps as well.
    pub unknown: bool,
    /// Do not send those whose function, trap or reason matches.
    pub hide: Option<String>,
}

impl Default for DropmonConf {
    fn default() -> Self {
        DropmonConf {
            limit: 100,
            max: 100_000,
            max_trip: 2,
            start: true,
            force: true,
            software: true,
            hardware: true,
            reason_names: true,
            software_passive: false,
            hardware_passive: false,
            unknown: false,
            hide: None,
        }
    }
}

/// Settings of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HsflowdConf {
    /// Seconds between counter samples of the host and of Linux interfaces; 0 sends none.
    pub polling: u32,
    /// Sampling rate where the agent sets it; `None` if not configured.
    pub sampling: Option<u32>,
    /// The same for links of a speed.
    pub sampling_of: BTreeMap<LinkSpeed, u32>,
    /// Most bytes of a sampled header.
    pub header_bytes: usize,
    /// Most bytes of a datagram.
    pub datagram_bytes: usize,
    /// Way in which the agent's address is found.
    pub agent: AgentChoice,
    /// Sub-agent id; `None` if not configured.
    pub sub_agent: Option<u32>,
    /// UUID of this host.
    pub uuid: Option<Uuid>,
    /// Destinations of datagrams; at least one.
    pub collectors: Vec<CollectorConfig>,
    /// Samples by PSAMPLE.
    pub psample: Option<PsampleConf>,
    /// Counters and numbers of a router.
    pub vpp: Option<VppConf>,
    /// Discards.
    pub dropmon: Option<DropmonConf>,
}

impl Default for HsflowdConf {
    fn default() -> Self {
        HsflowdConf {
            polling: DEFAULT_INTERVAL,
            sampling: None,
            sampling_of: BTreeMap::new(),
            header_bytes: 128,
            datagram_bytes: DEFAULT_DATAGRAM_BYTES,
            agent: AgentChoice::default(),
            sub_agent: None,
            uuid: None,
            collectors: Vec::new(),
            psample: None,
            vpp: None,
            dropmon: None,
        }
    }
}

/// Something that is wrong, or has no effect, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file's name, line and column.
    pub place: String,
    /// The fault, and the remedy.
    pub message: String,
    /// The line, and below it what marks the place.
    pub excerpt: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// A configuration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfError(pub Vec<Problem>);

impl fmt::Display for ConfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            let line = if i == 0 { "" } else { "\n" };
            write!(f, "{line}{problem}\n{}", problem.excerpt)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfError {}

/// Bytes that a router may take of a packet, whatever the file says: it can be changed at any time.
const ROUTER_HEADER_BYTES: usize = 256;
/// More mistakes than this are not worth reading in one go.
const MAX_PROBLEMS: usize = 20;
/// Objects within objects that are read over.
const MAX_DEPTH: usize = 16;
/// Characters of a line that are shown.
const EXCERPT: usize = 100;

impl HsflowdConf {
    /// Reads a file; `name` is for messages. Returns what has no effect with `reader`, too.
    ///
    /// Bytes that are not UTF-8 do no harm in a comment; elsewhere they are mistakes like others.
    ///
    /// # Errors
    /// If there are mistakes: all of them, up to twenty.
    pub fn parse_bytes(
        reader: Reader,
        name: &str,
        bytes: &[u8],
    ) -> Result<(Self, Vec<Problem>), ConfError> {
        Self::parse(reader, name, &String::from_utf8_lossy(bytes))
    }

    /// The same of a text.
    ///
    /// # Errors
    /// If there are mistakes: all of them, up to twenty.
    pub fn parse(
        reader: Reader,
        name: &str,
        text: &str,
    ) -> Result<(Self, Vec<Problem>), ConfError> {
        let mut parser = Parser {
            reader,
            object: "sflow",
            name,
            text,
            tokens: tokens(text),
            next: 0,
            conf: HsflowdConf::default(),
            lengths: None,
            errors: Vec::new(),
            warnings: Vec::new(),
        };
        parser.file();
        match parser.errors.is_empty() {
            true => Ok((parser.conf, parser.warnings)),
            false => Err(ConfError(parser.errors)),
        }
    }
}

struct Parser<'a> {
    reader: Reader,
    /// The object that is being read.
    object: &'static str,
    name: &'a str,
    text: &'a str,
    tokens: Vec<Token<'a>>,
    next: usize,
    conf: HsflowdConf,
    /// The latest word about lengths.
    lengths: Option<Token<'a>>,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl<'a> Parser<'a> {
    fn take(&mut self) -> Option<Token<'a>> {
        let token = self.tokens.get(self.next).copied();
        self.next += usize::from(token.is_some());
        token
    }

    /// Returns the end of the text.
    fn end(&self) -> Token<'a> {
        let at = self.text.len();
        Token { kind: Kind::Close, text: "", at, end: at }
    }

    fn peek(&self) -> Option<Kind> {
        self.tokens.get(self.next).map(|token| token.kind)
    }

    fn take_if(&mut self, kind: Kind) -> bool {
        let is = self.peek() == Some(kind);
        self.next += usize::from(is);
        is
    }

    fn problem(&self, at: usize, length: usize, message: String) -> Problem {
        let before = &self.text[..at];
        let number = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = self.text[start..].lines().next().unwrap_or_default();
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let shown: String = line.chars().map(plain).take(EXCERPT).collect();
        let column = self.text[start..at].chars().count();
        let mark = "^".repeat(length.clamp(1, EXCERPT));
        let excerpt = match column < EXCERPT {
            true => format!("{number:5} | {shown}\n      | {}{mark}", " ".repeat(column)),
            false => format!("{number:5} | {shown} …"),
        };
        Problem { place: format!("{}:{number}:{}", self.name, column + 1), message, excerpt }
    }

    fn error(&mut self, token: Token<'_>, message: String) {
        if self.errors.len() < MAX_PROBLEMS {
            let problem = self.problem(token.at, token.text.chars().count(), message);
            self.errors.push(problem);
        }
    }

    fn warn(&mut self, token: Token<'_>, message: String) {
        let problem = self.problem(token.at, token.text.chars().count(), message);
        self.warnings.push(problem);
    }

    /// The whole file: one object.
    fn file(&mut self) {
        let end = self.end();
        let first = self.take().unwrap_or(end);
        if first.kind != Kind::Word || !first.text.eq_ignore_ascii_case("sflow") {
            return self.error(first, "the file must begin with sflow { }".into());
        }
        if !self.take_if(Kind::Open) {
            return self.error(first, "expected { after sflow".into());
        }
        self.object(first, SFLOW, 1);
        if let Some(more) = self.take() {
            self.error(more, "unexpected text after the } of sflow { }".into());
        }
        self.check_lengths();
        if self.conf.collectors.is_empty() && self.errors.is_empty() {
            let hint = "no collector: add collector { ip = ADDRESS }";
            self.error(first, hint.into());
        }
    }

    /// Datagrams must hold the headers that they are to.
    fn check_lengths(&mut self) {
        let Some(said) = self.lengths else { return };
        let header_bytes = match self.reader {
            Reader::Agent => self.conf.header_bytes,
            Reader::Router => ROUTER_HEADER_BYTES,
        };
        let datagram_bytes = self.conf.datagram_bytes;
        let usual = AgentConfig::new(Ipv6Addr::LOCALHOST.into());
        if let Err(why) = (AgentConfig { header_bytes, datagram_bytes, ..usual }).check() {
            self.error(said, why.to_string());
        }
    }

    /// The words of an object up to its end; it was opened after `name`.
    fn object(&mut self, name: Token<'_>, words: &'static [Keyword], depth: usize) {
        let mistakes = self.errors.len();
        while let Some(token) = self.take() {
            match token.kind {
                Kind::Close if self.errors.len() == mistakes => return self.object_ends(name),
                Kind::Close => return,
                Kind::Open => {
                    self.error(token, format!("expected a keyword before {{: {}", possible(words)));
                    self.skip();
                }
                Kind::Unclosed => self.error(token, "unterminated quotes".into()),
                Kind::Word => self.word(token, words, depth),
            }
        }
        self.error(name, format!("missing }}: the {{ after {} is not closed", name.text));
    }

    fn object_ends(&mut self, name: Token<'_>) {
        if !name.text.eq_ignore_ascii_case("collector") {
            return;
        }
        let is_unset = |c: &CollectorConfig| matches!(&c.host, Host::Name(n) if n.is_empty());
        let Some((collector, others)) = self.conf.collectors.split_last() else { return };
        if is_unset(collector) {
            self.error(name, "collector without address: add ip = ADDRESS".into());
        } else if let Err(why) = collector.check() {
            self.error(name, why);
        } else if others.contains(collector) {
            self.warn(name, format!("duplicate collector {collector}"));
            self.conf.collectors.pop();
        }
    }

    fn word(&mut self, token: Token<'a>, words: &'static [Keyword], depth: usize) {
        let same = |word: &&Keyword| word.0.eq_ignore_ascii_case(token.text);
        let Some(Keyword(name, value)) = words.iter().find(same) else {
            return self.unknown(token, words, depth);
        };
        if let Some(why) = keywords::idle(self.reader, self.object, name) {
            self.warn(token, format!("{name} has no effect: {why}"));
        }
        match value {
            Value::Object(words, prepare) => {
                prepare(&mut self.conf);
                let outer = std::mem::replace(&mut self.object, name);
                match self.take_if(Kind::Open) {
                    true => self.object(token, words, depth + 1),
                    false => self.error(token, format!("expected {{ after {name}")),
                }
                self.object = outer;
            }
            Value::Module(why) => {
                self.warn(token, format!("{name} {{ }} is not supported: {why}"));
                match self.take_if(Kind::Open) {
                    true => self.skip(),
                    false => self.error(token, format!("expected {{ after {name}")),
                }
            }
            Value::Refused(why) => {
                self.error(token, format!("{name} is not supported: {why}"));
                match self.take_if(Kind::Open) {
                    true => self.skip(),
                    false => self.next += usize::from(self.peek() == Some(Kind::Word)),
                }
            }
            Value::NoEffect(why) => {
                if self.value(token, "a value").is_some() {
                    self.warn(token, format!("{name} has no effect: {why}"));
                }
            }
            Value::Number(range, set) => {
                let (low, high) = (range.start(), range.end());
                let expected = format!("a number from {low} to {high}");
                let Some(value) = self.value(token, &expected) else { return };
                match number(value.text).filter(|n| range.contains(n)) {
                    Some(n) => {
                        set(&mut self.conf, n);
                        self.note_number(name, value, n);
                    }
                    None => self.error(value, format!("`{}' is not {expected}", value.text)),
                }
            }
            Value::Switch(set) => {
                let Some(value) = self.value(token, "on or off") else { return };
                match value.text.to_ascii_lowercase().as_str() {
                    "on" | "yes" | "true" => set(&mut self.conf, true),
                    "off" | "no" | "false" => set(&mut self.conf, false),
                    _ => self.error(value, format!("`{}' is neither on nor off", value.text)),
                }
            }
            Value::Text(expected, set) => {
                let Some(value) = self.value(token, expected) else { return };
                if let Err(why) = set(&mut self.conf, value.text) {
                    self.error(value, format!("{why}: {name} is {expected}"));
                }
            }
        }
    }

    /// Looks at numbers of which there is more to say.
    fn note_number(&mut self, name: &str, value: Token<'a>, n: u64) {
        match name {
            "datagramBytes" | "headerBytes" => self.lengths = Some(value),
            "polling" if n == 0 && self.reader == Reader::Router => {
                let why = "host counters are disabled, interface counters are still sent";
                self.warn(value, format!("polling = 0: {why}"));
            }
            _ => {}
        }
    }

    /// The value after a word, or an error that names what it should be.
    fn value(&mut self, word: Token<'_>, expected: &str) -> Option<Token<'a>> {
        if self.peek() == Some(Kind::Word) {
            return self.take();
        }
        self.error(word, format!("expected {expected} after {}", word.text));
        if self.take_if(Kind::Open) {
            self.skip();
        } else {
            self.take_if(Kind::Unclosed);
        }
        None
    }

    /// Rates by speed or application are hsflowd's; all else is a mistake.
    fn unknown(&mut self, token: Token<'a>, words: &'static [Keyword], depth: usize) {
        let after = |start: &str| {
            let (first, rest) = token.text.split_at_checked(start.len())?;
            (depth == 1 && first.eq_ignore_ascii_case(start) && !rest.is_empty()).then_some(rest)
        };
        if let Some(of) = after("sampling.") {
            return self.rate_of(token, of);
        }
        if after("polling.").is_some() {
            return self.polling_of(token);
        }
        let known = possible(words);
        self.error(token, format!("unknown keyword `{}'; expected one of {known}", token.text));
        // Skip what belongs to the word: one complaint is enough.
        if self.take_if(Kind::Open) {
            self.skip();
        } else if let Some(next) = self.tokens.get(self.next).filter(|t| t.kind == Kind::Word) {
            let separated = self.text[token.end..next.at].contains('=');
            self.next += usize::from(separated);
        }
    }

    /// `sampling.10G`, the rate of links of that speed; of applications there is none. By a ratio
    /// it would be another one than is sampled at.
    fn rate_of(&mut self, token: Token<'a>, of: &str) {
        let expected = "a number from 0 to 10000000";
        let ratio = of.eq_ignore_ascii_case("bps_ratio");
        let most = if ratio { u32::MAX.into() } else { 10_000_000 };
        let Some(rate) = self.number_to(token, expected, most) else { return };
        let why = match (of.parse::<LinkSpeed>(), self.reader) {
            (Err(_), Reader::Router) if ratio => {
                let why = "give a rate for each speed (sampling.10G = 10000)";
                return self.error(token, format!("{} is not supported: {why}", token.text));
            }
            (Err(_), _) if !ratio => "application samples are not supported",
            (_, Reader::Agent) => keywords::SENDER,
            (speed, Reader::Router) => {
                self.conf.sampling_of.extend(speed.map(|speed| (speed, rate)));
                return;
            }
        };
        self.warn(token, format!("{} has no effect: {why}", token.text));
    }

    /// `polling.http`, the interval of an application's counters, which do not exist here.
    fn polling_of(&mut self, token: Token<'a>) {
        if self.number_to(token, "a number from 0 to 300", 300).is_some() {
            let why = "application samples are not supported";
            self.warn(token, format!("{} has no effect: {why}", token.text));
        }
    }

    fn number_to(&mut self, token: Token<'a>, expected: &str, most: u64) -> Option<u32> {
        let value = self.value(token, expected)?;
        let found = number(value.text).filter(|n| *n <= most).map(|n| n as u32);
        if found.is_none() {
            self.error(value, format!("`{}' is not {expected}", value.text));
        }
        found
    }

    /// Reads over an object whose `{` was taken.
    fn skip(&mut self) {
        let mut depth = 1;
        while let Some(token) = self.take() {
            match token.kind {
                Kind::Open => depth += 1,
                Kind::Close => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return;
            }
            if depth > MAX_DEPTH {
                return self.error(token, "objects are nested too deeply".into());
            }
        }
        let end = self.end();
        self.error(end, "unexpected end of file: missing }".into());
    }
}

fn possible(words: &[Keyword]) -> String {
    let taken = words.iter().filter(|word| !matches!(word.1, Value::Refused(_)));
    taken.map(|word| word.0).collect::<Vec<_>>().join(", ")
}

/// A number, K, M and G being thousands, millions and thousand millions.
fn number(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" => 1,
        "k" | "K" => 1_000,
        "m" | "M" => 1_000_000,
        "g" | "G" => 1_000_000_000,
        _ => return None,
    };
    if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests;
