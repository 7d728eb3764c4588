//! Reading a stanza's words one by one.

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};

use super::model::PageSize;
use super::report::Report;
use super::tree::{Item, Stanza, Word};
use super::values::{parse_number, parse_size};
use crate::suggest::closest;

/// Smallest page size of any machine.
const MIN_PAGE: u64 = 4096;
/// Longest interval in seconds.
const LONGEST: f64 = 86_400.0;

/// Reads a stanza: the caller asks for a keyword, and then for its value; errors go to the report,
/// and reading continues.
pub(super) struct Reader<'a> {
    stanza: &'a str,
    items: &'a [Item],
    /// Rest of a word of which the beginning has been read.
    rest_of_word: Option<Word>,
    pub(super) report: &'a mut Report,
}

impl<'a> Reader<'a> {
    pub(super) fn new(stanza: &'a Stanza, report: &'a mut Report) -> Self {
        Reader::over(&stanza.name.text, &stanza.body, report)
    }

    pub(super) fn over(stanza: &'a str, items: &'a [Item], report: &'a mut Report) -> Self {
        Reader { stanza, items, rest_of_word: None, report }
    }

    /// Returns the next word as a keyword. Blocks that belong to no keyword are errors.
    pub(super) fn keyword(&mut self) -> Option<Word> {
        if let Some(word) = self.rest_of_word.take() {
            return Some(word);
        }
        while let [first, rest @ ..] = self.items {
            self.items = rest;
            match first {
                Item::Word(word) => return Some(word.clone()),
                Item::Block(_, span) => self.error(span.clone(), "no `{` is expected here"),
            }
        }
        None
    }

