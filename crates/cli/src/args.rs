//! Arguments of a command, taken one by one.
//!
//! Every taker consumes what it returns. A taker that fails consumes nothing, and its error says
//! which argument was wrong, what was found, and what was expected.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use thalweg_wire::MacAddr;

use crate::error::{CliError, shorten};
use crate::lexer::{Token, TokenKind, tokenize};

/// The words and groups after the command's path.
#[derive(Debug, Clone)]
pub struct Args<'a> {
    /// Text that the tokens point into.
    line: &'a str,
    /// Name of the command, for messages.
    path: &'a str,
    tokens: Vec<Token<'a>>,
    next: usize,
}

impl<'a> Args<'a> {
    pub(crate) fn new(line: &'a str, path: &'a str, tokens: Vec<Token<'a>>) -> Self {
        Self { line, path, tokens, next: 0 }
    }

    /// Splits a text into arguments, as a command would get them; for tests of parsers, and for the
    /// inside of a group.
    ///
    /// # Errors
    /// If a quote or a brace is not closed.
    pub fn parse(text: &'a str) -> Result<Self, CliError> {
        Ok(Self::new(text, "", tokenize(text)?))
    }

    /// Returns the command's path, in full words.
    pub fn path(&self) -> &'a str {
        self.path
    }

    /// Returns true if every argument was taken.
    pub fn is_empty(&self) -> bool {
        self.next >= self.tokens.len()
    }

    /// Returns the number of arguments left.
    pub fn len(&self) -> usize {
        self.tokens.len() - self.next
    }

    /// Returns the next argument (the inside of a group, if it is one) without taking it.
    pub fn peek(&self) -> Option<&'a str> {
        self.peek_at(0)
    }

    /// Returns the argument `n` places ahead (0 is the next) without taking it.
    pub fn peek_at(&self, n: usize) -> Option<&'a str> {
        self.tokens.get(self.next.checked_add(n)?).map(|t| t.text)
    }

    /// Returns true if the next argument is a `{ ... }` group.
    pub fn at_group(&self) -> bool {
        self.tokens.get(self.next).is_some_and(|t| t.kind == TokenKind::Group)
    }

    /// Returns true if the next argument is meant as an address, valid or not: no name looks like
    /// one.
    pub fn at_address(&self) -> bool {
        let Some(word) = self.peek().filter(|_| !self.at_group()) else { return false };
        word.contains(':') || word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit())
    }

    /// Takes the next argument if it is `keyword` or an abbreviation of it.
    ///
    /// For several keywords use [`one_of`](Self::one_of), which detects ambiguity.
    pub fn keyword(&mut self, keyword: &str) -> bool {
        self.take_if(|word| !word.is_empty() && keyword.starts_with(word))
    }

    /// Takes the next argument if it is exactly `keyword`.
    pub fn exact(&mut self, keyword: &str) -> bool {
        self.take_if(|word| word == keyword)
    }

    fn take_if(&mut self, wanted: impl Fn(&str) -> bool) -> bool {
        let taken = self
            .tokens
            .get(self.next)
            .is_some_and(|t| t.kind != TokenKind::Group && wanted(t.text));
        self.next += usize::from(taken);
        taken
    }

    /// Takes the next argument if it is one of `keywords` or abbreviates exactly one of them, and
    /// returns the keyword in full. `None` leaves the argument for another taker.
    ///
    /// # Errors
    /// [`CliError::Ambiguous`] if it abbreviates several.
    pub fn one_of(&mut self, keywords: &[&'static str]) -> Result<Option<&'static str>, CliError> {
        let Some(token) = self.tokens.get(self.next) else { return Ok(None) };
        let word = token.text;
        if token.kind == TokenKind::Group || word.is_empty() {
            return Ok(None);
        }
        let mut matches: Vec<_> =
            keywords.iter().copied().filter(|k| k.starts_with(word)).collect();
        if let Some(exact) = matches.iter().copied().find(|k| *k == word) {
            matches = vec![exact];
        }
        match matches[..] {
            [] => Ok(None),
            [keyword] => {
                self.next += 1;
                Ok(Some(keyword))
            }
            _ => Err(CliError::Ambiguous {
                path: String::new(),
                input: word.to_owned(),
                candidates: matches.iter().map(|m| (*m).to_owned()).collect(),
            }),
        }
    }

    /// Takes the next argument if it is exactly one of `keywords`.
    pub fn one_of_exact(&mut self, keywords: &[&'static str]) -> Option<&'static str> {
        let word = self.peek()?;
        let found = keywords.iter().find(|keyword| **keyword == word).copied()?;
        self.exact(found).then_some(found)
    }

    /// Like [`one_of`](Self::one_of), but one of them is required.
    ///
    /// # Errors
    /// If the argument is missing, none of `keywords`, or ambiguous.
    pub fn choice(
        &mut self,
        what: &str,
        keywords: &[&'static str],
    ) -> Result<&'static str, CliError> {
        match self.one_of(keywords)? {
            Some(keyword) => Ok(keyword),
            None => Err(self.bad(what, alternatives(keywords))),
        }
    }

    /// Takes `enable` or `on` (true), `disable` or `off` (false).
    ///
    /// # Errors
    /// If the next argument is none of them.
    pub fn enable_disable(&mut self, what: &str) -> Result<bool, CliError> {
        let word = self.choice(what, &["enable", "disable", "on", "off"])?;
        Ok(matches!(word, "enable" | "on"))
    }

    /// Takes any word (quotes removed); `what` names the argument.
    ///
    /// # Errors
    /// If the line ends here or the next argument is a group.
    pub fn word(&mut self, what: &str) -> Result<&'a str, CliError> {
        match self.tokens.get(self.next) {
            Some(token) if token.kind != TokenKind::Group => {
                self.next += 1;
                Ok(token.text)
            }
            _ => Err(self.bad(what, "a word")),
        }
    }

    /// Takes a word that `parse` accepts; `expected` describes valid ones.
    ///
    /// # Errors
    /// If the line ends here or `parse` returns `None`.
    pub fn with<T>(
        &mut self,
        what: &str,
        expected: &str,
        parse: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<T, CliError> {
        let value = match self.tokens.get(self.next) {
            Some(token) if token.kind != TokenKind::Group => parse(token.text),
            _ => None,
        };
        match value {
            Some(value) => {
                self.next += 1;
                Ok(value)
            }
            None => Err(self.bad(what, expected)),
        }
    }

    /// Takes a word by its [`FromStr`]; `expected` describes valid ones.
    ///
    /// # Errors
    /// If the line ends here or the word does not parse.
    pub fn parsed<T: FromStr>(&mut self, what: &str, expected: &str) -> Result<T, CliError> {
        self.with(what, expected, |word| word.parse().ok())
    }

    /// Tries a taker: returns `None`, with nothing consumed, if it fails.
    pub fn maybe<T>(&mut self, take: impl FnOnce(&mut Self) -> Result<T, CliError>) -> Option<T> {
        let at = self.next;
        let taken = take(self).ok();
        if taken.is_none() {
            self.next = at;
        }
        taken
    }

    /// Takes a number from `low` to `high`, decimal or `0x` hexadecimal.
    ///
    /// # Errors
    /// If there is none, or it is out of range.
    pub fn number(&mut self, what: &str, low: u64, high: u64) -> Result<u64, CliError> {
        let expected = format!("a number from {low} to {high}");
        self.with(what, &expected, |w| unsigned(w).filter(|n| (low..=high).contains(n)))
    }

    /// Takes a number from 0 to 255.
    ///
    /// # Errors
    /// If there is none, or it is out of range.
    pub fn u8(&mut self, what: &str) -> Result<u8, CliError> {
        self.number(what, 0, u8::MAX.into()).map(|n| n as u8)
    }

    /// Takes a number from 0 to 65535.
    ///
    /// # Errors
    /// If there is none, or it is out of range.
    pub fn u16(&mut self, what: &str) -> Result<u16, CliError> {
        self.number(what, 0, u16::MAX.into()).map(|n| n as u16)
    }

    /// Takes a number that fits 32 bits.
    ///
    /// # Errors
    /// If there is none, or it is out of range.
    pub fn u32(&mut self, what: &str) -> Result<u32, CliError> {
        self.number(what, 0, u32::MAX.into()).map(|n| n as u32)
    }

    /// Takes a number that fits 64 bits.
    ///
    /// # Errors
    /// If there is none, or it is out of range.
    pub fn u64(&mut self, what: &str) -> Result<u64, CliError> {
        self.number(what, 0, u64::MAX)
    }

    /// Takes a number that may be negative.
    ///
    /// # Errors
    /// If there is none, or it does not fit 64 bits.
    pub fn i64(&mut self, what: &str) -> Result<i64, CliError> {
        self.with(what, "a whole number", |w| match w.strip_prefix('-') {
            Some(digits) => 0i64.checked_sub_unsigned(unsigned(digits)?),
            None => unsigned(w)?.try_into().ok(),
        })
    }

    /// Takes a finite number, e.g. `10`, `0.5` or `1e6`.
    ///
    /// # Errors
    /// If there is none.
    pub fn f64(&mut self, what: &str) -> Result<f64, CliError> {
        self.with(what, "a number such as 10, 0.5 or 1e6", |w| {
            // `inf` and `nan` are numbers to Rust, but not at a prompt.
            w.parse().ok().filter(|n: &f64| n.is_finite())
        })
    }

    /// Takes an IPv4 address.
    ///
    /// # Errors
    /// If there is none.
    pub fn ipv4(&mut self, what: &str) -> Result<Ipv4Addr, CliError> {
        self.parsed(what, "an IPv4 address such as 192.0.2.1")
    }

    /// Takes an IPv6 address.
    ///
    /// # Errors
    /// If there is none.
    pub fn ipv6(&mut self, what: &str) -> Result<Ipv6Addr, CliError> {
        self.parsed(what, "an IPv6 address such as 2001:db8::1")
    }

    /// Takes an IPv4 or IPv6 address.
    ///
    /// # Errors
    /// If there is none.
    pub fn ip(&mut self, what: &str) -> Result<IpAddr, CliError> {
        self.parsed(what, "an IP address such as 192.0.2.1 or 2001:db8::1")
    }

    /// Takes an IPv4 prefix; bits beyond the length are kept.
    ///
    /// # Errors
    /// If there is none, the length is missing or above 32.
    pub fn ipv4_prefix(&mut self, what: &str) -> Result<(Ipv4Addr, u8), CliError> {
        self.with(what, "an IPv4 prefix such as 192.0.2.0/24", |w| prefix(w, 32))
    }

    /// Takes an IPv6 prefix; bits beyond the length are kept.
    ///
    /// # Errors
    /// If there is none, the length is missing or above 128.
    pub fn ipv6_prefix(&mut self, what: &str) -> Result<(Ipv6Addr, u8), CliError> {
        self.with(what, "an IPv6 prefix such as 2001:db8::/32", |w| prefix(w, 128))
    }

    /// Takes an IPv4 or IPv6 prefix; bits beyond the length are kept.
    ///
    /// # Errors
    /// If there is none, or the length is missing or too large.
    pub fn ip_prefix(&mut self, what: &str) -> Result<(IpAddr, u8), CliError> {
        let expected = "a prefix such as 192.0.2.0/24 or 2001:db8::/32";
        self.with(what, expected, |w| {
            let v6 = prefix::<Ipv6Addr>(w, 128).map(|(a, n)| (a.into(), n));
            v6.or_else(|| prefix::<Ipv4Addr>(w, 32).map(|(a, n)| (a.into(), n)))
        })
    }

    /// Takes a MAC address, as `02:fe:00:00:00:01` or `02fe.0000.0001`.
    ///
    /// # Errors
    /// If there is none.
    pub fn mac(&mut self, what: &str) -> Result<MacAddr, CliError> {
        self.with(what, "a MAC address such as 02:fe:00:00:00:01 or 02fe.0000.0001", |word| {
            word.parse().ok()
        })
    }

    /// Takes a `{ ... }` group and returns the text between its braces, raw.
    ///
    /// # Errors
    /// If the next argument is not a group.
    pub fn group(&mut self, what: &str) -> Result<&'a str, CliError> {
        match self.tokens.get(self.next) {
            Some(token) if token.kind == TokenKind::Group => {
                self.next += 1;
                Ok(token.text)
            }
            _ => Err(self.bad(what, "a group in braces, { ... }")),
        }
    }

    /// Takes everything that is left, raw (including quotes and braces, spaces as typed).
    pub fn rest(&mut self) -> &'a str {
        let span = match (self.tokens.get(self.next), self.tokens.last()) {
            (Some(first), Some(last)) => first.start..last.end,
            _ => return "",
        };
        self.next = self.tokens.len();
        &self.line[span]
    }

    /// Refuses arguments that are left. A command that takes no more calls this before it acts.
    ///
    /// # Errors
    /// [`CliError::Unexpected`] if an argument is left.
    pub fn end(&self) -> Result<(), CliError> {
        let Some(token) = self.tokens.get(self.next) else { return Ok(()) };
        let after = match self.next.checked_sub(1) {
            Some(n) => shorten(&self.line[self.tokens[n].start..self.tokens[n].end]),
            None => self.path.to_owned(),
        };
        let found = shorten(&self.line[token.start..token.end]);
        Err(CliError::Unexpected { found, after })
    }

    /// Returns the error that the next argument is not a valid `what`. For parsers built on
    /// [`peek`].
    ///
    /// [`peek`]: Self::peek
    pub fn bad(&self, what: &str, expected: impl Into<String>) -> CliError {
        let found = self.tokens.get(self.next).map(|t| shorten(&self.line[t.start..t.end]));
        let (what, expected) = (what.to_owned(), expected.into());
        CliError::BadArgument { what, expected, found, position: self.next + 1 }
    }

    /// Returns the error that the argument last taken was not a valid `what` (e.g. an unknown
    /// interface).
    pub fn bad_last(&self, what: &str, expected: impl Into<String>) -> CliError {
        let mut before = self.clone();
        before.next = self.next.saturating_sub(1);
        before.bad(what, expected)
    }
}

fn alternatives(words: &[&str]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [one] => format!("`{one}'"),
        [most @ .., last] => {
            let most: Vec<_> = most.iter().map(|w| format!("`{w}'")).collect();
            format!("{} or `{last}'", most.join(", "))
        }
    }
}

