//! Scanner of packet descriptions: words, numbers, addresses and ranges.

use crate::error::PgError;
use crate::template::Vary;
use std::net::{Ipv4Addr, Ipv6Addr};
use thalweg_wire::MacAddr;

/// A text scanned from left to right.
#[derive(Clone, Debug)]
pub(crate) struct Scan<'a> {
    rest: &'a str,
}

/// A value, or a range of values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span<T> {
    pub(crate) low: T,
    pub(crate) high: T,
    pub(crate) vary: Vary,
}

impl<T: Copy> Span<T> {
    pub(crate) fn map<U>(self, f: impl Fn(T) -> U) -> Span<U> {
        Span { low: f(self.low), high: f(self.high), vary: self.vary }
    }
}

fn word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':')
}

impl<'a> Scan<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Scan { rest: text.trim_start() }
    }

    pub(crate) fn is_end(&self) -> bool {
        self.rest.is_empty()
    }

    fn advance(&mut self, n: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(n);
        self.rest = rest.trim_start();
        taken
    }

    /// The run of letters, digits, dots and colons at the current position.
    pub(crate) fn peek_word(&self) -> &'a str {
        let n = self.rest.find(|c| !word_char(c)).unwrap_or(self.rest.len());
        &self.rest[..n]
    }

    /// Takes `mark` if it is next: `->`, `/`.
    pub(crate) fn mark(&mut self, mark: &str) -> bool {
        let there = self.rest.starts_with(mark);
        if there {
            self.advance(mark.len());
        }
        there
    }

    /// Takes a keyword, which may contain hyphens, if it is next.
    pub(crate) fn keyword(&mut self, keyword: &str) -> bool {
        let there = self
            .rest
            .strip_prefix(keyword)
            .is_some_and(|after| !after.starts_with(|c: char| word_char(c) || c == '-'));
        if there {
            self.advance(keyword.len());
        }
        there
    }

    /// Takes a label such as `UDP:`; returns it without the colon.
    pub(crate) fn label(&mut self) -> Option<&'a str> {
        let n = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
        let label = &self.rest[..n];
        if n == 0 || !self.rest[n..].starts_with(':') {
            return None;
        }
        self.advance(n + 1);
        Some(label)
    }

    /// Error that something else was expected here.
    pub(crate) fn error(&self, expected: impl Into<String>) -> PgError {
        let mut found: String = self.rest.chars().take(24).collect();
        if found.is_empty() {
            found = "the end".into();
        }
        PgError::Data { expected: expected.into(), found }
    }

    fn value<T>(
        &mut self,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, PgError> {
        let word = self.peek_word();
        match parse(word) {
            Some(v) => {
                self.advance(word.len());
                Ok(v)
            }
            None => Err(self.error(expected)),
        }
    }

    /// Takes a value, `low - high` or `low + high`.
    pub(crate) fn span<T: Copy>(
        &mut self,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Span<T>, PgError> {
        let low = self.value(expected, &parse)?;
        let vary = match self.rest.as_bytes() {
            [b'-', b'>', ..] => None,
            [b'-', ..] => Some(Vary::Increment),
            [b'+', ..] => Some(Vary::Random),
            _ => None,
        };
        let Some(vary) = vary else { return Ok(Span { low, high: low, vary: Vary::Increment }) };
        self.advance(1);
        Ok(Span { low, high: self.value(expected, &parse)?, vary })
    }

    /// Takes a number or a range of numbers.
    pub(crate) fn number(&mut self) -> Result<Span<u64>, PgError> {
        self.span("a number", number)
    }

    /// Takes one number from `low` to `high`.
    pub(crate) fn one(&mut self, low: u64, high: u64) -> Result<u64, PgError> {
        let inside = |w: &str| number(w).filter(|n| (low..=high).contains(n));
        self.value(&format!("a number from {low} to {high}"), inside)
    }

    /// Takes a MAC address or a range of them, as numbers.
    pub(crate) fn mac(&mut self) -> Result<Span<u64>, PgError> {
        self.span("a MAC address such as 02:fe:00:00:00:01 or 2fe.0.1", mac)
    }

    /// Takes an IPv4 address or a range of them.
    pub(crate) fn ip4(&mut self) -> Result<Span<Ipv4Addr>, PgError> {
        self.span("an IPv4 address such as 192.0.2.1", |w| w.parse().ok())
    }

    /// Takes an IPv6 address or a range of them.
    pub(crate) fn ip6(&mut self) -> Result<Span<Ipv6Addr>, PgError> {
        self.span("an IPv6 address such as 2001:db8::1", |w| w.parse().ok())
    }

    /// Takes hexadecimal digits after `0x`, optionally in groups.
    pub(crate) fn hex(&mut self) -> Result<Vec<u8>, PgError> {
        let expected = "an even number of hexadecimal digits after 0x";
        let first = self.peek_word();
        let Some(digits) = first.strip_prefix("0x").or_else(|| first.strip_prefix("0X")) else {
            return Err(self.error(expected));
        };
        let mut all = digits.to_owned();
        let mut after = self.clone();
        after.advance(first.len());
        let is_hex = |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_hexdigit());
        while is_hex(after.peek_word()) {
            let word = after.peek_word();
            all.push_str(word);
            after.advance(word.len());
        }
        if !is_hex(&all) || all.len() % 2 != 0 {
            return Err(self.error(expected));
        }
        *self = after;
        let byte = |i: usize| u8::from_str_radix(all.get(i..i + 2).unwrap_or("0"), 16);
        Ok((0..all.len()).step_by(2).map(|i| byte(i).unwrap_or(0)).collect())
    }
}

fn number(word: &str) -> Option<u64> {
    let (digits, radix) = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None => (word, 10),
    };
    u64::from_str_radix(digits, radix).ok()
}

/// `02:fe:00:00:00:01`, or three groups of up to four digits.
fn mac(word: &str) -> Option<u64> {
    word.parse().ok().map(MacAddr::to_u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_ranges() {
        let mut s = Scan::new("10.0.0.1 - 10.0.0.99 -> 48.0.0.0+48.0.3.255 1-9 2fe.0.1 x");
        let a = s.ip4().unwrap();
        assert_eq!((a.low, a.high), ([10, 0, 0, 1].into(), [10, 0, 0, 99].into()));
        assert!(s.mark("->") && !s.mark("->"));
        assert_eq!(s.ip4().unwrap().vary, Vary::Random);
        assert_eq!(s.number().unwrap().high, 9);
        assert_eq!(s.mac().unwrap().low, 0x02fe_0000_0001);
        let error = s.number().unwrap_err().to_string();
        assert_eq!(error, "packet data: expected a number, found `x'");
        assert!(!s.is_end());
    }

    #[test]
    fn words_labels_and_hex() {
        let mut s = Scan::new(" UDP: header-length 5 hex 0xdead BEEF 01 zz");
        assert_eq!(s.label(), Some("UDP"));
        assert!(!s.keyword("header") && s.keyword("header-length"));
        assert_eq!(s.one(0, 5).unwrap(), 5);
        assert!(s.label().is_none() && s.keyword("hex"));
        assert_eq!(s.hex().unwrap(), [0xde, 0xad, 0xbe, 0xef, 1]);
        assert!(Scan::new("0x123").hex().is_err() && Scan::new("0x").hex().is_err());
        assert_eq!(mac("02:fe:00:00:00:01"), mac("2fe.0.1"));
        assert!(mac("1.2").is_none() && mac("1.2.3.4").is_none() && mac("11111.0.0").is_none());
    }
}