    /// Returns the block after a keyword, if there is one.
    pub(super) fn block(&mut self) -> Option<&'a [Item]> {
        let [Item::Block(items, _), rest @ ..] = self.items else { return None };
        self.items = rest;
        Some(items)
    }

    /// Returns the word after `key`; `what` describes the expected value.
    pub(super) fn value(&mut self, key: &Word, what: &str) -> Option<Word> {
        match self.items {
            [Item::Word(word), rest @ ..] => {
                self.items = rest;
                Some(word.clone())
            }
            _ => {
                self.error(key.span.clone(), format!("`{}` needs {what}", key.text));
                None
            }
        }
    }

    /// Reads a string value.
    pub(super) fn text<T: From<String>>(&mut self, key: &Word, what: &str, to: &mut Option<T>) {
        if let Some(word) = self.value(key, what) {
            *to = Some(word.text.into());
        }
    }

    /// Reads a whole number within limits.
    pub(super) fn number<T>(&mut self, key: &Word, limits: RangeInclusive<T>, to: &mut Option<T>)
    where
        T: TryFrom<u64> + PartialOrd + Display,
    {
        let Some(word) = self.value(key, "a number") else { return };
        let parsed = parse_number(&word.text).and_then(|number| T::try_from(number).ok());
        match parsed.filter(|number| limits.contains(number)) {
            Some(number) => *to = Some(number),
            None => {
                let (low, high) = limits.into_inner();
                let message = format!(
                    "`{}` takes a number from {low} to {high}, not {}",
                    key.text, word.text
                );
                self.error(word.span, message);
            }
        }
    }

    /// Reads a number of bytes within limits.
    pub(super) fn size(&mut self, key: &Word, limits: RangeInclusive<u64>, to: &mut Option<u64>) {
        let Some(word) = self.value(key, "a size such as 64k, 2m or 1g") else { return };
        match parse_size(&word.text) {
            Some(size) if limits.contains(&size) => *to = Some(size),
            Some(_) => {
                let (low, high) = limits.into_inner();
                let message = format!(
                    "`{}` takes {} to {} bytes, not {}",
                    key.text,
                    show_size(low),
                    show_size(high),
                    word.text
                );
                self.error(word.span, message);
            }
            None => {
                let message = format!(
                    "`{}` takes a size such as 4096, 64k, 2m or 1g, not {}",
                    key.text, word.text
                );
                self.error(word.span, message);
            }
        }
    }

    /// Reads `default`, `default-hugepage` or a size that is a power of two.
    pub(super) fn page_size(&mut self, key: &Word, to: &mut PageSize) {
        let Some(word) = self.value(key, "default, default-hugepage or a size") else { return };
        *to = match (word.text.as_str(), parse_size(&word.text)) {
            ("default", _) => PageSize::Default,
            ("default-hugepage", _) => PageSize::DefaultHugepage,
            (_, Some(size)) if size.is_power_of_two() && size >= MIN_PAGE => PageSize::Bytes(size),
            _ => {
                let message = format!(
                    "`{}` is default, default-hugepage, or a power of two from 4k, such as 2m; \
                     not {}",
                    key.text, word.text
                );
                return self.error(word.span, message);
            }
        };
    }

    /// Reads seconds, with a fraction, up to a day: no clock counts very many.
    pub(super) fn seconds(&mut self, key: &Word, to: &mut Option<f64>) {
        let Some(word) = self.value(key, "a number of seconds") else { return };
        match word.text.parse::<f64>() {
            Ok(seconds) if seconds > 0.0 && seconds <= LONGEST => *to = Some(seconds),
            _ => {
                let (key, text) = (&key.text, &word.text);
                let message = format!("`{key}` takes seconds above 0, up to {LONGEST}, not {text}");
                self.error(word.span, message);
            }
        }
    }

    /// Reads `on` or `off`. VPP accepts these as the prefix of the next word, and its own clients
    /// write `per-node-counters onupdate-interval 0.05`, so Thalweg does as well.
    pub(super) fn switch(&mut self, key: &Word, to: &mut Option<bool>) {
        let Some(word) = self.value(key, "on or off") else { return };
        let states = [("on", true), ("enable", true), ("off", false), ("disable", false)];
        for (name, state) in states {
            if let Some(rest) = word.text.strip_prefix(name) {
                *to = Some(state);
                if !rest.is_empty() {
                    let span = word.span.end - rest.len()..word.span.end;
                    self.rest_of_word = Some(Word { text: rest.to_owned(), span });
                }
                return;
            }
        }
        let message = format!("`{}` is on or off, not {}", key.text, word.text);
        self.error(word.span, message);
    }

    /// Reports a typo in a fully known stanza; a word that resembles none of its words is one of
    /// VPP's that has no meaning here, and only a warning.
    pub(super) fn unknown_error(&mut self, word: &Word, known: &[&str]) {
        let Some(meant) = closest(&word.text, known) else {
            self.unknown_warning(word, known);
            return;
        };
        let message = format!("unknown word `{}`; did you mean `{meant}`?", word.text);
        self.error(word.span.clone(), message);
        self.skip_to(known);
    }

    /// Warns of a word that has no meaning here, and skips its values.
    pub(super) fn unknown_warning(&mut self, word: &Word, known: &[&str]) {
        let hint = closest(&word.text, known)
            .map(|meant| format!("; did you mean `{meant}`?"))
            .unwrap_or_default();
        let message =
            format!("{}: `{}` is not supported and has no effect{hint}", self.stanza, word.text);
        self.report.warn(word.span.clone(), message);
        self.skip_to(known);
    }

    fn skip_to(&mut self, known: &[&str]) {
        let stop =
            |item: &Item| matches!(item, Item::Word(word) if known.contains(&word.text.as_str()));
        let count = self.items.iter().position(stop).unwrap_or(self.items.len());
        self.items = &self.items[count..];
    }

    pub(super) fn error(&mut self, span: Range<usize>, message: impl AsRef<str>) {
        self.report.error(span, &format!("{}: {}", self.stanza, message.as_ref()));
    }
}

/// Formats a size with the largest unit that divides it.
fn show_size(size: u64) -> String {
    for (shift, unit) in [(40, "t"), (30, "g"), (20, "m"), (10, "k")] {
        if size > 0 && size.is_multiple_of(1 << shift) {
            return format!("{}{unit}", size >> shift);
        }
    }
    size.to_string()
}