fn unsigned(word: &str) -> Option<u64> {
    let (digits, radix) = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None => (word, 10),
    };
    // `from_str_radix` accepts a leading plus sign.
    if !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

fn prefix<A: FromStr>(word: &str, longest: u8) -> Option<(A, u8)> {
    let (addr, len) = word.split_once('/')?;
    let len = u8::try_from(unsigned(len)?).ok().filter(|n| *n <= longest)?;
    Some((addr.parse().ok()?, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(text: &str) -> Args<'_> {
        Args::parse(text).unwrap()
    }

    #[test]
    fn takers_take_in_order() {
        let mut a = args("en host-eth0 0x10 1e6 -3 10.0.0.1/24 2001:db8::1 { a { b } } x  'y z'");
        assert!(!a.keyword("disable") && a.keyword("enable"));
        assert_eq!(a.word("interface").unwrap(), "host-eth0");
        assert_eq!(a.u8("n").unwrap(), 16);
        assert_eq!(a.f64("rate").unwrap(), 1e6);
        assert_eq!(a.i64("m").unwrap(), -3);
        assert_eq!(a.ip_prefix("p").unwrap(), ("10.0.0.1".parse().unwrap(), 24));
        assert!(a.maybe(|a| a.ipv4("address")).is_none());
        assert_eq!(a.ip("address").unwrap(), "2001:db8::1".parse::<IpAddr>().unwrap());
        assert!(a.at_group() && a.word("x").is_err() && !a.keyword("a"));
        assert_eq!(a.group("body").unwrap(), " a { b } ");
        assert_eq!(
            (a.len(), a.peek(), a.peek_at(1), a.peek_at(9)),
            (2, Some("x"), Some("y z"), None)
        );
        assert_eq!(a.end().unwrap_err().to_string(), "unexpected `x' after `{ a { b } }'");
        assert_eq!(a.rest(), "x  'y z'");
        assert!(a.is_empty() && a.end().is_ok());
    }

    #[test]
    fn errors_name_argument_place_and_valid_values() {
        let mut a = args("300 foo");
        assert_eq!(
            a.u8("ttl").unwrap_err().to_string(),
            "bad ttl `300' (argument 1): expected a number from 0 to 255"
        );
        a.word("x").unwrap();
        assert_eq!(
            a.choice("state", &["up", "down"]).unwrap_err().to_string(),
            "bad state `foo' (argument 2): expected `up' or `down'"
        );
        a.word("x").unwrap();
        assert_eq!(
            a.ipv4("next hop").unwrap_err().to_string(),
            "missing next hop (argument 3): expected an IPv4 address such as 192.0.2.1"
        );
        assert_eq!(
            a.bad_last("interface", "an interface").to_string(),
            "bad interface `foo' (argument 2): expected an interface"
        );
    }

    #[test]
    fn wrong_addresses_are_known_as_such() {
        for word in ["192.0.2.300", "192.0.2.1/33", "10.x", "2001:db8::g", "fe80::1%eth0"] {
            assert!(args(word).at_address(), "{word}");
        }
        for word in ["", "host-eth0.100", "1", "15OO", "memif0/0", "{ 192.0.2.1 }"] {
            assert!(!args(word).at_address(), "{word}");
        }
    }

    #[test]
    fn alternatives_may_be_abbreviated_but_not_ambiguous() {
        let words = ["enable", "enable-all", "disable"];
        assert_eq!(args("d").one_of(&words).unwrap(), Some("disable"));
        assert_eq!(args("enable").one_of(&words).unwrap(), Some("enable"));
        assert_eq!(args("x").one_of(&words).unwrap(), None);
        assert!(matches!(args("en").one_of(&words), Err(CliError::Ambiguous { .. })));
        assert!(
            args("on").enable_disable("x").unwrap() && !args("dis").enable_disable("x").unwrap()
        );
        assert!(args("o").enable_disable("x").is_err());
    }

    #[test]
    fn numbers_and_addresses_at_their_limits() {
        assert_eq!(args("18446744073709551615").u64("n").unwrap(), u64::MAX);
        assert_eq!(args("-9223372036854775808").i64("n").unwrap(), i64::MIN);
        for bad in ["18446744073709551616", "+1", "", "0x", "1.5", "-1", "1_0"] {
            assert!(args(&format!("'{bad}'")).u64("n").is_err(), "{bad}");
        }
        for bad in ["inf", "nan", "e", "1e999"] {
            assert!(args(bad).f64("n").is_err(), "{bad}");
        }
        for bad in ["1.2.3.4", "1.2.3.4/33", "1.2.3/8", "1.2.3.4/", "/8", "1.2.3.4/-1"] {
            assert!(args(bad).ipv4_prefix("p").is_err(), "{bad}");
        }
        assert_eq!(args("::/0").ipv6_prefix("p").unwrap().1, 0);
        let want = [2, 0xfe, 0, 0, 0xab, 1];
        for good in ["02:fe:00:00:AB:01", "2-fe-0-0-ab-1", "02fe.0000.ab01", "2fe.0.ab01"] {
            assert_eq!(args(good).mac("m").unwrap(), MacAddr(want), "{good}");
        }
        for bad in
            ["02:fe:00:00:ab", "02:fe:00:00:ab:01:02", "02fe.0000", "02fe.0000:ab01", "::::::"]
        {
            assert!(args(bad).mac("m").is_err(), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_argument_panics(text in "[0-9a-fx:./+e-]{0,24}") {
            let quoted = format!("'{text}'");
            let a = args(&quoted);
            let _ = (a.clone().u64("n"), a.clone().i64("n"), a.clone().f64("n"), a.clone().mac("n"));
            let _ = (a.clone().ip("n"), a.clone().ip_prefix("n"), a.clone().ipv4_prefix("n"));
            let _ = (a.clone().choice("n", &["e", "ex"]), a.clone().group("n"), a.end());
        }

        #[test]
        fn numbers_read_back(n: u64, m: i64, mac: [u8; 6]) {
            proptest::prop_assert_eq!(args(&n.to_string()).u64("n").unwrap(), n);
            proptest::prop_assert_eq!(args(&format!("{n:#x}")).u64("n").unwrap(), n);
            proptest::prop_assert_eq!(args(&m.to_string()).i64("n").unwrap(), m);
            let text = mac.map(|b| format!("{b:02x}")).join(":");
            proptest::prop_assert_eq!(args(&text).mac("m").unwrap(), MacAddr(mac));
        }
    }
}
